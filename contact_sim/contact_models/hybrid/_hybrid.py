"""Hybrid: event-driven rigid contact in continuous time.

Between events the contacts hold their modes (open, stick, slip) and the constrained motion is
integrated with a Runge-Kutta scheme of 4th order; touch-down, lift-off, the start and the end of
a slip are located, impacts are maps of the velocity, and after each event the modes are chosen by
the contact problem at acceleration level. theory 2.6 to 2.8, T8, T12 to T15.

    try the step in the modes at hand, without an event         (_event_free.py)
    while t < h:   impact, if a contact closes                     (_impacts.py)
                   choose the modes                                (_motion.py, _modes.py)
                   integrate with them until a guard is violated   (_arcs.py, _motion.py)
                   locate the event and stop there                 (_arcs.py)

Efforts and external forces are constant over a step. Normal drift is taken out at a rate of
`stabilisation`; friction needs no anchor, since the slip velocity is held at zero. A step that
has no such answer, with a Painlevé configuration or too many events, is one step of `ncp`, and
the status says which.

Everything that lasts from step to step is in the step data: `memory` keeps force, in world axes,
and mode of every contact, so that a snapshot is exact. Terms of Pinocchio and constraints that are
Python functions are filled wherever an instant is evaluated: at every stage of an arc, and where
the velocity jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import is_finite
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import (
    WORLD_NUMBERS,
    address_of,
    arrays_at,
    arrays_of,
    frames,
    matrix,
    places_of_worlds,
    vector,
)
from contact_sim.contact_models._base import (
    Stepper,
    TimeStepping,
    model_summary,
    project_python_constraints,
)
from contact_sim.contact_models._impact_sequence import SEQUENTIAL, multiple_impacts_parameter
from contact_sim.contact_models._ncp import Ncp
from contact_sim.contact_models._stages import READY, entry_of
from contact_sim.contact_models.hybrid import _arcs, _event_free, _impacts, _motion
from contact_sim.contact_models.hybrid._arc_fields import STAGES, ArcArrays
from contact_sim.contact_models.hybrid._event_free import BEGUN, FINISHED, REFUSED, STARTED
from contact_sim.contact_models.hybrid._impacts import IMPACT_LAWS
from contact_sim.contact_models.hybrid._modes import OPEN, SLIP, STICK
from contact_sim.dynamics._rigid_body import PinocchioTerms
from contact_sim.dynamics._vectors import scaled, vec
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    FREE,
    INCONSISTENT,
    NONFINITE,
    TOO_MANY_EVENTS,
)
from contact_sim.solvers._jit import entry, integers_at
from contact_sim.step._bilateral_rows import PythonConstraints
from contact_sim.step._workspace import Workspace

SOLVED = (FREE, CONVERGED, CONVERGED_BY_FALLBACK)
SHORTEST_ARC = 1e-6  # arc length at which a motion counts as too rough to follow [s]
NOT_FOLLOWED = -1.0  # time reached by a motion that cannot be followed
MAX_LOCATION_TRIES, MISSES_BEFORE_BISECTION = 200, 5
GROWTH = 8.0  # of the distance behind an estimated root, whenever one was found before it
CHOICE_TOLERANCE = 1e-11  # accuracy of the end of a mode with redundant forces [s]
LOCATED_VIOLATION = 1e-3  # violation, in slacks, at which an event counts as located
STICKING_SPEED = 1e-6  # speed up to which a contact counts as sticking after a fallback [m/s]


@dataclass(frozen=True)
class HybridParameters(Parameters):
    """Impact map and numerics of the event-driven model."""

    impact: str = parameter(
        'newton', '', 'what an impact does to the velocity', choices=IMPACT_LAWS, live=True
    )
    energy_guard: bool = parameter(
        True, '', 'reduce the restitution of newton until no energy is created', live=True
    )
    multiple_impacts: str = multiple_impacts_parameter()
    max_substep: float = parameter(
        1e-3, 's', 'longest Runge-Kutta step', at_least=1e-5, at_most=0.01, live=True
    )
    event_tolerance: float = parameter(
        1e-12, 's', 'how closely events are located', at_least=1e-15, at_most=1e-6, live=True
    )
    max_events: int = parameter(
        50, '-', 'events in one step before a time-stepping step takes over', at_least=1,
        at_most=100000, live=True,
    )  # fmt: skip
    stiction_speed: float = parameter(
        1e-8, 'm/s', 'speed up to which a contact or joint counts as at rest', at_least=1e-14,
        at_most=1e-3, live=True,
    )  # fmt: skip
    stabilisation: float = parameter(
        50.0, '1/s', 'rate at which drift of held contacts is taken out', at_least=0.0,
        at_most=100.0, live=True,
    )  # fmt: skip


class Hybrid:
    """Event-driven rigid contact.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'hybrid'
    parameter_class: ClassVar[type[Parameters]] = HybridParameters

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: HybridParameters = HybridParameters(**parameters)  # type: ignore[arg-type]

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the event-driven stepper, with a time-stepping step of ncp as fallback.

        Raises:
            InvalidInput: a row of the robot that is bounded on one side only, contacts with
                torsional or rolling friction.
        """
        if workspace.has_moments:
            raise InvalidInput(
                'contact model hybrid: torsional_friction and rolling_friction have to be 0 in '
                'it; choose a time-stepping model, such as ncp'
            )
        # a row bounded on one side only opens and closes like a contact: there is no guard for it
        lower, upper = workspace.interval_lower, workspace.interval_upper
        bad = np.flatnonzero(np.isfinite(lower) != np.isfinite(upper))
        if len(bad):
            k = int(bad[0])
            raise InvalidInput(
                f'contact model hybrid: interval row {k} (dof {workspace.interval_dof[k]}) has '
                f'its force in [{lower[k]:g}, {upper[k]:g}]; hybrid takes rows with two bounds or '
                'none; choose a time-stepping model'
            )
        ncp = Ncp(multiple_impacts=self.parameters.multiple_impacts)
        h = float(workspace.data.time_step[0])
        fallback = TimeStepping(workspace, ncp.compiled.advance, ncp.settings(h))
        return EventDriven(workspace, fallback, self.parameters)

    def __repr__(self) -> str:
        return model_summary(self)


# --- The event-driven step.


class EventDriven:
    """The event-driven stepper of one workspace; `fallback` steps where events have no answer."""

    def __init__(
        self, workspace: Workspace, fallback: TimeStepping, settings: HybridParameters
    ) -> None:
        self._workspace, self._fallback, self._settings = workspace, fallback, settings
        workspace.use_pair_drift()
        sequential = settings.multiple_impacts == SEQUENTIAL
        self._law = IMPACT_LAWS.index(settings.impact), settings.energy_guard, sequential
        self._arc = arc = ArcArrays(workspace.sizes)
        arc.jacobian_transposed[:] = workspace.jacobian_transposed  # rows of the intervals
        arc.settings[:] = settings.stiction_speed, settings.stabilisation
        own = arc.numbers, arc.indices, arc.layout
        self._own, self._arrays = own, (*workspace.arrays, *own)
        self._places = places_of_worlds(*workspace.arrays), places_of_worlds(*own)
        self._addresses = [address_of(places) for places in self._places]
        self._terms = PinocchioTerms(workspace) if workspace.external_terms[0] else None
        self._rows = PythonConstraints(workspace) if workspace.table.functions else None
        self._effects: Array = np.zeros(workspace.sizes.nv)
        self._residual, self._longest = 0.0, settings.max_substep
        self._compile()

    def _compile(self) -> None:
        """Call the entries that only events need: the first event costs what all others do."""
        own, (numbers, indices, _) = self._own, self._workspace.arrays
        before = numbers.copy(), indices.copy()
        start_step(*self._arrays)
        fill_coefficients(*self._arrays)
        apply_impact(*self._arrays, *self._law)
        evaluate_velocity(*self._arrays, self._arc.arc_v)
        choose_modes(*self._arrays, self._longest)
        begin_arc(*self._arrays, 0.0)
        integrate(*self._arrays, self._longest)
        only_forces_violated(*own)
        earliest_root(*own, 0.0, 1.0, 0.5, False)
        time_since_root(*own, 0.0, 1.0, 0.5)
        watch_violated(*own)
        prepare_event(*own)
        accept(*self._arrays, self._longest)
        remove_drift(*self._arrays)
        finish_step(*self._arrays, 0, 0.0)
        store_fallback_state(*self._workspace.arrays)
        numbers[:], indices[:] = before

    def advance(self) -> int:
        """Advance the state by h; return the status of the world."""
        if self._rows is None:
            return self._advance()
        with self._fallback.restored_on_error():
            return self._advance()

    def _advance(self) -> int:
        self._residual, self._longest = 0.0, self._settings.max_substep
        if self._terms is None and self._rows is None:
            done, collides, *followed = advance_without_events(*self._addresses, self._longest)
            if done == FINISHED:
                return READY
            if done == REFUSED:
                return int(self._workspace.status[0])
        else:
            done, followed, status = STARTED, [], self._fallback.begin()
            if status != READY:
                return status
            if self._terms is not None:
                self._effects[:] = self._workspace.data.nonlinear_effects
            collides = start_step(*self._arrays)
            if self._rows is not None:  # start_step has imposed driven speeds
                self._evaluate_velocity()
        code, events = self._run(collides, followed if done == BEGUN else None)
        if not (is_finite(self._arc.arc_q) and is_finite(self._arc.arc_v)):
            code = NONFINITE  # the fallback takes the step back
        if code not in SOLVED:
            return self._fall_back(code, events)
        remove_drift(*self._arrays)
        finish_step(*self._arrays, events, self._residual)
        if self._terms is not None:
            self._workspace.data.nonlinear_effects[:] = self._effects
        if self._rows is not None:
            project_python_constraints(self._workspace)
        self.update_contacts()
        return READY

    def update_contacts(self) -> None:
        """Fill placements, M and the contact points at the current q."""
        self._fallback.update_contacts()

    def _run(self, collides: bool, followed: Sequence[Any] | None) -> tuple[int, int]:
        """Advance the arc by h; return the status code and the number of events.

        `followed`: what `_integrate` has returned for a first arc.
        """
        arc, t, events, lenience, before = self._arc, 0.0, 0, 0.0, None
        h = float(self._workspace.data.time_step[0])
        while True:
            code = self._choose(collides, h - t) if followed is None else CONVERGED
            if code not in SOLVED:
                return code, events
            # same modes as before the event: redundant forces left their bounds; allow more
            modes = (arc.contact_mode.tobytes(), arc.interval_mode.tobytes())
            redundant = modes == before
            lenience = 4.0 * lenience + 1.0 if redundant else 0.0
            if followed is None and not begin_arc(*self._arrays, lenience):
                return NONFINITE, events
            t, located = self._follow(t, h, redundant, followed)
            followed = None
            events += located
            if t == NOT_FOLLOWED:
                return TOO_MANY_EVENTS, events
            if t >= h:
                return CONVERGED, events
            if events > self._settings.max_events:
                return TOO_MANY_EVENTS, events
            before, collides = modes if located else None, False
            arc.at_end[:] = 0
            if located:
                collides = prepare_event(*self._own)

    def _choose(self, collides: bool, remaining: float) -> int:
        """Apply the impact if a contact collides, and choose the modes; return the status code."""
        code = CONVERGED
        if self._has_regions:
            fill_coefficients(*self._arrays)
        if collides:
            code, _, residual = apply_impact(*self._arrays, *self._law)
            self._residual = max(self._residual, residual)
            self._evaluate_velocity()
        if code in SOLVED:
            code, _, self._residual = choose_modes(*self._arrays, self._length(remaining))
        return int(code)

    def _follow(
        self, t: float, h: float, redundant: bool, followed: Sequence[Any] | None
    ) -> tuple[float, bool]:
        """Integrate from t to the next event, the next choice of modes or h, in the modes at hand.

        Returns the time, or NOT_FOLLOWED, and if an event is there. `redundant`: modes as before.
        """
        while t < h:
            dt = self._length(h - t)
            fine, violated = self._integrate(dt) if followed is None else followed
            followed = None
            located = fine and violated > 0 and not self._forces_can_adapt(dt)
            end = self._locate(dt, redundant) if located else dt
            if not fine or end == NOT_FOLLOWED:
                if dt <= SHORTEST_ARC:
                    return NOT_FOLLOWED, False
                self._longest = 0.5 * dt
                continue
            dt = end
            t = h if dt == h - t else t + dt
            slips = accept(*self._arrays, dt)
            self._longest = min(2.0 * self._longest, self._settings.max_substep)
            if located or slips or self._has_regions:
                return t, located
        return t, False

    def _integrate(self, dt: float) -> tuple[bool, int]:
        """Integrate by dt; return False if shorter arcs are needed, and the violated guards."""
        if self._terms is None and self._rows is None:
            held, error, violated = integrate(*self._arrays, dt)
        else:
            held, error, violated = self._integrate_by_stages(dt)
        return held and error <= 1.0, violated

    def _integrate_by_stages(self, dt: float) -> tuple[bool, float, int]:
        """Integrate by dt with what Python fills; returns what `integrate` does."""
        arc, error, violated = self._arc, 0.0, 0
        for stage in range(1, STAGES + 1):
            error = start_stage(*self._arrays, stage, dt)
            if not np.isfinite(arc.stage_v.sum()):
                return False, error, 0
            if self._terms is not None:
                arc.stage_q[:] = self._terms.moved(arc.arc_q, arc.displacement)
            self._fill_given(arc.stage_q, arc.stage_v)
            held, violated = finish_stage(*self._arrays, stage)
            if not held:
                return False, error, 0
        return True, error, violated

    def _fill_given(self, q: Array, v: Array) -> None:
        """Fill terms of Pinocchio and rows of Python functions at q (nq,), v (nv,)."""
        if self._terms is not None:
            self._terms.update_configuration(q)
            self._terms.update_velocity(q, v)
        if self._rows is not None:
            self._rows.update(q, v)

    def _evaluate_velocity(self) -> None:
        """Bring the instant in line with a velocity that has jumped."""
        self._fill_given(self._arc.arc_q, self._arc.arc_v)
        evaluate_velocity(*self._arrays, self._arc.arc_v)

    @property
    def _has_regions(self) -> bool:
        """Whether friction depends on the place; over an arc it is that of its start."""
        return bool(self._workspace.ground[-1])

    def _length(self, remaining: float) -> float:
        """Return the length of the next arc [s]."""
        longest = min(remaining, self._longest)
        return 0.5 * remaining if longest < remaining < 2.0 * longest else longest

    def _forces_can_adapt(self, dt: float) -> bool:
        """Return True if other forces at the end of the arc obey the bounds in the same modes."""
        arc = self._arc
        if not only_forces_violated(*self._own):
            return False
        # redundant forces are not unique: that those at hand leave a cone is no event yet;
        # choose the modes anew at the end of the arc, and restore what that overwrites
        kept = (arc.closed, arc.contact_mode, arc.direction, arc.heading, arc.frozen,
                arc.interval_mode, arc.interval_closed, arc.interval_held, arc.force,
                arc.acceleration, arc.bilateral_force)  # fmt: skip
        before, reference = [array.copy() for array in kept], arc.reference.copy()
        arc.reference[:] = arc.force
        arc.at_end[:] = 0
        code, _, residual = choose_modes(*self._arrays, dt)
        same = np.array_equal(arc.contact_mode, before[1])
        adapted = code in SOLVED and same and np.array_equal(arc.interval_mode, before[5])
        for array, old in zip(kept, before, strict=True):
            array[:] = old
        if adapted:
            self._residual = max(self._residual, residual)
            arc.force[:] = arc.reference
        else:
            arc.reference[:] = reference
        return adapted

    def _locate(self, dt: float, redundant: bool) -> float:
        """Integrate to the first event in the arc, and return its instant in (0, dt].

        NOT_FOLLOWED where a motion on the way is too rough: guards there say nothing.
        """
        # where forces at the last event could adapt, this is looked at here too
        arc, own, tolerance = self._arc, self._own, self._settings.event_tolerance
        if redundant and only_forces_violated(*own):
            return self._locate_by_choice(dt)
        low, high, third, reached, misses = 0.0, dt, np.nan, dt, 0
        arc.watched[:] = 0
        watch_violated(*own)
        arc.level_low[:], arc.level_high[:] = arc.level_before, arc.level
        arc.rate_low[:], arc.rate_high[:] = arc.rate_before, arc.rate
        for _ in range(MAX_LOCATION_TRIES):
            if high - low <= tolerance:
                break
            # earliest root by curves, by bisection after they have missed the half many times; a
            # little behind it, and the more so the more often roots were found before it
            t = earliest_root(*own, low, high, third, abs(misses) >= MISSES_BEFORE_BISECTION)
            t = min(max(t, low) + 0.05 * tolerance * GROWTH ** max(misses, 0), high)
            t = low + 0.5 * (high - low) if t >= high else t
            if not self._integrate(t)[0]:
                return NOT_FOLLOWED
            reached = t
            violated, largest = watch_violated(*own)
            if violated:
                misses = min(misses, 0) - 1 if t - low > 0.5 * (high - low) else 0
                third, arc.level_third[:] = high, arc.level_high
                high, arc.level_high[:], arc.rate_high[:] = t, arc.level, arc.rate
                since = time_since_root(*own, low, high, third)
                if largest <= LOCATED_VIOLATION or since <= tolerance:
                    break
            else:
                misses = max(misses, 0) + 1 if high - t > 0.5 * (high - low) else 0
                third, arc.level_third[:] = low, arc.level_low
                low, arc.level_low[:], arc.rate_low[:] = t, arc.level, arc.rate
        if reached != high:
            self._integrate(high)
        return high

    def _locate_by_choice(self, dt: float) -> float:
        """Return the instant in (0, dt] up to which some forces obey the bounds in these modes."""
        # for redundant forces: those at hand leave their bounds before the modes have to change
        low, high = 0.0, dt
        while high - low > max(self._settings.event_tolerance, CHOICE_TOLERANCE):
            t = 0.5 * (low + high)
            fine, violated = self._integrate(t)
            if fine and (violated == 0 or self._forces_can_adapt(t)):
                low = t
            else:
                high = t
        self._integrate(high)
        return high

    def _fall_back(self, code: int, events: int) -> int:
        """Take one time-stepping step from where this step started, and say why."""
        solver = self._workspace.data.solver
        self.update_contacts()
        status = self._fallback.advance()
        if status != READY:
            return status
        store_fallback_state(*self._workspace.arrays)
        if code == INCONSISTENT or solver[0] in SOLVED:
            solver[0] = code
        solver[1] += events
        return status


@entry
def store_fallback_state(numbers, indices, layout):
    """Keep force and mode of every contact after a time-stepping step."""
    data = arrays_of(numbers, indices, layout, 0)
    memory, frame = matrix(data, f.MEMORY), frames(data, f.FRAME_START)
    h = vector(data, f.TIME_STEP)[0]
    impulse, u = vector(data, f.IMPULSE), vector(data, f.U_NEXT)
    for i in range(memory.shape[0]):
        r, mode = 3 * i, OPEN
        if impulse[r + 2] > 0.0:
            slip = np.sqrt(u[r] ** 2 + u[r + 1] ** 2)
            mode = SLIP if slip > STICKING_SPEED else STICK
        force = scaled(1.0 / h, vec(impulse, r))
        _arcs.store_contact_state(memory[i], mode, force, frame[i])


# --- The compiled pieces of a step: entries of the kernels of this folder.


def _with_arc(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, *arguments):  # type: ignore[no-untyped-def]
    """Call `run` with the arrays of the step, those of the arc, and what else it takes."""
    data = arrays_of(numbers, indices, layout, 0)
    return run(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), *arguments)


def _at_addresses(address, arc_address, longest):  # type: ignore[no-untyped-def]
    """Call `run` with the arrays of the step and of the arc by address: a microsecond less."""
    places, own = integers_at(address, WORLD_NUMBERS), integers_at(arc_address, WORLD_NUMBERS)
    return run(arrays_at(places, 0), arrays_at(own, 0), longest)


run: Any = None

advance_without_events = entry_of(_event_free.advance_without_events, _at_addresses)
start_step = entry_of(_arcs.start_step, _with_arc)
fill_coefficients = entry_of(_motion.fill_coefficients, _with_arc)
evaluate_velocity = entry_of(_motion.evaluate_velocity, _with_arc)
apply_impact = entry_of(_impacts.apply_impact, _with_arc)
choose_modes = entry_of(_motion.choose_modes, _with_arc)
begin_arc = entry_of(_arcs.begin_arc, _with_arc)
integrate = entry_of(_arcs.integrate, _with_arc)
start_stage = entry_of(_arcs.start_stage, _with_arc)
finish_stage = entry_of(_arcs.finish_stage, _with_arc)
accept = entry_of(_arcs.accept, _with_arc)
remove_drift = entry_of(_motion.remove_drift, _with_arc)
finish_step = entry_of(_arcs.finish_step, _with_arc)
only_forces_violated = entry_of(_arcs.only_forces_violated)
watch_violated = entry_of(_arcs.watch_violated)
earliest_root = entry_of(_arcs.earliest_root)
time_since_root = entry_of(_arcs.time_since_root)
prepare_event = entry_of(_arcs.prepare_event)
