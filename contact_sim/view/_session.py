"""Session: what the page can ask of a simulation, wherever that runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.control._legs import Controller, EffortFunction, can_move_its_feet, effort_of
from contact_sim.control._stance import BaseMotion, Stance
from contact_sim.control._trot import Trot
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot._actuators import holding
from contact_sim.robot._coordinates import frame_called
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport

# --- The spring with which somebody draws a robot: from the origin of a frame to a point in world.
#
# It has the stiffness m ω² and the damping 2 m ω, critical, with m the mass that the frame moves
# in
# its lightest direction where nothing holds the robot: 1/m is the largest eigenvalue of J M⁻¹ Jᵀ.
# So
# it is as stable on a foot as on the trunk: h ω is far below 1 (theory 4.5).

RATE = 12.0
"""ω of the spring [rad/s]."""
AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Spring:
    """A spring at one frame.

    Args:
        robot: what is drawn.
        frame: at whose origin.
        target: where to [m], world, shape (3,).
        q: configuration in which it is seized, shape (nq,).

    Raises:
        UnknownName: a frame that the robot does not have.

    Attributes:
        frame: its name.
        target: assign another while it draws.
    """

    def __init__(self, robot: RobotModel, frame: str, target: Array, q: Array) -> None:
        self._model = model = robot.pinocchio_model
        kind = frame_called(model, frame).type
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


# --- Session: what the page can ask of a simulation, wherever that runs.

HOLD = 'hold'
"""The controller that is always there: joint PD that holds the pose."""
AMPLITUDE, FREQUENCY = 0.03, 0.5
"""Of squat and sway [m], [Hz]."""


@dataclass(frozen=True)
class Offers:
    """What can be chosen in a session; the page shows no switch for what is empty."""

    contact_models: tuple[str, ...] = ()
    poses: tuple[str, ...] = ()
    controllers: tuple[str, ...] = (HOLD,)
    frames: tuple[str, ...] = ()
    """Frames that can be pushed and dragged."""
    fixed: frozenset[str] = frozenset()
    """Fields of `Chosen` that this session cannot change."""


@dataclass(frozen=True)
class Chosen:
    """The settings in force."""

    contact_model: str
    friction: float
    """Of the first contact point [-]."""
    restitution: float
    """Of the first contact point [-]."""
    time_step: float
    """[s]."""
    speed: float
    """Simulated over wall time that is asked for, 0: as fast as possible."""
    pose: str
    controller: str = HOLD
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Of a trot: forwards and sideways [m/s], turn [rad/s]."""
    shadows: tuple[str, ...] = ()
    paused: bool = False


@dataclass(frozen=True, eq=False)
class Shown:
    """The newest step of a session, as a page shows it."""

    report: StepReport
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """What pushes in it, frame to force [N] and torque [N m] in world axes, (6,)."""
    shadows: Mapping[str, StepReport] = field(default_factory=dict)
    """The same step under other models that found a finite answer, by name."""
    step_seconds: float = 0.0
    """Wall time of a step, mean over those since the last one shown [s]."""
    real_time_factor: float = 0.0
    """Simulated over wall time in the last second [-]."""
    failure: str = ''
    """Why the simulation stands still until a reset; '' while it does not."""


class Session(Protocol):
    """A simulation as the page sees it.

    Methods that change something return once it is done, between two steps, and may be called
    from any thread; where it cannot be done they raise a ContactSimError and change nothing.
    `latest` is for the one thread that draws: it solves shadows there.
    """

    @property
    def robot(self) -> RobotModel:
        """What moves."""
        ...

    @property
    def ground(self) -> Terrain:
        """What it stands on."""
        ...

    @property
    def offers(self) -> Offers:
        """What can be chosen."""
        ...

    def latest(self) -> Shown:
        """Return the newest step; its report is the same object as long as there is none."""
        ...

    def chosen(self) -> Chosen:
        """Return the settings in force."""
        ...

    def take_messages(self) -> list[str]:
        """Return what the session has to say by itself since the last call."""
        ...

    def close(self) -> None:
        """End the session."""
        ...

    # ---------------------------------------------------------------- time

    def pause(self) -> None:
        """Let time stand still."""
        ...

    def resume(self) -> None:
        """Let time go on."""
        ...

    def step(self, steps: int = 1) -> None:
        """Take steps and stand still after them."""
        ...

    def set_speed(self, speed: float) -> None:
        """Run at this simulated over wall time, 0 for as fast as possible."""
        ...

    # ---------------------------------------------------------------- state

    def reset(self) -> None:
        """Put the robot at rest into the chosen pose, on the ground, at t = 0."""
        ...

    def drop(self, height: float) -> None:
        """Reset, with the robot `height` [m] above the ground."""
        ...

    def set_pose(self, pose: str) -> None:
        """Choose a reference pose, and reset into it."""
        ...

    # ---------------------------------------------------------------- pushes

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
        ...

    def drag(self, frame: str, target: Sequence[float] | None) -> None:
        """Draw the origin of a frame with a spring to `target` [m], world, (3,); None: let go."""
        ...

    # ---------------------------------------------------------------- laws and settings

    def set_contact_model(self, name: str) -> None:
        """Go on under another contact model."""
        ...

    def set_friction(self, friction: float) -> None:
        """Give all contacts this coefficient [-]."""
        ...

    def set_restitution(self, restitution: float) -> None:
        """Give all contacts this coefficient [-]."""
        ...

    def set_time_step(self, time_step: float) -> None:
        """Go on with another time step [s]."""
        ...

    def set_shadows(self, names: Sequence[str]) -> None:
        """Let these models solve the same steps beside the one that moves the robot."""
        ...

    # ---------------------------------------------------------------- control

    def set_controller(
        self, name: str, amplitude: float = AMPLITUDE, frequency: float = FREQUENCY
    ) -> None:
        """Start a controller of `offers`; the one that runs ends.

        Args:
            name: which.
            amplitude: of squat and sway [m].
            frequency: of squat and sway [Hz].
        """
        ...

    def set_velocity(self, forward: float, sideways: float, turn: float) -> None:
        """Command a velocity [m/s], [m/s], [rad/s]; it acts where a controller follows it."""
        ...


# --- The controllers that a page can start.

STANCES = {'stand': 'hold', 'squat': 'squat', 'sway': 'sway'}
"""Controllers on all feet, and what `Stance` calls their motions."""
TROT = 'trot'
TROTTERS = 4
"""Feet of a robot that trots."""


class JointHold:
    """Joint PD with the robot's default gains that holds one pose."""

    def __init__(self, robot: RobotModel, q: Array) -> None:
        self._robot = robot
        self._command = holding(robot.joint_positions(q), *robot.default_gains)

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return joint efforts [N m], shape (n_joints,)."""
        robot = self._robot
        position, velocity = robot.joint_positions(q), robot.joint_velocities(v)
        return self._command.effort_at(position, velocity, robot.continuous_joints)


class Running:
    """A controller that runs: its efforts, and the velocity that it follows if it does.

    Args:
        controller: with `effort`, and `velocity` where it can be told one.
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


class Motions:
    """What can be started on one robot.

    Args:
        robot: what is controlled.
        own: name and maker of a controller of the user's, see `own_controller`.
    """

    def __init__(
        self,
        robot: RobotModel,
        own: tuple[str, Callable[[RobotModel], Controller | EffortFunction]] | None = None,
    ) -> None:
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
            return Running(_made(name, self._own[1], self._robot))
        if name == TROT:
            return Running(Trot(self._robot))
        if name in STANCES:
            return Running(Stance(self._robot, BaseMotion(STANCES[name], amplitude, frequency)))
        return Running(JointHold(self._robot, pose))


def own_controller(
    place: str,
) -> tuple[str, Callable[[RobotModel], Controller | EffortFunction]]:
    """Return name and maker of the controller at `place`, 'module:name'.

    It is an object with `effort(time, q, v)`, a function of these arguments, or a class of such
    objects, which is made of the robot whenever it is started.

    Raises:
        InvalidInput: nothing there, or no controller.
    """
    module, _, name = place.partition(':')
    if not (module and name):
        raise InvalidInput(f"controller = {shown(place)}: expected 'module:name'")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the user's module raises
        raise InvalidInput(
            f'controller = {shown(place)}: {type(error).__name__}: {error}'
        ) from error
    if isinstance(found, type):
        return name, found
    effort_of(found)
    return name, lambda robot: found


def _made(
    name: str, maker: Callable[[RobotModel], Controller | EffortFunction], robot: RobotModel
) -> Controller | EffortFunction:
    try:
        return maker(robot)
    except Exception as error:  # whatever the user's class raises
        raise InvalidInput(f'controller {name!r} cannot be made: {error!r}') from error
