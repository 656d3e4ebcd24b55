"""Controller nodes, which use only topics of the simulator, and their base class.

To write one, derive from ControllerNode, which gets whole states of a robot, and give it a
`command`. Examples: `stance`, `balance`, `trot` and `policy`.
"""

from __future__ import annotations

import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import rclpy
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from contact_sim._types import Array
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.ros._conversions import (
    JointValues,
    OdometryValues,
    joint_values,
    odometry_values,
    seconds,
)
from contact_sim.ros._executor import quickest_executor
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._processes import Interruption, leave
from contact_sim.ros._robots import RobotParameters, named_robot
from contact_sim.topics._table import NANOSECONDS

LATEST = QoSProfile(depth=1)
CMD_VEL_TIMEOUT = 0.5
"""Default of `cmd_vel_timeout` for commands with a stamp [s], as of ros2_controllers."""
LONGEST_WAIT = 0.1
"""Wall seconds after which a controller without messages checks whether it has to end."""


class ControllerNode(Node, ABC):
    """Answers odom and joint_states of one step with joint_commands that bear its stamp.

    A state that comes twice, as lockstep repeats it until the first command, gets the same answer.

    Parameters of the node: which robot it is, named as in the simulation (RobotParameters).

    Attributes:
        robot: the robot that is controlled.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        parameters = ParameterServer(self)
        parameters.declare({'': RobotParameters})
        settings = parameters.settings['']
        self.robot = robot = named_robot(settings.source, settings)
        self._q = robot.reference_configuration().copy()
        self._v = np.zeros(robot.nv)
        self._state: JointValues | None = None
        self._odom: OdometryValues | None = None
        self._answered: tuple[int | bytes, ...] = ()
        self._names: list[str] = []  # of the last state, and where its joints are in q and v
        self._orders: list[list[int]] = []
        self._command = JointState()

    def connect(self) -> None:
        """Appear on the topics, once nothing is left to compile: time may run from now on."""
        self._publisher = self.create_publisher(JointState, 'joint_commands', LATEST)
        # as bytes: reading them costs a fifth of what the objects of rclpy do
        self.create_subscription(Odometry, 'odom', self._on_odom, LATEST, raw=True)
        self.create_subscription(JointState, 'joint_states', self._on_state, LATEST, raw=True)

    @abstractmethod
    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return what to command at q (nq,), v (nv,), simulated `time` [s]; by `joints`."""

    def joints(
        self, effort: Array, position: Array | None = None, velocity: Array | None = None
    ) -> JointState:
        """Return a command for all joints: PD targets, where given, and efforts on top."""
        message = JointState(name=list(self.robot.joint_names), effort=effort.tolist())
        if position is not None:
            message.position = position.tolist()
            speed = np.zeros(self.robot.n_joints) if velocity is None else velocity
            message.velocity = speed.tolist()
        return message

    def efforts(self, effort: Array) -> JointState:
        """Return a command of joint efforts; none at all, with a warning, if one is not finite."""
        if not np.isfinite(effort).all():
            self.get_logger().warning('no efforts for this state', throttle_duration_sec=1.0)
            effort = np.zeros(self.robot.n_joints)
        return self.joints(effort)

    def _on_odom(self, message: bytes) -> None:
        self._odom = odometry_values(message)
        self._on_either()

    def _on_state(self, message: bytes) -> None:
        self._state = joint_values(message)
        self._on_either()

    def _on_either(self) -> None:
        """Answer once both messages of one step are there, in either order."""
        state, odom = self._state, self._odom
        if not self.robot.floating_base and state is not None:
            self._answer(state)
        elif state is not None and odom is not None and state.stamp == odom.stamp:
            self._q[:7], self._v[:6] = odom.pose, odom.twist  # in the base frame, as in v
            self._answer(state)

    def _answer(self, state: JointValues) -> None:
        self._state = None
        parts = self.robot, self.robot.passive_joints
        if state.name != self._names:
            place = {name: k for k, name in enumerate(state.name)}
            self._orders = [[place[name] for name in part.joint_names] for part in parts]
            self._names = state.name
        for joints, order in zip(parts, self._orders, strict=True):
            self._q = joints.with_joint_positions(self._q, state.position[order])
            self._v[joints.joint_velocity_index] = state.velocity[order]
        received = (state.stamp, self._q.tobytes(), self._v.tobytes())
        if received != self._answered:  # a repeated state must not advance the controller
            sec, nanosec = divmod(state.stamp, NANOSECONDS)
            self._command = self.command(float(sec + 1e-9 * nanosec), self._q, self._v)
            stamp = self._command.header.stamp
            stamp.sec, stamp.nanosec = sec, nanosec
            self._answered = received
        self._publisher.publish(self._command)


class CommandedVelocity:
    """The velocity of `cmd_vel`: linear x and y [m/s], angular z [rad/s].

    Parameters of the node: `use_stamped_vel`, whether `cmd_vel` is of TwistStamped, not of Twist.
    `cmd_vel_timeout`: simulated time [s] after its stamp, or where it has none after its arrival,
    at which a command is no longer followed; 0 for never, the default without stamps.

    Args:
        node: whose topic it is.
        follow: takes a velocity (3,), or raises InvalidInput.
        rest: the velocity once a command is too old.
    """

    def __init__(
        self,
        node: Node,
        follow: Callable[[tuple[float, float, float]], None],
        rest: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        self._node, self._follow, self._rest = node, follow, rest
        stamped = node.declare_parameter('use_stamped_vel', False).value
        default = CMD_VEL_TIMEOUT if stamped else 0.0
        self._timeout: float = node.declare_parameter('cmd_vel_timeout', default).value
        if not self._timeout >= 0.0:
            raise InvalidInput(f'cmd_vel_timeout = {self._timeout}: expected at least 0 s')
        self._now = -math.inf  # simulated time of the last state [s]
        self._since: float | None = None  # age of the command; None: from the next state on
        kind, callback = (TwistStamped, self._on_stamped) if stamped else (Twist, self._on_twist)
        node.create_subscription(kind, 'cmd_vel', callback, LATEST)

    def _on_twist(self, message: Twist, stamp: float = 0.0) -> None:
        """Follow a velocity that is as old as its stamp [s], 0 for now."""
        try:
            self._follow((message.linear.x, message.linear.y, message.angular.z))
        except InvalidInput as error:
            self._node.get_logger().warning(f'cmd_vel: {error}', throttle_duration_sec=1.0)
            return
        self._since = stamp if 0.0 < stamp < self._now else None

    def _on_stamped(self, message: TwistStamped) -> None:
        stamp = seconds(message.header.stamp)
        if self._timeout and 0.0 < stamp < self._now - self._timeout:
            text = f'cmd_vel: stamped {stamp:.9g} s at t = {self._now:.9g} s: too old'
            self._node.get_logger().warning(text, throttle_duration_sec=1.0)
            return
        self._on_twist(message.twist, stamp)

    def advance(self, time: float) -> None:
        """Go on to simulated `time` [s]: rest where the last command is too old."""
        if self._since is None or time < self._now:  # new, or time was set back
            self._since = time
        self._now = time
        if self._timeout and time - self._since > self._timeout:
            self._follow(self._rest)


def run(controller: Callable[[], ControllerNode], name: str, args: list[str] | None = None) -> int:
    """Run a controller until it is interrupted; return 1 where it cannot start."""
    connected = threading.Event()

    def end() -> None:
        if not connected.is_set():
            leave(0)  # it has no topics yet, and may compile for long

    with Interruption(name, end) as interruption:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
            node = controller()
            node.connect()
            connected.set()
            executor = quickest_executor()
            executor.add_node(node)
            while rclpy.ok() and not interruption.requested:
                executor.spin_once(timeout_sec=LONGEST_WAIT)
        except (KeyboardInterrupt, ExternalShutdownException):
            pass
        except ContactSimError as error:
            print(f'{name}: {error}', file=sys.stderr)
            return 1
        finally:
            rclpy.try_shutdown()
    return 0
