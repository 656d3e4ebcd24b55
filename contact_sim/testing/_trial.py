"""Trial: a controller in a loop with the simulator; trajectory: its steps, and assertions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim._types import Array, Mask
from contact_sim._validation import checked, count
from contact_sim.collision._terrain import Terrain
from contact_sim.control._inverse_dynamics import Controller, EffortFunction, effort_of
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import ReplayedStep, repeat
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport, TouchGuard
from contact_sim.simulation._running import PushSchedule
from contact_sim.simulation._simulator import Simulator
from contact_sim.step._workspace import contact_names

# --- Trajectory: every step of a run, and the assertions that tests of controllers are made of

FALLEN_HEIGHT = 0.5
"""Share of the standing height below which a robot has fallen."""
FALLEN_TILT = 1.0
"""Angle between the base and the ground above which a robot has fallen [rad]."""
SETTLED_SPEED = 0.01
"""Largest speed of base and joints of a robot that has settled [m/s, rad/s]."""


class TrajectoryFailure(AssertionError):
    """Error raised when a trajectory violates an assertion.

    Attributes:
        time: when it is first broken [s].
    """

    def __init__(self, message: str, time: float) -> None:
        super().__init__(message)
        self.time = time


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The steps of a run, one row each; nc contacts: candidates × features of the terrain."""

    robot: RobotModel
    terrain: Terrain
    """The ground."""
    time: Array
    """Simulated time after each step [s], shape (n,)."""
    q: Array
    """Configuration, shape (n, nq)."""
    v: Array
    """Velocity, shape (n, nv)."""
    effort: Array
    """Joint efforts as applied [N m], shape (n, n_joints)."""
    force: Array
    """Contact forces on the robot [N], axes (t1, t2, n) of the contact, shape (n, nc, 3)."""
    position: Array
    """Contact points in world [m], shape (n, nc, 3)."""
    gap: Array
    """Distance to the ground [m], negative when penetrating, shape (n, nc)."""
    slip_speed: Array
    """Tangential speed of the contact points [m/s], shape (n, nc)."""
    friction: Array
    """Friction coefficients in force [-], shape (n, nc)."""

    # ---------------------------------------------------------------- parts and quantities

    @checked
    def after(self, time: float) -> Trajectory:
        """Return the part from `time` [s] on."""
        return self._part(self.time >= time - 1e-9)

    @checked
    def until(self, time: float) -> Trajectory:
        """Return the part up to `time` [s]."""
        return self._part(self.time <= time + 1e-9)

    def _part(self, wanted: Mask) -> Trajectory:
        rows = ('time', 'q', 'v', 'effort', 'force', 'position', 'gap', 'slip_speed', 'friction')
        return replace(self, **{name: getattr(self, name)[wanted] for name in rows})

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the contacts, as in `report.contacts`, length nc."""
        return contact_names(self.robot, self.terrain)

    @cached_property
    def height(self) -> Array:
        """Height of the base above the ground [m], 0 for a fixed base, shape (n,)."""
        if not self.robot.floating_base:
            return np.zeros(len(self.time))
        return np.asarray(self.terrain.signed_distance(self.q[:, :3]))

    @cached_property
    def tilt(self) -> Array:
        """Angle between the base's own vertical and the normal of the ground below [rad], (n,)."""
        if not self.robot.floating_base:
            return np.zeros(len(self.time))
        x, y, z, w = self.q[:, 3:7].T
        up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1)
        normal = self.terrain.normals(self.q[:, :3])
        return np.asarray(np.arccos(np.clip(np.sum(up * normal, axis=1), -1.0, 1.0)))

    @cached_property
    def loaded(self) -> Mask:
        """Which contacts carry load, shape (n, nc)."""
        return np.asarray(self.force[:, :, 2] > 0.0)

    @cached_property
    def slip(self) -> Array:
        """Distance that each contact has slid since it last took up load [m], shape (n, nc)."""
        first = self.time[1] - self.time[0] if len(self.time) > 1 else 0.0
        steps = np.diff(self.time, prepend=self.time[:1] - first)[:, None]
        slid = np.cumsum(np.where(self.loaded, self.slip_speed * steps, 0.0), axis=0)
        before = np.maximum.accumulate(np.where(self.loaded, 0.0, slid), axis=0)
        return np.asarray(slid - before)

    # ---------------------------------------------------------------- assertions

    @checked
    def assert_never_fell(self, height: float = FALLEN_HEIGHT, tilt: float = FALLEN_TILT) -> None:
        """Assert that the base stays up.

        Args:
            height: smallest height of the base, as a share of that in the standing pose.
            tilt: largest angle between base and ground [rad].

        Raises:
            TrajectoryFailure: it fell.
            InvalidInput: a robot whose base is fixed.
        """
        if not self.robot.floating_base:
            raise InvalidInput(f'robot {self.robot.name!r} has a fixed base and cannot fall')
        lowest = height * float(self.robot.reference_configuration()[2])
        self._assert(
            (self.height < lowest) | (self.tilt > tilt),
            lambda k: (
                f'the robot fell: base {self.height[k]:.3f} m above the ground, expected at '
                f'least {lowest:.3f} m; tilted by {self.tilt[k]:.2f} rad, expected at most '
                f'{tilt:.2f} rad'
            ),
        )

    @checked
    def assert_no_slip(self, over: float = 1e-3) -> None:
        """Assert that no contact slides further than `over` [m] between set-down and lift-off."""
        self._assert(
            self.slip > over,
            lambda k, i: (
                f'contact {self.names[i]} slipped by {self.slip[k, i]:.3g} m, expected at '
                f'most {over:.3g} m'
            ),
        )

    @checked
    def assert_forces_inside_cone(self, tolerance: float = 1e-6) -> None:
        """Assert |f_t| <= μ f_n and f_n >= 0, relative to the largest force of the step."""
        scale = np.abs(self.force).max(axis=(1, 2), initial=0.0)[:, None]
        normal = self.force[:, :, 2]
        excess = np.linalg.norm(self.force[:, :, :2], axis=2) - self.friction * normal
        self._assert(
            np.maximum(excess, -normal) > tolerance * scale,
            lambda k, i: (
                f'force of contact {self.names[i]} outside its friction cone: '
                f'{self.force[k, i].round(3).tolist()} N (t1, t2, n) with friction '
                f'{self.friction[k, i]:.3g}'
            ),
        )

    @checked
    def assert_torque_within(self, share: float = 1.0) -> None:
        """Assert that every effort stays below `share` of its joint's limit.

        With 1 it says that no command was ever cut off: efforts at the limit were saturated.
        """
        limit = share * self.robot.effort_limit
        self._assert(
            np.abs(self.effort) >= limit,
            lambda k, j: (
                f'effort of joint {self.robot.joint_names[j]} is {self.effort[k, j]:.4g} '
                f'N m, expected less than {limit[j]:.4g} N m'
            ),
        )

    @checked
    def assert_settled_by(self, time: float, speed: float = SETTLED_SPEED) -> None:
        """Assert that from `time` [s] on everything moves slower than `speed` [m/s, rad/s]."""
        moving = np.abs(self.v).max(axis=1, initial=0.0)
        self._assert(
            (self.time >= time - 1e-9) & (moving > speed),
            lambda k: (
                f'not settled by t = {time:g} s: speed {moving[k]:.3g}, expected at most '
                f'{speed:.3g}'
            ),
            last=True,
        )
        end = float(self.time[-1]) if len(self.time) else 0.0
        if not len(self.time) or end < time - 1e-9:
            raise TrajectoryFailure(f'the run ends before t = {time:g} s', end)

    def _assert(self, broken: Mask, words: Callable[..., str], last: bool = False) -> None:
        """Raise TrajectoryFailure in `words` about the first (or last) place that is broken."""
        places = np.argwhere(broken)
        if not len(places):
            return
        place = places[-1 if last else 0]
        time = float(self.time[place[0]])
        raise TrajectoryFailure(f't = {time:.9g} s: {words(*place)}', time)


class TrajectoryBuilder:
    """Collects the steps of a simulation."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._rows: list[tuple[Any, ...]] = []

    def add(self, report: StepReport) -> None:
        """Add one step."""
        record, contacts = report.record, report.contacts
        impulse = record.impulse[: 3 * len(contacts.gap)].reshape(-1, 3)
        force = impulse / record.time_step[0]
        self._rows.append(
            (report.time, record.q, record.v, record.effort, force, contacts.position,
             contacts.gap, contacts.slip_speed, contacts.friction)
        )  # fmt: skip

    def trajectory(self) -> Trajectory:
        """Return the steps so far."""
        sizes, nc = self._sim.sizes, self._sim.sizes.n_ground
        shapes = (
            (), (sizes.nq,), (sizes.nv,), (sizes.n_joints,), (nc, 3), (nc, 3), (nc,), (nc,), (nc,),
        )  # fmt: skip
        n = len(self._rows)
        columns = zip(*self._rows, strict=True) if n else ((),) * len(shapes)
        arrays = [
            np.array(column, dtype=float).reshape(n, *shape)
            for column, shape in zip(columns, shapes, strict=True)
        ]
        return Trajectory(self._sim.robot, self._sim.terrain, *arrays)


@checked
def recorded_trajectory(recording: Recording) -> Trajectory:
    """Replay a recording and return its steps.

    Raises:
        TrajectoryFailure: the repetition differs from what was recorded.
        RecordingError: a recording that cannot be repeated.
    """
    builder = TrajectoryBuilder(recording.simulator())

    def keep(step: ReplayedStep) -> None:
        if step.report is not None:
            builder.add(step.report)

    outcome = repeat(recording, keep)
    if outcome.difference:
        raise TrajectoryFailure(f'{recording.path}: {outcome.difference}', outcome.time)
    return builder.trajectory()


# --- Trial: a controller in one process with the simulator, without ROS


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
        self._builder = TrajectoryBuilder(sim)
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


def whole_steps(name: str, seconds: float, time_step: float) -> int:
    """Return the number of steps in `seconds`."""
    steps = seconds / time_step
    if not (np.isfinite(steps) and steps >= 0.0 and abs(steps - round(steps)) < 1e-6):
        raise InvalidInput(
            f'{name} = {shown(seconds)} s: expected a whole number of steps of {time_step:g} s'
        )
    return count('steps', round(steps)) if round(steps) else 0
