"""Inverse dynamics on held feet, and torques that change forces but not motion.

    Sᵀ τ + Jᵀ f = M v̇ + h                                             (theory E8, E10, E14)

The rows that no joint drives (the base) fix the wrench of the feet; the joints follow. A torque in
null(N_cᵀ Sᵀ) is answered by the ground alone: it changes f, not v̇.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked
from contact_sim.robot.configuration import checked_vector
from contact_sim.support.projection import Weighted, null_space_basis
from contact_sim.support.stance import Stance, require_feet

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Efforts and forces that give an acceleration."""

    effort: Array
    """τ of the actuated joints [N m or N], shape (n_joints,)."""
    force: Array
    """f on the robot [N], rows as in `stance.contact_jacobian`, shape (m,)."""
    residual: Array
    """Residual M v̇ + h − Sᵀτ − Jᵀf, zero in the driven rows [N, N m], shape (nv,)."""


def undriven_dofs(stance: Stance) -> NDArray[np.intp]:
    """Return the coordinates that no joint drives, shape (nv − n_joints,)."""
    return np.flatnonzero(~stance.selection_matrix.any(axis=0))


@checked
def inverse_dynamics(
    stance: Stance, acceleration: ArrayLike, force: ArrayLike | None = None
) -> InverseDynamics:
    """Return the efforts for v̇ = `acceleration` (nv,).

    The answer moves the robot as wanted if J v̇ = −J̇ v (`consistent_acceleration`) and `residual`
    is zero: what no joint drives and the feet cannot hold, the line between two feet say, cannot
    be chosen.

    Args:
        stance: the robot.
        acceleration: wanted v̇, shape (nv,).
        force: f of the feet [N], shape (m,); None: of those that carry the base, the least norm.

    Raises:
        InvalidInput: a wrong length or a value that is not finite.
    """
    S, J = stance.selection_matrix, stance.contact_jacobian
    wanted = checked_vector('acceleration', acceleration, len(stance.inertia))
    needed = stance.inertia @ wanted + stance.nonlinear_effects
    if force is None:
        free = undriven_dofs(stance)
        f = np.linalg.pinv(J[:, free].T, rcond=1e-10) @ needed[free]
    else:
        f = checked_vector('force', force, len(J))
    rest = needed - J.T @ f
    effort = S @ rest
    return InverseDynamics(effort, np.asarray(f), np.asarray(rest - S.T @ effort))


@checked
def effort_null_space(stance: Stance) -> Array:
    """Return an orthonormal basis of null(N_cᵀ Sᵀ), shape (n_joints, k); theory E11.

    Efforts along it change the contact forces and leave v̇ alone. Its dimension is that of the
    internal forces that the joints can make.
    """
    Z = null_space_basis(stance.contact_jacobian)
    return null_space_basis(Z.T @ stance.selection_matrix.T)


@checked
def force_of_effort(stance: Stance, effort: ArrayLike) -> Array:
    """Return the change of f with an effort (n_joints,) on top, shape (m,); least norm.

    Raises:
        InvalidInput: no foot is held, a wrong length, or a value that is not finite.
    """
    require_feet(stance, 'force_of_effort')
    tau = checked_vector('effort', effort, len(stance.selection_matrix))
    weighted = Weighted.of(stance.inertia, stance.contact_jacobian)
    return weighted.force(stance.selection_matrix.T @ tau, np.zeros(len(stance.drift)))
