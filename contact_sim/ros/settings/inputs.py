"""Parameters of topics that commands arrive on; imports no ROS."""

from __future__ import annotations

from dataclasses import dataclass

from contact_sim.parameters import Parameters, parameter


@dataclass(frozen=True)
class TrajectoryParameters(Parameters):
    """Rules for joint_trajectory, named as those of joint_trajectory_controller."""

    allow_partial_joints_goal: bool = parameter(
        False, '', 'take trajectories of some joints; the others keep their commands', live=True
    )
    interpolate_from_desired_state: bool = parameter(
        True, '', 'begin where the joints were last told to be; false: where they are', live=True
    )


@dataclass(frozen=True)
class EffortOrderParameters(Parameters):
    """Order of the numbers on joint_group_effort_controller/commands."""

    joints: tuple[str, ...] = parameter(
        (), '', 'joints that its efforts are of, in this order; empty: all, in the order that the '
        'node logs',
    )  # fmt: skip
