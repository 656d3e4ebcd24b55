"""The unknowns of contacts whose modes are known: friction of what slips is eliminated.

An unknown is the force in one row, or (kind NORMAL) the normal force of a slipping contact, which
carries its friction −μ f_n d with it. The force of an interval row that moves is at its bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.jit import kernel

OPEN, STICK, SLIP = 0, 1, 2
FORCE, NORMAL = 0, 1
"""Kinds of unknowns."""
SMALLEST_PIVOT = 1e-7


class Modes(NamedTuple):
    """Modes of the closed contacts and of the interval rows."""

    contact: Any
    """OPEN, STICK or SLIP, integers, shape (na,)."""
    direction: Any
    """Direction of slip, shape (na, 2)."""
    interval: Any
    """0 held, ±1 direction in which the row moves, integers, shape (ns,)."""


class Unknowns(NamedTuple):
    """The unknown forces, m of them."""

    kind: Any
    """FORCE or NORMAL, integers, shape (m,)."""
    row: Any
    """Row of each; of a slipping contact the normal row, integers, shape (m,)."""


@kernel
def bound_force(lower, upper, modes, k):
    """Return the force of interval row k that moves: the bound that opposes it; 0 if held."""
    if modes.interval[k] == 0:
        return 0.0
    return lower[k] if modes.interval[k] > 0 else upper[k]


@kernel
def held_unknowns(modes):
    """Return the unknown forces of held contacts, then of held interval rows."""
    na, ns, m = modes.contact.shape[0], modes.interval.shape[0], 0
    kind, row = np.empty(3 * na + ns, np.int64), np.empty(3 * na + ns, np.int64)
    for i in range(na):
        if modes.contact[i] == SLIP:
            kind[m], row[m] = NORMAL, 3 * i + 2
            m += 1
        elif modes.contact[i] == STICK:
            for k in range(3):
                kind[m + k], row[m + k] = FORCE, 3 * i + k
            m += 3
    for k in range(ns):
        if modes.interval[k] == 0:
            kind[m], row[m] = FORCE, 3 * na + k
            m += 1
    return Unknowns(kind[:m], row[:m])


@kernel
def eliminate_friction(rows, modes, unknowns, A, b):
    """Fill A (m, m) and b (m,) with w = A x + b for the unknowns x.

    Args:
        rows: G [1/kg], accelerations without contact forces [m/s²] as g, and bounds of forces.
        modes: of the contacts and interval rows.
        unknowns: m of them.
        A: out, shape (m, m).
        b: out, shape (m,).
    """
    G, a, mu, direction = rows.delassus, rows.g, rows.friction, modes.direction
    na, row, kind = mu.shape[0], unknowns.row, unknowns.kind
    for e in range(row.shape[0]):
        r = row[e]
        b[e] = a[r]
        for k in range(modes.interval.shape[0]):
            if modes.interval[k] != 0:
                b[e] += G[r, 3 * na + k] * bound_force(rows.lower, rows.upper, modes, k)
        for c in range(row.shape[0]):
            s = row[c]
            A[e, c] = G[r, s]
            if kind[c] == NORMAL:
                i = s // 3
                A[e, c] -= mu[i] * (direction[i, 0] * G[r, s - 2] + direction[i, 1] * G[r, s - 1])


@kernel
def restore_friction(rows, modes, unknowns, x, force):
    """Fill all forces (n,) from the unknowns `x` (m,): friction of what slips follows."""
    ns, mu, direction = modes.interval.shape[0], rows.friction, modes.direction
    first = force.shape[0] - ns
    force[:] = 0.0
    for k in range(ns):
        force[first + k] = bound_force(rows.lower, rows.upper, modes, k)
    for e in range(x.shape[0]):
        r = unknowns.row[e]
        force[r] = x[e]
        if unknowns.kind[e] == NORMAL:
            i = r // 3
            force[r - 2] = -mu[i] * x[e] * direction[i, 0]
            force[r - 1] = -mu[i] * x[e] * direction[i, 1]


@kernel
def factor_in_place(F, scale, first, order):
    """Overwrite `F` (m, m) with LU factors of its independent rows; return their number.

    Pivots lie on the diagonal: of the first `first` rows the largest, then of the others. Rows
    that depend on the ones before them, to SMALLEST_PIVOT of `scale` (m,), are left out: redundant
    feet, a joint that cannot turn because the feet stand still.
    """
    m = order.shape[0]
    for i in range(m):
        order[i] = i
    rank = 0
    for begin, end in ((0, first), (first, m)):
        while True:
            best, largest = -1, SMALLEST_PIVOT
            for i in range(rank, m):
                e = order[i]
                if begin <= e < end and abs(F[e, e]) > largest * scale[e]:
                    best, largest = i, abs(F[e, e]) / scale[e]
            if best < 0:
                break
            order[rank], order[best] = order[best], order[rank]
            k = order[rank]
            for i in range(rank + 1, m):
                e = order[i]
                if F[e, k] != 0.0:
                    F[e, k] /= F[k, k]
                    for j in range(rank + 1, m):
                        F[e, order[j]] -= F[e, k] * F[k, order[j]]
            rank += 1
    return rank


@kernel
def solve_factored(F, order, rank, x):
    """Overwrite `x` (m,) with the solution in the independent rows; zero in the others."""
    m = x.shape[0]
    for i in range(rank):
        for j in range(i):
            x[order[i]] -= F[order[i], order[j]] * x[order[j]]
    for i in range(rank, m):
        x[order[i]] = 0.0
    for i in range(rank - 1, -1, -1):
        for j in range(i + 1, rank):
            x[order[i]] -= F[order[i], order[j]] * x[order[j]]
        x[order[i]] /= F[order[i], order[i]]


@kernel
def refine(A, b, F, order, rank, x):
    """Move the unknowns `x` (m,) by one solve with the factored F towards A x + b = 0."""
    step = np.empty(x.shape[0])
    for e in range(x.shape[0]):
        step[e] = -b[e]
        for c in range(x.shape[0]):
            step[e] -= A[e, c] * x[c]
    solve_factored(F, order, rank, step)
    for e in range(x.shape[0]):
        x[e] += step[e]
