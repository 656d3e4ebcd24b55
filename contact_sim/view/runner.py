"""A thread that steps a simulation against the wall clock, and does what others ask in between."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput, NonFiniteState
from contact_sim.simulation.pacer import Pacer
from contact_sim.simulation.pushes import PushSchedule
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.requests import Request
from contact_sim.simulation.simulator import Simulator
from contact_sim.view.motions import Running
from contact_sim.view.spring import Spring

Array = NDArray[np.float64]
LONGEST_SLEEP = 0.02
"""Wall seconds after which a sleeping thread looks at requests again."""
COURTESY = 8
"""Steps after which a thread that never sleeps lets others in."""


class Taken(NamedTuple):
    """The last step that was taken."""

    report: StepReport
    wrenches: dict[str, Array]
    """What pushed in it, frame to force and torque, (6,)."""


class Runner:
    """Steps one simulation under one controller.

    All attributes belong to its thread: others read them, and change them in `between_steps`.

    Args:
        sim: what is stepped; nobody else touches it.
        controller: whose efforts act.
        fall_back: called with the reason where a controller fails; returns another one.
        speed: simulated over wall time, 0: as fast as possible.

    Attributes:
        sim: what is stepped.
        pacer: relation of simulated time and wall time.
        pushes: what pushes, until steps of the number `steps`.
        spring: what draws the robot.
        controller: whose efforts act.
        paused: whether time stands still.
        failure: why no step can be taken until a reset, '' while steps can.
        newest: the last step that was taken.
        steps: taken so far, whatever was reset.
    """

    def __init__(
        self,
        sim: Simulator,
        controller: Running,
        fall_back: Callable[[str], Running],
        speed: float = 1.0,
    ) -> None:
        self.sim, self.controller, self._fall_back = sim, controller, fall_back
        self.pacer = Pacer(speed)
        self.pushes, self.steps = PushSchedule(), 0
        self.spring: Spring | None = None
        self.paused, self.failure = False, ''
        self.newest = Taken(sim.last_report, {})
        self._spent, self._timed, self._mean = 0.0, 0, 0.0
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name='simulation', daemon=True)

    # ---------------------------------------------------------------- for other threads

    def start(self) -> None:
        """Let time run."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; what was asked for and is not done yet is never done."""
        self._ended = True
        self._thread.join()

    def between_steps(self, action: Callable[[], None]) -> None:
        """Have the thread do something between two steps, wait until it has, raise what it raises.

        Raises:
            InvalidInput: the thread has ended.
        """
        request = Request(action)
        self._requests.put(request)
        while not request.done.wait(0.1):
            if not self._thread.is_alive() and request.withdraw():
                raise InvalidInput('the session has ended')
        if request.error is not None:
            raise request.error

    def take_step_seconds(self) -> float:
        """Return the mean wall time of the steps since the last call [s], as before if none."""
        spent, timed = self._spent, self._timed
        self._spent, self._timed = 0.0, 0
        if timed:
            self._mean = spent / timed
        return self._mean

    # ---------------------------------------------------------------- between two steps

    def begin_anew(self, controller: Running) -> None:
        """Go on from a state that no step has led to."""
        self.controller, self.spring, self.failure = controller, None, ''
        self.pushes.clear()
        self.newest = Taken(self.sim.last_report, {})
        self.pacer.restart(self.sim.time)

    def step(self) -> None:
        """Take a step; where that cannot be, `failure` says why."""
        wrenches = self._wrenches()
        begin = time.perf_counter()
        try:
            report = self._driven(wrenches)
        except Exception as error:  # also what a constraint of the user raises
            known = isinstance(error, NonFiniteState)
            self.failure = str(error) if known else f'{type(error).__name__}: {error}'
            return
        self._spent += time.perf_counter() - begin
        self._timed += 1
        self.steps += 1
        self.newest = Taken(report, wrenches)

    def _driven(self, wrenches: dict[str, Array]) -> StepReport:
        """Take a step under the controller, or under another where it has no efforts."""
        sim = self.sim
        q, v = sim.q, sim.v
        try:
            return sim.step(self.controller.effort(sim.time, q, v), wrenches)
        except NonFiniteState:
            raise
        except Exception as error:  # whatever a controller raises, or efforts that cannot be
            self.controller = self._fall_back(f'{type(error).__name__}: {error}')
            return sim.step(self.controller.effort(sim.time, q, v), wrenches)

    def _wrenches(self) -> dict[str, Array]:
        """Return what pushes in the next step."""
        acting = self.pushes.acting(self.steps)
        if self.spring is not None:
            frame, drawn = self.spring.frame, self.spring.wrench(self.sim.q, self.sim.v)
            acting[frame] = acting.get(frame, np.zeros(6)) + drawn
        return acting

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        self.pacer.restart(self.sim.time)
        while not self._ended:
            if self.paused or self.failure:
                self._serve(LONGEST_SLEEP)
                self.pacer.restart(self.sim.time)
                continue
            self._serve(0.0)
            ahead = self.pacer.wait(self.sim.time + self.sim.time_step)
            if ahead > LONGEST_SLEEP:
                time.sleep(LONGEST_SLEEP)
                continue
            if ahead > 0.0 or self.steps % COURTESY == 0:
                time.sleep(ahead)
            if not (self.paused or self.failure):
                self.step()

    def _serve(self, patience: float) -> None:
        """Do what was asked for; wait for it up to `patience` [s]."""
        try:
            while True:
                self._requests.get(patience > 0.0, patience).serve()
                patience = 0.0
        except queue.Empty:
            pass
