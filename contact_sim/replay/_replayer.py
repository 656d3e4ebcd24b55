"""Replay a recording: from any checkpoint, verified to the bit, or under another model.

`Replayer` takes the steps again; `repeat` compares every state with the recorded one; `compare`
replays the same efforts under two contact models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import ContactSimError, NonFiniteState
from contact_sim.replay._archive import RecordingError, StateHash
from contact_sim.replay._header import FORMAT, contact_model_of, ground_of
from contact_sim.replay._recording import Chunk, Recording, without_memory
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot

SETUP_CHANGES = ('terrain', 'time_step', 'constraints')
"""Kinds of changes that lead to another SimulatorSetup."""


@dataclass(frozen=True)
class ReplayedStep:
    """One step that was replayed."""

    number: int
    """Number of the step, counted from 1."""
    report: StepReport | None
    """None where the step was not finite."""
    failed_then: bool
    """Whether it was not finite when it was recorded."""
    recorded_hash: int | None
    """Hash of the state after it, where one was recorded."""


@dataclass(frozen=True)
class SimulatorSetup:
    """Settings that arrays are allocated for; a change takes as long as a thousand steps."""

    ground: Terrain
    time_step: float
    constraints: tuple[Constraint, ...]

    def matches(self, sim: Simulator) -> bool:
        """Return whether a simulation has this setup."""
        return (
            sim.terrain is self.ground
            and sim.time_step == self.time_step
            and sim.constraints == self.constraints
        )


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that the steps of a recording after the first `done` depend on."""

    done: int
    setup: SimulatorSetup
    snapshot: Snapshot
    wrenches: Mapping[str, list[float]]
    stopped: bool


class Replayer:
    """Takes the steps of a recording on a simulator.

    Args:
        recording: what is repeated.
        contact_model: another model, in force from beginning to end; None: those recorded.
        made: cache of the terrains and models of recorded changes, which several replayers of a
            recording may share.

    Attributes:
        sim: the simulation.
        done: number of steps taken since the recording began.
        setup_changed: whether the last step was the first with another SimulatorSetup.
        wrenches: external wrenches in the last step, as `Simulator.step` takes them.
    """

    def __init__(
        self,
        recording: Recording,
        contact_model: str | ContactModel | None = None,
        made: dict[tuple[str, int], Any] | None = None,
    ) -> None:
        self._recording = recording
        self._every = recording.hash_every
        self._own_model = contact_model is not None
        self._made: dict[tuple[str, int], Any] = {} if made is None else made
        self._stopped = False
        self.wrenches: Mapping[str, list[float]] = {}
        self.sim: Simulator = recording.simulator(contact_model)
        self.done, self.setup_changed = 0, False

    def steps(self) -> Iterator[ReplayedStep]:
        """Yield all steps, from the beginning on."""
        for chunk in self._recording.chunks():
            for _ in range(len(chunk.effort)):
                yield self.take(chunk)

    def take(self, chunk: Chunk) -> ReplayedStep:
        """Take the next step, which is one of `chunk`."""
        k, every = self.done, self._every
        events = chunk.events.get(k, ())
        for event in events:
            self._apply_checked(event, chunk)
        report = self._step(chunk.effort[k - chunk.first])
        self.done = k + 1
        self.setup_changed = any(event['kind'] in SETUP_CHANGES for event in events)
        failed = any(event['kind'] == 'failure' for event in events)
        hashed = self.done // every - chunk.first // every - 1
        recorded = int(chunk.hashes[hashed]) if self.done % every == 0 else None
        return ReplayedStep(self.done, report, failed, recorded)

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint of this state, for any replayer of the recording."""
        sim = self.sim
        setup = SimulatorSetup(sim.terrain, sim.time_step, sim.constraints)
        return Checkpoint(self.done, setup, sim.snapshot(), self.wrenches, self._stopped)

    def return_to(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint; the steps that follow are the same to the bit."""
        sim = self.sim
        if checkpoint.setup.ground is not sim.terrain:
            sim.friction, sim.restitution = 0.0, 0.0  # those of the snapshot follow
            sim.reset(sim.q, terrain=checkpoint.setup.ground)
        sim.restore(checkpoint.snapshot)
        self.done, self.wrenches = checkpoint.done, checkpoint.wrenches
        self._stopped = checkpoint.stopped

    def _step(self, effort: Any) -> StepReport | None:
        """Take a step; after one that was not finite, none until a state is set."""
        if self._stopped:
            return None
        try:
            return self.sim.step(effort, self.wrenches)
        except NonFiniteState:
            self._stopped = True
            return None

    def _apply_checked(self, event: dict[str, Any], chunk: Chunk) -> None:
        try:
            self._apply(event, chunk)
        except Exception as error:  # a file may hold anything
            raise RecordingError(
                f'the change {str(event)[:80]} before step {event.get("step", -1) + 1} cannot be '
                f'made: {error}'
            ) from error

    def _apply(self, event: dict[str, Any], chunk: Chunk) -> None:
        """Apply a recorded change."""
        sim, kind = self.sim, event['kind']
        if kind == 'contact_model':
            if not self._own_model:
                model = self._once(event, lambda: contact_model_of(event))
                sim.contact_model = model
        elif kind == 'terrain':
            header = {'format': FORMAT, 'ground': event['ground']}
            sim.reset(sim.q, terrain=self._once(event, lambda: ground_of(header)))
            self._stopped = False
        elif kind == 'time_step':
            sim.time_step = event['value']
        elif kind == 'constraints':
            self._apply_constraints(event, chunk)
        elif kind == 'wrenches':
            self.wrenches = event['wrenches']
        elif 'state' in event:
            self._restore(buffer=self._state(event, chunk))
        elif kind != 'failure':
            array = getattr(sim.snapshot(), kind).copy()
            array[:] = event['value']
            self._restore(**{kind: array})

    def _once(self, event: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Return the terrain or model of a change; the same object every time."""
        name = event['kind'], event['step']
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _restore(self, **changed: Any) -> None:
        """Change some fields of the state."""
        self.sim.restore(replace(self.sim.snapshot(), **changed))
        self._stopped = False

    def _apply_constraints(self, event: dict[str, Any], chunk: Chunk) -> None:
        """Put other constraints in force, in the state that was recorded after the change."""
        constraints = tuple(constraint_from_dict(words) for words in event['constraints'])
        after = [other for other in chunk.events[event['step']] if 'state' in other]
        if after:
            self._restore(buffer=self._state(after[0], chunk), constraints=constraints)
        else:
            self.sim.constraints = constraints

    def _state(self, event: dict[str, Any], chunk: Chunk) -> Any:
        """Return the state that belongs to a change."""
        state = chunk.states[event['state']]
        return without_memory(self.sim, state) if self._own_model else state


# --- Verification: repeat a run and find the first step that differs.


@dataclass(frozen=True)
class Outcome:
    """Outcome of repeating a recording."""

    steps: int
    """Steps repeated, up to the first that differs."""
    time: float
    """Simulated time after them [s]."""
    digest: str
    """One hash of the whole run as it was recorded."""
    difference: str
    """The first step that differs, in words; '' if none does."""
    first_difference: int | None
    """Its number, counted from 1."""
    damage: str
    """Reason why the recording could not be read to its end, '' if it could."""

    @property
    def equal(self) -> bool:
        """Whether every step of the recording was repeated to the bit."""
        return not (self.difference or self.damage)


@checked
def repeat(recording: Recording, on_step: Callable[[ReplayedStep], None] | None = None) -> Outcome:
    """Repeat a recording and compare every state with the recorded one, to the bit.

    Args:
        recording: what is repeated.
        on_step: called with every step, before it is compared.

    Raises:
        RecordingError: a robot that can no longer be built from the recording.
    """
    replayer = Replayer(recording)
    done, difference, at = 0, '', None
    try:
        for step in replayer.steps():
            if on_step is not None:
                on_step(step)
            if (step.report is None) != step.failed_then:
                at = step.number
                difference = f'step {at} is finite only in one of the runs'
                break
            here = StateHash(replayer.sim.sizes)(replayer.sim.snapshot().buffer)
            if step.recorded_hash is not None and here != step.recorded_hash:
                difference, at = _first_difference(recording, step, replayer.sim.time), step.number
                break
            done = step.number
    except ContactSimError as error:
        at = done + 1
        difference = f'step {at} cannot be repeated: {error}'
    digest = recording.digest  # reads to the end: `damage` is known from here on
    return Outcome(done, replayer.sim.time, digest, difference, at, recording.damage)


def _first_difference(recording: Recording, step: ReplayedStep, time: float) -> str:
    every = recording.hash_every
    which = f'step {step.number}' if every == 1 else f'a step after {step.number - every}, up to'
    which += '' if every == 1 else f' {step.number}'
    return f'{which} (t = {time:.9g} s) differs from the recording'


# --- Comparison with a run under another contact model.

APART = 1e-3
"""Distance of the two bases above which the runs count as apart [m]."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Difference of two runs with the same efforts and changes, one sample per step."""

    recorded: str
    """Contact model at the beginning of the recording."""
    other: str
    time: Array
    """Time after each step in the recording [s], shape (n,)."""
    base: Array
    """Distance of the origins of the two bases [m], shape (n,); 0 for a fixed base."""
    turn: Array
    """Angle between the two bases [rad], shape (n,)."""
    joints: Array
    """Largest difference of a joint's position [rad or m], shape (n,)."""
    force: Array
    """Difference of the total contact force [N], shape (n,)."""
    end: str
    """Reason why one of the runs ended early, '' if none did."""

    def apart_from(self) -> float | None:
        """Return when the bases are more than a millimetre apart for the first time [s]."""
        apart = np.flatnonzero(self.base > APART)
        return float(self.time[apart[0]]) if len(apart) else None

    def lines(self, rows: int = 10) -> list[str]:
        """Return a table of the differences at some times, and a summary."""
        columns = ('t [s]', 'base [m]', 'turn [rad]', 'joint [rad]', 'force [N]')
        head = ''.join(f'{column:>12}' for column in columns)
        lines = [f'{self.other} instead of {self.recorded}, with the same efforts:', head]
        count = len(self.time)
        for k in np.unique(np.linspace(0, count - 1, min(rows, count)).astype(int)):
            values = (self.base[k], self.turn[k], self.joints[k], self.force[k])
            lines.append(f'{self.time[k]:12.4g}' + ''.join(f'{value:12.3g}' for value in values))
        apart = self.apart_from()
        lines.append(
            f'the bases stay within {1e3 * APART:g} mm of each other'
            if apart is None
            else f'the bases are more than {1e3 * APART:g} mm apart from t = {apart:.6g} s on'
        )
        return [*lines, *([self.end] if self.end else [])]


def compare(recording: Recording, contact_model: str | ContactModel) -> Comparison:
    """Replay a recording beside itself under another contact model.

    Both runs get the recorded efforts: no controller acts in the second run.

    Raises:
        RecordingError: a recording that cannot be repeated.
        UnknownName: no such contact model.
    """
    reference, other = Replayer(recording), Replayer(recording, contact_model)
    robot, model = reference.sim.robot, reference.sim.contact_model
    rows, end = [], ''
    for ours, theirs in zip(reference.steps(), other.steps(), strict=False):
        if ours.report is None or theirs.report is None:
            which = model if ours.report is None else other.sim.contact_model
            end = f'step {ours.number} is not finite under {which}'
            break
        a, b = ours.report, theirs.report
        force = b.contacts.force.sum(axis=0) - a.contacts.force.sum(axis=0)
        rows.append((a.time, *difference(robot, a.q, b.q), float(np.linalg.norm(force))))
    time, base, turn, joints, forces = np.array(rows, dtype=float).reshape(-1, 5).T
    return Comparison(model, other.sim.contact_model, time, base, turn, joints, forces, end)


def difference(robot: RobotModel, first: Array, second: Array) -> tuple[float, float, float]:
    """Return how far apart two configurations (nq,) are.

    Returns:
        Distance [m] and angle [rad] between the bases, 0 for a fixed base, and the largest
        difference of a joint [rad or m].
    """
    change = pin.difference(robot.pinocchio_model, first, second)
    joints = float(np.abs(change[robot.joint_velocity_index]).max(initial=0.0))
    if not robot.floating_base:
        return 0.0, 0.0, joints
    distance = float(np.linalg.norm(second[:3] - first[:3]))
    return distance, float(np.linalg.norm(change[3:6])), joints
