"""The loop: steps the simulation against the wall clock and publishes what happened.

It runs in the thread that calls `run`. Other threads ask for something, and the loop does it
between two steps.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from contact_sim.errors import ContactSimError, InvalidInput, NonFiniteState
from contact_sim.ros._diagnostics import Tally
from contact_sim.ros._joint_commands import CommandInbox
from contact_sim.ros._lockstep import Lockstep, Verdict
from contact_sim.ros._publishers import Outputs
from contact_sim.ros._pushes import Pushes
from contact_sim.simulation._loop import Pacer, Request
from contact_sim.simulation._report import TouchGuard
from contact_sim.simulation._simulator import Simulator, resume
from contact_sim.topics._table import nanoseconds
from contact_sim.view._process import Feed

# --- Time of another simulation that the loop keeps to; imports no ROS.

JUMP = 0.5
"""Simulated seconds by which a clock goes on at once only where somebody has set it."""
ROUNDING = 1e-6
"""Share of a step by which stamps may be rounded."""


class Leader:
    """The /clock of another simulation: a step is taken once that has passed the end of it.

    Own time is set where the first message is heard, where the other time is set, and after own
    time stood still. A simulation that cannot keep up falls behind and skips nothing.

    Attributes:
        time: of the other simulation [s]; None before it is heard.
    """

    def __init__(self) -> None:
        self.time: float | None = None
        self._jumped = False

    def hear(self, time: float) -> None:
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


# --- Watch over the loop: another thread says what takes long; imports no ROS.

LONG = 1.0
"""Wall seconds after which something is said to take long."""


class Watch:
    """Knows since when the loop has been busy with one step, or with one change between two.

    Args:
        speak: called again and again, from a thread of its own, while that takes long.

    Attributes:
        long: how often something has taken long.
        last: wall time of what was done last [s].
    """

    def __init__(self, speak: Callable[[], None]) -> None:
        self._speak = speak
        self._under_way: tuple[str, float, float] | None = None
        self._ended = threading.Event()
        self.long = 0
        self.last = 0.0

    def begin(self, what: str, simulated: float) -> None:
        """Note that the loop is busy from now on, at simulated time [s]."""
        self._under_way = what, simulated, time.perf_counter()

    def end(self) -> None:
        """Note that it is not any more."""
        self.last = self.seconds
        self.long += self.last > LONG
        self._under_way = None

    @property
    def seconds(self) -> float:
        """Wall seconds for which the loop has been busy with one thing; 0 where it is not."""
        now = self._under_way
        return time.perf_counter() - now[2] if now else 0.0

    @property
    def complaint(self) -> str:
        """What takes long, in words; empty where nothing does."""
        now = self._under_way
        taken = time.perf_counter() - now[2] if now else 0.0
        if now is None or taken <= LONG:
            return ''
        return f'{now[0]} t = {now[1]:.9g} s has taken {taken:.1f} s so far'

    def start(self) -> None:
        """Speak from now on where something takes long."""
        self._ended.clear()
        threading.Thread(target=self._run, name='watch', daemon=True).start()

    def stop(self) -> None:
        """Speak no more."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(LONG / 4.0):
            if self.seconds > LONG:
                self._speak()


# --- The loop: steps the simulation against the wall clock and publishes what happened.

HEARTBEAT = 0.05
"""Wall seconds between two /clock messages while time stands still."""
DIAGNOSTICS_PERIOD = 1.0
"""Wall seconds between two /diagnostics messages."""
LONGEST_SLEEP = 0.02
"""Wall seconds after which a sleeping loop looks at requests again."""
SILENCE = 0.1
"""Wall seconds of waiting for commands after which /clock is repeated, too."""
REMINDER = 0.3
"""Wall seconds of waiting after which controllers that have not spoken yet get the state again."""
IDLE = 1e-3
"""Wall seconds between two looks at requests while time stands still."""
COURTESY = 8
"""Steps after which a loop that never sleeps lets the callback thread in."""
PATIENCE = 2.0
"""Wall seconds that a step may take while somebody waits for its end."""


class StepTakesLong(ContactSimError):
    """What was asked for is not done: a step does not end."""


@dataclass
class Steps:
    """Steps that somebody has asked for.

    Attributes:
        left: steps still to be taken.
        after_step: called with `left` after each step, once its messages are out; returns whether
            to go on.
        at_end: called at the end with the reason why not all were taken, '' if they were.
    """

    left: int
    at_end: Callable[[str], None]
    after_step: Callable[[int], bool] | None = None


class Loop:
    """Time of one simulation: running, standing still, or counted in steps.

    Args:
        sim: what is stepped.
        inbox: where commands arrive.
        lockstep: which commands a step waits for.
        pushes: what else acts on the robot.
        outputs: where messages leave.
        pacer: relation of simulated time and wall time.
        report_failure: called with the reason when the simulation cannot go on.
        diagnose: called once per wall second.

    Attributes:
        paused: whether time stands still; steps can be asked for one by one.
        when_at_rest: called when time begins to stand still, and after steps that were asked for.
        guard: links whose touch ends the run, until the next reset.
        leader: the clock that time keeps to; None: the wall clock.
        feed: where a viewer finds the newest step; None: there is none.
        tally: what is counted, and why the simulation stopped, if it did.
        watch: knows what takes long.
    """

    def __init__(
        self,
        sim: Simulator,
        inbox: CommandInbox,
        lockstep: Lockstep,
        pushes: Pushes,
        outputs: Outputs,
        pacer: Pacer,
        report_failure: Callable[[str], None],
        diagnose: Callable[[], None],
    ) -> None:
        self._sim, self._inbox, self._lockstep = sim, inbox, lockstep
        self._pushes, self._outputs, self._pacer = pushes, outputs, pacer
        self._report_failure, self._diagnose = report_failure, diagnose
        turning = sim.robot.continuous_joints
        self._continuous = turning if turning.any() else None
        self.paused = False
        self.when_at_rest: Callable[[], None] = _nothing
        self.guard = TouchGuard(sim.robot, ())
        self.leader: Leader | None = None
        self.feed: Feed | None = None
        self.tally = Tally()
        self.watch = Watch(self._diagnose_if_due)
        self._diagnosing = threading.Lock()
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended = False
        self._gave_up = False  # waiting for commands, just now
        self._wanted: deque[Steps] = deque()
        self._next_diagnostics = self._next_heartbeat = 0.0
        self._next_reminder = REMINDER

    # ---------------------------------------------------------------- from other threads

    def between_steps(self, action: Callable[[], None]) -> None:
        """Have the loop run `action` between two steps; wait until it has.

        Whatever `action` raises is raised here: it ends no more than the request.

        Raises:
            StepTakesLong: the step under way takes longer than PATIENCE; nothing was done.
        """
        request = Request(action)
        self._ask(request.serve)
        while not request.done.wait(0.1) and not self._ended:
            if self.watch.seconds > PATIENCE and request.withdraw():
                raise StepTakesLong(f'{self.watch.complaint}; nothing was changed')
        if request.error is not None:
            raise request.error

    def after_step(self, action: Callable[[], None]) -> None:
        """Have the loop run `action`, which raises nothing, between two steps; do not wait."""
        self._ask(action)

    def ask_for_steps(self, steps: Steps) -> None:
        """Have the loop take steps as fast as it can, after those that were asked for before."""
        self._ask(lambda: self._wanted.append(steps))

    def _ask(self, request: Callable[[], None]) -> None:
        self._requests.put(request)
        self._lockstep.wake()

    def pace(self) -> tuple[float, float]:
        """Return the wall time of the last step [s] and the real-time factor [-]."""
        return self.watch.last, self._pacer.measured

    # ---------------------------------------------------------------- between two steps

    def set_paused(self, paused: bool) -> None:
        """Let time stand still, or go on."""
        self.paused = paused
        self._pacer.restart(self._sim.time)
        self._rejoin()
        if paused:
            self.when_at_rest()

    def set_factor(self, factor: float) -> None:
        """Run at another real-time factor, 0 for as fast as possible."""
        self._pacer.restart(self._sim.time, factor)

    def end_pushes(self) -> None:
        """Let nothing push the robot any more."""
        self._pushes.clear()

    def begin_anew(self, failure_ends: bool = True) -> None:
        """Tell everybody about a state that no step has led to."""
        if failure_ends:
            self.tally.failure = ''
        self._pushes.clear()
        self._lockstep.restart(nanoseconds(self._sim.time), self._outputs.last_stamp)
        self._pacer.restart(self._sim.time)
        self._rejoin()
        self._outputs.clear_markers()
        self._outputs.follow_ground()
        report = self._sim.last_report
        self._outputs.publish_state(report)
        if self.feed is not None:
            self.feed.latest = report, {}

    # ---------------------------------------------------------------- the loop

    def run(self, keep_running: Callable[[], bool]) -> None:
        """Step, publish and pace until `keep_running` says no."""
        self._pacer.restart(self._sim.time)
        self.watch.start()
        try:
            while keep_running():
                self._serve_requests()
                self._diagnose_if_due()
                if self.feed is not None:
                    self.feed.write_if_due()
                if self._wanted:
                    self._take_wanted_step()
                elif self.paused or self.tally.failure:
                    self._stand_still()
                elif self._wait() and self._may_step():
                    self._step()
        finally:
            self._ended = True
            self.watch.stop()

    def _serve_requests(self) -> None:
        while not self._requests.empty():  # nobody else takes from it
            self.watch.begin('the change at', self._sim.time)
            try:
                self._requests.get()()
            finally:
                self.watch.end()

    def _diagnose_if_due(self) -> None:
        """Diagnose, in the thread of the loop or of the watch, whoever comes first."""
        now = time.perf_counter()
        if now < self._next_diagnostics or not self._diagnosing.acquire(blocking=False):
            return
        try:
            self._next_diagnostics = now + DIAGNOSTICS_PERIOD
            self._diagnose()
        finally:
            self._diagnosing.release()

    def _stand_still(self) -> None:
        self._keep_clock_alive()
        self._pacer.restart(self._sim.time)
        time.sleep(IDLE)

    def _keep_clock_alive(self) -> None:
        now = time.perf_counter()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT
            self._outputs.publish_clock(self._sim.time)

    def _wait(self) -> bool:
        """Sleep towards the next step; return whether it is due."""
        if self.leader is not None:
            return self._follow(self.leader)
        ahead = self._pacer.wait(self._sim.time + self._sim.time_step)
        if ahead > LONGEST_SLEEP:
            time.sleep(LONGEST_SLEEP)
            return False
        if ahead > 0.0:
            time.sleep(ahead)
        else:
            self._be_courteous()
        return True

    def _follow(self, leader: Leader) -> bool:
        """Wait for the clock of another simulation; return whether the next step is due."""
        sim = self._sim
        new_time = leader.new_time(sim.time_step)
        if new_time is not None:
            resume(sim, sim.snapshot(), new_time)
            self.begin_anew(failure_ends=False)
        self._pacer.wait(sim.time + sim.time_step)  # for the sake of its measurement
        if not leader.allows(sim.time, sim.time_step):
            time.sleep(IDLE)
            return False
        self._be_courteous()
        return True

    def _rejoin(self) -> None:
        if self.leader is not None:
            self.leader.rejoin(self._sim.time)

    def _take_wanted_step(self) -> None:
        """Take the next of the steps that were asked for, and say so when it was the last."""
        steps = self._wanted[0]
        reason = ''
        if steps.left > 0 and not self.tally.failure:
            self._be_courteous()
            if self._may_step():
                self._step()
                steps.left -= not self.tally.failure
                wanted = self.tally.failure or not steps.after_step or steps.after_step(steps.left)
                if steps.left and not wanted:
                    reason = f'cancelled, {steps.left} steps left'
            elif self._gave_up:
                reason = f'no command in time, paused at t = {self._sim.time:.9g} s'
        reason = reason or self.tally.failure
        if reason or steps.left <= 0:
            self._wanted.popleft()
            self._pacer.restart(self._sim.time)
            self.when_at_rest()
            steps.at_end(reason)

    def _may_step(self) -> bool:
        """Return whether the next step has its commands; waits a little for them."""
        lockstep, now = self._lockstep, self._sim.time
        if not lockstep.enabled:
            return True
        tick = round(now / self._sim.time_step)
        if lockstep.is_instant(tick):
            self._outputs.announce_instant(self._sim)
        verdict = lockstep.verdict(nanoseconds(now), tick)
        if verdict is not Verdict.WAIT:
            self._next_reminder = REMINDER
        self._gave_up = verdict is Verdict.PAUSE
        if self._gave_up:
            self.set_paused(True)
            self._outputs.forget_instant()
        elif verdict is Verdict.WAIT and lockstep.waited > SILENCE:
            self._while_commands_are_missing()
        return verdict is Verdict.STEP

    def _while_commands_are_missing(self) -> None:
        """Keep the clock alive; tell those who may not have listened yet what there is to do."""
        self._keep_clock_alive()
        if self._lockstep.waited > self._next_reminder and self._lockstep.misses_somebody:
            self._outputs.forget_instant()
            self._next_reminder = self._lockstep.waited + REMINDER

    def _be_courteous(self) -> None:
        if self._sim.step_count % COURTESY == 0:
            time.sleep(0.0)  # gives the interpreter lock away

    def _step(self) -> None:
        """Take one step and publish it; stop, and say why, if that cannot be done."""
        sim, robot = self._sim, self._sim.robot
        position, velocity = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
        now = nanoseconds(sim.time)
        command = self._inbox.at(now, position, velocity)
        effort = command.effort_at(position, velocity, self._continuous)
        wrenches = self._pushes.acting(now)
        self.watch.begin('the step from', sim.time)
        try:
            report = sim.step(effort, wrenches)
        except (NonFiniteState, InvalidInput) as error:
            self.tally.failure = f'stopped at t = {sim.time:.9g} s, wait for ~/reset: {error}'
            self._report_failure(self.tally.failure)
            return
        finally:
            self.watch.end()
        self.tally.statuses[int(report.record.solver[0])] += 1
        self._outputs.publish(report, self._pacer.measured, wrenches)
        if self.feed is not None:
            self.feed.latest = report, wrenches
        touch = self.guard.touch(report)
        if touch is not None:
            self.tally.failure = f'the run has ended, wait for ~/reset: {touch}'
            self._report_failure(self.tally.failure)


def _nothing() -> None:
    """Do nothing: nobody asked."""
