"""Controllers by text: built-in ones, functions and classes, recordings, policies.

stance, balance, trot        of contact_sim.control
hold                         joint PD about the standing pose, with the robot's default gains
module:callable              a function of time, q, v; or a class, or a function of the robot
path/to/file.py:callable     likewise
run.npz                      efforts of a recording, played back in open loop
policy.yaml                  see contact_sim.control._policy
ros:module, ros:command      a ROS program, in lockstep, see campaign._ros_controller
ros@250:module               the same at 250 Hz: its commands act until the next ones
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.control import Balance, Stance, Trot
from contact_sim.control._policy import load_policy
from contact_sim.control._policy_file import read_policy
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName, of_type, shown, summary
from contact_sim.replay import Recording
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._coordinates import checked_vector
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._worlds import BatchController

FORMS = (
    "'stance', 'trot', 'balance', 'hold', 'module:callable', 'path/to/file.py:callable', "
    "'run.npz' (a recording), 'policy.yaml', or a ROS program: 'ros:' and a Python module or a "
    "command line, or 'ros@250:' where it controls at 250 Hz"
)
"""What a text of a controller may be."""


class ControllerError(ContactSimError, RuntimeError):
    """A controller that raised, or returned what no robot can apply."""


class Controller(Protocol):
    """Controller of one robot in one simulation.

    Besides, `ground` is assigned the ground where it exists, at every `reset`; `velocity` of shape
    (3,) is assigned where it exists: forward and sideways speed [m/s] and turning rate [rad/s]; a
    trial starts at the joint positions `start_pose` [rad], shape
    (n_joints,), where they exist, and else in the standing pose; and `batch(time, q, v)`, where it
    exists, is a `BatchController`: it controls many worlds at once, row by row the same ones in
    every call, each as `effort` does to the bit.
    """

    def reset(self, sim: Simulator) -> None:
        """Begin at the state of `sim`, whose reports are there for sensors from now on."""
        ...

    def effort(self, time: float, q: Array, v: Array) -> ArrayLike | JointCommand:
        """Return joint efforts [N m], shape (n_joints,), or targets with gains.

        At `time` [s] in the state q (nq,), v (nv,) as it is measured.
        """
        ...


class Adapted:
    """A function or an object of the user as a `Controller`."""

    def __init__(self, text: str, target: Any, start_pose: Array | None = None) -> None:
        self.text, self.target = text, target
        self.start_pose = start_pose
        """Joint positions at the start of a trial [rad], (n_joints,); None: the standing pose."""
        function = getattr(target, 'effort', target)
        if not callable(function):
            raise InvalidInput(
                f'controller {text!r}: {shown(target)} has no effort(time, q, v) and cannot be '
                'called'
            )
        self.effort: Callable[[float, Array, Array], Any] = function
        batch = getattr(target, 'batch', None)
        self.batch: BatchController | None = batch if callable(batch) else None
        if batch is True:  # a function that itself takes arrays of worlds
            self.batch = function
            self.effort = lambda time, q, v: function(np.array([time]), q[None], v[None])[0]

    def check(self, time_step: float) -> None:
        """Raise InvalidInput where a ROS program cannot keep its rate with this time step [s]."""
        if ROS.fullmatch(self.text) is not None:
            self.target.check(time_step)

    def reset(self, sim: Simulator) -> None:
        """Call `reset(sim)`, or `reset()`, of the object, if it has one."""
        if hasattr(self.target, 'ground'):
            self.target.ground = sim.terrain
        begin = getattr(self.target, 'reset', None)
        if callable(begin):
            begin(*[sim] if _needed(begin) else [])

    def command(self, speed: float) -> None:
        """Assign the commanded speed along x [m/s] to `velocity`, if the object has that."""
        if hasattr(self.target, 'velocity'):
            self.target.velocity = (speed, 0.0, 0.0)

    def __repr__(self) -> str:
        return summary(self, text=self.text)


class Hold:
    """Joint PD about the standing pose with the robot's default gains."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self._pose = robot.joint_positions(robot.reference_configuration('standing'))
        self._gains = robot.default_gains
        q, v = np.arange(robot.nq, dtype=float), np.arange(robot.nv, dtype=float)
        places = robot.joint_positions(q), robot.joint_velocities(v)
        self._places = [np.asarray(place, dtype=np.int64) for place in places]
        plain = all(np.array_equal(*pair) for pair in zip(places, self._places, strict=True))
        if not plain or robot.continuous_joints.any():
            self.batch = None  # type: ignore[assignment]

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return k_p (pose − q) − k_d q̇ [N m], shape (n_joints,)."""
        kp, kd = self._gains
        error = self._pose - self._robot.joint_positions(q)
        return np.asarray(kp * error - kd * self._robot.joint_velocities(v))

    def batch(self, time: Array, q: Array, v: Array) -> Array:
        """Return the same for many worlds, shape (n, n_joints)."""
        kp, kd = self._gains
        error = self._pose - q[:, self._places[0]]
        return np.asarray(kp * error - kd * v[:, self._places[1]])


class Playback:
    """Plays the efforts of a recording back, whatever the robot does: open loop."""

    def __init__(self, path: str, robot: RobotModel) -> None:
        recording = Recording(path)
        self._path, self._effort = path, recording.effort
        self._time_step = float(recording.header['time_step'])
        if self._effort.shape[1] != robot.n_joints:
            raise InvalidInput(
                f'controller {path!r}: recorded with {self._effort.shape[1]} joints, robot '
                f'{robot.name!r} has {robot.n_joints}'
            )

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the efforts recorded at `time` after the start [N m], shape (n_joints,)."""
        step = int(time / self._time_step + 1e-6)
        if step >= len(self._effort):
            raise ControllerError(
                f'recording {self._path} ends at t = {len(self._effort) * self._time_step:g} s: '
                'choose fewer seconds'
            )
        return np.asarray(self._effort[step])


@checked
def load_controller(
    text: str, robot: RobotModel, source: str = '', feet: Sequence[str] = ()
) -> Adapted:
    """Return a new controller for a robot.

    Args:
        text: one of the forms above.
        robot: with its nominal masses.
        source: name in the catalogue or path of the robot, which ROS programs need.
        feet: links that are the feet, where that name or path does not say so: ROS programs that
            are modules load the robot anew.

    Raises:
        InvalidInput: a text of no such form, a module, file or recording that cannot be loaded, a
            robot that the controller cannot have.
        UnknownName: a module without the callable.
        ControllerError: a class that raised when it was made.
    """
    if text in BUILT_IN:
        return Adapted(text, BUILT_IN[text](robot))
    program = ROS.fullmatch(text)
    if program is not None:
        return Adapted(text, _program(text, program, source, robot, feet))
    if text.endswith('.npz'):
        return Adapted(text, Playback(text, robot))
    if text.endswith(('.yaml', '.yml')):
        return _policy(text, robot)
    if ':' not in text:
        raise InvalidInput(f'controller = {shown(text)}: expected {FORMS}')
    place, _, name = text.rpartition(':')
    module = _file(text, Path(place)) if place.endswith('.py') else _module(text, place)
    if not hasattr(module, name):
        public = [key for key, value in vars(module).items() if callable(value)]
        raise UnknownName(f'callable in controller {text!r}:', name, public)
    target = _made(text, getattr(module, name), robot)
    return Adapted(text, target, _start_pose(text, target, robot))


BUILT_IN: dict[str, Callable[[RobotModel], Any]] = {
    'stance': Stance, 'trot': Trot, 'balance': Balance, 'hold': Hold
}  # fmt: skip
"""Name of a controller of the package: what makes it."""


ROS = re.compile(r'ros(?:@(?P<rate>[^:/]*))?:(?P<command>.*)', re.DOTALL)
"""Text of a ROS program."""


def control_period(text: str) -> float:
    """Return the period of a ROS program with a rate [s], 0 for every other controller.

    Raises:
        InvalidInput: a rate that is no positive number.
    """
    program = ROS.fullmatch(text)
    if program is None or program['rate'] is None:
        return 0.0
    try:
        rate = float(program['rate'])
    except ValueError:
        rate = math.nan
    if not 0.0 < rate < math.inf:
        raise InvalidInput(
            f'controller {shown(text)}: rate {program["rate"]!r}: expected a positive number of '
            "Hz between 'ros@' and ':', for example ros@250:module"
        )
    return 1.0 / rate


def _program(
    text: str, program: re.Match[str], source: str, robot: RobotModel, feet: Sequence[str]
) -> Any:
    period = control_period(text)
    if not source:
        raise InvalidInput(f'controller {text!r}: needs the name or path of the robot, `source`')
    try:
        from contact_sim.campaign._ros_controller import RosController
    except ImportError as error:
        raise InvalidInput(
            f'controller {text!r}: ROS 2 is not installed: {error}; source its setup file, or '
            'pip install "contact_sim[ros]"'
        ) from error
    command = program['command'].strip()
    if not command:
        raise InvalidInput(f"controller {text!r}: expected a module or a command after 'ros:'")
    rate = float(program['rate']) if period else None
    return RosController(command, source, robot, rate, feet)


def _policy(text: str, robot: RobotModel) -> Adapted:
    """Return a policy, which starts in its pose: there its actions are zero."""
    policy, stated = load_policy(text, robot), read_policy(Path(text), robot)
    pose = robot.joint_positions(robot.reference_configuration())
    pose[[robot.joint_names.index(joint) for joint in stated.joints]] = stated.pose
    return Adapted(text, policy, pose)


def _start_pose(text: str, target: Any, robot: RobotModel) -> Array | None:
    """Return the pose in which a controller of the user starts, None if it does not say."""
    pose = getattr(target, 'start_pose', None)
    if pose is None:
        return None
    place = f'start_pose of controller {text!r}'
    return checked_vector(place, pose, robot.n_joints, robot.joint_names)


def _module(text: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # code of the user may raise anything
        raise InvalidInput(
            f'controller {text!r}: module {name!r} cannot be imported: {error!r}'
        ) from error


def _file(text: str, path: Path) -> ModuleType:
    """Return the module in a file, loaded once for each content of it."""
    try:
        source = _reading.file_bytes(path)
    except _reading.Unreadable as error:
        raise InvalidInput(f'controller {text!r}: {error}') from error
    digest = hashlib.blake2b(str(path.resolve()).encode() + source, digest_size=8).hexdigest()
    name = f'_controller_{digest}'
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look for it there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InvalidInput(f'controller {text!r}: {path} cannot be run: {error!r}') from error
    return module


def _made(text: str, target: Any, robot: RobotModel) -> Any:
    """Return a function as it is, and what a class or a function of the robot makes."""
    if not callable(target):
        return of_type(f'controller {text!r}', target, object)
    needed = _needed(target)
    if needed is None:
        return target
    if needed == 3 and not inspect.isclass(target):
        return target
    if needed > 1:
        raise InvalidInput(
            f'controller {text!r}: takes {needed} arguments; expected a function of time, q, '
            'v, or a class or function that takes the robot or nothing'
        )
    takes = inspect.signature(target).parameters
    try:
        return target(robot) if takes else target()
    except Exception as error:
        raise ControllerError(f'controller {text!r} cannot be made: {error!r}') from error


def _needed(function: Callable[..., Any]) -> int | None:
    """Return how many arguments a function needs; None where it does not say so."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built in, or compiled
        return None
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(
        parameter.kind in positional and parameter.default is parameter.empty
        for parameter in parameters
    )
