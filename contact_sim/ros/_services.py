"""Services of standard types, always there: pause, step, reset, snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import atan2, hypot
from typing import Any

import numpy as np
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models._null_space import NullSpace
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.robot._contact_points import points_called
from contact_sim.robot._several_robots import RobotPart
from contact_sim.ros._factory import standing_at, start_configuration
from contact_sim.ros._joint_commands import Commanded, CommandInbox
from contact_sim.ros._loop import Loop, Steps
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.simulation._simulator import Simulator, resume
from contact_sim.simulation._state import Snapshot
from contact_sim.topics._table import nanoseconds

# --- Setting the state anew: resets, poses, snapshots.
#
# A state that no step has led to gets a stamp of its own: it takes one tick, except where time
# itself is set back. It is published at once.

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


# --- ~/support: which feet null_space holds, given while it runs.
#
# One number per foot in the order of robot.feet, as on `foot_contacts`, or one per contact point
# in
# the order of robot.contact_points: not 0 is held. It stays in force until the next message, or
# until a parameter of the contact model is set.


class SupportCommand:
    """Gives sets of feet of one robot to null_space, between two steps.

    Args:
        sim: what is simulated.
        loop: who steps it.
        part: which robot; the feet of others stay as they were given, all held until they are.
    """

    def __init__(self, sim: Simulator, loop: Loop, part: RobotPart) -> None:
        self._sim, self._loop = sim, loop
        points = part.candidates[: len(part.robot.contact_points)]
        self._feet = tuple(part.called(foot.name) for foot in part.robot.feet)
        self._points = tuple(str(index) for index in points)
        self._own = frozenset(points.tolist())

    def take(self, held: Sequence[int]) -> str | None:
        """Hold the feet whose number is not 0; return why it was refused, or None."""
        if len(held) == len(self._feet):
            names = self._feet
        elif len(held) == len(self._points):
            names = self._points
        else:
            return (
                f'~/support: {len(held)} numbers, expected one for each of the '
                f'{len(self._feet)} feet {", ".join(self._feet)}'
            )
        feet = tuple(name for name, flag in zip(names, held, strict=True) if flag)
        refusals: list[str] = []
        self._loop.between_steps(lambda: self._give(feet, refusals))
        return refusals[0] if refusals else None

    def _give(self, feet: tuple[str, ...], refusals: list[str]) -> None:
        model = self._sim.model
        if not isinstance(model, NullSpace):
            refusals.append(
                f'~/support: the contact model is {model.name}; only null_space is given feet'
            )
            return
        now = asdict(model.parameters)
        settings = now | {'support': 'given', 'feet': (*self._of_others(now), *feet)}
        if settings != now:
            self._sim.contact_model = NullSpace(**settings)  # type: ignore[assignment]

    def _of_others(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the feet of other robots that are held."""
        robot = self._sim.robot
        every = [foot.name for foot in robot.feet]
        held = parameters['feet'] if parameters['support'] == 'given' else every
        points, what = robot.contact_points, 'foot'
        return [
            name
            for name in held
            if not self._own.issuperset(points_called(what, name, robot.feet, points))
        ]


# --- Services of standard types, always there: pause, step, reset, snapshot.


class Services:
    """Services under the node's name.

    They have a callback group of their own, so that commands are taken while one is under way.
    """

    def __init__(
        self,
        node: Node,
        sim: Simulator,
        loop: Loop,
        control: StateControl,
        parameters: ParameterServer,
    ) -> None:
        self._node, self._sim, self._loop, self._control = node, sim, loop, control
        self._parameters = parameters
        group = MutuallyExclusiveCallbackGroup()
        node.create_service(SetBool, '~/pause', self._on_pause, callback_group=group)
        node.create_service(Trigger, '~/step', self._on_step, callback_group=group)
        for name, action in {
            'reset': self._reset,
            'reset_time': self._reset_time,
            'snapshot': self._snapshot,
            'restore': self._restore,
            'end_pushes': self._end_pushes,
        }.items():
            node.create_service(Trigger, f'~/{name}', _answering(action), callback_group=group)

    async def take_steps(self, count: int, after_step: Callable[[int], bool] | None = None) -> str:
        """Take steps; return why not all were taken, '' if they were. The last one is published.

        Other callbacks run meanwhile. `after_step` is called with the number of steps left, in
        the thread of the loop; no more are taken when it returns False.
        """
        done = Future()

        def finish(reason: str) -> None:
            done.set_result(reason)
            if self._node.executor is not None:
                self._node.executor.wake()

        self._loop.ask_for_steps(Steps(count, finish, after_step))
        await done
        return str(done.result())

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._loop.between_steps(lambda: self._loop.set_paused(request.data))
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _reset(self) -> str:
        self._control.reset()
        return f'standing at t = {self._sim.time:.9g} s; time goes on'

    def _reset_time(self) -> str:
        self._control.reset_time()
        return f't = {self._sim.time:.9g} s'

    def _snapshot(self) -> str:
        return f'state at t = {self._control.snapshot():.9g} s kept'

    def _restore(self) -> str:
        self._control.restore()
        return f'restored at t = {self._sim.time:.9g} s; time goes on'

    def _end_pushes(self) -> str:
        self._loop.between_steps(self._loop.end_pushes)
        return 'nothing pushes any more'

    async def _on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Answer after the last step has been published; commands are taken meanwhile."""
        if not self._loop.paused:
            response.success, response.message = False, 'not paused: call ~/pause first'
            return response
        count = self._parameters.settings[''].step_count
        reason = await self.take_steps(count)
        response.success = not reason
        response.message = reason or f'{count} steps, t = {self._sim.time:.9g} s'
        return response


def _answering(
    action: Callable[[], str],
) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
    """Return a callback that does something and says what, or why it did not."""

    def callback(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message, response.success = action(), True
        except ContactSimError as error:
            response.message, response.success = str(error), False
        return response

    return callback
