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
from contact_sim.replay._replayer import Kept, PlayedStep, Player, World
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport

SPACING = 64
"""Steps between two states that are kept, as long as there is room."""
ROOM, MOST_ROOM = 64 << 20, 1 << 40
"""Memory for them [bytes]; when it is full every second one goes, and the spacing doubles."""


MOST_PLAYERS = 4
"""Simulations at hand: one in each world where grounds, time steps or constraints have changed."""


@dataclass(frozen=True, eq=False)
class Moment:
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
    """Ground in the step; the same object while it is the same."""


class Timeline:
    """A recorded run, by step number: states by replay, each equal to the recorded one to the bit.

    A step is reached from the nearest state that is kept before it. `walk` once, and every later
    jump takes some ten steps; the first jump into a part that nobody has seen takes all steps up
    to it. Walking and jumping may happen in different threads.

    Args:
        recording: what was recorded.
        contact_model: another model, in force from beginning to end; None: those recorded.
        room: memory for the states that are kept [bytes].

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
        first = self._player()
        self._players = [first]
        self._chunk: Chunk | None = None
        self._kept = KeptStates(first.keep(), count('room', room, MOST_ROOM))
        self._jumping = threading.Lock()
        self._shown = _moment(first, None, start=True)

    @property
    def robot(self) -> RobotModel:
        """The robot that was recorded."""
        return self._players[0].sim.robot

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
        return self._kept.last

    def walk(self) -> Iterator[tuple[Moment, PlayedStep]]:
        """Yield the run after each of its steps, in order; states are kept on the way.

        Raises:
            RecordingError: a change that this version cannot make.
        """
        player = self._player()
        for taken in player.steps():
            self._kept.offer(player)
            yield _moment(player, taken.report), taken

    def at(self, step: int) -> Moment:
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
            if self._shown.step != step:
                self._shown = self._at(step)
            return self._shown

    def _at(self, step: int) -> Moment:
        nearest = self._kept.before(max(step - 1, 0))  # the last step is taken: for its report
        player, report = self._player_in(nearest.world), None
        if not nearest.done <= player.done < step:
            player.go_back(nearest)
        while player.done < step:
            report = player.take(self._chunk_with(player.done)).report
            self._kept.offer(player)
        return _moment(player, report, start=step == 0)

    def _player_in(self, world: World) -> Player:
        """Return a player in a world, or one that may go there."""
        there = [player for player in self._players if world.is_that_of(player.sim)]
        if not there and len(self._players) < MOST_PLAYERS:
            self._players.append(self._player())
        return there[0] if there else self._players[-1]

    def _player(self) -> Player:
        return Player(self.recording, self._model, self._made)

    def _chunk_with(self, k: int) -> Chunk:
        """Return the steps among which is that with k steps before it."""
        chunk = self._chunk
        if chunk is None or not chunk.first <= k < chunk.first + len(chunk.effort):
            first = self._starts[bisect_right(self._starts, k) - 1]
            chunk = self._chunk = self.recording.chunk(first)
        return chunk


def _moment(player: Player, report: StepReport | None, start: bool = False) -> Moment:
    sim = player.sim
    finite = start or report is not None
    shown_report = sim.last_report if report is None else report
    return Moment(
        player.done, shown_report, finite, player.wrenches, sim.contact_model, sim.terrain
    )


class KeptStates:
    """States of a run by the number of steps before them, as many as there is room for.

    Args:
        first: the state at the beginning; never given up.
        room: memory [bytes].
    """

    def __init__(self, first: Kept, room: int) -> None:
        self._states = {first.done: first}
        self._numbers = [first.done]
        self._spacing, self._most = SPACING, max(room // first.snapshot.buffer.nbytes, 2)
        self._changing = threading.Lock()

    @property
    def last(self) -> int:
        """Number of steps before the last one."""
        return self._numbers[-1]

    def before(self, step: int) -> Kept:
        """Return the nearest one with at most `step` steps before it."""
        with self._changing:
            return self._states[self._numbers[bisect_right(self._numbers, step) - 1]]

    def offer(self, player: Player) -> None:
        """Keep the state at hand if none is near, or if the way there was long."""
        near = player.done % self._spacing and not player.in_new_world
        if near or player.done in self._states:
            return
        kept = player.keep()
        with self._changing:
            self._states[kept.done] = kept
            if len(self._states) > self._most:
                self._spacing *= 2
                self._states = {
                    done: kept for done, kept in self._states.items() if done % self._spacing == 0
                }
            self._numbers = sorted(self._states)
