"""Read a recorded run from its file, chunk by chunk."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked, count, real_array
from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import one_line, shown, summary
from contact_sim.replay._format import (
    READABLE,
    Archive,
    RecordingError,
    contact_model_of,
    ground_of,
    robot_header,
    robot_of,
    state_shapes,
    understood,
    versions,
)
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._simulator import Simulator


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive steps of a recording."""

    first: int
    """Number of steps before them."""
    effort: Array
    """Joint efforts as commanded [N m], shape (steps, n_joints)."""
    hashes: NDArray[np.uint64]
    """Hashes of the states after every `hash_every`-th step."""
    events: dict[int, list[dict[str, Any]]]
    """Changes before a step, by the number of steps before it."""
    states: dict[str, Array]
    """Whole states that events refer to."""

    __repr__ = one_line


class Recording:
    """A recorded run.

    Attributes:
        path: the file.
        header: robot, terrain, contact model, parameters and versions of the run.
        damage: reason why the rest of the file cannot be read, '' if it can.

    Raises:
        RecordingError: no such file, no recording, or one of another format.
    """

    @checked
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._archive = Archive(self.path)
        self.header = self._json('header')
        if not isinstance(self.header, dict) or self.header.get('format') not in READABLE:
            readable = ' or '.join(map(str, READABLE))
            raise RecordingError(f'{path} is not a recording of format {readable}')
        self.damage = ''

    @property
    def hash_every(self) -> int:
        """Steps between two hashes."""
        with understood(f'{self.path}: hash_every'):
            return count('hash_every', self.header['hash_every'])

    @property
    def other_versions(self) -> list[str]:
        """Packages with another version than recorded; then the last bits may differ."""
        now, then = versions(), self.header.get('versions')
        if not isinstance(then, dict):
            raise RecordingError(f'{self.path}: the header does not say which versions ran')
        return [
            f'{name} {then.get(name)}, here {now[name]}'
            for name in now
            if now[name] != then.get(name)
        ]

    def chunks(self) -> Iterator[Chunk]:
        """Yield the steps in order, up to the first that cannot be read: see `damage`."""
        self.damage, done = '', 0
        starts = [name for name in self._archive.names if name.endswith('/effort')]
        try:
            for name in starts:
                with understood(f'{self.path}: {shown(name)}'), self._reading():
                    chunk = self._chunk(name.removesuffix('/effort'), done)
                done += len(chunk.effort)
                yield chunk
        except RecordingError as error:
            self.damage = f'{error}; no step after {done} can be read'
            return
        if not self._archive.complete:
            self.damage = f'{self.path} ends in the middle, after {done} whole steps'

    @checked
    def chunk(self, first: int) -> Chunk:
        """Return the steps that `chunks` yields with `first` steps before them.

        Raises:
            RecordingError: there are none, or they cannot be read.
        """
        name = f'steps-{first:010d}'
        with understood(f'{self.path}: {name!r}'), self._reading():
            return self._chunk(name, first)

    @cached_property
    def digest(self) -> str:
        """One hash of the whole run: equal runs have equal ones."""
        digest = hashlib.blake2b(digest_size=16)
        for chunk in self.chunks():
            digest.update(chunk.hashes.astype('<u8').tobytes())
        return digest.hexdigest()

    @cached_property
    def steps(self) -> int:
        """Number of steps that can be read."""
        return sum(len(chunk.effort) for chunk in self.chunks())

    @cached_property
    def effort(self) -> Array:
        """Joint efforts as commanded in every readable step [N m], shape (steps, n_joints)."""
        parts, size, most = [], 0, _reading.limits().bytes
        for chunk in self.chunks():
            parts.append(chunk.effort)
            size += 2 * chunk.effort.nbytes  # the parts, and the whole
            if size > most:
                raise RecordingError(str(_reading.beyond(self.path, 'its efforts', 'bytes')))
        with understood(f'{self.path}: the robot'):
            joints = len(self.header['robot']['joint_names'])
        return np.concatenate([np.zeros((0, joints)), *parts])

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """Changes in order; `step` is the number of steps before."""
        return [
            event
            for chunk in self.chunks()
            for events in chunk.events.values()
            for event in events
        ]

    def robot(self) -> RobotModel:
        """Return the robot that was recorded.

        Raises:
            RecordingError: its description was changed in the file.
        """
        return self._robot

    @cached_property
    def _robot(self) -> RobotModel:
        with understood(f'{self.path}: the robot'):
            return robot_of(self.header['robot'], numbers_must_match=not self.other_versions)

    @checked
    def check_robot(self, robot: RobotModel) -> None:
        """Raise RecordingError unless `robot` has the description that was recorded."""
        with understood(f'{self.path}: the robot'):
            recorded, other = self.header['robot']['hash'], robot_header(robot)['hash']
            if other != recorded:
                raise RecordingError(
                    f'robot {robot.name!r} has changed since the recording: the hash of its '
                    f'description is {other[:12]}, the recording was made with {recorded[:12]}'
                )

    def simulator(self, contact_model: str | ContactModel | None = None) -> Simulator:
        """Return a simulation in the state at the beginning of the recording.

        Args:
            contact_model: another contact model than the recorded one.

        Raises:
            RecordingError: a robot or state that this version cannot build.
        """
        with understood(f'{self.path}: the header'):
            header, model = self.header, contact_model
            if model is None:
                model = contact_model_of(header['contact_model'])
            sim = Simulator(
                self.robot(),
                model,
                ground_of(header),
                friction=header['friction'],
                time_step=header['time_step'],
                gravity=header['gravity'],
                integrator=header.get('integrator', 'semi_implicit'),
                **header.get('moments', {}),
            )
            constraints = sim.constraints
            if 'constraints' in header:
                constraints = tuple(map(constraint_from_dict, header['constraints']))
            if constraints != sim.constraints:
                sim.reset(self._archive['initial/buffer'][3 : 3 + sim.robot.nq])
                sim.constraints = constraints
            recorded = {name: shape for name, shape in header['state'].items() if math.prod(shape)}
            if state_shapes(sim) != recorded:
                then, now = (words['contact_sim'] for words in (header['versions'], versions()))
                raise RecordingError(
                    f'{self.path}: recorded by contact_sim {then}, whose state has other fields '
                    f'than that of {now}'
                )
            with self._reading():
                initial: dict[str, Any] = {
                    name.removeprefix('initial/'): self._archive[name]
                    for name in self._archive.names
                    if name.startswith('initial/')
                }
            if contact_model is not None:
                initial['buffer'] = without_memory(sim, initial['buffer'])
            sim.restore(replace(sim.snapshot(), **initial))
            return sim

    def _reading(self) -> AbstractContextManager[_reading.Limits]:
        return _reading.reading(self.path, RecordingError)

    def _chunk(self, name: str, first: int) -> Chunk:
        if name != f'steps-{first:010d}':
            raise RecordingError(f'{self.path}: steps from {first} on are missing')
        effort, hashes = self._archive[f'{name}/effort'], self._archive[f'{name}/hash']
        expected = (first + len(effort)) // self.hash_every - first // self.hash_every
        joints = len(self.header['robot']['joint_names'])
        effort = real_array('effort', effort)
        if hashes.dtype != np.uint64:
            raise RecordingError(f'{self.path}: the hashes of {name!r} are none')
        if effort.ndim != 2 or effort.shape[1] != joints or hashes.shape != (expected,):
            raise RecordingError(f'{self.path}: {name!r} does not hold what it should')
        events: dict[int, list[dict[str, Any]]] = {}
        states = {}
        changed = f'{name}/events' in self._archive.names
        for event in self._json(f'{name}/events') if changed else ():
            if not isinstance(event, dict) or not {'step', 'kind'} <= event.keys():
                raise RecordingError(f'{self.path}: {event!r} in {name!r} is no change')
            events.setdefault(event['step'], []).append(event)
            if 'state' in event:
                states[event['state']] = self._archive[f'{name}/{event["state"]}']
        return Chunk(first, effort, hashes, events, states)

    def _json(self, name: str) -> Any:
        place = f'{self.path}: {name!r}'
        with understood(place), self._reading():
            return _reading.json_value(str(self._archive[name][()]), place)

    def __repr__(self) -> str:
        return summary(
            self,
            path=str(self.path),
            robot=self.header.get('robot', {}).get('name', '?'),
            steps=self.header.get('steps', '?'),
        )


def without_memory(sim: Simulator, buffer: Array) -> Array:
    """Return a state without the memory of its contact model, for another model."""
    start, stop, _ = sim.sizes.layout['memory']
    cleared = np.array(buffer)
    cleared[start:stop] = 0.0
    return cleared


def describe_change(event: dict[str, Any]) -> str:
    """Describe one of `Recording.events` in words."""
    kind = event['kind']
    if kind == 'contact_model':
        return f'contact model {event["name"]}'
    if kind == 'wrenches':
        pushed = ', '.join(event['wrenches'])
        return f'wrench on {pushed}' if pushed else 'no wrench any more'
    if kind == 'terrain':
        return 'another terrain'
    if 'state' in event:
        return f'{kind} to t = {event["time"]:.9g} s'
    if 'value' not in event:
        return str(kind)
    value = event['value']
    if isinstance(value, list) and value and value.count(value[0]) == len(value):
        return f'{kind} {value[0]}'  # of all contacts, also those of bodies
    return f'{kind} {value}'
