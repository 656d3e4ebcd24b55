"""Inverse dynamics of a robot on some of its feet, and the controllers that use it.

The feet are contact points of spheres on level ground: the point s = −r e_z below the centre of
a sphere. It does not turn with the foot, so its acceleration is that of the centre plus α × s
(theory E2, E3). All vectors of feet have world axes.

Joints that follow the driven ones, in closed loops or as gears, are no coordinates: with w of the
base and the driven joints v = N w and v̇ = N ẇ + n, so that

    Nᵀ M N ẇ + Nᵀ (h + M n) = Sᵀ τ + (J N)ᵀ f
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import positive
from contact_sim.errors import InvalidInput, SingularLegs, of_type, one_line, shown
from contact_sim.robot._coordinates import moving_dofs
from contact_sim.robot._model import RobotModel
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


class LeggedDynamics:
    """M ẇ + h = Sᵀ τ + Jᵀ f of a robot whose legs can move each foot in all directions.

    Without constraints w is v; n_w = 6 + n_joints.

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

    def __init__(self, robot: RobotModel) -> None:
        self.robot = of_type('robot', robot, RobotModel)
        self._model = model = robot.pinocchio_model
        self._data = data = model.createData()
        if not can_move_its_feet(robot):
            what = f'whole-body control of robot {robot.name}'
            if not robot.floating_base:
                raise InvalidInput(f'{what}: needs a floating base, this one is fixed')
            raise InvalidInput(
                f'{what}: needs three driven joints per leg, and no others but those that follow '
                f'them; it has {robot.n_joints} driven joints of {robot.nv - 6} for '
                f'{len(robot.contact_points)} feet'
            )
        points = robot.contact_points
        self.n_feet = len(points)
        joints = [model.getJointId(point.joint) for point in points]
        self._spheres = np.array([[*point.offset, point.radius] for point in points])
        self._moved = np.array([moving_dofs(model, joint) for joint in joints])
        self._free = np.concatenate([np.arange(6), robot.joint_velocity_index])
        self._friction = robot.joint_damping.copy(), robot.joint_friction.copy()
        for friction in self._friction:
            friction[self._free] = 0.0  # what motors overcome is theirs
        # views of Pinocchio's memory, fetched once: they follow every later call
        self._views = [
            part for j in joints for part in (*data.oMi[j].rotation, data.oMi[j].translation)
        ]
        self._placements = np.zeros((self.n_feet, 12))
        self.upper_inertia, self.nonlinear_effects = data.M, data.nle
        self.centre_of_mass, self.rotation = data.com[0], data.oMi[1].rotation
        self._world, self._rate = data.J, data.dJ
        self.update(robot.reference_configuration(), np.zeros(model.nv))

    def update(self, q: Array, v: Array) -> None:
        """Evaluate everything at q (nq,), v (nv,)."""
        model, data, loops = self._model, self._data, self.robot.loops
        self.q, self.v = q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        pin.nonLinearEffects(model, data, q, v)
        pin.crba(model, data, q)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.centerOfMass(model, data, pin.KinematicLevel.POSITION, False)
        np.concatenate(self._views, out=self._placements.reshape(-1))
        self.foot, self.foot_velocity, self.jacobian, self.drift = motion_of_feet(
            self._placements, self._spheres, self._moved, self._world, self._rate, v
        )
        self.w = v
        if not len(loops):
            return
        # joints that are not driven follow those that are
        N, n = loops.motion(loops.rows(data), self._free, loops.drift(data, v))
        M = symmetric(data.M)
        damping, dry = self._friction
        passive = damping * v + dry * np.tanh(v / STILL)
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
def cross(a, b):
    """Return a × b of two 3-vectors as a tuple."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def motion_of_feet(placements, spheres, moved, world, rate, v):
    """Return points (n, 3), velocities (n, 3), Jacobian (3 n, nv) and drift (3 n,) of the feet.

    `placements` (n, 12) of their bodies in world: rotation row by row, then translation; `spheres`
    (n, 4): centre in the axes of the body and radius; `moved` (n, nv): 1 where a dof moves a foot;
    `world` (6, nv): twists per dof, linear at the origin of the world, then angular; `rate`: their
    derivative in time.
    """
    n, nv = moved.shape
    foot, velocity = np.empty((n, 3)), np.zeros((n, 3))
    jacobian, drift = np.zeros((3 * n, nv)), np.empty(3 * n)
    twist, spatial = np.empty(6), np.empty(6)
    for i in range(n):
        P, s = placements[i], spheres[i]
        x = P[9] + P[0] * s[0] + P[1] * s[1] + P[2] * s[2]
        y = P[10] + P[3] * s[0] + P[4] * s[1] + P[5] * s[2]
        z = P[11] + P[6] * s[0] + P[7] * s[1] + P[8] * s[2]
        centre, point = (x, y, z), (x, y, z - s[3])
        twist[:], spatial[:] = 0.0, 0.0
        for k in range(nv):
            if moved[i, k] == 0.0:
                continue
            for r in range(6):
                twist[r] += v[k] * world[r, k]
                spatial[r] += v[k] * rate[r, k]
            # velocity of the body at the point: v_O + ω × p
            turn = cross((world[3, k], world[4, k], world[5, k]), point)
            for r in range(3):
                jacobian[3 * i + r, k] = world[r, k] + turn[r]
                velocity[i, r] += v[k] * jacobian[3 * i + r, k]
        # the centre: material acceleration a_O + α × c + ω × v_c; from there α × s
        sweep = cross(twist[3:], centre)
        speed = (twist[0] + sweep[0], twist[1] + sweep[1], twist[2] + sweep[2])
        turning, transport = cross(spatial[3:], point), cross(twist[3:], speed)
        for r in range(3):
            foot[i, r] = point[r]
            drift[3 * i + r] = spatial[r] + turning[r] + transport[r]
    return foot, velocity, jacobian, drift


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
        self._cones = [
            (np.kron(np.eye(n), pyramid), np.tile(bound, n)) for n in range(dynamics.n_feet + 1)
        ]

    def solve(self, base: Array, feet: Array, standing: NDArray[np.bool_]) -> Answer:
        """Return efforts for a* of the base (6,), r of the feet (n_feet, 3), `standing` or not."""
        d = self._dynamics
        motion, effort, regular = response(
            d.upper_inertia, d.nonlinear_effects, d.jacobian, d.drift, d.w, feet, standing,
            self._passive,
        )  # fmt: skip
        if not regular:
            raise SingularLegs('singular legs: they cannot move their feet at will')
        rows, top = self._cones[np.count_nonzero(standing)]
        weights, limit = self._weights, self._limit
        torque, force, acceleration, solved = efforts(
            motion, effort, base, standing, weights, rows, top, limit
        )
        if not solved:
            f = least_excess(motion, effort, base, weights, rows, top, limit)
            torque, force, acceleration = outcome(motion, effort, f, standing, limit)
        return Answer(torque, force, d.acceleration(acceleration), solved)


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
    return F, eliminate_right_sides(joints, F)


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
    regular &= eliminate_right_sides(inertia, base)
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
