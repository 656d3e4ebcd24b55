"""Why a motion was not finite: the limits of explicit terms that it crossed (theory 2.0)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.time_stepping.actuation import JOINT_PD
from contact_sim.contact_models.time_stepping.turning import FASTEST
from contact_sim.robot.gains import joint_mobility, largest_time_step, stability_number
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


def refusal_of(work: Workspace, robot: RobotModel, contact_model: str) -> str:
    """Return why a step is refused that would not be finite; arguments as `crossed_limits`."""
    time, _, steps = work.data.clock
    return (
        f'step {steps + 1:.0f} at t = {time:g} s would not be finite under contact model '
        f'{contact_model!r}: {crossed_limits(work, robot)}; reset to go on'
    )


def crossed_limits(work: Workspace, robot: RobotModel) -> str:
    """Return the limits that the last motion crossed, each with its figure and what helps.

    Args:
        work: arrays of a world whose next step would not be finite, at the state before it.
        robot: its robot.
    """
    texts = [text for text in (_gains(work, robot), _turning(work)) if text]
    if not texts:
        texts = [
            'no limit of explicit terms was crossed before: look at the state and the efforts'
        ]
    full = int(np.count_nonzero(_saturated(work)))
    if full:
        texts.append(f'{full} of {robot.n_joints} joints are at their effort limits')
    speed = np.abs(work.data.v).max(initial=0.0)
    return '; '.join([*texts, f'largest speed before it {speed:.3g}'])


def _saturated(work: Workspace) -> NDArray[np.bool_]:
    limit = work.effort_limit
    return np.asarray(np.isfinite(limit) & (np.abs(work.data.effort) >= limit))


def _gains(work: Workspace, robot: RobotModel) -> str:
    """Return what is wrong with joint PD; where efforts are at their limits it is bounded."""
    free = np.flatnonzero(~_saturated(work))
    if work.control[0] != JOINT_PD or not len(free):
        return ''
    h = float(work.data.time_step[0])
    joints = robot.joint_velocity_index[free]
    mobility = joint_mobility(robot.pinocchio_model, joints, work.data.q, robot.loops)
    kp, kd = work.kp[free], work.kd[free]
    a, b = stability_number(mobility, kp, kd, h)
    if a + 2.0 * b <= 4.0:
        return ''
    largest = largest_time_step(mobility, kp, kd)
    return (
        f'explicit joint PD: h² k_p/m + 2 h k_d/m = {a:.3g} + {2.0 * b:.3g}, stable below 4: '
        f'smaller gains or a time_step below {largest:.2g} s'
    )


def _turning(work: Workspace) -> str:
    h, time = float(work.data.time_step[0]), float(work.data.clock[0])
    since, turn = work.fast
    if turn == 0.0 or since > time:  # the state was set, or became so, with the last step
        turns = np.linalg.norm(work.columns[:, 3:], axis=1)
        since, turn = time, h * np.max(np.abs(work.data.v) * turns, initial=0.0)
    if not turn > FASTEST:
        return ''
    return (
        f'explicit Coriolis and centrifugal forces: from t = {since:g} s on something turned by '
        f'h |ω| = {turn:.3g} rad per step and more, stable below about 1: a time_step below '
        f'{h / turn:.2g} s, or slower motion'
    )
