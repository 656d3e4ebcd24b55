"""Repeat a recorded run, step by step, and find out where it differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from contact_sim.arguments import checked
from contact_sim.errors import ContactSimError
from contact_sim.replay.hashing import StateHash
from contact_sim.replay.player import PlayedStep, Player
from contact_sim.replay.recording import Recording


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
