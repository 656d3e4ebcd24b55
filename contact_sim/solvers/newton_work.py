"""Scratch of `cone_newton.newton`, and the directions e_k that it is filled with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.jit import kernel

NO_STIFFNESS = 1e-30
"""Largest h tr(G_ii) at which a direction counts as without stiffness [-]."""


class Directions(NamedTuple):
    """Orthonormal directions of one contact in which it is stiff, in its rows t1, t2, n."""

    first: Any
    """Unit vector."""
    second: Any
    """Unit vector."""
    third: Any
    """Unit vector."""
    softness: Any
    """1/h of each [1/kg]; inf: no stiffness, the vector means nothing."""


class NewtonWork(NamedTuple):
    """Scratch of `newton`; only the first n entries are used, there may be more.

    The unknowns are the components of Δx along the directions of the contacts, which are
    combinations of their three rows, then scalar rows.
    """

    velocity: Any
    """u [m/s], shape (n,)."""
    projected: Any
    """γ(u) [N s], shape (n,)."""
    defect: Any
    """γ(u) − x [N s], shape (n,)."""
    change: Any
    """Δx [N s], shape (n,)."""
    velocity_change: Any
    """Δu = G Δx [m/s], shape (n,)."""
    trial: Any
    """u on the line, shape (n,)."""
    softness: Any
    """1/h_k of every unknown [1/kg], shape (n,)."""
    step: Any
    """Right side and answer of the system, shape (n,)."""
    line: Any
    """e_kᵀ G of one unknown, shape (n,)."""
    matrix: Any
    """Matrix of the system, shape (n, n)."""
    row: Any
    """Row of every unknown, of a direction the first of its contact, integers, shape (n,)."""
    first: Any
    """Components of the directions e_k along the rows of their contacts: this one t1, (n,)."""
    second: Any
    """Along t2, shape (n,)."""
    third: Any
    """Along n, shape (n,)."""


@kernel
def newton_work(n):
    """Return scratch for problems of up to `n` rows."""
    vectors = np.empty((12, n))
    return NewtonWork(
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6],
        vectors[7], vectors[8], np.empty((n, n)), np.empty(n, np.int64), vectors[9], vectors[10],
        vectors[11],
    )  # fmt: skip
