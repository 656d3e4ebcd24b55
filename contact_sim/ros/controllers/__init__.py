"""Controller nodes, which use only topics of the simulator, and their base class.

To write one, derive from ControllerNode, which gets whole states of a robot, and give it a
`command`. Examples: `stance` and `trot`.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from contact_sim._types import Array
from contact_sim.errors import ContactSimError
from contact_sim.ros._conversions import (
    JointValues,
    OdometryValues,
    joint_values,
    odometry_values,
)
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._processes import Interruption, leave
from contact_sim.ros._robots import RobotParameters, named_robot
from contact_sim.topics._table import NANOSECONDS

LATEST = QoSProfile(depth=1)
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


def _executor() -> Executor:
    """Return the executor of rclpy that costs least per message."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:  # before Kilted
        return SingleThreadedExecutor()
    executor: Executor = EventsExecutor()
    return executor


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
            executor = _executor()
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
