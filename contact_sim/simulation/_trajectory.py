"""The steps of a run as arrays: as a dictionary or a table, and assertions for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from contact_sim._types import Array, Mask
from contact_sim._validation import checked, count
from contact_sim.arrays._fields import Sizes
from contact_sim.collision._terrain import Terrain
from contact_sim.errors import InvalidInput, shown
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import parts_of
from contact_sim.simulation._report import StepReport
from contact_sim.step._workspace import contact_names

# --- Labels and units of the numbers in q and v.

POSE = {'x': 'm', 'y': 'm', 'z': 'm', 'qx': '-', 'qy': '-', 'qz': '-', 'qw': '-'}
"""Pose of a floating base in the world, and units."""
BASE = ('v_x', 'v_y', 'v_z', 'w_x', 'w_y', 'w_z')
"""Velocity of a floating base: linear and angular, in its axes at the start of the step."""


def velocity_labels(robot: RobotModel) -> list[str]:
    """Return a name for every velocity coordinate; joints with several are numbered."""
    return [label for label, _ in velocity_units(robot)]


def velocity_units(robot: RobotModel) -> Iterator[tuple[str, str]]:
    """Yield name and unit of every velocity coordinate."""
    for name, joint in _joints(robot):
        if joint.id == 1 and robot.floating_base:
            yield from zip(BASE, 3 * ('m/s',) + 3 * ('rad/s',), strict=True)
        elif joint.nv == 1:
            yield name, f'{unit_of(joint)}/s'
        else:
            yield from ((f'{name}.{k}', '') for k in range(joint.nv))


def coordinate_units(robot: RobotModel) -> Iterator[tuple[str, str]]:
    """Yield name and unit of every number in q; of continuous joints cosine and sine."""
    for name, joint in _joints(robot):
        if joint.id == 1 and robot.floating_base:
            yield from POSE.items()
        elif joint.nq == 1:
            yield name, unit_of(joint)
        elif joint.nv == 1:
            yield from ((f'{name}.{part}', '-') for part in ('cos', 'sin'))
        else:
            yield from ((f'{name}.{k}', '') for k in range(joint.nq))


def joint_units(robot: RobotModel) -> list[str]:
    """Return the unit of the position of every actuated joint: rad, or m of sliding ones."""
    units = {name: unit_of(joint) for name, joint in _joints(robot) if joint.nv == 1}
    return [units[name] for name in robot.joint_names]


def unit_of(joint: Any) -> str:
    """Return the unit of the position of a Pinocchio joint with one degree of freedom."""
    kind: str = joint.shortname()
    return 'm' if kind.removeprefix('JointModel').startswith('P') else 'rad'


def _joints(robot: RobotModel) -> Iterator[tuple[str, Any]]:
    model = robot.pinocchio_model
    for name, joint in list(zip(model.names, model.joints, strict=True))[1:]:  # 0 is the world
        yield str(name), joint


def state_columns(robot: RobotModel) -> tuple[list[str], list[str], list[str]]:
    """Return the columns `name [unit]` of q, v and efforts; of several robots with their names."""
    q, v, effort = [], [], []
    for part in parts_of(robot):
        name_of = part.qualified_name
        q += [f'q.{name_of(name)} [{unit}]' for name, unit in coordinate_units(part.robot)]
        v += [f'v.{name_of(name)} [{unit}]' for name, unit in velocity_units(part.robot)]
        joints = zip(part.robot.joint_names, joint_units(part.robot), strict=True)
        effort += [
            f'effort.{name_of(name)} [{"N" if unit == "m" else "N m"}]' for name, unit in joints
        ]
    return q, v, effort


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

    def __repr__(self) -> str:
        n = len(self.time)
        seconds = f'{self.time[0]:g} s to {self.time[-1]:g} s' if n else 'no time'
        return f'Trajectory({self.robot.name!r}, {n} steps, {seconds})'

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.time)

    # ---------------------------------------------------------------- parts and quantities

    def to_dict(self) -> dict[str, Array]:
        """Return one array of shape (n,) per quantity, by `name [unit]`.

        The names are those of the columns of `python -m contact_sim.replay run.npz --csv`: time,
        q, v, efforts, then what each contact has.
        """
        table: dict[str, Array] = {'time [s]': self.time}
        names = state_columns(self.robot)
        for columns, values in zip(names, (self.q, self.v, self.effort), strict=True):
            table |= dict(zip(columns, values.T, strict=True))
        for k, name in enumerate(self.names):
            place, force = f'contact.{name}', self.force[:, k]
            table[f'{place}.normal_force [N]'] = force[:, 2]
            table[f'{place}.tangential_force [N]'] = np.hypot(force[:, 0], force[:, 1])
            for axis, position in zip('xyz', self.position[:, k].T, strict=True):
                table[f'{place}.position.{axis} [m]'] = position
            table[f'{place}.gap [m]'] = self.gap[:, k]
            table[f'{place}.slip_speed [m/s]'] = self.slip_speed[:, k]
        return table

    def to_dataframe(self) -> Any:
        """Return a pandas.DataFrame with the columns of `to_dict`, one row per step.

        Raises:
            InvalidInput: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise InvalidInput('to_dataframe needs pandas: pip install pandas') from error
        return pandas.DataFrame(self.to_dict())

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
    """Collects the steps of a simulation.

    Args:
        robot: what moves.
        terrain: the ground.
        sizes: of the simulation.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain, sizes: Sizes) -> None:
        self._robot, self._terrain, self._sizes = robot, terrain, sizes
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
        sizes, nc = self._sizes, self._sizes.n_ground
        shapes = (
            (), (sizes.nq,), (sizes.nv,), (sizes.n_joints,), (nc, 3), (nc, 3), (nc,), (nc,), (nc,),
        )  # fmt: skip
        n = len(self._rows)
        columns = zip(*self._rows, strict=True) if n else ((),) * len(shapes)
        arrays = [
            np.array(column, dtype=float).reshape(n, *shape)
            for column, shape in zip(columns, shapes, strict=True)
        ]
        return Trajectory(self._robot, self._terrain, *arrays)


def whole_steps(name: str, seconds: float, time_step: float) -> int:
    """Return the number of steps in `seconds`."""
    steps = seconds / time_step
    if not (np.isfinite(steps) and steps >= 0.0 and abs(steps - round(steps)) < 1e-6):
        raise InvalidInput(
            f'{name} = {shown(seconds)} s: expected a whole number of steps of {time_step:g} s'
        )
    return count('steps', round(steps)) if round(steps) else 0
