"""The stages of one time step, shared by all time-stepping models; they differ only in `solve`.

    actuate           τ from commands, or from joint PD, through the actuators
    free_motion       v_f = v + h M̂⁻¹ (τ − nle)
    contact_rows      J, u_f = J v_f, b, active blocks
    next_problem      G = J M̂⁻¹ Jᵀ, g = u_f + b of the active blocks of an island
    solve_<law>       λ = law(G, g, μ, ...), in the file of the law
    apply_impulses    v⁺ = v_f + M̂⁻¹ Jᵀ λ, or back to next_problem
    integrate         q⁺ = q ⊕ h v⁺, and v there
    place_and_detect  placements, M and contact points of the new configuration    (theory 2)

The last one belongs to a configuration and is done where that changes, at the end of a step: the
report shows the contacts there, and the next step begins with them. Every stage takes its views by
name from the arrays of the step (arrays/fields.py) and calls kernels with explicit arguments.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import frames, integers, matrix, vector
from contact_sim.collision.detect import contact_rows as fill_contact_rows
from contact_sim.collision.detect import detect
from contact_sim.collision.keys import carry_over
from contact_sim.collision.pool import CONTACTS
from contact_sim.contact.active_rows import (
    generalized_impulse,
    row_velocities,
    select_active,
    within_reach,
)
from contact_sim.contact.bias import fill_contact_bias
from contact_sim.contact.bilateral import (
    constrain_velocity,
    has_bilateral,
    project_positions,
    start_bilateral,
)
from contact_sim.contact.contact_values import describe_contacts
from contact_sim.contact.ground import fill_ground_coefficients, ground_of
from contact_sim.contact.immovable import leave_out_immovable, part_of
from contact_sim.contact.pair_contacts import find_pair_contacts, pair_contact_rows
from contact_sim.contact.problem_views import contact_branches, interval_branches, tree_of
from contact_sim.contact_models.time_stepping.actuation import (
    NOT_FINITE,
    READY,
    actuate,
    remember_command,
)
from contact_sim.contact_models.time_stepping.carried_momentum import carry, follow
from contact_sim.contact_models.time_stepping.energy_guard import guard_energy, start_guard
from contact_sim.contact_models.time_stepping.interval_rows import (
    activate_limits,
    interval_rows,
)
from contact_sim.contact_models.time_stepping.islands import (
    any_island_waits,
    join_islands,
    leave_out_inactive,
    start_islands,
)
from contact_sim.contact_models.time_stepping.turning import note_turning
from contact_sim.dynamics.bias_forces import bias_forces
from contact_sim.dynamics.energy import kinetic_energy, mass_moment
from contact_sim.dynamics.free_motion import fill_free_velocity, implicit_inertia
from contact_sim.dynamics.integrate import move, velocity_in_new_axes
from contact_sim.dynamics.integrators import MOMENTUM
from contact_sim.dynamics.kinematics import place, world_inertia
from contact_sim.dynamics.mass_matrix import mass_matrix
from contact_sim.numbers import LARGEST
from contact_sim.solvers.dense import assign
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import factorise, solve

# ---------------------------------------------------------------- configuration


@kernel
def place_and_detect(data):
    """Fill what belongs to the present q: placements, M, and the contact points."""
    if integers(data, f.TERMS_GIVEN)[0] == 0:
        place_bodies(data, vector(data, f.Q))
    describe_configuration(data)


@kernel
def describe_configuration(data):
    """Fill energies and contact points of the bodies where they are placed."""
    energy = vector(data, f.ENERGY)
    mass_moment(matrix(data, f.WORLD_INERTIA), vector(data, f.ORIGIN), energy[1:])
    energy[0] = kinetic_energy(
        matrix(data, f.MASS_MATRIX), integers(data, f.DOF_PARENT), vector(data, f.V)
    )
    detect(
        ground_of(data), matrix(data, f.POSE), integers(data, f.CANDIDATE_BODY),
        matrix(data, f.OFFSET), vector(data, f.RADIUS),
        matrix(data, f.POSITION), frames(data, f.FRAME), vector(data, f.GAP),
        vector(data, f.FEATURE),
    )  # fmt: skip
    find_pair_contacts(data)


@kernel
def place_bodies(data, q):
    """Fill placements, joint columns, inertias in world axes and the mass matrix at q (nq,)."""
    parent, v_index = integers(data, f.PARENT), integers(data, f.V_INDEX)
    origin, pose, columns = vector(data, f.ORIGIN), matrix(data, f.POSE), matrix(data, f.COLUMNS)
    inertia = matrix(data, f.WORLD_INERTIA)
    place(
        integers(data, f.KIND), parent, integers(data, f.Q_INDEX), v_index,
        matrix(data, f.PLACEMENT), q, origin, pose, columns,
    )  # fmt: skip
    world_inertia(matrix(data, f.BODY), pose, origin, inertia)
    mass_matrix(
        parent, v_index, integers(data, f.DOF_PARENT), columns, inertia, vector(data, f.ARMATURE),
        matrix(data, f.COMPOSITE), matrix(data, f.MASS_MATRIX),
    )  # fmt: skip


# ---------------------------------------------------------------- before the contact


@kernel
def begin_step(data):
    """Make the present state the start of a step and apply the efforts; return False if refused.

    A world that has stopped stays as it is.
    """
    status = integers(data, f.STATUS)
    if status[0] != READY:
        return False
    go_on(data)
    assign(vector(data, f.START), vector(data, f.NOW))
    status[0] = actuate(data)
    return status[0] == READY


@kernel
def go_on(data):
    """Move impulses and memory of the contacts to the slots that hold them now."""
    before = vector(data, f.FEATURE_START), frames(data, f.FRAME_START)
    now = vector(data, f.FEATURE), frames(data, f.FRAME)
    impulse, memory = vector(data, f.IMPULSE), matrix(data, f.MEMORY)
    on_ground, nc = integers(data, f.LEAF_DOF).shape[0], now[0].shape[0]
    ground = (0, on_ground, integers(data, f.GROUND)[1], np.inf)
    carry_over(ground, before, now, impulse, memory)
    if nc > on_ground:
        pairs = (on_ground, nc, nc - on_ground, float(CONTACTS))
        carry_over(pairs, before, now, impulse, memory)


@kernel
def free_motion(data):
    """Fill nle, M̂, its factor and v_f: where the robot would go if nothing touched it."""
    v, tree = vector(data, f.V_START), tree_of(data)
    nle = vector(data, f.NONLINEAR_EFFECTS)
    if integers(data, f.TERMS_GIVEN)[0] == 0:
        bias_forces(
            integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(data, f.COLUMNS),
            matrix(data, f.WORLD_INERTIA), v, vector(data, f.GRAVITY), matrix(data, f.TWIST),
            matrix(data, f.BIAS_ACCELERATION), matrix(data, f.BODY_WRENCH), nle,
        )  # fmt: skip
    h, damping = vector(data, f.TIME_STEP)[0], vector(data, f.DAMPING)
    factor = matrix(data, f.FACTOR)
    M, v_free = matrix(data, f.MASS_MATRIX), vector(data, f.V_FREE)
    share, tau = vector(data, f.DAMPING_INERTIA)[0], vector(data, f.TAU)
    implicit_inertia(M, tree[0], damping, h, share, matrix(data, f.INERTIA), factor)
    factorise(factor, tree)
    for k in range(v.shape[0]):
        v_free[k] = tau[k] - nle[k] - (damping[k] + share * M[k, k]) * v[k]
    fill_free_velocity(
        v, factor, tree, integers(data, f.FREE_FLYER_V), h, vector(data, f.TRANSPORT), v_free
    )


@kernel
def contact_rows(data):
    """Fill J, u⁻, u_f, friction, the bias of all rows and the active blocks."""
    jacobian = matrix(data, f.JACOBIAN_TRANSPOSED)
    contacts, dof_parent = contact_branches(data), integers(data, f.DOF_PARENT)
    intervals, gap = interval_branches(data), vector(data, f.GAP_START)
    impulse = vector(data, f.IMPULSE)
    fill_ground_coefficients(data, matrix(data, f.POSITION_START), contacts[1])
    fill_contact_rows(
        matrix(data, f.COLUMNS), vector(data, f.ORIGIN), contacts, dof_parent,
        matrix(data, f.POSITION_START), frames(data, f.FRAME_START), gap, jacobian,
    )  # fmt: skip
    pair_contact_rows(data)
    u_start, u_free, bias = vector(data, f.U_START), vector(data, f.U_FREE), vector(data, f.BIAS)
    v_free = vector(data, f.V_FREE)
    if has_bilateral(data):
        start_bilateral(data)
        v_free = vector(data, f.V_NEXT)
    row_velocities(jacobian, contacts, intervals, dof_parent, vector(data, f.V_START), u_start)
    row_velocities(jacobian, contacts, intervals, dof_parent, v_free, u_free)
    h, settings = vector(data, f.TIME_STEP)[0], vector(data, f.STABILISATION)
    fill_contact_bias(
        gap, u_start, u_free, impulse, h, vector(data, f.RESTITUTION), settings, bias,
        vector(data, f.RESTITUTION_BIAS),
    )  # fmt: skip
    select_active(
        gap, u_free, impulse, vector(data, f.FRICTION), vector(data, f.REACH),
        vector(data, f.ACTIVE),
    )  # fmt: skip
    leave_out_immovable(data)
    interval_rows(data)
    join_islands(data)
    start_islands(data)
    start_guard(data)


# ---------------------------------------------------------------- after the solve


@kernel
def apply_impulses(data):
    """Fill λ, v⁺ and u⁺; return False where the problem has to be solved again.

    Again: with contacts that were left out but would close, or with less restitution. A motion
    that is not finite ends the step and stops the world.
    """
    impulse = vector(data, f.IMPULSE)
    leave_out_inactive(data)
    jacobian, dof_parent = matrix(data, f.JACOBIAN_TRANSPOSED), integers(data, f.DOF_PARENT)
    contacts, intervals = contact_branches(data), interval_branches(data)
    v_next, v_free, u_next = vector(data, f.V_NEXT), vector(data, f.V_FREE), vector(data, f.U_NEXT)
    generalized_impulse(jacobian, contacts, intervals, dof_parent, impulse, v_next)
    solve(matrix(data, f.FACTOR), tree_of(data), v_next)
    size = 0.0
    for k in range(v_next.shape[0]):
        v_next[k] += v_free[k]
    if has_bilateral(data):
        constrain_velocity(data)
    for k in range(v_next.shape[0]):
        size += abs(v_next[k])
    if not size <= LARGEST:
        integers(data, f.STATUS)[0] = NOT_FINITE
        return True
    row_velocities(jacobian, contacts, intervals, dof_parent, v_next, u_next)
    activate_closing(data)
    guard_energy(data)
    return not any_island_waits(data)


@kernel
def activate_closing(data):
    """Make the contacts and limits active that were left out and would close.

    Their islands wait for another solve.
    """
    active, reach, u_next = vector(data, f.ACTIVE), vector(data, f.REACH), vector(data, f.U_NEXT)
    gap, friction = vector(data, f.GAP_START), vector(data, f.FRICTION)
    waits, island = integers(data, f.ISLAND_WAITS), integers(data, f.CONTACT_ISLAND)
    for i in range(active.shape[0]):
        if active[i] == 0.0 and within_reach(gap, u_next, i, friction, reach) < 0.0:
            active[i] = part_of(data, i)
            if active[i] > 0.0:
                waits[island[i]] = 1
    activate_limits(data)


@kernel
def integrate(data):
    """Move the configuration, and what belongs to it; a step that failed is taken back."""
    status = integers(data, f.STATUS)
    if status[0] != READY:
        take_back(data)
        return
    v_next, v_start = vector(data, f.V_NEXT), vector(data, f.V_START)
    transport, h = vector(data, f.TRANSPORT), vector(data, f.TIME_STEP)[0]
    displacement, acceleration = vector(data, f.DISPLACEMENT), vector(data, f.ACCELERATION)
    for k in range(v_next.shape[0]):
        displacement[k] = h * v_next[k]
        acceleration[k] = (v_next[k] - v_start[k]) / h - transport[k]
    carrying = integers(data, f.INTEGRATOR)[0] == MOMENTUM
    if carrying:
        carry(data)
    velocity_in_new_axes(displacement, v_next, integers(data, f.FREE_FLYER_V), vector(data, f.V))
    if not note_turning(data):
        status[0] = NOT_FINITE
        take_back(data)
        return
    given = integers(data, f.TERMS_GIVEN)[0] != 0
    if not given:
        move(
            integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
            matrix(data, f.POSE), displacement, vector(data, f.Q_START), vector(data, f.Q),
        )  # fmt: skip
        if has_bilateral(data):
            project_positions(data)
        place_bodies(data, vector(data, f.Q))
        if carrying and follow(data):
            place_bodies(data, vector(data, f.Q))  # its rounding, too, is that of q alone
        if not state_is_finite(data):
            status[0] = NOT_FINITE
            take_back(data)
            place_bodies(data, vector(data, f.Q))
            return
    remember_command(data)
    clock = vector(data, f.CLOCK)
    clock[2] += 1.0
    clock[0] = clock[1] + clock[2] * h
    describe_contacts(data)
    if not given:
        describe_configuration(data)


@kernel
def state_is_finite(data):
    """Return whether q and v are, and may be given back to the simulator; also where v⁺ was."""
    within = True
    for value in vector(data, f.Q):
        within &= abs(value) <= LARGEST
    for value in vector(data, f.V):
        within &= abs(value) <= LARGEST
    return within


@kernel
def take_back(data):
    """Return to the state before the step."""
    impulse = vector(data, f.IMPULSE)
    assign(vector(data, f.NOW), vector(data, f.START))
    for r in range(impulse.shape[0]):
        impulse[r] = 0.0
    describe_contacts(data)
