"""The event-driven step: integrate to the first event, change modes or velocity, go on.

    while t < h:   impact, if a contact closes
                   choose the modes                            (modes.py)
                   integrate with them until a guard is violated    (arc.py, guards.py)
                   locate the event and stop there

Everything that lasts from step to step is in the record: `memory` keeps mode and force of every
contact, so that a snapshot is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact.solution import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    FREE,
    INCONSISTENT,
    NONFINITE,
    TOO_MANY_EVENTS,
)
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.hybrid.flow import Arc
from contact_sim.contact_models.hybrid.guards import (
    find_closed,
    largest_violation,
    next_try,
    only_forces,
    watch,
)
from contact_sim.contact_models.hybrid.impacts import solve_impact
from contact_sim.contact_models.hybrid.constrained_motion import choose, fill_impact, take_impact
from contact_sim.contact_models.hybrid.mode_elimination import OPEN, SLIP, STICK
from contact_sim.contact_models.time_stepping import TimeStepping
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]
FORWARD = (FREE, CONVERGED, CONVERGED_BY_FALLBACK)
MAX_TRIES = 200
CAPTURE_AFTER = 4
"""Turns of a slip within one step after which it may be taken as at rest."""
CAPTURE_SPEED = 1e-4
"""Speed up to which it then is [m/s]."""
SHORTEST = 1e-6
"""Arc length at which a motion counts as too rough to follow [s]."""
CLOSE = 1e-11
"""How closely the end of a mode with redundant forces is located [s]."""
AFTER_FALLBACK = 1e-6
"""Speed up to which a contact counts as sticking after a time-stepping step [m/s]."""


class EventDriven:
    """The event-driven stepper of one workspace.

    Args:
        workspace: arrays of the simulation.
        fallback: the step taken where events have no answer.
        impact: code of the impact law.
        energy_guard: whether restitution is reduced until no energy is created.
        max_substep: longest Runge-Kutta step [s].
        event_tolerance: how closely events are located [s].
        max_events: events in one step before the fallback takes over.
        stiction_speed: speed up to which a row counts as at rest [m/s, rad/s].
        stabilisation: rate α at which drift is taken out [1/s].
    """

    def __init__(
        self,
        workspace: Workspace,
        fallback: TimeStepping,
        impact: int,
        energy_guard: bool,
        max_substep: float,
        event_tolerance: float,
        max_events: int,
        stiction_speed: float,
        stabilisation: float,
    ) -> None:
        self._workspace, self._fallback = workspace, fallback
        self._max_substep, self._event_tolerance = max_substep, event_tolerance
        self._max_events = max_events
        self._arc = arc = Arc(workspace, stiction_speed, stabilisation)
        guards = len(arc.guards)
        self._at_end = np.zeros(guards, dtype=np.int64)
        self._watched, self._fresh = self._at_end.copy(), self._at_end.copy()
        self._impulse = np.zeros(workspace.sizes.rows)
        self._turns = np.zeros(workspace.sizes.nc, dtype=np.int64)
        self._residual, self._longest = 0.0, max_substep
        w, r = workspace, workspace.record
        rows = (arc.jt, arc.factor, w.terms.dof_parent)
        self._choose = (
            arc.closed, *rows, arc.free, arc.drift, arc.u, w.row_of, w.Y,
            w.rows.delassus, r.friction, w.friction_effort, stiction_speed, self._at_end,
            arc.mode, arc.direction, arc.heading, arc.frozen, arc.joint_mode, arc.reference,
        )  # fmt: skip
        self._impact_rows = (
            arc.closed, *rows, arc.u, w.row_of, w.Y, w.rows.delassus, r.friction, w.restitution,
        )  # fmt: skip
        self._law = (impact, energy_guard)
        self._compile()

    def _compile(self) -> None:
        """Call the kernels that only events need: the first event costs what all others do."""
        arc = self._arc
        self._collide()
        only_forces(arc.mode, arc.joint_mode, arc.guards, arc.slack)
        next_try(0.0, 1.0, arc.guards, arc.guards, self._watched, False)
        watch(arc.guards, arc.slack, self._watched, self._fresh)
        largest_violation(arc.guards, arc.slack, self._watched)
        same_modes(arc.mode, arc.joint_mode, arc.mode, arc.joint_mode)

    def advance(self) -> bool:
        """Advance the state by h; return False, with q and v as before, if it is not finite."""
        record = self._workspace.record
        record.start[:] = record.now
        self._fallback.begin()
        status, events = self._run(float(record.time_step[0]))
        if status not in FORWARD:
            return self._fall_back(status, events)
        self._finish(status, events)
        return True

    def update_contacts(self) -> None:
        """Fill Pinocchio's position terms and the contact points at the current q."""
        self._fallback.update_contacts()

    # ---------------------------------------------------------------- between the events

    def _run(self, h: float) -> tuple[int, int]:
        """Advance the arc by h; return the status code and the number of events."""
        arc, t, events, lenience, before = self._arc, 0.0, 0, 0.0, None
        collides = self._load()
        while True:
            if collides:
                status = self._impact()
                if status not in FORWARD:
                    return status, events
            dt = self._length(h - t)
            status, _, self._residual = choose(*self._choose, dt)
            if status not in FORWARD:
                return status, events
            modes = (arc.mode.copy(), arc.joint_mode.copy())
            redundant = before is not None and same_modes(*modes, *before)
            lenience = 4.0 * lenience + 1.0 if redundant else 0.0
            if not arc.begin(lenience):
                return NONFINITE, events
            before = None
            while t < h:
                dt = self._length(h - t)
                if not self._integrate(dt):
                    if dt <= SHORTEST:
                        return TOO_MANY_EVENTS, events
                    self._longest = 0.5 * dt
                    continue
                if arc.violated > 0 and not self._forces_can_adapt(dt):
                    dt = self._locate(dt, redundant)
                    before, events = modes, events + 1
                t = h if dt == h - t else t + dt
                self._accept(dt)
                if before is not None or (arc.mode == SLIP).any():
                    break
            if t >= h:
                return self._outcome(), events
            if events > self._max_events:
                return TOO_MANY_EVENTS, events
            collides = self._prepare_event(before is not None)

    def _load(self) -> bool:
        """Load the state and what was kept of the contacts; return True if a contact collides."""
        record, arc, nc = self._workspace.record, self._arc, self._workspace.sizes.nc
        arc.load()
        arc.mode[:] = record.memory[:, 0]
        arc.reference[: 3 * nc] = record.memory[:, 1:].ravel()
        arc.reference[3 * nc :] = record.impulse[3 * nc :] / record.time_step[0]
        self._impulse[:] = 0.0
        self._at_end[:] = 0
        self._turns[:] = 0
        self._residual, self._longest = 0.0, self._max_substep
        return bool(find_closed(arc.gap, arc.u, arc.mode, arc.closed))

    def _integrate(self, dt: float) -> bool:
        """Integrate by dt; return False if shorter arcs are needed."""
        return self._arc.integrate(dt) and self._arc.error <= 1.0

    def _length(self, remaining: float) -> float:
        """Return the length of the next arc [s]."""
        longest = min(remaining, self._longest)
        return 0.5 * remaining if longest < remaining < 2.0 * longest else longest

    def _accept(self, dt: float) -> None:
        """Make the end of the arc the state, and add up the impulses."""
        self._impulse += dt * self._arc.mean_force
        self._arc.accept()
        self._longest = min(2.0 * self._longest, self._max_substep)

    def _forces_can_adapt(self, dt: float) -> bool:
        """Return True if other forces at the end of the arc obey the bounds in the same modes.

        Redundant forces are not unique: that those at hand leave a cone is no event yet.
        """
        arc = self._arc
        if not only_forces(arc.mode, arc.joint_mode, arc.guards, arc.slack):
            return False
        modes = (
            arc.closed, arc.mode, arc.direction, arc.heading, arc.frozen, arc.joint_mode,
            arc.reference,
        )  # fmt: skip
        before = tuple(array.copy() for array in modes)
        arc.reference[:] = arc.force
        self._at_end[:] = 0
        status, _, residual = choose(*self._choose, dt)
        adapted = status in FORWARD and same_modes(arc.mode, arc.joint_mode, before[1], before[5])
        kept = modes[:6] if adapted else modes
        for array, old in zip(kept, before, strict=False):
            array[:] = old
        if adapted:
            self._residual = max(self._residual, residual)
            arc.force[:] = arc.reference
        return bool(adapted)

    # ---------------------------------------------------------------- the events

    def _locate(self, dt: float, redundant: bool) -> float:
        """Integrate to the first event in the arc, and return its instant in (0, dt].

        `redundant`: forces at the last event could adapt, which is then looked at here too.
        """
        arc, watched, fresh = self._arc, self._watched, self._fresh
        if redundant and only_forces(arc.mode, arc.joint_mode, arc.guards, arc.slack):
            return self._locate_by_choice(dt)
        low, high, at_low = 0.0, dt, arc.guards_before.copy()
        watched[:] = 0
        watch(arc.guards, arc.slack, watched, fresh)
        watched[:] = fresh
        at_high, reached, misses = arc.guards.copy(), dt, 0
        for _ in range(MAX_TRIES):
            if high - low <= self._event_tolerance:
                break
            t = next_try(low, high, at_low, at_high, watched, misses >= 3)
            t = min(max(t, low + 0.25 * self._event_tolerance), high)
            t = low + 0.5 * (high - low) if t >= high else t
            arc.integrate(t)
            reached = t
            if watch(arc.guards, arc.slack, watched, fresh):
                misses = misses + 1 if t - low > 0.5 * (high - low) else 0
                high, watched[:], at_high[:] = t, fresh, arc.guards
                if largest_violation(arc.guards, arc.slack, watched) <= 1e-3:
                    break
            else:
                misses = misses + 1 if high - t > 0.5 * (high - low) else 0
                low, at_low[:] = t, arc.guards
        if reached != high:
            arc.integrate(high)
        return high

    def _locate_by_choice(self, dt: float) -> float:
        """Return the instant in (0, dt] up to which some forces obey the bounds in these modes.

        For redundant forces: those at hand leave their bounds before the modes have to change.
        """
        arc, low, high = self._arc, 0.0, dt
        while high - low > max(self._event_tolerance, CLOSE):
            t = 0.5 * (low + high)
            arc.integrate(t)
            if arc.violated == 0 or self._forces_can_adapt(t):
                low = t
            else:
                high = t
        arc.integrate(high)
        return high

    def _prepare_event(self, event: bool) -> bool:
        """Close what touches and note what is at its bound; return True if a contact collides."""
        arc, nc = self._arc, self._workspace.sizes.nc
        at_end = self._at_end
        if not event:
            at_end[:] = 0
            return False
        at_end[:] = arc.guards <= arc.slack
        self._capture(at_end[nc : 2 * nc] == 1)
        touching = (arc.mode == OPEN) & (at_end[:nc] == 1) & (arc.u[2 : 3 * nc : 3] < 0.0)
        arc.closed[touching] = 1.0
        at_end[:nc][arc.mode == OPEN] = 0
        return bool(touching.any())

    def _capture(self, at_end: NDArray[np.bool_]) -> None:
        """Let a slow slip that turned back again and again within this step count as at rest."""
        arc, nc = self._arc, self._workspace.sizes.nc
        slip = arc.u[: 3 * nc].reshape(-1, 3)
        turned = at_end & (arc.mode == SLIP)
        self._turns[turned] += 1
        slow = np.hypot(slip[:, 0], slip[:, 1]) <= CAPTURE_SPEED
        arc.mode[turned & slow & (self._turns > CAPTURE_AFTER)] = STICK

    def _impact(self) -> int:
        """Apply the impact map at the closed contacts; return the status code."""
        status, _, residual = self._collide()
        self._residual = max(self._residual, residual)
        self._arc.update_velocity()
        return status

    def _collide(self) -> tuple[int, int, float]:
        """Change the velocity by the impact map; return status code, iterations and residual."""
        w, arc, law, guard = self._workspace, self._arc, *self._law
        nc = w.sizes.nc
        before, mu, e = np.zeros(3 * nc), np.zeros(nc), np.zeros(nc)
        n = fill_impact(*self._impact_rows, float(w.stabilisation[1]), before, mu, e)
        before, mu, e, answer = before[:n], mu[: n // 3], e[: n // 3], np.zeros(n)
        outcome = CONVERGED, 0, 0.0
        if n > 0:
            G = w.rows.delassus[: n * n].reshape(n, n).copy()
            outcome = solve_impact(law, G, before, mu, e, guard, answer)
        take_impact(
            arc.closed, w.row_of, w.Y, w.rows.delassus, arc.factor, w.terms.dof_parent, before,
            answer, arc.mode, arc.v, self._impulse,
        )  # fmt: skip
        return outcome

    # ---------------------------------------------------------------- the end of the step

    def _outcome(self) -> int:
        """Return the status code of a step that went through."""
        active = self._impulse.any() or self._arc.closed.any() or self._workspace.sizes.ns
        return CONVERGED if active else FREE

    def _finish(self, status: int, events: int) -> None:
        """Write the step into the record."""
        w, arc = self._workspace, self._arc
        record, nc = w.record, w.sizes.nc
        arc.rest(self._impulse)
        record.q[:], record.v[:] = arc.q, arc.v
        record.impulse[:] = self._impulse
        record.u_next[:] = arc.u
        record.active[:] = np.maximum(record.active, self._impulse[: 3 * nc].reshape(-1, 3).any(1))
        record.memory[:, 0] = arc.mode
        record.memory[:, 1:] = arc.force[: 3 * nc].reshape(-1, 3)
        record.v_next[:] = arc.velocity_in_axes_of_start()
        change = record.v_next - record.v_start
        record.acceleration[:] = change / record.time_step[0] - record.transport
        record.solver[:] = (status, events, self._residual)
        self.update_contacts()

    def _fall_back(self, status: int, events: int) -> bool:
        """Take one time-stepping step from where this step started, and say why."""
        record = self._workspace.record
        self.update_contacts()
        finite = self._fallback.advance()
        force = record.impulse[: record.memory[:, 1:].size] / record.time_step[0]
        record.memory[:, 1:] = force.reshape(-1, 3)
        slip = np.linalg.norm(record.u_next[: force.size].reshape(-1, 3)[:, :2], axis=1)
        held = np.where(slip > AFTER_FALLBACK, SLIP, STICK)
        record.memory[:, 0] = np.where(record.memory[:, 3] > 0.0, held, OPEN)
        if status == INCONSISTENT or record.solver[0] in FORWARD:
            record.solver[0] = status
        record.solver[1] += events
        return finite


@kernel
def same_modes(mode, joint_mode, mode_before, joint_mode_before):
    """Return True if no contact and no joint has changed its mode."""
    for i in range(mode.shape[0]):
        if mode[i] != mode_before[i]:
            return False
    changed = 0
    for k in range(joint_mode.shape[0]):
        changed += joint_mode[k] != joint_mode_before[k]
    return changed == 0
