"""Contact modes: which closed contacts open, stick or slip, and the forces that follow.

Everything here is a function of values at one instant: G = J M⁻¹ Jᵀ, the accelerations
a = J M⁻¹ (τ − nle) + J̇ v of the rows without contact forces, and the velocities u = J v. Rows are
those of the closed contacts, (t1, t2, n) each, then one per dry joint.

`select_modes` decides by the contact problem at acceleration level (physics.md 2.6, 2.7):

    at rest    K*_μ ∋ w + Γ(w) ⊥ f ∈ K_μ                       w = G f + a
    slipping   0 ≤ f_n ⊥ w_n ≥ 0,   f_t = −μ f_n d,  d the direction of the slip
    joints     w ⊥ [−τ_d, τ_d] at rest, f = −τ_d sign(v) when turning

Friction of slipping contacts is eliminated, which leaves columns G (n − μ d): no longer symmetric,
and with p = n·G (n − μ d) ≤ 0 possibly without solution (Painlevé).

`mode_forces` then holds the modes: w = 0 for what sticks, w_n = 0 for what slips (physics.md T8).
"""

from __future__ import annotations

import numpy as np

from contact_sim.contact.solution import CONVERGED, INCONSISTENT, MAX_ITERATIONS
from contact_sim.contact_models.reduction import (
    NORMAL,
    OPEN,
    SLIP,
    STICK,
    eliminate_friction,
    factor_in_place,
    list_held,
    restore_friction,
    solve_factored,
)
from contact_sim.solvers.cone import row_velocity
from contact_sim.solvers.cone_block import block_gauss_seidel
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows

TOLERANCE = 1e-10
ACCEPTED = 1e-8
"""Natural map, relative to the largest force, with which a solve that stalls is good enough."""
MAX_SWEEPS = 400
STARTS = 1e-8
"""Acceleration, relative to the largest free one, from which a contact leaves its mode."""
NUDGE = 1e-6
"""Share by which the bound of a contact at the end of its mode is tightened."""
REFINEMENTS = 2
ON_THE_CONE = 1.0 - 1e-9
STABLE = 2.0
"""Bound on arc length times relaxation rate of a slip; Runge-Kutta of 4th order takes 2.78."""


@kernel
def slip_direction(u1, u2, d1, d2, frozen):
    """Return the direction of slip: ±u_t on the side of (d1, d2); if frozen, (d1, d2) itself."""
    speed = np.sqrt(u1 * u1 + u2 * u2)
    if frozen == 1 or speed == 0.0:
        return d1, d2
    side = -1.0 if u1 * d1 + u2 * d2 < 0.0 else 1.0
    return side * u1 / speed, side * u2 / speed


@kernel
def mode_forces(
    G, a, mu, mode, direction, joint_friction, joint_mode, reference, force,
):  # fmt: skip
    """Fill the forces that hold the modes; return False where they do not exist.

    Redundant forces stay as they are in `reference`.

    Args:
        G: Delassus matrix of the rows [1/kg], shape (n, n), n = 3 na + ns.
        a: accelerations of the rows without contact forces [m/s²], shape (n,).
        mu: friction coefficients [-], shape (na,).
        mode: STICK or SLIP per contact, shape (na,).
        direction: direction of slip, shape (na, 2).
        joint_friction: τ_d [N m], shape (ns,).
        joint_mode: 0 stuck, ±1 direction of turning, shape (ns,).
        reference: forces to start from [N], shape (n,).
        force: out [N], shape (n,).
    """
    na, _ns, n = mode.shape[0], joint_mode.shape[0], a.shape[0]
    kind, row = np.empty(n, np.int64), np.empty(n, np.int64)
    m = list_held(mode, joint_mode, kind, row)
    A, b = np.empty((m, m)), np.empty(m)
    eliminate_friction(G, a, mu, direction, joint_friction, joint_mode, kind, row, m, A, b)
    x, step, scale = np.empty(m), np.empty(m), np.empty(m)
    first = 0
    for e in range(m):
        scale[e], x[e] = G[row[e], row[e]], reference[row[e]]
        first += row[e] < 3 * na
    F, order = A.copy(), np.empty(m, np.int64)
    rank = factor_in_place(F, scale, first, order)
    for _ in range(REFINEMENTS):
        for e in range(m):
            step[e] = -b[e]
            for c in range(m):
                step[e] -= A[e, c] * x[c]
        solve_factored(F, order, rank, step)
        for e in range(m):
            x[e] += step[e]
    restore_friction(mu, direction, joint_friction, joint_mode, kind, row, m, x, force)
    return bool(np.isfinite(np.sum(force)))


@kernel
def select_modes(
    G, a, u, mu, joint_friction, stiction_speed, at_end, frozen, force, mode, direction,
    joint_mode,
):  # fmt: skip
    """Choose the modes; return (status code, sweeps, natural map [N]).

    Args:
        G: Delassus matrix of the rows [1/kg], shape (n, n).
        a: accelerations of the rows without contact forces [m/s²], shape (n,).
        u: velocities of the rows [m/s, rad/s], shape (n,).
        mu: friction coefficients [-], shape (na,).
        joint_friction: τ_d [N m], shape (ns,).
        stiction_speed: speed up to which a row counts as at rest [m/s, rad/s].
        at_end: 1 where a normal force, then 1 where a friction force, then 1 where a joint
            friction has reached its bound: these bounds are tightened a little, so that a mode
            that ends does end, shape (2 na + ns,).
        frozen: in and out, 1 where the direction of slip is given and kept, shape (na,); out also
            where a slip starts.
        force: guess and answer [N], shape (n,).
        mode: out, OPEN, STICK or SLIP, shape (na,).
        direction: in and out, direction of slip, shape (na, 2).
        joint_mode: out, 0 stuck, ±1 direction of turning, shape (ns,).
    """
    na, n = mu.shape[0], a.shape[0]
    kind, row = np.empty(n, np.int64), np.empty(n, np.int64)
    classify(u, mu, stiction_speed, frozen, direction, mode, joint_mode)
    nr, m = list_unknowns(mode, joint_mode, kind, row)
    A, b, x = np.empty((m, m)), np.empty(m), np.empty(m)
    eliminate_friction(G, a, mu, direction, joint_friction, joint_mode, kind, row, m, A, b)
    cones, lower, upper = np.empty(nr), np.zeros(m - 3 * nr), np.empty(m - 3 * nr)
    fill_sets(G, A, mu, joint_friction, at_end, kind, row, cones, lower, upper)
    scale = np.abs(b).max() if m else 0.0
    for e in range(m):
        x[e] = force[row[e]]
        if row[e] < 3 * na and row[e] % 3 == 2 and at_end[row[e] // 3] == 1:
            b[e] += NUDGE * scale
    rows = Rows(A, b, cones, lower, upper)
    sweeps, residual, converged = block_gauss_seidel(rows, x, TOLERANCE, MAX_SWEEPS, 0.0)
    if not converged:
        x[:] = 0.0
        again, residual, converged = block_gauss_seidel(rows, x, TOLERANCE, MAX_SWEEPS, 0.0)
        sweeps += again
    if not np.isfinite(residual):
        x[:] = 0.0
    consistent = read_modes(
        A, b, x, mu, kind, row, nr, m, STARTS * scale, lower, upper, mode, direction, frozen,
        joint_mode,
    )  # fmt: skip
    restore_friction(mu, direction, joint_friction, joint_mode, kind, row, m, x, force)
    if not consistent:
        return INCONSISTENT, sweeps, residual
    enough = residual <= ACCEPTED * (np.abs(x).max() if m else 0.0)
    return (CONVERGED if converged or enough else MAX_ITERATIONS), sweeps, residual


@kernel
def classify(u, mu, stiction_speed, frozen, direction, mode, joint_mode):
    """Tell rows at rest from rows in motion: SLIP with its direction, or STICK for now."""
    na = mu.shape[0]
    for i in range(na):
        speed = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
        mode[i] = SLIP if speed > stiction_speed or mu[i] == 0.0 else STICK
        if frozen[i] == 1:
            continue
        direction[i] = 0.0
        if speed > stiction_speed:
            direction[i, 0], direction[i, 1] = u[3 * i] / speed, u[3 * i + 1] / speed
    for k in range(joint_mode.shape[0]):
        speed = u[3 * na + k]
        joint_mode[k] = 0 if abs(speed) <= stiction_speed else (1 if speed > 0.0 else -1)


@kernel
def list_unknowns(mode, joint_mode, kind, row):
    """List contacts at rest, slipping contacts, joints at rest; return (contacts at rest, all)."""
    na, m = mode.shape[0], 0
    for i in range(na):
        if mode[i] == STICK:
            for k in range(3):
                kind[m + k], row[m + k] = 0, 3 * i + k
            m += 3
    nr = m // 3
    for i in range(na):
        if mode[i] == SLIP:
            kind[m], row[m] = NORMAL, 3 * i + 2
            m += 1
    for k in range(joint_mode.shape[0]):
        if joint_mode[k] == 0:
            kind[m], row[m] = 0, 3 * na + k
            m += 1
    return nr, m


@kernel
def fill_sets(G, A, mu, joint_friction, at_end, kind, row, cones, lower, upper):
    """Fill the cones of the contacts at rest, and the intervals of all other unknowns."""
    na, nr = mu.shape[0], cones.shape[0]
    for c in range(nr):
        i = row[3 * c] // 3
        cones[c] = mu[i] * (1.0 - NUDGE) if at_end[na + i] == 1 else mu[i]
    for s in range(lower.shape[0]):
        e = 3 * nr + s
        if kind[e] == NORMAL:  # p ≤ 0: no force along this slip; see read_modes
            upper[s] = np.inf if A[e, e] > TOLERANCE * G[row[e], row[e]] else 0.0
        else:
            k = row[e] - 3 * na
            bound = joint_friction[k] * (1.0 - NUDGE if at_end[2 * na + k] == 1 else 1.0)
            lower[s], upper[s] = -bound, bound


@kernel
def read_modes(
    A, b, x, mu, kind, row, nr, m, starts, lower, upper, mode, direction, frozen, joint_mode
):
    """Read the modes off the answer `x`; return False where a contact can find no force."""
    na, consistent = mode.shape[0], True
    for c in range(nr):
        e = 3 * c
        i = row[e] // 3
        w1, w2 = row_velocity(A, b, x, e), row_velocity(A, b, x, e + 1)
        size, friction = np.sqrt(w1 * w1 + w2 * w2), np.sqrt(x[e] ** 2 + x[e + 1] ** 2)
        if x[e + 2] <= 0.0 and row_velocity(A, b, x, e + 2) > starts:
            mode[i] = OPEN
        elif size > starts and friction >= ON_THE_CONE * (1.0 - NUDGE) * mu[i] * x[e + 2]:
            mode[i] = SLIP
            direction[i, 0], direction[i, 1], frozen[i] = w1 / size, w2 / size, 1
    for e in range(3 * nr, m):
        w, s = row_velocity(A, b, x, e), e - 3 * nr
        if kind[e] == NORMAL:
            if x[e] <= 0.0 and w > starts:
                mode[row[e] // 3] = OPEN
            elif upper[s] == 0.0 and w < -starts:
                consistent = False
        elif x[e] >= upper[s] and w < -starts:
            joint_mode[row[e] - 3 * na] = -1
        elif x[e] <= lower[s] and w > starts:
            joint_mode[row[e] - 3 * na] = 1
    return consistent


@kernel
def tangential_response(G, r):
    """Return λ_max of G_tt at row `r` [1/kg]: the same in whatever axes the ground is measured."""
    mean, half = 0.5 * (G[r, r] + G[r + 1, r + 1]), 0.5 * (G[r, r] - G[r + 1, r + 1])
    return mean + np.sqrt(half * half + G[r, r + 1] ** 2)


@kernel
def freeze_slow_slips(G, a, u, mu, joint_friction, stiction_speed, dt, force, direction, frozen):
    """Find the slips too slow for an explicit arc of dt and choose their directions.

    At speed s the direction of a slip relaxes at a rate of up to μ f_n λ_max(G_tt) / s. Where that
    is too fast for an arc of dt, the direction is frozen at what it will be at the end: that of
    the contact problem u + dt (G f + a), implicit in the velocity.

    Args:
        G: Delassus matrix of the rows [1/kg], shape (n, n).
        a: accelerations of the rows without contact forces [m/s²], shape (n,).
        u: velocities of the rows [m/s], shape (n,).
        mu: friction coefficients [-], shape (na,).
        joint_friction: τ_d [N m], shape (ns,).
        stiction_speed: speed up to which a contact is at rest [m/s].
        dt: length of the arc [s].
        force: guess of the forces [N], shape (n,).
        direction: out, direction of slip where it is frozen, shape (na, 2).
        frozen: out, 1 where the direction is kept over the arc, shape (na,).
    """
    na, count = mu.shape[0], 0
    for i in range(na):
        r, frozen[i] = 3 * i, 0
        speed = np.sqrt(u[r] ** 2 + u[r + 1] ** 2)
        pull = mu[i] * force[r + 2] * tangential_response(G, r)
        if speed > stiction_speed and dt * pull > STABLE * speed:
            frozen[i] = 1
            direction[i, 0], direction[i, 1] = u[r] / speed, u[r + 1] / speed
            count += 1
    if count == 0:
        return
    x = force.copy()
    for _ in range(2):
        rows = Rows(G, a + u / dt, mu, -joint_friction, joint_friction)
        block_gauss_seidel(rows, x, TOLERANCE, MAX_SWEEPS, 0.0)
        shorter = dt
        for i in range(na):
            r = 3 * i
            if (
                frozen[i] == 1
                and x[r] ** 2 + x[r + 1] ** 2 < (ON_THE_CONE * mu[i] * x[r + 2]) ** 2
            ):
                # it stops within dt: its direction is that of half way to the stop
                speed = np.sqrt(u[r] ** 2 + u[r + 1] ** 2)
                pull = mu[i] * x[r + 2] * tangential_response(G, r)
                shorter = min(shorter, 0.5 * speed / pull)
        if shorter == dt:
            break
        dt = shorter
    for i in range(na):
        r = 3 * i
        size = np.sqrt(x[r] ** 2 + x[r + 1] ** 2)
        # a slip that will have turned back by then has to stop first
        if frozen[i] == 1 and x[r] * u[r] + x[r + 1] * u[r + 1] <= 0.0 < size < np.inf:
            direction[i, 0], direction[i, 1] = -x[r] / size, -x[r + 1] / size
