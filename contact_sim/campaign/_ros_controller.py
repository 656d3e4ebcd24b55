"""A ROS program as the controller of a trial: it answers `joint_states` with `joint_commands`.

The trial publishes the state of a step on /clock, odom, imu/data and joint_states, and waits until
every joint has a command, or an acknowledgement, that bears its stamp, as the node does in
lockstep: the run is the same on a slow and on a fast machine, and as fast as the program answers.
With a rate, states go out at its multiples only, and the commands act until the next one. There is
no simulation node; the program sees the topics of one. Each trial starts the program anew, on a
ROS domain of its own.
"""

from __future__ import annotations

import shlex
import tempfile
import time as clock
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import rclpy
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header, String

from contact_sim._types import Array
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._model import RobotModel
from contact_sim.ros._client import environment
from contact_sim.ros._commands import CommandBuffer
from contact_sim.ros._conversions import JointValues, joint_values, set_stamp, stamp_nanoseconds
from contact_sim.ros._processes import Process, isolated_environment, ros_arguments
from contact_sim.simulation._simulator import Simulator
from contact_sim.topics._messages import Constant, Message, encoder, header
from contact_sim.topics._table import NODE, nanoseconds

START_TIMEOUT, PATIENCE = 120.0, 10.0
"""Wall seconds until the program has appeared and sent its first command, and for every other."""
REPEAT = 0.5
"""Wall seconds after which a state that got no answer is published once more."""
SLICE = 0.1
"""Longest wait for messages [s] after which the process is looked at."""
EVERY = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OUTPUT_TAIL = 1000
"""Characters at the end of its output that an error quotes."""
ROUNDING = 1e-6
"""Shares of a period by which rounding may move an instant."""
STATES = {
    '/clock': Clock, 'odom': Odometry, 'imu/data': Imu, 'joint_states': JointState,
}  # fmt: skip
"""Topics of a state in the order in which they are sent; each only where somebody listens."""
NO_COVARIANCE = np.zeros(36)


class RosControllerError(ContactSimError, RuntimeError):
    """A program that did not start, ended, or did not answer."""


class RosController:
    """A program in lockstep with a trial.

    Args:
        command: a Python module, which gets `--ros-args` and the robot as parameters, or a
            command line, which is run as it is.
        source: name of the robot in the catalogue, or path of its URDF.
        robot: the same, loaded.
        rate: states per simulated second [Hz]; None: one in every step.
        feet: links that are its feet; (): those that `source` says.
    """

    def __init__(
        self, command: str, source: str, robot: RobotModel, rate: float | None = None,
        feet: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._program, self._robot = program_of(command, source, feet), robot
        self._rate = rate
        self.velocity: Array | tuple[float, ...] = (0.0, 0.0, 0.0)
        """Commanded forward and sideways speed [m/s] and turning rate [rad/s], for cmd_vel."""
        self._run: _Run | None = None
        self._buffer = _buffer(robot)
        self._before: tuple[float, Array, Array] | None = None  # time, orientation, velocity
        self._offset = 0.0
        parts = (robot, robot.passive_joints) if robot.passive_joint_names else (robot,)
        self._parts = parts
        self._names = Constant([name for part in parts for name in part.joint_names])

    def check(self, time_step: float) -> None:
        """Raise InvalidInput where there is no whole number of time steps [s] in a period."""
        if self._rate is None:
            return
        steps = 1.0 / (self._rate * time_step)
        if abs(steps - round(steps)) > ROUNDING * steps or round(steps) == 0:
            raise InvalidInput(
                f'ros@{self._rate:g}: its period of {1e3 / self._rate:.6g} ms is no whole number '
                f'of time steps of {1e3 * time_step:.6g} ms: choose another rate or time step'
            )

    def reset(self, sim: Simulator) -> None:
        """Start the program anew and wait until it is there."""
        self.close()
        self.check(sim.time_step)
        # to ROS, time 0 is that of a clock which has not started: all stamps are a period later
        self._offset = sim.time_step if self._rate is None else 1.0 / self._rate
        self._buffer, self._before = _buffer(self._robot), None
        self._run = run = _Run(self._program, self._robot.joint_names)
        self._finish = weakref.finalize(self, run.close)
        run.send_description(self._robot)
        run.wait(run.connected, 'its topics joint_states and joint_commands', START_TIMEOUT)
        run.connect_velocity()

    def effort(self, time: float, q: Array, v: Array) -> JointCommand:
        """Return the command: at an instant the answer to this state, else the last one."""
        if self._run is None:
            raise RosControllerError('a ROS controller begins with reset')
        before, self._before = self._before, (time, q[3:7].copy(), v[:3].copy())
        if self._is_instant(time):
            self._exchange(self._run, time, q, v, before)
        return self._buffer.current

    def _is_instant(self, time: float) -> bool:
        if self._rate is None:
            return True
        periods = time * self._rate
        return abs(periods - round(periods)) < ROUNDING * max(periods, 1.0)

    def _exchange(
        self, run: _Run, time: float, q: Array, v: Array, before: tuple[float, Array, Array] | None
    ) -> None:
        """Publish the state, wait until all joints are answered for, and take the commands."""
        stamp = nanoseconds(time + self._offset)
        run.send_velocity(time + self._offset, self._robot.base_frame, self.velocity)
        answers = run.answer(time, stamp, lambda: self._messages(run, stamp, q, v, before))
        for message in answers:
            refused = self._buffer.take_joint_state(message.name, *message[2:])
            if refused is not None:
                raise RosControllerError(f'joint_commands at t = {time:.4f} s: {refused}')

    def _messages(
        self, run: _Run, stamp: int, q: Array, v: Array, before: tuple[float, Array, Array] | None
    ) -> dict[str, bytes]:
        """Return the serialised messages that somebody listens to."""
        base = self._robot.base_frame
        content: dict[str, Callable[[], Message]] = {
            '/clock': lambda: {'clock': stamp},
            'odom': lambda: {
                'header': header(stamp, 'odom'), 'child_frame_id': base,
                'pose': np.concatenate([q[:7], NO_COVARIANCE]),
                'twist': np.concatenate([v[:6], NO_COVARIANCE]),
            },
            'imu/data': lambda: {
                'header': header(stamp, base), 'orientation': q[3:7],
                'angular_velocity': v[3:6],
                'linear_acceleration': self._specific_force(before),
            },
            'joint_states': lambda: {
                'header': header(stamp), 'name': self._names,
                'position': np.concatenate([part.joint_positions(q) for part in self._parts]),
                'velocity': np.concatenate([part.joint_velocities(v) for part in self._parts]),
            },
        }  # fmt: skip
        return {topic: run.encode[topic](content[topic]()) for topic in run.listened()}

    def _specific_force(self, before: tuple[float, Array, Array] | None) -> Array:
        """Return that of the base [m/s²], shape (3,), from its velocity in the last two steps."""
        assert self._before is not None  # it is set in every step
        time, quaternion, velocity = self._before
        turn = pin.Quaternion(quaternion).toRotationMatrix()
        rate = np.zeros(3)
        if before is not None and time > before[0]:
            change = turn @ velocity - pin.Quaternion(before[1]).toRotationMatrix() @ before[2]
            rate = change / (time - before[0])
        return np.asarray(turn.T @ (rate - self._robot.pinocchio_model.gravity.linear))

    def close(self) -> None:
        """End the program."""
        if self._run is not None:
            self._finish()
            self._run = None


def program_of(
    command: str, source: str, feet: Sequence[str] = ()
) -> tuple[str | list[str], list[str]]:
    """Return what is run, and its arguments: a module gets the robot as parameters."""
    words = shlex.split(command)
    if len(words) > 1 or '/' in words[0]:
        return words, []
    parameters: dict[str, object] = {'robot': source}
    if '/' in source or source.endswith(('.urdf', '.xacro', '.xml', '.mjcf', '.sdf')):
        # whether its meshes are there was asked before the trial
        parameters = {'urdf_path': source, 'check_meshes': False}
    if feet:
        parameters['feet'] = list(feet)
    return words[0], ros_arguments(parameters)


def _buffer(robot: RobotModel) -> CommandBuffer:
    pose = robot.joint_positions(robot.reference_configuration('standing'))
    return CommandBuffer(robot.joint_names, pose, *robot.default_gains, robot.continuous_joints)


class _Run:
    """One run of the program, and a node in this process that talks to it.

    Messages are taken from a wait set and not by an executor, which costs more than the rest of a
    step.
    """

    def __init__(self, program: tuple[str | list[str], list[str]], joints: Sequence[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='contact_sim_controller_')
        domain = isolated_environment() | {'ROS_LOG_DIR': self._folder.name}
        self._context = rclpy.Context()
        with environment(domain):
            rclpy.init(args=[], context=self._context)
            self._node = Node(
                NODE, context=self._context, enable_rosout=False, start_parameter_services=False
            )
        self._publishers = {
            topic: self._node.create_publisher(kind, topic, EVERY)
            for topic, kind in STATES.items()
        }
        self.encode = {topic: encoder(_type_name(kind)) for topic, kind in STATES.items()}
        """Topic to the function that serialises its messages."""
        self._description = self._node.create_publisher(String, 'robot_description', LATCHED)
        self._joints = frozenset(joints)
        self._stamp = -1  # of the state that waits for its answer [ns]
        self._missing: set[str] = set()  # joints without an answer to it
        self._answers: list[JointValues] = []
        self._other: int | None = None  # last stamp of a command for another state [ns]
        self._answered = False  # a state got its answer before
        self._sent: tuple[float, ...] | None = None  # velocity that needs no repetition
        self._velocity: Any = None  # publisher of cmd_vel, where the program listens to it
        self._subscriptions = [
            self._node.create_subscription(
                JointState, 'joint_commands', self._on_command, EVERY, raw=True
            ),
            self._node.create_subscription(
                Header, f'{NODE}/lockstep_ack', self._on_acknowledgement, EVERY
            ),
        ]
        self._wait_set = rclpy_implementation.WaitSet(
            len(self._subscriptions), 0, 0, 0, 0, 0, self._context.handle
        )
        try:
            log = Path(self._folder.name, 'output.log')
            self._process = Process(*program, domain, log, own_group=True)
        except OSError as error:
            self._end_node()
            words = [program[0]] if isinstance(program[0], str) else program[0]
            raise RosControllerError(f'{shlex.join(words)}: cannot be run: {error}') from error

    def send_description(self, robot: RobotModel) -> None:
        """Publish the URDF for whoever wants it."""
        self._description.publish(String(data=robot.description or ''))

    def connected(self) -> bool:
        """Return whether somebody listens to the joints, and somebody commands them."""
        listens: int = self._publishers['joint_states'].get_subscription_count()
        commands: int = self._node.count_publishers('joint_commands')
        return min(listens, commands) > 0

    def listened(self) -> list[str]:
        """Return the topics of a state to which somebody listens."""
        return [
            topic
            for topic, publisher in self._publishers.items()
            if publisher.get_subscription_count()
        ]

    def connect_velocity(self) -> None:
        """Make a publisher of cmd_vel of the type that the program listens to, if it does."""
        kinds = {f'geometry_msgs/msg/{kind.__name__}': kind for kind in (Twist, TwistStamped)}
        for listener in self._node.get_subscriptions_info_by_topic('cmd_vel'):
            if listener.topic_type in kinds:
                self._velocity = self._node.create_publisher(
                    kinds[listener.topic_type], 'cmd_vel', EVERY
                )
                self.wait(self._velocity.get_subscription_count, 'cmd_vel', START_TIMEOUT)
                return

    def send_velocity(self, time: float, frame: str, velocity: Sequence[float] | Array) -> None:
        """Publish the commanded velocity, and wait until it is there: it acts in this step."""
        if self._velocity is None or tuple(velocity) == self._sent:
            return
        stamped = self._velocity.msg_type is TwistStamped
        message = self._velocity.msg_type()
        twist = message.twist if stamped else message
        twist.linear.x, twist.linear.y, twist.angular.z = (float(x) for x in velocity)
        if stamped:
            set_stamp(message.header.stamp, time)
            message.header.frame_id = frame
        else:
            self._sent = tuple(velocity)
        self._velocity.publish(message)
        self._velocity.wait_for_all_acked(Duration(seconds=PATIENCE))

    def answer(
        self, time: float, stamp: int, messages: Callable[[], Mapping[str, bytes]]
    ) -> list[JointValues]:
        """Publish a state and return the commands with its stamp; all joints are answered for.

        `messages` returns what is published of it, by topic.
        """
        self._stamp, self._missing, self._answers = stamp, set(self._joints), []
        patience = PATIENCE if self._answered else START_TIMEOUT
        end = clock.monotonic() + patience
        while self._missing:
            if clock.monotonic() > end:
                raise RosControllerError(self._silence(time, patience))
            for topic, data in messages().items():  # anew: somebody else may listen by now
                self._publishers[topic].publish(data)
            self.wait(lambda: not self._missing, '', REPEAT, False)
        self._answered = True
        return self._answers

    def _silence(self, time: float, patience: float) -> str:
        """Return what is missing at the end of the patience."""
        some = len(self._missing) < len(self._joints)
        of = f' of {", ".join(sorted(self._missing))}' if some else ''
        text = (
            f'no joint_commands{of} with the stamp of the state at t = {time:.4f} s, '
            f'{1e-9 * self._stamp:.9g} s, within {patience:g} s'
        )
        if self._other is not None:
            text += f'; the last one that came is stamped {1e-9 * self._other:.9g} s'
        return text + self._said()

    def wait(
        self, condition: Callable[[], object], what: str, timeout: float, strict: bool = True
    ) -> None:
        """Take messages until a condition holds."""
        end = clock.monotonic() + timeout
        while not condition():
            left = end - clock.monotonic()
            if left <= 0.0:
                if strict:
                    raise RosControllerError(f'waited {timeout:g} s for {what}{self._said()}')
                return
            if not self._take(min(left, SLICE)) and not self._process.running:
                raise RosControllerError(f'the program has ended{self._said()}')

    def _take(self, timeout: float) -> bool:
        """Hand messages to their callbacks as soon as there are any; False where none came."""
        waiting = self._wait_set
        waiting.clear_entities()
        for subscription in self._subscriptions:
            waiting.add_subscription(subscription.handle)
        waiting.wait(int(1e9 * timeout))
        taken = False
        for k, subscription in enumerate(self._subscriptions):
            if not waiting.is_ready('subscription', k):
                continue
            message = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if message is not None:  # with more of them the next wait ends at once
                taken = True
                subscription.callback(message[0])
        return taken

    def close(self) -> None:
        """End the program and the node."""
        self._process.stop()
        self._end_node()

    def _end_node(self) -> None:
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)
        self._folder.cleanup()

    def _on_command(self, data: bytes) -> None:
        message = joint_values(data)
        if self._is_for_state(message.stamp):
            unknown = not self._joints.issuperset(message.name)
            if unknown or not self._missing.isdisjoint(message.name):  # a repetition acts once
                self._answers.append(message)
            self._missing.difference_update(self._joints if unknown else message.name)

    def _on_acknowledgement(self, message: Header) -> None:
        if message.frame_id:
            raise RosControllerError(
                f'lockstep_ack of the controller {message.frame_id!r}: a trial knows none by '
                'name; leave frame_id empty'
            )
        if self._is_for_state(stamp_nanoseconds(message.stamp)):
            self._missing.clear()

    def _is_for_state(self, stamp: int) -> bool:
        if stamp != self._stamp:
            self._other = stamp
        return stamp == self._stamp

    def _said(self) -> str:
        text = self._process.output()[-OUTPUT_TAIL:].strip()
        return f'; it wrote:\n{text}' if text else ''


def _type_name(kind: type) -> str:
    """Return `package/Name` of a message class."""
    return f'{kind.__module__.partition(".")[0]}/{kind.__name__}'
