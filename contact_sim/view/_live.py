"""The session of a simulation in this process: a thread steps it against the wall clock."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked, count, number_within, positive, shaped
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models import contact_models
from contact_sim.errors import InvalidInput, NonFiniteState
from contact_sim.robot._coordinates import frame_called
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING
from contact_sim.simulation._loop import Pacer, PushSchedule, Request
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import lift
from contact_sim.view._session import (
    AMPLITUDE,
    FREQUENCY,
    HOLD,
    Chosen,
    Motions,
    Offers,
    Running,
    Shown,
    Spring,
)

# --- A thread that steps a simulation against the wall clock, and does what others ask in between.

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


# --- The session of a simulation in this process: a thread steps it against the wall clock.

FASTEST = 1000.0
"""Largest speed that can be asked for [-]."""
HIGHEST = 1000.0
"""Largest height of a drop [m]."""


class LiveSession:
    """A simulation that runs in a thread of its own, and takes commands between two steps.

    Args:
        sim: what is stepped; nobody else touches it as long as the session lasts.
        motions: the controllers that can be started; None: those of the package.
        speed: simulated over wall time, 0: as fast as possible.
        paused: whether time stands still at first.

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
        factor = number_within('speed', speed, FASTEST)
        self._sim, self._motions = sim, motions or Motions(sim.robot)
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._controller, self._motion = HOLD, (AMPLITUDE, FREQUENCY)
        self._pose, self._velocity = STANDING, (0.0, 0.0, 0.0)
        self._run = Runner(sim, self._started(HOLD), self._hold_instead, factor)
        self._shown = Shown(sim.last_report)
        self._run.paused = paused
        self._run.start()

    def _started(self, name: str) -> Running:
        """Return a controller that begins now."""
        pose = self.robot.reference_configuration(self._pose)
        running = self._motions.start(name, pose, *self._motion)
        running.follow(self._velocity)
        return running

    def _hold_instead(self, reason: str) -> Running:
        """Return the controller that holds the pose, and say why the other one has ended."""
        self._messages.put(
            f'controller {self._controller} ended at t = {self._sim.time:.3f} s: {reason}'
        )
        self._controller = HOLD
        return self._started(HOLD)

    # ---------------------------------------------------------------- what is shown

    @property
    def robot(self) -> RobotModel:
        """What moves."""
        return self._sim.robot

    @property
    def ground(self) -> Terrain:
        """What it stands on."""
        return self._sim.terrain

    @property
    def offers(self) -> Offers:
        """What can be chosen."""
        frames = self.robot.pinocchio_model.frames
        links = [f.name for f in frames if f.type == pin.FrameType.BODY and f.parentJoint > 0]
        return Offers(
            contact_models(), self.robot.reference_configurations, self._motions.names,
            tuple(links),
        )  # fmt: skip

    def chosen(self) -> Chosen:
        """Return the settings in force."""
        sim, friction, restitution = self._sim, self._sim.friction, self._sim.restitution
        return Chosen(
            sim.contact_model,
            float(friction[0]) if len(friction) else 0.0,
            float(restitution[0]) if len(restitution) else 0.0,
            sim.time_step, self._run.pacer.factor, self._pose, self._controller, self._velocity,
            sim.shadow, self._run.paused,
        )  # fmt: skip

    def take_messages(self) -> list[str]:
        """Return what the session has to say by itself since the last call."""
        said = []
        while not self._messages.empty():
            said.append(self._messages.get())
        return said

    def latest(self) -> Shown:
        """Return the newest step, with the shadows solved here; for one thread."""
        run, shadows = self._run, self._shown.shadows
        report, wrenches = run.newest
        if report is not self._shown.report:
            solved = report.shadows.items()
            shadows = {name: shadow.step for name, shadow in solved if shadow.finite}
        seconds = run.take_step_seconds()
        self._shown = Shown(report, wrenches, shadows, seconds, run.pacer.measured, run.failure)
        return self._shown

    def close(self) -> None:
        """End the session."""
        self._run.close()

    # ---------------------------------------------------------------- time

    def pause(self) -> None:
        """Let time stand still."""
        self._set_paused(True)

    def resume(self) -> None:
        """Let time go on."""
        self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        def act() -> None:
            self._run.paused = paused
            self._run.pacer.restart(self._sim.time)

        self._run.between_steps(act)

    def step(self, steps: int = 1) -> None:
        """Take steps and stand still after them.

        Raises:
            NonFiniteState: the simulation stands still until a reset.
        """
        number = count('steps', steps)

        def act() -> None:
            run = self._run
            run.paused, end = True, run.steps + number
            while run.steps < end and not run.failure:
                run.step()
            if run.failure:
                raise NonFiniteState(run.failure)

        self._run.between_steps(act)

    def set_speed(self, speed: float) -> None:
        """Run at this simulated over wall time, 0 for as fast as possible."""
        factor = number_within('speed', speed, FASTEST)
        self._run.between_steps(lambda: self._run.pacer.restart(self._sim.time, factor))

    # ---------------------------------------------------------------- state

    def reset(self) -> None:
        """Put the robot at rest into the chosen pose, on the ground, at t = 0."""
        self.drop(0.0)

    def drop(self, height: float) -> None:
        """Reset, with the robot `height` [m] above the ground."""
        above = number_within('height', height, HIGHEST)
        self._run.between_steps(lambda: self._reset(self._pose, above))

    @checked
    def set_pose(self, pose: str) -> None:
        """Choose a reference pose, and reset into it."""
        self._run.between_steps(lambda: self._reset(pose, 0.0))

    def _reset(self, pose: str, height: float) -> None:
        sim = self._sim
        q = sim.standing_configuration(pose).copy()
        lift(sim.robot, q, sim.terrain, height)
        sim.reset(sim.assembled(q))
        self._pose = pose
        self._run.begin_anew(self._started(self._controller))

    # ---------------------------------------------------------------- pushes

    @checked
    def push(
        self, frame: str, force: Sequence[float], torque: Sequence[float], duration: float
    ) -> None:
        """Push a frame at its origin for `duration` [s]: force [N], torque [N m], world axes."""
        wrench = np.concatenate([shaped('force', force, 3), shaped('torque', torque, 3)])
        lasts = positive('duration', duration, 's')
        frame_called(self.robot.pinocchio_model, frame)

        def act() -> None:
            end = self._run.steps + max(1, round(lasts / self._sim.time_step))
            self._run.pushes.add(frame, wrench, end)

        self._run.between_steps(act)

    @checked
    def drag(self, frame: str, target: Sequence[float] | None) -> None:
        """Draw the origin of a frame with a spring to `target` [m], world, (3,); None: let go."""
        place = None if target is None else shaped('target', target, 3)

        def act() -> None:
            spring = self._run.spring
            if place is None:
                self._run.spring = None
            elif spring is not None and spring.frame == frame:
                spring.target = place
            else:
                self._run.spring = Spring(self.robot, frame, place, self._sim.q)

        self._run.between_steps(act)

    # ---------------------------------------------------------------- laws and settings

    def set_contact_model(self, name: str) -> None:
        """Go on under another contact model."""
        self._set('contact_model', name)

    def set_friction(self, friction: float) -> None:
        """Give all contacts this coefficient [-]."""
        self._set('friction', friction)

    def set_restitution(self, restitution: float) -> None:
        """Give all contacts this coefficient [-]."""
        self._set('restitution', restitution)

    def set_time_step(self, time_step: float) -> None:
        """Go on with another time step [s]."""
        self._set('time_step', time_step)

    def set_shadows(self, names: Sequence[str]) -> None:
        """Let these models solve the same steps beside the one that moves the robot."""
        self._set('shadow', names)

    def _set(self, name: str, value: object) -> None:
        self._run.between_steps(lambda: setattr(self._sim, name, value))

    # ---------------------------------------------------------------- control

    @checked
    def set_controller(
        self, name: str, amplitude: float = AMPLITUDE, frequency: float = FREQUENCY
    ) -> None:
        """Start a controller of `offers`; the one that runs ends."""

        def act() -> None:
            before, self._motion = self._motion, (amplitude, frequency)
            try:
                self._run.controller = self._started(name)
            except Exception:
                self._motion = before
                raise
            self._controller = name

        self._run.between_steps(act)

    def set_velocity(self, forward: float, sideways: float, turn: float) -> None:
        """Command a velocity [m/s], [m/s], [rad/s]; it acts where a controller follows it."""
        velocity = shaped('velocity', (forward, sideways, turn), 3)

        def act() -> None:
            self._velocity = (float(velocity[0]), float(velocity[1]), float(velocity[2]))
            self._run.controller.follow(self._velocity)

        self._run.between_steps(act)
