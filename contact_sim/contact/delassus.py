"""The contact problem in numbers: active rows, Delassus matrix G = J M̂⁻¹ Jᵀ, g = J v_f + b.

Only contacts that could carry an impulse take part. The selection is exact: after the solve every
contact left out is checked (`finish` in contact_models/time_stepping.py), and the problem is
solved again with those that would have closed.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import solve_transposed_columns


@kernel
def multiply_rows(jacobian_transposed, v, u):
    """U ← J v."""
    u[:] = 0.0
    for k in range(v.shape[0]):
        speed = v[k]
        for row in range(u.shape[0]):
            u[row] += jacobian_transposed[k, row] * speed


@kernel
def select_active(gap, u_free, impulse, h, active):
    """Mark the contacts that penetrate, close in this step, or carried an impulse before."""
    for i in range(gap.shape[0]):
        n = 3 * i + 2
        closing = gap[i] <= 0.0 or gap[i] + h * u_free[n] <= 0.0 or impulse[n] > 0.0
        active[i] = 1.0 if closing else 0.0


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
    """Fill Y = L⁻ᵀ Jᵀ (nv, n) and G = Yᵀ Y (n, n) in the front of flat arrays."""
    nv = parent.shape[0]
    G = delassus[: n * n].reshape(n, n)
    Y = Y_buffer[: nv * n].reshape(nv, n)
    for k in range(nv):
        for a in range(n):
            Y[k, a] = jacobian_transposed[k, row_of[a]]
    solve_transposed_columns(factor, parent, Y)
    G[:] = 0.0
    for k in range(nv):
        for a in range(n):
            y = Y[k, a]
            if y != 0.0:
                for b in range(a + 1):
                    G[a, b] += y * Y[k, b]
    for a in range(n):
        for b in range(a):
            G[b, a] = G[a, b]


@kernel
def gather(row_of, n, na, u_free, bias, friction, impulse, lower, upper, g, mu, guess, low, high):
    """Copy the rows of the problem into contiguous arrays (names as in `contact.record`)."""
    for a in range(n):
        row = row_of[a]
        g[a] = u_free[row] + bias[row]
        guess[a] = impulse[row]
    for i in range(na):
        mu[i] = friction[row_of[3 * i] // 3]
    for k in range(n - 3 * na):
        low[k] = lower[k]
        high[k] = upper[k]
