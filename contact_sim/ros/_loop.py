"""The simulation loop: take steps against the wall clock and publish the results.

`Loop` runs in the thread that calls `run`. Requests of other threads are served between two steps.
`Watchdog` reports, in a thread of its own, a step that takes long. `ClockFollower` keeps time to
the /clock of another simulation.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from contact_sim.errors import ContactSimError, InvalidInput, NonFiniteState
from contact_sim.ros._commands import CommandBuffer, Pushes
from contact_sim.ros._lockstep import Lockstep, Verdict
from contact_sim.ros._publishers import Outputs
from contact_sim.simulation._report import TouchGuard
from contact_sim.simulation._resuming import resume
from contact_sim.simulation._running import Pacer, Request
from contact_sim.simulation._simulator import Simulator
from contact_sim.step._problem import STATUSES
from contact_sim.topics._table import nanoseconds
from contact_sim.view._process import Feed

HEARTBEAT = 0.05
"""Wall seconds between two /clock messages while time stands still."""
DIAGNOSTICS_PERIOD = 1.0
"""Wall seconds between two /diagnostics messages."""
LONGEST_SLEEP = 0.02
"""Wall seconds after which a sleeping loop looks at requests again."""
SILENCE = 0.1
"""Wall seconds of waiting for commands after which /clock is repeated, too."""
REMINDER = 0.3
"""Wall seconds of waiting after which silent controllers get the state again."""
IDLE = 1e-3
"""Wall seconds between two looks at requests while time stands still."""
YIELD_STEPS = 8
"""Steps after which a loop that never sleeps lets the callback thread in."""
PATIENCE = 2.0
"""Wall seconds that a step may take while a request waits for its end."""
LONG = 1.0
"""Wall seconds after which a step is reported to take long."""
JUMP = 0.5
"""Simulated seconds by which a followed clock goes on at once only where it was set."""
ROUNDING = 1e-6
"""Share of a step by which stamps of a followed clock may be rounded."""


class StepTakesLong(ContactSimError):
    """A request is withdrawn because a step does not end."""


@dataclass
class StepRequest:
    """Steps to be taken as fast as possible."""

    left: int  # steps still to be taken
    at_end: Callable[[str], None]  # called with the reason why not all were taken, '' if they were
    after_step: Callable[[int], bool] | None = None
    """Called with `left` after each step, once its messages are published; whether to go on."""


@dataclass
class Tally:
    """Counts and failures that /diagnostics reports."""

    statuses: list[int] = field(default_factory=lambda: [0] * len(STATUSES))
    """Number of steps that ended with each solver status, by its code."""
    switches: int = 0  # of the contact model
    last_switch: str = 'none'  # the models before and after it, and its simulated time
    failure: str = ''  # why the simulation stopped stepping; empty while it steps
    recording: str = ''  # why recording ended before the simulation; empty while it has not


class Loop:
    """Steps one simulation: continuously, not at all while it is paused, or on request.

    `report_failure` is called with the reason when the simulation cannot go on, `diagnose` once
    per wall second.
    """

    def __init__(
        self,
        sim: Simulator,
        commands: CommandBuffer,
        lockstep: Lockstep,
        pushes: Pushes,
        outputs: Outputs,
        pacer: Pacer,
        report_failure: Callable[[str], None],
        diagnose: Callable[[], None],
    ) -> None:
        self.commands, self.lockstep, self.pushes = commands, lockstep, pushes
        self._sim, self._outputs, self._pacer = sim, outputs, pacer
        self._report_failure, self._diagnose = report_failure, diagnose
        self.paused = False  # time stands still; steps are taken on request
        # called when time begins to stand still, and after requested steps
        self.when_at_rest: Callable[[], None] = lambda: None
        self.follow_robots(TouchGuard(sim.robot, ()))
        self.inactive = ''  # why no steps are taken at all; empty: they may be
        self.clock_follower: ClockFollower | None = None  # None: time keeps to the wall clock
        self.feed: Feed | None = None  # newest step for the viewer, where there is one
        self.tally = Tally()
        self.watchdog = Watchdog(self._diagnose_if_due)
        self._diagnosing = threading.Lock()
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended = False
        self._gave_up = False  # waiting for commands, just now
        self._step_requests: deque[StepRequest] = deque()
        self._next_diagnostics = self._next_heartbeat = 0.0
        self._next_reminder, self._has_newcomer = REMINDER, False

    # ---------------------------------------------------------------- from other threads

    def between_steps(self, action: Callable[[], None]) -> None:
        """Have the loop run `action` between two steps; wait for it, and raise what it raises.

        StepTakesLong is raised, and nothing done, where a step takes longer than PATIENCE.
        """
        request = Request(action)
        self.after_step(request.serve)
        while not request.done.wait(0.1) and not self._ended:
            if self.watchdog.seconds > PATIENCE and request.withdraw():
                raise StepTakesLong(f'{self.watchdog.complaint}; nothing was changed')
        if request.error is not None:
            raise request.error

    def after_step(self, action: Callable[[], None]) -> None:
        """Have the loop run `action`, which raises nothing, between two steps; do not wait."""
        self._requests.put(action)
        self.lockstep.wake()

    def request_steps(self, request: StepRequest) -> None:
        """Have the loop take steps as fast as it can, after those that were requested before."""
        self.after_step(lambda: self._step_requests.append(request))

    def pace(self) -> tuple[float, float]:
        """Return the wall time of the last step [s] and the real-time factor [-]."""
        return self.watchdog.last, self._pacer.measured

    # ---------------------------------------------------------------- between two steps

    def follow_robots(self, guard: TouchGuard) -> None:
        """Step the robots that there are now; `guard` knows the links whose touch ends the run."""
        continuous = self._sim.robot.continuous_joints
        self._continuous = continuous if continuous.any() else None
        self.guard = guard

    def set_paused(self, paused: bool) -> None:
        """Let time stand still, or go on; raise InvalidInput where nothing may be stepped."""
        if self.inactive and not paused:
            raise InvalidInput(self.inactive)
        self.paused = paused
        self._pacer.restart(self._sim.time)
        self._rejoin()
        if paused:
            self.when_at_rest()

    def announce_new_state(self, failure_ends: bool = True) -> None:
        """Publish a state that was set, and begin anew from it."""
        if failure_ends:
            self.tally.failure = ''
        self.pushes.clear()
        self.lockstep.restart(nanoseconds(self._sim.time), self._outputs.last_stamp)
        self._pacer.restart(self._sim.time)
        self._rejoin()
        report = self._sim.last_report
        self._outputs.publish_new_state(report)
        if self.feed is not None:
            self.feed.latest = report, {}

    # ---------------------------------------------------------------- the loop

    def run(self, keep_running: Callable[[], bool]) -> None:
        """Step, publish and pace until `keep_running` returns False."""
        self._ended = False
        self._pacer.restart(self._sim.time)
        self.watchdog.start()
        try:
            while keep_running():
                self._serve_requests()
                self._diagnose_if_due()
                if self.feed is not None:
                    self.feed.write_if_due()
                if self._step_requests:
                    self._take_requested_step()
                elif self.paused or self.tally.failure:
                    self._keep_clock_alive()
                    self._pacer.restart(self._sim.time)
                    time.sleep(IDLE)
                elif self._wait() and self._may_step():
                    self._step()
        finally:
            self._ended = True
            self.watchdog.stop()

    def _serve_requests(self) -> None:
        while not self._requests.empty():  # the only reader
            self.watchdog.begin('the change at', self._sim.time)
            try:
                self._requests.get()()
            finally:
                self.watchdog.end()

    def _diagnose_if_due(self) -> None:
        """Diagnose, in the thread of the loop or of the watchdog, whichever comes first."""
        now = time.perf_counter()
        if now < self._next_diagnostics or not self._diagnosing.acquire(blocking=False):
            return
        try:
            self._next_diagnostics = now + DIAGNOSTICS_PERIOD
            self._diagnose()
        finally:
            self._diagnosing.release()

    def _keep_clock_alive(self) -> None:
        now = time.perf_counter()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT
            self._outputs.publish_clock(self._sim.time)

    def _wait(self) -> bool:
        """Sleep towards the next step; return whether it is due."""
        if self.clock_follower is not None:
            return self._follow(self.clock_follower)
        ahead = self._pacer.wait(self._sim.time + self._sim.time_step)
        if ahead > LONGEST_SLEEP:
            time.sleep(LONGEST_SLEEP)
            return False
        if ahead > 0.0:
            time.sleep(ahead)
        else:
            self._yield()
        return True

    def _follow(self, follower: ClockFollower) -> bool:
        """Wait for the clock of another simulation; return whether the next step is due."""
        sim = self._sim
        new_time = follower.new_time(sim.time_step)
        if new_time is not None:
            resume(sim, sim.snapshot(), new_time)
            self.announce_new_state(failure_ends=False)
        self._pacer.wait(sim.time + sim.time_step)  # measures the real-time factor
        if not follower.allows(sim.time, sim.time_step):
            time.sleep(IDLE)
            return False
        self._yield()
        return True

    def _rejoin(self) -> None:
        if self.clock_follower is not None:
            self.clock_follower.rejoin(self._sim.time)

    def _take_requested_step(self) -> None:
        """Take the next of the requested steps, and report the end when it was the last."""
        request = self._step_requests[0]
        reason = self.inactive
        if request.left > 0 and not (self.tally.failure or reason):
            self._yield()
            if self._may_step():
                self._step()
                request.left -= not self.tally.failure
                after = request.after_step if not self.tally.failure else None
                if after is not None and not after(request.left) and request.left:
                    reason = f'cancelled, {request.left} steps left'
            elif self._gave_up:
                reason = f'no command in time, paused at t = {self._sim.time:.9g} s'
        reason = reason or self.tally.failure
        if reason or request.left <= 0:
            self._step_requests.popleft()
            self._pacer.restart(self._sim.time)
            self.when_at_rest()
            request.at_end(reason)

    def _may_step(self) -> bool:
        """Return whether the next step has its commands; waits a little for them."""
        lockstep, now = self.lockstep, self._sim.time
        if not lockstep.enabled:
            return True
        tick = round(now / self._sim.time_step)
        if lockstep.is_instant(tick):
            self._outputs.announce_instant(self._sim)
        verdict = lockstep.verdict(nanoseconds(now), tick)
        if lockstep.newcomer:
            self._outputs.forget_instant()
        if verdict is not Verdict.WAIT:
            self._next_reminder, self._has_newcomer = REMINDER, False
        self._gave_up = verdict is Verdict.PAUSE
        if self._gave_up:
            self.set_paused(True)
            self._outputs.forget_instant()
        elif verdict is Verdict.WAIT and lockstep.waited > SILENCE:
            self._keep_clock_alive()
            self._has_newcomer |= self._outputs.has_new_readers()
            if lockstep.waited > self._next_reminder and (
                lockstep.misses_somebody or self._has_newcomer
            ):
                self._outputs.forget_instant()  # repeat the state: a controller may not know it
                self._next_reminder = lockstep.waited + REMINDER
        return verdict is Verdict.STEP

    def _yield(self) -> None:
        if self._sim.step_count % YIELD_STEPS == 0:
            time.sleep(0.0)  # gives the interpreter lock away

    def _step(self) -> None:
        """Take one step and publish it; stop with a reason if that cannot be done."""
        sim, robot = self._sim, self._sim.robot
        position, velocity = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
        now = nanoseconds(sim.time)
        command = self.commands.at(now, position, velocity)
        effort = command.effort_at(position, velocity, self._continuous)
        wrenches = self.pushes.acting(now)
        self.watchdog.begin('the step from', sim.time)
        try:
            report = sim.step(effort, wrenches)
        except (NonFiniteState, InvalidInput) as error:
            self.tally.failure = f'stopped at t = {sim.time:.9g} s, wait for ~/reset: {error}'
            self._report_failure(self.tally.failure)
            return
        finally:
            self.watchdog.end()
        self.tally.statuses[int(report.record.solver[0])] += 1
        self._outputs.publish(report, self._pacer.measured, wrenches)
        if self.feed is not None:
            self.feed.latest = report, wrenches
        touch = self.guard.touch(report)
        if touch is not None:
            self.tally.failure = f'the run has ended, wait for ~/reset: {touch}'
            self._report_failure(self.tally.failure)


class ClockFollower:
    """Keeps time to the /clock of another simulation: no step ends after that clock.

    Own time is set when the first message arrives, where the other time is set, and after own
    time stood still. A simulation that cannot keep up falls behind and skips nothing.
    """

    def __init__(self) -> None:
        self.time: float | None = None  # of the other simulation [s]
        self._jumped = False

    def receive(self, time: float) -> None:
        """Take a message of the other clock [s]."""
        if self.time is None or not 0.0 <= time - self.time <= JUMP:
            self._jumped = True
        self.time = time

    def rejoin(self, own_time: float) -> None:
        """Have own time [s] set if it is far from the other one: it stood still, or was set."""
        if self.time is not None and abs(self.time - own_time) > JUMP:
            self._jumped = True

    def new_time(self, time_step: float) -> float | None:
        """Return the time to set own time to [s], a multiple of the step; None: it goes on."""
        if not self._jumped or self.time is None:
            return None
        self._jumped = False
        return max(round(self.time / time_step), 1) * time_step

    def allows(self, own_time: float, time_step: float) -> bool:
        """Return whether the step from `own_time` [s] may be taken."""
        return self.time is not None and own_time + (1.0 - ROUNDING) * time_step <= self.time


class Watchdog:
    """Measures for how long the loop has been busy with a step, or a request between two steps.

    `report` is called again and again, from a thread of its own, while that takes long.
    """

    def __init__(self, report: Callable[[], None]) -> None:
        self._report = report
        self._current: tuple[str, float, float] | None = None  # what, simulated, wall time
        self._ended = threading.Event()
        self.long = 0  # number of steps and requests that took long
        self.last = 0.0  # wall time of the last one [s]

    def begin(self, what: str, simulated: float) -> None:
        """Note that the loop is busy from now on, at simulated time [s]."""
        self._current = what, simulated, time.perf_counter()

    def end(self) -> None:
        """Note that it is not any more."""
        self.last = self.seconds
        self.long += self.last > LONG
        self._current = None

    @property
    def seconds(self) -> float:
        """Wall seconds for which the loop has been busy; 0 where it is not."""
        current = self._current
        return time.perf_counter() - current[2] if current else 0.0

    @property
    def complaint(self) -> str:
        """What takes long, in words; empty where nothing does."""
        current = self._current
        taken = time.perf_counter() - current[2] if current else 0.0
        if current is None or taken <= LONG:
            return ''
        return f'{current[0]} t = {current[1]:.9g} s has taken {taken:.1f} s so far'

    def start(self) -> None:
        """Report from now on what takes long."""
        self._ended.clear()
        threading.Thread(target=self._run, name='watchdog', daemon=True).start()

    def stop(self) -> None:
        """Report no more."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(LONG / 4.0):
            if self.seconds > LONG:
                self._report()
