"""What a controller knows of its robot: dynamics, feet, and how the legs move them.

The feet are contact points of spheres on level ground: the point s = −r e_z below the centre of
a sphere. It does not turn with the foot, so its acceleration is that of the centre plus α × s
(physics.md E2, E3). All vectors of feet have world axes.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
BASE = slice(0, 6)
JOINTS = slice(6, None)


class LeggedDynamics:
    """M v̇ + h = Sᵀ τ + Jᵀ f of a robot whose legs can move each foot in all directions.

    Attributes:
        inertia: M [kg, kg m²], shape (nv, nv).
        nonlinear_effects: h [N, N m], shape (nv,).
        jacobian: J of all feet, rows x y z per foot, shape (3 n_feet, nv).
        drift: J̇ v [m/s²], shape (3 n_feet,).
        foot: contact points in world [m], shape (n_feet, 3).
        foot_velocity: their velocity [m/s], shape (n_feet, 3).
        centre_of_mass: in world [m], shape (3,).
        rotation: axes of the base in world, shape (3, 3).

    Raises:
        InvalidInput: a fixed base, joints that are not driven, or legs without three joints each.
    """

    def __init__(self, robot: RobotModel) -> None:
        self.robot = robot
        self._model = model = robot.pinocchio_model
        self._data = model.createData()
        require_legs(robot)
        points = robot.contact_points
        self.n_feet = len(points)
        self._joint = [model.getJointId(point.joint) for point in points]
        self._offset = [point.offset for point in points]
        self._below = np.array([[0.0, 0.0, -point.radius] for point in points])
        self._moved = _dofs_that_move(model, self._joint)
        self.jacobian = np.zeros((3 * self.n_feet, model.nv))
        self.update(robot.reference_configuration(), np.zeros(model.nv))

    def update(self, q: Array, v: Array) -> None:
        """Evaluate everything at q (nq,), v (nv,)."""
        model, data = self._model, self._data
        self.q, self.v = q, v
        self.nonlinear_effects = pin.nonLinearEffects(model, data, q, v)
        self.inertia = pin.crba(model, data, q)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        self.inertia = np.triu(self.inertia) + np.triu(self.inertia, 1).T
        self.centre_of_mass = np.array(pin.centerOfMass(model, data, q, False))
        self.rotation = np.array(data.oMi[1].rotation)
        self._update_feet(v)

    def _update_feet(self, v: Array) -> None:
        placement = self._data.oMi
        centre = np.array(
            [placement[j].act(o) for j, o in zip(self._joint, self._offset, strict=True)]
        )
        self.foot = point = centre + self._below
        world, rate = self._data.J, self._data.dJ
        linear, angular = world[:3], world[3:]
        # velocity of the body at the point: v_O + ω × p = v_O − p × ω
        columns = linear[None] - _skew(point) @ angular[None]
        self.jacobian = (columns * self._moved[:, None, :]).reshape(-1, len(v))
        self.foot_velocity = (self.jacobian @ v).reshape(-1, 3)
        moving = (self._moved * v).T
        twist, spatial = (world @ moving).T, (rate @ moving).T
        omega, alpha = twist[:, 3:], spatial[:, 3:]
        # the centre: material acceleration a_O + α × c + ω × v_c; from there α × s
        turning = _skew(omega)
        speed = twist[:, :3] + _times(turning, centre)
        drift = spatial[:, :3] - _times(_skew(point), alpha) + _times(turning, speed)
        self.drift = drift.reshape(-1)


def require_legs(robot: RobotModel) -> None:
    """Raise InvalidInput unless inverse dynamics can move every foot of `robot` at will."""
    if can_move_its_feet(robot):
        return
    what = f'whole-body control of robot {robot.name}'
    if not robot.floating_base:
        raise InvalidInput(f'{what}: needs a floating base, this one is fixed')
    raise InvalidInput(
        f'{what}: needs three driven joints per leg and no others; it has {robot.n_joints} '
        f'driven joints of {robot.nv - 6} for {len(robot.contact_points)} feet'
    )


def can_move_its_feet(robot: RobotModel) -> bool:
    """Return whether a robot has a floating base, three driven joints per foot and no others."""
    n_feet = len(robot.contact_points)
    return robot.floating_base and 0 < 3 * n_feet == robot.n_joints == robot.nv - 6


def _dofs_that_move(model: pin.Model, joints: list[int]) -> Array:
    """Return 1 where a dof moves the body of a joint and 0 elsewhere, shape (n, nv)."""
    moved = np.zeros((len(joints), model.nv))
    for row, leaf in zip(moved, joints, strict=True):
        for j in list(model.supports[leaf])[1:]:
            first = model.joints[j].idx_v
            row[first : first + model.joints[j].nv] = 1.0
    return moved


def _skew(vectors: Array) -> Array:
    """Return the matrices of the cross products with `vectors` (n, 3), shape (n, 3, 3)."""
    matrices = np.zeros((len(vectors), 3, 3))
    matrices[:, (2, 0, 1), (1, 2, 0)] = vectors
    matrices[:, (1, 2, 0), (2, 0, 1)] = -vectors
    return matrices


def _times(matrices: Array, vectors: Array) -> Array:
    """Return the product of each matrix (n, 3, 3) with its vector (n, 3)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
