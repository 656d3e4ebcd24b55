"""Trial: a controller in a loop with the simulator, which can be disturbed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import checked, closed_attributes
from contact_sim.control._inverse_dynamics import Controller, EffortFunction, effort_of
from contact_sim.errors import InvalidInput, UnknownName, shown, summary
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import ReplayedStep, repeat
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import TouchGuard
from contact_sim.simulation._running import PushSchedule
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._trajectory import (
    Trajectory,
    TrajectoryBuilder,
    TrajectoryFailure,
    whole_steps,
)

# --- A recording as a trajectory


@checked
def recorded_trajectory(recording: Recording) -> Trajectory:
    """Replay a recording and return its steps.

    Raises:
        TrajectoryFailure: the repetition differs from what was recorded.
        RecordingError: a recording that cannot be repeated.
    """
    sim = recording.simulator()
    builder = TrajectoryBuilder(sim.robot, sim.terrain, sim.sizes)

    def keep(step: ReplayedStep) -> None:
        if step.report is not None:
            builder.add(step.report)

    outcome = repeat(recording, keep)
    if outcome.difference:
        raise TrajectoryFailure(f'{recording.path}: {outcome.difference}', outcome.time)
    return builder.trajectory()


# --- Trial: a controller in one process with the simulator, without ROS


@closed_attributes(
    friction='assign trial.sim.friction', contact_model='assign trial.sim.contact_model'
)
class Trial:
    """Run of a controller with a simulation; it can disturb both and stores every step.

    Args:
        sim: the simulation, at the state from which to begin.
        controller: an object with `effort(time, q, v)`, or a function of the same arguments.
        recording: where the run is recorded.
        control_steps: physics steps per call of the controller; its efforts are held in between.
        end_on_contact: links that must not touch the ground; where one does, `advance` fails.

    Attributes:
        sim: may be changed between two calls of `advance`: friction, contact_model, reset, ...
        recording: the file of the recording.
    """

    sim: Simulator
    recording: Path

    @checked
    def __init__(
        self,
        sim: Simulator,
        controller: Controller | EffortFunction,
        recording: str | Path,
        control_steps: int = 1,
        end_on_contact: Iterable[str] = (),
    ) -> None:
        if not (isinstance(control_steps, int) and control_steps >= 1):
            raise InvalidInput(f'control_steps = {shown(control_steps)}: expected an integer >= 1')
        self.sim, self.recording = sim, Path(recording)
        self._effort = effort_of(controller)
        self._recorder = Recorder(
            sim, self.recording, parameters={'controller': type(controller).__name__}
        )
        self._control_steps = control_steps
        self._guard = TouchGuard(sim.robot, end_on_contact)
        self._builder = TrajectoryBuilder(sim.robot, sim.terrain, sim.sizes)
        self._steps = 0
        self._late: deque[Array] = deque([np.zeros(sim.robot.n_joints)])
        self._blind_until = -1
        self._seen = 1.0
        self._noise = np.random.default_rng(0)
        self._pushes = PushSchedule()

    # ---------------------------------------------------------------- time and disturbances

    @checked
    def advance(self, seconds: float) -> None:
        """Let exactly `seconds` of simulated time pass.

        Raises:
            InvalidInput: not a whole number of steps.
            NonFiniteState: the simulation blew up.
            TrajectoryFailure: a link of `end_on_contact` touches the ground.
        """
        for _ in range(whole_steps('seconds', seconds, self.sim.time_step)):
            sim, newest = self.sim, self._late[-1]
            if self._steps % self._control_steps == 0 and (
                self._steps >= self._blind_until or self._noise.random() < self._seen
            ):
                newest = np.array(self._effort(sim.time, sim.q, sim.v), dtype=float)
            self._late.append(newest)
            self._late.popleft()
            report = sim.step(self._late[0], self._pushes.acting(self._steps))
            self._builder.add(report)
            self._steps += 1
            touch = self._guard.touch(report)
            if touch is not None:
                raise TrajectoryFailure(str(touch), touch.time)

    @checked
    def push(
        self,
        link: str,
        force: Sequence[float],
        seconds: float,
        torque: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Push a frame of the robot from now on for `seconds`; pushes on one frame add up.

        Args:
            link: frame at whose origin the push acts.
            force: [N], world axes, shape (3,).
            seconds: how long.
            torque: [N m], world axes, shape (3,).
        """
        wrench = checked_push(self.sim.robot, link, force, torque)
        end = self._steps + whole_steps('seconds', seconds, self.sim.time_step)
        self._pushes.add(link, wrench, end)

    @checked
    def drop_sensors(self, seconds: float, share: float = 1.0, seed: int = 0) -> None:
        """Withhold `share` of the states from the controller for `seconds`, chosen by `seed`.

        Where it sees nothing it commands nothing: its last efforts stay in force.
        """
        if not 0.0 <= share <= 1.0:
            raise InvalidInput(f'share = {shown(share)}: expected a value in [0, 1]')
        if seed < 0:
            raise InvalidInput(f'seed = {seed}: expected a whole number of at least 0')
        self._blind_until = self._steps + whole_steps('seconds', seconds, self.sim.time_step)
        self._seen, self._noise = 1.0 - share, np.random.default_rng(seed)

    @checked
    def delay_commands(self, seconds: float) -> None:
        """Delay efforts: from now on each acts `seconds` after the state it was computed for."""
        steps = whole_steps('seconds', seconds, self.sim.time_step)
        while len(self._late) > steps + 1:
            self._late.popleft()
        while len(self._late) < steps + 1:
            self._late.appendleft(self._late[0])

    # ---------------------------------------------------------------- results

    @property
    def trajectory(self) -> Trajectory:
        """Every step so far."""
        return self._builder.trajectory()

    def close(self) -> None:
        """Complete the recording."""
        self._recorder.close()

    def __repr__(self) -> str:
        return summary(self, simulation=self.sim, steps=self._steps, recording=str(self.recording))


def checked_push(
    robot: RobotModel, link: str, force: Sequence[float], torque: Sequence[float]
) -> Array:
    """Return force [N] and torque [N m] of a push, shape (6,)."""
    model = robot.pinocchio_model
    if not model.existFrame(link):
        raise UnknownName('frame', link, [frame.name for frame in model.frames])
    wrench = np.array([*force, *torque], dtype=float)
    if wrench.shape != (6,) or not np.isfinite(wrench).all():
        raise InvalidInput(f'push on {shown(link)}: expected 3 finite forces and 3 torques')
    return wrench
