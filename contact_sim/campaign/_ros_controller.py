"""A ROS program as the controller of a trial: it answers `joint_states` with `joint_commands`.

The trial publishes the state of a step on /clock, odom, imu/data and joint_states, and waits for
the command that bears its stamp, as the node does in lockstep: the run is the same on a slow and
on a fast machine, and as fast as the program answers. There is no simulation node; the program
sees the topics of one. Each trial starts the program anew, on a ROS domain of its own.
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
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from contact_sim._types import Array
from contact_sim.errors import ContactSimError
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._model import RobotModel
from contact_sim.ros._client import environment
from contact_sim.ros._commands import CommandBuffer
from contact_sim.ros._conversions import set_quaternion, set_stamp, set_vector, stamp_nanoseconds
from contact_sim.ros._processes import Process, isolated_environment, ros_arguments
from contact_sim.simulation._simulator import Simulator
from contact_sim.topics._table import NODE, nanoseconds

START_TIMEOUT, PATIENCE = 120.0, 10.0
"""Wall seconds until the program has appeared, and until a command is there."""
REPEAT = 0.5
"""Wall seconds after which a state that got no answer is published once more."""
EVERY = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OUTPUT_TAIL = 1000
"""Characters at the end of its output that an error quotes."""


class RosControllerError(ContactSimError, RuntimeError):
    """A program that did not start, ended, or did not answer."""


class RosController:
    """A program in lockstep with a trial.

    Args:
        command: a Python module, which gets `--ros-args` and the robot as a parameter, or a
            command line, which is run as it is.
        source: name of the robot in the catalogue, or path of its URDF.
        robot: the same, loaded.
    """

    def __init__(self, command: str, source: str, robot: RobotModel) -> None:
        self._words, self._source, self._robot = shlex.split(command), source, robot
        self.velocity: Array | tuple[float, ...] = (0.0, 0.0, 0.0)
        """Commanded forward and sideways speed [m/s] and turning rate [rad/s], for cmd_vel."""
        self._run: _Run | None = None
        self._buffer = _buffer(robot)
        self._before: tuple[float, Array] | None = None

    def reset(self, sim: Simulator) -> None:
        """Start the program anew and wait until it is there."""
        self.close()
        self._buffer, self._before = _buffer(self._robot), None
        self._run = run = _Run(self._words, self._source)
        self._finish = weakref.finalize(self, run.close)
        run.send_description(self._robot)
        run.wait(run.connected, 'its topics joint_states and joint_commands', START_TIMEOUT)
        run.connect_velocity()

    def effort(self, time: float, q: Array, v: Array) -> JointCommand:
        """Publish the state, wait for the command that bears its stamp, and return it."""
        run, robot = self._run, self._robot
        if run is None:
            raise RosControllerError('a ROS controller begins with reset')
        # specific force of the base from the change of its velocity in world axes
        turn = pin.Quaternion(np.array(q[3:7])).toRotationMatrix()
        linear = turn @ v[:3]
        rate = np.zeros(3)
        if self._before is not None and time > self._before[0]:
            rate = (linear - self._before[1]) / (time - self._before[0])
        self._before = time, linear
        force = turn.T @ (rate - robot.pinocchio_model.gravity.linear)
        run.send_velocity(time, robot.base_frame, self.velocity)
        message = run.answer(time, self._messages(time, q, v, force))
        refused = self._buffer.take_joint_state(
            message.name, message.position, message.velocity, message.effort
        )
        if refused is not None:
            raise RosControllerError(f'joint_commands at t = {time:.4f} s: {refused}')
        return self._buffer.current

    def _messages(self, time: float, q: Array, v: Array, force: Array) -> dict[str, Any]:
        """Return clock, odometry, IMU and joint states, in the order in which they are sent."""
        robot, base = self._robot, self._robot.base_frame
        now, odom, imu, joints = Clock(), Odometry(), Imu(), JointState()
        set_stamp(now.clock, time)
        for message in (odom, imu, joints):
            set_stamp(message.header.stamp, time)
        odom.header.frame_id, odom.child_frame_id, imu.header.frame_id = 'odom', base, base
        set_vector(odom.pose.pose.position, q[:3])
        set_quaternion(odom.pose.pose.orientation, q[3:7])
        set_vector(odom.twist.twist.linear, v[:3])
        set_vector(odom.twist.twist.angular, v[3:6])
        set_quaternion(imu.orientation, q[3:7])
        set_vector(imu.angular_velocity, v[3:6])
        set_vector(imu.linear_acceleration, force)
        parts = (robot, robot.passive_joints) if robot.passive_joint_names else (robot,)
        joints.name = [name for part in parts for name in part.joint_names]
        joints.position = np.concatenate([part.joint_positions(q) for part in parts]).tolist()
        joints.velocity = np.concatenate([part.joint_velocities(v) for part in parts]).tolist()
        return {'/clock': now, 'odom': odom, 'imu/data': imu, 'joint_states': joints}

    def close(self) -> None:
        """End the program."""
        if self._run is not None:
            self._finish()
            self._run = None


def _buffer(robot: RobotModel) -> CommandBuffer:
    pose = robot.joint_positions(robot.reference_configuration('standing'))
    return CommandBuffer(robot.joint_names, pose, *robot.default_gains, robot.continuous_joints)


class _Run:
    """One run of the program, and a node in this process that talks to it."""

    def __init__(self, words: list[str], source: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='contact_sim_controller_')
        domain = isolated_environment() | {'ROS_LOG_DIR': self._folder.name}
        self._context = rclpy.Context()
        with environment(domain):
            rclpy.init(args=[], context=self._context)
            self._node = Node(NODE, context=self._context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        kinds = {
            '/clock': Clock, 'odom': Odometry, 'imu/data': Imu,
            'joint_states': JointState,
        }  # fmt: skip
        self._publishers = {
            topic: self._node.create_publisher(kind, topic, EVERY) for topic, kind in kinds.items()
        }
        self._description = self._node.create_publisher(String, 'robot_description', LATCHED)
        self._answers: dict[int, JointState] = {}
        self._sent: tuple[float, ...] | None = None  # velocity that needs no repetition
        self._velocity: Any = None  # publisher of cmd_vel, where the program listens to it
        self._node.create_subscription(JointState, 'joint_commands', self._on_command, EVERY)
        robot: dict[str, object] = {
            'urdf_path' if '/' in source or source.endswith('.urdf') else 'robot': source
        }
        module = len(words) == 1 and '/' not in words[0]
        try:
            self._process = Process(
                words[0] if module else words, ros_arguments(robot) if module else (), domain,
                Path(self._folder.name, 'output.log'),
            )  # fmt: skip
        except OSError as error:
            self._end_node()
            raise RosControllerError(f'{shlex.join(words)}: cannot be run: {error}') from error

    def send_description(self, robot: RobotModel) -> None:
        """Publish the URDF for whoever wants it."""
        self._description.publish(String(data=robot.description or ''))

    def connected(self) -> bool:
        """Return whether somebody listens to the joints, and somebody commands them."""
        listens: int = self._publishers['joint_states'].get_subscription_count()
        commands: int = self._node.count_publishers('joint_commands')
        return min(listens, commands) > 0

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

    def answer(self, time: float, messages: Mapping[str, Any]) -> JointState:
        """Publish a state and return the command with its stamp."""
        stamp = nanoseconds(time)
        self._answers = {}
        end = clock.monotonic() + PATIENCE
        while stamp not in self._answers:
            if clock.monotonic() > end:
                raise RosControllerError(
                    f'no joint_commands with the stamp of the state at t = {time:.4f} s within '
                    f'{PATIENCE:g} s{self._said()}'
                )
            for topic, message in messages.items():
                self._publishers[topic].publish(message)
            self.wait(lambda: stamp in self._answers, '', REPEAT, False)
        return self._answers[stamp]

    def wait(
        self, condition: Callable[[], object], what: str, timeout: float, strict: bool = True
    ) -> None:
        """Serve callbacks until a condition holds."""
        end = clock.monotonic() + timeout
        while not condition():
            if not self._process.running:
                raise RosControllerError(f'the program has ended{self._said()}')
            left = end - clock.monotonic()
            if left <= 0.0:
                if strict:
                    raise RosControllerError(f'waited {timeout:g} s for {what}{self._said()}')
                return
            self._executor.spin_once(min(left, 0.1))

    def close(self) -> None:
        """End the program and the node."""
        self._process.stop()
        self._end_node()

    def _end_node(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)
        self._folder.cleanup()

    def _on_command(self, message: JointState) -> None:
        self._answers[stamp_nanoseconds(message.header.stamp)] = message

    def _said(self) -> str:
        text = self._process.output()[-OUTPUT_TAIL:].strip()
        return f'; it wrote:\n{text}' if text else ''
