"""Least quadratic over a disc: the friction of one contact whose normal impulse is given."""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.cone import row_velocity
from contact_sim.solvers.jit import kernel


@kernel
def least_in_disc(a, b, c, p, q, radius):
    """Return the minimum of ½ xᵀ [[a, b], [b, c]] x + (p, q)·x over |x| ≤ radius."""
    x = y = shift = 0.0
    size = 1.0
    for _ in range(60):
        determinant = (a + shift) * (c + shift) - b * b
        x, y = (-(c + shift) * p + b * q) / determinant, (b * p - (a + shift) * q) / determinant
        size = np.sqrt(x * x + y * y)
        if size <= radius * (1.0 + 1e-14):
            return x, y
        if radius <= 0.0:
            return 0.0, 0.0
        # Newton on 1/|x| − 1/radius, which is nearly linear in the shift
        slope = ((c + shift) * x * x - 2.0 * b * x * y + (a + shift) * y * y) / determinant
        shift += (size / radius - 1.0) * size * size / slope
    return x * radius / size, y * radius / size


@kernel
def friction_sweep(rows, impulse):
    """Minimise over the tangential impulses of each contact in turn, the normal ones held.

    Returns the largest change [N s].
    """
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        p, q = row_velocity(G, g, impulse, r), row_velocity(G, g, impulse, r + 1)
        p -= G[r, r] * impulse[r] + G[r, r + 1] * impulse[r + 1]
        q -= G[r + 1, r] * impulse[r] + G[r + 1, r + 1] * impulse[r + 1]
        radius = mu[i] * impulse[r + 2]
        t1, t2 = least_in_disc(G[r, r], G[r, r + 1], G[r + 1, r + 1], p, q, radius)
        change = max(change, abs(t1 - impulse[r]), abs(t2 - impulse[r + 1]))
        impulse[r], impulse[r + 1] = t1, t2
    return change
