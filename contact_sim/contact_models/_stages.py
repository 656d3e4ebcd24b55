"""One time step, in the order of its stages, for all time-stepping laws (theory 2).

    begin_step        the present state becomes the start of the step; τ from the commands
    free_motion       nle, M̂ = L Lᵀ,  v_f = v + h M̂⁻¹ (τ − nle)
    contact_rows      J, u⁻ = J v, u_f = J v_f, b, and the blocks that take part
    next_problem      G = J M̂⁻¹ Jᵀ, g = u_f + b of the active blocks of an island
    solve             λ = law(G, g, μ, ...): the only stage that differs, in the file of the law
    apply_impulses    v⁺ = v_f + M̂⁻¹ Jᵀ λ, u⁺ = J v⁺; or back to next_problem
    integrate         q⁺ = q ⊕ h v⁺, then placements, M and contact points at q⁺

Every stage takes views of the arrays of the step by name (arrays/_fields.py) and calls kernels
with explicit arguments. `advance` runs the stages; `compiled_law` compiles it for one law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_sim._validation import LARGEST
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import (
    WORLD_NUMBERS,
    WORLDS,
    arrays_at,
    arrays_of,
    frames,
    integers,
    matrix,
    stage_on_demand,
    vector,
)
from contact_sim.collision._body_pairs import two_branches
from contact_sim.collision._contact_slots import CONTACTS as PAIR_CONTACTS
from contact_sim.collision._contact_slots import carry_over
from contact_sim.collision._detection import contact_rows as fill_contact_rows
from contact_sim.collision._detection import detect_listed
from contact_sim.contact_models._energy_guard import (
    SEQUENCE_STATUS,
    guard_energy,
    has_impacts,
    start_guard,
)
from contact_sim.contact_models._momentum import apply_momentum, record_momentum
from contact_sim.dynamics._forces import (
    add_wrench,
    fill_effort,
    fill_free_velocity,
    generalized_force,
    joint_effort,
    update_actuator_memory,
)
from contact_sim.dynamics._integration import (
    MOMENTUM,
    integrate_configuration,
    velocity_in_new_axes,
)
from contact_sim.dynamics._rigid_body import (
    bias_forces,
    forward_kinematics,
    mass_moment,
    world_inertia,
)
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    FREE,
    MAX_ITERATIONS,
    NONFINITE,
    worse_status,
)
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import entry, integers_at, kernel, with_globals
from contact_sim.step._bilateral_rows import (
    CONSTRAIN_DELASSUS,
    CONSTRAIN_DELASSUS_UNDAMPED,
    CONSTRAIN_VELOCITY,
    PROJECT_POSITIONS,
    START_STEP,
    has_bilateral,
    run_task,
)
from contact_sim.step._contact_rows import (
    ALL_ISLANDS,
    activity_of,
    collect_rows,
    contact_branches,
    exclude_degenerate,
    fill_contact_bias,
    fill_limits,
    first_moment,
    generalized_impulse,
    impulse_sign,
    in_use,
    interval_branches,
    limit_bias,
    limit_in_reach,
    list_islands,
    predicted_gap,
    row_velocities,
    rows_on,
    select_active,
    status_with_degenerate,
)
from contact_sim.step._inertia import (
    IMPLICIT,
    UNDAMPED,
    begin_inertia,
    fill_kinetic_energy,
    fill_mass_matrix,
    row_products,
    solve_inertia,
)
from contact_sim.step._moment_rows import (
    CARRY,
    DESCRIBE,
    FILL,
    SETTLE,
    SOFTEN,
    START,
    run_moments,
)
from contact_sim.step._workspace import (
    clear_contacts,
    describe_contacts,
    fill_ground_coefficients,
    find_pair_contacts,
    ground_of,
    lists_of,
    load_contact_memory,
    pair_contact_rows,
    store_contact_memory,
)

# --- the step, compiled for each law

READY, NOT_FINITE = 0, -1
"""Status of a world; k > 0: the command of actuated joint k − 1 is not finite."""
DIRECT, JOINT_PD = 0, 1  # controllers: efforts as commanded, or PD around joint targets
HAS_MEMORY = 1  # an option of a law, beside NO_RESTITUTION
CONTACTS, ROWS, ISLAND, TRIED, UNDAMPED_KNOWN = range(5)
"""Places of the numbers of the problem at hand in the field `counts`, of the next number, and of
whether the factor of M is known, see _soft_contact.py."""
MOVING, AT_REST, ALL_HOLD, SOME_HOLD = range(4)
"""What the impulses of the last step do, see _kept_impulses.py: not known, or the robot moves; it
rests; v⁺ and u⁺ are those under them, and they hold on all islands so far; or not on all."""


@dataclass(frozen=True)
class CompiledLaw:
    """The entries of one law: whole steps, and the answer to one problem."""

    advance: Callable[[int, int], int]
    """(address, steps): advance every world by that many steps; return the status of the first.

    The address is that of what `places_of_worlds` returns.
    """
    answer: Callable[..., None]
    """(numbers, indices, layout): solve the problem in the arrays."""


def compiled_law(solve_law: Any, **stages: Any) -> CompiledLaw:
    """Return the entries of a time-stepping law.

    Args:
        solve_law: kernel that fills the impulses of the contact problem at hand.
        stages: kernels in place of `before_step`, `before_solving` and `next_problem`.
    """
    own = {'solve_law': solve_law, '__name__': solve_law.__module__, **stages}
    # entries of one law with other stages are kept apart on disk
    name = '_'.join([solve_law.__name__, *stages])
    return CompiledLaw(
        specialised(advance, f'advance_{name}', own), specialised(answer, f'answer_{name}', own)
    )


def specialised(template: Any, name: str, replaced: dict[str, Any]) -> Any:
    """Return the entry `name` that runs `template` with other values of its globals."""
    return entry(with_globals(template, name, replaced))


def entry_of(run: Any, template: Any = None) -> Any:
    """Return the entry that runs a kernel on world 0, with what else the kernel takes."""
    own = {'run': run, '__name__': run.__module__}
    return specialised(template or on_first_world, run.__name__, own)


def on_first_world(numbers: Any, indices: Any, layout: Any, *arguments: Any) -> Any:
    """Call `run` with the arrays of world 0 and what else it takes."""
    return run(arrays_of(numbers, indices, layout, 0), *arguments)


def advance(address: Any, steps: Any) -> Any:
    """Advance every world by `steps` steps; a world that stops does so alone."""
    places = integers_at(address, WORLD_NUMBERS)
    for world in range(places[WORLDS]):
        data = arrays_at(places, world)
        for _ in range(steps):
            before_step(data)
            if not begin_step(data):
                break
            free_motion(data)
            contact_rows(data)
            before_solving(data)
            # one problem per island; again where contacts close or restitution creates energy
            while True:
                while next_problem(data):
                    solve_law(data)
                if apply_impulses(data):
                    break
            integrate(data)
    return integers(arrays_at(places, 0), f.STATUS)[0]


def answer(numbers: Any, indices: Any, layout: Any) -> None:
    """Solve the problem in the arrays."""
    solve_law(arrays_of(numbers, indices, layout, 0))


@kernel
def no_stage(data):
    """Do nothing: the default of the optional stages."""


run = solve_law = before_step = before_solving = no_stage


# --- begin_step: the state at the start, and τ from the commands


@kernel
def begin_step(data):
    """Make the present state the start of a step, apply the efforts; return False if refused."""
    status = integers(data, f.STATUS)
    if status[0] != READY:
        return False
    leaf_dof = integers(data, f.LEAF_DOF)
    before, now = vector(data, f.FEATURE_START), vector(data, f.FEATURE)
    last, used = in_use(leaf_dof, before), in_use(leaf_dof, now)
    moved = False
    for i in range(max(last, used)):
        moved |= before[i] != now[i]
    if moved:
        follow_contacts(data)
    run_moments(data, CARRY)
    keep_start(data, max(last, used))
    integers(data, f.IN_USE)[0] = used
    status[0] = actuate(data)
    return status[0] == READY


@stage_on_demand
def follow_contacts(data):
    """Move impulses and memory with their contacts into the present slots; clear unused slots."""
    # contacts with the ground, as many per contact point as the ground has features
    before = vector(data, f.FEATURE_START), frames(data, f.FRAME_START)
    now = vector(data, f.FEATURE), frames(data, f.FRAME)
    impulse, memory = vector(data, f.IMPULSE), matrix(data, f.MEMORY)
    leaf_dof, nc = integers(data, f.LEAF_DOF), now[0].shape[0]
    on_ground = leaf_dof.shape[0]
    carry_over((0, on_ground, integers(data, f.GROUND)[1], np.inf), before, now, impulse, memory)
    # then one pool of slots for all pairs
    last, used = in_use(leaf_dof, before[0]), in_use(leaf_dof, now[0])
    if max(last, used) > on_ground:
        pairs = (on_ground, nc, nc - on_ground, float(PAIR_CONTACTS))
        carry_over(pairs, before, now, impulse, memory)
    clear_contacts(data, used, last)


@kernel
def keep_start(data, last):
    """Fill the fields of STATE at the start, those of contacts up to `last`: others are empty."""
    assign(vector(data, f.Q_START), vector(data, f.Q))
    assign(vector(data, f.V_START), vector(data, f.V))
    assign(vector(data, f.POSITION_START)[: 3 * last], vector(data, f.POSITION))
    assign(vector(data, f.FRAME_START)[: 9 * last], vector(data, f.FRAME))
    assign(vector(data, f.GAP_START)[:last], vector(data, f.GAP))
    assign(vector(data, f.FEATURE_START)[:last], vector(data, f.FEATURE))
    assign(vector(data, f.MEMORY_START)[: f.MEMORY_NUMBERS * last], vector(data, f.MEMORY))
    assign(vector(data, f.ENERGY_START), vector(data, f.ENERGY))


@kernel
def actuate(data):
    """Fill the joint efforts and τ; return READY, or 1 + the first joint that is not finite."""
    # done twice it does the same: what actuators keep changes in `update_actuators` alone
    command, joint_v = vector(data, f.COMMAND), integers(data, f.JOINT_V)
    # joint PD: command = kp (target − q) + kd (target velocity − v) + feed-forward
    if integers(data, f.CONTROL)[0] == JOINT_PD:
        joint_effort(
            vector(data, f.Q), vector(data, f.V), integers(data, f.JOINT_Q), joint_v,
            integers(data, f.JOINT_UNBOUNDED),
            (vector(data, f.TARGET), vector(data, f.TARGET_VELOCITY)),
            (vector(data, f.KP), vector(data, f.KD)), vector(data, f.FEED_FORWARD), command,
        )  # fmt: skip
    # delay, lag and limits of the actuators turn commands into efforts
    effort, tau = vector(data, f.EFFORT), vector(data, f.TAU)
    limits = (
        vector(data, f.EFFORT_LIMIT), vector(data, f.VELOCITY_LIMIT),
        vector(data, f.SATURATION_EFFORT),
    )  # fmt: skip
    memory = matrix(data, f.DELAY_LINE), vector(data, f.LAGGED_EFFORT)
    timing = integers(data, f.DELAY), vector(data, f.LAG_DECAY)
    bad = fill_effort(command, vector(data, f.V), joint_v, limits, memory, timing, effort)
    if bad >= 0:
        return bad + 1
    # τ = Sᵀ effort + τ_ext, then + J_Pᵀ (force, moment) of the wrench on a body
    generalized_force(effort, joint_v, vector(data, f.EXTERNAL), tau)
    if integers(data, f.WRENCH_BODY)[0] >= 0:
        apply_wrench(data)
    return READY


@stage_on_demand
def apply_wrench(data):
    """Add the wrench on a body to τ."""
    body = integers(data, f.WRENCH_BODY)[0]
    add_wrench(
        vector(data, f.WRENCH), vector(data, f.WRENCH_POINT), matrix(data, f.POSE)[body],
        (matrix(data, f.COLUMNS), vector(data, f.ORIGIN)),
        integers(data, f.V_INDEX)[body + 1] - 1, integers(data, f.DOF_PARENT), vector(data, f.TAU),
    )  # fmt: skip


@stage_on_demand
def update_actuators(data):
    """Put the command of the step into the delay lines and lags of the actuators."""
    memory = matrix(data, f.DELAY_LINE), vector(data, f.LAGGED_EFFORT)
    timing = integers(data, f.DELAY), vector(data, f.LAG_DECAY)
    update_actuator_memory(vector(data, f.COMMAND), vector(data, f.EFFORT_LIMIT), memory, timing)


# --- free_motion: v_f, the velocity without contact (theory 2)


@kernel
def free_motion(data):
    """Fill nle, M̂, its factor and v_f: where the robot would go if nothing touched it."""
    v, nle = vector(data, f.V_START), vector(data, f.NONLINEAR_EFFECTS)
    # nle = C v + g by Newton-Euler in world axes (theory 4.1)
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        bias_forces(
            integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(data, f.COLUMNS),
            matrix(data, f.WORLD_INERTIA), v, vector(data, f.GRAVITY), matrix(data, f.TWIST),
            matrix(data, f.BIAS_ACCELERATION), matrix(data, f.BODY_WRENCH), nle,
        )  # fmt: skip
    # M̂ = M + h D + h² K + b diag(M), b of todorov in its form of 2014; M̂ = Lᵀ L
    begin_inertia(data)
    # v_f = v + h M̂⁻¹ (τ − nle − D v − K (q + h v − q₀)) + h ω × v_lin of free bases
    h, v_free = vector(data, f.TIME_STEP)[0], vector(data, f.V_FREE)
    solve_inertia(data, IMPLICIT, v_free)
    fill_free_velocity(v, integers(data, f.FREE_FLYER_V), h, vector(data, f.TRANSPORT), v_free)


# --- contact_rows: J, u, b and the active blocks (theory 0, 2)


@kernel
def fill_jacobian(data):
    """Fill the rows of contacts in J."""
    contacts = contact_branches(data)
    fill_contact_rows(
        matrix(data, f.COLUMNS), vector(data, f.ORIGIN), contacts, integers(data, f.DOF_PARENT),
        matrix(data, f.POSITION_START), frames(data, f.FRAME_START), vector(data, f.GAP_START),
        matrix(data, f.JACOBIAN_TRANSPOSED),
    )  # fmt: skip
    if contacts[3] > contacts[0].shape[0]:
        pair_contact_rows(data)


@kernel
def contact_rows(data):
    """Fill J, u⁻, u_f, friction, the bias of all rows and the active blocks."""
    jacobian = matrix(data, f.JACOBIAN_TRANSPOSED)
    contacts, dof_parent = contact_branches(data), integers(data, f.DOF_PARENT)
    intervals, gap = interval_branches(data), vector(data, f.GAP_START)
    impulse, last = vector(data, f.IMPULSE), contacts[3]
    # μ and e where each contact is, then the rows (t1, t2, n) of J
    fill_ground_coefficients(data, matrix(data, f.POSITION_START), contacts[1])
    fill_jacobian(data)
    run_moments(data, FILL)
    # bilateral constraints first: the contacts see the free velocity under them (theory 4.6)
    u_start, u_free, bias = vector(data, f.U_START), vector(data, f.U_FREE), vector(data, f.BIAS)
    v_free = vector(data, f.V_FREE)
    if has_bilateral(data):
        run_task(data, START_STEP)
        v_free = vector(data, f.V_NEXT)
    # u⁻ = J v,  u_f = J v_f
    row_velocities(jacobian, contacts, intervals, dof_parent, vector(data, f.V_START), u_start)
    row_velocities(jacobian, contacts, intervals, dof_parent, v_free, u_free)
    # b: gap term and Baumgarte share in `bias`, e u_n⁻ of impacts in `RESTITUTION_BIAS`
    h, settings = vector(data, f.TIME_STEP)[0], vector(data, f.STABILISATION)
    fill_contact_bias(
        gap[:last], u_start, u_free, impulse, h, vector(data, f.RESTITUTION), settings, bias,
        vector(data, f.RESTITUTION_BIAS),
    )  # fmt: skip
    # blocks that take part: contacts within reach of the law, without degenerate ones, and rows
    # of limits; then the islands that they form
    select_active(
        gap[:last], u_free, impulse, vector(data, f.FRICTION), vector(data, f.REACH),
        vector(data, f.ACTIVE),
    )  # fmt: skip
    exclude_degenerate(data)
    interval_rows(data)
    run_moments(data, START)
    # all islands wait to be solved
    waits, outcome = integers(data, f.ISLAND_WAITS), matrix(data, f.ISLAND_SOLVER)
    if waits.shape[0] > 1:
        merge_islands(data)
        list_islands(data)
    counts = integers(data, f.COUNTS)
    counts[ROWS], counts[TRIED] = 0, MOVING
    for i in range(waits.shape[0]):
        waits[i] = 1
        outcome[i, 0], outcome[i, 1], outcome[i, 2] = FREE, 0.0, 0.0
    start_guard(data)


@kernel
def interval_rows(data):
    """Fill sets, gaps, bias and activity of the interval rows."""
    q_index, gap = integers(data, f.LIMIT_Q), vector(data, f.INTERVAL_GAP)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    # set and gap of each limit row: those of the nearer end
    fill_limits(
        vector(data, f.Q_START), q_index, integers(data, f.LIMIT_OTHER_Q),
        matrix(data, f.LIMIT_SHARE), matrix(data, f.LIMIT_RANGE), lower, upper, gap,
    )  # fmt: skip
    first, active = 3 * vector(data, f.GAP).shape[0], vector(data, f.INTERVAL_ACTIVE)
    bias, u_free, impulse = vector(data, f.BIAS), vector(data, f.U_FREE), vector(data, f.IMPULSE)
    reach, limits = vector(data, f.REACH), gap.shape[0] - q_index.shape[0]
    for k in range(first_moment(data)):  # dry friction
        active[k], bias[first + k] = 1.0, 0.0
    for k in range(limits, gap.shape[0]):
        # along `side` a limit is a contact: it acts where it is near or was loaded before
        r, side = first + k, impulse_sign(lower, upper, k)
        carried = impulse[r] != 0.0 or side == 0.0
        active[k] = carried or limit_in_reach(side * gap[k], side * u_free[r], reach)
        if active[k] != 0.0:
            fill_limit_bias(data, k)


@kernel
def fill_limit_bias(data, k):
    """Fill b of interval row k [m/s, rad/s]."""
    r, h = 3 * vector(data, f.GAP).shape[0] + k, vector(data, f.TIME_STEP)[0]
    gap, settings = vector(data, f.INTERVAL_GAP)[k], vector(data, f.STABILISATION)
    side = impulse_sign(vector(data, f.LOWER), vector(data, f.UPPER), k)
    bias = vector(data, f.BIAS)
    # locked joint (bounds equal): b = β φ/h on both sides, there is no "before closure"
    if side == 0.0:
        bias[r] = settings[0] * gap / h
        return
    carried = vector(data, f.IMPULSE)[r] != 0.0
    restitution = 0.0 if carried else vector(data, f.LIMIT_RESTITUTION)[k]
    speeds = side * vector(data, f.U_START)[r], side * vector(data, f.U_FREE)[r]
    bias[r] = side * limit_bias(side * gap, speeds, h, restitution, settings)


@stage_on_demand
def merge_islands(data):
    """Make one island of those that a slot of a contact between bodies joins, in use or not."""
    leaf_dof, feature, pairs, last = contact_branches(data)
    if feature.shape[0] == leaf_dof.shape[0]:
        return
    of_dof, joined = integers(data, f.DOF_ISLAND), integers(data, f.JOINED_ISLAND)
    of_contact, of_interval = integers(data, f.CONTACT_ISLAND), integers(data, f.INTERVAL_ISLAND)
    # each island by itself, then those joined by a contact slot between two bodies
    for island in range(joined.shape[0]):
        joined[island] = island
    for i in range(leaf_dof.shape[0], last):
        a, b, _ = two_branches(pairs, feature[i])
        if a >= 0 and b >= 0:
            merge_pair(joined, joined[of_dof[a]], joined[of_dof[b]])
    # island of every ground contact, pair contact and interval row; the world has none
    for i in range(leaf_dof.shape[0]):
        of_contact[i] = joined[of_dof[leaf_dof[i]]] if leaf_dof[i] >= 0 else 0
    for i in range(leaf_dof.shape[0], last):
        a, b, _ = two_branches(pairs, feature[i])
        of_contact[i] = joined[of_dof[max(a, b)]] if max(a, b) >= 0 else 0
    some_dof = integers(data, f.INTERVAL_SOME_DOF)
    for k in range(of_interval.shape[0]):
        of_interval[k] = joined[of_dof[some_dof[k]]]


@kernel
def merge_pair(joined, one, other):
    """Give two islands the lower of their numbers."""
    for island in range(joined.shape[0]):
        if joined[island] == max(one, other):
            joined[island] = min(one, other)


# --- next_problem: G and g of an island, contiguous for the solvers


@kernel
def next_problem(data):
    """Gather the contact problem of an island that waits; return its rows, 0 if none is left."""
    n = next_island_rows(data)
    if n > 0:
        fill_delassus(data, n, False)
    return n


@kernel
def next_island_rows(data):
    """Gather the contact problem of an island without G, after storing the last solution."""
    # impulses and memory of the problem before go where they belong
    counts, row_of = integers(data, f.COUNTS), integers(data, f.ROW_OF)
    impulse, row_impulse = vector(data, f.IMPULSE), vector(data, f.ROW_IMPULSE)
    for a in range(counts[ROWS]):
        impulse[row_of[a]] = row_impulse[a]
    if integers(data, f.OPTIONS)[0] & HAS_MEMORY and counts[ROWS] > 0:
        store_memory(data)
    counts[ROWS] = 0
    waits = integers(data, f.ISLAND_WAITS)
    for island in range(waits.shape[0]):
        if waits[island] != 0:
            waits[island] = 0
            n = gather_active(data, island)
            if n > 0:
                return n
    combine_outcomes(data)
    return 0


@kernel
def gather_problem(data):
    """Fill the contact problem of all active blocks; return its number of rows, perhaps none."""
    n = gather_active(data, ALL_ISLANDS)
    if n > 0:
        fill_delassus(data, n, False)
    return n


@kernel
def gather_active(data, island):
    """Fill the contact problem of an island, or ALL, but for G; return its number of rows."""
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    active, counts = vector(data, f.ACTIVE), integers(data, f.COUNTS)
    # numbers of the active rows of the island
    na, n = collect_rows(
        active, vector(data, f.INTERVAL_ACTIVE), contact_branches(data),
        integers(data, f.INTERVAL_DOF), rows_on(data, island), row_of, row_leaf,
    )  # fmt: skip
    counts[CONTACTS], counts[ROWS], counts[ISLAND] = na, n, max(island, 0)
    # what belongs to the rows
    u_free, u_start, bias = vector(data, f.U_FREE), vector(data, f.U_START), vector(data, f.BIAS)
    impulse, weight = vector(data, f.IMPULSE), vector(data, f.INVERSE_WEIGHT)
    g, free, start = vector(data, f.G), vector(data, f.ROW_FREE), vector(data, f.ROW_START)
    guess, row_weight = vector(data, f.ROW_IMPULSE), vector(data, f.ROW_WEIGHT)
    for a in range(n):
        row = row_of[a]
        g[a] = u_free[row] + bias[row]
        free[a], start[a] = u_free[row], u_start[row]
        guess[a], row_weight[a] = impulse[row], weight[row]
    # what belongs to the contacts, and to the intervals behind them
    friction, gap = vector(data, f.FRICTION), vector(data, f.GAP_START)
    row_friction, row_gap = vector(data, f.ROW_FRICTION), vector(data, f.ROW_GAP)
    for i in range(na):
        row_friction[i], row_gap[i] = friction[row_of[3 * i] // 3], gap[row_of[3 * i] // 3]
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    low, high = vector(data, f.ROW_LOWER), vector(data, f.ROW_UPPER)
    error, row_error = vector(data, f.INTERVAL_GAP), vector(data, f.ROW_INTERVAL_GAP)
    for k in range(n - 3 * na):
        s = row_of[3 * na + k] - 3 * active.shape[0]
        low[k], high[k], row_error[k] = lower[s], upper[s], error[s]
    # g = u_f + b + s e u_n⁻, s the share of restitution that the energy guard allows
    rebound, guard = vector(data, f.RESTITUTION_BIAS), matrix(data, f.GUARD)
    scale = guard[max(island, 0), 0]
    for i in range(na):
        g[3 * i + 2] += scale * rebound[row_of[3 * i] // 3]
    if integers(data, f.OPTIONS)[0] & HAS_MEMORY:
        load_memory(data)
    return n


@stage_on_demand
def load_memory(data):
    """Fill the memory of the contacts of the problem at hand."""
    load_contact_memory(
        matrix(data, f.MEMORY_START), frames(data, f.FRAME_START), integers(data, f.ROW_OF),
        integers(data, f.COUNTS)[CONTACTS], matrix(data, f.ROW_MEMORY),
    )  # fmt: skip


@stage_on_demand
def store_memory(data):
    """Store what the contacts of the problem at hand remember."""
    store_contact_memory(
        matrix(data, f.ROW_MEMORY_NEXT), frames(data, f.FRAME_START), integers(data, f.ROW_OF),
        integers(data, f.COUNTS)[CONTACTS], matrix(data, f.MEMORY),
    )  # fmt: skip


@kernel
def fill_delassus(data, n, undamped):
    """Fill G of the `n` problem rows with M̂, or `undamped` with M."""
    jacobian = matrix(data, f.JACOBIAN_TRANSPOSED)
    row_products(data, jacobian, UNDAMPED if undamped else IMPLICIT, n)
    # bilateral rows: G − (J M̂⁻¹ Hᵀ) (H M̂⁻¹ Hᵀ)⁺ (H M̂⁻¹ Jᵀ)  (theory 4.6)
    if has_bilateral(data):
        run_task(data, CONSTRAIN_DELASSUS_UNDAMPED if undamped else CONSTRAIN_DELASSUS)
    run_moments(data, SOFTEN)


@kernel
def report_solve(data, outcome):
    """Note (status code, iterations, residual) of a solve of the island at hand."""
    row = matrix(data, f.ISLAND_SOLVER)[integers(data, f.COUNTS)[ISLAND]]
    row[0], row[1], row[2] = outcome


@kernel
def report_iterations(data, impulse, iterations, residual, converged):
    """Note a solve without status code; where it is not finite, there is no impulse."""
    code = CONVERGED if converged else MAX_ITERATIONS
    if not np.isfinite(residual):
        impulse[:] = 0.0
        code = NONFINITE
    report_solve(data, (code, iterations, residual))


@kernel
def combine_outcomes(data):
    """Note the worst status of the islands, all iterations, and the largest residual."""
    solver, outcome = vector(data, f.SOLVER), matrix(data, f.ISLAND_SOLVER)
    solver[0], solver[1], solver[2] = FREE, 0.0, 0.0
    sequence = matrix(data, f.GUARD)
    for i in range(outcome.shape[0]):
        solver[0], residual = worse_status(solver[0], outcome[i, 0]), outcome[i, 2]
        solver[0] = worse_status(solver[0], sequence[i, SEQUENCE_STATUS])
        solver[1] += outcome[i, 1]
        if residual > solver[2] or residual != residual:  # max() would lose not-a-number
            solver[2] = residual
    solver[0] = status_with_degenerate(data, solver[0])


# --- apply_impulses: v⁺ and u⁺, and whether the problem has to be solved again


@kernel
def apply_impulses(data):
    """Fill λ, v⁺, u⁺; return False where contacts that close, or energy, need another solve."""
    counts, impulse = integers(data, f.COUNTS), vector(data, f.IMPULSE)
    known = counts[TRIED] == ALL_HOLD
    counts[TRIED] = MOVING
    if not known:
        clear_inactive(data)
        fill_next_velocity(data, impulse)
    v_next, size = vector(data, f.V_NEXT), 0.0
    for k in range(v_next.shape[0]):
        size += abs(v_next[k])
    # not finite, or beyond every physical speed: the world stops (not-a-number fails `<=`)
    if not size <= LARGEST:
        integers(data, f.STATUS)[0] = NOT_FINITE
        return True
    # u⁺ = J v⁺, and whether what was left out obeys the law at u⁺
    if not known:
        fill_next_row_velocity(data)
    activate_closing(data)
    run_moments(data, SETTLE)
    if has_impacts(data):
        guard_energy(data)
    done = True
    for waiting in integers(data, f.ISLAND_WAITS):
        done &= waiting == 0
    return done


@kernel
def clear_inactive(data):
    """Fill zero impulse, and zero memory, of what takes no part."""
    impulse, active = vector(data, f.IMPULSE), vector(data, f.ACTIVE)
    interval_active, nc = vector(data, f.INTERVAL_ACTIVE), active.shape[0]
    memory, has_memory = matrix(data, f.MEMORY), integers(data, f.OPTIONS)[0] & HAS_MEMORY
    for i in range(contact_branches(data)[3]):
        if active[i] <= 0.0:
            impulse[3 * i] = impulse[3 * i + 1] = impulse[3 * i + 2] = 0.0
            if has_memory:
                memory[i, 0] = memory[i, 1] = memory[i, 2] = memory[i, 3] = 0.0
    for k in range(interval_active.shape[0]):
        if interval_active[k] == 0.0:
            impulse[3 * nc + k] = 0.0


@kernel
def fill_next_row_velocity(data):
    """Fill u⁺ = J v⁺."""
    row_velocities(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data), interval_branches(data),
        integers(data, f.DOF_PARENT), vector(data, f.V_NEXT), vector(data, f.U_NEXT),
    )  # fmt: skip


@kernel
def fill_next_velocity(data, impulse):
    """Fill v⁺ = v_f + M̂⁻¹ Jᵀ λ, then + M̂⁻¹ Hᵀ λ_b under bilateral constraints."""
    v_next, v_free = vector(data, f.V_NEXT), vector(data, f.V_FREE)
    generalized_impulse(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data), interval_branches(data),
        integers(data, f.DOF_PARENT), impulse, v_next,
    )  # fmt: skip
    solve_inertia(data, IMPLICIT, v_next)
    for k in range(v_next.shape[0]):
        v_next[k] += v_free[k]
    if has_bilateral(data):
        run_task(data, CONSTRAIN_VELOCITY)


@kernel
def activate_closing(data):
    """Activate contacts and limits that were left out and would close; their islands wait."""
    active, reach, u_next = vector(data, f.ACTIVE), vector(data, f.REACH), vector(data, f.U_NEXT)
    gap, friction = vector(data, f.GAP_START), vector(data, f.FRICTION)
    waits, island = integers(data, f.ISLAND_WAITS), integers(data, f.CONTACT_ISLAND)
    for i in range(contact_branches(data)[3]):
        if active[i] == 0.0 and predicted_gap(gap, u_next, i, friction, reach) < 0.0:
            active[i] = activity_of(data, i)
            if active[i] > 0.0:
                waits[island[i]] = 1
    # limits are the last interval rows; dry friction, before them, always takes part
    limit_active, error = vector(data, f.INTERVAL_ACTIVE), vector(data, f.INTERVAL_GAP)
    lower, upper = vector(data, f.LOWER), vector(data, f.UPPER)
    limit_island = integers(data, f.INTERVAL_ISLAND)
    first, ns = 3 * active.shape[0], limit_active.shape[0]
    for k in range(ns - integers(data, f.LIMIT_Q).shape[0], ns):
        side = impulse_sign(lower, upper, k)
        if limit_active[k] == 0.0 and side * (error[k] + reach[0] * u_next[first + k]) < 0.0:
            limit_active[k], waits[limit_island[k]] = 1.0, 1
            fill_limit_bias(data, k)


# --- integrate: the configuration at the end of the step (theory 2.0)

MAX_TURN = 1.0
"""Largest turn of a body per step [rad] that is not noted as fast. h (∂C v/∂v) M⁻¹ grows with it:
beyond about one radian explicit velocity products speed a body up instead of turning it."""


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
    # semi-implicit Euler: q moves by h v⁺; v̇ = (v⁺ − v)/h without the change of the axes
    for k in range(v_next.shape[0]):
        displacement[k] = h * v_next[k]
        acceleration[k] = (v_next[k] - v_start[k]) / h - transport[k]
    # v⁺ in the axes of q⁺: the linear velocity of a free base keeps its world direction
    carrying = integers(data, f.INTEGRATOR)[0] == MOMENTUM
    if carrying:
        record_momentum(data)
    velocity_in_new_axes(displacement, v_next, integers(data, f.FREE_FLYER_V), vector(data, f.V))
    if not check_divergence(data):
        status[0] = NOT_FINITE
        revert_step(data)
        return
    # q⁺ = q ⊕ h v⁺, projected onto h(q) = 0; placements, M and the base momentum there
    # (joints unknown to the kernels: Pinocchio does this after the step)
    given = integers(data, f.EXTERNAL_TERMS)[0] != 0
    if not given:
        integrate_configuration(
            integers(data, f.KIND), integers(data, f.Q_INDEX), integers(data, f.V_INDEX),
            matrix(data, f.POSE), displacement, vector(data, f.Q_START), vector(data, f.Q),
        )  # fmt: skip
        if has_bilateral(data):
            run_task(data, PROJECT_POSITIONS)
        place_bodies(data, vector(data, f.Q))
        if carrying:
            follow_momentum(data)
        # q and v are finite, also where v⁺ was
        within = True
        for value in vector(data, f.Q):
            within &= abs(value) <= LARGEST
        for value in vector(data, f.V):
            within &= abs(value) <= LARGEST
        if not within:
            status[0] = NOT_FINITE
            revert_step(data)
            place_bodies(data, vector(data, f.Q))
            return
    # the step is accepted: actuators, clock, and what the report shows
    if vector(data, f.DELAY_LINE).shape[0] > 0 or vector(data, f.LAGGED_EFFORT).shape[0] > 0:
        update_actuators(data)
    clock = vector(data, f.CLOCK)
    clock[2] += 1.0
    clock[0] = clock[1] + clock[2] * h
    describe_contacts(data)
    run_moments(data, DESCRIBE)
    if not given:
        describe_configuration(data)


@kernel
def check_divergence(data):
    """Note since when dofs turn by more than FASTEST per step; return False if v is not finite."""
    v, columns = vector(data, f.V), matrix(data, f.COLUMNS)
    clock, fast = vector(data, f.CLOCK), vector(data, f.FAST)
    size = largest = 0.0
    # Σ |v|, and the fastest turn of a dof: |v_k| |axis_k|
    for k in range(v.shape[0]):
        x, y, z = columns[k, 3], columns[k, 4], columns[k, 5]
        size += abs(v[k])
        largest = max(largest, v[k] * v[k] * (x * x + y * y + z * z))
    # `fast`: (time since when a turn is fast, that turn), 0 while none is
    turn = vector(data, f.TIME_STEP)[0] * np.sqrt(largest)
    if not turn > MAX_TURN:
        fast[1] = 0.0
    elif fast[1] == 0.0:
        fast[0], fast[1] = clock[0], turn
    return size <= LARGEST


@stage_on_demand
def revert_step(data):
    """Return to the state before the step."""
    impulse = vector(data, f.IMPULSE)
    assign(vector(data, f.NOW), vector(data, f.START))
    for r in range(impulse.shape[0]):
        impulse[r] = 0.0
    describe_contacts(data)
    run_moments(data, DESCRIBE)


@stage_on_demand
def follow_momentum(data):
    """Fill what belongs to the bases at q⁺, and the placements of those that moved."""
    if apply_momentum(data):
        place_bodies(data, vector(data, f.Q))  # its rounding, too, is that of q alone


# --- place_and_detect: what belongs to a configuration
#
# Done where q changes, at the end of a step: the report shows the contacts there, and the next
# step begins with them.


@kernel
def place_and_detect(data):
    """Fill what belongs to the present q: placements, M, and the contact points."""
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        place_bodies(data, vector(data, f.Q))
    describe_configuration(data)


@kernel
def place_at_q(data):
    """Fill placements and M at the present q."""
    place_bodies(data, vector(data, f.Q))


@kernel
def describe_configuration(data):
    """Fill energies and contact points of the bodies where they are placed."""
    energy = vector(data, f.ENERGY)
    # energies of the report: Σ m c for −g · Σ m c, and ½ vᵀ M v
    mass_moment(matrix(data, f.WORLD_INERTIA), vector(data, f.ORIGIN), energy[1:])
    fill_kinetic_energy(data)
    # contact points: position, frame (t1, t2, n), gap φ and feature of each
    spheres = (
        integers(data, f.CANDIDATE_BODY), matrix(data, f.OFFSET), vector(data, f.RADIUS),
    )  # fmt: skip
    detect_listed(
        ground_of(data), matrix(data, f.POSE), spheres, lists_of(data), matrix(data, f.POSITION),
        frames(data, f.FRAME), vector(data, f.GAP), vector(data, f.FEATURE),
    )  # fmt: skip
    find_pair_contacts(data)


@kernel
def place_bodies(data, q):
    """Fill placements, joint columns, inertias in world axes and the mass matrix at q (nq,)."""
    parent, v_index = integers(data, f.PARENT), integers(data, f.V_INDEX)
    origin, pose, columns = vector(data, f.ORIGIN), matrix(data, f.POSE), matrix(data, f.COLUMNS)
    inertia = matrix(data, f.WORLD_INERTIA)
    forward_kinematics(
        integers(data, f.KIND), parent, integers(data, f.Q_INDEX), v_index,
        matrix(data, f.PLACEMENT), q, origin, pose, columns,
    )  # fmt: skip
    world_inertia(matrix(data, f.BODY), pose, origin, inertia)
    fill_mass_matrix(data)
