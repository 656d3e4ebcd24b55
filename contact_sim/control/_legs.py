"""Controllers, and the dynamics of a legged robot that they need.

The feet are contact points of spheres on level ground: the point s = −r e_z below the centre of
a sphere. It does not turn with the foot, so its acceleration is that of the centre plus α × s
(theory E2, E3). All vectors of feet have world axes.

Joints that follow the driven ones, in closed loops or as gears, are no coordinates: with w of the
base and the driven joints v = N w and v̇ = N ẇ + n, so that

    Nᵀ M N ẇ + Nᵀ (h + M n) = Sᵀ τ + (J N)ᵀ f
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim.errors import InvalidInput, of_type, shown
from contact_sim.robot._model import RobotModel
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
POSITION = pin.KinematicLevel.POSITION
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
        require_legs(robot)
        points = robot.contact_points
        self.n_feet = len(points)
        joints = [model.getJointId(point.joint) for point in points]
        self._spheres = np.array([[*point.offset, point.radius] for point in points])
        self._moved = _dofs_that_move(model, joints)
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
        model, data = self._model, self._data
        self.q, self.v = q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        pin.nonLinearEffects(model, data, q, v)
        pin.crba(model, data, q)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.centerOfMass(model, data, POSITION, False)
        np.concatenate(self._views, out=self._placements.reshape(-1))
        self.foot, self.foot_velocity, self.jacobian, self.drift = motion_of_feet(
            self._placements, self._spheres, self._moved, self._world, self._rate, v
        )
        self.w = v
        if len(self.robot.loops):
            self._follow(v)

    def _follow(self, v: Array) -> None:
        """Let the joints that are not driven follow those that are."""
        data, loops = self._data, self.robot.loops
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

    Args:
        placements: of their bodies in world, rotation row by row, then translation, (n, 12).
        spheres: centre in the axes of the body and radius, shape (n, 4).
        moved: whether a dof moves a foot's body, 0 or 1, shape (n, nv).
        world: twists per dof, linear at the origin of the world, then angular, shape (6, nv).
        rate: their derivative in time, shape (6, nv).
        v: shape (nv,).
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


def require_legs(robot: RobotModel) -> None:
    """Raise InvalidInput unless inverse dynamics can move every foot of `robot` at will."""
    if can_move_its_feet(robot):
        return
    what = f'whole-body control of robot {robot.name}'
    if not robot.floating_base:
        raise InvalidInput(f'{what}: needs a floating base, this one is fixed')
    raise InvalidInput(
        f'{what}: needs three driven joints per leg, and no others but those that follow them; '
        f'it has {robot.n_joints} driven joints of {robot.nv - 6} for '
        f'{len(robot.contact_points)} feet'
    )


def can_move_its_feet(robot: RobotModel) -> bool:
    """Return whether a robot has a floating base and three driven joints per foot.

    All other joints have to follow those, in closed loops or as gears.
    """
    n_feet, driven = len(robot.contact_points), robot.joint_velocity_index
    if not robot.floating_base or not 0 < 3 * n_feet == robot.n_joints:
        return False
    return robot.loops.leave_free(robot.reference_configuration(), driven)


def _dofs_that_move(model: pin.Model, joints: list[int]) -> Array:
    """Return 1 where a dof moves the body of a joint and 0 elsewhere, shape (n, nv)."""
    moved = np.zeros((len(joints), model.nv))
    for row, leaf in zip(moved, joints, strict=True):
        for j in list(model.supports[leaf])[1:]:
            first = model.joints[j].idx_v
            row[first : first + model.joints[j].nv] = 1.0
    return moved
