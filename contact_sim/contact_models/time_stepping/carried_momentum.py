"""The stages of a step under the integrator `momentum`, around the motion of q (theory 2.0).

    carry     momentum after the step and where it takes the centre of mass, at the start
    follow    base velocity with that momentum at q⁺; in flight also the base position

The momentum is no state besides q and v: at the start of the next step it is that of q and v.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.collision.pair_rows import two_branches
from contact_sim.contact.problem_views import contact_branches
from contact_sim.dynamics.momentum import carry_momentum, follow_momentum
from contact_sim.dynamics.vectors import add, put, quaternion_axes, rotated, vec
from contact_sim.solvers.jit import kernel


@kernel
def carry(data):
    """Fill what the free-flying bases carry to q⁺."""
    flyers, dof_parent = integers(data, f.FREE_FLYER_V), integers(data, f.DOF_PARENT)
    carried = matrix(data, f.CARRIED)
    motion = (
        vector(data, f.V_START), vector(data, f.V_NEXT), vector(data, f.TRANSPORT),
        vector(data, f.DISPLACEMENT),
    )  # fmt: skip
    forces = vector(data, f.NONLINEAR_EFFECTS), vector(data, f.GRAVITY)
    for k in range(flyers.shape[0]):
        if dof_parent[flyers[k]] < 0:
            carry_momentum(
                matrix(data, f.MASS_MATRIX), vector(data, f.ARMATURE), matrix(data, f.COLUMNS),
                flyers[k], motion, forces, vector(data, f.TIME_STEP)[0], flies(data, flyers[k]),
                carried[k],
            )  # fmt: skip


@kernel
def follow(data):
    """Fill the velocities of the bases at q⁺, move those in flight; return True if any moved."""
    flyers, dof_parent = integers(data, f.FREE_FLYER_V), integers(data, f.DOF_PARENT)
    place, q = integers(data, f.FREE_FLYER_Q), vector(data, f.Q)
    carried, moved = matrix(data, f.CARRIED), False
    for k in range(flyers.shape[0]):
        if dof_parent[flyers[k]] < 0:
            flying = flies(data, flyers[k])
            shift = follow_momentum(
                matrix(data, f.MASS_MATRIX), vector(data, f.ARMATURE), matrix(data, f.COLUMNS),
                flyers[k], carried[k], flying, vector(data, f.V),
            )  # fmt: skip
            x, y, z = quaternion_axes(q, place[k] + 3)
            put(q, place[k], add(vec(q, place[k]), rotated(x, y, z, shift)))
            moved = moved or flying
    return moved


@kernel
def flies(data, base):
    """Return True if no contact of the robot on the base at this dof took part in the problem."""
    active, (leaf_dof, feature, pairs) = vector(data, f.ACTIVE), contact_branches(data)
    dof_parent = integers(data, f.DOF_PARENT)
    for i in range(active.shape[0]):
        if active[i] > 0.0 and i < leaf_dof.shape[0]:
            if carries(base, leaf_dof[i], dof_parent):
                return False
        elif active[i] > 0.0:
            first, second, _ = two_branches(pairs, feature[i])
            if carries(base, first, dof_parent) or carries(base, second, dof_parent):
                return False
    return True


@kernel
def carries(base, dof, dof_parent):
    """Return whether a dof is on the tree of the base at the dof `base`."""
    while dof > base:
        dof = dof_parent[dof]
    return dof == base
