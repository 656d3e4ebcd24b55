"""The unknowns of contacts whose modes are known: friction of what slips is eliminated.

An unknown is the force in one row, or (kind NORMAL) the normal force of a slipping contact, which
carries its friction −μ f_n d with it.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel

OPEN, STICK, SLIP = 0, 1, 2
NORMAL = 1
SMALLEST_PIVOT = 1e-7


@kernel
def list_held(mode, joint_mode, kind, row):
    """List the unknown forces of held contacts, then of stuck joints; return their number."""
    na, m = mode.shape[0], 0
    for i in range(na):
        if mode[i] == SLIP:
            kind[m], row[m] = NORMAL, 3 * i + 2
            m += 1
        elif mode[i] == STICK:
            for k in range(3):
                kind[m + k], row[m + k] = 0, 3 * i + k
            m += 3
    for k in range(joint_mode.shape[0]):
        if joint_mode[k] == 0:
            kind[m], row[m] = 0, 3 * na + k
            m += 1
    return m


@kernel
def eliminate_friction(G, a, mu, direction, joint_friction, joint_mode, kind, row, m, A, b):
    """Fill A (m, m) and b (m,) with w = A x + b for the unknowns x.

    Args:
        G: Delassus matrix of all rows [1/kg], shape (n, n), n = 3 na + ns.
        a: accelerations of the rows without contact forces [m/s²], shape (n,).
        mu: friction coefficients [-], shape (na,).
        direction: direction of slip of every contact, shape (na, 2).
        joint_friction: τ_d [N m], shape (ns,).
        joint_mode: 0 stuck, ±1 direction of turning, shape (ns,).
        kind: kind of every unknown, shape (at least m,).
        row: its row; of a slipping contact the normal row.
        m: number of unknowns.
        A: out, shape (m, m).
        b: out, shape (m,).
    """
    na = mu.shape[0]
    for e in range(m):
        r = row[e]
        b[e] = a[r]
        for k in range(joint_mode.shape[0]):
            if joint_mode[k] != 0:
                b[e] -= G[r, 3 * na + k] * joint_mode[k] * joint_friction[k]
        for c in range(m):
            s = row[c]
            A[e, c] = G[r, s]
            if kind[c] == NORMAL:
                i = s // 3
                A[e, c] -= mu[i] * (direction[i, 0] * G[r, s - 2] + direction[i, 1] * G[r, s - 1])


@kernel
def restore_friction(mu, direction, joint_friction, joint_mode, kind, row, m, x, force):
    """Fill all forces from the unknowns `x` (m,): friction of what slips and turns follows."""
    ns = joint_mode.shape[0]
    first = force.shape[0] - ns
    force[:] = 0.0
    for k in range(ns):
        force[first + k] = -joint_mode[k] * joint_friction[k]
    for e in range(m):
        r = row[e]
        force[r] = x[e]
        if kind[e] == NORMAL:
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
