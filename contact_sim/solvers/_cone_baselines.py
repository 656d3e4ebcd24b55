"""Contact solvers of other engines, to reproduce their results (theory 2.11).

pgs         λ_n ← (λ_n − w_n/G_nn)₊,  λ_t ← disc_{μ λ_n}(λ_t − w_t/min(G_t1t1, G_t2t2))
            (Pinocchio, ContactBench); fails on large mass ratios
raisim      exact per contact, but a slipping contact takes the impulse with w_n = 0 on the cone
            that leaves the least kinetic energy wᵀ G_ii⁻¹ w; not maximum dissipation where normal
            and tangent couple [Hwangbo et al. 2018]
staggered   normal impulses at fixed friction, then friction at fixed normal impulses, in turn
            [Kaufman et al. 2008]
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers._cone_gauss_seidel import FrozenContact, slide_radius
from contact_sim.solvers._cone_problem import (
    friction_sweep,
    impulse_scale,
    natural_map,
    row_velocity,
)
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel

PGS, RAISIM, STAGGERED = range(3)
STAGGERED_SWEEPS = 20
"""Sweeps over the normal, and over the tangential impulses, in one staggered sweep."""
SLIP_SAMPLES, BISECTIONS = (256, 2048), 60
"""Directions of slip in which the energy is sampled, and steps that refine the best one."""


@kernel
def solve_baseline(rows, impulse, tolerance, max_sweeps, method):
    """Sweep until the impulses no longer change; return (sweeps, natural map [N s], converged).

    The solution counts as converged only if it also obeys the law: the natural map for pgs and
    staggered, Signorini's condition for raisim, whose direction of slip differs. Arguments as in
    `block_gauss_seidel`.
    """
    count, residual = 0, np.inf
    while count < max_sweeps:
        count += 1
        if method == PGS:
            change = projected_sweep(rows, impulse)
        elif method == RAISIM:
            change = raisim_sweep(rows, impulse)
        else:
            change = staggered_sweep(rows, impulse)
        change = max(change, scalar_sweep(rows, impulse))
        goal = tolerance * impulse_scale(rows, impulse)
        if change > goal:
            continue
        residual = natural_map(rows, impulse, 0.0)
        if (signorini_error(rows, impulse) if method == RAISIM else residual) <= goal:
            return count, residual, True
        if not np.isfinite(residual) or change == 0.0:
            return count, residual, False
    return count, natural_map(rows, impulse, 0.0), False


@kernel
def signorini_error(rows, impulse):
    """Return the largest change of a normal impulse by a step of 1/G_nn [N s]."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    worst = 0.0
    for i in range(mu.shape[0]):
        n = 3 * i + 2
        target = max(impulse[n] - row_velocity(G, g, impulse, n) / G[n, n], 0.0)
        change = abs(impulse[n] - target)
        if change > worst or change != change:
            worst = change
    return worst


@kernel
def scalar_sweep(rows, impulse):
    """Sweep over the scalar rows; return the largest change [N s]."""
    G, g, mu, lower, upper = rows
    change, first = 0.0, 3 * mu.shape[0]
    for k in range(lower.shape[0]):
        r = first + k
        new = impulse[r] - row_velocity(G, g, impulse, r) / G[r, r]
        new = min(max(new, lower[k]), upper[k])
        change = max(change, abs(new - impulse[r]))
        impulse[r] = new
    return change


@kernel
def projected_sweep(rows, impulse):
    """Run a sweep of projected Gauss-Seidel; return the largest change [N s]."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        n = max(impulse[r + 2] - row_velocity(G, g, impulse, r + 2) / G[r + 2, r + 2], 0.0)
        change = max(change, abs(n - impulse[r + 2]))
        impulse[r + 2] = n
        softest = min(G[r, r], G[r + 1, r + 1])
        t1 = impulse[r] - row_velocity(G, g, impulse, r) / softest
        t2 = impulse[r + 1] - row_velocity(G, g, impulse, r + 1) / softest
        size = np.sqrt(t1 * t1 + t2 * t2)
        if size > mu[i] * n:
            t1, t2 = t1 * mu[i] * n / size, t2 * mu[i] * n / size
        change = max(change, abs(t1 - impulse[r]), abs(t2 - impulse[r + 1]))
        impulse[r], impulse[r + 1] = t1, t2
    return change


@kernel
def staggered_sweep(rows, impulse):
    """Update normal impulses at fixed friction, then friction; return the largest change."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    before = impulse.copy()
    for _ in range(STAGGERED_SWEEPS):
        for i in range(mu.shape[0]):
            n = 3 * i + 2
            impulse[n] = max(impulse[n] - row_velocity(G, g, impulse, n) / G[n, n], 0.0)
    for _ in range(STAGGERED_SWEEPS):
        friction_sweep(rows, impulse)
    return np.abs(impulse - before).max()


@kernel
def raisim_sweep(rows, impulse):
    """Run a sweep of RaiSim's per-contact rule; return the largest change [N s]."""
    G, g, mu = rows.delassus, rows.g, rows.friction
    change = 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        block = G[r : r + 3, r : r + 3].copy()
        old = impulse[r : r + 3].copy()
        c = np.array([row_velocity(G, g, impulse, r + k) for k in range(3)]) - np.dot(block, old)
        inverse = np.linalg.inv(block)
        new = -np.dot(inverse, c)
        # open, frictionless, stick, slip
        if c[2] >= 0.0:
            new[:] = 0.0
        elif mu[i] == 0.0:
            new[:] = 0.0
            new[2] = -c[2] / block[2, 2]
        elif np.sqrt(new[0] ** 2 + new[1] ** 2) > mu[i] * new[2]:
            new = least_energy_slip(block, inverse, c, mu[i])
        change = max(change, np.abs(new - old).max())
        assign(impulse[r : r + 3], new)
    return change


@kernel
def least_energy_slip(block, inverse, c, mu):
    """Return the impulse on the cone with w_n = 0 that leaves the least energy; zero if none."""
    best, best_theta, width = np.inf, 0.0, 0.0
    for samples in SLIP_SAMPLES:  # the more only if no direction was found
        width = 2.0 * np.pi / samples
        for k in range(samples):
            energy, _ = remaining_energy(block, inverse, c, mu, k * width)
            if energy < best:
                best, best_theta = energy, k * width
        if best < np.inf:
            break
    if best == np.inf:
        return np.zeros(3)
    # bisection on dE/dθ around the best sample
    low, high, theta = best_theta - width, best_theta + width, best_theta
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        _, r = remaining_energy(block, inverse, c, mu, middle)
        if r <= 0.0:  # beyond an end of the directions that oppose the slip
            rises = middle > best_theta
        else:
            theta = middle
            rises = energy_slope(block, c, mu, middle, r) > 0.0
        if rises:
            high = middle
        else:
            low = middle
    _, r = remaining_energy(block, inverse, c, mu, theta)
    return np.array([r * np.cos(theta), r * np.sin(theta), r / mu])


@kernel
def remaining_energy(B, inverse, c, mu, theta):
    """Return ½ wᵀ G_ii⁻¹ w of the slip impulse in direction θ, and its radius; inf where none."""
    contact = FrozenContact(
        B[0, 0], B[0, 1], B[1, 1], B[2, 0], B[2, 1], B[2, 2], c[0], c[1], c[2], mu, 0.0
    )
    r = slide_radius(contact, theta)
    if r <= 0.0:
        return np.inf, r
    d1, d2, dn = r * np.cos(theta), r * np.sin(theta), r / mu
    w1 = c[0] + B[0, 0] * d1 + B[0, 1] * d2 + B[0, 2] * dn
    w2 = c[1] + B[1, 0] * d1 + B[1, 1] * d2 + B[1, 2] * dn
    wn = c[2] + B[2, 0] * d1 + B[2, 1] * d2 + B[2, 2] * dn
    energy = 0.5 * (inverse[0, 0] * w1 * w1 + inverse[1, 1] * w2 * w2 + inverse[2, 2] * wn * wn)
    energy += inverse[0, 1] * w1 * w2 + inverse[1, 2] * w2 * wn + inverse[0, 2] * w1 * wn
    return energy, r


@kernel
def energy_slope(B, c, mu, theta, r):
    """Return dE/dθ = w_t · dλ_t/dθ of the slip impulse with radius r in direction θ (w_n = 0)."""
    x, y = np.cos(theta), np.sin(theta)
    w1 = c[0] + r * (B[0, 0] * x + B[0, 1] * y + B[0, 2] / mu)
    w2 = c[1] + r * (B[1, 0] * x + B[1, 1] * y + B[1, 2] / mu)
    growth = (B[2, 0] * y - B[2, 1] * x) / (B[2, 2] / mu + B[2, 0] * x + B[2, 1] * y)
    return r * (w1 * (growth * x - y) + w2 * (growth * y + x))
