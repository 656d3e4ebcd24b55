"""A node that watches a simulation through its topics, and what can be learned from them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Int16MultiArray
from std_srvs.srv import SetBool
from visualization_msgs.msg import MarkerArray

from contact_sim.messages.topics import wrench_topic
from contact_sim.robot.feet import foot_frame
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import seconds, stamp_nanoseconds

Array = NDArray[np.float64]
DEEP_QUEUE = QoSProfile(depth=5000)
"""Deep enough that a busy machine delays messages instead of losing them."""


class Observer(Node):
    """Subscribes to everything a simulation of `robot` publishes.

    Attributes:
        counts: messages per topic.
        clock: last simulated time [s].
        joints: positions of the actuated joints, then of passive ones, by stamp [ns].
        bases: base position and quaternion by stamp [ns].
        forces: contact force per foot in the foot's frame by stamp [ns].
        diagnostics: values of the last /diagnostics message.
        check: called again and again while waiting; raises where that is in vain.
    """

    def __init__(self, robot: RobotModel, **node_options: Any) -> None:
        super().__init__('observer', **node_options)
        self._callbacks = SingleThreadedExecutor()
        self._callbacks.add_node(self)
        self._pause = self.create_client(SetBool, 'contact_sim/pause')
        self.check: Callable[[], None] = lambda: None
        self.counts: Counter[str] = Counter()
        self.clock = 0.0
        self.joints: dict[int, Array] = {}
        self.bases: dict[int, Array] = {}
        self.forces: dict[str, dict[int, Array]] = {}
        self.diagnostics: dict[str, str] = {}
        self._watch(Clock, '/clock', self._on_clock)
        self._watch(JointState, 'joint_states', self._on_joint_states)
        self._watch(Odometry, 'odom', self._on_odom)
        self._watch(Imu, 'imu/data')
        for foot in robot.feet:
            self.forces[foot.name] = {}
            self._watch(WrenchStamped, wrench_topic(foot.name), self._on_wrench(foot.name))
        self._watch(Int16MultiArray, 'foot_contacts')
        self._watch(MarkerArray, 'contact_sim/contact_markers')
        self._watch(Float64MultiArray, 'contact_sim/solver_state')
        self._watch(DiagnosticArray, '/diagnostics', self._on_diagnostics)
        self._watch(JointState, 'joint_commands')

    def forget(self) -> None:
        """Start counting and collecting anew."""
        self.counts = Counter(dict.fromkeys(self.counts, 0))
        self.joints.clear()
        self.bases.clear()
        for forces in self.forces.values():
            forces.clear()

    def wait(self, done: Callable[[], bool], what: str, timeout: float) -> None:
        """Listen until `done()`.

        Raises:
            Exception: what `check` raises.
            TimeoutError: it did not happen within `timeout` wall seconds; names `what`.
        """
        end = time.monotonic() + timeout
        while not done():
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(
                    f'waited {timeout:g} s in vain for {what}; messages: {dict(self.counts)}'
                )
            self._callbacks.spin_once(0.05)

    def connected(self, controllers: int = 1) -> bool:
        """Return whether every topic has a publisher, and all of us listen to each other."""
        return (
            all(self.count_publishers(topic) for topic in self.counts)
            and self.count_subscribers('joint_states') >= 1 + controllers
            and self.count_subscribers('joint_commands') >= 2
            and self._pause.service_is_ready()
        )

    def let_time_run(self, timeout: float) -> None:
        """End the pause of the simulation.

        Raises:
            TimeoutError: it did not answer.
        """
        answer = self._pause.call_async(SetBool.Request(data=False))
        self.wait(answer.done, 'the answer of ~/pause', timeout)

    def drive(self, forward: float, turn: float, timeout: float) -> None:
        """Command a velocity [m/s], [rad/s] on `cmd_vel` once somebody listens.

        Raises:
            TimeoutError: nobody does.
        """
        publisher = self.create_publisher(Twist, 'cmd_vel', DEEP_QUEUE)
        self.wait(lambda: publisher.get_subscription_count() > 0, 'cmd_vel to be heard', timeout)
        message = Twist()
        message.linear.x, message.angular.z = forward, turn
        publisher.publish(message)

    def _watch(
        self, kind: type, topic: str, take: Callable[[Any], None] = lambda message: None
    ) -> None:
        self.counts[topic] = 0

        def on_message(message: Any) -> None:
            self.counts[topic] += 1
            take(message)

        self.create_subscription(kind, topic, on_message, DEEP_QUEUE)

    def _on_clock(self, message: Clock) -> None:
        self.clock = seconds(message.clock)

    def _on_joint_states(self, message: JointState) -> None:
        self.joints[stamp_nanoseconds(message.header.stamp)] = np.array(message.position)

    def _on_odom(self, message: Odometry) -> None:
        p, r = message.pose.pose.position, message.pose.pose.orientation
        self.bases[stamp_nanoseconds(message.header.stamp)] = np.array(
            [p.x, p.y, p.z, r.x, r.y, r.z, r.w]
        )

    def _on_wrench(self, foot: str) -> Callable[[WrenchStamped], None]:
        def take(message: WrenchStamped) -> None:
            f = message.wrench.force
            self.forces[foot][stamp_nanoseconds(message.header.stamp)] = np.array([f.x, f.y, f.z])

        return take

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        status = message.status[0]
        self.diagnostics = {value.key: value.value for value in status.values}
        self.diagnostics['message'] = status.message


class Track:
    """Observations on one time axis: samples for which every message arrived.

    Args:
        robot: the robot.
        observer: who listened.
        begin: simulated time that counts as zero [s].
        length: seconds from there on that are of interest.

    Attributes:
        time: since `begin` [s], shape (n,).
        configuration: shape (n, nq).
        height: height of the base [m], shape (n,).
        force: contact forces of the feet in world [N], shape (n, feet, 3).
        contact_point: lowest points of the contact spheres in world [m], shape (n, points, 3).
        foot: means of the contact points of each foot in world [m], shape (n, feet, 3).
    """

    def __init__(
        self, robot: RobotModel, observer: Observer, begin: float = 0.0, length: float = np.inf
    ) -> None:
        stamps = set(observer.joints) & set(observer.bases)
        for forces in observer.forces.values():
            stamps &= set(forces)
        ordered = [s for s in sorted(stamps) if begin - 1e-9 <= 1e-9 * s <= begin + length + 1e-9]
        n, feet = len(ordered), robot.feet
        self.time = 1e-9 * np.array(ordered, dtype=float) - begin
        self.configuration = np.zeros((n, robot.nq))
        self.height = np.array([observer.bases[stamp][2] for stamp in ordered])
        self.force = np.zeros((n, len(feet), 3))
        self.contact_point = np.zeros((n, len(robot.contact_points), 3))
        model = robot.pinocchio_model
        data = model.createData()
        q = robot.reference_configuration('standing').copy()
        for k, stamp in enumerate(ordered):
            q[:7] = observer.bases[stamp]
            told, driven = observer.joints[stamp], robot.n_joints
            passive = robot.passive_joints.with_joint_positions(q, told[driven:])
            self.configuration[k] = robot.with_joint_positions(passive, told[:driven])
            pin.forwardKinematics(model, data, self.configuration[k])
            for i, foot in enumerate(feet):
                joint = data.oMi[model.getJointId(foot.joint)]
                frame = joint * foot_frame(model, foot).placement
                self.force[k, i] = frame.rotation @ observer.forces[foot.name][stamp]
            for i, point in enumerate(robot.contact_points):
                joint = data.oMi[model.getJointId(point.joint)]
                self.contact_point[k, i] = joint.act(point.offset) - [0.0, 0.0, point.radius]
        means = [self.contact_point[:, foot.points].mean(axis=1) for foot in feet]
        self.foot = np.array(means).reshape(len(feet), n, 3).transpose(1, 0, 2)

    def last(self, span: float) -> NDArray[np.bool_]:
        """Return which samples lie in the last `span` seconds, shape (n,)."""
        return np.asarray(self.time >= self.time[-1] - span)
