"""Session: what the page can ask of a simulation, wherever that runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
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
