"""Linearised laws of soft contact, λ = γ(u⁺, u⁻, φ, μ, w): todorov, sap and compliant.

    dλ − ∂γ/∂u⁺ du⁺ − ∂γ/∂u⁻ du⁻ − ∂γ/∂φ dφ − ∂γ/∂w dw = 0

w are the effective inverse masses that scale the compliance, at most two per contact, where they
change with q. Where contacts see the joint damping of the start of the step (todorov), u⁺ is not
J v⁺ but J v', and v' − v⁺ = x solves M x = h D (v⁺ − v).
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import front, integers, matrix, vector
from contact_sim.contact_models import _sap as sap
from contact_sim.contact_models import _todorov as todorov
from contact_sim.contact_models._compliant import FRICTION_LAW as LAW_OF_FRICTION
from contact_sim.contact_models._compliant import (
    IMPLICIT,
    MATERIAL,
    SMALL_MOTIONS,
    fill_damped_diagonal,
)
from contact_sim.contact_models._compliant import NORMAL_LAW as LAW_OF_NORMAL
from contact_sim.contact_models._soft_contact import (
    begin_delassus,
    has_short_tree,
    undamp_contacts,
)
from contact_sim.contact_models._stages import fill_delassus, gather_active
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._inverse_dynamics import fill_motion
from contact_sim.derivatives._rigid_laws import clear_row, fill_scales
from contact_sim.solvers import _springs as springs
from contact_sim.solvers._delassus import solve
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import (
    CONE,
    LAGGED,
    cone_directions,
    contact_numbers,
    edge_speeds,
    hunt_crossley,
    project_compliant,
    pyramid_directions,
    pyramid_impulse,
    regularised_directions,
    velocity_deficit,
)
from contact_sim.step._contact_rows import (
    ALL_ISLANDS,
    spring_work_of,
    tree_of,
    unbiased_rows_of,
)

FAR = 1e11
"""Speed from which v̂ says that a row cannot act [m/s]."""


# --- rows: all that took part in the problem, in its order


@kernel
def choose_soft_modes(data, linear):
    """Fill modes by impulses; contacts that took part without an impulse are open."""
    fill_scales(data, linear)
    modes, margin = integers(linear, d.D_MODES), vector(linear, d.D_MARGIN)
    active, impulse, nc = (
        vector(data, f.ACTIVE),
        vector(data, f.IMPULSE),
        vector(data, f.GAP).shape[0],
    )
    gap, length = (
        vector(data, f.GAP_START),
        vector(data, f.TIME_STEP)[0] * vector(linear, d.D_SCALES)[1],
    )
    for i in range(nc):
        r = 3 * i
        modes[i] = d.OPEN
        margin[i] = abs(gap[i]) / length if active[i] > 0.0 else np.inf
        if impulse[r] != 0.0 or impulse[r + 1] != 0.0 or impulse[r + 2] != 0.0:
            modes[i] = d.STICK
            margin[i] = abs(impulse[r + 2]) / vector(linear, d.D_SCALES)[0]
    for k in range(vector(data, f.LOWER).shape[0]):
        modes[nc + k], margin[nc + k] = d.STICK, np.inf


@kernel
def choose_todorov_modes(data, linear):
    """Fill modes, and note whether contacts see the joint damping of the start."""
    undamped = todorov.sees_explicit_damping(data)
    integers(linear, d.D_COUNTS)[d.UNDAMPED] = 1 if undamped else 0
    if undamped:
        undamp_contacts(data)
    choose_soft_modes(data, linear)


@kernel
def collect_problem(data, linear):
    """List the rows of the problem and gather it but for G; return its number of rows."""
    n, counts = gather_active(data, ALL_ISLANDS), integers(linear, d.D_COUNTS)
    row_of, rows = integers(linear, d.D_ROW_OF), integers(data, f.ROW_OF)
    for a in range(n):
        row_of[a] = rows[a]
        clear_row(linear, a)
        matrix(linear, d.D_ON_IMPULSE)[a, a % 3 if a < 3 * integers(data, f.COUNTS)[0] else 0] = (
            1.0
        )
    counts[d.CONTACTS] = integers(data, f.COUNTS)[0]
    counts[d.BILATERAL] = matrix(data, f.BILATERAL_JACOBIAN).shape[0]
    counts[d.ROWS] = n + counts[d.BILATERAL]
    for a in range(n, counts[d.ROWS]):
        clear_row(linear, a)
        matrix(linear, d.D_ON_VELOCITY)[a, 0] = 1.0
    fill_law_velocities(data, linear, n)
    return n


@kernel
def fill_law_velocities(data, linear, n):
    """Fill the velocities of the rows that the law sees, in `law_velocity`."""
    v_law, u = vector(linear, d.D_V_LAW), vector(linear, d.D_LAW_VELOCITY)
    jacobian, row_of = matrix(data, f.JACOBIAN_TRANSPOSED), integers(data, f.ROW_OF)
    next_v = vector(data, f.V_NEXT)
    for k in range(v_law.shape[0]):
        v_law[k] = next_v[k]
    if integers(linear, d.D_COUNTS)[d.UNDAMPED] != 0:
        add_undamping(data, v_law)
        fill_motion(
            integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(linear, d.D_COLUMNS),
            v_law, matrix(linear, d.D_TWIST_NEXT),
        )  # fmt: skip
    for a in range(n):
        u[a] = 0.0
        for k in range(v_law.shape[0]):
            u[a] += jacobian[k, row_of[a]] * v_law[k]


@kernel
def add_undamping(data, v_law):
    """Add x = h M⁻¹ D (v⁺ − v)."""
    h, damping, v = vector(data, f.TIME_STEP)[0], vector(data, f.DAMPING), vector(data, f.V_START)
    x = vector(data, f.UNDAMPING)
    for k in range(x.shape[0]):
        x[k] = h * damping[k] * (v_law[k] - v[k])
    solve(matrix(data, f.UNDAMPED_FACTOR), tree_of(data), x)
    for k in range(x.shape[0]):
        v_law[k] += x[k]


@kernel
def add_stiffness(linear, a, directions, start_share):
    """Set B = H of a contact, from its directions, and C = −H start_share."""
    on_velocity, on_start = matrix(linear, d.D_ON_VELOCITY), matrix(linear, d.D_ON_START)
    axes = directions.first, directions.second, directions.third
    for k in range(3):
        if directions.softness[k] != np.inf:
            e, h = axes[k], 1.0 / directions.softness[k]
            for r in range(3):
                for c in range(3):
                    on_velocity[a + r, c] += h * e[r] * e[c]
    for r in range(3):
        for c in range(3):
            on_start[a + r, c] = -start_share * on_velocity[a + r, c]


@kernel
def note_mode(linear, i, a, sliding, margin):
    """Note the mode of contact i that carries, and the distance from sliding or sticking."""
    scale = vector(linear, d.D_SCALES)[0]
    integers(linear, d.D_MODES)[i] = d.SLIDE if sliding else d.STICK
    vector(linear, d.D_MARGIN)[i] = min(vector(linear, d.D_MARGIN)[i], abs(margin) / scale)


# --- forms CONE and PYRAMID: γ = P(R⁻¹ (v̂ − u))


@kernel
def cone_slopes(deficit, mu, R):
    """Return region, ∂γ/∂R_t, ∂γ/∂R_n and ∂γ/∂μ of a circular cone, and the slack of the cone."""
    rt, rn = R
    y1, y2, yn = deficit[0] / rt, deficit[1] / rt, deficit[2] / rn
    g1, g2, gn, region = project_compliant(y1, y2, yn, mu, rt, rn)
    size = np.sqrt(y1 * y1 + y2 * y2)
    none = 0.0, 0.0, 0.0
    if region == 0:
        return region, none, none, none, gn
    if region == 1:
        return region, (-g1 / rt, -g2 / rt, 0.0), (0.0, 0.0, -gn / rn), none, mu * yn - size
    d1, d2, over = y1 / size, y2 / size, 1.0 / (rn + mu * mu * rt)
    to_t, to_n = -mu * mu * gn * over, -gn * over
    to_mu = (size * rt - 2.0 * mu * rt * gn) * over
    along_mu = gn + mu * to_mu
    return (
        region, (mu * to_t * d1, mu * to_t * d2, to_t), (mu * to_n * d1, mu * to_n * d2, to_n),
        (along_mu * d1, along_mu * d2, to_mu), size - mu * yn,
    )  # fmt: skip


@kernel
def pyramid_slopes(deficit, mu, R):
    """Return ∂γ/∂R and ∂γ/∂μ of a pyramid, and the smallest |speed| of an edge."""
    g1, g2, gn = pyramid_impulse(deficit, mu, R)
    a, b, c, e = edge_speeds(deficit, mu)
    pa, pb, pc, pe = float_of(a > 0.0), float_of(b > 0.0), float_of(c > 0.0), float_of(e > 0.0)
    # γ_t1 = μ (a − b)₊/R; edges change by ± d_t dμ
    t1, t2 = deficit[0], deficit[1]
    to_mu = (
        g1 / mu + mu * t1 * (pa + pb) / R, g2 / mu + mu * t2 * (pc + pe) / R,
        (t1 * (pa - pb) + t2 * (pc - pe)) / R,
    )  # fmt: skip
    nearest = min(min(abs(a), abs(b)), min(abs(c), abs(e)))
    return (-g1 / R, -g2 / R, -gn / R), to_mu, nearest / R


@kernel
def float_of(true):
    """Return 1 or 0."""
    return 1.0 if true else 0.0


@kernel
def set_interval_row(data, linear, a, k, compliance, reference, on_gap, start_share):
    """Fill a scalar row γ = clip((v̂ − u)/R, lower, upper); on_gap is −∂v̂/∂φ."""
    lower, upper = vector(data, f.ROW_LOWER)[k], vector(data, f.ROW_UPPER)[k]
    value = (reference - vector(linear, d.D_LAW_VELOCITY)[a]) / compliance
    place = integers(linear, d.D_ROW_OF)[a] - 2 * vector(data, f.GAP).shape[0]
    scale = vector(linear, d.D_SCALES)[0]
    vector(linear, d.D_MARGIN)[place] = min(abs(value - lower), abs(upper - value)) / scale
    if lower < value < upper:
        matrix(linear, d.D_ON_VELOCITY)[a, 0] = 1.0 / compliance
        matrix(linear, d.D_ON_START)[a, 0] = -start_share / compliance
        vector(linear, d.D_ON_GAP)[a] = on_gap / compliance
        return value / compliance  # −∂γ/∂R
    integers(linear, d.D_MODES)[place] = d.OPEN
    if np.isfinite(lower) and np.isfinite(upper):
        vector(linear, d.D_ON_BOUND)[a] = -1.0 if value >= upper else 1.0
    return 0.0


# --- todorov


@kernel
def impedance_slope(solimp, r):
    """Return the derivative of the impedance d(r) to r."""
    x = abs(r) / solimp[2]
    if x >= 1.0 or x == 0.0:
        return 0.0
    middle, power = solimp[3], solimp[4]
    if power == 1.0:
        slope = 1.0
    elif x <= middle:
        slope = power * x ** (power - 1.0) / middle ** (power - 1.0)
    else:
        slope = power * (1.0 - x) ** (power - 1.0) / (1.0 - middle) ** (power - 1.0)
    return slope * (solimp[1] - solimp[0]) / solimp[2] * (1.0 if r > 0.0 else -1.0)


@kernel
def linearise_todorov(data, linear):
    """Fill the rows of todorov in its form of today."""
    n, law, h = collect_problem(data, linear), vector(data, f.LAW), vector(data, f.TIME_STEP)[0]
    if n == 0:
        return
    undamped = integers(linear, d.D_COUNTS)[d.UNDAMPED] != 0
    begin_delassus(data, n, undamped, todorov.defers_delassus(data))
    rows, start, scratch = (
        unbiased_rows_of(data),
        vector(data, f.ROW_START),
        matrix(data, f.LAW_VECTORS),
    )
    R, v_hat, nc = scratch[0][:n], scratch[1][:n], rows.friction.shape[0]
    for i in range(nc):
        rows.friction[i] = max(rows.friction[i], todorov.SMALLEST_FRICTION)
    gap, interval_gap = vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP)
    weight = vector(data, f.ROW_WEIGHT)
    todorov.fill_contact_rules(rows, start, gap, weight, h, law, R, v_hat)
    todorov.fill_interval_rules(rows, start, interval_gap, weight, h, law, R, v_hat)
    for i in range(nc):
        if gap[i] < 0.0:
            set_todorov_contact(data, linear, i, rows.friction[i], gap[i], weight[3 * i + 2])
    exact, common = law[todorov.EXACT] != 0.0, todorov.common_gains(h, law)
    for k in range(n - 3 * nc):
        a = 3 * nc + k
        if abs(v_hat[a]) > FAR:
            continue
        impedance, damping, stiffness = todorov.gains(interval_gap[k], common)
        bend = impedance_slope(common[0], interval_gap[k])
        on_gap = h * stiffness * (1.0 + bend / impedance * interval_gap[k])
        slope = set_interval_row(data, linear, a, k, R[a], v_hat[a], on_gap, 1.0 - h * damping)
        # R = (1 − d)/d Â
        diagonal = rows.delassus[a, a] if exact else weight[a]
        vector(linear, d.D_ON_GAP)[a] -= slope * bend / impedance**2 * diagonal
        if exact:
            matrix(linear, d.D_ON_WEIGHT)[a, 0] = slope * (1.0 - impedance) / impedance


@kernel
def set_todorov_contact(data, linear, i, mu, gap, reference_weight):
    """Fill the rows of the i-th contact of the problem."""
    law, h, a = vector(data, f.LAW), vector(data, f.TIME_STEP)[0], 3 * i
    scratch, u, G = (
        matrix(data, f.LAW_VECTORS),
        vector(linear, d.D_LAW_VELOCITY),
        unbiased_rows_of(data).delassus,
    )
    R, v_hat = scratch[0], scratch[1]
    common, exact = todorov.common_gains(h, law), law[todorov.EXACT] != 0.0
    impedance, damping, stiffness = todorov.gains(gap, common)
    bend = impedance_slope(common[0], gap)
    ratio, elliptic = law[todorov.IMPRATIO], law[todorov.ELLIPTIC] != 0.0
    deficit, trace = velocity_deficit(v_hat, u, a), G[a, a] + G[a + 1, a + 1] + G[a + 2, a + 2]
    normal = G[a + 2, a + 2] if exact else reference_weight
    along = G[a, a] if exact else reference_weight
    share, turn = (1.0 - impedance) / impedance, -bend / impedance**2
    contact = integers(linear, d.D_ROW_OF)[a] // 3
    if elliptic:
        add_stiffness(
            linear, a, cone_directions(deficit, mu, (R[a], R[a + 2]), trace), 1.0 - h * damping
        )
        region, to_t, to_n, to_mu, slack = cone_slopes(deficit, mu, (R[a], R[a + 2]))
        note_mode(linear, contact, a, region == 2, slack)
    else:
        add_stiffness(linear, a, pyramid_directions(deficit, mu, R[a]), 1.0 - h * damping)
        to_t, to_mu, slack = pyramid_slopes(deficit, mu, R[a])
        to_n = 0.0, 0.0, 0.0
        t1, t2, n = abs(deficit[0]), abs(deficit[1]), deficit[2]
        note_mode(linear, contact, a, mu * max(t1, t2) > n, slack)
    on_velocity, on_gap = matrix(linear, d.D_ON_VELOCITY), vector(linear, d.D_ON_GAP)
    pull = h * stiffness * (1.0 + bend / impedance * gap)  # −∂v̂_n/∂φ
    for r in range(3):
        if elliptic:  # ∂R_n/∂φ, and R_t = R_n/impratio
            change = (to_n[r] + to_t[r] / ratio) * turn * normal
            weight = (to_n[r] + to_t[r] / ratio) * share, 0.0
            by_mu = to_mu[r]
        else:  # R = 2 μ²/impratio (1 − d)/d (Â_nn + μ² Â_tt)
            edge = 2.0 * mu * mu / ratio
            change = to_t[r] * edge * turn * (normal + mu * mu * along)
            weight = to_t[r] * edge * share, to_t[r] * edge * share * mu * mu
            by_mu = to_mu[r] + to_t[r] * share / ratio * (4.0 * mu * normal + 8.0 * mu**3 * along)
        on_gap[a + r] = on_velocity[a + r, 2] * pull - change
        vector(linear, d.D_ON_FRICTION)[a + r] = -by_mu
        if exact:
            matrix(linear, d.D_ON_WEIGHT)[a + r, 0] = -weight[0]
            matrix(linear, d.D_ON_WEIGHT)[a + r, 1] = -weight[1]


@kernel
def linearise_todorov_2014(data, linear):
    """Fill the rows of todorov in its form of 2014: R = ε diag(G), and v̂ linear in u⁻ and φ."""
    n, law, h = collect_problem(data, linear), vector(data, f.LAW), vector(data, f.TIME_STEP)[0]
    if n == 0:
        return
    fill_delassus(data, n, False)
    rows, start = unbiased_rows_of(data), vector(data, f.ROW_START)
    scratch, nc, G = matrix(data, f.LAW_VECTORS), rows.friction.shape[0], rows.delassus
    R, v_hat = scratch[0][:n], scratch[1][:n]
    for i in range(nc):
        rows.friction[i] = max(rows.friction[i], todorov.SMALLEST_FRICTION)
    gaps = vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP)
    todorov.fill_rules_2014(rows, start, gaps, h, law, R, v_hat)
    epsilon, kappa = law[todorov.EPSILON], law[todorov.KAPPA]
    keeps, pull = 1.0 - 2.0 * h * (1.0 + epsilon) / kappa, h * (1.0 + epsilon) / kappa**2
    on_velocity, on_weight = matrix(linear, d.D_ON_VELOCITY), matrix(linear, d.D_ON_WEIGHT)
    for i in range(nc):
        a, mu = 3 * i, rows.friction[i]
        deficit = velocity_deficit(v_hat, vector(linear, d.D_LAW_VELOCITY), a)
        trace = G[a, a] + G[a + 1, a + 1] + G[a + 2, a + 2]
        contact = integers(linear, d.D_ROW_OF)[a] // 3
        along = 0.5 * epsilon * (G[a, a] + G[a + 1, a + 1])
        if law[todorov.ELLIPTIC] != 0.0:
            add_stiffness(linear, a, cone_directions(deficit, mu, (R[a], R[a + 2]), trace), keeps)
            region, to_t, to_n, to_mu, slack = cone_slopes(deficit, mu, (R[a], R[a + 2]))
            sliding, by_mu = region == 2, 0.0
        else:
            add_stiffness(linear, a, pyramid_directions(deficit, mu, R[a]), keeps)
            to_n, to_mu, slack = pyramid_slopes(deficit, mu, R[a])
            sliding = mu * max(abs(deficit[0]), abs(deficit[1])) > deficit[2]
            to_t = mu * mu * to_n[0], mu * mu * to_n[1], mu * mu * to_n[2]
            region, by_mu = 1, 2.0 * mu * along
        if vector(data, f.IMPULSE)[3 * contact + 2] != 0.0 and region != 0:
            note_mode(linear, contact, a, sliding, slack)
        for r in range(3):
            vector(linear, d.D_ON_GAP)[a + r] = on_velocity[a + r, 2] * pull
            vector(linear, d.D_ON_FRICTION)[a + r] = -(to_mu[r] + by_mu * to_n[r])
            on_weight[a + r, 0], on_weight[a + r, 1] = -epsilon * to_n[r], -epsilon * to_t[r]
    for k in range(n - 3 * nc):
        a = 3 * nc + k
        slope = set_interval_row(data, linear, a, k, R[a], v_hat[a], pull, keeps)
        on_weight[a, 0] = epsilon * slope


# --- sap


@kernel
def linearise_sap(data, linear):
    """Fill the rows of sap in its three approximations."""
    n, rows = collect_problem(data, linear), unbiased_rows_of(data)
    if n == 0:
        return
    begin_delassus(data, n, False, sap.defers_delassus(data))
    law, h, nc = vector(data, f.LAW), vector(data, f.TIME_STEP)[0], rows.friction.shape[0]
    soft = sap.fill_rules(data, rows)
    for i in range(nc):
        if soft.form == CONE:
            set_sap_cone(data, linear, i, rows, soft)
        elif soft.contact[3 * i] != np.inf:
            set_sap_springs(data, linear, i, rows, soft)
    weight = vector(data, f.ROW_WEIGHT)
    near_rigid = law[sap.BETA] ** 2 / (4.0 * np.pi**2)
    for k in range(n - 3 * nc):
        a = 3 * nc + k
        if abs(soft.v_hat[a]) > FAR:
            continue
        dry = np.isfinite(rows.lower[k]) and np.isfinite(rows.upper[k])
        on_gap = 0.0 if dry else 1.0 / (h + law[sap.RELAXATION_TIME])
        slope = set_interval_row(data, linear, a, k, soft.R[a], soft.v_hat[a], on_gap, 0.0)
        share = law[sap.SIGMA] if dry else near_rigid
        if dry or soft.R[a] <= near_rigid * weight[a]:
            matrix(linear, d.D_ON_WEIGHT)[a, 0] = slope * share


@kernel
def set_sap_cone(data, linear, i, rows, soft):
    """Fill the rows of the i-th contact of the problem, approximation `sap`."""
    law, h, a = vector(data, f.LAW), vector(data, f.TIME_STEP)[0], 3 * i
    if abs(soft.v_hat[a + 2]) > FAR:
        return
    G, mu, R = rows.delassus, rows.friction[i], (soft.R[a], soft.R[a + 2])
    deficit = velocity_deficit(soft.v_hat, vector(linear, d.D_LAW_VELOCITY), a)
    trace = G[a, a] + G[a + 1, a + 1] + G[a + 2, a + 2]
    add_stiffness(linear, a, cone_directions(deficit, mu, R, trace), 0.0)
    region, to_t, to_n, to_mu, slack = cone_slopes(deficit, mu, R)
    if region != 0:
        note_mode(linear, integers(linear, d.D_ROW_OF)[a] // 3, a, region == 2, slack)
    near_rigid = law[sap.BETA] ** 2 / (4.0 * np.pi**2)
    rigid = R[1] <= near_rigid * vector(data, f.ROW_WEIGHT)[a]
    for r in range(3):
        stiff = matrix(linear, d.D_ON_VELOCITY)[a + r, 2]
        vector(linear, d.D_ON_GAP)[a + r] = stiff / (h + law[sap.RELAXATION_TIME])
        vector(linear, d.D_ON_FRICTION)[a + r] = -to_mu[r]
        by_weight = to_t[r] * law[sap.SIGMA] + (to_n[r] * near_rigid if rigid else 0.0)
        matrix(linear, d.D_ON_WEIGHT)[a + r, 0] = -by_weight


@kernel
def set_sap_springs(data, linear, i, rows, soft):
    """Fill the rows of the i-th contact of the problem, approximations `lagged` and `similar`."""
    law, a, mu = vector(data, f.LAW), 3 * i, rows.friction[i]
    (h, k, dissipation), lagged = soft.spring, soft.form == LAGGED
    velocities, G = vector(linear, d.D_LAW_VELOCITY), rows.delassus
    u = velocities[a], velocities[a + 1], velocities[a + 2]
    numbers = contact_numbers(soft.contact, a)
    trace = G[a, a] + G[a + 1, a + 1] + G[a + 2, a + 2]
    add_stiffness(
        linear, a, regularised_directions(lagged, u, mu, numbers, soft.spring, trace), 0.0
    )
    gap, bound, eps = numbers
    size = np.sqrt(u[0] * u[0] + u[1] * u[1] + eps * eps)
    z = u[2] if lagged else u[2] - mu * (size - eps)
    normal, slope = hunt_crossley(z, gap, soft.spring)
    by_gap = -h * k * (1.0 - dissipation * z) if normal > 0.0 else 0.0
    # bound μ n₀ of the start, and ε = max(v_s, σ w μ n₀)
    before = vector(data, f.ROW_START)[a + 2]
    viscous = 1.0 - dissipation * before
    presses = gap < 0.0 and viscous > 0.0
    bound_gap = -mu * h * k * viscous if presses else 0.0
    bound_start = mu * h * k * gap * dissipation if presses else 0.0
    weight = vector(data, f.ROW_WEIGHT)[a]
    softened = law[sap.SIGMA] * weight if eps > law[sap.STICTION_TOLERANCE] else 0.0
    # ∂γ/∂(n, bound, ε, μ): friction b u_t/S, normal n(z)
    z_eps, z_mu = (0.0, 0.0) if lagged else (-mu * (eps / size - 1.0), -(size - eps))
    friction = bound if lagged else mu * normal
    for r in range(3):
        share = -u[r] / size if r < 2 else 0.0
        by_normal = 1.0 if r == 2 else (0.0 if lagged else mu * share)
        by_bound = share if lagged else 0.0
        by_eps = by_normal * -slope * z_eps - friction * share * eps / (size * size)
        by_mu = by_normal * -slope * z_mu + (0.0 if lagged else share * normal)
        to_bound = by_bound + by_eps * softened
        vector(linear, d.D_ON_GAP)[a + r] = -(by_normal * by_gap + to_bound * bound_gap)
        matrix(linear, d.D_ON_START)[a + r, 2] = -to_bound * bound_start
        per_mu = bound / mu if mu > 0.0 else 0.0
        vector(linear, d.D_ON_FRICTION)[a + r] = -(by_mu + to_bound * per_mu)
        if softened != 0.0:
            matrix(linear, d.D_ON_WEIGHT)[a + r, 0] = -by_eps * law[sap.SIGMA] * bound
    if normal > 0.0 or bound > 0.0:
        slides = u[0] * u[0] + u[1] * u[1] > eps * eps
        note_mode(linear, integers(linear, d.D_ROW_OF)[a] // 3, a, slides, normal)


# --- compliant


@kernel
def linearise_compliant(data, linear):
    """Fill the rows of springs and dampers."""
    n, rows = collect_problem(data, linear), unbiased_rows_of(data)
    if n == 0:
        return
    if has_short_tree(data):
        fill_damped_diagonal(data, n)
    else:
        fill_delassus(data, n, False)
    law, h, nc = vector(data, f.LAW), vector(data, f.TIME_STEP)[0], rows.friction.shape[0]
    implicit, material = law[IMPLICIT] != 0.0, law[MATERIAL:SMALL_MOTIONS]
    laws = springs.Springs(
        int(law[LAW_OF_NORMAL]), int(law[LAW_OF_FRICTION]), material, h, h if implicit else 0.0
    )
    gaps = vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP)
    start = vector(data, f.ROW_START)[:n]
    u = vector(linear, d.D_LAW_VELOCITY)[:n] if implicit else start
    memory, work = matrix(data, f.ROW_MEMORY)[:nc], spring_work_of(data)
    springs.fill_forces(rows, laws, u, gaps, memory, work, False)
    slope = front(data, f.LAW_VECTORS, n, 3)
    out = matrix(linear, d.D_ON_VELOCITY if implicit else d.D_ON_START)
    for r in range(n):
        for c in range(3 if r < 3 * nc else 1):
            out[r, c] = -slope[r, c]
    for i in range(nc):
        set_spring_contact(linear, i, rows, laws, u, gaps[0][i], (memory[i], work.force))
    secant = material[springs.SECANT_STIFFNESS]
    for k in range(n - 3 * nc):
        a, s = 3 * nc + k, slope[3 * nc + k, 0]
        if np.isfinite(rows.lower[k]) and np.isfinite(rows.upper[k]):
            half = 0.5 * (rows.upper[k] - rows.lower[k])
            vector(linear, d.D_ON_BOUND)[a] = -work.force[a] / half if half > 0.0 else 0.0
        elif s != 0.0:
            G = rows.delassus[a, a]
            damping = springs.damper(material[springs.DAMPING_RATIO], secant, G)
            vector(linear, d.D_ON_GAP)[a] = h * secant
            if G > 0.0:  # ∂/∂G of −h d u, d ~ G^(−1/2)
                matrix(linear, d.D_ON_WEIGHT)[a, 0] = -0.5 * h * damping / G * u[a]


@kernel
def set_spring_contact(linear, i, rows, laws, u, gap, given):
    """Fill how the forces of the i-th contact change with gap, friction and weights."""
    (memory, force), a, h, G = given, 3 * i, laws.time_step, rows.delassus
    material, mu, un = laws.material, rows.friction[i], u[a + 2]
    x = -(gap + laws.ahead * un)
    f_n, by_x, by_rate = springs.normal_force(laws.normal_law, x, -un, material, G[a + 2, a + 2])
    on_gap, on_mu = vector(linear, d.D_ON_GAP), vector(linear, d.D_ON_FRICTION)
    on_weight = matrix(linear, d.D_ON_WEIGHT)
    on_gap[a + 2] = h * by_x
    # the damper 2 ζ √(k/G_nn) of two of the laws
    by_weight = 0.0
    if laws.normal_law in (springs.KELVIN_VOIGT, springs.UNCLAMPED) and by_rate != 0.0:
        by_weight = 0.5 * by_rate / G[a + 2, a + 2] * un
    on_weight[a + 2, 0] = -h * by_weight
    if f_n <= 0.0:
        return
    contact = integers(linear, d.D_ROW_OF)[a] // 3
    size = np.sqrt(force[a] ** 2 + force[a + 1] ** 2)
    if laws.friction_law == springs.ANCHORED:
        set_anchored(linear, i, rows, laws, u, (memory, f_n, by_x, by_weight))
        return
    slides = np.sqrt(u[a] ** 2 + u[a + 1] ** 2) > material[springs.SLIP_SPEED]
    note_mode(linear, contact, a, slides, size)
    for r in range(2):  # friction is proportional to μ f
        on_gap[a + r] = force[a + r] / f_n * by_x
        on_weight[a + r, 0] = -force[a + r] / f_n * by_weight
        on_mu[a + r] = -force[a + r] / mu if mu > 0.0 else 0.0


@kernel
def set_anchored(linear, i, rows, laws, u, given):
    """Fill the same of friction with an anchor."""
    (memory, f_n, by_x, by_weight), a, h, G = given, 3 * i, laws.time_step, rows.delassus
    k, ratio = (
        laws.material[springs.TANGENTIAL_STIFFNESS],
        laws.material[springs.TANGENTIAL_DAMPING_RATIO],
    )
    mean = 0.5 * (G[a, a] + G[a + 1, a + 1])
    damping = springs.damper(ratio, k, mean)
    gain, mu = k * laws.ahead + damping, rows.friction[i]
    t1, t2 = k * memory[0] + gain * u[a], k * memory[1] + gain * u[a + 1]
    size, bound = np.sqrt(t1 * t1 + t2 * t2), mu * f_n
    turn = -0.5 * damping / mean if mean > 0.0 else 0.0  # of the gain to G_tt
    note_mode(linear, integers(linear, d.D_ROW_OF)[a] // 3, a, size > bound, h * (bound - size))
    on_weight = matrix(linear, d.D_ON_WEIGHT)
    c1, c2 = turn * u[a], turn * u[a + 1]
    if size <= bound:
        on_weight[a, 1], on_weight[a + 1, 1] = h * c1, h * c2
        return
    d1, d2 = t1 / size, t2 / size
    along = d1 * c1 + d2 * c2
    for r in range(2):
        unit, change = (d1, c1) if r == 0 else (d2, c2)
        vector(linear, d.D_ON_GAP)[a + r] = -h * mu * by_x * unit
        vector(linear, d.D_ON_FRICTION)[a + r] = h * f_n * unit
        on_weight[a + r, 0] = h * mu * by_weight * unit
        on_weight[a + r, 1] = h * bound / size * (change - along * unit)
