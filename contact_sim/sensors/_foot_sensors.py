"""Contact switches and force sensors of the feet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, Mask, Vector
from contact_sim._validation import checked, checked_fields
from contact_sim.errors import InvalidInput, UnknownName, one_line, shown
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot._collision_pairs import link_names
from contact_sim.robot._contact_points import Foot, foot_frame
from contact_sim.robot._model import RobotModel
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._sensor import (
    EXACT,
    IDEAL,
    LARGEST_FORCE,
    Frames,
    NoiseParameters,
    Sensor,
    Stream,
    latency,
    resolution,
    scales,
    sensed,
    sensitivity,
    spread_of_scales,
    spread_of_turn,
    step_number,
    turn,
    variance,
    with_errors,
)

# --- Contact switches: threshold, hysteresis, latency and faults


@dataclass(frozen=True)
class ContactSensing(Parameters):
    """Thresholds and faults of contact switches.

    Raises:
        InvalidInput: off_threshold above on_threshold, a foot that is stuck on and off.
    """

    on_threshold: float = parameter(
        0.0, 'N', 'normal force on a foot above which its flag goes on', at_least=0.0,
        at_most=LARGEST_FORCE, live=True,
    )  # fmt: skip
    off_threshold: float = parameter(
        0.0, 'N', 'normal force at or below which it goes off again; at most on_threshold, less '
        'is hysteresis', at_least=0.0, at_most=LARGEST_FORCE, live=True,
    )  # fmt: skip
    latency: int = latency('a flag')
    stuck_on: tuple[str, ...] = parameter((), '', 'feet whose flag is always on', live=True)
    stuck_off: tuple[str, ...] = parameter((), '', 'feet whose flag is always off', live=True)
    dropout: float = parameter(
        0.0, '-', 'probability that a flag is off in a step whatever the force', at_least=0.0,
        at_most=1.0, live=True,
    )  # fmt: skip
    dropout_feet: tuple[str, ...] = parameter(
        (), '', 'feet whose flags drop out; empty: all', live=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.off_threshold > self.on_threshold:
            raise InvalidInput(
                f'ContactSensing.off_threshold = {self.off_threshold:g} N is above on_threshold = '
                f'{self.on_threshold:g} N: expected at most that, less for hysteresis'
            )
        if both := set(self.stuck_on) & set(self.stuck_off):
            raise InvalidInput(
                f'ContactSensing: foot {min(both)!r} is in stuck_on and in stuck_off; '
                'expected in one of them'
            )


@dataclass(frozen=True, eq=False)
class ContactValues:
    """Values of contact switches."""

    flag: Mask
    """Whether each foot stands, in the order of `robot.feet`, shape (n,)."""

    __repr__ = one_line


class Switched(NamedTuple):
    """Flags of a step after the thresholds, without faults."""

    step: int
    flag: Mask


@dataclass(frozen=True, eq=False)
class ContactFlags(Sensor[ContactValues]):
    """A contact switch under every foot.

    It goes on in the step in which the normal force on its foot exceeds on_threshold, and off in
    that in which the force is at most off_threshold; between them it stays, off at the start. It
    is true that a foot stands where the ground presses on it at all.

    Raises:
        UnknownName: a fault of a foot that the robot does not have.
    """

    robot: RobotModel
    sensing: ContactSensing = ContactSensing()
    seed: int = 0
    """Which steps drop out, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        sensing, names = self.sensing, self._names
        for faulty in (sensing.stuck_on, sensing.stuck_off, sensing.dropout_feet):
            for name in faulty:
                if name not in names:
                    raise UnknownName('foot', name, names)

    @cached_property
    def _faulty(self) -> tuple[Mask, Mask, Mask]:
        """Which feet are stuck on, are stuck off, and drop out, each (n,)."""
        sensing, names = self.sensing, self._names
        faults = sensing.stuck_on, sensing.stuck_off, sensing.dropout_feet or names
        on, off, dropping = (np.array([n in feet for n in names], dtype=bool) for feet in faults)
        return on, off, dropping

    @cached_property
    def _stream(self) -> Stream:
        return Stream(self.seed, 'contacts/dropout')

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(foot.name for foot in self.robot.feet)

    @cached_property
    def _points(self) -> Array:
        """1 where a contact point belongs to a foot, shape (feet, candidates)."""
        member = np.zeros((len(self._names), len(self.robot.contact_points)))
        for row, foot in enumerate(self.robot.feet):
            member[row, list(foot.points)] = 1.0
        return member

    @cached_property
    def _links(self) -> tuple[frozenset[str], ...]:
        """Names of the link of each foot, which other bodies touch."""
        return tuple(link_names(self.robot.pinocchio_model, foot) for foot in self.robot.feet)

    @property
    def remembers(self) -> bool:
        """Whether the flags of a step depend on earlier steps."""
        return self.latency > 0 or self.sensing.off_threshold < self.sensing.on_threshold

    @checked
    def load(self, report: Report) -> Array:
        """Return the normal force on each foot [N], shape (n,); pulls count 0."""
        pressing = np.maximum(report.contacts.normal_force, 0.0)
        load = np.zeros(len(self._names))
        if len(pressing):
            load += self._points @ pressing.reshape(self._points.shape[1], -1).sum(axis=1)
        if len(report.pairs):
            load += [report.pairs.load_on(links) for links in self._links]
        return load

    @checked
    def truth(self, report: Report) -> ContactValues:
        """Return which feet the ground presses on in a step."""
        return ContactValues(self.load(report) > 0.0)

    def sample(self, report: Report, last: Switched | None) -> Switched:
        """Return the flags of a step; with hysteresis they depend on the step before."""
        load, sensing = self.load(report), self.sensing
        flag = load > sensing.on_threshold
        if last is not None:
            flag = flag | (last.flag & (load > sensing.off_threshold))
        return Switched(step_number(report), flag)

    def measure(self, sample: Switched) -> ContactValues:
        """Return the flags of a step, faults included."""
        flag, sensing = sample.flag, self.sensing
        stuck_on, stuck_off, dropping = self._faulty
        if sensing.dropout > 0.0:
            drawn = self._stream.uniform(sample.step, flag.shape)
            flag = flag & (drawn >= np.where(dropping, sensing.dropout, 0.0))
        return ContactValues((flag | stuck_on) & ~stuck_off)

    __repr__ = one_line


# --- Force and torque sensors

AXES = ('foot', 'world')


@dataclass(frozen=True)
class ForceSensing(Parameters):
    """Errors of the force sensors besides `NoiseParameters`."""

    force_resolution: float = resolution('N', 'a force', LARGEST_FORCE)
    torque_resolution: float = resolution('N m', 'a torque', LARGEST_FORCE)
    force_scale: Vector = scales('all feet, forces')
    force_scale_deviation: float = spread_of_scales('forces, another for each foot')
    torque_scale: Vector = scales('all feet, torques')
    torque_scale_deviation: float = spread_of_scales('torques, another for each foot')
    misalignment: Vector = turn('the sensor of every foot')
    misalignment_deviation: float = spread_of_turn('the sensor, another for each foot')
    latency: int = latency('a sample')

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class ForceValues:
    """Values of force sensors, one row per foot in the order of `robot.feet`."""

    force: Array
    """Of the ground on the foot [N], shape (n, 3)."""
    torque: Array
    """Of these forces about the origin of the axes [N m], shape (n, 3)."""

    __repr__ = one_line


@checked_fields
@dataclass(frozen=True, eq=False)
class FootForces(Sensor[ForceValues]):
    """A sensor of force and torque in every foot, of all its contacts together.

    Forces that acted in the step, with contacts and feet where they are at its end. Feet in the
    air have noise, too. Scale errors and misalignment are those of a sensor fixed to the foot,
    about the origin of its frame, in whichever axes it is told.

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
            raise InvalidInput(f'FootForces.axes = {shown(self.axes)}: expected one of {AXES}')

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

    @cached_property
    def sensitivity(self) -> tuple[tuple[Array, Array], ...]:
        """Sensitivity S R of each foot to force and torque, in its axes, each (3, 3)."""
        matrices, sensing = [], self.sensing
        for part in self._parts:
            drawn = Stream(self.seed, f'feet/{part.name}').constant((3, 3))
            force = sensing.force_scale + sensing.force_scale_deviation * drawn[0]
            torque = sensing.torque_scale + sensing.torque_scale_deviation * drawn[1]
            turn = sensing.misalignment + sensing.misalignment_deviation * drawn[2]
            matrices.append((sensitivity(force, turn), sensitivity(torque, turn)))
        return tuple(matrices)

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variances of force and torque, each (n, 3)."""
        noise, sensing, shape = self.noise, self.sensing, (len(self._parts), 3)
        return {
            'force': variance(shape, noise.foot_force, sensing.force_resolution),
            'torque': variance(shape, noise.foot_torque, sensing.torque_resolution),
        }

    @checked
    def truth(self, report: Report) -> ForceValues:
        """Return the true values at the end of a step."""
        frames = self._frames.placements(report.q) if self.axes == 'foot' else None
        return self._of_contacts(report, frames)

    def _of_contacts(self, report: Report, frames: Sequence[pin.SE3] | None) -> ForceValues:
        """Return the true values in the axes of frames, one per foot, or of the world."""
        contacts, pairs, n = report.contacts, report.pairs, len(self._parts)
        feet, points = self._members(contacts.force.shape[0])
        force, arm = contacts.force[points], contacts.position[points]
        if len(pairs) and pairs.force.any():  # other bodies of the robot, or other robots
            signs = np.array([pairs.acting_on(links) for links in self._links])
            touched, which = np.nonzero(signs)
            pushes = signs[touched, which][:, np.newaxis] * pairs.force[which]
            feet = np.concatenate([feet, touched])
            force = np.concatenate([force, pushes])
            arm = np.concatenate([arm, pairs.position[which]])
        if frames is not None:
            origins = np.array([frame.translation for frame in frames]).reshape(n, 3)
            axes = np.array([frame.rotation for frame in frames]).reshape(n, 3, 3)
            turned = np.stack([force, arm - origins[feet]], axis=1) @ axes[feet]
            force, arm = turned[:, 0], turned[:, 1]
        total = np.zeros((n, 2, 3))
        np.add.at(total[:, 0], feet, force)
        np.add.at(total[:, 1], feet, cross(arm, force))
        return ForceValues(total[:, 0], total[:, 1])

    def _members(self, contacts: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return a foot and a contact of it for each contact of each foot, out of so many."""
        found = self._members_of.get(contacts)
        if found is None:
            features = contacts // max(1, len(self.robot.contact_points))
            rows = [
                (foot, features * point + k)
                for foot, part in enumerate(self._parts)
                for point in part.points
                for k in range(features)
            ]
            feet, points = np.array(rows, dtype=np.intp).reshape(-1, 2).T
            found = self._members_of[contacts] = feet, points
        return found

    @cached_property
    def _members_of(self) -> dict[int, tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """`_members` by the number of contacts, which depends on the ground."""
        return {}

    def measure(self, sample: Report) -> ForceValues:
        """Return the measured values of a step."""
        read, step = self._sensed(sample), step_number(sample)
        noise, sensing = self.noise, self.sensing
        of_force, of_torque = self._streams
        return ForceValues(
            with_errors(read.force, step, of_force, noise.foot_force, sensing.force_resolution),
            with_errors(
                read.torque, step, of_torque, noise.foot_torque, sensing.torque_resolution
            ),
        )

    def _sensed(self, report: Report) -> ForceValues:
        """Return the true values as sensors of their sensitivity read them."""
        if all(matrix is IDEAL for pair in self.sensitivity for matrix in pair):
            return self.truth(report)
        frames = self._frames.placements(report.q)
        local = self._of_contacts(report, frames)
        force, torque = np.empty_like(local.force), np.empty_like(local.torque)
        for row, ((of_force, of_torque), frame) in enumerate(
            zip(self.sensitivity, frames, strict=True)
        ):
            force[row] = sensed(of_force, local.force[row])
            torque[row] = sensed(of_torque, local.torque[row])
            if self.axes == 'world':
                force[row] = frame.rotation @ force[row]
                arm = np.array(frame.translation)
                torque[row] = frame.rotation @ torque[row] + cross(arm, force[row])
        return ForceValues(force, torque)


def cross(a: Array, b: Array) -> Array:
    """Return a × b of vectors (…, 3); on few vectors numpy's own takes five times as long."""
    return a.take(NEXT, -1) * b.take(AFTER_NEXT, -1) - a.take(AFTER_NEXT, -1) * b.take(NEXT, -1)


NEXT, AFTER_NEXT = np.array([1, 2, 0]), np.array([2, 0, 1])
"""Axes y, z, x and z, x, y."""
