"""Replay a recording from any checkpoint, verified bit by bit, or under another model.

`Replayer` takes the steps again; `Timeline` has the exact state of any step, in any order;
`repeat` compares every state with the recorded one; `compare` replays the same efforts under two
contact models.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked, count, whole
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    NonFiniteState,
    one_line,
    shown,
    summary,
)
from contact_sim.replay._format import (
    FORMAT,
    RecordingError,
    StateHash,
    contact_model_of,
    ground_of,
)
from contact_sim.replay._recording import Chunk, Recording, without_memory
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot
from contact_sim.simulation._user_values import MOMENT_COEFFICIENTS

SETUP_CHANGES = ('terrain', 'time_step', 'constraints', 'moments')
"""Kinds of changes after which arrays are made anew."""


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

    def differs(self, state: StepReport) -> bool:
        """Return whether `state` differs from the recorded state in any bit."""
        if (self.report is None) != self.failed_then:
            return True
        record, recorded = state.record, self.recorded_hash
        return recorded is not None and StateHash(record.sizes)(record.buffer) != recorded

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that the steps of a recording after the first `done` depend on."""

    done: int
    ground: Terrain
    time_step: float
    constraints: tuple[Constraint, ...]
    snapshot: Snapshot
    wrenches: Mapping[str, list[float]]
    stopped: bool

    def fits(self, sim: Simulator) -> bool:
        """Whether a simulation has its setup: arrays made anew take as long as 1000 steps."""
        return (
            sim.terrain is self.ground
            and sim.time_step == self.time_step
            and sim.constraints == self.constraints
        )


class Replayer:
    """Takes the steps of a recording on a simulator, perhaps all under another contact model.

    `made` is a cache of the terrains and models of recorded changes, which replayers may share.
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
        self.wrenches: Mapping[str, list[float]] = {}  # in the last step
        self.sim: Simulator = recording.simulator(contact_model)
        self.done = 0  # steps taken since the recording began
        self.setup_changed = False  # whether one of SETUP_CHANGES came before the last step

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
            try:
                self._apply(event, chunk)
            except Exception as error:  # a file may hold anything
                raise RecordingError(
                    f'the change {str(event)[:80]} before step {event.get("step", -1) + 1} '
                    f'cannot be made: {error}'
                ) from error
        report = None
        if not self._stopped:  # after a step that was not finite, none until a state is set
            try:
                report = self.sim.step(chunk.effort[k - chunk.first], self.wrenches)
            except NonFiniteState:
                self._stopped = True
        self.done = k + 1
        self.setup_changed = any(event['kind'] in SETUP_CHANGES for event in events)
        failed = any(event['kind'] == 'failure' for event in events)
        hashed = self.done // every - chunk.first // every - 1
        recorded = int(chunk.hashes[hashed]) if self.done % every == 0 else None
        return ReplayedStep(self.done, report, failed, recorded)

    def checkpoint(self) -> Checkpoint:
        """Return a checkpoint of this state, for any replayer of the recording."""
        sim = self.sim
        return Checkpoint(
            self.done, sim.terrain, sim.time_step, sim.constraints, sim.snapshot(),
            self.wrenches, self._stopped,
        )  # fmt: skip

    def return_to(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint; the steps that follow are the same to the bit."""
        sim = self.sim
        if checkpoint.ground is not sim.terrain:
            sim.friction, sim.restitution = 0.0, 0.0  # those of the snapshot follow
            sim.torsional_friction = sim.rolling_friction = 0.0
            sim.reset(sim.q, terrain=checkpoint.ground)
        sim.restore(checkpoint.snapshot)
        self.done, self.wrenches = checkpoint.done, checkpoint.wrenches
        self._stopped = checkpoint.stopped

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
            constraints = tuple(map(constraint_from_dict, event['constraints']))
            after = [other for other in chunk.events[event['step']] if 'state' in other]
            if after:  # put into force in the state that was recorded after the change
                self._restore(buffer=self._state(after[0], chunk), constraints=constraints)
            else:
                sim.constraints = constraints
        elif kind == 'moments':
            for name in MOMENT_COEFFICIENTS:
                setattr(sim, name, event['coefficients'].get(name, 0.0))
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

    def _state(self, event: dict[str, Any], chunk: Chunk) -> Any:
        """Return the state that belongs to a change."""
        state = chunk.states[event['state']]
        return without_memory(self.sim, state) if self._own_model else state


# --- Any step, in any order.

SPACING = 64
"""Steps between two checkpoints, as long as there is room."""
ROOM, MOST_ROOM = 64 << 20, 1 << 40
"""Memory for them [bytes]; when it is full every second one is dropped."""
MOST_REPLAYERS = 4
"""Simulations that are kept, one for each setup of a recording that changes it."""


@dataclass(frozen=True, eq=False)
class TimelineStep:
    """State of a recorded run after one of its steps."""

    step: int
    """Number of steps since the recording began; 0 is the state at its beginning."""
    report: StepReport
    """Report of that step; where it was not finite, the state before it."""
    finite: bool
    """Whether the step was taken: False too for those that followed one that was not finite."""
    wrenches: Mapping[str, list[float]]
    """Force [N] and torque [N m] on frames in the step, world, as `Simulator.step` takes them."""
    contact_model: str
    """Name of the model that took the step."""
    ground: Terrain
    """Ground in the step; the same object until it changes."""

    __repr__ = one_line


class Timeline:
    """Access to the states of a recorded run by step number; replayed states are bit-identical.

    A step is replayed from the nearest checkpoint before it. After one `walk` every jump takes
    some ten steps; before, the first jump takes all steps up to there. `walk` and `at` may be
    called from different threads.

    Args:
        recording: what was recorded.
        contact_model: another model, in force from beginning to end; None: those recorded.
        room: memory for checkpoints [bytes].

    Attributes:
        recording: what was recorded.
        robot: the robot that was recorded.
        time_step: time step at the beginning [s].
        other_model: whether this is the run under another contact model than the recorded ones.
        steps: number of steps that can be read.
        damage: reason why these are not all, '' if they are.

    Raises:
        RecordingError: a recording that this version cannot repeat.
        UnknownName: no such contact model.
    """

    @checked
    def __init__(
        self,
        recording: Recording,
        contact_model: str | ContactModel | None = None,
        room: int = ROOM,
    ) -> None:
        self.recording, self._model = recording, contact_model
        self.other_model = contact_model is not None
        self.time_step = float(recording.header['time_step'])
        self._made: dict[tuple[str, int], Any] = {}
        self._starts: list[int] = []
        self.steps = 0
        for chunk in recording.chunks():
            self._starts.append(chunk.first)
            self.steps += len(chunk.effort)
        self.damage = recording.damage
        first = Replayer(recording, contact_model, self._made)
        self._replayers, self.robot = [first], first.sim.robot
        self._chunk: Chunk | None = None
        start = first.checkpoint()
        self._checkpoints, self._numbers = {0: start}, [0]  # by the number of steps before them
        size = start.snapshot.buffer.nbytes
        self._spacing, self._most = SPACING, max(count('room', room, MOST_ROOM) // size, 2)
        self._jumping, self._storing = threading.Lock(), threading.Lock()
        self._current = _timeline_step(first, None, start=True)

    @property
    def known(self) -> int:
        """Number of steps up to which jumps are quick."""
        return self._numbers[-1]

    def walk(self) -> Iterator[tuple[TimelineStep, ReplayedStep]]:
        """Yield the run after each of its steps, in order, and store checkpoints.

        Raises:
            RecordingError: a change that this version cannot make.
        """
        replayer = Replayer(self.recording, self._model, self._made)
        for taken in replayer.steps():
            self._store_checkpoint(replayer)
            yield _timeline_step(replayer, taken.report), taken

    def at(self, step: int) -> TimelineStep:
        """Return the run after `step` steps.

        Raises:
            InvalidInput: a number that the recording does not have.
            RecordingError: a change before it that this version cannot make.
        """
        if not 0 <= whole('step', step) <= self.steps:
            raise InvalidInput(
                f'step = {shown(step)}: expected a number of 0 to {self.steps}, the steps of '
                f'{self.recording.path}'
            )
        with self._jumping:
            if self._current.step != step:
                self._current = self._at(step)
            return self._current

    def _at(self, step: int) -> TimelineStep:
        # the last step is replayed in any case, for its report
        with self._storing:
            before = bisect_right(self._numbers, max(step - 1, 0))
            nearest = self._checkpoints[self._numbers[before - 1]]
        # on a replayer that has its setup, else on one that may change to it
        matching = [replayer for replayer in self._replayers if nearest.fits(replayer.sim)]
        if not matching and len(self._replayers) < MOST_REPLAYERS:
            self._replayers.append(Replayer(self.recording, self._model, self._made))
        replayer, report = (matching or self._replayers[-1:])[0], None
        if not nearest.done <= replayer.done < step:
            replayer.return_to(nearest)
        while replayer.done < step:
            k, chunk = replayer.done, self._chunk
            if chunk is None or not chunk.first <= k < chunk.first + len(chunk.effort):
                first = self._starts[bisect_right(self._starts, k) - 1]
                chunk = self._chunk = self.recording.chunk(first)
            report = replayer.take(chunk).report
            self._store_checkpoint(replayer)
        return _timeline_step(replayer, report, start=step == 0)

    def _store_checkpoint(self, replayer: Replayer) -> None:
        """Store a checkpoint at the spacing, and where the setup has changed."""
        near = replayer.done % self._spacing and not replayer.setup_changed
        if near or replayer.done in self._checkpoints:
            return
        checkpoint = replayer.checkpoint()
        with self._storing:
            self._checkpoints[checkpoint.done] = checkpoint
            if len(self._checkpoints) > self._most:
                self._spacing *= 2
                kept = [done for done in self._checkpoints if done % self._spacing == 0]
                self._checkpoints = {done: self._checkpoints[done] for done in kept}
            self._numbers = sorted(self._checkpoints)

    def __repr__(self) -> str:
        return summary(
            self, path=str(self.recording.path), steps=self.steps, time_step=self.time_step
        )


def _timeline_step(
    replayer: Replayer, report: StepReport | None, start: bool = False
) -> TimelineStep:
    sim = replayer.sim
    finite = start or report is not None
    shown_report = sim.last_report if report is None else report
    return TimelineStep(
        replayer.done, shown_report, finite, replayer.wrenches, sim.contact_model, sim.terrain
    )


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
        """Whether every replayed step is bit-identical to the recorded one."""
        return not (self.difference or self.damage)


@checked
def repeat(recording: Recording, on_step: Callable[[ReplayedStep], None] | None = None) -> Outcome:
    """Replay a recording and compare every state with the recorded one, bit by bit.

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
            if step.differs(replayer.sim.last_report):
                at, every = step.number, recording.hash_every
                if (step.report is None) != step.failed_then:
                    difference = f'step {at} is finite only in one of the runs'
                else:
                    which = 'step' if every == 1 else f'a step after {at - every}, up to'
                    time = f't = {replayer.sim.time:.9g} s'
                    difference = f'{which} {at} ({time}) differs from the recording'
                break
            done = step.number
    except ContactSimError as error:
        at = done + 1
        difference = f'step {at} cannot be repeated: {error}'
    digest = recording.digest  # reads to the end: `damage` is known from here on
    return Outcome(done, replayer.sim.time, digest, difference, at, recording.damage)


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
    """Replay a recording beside itself under another contact model, with the same efforts."""
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
    """Return how far apart two configurations (nq,) are: bases [m], [rad], and joints.

    Those of fixed bases are 0, that of the joints is the largest [rad or m].
    """
    change = pin.difference(robot.pinocchio_model, first, second)
    joints = float(np.abs(change[robot.joint_velocity_index]).max(initial=0.0))
    if not robot.floating_base:
        return 0.0, 0.0, joints
    distance = float(np.linalg.norm(second[:3] - first[:3]))
    return distance, float(np.linalg.norm(change[3:6])), joints
