"""Setting the state anew: resets, poses, snapshots.

A state that no step has led to gets a stamp of its own: it takes one tick, except where time
itself is set back. It is published at once.
"""

from __future__ import annotations

from dataclasses import replace
from math import atan2, hypot

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.errors import InvalidInput
from contact_sim.messages.stamps import nanoseconds
from contact_sim.robot.parts import RobotPart
from contact_sim.ros.commands.inbox import Commanded, CommandInbox
from contact_sim.ros.parameter_server import ParameterServer
from contact_sim.ros.settings.factory import standing_at, start_configuration
from contact_sim.ros.stepping.loop import Loop
from contact_sim.simulation.resume import resume
from contact_sim.simulation.simulator import Simulator
from contact_sim.simulation.snapshot import Snapshot

Array = NDArray[np.float64]
FARTHEST = 1e5
"""Bound of positions and velocities that are set [m], [m/s], [rad/s]."""


class StateControl:
    """Changes of the state that callbacks ask for; each is made between two steps.

    Args:
        sim: what is simulated.
        loop: who steps it.
        inbox: whose command follows the state.
        parameters: reference pose and height of resets.

    Attributes:
        next_ground: on which the next reset puts the robots; None: the one at hand.
    """

    def __init__(
        self, sim: Simulator, loop: Loop, inbox: CommandInbox, parameters: ParameterServer
    ) -> None:
        self._sim, self._loop, self._inbox, self._parameters = sim, loop, inbox, parameters
        self._kept: tuple[Snapshot, Commanded, int] | None = None
        self.next_ground: Terrain | None = None

    @property
    def now(self) -> int:
        """Simulated time [ns]."""
        return nanoseconds(self._sim.time)

    @property
    def start_time(self) -> float:
        """Stamp of the first state [s]: never 0, which would mean 'no time' to ROS."""
        return self._sim.time_step

    def reset(self, time_too: bool = False, height: float | None = None) -> None:
        """Return to the reference pose at rest and hold it; with `time_too` at the first stamp.

        Args:
            time_too: whether time goes back, too.
            height: gap below the lowest foot [m]; None: as the parameter initial_height.

        Raises:
            ContactSimError: the pose does not exist, a height that cannot be.
        """
        ground, settings = self.next_ground or self._sim.terrain, self._parameters.settings
        if height is not None:
            settings = settings | {'': replace(settings[''], initial_height=height)}
        q = start_configuration(self._sim, settings, terrain=ground)

        def act() -> None:
            time = self.start_time if time_too else self._next_time
            self._sim.reset(q, time=time, terrain=ground)
            self._inbox.hold(self._sim.robot.joint_positions(q))
            self._loop.begin_anew()

        self._loop.between_steps(act)

    def reset_time(self) -> None:
        """Set time back to the first stamp; the robot stays as it is."""

        def act() -> None:
            before = self.now
            resume(self._sim, self._sim.snapshot(), self.start_time)
            self._inbox.shift(self.now - before)
            self._loop.begin_anew(failure_ends=False)

        self._loop.between_steps(act)

    def place(
        self,
        part: RobotPart,
        position: Array | None = None,
        quaternion: Array | None = None,
        twist: Array | None = None,
        twist_in_world: bool = False,
    ) -> None:
        """Put the base of a robot elsewhere; joints, and other robots, go on as they are.

        Args:
            part: which robot.
            position: of the base in the world [m], shape (3,); None: as it is.
            quaternion: attitude x, y, z, w, shape (4,); None: as it is.
            twist: linear and angular velocity of the base [m/s], [rad/s], shape (6,); None: as
                it is, in the axes of the base.
            twist_in_world: whether the axes of `twist` are the world's, not the base's.

        Raises:
            InvalidInput: numbers that cannot be a pose or a twist, or a base that is fixed.
        """
        _check_that_it_floats(part)
        position = None if position is None else bounded('position', position)
        quaternion = None if quaternion is None else unit_quaternion(quaternion)
        twist = None if twist is None else bounded('twist', twist)

        def act() -> None:
            q, v = self._sim.q.copy(), self._sim.v.copy()
            own_q, own_v = q[part.q], v[part.v]  # views
            if position is not None:
                own_q[:3] = position
            if quaternion is not None:
                own_q[3:7] = quaternion
            if twist is not None:
                own_v[:6] = _in_base(own_q[3:7], twist) if twist_in_world else twist
            self._sim.reset(q, v, time=self._next_time)
            self._loop.begin_anew()

        self._loop.between_steps(act)

    def put_at(self, part: RobotPart, x: float, y: float, yaw: float) -> None:
        """Stand a robot in the reference pose elsewhere on the ground, at rest.

        Other robots go on as they are.

        Raises:
            InvalidInput: a robot that is fixed, numbers that are not finite, no ground there, or
                constraints that cannot hold there.
        """
        _check_that_it_floats(part)
        where = bounded('initialpose', np.array([x, y, yaw])).tolist()
        own = standing_at(part, self._parameters.settings, self._sim.terrain, *where)

        def act() -> None:
            q, v = self._sim.q.copy(), self._sim.v.copy()
            q[part.q], v[part.v] = own, 0.0
            q = self._sim.assembled(q)
            self._sim.reset(q, v, time=self._next_time)
            self._inbox.hold(part.robot.joint_positions(q[part.q]), part.joints)
            self._loop.begin_anew()

        self._loop.between_steps(act)

    def snapshot(self) -> float:
        """Keep the present state and the command in force; return its time [s]."""

        def act() -> None:
            self._kept = self._sim.snapshot(), self._inbox.state, self.now

        self._loop.between_steps(act)
        return self._sim.time

    def restore(self) -> None:
        """Return to the state that was kept last; time goes on, parameters stay.

        Raises:
            InvalidInput: nothing was kept.
        """
        if self._kept is None:
            raise InvalidInput('no snapshot to return to: call ~/snapshot first')
        snapshot, command, time = self._kept

        def act() -> None:
            resume(self._sim, snapshot, self._next_time)
            self._inbox.state = command
            self._inbox.shift(self.now - time)
            self._loop.begin_anew()

        self._loop.between_steps(act)

    @property
    def _next_time(self) -> float:
        return self._sim.time + self._sim.time_step


def _check_that_it_floats(part: RobotPart) -> None:
    if not part.robot.floating_base:
        name = part.name or part.robot.name
        raise InvalidInput(f'the base of {name} is fixed: it cannot be placed')


def yaw_of(quaternion: Array) -> float:
    """Return the angle about z [rad] of a quaternion x, y, z, w, or raise InvalidInput."""
    x, y, z, w = unit_quaternion(quaternion).tolist()
    return atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def unit_quaternion(quaternion: Array) -> Array:
    """Return a quaternion of norm 1, or raise InvalidInput where it is not nearly so."""
    norm = hypot(*quaternion)
    if not abs(norm - 1.0) <= 1e-3:  # NaN too
        raise InvalidInput(f'quaternion {quaternion.tolist()} has norm {norm:g}: expected 1')
    return np.asarray(quaternion / norm)


def bounded(name: str, values: Array) -> Array:
    """Return numbers that can be a position or a velocity, or raise InvalidInput."""
    if not (np.abs(values) <= FARTHEST).all():  # NaN too
        raise InvalidInput(
            f'{name} = {values.tolist()}: expected finite numbers, at most {FARTHEST:g}'
        )
    return values


def _in_base(quaternion: Array, twist: Array) -> Array:
    """Return a twist in world axes in those of a base with this attitude."""
    vector, w = -quaternion[:3], quaternion[3]
    return np.concatenate(
        [
            part + 2.0 * np.cross(vector, np.cross(vector, part) + w * part)
            for part in (twist[:3], twist[3:])
        ]
    )
