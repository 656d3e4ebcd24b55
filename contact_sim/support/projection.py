"""Ranks, null spaces and projectors of a contact Jacobian; numbers only.

With M = L Lᵀ and J L⁻ᵀ = U Σ Vᵀ (r singular values that count):

    (J M⁻¹ Jᵀ)⁺ = U_r Σ_r⁻² U_rᵀ,   N_c = I − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J = I − L⁻ᵀ V_r V_rᵀ Lᵀ

so that nothing is squared and redundant rows are no special case (theory E4, E5, E10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput
from contact_sim.numbers import cholesky_factor, indices

Array = NDArray[np.float64]
RANK_TOLERANCE = 1e-8
"""Singular values below this share of the largest count as zero."""


def singular_values(matrix: Array) -> Array:
    """Return the singular values of a matrix (m, n), largest first; none for an empty one."""
    if 0 in matrix.shape:
        return np.zeros(0)
    return np.asarray(np.linalg.svd(matrix, compute_uv=False))


def counting(values: Array) -> NDArray[np.bool_]:
    """Return which singular values, largest first, count as different from zero."""
    return np.asarray(values > RANK_TOLERANCE * values.max(initial=0.0))


def rank(matrix: Array) -> int:
    """Return the rank of a matrix (m, n): singular values above RANK_TOLERANCE of the largest."""
    return int(np.count_nonzero(counting(singular_values(matrix))))


def conditioning(matrix: Array) -> float:
    """Return the ratio of the largest singular value to the smallest that counts; 1 if none."""
    values = singular_values(matrix)
    kept = values[counting(values)]
    return float(kept[0] / kept[-1]) if len(kept) else 1.0


@checked
def null_space_basis(matrix: Array) -> Array:
    """Return an orthonormal basis Z of null(J) of a matrix (m, n), shape (n, n − rank)."""
    if matrix.ndim != 2:
        raise InvalidInput(f'matrix: shape {matrix.shape}, expected (m, n)')
    columns = matrix.shape[1]
    if 0 in matrix.shape:
        return np.eye(columns)
    _, values, directions = np.linalg.svd(matrix)
    return np.asarray(directions[np.count_nonzero(counting(values)) :].T.copy())


@checked
def minimal_coordinates(
    jacobian: Array, independent: NDArray[np.intp] | None = None
) -> tuple[Array, NDArray[np.intp]]:
    """Return Q_ξ = ∂q/∂ξ with J Q_ξ = 0 and the coordinates that ξ are; theory E13.

    Args:
        jacobian: J, shape (m, nv).
        independent: coordinates taken as ξ, shape (nv − rank,); None: those that leave the others
            best determined, by pivoted QR.

    Returns:
        Q_ξ, shape (nv, nv − rank), with Q_ξ[independent] = I; and `independent`.

    Raises:
        InvalidInput: coordinates that do not determine the others.
    """
    basis = null_space_basis(jacobian)
    freedom = basis.shape[1]
    if independent is None:
        pivots = qr(basis.T, pivoting=True, mode='r')[-1] if freedom else np.zeros(0, np.intp)
        independent = np.sort(np.asarray(pivots[:freedom], dtype=np.intp))
    chosen = indices('independent', independent, len(basis))
    if chosen.shape != (freedom,) or rank(basis[chosen]) < freedom:
        raise InvalidInput(
            f'independent = {chosen.tolist()}: these coordinates do not determine the others; '
            f'{freedom} are needed'
        )
    return np.asarray(basis @ np.linalg.inv(basis[chosen])), chosen


@dataclass(frozen=True, eq=False)
class Weighted:
    """The singular value decomposition of J L⁻ᵀ, M = L Lᵀ."""

    factor: Array
    """Factor L, lower triangle, shape (nv, nv)."""
    left: Array
    """U_r, shape (m, r)."""
    values: Array
    """Σ_r [1/√kg], shape (r,)."""
    right: Array
    """V_r, shape (nv, r)."""

    @classmethod
    def of(cls, inertia: Array, jacobian: Array) -> Weighted:
        """Return the decomposition for M (nv, nv) and J (m, nv)."""
        L = cholesky_factor('inertia', inertia)
        kept = rank(jacobian)
        if kept == 0:
            nv, m = len(inertia), len(jacobian)
            return cls(L, np.zeros((m, 0)), np.zeros(0), np.zeros((nv, 0)))
        scaled = solve_triangular(L, jacobian.T, lower=True).T
        U, values, Vt = np.linalg.svd(scaled, full_matrices=False)
        return cls(L, U[:, :kept], values[:kept], Vt[:kept].T)

    @property
    def delassus_inverse(self) -> Array:
        """(J M⁻¹ Jᵀ)⁺ [kg], the end-effector inertia Λ of E12, shape (m, m)."""
        scaled = self.left / self.values
        return np.asarray(scaled @ scaled.T)

    @property
    def projector(self) -> Array:
        """N_c, shape (nv, nv)."""
        held = self.right @ (self.right.T @ self.factor.T)
        identity = np.eye(len(self.factor))
        return np.asarray(identity - solve_triangular(self.factor, held, lower=True, trans='T'))

    def force(self, applied: Array, drift: Array) -> Array:
        """Return the least-norm f with J M⁻¹ (applied + Jᵀ f) = −drift, shape (m,)."""
        pushed = self.right.T @ solve_triangular(self.factor, applied, lower=True)
        wanted = pushed + (self.left.T @ drift) / self.values
        return np.asarray(-self.left @ (wanted / self.values))


@checked
def null_space_projector(inertia: Array, jacobian: Array) -> Array:
    """Return N_c = I − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J for M (nv, nv), J (m, nv); theory E4, E10.

    J N_c = 0, N_c² = N_c, and N_c is orthogonal in the metric M: M N_c = N_cᵀ M.

    Raises:
        InvalidInput: sizes that do not fit, an inertia that is not positive definite.
    """
    if jacobian.ndim != 2 or inertia.shape != (jacobian.shape[1],) * 2:
        raise InvalidInput(
            f'inertia {inertia.shape}, jacobian {jacobian.shape}: expected (nv, nv), (m, nv)'
        )
    return Weighted.of(inertia, jacobian).projector
