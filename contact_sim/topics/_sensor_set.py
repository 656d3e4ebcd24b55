"""The sensors of a robot, made from parameters: frames, errors, measured and true values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from contact_sim.parameters import Parameters, Settings, declared_parameters, parameter
from contact_sim.robot._contact_points import Foot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.sensors import (
    ContactFlags,
    ContactSensing,
    DelayedSensor,
    Encoders,
    EncoderSensing,
    FootForces,
    ForceSensing,
    Imu,
    ImuSensing,
    NoiseParameters,
)
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._sensor import EXACT

# --- Parameters.

IMU_LINK = 'imu_link'
RECORDED_AS = 'node'
"""Name of the parameters without a prefix in a recording."""


@dataclass(frozen=True)
class FrameParameters(Parameters):
    """Names of frames, and the seed of the sensor noise."""

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
    """Return the settings of a run from the parameters in its recording, else the defaults.

    Raises:
        InvalidInput: a value that is not allowed.
    """
    settings: Settings = {}
    for prefix, cls in GROUPS.items():
        values = parameters.get(prefix or RECORDED_AS, {})
        names = {field.name for field in declared_parameters(cls)}  # type: ignore[arg-type]
        settings[prefix] = cls(**{name: values[name] for name in names & values.keys()})
    return settings


# --- Frame ids.


def frame_id(part: RobotPart, settings: Settings, frame: str) -> str:
    """Return the name that a frame of a robot has in TF."""
    return str(settings[''].frame_prefix) + part.qualified_name(frame)


def base_frame_id(part: RobotPart, settings: Settings) -> str:
    """Return the frame id of the base of a robot."""
    return frame_id(part, settings, settings[''].base_frame or part.robot.base_frame)


def imu_frame(robot: RobotModel, settings: Settings) -> str:
    """Return the Pinocchio frame of the IMU, '' for the base itself."""
    chosen: str = settings['imu'].frame_id
    root = 1 if robot.floating_base else 0
    on_base = [f.name for f in robot.pinocchio_model.frames if f.parentJoint == root]
    return chosen or (IMU_LINK if IMU_LINK in on_base else '')


def imu_frame_id(part: RobotPart, settings: Settings) -> str:
    """Return the frame id of the IMU of a robot."""
    frame = imu_frame(part.robot, settings)
    return frame_id(part, settings, frame) if frame else base_frame_id(part, settings)


def wrench_axes(settings: Settings) -> str:
    """Return the axes of the foot forces, `FootForces.axes`."""
    return 'foot' if settings[''].contact_wrench_frame == 'foot' else 'world'


def wrench_frame_ids(part: RobotPart, settings: Settings, feet: Iterable[Foot]) -> list[str]:
    """Return the frame ids of the wrenches of feet, or of links that are used like feet."""
    if wrench_axes(settings) == 'world':
        return [str(settings[''].odom_frame) for _ in feet]
    return [frame_id(part, settings, foot.frame) for foot in feet]


# --- The sensors.

SEEDS = 2**31
"""Distance of the seeds of two robots; the parameter is smaller."""
SETTINGS = ('noise', 'sensors.imu', 'sensors.joints', 'sensors.contacts', 'sensors.forces')
"""Prefixes of the live parameters of sensors."""


class RobotSensors(NamedTuple):
    """The sensors of a robot."""

    joints: Encoders
    imu: Imu
    contacts: ContactFlags
    forces: FootForces


def chosen_sensors(part: RobotPart, settings: Settings) -> RobotSensors:
    """Return the sensors that the settings describe; each robot has noise of its own.

    Raises:
        UnknownName: a frame or a foot that the robot does not have.
    """
    robot, noise = part.robot, settings['noise']
    seed = settings[''].seed + SEEDS * part.number
    joints = (*robot.joint_names, *robot.passive_joint_names)
    switches = _own_switches(part, settings['sensors.contacts'])
    return RobotSensors(
        Encoders(robot, joints, noise, settings['sensors.joints'], seed),
        Imu(robot, imu_frame(robot, settings), noise, settings['sensors.imu'], seed),
        ContactFlags(robot, switches, seed),
        FootForces(robot, wrench_axes(settings), noise, settings['sensors.forces'], seed),
    )


def _own_switches(part: RobotPart, sensing: ContactSensing) -> ContactSensing:
    """Return the contact switches of one robot, whose feet have the names that it has alone."""
    spared = sensing.dropout_feet and not part.own(sensing.dropout_feet)
    return replace(
        sensing,
        stuck_on=part.own(sensing.stuck_on),
        stuck_off=part.own(sensing.stuck_off),
        dropout=0.0 if spared else sensing.dropout,
        dropout_feet=part.own(sensing.dropout_feet),
    )


def check_sensors(robot: RobotModel, settings: Settings) -> None:
    """Refuse sensors that not every robot can have.

    Raises:
        UnknownName: a frame or a foot that does not exist.
    """
    ContactFlags(robot, settings['sensors.contacts'])  # feet of robots that do not exist
    for part in parts_of(robot):
        chosen_sensors(part, settings)


class SensorSet:
    """All sensors of a robot with their delays; let them observe every step.

    Args:
        part: robot that has them.
        settings: of all sensors.
    """

    def __init__(self, part: RobotPart, settings: Settings) -> None:
        self.sensors = chosen_sensors(part, settings)
        self._lines = {
            kind: DelayedSensor(sensor) for kind, sensor in self.sensors._asdict().items()
        }
        self._remembering = [line for line in self._lines.values() if line.sensor.remembers]

    def observe(self, report: Report) -> None:
        """Take the samples of a step, published or not."""
        for line in self._remembering:
            line.observe(report)

    def measured(self, kind: str, report: Report) -> Any:
        """Return what a sensor, a field of RobotSensors, measures after a step."""
        line = self._lines[kind]
        line.observe(report)
        return line.measured()

    def true(self, kind: str, report: Report) -> Any:
        """Return the exact values of a sensor."""
        return self._lines[kind].sensor.truth(report)


def exact(imu: Imu) -> Imu:
    """Return an IMU without errors on the same frame."""
    return replace(imu, noise=EXACT, sensing=ImuSensing())
