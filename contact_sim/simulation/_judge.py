"""Residuals of steps, and the reason for a motion that is not finite.

The residuals are computed from the step data alone, by compiled functions. The arrays are those of
a workspace of its own; the step data are copied in, and the kernels that solved the step build its
contact problem once more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import real_array
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import arrays_of, frames, integers, matrix, vector
from contact_sim.contact_models._stages import (
    JOINT_PD,
    MAX_TURN,
    fill_jacobian,
    gather_problem,
    place_bodies,
)
from contact_sim.dynamics._forces import spring_energy
from contact_sim.robot._actuators import joint_mobility, largest_time_step, stability_number
from contact_sim.robot._model import RobotModel
from contact_sim.solvers._jit import kernel
from contact_sim.step._bilateral_rows import (
    ELIMINATE,
    add_bilateral_impulse,
    bilateral_work,
    has_bilateral,
    run_task,
)
from contact_sim.step._contact_rows import (
    contact_branches,
    first_moment,
    generalized_impulse,
    interval_branches,
    note_in_use,
    rows_of,
)
from contact_sim.step._inertia import (
    factor_inertia,
    form_inertia,
    multiply_inertia,
    rebuild_inertia,
)
from contact_sim.step._moment_rows import REBUILD, bound_moments, run_moments
from contact_sim.step._problem import LAW_RESIDUALS, TOUCHING, judge_rows
from contact_sim.step._workspace import Workspace, load_contact_memory

# --- Residuals

NOWHERE = np.zeros(0, dtype=np.intp)
"""Places of no numbers."""


@kernel
def rebuild_problem(numbers, indices, layout):
    """Fill the contact problem of the step data; return the numbers of contacts and of rows."""
    data = arrays_of(numbers, indices, layout, 0)
    rebuild_start(data)
    fill_problem(data)
    counts = integers(data, f.COUNTS)
    load_contact_memory(
        matrix(data, f.MEMORY_START), frames(data, f.FRAME_START), integers(data, f.ROW_OF),
        counts[0], matrix(data, f.ROW_MEMORY),
    )  # fmt: skip
    return counts[0], counts[1]


@kernel
def fill_inertia(numbers, indices, layout, M):
    """Fill the lower triangle of M̂ (nv, nv) of a deep tree, of the problem last rebuilt."""
    form_inertia(arrays_of(numbers, indices, layout, 0), M)


@kernel
def judge_steps(numbers, judged, indices, layout, length, places, values, out):
    """Fill `out` with the fields of `Residuals` of the steps of n worlds, in their order.

    The first `length` of `numbers` (n, ...) are the step data, of which those at `places` (m,) go
    to `values` (n, m). The contact problems are built once more in copies, `judged`; if `length`
    is 0, these have the steps in them, with M̂ and J.
    """
    for i in range(numbers.shape[0]):
        for k in range(length):
            judged[i, k] = numbers[i, k]
        if length > 0:
            rebuild_start(arrays_of(judged, indices, layout, i))
        judge(arrays_of(judged, indices, layout, i), out[i])
        for k in range(places.shape[0]):
            values[i, k] = numbers[i, places[k]]


@kernel
def judge(data, out):
    """Fill the residuals of the step in `data`."""
    n = fill_problem(data)
    bias, row_of = vector(data, f.BIAS), integers(data, f.ROW_OF)
    scratch = matrix(data, f.CONE_WORK)
    row_bias = scratch[0]
    for a in range(n):
        row_bias[a] = bias[row_of[a]]
    judge_rows(
        rows_of(data), row_bias[:n], vector(data, f.ROW_IMPULSE)[:n], scratch[1][:n],
        scratch[2][:n], out,
    )  # fmt: skip
    judge_contacts(data, out[LAW_RESIDUALS:])
    out[LAW_RESIDUALS + 3] = momentum_residual(data)
    fill_energy_balance(data, out[LAW_RESIDUALS + 4 :])


@kernel
def rebuild_start(data):
    """Fill placements, M̂ and J at the start of the step data."""
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        place_bodies(data, vector(data, f.Q_START))
    rebuild_inertia(data)
    note_in_use(data)
    fill_jacobian(data)
    run_moments(data, REBUILD)


@kernel
def fill_problem(data):
    """Fill the contact problem of the step at hand without restitution; return its rows."""
    factor_inertia(data)
    if has_bilateral(data):
        run_task(data, ELIMINATE)
    guard = matrix(data, f.GUARD)
    for island in range(guard.shape[0]):
        guard[island, 0] = 0.0
    note_in_use(data)
    bound_moments(data)
    return gather_problem(data)


@kernel
def judge_contacts(data, out):
    """Fill penetration, force at a distance and slip."""
    gap, impulse, u = vector(data, f.GAP), vector(data, f.IMPULSE), vector(data, f.U_NEXT)
    out[0] = out[1] = out[2] = 0.0
    for i in range(gap.shape[0]):
        normal = impulse[3 * i + 2]
        out[0] = max(out[0], -gap[i])
        if gap[i] > TOUCHING:
            out[1] += normal
        if normal > 0.0:
            out[2] = max(out[2], np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2))


@kernel
def momentum_residual(data):
    """Return max |M̂ (v⁺ − v_f) − Jᵀ λ|."""
    v_next, v_free = vector(data, f.V_NEXT), vector(data, f.V_FREE)
    left, right = vector(data, f.DISPLACEMENT), vector(data, f.MOMENTUM)
    generalized_impulse(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data),
        interval_branches(data), integers(data, f.DOF_PARENT), vector(data, f.IMPULSE), left,
    )  # fmt: skip
    add_bilateral_impulse(data, left)
    for k in range(left.shape[0]):
        right[k] = v_next[k] - v_free[k]
    multiply_inertia(data, right)
    worst = 0.0
    for k in range(left.shape[0]):
        worst = max(worst, abs(right[k] - left[k]))
    return worst


@kernel
def fill_energy_balance(data, out):
    """Fill the fields of `EnergyBalance`, in their order."""
    before, after = vector(data, f.ENERGY_START), vector(data, f.ENERGY)
    gravity, h = vector(data, f.GRAVITY), vector(data, f.TIME_STEP)[0]
    nc = 3 * vector(data, f.GAP).shape[0]
    first, moments = nc + first_moment(data), 3 * vector(data, f.TORSIONAL_FRICTION).shape[0]
    v, v_next = vector(data, f.V_START), vector(data, f.V_NEXT)
    tau, damping = vector(data, f.TAU), vector(data, f.DAMPING)
    impulse, bias = vector(data, f.IMPULSE), vector(data, f.BIAS)
    u_start, u_next = vector(data, f.U_START), vector(data, f.U_NEXT)
    out[0] = after[0] - before[0]
    for a in range(3):
        out[0] -= gravity[a] * (after[1 + a] - before[1 + a])
    places, springs = integers(data, f.SPRING_Q), (
        vector(data, f.JOINT_STIFFNESS), vector(data, f.JOINT_REST),
    )  # fmt: skip
    out[0] += spring_energy(vector(data, f.Q), places, springs)
    out[0] -= spring_energy(vector(data, f.Q_START), places, springs)
    for k in range(1, 7):
        out[k] = 0.0
    for k in range(v.shape[0]):
        mean = 0.5 * h * (v[k] + v_next[k])
        out[1] += mean * tau[k]
        out[2] -= mean * damping[k] * v_next[k]
    for r in range(impulse.shape[0]):
        of_contact = r < nc or first <= r < first + moments
        out[3 if of_contact else 4] += 0.5 * impulse[r] * (u_start[r] + u_next[r])
        out[5] -= impulse[r] * bias[r]
    out[6] = bilateral_work(data)


# --- Limits of explicit terms that a motion crossed (theory 2.0)


def refusal_of(work: Workspace, robot: RobotModel, contact_model: str) -> str:
    """Return why a step is refused that would not be finite; arguments as `crossed_limits`."""
    time, _, steps = work.data.clock
    return (
        f'step {steps + 1:.0f} at t = {time:g} s would not be finite under contact model '
        f'{contact_model!r}: {crossed_limits(work, robot)}; reset to go on'
    )


def controller_limit(
    effort: Callable[[float, Array, Array], ArrayLike],
    state: tuple[float, Array, Array],
    robot: RobotModel,
    h: float,
) -> str:
    """Return how small a time step the gains of a controller need, '' where h is small enough.

    Its gains are the changes of the efforts with positions and speeds of their own joints.

    Args:
        effort: the controller, a function of time [s], q (nq,) and v (nv,).
        state: time, q and v at which it is asked; its answers are not used otherwise.
        robot: what it controls.
        h: time step [s].
    """
    time, q, v = state
    positions, n = robot.joint_positions(q), robot.n_joints
    kp, kd = np.zeros(n), np.zeros(n)
    try:
        middle = real_array('effort', effort(time, q, v))
        for j, dof in enumerate(robot.joint_velocity_index):
            moved, faster = positions.copy(), v.copy()
            moved[j] += PROBE
            faster[dof] += PROBE
            at = real_array('effort', effort(time, robot.with_joint_positions(q, moved), v))
            kp[j] = max(float(middle[j] - at[j]) / PROBE, 0.0)
            at = real_array('effort', effort(time, q, faster))
            kd[j] = max(float(middle[j] - at[j]) / PROBE, 0.0)
    except Exception:  # whatever a controller raises that is asked once more
        return ''
    mobility = joint_mobility(robot.pinocchio_model, robot.joint_velocity_index, q, robot.loops)
    limit = largest_time_step(mobility, kp, kd)
    if not h > limit:
        return ''
    return (
        f'PD gains of the controller: up to k_p = {kp.max():.3g} N m/rad and k_d = {kd.max():.3g} '
        f'N m s/rad are stable below a time_step of {limit:.2g} s, which is {h:.2g} s here: '
        'smaller gains, or a smaller time_step'
    )


PROBE = 1e-4
"""Change of a position [rad] and of a speed [rad/s] with which a controller is asked."""
MOVING = 1.0
"""Joint speed from which on efforts say how strongly a controller answers it [rad/s, m/s]."""
STRONGEST_FEEDBACK = 2.0
"""h b/m from which on efforts −b v that hold for a step make v grow."""


def feedback_limit(work: Workspace, robot: RobotModel) -> list[str]:
    """Return the limit that efforts against the joint speeds crossed, as those of PD gains.

    A mode of the joints that grows with alternating signs has efforts τ = −b v with h b/m > 2,
    whatever share of b are k_d and h k_p. The efforts are those that are commanded, before limits.
    """
    data, h = work.data, float(work.data.time_step[0])
    joints = robot.joint_velocity_index
    speed, effort = data.v[joints], work.command
    moving = (np.abs(speed) > MOVING) & (speed * effort < 0.0)
    if not moving.any():
        return []
    gain = np.where(moving, -effort / np.where(moving, speed, 1.0), 0.0)
    mobility = joint_mobility(robot.pinocchio_model, joints, data.q, robot.loops)
    _, number = stability_number(mobility, np.zeros(len(gain)), gain, h)
    if not number > STRONGEST_FEEDBACK:
        return []
    name = robot.joint_names[int(gain.argmax())]
    return [
        f'the efforts answer joint speeds with up to {gain.max():.3g} N m s/rad (joint {name!r}), '
        f'as PD gains that are too large for this time step: h k_d/m = {number:.3g}, stable below '
        f'2: smaller gains or a time_step below {STRONGEST_FEEDBACK * h / number:.2g} s'
    ]


def crossed_limits(work: Workspace, robot: RobotModel) -> str:
    """Return the limits that the last motion crossed, each with its figure and what helps.

    Args:
        work: arrays of a world whose next step would not be finite, at the state before it.
        robot: its robot.
    """
    data, texts = work.data, []
    h, time = float(data.time_step[0]), float(data.clock[0])
    limit = work.effort_limit
    saturated = np.isfinite(limit) & (np.abs(data.effort) >= limit)
    free = np.flatnonzero(~saturated)
    if work.control[0] == JOINT_PD and len(free):  # efforts at their limits are bounded
        joints = robot.joint_velocity_index[free]
        mobility = joint_mobility(robot.pinocchio_model, joints, data.q, robot.loops)
        kp, kd = work.kp[free], work.kd[free]
        a, b = stability_number(mobility, kp, kd, h)
        if not a + 2.0 * b <= 4.0:
            texts.append(
                f'explicit joint PD: h² k_p/m + 2 h k_d/m = {a:.3g} + {2.0 * b:.3g}, stable below '
                f'4: smaller gains or a time_step below {largest_time_step(mobility, kp, kd):.2g} '
                's'
            )
    elif work.control[0] != JOINT_PD:
        texts += feedback_limit(work, robot)
        if h > robot.gains_time_step:
            texts.append(
                f'joint PD with robot.default_gains is stable below {robot.gains_time_step:.2g} '
                f's, the time step is {h:.2g} s'
            )
    since, turn = work.fast
    if turn == 0.0 or since > time:  # the state was set, or became so, with the last step
        turns = np.linalg.norm(work.columns[:, 3:], axis=1)
        since, turn = time, h * np.max(np.abs(data.v) * turns, initial=0.0)
    if turn > MAX_TURN:
        texts.append(
            f'explicit Coriolis and centrifugal forces: from t = {since:g} s on something turned '
            f'by h |ω| = {turn:.3g} rad per step and more, stable below about 1: a time_step '
            f'below {h / turn:.2g} s, or slower motion'
        )
    if not texts:
        texts.append(
            'no limit of explicit terms was crossed before: look at the state and the efforts'
        )
    if saturated.any():
        full = int(np.count_nonzero(saturated))
        texts.append(f'{full} of {robot.n_joints} joints are at their effort limits')
    speed = np.abs(data.v).max(initial=0.0)
    return '; '.join([*texts, f'largest speed before it {speed:.3g}'])
