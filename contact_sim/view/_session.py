"""The session of a viewer: settings, commands and results of the simulation that a page shows.

`Session` is the interface between a page and a simulation. A command is a method of it, written
once; the subclass only says how commands are executed: between two steps of a thread
(`LiveSession`), or by a message to another process (`RemoteSession`).

A setting that is one attribute of `Simulator` is one field of `Settings` with an `Option`. Its
input in the panel, `Session.set`, and the parameter of the node follow from that line.

Below: the controllers that a page can start, the spring with which it drags a frame, and the
session of a simulation in this process.
"""
# ruff: noqa: B027 - commands have no body, `command` gives them one

from __future__ import annotations

import functools
import importlib
import inspect
import queue
import threading
import time
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import check_of, checked, count, number_within, positive, shaped
from contact_sim.collision._terrain import Terrain, as_terrain, terrains
from contact_sim.contact_models import contact_models
from contact_sim.control._balance import Balance, cannot_balance
from contact_sim.control._inverse_dynamics import (
    Controller,
    EffortFunction,
    can_move_its_feet,
    effort_of,
)
from contact_sim.control._stance import BaseMotion, Stance
from contact_sim.control._trot import Trot
from contact_sim.errors import (
    InvalidInput,
    NonFiniteState,
    UnknownName,
    known_name,
    one_line,
    shown,
    summary,
)
from contact_sim.robot._actuators import holding
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING
from contact_sim.robot._trees import data_of
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._running import Pacer, PushSchedule, Request
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import lift, standing_on
from contact_sim.terrain._generator import READY_MADE, ready_made

HOLD = 'hold'
"""The default controller: joint PD that holds the pose."""
AMPLITUDE, FREQUENCY = 0.03, 0.5
"""Of squat and sway [m], [Hz]."""

DIFFICULTY = 0.5
"""Of a ready-made ground [-]."""

# ------------------------------------------------ settings


@dataclass(frozen=True)
class Option:
    """Input, attribute and parameter of a setting."""

    label: str
    """Of the input in the panel."""
    attribute: str
    """Of `Simulator`."""
    parameter: str = ''
    """Of the node; '' where the node cannot change it."""
    kind: Literal['slider', 'number', 'choice', 'checkboxes'] = 'slider'
    """Of the input; choices and check boxes are of the contact models."""
    bounds: tuple[float, float, float] = (0.0, 1.0, 0.01)
    """Lowest value, highest value and step of the input."""
    scale: float = 1.0
    """Value of the input over the setting: its unit in the panel."""


def option(*arguments: Any, **named: Any) -> dict[str, Option]:
    """Return the metadata of a field of `Settings`."""
    return {'option': Option(*arguments, **named)}


@dataclass(frozen=True)
class Settings:
    """Current settings of a session."""

    contact_model: str = field(
        metadata=option('contact model', 'contact_model', 'contact.model', 'choice')
    )
    friction: float = field(
        metadata=option('friction [-]', 'friction', 'friction.mu', bounds=(0.0, 1.5, 0.01))
    )
    """Of the first contact point [-]."""
    restitution: float = field(metadata=option('restitution [-]', 'restitution', 'restitution'))
    """Of the first contact point [-]."""
    time_step: float = field(
        metadata=option(
            'time step [ms]', 'time_step', kind='number', bounds=(0.01, 50.0, 0.01), scale=1e3
        )
    )
    """[s]."""
    speed: float
    """Commanded ratio of simulated and wall time, 0: as fast as possible."""
    pose: str
    controller: str = HOLD
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of a trot: forwards and sideways [m/s], turn [rad/s]."""
    shadows: tuple[str, ...] = field(
        default=(), metadata=option('shadow models', 'shadow', 'contact.shadow', 'checkboxes')
    )
    paused: bool = False
    waits: bool = False
    """Whether time is stopped while no browser has the page open."""


OPTIONS: dict[str, Option] = {
    setting.name: setting.metadata['option']
    for setting in fields(Settings)
    if 'option' in setting.metadata
}
"""The settings that are an attribute of `Simulator`, by their field of `Settings`."""
SETTING_TYPES = typing.get_type_hints(Settings)


def option_values(sim: Simulator) -> dict[str, Any]:
    """Return the values of all options; of arrays over the contacts the first number."""
    values = {name: getattr(sim, option.attribute) for name, option in OPTIONS.items()}
    return {
        name: (float(value[0]) if len(value) else 0.0) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a session; the page has no input for empty fields."""

    contact_models: tuple[str, ...] = ()
    poses: tuple[str, ...] = ()
    controllers: tuple[str, ...] = (HOLD,)
    frames: tuple[str, ...] = ()
    """Frames that can be pushed and dragged."""
    terrains: tuple[str, ...] = ()
    waits: bool = False
    """Whether it can wait while no browser has the page open."""
    fixed: frozenset[str] = frozenset()
    """Fields of `Settings` that this session cannot change."""

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class DisplayedStep:
    """The newest step of a session, as a page shows it."""

    report: StepReport
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """External wrenches in it: frame to force [N] and torque [N m] in world axes, (6,)."""
    shadows: Mapping[str, StepReport] = field(default_factory=dict)
    """The same step under other contact models with a finite solution, by name."""
    step_seconds: float = 0.0
    """Wall time of a step, mean over those since the last one shown [s]."""
    real_time_factor: float = 0.0
    """Simulated over wall time in the last second [-]."""
    failure: str = ''
    """Why the simulation is stopped until a reset; '' while it is not."""

    __repr__ = one_line


# ------------------------------------------------ the session

Function = TypeVar('Function', bound=Callable[..., Any])


def command(method: Function) -> Function:
    """Return a method that checks its arguments and then has `Session.execute` run the command."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def run(self: Session, *values: Any, **named: Any) -> None:
        bound = signature.bind(self, *values, **named)
        bound.apply_defaults()
        self.execute(method.__name__, dict(list(bound.arguments.items())[1:]))

    return typing.cast(Function, checked(run))


class Session(ABC):
    """Interface between a viewer page and a simulation.

    Commands return once they are done, between two steps, and may be called from any thread; a
    command that cannot be done raises a ContactSimError and changes nothing. `latest` is for the
    one thread that draws: it solves shadow models there.

    Attributes:
        robot: the simulated robot.
        ground: the terrain.
        capabilities: the contact models, poses, controllers and frames to choose from.
    """

    robot: RobotModel
    ground: Terrain
    capabilities: Capabilities

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[str] = queue.SimpleQueue()

    @abstractmethod
    def settings(self) -> Settings:
        """Return the current settings."""

    @abstractmethod
    def latest(self) -> DisplayedStep:
        """Return the newest step; its report is the same object until there is a newer one."""

    def take_messages(self) -> list[str]:
        """Return the messages of the session to the user since the last call."""
        messages = []
        while not self._messages.empty():
            messages.append(self._messages.get())
        return messages

    @abstractmethod
    def close(self) -> None:
        """End the session."""

    def watch(self, watched: bool) -> None:
        """Take note of whether a browser has the page open; called by the page."""

    @abstractmethod
    def execute(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Run a command between two steps and wait until it is done.

        Args:
            name: of a method of `Session` below.
            arguments: by name, checked.

        Raises:
            ContactSimError: it cannot be done.
        """

    @property
    def offers(self) -> Capabilities:
        """Deprecated name of `capabilities`."""
        return self.capabilities

    def chosen(self) -> Settings:
        """Return `settings()`; a deprecated name."""
        return self.settings()

    # ---------------------------------------------------------------- time

    @command
    def pause(self) -> None:
        """Pause the simulation."""

    @command
    def resume(self) -> None:
        """Resume the simulation."""

    @command
    def step(self, steps: int = 1) -> None:
        """Take steps and pause after them.

        Raises:
            NonFiniteState: the simulation is stopped until a reset.
        """

    @command
    def set_speed(self, speed: float) -> None:
        """Run at this ratio of simulated and wall time, 0 for as fast as possible."""

    @command
    def set_waiting(self, waits: bool) -> None:
        """Choose whether time is stopped while no browser has the page open."""

    # ---------------------------------------------------------------- state

    @command
    def reset(self) -> None:
        """Put the robot at rest into the chosen pose, on the ground, at t = 0."""

    @command
    def drop(self, height: float) -> None:
        """Reset, with the robot `height` [m] above the ground."""

    @command
    def set_pose(self, pose: str) -> None:
        """Choose a reference pose, and reset into it."""

    @command
    def set_terrain(self, terrain: str, difficulty: float = DIFFICULTY) -> None:
        """Reset on another ground.

        Args:
            terrain: one of the capabilities.
            difficulty: of a ready-made ground, from 0 to 1.
        """

    # ---------------------------------------------------------------- external wrenches

    @command
    def push(
        self, frame: str, force: Sequence[float], torque: Sequence[float], duration: float
    ) -> None:
        """Push a frame at its origin from now on.

        Args:
            frame: its name.
            force: [N], world axes, (3,).
            torque: [N m], world axes, (3,).
            duration: [s] of simulated time.
        """

    @command
    def drag(self, frame: str, target: Sequence[float] | None) -> None:
        """Drag the origin of a frame with a spring to `target` [m], world, (3,); None: let go."""

    # ---------------------------------------------------------------- settings

    def set(self, name: str, value: object) -> None:
        """Change a setting of `OPTIONS`.

        Args:
            name: a field of `Settings`.
            value: of the type of the field.

        Raises:
            ContactSimError: no such setting, or a value that is refused.
        """
        if name not in OPTIONS:
            raise UnknownName('setting', name, OPTIONS)
        check = check_of(SETTING_TYPES[name])
        self.execute('set', {'name': name, 'value': check(name, value) if check else value})

    def set_contact_model(self, name: str) -> None:
        """Switch to another contact model."""
        self.set('contact_model', name)

    def set_friction(self, friction: float) -> None:
        """Set the friction coefficient of all contacts [-]."""
        self.set('friction', friction)

    def set_restitution(self, restitution: float) -> None:
        """Set the restitution coefficient of all contacts [-]."""
        self.set('restitution', restitution)

    def set_time_step(self, time_step: float) -> None:
        """Set the time step [s]."""
        self.set('time_step', time_step)

    def set_shadows(self, names: Sequence[str]) -> None:
        """Select models that solve the same steps without moving the robot."""
        self.set('shadows', names)

    # ---------------------------------------------------------------- control

    @command
    def set_controller(
        self, name: str, amplitude: float = AMPLITUDE, frequency: float = FREQUENCY
    ) -> None:
        """Start a controller of `capabilities`; the running one ends.

        Args:
            name: of the controller.
            amplitude: of squat and sway [m].
            frequency: of squat and sway [Hz].
        """

    @command
    def set_velocity(self, forward: float, sideways: float, turn: float) -> None:
        """Command a velocity [m/s], [m/s], [rad/s]; controllers with a velocity follow it."""

    def __repr__(self) -> str:
        return summary(self)


# ------------------------------------------------ controllers that a page can start

STANCES = {'stand': 'hold', 'squat': 'squat', 'sway': 'sway'}
"""Controllers on all feet, and the motion of `Stance` that each is."""
TROT = 'trot'
BALANCE = 'balance'
TROTTERS = 4
"""Feet of a robot that trots."""
Maker = Callable[[RobotModel], Controller | EffortFunction]


class Running:
    """A running controller.

    Args:
        controller: with `effort`, and perhaps an attribute `velocity` that is assigned.
    """

    def __init__(self, controller: Controller | EffortFunction) -> None:
        self._controller: Any = controller
        self._effort = effort_of(controller)

    def effort(self, time: float, q: Array, v: Array) -> ArrayLike:
        """Return joint efforts [N m], shape (n_joints,)."""
        return self._effort(time, q, v)

    def follow(self, velocity: tuple[float, float, float]) -> None:
        """Command forward and sideways velocity [m/s] and turn [rad/s]."""
        if hasattr(self._controller, 'velocity'):
            self._controller.velocity = velocity

    def __repr__(self) -> str:
        return summary(self, controller=type(self._controller).__name__)


class Motions:
    """The controllers that can be started on one robot.

    Args:
        robot: the controlled robot.
        own: name and maker of a controller of the user's, see `own_controller`.

    Attributes:
        names: of the controllers.
    """

    def __init__(self, robot: RobotModel, own: tuple[str, Maker] | None = None) -> None:
        self._robot, self._own = robot, own
        legged = can_move_its_feet(robot)
        trots = legged and len(robot.contact_points) == TROTTERS
        self.names = (
            HOLD,
            *(STANCES if legged else ()),
            *((TROT,) if trots else ()),
            *(() if cannot_balance(robot) else (BALANCE,)),
            *((own[0],) if own else ()),
        )

    def start(self, name: str, pose: Array, amplitude: float, frequency: float) -> Running:
        """Return a controller that begins now.

        Args:
            name: one of `names`.
            pose: q (nq,) that `hold` holds.
            amplitude: of squat and sway [m].
            frequency: of squat and sway [Hz].

        Raises:
            UnknownName: none of `names`.
            InvalidInput: a controller that cannot be made for this robot.
        """
        if name not in self.names:
            raise UnknownName('controller', name, self.names)
        if self._own is not None and name == self._own[0]:
            try:
                controller = self._own[1](self._robot)
            except Exception as error:  # whatever the user's class raises
                raise InvalidInput(f'controller {name!r} cannot be made: {error!r}') from error
            return Running(controller)
        if name == TROT:
            return Running(Trot(self._robot))
        if name == BALANCE:
            return Running(Balance(self._robot))
        if name in STANCES:
            return Running(Stance(self._robot, BaseMotion(STANCES[name], amplitude, frequency)))
        robot = self._robot
        command = holding(robot.joint_positions(pose), *robot.default_gains)

        def hold(time: float, q: Array, v: Array) -> Array:
            position, velocity = robot.joint_positions(q), robot.joint_velocities(v)
            return command.effort_at(position, velocity, robot.continuous_joints)

        return Running(hold)

    def __repr__(self) -> str:
        return summary(self, names=self.names)


def own_controller(place: str) -> tuple[str, Maker]:
    """Return name and maker of the controller at `place`, 'module:name'.

    It is an object with `effort(time, q, v)`, a function of these arguments, or a class of such
    objects, which is made of the robot whenever it is started.
    """
    module, _, name = place.partition(':')
    if not (module and name):
        raise InvalidInput(f"controller = {shown(place)}: expected 'module:name'")
    try:
        controller: Any = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the user's module raises
        raise InvalidInput(
            f'controller = {shown(place)}: {type(error).__name__}: {error}'
        ) from error
    if isinstance(controller, type):
        return name, controller
    effort_of(controller)
    return name, lambda robot: controller


# ------------------------------------------------ the spring that drags a frame
#
# The force on the origin of the frame is F = m (ω² (target − x) − 2 ω ẋ), critically damped. m is
# the mass that the frame moves in its lightest direction: 1/m is the largest eigenvalue of
# J M⁻¹ Jᵀ. So the spring is as stable on a foot as on the trunk: h ω is far below 1 (theory 4.5).

RATE = 12.0
"""ω of the spring [rad/s]."""
AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Spring:
    """A spring between the origin of a frame and a target in the world [m], (3,)."""

    def __init__(self, robot: RobotModel, frame: str, target: Array, q: Array) -> None:
        self._model = model = robot.pinocchio_model
        kind = find_frame(model, frame).type
        self._data, self._id = data_of(model), model.getFrameId(frame, kind)
        self.frame, self.target = frame, target
        jacobian = pin.computeFrameJacobian(model, self._data, q, self._id, AXES)[:3]
        upper = np.triu(pin.computeMinverse(model, self._data, q))
        mobility = jacobian @ (upper + np.triu(upper, 1).T) @ jacobian.T
        largest = float(np.linalg.eigvalsh(mobility)[-1])
        self.mass = 1.0 / largest if largest > 0.0 else 0.0  # [kg], at this q

    def wrench(self, q: Array, v: Array) -> Array:
        """Return force [N] and torque [N m] at the frame's origin, world axes, shape (6,)."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v)
        position = pin.updateFramePlacement(model, data, self._id).translation
        velocity = pin.getFrameVelocity(model, data, self._id, AXES).linear
        force = self.mass * (RATE**2 * (self.target - position) - 2.0 * RATE * velocity)
        return np.array([*force, 0.0, 0.0, 0.0])


# ------------------------------------------------ a simulation in this process

MAX_SPEED = 1000.0
"""Largest speed that can be commanded [-]."""
MAX_HEIGHT = 1000.0
"""Largest height of a drop [m]."""
MAX_SLEEP = 0.02
"""Wall seconds after which a sleeping thread looks at requests again."""
YIELD_STEPS = 8
"""Steps after which a thread that never sleeps lets others in."""


class LiveSession(Session):
    """A simulation that runs in a separate thread and executes commands between two steps.

    Args:
        sim: the simulation; nobody else touches it as long as the session lasts.
        motions: the controllers that can be started; None: those of the package.
        speed: simulated over wall time, 0: as fast as possible.
        paused: whether time is stopped at first.
        waits: whether time is stopped while no browser has the page of this session open; without
            a page it never is.

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
        waits: bool = True,
    ) -> None:
        super().__init__()
        factor = number_within('speed', speed, MAX_SPEED)
        self._sim, self._motions = sim, motions or Motions(sim.robot)
        self.robot, self.ground = sim.robot, sim.terrain  # the ground of what `latest` returned
        frames = self.robot.pinocchio_model.frames
        links = [f.name for f in frames if f.type == pin.FrameType.BODY and f.parentJoint > 0]
        self.capabilities = Capabilities(
            contact_models(), self.robot.reference_configurations, self._motions.names,
            tuple(links), terrains(), True,
        )  # fmt: skip
        self._controller, self._motion = HOLD, (AMPLITUDE, FREQUENCY)
        self._pose, self._velocity = STANDING, (0.0, 0.0, 0.0)
        self._displayed = DisplayedStep(sim.last_report)
        self._run = SimulationThread(
            sim, self._started(HOLD), self._hold_instead, factor, paused, waits
        )

    def _started(self, name: str) -> Running:
        """Return a controller that starts now."""
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

    def settings(self) -> Settings:
        """Return the current settings."""
        return Settings(
            **option_values(self._sim), speed=self._run.pacer.factor, pose=self._pose,
            controller=self._controller, velocity=self._velocity, paused=self._run.paused,
            waits=self._run.waits,
        )  # fmt: skip

    def latest(self) -> DisplayedStep:
        """Return the newest step, with the shadows solved here; for one thread."""
        run, shadows = self._run, self._displayed.shadows
        report, wrenches, self.ground = run.newest
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

    def watch(self, watched: bool) -> None:
        """Take note of whether a browser has the page open."""
        self._run.watched = watched

    # ---------------------------------------------------------------- commands
    #
    # `_on_<name>` runs in the thread of the simulation, between two steps.

    def execute(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Run a command between two steps and wait until it is done, see `Session.execute`."""
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

    def _on_drop(self, height: float) -> None:
        self._on_reset(number_within('height', height, MAX_HEIGHT))

    def _on_set_pose(self, pose: str) -> None:
        self._on_reset(pose=pose)

    def _on_set_terrain(self, terrain: str, difficulty: float) -> None:
        known_name('terrain', terrain, self.capabilities.terrains)
        made = ready_made(terrain, difficulty) if terrain in READY_MADE else terrain
        self._on_reset(ground=as_terrain(made))

    def _on_set_waiting(self, waits: bool) -> None:
        self._run.waits = waits

    def _on_reset(
        self, height: float = 0.0, pose: str | None = None, ground: Terrain | None = None
    ) -> None:
        sim, pose = self._sim, self._pose if pose is None else pose
        ground = sim.terrain if ground is None else ground
        q = standing_on(sim.robot, ground, pose).copy()
        lift(sim.robot, q, ground, height)
        sim.reset(sim.assembled(q), terrain=ground)
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

    def __repr__(self) -> str:
        return summary(self, simulation=self._sim)


class SimulationThread:
    """A thread that steps one simulation under one controller.

    All attributes belong to the thread: others read them, and change them in `between_steps`.
    """

    def __init__(
        self,
        sim: Simulator,
        controller: Running,
        fall_back: Callable[[str], Running],
        speed: float,
        paused: bool,
        waits: bool,
    ) -> None:
        self.sim, self.controller, self._fall_back = sim, controller, fall_back
        self.pacer, self.paused = Pacer(speed), paused
        self.waits, self.watched = waits, True  # a page says if nobody has it open
        self.steps = 0  # taken so far, not reset
        self.pushes = PushSchedule()  # external wrenches until steps of the number `steps`
        self.spring: Spring | None = None
        self.failure = ''  # why no step can be taken until a reset
        # the last step, its external wrenches, frame to force and torque, (6,), and its ground
        self.newest: tuple[StepReport, dict[str, Array], Terrain]
        self.newest = sim.last_report, {}, sim.terrain
        self._spent, self._timed, self._mean = 0.0, 0, 0.0
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name='simulation', daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------- for other threads

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
        self.newest = self.sim.last_report, {}, self.sim.terrain
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
        self.newest = report, wrenches, self.sim.terrain

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

    @property
    def stopped(self) -> bool:
        """Whether no steps are taken but those that are asked for."""
        return self.paused or bool(self.failure) or (self.waits and not self.watched)

    def _run(self) -> None:
        self.pacer.restart(self.sim.time)
        while not self._ended:
            if self.stopped:
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
            if not self.stopped:
                self.step()

    def _serve(self, patience: float) -> None:
        """Do what was requested; wait for it up to `patience` [s]."""
        try:
            while True:
                self._requests.get(patience > 0.0, patience).serve()
                patience = 0.0
        except queue.Empty:
            pass
