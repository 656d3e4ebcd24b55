"""The loop: steps the simulation against the wall clock and publishes what happened.

It runs in the thread that calls `run`. Other threads ask for something, and the loop does it
between two steps.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from numpy.typing import ArrayLike

from contact_sim.errors import ContactSimError, InvalidInput, NonFiniteState
from contact_sim.ros.clock import Pacer
from contact_sim.ros.commands import CommandInbox
from contact_sim.ros.diagnostics import Tally
from contact_sim.ros.outputs import Outputs
from contact_sim.simulation.simulator import Simulator

HEARTBEAT = 0.05
"""Wall seconds between two /clock messages while time stands still."""
DIAGNOSTICS_PERIOD = 1.0
"""Wall seconds between two /diagnostics messages."""
LONGEST_SLEEP = 0.02
"""Wall seconds after which a sleeping loop looks at requests again."""
IDLE = 1e-3
"""Wall seconds between two looks at requests while time stands still."""
COURTESY = 8
"""Steps after which a loop that never sleeps lets the callback thread in."""


class Loop:
    """Time of one simulation: running, standing still, or counted in steps.

    Args:
        sim: what is stepped.
        inbox: where commands arrive.
        outputs: where messages leave.
        pacer: relation of simulated time and wall time.
        report_failure: called with the reason when the simulation cannot go on.
        diagnose: called once per wall second.

    Attributes:
        paused: whether time stands still; steps can be asked for one by one.
        when_at_rest: called when time begins to stand still, and after steps that were asked for.
        tally: what is counted, and why the simulation stopped, if it did.
    """

    def __init__(
        self,
        sim: Simulator,
        inbox: CommandInbox,
        outputs: Outputs,
        pacer: Pacer,
        report_failure: Callable[[str], None],
        diagnose: Callable[[], None],
    ) -> None:
        self._sim, self._inbox, self._outputs, self._pacer = sim, inbox, outputs, pacer
        self._report_failure, self._diagnose = report_failure, diagnose
        turning = sim.robot.continuous_joints
        self._continuous = turning if turning.any() else None
        self.paused = False
        self.when_at_rest: Callable[[], None] = _nothing
        self.tally = Tally()
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended = False
        self._steps_wanted = 0
        self._when_done: Callable[[], None] = _nothing
        self._next_diagnostics = self._next_heartbeat = 0.0

    # ---------------------------------------------------------------- from other threads

    def between_steps(self, action: Callable[[], None]) -> None:
        """Have the loop run `action` between two steps; wait until it has.

        Raises:
            ContactSimError: what `action` raised.
        """
        done = threading.Event()
        errors: list[ContactSimError] = []

        def act() -> None:
            try:
                action()
            except ContactSimError as error:
                errors.append(error)
            finally:
                done.set()

        self._requests.put(act)
        while not done.wait(0.1) and not self._ended:
            pass
        if errors:
            raise errors[0]

    def ask_for_steps(self, count: int, when_done: Callable[[], None]) -> None:
        """Have the loop take `count` steps, as fast as it can, and then call `when_done`."""

        def begin() -> None:
            self._steps_wanted, self._when_done = count, when_done

        self._requests.put(begin)

    # ---------------------------------------------------------------- between two steps

    def set_paused(self, paused: bool) -> None:
        """Let time stand still, or go on."""
        self.paused = paused
        self._pacer.restart(self._sim.time)
        if paused:
            self.when_at_rest()

    def set_factor(self, factor: float) -> None:
        """Run at another real-time factor, 0 for as fast as possible."""
        self._pacer.restart(self._sim.time, factor)

    def reset(self, q: ArrayLike) -> None:
        """Start again from q (nq,) at rest, at the present time: time never goes back."""
        sim = self._sim
        sim.reset(q, time=sim.time)
        self._inbox.hold(sim.robot.joint_positions(sim.q))
        self.tally.failure = ''
        self._pacer.restart(sim.time)
        self._outputs.clear_markers()

    # ---------------------------------------------------------------- the loop

    def run(self, keep_running: Callable[[], bool]) -> None:
        """Step, publish and pace until `keep_running` says no."""
        self._pacer.restart(self._sim.time)
        try:
            while keep_running():
                self._serve_requests()
                self._diagnose_if_due()
                if self._steps_wanted:
                    self._take_wanted_step()
                elif self.paused or self.tally.failure:
                    self._stand_still()
                elif self._wait():
                    self._step()
        finally:
            self._ended = True

    def _serve_requests(self) -> None:
        while not self._requests.empty():  # nobody else takes from it
            self._requests.get()()

    def _diagnose_if_due(self) -> None:
        now = time.perf_counter()
        if now >= self._next_diagnostics:
            self._next_diagnostics = now + DIAGNOSTICS_PERIOD
            self._diagnose()

    def _stand_still(self) -> None:
        now = time.perf_counter()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT
            self._outputs.publish_clock(self._sim.time)
        self._pacer.restart(self._sim.time)
        time.sleep(IDLE)

    def _wait(self) -> bool:
        """Sleep towards the next step; return whether it is due."""
        ahead = self._pacer.wait(self._sim.time + self._sim.time_step)
        if ahead > LONGEST_SLEEP:
            time.sleep(LONGEST_SLEEP)
            return False
        if ahead > 0.0:
            time.sleep(ahead)
        else:
            self._be_courteous()
        return True

    def _take_wanted_step(self) -> None:
        if not self.tally.failure:
            self._be_courteous()
            self._step()
            self._steps_wanted -= 1
        if self.tally.failure or not self._steps_wanted:
            self._steps_wanted = 0
            self._pacer.restart(self._sim.time)
            self.when_at_rest()
            self._when_done()

    def _be_courteous(self) -> None:
        if self._sim.step_count % COURTESY == 0:
            time.sleep(0.0)  # gives the interpreter lock away

    def _step(self) -> None:
        """Take one step and publish it; stop, and say why, if that cannot be done."""
        sim, robot = self._sim, self._sim.robot
        effort = self._inbox.current.effort_at(
            robot.joint_positions(sim.q), robot.joint_velocities(sim.v), self._continuous
        )
        try:
            report = sim.step(effort)
        except (NonFiniteState, InvalidInput) as error:
            self.tally.failure = f'stopped at t = {sim.time:.9g} s, wait for ~/reset: {error}'
            self._report_failure(self.tally.failure)
            return
        self.tally.statuses[int(report.record.solver[0])] += 1
        self._outputs.publish(report, self._pacer.measured)


def _nothing() -> None:
    """Do nothing: nobody waits."""
