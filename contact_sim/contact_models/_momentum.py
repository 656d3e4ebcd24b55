"""The integrator `momentum`: bases follow their momentum (theory 2.0).

The momentum after the step is recorded at its start, with where it takes the centre of mass; at q⁺
the base velocity becomes the one with that momentum, in flight also the base position. The
momentum is no state besides q and v: at the start of the next step it is that of q and v.
"""

from __future__ import annotations

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, stage_on_demand, vector
from contact_sim.collision._body_pairs import two_branches
from contact_sim.dynamics._integration import fill_base_twist, fill_next_momentum
from contact_sim.dynamics._vectors import add, put, quaternion_axes, rotated, sub, vec
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import has_bilateral
from contact_sim.step._contact_rows import (
    NONE,
    contact_branches,
    first_contact,
    island_of,
    next_contact,
)
from contact_sim.step._inertia import base_matrix


@stage_on_demand
def record_momentum(data):
    """Fill the momentum and the motion of the centre of mass of each free base, up to q⁺."""
    flyers, dof_parent = integers(data, f.FREE_FLYER_V), integers(data, f.DOF_PARENT)
    carried, end = matrix(data, f.CARRIED), integers(data, f.FLYER_END)
    motion = (
        vector(data, f.V_START), vector(data, f.V_NEXT), vector(data, f.TRANSPORT),
        vector(data, f.DISPLACEMENT),
    )  # fmt: skip
    forces = vector(data, f.NONLINEAR_EFFECTS), vector(data, f.GRAVITY)
    q_index, q = integers(data, f.FREE_FLYER_Q), vector(data, f.Q)
    columns = matrix(data, f.COLUMNS)
    for k in range(flyers.shape[0]):
        i = flyers[k]
        if dof_parent[i] < 0:
            M, first = base_matrix(data, i, end[k])
            fill_next_momentum(
                M, vector(data, f.ARMATURE), columns, (i, end[k], first), motion,
                forces, vector(data, f.TIME_STEP)[0], is_in_flight(data, i), carried[k],
            )  # fmt: skip
            # the projection onto h(q) = 0 will move the base: the centre of mass from the origin
            if has_bilateral(data):
                x, y, z = vec(columns[i], 0), vec(columns[i + 1], 0), vec(columns[i + 2], 0)
                base = add(vec(q, q_index[k]), rotated(x, y, z, vec(motion[3], i)))
                put(carried[k], 6, add(vec(carried[k], 6), base))


@kernel
def apply_momentum(data):
    """Fill the velocities of the bases at q⁺, move those in flight; return True if any moved."""
    flyers, dof_parent = integers(data, f.FREE_FLYER_V), integers(data, f.DOF_PARENT)
    q_index, q = integers(data, f.FREE_FLYER_Q), vector(data, f.Q)
    carried, moved, end = matrix(data, f.CARRIED), False, integers(data, f.FLYER_END)
    for k in range(flyers.shape[0]):
        if dof_parent[flyers[k]] < 0:
            flying = is_in_flight(data, flyers[k])
            if has_bilateral(data):
                put(carried[k], 6, sub(vec(carried[k], 6), vec(q, q_index[k])))
            M, first = base_matrix(data, flyers[k], end[k])
            shift = fill_base_twist(
                M, vector(data, f.ARMATURE), matrix(data, f.COLUMNS), (flyers[k], end[k], first),
                carried[k], flying, vector(data, f.V),
            )  # fmt: skip
            x, y, z = quaternion_axes(q, q_index[k] + 3)
            put(q, q_index[k], add(vec(q, q_index[k]), rotated(x, y, z, shift)))
            moved = moved or flying
    return moved


@kernel
def is_in_flight(data, base):
    """Return True if no contact of the robot on the base at this dof took part in the problem."""
    active, (leaf_dof, feature, pairs, _) = vector(data, f.ACTIVE), contact_branches(data)
    dof_parent = integers(data, f.DOF_PARENT)
    i = first_contact(data, island_of(data, base))
    while i != NONE:
        if active[i] > 0.0 and i < leaf_dof.shape[0]:
            if is_on_tree(base, leaf_dof[i], dof_parent):
                return False
        elif active[i] > 0.0:
            first, second, _ = two_branches(pairs, feature[i])
            if is_on_tree(base, first, dof_parent) or is_on_tree(base, second, dof_parent):
                return False
        i = next_contact(data, i)
    return True


@kernel
def is_on_tree(base, dof, dof_parent):
    """Return whether a dof is on the tree of the base at the dof `base`."""
    while dof > base:
        dof = dof_parent[dof]
    return dof == base
