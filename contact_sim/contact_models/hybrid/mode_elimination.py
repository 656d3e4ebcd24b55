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
AWAY = 2
"""Mode of a limit that is not touched; 0 and ±1 are those of the other interval rows."""
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

    Pivots lie on the diagonal: of the first `first` rows the largest, then of the others. Rows and
    columns are moved to where they are eliminated: F[i, j] belongs to the unknowns order[i] and
    order[j]. Rows that depend on the ones before them, to SMALLEST_PIVOT of `scale` (m,), are left
    out: redundant feet, a joint that cannot turn because the feet stand still.
    """
    m, begin, end = order.shape[0], 0, first
    for i in range(m):
        order[i] = i
    for k in range(m):
        best = largest_pivot(F, scale, order, k, begin, end)
        if best < 0:
            begin, end = first, m
            best = largest_pivot(F, scale, order, k, begin, end)
            if best < 0:
                return k
        exchange(F, order, k, best)
        eliminate_unknown(F, k, m)
    return m


@kernel
def eliminate_unknown(F, k, m):
    """Subtract row k from the rows below it in `F` (m, m), four at a time."""
    inverse, done = 1.0 / F[k, k], k + 1
    for i in range(k + 1, m - 3, 4):
        a, b, c, d = F[i, k], F[i + 1, k], F[i + 2, k], F[i + 3, k]
        a, b, c, d = inverse * a, inverse * b, inverse * c, inverse * d
        F[i, k], F[i + 1, k], F[i + 2, k], F[i + 3, k] = a, b, c, d
        for j in range(k + 1, m):
            x = F[k, j]
            F[i, j] -= a * x
            F[i + 1, j] -= b * x
            F[i + 2, j] -= c * x
            F[i + 3, j] -= d * x
        done = i + 4
    for i in range(done, m):
        a = inverse * F[i, k]
        F[i, k] = a
        for j in range(k + 1, m):
            F[i, j] -= a * F[k, j]


@kernel
def largest_pivot(F, scale, order, k, begin, end):
    """Return where, from k on, an unknown in [begin, end) has the largest pivot; −1: none has."""
    best, largest = -1, SMALLEST_PIVOT
    for i in range(k, order.shape[0]):
        e = order[i]
        if begin <= e < end and abs(F[i, i]) > largest * scale[e]:
            best, largest = i, abs(F[i, i]) / scale[e]
    return best


@kernel
def exchange(F, order, i, k):
    """Exchange the unknowns i and k: rows and columns of `F` (m, m)."""
    if i == k:
        return
    for j in range(order.shape[0]):
        F[i, j], F[k, j] = F[k, j], F[i, j]
    for j in range(order.shape[0]):
        F[j, i], F[j, k] = F[j, k], F[j, i]
    order[i], order[k] = order[k], order[i]


@kernel
def solve_factored(F, order, rank, x):
    """Overwrite `x` (m,) with the solution in the independent rows; zero in the others."""
    y = np.empty(rank)
    for i in range(rank):
        y[i] = x[order[i]]
    for k in range(rank):
        for i in range(k + 1, rank):
            y[i] -= F[i, k] * y[k]
    x[:] = 0.0
    for k in range(rank - 1, -1, -1):
        y[k] /= F[k, k]
        x[order[k]] = y[k]
        for i in range(k):
            y[i] -= F[i, k] * y[k]


@kernel
def refine(A, b, F, order, rank, x):
    """Move the unknowns `x` (m,) by one solve with the factored F towards A x + b = 0."""
    m = x.shape[0]
    step = np.empty(m)
    for e in range(m):
        step[e] = -b[e]
    for c in range(m):
        for e in range(m):
            step[e] -= A[e, c] * x[c]
    solve_factored(F, order, rank, step)
    for e in range(m):
        x[e] += step[e]
