"""The terms of M(q) v̇ + nle(q, v) = τ + Jᵀ f: the only caller of Pinocchio in the loop.

Arrays are live NumPy views of Pinocchio's C++ memory: fetched once, they follow every later call.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]
PLACEMENT_BYTES = 96  # one SE3: rotation (9, column-major), then translation (3)
MOTION_BYTES = 48  # one Motion: linear (3), then angular (3)


def gravity_vector(gravity: float | Array) -> Array:
    """Return gravity as a vector in world [m/s²], shape (3,); a number g means (0, 0, −g).

    Raises:
        InvalidInput: not a finite number or three finite numbers.
    """
    value = np.asarray(gravity, dtype=float)
    if value.shape == ():
        value = np.array([0.0, 0.0, -float(value)])
    if value.shape != (3,) or not np.isfinite(value).all():
        raise InvalidInput(f'gravity = {gravity!r} m/s²: expected a finite number or 3 of them')
    return value


class DynamicsTerms:
    """Pinocchio's model and data of one simulation, with views into the data.

    Attributes:
        inertia: M(q) with armature; only the **lower** triangle is valid, shape (nv, nv).
        jacobian: world joint Jacobian, transposed: row k is the twist (linear at the world origin,
            angular) of the bodies behind dof k, shape (nv, 6).
        nonlinear_effects: C(q, v) v + g(q) [N, N m], shape (nv,).
        placements: placement of every joint in world, rotation column by column then
            translation [m], shape (njoints, 12).
        twists: twist of every joint's body in its own axes, linear at the joint's origin then
            angular, of the last `update_velocity`, shape (njoints, 6).
        bias_accelerations: spatial acceleration of the same bodies with v̇ = 0, minus gravity, in
            the same axes, shape (njoints, 6).
        dof_parent: dof before each dof on the way to the root, −1 at the root, shape (nv,).
        free_flyer_v: first velocity index of every free-flyer joint, shape (n,).
        free_flyer_joint: index of these joints, shape (n,).
        total_mass: mass of everything that moves [kg].
    """

    def __init__(self, model: pin.Model, gravity: Array) -> None:
        self.model = model.copy()
        self.model.gravity.linear = gravity
        self.data = data = self.model.createData()
        nv = self.model.nv  # reshape: Pinocchio hands out a single row as a vector
        self.inertia: Array = data.M.T.reshape(nv, nv)
        self.jacobian: Array = data.J.T.reshape(nv, 6)
        self.nonlinear_effects: Array = data.nle.reshape(nv)
        self.placements = _placements(self.model, data)
        self.twists = _motions(data.v)
        self.bias_accelerations = _motions(data.a_gf)
        self.dof_parent = np.array(list(data.parents_fromRow)[: self.model.nv], dtype=np.int64)
        flyers = [j for j in self.model.joints if j.shortname() == 'JointModelFreeFlyer']
        self.free_flyer_v = np.array([j.idx_v for j in flyers], dtype=np.int64)
        self.free_flyer_joint = np.array([j.id for j in flyers], dtype=np.int64)
        self.total_mass = float(pin.computeTotalMass(self.model))
        self._world = pin.Convention.WORLD

    def set_gravity(self, gravity: Array) -> None:
        """Use `gravity` [m/s²], shape (3,), from now on."""
        self.model.gravity.linear = gravity

    def update_configuration(self, q: Array) -> None:
        """Fill `inertia`, `jacobian` and `placements` at q, shape (nq,)."""
        pin.crba(self.model, self.data, q, self._world)

    def update_velocity(self, q: Array, v: Array) -> None:
        """Fill `nonlinear_effects`, `twists` and `bias_accelerations` at q (nq,), v (nv,).

        The other terms stay as they are.
        """
        pin.nonLinearEffects(self.model, self.data, q, v)

    def integrate(self, q: Array, increment: Array) -> Array:
        """Return q ⊕ increment, shape (nq,)."""
        return pin.integrate(self.model, q, increment)  # type: ignore[no-any-return]


def _placements(model: pin.Model, data: pin.Data) -> Array:
    """Return a live view of data.oMi as an array, shape (njoints, 12)."""
    first = data.oMi[0].rotation
    view: Array = np.lib.stride_tricks.as_strided(
        first.reshape(-1, order='F'), (model.njoints, 12), (PLACEMENT_BYTES, 8)
    )
    pin.forwardKinematics(model, data, pin.neutral(model))
    expected = [[*M.rotation.flatten('F'), *M.translation] for M in data.oMi]
    _check_layout(view.ctypes.data == first.ctypes.data and np.array_equal(view, expected))
    return view


def _motions(motions: pin.StdVec_Motion) -> Array:
    """Return a live view of a list of spatial motions as an array, shape (njoints, 6)."""
    first, shape = motions[0].linear, (len(motions), 6)
    view: Array = np.lib.stride_tricks.as_strided(first, shape, (MOTION_BYTES, 8))
    places = [(m.linear.ctypes.data, m.angular.ctypes.data) for m in motions]
    _check_layout(places == [(row.ctypes.data, row[3:].ctypes.data) for row in view])
    return view


def _check_layout(as_expected: bool) -> None:
    """Raise RuntimeError where Pinocchio's memory is not laid out as this module reads it."""
    if not as_expected:
        raise RuntimeError(
            f'Pinocchio {pin.__version__} lays out its data in a way that contact_sim does not '
            'know; use a version from 3.9 to 4.1'
        )
