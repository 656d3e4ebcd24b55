"""Friction cones with k flat sides: impulses as non-negative shares of the edges n + μ d_j.

λ_i = Σ_j β_ij (μ d_j, 1),   β ≥ 0,   d_j = (cos 2πj/k, sin 2πj/k)
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel


@kernel
def fill_edges(mu, k, ns, D):
    """Fill D with λ = D (β, scalar rows), shape (3 nc + ns, k nc + ns)."""
    nc = mu.shape[0]
    D[:] = 0.0
    for i in range(nc):
        for j in range(k):
            angle = 2.0 * np.pi * j / k
            D[3 * i, k * i + j] = mu[i] * np.cos(angle)
            D[3 * i + 1, k * i + j] = mu[i] * np.sin(angle)
            D[3 * i + 2, k * i + j] = 1.0
    for s in range(ns):
        D[3 * nc + s, k * nc + s] = 1.0


@kernel
def split_impulse(mu, k, impulse, beta):
    """Fill shares β ≥ 0 of the edges that add up to `impulse` (as far as it lies in the cones).

    The two edges beside the tangential part carry it; what is left of the normal part is spread
    evenly, so that it adds nothing tangential.
    """
    nc = mu.shape[0]
    width = 2.0 * np.pi / k
    for i in range(nc):
        t1, t2, n = impulse[3 * i], impulse[3 * i + 1], impulse[3 * i + 2]
        beta[k * i : k * (i + 1)] = 0.0
        size = np.sqrt(t1 * t1 + t2 * t2)
        left = n
        if size > 0.0 and mu[i] > 0.0:
            place = (np.arctan2(t2, t1) % (2.0 * np.pi)) / width
            j = int(place)
            angle = (place - j) * width
            second = size * np.sin(angle) / (mu[i] * np.sin(width))
            first = size * np.sin(width - angle) / (mu[i] * np.sin(width))
            beta[k * i + j % k] += first
            beta[k * i + (j + 1) % k] += second
            left -= first + second
        for j in range(k):
            beta[k * i + j] += max(left, 0.0) / k
    for s in range(impulse.shape[0] - 3 * nc):
        beta[k * nc + s] = impulse[3 * nc + s]
