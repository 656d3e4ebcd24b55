"""Linear complementarity problems of a few unknowns: all their solutions, case by case."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.errors import InvalidInput, shown

Array = NDArray[np.float64]
MOST = 12
"""Unknowns for which 2^n cases are few."""
TOLERANCE = 1e-12
"""Of signs, relative to the largest number; and of equal solutions."""


def solutions(A: ArrayLike, b: ArrayLike) -> list[Array]:
    """Return every isolated z (n,) with 0 ≤ z ⊥ A z + b ≥ 0; none and several are answers, too.

    Each unknown is tried as zero and as free, with its row of A z + b zero. Sets of unknowns whose
    rows depend on each other are passed over.

    Raises:
        InvalidInput: A is not (n, n), b not (n,), or n is too large to try all cases.
    """
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    n = b.size
    if b.ndim != 1 or A.shape != (n, n) or n > MOST:
        raise InvalidInput(
            f'A {shown(A.shape)}, b {shown(b.shape)}: expected (n, n) and (n,), n <= {MOST}'
        )
    found: list[Array] = []
    for case in product((False, True), repeat=n):
        free = np.array(case, dtype=bool)
        z = np.zeros(n)
        inner = A[np.ix_(free, free)]
        if free.any() and np.linalg.matrix_rank(inner) < free.sum():
            continue
        z[free] = -np.linalg.solve(inner, b[free])
        slack = TOLERANCE * max(np.abs(b).max(initial=0.0), np.abs(A * z).max(initial=0.0))
        feasible = z.min(initial=0.0) >= -TOLERANCE * np.abs(z).max(initial=0.0)
        known = any(np.allclose(z, other, rtol=0.0, atol=slack + TOLERANCE) for other in found)
        if feasible and not known and (A @ z + b).min(initial=0.0) >= -slack:
            found.append(z)
    return found
