"""The session of a simulation in this process: a thread steps it against the wall clock."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked, count, number_within, positive, shaped
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models import contact_models
from contact_sim.errors import InvalidInput, NonFiniteState
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._running import Pacer, PushSchedule, Request
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import lift
from contact_sim.view._session import (
    AMPLITUDE,
    FREQUENCY,
    HOLD,
    OPTIONS,
    Capabilities,
    DisplayedStep,
    Motions,
    Running,
    Session,
    Settings,
    Spring,
    option_values,
)

MAX_SPEED = 1000.0
"""Largest speed that can be commanded [-]."""
MAX_HEIGHT = 1000.0
"""Largest height of a drop [m]."""
MAX_SLEEP = 0.02
"""Wall seconds after which a sleeping thread looks at requests again."""
YIELD_STEPS = 8
"""Steps after which a thread that never sleeps lets others in."""


class LiveSession(Session):
    """A simulation that runs in a thread of its own, and takes commands between two steps.

    Args:
        sim: the simulation; nobody else touches it as long as the session lasts.
        motions: the controllers that can be started; None: those of the package.
        speed: simulated over wall time, 0: as fast as possible.
        paused: whether time is stopped at first.

    Raises:
        InvalidInput: a speed that cannot be.
    """

    @checked
    def __init__(
        self,
        sim: Simulator,
        motions: Motions | None = None,
        speed: float = 1.0,
        paused: bool = False,
    ) -> None:
        factor = number_within('speed', speed, MAX_SPEED)
        self._sim, self._motions = sim, motions or Motions(sim.robot)
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._controller, self._motion = HOLD, (AMPLITUDE, FREQUENCY)
        self._pose, self._velocity = STANDING, (0.0, 0.0, 0.0)
        self._run = SimulationThread(sim, self._started(HOLD), self._hold_instead, factor)
        self._displayed = DisplayedStep(sim.last_report)
        self._run.paused = paused
        self._run.start()

    def _started(self, name: str) -> Running:
        """Return a controller that begins now."""
        pose = self.robot.reference_configuration(self._pose)
        running = self._motions.start(name, pose, *self._motion)
        running.follow(self._velocity)
        return running

    def _hold_instead(self, reason: str) -> Running:
        """Return the controller that holds the pose, and tell why the other one has ended."""
        self._messages.put(
            f'controller {self._controller} ended at t = {self._sim.time:.3f} s: {reason}'
        )
        self._controller = HOLD
        return self._started(HOLD)

    # ---------------------------------------------------------------- what is displayed

    @property
    def robot(self) -> RobotModel:
        """The simulated robot."""
        return self._sim.robot

    @property
    def ground(self) -> Terrain:
        """The terrain."""
        return self._sim.terrain

    @property
    def capabilities(self) -> Capabilities:
        """The contact models, poses, controllers and frames to choose from."""
        frames = self.robot.pinocchio_model.frames
        links = [f.name for f in frames if f.type == pin.FrameType.BODY and f.parentJoint > 0]
        return Capabilities(
            contact_models(), self.robot.reference_configurations, self._motions.names,
            tuple(links),
        )  # fmt: skip

    def settings(self) -> Settings:
        """Return the settings in force."""
        return Settings(
            **option_values(self._sim), speed=self._run.pacer.factor, pose=self._pose,
            controller=self._controller, velocity=self._velocity, paused=self._run.paused,
        )  # fmt: skip

    def take_messages(self) -> list[str]:
        """Return the messages of the session to the user since the last call."""
        messages = []
        while not self._messages.empty():
            messages.append(self._messages.get())
        return messages

    def latest(self) -> DisplayedStep:
        """Return the newest step, with the shadows solved here; for one thread."""
        run, shadows = self._run, self._displayed.shadows
        report, wrenches = run.newest
        if report is not self._displayed.report:
            solved = report.shadows.items()
            shadows = {name: shadow.step for name, shadow in solved if shadow.finite}
        self._displayed = DisplayedStep(
            report, wrenches, shadows, run.take_step_seconds(), run.pacer.measured, run.failure
        )
        return self._displayed

    def close(self) -> None:
        """End the session."""
        self._run.close()

    # ---------------------------------------------------------------- commands
    #
    # `_on_<name>` runs in the thread of the simulation, between two steps.

    def execute(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Run a command between two steps and wait until it is done.

        Args:
            name: of a method of `Session`.
            arguments: by name, checked.

        Raises:
            ContactSimError: it cannot be done.
        """
        handler = getattr(self, f'_on_{name}')
        self._run.between_steps(lambda: handler(**arguments))

    def _on_pause(self, paused: bool = True) -> None:
        self._run.paused = paused
        self._run.pacer.restart(self._sim.time)

    def _on_resume(self) -> None:
        self._on_pause(False)

    def _on_step(self, steps: int) -> None:
        run, number = self._run, count('steps', steps)
        run.paused, end = True, run.steps + number
        while run.steps < end and not run.failure:
            run.step()
        if run.failure:
            raise NonFiniteState(run.failure)

    def _on_set_speed(self, speed: float) -> None:
        self._run.pacer.restart(self._sim.time, number_within('speed', speed, MAX_SPEED))

    def _on_reset(self) -> None:
        self._reset(self._pose, 0.0)

    def _on_drop(self, height: float) -> None:
        self._reset(self._pose, number_within('height', height, MAX_HEIGHT))

    def _on_set_pose(self, pose: str) -> None:
        self._reset(pose, 0.0)

    def _reset(self, pose: str, height: float) -> None:
        sim = self._sim
        q = sim.standing_configuration(pose).copy()
        lift(sim.robot, q, sim.terrain, height)
        sim.reset(sim.assembled(q))
        self._pose = pose
        self._run.restart(self._started(self._controller))

    def _on_push(
        self, frame: str, force: Sequence[float], torque: Sequence[float], duration: float
    ) -> None:
        wrench = np.concatenate([shaped('force', force, 3), shaped('torque', torque, 3)])
        steps = max(1, round(positive('duration', duration, 's') / self._sim.time_step))
        find_frame(self.robot.pinocchio_model, frame)
        self._run.pushes.add(frame, wrench, self._run.steps + steps)

    def _on_drag(self, frame: str, target: Sequence[float] | None) -> None:
        run = self._run
        if target is None:
            run.spring = None
            return
        place = shaped('target', target, 3)
        if run.spring is not None and run.spring.frame == frame:
            run.spring.target = place
        else:
            run.spring = Spring(self.robot, frame, place, self._sim.q)

    def _on_set(self, name: str, value: object) -> None:
        setattr(self._sim, OPTIONS[name].attribute, value)

    def _on_set_controller(self, name: str, amplitude: float, frequency: float) -> None:
        before, self._motion = self._motion, (amplitude, frequency)
        try:
            self._run.controller = self._started(name)
        except Exception:
            self._motion = before
            raise
        self._controller = name

    def _on_set_velocity(self, forward: float, sideways: float, turn: float) -> None:
        self._velocity = forward, sideways, turn
        self._run.controller.follow(self._velocity)


# ------------------------------------------------ the thread


class TakenStep(NamedTuple):
    """The last step that was taken."""

    report: StepReport
    wrenches: dict[str, Array]
    """External wrenches in it, frame to force and torque, (6,)."""


class SimulationThread:
    """A thread that steps one simulation under one controller.

    All attributes belong to the thread: others read them, and change them in `between_steps`.

    Attributes:
        sim: the simulation.
        pacer: relation of simulated time and wall time.
        pushes: external wrenches until steps of the number `steps`.
        spring: drags the robot, if there is one.
        controller: gives the efforts.
        paused: whether time is stopped.
        failure: why no step can be taken until a reset, '' while steps can.
        newest: the last step that was taken.
        steps: taken so far, not reset.
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
        self.newest = TakenStep(sim.last_report, {})
        self._spent, self._timed, self._mean = 0.0, 0, 0.0
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name='simulation', daemon=True)

    # ---------------------------------------------------------------- for other threads

    def start(self) -> None:
        """Let time run."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; pending requests are dropped."""
        self._ended = True
        self._thread.join()

    def between_steps(self, action: Callable[[], None]) -> None:
        """Have the thread run an action between two steps; wait, and raise what it raises."""
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

    def restart(self, controller: Running) -> None:
        """Go on from a state that no step has led to."""
        self.controller, self.spring, self.failure = controller, None, ''
        self.pushes.clear()
        self.newest = TakenStep(self.sim.last_report, {})
        self.pacer.restart(self.sim.time)

    def step(self) -> None:
        """Take a step; where that cannot be, `failure` says why."""
        wrenches = self.pushes.acting(self.steps)
        if self.spring is not None:
            frame, force = self.spring.frame, self.spring.wrench(self.sim.q, self.sim.v)
            wrenches[frame] = wrenches.get(frame, np.zeros(6)) + force
        begin = time.perf_counter()
        try:
            report = self._controlled_step(wrenches)
        except Exception as error:  # also what a constraint of the user raises
            known = isinstance(error, NonFiniteState)
            self.failure = str(error) if known else f'{type(error).__name__}: {error}'
            return
        self._spent += time.perf_counter() - begin
        self._timed += 1
        self.steps += 1
        self.newest = TakenStep(report, wrenches)

    def _controlled_step(self, wrenches: dict[str, Array]) -> StepReport:
        """Take a step under the controller, or under another where it has no efforts."""
        sim = self.sim
        q, v = sim.q, sim.v
        try:
            return sim.step(self.controller.effort(sim.time, q, v), wrenches)
        except NonFiniteState:
            raise
        except Exception as error:  # whatever a controller raises, or invalid efforts
            self.controller = self._fall_back(f'{type(error).__name__}: {error}')
            return sim.step(self.controller.effort(sim.time, q, v), wrenches)

    # ---------------------------------------------------------------- the loop

    def _run(self) -> None:
        self.pacer.restart(self.sim.time)
        while not self._ended:
            if self.paused or self.failure:
                self._serve(MAX_SLEEP)
                self.pacer.restart(self.sim.time)
                continue
            self._serve(0.0)
            ahead = self.pacer.wait(self.sim.time + self.sim.time_step)
            if ahead > MAX_SLEEP:
                time.sleep(MAX_SLEEP)
                continue
            if ahead > 0.0 or self.steps % YIELD_STEPS == 0:
                time.sleep(ahead)
            if not (self.paused or self.failure):
                self.step()

    def _serve(self, patience: float) -> None:
        """Do what was requested; wait for it up to `patience` [s]."""
        try:
            while True:
                self._requests.get(patience > 0.0, patience).serve()
                patience = 0.0
        except queue.Empty:
            pass
