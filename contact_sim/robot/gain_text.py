"""PD gains in words: what acts in the joints, for the log at start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_sim.robot.contact_point import Array
from contact_sim.robot.gains import joint_mobility, largest_time_step
from contact_sim.robot.model import RobotModel


def describe_gains(robot: RobotModel, kp: Array, kd: Array, q: Array) -> str:
    """Return a line that says which gains act and up to which time step they are stable.

    Args:
        robot: what moves.
        kp: [N m/rad], of prismatic joints [N/m], shape (n_joints,).
        kd: [N m s/rad], of prismatic joints [N s/m], shape (n_joints,).
        q: configuration in which they are to be stable, shape (nq,).
    """
    if not robot.n_joints:
        return 'PD gains: no joint is driven'
    default = robot.default_gains
    own = int(np.count_nonzero((kp == default[0]) & (kd == default[1])))
    ranges = (f'{name} {_range(robot.joint_names, gain)}' for name, gain in (('p', kp), ('d', kd)))
    return (
        f"PD gains: {', '.join(ranges)}; the robot's own in {own} of {robot.n_joints} joints; "
        f'stable at time steps below {gains_limit(robot, kp, kd, q):.2g} s'
    )


def gain_table(robot: RobotModel, kp: Array, kd: Array) -> str:
    """Return the gains of every joint."""
    rows = zip(robot.joint_names, kp.tolist(), kd.tolist(), strict=True)
    return 'PD gains: ' + '; '.join(f'{name} p {p:.4g} d {d:.4g}' for name, p, d in rows)


def gains_limit(robot: RobotModel, kp: Array, kd: Array, q: Array) -> float:
    """Return the time step below which explicit PD is stable at `q` in the air [s]."""
    joints = robot.joint_velocity_index
    return largest_time_step(joint_mobility(robot.pinocchio_model, joints, q, robot.loops), kp, kd)


def _range(names: Sequence[str], gain: Array) -> str:
    low, high = int(gain.argmin()), int(gain.argmax())
    return f'{gain[low]:.4g} ({names[low]}) to {gain[high]:.4g} ({names[high]})'
