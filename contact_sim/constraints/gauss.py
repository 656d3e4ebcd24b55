"""Gauss's principle of least constraint, as a check of bilateral rows by other means (theory T5).

    primal    v̇ = argmin ½ (v̇ − v̇_uc)ᵀ M (v̇ − v̇_uc)   s.t.  H v̇ + Ḣ v = 0
    dual      λ = argmin ½ λᵀ H M⁻¹ Hᵀ λ + λᵀ ḧ_uc,     ḧ_uc = H v̇_uc + Ḣ v

v̇_uc is the acceleration without constraints, λ the force along +Hᵀ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.errors import InvalidInput
from contact_sim.numbers import real_array

Array = NDArray[np.float64]


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
