"""Scratch of `cone_newton.newton`, and the directions e_k that it is filled with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.jit import kernel

ROW, COMBINED = 0, 1
"""Kinds of directions e_k: a row, or a combination of the rows of a contact."""


class NewtonWork(NamedTuple):
    """Scratch of `newton`; only the first n entries are used, there may be more."""

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
    kind: Any
    """ROW or COMBINED of every unknown, integers, shape (n,)."""
    row: Any
    """Row of every unknown, of a combination the first of its contact, integers, shape (n,)."""
    first: Any
    """Components of a combination e_k along the three rows of its contact: this one t1, (n,)."""
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
        vectors[7], vectors[8], np.empty((n, n)), np.empty(n, np.int64), np.empty(n, np.int64),
        vectors[9], vectors[10], vectors[11],
    )  # fmt: skip


@kernel
def component(x, kind, r, first, second, third):
    """Return e_kᵀ x."""
    if kind == ROW:
        return x[r]
    return first * x[r] + second * x[r + 1] + third * x[r + 2]


@kernel
def add_row(work, k, row, softness):
    """Make direction k the row itself."""
    work.kind[k], work.row[k], work.softness[k] = ROW, row, softness


@kernel
def add_direction(work, k, r, e, softness):
    """Make direction k the combination e of the rows t1, t2, n of the contact at row r."""
    work.kind[k], work.row[k], work.softness[k] = COMBINED, r, softness
    work.first[k], work.second[k], work.third[k] = e
