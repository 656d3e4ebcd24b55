"""Timeline: the exact state of any step of a recording, in any order."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from contact_sim._validation import checked, count, whole
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import InvalidInput, shown
from contact_sim.replay._recording import Chunk, Recording
from contact_sim.replay._replayer import Checkpoint, ReplayedStep, Replayer, SimulatorSetup
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport

SPACING = 64
"""Steps between two checkpoints, as long as there is room."""
ROOM, MOST_ROOM = 64 << 20, 1 << 40
"""Memory for them [bytes]; when it is full every second one is dropped."""
MOST_REPLAYERS = 4
"""Simulations that are kept, one for each setup of a recording that changes it."""


@dataclass(frozen=True, eq=False)
class TimelineStep:
    """A recorded run after one of its steps."""

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


class Timeline:
    """A recorded run by step number; states are replayed, equal to the recorded ones to the bit.

    A step is replayed from the nearest checkpoint before it. After one `walk` every jump takes
    some ten steps; before, the first jump takes all steps up to there. `walk` and `at` may be
    called from different threads.

    Args:
        recording: what was recorded.
        contact_model: another model, in force from beginning to end; None: those recorded.
        room: memory for checkpoints [bytes].

    Attributes:
        recording: what was recorded.
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
        self.recording = recording
        self._model = contact_model
        self._made: dict[tuple[str, int], Any] = {}
        self._starts: list[int] = []
        self.steps = 0
        for chunk in recording.chunks():
            self._starts.append(chunk.first)
            self.steps += len(chunk.effort)
        self.damage = recording.damage
        first = self._replayer()
        self._replayers = [first]
        self._chunk: Chunk | None = None
        self._checkpoints = CheckpointStore(first.checkpoint(), count('room', room, MOST_ROOM))
        self._jumping = threading.Lock()
        self._current = _timeline_step(first, None, start=True)

    @property
    def robot(self) -> RobotModel:
        """The robot that was recorded."""
        return self._replayers[0].sim.robot

    @property
    def time_step(self) -> float:
        """Time step at the beginning [s]."""
        return float(self.recording.header['time_step'])

    @property
    def other_model(self) -> bool:
        """Whether this is the run under another contact model than the recorded ones."""
        return self._model is not None

    @property
    def known(self) -> int:
        """Number of steps up to which jumps are quick."""
        return self._checkpoints.last

    def walk(self) -> Iterator[tuple[TimelineStep, ReplayedStep]]:
        """Yield the run after each of its steps, in order, and store checkpoints.

        Raises:
            RecordingError: a change that this version cannot make.
        """
        replayer = self._replayer()
        for taken in replayer.steps():
            self._checkpoints.offer(replayer)
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
        nearest = self._checkpoints.before(max(step - 1, 0))
        replayer, report = self._replayer_with(nearest.setup), None
        if not nearest.done <= replayer.done < step:
            replayer.return_to(nearest)
        while replayer.done < step:
            report = replayer.take(self._chunk_with(replayer.done)).report
            self._checkpoints.offer(replayer)
        return _timeline_step(replayer, report, start=step == 0)

    def _replayer_with(self, setup: SimulatorSetup) -> Replayer:
        """Return a replayer that has a setup, else one that may change to it."""
        matching = [replayer for replayer in self._replayers if setup.matches(replayer.sim)]
        if not matching and len(self._replayers) < MOST_REPLAYERS:
            self._replayers.append(self._replayer())
        return matching[0] if matching else self._replayers[-1]

    def _replayer(self) -> Replayer:
        return Replayer(self.recording, self._model, self._made)

    def _chunk_with(self, k: int) -> Chunk:
        """Return the chunk of the step with k steps before it."""
        chunk = self._chunk
        if chunk is None or not chunk.first <= k < chunk.first + len(chunk.effort):
            first = self._starts[bisect_right(self._starts, k) - 1]
            chunk = self._chunk = self.recording.chunk(first)
        return chunk


def _timeline_step(
    replayer: Replayer, report: StepReport | None, start: bool = False
) -> TimelineStep:
    sim = replayer.sim
    finite = start or report is not None
    shown_report = sim.last_report if report is None else report
    return TimelineStep(
        replayer.done, shown_report, finite, replayer.wrenches, sim.contact_model, sim.terrain
    )


class CheckpointStore:
    """Checkpoints by the number of steps before them, as many as there is room for.

    Args:
        first: at the beginning; never dropped.
        room: memory [bytes].
    """

    def __init__(self, first: Checkpoint, room: int) -> None:
        self._states = {first.done: first}
        self._numbers = [first.done]
        self._spacing, self._most = SPACING, max(room // first.snapshot.buffer.nbytes, 2)
        self._changing = threading.Lock()

    @property
    def last(self) -> int:
        """Number of steps before the last one."""
        return self._numbers[-1]

    def before(self, step: int) -> Checkpoint:
        """Return the last one with at most `step` steps before it."""
        with self._changing:
            return self._states[self._numbers[bisect_right(self._numbers, step) - 1]]

    def offer(self, replayer: Replayer) -> None:
        """Store a checkpoint at the spacing, and where the setup has changed."""
        near = replayer.done % self._spacing and not replayer.setup_changed
        if near or replayer.done in self._states:
            return
        checkpoint = replayer.checkpoint()
        with self._changing:
            self._states[checkpoint.done] = checkpoint
            if len(self._states) > self._most:
                self._spacing *= 2
                self._states = {
                    done: state
                    for done, state in self._states.items()
                    if done % self._spacing == 0
                }
            self._numbers = sorted(self._states)
