"""Repeat a recorded run, step by step, and find out where it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from contact_sim.arguments import checked
from contact_sim.constraints.words import from_words
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import ContactSimError, NonFiniteState
from contact_sim.replay.archive import RecordingError
from contact_sim.replay.hashing import StateHash
from contact_sim.replay.header import FORMAT, contact_model_of, ground_of
from contact_sim.replay.recording import Chunk, Recording, without_memory
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator


@dataclass(frozen=True)
class PlayedStep:
    """One step taken again."""

    number: int
    """Counted from 1, since the recording began."""
    report: StepReport | None
    """None where the step was not finite."""
    failed_then: bool
    """Whether it was not finite when it was recorded."""
    recorded_hash: int | None
    """Hash of the state after it, where one was recorded."""


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


class Player:
    """Takes the steps of a recording on a simulator.

    Args:
        recording: what is repeated.
        contact_model: another model, in force from beginning to end; None: those recorded.
    """

    def __init__(
        self, recording: Recording, contact_model: str | ContactModel | None = None
    ) -> None:
        self._recording = recording
        self._own_model = contact_model is not None
        self._wrenches: dict[str, list[float]] = {}
        self.sim: Simulator = recording.simulator(contact_model)

    def steps(self) -> Iterator[PlayedStep]:
        """Take step after step."""
        every = self._recording.hash_every
        for chunk in self._recording.chunks():
            hashes = iter(chunk.hashes.tolist())
            for k, effort in enumerate(chunk.effort, chunk.first):
                events = chunk.events.get(k, ())
                for event in events:
                    self._apply_checked(event, chunk)
                report = self._step(effort)
                failed = any(event['kind'] == 'failure' for event in events)
                recorded = next(hashes) if (k + 1) % every == 0 else None
                yield PlayedStep(k + 1, report, failed, recorded)

    def _step(self, effort: Any) -> StepReport | None:
        try:
            return self.sim.step(effort, self._wrenches)
        except NonFiniteState:
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
        """Make a recorded change again."""
        sim, kind = self.sim, event['kind']
        if kind == 'contact_model':
            if not self._own_model:
                sim.contact_model = contact_model_of(event)  # type: ignore[assignment]
        elif kind == 'terrain':
            ground = ground_of({'format': FORMAT, 'ground': event['ground']})
            sim.reset(sim.q, terrain=ground)
        elif kind == 'time_step':
            sim.time_step = event['value']
        elif kind == 'constraints':
            self._hold(event, chunk)
        elif kind == 'wrenches':
            self._wrenches = event['wrenches']
        elif 'state' in event:
            sim.restore(replace(sim.snapshot(), buffer=self._state(event, chunk)))
        elif kind != 'failure':
            snapshot = sim.snapshot()
            array = getattr(snapshot, kind).copy()
            array[:] = event['value']
            sim.restore(replace(snapshot, **{kind: array}))

    def _hold(self, event: dict[str, Any], chunk: Chunk) -> None:
        """Let other constraints hold, in the state that was recorded after the change."""
        sim = self.sim
        constraints = tuple(from_words(said) for said in event['constraints'])
        after = [other for other in chunk.events[event['step']] if 'state' in other]
        if after:
            buffer = self._state(after[0], chunk)
            sim.restore(replace(sim.snapshot(), buffer=buffer, constraints=constraints))
        else:
            sim.constraints = constraints

    def _state(self, event: dict[str, Any], chunk: Chunk) -> Any:
        """Return the state that belongs to a change."""
        state = chunk.states[event['state']]
        return without_memory(self.sim, state) if self._own_model else state


@checked
def repeat(recording: Recording, on_step: Callable[[PlayedStep], None] | None = None) -> Outcome:
    """Repeat a recording and compare every state with the recorded one, to the bit.

    Args:
        recording: what is repeated.
        on_step: called with every step, before it is compared.

    Raises:
        RecordingError: a robot that can no longer be built from the recording.
    """
    player = Player(recording)
    done, difference, at = 0, '', None
    try:
        for step in player.steps():
            if on_step is not None:
                on_step(step)
            if (step.report is None) != step.failed_then:
                at = step.number
                difference = f'step {at} is finite only in one of the runs'
                break
            here = StateHash(player.sim.sizes)(player.sim.snapshot().buffer)
            if step.recorded_hash is not None and here != step.recorded_hash:
                difference, at = _first_difference(recording, step, player.sim.time), step.number
                break
            done = step.number
    except ContactSimError as error:
        at = done + 1
        difference = f'step {at} cannot be repeated: {error}'
    digest = recording.digest  # reads to the end: `damage` is known from here on
    return Outcome(done, player.sim.time, digest, difference, at, recording.damage)


def _first_difference(recording: Recording, step: PlayedStep, time: float) -> str:
    every = recording.hash_every
    which = f'step {step.number}' if every == 1 else f'a step after {step.number - every}, up to'
    which += '' if every == 1 else f' {step.number}'
    return f'{which} (t = {time:.9g} s) differs from the recording'
