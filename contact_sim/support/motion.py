"""Motion and forces of a robot on held feet, in three equivalent forms (theory E10, E13).

Forces act on the robot [N]; the source's F_c is their negative. Redundant rows (a box on four
corners, solo8) leave the forces undetermined: the least norm is returned, the motion is unique.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput
from contact_sim.numbers import cholesky_factor, shaped
from contact_sim.support.projection import Weighted, minimal_coordinates
from contact_sim.support.stance import Stance, require_feet

Array = NDArray[np.float64]


@checked
def free_acceleration(stance: Stance, generalized_force: Array) -> Array:
    """Return v̇ = M⁻¹ (Sᵀτ − h), as if no foot were held, shape (nv,).

    Raises:
        InvalidInput: forces of another shape.
    """
    applied = _applied(stance, generalized_force)
    factor = cholesky_factor('Stance.inertia', stance.inertia)
    return np.asarray(cho_solve((factor, True), applied))


@checked
def constraint_force(stance: Stance, generalized_force: Array) -> Array:
    """Return the force of the ground on the robot, shape (m,); theory E10.

    f = −(J M⁻¹ Jᵀ)⁺ (J M⁻¹ (Sᵀτ − h) + J̇ v), rows as in `stance.contact_jacobian`.

    Args:
        stance: a robot on at least one foot.
        generalized_force: Sᵀτ, see `actuation.generalized_force`, shape (nv,).

    Raises:
        InvalidInput: no foot is held.
    """
    require_feet(stance, 'constraint_force')
    applied = _applied(stance, generalized_force)
    return Weighted.of(stance.inertia, stance.contact_jacobian).force(applied, stance.drift)


@checked
def acceleration(stance: Stance, generalized_force: Array) -> Array:
    """Return v̇ of the KKT system M v̇ − Jᵀf = Sᵀτ − h, J v̇ = −J̇ v, shape (nv,); 2.5.

    Raises:
        InvalidInput: forces of another shape, numbers too large to be reckoned with.
    """
    M, J = stance.inertia, stance.contact_jacobian
    m = len(J)
    kkt = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    right = np.concatenate([_applied(stance, generalized_force), -stance.drift])
    # rows and columns in like units, so that the cut-off of the least squares means something
    scale = np.concatenate([1.0 / np.sqrt(np.diag(M)), np.ones(m)])
    scaled = kkt * scale[:, None] * scale
    try:
        solution = np.linalg.lstsq(scaled, scale * right, rcond=1e-13)[0]
    except np.linalg.LinAlgError as error:
        raise InvalidInput(f'Stance: {error}; expected inertias of one order') from error
    return np.asarray(scale * solution)[: len(M)]


@checked
def projected_acceleration(stance: Stance, generalized_force: Array) -> Array:
    """Return v̇ from the support-consistent dynamics, shape (nv,); theory E10.

    N_cᵀ M v̇ = N_cᵀ (Sᵀτ − h) is singular (rank nv − rank J): it is completed with J v̇ = −J̇ v,
    and both are solved together.
    """
    M, J = stance.inertia, stance.contact_jacobian
    weighted = Weighted.of(M, J)
    Nt = weighted.projector.T
    # in the metric of M: x = Lᵀ v̇, the projector rows scaled by L⁻¹, held rows orthonormal
    L = weighted.factor
    top = np.linalg.solve(L, Nt @ M @ np.linalg.inv(L).T)
    right = np.linalg.solve(L, Nt @ _applied(stance, generalized_force))
    held = (weighted.left.T @ stance.drift) / weighted.values
    system = np.vstack([top, weighted.right.T])
    x = np.linalg.lstsq(system, np.concatenate([right, -held]), rcond=None)[0]
    return np.asarray(np.linalg.solve(L.T, x))


@checked
def minimal_acceleration(
    stance: Stance, generalized_force: Array, independent: NDArray[np.intp] | None = None
) -> tuple[Array, Array]:
    """Return (v̇, ξ̈) from minimal coordinates ξ; theory E13.

    v̇ = Q ξ̈ + Q̇ ξ̇ with Qᵀ M Q ξ̈ + Qᵀ (h + M Q̇ ξ̇) = Qᵀ Sᵀτ. J Q = 0 for all time gives
    J Q̇ ξ̇ = −J̇ v, and Q̇ = 0 in the rows of ξ itself: that determines Q̇ ξ̇.

    Args:
        stance: the robot.
        generalized_force: Sᵀτ, shape (nv,).
        independent: coordinates taken as ξ, see `minimal_coordinates`.
    """
    M, J = stance.inertia, stance.contact_jacobian
    Q, chosen = minimal_coordinates(J, independent)
    rest = np.setdiff1d(np.arange(len(M)), chosen)
    transport = np.zeros(len(M))
    transport[rest] = np.linalg.lstsq(J[:, rest], -stance.drift, rcond=1e-10)[0]
    applied = _applied(stance, generalized_force) - M @ transport
    xi = np.linalg.solve(Q.T @ M @ Q, Q.T @ applied)
    return np.asarray(Q @ xi + transport), np.asarray(xi)


@checked
def consistent_acceleration(stance: Stance, wanted: Array) -> Array:
    """Return the v̇ nearest to `wanted` (nv,) in the metric M with J v̇ = −J̇ v; theory E4."""
    wanted = shaped('wanted', wanted, len(stance.inertia))
    weighted = Weighted.of(stance.inertia, stance.contact_jacobian)
    pull = weighted.force(stance.inertia @ wanted, stance.drift)
    change = np.linalg.solve(stance.inertia, stance.contact_jacobian.T @ pull)
    return np.asarray(wanted + change)


@checked
def consistent_velocity(stance: Stance) -> Array:
    """Return N_c v, the velocity nearest to v in the metric M that moves no held foot; E4."""
    projector = Weighted.of(stance.inertia, stance.contact_jacobian).projector
    return np.asarray(projector @ stance.velocity)


def _applied(stance: Stance, generalized_force: Array) -> Array:
    """Return Sᵀτ − h, shape (nv,)."""
    size = len(stance.inertia)
    return shaped('generalized_force', generalized_force, size) - stance.nonlinear_effects
