"""Inverse dynamics of a robot on some of its feet, and the controllers that use it.

The feet are contact points of spheres on level ground: the point s = −r e_z below the centre of
a sphere. It does not turn with the foot, so its acceleration is that of the centre plus α × s
(theory E2, E3). All vectors of feet have world axes.

Joints that follow the driven ones, in closed loops or as gears, are no coordinates: with w of the
base and the driven joints v = N w and v̇ = N ẇ + n, so that

    Nᵀ M N ẇ + Nᵀ (h + M n) = Sᵀ τ + (J N)ᵀ f
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import positive
from contact_sim.dynamics._rigid_body import (
    bias_forces,
    forward_kinematics,
    mass_matrix,
    mass_moment,
    world_inertia,
)
from contact_sim.dynamics._tree import tree_of
from contact_sim.dynamics._vectors import add, cross, put, rotated, sub, vec
from contact_sim.errors import InvalidInput, SingularLegs, of_type, one_line, shown
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._coordinates import moving_dofs
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.solvers._dense import eliminate_right_sides, solve_qp
from contact_sim.solvers._jit import kernel

# --- Controllers

EffortFunction = Callable[[float, Array, Array], ArrayLike]


class Controller(Protocol):
    """Anything with `effort`; a plain function of the same three arguments will do as well."""

    def effort(self, time: float, q: Array, v: Array) -> ArrayLike:
        """Return joint efforts [N m], shape (n_joints,), at time [s], q (nq,) and v (nv,)."""
        ...


def effort_of(controller: Controller | EffortFunction) -> EffortFunction:
    """Return the function of time, q and v that a controller is."""
    effort = getattr(controller, 'effort', controller)
    if not callable(effort):
        raise InvalidInput(
            f'controller = {shown(controller)}: expected an object with effort(time, q, v)'
        )
    function: EffortFunction = effort
    return function


# --- Dynamics and feet

BASE = slice(0, 6)
JOINTS = slice(6, None)
STILL = 0.02
"""Joint speed over which dry friction, fed forward, changes its sign [rad/s]."""


def check_moves_its_feet(robot: RobotModel) -> None:
    """Raise InvalidInput for a robot whose legs cannot move all feet in all directions."""
    if can_move_its_feet(robot):
        return
    what = f'whole-body control of robot {robot.name}'
    if not robot.floating_base:
        raise InvalidInput(f'{what}: needs a floating base, this one is fixed')
    raise InvalidInput(
        f'{what}: needs three driven joints per leg, and no others but those that follow '
        f'them; it has {robot.n_joints} driven joints of {robot.nv - 6} for '
        f'{len(robot.contact_points)} feet'
    )


class LeggedDynamics:
    """M ẇ + h = Sᵀ τ + Jᵀ f of a robot on contact points.

    Without constraints w is v. Of a robot whose legs can move each foot in all directions, which
    is the rule without `points`, n_w = 6 + n_joints. In a robot with closed loops, passive joints
    with springs are taken as rigid, and other motions that the loops leave free as none.

    Args:
        robot: with a floating base; without `points` it has three driven joints per contact point.
        points: where the ground pushes; None: all contact points of the robot.

    Raises:
        InvalidInput: a fixed base, legs that cannot move all feet in all directions.

    Arrays are those of the last `update`, and change with the next.

    Attributes:
        q: shape (nq,).
        v: shape (nv,).
        w: velocities of the base and the driven joints, shape (n_w,).
        upper_inertia: M [kg, kg m²], only its upper triangle is valid, shape (n_w, n_w).
        nonlinear_effects: h [N, N m], shape (n_w,).
        jacobian: J of all feet, rows x y z per foot, shape (3 n_feet, n_w).
        drift: acceleration of the feet at ẇ = 0 [m/s²], shape (3 n_feet,).
        foot: contact points in world [m], shape (n_feet, 3).
        foot_velocity: their velocity [m/s], shape (n_feet, 3).
        centre_of_mass: in world [m], shape (3,).
        rotation: axes of the base in world, shape (3, 3).
    """

    def __init__(self, robot: RobotModel, points: Sequence[ContactPoint] | None = None) -> None:
        self.robot = of_type('robot', robot, RobotModel)
        self._model = model = robot.pinocchio_model
        if points is None:
            check_moves_its_feet(robot)
            points = robot.contact_points
        self._points = tuple(points)
        self.n_feet = n = len(points)
        joints = [model.getJointId(point.joint) for point in points]
        self._moved = np.array([moving_dofs(model, joint) for joint in joints])
        driven = robot.joint_velocity_index
        self._free = np.concatenate([np.arange(6), driven])
        self._rigid = passive_springs(robot)
        self._friction = robot.joint_damping.copy(), robot.joint_friction.copy()
        for friction in self._friction:
            friction[self._free] = 0.0  # what motors overcome is theirs
        nq, nv = model.nq, model.nv
        self.q, self.v = np.zeros(nq), np.zeros(nv)
        self.foot, self.foot_velocity = np.zeros((n, 3)), np.zeros((n, 3))
        self.jacobian, self.drift = np.zeros((3 * n, nv)), np.zeros(3 * n)
        tree = tree_of(model)
        self.compiled = not len(robot.loops) and not tree.unsupported
        if self.compiled:
            body = tree.body_of_joint[joints]
            offset = [tree.axes[i].T @ point.offset for i, point in zip(body, points, strict=True)]
            self._spheres = np.array([[*o, p.radius] for o, p in zip(offset, points, strict=True)])
            self.lower_inertia, self.nonlinear_effects = np.zeros((nv, nv)), np.zeros(nv)
            self.centre_of_mass, self.rotation = np.zeros(3), np.zeros((3, 3))
            nb = len(tree.kind)
            self.constants = (
                (tree.kind, tree.parent, tree.q_index, tree.v_index, tree.dof_parent,
                 tree.placement, tree.body, tree.armature),
                (body, self._spheres, self._moved, np.array(model.gravity.linear)),
            )  # fmt: skip
            """What the kernel `motion_of_legs` has to know of the robot."""
            self.scratch = (
                np.zeros(3), np.zeros((nb, 12)), np.zeros((nv, 6)), np.zeros((nb, 10)),
                np.zeros((nb, 10)), np.zeros((nb, 6)), np.zeros((nb, 6)), np.zeros((nb, 6)),
            )  # fmt: skip
            self.terms = (
                self.lower_inertia, self.nonlinear_effects, self.rotation, self.centre_of_mass,
                self.foot, self.foot_velocity, self.jacobian, self.drift,
            )  # fmt: skip
            """What it fills."""
            self.upper_inertia = self.lower_inertia.T
        else:
            self._spheres = np.array([[*point.offset, point.radius] for point in points])
            self._data = data = data_of(model)
            # views of Pinocchio's memory, fetched once: they follow every later call
            self._views = [
                part for j in joints for part in (*data.oMi[j].rotation.T, data.oMi[j].translation)
            ]
            self._placements = np.zeros((n, 12))
            self.upper_inertia, self.nonlinear_effects = data.M, data.nle
            self.centre_of_mass, self.rotation = data.com[0], data.oMi[1].rotation
        self.update(robot.reference_configuration(), np.zeros(nv))

    def __deepcopy__(self, memo: dict[int, Any]) -> LeggedDynamics:
        """Return dynamics with arrays of their own: copies of views would follow no update."""
        other = LeggedDynamics(self.robot, self._points)
        other.update(self.q, self.v)
        return other

    def update(self, q: Array, v: Array) -> None:
        """Evaluate everything at q (nq,), v (nv,)."""
        self.q, self.v = q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        self.w = v
        if self.compiled:
            motion_of_legs(*self.constants, self.scratch, q, v, self.terms)
        else:
            self._update_by_pinocchio(q, v)
        if self.robot.springs and not len(self.robot.loops):  # in place, as all terms are filled
            self.nonlinear_effects -= self.robot.spring_effort(q)

    def _update_by_pinocchio(self, q: Array, v: Array) -> None:
        """Evaluate everything of a robot with joints that the kernels do not know."""
        model, data, loops = self._model, self._data, self.robot.loops
        pin.nonLinearEffects(model, data, q, v)
        pin.crba(model, data, q)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.centerOfMass(model, data, pin.KinematicLevel.POSITION, False)
        np.concatenate(self._views, out=self._placements.reshape(-1))
        speeds = self._moved * v
        feet = self.n_feet
        foot, velocity = np.zeros((feet, 3)), np.zeros((feet, 3))
        jacobian, drift = np.zeros((3 * feet, len(v))), np.zeros(3 * feet)
        motion_of_feet(
            self._placements, self._spheres, self._moved, data.J.T.copy(), np.zeros(3),
            speeds @ data.J.T, speeds @ data.dJ.T, foot, velocity, jacobian, drift,
        )  # fmt: skip
        self.foot, self.foot_velocity, self.jacobian, self.drift = foot, velocity, jacobian, drift
        if not len(loops):
            return
        # joints that are not driven follow those that are
        N, n = loops.motion(loops.rows(data), self._free, loops.drift(data, v), self._rigid)
        M = symmetric(data.M)
        damping, dry = self._friction
        passive = damping * v + dry * np.tanh(v / STILL) - self.robot.spring_effort(q)
        self._motion = N, n
        self.w = v[self._free]
        self.upper_inertia = np.asfortranarray(N.T @ M @ N)  # as Pinocchio lays M out
        self.nonlinear_effects = N.T @ (data.nle + M @ n + passive)
        self.drift = self.drift + self.jacobian @ n
        self.jacobian = self.jacobian @ N

    def acceleration(self, rate: Array) -> Array:
        """Return v̇ (nv,) for ẇ (n_w,)."""
        if not len(self.robot.loops):
            return rate
        N, n = self._motion
        return np.asarray(N @ rate + n)

    @property
    def inertia(self) -> Array:
        """Mass matrix M [kg, kg m²], shape (n_w, n_w)."""
        return np.asarray(symmetric(self.upper_inertia))


@kernel
def symmetric(upper):
    """Return the symmetric matrix with the upper triangle of `upper` (n, n)."""
    n = upper.shape[0]
    full = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            full[i, j] = full[j, i] = upper[i, j]
    return full


@kernel
def motion_of_legs(tree, feet, scratch, q, v, terms):
    """Fill M, its lower triangle (nv, nv), h (nv,), R (3, 3), centre of mass and `motion_of_feet`.

    At q (nq,), v (nv,); `tree` are arrays of the `Tree`, `feet` their bodies (n,), `spheres`,
    `moved` and gravity, see `motion_of_feet`.
    """
    kind, parent, q_index, v_index, dof_parent, placement, body, armature = tree
    bodies, spheres, moved, gravity = feet
    origin, pose, columns, inertia, composite, twist, bias, wrench = scratch
    M, h, R, centre, foot, velocity, jacobian, drift = terms
    forward_kinematics(kind, parent, q_index, v_index, placement, q, origin, pose, columns)
    world_inertia(body, pose, origin, inertia)
    mass_matrix(parent, v_index, dof_parent, columns, inertia, armature, composite, M)
    bias_forces(parent, v_index, columns, inertia, v, gravity, twist, bias, wrench, h)
    mass_moment(inertia, origin, centre)
    total = 0.0
    for j in range(1, inertia.shape[0]):
        total += inertia[j, 0]
    for k in range(3):
        centre[k] /= total
        for r in range(3):
            R[r, k] = pose[1, 3 * k + r]
    n = bodies.shape[0]
    placements, twists, rates = np.empty((n, 12)), np.empty((n, 6)), np.empty((n, 6))
    for i in range(n):
        placements[i], twists[i], rates[i] = pose[bodies[i]], twist[bodies[i]], bias[bodies[i]]
        for k in range(3):
            rates[i, k] += gravity[k]  # `bias_forces` accelerates the world instead
    motion_of_feet(
        placements, spheres, moved, columns, origin, twists, rates, foot, velocity, jacobian, drift
    )


@kernel
def motion_of_feet(
    placements, spheres, moved, columns, origin, twists, rates, foot, velocity, jacobian, drift
):
    """Fill points (n, 3), velocities (n, 3), Jacobian (3 n, nv) and drift (3 n,) of the feet.

    `placements` (n, 12) of their bodies in world: rotation column by column, then translation;
    `spheres` (n, 4): centre in the axes of the body and radius; `moved` (n, nv): 1 where a dof
    moves a foot; `columns` (nv, 6): twists per dof, linear at the `origin` (3,), then angular;
    `twists` (n, 6) of the bodies, and their `rates` (n, 6) at v̇ = 0.
    """
    for i in range(moved.shape[0]):
        P, s = placements[i], spheres[i]
        offset = rotated(vec(P, 0), vec(P, 3), vec(P, 6), vec(s, 0))
        centre = sub(add(vec(P, 9), offset), vec(origin, 0))
        point = (centre[0], centre[1], centre[2] - s[3])
        put(foot[i], 0, add(point, vec(origin, 0)))
        # velocity of the body at the point: v_O + ω × p
        put(velocity[i], 0, add(vec(twists[i], 0), cross(vec(twists[i], 3), point)))
        for k in range(moved.shape[1]):
            if moved[i, k] == 0.0:
                continue
            speed = add(vec(columns[k], 0), cross(vec(columns[k], 3), point))
            for r in range(3):
                jacobian[3 * i + r, k] = speed[r]
        # the centre: material acceleration a_O + α × c + ω × v_c; from there α × s
        sweep = add(vec(twists[i], 0), cross(vec(twists[i], 3), centre))
        turning, transport = cross(vec(rates[i], 3), point), cross(vec(twists[i], 3), sweep)
        put(drift, 3 * i, add(add(vec(rates[i], 0), turning), transport))


def passive_springs(robot: RobotModel) -> list[int]:
    """Return the dofs of joints with springs that are not driven."""
    model = robot.pinocchio_model
    return [
        int(model.joints[model.getJointId(spring.joint)].idx_v)
        for spring in robot.springs
        if spring.joint not in robot.joint_names
    ]


def can_move_its_feet(robot: RobotModel) -> bool:
    """Return whether a floating robot has three driven joints per foot that all others follow."""
    n_feet, driven = len(robot.contact_points), robot.joint_velocity_index
    if not robot.floating_base or not 0 < 3 * n_feet == robot.n_joints:
        return False
    return robot.loops.leave_free(robot.reference_configuration(), driven)


# --- The QP: support-consistent inverse dynamics, a small QP in the forces
#
# Every foot has a desired acceleration r: zero if it stands, that of its swing otherwise. With
# J = [J_b J_j] of all feet and square J_j that leaves the base acceleration a free,
#
#     J v̇ = r − J̇ v    →    v̇ = T a + c,   T = (I, −J_j⁻¹ J_b),   c = (0, J_j⁻¹ (r − J̇ v))
#
# and the six rows that no joint drives fix a by the forces f of the standing feet (theory E8):
#
#     M_b (T a + c) + h_b = J_bᵀ f          →    a = B f + a_0,   τ = M_j v̇ + h_j − J_jᵀ f
#
#     minimise  ½ |W (B f + a_0 − a*)|² + ½ ρ |f|²
#     such that |f_x|, |f_y| ≤ μ f_z / √2,  f_z ≥ f_min,  |τ| ≤ τ_max
#
# |f|² chooses among the internal forces, those that move nothing; the pyramid lies in the cone. Of
# a robot with joints that follow others v is w.

UNBOUNDED = 1e20
ACCURACY = 1e-9
"""Excess of a limit of the QP that does not matter: 1 nN, 1 nN m."""
EXCESS_WEIGHT = 1e6
"""Cost of an excess of effort over that of the forces, where no forces keep all limits [-]."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Result of the inverse dynamics: planned efforts, accelerations and forces."""

    effort: Array
    """τ [N m], shape (n_joints,)."""
    force: Array
    """Forces on the robot at the feet [N], world axes, zero in the air, shape (n_feet, 3)."""
    acceleration: Array
    """v̇ [m/s², rad/s²], shape (nv,)."""
    solved: bool
    """False where no forces in the cones satisfy the effort limits.

    Then the answer is that of the forces with the least excess in squares, cut at the limits.
    """

    __repr__ = one_line


class InverseDynamicsQP:
    """Efforts for a desired acceleration of the base and of the feet in the air.

    The controller assumes μ = `friction`, less than that of the ground; `weights` are of errors in
    the linear (first three) and angular acceleration of the base; `regularisation` is ρ over 1/m²,
    `smallest_force` f_min over the share of the weight of a standing foot [-].
    """

    def __init__(
        self,
        dynamics: LeggedDynamics,
        friction: float = 0.5,
        weights: tuple[float, ...] = (1.0, 1.0, 1.0, 0.3, 0.3, 0.3),
        regularisation: float = 1e-4,
        smallest_force: float = 0.02,
    ) -> None:
        robot = dynamics.robot
        self._dynamics = dynamics
        self._weights = np.array([*weights, regularisation / robot.total_mass**2])
        self._limit = np.minimum(robot.effort_limit, 1e6)
        driven = robot.joint_velocity_index
        self._passive = np.array([robot.joint_damping[driven], robot.joint_friction[driven]])
        side = positive('friction', friction, '') / np.sqrt(2.0)
        pyramid = [[1.0, 0, -side], [-1, 0, -side], [0, 1, -side], [0, -1, -side], [0, 0, -1.0]]
        bound = [0.0, 0.0, 0.0, 0.0, -smallest_force * robot.total_mass * 9.81 / dynamics.n_feet]
        feet = dynamics.n_feet
        self.constants = (
            self._passive, self._weights, np.kron(np.eye(feet), pyramid), np.tile(bound, feet),
            self._limit,
        )  # fmt: skip
        """What the kernel `inverse_dynamics` has to know besides the dynamics."""

    def solve(self, base: Array, feet: Array, standing: NDArray[np.bool_]) -> Answer:
        """Return efforts for a* of the base (6,), r of the feet (n_feet, 3), `standing` or not."""
        d = self._dynamics
        torque, force, acceleration, solved, regular = inverse_dynamics(
            d.upper_inertia, d.nonlinear_effects, d.jacobian, d.drift, d.w, base, feet, standing,
            self.constants,
        )  # fmt: skip
        if not regular:
            raise SingularLegs('singular legs: they cannot move their feet at will')
        return Answer(torque, force, d.acceleration(acceleration), solved)


@kernel
def inverse_dynamics(upper_inertia, h, J, drift, w, base, feet, standing, constants):
    """Return τ, forces and v̇ as `outcome`, whether they keep all limits, and whether they exist.

    `base` (6,) is a*, `feet` (n_feet, 3) are r; with `cones` and `bounds` of all feet standing.
    """
    passive, weights, cones, bounds, limit = constants
    motion, effort, regular = response(upper_inertia, h, J, drift, w, feet, standing, passive)
    if not regular:
        return np.zeros(0), np.zeros((0, 3)), np.zeros(0), False, False
    n = np.sum(standing)
    per_foot = cones.shape[0] // standing.shape[0]
    rows, top = cones[: per_foot * n, : 3 * n], bounds[: per_foot * n]
    torque, force, acceleration, solved = efforts(
        motion, effort, base, standing, weights, rows, top, limit
    )
    if not solved:
        f = least_excess(motion, effort, base, weights, rows, top, limit)
        torque, force, acceleration = outcome(motion, effort, f, standing, limit)
    return torque, force, acceleration, solved, True


@kernel
def follow(J, drift, feet):
    """Return the joints' accelerations as −(F, c): v̇_j = −F a + c; and whether J_j is regular."""
    n = J.shape[0]
    joints, F = np.empty((n, n)), np.empty((n, 7))
    for i in range(n):
        for k in range(6):
            F[i, k] = J[i, k]
        F[i, 6] = drift[i] - feet[i // 3, i % 3]
        for k in range(n):
            joints[i, k] = J[i, 6 + k]
    return F, eliminate_right_sides(joints, F) > 0.0


@kernel
def response(upper_inertia, h, J, drift, v, feet, standing, passive):
    """Return v̇ = P f + p and τ = S f + s as (P, p), (nv, n + 1), and (S, s); whether they exist.

    Of M only the upper triangle is read; `drift` (3 n_feet,) is J̇ v, `feet` (n_feet, 3) are
    desired accelerations r, `passive` (2, n_joints) has damping and dry friction of the joints.
    """
    M, nv, feet_rows = symmetric(upper_inertia), h.shape[0], J.shape[0]
    F, regular = follow(J, drift, feet)
    stands, n = np.empty(feet_rows, np.int64), 0
    for j in range(feet_rows):
        if standing[j // 3]:
            stands[n] = j
            n += 1
    motion, inertia, base = np.empty((nv, n + 1)), np.empty((6, 6)), np.empty((6, n + 1))
    for i in range(6):
        for k in range(n):
            base[i, k] = J[stands[k], i]
        base[i, n] = -h[i]
        for k in range(6):
            inertia[i, k] = M[i, k]
        for j in range(feet_rows):
            base[i, n] += M[i, 6 + j] * F[j, 6]
            for k in range(6):
                inertia[i, k] -= M[i, 6 + j] * F[j, k]
    regular &= eliminate_right_sides(inertia, base) > 0.0
    for k in range(n + 1):
        for i in range(6):
            motion[i, k] = base[i, k]
        for j in range(feet_rows):
            total = F[j, 6] if k == n else 0.0
            for i in range(6):
                total += F[j, i] * base[i, k]
            motion[6 + j, k] = -total
    effort = M[6:] @ motion
    for j in range(feet_rows):
        for k in range(n):
            effort[j, k] -= J[stands[k], 6 + j]
        friction = passive[0, j] * v[6 + j] + passive[1, j] * np.tanh(v[6 + j] / STILL)
        effort[j, n] += h[6 + j] + friction
    return motion, effort, regular


@kernel
def program(motion, effort, base, weights, rows, top, limit):
    """Return H, g, C, lower and upper of the QP in the forces, see above.

    (P, p) is `motion`, (S, s) is `effort`, a* is `base`, τ_max is `limit`; `weights` (7,) are W,
    then ρ; `rows` (m, n) of the cones have the upper bounds `top` (m,).
    """
    m, n = rows.shape
    H, g = np.zeros((n, n)), np.zeros(n)
    for a in range(n):
        H[a, a] = weights[6]
    for i in range(6):
        square = weights[i] ** 2
        for a in range(n):
            g[a] += square * motion[i, a] * (motion[i, n] - base[i])
            for b in range(n):
                H[a, b] += square * motion[i, a] * motion[i, b]
    C = np.empty((m + limit.shape[0], n))
    lower, upper = np.empty(C.shape[0]), np.empty(C.shape[0])
    for i in range(C.shape[0]):
        j = i - m
        for a in range(n):
            C[i, a] = rows[i, a] if j < 0 else effort[j, a]
        lower[i] = -UNBOUNDED if j < 0 else -limit[j] - effort[j, n]
        upper[i] = top[i] if j < 0 else limit[j] - effort[j, n]
    return H, g, C, lower, upper


@kernel
def outcome(motion, effort, f, standing, limit):
    """Return τ (n_joints,), forces at all feet (n_feet, 3) and v̇ (nv,) for the forces f (n,)."""
    n, k = f.shape[0], 0
    force, with_one = np.zeros((standing.shape[0], 3)), np.ones(n + 1)
    for i in range(standing.shape[0]):
        for j in range(3 * standing[i]):
            force[i, j] = with_one[k] = f[k]
            k += 1
    torque = effort @ with_one
    for i in range(limit.shape[0]):
        torque[i] = min(max(torque[i], -limit[i]), limit[i])
    return torque, force, motion @ with_one


@kernel
def efforts(motion, effort, base, standing, weights, rows, top, limit):
    """Return the `outcome` of the best forces, and whether there are any that keep all limits."""
    H, g, C, lower, upper = program(motion, effort, base, weights, rows, top, limit)
    f, solved = solve_qp(H, g, C, lower, upper, ACCURACY)
    torque, force, acceleration = outcome(motion, effort, f, standing, limit)
    return torque, force, acceleration, solved


@kernel
def least_excess(motion, effort, base, weights, rows, top, limit):
    """Return the best forces (n,) in the cones; efforts may exceed their limits, at a cost."""
    H, g, C, lower, upper = program(motion, effort, base, weights, rows, top, limit)
    n, m, joints = g.shape[0], rows.shape[0], limit.shape[0]
    weight = EXCESS_WEIGHT * np.trace(H)
    # an excess e of each joint is a further unknown: |τ + e| ≤ τ_max, and w e² / 2 in the cost
    wide_H, wide_g = np.zeros((n + joints, n + joints)), np.zeros(n + joints)
    wide_C = np.zeros((m + joints, n + joints))
    wide_H[:n, :n], wide_g[:n], wide_C[:, :n] = H, g, C
    for j in range(joints):
        wide_H[n + j, n + j], wide_C[m + j, n + j] = weight, 1.0
    tolerance = ACCURACY * (1.0 + np.abs(effort[:, n]).max())
    x, solved = solve_qp(wide_H, wide_g, wide_C, lower, upper, tolerance)
    return x[:n] if solved else np.linalg.solve(H, -g)
