"""Eliminate bilateral rows from a contact problem, exactly for every contact law (theory 4.6).

    H v⁺ + c = 0,   v⁺ = v_f + M̂⁻¹ (Jᵀ λ + Hᵀ λ_b)
    λ_b = −A⁺ (H (v_f + M̂⁻¹ Jᵀ λ) + c),   A = H M̂⁻¹ Hᵀ

so that the contact laws see the constrained robot:

    G_c = G − (J M̂⁻¹ Hᵀ) A⁺ (H M̂⁻¹ Jᵀ)

A⁺ is the pseudo-inverse: redundant rows share the impulse with least norm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import real_array
from contact_sim.errors import InvalidInput
from contact_sim.solvers._dense import (
    RANK_TOLERANCE,
    assign,
    gram_cholesky,
    least_norm_factored,
    pivoted_cholesky,
)
from contact_sim.solvers._jit import kernel


class Elimination(NamedTuple):
    """Arrays of nb bilateral rows of a robot with nv degrees of freedom."""

    jacobian: Any  # H, shape (nb, nv)
    response: Any  # M̂⁻¹ Hᵀ by rows, shape (nb, nv)
    matrix: Any  # A [1/kg], shape (nb, nb)
    factor: Any  # pivoted factor of A, shape (nb, nb)
    gram: Any  # factor of the products of its columns, of which the rank counts, shape (nb, nb)
    order: Any  # pivots, integers, shape (nb,)


@kernel
def factor_rows(rows, scratch):
    """Fill A and its factor from H and M̂⁻¹ Hᵀ; return the rank of A."""
    H, V, A = rows.jacobian, rows.response, rows.matrix
    for a in range(H.shape[0]):
        for b in range(a + 1):
            total = 0.0
            for k in range(H.shape[1]):
                total += H[b, k] * V[a, k]
            A[a, b] = A[b, a] = total
    # factor of a copy
    for a in range(H.shape[0]):
        assign(scratch[a], A[a])
    rank = pivoted_cholesky(scratch, rows.order, rows.factor)
    gram_cholesky(rows.factor, rank, rows.gram)
    return rank


@kernel
def row_values(H, v, c, out):
    """Fill H v + c, shape (nb,)."""
    for a in range(H.shape[0]):
        total = c[a]
        for k in range(H.shape[1]):
            total += H[a, k] * v[k]
        out[a] = total


@kernel
def constrain(rows, rank, c, v, impulse, scratch):
    """Add M̂⁻¹ Hᵀ λ_b to v (nv,), such that H v + c = 0 where the rows allow it."""
    row_values(rows.jacobian, v, c, scratch)
    factor = rows.order, rows.factor, rows.gram
    least_norm_factored(rows.matrix, factor, rank, scratch, impulse)
    V = rows.response
    for a in range(V.shape[0]):
        for k in range(v.shape[0]):
            v[k] += impulse[a] * V[a, k]


@kernel
def fill_reduction(rows, rank, coupling, reduction):
    """Fill the first `rank` rows of Z, G_c = G − Zᵀ Z, from `coupling` H M̂⁻¹ Jᵀ (nb, n)."""
    L, order = rows.factor, rows.order
    if rank == order.shape[0]:  # Z = L⁻¹ H M̂⁻¹ Jᵀ
        for r in range(rank):
            assign(reduction[r], coupling[order[r]])
        forward_substitute(L, rank, reduction)
        return
    for r in range(rank):  # Z = (Lᵀ L)⁻¹ Lᵀ H M̂⁻¹ Jᵀ
        for k in range(reduction.shape[1]):
            reduction[r, k] = 0.0
        for i in range(r, order.shape[0]):
            for k in range(reduction.shape[1]):
                reduction[r, k] += L[i, r] * coupling[order[i], k]
    forward_substitute(rows.gram, rank, reduction)
    for r in range(rank - 1, -1, -1):
        for j in range(r + 1, rank):
            subtract_row(reduction, r, j, rows.gram[j, r])
        scale_row(reduction, r, 1.0 / rows.gram[r, r])


@kernel
def reduce_problem(reduction, rank, row_of, n, G, g):
    """Turn G (n, n) and g into those of the constrained robot: G − Zᵀ Z.

    `row_of` is the column of Z of every problem row. A row without freedom left becomes zero: it
    does not act on others, and its velocity is zero.
    """
    for a in range(n):
        before = G[a, a]
        for b in range(a + 1):
            total = 0.0
            for r in range(rank):
                total += reduction[r, row_of[a]] * reduction[r, row_of[b]]
            G[a, b] -= total
            G[b, a] = G[a, b]
        if G[a, a] <= RANK_TOLERANCE * before:
            G[a, a] = -before  # mark: no freedom left
    # decouple the marked rows
    for a in range(n):
        if G[a, a] < 0.0:
            g[a], G[a, a] = 0.0, -G[a, a]
            for b in range(n):
                if b != a:
                    G[a, b] = G[b, a] = 0.0


@kernel
def forward_substitute(L, rank, reduction):
    """Overwrite the first `rank` rows of Z with the solution of L X = Z."""
    for r in range(rank):
        for j in range(r):
            subtract_row(reduction, r, j, L[r, j])
        scale_row(reduction, r, 1.0 / L[r, r])


@kernel
def subtract_row(reduction, r, j, x):
    """Subtract x times row j from row r."""
    for k in range(reduction.shape[1]):
        reduction[r, k] -= x * reduction[j, k]


@kernel
def scale_row(reduction, r, x):
    """Multiply row r by x."""
    for k in range(reduction.shape[1]):
        reduction[r, k] *= x


# Gauss's principle of least constraint, an independent check of bilateral rows (theory T5).
#
#     primal    v̇ = argmin ½ (v̇ − v̇_uc)ᵀ M (v̇ − v̇_uc)   s.t.  H v̇ + Ḣ v = 0
#     dual      λ = argmin ½ λᵀ H M⁻¹ Hᵀ λ + λᵀ ḧ_uc,     ḧ_uc = H v̇_uc + Ḣ v
#
# v̇_uc is the acceleration without constraints, λ the force along +Hᵀ.


def gauss_primal(
    mass_matrix: ArrayLike, acceleration: ArrayLike, jacobian: ArrayLike, drift: ArrayLike
) -> Array:
    """Return the acceleration under constraints, shape (nv,), from its optimality conditions.

    Args:
        mass_matrix: M, shape (nv, nv).
        acceleration: v̇_uc, shape (nv,).
        jacobian: H, shape (nb, nv).
        drift: Ḣ v, shape (nb,).

    Raises:
        InvalidInput: shapes that do not fit.
    """
    M, free, H, c = _checked(mass_matrix, acceleration, jacobian, drift)
    nv, nb = len(free), len(c)
    system = np.block([[M, H.T], [H, np.zeros((nb, nb))]])
    return np.asarray(np.linalg.lstsq(system, np.concatenate([M @ free, -c]))[0][:nv])


def gauss_dual(
    mass_matrix: ArrayLike, acceleration: ArrayLike, jacobian: ArrayLike, drift: ArrayLike
) -> Array:
    """Return the constraint forces λ along Hᵀ, shape (nb,), of least norm; as `gauss_primal`."""
    M, free, H, c = _checked(mass_matrix, acceleration, jacobian, drift)
    return np.asarray(-np.linalg.pinv(H @ np.linalg.solve(M, H.T)) @ (H @ free + c))


def _checked(
    mass_matrix: ArrayLike, acceleration: ArrayLike, jacobian: ArrayLike, drift: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    M, free = real_array('mass_matrix', mass_matrix), real_array('acceleration', acceleration)
    H, c = real_array('jacobian', jacobian), real_array('drift', drift)
    fits = free.ndim == c.ndim == 1 and M.shape == (free.size, free.size)
    if not fits or H.shape != (c.size, free.size):
        raise InvalidInput(
            f'mass_matrix {M.shape}, acceleration {free.shape}, jacobian {H.shape}, drift '
            f'{c.shape}: expected (nv, nv), (nv,), (nb, nv), (nb,)'
        )
    return M, free, H, c
