"""The event-driven step: integrate to the first event, change modes or velocity, go on.

    while t < h:   impact, if a contact closes                     (impacts.py, collide.py)
                   choose the modes                                (modes.py)
                   integrate with them until a guard is violated   (flow.py, guards.py)
                   locate the event and stop there                 (events.py)

Everything that lasts from step to step is in the step data: `memory` keeps force, in world axes,
and mode of every contact, so that a snapshot is exact.

What only Python knows, terms of Pinocchio and constraints that are functions, is filled wherever
an instant is evaluated: at every stage of an arc, and where the velocity jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact.given_rows import GivenRows
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.hybrid.entries import accept, apply_impact, begin_arc, change_velocity, choose_modes, earliest_root, fill_coefficients, finish, finish_stage, integrate, load, only_forces_violated, prepare_event, remember_fallback, start_stage, watch_violated
from contact_sim.contact_models.hybrid.fields import STAGES, ArcArrays
from contact_sim.contact_models.time_stepping.actuation import READY
from contact_sim.contact_models.time_stepping.stepper import TimeStepping, settle
from contact_sim.dynamics.given_terms import GivenTerms
from contact_sim.numbers import is_finite
from contact_sim.solvers.status import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    FREE,
    INCONSISTENT,
    NONFINITE,
    TOO_MANY_EVENTS,
)

Array = NDArray[np.float64]
SOLVED = (FREE, CONVERGED, CONVERGED_BY_FALLBACK)
MAX_LOCATION_TRIES = 200
SHORTEST_ARC = 1e-6
"""Arc length at which a motion counts as too rough to follow [s]."""
TOO_ROUGH = -1.0
"""Time reached by a motion that cannot be followed."""
CHOICE_TOLERANCE = 1e-11
"""Accuracy of the end of a mode with redundant forces [s]."""
LOCATED = 1e-3
"""Violation, in slacks, at which an event counts as located."""
MISSES_BEFORE_BISECTION = 3


@dataclass(frozen=True)
class EventSettings:
    """Impact map and numerics of the event-driven step."""

    impact: int
    """Code of the impact law."""
    energy_guard: bool
    """Whether restitution is reduced until no energy is created."""
    max_substep: float
    """Longest Runge-Kutta step [s]."""
    event_tolerance: float
    """Accuracy of the time of an event [s]."""
    max_events: int
    """Events in one step before the fallback takes over."""
    stiction_speed: float
    """Speed up to which a row counts as at rest [m/s, rad/s]."""
    stabilisation: float
    """Rate α at which drift is taken out [1/s]."""


class EventDriven:
    """The event-driven stepper of one workspace.

    Args:
        workspace: arrays of the simulation.
        fallback: the step taken where events have no answer.
        settings: impact map and numerics.
    """

    def __init__(
        self, workspace: Workspace, fallback: TimeStepping, settings: EventSettings
    ) -> None:
        self._workspace, self._fallback, self._settings = workspace, fallback, settings
        self._arc = arc = ArcArrays(workspace.sizes)
        arc.jacobian_transposed[:] = workspace.data.jacobian_transposed  # rows of the intervals
        arc.settings[:] = settings.stiction_speed, settings.stabilisation
        own = arc.numbers, arc.indices, arc.layout
        self._own, self._arrays = own, (*workspace.arrays, *own)
        self._terms = GivenTerms(workspace) if workspace.terms_given[0] else None
        self._rows = GivenRows(workspace) if workspace.table.given else None
        self._effects: Array = np.zeros(workspace.sizes.nv)
        self._residual, self._longest = 0.0, settings.max_substep
        self._compile()

    def _compile(self) -> None:
        """Call the entries that only events need: the first event costs what all others do."""
        own, settings = self._own, self._settings
        fill_coefficients(*self._arrays)
        apply_impact(*self._arrays, settings.impact, settings.energy_guard)
        only_forces_violated(*own)
        earliest_root(*own, 0.0, 1.0, False)
        watch_violated(*own)
        prepare_event(*own)
        change_velocity(*self._arrays)
        memory = self._workspace.data.memory
        kept = memory.copy()
        remember_fallback(*self._workspace.arrays)
        memory[:] = kept

    def advance(self) -> int:
        """Advance the state by h; return the status of the world.

        A step that is not finite is taken back, by the fallback.
        """
        if self._rows is None:
            return self._advance()
        with self._fallback.as_before_if_raised():
            return self._advance()

    def _advance(self) -> int:
        status = self._fallback.begin()
        if status != READY:
            return status
        if self._terms is not None:
            self._effects[:] = self._workspace.data.nonlinear_effects
        code, events = self._run(float(self._workspace.data.time_step[0]))
        if not (is_finite(self._arc.arc_q) and is_finite(self._arc.arc_v)):
            code = NONFINITE
        if code not in SOLVED:
            return self._fall_back(code, events)
        finish(*self._arrays, events, self._residual)
        if self._terms is not None:
            self._workspace.data.nonlinear_effects[:] = self._effects
        if self._rows is not None:
            settle(self._workspace)
        self.update_contacts()
        return READY

    def update_contacts(self) -> None:
        """Fill placements, M and the contact points at the current q."""
        self._fallback.update_contacts()

    # ---------------------------------------------------------------- between the events

    def _run(self, h: float) -> tuple[int, int]:
        """Advance the arc by h; return the status code and the number of events."""
        arc, t, events, lenience, before = self._arc, 0.0, 0, 0.0, None
        self._residual, self._longest = 0.0, self._settings.max_substep
        collides = load(*self._arrays)
        if self._rows is not None:  # load has made the velocity the one that is asked for
            self._evaluate_velocity()
        while True:
            if self._has_regions:
                fill_coefficients(*self._arrays)
            code = self._impact() if collides else CONVERGED
            if code in SOLVED:
                code, _, self._residual = choose_modes(*self._arrays, self._length(h - t))
            if code not in SOLVED:
                return code, events
            modes = (arc.contact_mode.tobytes(), arc.interval_mode.tobytes())
            redundant = modes == before
            lenience = 4.0 * lenience + 1.0 if redundant else 0.0
            if not begin_arc(*self._arrays, lenience):
                return NONFINITE, events
            t, located = self._follow(t, h, redundant)
            events += located
            if t == TOO_ROUGH:
                return TOO_MANY_EVENTS, events
            if t >= h:
                return CONVERGED, events
            if events > self._settings.max_events:
                return TOO_MANY_EVENTS, events
            before, collides = modes if located else None, False
            arc.at_end[:] = 0
            if located:
                collides = prepare_event(*self._own)

    def _follow(self, t: float, h: float, redundant: bool) -> tuple[float, bool]:
        """Integrate from t to the next event, the next choice of modes or h, in the modes at hand.

        Returns the time reached, or TOO_ROUGH, and whether there was an event. `redundant`: the
        modes are those before the last event.
        """
        while t < h:
            dt = self._length(h - t)
            fine, violated = self._integrate(dt)
            if not fine:
                if dt <= SHORTEST_ARC:
                    return TOO_ROUGH, False
                self._longest = 0.5 * dt
                continue
            located = violated > 0 and not self._forces_can_adapt(dt)
            if located:
                dt = self._locate(dt, redundant)
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
        """Integrate by dt with what Python fills; returns what `flow.integrate` does."""
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
        """Fill what only Python knows at q (nq,), v (nv,)."""
        if self._terms is not None:
            self._terms.update_configuration(q)
            self._terms.update_velocity(q, v)
        if self._rows is not None:
            self._rows.update(q, v)

    def _evaluate_velocity(self) -> None:
        """Bring the instant in line with a velocity that has jumped."""
        self._fill_given(self._arc.arc_q, self._arc.arc_v)
        change_velocity(*self._arrays)

    @property
    def _has_regions(self) -> bool:
        """Whether friction depends on the place; it is that of the start of an arc, all along."""
        return bool(self._workspace.ground[-1])

    def _length(self, remaining: float) -> float:
        """Return the length of the next arc [s]."""
        longest = min(remaining, self._longest)
        return 0.5 * remaining if longest < remaining < 2.0 * longest else longest

    def _forces_can_adapt(self, dt: float) -> bool:
        """Return True if other forces at the end of the arc obey the bounds in the same modes.

        Redundant forces are not unique: that those at hand leave a cone is no event yet.
        """
        arc = self._arc
        if not only_forces_violated(*self._own):
            return False
        kept = (arc.closed, arc.contact_mode, arc.direction, arc.heading, arc.frozen,
                arc.interval_mode, arc.interval_closed)  # fmt: skip
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

    # ---------------------------------------------------------------- the events

    def _locate(self, dt: float, redundant: bool) -> float:
        """Integrate to the first event in the arc, and return its instant in (0, dt].

        `redundant`: forces at the last event could adapt, which is then looked at here too.
        """
        arc, own, tolerance = self._arc, self._own, self._settings.event_tolerance
        if redundant and only_forces_violated(*own):
            return self._locate_by_choice(dt)
        low, high, reached, misses = 0.0, dt, dt, 0
        arc.watched[:] = 0
        watch_violated(*own)
        arc.guard_low[:], arc.guard_high[:] = arc.guard_before, arc.guard
        for _ in range(MAX_LOCATION_TRIES):
            if high - low <= tolerance:
                break
            t = earliest_root(*own, low, high, misses >= MISSES_BEFORE_BISECTION)
            t = min(max(t, low + 0.25 * tolerance), high)
            t = low + 0.5 * (high - low) if t >= high else t
            self._integrate(t)
            reached = t
            violated, largest = watch_violated(*own)
            if violated:
                misses = misses + 1 if t - low > 0.5 * (high - low) else 0
                high, arc.guard_high[:] = t, arc.guard
                if largest <= LOCATED:
                    break
            else:
                misses = misses + 1 if high - t > 0.5 * (high - low) else 0
                low, arc.guard_low[:] = t, arc.guard
        if reached != high:
            self._integrate(high)
        return high

    def _locate_by_choice(self, dt: float) -> float:
        """Return the instant in (0, dt] up to which some forces obey the bounds in these modes.

        For redundant forces: those at hand leave their bounds before the modes have to change.
        """
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

    def _impact(self) -> int:
        """Apply the impact map at the closed contacts; return the status code."""
        settings = self._settings
        code, _, residual = apply_impact(
            *self._arrays, settings.impact, settings.energy_guard
        )
        self._residual = max(self._residual, residual)
        self._evaluate_velocity()
        return int(code)

    # ---------------------------------------------------------------- the fallback

    def _fall_back(self, code: int, events: int) -> int:
        """Take one time-stepping step from where this step started, and say why."""
        solver = self._workspace.data.solver
        self.update_contacts()
        status = self._fallback.advance()
        if status != READY:
            return status
        remember_fallback(*self._workspace.arrays)
        if code == INCONSISTENT or solver[0] in SOLVED:
            solver[0] = code
        solver[1] += events
        return status
