"""Linearised laws of rigid contact: ncp, anitescu, lcp and null_space, on their active set.

Per contact, with w = u⁺ + b and û the direction of slip,

    open          λ = 0
    stick         w = 0
    slide         w_n − κ μ |u_t| = 0,   λ_t + μ λ_n û = 0          κ = 1: anitescu, else 0

and per edge or side of a pyramid or box what its own law says. Interval rows: w = 0 inside their
bounds, λ at its bound else. b depends on φ, h and, at impacts, on e u_n⁻.

Which mode holds is read from the solved step: of two conditions that are both nearly zero, the one
of which is larger beside the scales of impulses and velocities of the step is taken as the one
that is not zero. The smaller of the ratios is the distance from the kink, `margin`.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, vector
from contact_sim.contact_models._energy_guard import BISECTED, FULL_RESTITUTION
from contact_sim.contact_models._null_space import GIVEN, STATE, TOUCHED, USES_BAUMGARTE
from contact_sim.derivatives import _fields as d
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import contact_branches, impulse_sign

TIE = 1e-9
"""Ratios to the scales up to which two conditions count as zero both: the contact then sticks. Of
redundant contacts at rest, some carry nothing and do not move either."""


@kernel
def fill_scales(data, linear):
    """Fill the scales of impulses [N s] and of velocities [m/s] of the step."""
    impulse, h = vector(data, f.IMPULSE), vector(data, f.TIME_STEP)[0]
    gravity, scales = vector(data, f.GRAVITY), vector(linear, d.D_SCALES)
    g = np.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)
    last = contact_branches(data)[3]
    largest, fastest = 0.0, h * g
    for r in range(3 * last):
        largest = max(largest, abs(impulse[r]))
        fastest = max(fastest, abs(vector(data, f.U_START)[r]))
    for r in range(3 * vector(data, f.GAP).shape[0], impulse.shape[0]):
        largest = max(largest, abs(impulse[r]))
    weight = h * g * vector(data, f.TOTAL_MASS)[0]
    scales[0] = max(largest, 1e-3 * weight, 1e-300)
    scales[1] = max(fastest, 1e-300)


@kernel
def bias_of(data, i):
    """Return b_n of contact i, with restitution, as the law sees it [m/s]."""
    rebound = vector(data, f.RESTITUTION_BIAS)[i]
    share = 1.0
    if rebound != 0.0:
        share = matrix(data, f.GUARD)[integers(data, f.CONTACT_ISLAND)[i], 0]
    return vector(data, f.BIAS)[3 * i + 2] + share * rebound


@kernel
def choose_rigid_modes(data, linear):
    """Fill mode and margin of all contacts under Signorini's condition; intervals as well."""
    fill_scales(data, linear)
    choose_contact_modes(data, linear, 0.0)
    choose_interval_modes(data, linear)
    refuse_guarded(data, linear)


@kernel
def refuse_guarded(data, linear):
    """Note where the energy guard has cut restitution: its share has no derivative here."""
    guard = matrix(data, f.GUARD)
    for island in range(guard.shape[0]):
        if FULL_RESTITUTION < guard[island, 3] <= BISECTED:
            integers(linear, d.D_COUNTS)[d.UNSUPPORTED] = d.GUARDED


@kernel
def choose_contact_modes(data, linear, kappa):
    """Fill mode and margin of all contacts."""
    modes, margin = integers(linear, d.D_MODES), vector(linear, d.D_MARGIN)
    scales, impulse, u = (
        vector(linear, d.D_SCALES),
        vector(data, f.IMPULSE),
        vector(data, f.U_NEXT),
    )
    active, mu = vector(data, f.ACTIVE), vector(data, f.FRICTION)
    last = contact_branches(data)[3]
    for i in range(active.shape[0]):
        modes[i], margin[i] = d.OPEN, np.inf
        r = 3 * i
        if i >= last or active[i] < 0.0 or vector(data, f.FEATURE_START)[i] < 0.0:
            continue
        slip = np.sqrt(u[r] ** 2 + u[r + 1] ** 2)
        away = (u[r + 2] + bias_of(data, i) - kappa * mu[i] * slip) / scales[1]
        load = impulse[r + 2] / scales[0]
        # both zero: a contact that does not slide closes, see TIE
        tied = max(load, away) <= TIE and slip / scales[1] <= TIE
        if active[i] == 0.0 or ((load <= 0.0 or load < away) and not tied):
            margin[i] = max(away, abs(load))
            continue
        size = np.sqrt(impulse[r] ** 2 + impulse[r + 1] ** 2)
        slack, slide = (mu[i] * impulse[r + 2] - size) / scales[0], slip / scales[1]
        sliding = (slide > slack and slide > TIE) or mu[i] == 0.0
        modes[i] = d.SLIDE if sliding else d.STICK
        edge = max(slack, slide) if mu[i] > 0.0 else np.inf
        margin[i] = min(max(load, away), edge)


@kernel
def choose_interval_modes(data, linear):
    """Fill mode and margin of the interval rows: STICK inside the bounds, OPEN at one."""
    modes, margin = integers(linear, d.D_MODES), vector(linear, d.D_MARGIN)
    scales, impulse, u = (
        vector(linear, d.D_SCALES),
        vector(data, f.IMPULSE),
        vector(data, f.U_NEXT),
    )
    lower, upper, bias = vector(data, f.LOWER), vector(data, f.UPPER), vector(data, f.BIAS)
    active, nc = vector(data, f.INTERVAL_ACTIVE), vector(data, f.GAP).shape[0]
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        modes[nc + k], margin[nc + k] = d.OPEN, np.inf
        speed = abs(u[r] + bias[r]) / scales[1]
        if active[k] == 0.0:
            continue
        room = min(impulse[r] - lower[k], upper[k] - impulse[r]) / scales[0]
        if room > speed:
            modes[nc + k] = d.STICK
        if lower[k] < upper[k]:
            margin[nc + k] = max(room, speed)


# --- rows


@kernel
def collect(data, linear):
    """List the rows of the contacts that carry, of the interval rows that take part, the rest."""
    modes, row_of = integers(linear, d.D_MODES), integers(linear, d.D_ROW_OF)
    counts, nc = integers(linear, d.D_COUNTS), vector(data, f.GAP).shape[0]
    n = 0
    for i in range(contact_branches(data)[3]):
        if modes[i] != d.OPEN:
            for e in range(3):
                row_of[n + e] = 3 * i + e
            n += 3
    counts[d.CONTACTS] = n // 3
    active = vector(data, f.INTERVAL_ACTIVE)
    for k in range(active.shape[0]):
        if active[k] != 0.0:
            row_of[n] = 3 * nc + k
            n += 1
    counts[d.BILATERAL] = matrix(data, f.BILATERAL_JACOBIAN).shape[0]
    counts[d.ROWS] = n + counts[d.BILATERAL]
    for a in range(n, counts[d.ROWS]):
        clear_row(linear, a)
        matrix(linear, d.D_ON_VELOCITY)[a, 0] = 1.0
    return n


@kernel
def clear_row(linear, a):
    """Make the law of row a empty."""
    on_impulse, on_velocity = matrix(linear, d.D_ON_IMPULSE), matrix(linear, d.D_ON_VELOCITY)
    on_start = matrix(linear, d.D_ON_START)
    for e in range(3):
        on_impulse[a, e] = on_velocity[a, e] = on_start[a, e] = 0.0
    vector(linear, d.D_ON_GAP)[a] = vector(linear, d.D_ON_FRICTION)[a] = 0.0
    vector(linear, d.D_ON_TIME)[a] = vector(linear, d.D_ON_RESTITUTION)[a] = 0.0
    vector(linear, d.D_ON_BOUND)[a] = 0.0
    matrix(linear, d.D_ON_WEIGHT)[a, 0] = matrix(linear, d.D_ON_WEIGHT)[a, 1] = 0.0


@kernel
def set_normal_row(data, linear, i, a):
    """Make row a the normal row of contact i: u_n + b = 0."""
    matrix(linear, d.D_ON_VELOCITY)[a, 2] = 1.0
    h, gap = vector(data, f.TIME_STEP)[0], vector(data, f.GAP_START)[i]
    beta, rebound = vector(data, f.STABILISATION)[0], vector(data, f.RESTITUTION_BIAS)[i]
    slope = (1.0 if gap > 0.0 else beta) / h
    if rebound != 0.0:
        slope = beta / h if gap < 0.0 else 0.0
        share = matrix(data, f.GUARD)[integers(data, f.CONTACT_ISLAND)[i], 0]
        matrix(linear, d.D_ON_START)[a, 2] = share * vector(data, f.RESTITUTION)[i]
        before = vector(data, f.U_START)[3 * i + 2]
        vector(linear, d.D_ON_RESTITUTION)[a] = share * before
    vector(linear, d.D_ON_GAP)[a] = slope
    vector(linear, d.D_ON_TIME)[a] = -slope * gap / h


@kernel
def set_sticking_row(linear, a, e):
    """Make row a the row e of a contact that does not move."""
    matrix(linear, d.D_ON_VELOCITY)[a, e] = 1.0


@kernel
def set_intervals(data, linear, n):
    """Fill the interval rows, from the first behind the contacts to n."""
    row_of, modes = integers(linear, d.D_ROW_OF), integers(linear, d.D_MODES)
    nc = vector(data, f.GAP).shape[0]
    lower = vector(data, f.LOWER)
    impulse, h = vector(data, f.IMPULSE), vector(data, f.TIME_STEP)[0]
    gaps, beta = vector(data, f.INTERVAL_GAP), vector(data, f.STABILISATION)[0]
    first_limit = lower.shape[0] - integers(data, f.LIMIT_Q).shape[0]
    for a in range(3 * integers(linear, d.D_COUNTS)[d.CONTACTS], n):
        r = row_of[a]
        k = r - 3 * nc
        clear_row(linear, a)
        if modes[nc + k] != d.STICK:
            matrix(linear, d.D_ON_IMPULSE)[a, 0] = 1.0
            if k < first_limit:  # at a bound that scales with h: λ − ± h τ = 0
                vector(linear, d.D_ON_TIME)[a] = -impulse[r] / h
                vector(linear, d.D_ON_BOUND)[a] = -1.0 if impulse[r] > 0.0 else 1.0
            continue
        matrix(linear, d.D_ON_VELOCITY)[a, 0] = 1.0
        if k >= first_limit:
            set_limit(data, linear, k, a, gaps[k], beta)


@kernel
def set_limit(data, linear, k, a, gap, beta):
    """Fill how b of a limit depends on its gap, on h and on the velocity before."""
    h, r = vector(data, f.TIME_STEP)[0], 3 * vector(data, f.GAP).shape[0] + k
    side = impulse_sign(vector(data, f.LOWER), vector(data, f.UPPER), k)
    slope = (beta if side == 0.0 or side * gap <= 0.0 else 1.0) / h
    # with restitution b is e u⁻ and the share of a gap that is passed: told apart by its value
    restitution = vector(data, f.LIMIT_RESTITUTION)[k]
    before = vector(data, f.U_START)[r]
    if restitution > 0.0 and side != 0.0:
        bias = restitution * side * before + min(beta * side * gap / h, 0.0)
        if abs(side * vector(data, f.BIAS)[r] - bias) <= 1e-12 * abs(bias):
            slope = beta / h if side * gap < 0.0 else 0.0
            matrix(linear, d.D_ON_START)[a, 0] = restitution
    vector(linear, d.D_ON_GAP)[a] = slope
    vector(linear, d.D_ON_TIME)[a] = -slope * gap / h


# --- ncp and anitescu with circular cones


@kernel
def linearise_cones(data, linear, kappa):
    """Fill the rows of the law with circular cones."""
    n = collect(data, linear)
    row_of = integers(linear, d.D_ROW_OF)
    for a in range(0, 3 * integers(linear, d.D_COUNTS)[d.CONTACTS], 3):
        i = row_of[a] // 3
        if set_closed_rows(data, linear, i, a):
            set_sliding_rows(data, linear, i, a, kappa)
    set_intervals(data, linear, n)


@kernel
def set_closed_rows(data, linear, i, a):
    """Fill the normal row of a contact, and the tangents where it sticks; True if it slides."""
    for e in range(3):
        clear_row(linear, a + e)
    set_normal_row(data, linear, i, a + 2)
    if integers(linear, d.D_MODES)[i] != d.STICK:
        return True
    set_sticking_row(linear, a, 0)
    set_sticking_row(linear, a + 1, 1)
    return False


@kernel
def set_sliding_rows(data, linear, i, a, kappa):
    """Fill the rows of a contact that slides: friction against the slip."""
    u, impulse, mu = vector(data, f.U_NEXT), vector(data, f.IMPULSE), vector(data, f.FRICTION)[i]
    on_impulse, on_velocity = matrix(linear, d.D_ON_IMPULSE), matrix(linear, d.D_ON_VELOCITY)
    u1, u2, normal = u[3 * i], u[3 * i + 1], impulse[3 * i + 2]
    slip = np.sqrt(u1 * u1 + u2 * u2)
    if mu == 0.0 or slip == 0.0:
        on_impulse[a, 0] = on_impulse[a + 1, 1] = 1.0
        if slip > 0.0:
            vector(linear, d.D_ON_FRICTION)[a] = normal * u1 / slip
            vector(linear, d.D_ON_FRICTION)[a + 1] = normal * u2 / slip
        return
    d1, d2 = u1 / slip, u2 / slip
    turn = mu * max(normal, 0.0) / slip
    on_impulse[a, 0] = on_impulse[a + 1, 1] = 1.0
    on_impulse[a, 2], on_impulse[a + 1, 2] = mu * d1, mu * d2
    on_velocity[a, 0], on_velocity[a, 1] = turn * (1.0 - d1 * d1), -turn * d1 * d2
    on_velocity[a + 1, 0], on_velocity[a + 1, 1] = -turn * d1 * d2, turn * (1.0 - d2 * d2)
    vector(linear, d.D_ON_FRICTION)[a] = normal * d1
    vector(linear, d.D_ON_FRICTION)[a + 1] = normal * d2
    if kappa != 0.0:
        on_velocity[a + 2, 0] -= kappa * mu * d1
        on_velocity[a + 2, 1] -= kappa * mu * d2
        vector(linear, d.D_ON_FRICTION)[a + 2] = -kappa * slip


@kernel
def linearise_ncp(data, linear):
    """Fill the rows of ncp."""
    linearise_cones(data, linear, 0.0)


# --- null_space: held feet do not move, up to the correction of their gap


@kernel
def choose_held(data, linear):
    """Fill the modes: feet that are held stick, others are open."""
    fill_scales(data, linear)
    modes, margin = integers(linear, d.D_MODES), vector(linear, d.D_MARGIN)
    impulse, active = vector(data, f.IMPULSE), vector(data, f.ACTIVE)
    for i in range(active.shape[0]):
        r = 3 * i
        loaded = impulse[r] != 0.0 or impulse[r + 1] != 0.0 or impulse[r + 2] != 0.0
        modes[i] = d.STICK if active[i] > 0.0 and loaded else d.OPEN
        margin[i] = np.inf
        if active[i] > 0.0 and not loaded:
            away = (vector(data, f.U_NEXT)[r + 2] + bias_of(data, i)) / vector(linear, d.D_SCALES)[
                1
            ]
            margin[i] = max(away, 0.0)
    choose_interval_modes(data, linear)


@kernel
def linearise_null_space(data, linear):
    """Fill the rows of null_space: w = 0 where the bias of a foot counts, else u⁺ = 0."""
    n = collect(data, linear)
    row_of, law = integers(linear, d.D_ROW_OF), vector(data, f.LAW)
    now, before = matrix(data, f.MEMORY), matrix(data, f.MEMORY_START)
    for a in range(0, 3 * integers(linear, d.D_COUNTS)[d.CONTACTS], 3):
        i = row_of[a] // 3
        for e in range(3):
            clear_row(linear, a + e)
        touches = now[i, STATE] % GIVEN == TOUCHED
        if touches and (law[USES_BAUMGARTE] != 0.0 or before[i, STATE] % GIVEN != TOUCHED):
            set_normal_row(data, linear, i, a + 2)
        else:
            set_sticking_row(linear, a + 2, 2)
        set_sticking_row(linear, a, 0)
        set_sticking_row(linear, a + 1, 1)
    set_intervals(data, linear, n)
