"""Parameters of trajectories; imports no ROS."""

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
