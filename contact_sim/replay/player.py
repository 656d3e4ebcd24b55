"""Player: takes the steps of a recording again, from its beginning or from a kept state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from contact_sim.collision.terrain import Terrain
from contact_sim.constraints.words import from_words
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import NonFiniteState
from contact_sim.replay.archive import RecordingError
from contact_sim.replay.header import FORMAT, contact_model_of, ground_of
from contact_sim.replay.recording import Chunk, Recording, without_memory
from contact_sim.robot.constraints import Constraint
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator
from contact_sim.simulation.snapshot import Snapshot

OF_THE_WORLD = ('terrain', 'time_step', 'constraints')
"""Kinds of changes that lead into another World."""


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
class World:
    """What arrays are made for: to go from one to another takes as long as a thousand steps."""

    ground: Terrain
    time_step: float
    constraints: tuple[Constraint, ...]

    def is_that_of(self, sim: Simulator) -> bool:
        """Return whether a simulation is in it."""
        return (
            sim.terrain is self.ground
            and sim.time_step == self.time_step
            and sim.constraints == self.constraints
        )


@dataclass(frozen=True, eq=False)
class Kept:
    """All that the steps of a recording after the first `done` depend on."""

    done: int
    world: World
    snapshot: Snapshot
    wrenches: Mapping[str, list[float]]
    stopped: bool


class Player:
    """Takes the steps of a recording on a simulator.

    Args:
        recording: what is repeated.
        contact_model: another model, in force from beginning to end; None: those recorded.
        made: what recorded changes led to, by name; players that share it share grounds and
            models, which need not be built again.

    Attributes:
        sim: the simulation.
        done: number of steps taken since the recording began.
        in_new_world: whether the last step was the first in another World.
        wrenches: what acted in the last step, as `Simulator.step` takes it.
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
        self.done, self.in_new_world = 0, False

    def steps(self) -> Iterator[PlayedStep]:
        """Take step after step, from the beginning on."""
        for chunk in self._recording.chunks():
            for _ in range(len(chunk.effort)):
                yield self.take(chunk)

    def take(self, chunk: Chunk) -> PlayedStep:
        """Take the next step, which is one of `chunk`."""
        k, every = self.done, self._every
        events = chunk.events.get(k, ())
        for event in events:
            self._apply_checked(event, chunk)
        report = self._step(chunk.effort[k - chunk.first])
        self.done = k + 1
        self.in_new_world = any(event['kind'] in OF_THE_WORLD for event in events)
        failed = any(event['kind'] == 'failure' for event in events)
        hashed = self.done // every - chunk.first // every - 1
        recorded = int(chunk.hashes[hashed]) if self.done % every == 0 else None
        return PlayedStep(self.done, report, failed, recorded)

    def keep(self) -> Kept:
        """Return what is needed to come back here, also by another player of the recording."""
        sim = self.sim
        world = World(sim.terrain, sim.time_step, sim.constraints)
        return Kept(self.done, world, sim.snapshot(), self.wrenches, self._stopped)

    def go_back(self, kept: Kept) -> None:
        """Go on from there: the steps that follow are the same to the bit."""
        sim = self.sim
        if kept.world.ground is not sim.terrain:
            sim.friction, sim.restitution = 0.0, 0.0  # those of the snapshot follow
            sim.reset(sim.q, terrain=kept.world.ground)
        sim.restore(kept.snapshot)
        self.done, self.wrenches, self._stopped = kept.done, kept.wrenches, kept.stopped

    def _step(self, effort: Any) -> StepReport | None:
        """Take a step; after one that was not finite none is taken before a state is set."""
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
        """Make a recorded change again."""
        sim, kind = self.sim, event['kind']
        if kind == 'contact_model':
            if not self._own_model:
                model = self._once(event, lambda: contact_model_of(event))
                sim.contact_model = model
        elif kind == 'terrain':
            said = {'format': FORMAT, 'ground': event['ground']}
            sim.reset(sim.q, terrain=self._once(event, lambda: ground_of(said)))
            self._stopped = False
        elif kind == 'time_step':
            sim.time_step = event['value']
        elif kind == 'constraints':
            self._hold(event, chunk)
        elif kind == 'wrenches':
            self.wrenches = event['wrenches']
        elif 'state' in event:
            self._restore(buffer=self._state(event, chunk))
        elif kind != 'failure':
            array = getattr(sim.snapshot(), kind).copy()
            array[:] = event['value']
            self._restore(**{kind: array})

    def _once(self, event: dict[str, Any], make: Callable[[], Any]) -> Any:
        """Return what a change leads to: the same object every time that it is made."""
        name = event['kind'], event['step']
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _restore(self, **changed: Any) -> None:
        """Go on from the state at hand with some fields of its snapshot changed."""
        self.sim.restore(replace(self.sim.snapshot(), **changed))
        self._stopped = False

    def _hold(self, event: dict[str, Any], chunk: Chunk) -> None:
        """Let other constraints hold, in the state that was recorded after the change."""
        constraints = tuple(from_words(said) for said in event['constraints'])
        after = [other for other in chunk.events[event['step']] if 'state' in other]
        if after:
            self._restore(buffer=self._state(after[0], chunk), constraints=constraints)
        else:
            self.sim.constraints = constraints

    def _state(self, event: dict[str, Any], chunk: Chunk) -> Any:
        """Return the state that belongs to a change."""
        state = chunk.states[event['state']]
        return without_memory(self.sim, state) if self._own_model else state
