"""Force sensors of the feet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters
from contact_sim.robot.feet import Foot, foot_frame
from contact_sim.robot.model import RobotModel
from contact_sim.robot.solids import link_names
from contact_sim.sensors.frames import Frames
from contact_sim.sensors.line import Sensor
from contact_sim.sensors.noise import (
    EXACT,
    LARGEST_FORCE,
    NoiseParameters,
    latency,
    resolution,
    step_number,
    variance,
    with_errors,
)
from contact_sim.sensors.part_report import Report
from contact_sim.sensors.random_numbers import Stream

Array = NDArray[np.float64]
AXES = ('foot', 'world')


@dataclass(frozen=True)
class ForceSensing(Parameters):
    """Errors of the force sensors besides `NoiseParameters`."""

    force_resolution: float = resolution('N', 'a force', LARGEST_FORCE)
    torque_resolution: float = resolution('N m', 'a torque', LARGEST_FORCE)
    latency: int = latency('a sample')


@dataclass(frozen=True, eq=False)
class ForceValues:
    """What force sensors tell, one row per foot in the order of `robot.feet`."""

    force: Array
    """Of the ground on the foot [N], shape (n, 3)."""
    torque: Array
    """Of these forces about the origin of the axes [N m], shape (n, 3)."""


@dataclass(frozen=True, eq=False)
class FootForces(Sensor[ForceValues]):
    """A sensor of force and torque in every foot, of all its contacts together.

    Forces that acted in the step, with contacts and feet where they are at its end. Feet in the
    air have noise, too.

    Raises:
        InvalidInput: axes that are neither 'foot' nor 'world'.
    """

    robot: RobotModel
    axes: str = 'foot'
    """'foot': axes and origin of each foot's frame; 'world': those of the world."""
    noise: NoiseParameters = EXACT
    sensing: ForceSensing = ForceSensing()
    seed: int = 0
    """Which noise is drawn, at least 0."""
    parts: tuple[Foot, ...] | None = None
    """Feet, or other links with contact points, one row each; None: `robot.feet`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axes not in AXES:
            raise InvalidInput(f'FootForces.axes = {self.axes!r}: expected one of {AXES}')

    @property
    def _parts(self) -> tuple[Foot, ...]:
        return self.robot.feet if self.parts is None else self.parts

    @cached_property
    def _frames(self) -> Frames:
        model = self.robot.pinocchio_model
        return Frames(self.robot, [foot_frame(model, foot) for foot in self._parts])

    @cached_property
    def _links(self) -> tuple[frozenset[str], ...]:
        """Names of the link of each foot, which other bodies touch."""
        return tuple(link_names(self.robot.pinocchio_model, foot) for foot in self._parts)

    @cached_property
    def _streams(self) -> tuple[Stream, Stream]:
        """Force and torque."""
        return Stream(self.seed, 'feet/force'), Stream(self.seed, 'feet/torque')

    @property
    def latency(self) -> int:
        """Steps after which a sample arrives."""
        return self.sensing.latency

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variances of force and torque, each (n, 3)."""
        noise, sensing, shape = self.noise, self.sensing, (len(self._parts), 3)
        return {
            'force': variance(shape, noise.foot_force, sensing.force_resolution),
            'torque': variance(shape, noise.foot_torque, sensing.torque_resolution),
        }

    def truth(self, report: Report) -> ForceValues:
        """Return the true values at the end of a step."""
        feet, contacts = self._parts, report.contacts
        force, torque = np.zeros((len(feet), 3)), np.zeros((len(feet), 3))
        forces, positions = contacts.force, contacts.position
        features = len(forces) // max(1, len(self.robot.candidates))
        frames = self._frames.placements(report.q) if self.axes == 'foot' else None
        for row, foot in enumerate(feet):
            if frames is not None:
                into = np.array(frames[row].rotation).T
                origin = np.array(frames[row].translation)
            for point in foot.points:
                for k in range(features * point, features * (point + 1)):
                    f, arm = forces[k], positions[k]
                    if frames is not None:
                        f, arm = into @ f, into @ (arm - origin)
                    force[row] += f
                    torque[row] += cross(arm, f)
        if len(report.pairs):
            self._add_pairs(report, frames, force, torque)
        return ForceValues(force, torque)

    def _add_pairs(self, report: Report, frames: Any, force: Array, torque: Array) -> None:
        """Add the forces of other bodies on the feet."""
        pairs = report.pairs
        for row, links in enumerate(self._links):
            for k, sign in enumerate(pairs.acting_on(links)):
                if sign != 0.0:
                    f, arm = sign * pairs.force[k], pairs.position[k]
                    if frames is not None:
                        into = np.array(frames[row].rotation).T
                        f, arm = into @ f, into @ (arm - np.array(frames[row].translation))
                    force[row] += f
                    torque[row] += cross(arm, f)

    def measure(self, kept: Report) -> ForceValues:
        """Return what the sensors say of a step."""
        true, step = self.truth(kept), step_number(kept)
        noise, sensing = self.noise, self.sensing
        of_force, of_torque = self._streams
        return ForceValues(
            with_errors(true.force, step, of_force, noise.foot_force, sensing.force_resolution),
            with_errors(
                true.torque, step, of_torque, noise.foot_torque, sensing.torque_resolution
            ),
        )


def cross(a: Array, b: Array) -> Array:
    """Return a × b of two (3,) vectors; numpy's own takes 20 times as long on one pair."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])
