"""Encoders of joints: positions and velocities with noise and resolution.

Joints without a motor have them as well: drawing a robot needs the position of every joint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import as_tuple, check_unique, checked
from contact_sim.errors import UnknownName
from contact_sim.parameters import Parameters
from contact_sim.robot._model import RobotModel
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._sensor import (
    EXACT,
    NoiseParameters,
    Sensor,
    Stream,
    latency,
    resolution,
    step_number,
    variance,
    with_errors,
)


@dataclass(frozen=True)
class EncoderSensing(Parameters):
    """Errors of the encoders besides `NoiseParameters`."""

    position_resolution: float = resolution('rad', 'a position ([m] of a sliding joint)')
    velocity_resolution: float = resolution('rad/s', 'a velocity ([m/s] of a sliding joint)')
    latency: int = latency('a sample')


@dataclass(frozen=True, eq=False)
class JointValues:
    """Joints, each array in the order of the sensor's `joints`."""

    position: Array
    """[rad], or [m] of sliding joints, shape (n,)."""
    velocity: Array
    """[rad/s], or [m/s], shape (n,)."""
    effort: Array
    """What acted in the step after saturation [N m], or [N], shape (n,); never with errors. 0 of
    joints without a motor."""


@dataclass(frozen=True, eq=False)
class Encoders(Sensor[JointValues]):
    """Encoders of joints with one degree of freedom.

    A value is round((true + noise) / resolution) × resolution. The noise of a joint does not
    depend on which other joints are measured.

    Raises:
        InvalidInput: a joint listed twice.
        UnknownName: no such joint of the robot.
    """

    robot: RobotModel
    joints: tuple[str, ...] | None = None
    """Names of the measured joints; None: all actuated ones, in the order of the robot."""
    noise: NoiseParameters = EXACT
    sensing: EncoderSensing = EncoderSensing()
    seed: int = 0
    """Which noise is drawn, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        actuated = self.robot.joint_names
        known = (*actuated, *self.robot.passive_joint_names)
        joints = actuated
        if self.joints is not None:
            joints = as_tuple('joints', self.joints, 'a list of joint names')
        check_unique('joint', joints)
        for name in joints:
            if not isinstance(name, str) or name not in known:
                raise UnknownName('joint', name, known)
        object.__setattr__(self, 'joints', joints)

    @cached_property
    def _chosen(self) -> NDArray[np.intp]:
        names = (*self.robot.joint_names, *self.robot.passive_joint_names)
        return np.array([names.index(name) for name in self.joints or ()], dtype=np.intp)

    @cached_property
    def _streams(self) -> tuple[Stream, Stream]:
        """Position and velocity."""
        return Stream(self.seed, 'joints/position'), Stream(self.seed, 'joints/velocity')

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variances of position and velocity, each (n,)."""
        noise, sensing, n = self.noise, self.sensing, len(self.joints or ())
        return {
            'position': variance((n,), noise.joint_position, sensing.position_resolution),
            'velocity': variance((n,), noise.joint_velocity, sensing.velocity_resolution),
        }

    @checked
    def truth(self, report: Report) -> JointValues:
        """Return the true values at the end of a step."""
        return self._of_chosen(*self._all(report))

    def measure(self, sample: Report) -> JointValues:
        """Return the measured values of a step."""
        position, velocity, effort = self._all(sample)
        noise, sensing, step = self.noise, self.sensing, step_number(sample)
        streams = self._streams
        position = with_errors(
            position, step, streams[0], noise.joint_position, sensing.position_resolution
        )
        velocity = with_errors(
            velocity, step, streams[1], noise.joint_velocity, sensing.velocity_resolution
        )
        return self._of_chosen(position, velocity, effort)

    def _all(self, report: Report) -> tuple[Array, Array, Array]:
        robot, passive = self.robot, self.robot.passive_joints
        if not passive.n_joints:
            return (
                robot.joint_positions(report.q), robot.joint_velocities(report.v), report.effort
            )  # fmt: skip
        return (
            np.concatenate([part.joint_positions(report.q) for part in (robot, passive)]),
            np.concatenate([part.joint_velocities(report.v) for part in (robot, passive)]),
            np.concatenate([report.effort, np.zeros(passive.n_joints)]),
        )

    def _of_chosen(self, position: Array, velocity: Array, effort: Array) -> JointValues:
        chosen = self._chosen
        return JointValues(position[chosen], velocity[chosen], effort[chosen])
