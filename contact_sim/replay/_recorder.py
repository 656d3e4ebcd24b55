"""Record everything that a run depends on, while it runs.

A recording is a .npz file:

    header                      robot, ground, contact model, parameters, versions (JSON)
    initial/<field>             the Snapshot at the beginning, `buffer` and settings
    steps-<first>/effort        joint efforts as commanded [N m], (steps, n_joints)
    steps-<first>/hash          hash of the state after every N-th step
    steps-<first>/events        what changed in between, before which step (JSON); if anything did
    steps-<first>/state-<k>     the whole state where it was set: resets, restored snapshots

It is written in chunks of at most CHUNK_SECONDS, each complete in itself and handed to the system
at once: whatever ends the process, or fills the disk, costs at most that much of the run. Memory
hardly grows with it: some megabytes per hour, for the names of the entries.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.constraints._constraint_rows import constraint_to_dict
from contact_sim.errors import InvalidInput, shown, summary
from contact_sim.replay._format import (
    ArchiveWriter,
    CannotRecord,
    StateHash,
    ground_header,
    header_of,
    model_header,
    moments_header,
)
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot

CHUNK_SECONDS = 1.0
"""Simulated time of a chunk [s]: no crash and no full disk loses more."""
LONGEST_CHUNK = 100_000
"""Steps of a chunk."""


class Recorder:
    """Record a simulation from its current state on; close it, or use it as a context manager.

    Changes are found by comparing the state before a step with that after the last one, whatever
    made them.

    Args:
        sim: the simulation; use it as without a recorder.
        path: the .npz file, overwritten if it exists.
        hash_every: steps between two hashes; with 1 a replay names the exact step that differs.
        parameters: further information about the run, as JSON.
        chunk: steps per chunk, at most those of CHUNK_SECONDS; None: as many.
        on_error: called with the reason if the file can no longer be written (a full disk);
            without it CannotRecord is raised from the step. Either way the steps that are in the
            file stay readable, and the simulation can go on.

    Attributes:
        path: the file.
        steps: number of steps recorded so far.

    Raises:
        InvalidInput: a file that cannot be written, or hash_every or chunk out of range.
    """

    @checked
    def __init__(
        self,
        sim: Simulator,
        path: str | Path,
        hash_every: int = 1,
        parameters: Mapping[str, Any] | None = None,
        chunk: int | None = None,
        on_error: Callable[[str], None] | None = None,
    ) -> None:
        if hash_every < 1:
            raise InvalidInput(f'hash_every = {shown(hash_every)}: expected an integer >= 1')
        if chunk is not None and not 1 <= chunk <= LONGEST_CHUNK:
            raise InvalidInput(
                f'chunk = {shown(chunk)}: expected an integer from 1 to {LONGEST_CHUNK}'
            )
        self.path = Path(path)
        self._sim, self._every, self._on_error = sim, hash_every, on_error
        self._most = LONGEST_CHUNK if chunk is None else chunk
        self.steps = 0
        self._follow_layout()
        self._wrenches: dict[str, list[float]] = {}
        self._clock = b''
        self._start_chunk()
        self._last = sim.snapshot()
        self._arrays = tuple(name for name, _ in arrays_of(self._last))
        self._archive: ArchiveWriter | None = (archive := ArchiveWriter(self.path))
        try:
            header = json.dumps(header_of(sim, hash_every, parameters))
            archive.add('header', np.array(header))
            for name, array in arrays_of(self._last):
                kept = self._defined(array) if name == 'buffer' else finite(array)
                archive.add(f'initial/{name}', kept)
            archive.flush()
        except OSError as error:
            archive.abandon()
            raise InvalidInput(f'cannot write {path}: {error.strerror}') from error
        sim.add_observer(self)

    def before_step(self, external_wrenches: Mapping[str, ArrayLike]) -> None:
        """Record changes since the last step, and the inputs of this one."""
        self._record_setup_changes()
        now, last = self._sim.snapshot(), self._last
        self._clock = now.buffer[:3].tobytes()
        last.buffer[self._applied] = now.buffer[self._applied]
        if now.contact_model is not last.contact_model or any(
            getattr(now, name).tobytes() != getattr(last, name).tobytes() for name in self._arrays
        ):
            self._record_changes(now)
        if external_wrenches or self._wrenches:
            wrenches = {
                name: np.asarray(value, dtype=float).tolist()
                for name, value in external_wrenches.items()
            }
            if wrenches != self._wrenches:
                self._add_event({'kind': 'wrenches', 'wrenches': wrenches})
                self._wrenches = wrenches
        self._efforts[self.steps - self._first] = now.buffer[self._command]

    def after_step(self) -> None:
        """Record the state after the step."""
        self._last = self._sim.snapshot()
        if self._last.buffer[:3].tobytes() == self._clock:
            self._add_event({'kind': 'failure'})
        self.steps += 1
        if self.steps % self._every == 0:
            self._hashes.append(self._hash(self._last.buffer))
        if self.steps - self._first >= len(self._efforts):
            self.flush()

    def flush(self) -> None:
        """Write all steps so far to the file."""
        try:
            self._write_chunk()
        except OSError as error:
            self._abandon(error)

    def close(self) -> None:
        """Stop recording and complete the file; closing twice does nothing."""
        self._sim.remove_observer(self)
        try:
            self._write_chunk()
            if self._archive is not None:
                self._archive.close()
        except OSError as error:
            self._abandon(error)
        self._archive = None

    def _abandon(self, error: OSError) -> None:
        self._sim.remove_observer(self)
        if self._archive is not None:
            self._archive.abandon()
        self._archive = None
        reason = f'{self.path} holds no more steps from {self._first} on: {error.strerror}'
        if self._on_error is None:
            raise CannotRecord(reason) from error
        self._on_error(reason)

    def _write_chunk(self) -> None:
        count = self.steps - self._first
        if count == 0 or self._archive is None:
            return
        chunk = f'steps-{self._first:010d}'
        # efforts come last: steps that can be read have all that belongs to them
        for name, state in self._states.items():
            self._archive.add(f'{chunk}/{name}', state)
        if self._events:
            self._archive.add(f'{chunk}/events', np.array(json.dumps(self._events)))
        self._archive.add(f'{chunk}/hash', np.array(self._hashes, dtype=np.uint64))
        self._archive.add(f'{chunk}/effort', self._efforts[:count])
        self._archive.flush()
        self._start_chunk()

    def _start_chunk(self) -> None:
        self._first = self.steps
        self._make_room()
        self._hashes: list[int] = []
        self._events: list[dict[str, Any]] = []
        self._states: dict[str, Array] = {}

    def _make_room(self) -> None:
        """Make room for the steps of a chunk that has none yet."""
        length = max(1, min(self._most, int(CHUNK_SECONDS / self._time_step + 1e-9)))
        self._efforts = np.zeros((length, self._sim.robot.n_joints))

    def _add_event(self, event: dict[str, Any]) -> None:
        self._events.append({'step': self.steps, **event})

    def _follow_layout(self) -> None:
        """Take the layout of the step data, which terrain, constraints and moments determine."""
        sizes, layout = self._sim.sizes, self._sim.sizes.layout
        self._hash, self._terrain = StateHash(sizes), self._sim.terrain
        self._constraints, self._time_step = self._sim.constraints, self._sim.time_step
        self._moments = bool(sizes.n_moments)
        self._command = slice(*layout['command'][:2])
        self._applied = slice(layout['command'][0], layout['tau'][1])

    def _record_setup_changes(self) -> None:
        """Record changes of terrain, time step, constraints and moments since the last step."""
        sim = self._sim
        events: list[dict[str, Any]] = []
        if sim.terrain is not self._terrain:
            events.append({'kind': 'terrain', 'ground': ground_header(sim.terrain)})
        if sim.time_step != self._time_step:
            events.append({'kind': 'time_step', 'value': sim.time_step})
        if sim.constraints is not self._constraints:
            constraints = [constraint_to_dict(constraint) for constraint in sim.constraints]
            events.append({'kind': 'constraints', 'constraints': constraints})
        if bool(sim.sizes.n_moments) != self._moments:
            events.append({'kind': 'moments', 'coefficients': moments_header(sim)})
        if not events:
            return
        time_step = self._time_step
        if sim.time_step != time_step:
            self.flush()  # a chunk has one time step, which determines its length
        self._follow_layout()
        if sim.time_step != time_step:
            self._make_room()
        for event in events:
            self._add_event(event)
        # after them all of the state counts as changed
        now = sim.snapshot()
        last: dict[str, Any] = {
            name: np.full_like(array, np.nan) for name, array in arrays_of(now)
        }
        model = self._last.contact_model
        self._last = dataclasses.replace(now, contact_model=model, **last)

    def _record_changes(self, now: Snapshot) -> None:
        """Record the differences between the end of the last step and the start of this one."""
        last = self._last
        before = last.buffer.copy()
        if now.contact_model is not last.contact_model:
            self._add_event({'kind': 'contact_model', **model_header(now.contact_model)})
            if now.contact_model.name != last.contact_model.name:
                before[slice(*self._sim.sizes.layout['memory'][:2])] = 0.0
        for (name, old), (_, new) in zip(arrays_of(last), arrays_of(now), strict=True):
            if name != 'buffer' and old.tobytes() != new.tobytes():
                self._add_event({'kind': name, 'value': new.tolist()})
        if now.buffer.tobytes() != before.tobytes():
            name = f'state-{len(self._states)}'
            self._states[name] = self._defined(now.buffer)
            kind = 'reset' if now.buffer[2] == 0.0 else 'restore'
            self._add_event({'kind': kind, 'state': name, 'time': float(now.buffer[0])})

    def _defined(self, buffer: Array) -> Array:
        """Return step data as `finite` does, but with the infinite bounds of joint limits."""
        kept = finite(buffer)
        for name in ('lower', 'upper'):
            start, stop, _ = self._sim.sizes.layout[name]
            kept[start:stop] = buffer[start:stop]
        return kept

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return summary(self, path=str(self.path), steps=self.steps)


def arrays_of(snapshot: Snapshot) -> list[tuple[str, Array]]:
    """Return the arrays of a snapshot by name."""
    values = {field.name: getattr(snapshot, field.name) for field in dataclasses.fields(snapshot)}
    return [(name, value) for name, value in values.items() if isinstance(value, np.ndarray)]


def finite(array: Array) -> Array:
    """Return a copy with zeros for NaN and infinity: results of a failed step, which none uses."""
    return np.where(np.isfinite(array), array, 0.0)
