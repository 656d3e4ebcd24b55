"""Inputs of the node: messages, services of standard types, and changes of state.

A new topic is a line in `Subscriptions` and its callback. A state that was set, not reached by a
step, gets a stamp of its own: it takes one tick, except where time itself is set back. It is
published at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import atan2, hypot

import numpy as np
from geometry_msgs.msg import PoseWithCovarianceStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, Int16MultiArray
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models._null_space import NullSpace
from contact_sim.errors import ContactSimError, InvalidInput, shortened
from contact_sim.robot._contact_points import contact_point_indices
from contact_sim.robot._several_robots import RobotPart
from contact_sim.ros._commands import CommandBuffer, CommandState, UncheckedPoint
from contact_sim.ros._conversions import quaternion_values, stamp_nanoseconds, vector_values
from contact_sim.ros._factory import standing_at, start_configuration
from contact_sim.ros._lockstep_socket import Robot
from contact_sim.ros._loop import Loop, StepRequest
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._robots import effort_order
from contact_sim.simulation._resuming import resume
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot
from contact_sim.topics._table import nanoseconds, own_topic

FARTHEST = 1e5
"""Bound of positions and velocities that are set [m], [m/s], [rad/s]."""
EFFORTS = 'joint_group_effort_controller'
"""Namespace of the topics of the controllers that the field's walking packages command."""
MANY = QoSProfile(depth=1000)
"""Reliable, with room for the messages that arrive while callbacks wait for the end of a step."""
LARGE = QoSProfile(depth=10)
"""For trajectories: the last replaces those before, and each place keeps the largest it had."""


# -------------------------------------------------------------------- messages


class Subscriptions:
    """Subscriptions of a robot; a message that cannot be used is dropped with a warning."""

    def __init__(
        self, node: Node, part: RobotPart, control: StateControl, namespace: str | None = None
    ) -> None:
        self._node, self._log, self._control = node, node.get_logger(), control
        loop = control.loop
        self._commands, self._lockstep, self._pushes = loop.commands, loop.lockstep, loop.pushes
        self.follow(part)
        where = part.name if namespace is None else namespace
        subscriptions = {
            'joint_commands': (JointState, self._on_joint_command),
            f'{EFFORTS}/commands': (Float64MultiArray, self._on_efforts),
            f'{EFFORTS}/joint_trajectory': (JointTrajectory, self._on_trajectory),
            'joint_trajectory': (JointTrajectory, self._on_trajectory),
            '~/lockstep_ack': (Header, self._on_acknowledgement),
            '~/support': (Int16MultiArray, self._on_support),
            'external_wrench': (WrenchStamped, self._on_push),
            'initialpose': (PoseWithCovarianceStamped, self._on_initial_pose),
            '~/set_odom': (Odometry, self._on_odom),
        }
        self._subscriptions = [
            node.create_subscription(
                kind, own_topic(where, topic, node.get_name()), callback,
                LARGE if kind is JointTrajectory else MANY,
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
            for topic, (kind, callback) in subscriptions.items()
        ]  # fmt: skip

    def follow(self, part: RobotPart) -> None:
        """Command the same robot at another place among all."""
        self._part = part
        self._support = SupportCommand(self._control.sim, self._control.loop, part)
        self._effort_joints = effort_order(part, self._control.parameters.settings)

    def end(self) -> None:
        """Subscribe to nothing any more."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def on_socket(self) -> Robot:
        """Return what takes answers on the lockstep socket, as those on topics."""
        return Robot(
            command=lambda data: self._on_joint_command(deserialize_message(data, JointState)),
            acknowledge=lambda data: self._on_acknowledgement(deserialize_message(data, Header)),
        )

    def _on_joint_command(self, message: JointState) -> None:
        self._warn(
            self._commands.take_joint_state(
                [self._part.qualified_name(name) for name in message.name], message.position,
                message.velocity, message.effort, stamp_nanoseconds(message.header.stamp),
            )
        )  # fmt: skip

    def _on_efforts(self, message: Float64MultiArray) -> None:
        self._warn(self._commands.take_efforts(message.data, self._effort_joints))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        points = [
            UncheckedPoint(
                stamp_nanoseconds(point.time_from_start), point.positions, point.velocities,
                point.accelerations, point.effort,
            )
            for point in message.points
        ]  # fmt: skip
        self._warn(
            self._commands.take_trajectory(
                [self._part.qualified_name(name) for name in message.joint_names], points,
                stamp_nanoseconds(message.header.stamp), self._control.now, self._part.joints,
            )
        )  # fmt: skip

    def _on_acknowledgement(self, message: Header) -> None:
        stamp, joints = stamp_nanoseconds(message.stamp), self._part.joints
        self._attempt(lambda: self._lockstep.acknowledge(message.frame_id, stamp, joints))

    def _on_support(self, message: Int16MultiArray) -> None:
        self._warn(self._support.take(message.data))

    def _on_push(self, message: WrenchStamped) -> None:
        wrench, header = message.wrench, message.header
        self._warn(
            self._pushes.take(
                header.frame_id, stamp_nanoseconds(header.stamp),
                vector_values(wrench.force), vector_values(wrench.torque), self._part.prefix,
            )
        )  # fmt: skip

    def _on_initial_pose(self, message: PoseWithCovarianceStamped) -> None:
        """Stand the robot where RViz's '2D Pose Estimate' points."""
        pose = message.pose.pose
        turned = np.array(quaternion_values(pose.orientation))
        x, y = pose.position.x, pose.position.y
        self._attempt(lambda: self._control.put_at(self._part, x, y, yaw_of(turned)))

    def _on_odom(self, message: Odometry) -> None:
        """Give the base the pose and the twist of a message like those on odom."""
        pose, twist = message.pose.pose, message.twist.twist
        self._attempt(
            lambda: self._control.place(
                self._part,
                np.array(vector_values(pose.position)),
                np.array(quaternion_values(pose.orientation)),
                np.array([*vector_values(twist.linear), *vector_values(twist.angular)]),
            )
        )

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except ContactSimError as error:
            self._warn(str(error))

    def _warn(self, refusal: str | None) -> None:
        if refusal is not None:
            self._log.warning(f'dropped: {shortened(refusal)}', throttle_duration_sec=1.0)


class SupportCommand:
    """~/support: the feet of one robot that the contact model null_space holds.

    A message has one number per foot in the order of robot.feet, as on `foot_contacts`, or one per
    contact point in the order of robot.contact_points; those that are not 0 are held. It stays in
    force until the next message, or until a parameter of the contact model is set. The feet of
    other robots stay as they are, at first all held.
    """

    def __init__(self, sim: Simulator, loop: Loop, part: RobotPart) -> None:
        self._sim, self._loop = sim, loop
        points = part.contact_points[: len(part.robot.contact_points)]
        self._feet = tuple(part.qualified_name(foot.name) for foot in part.robot.feet)
        self._points = tuple(str(index) for index in points)
        self._own = frozenset(points.tolist())

    def take(self, flags: Sequence[int]) -> str | None:
        """Hold the feet whose number is not 0; return why it was refused, or None."""
        names = self._feet if len(flags) == len(self._feet) else self._points
        if len(flags) != len(names):
            return (
                f'~/support: {len(flags)} numbers, expected one for each of the '
                f'{len(self._feet)} feet {", ".join(self._feet)}'
            )
        feet = tuple(name for name, flag in zip(names, flags, strict=True) if flag)
        try:
            self._loop.between_steps(lambda: self._set_support(feet))
        except ContactSimError as error:
            return str(error)
        return None

    def _set_support(self, feet: tuple[str, ...]) -> None:
        model = self._sim.model
        if not isinstance(model, NullSpace):
            raise InvalidInput(
                f'~/support: the contact model is {model.name}; only null_space is given feet'
            )
        before = asdict(model.parameters)
        robot = self._sim.robot
        all_feet, points = robot.feet, robot.contact_points
        every = [foot.name for foot in all_feet]
        held_by_others = [
            name
            for name in (before['feet'] if before['support'] == 'given' else every)
            if not self._own.issuperset(contact_point_indices('foot', name, all_feet, points))
        ]
        settings = before | {'support': 'given', 'feet': (*held_by_others, *feet)}
        if settings != before:
            self._sim.contact_model = NullSpace(**settings)  # type: ignore[assignment]


# -------------------------------------------------------------------- services


class Services:
    """Services of standard types; commands are taken while one is under way."""

    def __init__(self, node: Node, control: StateControl) -> None:
        self._node, self._control = node, control
        self._sim, self._loop = control.sim, control.loop
        group = MutuallyExclusiveCallbackGroup()  # of their own, so that commands are taken
        end_pushes = partial(self._loop.between_steps, self._loop.pushes.clear)
        node.create_service(SetBool, '~/pause', self._on_pause, callback_group=group)
        node.create_service(Trigger, '~/step', self._on_step, callback_group=group)
        for name, action, text in (
            ('reset', control.reset, 'standing at t = {:.9g} s; time goes on'),
            ('reset_time', control.reset_time, 't = {:.9g} s'),
            ('snapshot', control.snapshot, 'state at t = {:.9g} s kept'),
            ('restore', control.restore, 'restored at t = {:.9g} s; time goes on'),
            ('end_pushes', end_pushes, 'nothing pushes any more'),
        ):
            callback = self._answering(action, text)
            node.create_service(Trigger, f'~/{name}', callback, callback_group=group)

    async def take_steps(self, count: int, after_step: Callable[[int], bool] | None = None) -> str:
        """Take and publish steps; return why not all were taken, '' if they were.

        Other callbacks run meanwhile. `after_step` is called with the number of steps left, in
        the thread of the loop; no more are taken when it returns False.
        """
        done = Future()

        def finish(reason: str) -> None:
            done.set_result(reason)
            if self._node.executor is not None:
                self._node.executor.wake()

        self._loop.request_steps(StepRequest(count, finish, after_step))
        await done
        return str(done.result())

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._loop.between_steps(lambda: self._loop.set_paused(request.data))
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _answering(
        self, action: Callable[[], object], text: str
    ) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
        """Return a callback that answers with `text` and the time after `action`, or its error."""

        def callback(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                action()
                response.message, response.success = text.format(self._sim.time), True
            except ContactSimError as error:
                response.message, response.success = str(error), False
            return response

        return callback

    async def _on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Answer after the last step has been published; commands are taken meanwhile."""
        if not self._loop.paused:
            response.success, response.message = False, 'not paused: call ~/pause first'
            return response
        count = self._control.parameters.settings[''].step_count
        reason = await self.take_steps(count)
        response.success = not reason
        response.message = reason or f'{count} steps, t = {self._sim.time:.9g} s'
        return response


# -------------------------------------------------------------------- changes of state


class StateControl:
    """Resets, poses and snapshots, each made between two steps."""

    def __init__(
        self, sim: Simulator, loop: Loop, commands: CommandBuffer, parameters: ParameterServer
    ) -> None:
        self.sim, self.loop, self.parameters, self._commands = sim, loop, parameters, commands
        self._snapshot: tuple[Snapshot, CommandState, int] | None = None
        self._no_snapshot = 'call ~/snapshot first'
        # changes the start (nq,) of robots that do not begin in their reference pose on a ground
        self.at_start: Callable[[Array, Terrain], Array] = lambda q, ground: q
        self.next_ground: Terrain | None = None  # from the next reset on; None: the present one

    @property
    def now(self) -> int:
        """Simulated time [ns]."""
        return nanoseconds(self.sim.time)

    def reset(self, time_too: bool = False, height: float | None = None) -> None:
        """Hold the reference pose at rest, at a gap of `height` [m]; `time_too` sets time back."""
        ground, settings = self.next_ground or self.sim.terrain, self.parameters.settings
        if height is not None:
            settings = settings | {'': replace(settings[''], initial_height=height)}
        q = self.at_start(start_configuration(self.sim, settings, terrain=ground), ground)

        def act() -> None:
            time = self.sim.time_step if time_too else self._next_time  # 0 is 'no time' to ROS
            self.sim.reset(q, time=time, terrain=ground)
            self._commands.hold(self.sim.robot.joint_positions(q))
            self.loop.announce_new_state()

        self.loop.between_steps(act)

    def reset_time(self) -> None:
        """Set time back to the first stamp; the robot stays as it is."""

        def act() -> None:
            before = self.now
            resume(self.sim, self.sim.snapshot(), self.sim.time_step)
            self._commands.shift(self.now - before)
            self.loop.announce_new_state(failure_ends=False)

        self.loop.between_steps(act)

    def place(
        self,
        part: RobotPart,
        position: Array | None = None,
        quaternion: Array | None = None,
        twist: Array | None = None,
        twist_in_world: bool = False,
    ) -> None:
        """Put the base of a robot elsewhere; joints, and other robots, go on as they are.

        Position [m] (3,), quaternion x, y, z, w (4,) and twist, linear and angular [m/s], [rad/s]
        (6,), stay where they are None. The twist is in the axes of the base or of the world.
        """
        _check_floating(part)
        position = None if position is None else bounded('position', position)
        quaternion = None if quaternion is None else unit_quaternion(quaternion)
        twist = None if twist is None else bounded('twist', twist)

        def act() -> None:
            q, v = self.sim.q.copy(), self.sim.v.copy()
            own_q, own_v = q[part.q], v[part.v]  # views
            if position is not None:
                own_q[:3] = position
            if quaternion is not None:
                own_q[3:7] = quaternion
            if twist is not None:
                own_v[:6] = _in_base(own_q[3:7], twist) if twist_in_world else twist
            self.sim.reset(q, v, time=self._next_time)
            self.loop.announce_new_state()

        self.loop.between_steps(act)

    def put_at(self, part: RobotPart, x: float, y: float, yaw: float) -> None:
        """Stand one robot in the reference pose elsewhere on the ground, at rest."""
        _check_floating(part)
        where = bounded('initialpose', np.array([x, y, yaw])).tolist()
        own = standing_at(part, self.parameters.settings, self.sim.terrain, *where)

        def act() -> None:
            q, v = self.sim.q.copy(), self.sim.v.copy()
            q[part.q], v[part.v] = own, 0.0
            q = self.sim.assembled(q)
            self.sim.reset(q, v, time=self._next_time)
            self._commands.hold(part.robot.joint_positions(q[part.q]), part.joints)
            self.loop.announce_new_state()

        self.loop.between_steps(act)

    def snapshot(self) -> None:
        """Save the state and the commands in force."""

        def act() -> None:
            self._snapshot = self.sim.snapshot(), self._commands.state, self.now

        self.loop.between_steps(act)

    def forget_snapshot(self) -> None:
        """Forget the state that was saved: it is of other robots."""
        if self._snapshot is not None:
            self._snapshot = None
            self._no_snapshot = 'it is of before robots came or went; call ~/snapshot again'

    def restore(self) -> None:
        """Return to the state that was saved last; time goes on, parameters stay."""
        if self._snapshot is None:
            raise InvalidInput(f'no snapshot to return to: {self._no_snapshot}')
        snapshot, command, time = self._snapshot

        def act() -> None:
            resume(self.sim, snapshot, self._next_time)
            self._commands.state = command
            self._commands.shift(self.now - time)
            self.loop.announce_new_state()

        self.loop.between_steps(act)

    @property
    def _next_time(self) -> float:
        return self.sim.time + self.sim.time_step


def _check_floating(part: RobotPart) -> None:
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
