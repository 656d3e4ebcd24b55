"""Detect the events of a recorded run, and sum up its forces, residuals and energies over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._terrain import Terrain
from contact_sim.errors import ContactSimError, one_line, shortened, summary
from contact_sim.replay._format import understood
from contact_sim.replay._recording import describe_change
from contact_sim.replay._replayer import ReplayedStep, Timeline, TimelineStep
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._state import FALLEN, standing_on
from contact_sim.step._problem import Residuals
from contact_sim.step._workspace import SLIP

# --- Numbers of every step of a long run in bounded memory.

BINS = 2048
"""Bins of a series: more than a plot has columns of pixels."""


class Series:
    """Values over the steps of a run, for plots; several steps share a bin in long runs.

    Args:
        units: unit of each number by its name.
        joined: merges two rows of a bin, the earlier and the later one.
        bins: an even number.

    Attributes:
        units: unit of each number by its name.
        stride: number of steps that share a bin.
    """

    def __init__(
        self, units: Mapping[str, str], joined: Callable[[Array, Array], Array], bins: int = BINS
    ) -> None:
        self.units, self.stride = dict(units), 1
        self._joined = joined
        self._rows = np.zeros((bins, len(self.units)))
        self._count = 0

    def add(self, row: Array) -> None:
        """Add the values of the next step, shape (n,)."""
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
        return np.array(self._rows[: len(self.steps), list(self.units).index(name)])

    def __repr__(self) -> str:
        return summary(self, columns=list(self.units), stride=self.stride)


# --- Events.

TOUCH_DOWN, LIFT_OFF, SLIPS, FALL = 'touch-down', 'lift-off', 'slip', 'fall'
WORST, MODEL, PUSH, CHANGE = 'worst residual', 'contact model', 'push', 'change'
NOT_FINITE, END = 'not finite', 'end'
KINDS = (TOUCH_DOWN, LIFT_OFF, SLIPS, WORST, FALL, MODEL, PUSH, CHANGE, NOT_FINITE, END)
"""Kinds of events, in the order of menus."""
AT_ONCE = 256
"""Steps whose heights above the ground are computed at once."""
LONGEST_TEXT = 60
"""Characters of the text of an event."""
SLIPPING = 1e-3
"""Tangential speed above which a loaded foot slips [m/s]; less is rolling or creep."""
JUDGED = {
    'penetration': 'm', 'signorini': 'J', 'cone': 'N s', 'dissipation': 'J', 'ncp': 'N s',
    'momentum': 'N s', 'energy': 'J',
}  # fmt: skip
"""Residuals that are followed, and their units."""
WORK = {'change': 'J', 'joints': 'J', 'contacts': 'J', 'rest': 'J'}
"""Parts of the energy balance since the beginning: ΔT + ΔU, work of joints and pushes, work of
contacts and constraints, and the error of the time step."""


@dataclass(frozen=True)
class Event:
    """An event in a recording."""

    step: int
    """Number of the step in which it happens, counted from 1."""
    kind: str
    """One of KINDS."""
    text: str
    """Description in a few words."""


@dataclass(frozen=True, eq=False)
class EventDetection:
    """Result of `detect_events`: the events of a recording, and its values over time."""

    events: tuple[Event, ...]
    """In order."""
    force: Series
    """Magnitude of the ground force on each foot [N]; maximum of each bin."""
    residuals: Series
    """Magnitudes of the residuals JUDGED; maximum of each bin."""
    work: Series
    """Energies WORK [J], summed up; last of each bin."""
    elapsed: Series
    """Sum of the time steps [s], which resets do not change; last of each bin."""
    first_difference: int | None
    """First step whose state is not the recorded one; None if none is, or under another model."""

    def next(self, step: int, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Return the first event of these kinds after `step`, None if there is none."""
        events = self.events
        return next((event for event in events if event.step > step and event.kind in kinds), None)

    def previous(self, step: int, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Return the last event of these kinds before `step`, None if there is none."""
        events = reversed(self.events)
        return next((event for event in events if event.step < step and event.kind in kinds), None)

    __repr__ = one_line


@checked
def detect_events(
    timeline: Timeline, progress: Callable[[int], None] | None = None
) -> EventDetection:
    """Replay every step of a recording once and detect its events.

    Args:
        timeline: of the recording; all later jumps in it are quick.
        progress: called with the number of steps after each; may raise to stop.

    Raises:
        RecordingError: a change that this version cannot make.
    """
    detector = EventDetector(timeline)
    for after, taken in timeline.walk():
        detector.observe(after, taken)
        if progress is not None:
            progress(after.step)
    return detector.result()


class EventDetector:
    """Detects events and fills series, step by step."""

    def __init__(self, timeline: Timeline) -> None:
        start = timeline.at(0)
        self._timeline, self._last = timeline, start
        self._feet = start.report.feet.names
        self._loaded = start.report.feet.loaded
        self._slipping = np.zeros(len(self._feet), dtype=bool)
        self._falls = FallDetector(timeline.robot)
        self._events: list[Event] = []
        self._worst = {name: (0, 0.0) for name in JUDGED}
        self._first_difference: int | None = None
        self._force = Series({foot: 'N' for foot in self._feet}, np.fmax)
        self._residuals = Series(JUDGED, np.fmax)
        self._work = Series(WORK, lambda earlier, later: later)
        self._elapsed = Series({'elapsed': 's'}, lambda earlier, later: later)
        self._sum, self._time = np.zeros(len(WORK)), 0.0
        # external changes, by the first step in which they act
        self._changes: dict[int, list[Event]] = {}
        with understood(f'{timeline.recording.path}: its changes'):
            for change in timeline.recording.events:
                step, kind = int(change['step']) + 1, change['kind']
                if kind != 'failure':
                    event_kind = {'contact_model': MODEL, 'wrenches': PUSH}.get(kind, CHANGE)
                    text = shortened(describe_change(change), LONGEST_TEXT)
                    self._changes.setdefault(step, []).append(Event(step, event_kind, text))

    def observe(self, after: TimelineStep, taken: ReplayedStep) -> None:
        """Take the next step."""
        step, report = after.step, after.report
        self._events += self._changes.get(step, ())
        if self._first_difference is None and not self._timeline.other_model:
            self._first_difference = taken.number if taken.differs(report) else None
        self._time += float(report.record.time_step[0]) if after.finite else 0.0
        self._elapsed.add(np.array([self._time]))
        if after.finite:
            self._observe_feet(step, report)
            self._observe_residuals(step, report.residuals)
            self._falls.observe(step, report.q, after.ground)
        else:
            if self._last.finite:
                self._events.append(
                    Event(step, NOT_FINITE, f'not finite under {after.contact_model}')
                )
            for series in (self._force, self._residuals, self._work):
                series.add(np.full(len(series.units), np.nan))
        self._last = after

    def result(self) -> EventDetection:
        """Return all events and series."""
        worst = [
            Event(step, WORST, f'worst {name}: {size:.3g} {JUDGED[name]}')
            for name, (step, size) in self._worst.items()
            if size > 0.0
        ]
        end = Event(self._last.step, END, f'end at t = {self._last.report.time:.9g} s')
        unsorted = [*self._events, *self._falls.events(), *worst, end]
        events = sorted(unsorted, key=lambda event: event.step)
        return EventDetection(
            tuple(events), self._force, self._residuals, self._work, self._elapsed,
            self._first_difference,
        )  # fmt: skip

    def _observe_feet(self, step: int, report: StepReport) -> None:
        feet, names = report.feet, self._feet
        loaded = feet.loaded
        slipping = (feet.mode == SLIP) & (feet.slip_speed > SLIPPING)
        for kind, words, now in (
            (TOUCH_DOWN, 'touches down', loaded & ~self._loaded),
            (LIFT_OFF, 'lifts off', ~loaded & self._loaded),
            (SLIPS, 'begins to slip', slipping & ~self._slipping),
        ):
            self._events += (Event(step, kind, f'{names[k]} {words}') for k in np.flatnonzero(now))
        self._loaded, self._slipping = loaded, slipping
        self._force.add(np.linalg.norm(feet.force, axis=1))

    def _observe_residuals(self, step: int, residuals: Residuals) -> None:
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


class FallDetector:
    """Detects bases that sink below half of their standing height."""

    def __init__(self, robot: RobotModel) -> None:
        # links with a free-flyer joint, and the index of their position in q
        self._robot, model = robot, robot.pinocchio_model
        links = {f.parentJoint: str(f.name) for f in reversed(list(model.frames))
                 if f.type == pin.FrameType.BODY}  # fmt: skip
        self._bases = {
            links.get(i, str(model.names[i])): joint.idx_q
            for i, joint in enumerate(model.joints)
            if joint.shortname() == 'JointModelFreeFlyer' and model.parents[i] == 0
        }
        self._ground: Terrain | None = None
        self._low: Array = np.zeros(0)
        self._up = np.zeros(len(self._bases), dtype=bool)
        self._steps: list[int] = []
        self._configurations: list[Array] = []
        self._events: list[Event] = []

    def observe(self, step: int, q: Array, ground: Terrain) -> None:
        """Take the configuration after the next step; heights are computed for many at once."""
        if ground is not self._ground or len(self._steps) == AT_ONCE:
            self._update()
        if ground is not self._ground:
            self._ground, self._low = ground, np.zeros(len(self._bases))
            with suppress(ContactSimError):  # where no stance is found, nobody falls
                standing = standing_on(self._robot, ground)
                self._low = FALLEN * self._heights([standing], ground)[0]
        self._steps.append(step)
        self._configurations.append(q)

    def events(self) -> list[Event]:
        """Return the falls so far."""
        self._update()
        return self._events

    def _update(self) -> None:
        if self._ground is None or not self._steps:
            return
        up = np.vstack([self._up, self._heights(self._configurations, self._ground) >= self._low])
        names = list(self._bases)
        for i, k in np.argwhere(up[:-1] & ~up[1:]):
            self._events.append(Event(self._steps[i], FALL, f'{names[k]} falls'))
        self._up = up[-1]
        self._steps, self._configurations = [], []

    def _heights(self, configurations: list[Array], ground: Terrain) -> Array:
        """Return the heights of the bases above the ground [m], (configurations, bases)."""
        places = [q[start : start + 3] for q in configurations for start in self._bases.values()]
        distances = ground.signed_distance(np.reshape(places, (-1, 3)))
        return np.reshape(distances, (len(configurations), len(self._bases)))
