"""The contact problem in numbers: active rows, Delassus matrix G = J M̂⁻¹ Jᵀ, g = J v_f + b.

Only contacts that could carry an impulse take part. The selection is exact: after the solve every
contact left out is checked (`finish` in contact_models/time_stepping.py), and the problem is
solved again with those that would have closed.
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.delassus import EVERYWHERE
from contact_sim.solvers.delassus import delassus as fill_matrix
from contact_sim.solvers.jit import kernel


@kernel
def multiply_rows(jacobian_transposed, v, u):
    """U ← J v."""
    u[:] = 0.0
    for k in range(v.shape[0]):
        speed = v[k]
        for row in range(u.shape[0]):
            u[row] += jacobian_transposed[k, row] * speed


@kernel
def within_reach(gap, u, i, mu, reach):
    """Return φ + T (u_n − κ μ |u_t|) of contact `i`: negative where the law may act on it.

    `reach` is (T, κ, margin): T = h, κ = 0 for a law without force at a distance.
    """
    slip = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
    return gap[i] + reach[0] * (u[3 * i + 2] - reach[1] * mu[i] * slip)


@kernel
def select_active(gap, u_free, impulse, mu, reach, active):
    """Mark the contacts in the margin, in reach of the law, or that carried an impulse before."""
    for i in range(gap.shape[0]):
        near = gap[i] <= reach[2] or within_reach(gap, u_free, i, mu, reach) <= 0.0
        active[i] = 1.0 if near or impulse[3 * i + 2] > 0.0 else 0.0


@kernel
def collect_rows(active, nc, ns, row_of):
    """Fill `row_of` with the rows of the active contacts, then the scalar rows; return (na, n)."""
    n = 0
    for i in range(nc):
        if active[i] != 0.0:
            for row in range(3):
                row_of[n + row] = 3 * i + row
            n += 3
    na = n // 3
    for k in range(ns):
        row_of[n + k] = 3 * nc + k
    return na, n + ns


@kernel
def fill_delassus(jacobian_transposed, factor, parent, row_of, n, Y_buffer, delassus):
    """Fill Y = L⁻ᵀ Jᵀ (nv, n) and G = Yᵀ D⁻¹ Y (n, n) in the front of flat arrays."""
    nv = parent.shape[0]
    Y, G = Y_buffer[: nv * n].reshape(nv, n), delassus[: n * n].reshape(n, n)
    row_leaf = np.empty(n, np.int64)
    for a in range(n):
        row_leaf[a] = last_dof(jacobian_transposed, parent, row_of[a])
    fill_matrix(jacobian_transposed, factor, parent, row_of, row_leaf, n, Y, G)


@kernel
def last_dof(jacobian_transposed, parent, row):
    """Return the last dof of the branch with all entries of a row, or EVERYWHERE."""
    last = parent.shape[0] - 1
    while last >= 0 and jacobian_transposed[last, row] == 0.0:
        last -= 1
    k = last
    for i in range(last, -1, -1):
        if i == k:
            k = parent[k]
        elif jacobian_transposed[i, row] != 0.0:
            return EVERYWHERE
    return last


@kernel
def gather(
    row_of, n, na, u_free, u_start, bias, friction, gap, impulse, lower, upper, weight, g, free,
    start, mu, phi, guess, low, high, row_weight,
):  # fmt: skip
    """Copy the rows of the problem into contiguous arrays (names as in `contact.record`)."""
    for a in range(n):
        row = row_of[a]
        g[a] = u_free[row] + bias[row]
        free[a] = u_free[row]
        start[a] = u_start[row]
        guess[a] = impulse[row]
        row_weight[a] = weight[row]
    for i in range(na):
        mu[i] = friction[row_of[3 * i] // 3]
        phi[i] = gap[row_of[3 * i] // 3]
    for k in range(n - 3 * na):
        low[k] = lower[k]
        high[k] = upper[k]
