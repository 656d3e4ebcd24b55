"""null_space: rigid stance of a set of feet without force limits.

    rows of held feet     w = G λ + u_f + b = 0,   λ of any sign and size
    all other feet        λ = 0                          (theory 2.5, E10, E12)

which is one step of the support-consistent dynamics: v⁺ = N_c v_f where b = 0. A foot enters
through the impulse transfer, the plastic impact of E12; restitution has no place here. Redundant
feet (solo8, stretched legs, four corners of a box) share the impulse with least norm.

Which feet are held is detected, or given by name or index. Detected feet enter when they would
sink in, or earlier, `touch_gap` over the ground; there they are held at their height. Links that
are no feet enter when they would sink in beside the held feet. With `release` they leave when the
ground would have to pull with more than `release_force`, and come back when they sink in, or by
`touch_gap` once they have been above it.

The law has neither a cone nor a sign, so its forces may be ones that no ground can exert. The
status of the step tells: the stance pulls on the ground, leaves the friction cone, or lets a
foot that is not given sink in. The equations are solved all the same (`converged`), the status is
not `physical`. While it is, the motion is that of ncp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim._validation import as_tuple
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, vector
from contact_sim.contact_models._base import Stepper, TimeSteppingModel
from contact_sim.contact_models._kept_impulses import (
    last_impulses_hold,
    next_unheld_problem,
    try_last_impulses,
)
from contact_sim.contact_models._stages import CompiledLaw, compiled_law, report_solve
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot._contact_points import contact_point_indices
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    INCONSISTENT,
    NONFINITE,
    OUTSIDE_CONE,
    PULLING,
    SINKING,
    Rows,
    fill_velocity_symmetric,
    worse_status,
)
from contact_sim.solvers._cone_solver import solve_cones
from contact_sim.solvers._dense import (
    CONSISTENCY_TOLERANCE,
    eliminate_symmetric,
    gram_cholesky,
    largest_size,
    least_norm_factored,
    pivoted_cholesky,
    solve_symmetric,
)
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import has_bilateral
from contact_sim.step._contact_rows import (
    cone_work_of,
    contact_branches,
    predicted_gap,
    rows_of,
)
from contact_sim.step._workspace import Workspace

FREE_FOOT, ABOVE, TOUCHED, RELEASED = 0.0, 1.0, 2.0, 3.0
"""State of a foot in slot STATE of the contact's memory: not held, held at its height over the
ground, held on the ground, let go and not yet clear of it."""
GIVEN = 8.0  # added to the state where the foot is in the given set
REGULAR, STATE = 0, 3
"""Slots of the memory: 1 along t1 where no foot was redundant, and the state."""
(SUPPORT_GIVEN, TOUCH_GAP, USES_BAUMGARTE, RELEASES, RELEASE_FORCE) = range(5)
"""Places of the parameters in the numbers of the law."""
HELD, OF_INTERVALS = 1, 4  # first of the scratch vectors of held rows, and of interval rows
TOLERANCE, LIMITS = 1e-10, (50, 50, 1000)
INDEPENDENT = 1e-6  # share of the diagonal above which the pivot of a row counts as that of others
LOCKED = 1e-8  # share of its mobility that held feet leave a joint, up to which it cannot move
SLACK = 1e-9  # share of the largest impulse within which a foot neither pulls nor leaves its cone


@dataclass(frozen=True)
class NullSpaceParameters(Parameters):
    """Selection of the held feet, and how they are held."""

    support: str = parameter(
        'detected', '', 'detected: feet that touch the ground; given: those in `feet`',
        choices=('detected', 'given'), live=True,
    )  # fmt: skip
    feet: tuple[str, ...] = parameter(
        (), '', 'feet held under support: given, by name, or contact points by name or index; '
        'empty: none', live=True
    )  # fmt: skip
    touch_gap: float = parameter(
        0.0, 'm', 'gap within which a detected foot is held before it sinks in', at_least=0.0,
        at_most=0.1, live=True,
    )  # fmt: skip
    release: bool = parameter(
        False, '', 'let go of a foot that the ground would have to pull', live=True
    )
    release_force: float = parameter(
        0.0, 'N', 'pull that a foot bears before it is released', at_least=0.0, live=True
    )
    stabilisation: str = parameter(
        'baumgarte', '', 'baumgarte: contact.baumgarte corrects gaps; velocity: drift stays',
        choices=('baumgarte', 'velocity'), live=True,
    )  # fmt: skip


@kernel
def initial_state(i, given, gap, closing, memory, touch_gap):
    """Return the state of foot `i` at the start of the step."""
    command = memory[i, STATE] >= GIVEN
    state = memory[i, STATE] - (GIVEN if command else 0.0)
    if given:
        if not command:
            return FREE_FOOT
        if state == RELEASED:
            return TOUCHED if closing else RELEASED
        return TOUCHED if closing or state == TOUCHED else ABOVE
    if closing or state == TOUCHED:
        return TOUCHED
    if state == ABOVE:
        return ABOVE
    if touch_gap > 0.0 and gap[i] <= touch_gap:
        return RELEASED if state == RELEASED else ABOVE
    return FREE_FOOT


@kernel
def solve_held_rows(rows, u_free, feet, impulse, scratch, constrained):
    """Fill the impulses that hold the feet, or stop them.

    `feet` are the states, and where not zero the bias counts; `scratch` is that of the solvers and
    `law_vectors`; `constrained`: whether there are bilateral constraints.
    Return (status code, iterations, whether no held foot is redundant).
    """
    (state, uses_bias), vectors = feet, scratch[1]
    G, g, nc, ns = rows.delassus, rows.g, rows.friction.shape[0], rows.lower.shape[0]
    n = g.shape[0]
    row, target, m, largest = np.empty(n, np.int64), vectors[HELD][:n], 0, 0.0
    for r in range(3 * nc):
        largest = max(largest, G[r, r])
    # rows of held feet that can move (G_rr > 0): w = 0 where their bias counts, else u⁺ = 0
    for r in range(3 * nc):
        i = r // 3
        if (state[i] == TOUCHED or state[i] == ABOVE) and G[r, r] > 1e-12 * largest:
            row[m], target[m] = r, g[r] if uses_bias[i] != 0.0 else u_free[r]
            m += 1
        else:
            impulse[r] = 0.0
    for k in range(ns):
        row[m + k], target[m + k] = 3 * nc + k, g[3 * nc + k]
    # A x + target = 0 in these rows; interval rows, with bounds, stand behind them
    F = np.empty((m + ns, m + ns))
    for a in range(m + ns):
        for b in range(a, m + ns):
            F[a, b] = G[row[a], row[b]]
    sets = rows.lower, rows.upper, impulse[3 * nc :]
    # with the feet's rows f in front of the interval rows k, and the impulses of these λ,
    #     S = A_kk − A_kf A_ff⁺ A_fk,   w_k = S λ + target_k − A_kf A_ff⁺ target_f
    x, right, code, iterations = vectors[HELD + 1][:m], vectors[HELD + 2][: m + ns], CONVERGED, 0
    size = CONSISTENCY_TOLERANCE * largest_size(target, m + ns)
    for a in range(m + ns):
        right[a] = -target[a]
    eliminate_symmetric(F, right, m, m + ns)
    regular = are_independent(G, row, F, m)
    if regular:
        for k in range(ns):
            target[m + k] = -right[m + k]
        code, iterations = solve_intervals(G, F, m, target, size, sets, scratch)
        # back substitution: D Lᵀ x = right, where the interval rows are known
        for k in range(ns):
            right[m + k] = sets[2][k]
        for a in range(m - 1, -1, -1):
            total = right[a]
            for b in range(a + 1, m + ns):
                total -= F[a, b] * right[b]
            x[a] = right[a] = total * F[a, a]
    else:
        A = np.empty((m + ns, m + ns))
        for a in range(m + ns):
            for b in range(m + ns):
                A[a, b] = G[row[a], row[b]]
        code, iterations = share_least_norm(A, target, x, size, (sets, scratch, constrained), F)
    for a in range(m):
        impulse[row[a]] = x[a]
    return code, iterations, regular


@kernel
def are_independent(G, row, F, m):
    """Return whether the first m of the rows are far from dependent; F has 1/D on its diagonal."""
    independent = True
    for a in range(m):
        independent &= 1.0 > INDEPENDENT * G[row[a], row[a]] * F[a, a] > 0.0
    return independent


@kernel
def share_least_norm(A, target, x, size, given, F):
    """Fill x (m,) of redundant feet, and the interval rows; return (status code, iterations).

    Redundant feet share the impulse with least norm; those that constraints contradict get least
    squares. The interval rows are solved while the feet hold; then they act on the feet as given.
    """
    (sets, scratch, constrained), m, ns = given, x.shape[0], given[0][0].shape[0]
    order, L, gram = np.empty(m, np.int64), np.empty((m, m)), np.zeros((m, m))
    rank, code, of_feet = pivoted_cholesky(A[:m, :m].copy(), order, L), CONVERGED, target[:m]
    gram_cholesky(L, rank, gram)
    factor = order, L, gram
    least_norm_factored(A[:m, :m], factor, rank, of_feet, x)
    if constrained and not reaches(A[:m, :m], of_feet, x):
        code = INCONSISTENT
    # Y = L⁻¹ A_fk in the independent rows, S = A_kk − Yᵀ Y, and w_k without λ
    Y = np.empty((rank, ns))
    for a in range(m):
        for k in range(ns):
            target[m + k] += A[a, m + k] * x[a]
    for k in range(ns):
        for b in range(ns):
            F[m + k, m + b] = A[m + k, m + b]
    for a in range(rank):
        for k in range(ns):
            Y[a, k] = A[order[a], m + k]
        for b in range(a):
            for k in range(ns):
                Y[a, k] -= L[a, b] * Y[b, k]
        for k in range(ns):
            Y[a, k] /= L[a, a]
        for k in range(ns):
            for b in range(ns):
                F[m + k, m + b] -= Y[a, k] * Y[a, b]
    found, iterations = solve_intervals(A, F, m, target, size, sets, scratch)
    for a in range(m):
        for k in range(ns):
            target[a] += A[a, m + k] * sets[2][k]
    least_norm_factored(A[:m, :m], factor, rank, of_feet, x)
    return worse_status(code, found), iterations


@kernel
def reaches(A, target, x):
    """Return whether A x + target is zero to rounding."""
    missed = 0.0
    for a in range(x.shape[0]):
        rest = target[a]
        for b in range(x.shape[0]):
            rest += A[a, b] * x[b]
        missed = max(missed, abs(rest))
    return missed <= CONSISTENCY_TOLERANCE * largest_size(target, x.shape[0])


@kernel
def solve_intervals(G, F, m, target, size, sets, scratch):
    """Solve the interval rows while the feet hold; return (status code, iterations).

    They are the last rows of G. S is the upper triangle behind the first m rows of F, w_k without
    λ the numbers behind those of `target`; `sets` are lower, upper and λ, in and out. A row that
    the feet lock, S_kk = 0, takes no part: its velocity is given, zero if below `size`.
    """
    (lower, upper, impulse), ns = sets, sets[0].shape[0]
    first, (work, vectors) = G.shape[0] - ns, scratch
    if modes_go_on(G, F, m, target, sets, vectors):
        return CONVERGED, 0
    movable, n, code = np.empty(ns, np.int64), 0, CONVERGED
    # rows that can move; a locked one has no force, or that of the bound against its velocity
    for k in range(ns):
        if F[m + k, m + k] > LOCKED * G[first + k, first + k]:
            movable[n] = k
            n += 1
            continue
        impulse[k], velocity = 0.0, target[m + k]
        if abs(velocity) > size:
            bound = lower[k] if velocity > 0.0 else upper[k]
            if abs(bound) < np.inf:
                impulse[k] = bound
            else:
                code = INCONSISTENT
    if n == 0:
        return code, 0
    S = np.empty((n, n))
    s, guess = vectors[OF_INTERVALS][:n], vectors[OF_INTERVALS + 1][:n]
    low, high = vectors[OF_INTERVALS + 2][:n], vectors[OF_INTERVALS + 3][:n]
    for a in range(n):
        k = movable[a]
        s[a], guess[a], low[a], high[a] = target[m + k], impulse[k], lower[k], upper[k]
        for b in range(a, n):
            S[a, b] = S[b, a] = F[m + k, m + movable[b]]
    free = Rows(S, s, s[:0], low, high)
    found, iterations, _ = solve_cones(free, guess, work, TOLERANCE, LIMITS, 1.0)
    for a in range(n):
        impulse[movable[a]] = guess[a]
    return worse_status(code, found), iterations


@kernel
def modes_go_on(G, F, m, target, sets, vectors):
    """Solve the interval rows with those at a bound sliding on; return whether that is right."""
    (lower, upper, impulse), ns, n = sets, sets[0].shape[0], 0
    first = G.shape[0] - ns
    w, x, y = vectors[OF_INTERVALS], vectors[OF_INTERVALS + 1], vectors[OF_INTERVALS + 2]
    held = np.empty(ns, np.int64)
    for k in range(ns):
        w[k], x[k] = target[m + k], impulse[k]
        if lower[k] < x[k] < upper[k]:
            held[n], x[k] = k, 0.0
            n += 1
        if not F[m + k, m + k] > LOCKED * G[first + k, first + k]:
            return False
    # w under those that slide, S y = −w of those that are held, then w under both
    add_product(F, m, x, w, ns)
    S = np.empty((n, n))
    for a in range(n):
        y[a] = -w[held[a]]
        for b in range(a, n):
            S[a, b] = F[m + held[a], m + held[b]]
    solve_symmetric(S, y, n)
    for k in range(ns):
        w[k], x[k] = target[m + k], impulse[k]
    for a in range(n):
        x[held[a]] = y[a]
    add_product(F, m, x, w, ns)
    # what is held is inside its bounds, what slides moves against its force
    right = 0
    for a in range(n):
        w[held[a]] = 0.0
        right += lower[held[a]] < y[a] < upper[held[a]]
    for k in range(ns):
        right += (x[k] == lower[k] and w[k] > 0.0) or (x[k] == upper[k] and w[k] < 0.0)
    if right < ns:
        return False
    for a in range(n):
        impulse[held[a]] = y[a]
    return True


@kernel
def add_product(F, m, x, w, ns):
    """Add S x to w, S the upper triangle behind the first m rows of F."""
    for k in range(ns):
        row, entry = F[m + k], x[k]
        total = row[m + k] * entry
        for b in range(k + 1, ns):
            total += row[m + b] * x[b]
            w[b] += row[m + b] * entry
        w[k] += total


@kernel
def update_support(w, state, released, given, allowed_pull, impulse, slack):
    """Hold feet that sink, else release the one pulled most; return whether any changed."""
    # `allowed_pull` is the pull up to which a foot is held [N s], negative where none is released
    allows_release, changed = allowed_pull >= 0.0, False
    worst, worst_impulse = -1, -allowed_pull - slack[1]
    for i in range(state.shape[0]):
        held = state[i] == TOUCHED or state[i] == ABOVE
        if not held and not given and w[3 * i + 2] < -slack[0]:
            state[i], changed = TOUCHED, True
        elif held and allows_release and released[i] == 0.0 and impulse[3 * i + 2] < worst_impulse:
            worst, worst_impulse = i, impulse[3 * i + 2]
    if not changed and worst >= 0:
        state[worst], released[worst], changed = RELEASED, 1.0, True
    return changed


@kernel
def stance_status(w, state, mu, impulse, slack):
    """Return whether the stance is physical, as a status code."""
    code = CONVERGED
    for i in range(state.shape[0]):
        r = 3 * i
        if state[i] != TOUCHED and state[i] != ABOVE:
            if w[r + 2] < -slack[0] and code != PULLING:
                code = SINKING
        elif impulse[r + 2] < -slack[1]:
            code = PULLING
        elif code == CONVERGED:
            tangential = np.sqrt(impulse[r] ** 2 + impulse[r + 1] ** 2)
            if tangential > mu[i] * impulse[r + 2] + slack[1]:
                code = OUTSIDE_CONE
    return code


@kernel
def solve_null_space(data):
    """Solve the contact problem for the feet that are held."""
    law, counts, h = vector(data, f.LAW), integers(data, f.COUNTS), vector(data, f.TIME_STEP)[0]
    nc, n = counts[0], counts[1]
    rows, impulse, gap = rows_of(data), vector(data, f.ROW_IMPULSE)[:n], vector(data, f.ROW_GAP)
    u_free, given = vector(data, f.ROW_FREE), law[SUPPORT_GIVEN] != 0.0
    memory, memory_next = matrix(data, f.ROW_MEMORY), matrix(data, f.ROW_MEMORY_NEXT)
    G, g, mu = rows.delassus, rows.g, rows.friction
    fastest = largest_size(g, n)
    if not np.isfinite(fastest):
        impulse[:] = 0.0
        report_solve(data, (NONFINITE, 0, np.inf))
        return
    if last_impulses_hold(data):
        return
    baumgarte, vectors = law[USES_BAUMGARTE] != 0.0, matrix(data, f.LAW_VECTORS)
    # of each foot: the state now and before, whether its bias counts, whether it was let go
    state, old, uses_bias, released = (
        memory_next[:nc, STATE], memory_next[:nc, 0], memory_next[:nc, 1], memory_next[:nc, 2],
    )  # fmt: skip
    # state of each foot at the start, from the memory and from whether it would close; a link
    # over the ground that would close without the feet need not do so with them
    row_of, of_feet = integers(data, f.ROW_OF), 3 * integers(data, f.LEAF_DOF).shape[0]
    for i in range(nc):
        old[i], released[i] = memory[i, STATE] % GIVEN, 0.0
        closing = g[3 * i + 2] < 0.0 and (row_of[3 * i] < of_feet or gap[i] <= 0.0)
        state[i] = initial_state(i, given, gap, closing, memory, law[TOUCH_GAP])
    code, total, rounds, slack, regular = CONVERGED, 0, 0, (0.0, 0.0), False
    w, feet, scratch = vectors[0][:n], (state, uses_bias), (cone_work_of(data), vectors)
    # solve, then change the set of held feet until nothing sinks or is pulled too much
    for _ in range(3 * nc + 1):
        for i in range(nc):
            counts_bias = state[i] == TOUCHED and (baumgarte or old[i] != TOUCHED)
            uses_bias[i] = 1.0 if counts_bias else 0.0
        code, iterations, regular = solve_held_rows(
            rows, u_free, feet, impulse, scratch, has_bilateral(data)
        )
        total, rounds = total + iterations, rounds + 1
        fill_velocity_symmetric(rows, impulse, w)
        slack = 1e-12 * fastest, SLACK * largest_size(impulse, 3 * nc)
        allowed_pull = -1.0 if law[RELEASES] == 0.0 else h * law[RELEASE_FORCE]
        if not update_support(w, state, released, given, allowed_pull, impulse, slack):
            break
    # memory of the feet, and the residual w / G_rr of those held on the ground
    residual = 0.0
    for i in range(nc):
        if uses_bias[i] != 0.0:
            for r in range(3 * i, 3 * i + 3):
                residual = max(residual, abs(w[r]) / G[r, r] if G[r, r] > 0.0 else 0.0)
    physical = stance_status(w, state, mu, impulse, slack)
    code = physical if code == CONVERGED else code
    for i in range(nc):
        memory_next[i, REGULAR] = 1.0 if regular else 0.0
        uses_bias[i] = released[i] = 0.0
    report_solve(data, (code, total + rounds, residual))


@kernel
def begin_stance(data):
    """Leave out free feet, and try the impulses of the last step if the held feet carried them."""
    law = vector(data, f.LAW)
    leave_out_free_feet(data)
    if law[SUPPORT_GIVEN] == 0.0 and law[USES_BAUMGARTE] != 0.0 and keeps_feet(data):
        try_last_impulses(data, TOLERANCE, 0.0, 1.0)


@kernel
def leave_out_free_feet(data):
    """Take detected feet that are free, and would stay so without contact, out of the problem.

    One that the impulses of others close comes back (`activate_closing`).
    """
    law, memory, active = vector(data, f.LAW), matrix(data, f.MEMORY_START), vector(data, f.ACTIVE)
    gap, u_free = vector(data, f.GAP_START), vector(data, f.U_FREE)
    friction, reach = vector(data, f.FRICTION), vector(data, f.REACH)
    if law[SUPPORT_GIVEN] != 0.0:
        return
    for i in range(contact_branches(data)[3]):
        free = memory[i, STATE] == FREE_FOOT and gap[i] > law[TOUCH_GAP]
        if free and active[i] > 0.0 and predicted_gap(gap, u_free, i, friction, reach) > 0.0:
            active[i] = 0.0


@kernel
def keeps_feet(data):
    """Return whether the loaded feet are those held before, none redundant, and no other closes.

    While all of these press within their cones the law is that of ncp.
    """
    impulse, memory = vector(data, f.IMPULSE), matrix(data, f.MEMORY_START)
    active, u_free, bias = vector(data, f.ACTIVE), vector(data, f.U_FREE), vector(data, f.BIAS)
    for i in range(contact_branches(data)[3]):
        n, state = 3 * i + 2, memory[i, STATE]
        if active[i] > 0.0 and impulse[n] > 0.0:
            # between steps the first three numbers are a vector in world axes
            regular = memory[i, 0] ** 2 + memory[i, 1] ** 2 + memory[i, 2] ** 2
            same = state == TOUCHED and regular > 0.5
        else:
            same = active[i] <= 0.0 or (state == FREE_FOOT and u_free[n] + bias[n] >= 0.0)
        if not same:
            return False
    return True


@kernel
def command_support(data):
    """Write the given feet into the memory that the step starts from."""
    if vector(data, f.LAW)[SUPPORT_GIVEN] == 0.0:
        return
    memory, command = matrix(data, f.MEMORY), vector(data, f.SUPPORT_COMMAND)
    gap, features = vector(data, f.GAP), integers(data, f.GROUND)[1]
    for first in range(0, command.shape[0], features):
        # of the contacts of a contact point the nearest is held: held in three directions, the
        # point is held
        nearest = first
        for i in range(first + 1, first + features):
            if gap[i] < gap[nearest]:
                nearest = i
        for i in range(first, first + features):
            given = command[i] if i == nearest else 0.0
            memory[i, STATE] = memory[i, STATE] % GIVEN + given


class NullSpace(TimeSteppingModel):
    """The stance model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'null_space'
    parameter_class: ClassVar[type[Parameters]] = NullSpaceParameters
    compiled: CompiledLaw = compiled_law(
        solve_null_space, before_step=command_support, before_solving=begin_stance,
        next_problem=next_unheld_problem,
    )  # fmt: skip
    restitutes: ClassVar[bool] = False
    has_memory = True  # the support outlasts the step
    margin = np.inf  # a held foot is held at any gap, a free one may enter

    def __init__(self, **parameters: object) -> None:
        feet = parameters.get('feet', ())
        if isinstance(feet, Iterable) and not isinstance(feet, str):
            parameters['feet'] = tuple(
                str(foot) if hasattr(foot, '__index__') else foot
                for foot in as_tuple('feet', feet)
            )
        self.parameters: NullSpaceParameters = NullSpaceParameters(**parameters)  # type: ignore[arg-type]

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, 0): a foot is included if its gap would close."""
        return h, 0.0

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law.

        Raises:
            UnknownName: a given foot that the robot does not have.
            InvalidInput: a contact point listed twice.
        """
        p, robot, features = self.parameters, workspace.robot, workspace.sizes.features
        points, what = robot.contact_points, 'foot in NullSpaceParameters.feet'
        workspace.support_command[:] = 0.0
        command = workspace.support_command.copy()
        for foot in p.feet if p.support == 'given' else ():
            for index in contact_point_indices(what, foot, robot.feet, points):
                of_point = slice(features * index, features * (index + 1))
                if command[of_point].any():
                    raise InvalidInput(
                        f'NullSpaceParameters.feet: {points[index].name} is listed twice'
                    )
                command[of_point] = GIVEN
        workspace.support_command[:] = command
        return super().bind(workspace)

    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters in the order of the constants of this module."""
        p = self.parameters
        return (
            float(p.support == 'given'), p.touch_gap, float(p.stabilisation == 'baumgarte'),
            float(p.release), p.release_force,
        )  # fmt: skip
