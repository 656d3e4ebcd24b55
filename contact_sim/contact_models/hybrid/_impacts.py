"""Impact maps: velocity jumps at closed contacts (theory 2.8, T12, T13).

With G = J M⁻¹ Jᵀ and u⁻ = J v⁻ the impulses λ give u⁺ = u⁻ + G λ.

    plastic            λ solves the cone problem with g = u⁻
    newton             g = u⁻ + e (0, 0, u_n⁻); with friction this law can create energy, and the
                       guard reduces e until ½ λᵀ (u⁻ + u⁺) ≤ 0
    poisson            compression as plastic, then λ_n ≥ e λ_n,c, with friction in both phases
    moreau             g = (1 + e) u⁻ in all three components: never creates energy, but reflects
                       the slip too
    frictionless       newton with μ = 0
    infinite_friction  newton without slip: v⁺ = (I − M⁻¹ Jᵀ G^# diag(1, 1, 1 + e) J) v⁻

At once these laws cannot pass a shock on through a row of bodies one after the other: Newton's
cradle with e = 1 ends as (−1/3, 2/3, 2/3). As a sequence of single impacts it ends as (0, 0, 1).

Dry friction of joints is a bounded force: it takes no part in an instant. A bilateral row does: it
is eliminated first.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, square, vector
from contact_sim.contact_models.hybrid import _arc_fields as e
from contact_sim.contact_models.hybrid._modes import (
    AWAY,
    OPEN,
    SLIP,
    factor_in_place,
    is_bilateral,
    is_limit,
    solve_factored,
)
from contact_sim.contact_models.hybrid._motion import (
    add_response,
    apply_arc_impulse,
    constrain_row_delassus,
    fill_arc_delassus,
    fill_arc_velocities,
    interval_of,
)
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    MAX_ITERATIONS,
    TOO_MANY_EVENTS,
    Rows,
    cone_work,
    row_velocity,
    worse_status,
)
from contact_sim.solvers._cone_solver import solve_cones
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import impulse_sign

IMPACT_LAWS = ('plastic', 'newton', 'poisson', 'moreau', 'frictionless', 'infinite_friction')
PLASTIC, NEWTON, POISSON, MOREAU, FRICTIONLESS, INFINITE_FRICTION = range(len(IMPACT_LAWS))
TOLERANCE, LIMITS = 1e-12, (50, 200, 2000)
MAX_PHASE_SWEEPS = 20000
SHARE_TOLERANCE = 1e-14  # accuracy of the largest share of restitution that creates no energy [-]
PROXIMAL = 1e-9
SEPARATION_SPEED = 1e-9  # speed from which a contact counts as leaving after an impact [m/s]
SMALLEST_PIVOT = 1e-10  # share of the diagonal below which a bilateral row depends on the others
MAX_IMPACTS = 1000  # single impacts in a sequence
SAME_SPEED = 1e-6  # relative difference of speeds up to which impacts happen at once
LEAST_APPROACH = 1e-9  # approach speed, relative to the fastest one at first, that is rounding


# --- The impact laws.


@kernel
def solve_impact(law, energy_guard, G, u, mu, restitution, impulse):
    """Fill the impulses of an impact; return (status code, iterations, residual).

    `law` is the code of one of IMPACT_LAWS, `u` is u⁻. With `energy_guard` e of newton and
    infinite_friction is reduced until no energy is created.
    """
    phase = PLASTIC if law == POISSON else law
    guarded = energy_guard and law in (NEWTON, INFINITE_FRICTION)
    share, low, high = (0.0 if phase == PLASTIC else 1.0), 0.0, 1.0
    while True:
        outcome = newton_impact(phase, G, u, mu, restitution, share, impulse)
        if not guarded or high - low <= SHARE_TOLERANCE:
            break
        # bisection for the largest share of restitution that creates no energy
        creates = impact_work(G, u, impulse) > 0.0
        if share == 1.0 and not creates:
            break
        if creates:
            high = share
        else:
            low = share
        share = 0.5 * (low + high) if high - low > SHARE_TOLERANCE else low
    if law == POISSON:
        return second_phase(outcome, G, u, mu, restitution, impulse)
    return outcome


@kernel
def impact_work(G, u, impulse):
    """Return ½ λᵀ (u⁻ + u⁺) [J]; rounding counts as zero."""
    work, size = 0.0, 0.0
    for r in range(u.shape[0]):
        after = row_velocity(G, u, impulse, r)
        work += 0.5 * impulse[r] * (u[r] + after)
        size += 0.5 * abs(impulse[r]) * (abs(u[r]) + abs(after))
    return work if work > 1e-12 * size else 0.0


@kernel
def newton_impact(law, G, u, mu, restitution, share, impulse):
    """Solve one of the single-phase laws with restitution `share` e."""
    nc, g = mu.shape[0], u.copy()
    for i in range(nc):
        # g = u⁻ + e (0, 0, u_n⁻), for moreau (1 + e) u⁻
        factor = 1.0 + share * restitution[i]
        g[3 * i + 2] *= factor
        if law == MOREAU:
            g[3 * i] *= factor
            g[3 * i + 1] *= factor
    impulse[:] = 0.0
    if law == INFINITE_FRICTION:
        return sticking_impact(G, g, nc, impulse)
    cones = np.zeros(nc) if law == FRICTIONLESS else mu
    rows = Rows(G, g, cones, np.zeros(0), np.zeros(0))
    return solve_cones(rows, impulse, cone_work(g.shape[0]), TOLERANCE, LIMITS, 0.0)


@kernel
def second_phase(compression, G, u, mu, restitution, impulse):
    """Add restitution by impulses λ_n ≥ e λ_n,c to those of the compression (Poisson)."""
    code, iterations, residual = compression
    nc, strongest = mu.shape[0], 0.0
    least, second = np.empty(nc), np.zeros(u.shape[0])
    for i in range(nc):
        least[i] = second[3 * i + 2] = restitution[i] * impulse[3 * i + 2]
        strongest = max(strongest, impulse[3 * i + 2])
    if strongest == 0.0:
        return code, iterations, residual
    # velocity after the compression, and impulses λ_n ≥ e λ_n,c on top of it
    compressed = np.empty(u.shape[0])
    for r in range(u.shape[0]):
        compressed[r] = row_velocity(G, u, impulse, r)
    sweeps, change = 0, np.inf
    while sweeps < MAX_PHASE_SWEEPS and not change <= TOLERANCE * strongest:
        sweeps, change = sweeps + 1, 0.0
        for i in range(nc):
            r = 3 * i
            o1, o2, on = second[r], second[r + 1], second[r + 2]
            # normal: projected Gauss-Seidel on λ_n ≥ least; friction: onto the disc μ λ_n
            normal = on - row_velocity(G, compressed, second, r + 2) / G[r + 2, r + 2]
            second[r + 2] = max(normal, least[i])
            bound = mu[i] * second[r + 2]
            weight = max(G[r, r], G[r + 1, r + 1])
            if weight > 0.0:
                t1 = o1 - row_velocity(G, compressed, second, r) / weight
                t2 = o2 - row_velocity(G, compressed, second, r + 1) / weight
                size = np.sqrt(t1 * t1 + t2 * t2)
                scale = bound / size if size > bound else 1.0
                second[r], second[r + 1] = scale * t1, scale * t2
            change = max(change, abs(second[r] - o1), abs(second[r + 1] - o2))
            change = max(change, abs(second[r + 2] - on))
    impulse += second
    if change > TOLERANCE * strongest:
        code = MAX_ITERATIONS
    return code, iterations + sweeps, max(residual, change)


@kernel
def sticking_impact(G, g, nc, impulse):
    """Solve u⁺ + e u_n⁻ = 0 without slip; contacts that would pull are released."""
    n, kept = g.shape[0], np.ones(nc, np.int64)
    for count in range(1, 4 * nc + 2):
        error = solve_bilateral(G, g, kept, impulse)
        worst, leaving, entering = 0.0, -1, -1
        scale = np.abs(impulse).max() if n else 0.0
        # release the contact that pulls most, else add the one that sinks fastest
        for i in range(nc):
            if kept[i] == 1 and impulse[3 * i + 2] < worst - 1e-12 * scale:
                worst, leaving = impulse[3 * i + 2], i
        if leaving >= 0:
            kept[leaving] = 0
            continue
        for i in range(nc):
            w = row_velocity(G, g, impulse, 3 * i + 2)
            if kept[i] == 0 and w < worst - 1e-12 * abs(g[3 * i + 2]):
                worst, entering = w, i
        if entering < 0:
            return CONVERGED, count, error
        kept[entering] = 1
    return MAX_ITERATIONS, 4 * nc + 1, error


@kernel
def solve_bilateral(G, g, kept, impulse):
    """Fill the impulses with G λ + g = 0 in the rows of the kept contacts; return the error."""
    nc, n = kept.shape[0], g.shape[0]
    row, m = np.empty(n, np.int64), 0
    for i in range(nc):
        for k in range(3):
            if kept[i] == 1:
                row[m] = 3 * i + k
                m += 1
    F, order, step = np.empty((m, m)), np.empty(m, np.int64), np.empty(m)
    for a in range(m):
        for b in range(m):
            F[a, b] = G[row[a], row[b]]
        F[a, a] *= 1.0 + PROXIMAL
    impulse[:] = 0.0
    error, scale = 0.0, np.empty(m)
    for a in range(m):
        scale[a] = G[row[a], row[a]]
    rank = factor_in_place(F, scale, m, order)
    for _ in range(3):  # proximal steps: the least norm where impulses are redundant
        error = 0.0
        for a in range(m):
            step[a] = -row_velocity(G, g, impulse, row[a])
            error = max(error, abs(step[a]) / G[row[a], row[a]])
        solve_factored(F, order, rank, step)
        for a in range(m):
            impulse[row[a]] += step[a]
    return error


# --- Multiple impacts as a sequence of single ones (theory 2.8).
#
#     repeat   the contacts that approach fastest collide, by the law above
#     until    no contact approaches
#
# The others take no part in a single impact. Contacts of equal speed collide at once: the order
# plays no role where the physics are symmetric. A contact with e = 0 does not rebound, and where
# it is the fastest, all those with e = 0 are held at once. Slow approaches that are left end in
# one plastic impact of all contacts: a row of bodies with e < 1 may collide infinitely often in an
# instant.


@kernel
def sequence_of_impacts(law, energy_guard, G, u, mu, restitution, least, room, impulse):
    """Fill the sum of the impulses of a sequence; return (status code, impacts, residual).

    A contact collides where it approaches faster than `least` [m/s]; held ones may go on
    approaching at `room` [m/s], which does not close them; (nc,) each. The other arguments are
    those of `solve_impact`.
    """
    nc, now, colliding = mu.shape[0], u.copy(), np.empty(mu.shape[0], np.int64)
    none, rebounds = np.zeros(nc), restitution if law != PLASTIC else np.zeros(nc)
    code, count, residual, fastest = CONVERGED, 0, 0.0, 0.0
    impulse[:] = 0.0
    for i in range(nc):
        fastest = max(fastest, -u[3 * i + 2])
    slow = LEAST_APPROACH * fastest
    while True:
        elastic = find_fastest(now, rebounds, least, slow, colliding)
        if colliding.sum() == 0:
            break
        if count == MAX_IMPACTS:
            code = TOO_MANY_EVENTS
            break
        shares, left = (rebounds, none) if elastic else (none, room)
        outcome = impact_of_some(law, energy_guard, G, now, mu, shares, left, colliding, impulse)
        count += 1
        code, residual = worse_status(code, outcome[0]), max(residual, outcome[2])
    # the plastic end
    for i in range(nc):
        if now[3 * i + 2] + room[i] < -slow:
            colliding[:] = 1
    if colliding.sum() > 0:
        outcome = impact_of_some(law, energy_guard, G, now, mu, none, room, colliding, impulse)
        count += 1
        code, residual = worse_status(code, outcome[0]), max(residual, outcome[2])
    return code, count, residual


@kernel
def find_fastest(u, restitution, least, slow, colliding):
    """Mark the contacts that collide next, (nc,); return whether they rebound."""
    colliding[:] = 0
    fastest, elastic = 0.0, False
    for i in range(colliding.shape[0]):
        approach = -u[3 * i + 2]
        # a held contact is left at its bound, but for rounding
        bound = least[i] if restitution[i] > 0.0 else least[i] + slow
        if approach > max(bound, slow):
            colliding[i] = 1
            fastest = max(fastest, approach)
    for i in range(colliding.shape[0]):
        if colliding[i] == 1 and -u[3 * i + 2] < (1.0 - SAME_SPEED) * fastest:
            colliding[i] = 0
        elastic = elastic or (colliding[i] == 1 and restitution[i] > 0.0)
    # of those at one speed the ones that rebound are first; the others are held with all e = 0
    for i in range(colliding.shape[0]):
        if elastic and restitution[i] == 0.0:
            colliding[i] = 0
        elif not elastic and fastest > 0.0:
            colliding[i] = 1 if restitution[i] == 0.0 else 0
    return elastic


@kernel
def impact_of_some(law, energy_guard, G, u, mu, restitution, room, colliding, impulse):
    """Add the impulses of an impact of some contacts and change `u`; as `solve_impact`."""
    contact = np.flatnonzero(colliding)
    m, n = 3 * contact.shape[0], u.shape[0]
    block, before, answer = np.empty((m, m)), np.empty(m), np.zeros(m)
    for a in range(m):
        r = 3 * contact[a // 3] + a % 3
        before[a] = u[r] + (room[contact[a // 3]] if a % 3 == 2 else 0.0)
        for b in range(m):
            block[a, b] = G[r, 3 * contact[b // 3] + b % 3]
    outcome = solve_impact(
        law, energy_guard, block, before, mu[contact], restitution[contact], answer
    )
    for a in range(m):
        s = 3 * contact[a // 3] + a % 3
        impulse[s] += answer[a]
        for r in range(n):
            u[r] += G[r, s] * answer[a]
    return outcome


# --- An impact at the state of the arc: the impact map of all closed contacts.
#
# Bilateral rows hold during the impact: their impulses are eliminated, which leaves the contacts
# with G_cc − G_cb G_bb⁻¹ G_bc. So do joint limits that are hit. Dry friction takes no part.


@kernel
def apply_impact(data, arc, law, energy_guard, sequential):
    """Change the velocity by the impact map; return (status code, iterations, residual).

    With `sequential` multiple impacts are a sequence of single ones. Contacts and limits that
    leave are opened; nothing sticks until the modes are chosen. Limits hold as bilateral rows do,
    but those that would pull are released, the worst first.
    """
    # 1 for the bilateral rows and the limits that are touched
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    takes_part, touched = np.zeros(lower.shape[0]), vector(arc, e.INTERVAL_CLOSED)
    for k in range(takes_part.shape[0]):
        limit = is_limit(lower, upper, k) and touched[k] != 0.0
        if limit or is_bilateral(lower, upper, k):
            takes_part[k] = 1.0
    released, outcome = np.zeros(takes_part.shape[0]), (CONVERGED, 0, 0.0)
    impulse = np.zeros(vector(arc, e.U).shape[0])
    for _ in range(2 * takes_part.shape[0] + 1):
        outcome = impact_of_rows(data, arc, takes_part, law, energy_guard, sequential, impulse)
        if not release_limit(data, arc, takes_part, released, impulse):
            break
    store_impact(data, arc, takes_part, impulse)
    apply_arc_impulse(data, arc, impulse)
    return outcome


@kernel
def impact_of_rows(data, arc, takes_part, law, energy_guard, sequential, impulse):
    """Fill the impulses of an impact in which the rows of `takes_part` hold; as `apply_impact`."""
    impulse[:] = 0.0
    na, n = fill_arc_delassus(data, arc, takes_part)
    if n == 0:
        return CONVERGED, 0, 0.0
    constrain_row_delassus(data, n)
    row_of, u, m = integers(data, f.ROW_OF), vector(arc, e.U), 3 * na
    threshold, of_limit = vector(data, f.STABILISATION)[1], vector(data, f.LIMIT_RESTITUTION)
    G, before = square(data, f.DELASSUS, n), np.empty(n)
    for r in range(n):
        before[r] = u[row_of[r]]
    # limits rebound: u⁻ becomes such that rest is −e u⁻
    for r in range(m, n):
        share = of_limit[interval_of(data, na, r - m)]
        if share > 0.0 and abs(before[r]) > threshold:
            before[r] *= 1.0 + share
    # bilateral rows and limits are eliminated from G and u⁻; slow impacts are plastic
    eliminate_bilateral(G, before, m)
    friction, elasticity = vector(data, f.FRICTION), vector(data, f.RESTITUTION)
    mu, restitution = np.empty(na), np.empty(na)
    for c in range(na):
        i = row_of[3 * c] // 3
        mu[c] = friction[i]
        fast = sequential or before[3 * c + 2] < -threshold
        restitution[c] = elasticity[i] if fast else 0.0
    answer, outcome = np.zeros(n), (CONVERGED, 0, 0.0)
    if na > 0 and sequential:
        outcome = sequence_of_impacts(
            law, energy_guard, G[:m, :m], before[:m], mu, restitution, np.full(na, threshold),
            np.zeros(na), answer[:m],
        )  # fmt: skip
    elif na > 0:
        block, u_c = G[:m, :m].copy(), before[:m].copy()
        outcome = solve_impact(law, energy_guard, block, u_c, mu, restitution, answer[:m])
    restore_bilateral(G, before, m, answer)
    for r in range(n):
        impulse[row_of[r]] = answer[r]
    return outcome


@kernel
def release_limit(data, arc, takes_part, released, impulse):
    """Release the limit that pulls most, or add back one that is passed; return True if any."""
    first = impulse.shape[0] - takes_part.shape[0]
    lower, upper = vector(arc, e.LOWER), vector(arc, e.UPPER)
    worst, pull = -1, 0.0
    for k in range(takes_part.shape[0]):
        if takes_part[k] == 1.0 and released[k] == 0.0 and is_limit(lower, upper, k):
            size = -impulse_sign(lower, upper, k) * impulse[first + k]
            if size > pull:
                worst, pull = k, size
    # then those released that the impact would take beyond their limit
    if worst >= 0:
        takes_part[worst], released[worst] = 0.0, 1.0
        return True
    change = velocity_change(data, arc, impulse)
    for k in range(takes_part.shape[0]):
        after = impulse_sign(lower, upper, k) * (vector(arc, e.U)[first + k] + change[first + k])
        if released[k] == 1.0 and takes_part[k] == 0.0 and after < -SEPARATION_SPEED:
            takes_part[k] = 1.0  # and stays
            return True
    return False


@kernel
def velocity_change(data, arc, impulse):
    """Return what impulses (rows,) change the velocities of all rows by, shape (rows,)."""
    v, change = np.zeros(vector(arc, e.ARC_V).shape[0]), np.empty(impulse.shape[0])
    add_response(data, arc, impulse, v)
    fill_arc_velocities(data, arc, v, change)
    return change


@kernel
def eliminate_bilateral(G, u, m):
    """Eliminate the rows from m on, the last one first, from those before them."""
    for b in range(G.shape[0] - 1, m - 1, -1):
        scale = 0.0
        for r in range(G.shape[0]):
            scale = max(scale, G[r, r])
        if G[b, b] <= SMALLEST_PIVOT * scale:
            G[b, b] = 0.0  # follows from the others
            continue
        for r in range(b):
            share = G[r, b] / G[b, b]
            u[r] -= share * u[b]
            for s in range(b):
                G[r, s] -= share * G[b, s]


@kernel
def restore_bilateral(G, u, m, impulse):
    """Fill the impulses of the rows from m on, with u + G λ = 0 in them."""
    for b in range(m, G.shape[0]):
        if G[b, b] > 0.0:
            total = u[b]
            for s in range(b):
                total += G[b, s] * impulse[s]
            impulse[b] = -total / G[b, b]


@kernel
def store_impact(data, arc, takes_part, impulse):
    """Open the contacts and limits that leave; the contacts slip until modes are chosen."""
    u, change, fastest = vector(arc, e.U), velocity_change(data, arc, impulse), 0.0
    closed, mode = vector(arc, e.CLOSED), integers(arc, e.CONTACT_MODE)
    for r in range(u.shape[0]):
        fastest = max(fastest, abs(u[r]))
    # contacts and limits that separate after the impact are open
    leaving = SEPARATION_SPEED * (1.0 + fastest)
    for i in range(closed.shape[0]):
        if closed[i] != 0.0:
            leaves = u[3 * i + 2] + change[3 * i + 2] > leaving
            closed[i] = 0.0 if leaves else 1.0
            mode[i] = OPEN if leaves else SLIP
    lower, upper, first = vector(arc, e.LOWER), vector(arc, e.UPPER), 3 * closed.shape[0]
    interval_closed, interval_mode = vector(arc, e.INTERVAL_CLOSED), integers(arc, e.INTERVAL_MODE)
    for k in range(takes_part.shape[0]):
        if is_limit(lower, upper, k) and interval_closed[k] != 0.0:
            speed = impulse_sign(lower, upper, k) * (u[first + k] + change[first + k])
            interval_closed[k] = 0.0 if speed > leaving else 1.0
            interval_mode[k] = AWAY if speed > leaving else 0
