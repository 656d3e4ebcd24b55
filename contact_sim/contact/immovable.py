"""Contacts whose normal velocity no motion of the robot can change: they take no part in a step.

Such a contact is on a body that does not move, on the axis of its only joint, or can slide but not
press. Its normal row of J is zero: u_n is the same whatever the normal impulse, so no law can tell
one, nor the friction that goes with it. λ = 0 obeys the laws while the gap is not negative; in the
ground nothing helps, and the step says so (theory 4.3).
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.collision.pair_rows import two_branches
from contact_sim.contact.problem_views import contact_branches
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.status import IMMOVABLE, MAX_ITERATIONS

TAKES_PART, LEFT_OUT = 1.0, -1.0
"""Values of the field `active`, besides 0 of contacts out of reach."""
SMALLEST_SHARE = 1e-6
"""Length of the normal row, beside the tangential ones, up to which it counts as zero."""
ROUNDING = 1e-12
"""The same beside the speeds of the columns that it is made of."""


@kernel
def leave_out_immovable(data):
    """Leave the contacts out of the problem that are active and cannot be moved."""
    active = vector(data, f.ACTIVE)
    for i in range(active.shape[0]):
        if active[i] > 0.0:
            active[i] = part_of(data, i)


@kernel
def part_of(data, i):
    """Return TAKES_PART for contact i of the step, LEFT_OUT where its normal row is zero."""
    leaf_dof, feature, pairs = contact_branches(data)
    floats, on_ground = integers(data, f.FLOATS), i < leaf_dof.shape[0]
    if on_ground and leaf_dof[i] >= 0 and floats[leaf_dof[i]]:
        return TAKES_PART  # a free base moves it in every direction
    place, origin = matrix(data, f.POSITION_START), vector(data, f.ORIGIN)
    lever = 0.0
    for a in range(3):
        lever += (place[i, a] - origin[a]) ** 2
    if on_ground:
        normal, other = row_sizes(data, i, lever, leaf_dof[i], -1)
    else:
        a, b, meet = two_branches(pairs, feature[i])
        first, second = row_sizes(data, i, lever, a, meet), row_sizes(data, i, lever, b, meet)
        normal, other = first[0] + second[0], first[1] + second[1]
    return TAKES_PART if normal > other else LEFT_OUT


@kernel
def row_sizes(data, i, lever, last, end):
    """Return |J_n|² of contact i along a branch, and up to which |J_n|² counts as zero.

    A dof that is held counts for nothing.

    Args:
        data: arrays of the step.
        i: contact.
        lever: squared distance of the contact from the reference point of the columns [m²].
        last: last dof of the branch.
        end: dof behind its end.
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
    return normal, SMALLEST_SHARE**2 * tangential + ROUNDING**2 * speed


@kernel
def with_left_out(data, code):
    """Return the status `code` of a step, IMMOVABLE where a contact left out is in the ground.

    A status of a solve that failed, or of a stance, stays.
    """
    active, gap = vector(data, f.ACTIVE), vector(data, f.GAP_START)
    for i in range(active.shape[0]):
        if active[i] == LEFT_OUT and gap[i] <= 0.0 and code < MAX_ITERATIONS:
            return float(IMMOVABLE)
    return float(code)
