"""Rows of the contact problem: velocities, bias, bounds, and selection of active rows.

Rows are (t1, t2, n) of every contact, then one interval row each for dry friction of joints,
moments of contacts (_moment_rows.py) and limits of joints (theory 0, 4.3). Only rows that could
carry an impulse take part. The selection is exact: after the solve every contact left out is
checked (`apply_impulses` in contact_models/_stages.py), and the problem is solved again with those
that would have closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from contact_sim._types import Indices
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import front, integers, matrix, square, vector
from contact_sim.collision._body_pairs import add_pair_impulse, pair_velocity, two_branches
from contact_sim.collision._contact_slots import NO_FEATURE, any_kept
from contact_sim.solvers._cone_problem import IMMOVABLE, MAX_ITERATIONS, ConeWork, Rows
from contact_sim.solvers._delassus import EVERYWHERE
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import NewtonWork
from contact_sim.solvers._springs import SpringWork
from contact_sim.step._tree_newton import WITH_DAMPING, tree_solver

ALL_ISLANDS = -1
"""Stands for the rows of all islands."""
NONE = -1
"""End of a list of rows of an island."""
ACTIVE, DEGENERATE = 1.0, -1.0
"""Values of the field `active`; 0 is a contact out of reach."""
DEGENERATE_RATIO = 1e-6
"""Length of the normal row, beside the tangential ones, up to which it counts as zero."""
ROUNDING = 1e-12
"""The same beside the speeds of the columns that it is made of."""


# --- Velocities u = J v and generalized impulses Jᵀ λ, along the branches of the tree.


@kernel
def row_velocities(jacobian_transposed, contacts, intervals, dof_parent, v, u):
    """Fill u = J v, rows (t1, t2, n) per contact, then the interval rows, along their branches.

    Rows of contacts that are not in use stay as they are.

    `contacts` is (leaf_dof, feature, pairs, last): last dof of the joint that carries each contact
    point; what each slot holds, (nc,); the branches of each pair (collision/_body_pairs.py); how
    many contacts may be in use, see `in_use`.
    `intervals` are the last dof of every interval row, EVERYWHERE if it has entries on several
    branches, and the dof at which its entries have ended, (ns,) each.
    """
    (leaf_dof, feature, pairs, last), (interval_dof, interval_end) = contacts, intervals
    nc = feature.shape[0]
    # ground contacts: from the leaf of the branch to the root
    for i in range(leaf_dof.shape[0]):
        # rows of an empty slot are zero
        k, r = leaf_dof[i] if feature[i] != NO_FEATURE else -1, 3 * i
        a = b = c = 0.0
        while k >= 0:
            speed = v[k]
            a += jacobian_transposed[k, r] * speed
            b += jacobian_transposed[k, r + 1] * speed
            c += jacobian_transposed[k, r + 2] * speed
            k = dof_parent[k]
        u[r], u[r + 1], u[r + 2] = a, b, c
    # body contacts: both branches, down to the dof where they meet
    for i in range(leaf_dof.shape[0], last):
        branches = two_branches(pairs, feature[i])
        u[3 * i], u[3 * i + 1], u[3 * i + 2] = pair_velocity(
            jacobian_transposed, branches, dof_parent, v, 3 * i
        )
    # interval rows: the dofs of one branch, or all
    for s in range(interval_dof.shape[0]):
        k, total = last_dof(interval_dof[s], dof_parent), 0.0
        while k > interval_end[s]:
            total += jacobian_transposed[k, 3 * nc + s] * v[k]
            k = k - 1 if interval_dof[s] == EVERYWHERE else dof_parent[k]
        u[3 * nc + s] = total


@kernel
def generalized_impulse(jacobian_transposed, contacts, intervals, dof_parent, impulse, out):
    """Fill out = Jᵀ λ, shape (nv,); arguments as in `row_velocities`, λ in place of u."""
    (leaf_dof, feature, pairs, last), (interval_dof, interval_end) = contacts, intervals
    nc = feature.shape[0]
    for k in range(out.shape[0]):
        out[k] = 0.0
    # ground contacts
    for i in range(leaf_dof.shape[0]):
        k, r = leaf_dof[i], 3 * i
        a, b, c = impulse[r], impulse[r + 1], impulse[r + 2]
        if a == 0.0 and b == 0.0 and c == 0.0:
            continue
        while k >= 0:
            out[k] += (
                jacobian_transposed[k, r] * a
                + jacobian_transposed[k, r + 1] * b
                + jacobian_transposed[k, r + 2] * c
            )
            k = dof_parent[k]
    # body contacts
    for i in range(leaf_dof.shape[0], last):
        r = 3 * i
        if impulse[r] == 0.0 and impulse[r + 1] == 0.0 and impulse[r + 2] == 0.0:
            continue
        a, b, meet = two_branches(pairs, feature[i])
        add_pair_impulse(jacobian_transposed, (a, meet), dof_parent, impulse, i, out)
        add_pair_impulse(jacobian_transposed, (b, meet), dof_parent, impulse, i, out)
    # interval rows
    for s in range(interval_dof.shape[0]):
        x = impulse[3 * nc + s]
        if x == 0.0:
            continue
        k = last_dof(interval_dof[s], dof_parent)
        while k > interval_end[s]:
            out[k] += jacobian_transposed[k, 3 * nc + s] * x
            k = k - 1 if interval_dof[s] == EVERYWHERE else dof_parent[k]


@kernel
def last_dof(leaf, dof_parent):
    """Return the last dof in which a row whose branch ends at `leaf` may have an entry."""
    return dof_parent.shape[0] - 1 if leaf == EVERYWHERE else leaf


# --- The bias b of contact rows, the same for every time-stepping model (theory 0).
#
#     φ > 0   b_n = φ/h           no force before closure
#     φ ≤ 0   b_n = β φ/h         Baumgarte share β of the penetration is taken out in one step
#     impact  b_n = e u_n⁻        (+ β φ/h if φ ≤ 0) makes the law ask for u_n⁺ = −e u_n⁻
#
# Restitution acts on a contact that was open (no impulse in the step before), closes in this step,
# and approaches faster than a threshold. There the gap term φ/h is left out: with both terms the
# law would ask for u_n⁺ = −e u_n⁻ − φ/h, which depends on where the step happens to end.


@kernel
def gap_bias(gap, h, baumgarte):
    """Return φ/h before closure, β φ/h after it [m/s]."""
    return gap / h if gap > 0.0 else baumgarte * gap / h


@kernel
def fill_contact_bias(gap, u_start, u_free, impulse, h, restitution, settings, bias, rebound):
    """Fill b [m/s] without restitution and, apart, the restitution part e u_n⁻ [m/s], (nc,).

    `u_start` and `u_free` are contact velocities before the step, and after it without contact;
    `impulse` is that of the step before; `settings` are β [-] and the approach speed below which
    impacts are plastic [m/s].
    """
    for i in range(gap.shape[0]):
        n = 3 * i + 2
        bias[n - 2] = bias[n - 1] = rebound[i] = 0.0
        if restitution[i] > 0.0:
            # impact: the contact was open, closes, and approaches fast; e u_n⁻ is kept apart for
            # the energy guard, and the gap term counts only behind the surface
            closes = gap[i] + h * u_free[n] < 0.0
            if closes and impulse[n] == 0.0 and u_start[n] < -settings[1]:
                rebound[i] = restitution[i] * u_start[n]
                bias[n] = min(settings[0] * gap[i] / h, 0.0)
                continue
        bias[n] = gap_bias(gap[i], h, settings[0])


# --- Interval rows on positions: joint limits, and those of sums over two joints (theory 4.3).
#
# The value of a row is p = Σ share q over one or two joints, bounded by [lower, upper]. One row
# serves both ends, for the joint can be at one of them only: its set and its gap are those of the
# nearer end.
#
#     nearer to lower    λ ∈ [0, ∞)      φ = p − lower
#     nearer to upper    λ ∈ (−∞, 0]     φ = p − upper
#     lower = upper      λ ∈ (−∞, ∞)     φ = p − lower      a locked joint
#
# φ points inwards at one end and outwards at the other; the distance to go is |φ| while p is
# inside. Limits take part in a step as contacts do: where they are in reach of the law.


@kernel
def fill_limits(q, q_index, q_other, share, bounds, lower, upper, gap):
    """Fill the sets and gaps of the last rows of `lower`, `upper` and `gap`, (ns,) each.

    `q_index` and `q_other` are the coordinates of the two joints of each row, (n,); `share` the
    share of each, 0 for a second that is not there; `bounds` those of p [rad or m]; (n, 2).
    """
    first = gap.shape[0] - q_index.shape[0]
    for i in range(q_index.shape[0]):
        k = first + i
        value = share[i, 0] * q[q_index[i]] + share[i, 1] * q[q_other[i]]
        low, high = bounds[i, 0], bounds[i, 1]
        at_lower = value - low <= high - value
        gap[k] = value - low if at_lower else value - high
        lower[k] = 0.0 if at_lower and low != high else -np.inf
        upper[k] = np.inf if at_lower else 0.0


@kernel
def impulse_sign(lower, upper, k):
    """Return the sign of the impulses of interval row k: ±1 for a limit, 0 for both signs."""
    if lower[k] < 0.0 < upper[k]:
        return 0.0
    return 1.0 if upper[k] > 0.0 else -1.0


@kernel
def limit_in_reach(distance, speed, reach):
    """Return whether the law may act on a limit `distance` ahead [rad or m], at `speed` off it."""
    return distance <= reach[3] or distance + reach[0] * speed <= 0.0


@kernel
def limit_bias(distance, speeds, h, restitution, settings):
    """Return b of a limit along its push [m/s, rad/s], by the rules of a normal row.

    `distance` is the way to go at the start [rad or m]; `speeds` are those off the limit before
    the step, and without impulses; `restitution` is 0 for a limit that carried an impulse before.
    The rebound of a limit is in b, and under no energy guard.
    """
    # u⁻ and u_f along the push; an impact asks for −e u⁻, as in `fill_contact_bias`
    start, free = speeds
    if restitution > 0.0 and distance + h * free < 0.0 and start < -settings[1]:
        return restitution * start + min(settings[0] * distance / h, 0.0)
    return gap_bias(distance, h, settings[0])


# --- Which rows take part. The reach of a law is (T, κ, margin, that of limits): T = h, κ = 0
#     if it needs no force at a distance.


@kernel
def predicted_gap(gap, u, i, mu, reach):
    """Return φ + T (u_n − κ μ |u_t|) of contact `i`: negative where the law may act on it."""
    slip = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
    return gap[i] + reach[0] * (u[3 * i + 2] - reach[1] * mu[i] * slip)


@kernel
def select_active(gap, u_free, impulse, mu, reach, active):
    """Mark the contacts in the margin, in reach of the law, or that carried an impulse before."""
    for i in range(gap.shape[0]):
        near = gap[i] <= reach[2] or predicted_gap(gap, u_free, i, mu, reach) <= 0.0
        active[i] = 1.0 if near or impulse[3 * i + 2] > 0.0 else 0.0


@kernel
def collect_rows(active, interval_active, contacts, interval_dof, island, row_of, row_leaf):
    """List the rows of the active contacts, then those of the active intervals.

    `island` is the lists of `list_islands`, and the island whose rows are listed, or ALL_ISLANDS.
    `row_of` becomes the row of the step data behind each problem row, `row_leaf` its last dof,
    EVERYWHERE where it has entries on two branches. Returns the numbers of active contacts and of
    problem rows.
    """
    first, following, chosen = island
    nc, n, (leaf_dof, feature, pairs, last) = active.shape[0], 0, contacts
    # one of several islands has its lists; so the cost does not grow with all the others
    listed, islands = chosen != ALL_ISLANDS and first.shape[0] > 2, first.shape[0] // 2
    i = first[chosen] if listed else 0
    while 0 <= i < last:
        if active[i] > 0.0:
            leaf = leaf_dof[i] if i < leaf_dof.shape[0] else last_dof_of_pair(pairs, feature[i])
            for row in range(3):
                row_of[n + row] = 3 * i + row
                row_leaf[n + row] = leaf
            n += 3
        i = following[i] if listed else i + 1
    # interval rows stand behind those of the contacts
    na = n // 3
    k = first[islands + chosen] if listed else 0
    while 0 <= k < interval_active.shape[0]:
        if interval_active[k] != 0.0:
            row_of[n] = 3 * nc + k
            row_leaf[n] = interval_dof[k]
            n += 1
        k = following[nc + k] if listed else k + 1
    return na, n


@kernel
def last_dof_of_pair(pairs, feature):
    """Return the last dof of the branch with the rows of a pair, EVERYWHERE if they have two."""
    a, b, meeting = two_branches(pairs, feature)
    # the ground has no branch, and of two bodies on one branch that of the other is a part of it
    if min(a, b) == meeting:
        return max(a, b)
    return EVERYWHERE


# --- Degenerate contacts: no motion of the robot changes their normal velocity (theory 4.3).
#
# Such a contact is on a body that does not move, on the axis of its only joint, or can slide but
# not press. Its normal row of J is zero: u_n does not depend on the normal impulse, so no law
# determines one, nor the friction that goes with it. λ = 0 obeys the laws while the gap is not
# negative; inside the ground nothing helps, and the status of the step is IMMOVABLE.


@kernel
def exclude_degenerate(data):
    """Mark the active contacts as DEGENERATE whose normal velocity nothing can change."""
    active = vector(data, f.ACTIVE)
    for i in range(contact_branches(data)[3]):
        if active[i] > 0.0:
            active[i] = activity_of(data, i)


@kernel
def activity_of(data, i):
    """Return ACTIVE for contact i of the step, DEGENERATE where its normal row is zero."""
    leaf_dof, feature, pairs, _ = contact_branches(data)
    floats, on_ground = integers(data, f.FLOATS), i < leaf_dof.shape[0]
    if on_ground and leaf_dof[i] >= 0 and floats[leaf_dof[i]]:
        return ACTIVE  # a free base moves it in every direction
    if on_ground:
        normal, other = normal_row_norms(data, i, squared_lever(data, i), leaf_dof[i], -1)
    else:
        a, b, meet = two_branches(pairs, feature[i])
        if b < 0 <= a and floats[a]:
            return ACTIVE  # on the ground, or a body that does not move
        lever = squared_lever(data, i)
        first = normal_row_norms(data, i, lever, a, meet)
        second = normal_row_norms(data, i, lever, b, meet)
        normal, other = first[0] + second[0], first[1] + second[1]
    return ACTIVE if normal > other else DEGENERATE


@kernel
def squared_lever(data, i):
    """Return the squared distance of contact i from the reference point of the columns [m²]."""
    place, origin = matrix(data, f.POSITION_START), vector(data, f.ORIGIN)
    lever = 0.0
    for a in range(3):
        lever += (place[i, a] - origin[a]) ** 2
    return lever


@kernel
def normal_row_norms(data, i, lever, last, end):
    """Return |J_n|² of contact i along a branch, and up to which |J_n|² counts as zero.

    `lever` is the squared distance of the contact from the reference point of the columns [m²],
    `last` the last dof of the branch, `end` the dof behind its end. A locked dof does not count.
    """
    rows, columns = matrix(data, f.JACOBIAN_TRANSPOSED), matrix(data, f.COLUMNS)
    dof_parent, held = integers(data, f.DOF_PARENT), integers(data, f.HELD)
    normal = tangential = speed = 0.0
    k = last
    while k > end:
        if held[k] == 0:
            normal += rows[k, 3 * i + 2] ** 2
            tangential += rows[k, 3 * i] ** 2 + rows[k, 3 * i + 1] ** 2
            for a in range(3):
                speed += columns[k, a] ** 2 + lever * columns[k, a + 3] ** 2
        k = dof_parent[k]
    return normal, DEGENERATE_RATIO**2 * tangential + ROUNDING**2 * speed


@kernel
def status_with_degenerate(data, code):
    """Return the status `code`, or IMMOVABLE where a degenerate contact is in the ground."""
    active, gap = vector(data, f.ACTIVE), vector(data, f.GAP_START)
    for i in range(contact_branches(data)[3]):
        # a status of a solve that failed, or of a stance, stays
        if active[i] == DEGENERATE and gap[i] <= 0.0 and code < MAX_ITERATIONS:
            return float(IMMOVABLE)
    return float(code)


# --- Islands: parts of the contact problem that have no degree of freedom in common.
#
# The mass matrix of several trees is block diagonal, and so is G, unless a row acts on two of
# them. Each island is a contact problem of its own, and the cost grows with their number, not with
# its third power.


def islands_of(parent: Indices, ties: Iterable[Sequence[int]] = ()) -> Indices:
    """Return the island of every dof, numbered from 0 in the order of their first dofs, (nv,).

    `parent` is the dof before each, −1 at the root; `ties` are dofs on which one row acts.
    """
    label = np.arange(len(parent))
    for k in range(len(parent)):
        if parent[k] >= 0:
            label[k] = label[parent[k]]
    for dofs in ties:
        least = label[list(dofs)].min()
        label[np.isin(label, label[list(dofs)])] = least
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


@kernel
def list_islands(data):
    """Fill the lists of the contacts in use, and of the interval rows, of several islands.

    `island_first` is the first contact of each island, then its first interval row, NONE without;
    `island_next` the next contact of the same island behind each, then the next interval row.
    """
    first, following = integers(data, f.ISLAND_FIRST), integers(data, f.ISLAND_NEXT)
    of_contact, of_interval = integers(data, f.CONTACT_ISLAND), integers(data, f.INTERVAL_ISLAND)
    nc, islands = of_contact.shape[0], first.shape[0] // 2
    for i in range(first.shape[0]):
        first[i] = NONE
    # from the last one on, so that the lists ascend
    for i in range(contact_branches(data)[3] - 1, -1, -1):
        following[i] = first[of_contact[i]]
        first[of_contact[i]] = i
    for k in range(of_interval.shape[0] - 1, -1, -1):
        following[nc + k] = first[islands + of_interval[k]]
        first[islands + of_interval[k]] = k


@kernel
def rows_on(data, island):
    """Return the lists of islands and one of them, or ALL_ISLANDS, see `collect_rows`."""
    return integers(data, f.ISLAND_FIRST), integers(data, f.ISLAND_NEXT), island


@kernel
def first_contact(data, island):
    """Return the first contact of an island that may be in use, or NONE."""
    first = integers(data, f.ISLAND_FIRST)
    if first.shape[0] > 2:
        return first[island]
    return 0 if contact_branches(data)[3] > 0 else NONE


@kernel
def next_contact(data, i):
    """Return the next contact of the island of contact i, or NONE."""
    if integers(data, f.ISLAND_FIRST).shape[0] > 2:
        return integers(data, f.ISLAND_NEXT)[i]
    return i + 1 if i + 1 < contact_branches(data)[3] else NONE


@kernel
def island_of(data, dof):
    """Return the island of a dof in this step, contacts between bodies included."""
    island, contacts = integers(data, f.DOF_ISLAND)[dof], contact_branches(data)
    if integers(data, f.ISLAND_WAITS).shape[0] > 1 and contacts[1].shape[0] > contacts[0].shape[0]:
        return integers(data, f.JOINED_ISLAND)[island]
    return island


# --- Views of the arrays of a step, as kernels and solvers take them.


@kernel
def first_moment(data):
    """Return the first interval row of the moments of contacts, or of limits without any."""
    limits = integers(data, f.LIMIT_Q).shape[0]
    moments = 3 * vector(data, f.TORSIONAL_FRICTION).shape[0]
    return vector(data, f.LOWER).shape[0] - limits - moments


@kernel
def interval_branches(data):
    """Return where the entries of the interval rows begin and end, see `row_velocities`."""
    return integers(data, f.INTERVAL_DOF), integers(data, f.INTERVAL_END)


@kernel
def contact_branches(data):
    """Return on which branches the rows of the contacts of a step have entries."""
    return (
        integers(data, f.LEAF_DOF), vector(data, f.FEATURE_START), integers(data, f.PAIRS),
        integers(data, f.IN_USE)[0],
    )  # fmt: skip


@kernel
def note_in_use(data):
    """Note how many contacts of the start of the step may be in use."""
    leaf_dof, feature = integers(data, f.LEAF_DOF), vector(data, f.FEATURE_START)
    integers(data, f.IN_USE)[0] = in_use(leaf_dof, feature)


@kernel
def branches_with(data, feature):
    """Return the same for the features in the slots at another instant, (nc,)."""
    leaf_dof = integers(data, f.LEAF_DOF)
    return leaf_dof, feature, integers(data, f.PAIRS), in_use(leaf_dof, feature)


@kernel
def in_use(leaf_dof, feature):
    """Return one past the last contact in use: behind it all slots of pairs are empty."""
    first, last = leaf_dof.shape[0], feature.shape[0]
    if not any_kept(first, feature):
        return first
    while last > first and feature[last - 1] == NO_FEATURE:
        last -= 1
    return last


@kernel
def tree_of(data):
    """Return the tree of the dofs, see solvers/_delassus.py."""
    return integers(data, f.DOF_PARENT), integers(data, f.LIMB), integers(data, f.ROOTED)[0]


@kernel
def rows_of(data):
    """Return the active rows: G, g = u_f + b, μ and the bounds."""
    counts = integers(data, f.COUNTS)
    na, n = counts[0], counts[1]
    return Rows(
        square(data, f.DELASSUS, n), vector(data, f.G)[:n], vector(data, f.ROW_FRICTION)[:na],
        vector(data, f.ROW_LOWER)[: n - 3 * na], vector(data, f.ROW_UPPER)[: n - 3 * na],
    )  # fmt: skip


@kernel
def unbiased_rows_of(data):
    """Return the active rows with u_f in place of g, for laws with a bias of their own."""
    rows = rows_of(data)
    free = vector(data, f.ROW_FREE)[: rows.g.shape[0]]
    return Rows(rows.delassus, free, rows.friction, rows.lower, rows.upper)


@kernel
def cone_work_of(data):
    """Return the scratch of the solvers for the active rows."""
    n, work = integers(data, f.COUNTS)[1], matrix(data, f.CONE_WORK)
    return ConeWork(
        work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7],
        square(data, f.NEWTON_MATRIX, n), integers(data, f.MODE), integers(data, f.MODE_ROW),
    )  # fmt: skip


@kernel
def newton_work_of(data, which):
    """Return the scratch of solvers/_soft_newton.py, in the same arrays.

    `which`: the matrix of steps along the tree, see step/_tree_newton.py.
    """
    n, law = integers(data, f.COUNTS)[1], matrix(data, f.LAW_VECTORS)
    work = matrix(data, f.CONE_WORK)
    return NewtonWork(
        work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7], law[2],
        square(data, f.NEWTON_MATRIX, n), integers(data, f.MODE_ROW), law[3], law[4], law[5],
        front(data, f.NEWTON_MATRIX, n, 3), tree_solver(data, which, (2, 3, 4, 5)),
    )  # fmt: skip


@kernel
def spring_work_of(data):
    """Return the scratch of solvers/_springs.py, in the same arrays."""
    n, work = integers(data, f.COUNTS)[1], matrix(data, f.CONE_WORK)
    return SpringWork(
        work[0], work[1], work[2], work[3], work[4], work[5], work[6],
        front(data, f.LAW_VECTORS, n, 3), square(data, f.NEWTON_MATRIX, n),
        integers(data, f.MODE_ROW), work[7], front(data, f.NEWTON_MATRIX, n, 3),
        tree_solver(data, WITH_DAMPING, (4, 6, 5, 2)),
    )  # fmt: skip
