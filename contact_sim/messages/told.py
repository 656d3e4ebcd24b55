"""What the sensors of a robot tell, step by step, and what is true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.messages.frames import imu_frame, wrench_axes
from contact_sim.parameters import Settings
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import RobotPart, parts_of
from contact_sim.sensors import (
    ContactFlags,
    ContactSensing,
    Encoders,
    FootForces,
    Imu,
    ImuSensing,
    Line,
)
from contact_sim.sensors.noise import EXACT, SMALLEST_VARIANCE
from contact_sim.sensors.part_report import Report
from contact_sim.simulation.touch import touching_links

Array = NDArray[np.float64]
SEEDS = 2**31
"""Distance of the seeds of two robots; one that is given is smaller."""
SETTINGS = ('noise', 'sensors.imu', 'sensors.joints', 'sensors.contacts', 'sensors.forces')
"""Prefixes of the parameters that sensors depend on while the simulation runs."""
NOT_TOLD = np.array([-1.0, 0.0, 0.0])
"""Diagonal of the covariance of an orientation that a sensor does not tell (REP 145)."""
EXACT_COVARIANCE = SMALLEST_VARIANCE * np.eye(6).ravel()
"""Covariance of what is exact, of pose and twist; 0 would say 'unknown'. Shape (36,)."""


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


class SensorLines:
    """The lines of all sensors of a robot; show them every step.

    Args:
        part: whose sensors.
        settings: of all sensors.
    """

    def __init__(self, part: RobotPart, settings: Settings) -> None:
        self.sensors = chosen_sensors(part, settings)
        self._lines = {kind: Line(sensor) for kind, sensor in self.sensors._asdict().items()}
        self._remembering = [line for line in self._lines.values() if line.sensor.remembers]

    def observe(self, report: Report) -> None:
        """Take the samples of a step, told or not."""
        for line in self._remembering:
            line.observe(report)

    def told(self, kind: str, report: Report) -> Any:
        """Return what a sensor, a field of RobotSensors, tells after a step."""
        line = self._lines[kind]
        line.observe(report)
        return line.measured()

    def true(self, kind: str, report: Report) -> Any:
        """Return what is true of it."""
        return self._lines[kind].sensor.truth(report)


def imu_covariances(imu: Imu) -> dict[str, Array]:
    """Return the covariances that an IMU states, by the names of its values, each (9,).

    They are never all 0, which would say 'unknown' (REP 145).
    """
    variance = {'orientation': NOT_TOLD, **imu.variance}
    return {name: np.diag(diagonal).ravel() for name, diagonal in variance.items()}


def exact(imu: Imu) -> Imu:
    """Return a sensor without errors at the same place."""
    return replace(imu, noise=EXACT, sensing=ImuSensing())


class LinkFlags:
    """1 where a link with body contacts carries load, in the order of `touching_links`."""

    def __init__(self, robot: RobotModel) -> None:
        self.links, self._candidates = touching_links(robot), len(robot.candidates)

    def of(self, report: Report) -> list[int]:
        """Return the flags of a step."""
        force = report.contacts.normal_force.reshape(self._candidates, -1)
        return [int((force[list(link.points)] > 0.0).any()) for link in self.links]
