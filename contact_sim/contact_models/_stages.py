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
name from the arrays of the step (arrays/_fields.py) and calls kernels with explicit arguments.
"""

from __future__ import annotations

import numpy as np

from contact_sim._validation import LARGEST
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import frames, integers, matrix, vector
from contact_sim.collision._body_pairs import two_branches
from contact_sim.collision._contact_keys import carry_over
from contact_sim.collision._detection import contact_rows as fill_contact_rows
from contact_sim.collision._detection import detect
from contact_sim.collision._solids import CONTACTS
from contact_sim.contact_models._islands import (
    activate_limits,
    any_island_unsolved,
    clear_inactive,
    fill_delassus,
    guard_energy,
    interval_rows,
    merge_islands,
    next_island_rows,
    start_guard,
    start_islands,
)
from contact_sim.dynamics import _forces
from contact_sim.dynamics._energy import kinetic_energy, mass_moment
from contact_sim.dynamics._forces import (
    add_wrench,
    fill_free_velocity,
    generalized_force,
    implicit_inertia,
    joint_effort,
)
from contact_sim.dynamics._integration import (
    MOMENTUM,
    carry_momentum,
    follow_momentum,
    move,
    velocity_in_new_axes,
)
from contact_sim.dynamics._rigid_body import bias_forces, mass_matrix, place, world_inertia
from contact_sim.dynamics._vectors import add, put, quaternion_axes, rotated, vec
from contact_sim.solvers._delassus import factorise, solve
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import (
    constrain_undamped,
    constrain_velocity,
    has_bilateral,
    project_positions,
    start_bilateral,
)
from contact_sim.step._contact_rows import (
    activity_of,
    contact_branches,
    exclude_degenerate,
    fill_contact_bias,
    generalized_impulse,
    interval_branches,
    predicted_gap,
    row_velocities,
    select_active,
    tree_of,
)
from contact_sim.step._workspace import (
    describe_contacts,
    fill_ground_coefficients,
    find_pair_contacts,
    ground_of,
    pair_contact_rows,
)

# --- Commands become generalized forces: a stage of the step under every contact model.
#
# `actuate` begins a step and changes nothing that actuators keep; `update_actuators` ends one that
# was taken.

READY, NOT_FINITE = 0, -1
"""Status of a world; k > 0: the command of actuated joint k − 1 is not finite."""
DIRECT, JOINT_PD = 0, 1
"""Controllers: efforts as commanded, or PD around joint targets."""


@kernel
def actuate(data):
    """Fill the joint efforts and τ; return READY, or 1 + the first joint that is not finite.

    Done twice it does the same, for what actuators keep changes in `update_actuators` alone.
    """
    command, joint_v = vector(data, f.COMMAND), integers(data, f.JOINT_V)
    if integers(data, f.CONTROL)[0] == JOINT_PD:
        joint_effort(
            vector(data, f.Q), vector(data, f.V), integers(data, f.JOINT_Q), joint_v,
            integers(data, f.JOINT_UNBOUNDED),
            (vector(data, f.TARGET), vector(data, f.TARGET_VELOCITY)),
            (vector(data, f.KP), vector(data, f.KD)), vector(data, f.FEED_FORWARD), command,
        )  # fmt: skip
    effort, tau = vector(data, f.EFFORT), vector(data, f.TAU)
    bad = _forces.fill_effort(
        command, vector(data, f.V), joint_v, actuator_limits(data), actuator_memory(data),
        actuator_timing(data), effort,
    )  # fmt: skip
    if bad >= 0:
        return bad + 1
    generalized_force(effort, joint_v, vector(data, f.EXTERNAL), tau)
    body = integers(data, f.WRENCH_BODY)[0]
    if body >= 0:
        add_wrench(
            vector(data, f.WRENCH), vector(data, f.WRENCH_POINT), matrix(data, f.POSE)[body],
            (matrix(data, f.COLUMNS), vector(data, f.ORIGIN)),
            integers(data, f.V_INDEX)[body + 1] - 1, integers(data, f.DOF_PARENT), tau,
        )  # fmt: skip
    return READY


@kernel
def update_actuators(data):
    """Let the command of the step go into the delay lines and lags of the actuators."""
    _forces.remember(
        vector(data, f.COMMAND),
        vector(data, f.EFFORT_LIMIT),
        actuator_memory(data),
        actuator_timing(data),
    )


@kernel
def actuator_limits(data):
    """Return the limits of the actuators, see dynamics.actuators."""
    return (
        vector(data, f.EFFORT_LIMIT), vector(data, f.VELOCITY_LIMIT),
        vector(data, f.SATURATION_EFFORT),
    )  # fmt: skip


@kernel
def actuator_memory(data):
    """Return what the actuators keep from step to step, see dynamics.actuators."""
    return matrix(data, f.DELAY_LINE), vector(data, f.LAGGED_EFFORT)


@kernel
def actuator_timing(data):
    """Return delays and decays of the actuators, see dynamics.actuators."""
    return integers(data, f.DELAY), vector(data, f.LAG_DECAY)


# --- The stages of a step under the integrator `momentum`, around the motion of q (theory 2.0).
#
#     carry     momentum after the step and where it takes the centre of mass, at the start
#     follow    base velocity with that momentum at q⁺; in flight also the base position
#
# The momentum is no state besides q and v: at the start of the next step it is that of q and v.


@kernel
def record_momentum(data):
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
                flyers[k], motion, forces, vector(data, f.TIME_STEP)[0],
                is_in_flight(data, flyers[k]), carried[k],
            )  # fmt: skip


@kernel
def apply_momentum(data):
    """Fill the velocities of the bases at q⁺, move those in flight; return True if any moved."""
    flyers, dof_parent = integers(data, f.FREE_FLYER_V), integers(data, f.DOF_PARENT)
    place, q = integers(data, f.FREE_FLYER_Q), vector(data, f.Q)
    carried, moved = matrix(data, f.CARRIED), False
    for k in range(flyers.shape[0]):
        if dof_parent[flyers[k]] < 0:
            flying = is_in_flight(data, flyers[k])
            shift = follow_momentum(
                matrix(data, f.MASS_MATRIX), vector(data, f.ARMATURE), matrix(data, f.COLUMNS),
                flyers[k], carried[k], flying, vector(data, f.V),
            )  # fmt: skip
            x, y, z = quaternion_axes(q, place[k] + 3)
            put(q, place[k], add(vec(q, place[k]), rotated(x, y, z, shift)))
            moved = moved or flying
    return moved


@kernel
def is_in_flight(data, base):
    """Return True if no contact of the robot on the base at this dof took part in the problem."""
    active, (leaf_dof, feature, pairs) = vector(data, f.ACTIVE), contact_branches(data)
    dof_parent = integers(data, f.DOF_PARENT)
    for i in range(active.shape[0]):
        if active[i] > 0.0 and i < leaf_dof.shape[0]:
            if is_on_tree(base, leaf_dof[i], dof_parent):
                return False
        elif active[i] > 0.0:
            first, second, _ = two_branches(pairs, feature[i])
            if is_on_tree(base, first, dof_parent) or is_on_tree(base, second, dof_parent):
                return False
    return True


@kernel
def is_on_tree(base, dof, dof_parent):
    """Return whether a dof is on the tree of the base at the dof `base`."""
    while dof > base:
        dof = dof_parent[dof]
    return dof == base


# --- Viscous joint damping between contact and motion, as MuJoCo's Euler has it.
#
# Its contacts see the damping of the start of the step; the motion is damped implicitly:
#
#     λ = law(J M⁻¹ Jᵀ, J v_e),   v_e = v + h M⁻¹ (τ − nle − D v) + h (ω × v_lin)
#     v⁺ = v_f + M̂⁻¹ Jᵀ λ,        M̂ = M + h D
#
# so that the contacts are solved for a velocity other than v⁺. With v_f of M̂ it is
# v_e = v_f + h M⁻¹ D (v_f − v), for D ω × v_lin = 0: no free flyer is damped.

UNDAMPED_CHANGE = 7
"""Place of the change of u_f among the vectors of the law."""


@kernel
def prepare_undamped(data):
    """Fill the factor of M and J (v_e − v_f), once in a step."""
    if not is_damped(vector(data, f.DAMPING)):
        return
    undamping, change = vector(data, f.UNDAMPING), matrix(data, f.LAW_VECTORS)[UNDAMPED_CHANGE]
    fill_undamping(
        matrix(data, f.INERTIA), tree_of(data), vector(data, f.DAMPING),
        vector(data, f.TIME_STEP)[0], vector(data, f.V_START), vector(data, f.V_FREE),
        matrix(data, f.UNDAMPED_FACTOR), undamping,
    )  # fmt: skip
    if has_bilateral(data):
        constrain_undamped(data)
    row_velocities(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data),
        interval_branches(data), integers(data, f.DOF_PARENT), undamping, change,
    )  # fmt: skip


@kernel
def next_undamped_problem(data):
    """Gather the next contact problem with J M⁻¹ Jᵀ and J v_e; return its number of rows."""
    n = next_island_rows(data)
    if n == 0:
        return n
    if not is_damped(vector(data, f.DAMPING)):
        fill_delassus(data, n, False)
        return n
    row_of, row_free = integers(data, f.ROW_OF), vector(data, f.ROW_FREE)
    change = matrix(data, f.LAW_VECTORS)[UNDAMPED_CHANGE]
    for a in range(n):
        row_free[a] += change[row_of[a]]
    fill_delassus(data, n, True)
    return n


@kernel
def is_damped(damping):
    """Return whether any dof is damped."""
    damped = False
    for k in range(damping.shape[0]):
        damped = damped or damping[k] != 0.0
    return damped


@kernel
def fill_undamping(inertia, tree, damping, h, v, v_free, factor, undamping):
    """Fill the factor of M = M̂ − h D and v_e − v_f.

    Args:
        inertia: lower triangle of M̂, shape (nv, nv).
        tree: see solvers.tree.
        damping: D [N m s/rad], shape (nv,).
        h: time step [s].
        v: velocity before the step, shape (nv,).
        v_free: v_f, shape (nv,).
        factor: out, of M, see solvers.tree, shape (nv, nv).
        undamping: out, h M⁻¹ D (v_f − v), shape (nv,).
    """
    dof_parent = tree[0]
    for k in range(damping.shape[0]):
        j = dof_parent[k]
        while j >= 0:
            factor[k, j] = inertia[k, j]
            j = dof_parent[j]
        factor[k, k] = inertia[k, k] - h * damping[k]
        undamping[k] = h * damping[k] * (v_free[k] - v[k])
    factorise(factor, tree)
    solve(factor, tree, undamping)


# --- How far bodies turn in a step: the limit of velocity products that are taken at its start.

MAX_TURN = 1.0
"""Largest turn per step [rad] that is not noted. h (∂C v/∂v) M⁻¹ grows with it: beyond about one
radian a step makes faster what it should turn (theory 2.0)."""


@kernel
def check_divergence(data):
    """Note since when dofs turn by more than FASTEST per step; return False if v is not finite."""
    v, columns = vector(data, f.V), matrix(data, f.COLUMNS)
    clock, fast = vector(data, f.CLOCK), vector(data, f.FAST)
    size = largest = 0.0
    for k in range(v.shape[0]):
        x, y, z = columns[k, 3], columns[k, 4], columns[k, 5]
        size += abs(v[k])
        largest = max(largest, v[k] * v[k] * (x * x + y * y + z * z))
    turn = vector(data, f.TIME_STEP)[0] * np.sqrt(largest)
    if not turn > MAX_TURN:
        fast[1] = 0.0
    elif fast[1] == 0.0:
        fast[0], fast[1] = clock[0], turn
    return size <= LARGEST


# --- The stages of one time step, shared by all time-stepping models; they differ only in `solve`.

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
    carry_over_contacts(data)
    assign(vector(data, f.START), vector(data, f.NOW))
    status[0] = actuate(data)
    return status[0] == READY


@kernel
def carry_over_contacts(data):
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
    exclude_degenerate(data)
    interval_rows(data)
    merge_islands(data)
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
    clear_inactive(data)
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
    return not any_island_unsolved(data)


@kernel
def activate_closing(data):
    """Make the contacts and limits active that were left out and would close.

    Their islands wait for another solve.
    """
    active, reach, u_next = vector(data, f.ACTIVE), vector(data, f.REACH), vector(data, f.U_NEXT)
    gap, friction = vector(data, f.GAP_START), vector(data, f.FRICTION)
    waits, island = integers(data, f.ISLAND_WAITS), integers(data, f.CONTACT_ISLAND)
    for i in range(active.shape[0]):
        if active[i] == 0.0 and predicted_gap(gap, u_next, i, friction, reach) < 0.0:
            active[i] = activity_of(data, i)
            if active[i] > 0.0:
                waits[island[i]] = 1
    activate_limits(data)


@kernel
def integrate(data):
    """Move the configuration, and what belongs to it; a step that failed is taken back."""
    status = integers(data, f.STATUS)
    if status[0] != READY:
        revert_step(data)
        return
    v_next, v_start = vector(data, f.V_NEXT), vector(data, f.V_START)
    transport, h = vector(data, f.TRANSPORT), vector(data, f.TIME_STEP)[0]
    displacement, acceleration = vector(data, f.DISPLACEMENT), vector(data, f.ACCELERATION)
    for k in range(v_next.shape[0]):
        displacement[k] = h * v_next[k]
        acceleration[k] = (v_next[k] - v_start[k]) / h - transport[k]
    carrying = integers(data, f.INTEGRATOR)[0] == MOMENTUM
    if carrying:
        record_momentum(data)
    velocity_in_new_axes(displacement, v_next, integers(data, f.FREE_FLYER_V), vector(data, f.V))
    if not check_divergence(data):
        status[0] = NOT_FINITE
        revert_step(data)
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
        if carrying and apply_momentum(data):
            place_bodies(data, vector(data, f.Q))  # its rounding, too, is that of q alone
        if not state_is_finite(data):
            status[0] = NOT_FINITE
            revert_step(data)
            place_bodies(data, vector(data, f.Q))
            return
    update_actuators(data)
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
def revert_step(data):
    """Return to the state before the step."""
    impulse = vector(data, f.IMPULSE)
    assign(vector(data, f.NOW), vector(data, f.START))
    for r in range(impulse.shape[0]):
        impulse[r] = 0.0
    describe_contacts(data)
