"""Survey of a recording: what happens in it and its numbers over time, found in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._terrain import Terrain
from contact_sim.errors import ContactSimError, shortened
from contact_sim.replay._archive import StateHash, understood
from contact_sim.replay._recording import Recording, change_in_words
from contact_sim.replay._replayer import PlayedStep
from contact_sim.replay._timeline import Moment, Timeline
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._state import FALLEN, standing_on
from contact_sim.step._residuals import Residuals
from contact_sim.step._workspace import SLIP

# --- Series: numbers of every step of a long run in bounded memory, for plots.

BINS = 2048
"""Bins of a series: more than a plot has columns of pixels."""


def last(_: Array, later: Array) -> Array:
    """Return the later one of two rows."""
    return later


class Series:
    """Rows of numbers, one per step; steps share a bin once there are more of them than bins.

    Args:
        units: unit of each number by its name.
        joined: makes one row of two that share a bin: the earlier and the later one.
        bins: an even number.

    Attributes:
        units: as given.
        stride: number of steps that share a bin.
    """

    def __init__(
        self,
        units: Mapping[str, str],
        joined: Callable[[Array, Array], Array],
        bins: int = BINS,
    ) -> None:
        self.units, self.stride = dict(units), 1
        self._joined = joined
        self._rows = np.zeros((bins, len(self.units)))
        self._count = 0

    def add(self, row: Array) -> None:
        """Take the numbers of the next step, shape (n,)."""
        bins = len(self._rows)
        if self._count == bins * self.stride:
            self._rows[: bins // 2] = self._joined(self._rows[::2], self._rows[1::2])
            self.stride *= 2
        k, inside = divmod(self._count, self.stride)
        self._rows[k] = self._joined(self._rows[k], row) if inside else row
        self._count += 1

    @property
    def steps(self) -> Array:
        """Number of the last step in each bin, shape (bins,)."""
        ends = np.arange(self.stride, self._count + self.stride, self.stride, dtype=float)
        return np.asarray(np.minimum(ends, self._count))

    def column(self, name: str) -> Array:
        """Return one of the numbers over the bins, shape (bins,)."""
        column = self._rows[: len(self.steps), list(self.units).index(name)]
        return np.array(column)


# --- Survey of a recording: what happens in it and its numbers over time, found in one pass.

TOUCH_DOWN, LIFT_OFF, SLIPS, FALL = 'touch-down', 'lift-off', 'slip', 'fall'
WORST, MODEL, PUSH, CHANGE = 'worst residual', 'contact model', 'push', 'change'
NOT_FINITE, END = 'not finite', 'end'
KINDS = (TOUCH_DOWN, LIFT_OFF, SLIPS, WORST, FALL, MODEL, PUSH, CHANGE, NOT_FINITE, END)
"""Kinds of events, in the order in which they are offered."""
WORDS = {TOUCH_DOWN: 'touches down', LIFT_OFF: 'lifts off', SLIPS: 'begins to slip'}
AT_ONCE = 256
"""Steps whose heights above the ground are asked for at once."""
LONGEST_TEXT = 60
"""Characters of what is said of an event."""
SLIPPING = 1e-3
"""Speed along the ground from which on a loaded foot slips [m/s]: less is rolling or creep."""
JUDGED = {
    'penetration': 'm', 'signorini': 'J', 'cone': 'N s', 'dissipation': 'J', 'ncp': 'N s',
    'momentum': 'N s', 'energy': 'J',
}  # fmt: skip
"""Residuals that are followed, with their units."""
WORK = {'change': 'J', 'joints': 'J', 'contacts': 'J', 'rest': 'J'}
"""Parts of the energy balance since the beginning: ΔT + ΔU, work of joints and pushes, of contacts
and constraints, and what the time step leaves."""


@dataclass(frozen=True)
class Event:
    """Something that happens in a recording."""

    step: int
    """Number of steps since the recording began, that in which it happens included."""
    kind: str
    """One of KINDS."""
    text: str
    """What happens, in a few words."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What happens in a recording, and its numbers over time."""

    events: tuple[Event, ...]
    """In order."""
    force: Series
    """Size of the force of the ground on each foot [N]; largest of each bin."""
    residuals: Series
    """Sizes of the residuals JUDGED; largest of each bin."""
    work: Series
    """Energies WORK [J], summed up; last of each bin."""
    elapsed: Series
    """Simulated time that the steps took together [s], whatever was reset; last of each bin."""
    first_difference: int | None
    """First step whose state is not the recorded one; None if none is, or under another model."""

    def next(self, step: int, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Return the first event of these kinds after `step`, None if there is none."""
        found = (event for event in self.events if event.step > step and event.kind in kinds)
        return next(found, None)

    def previous(self, step: int, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Return the last event of these kinds before `step`, None if there is none."""
        found = (
            event for event in reversed(self.events) if event.step < step and event.kind in kinds
        )
        return next(found, None)


@checked
def survey(timeline: Timeline, progress: Callable[[int], None] | None = None) -> Survey:
    """Take every step of a recording once, and return what was seen.

    Args:
        timeline: of the recording; all later jumps in it are quick.
        progress: told the number of steps after each; may raise to end the survey.

    Raises:
        RecordingError: a change that this version cannot make.
    """
    watch = Watch(timeline)
    for moment, taken in timeline.walk():
        watch.note(moment, taken)
        if progress is not None:
            progress(moment.step)
    return watch.result()


class Watch:
    """Sees the steps of a recording, one after the other."""

    def __init__(self, timeline: Timeline) -> None:
        start = timeline.at(0)
        self._timeline, self._last = timeline, start
        self._feet = start.report.feet.names
        self._loaded = start.report.feet.loaded
        self._slipping = np.zeros(len(self._feet), dtype=bool)
        self._falls = Falls(timeline.robot)
        self._events: list[Event] = []
        self._worst = {name: (0, 0.0) for name in JUDGED}
        self._first_difference: int | None = None
        self._force = Series({foot: 'N' for foot in self._feet}, np.fmax)
        self._residuals = Series(JUDGED, np.fmax)
        self._work = Series(WORK, last)
        self._elapsed = Series({'elapsed': 's'}, last)
        self._sum, self._time = np.zeros(len(WORK)), 0.0
        self._changes = changes_of(timeline.recording)

    def note(self, moment: Moment, taken: PlayedStep) -> None:
        """See the next step."""
        step, report = moment.step, moment.report
        self._events += self._changes.get(step, ())
        self._check(taken, report)
        self._time += float(report.record.time_step[0]) if moment.finite else 0.0
        self._elapsed.add(np.array([self._time]))
        if moment.finite:
            self._note_feet(step, report)
            self._note_judge(step, report.residuals)
            self._falls.note(step, report.q, moment.ground)
        else:
            if self._last.finite:
                self._events.append(
                    Event(step, NOT_FINITE, f'not finite under {moment.contact_model}')
                )
            for series in (self._force, self._residuals, self._work):
                series.add(np.full(len(series.units), np.nan))
        self._last = moment

    def result(self) -> Survey:
        """Return what was seen."""
        worst = [
            Event(step, WORST, f'worst {name}: {size:.3g} {JUDGED[name]}')
            for name, (step, size) in self._worst.items()
            if size > 0.0
        ]
        end = Event(self._last.step, END, f'end at t = {self._last.report.time:.9g} s')
        found = [*self._events, *self._falls.events(), *worst, end]
        events = sorted(found, key=lambda event: event.step)
        return Survey(
            tuple(events), self._force, self._residuals, self._work, self._elapsed,
            self._first_difference,
        )  # fmt: skip

    def _note_feet(self, step: int, report: StepReport) -> None:
        feet, names = report.feet, self._feet
        loaded = feet.loaded
        slipping = (feet.mode == SLIP) & (feet.slip_speed > SLIPPING)
        for kind, now in (
            (TOUCH_DOWN, loaded & ~self._loaded),
            (LIFT_OFF, ~loaded & self._loaded),
            (SLIPS, slipping & ~self._slipping),
        ):
            self._events += (
                Event(step, kind, f'{names[k]} {WORDS[kind]}') for k in np.flatnonzero(now)
            )
        self._loaded, self._slipping = loaded, slipping
        self._force.add(np.linalg.norm(feet.force, axis=1))

    def _note_judge(self, step: int, residuals: Residuals) -> None:
        sizes = [abs(getattr(residuals, name)) for name in JUDGED]
        self._residuals.add(np.array(sizes))
        for name, size in zip(JUDGED, sizes, strict=True):
            if size > self._worst[name][1]:
                self._worst[name] = step, size
        balance = residuals.energy_balance
        joints = balance.actuation + balance.damping + balance.joint_friction
        contacts = balance.contact + balance.constraints
        self._sum += balance.change, joints, contacts, balance.integration
        self._work.add(self._sum)

    def _check(self, taken: PlayedStep, report: StepReport) -> None:
        """Compare with what was recorded, where that is to be the same."""
        if self._first_difference is not None or self._timeline.other_model:
            return
        record = report.record
        here = StateHash(record.sizes)(record.buffer) if taken.recorded_hash is not None else None
        if here != taken.recorded_hash or taken.failed_then != (taken.report is None):
            self._first_difference = taken.number


class Falls:
    """Sees bases come below half of the height at which they stand."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot, self._bases = robot, free_bases(robot.pinocchio_model)
        self._ground: Terrain | None = None
        self._low: Array = np.zeros(0)
        self._up = np.zeros(len(self._bases), dtype=bool)
        self._steps: list[int] = []
        self._places: list[Array] = []
        self._found: list[Event] = []

    def note(self, step: int, q: Array, ground: Terrain) -> None:
        """Take where the robot is after the next step; the ground is asked for many at once."""
        if ground is not self._ground or len(self._steps) == AT_ONCE:
            self._look()
        if ground is not self._ground:
            self._ground, self._low = ground, FALLEN * self._standing(ground)
        self._steps.append(step)
        self._places.append(self._places_of(q))

    def events(self) -> list[Event]:
        """Return the falls so far, by the links that fell."""
        self._look()
        return self._found

    def _look(self) -> None:
        if self._ground is None or not self._steps:
            return
        heights = self._heights(np.array(self._places), self._ground)
        up = np.vstack([self._up, heights >= self._low])
        names = list(self._bases)
        for i, k in np.argwhere(up[:-1] & ~up[1:]):
            self._found.append(Event(self._steps[i], FALL, f'{names[k]} falls'))
        self._up = up[-1]
        self._steps, self._places = [], []

    def _places_of(self, q: Array) -> Array:
        """Return the positions of the bases [m], shape (n_bases, 3)."""
        return np.array([q[start : start + 3] for start in self._bases.values()]).reshape(-1, 3)

    def _heights(self, places: Array, ground: Terrain) -> Array:
        """Return the heights above the ground [m] of places (..., 3), of shape (...)."""
        return np.asarray(ground.distances(places.reshape(-1, 3))).reshape(places.shape[:-1])

    def _standing(self, ground: Terrain) -> Array:
        """Return the heights of the bases where they stand; 0 where nothing can stand."""
        try:
            return self._heights(self._places_of(standing_on(self._robot, ground)), ground)
        except ContactSimError:
            return np.zeros(len(self._bases))


def free_bases(model: pin.Model) -> dict[str, int]:
    """Return the links that move freely, each with the place of its position in q."""
    links = {f.parentJoint: str(f.name) for f in reversed(list(model.frames))
             if f.type == pin.FrameType.BODY}  # fmt: skip
    return {
        links.get(i, str(model.names[i])): joint.idx_q
        for i, joint in enumerate(model.joints)
        if joint.shortname() == 'JointModelFreeFlyer' and model.parents[i] == 0
    }


def changes_of(recording: Recording) -> dict[int, list[Event]]:
    """Return what was changed from outside, by the first step that it acts in.

    Raises:
        RecordingError: a change without what belongs to it.
    """
    found: dict[int, list[Event]] = {}
    with understood(f'{recording.path}: its changes'):
        for change in recording.events:
            step, kind = int(change['step']) + 1, change['kind']
            if kind != 'failure':
                named = {'contact_model': MODEL, 'wrenches': PUSH}.get(kind, CHANGE)
                text = shortened(change_in_words(change), LONGEST_TEXT)
                found.setdefault(step, []).append(Event(step, named, text))
    return found
