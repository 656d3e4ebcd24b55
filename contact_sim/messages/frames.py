"""Names of frames in messages, and the parameters that decide about them and about sensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from contact_sim.parameters import Parameters, Settings, declared_parameters, parameter
from contact_sim.robot.feet import Foot
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import RobotPart
from contact_sim.sensors import (
    ContactSensing,
    EncoderSensing,
    ForceSensing,
    ImuSensing,
    NoiseParameters,
)

IMU_LINK = 'imu_link'
RECORDED_AS = 'node'
"""Name in a recording of the parameters without a prefix."""


@dataclass(frozen=True)
class FrameParameters(Parameters):
    """Names of frames, and which noise sensors have."""

    base_frame: str = parameter('', '', 'frame id of the base; empty: the root link')
    odom_frame: str = parameter('odom', '', 'frame id of the world that odometry refers to')
    world_frame: str = parameter('world', '', 'parent of odom_frame; empty: not published')
    frame_prefix: str = parameter('', '', 'put before link names, as in robot_state_publisher')
    publish_odom_tf: bool = parameter(True, '', 'broadcast odom_frame to base_frame on /tf')
    contact_wrench_frame: str = parameter(
        'foot', '', 'frame of contacts/<foot>/wrench: the foot link, or odom_frame',
        choices=('foot', 'odom'),
    )  # fmt: skip
    seed: int = parameter(
        0, '', 'which sensor noise is drawn, see noise; the simulation itself has nothing random',
        at_least=0, at_most=2**31 - 1, live=True,
    )  # fmt: skip


@dataclass(frozen=True)
class ImuParameters(Parameters):
    """The inertial sensor."""

    frame_id: str = parameter(
        '',
        '',
        'frame of imu/data, any of the robot; empty: imu_link if the robot has it on its '
        'base, else the base',
    )


GROUPS: dict[str, type[Parameters]] = {
    '': FrameParameters,
    'imu': ImuParameters,
    'noise': NoiseParameters,
    'sensors.imu': ImuSensing,
    'sensors.joints': EncoderSensing,
    'sensors.contacts': ContactSensing,
    'sensors.forces': ForceSensing,
}
"""Dotted prefix to the class of the parameters on which messages depend."""


def recorded_settings(parameters: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Return the settings of a run from the parameters in its recording.

    Of one that was recorded without parameters, outside of the node, they are the defaults.

    Raises:
        InvalidInput: a value that is not allowed.
    """
    settings: Settings = {}
    for prefix, cls in GROUPS.items():
        said = parameters.get(prefix or RECORDED_AS, {})
        names = {field.name for field in declared_parameters(cls)}  # type: ignore[arg-type]
        settings[prefix] = cls(**{name: said[name] for name in names & said.keys()})
    return settings


def frame_id(part: RobotPart, settings: Settings, frame: str) -> str:
    """Return the name that a frame of a robot has in TF."""
    return str(settings[''].frame_prefix) + part.called(frame)


def base_frame_id(part: RobotPart, settings: Settings) -> str:
    """Return the frame id of the base of a robot."""
    return frame_id(part, settings, settings[''].base_frame or part.robot.base_frame)


def imu_frame(robot: RobotModel, settings: Settings) -> str:
    """Return the Pinocchio frame of the IMU, '' for the base itself."""
    wanted: str = settings['imu'].frame_id
    root = 1 if robot.floating_base else 0
    on_base = [f.name for f in robot.pinocchio_model.frames if f.parentJoint == root]
    return wanted or (IMU_LINK if IMU_LINK in on_base else '')


def imu_frame_id(part: RobotPart, settings: Settings) -> str:
    """Return the frame id of the IMU of a robot."""
    frame = imu_frame(part.robot, settings)
    return frame_id(part, settings, frame) if frame else base_frame_id(part, settings)


def wrench_axes(settings: Settings) -> str:
    """Return in which axes feet tell their forces, `FootForces.axes`."""
    return 'foot' if settings[''].contact_wrench_frame == 'foot' else 'world'


def wrench_frame_ids(part: RobotPart, settings: Settings, feet: Iterable[Foot]) -> list[str]:
    """Return the frame ids of the wrenches of feet, or of links that are used like feet."""
    if wrench_axes(settings) == 'world':
        return [str(settings[''].odom_frame) for _ in feet]
    return [frame_id(part, settings, foot.frame) for foot in feet]
