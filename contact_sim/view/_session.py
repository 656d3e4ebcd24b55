"""The session of a viewer: settings, commands and results of the simulation that a page shows.

`Session` is the interface between a page and a simulation. A command is a method of it, written
once; the subclass only says how commands are executed: between two steps of a thread
(`LiveSession`), or by a message to another process (`RemoteSession`).

A setting that is one attribute of `Simulator` is one field of `Settings` with an `Option`. Its
input in the panel, `Session.set`, and the parameter of the node follow from that line.

Below: the controllers that a page can start, and the spring with which it drags a frame.
"""
# ruff: noqa: B027 - commands have no body, `command` gives them one

from __future__ import annotations

import functools
import importlib
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import check_of, checked
from contact_sim.collision._terrain import Terrain
from contact_sim.control._inverse_dynamics import (
    Controller,
    EffortFunction,
    can_move_its_feet,
    effort_of,
)
from contact_sim.control._stance import BaseMotion, Stance
from contact_sim.control._trot import Trot
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot._actuators import holding
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator

HOLD = 'hold'
"""The default controller: joint PD that holds the pose."""
AMPLITUDE, FREQUENCY = 0.03, 0.5
"""Of squat and sway [m], [Hz]."""

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
    """The settings in force."""

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


OPTIONS: dict[str, Option] = {
    setting.name: setting.metadata['option']
    for setting in fields(Settings)
    if 'option' in setting.metadata
}
"""The settings that are an attribute of `Simulator`, by their field of `Settings`."""


def option_values(sim: Simulator) -> dict[str, Any]:
    """Return the values of all options; of arrays over the contacts the first number."""
    values = {name: getattr(sim, option.attribute) for name, option in OPTIONS.items()}
    return {
        name: (float(value[0]) if len(value) else 0.0) if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


@dataclass(frozen=True)
class Capabilities:
    """What a session offers; the page has no input for what is empty."""

    contact_models: tuple[str, ...] = ()
    poses: tuple[str, ...] = ()
    controllers: tuple[str, ...] = (HOLD,)
    frames: tuple[str, ...] = ()
    """Frames that can be pushed and dragged."""
    fixed: frozenset[str] = frozenset()
    """Fields of `Settings` that this session cannot change."""


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
    """A simulation as the page sees it.

    Commands return once they are done, between two steps, and may be called from any thread; a
    command that cannot be done raises a ContactSimError and changes nothing. `latest` is for the
    one thread that draws: it solves shadow models there.
    """

    @property
    @abstractmethod
    def robot(self) -> RobotModel:
        """The simulated robot."""

    @property
    @abstractmethod
    def ground(self) -> Terrain:
        """The terrain."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The contact models, poses, controllers and frames to choose from."""

    @abstractmethod
    def settings(self) -> Settings:
        """Return the settings in force."""

    @abstractmethod
    def latest(self) -> DisplayedStep:
        """Return the newest step; its report is the same object as long as there is none."""

    @abstractmethod
    def take_messages(self) -> list[str]:
        """Return the messages of the session to the user since the last call."""

    @abstractmethod
    def close(self) -> None:
        """End the session."""

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
        """Stop time."""

    @command
    def resume(self) -> None:
        """Let time go on."""

    @command
    def step(self, steps: int = 1) -> None:
        """Take steps and pause after them.

        Raises:
            NonFiniteState: the simulation is stopped until a reset.
        """

    @command
    def set_speed(self, speed: float) -> None:
        """Run at this ratio of simulated and wall time, 0 for as fast as possible."""

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
        check = check_of(_setting_types()[name])
        self.execute('set', {'name': name, 'value': check(name, value) if check else value})

    def set_contact_model(self, name: str) -> None:
        """Go on under another contact model."""
        self.set('contact_model', name)

    def set_friction(self, friction: float) -> None:
        """Give all contacts this coefficient [-]."""
        self.set('friction', friction)

    def set_restitution(self, restitution: float) -> None:
        """Give all contacts this coefficient [-]."""
        self.set('restitution', restitution)

    def set_time_step(self, time_step: float) -> None:
        """Go on with another time step [s]."""
        self.set('time_step', time_step)

    def set_shadows(self, names: Sequence[str]) -> None:
        """Let these models solve the same steps beside the one that moves the robot."""
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


@functools.cache
def _setting_types() -> dict[str, Any]:
    return typing.get_type_hints(Settings)


# ------------------------------------------------ controllers that a page can start

STANCES = {'stand': 'hold', 'squat': 'squat', 'sway': 'sway'}
"""Controllers on all feet, and the motion of `Stance` that each is."""
TROT = 'trot'
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


def joint_hold(robot: RobotModel, pose: Array) -> EffortFunction:
    """Return joint PD with the robot's default gains that holds a pose q (nq,)."""
    command = holding(robot.joint_positions(pose), *robot.default_gains)

    def effort(time: float, q: Array, v: Array) -> Array:
        position, velocity = robot.joint_positions(q), robot.joint_velocities(v)
        return command.effort_at(position, velocity, robot.continuous_joints)

    return effort


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
        if name in STANCES:
            return Running(Stance(self._robot, BaseMotion(STANCES[name], amplitude, frequency)))
        return Running(joint_hold(self._robot, pose))


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
    """A spring between a frame and a point of the world.

    Args:
        robot: with the frame.
        frame: at whose origin the spring acts.
        target: other end of the spring [m], world, shape (3,).
        q: configuration at the start, shape (nq,).

    Attributes:
        frame: its name.
        target: can be assigned.
        mass: m [kg].
    """

    def __init__(self, robot: RobotModel, frame: str, target: Array, q: Array) -> None:
        self._model = model = robot.pinocchio_model
        kind = find_frame(model, frame).type
        self._data, self._id = model.createData(), model.getFrameId(frame, kind)
        self.frame, self.target = frame, target
        jacobian = pin.computeFrameJacobian(model, self._data, q, self._id, AXES)[:3]
        upper = np.triu(pin.computeMinverse(model, self._data, q))
        mobility = jacobian @ (upper + np.triu(upper, 1).T) @ jacobian.T
        largest = float(np.linalg.eigvalsh(mobility)[-1])
        self.mass = 1.0 / largest if largest > 0.0 else 0.0

    def wrench(self, q: Array, v: Array) -> Array:
        """Return force [N] and torque [N m] at the frame's origin, world axes, shape (6,)."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v)
        position = pin.updateFramePlacement(model, data, self._id).translation
        velocity = pin.getFrameVelocity(model, data, self._id, AXES).linear
        force = self.mass * (RATE**2 * (self.target - position) - 2.0 * RATE * velocity)
        return np.array([*force, 0.0, 0.0, 0.0])
