"""Energy and momentum of a robot, and the gravity vector."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import real_array
from contact_sim.dynamics._vectors import ZERO, add, put, scaled, vec
from contact_sim.errors import InvalidInput, shown
from contact_sim.solvers._jit import kernel


def gravity_vector(gravity: float | ArrayLike) -> NDArray[np.float64]:
    """Return gravity as a vector in world [m/s²], shape (3,); a number g means (0, 0, −g).

    Raises:
        InvalidInput: not a finite number or three finite numbers.
    """
    value = real_array('gravity', gravity)
    if value.shape == ():
        value = np.array([0.0, 0.0, -float(value)])
    if value.shape != (3,) or not np.isfinite(value).all():
        raise InvalidInput(
            f'gravity = {shown(gravity)} m/s²: expected a finite number or 3 of them'
        )
    return value


def mechanical_energy(model: pin.Model, q: Array, v: Array, gravity: Array) -> float:
    """Return T + U [J] at q (nq,), v (nv,): T with armature, U = −m g·c, c the centre of mass."""
    data = model.createData()
    M = pin.crba(model, data, q)  # pin.computeKineticEnergy forgets armature on unaligned axes
    kinetic = 0.5 * v @ (np.triu(M) + np.triu(M, 1).T) @ v
    weight = pin.computeTotalMass(model) * gravity
    return float(kinetic - weight @ pin.centerOfMass(model, data, q))


def centroidal_momentum(model: pin.Model, q: Array, v: Array) -> Array:
    """Return linear [N s] and angular momentum about the centre of mass [N m s], world, (6,)."""
    data = model.createData()
    return np.array(pin.computeCentroidalMomentum(model, data, q, v).vector)


@kernel
def kinetic_energy(M, dof_parent, v):
    """Return ½ vᵀ M v [J], armature included, from the lower triangle of M along the tree."""
    energy = 0.0
    for k in range(v.shape[0]):
        row, momentum = M[k], 0.5 * M[k, k] * v[k]
        i = dof_parent[k]
        while i >= 0:
            momentum += row[i] * v[i]
            i = dof_parent[i]
        energy += v[k] * momentum
    return energy


@kernel
def mass_moment(inertia, origin, out):
    """Fill Σ m c of all bodies [kg m], c in world; the potential energy is −g · Σ m c.

    `inertia` is that of `world_inertia` (nb, 10) about `origin` [m], (3,).
    """
    mass, moment = 0.0, ZERO
    for j in range(1, inertia.shape[0]):
        mass += inertia[j, 0]
        moment = add(moment, vec(inertia[j], 1))
    put(out, 0, add(moment, scaled(mass, vec(origin, 0))))
