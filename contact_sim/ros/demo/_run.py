"""One run of the demo: two processes, what is observed of them, and the verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Int16MultiArray
from std_srvs.srv import SetBool
from visualization_msgs.msg import MarkerArray

from contact_sim._types import Array
from contact_sim.errors import ContactSimError
from contact_sim.robot._contact_points import foot_frame
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.ros._client import SimulationClient
from contact_sim.ros._conversions import seconds as seconds_of
from contact_sim.ros._conversions import stamp_nanoseconds
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.topics._table import NODE, wrench_topic

DEEP_QUEUE = QoSProfile(depth=5000)
"""Deep enough that a busy machine delays messages instead of losing them."""
START_TIMEOUT = 600.0
"""Wall seconds until the first message: a first start compiles, on a busy machine for minutes."""
DROP = 0.03
"""Gap below the feet at the start [m]."""
FRICTION = 0.8
WRENCH_RATE = 250.0
TROT = (0.3, 0.3)
"""Forward speed [m/s] and turning rate [rad/s] that `--demo trot` commands."""
CONTROL_PERIOD = 2
"""Steps per command of `--demo trot`."""
JUDGED = 2.0
"""Seconds at the end over which the weight is compared; at most half of the run."""
STANDING = 3.0
"""Seconds at the end over which feet may not drift; before, they roll while the legs settle."""
LARGEST_WEIGHT_ERROR = 0.05
SMALLEST_HEIGHT = 0.5
"""Share of the standing height below which the robot has fallen."""
LARGEST_BOB = 0.03
"""By how much a trotting base may leave its standing height [m]."""
SMALLEST_WAY = 0.7
"""Share of the commanded way that a trotting base has to go, with its start from rest."""


class ProcessEnded(ContactSimError):
    """A process that the demo needs is gone."""


class Observer:
    """Subscribes with a node to everything that a simulation of `robot` publishes.

    Attributes:
        counts: messages per topic.
        clock: last simulated time [s].
        joints: positions of the actuated joints, then of passive ones, by stamp [ns].
        bases: base position and quaternion by stamp [ns].
        forces: contact force per foot in the foot's frame by stamp [ns].
        diagnostics: values of the last /diagnostics message.
    """

    def __init__(self, robot: RobotModel, node: Node) -> None:
        self._node = node
        self.counts: Counter[str] = Counter()
        self.clock = 0.0
        self.joints: dict[int, Array] = {}
        self.bases: dict[int, Array] = {}
        self.forces: dict[str, dict[int, Array]] = {}
        self.diagnostics: dict[str, str] = {}
        self._subscribe(Clock, '/clock', self._on_clock)
        self._subscribe(JointState, 'joint_states', self._on_joint_states)
        self._subscribe(Odometry, 'odom', self._on_odom)
        self._subscribe(Imu, 'imu/data')
        for foot in robot.feet:
            self.forces[foot.name] = {}
            self._subscribe(WrenchStamped, wrench_topic(foot.name), self._on_wrench(foot.name))
        self._subscribe(Int16MultiArray, 'foot_contacts')
        self._subscribe(MarkerArray, 'contact_sim/contact_markers')
        self._subscribe(Float64MultiArray, 'contact_sim/solver_state')
        self._subscribe(DiagnosticArray, '/diagnostics', self._on_diagnostics)
        self._subscribe(JointState, 'joint_commands')

    def forget(self) -> None:
        """Start counting and collecting anew."""
        self.counts = Counter(dict.fromkeys(self.counts, 0))
        for observed in (self.joints, self.bases, *self.forces.values()):
            observed.clear()

    def connected(self) -> bool:
        """Return whether simulation, controller and this node are subscribed to each other."""
        return (
            all(self._node.count_publishers(topic) for topic in self.counts)
            and self._node.count_subscribers('joint_states') >= 2
            and self._node.count_subscribers('joint_commands') >= 2
        )

    def _subscribe(
        self, kind: type, topic: str, take: Callable[[Any], None] = lambda message: None
    ) -> None:
        self.counts[topic] = 0

        def on_message(message: Any) -> None:
            self.counts[topic] += 1
            take(message)

        self._node.create_subscription(kind, topic, on_message, DEEP_QUEUE)

    def _on_clock(self, message: Clock) -> None:
        self.clock = seconds_of(message.clock)

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
        self.diagnostics = {value.key: value.value for value in message.status[0].values}


class Track:
    """Observations on one time axis: samples for which every message arrived.

    Time counts from `begin` [s], and ends `length` [s] later.

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
            joints, driven = observer.joints[stamp], robot.n_joints
            passive = robot.passive_joints.with_joint_positions(q, joints[driven:])
            self.configuration[k] = robot.with_joint_positions(passive, joints[:driven])
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


# -------------------------------------------------------------------- a run


@dataclass(frozen=True)
class DemoRun:
    """Settings of a demo, and its results."""

    robot: RobotModel
    contact_model: str
    seconds: float
    observer: Observer
    begin: float
    """Simulated time at which the robot is let go [s]."""
    real_time_factor: float


class DemoClient(SimulationClient):
    """A client that also runs a controller."""

    controller: Process

    def check_alive(self) -> None:
        """Raise ProcessEnded with exit code and last line of a process that does not run."""
        for name, process in {
            'simulation': self.simulation,
            'controller': self.controller,
        }.items():
            if not process.running:
                lines = process.output().strip().splitlines()[-1:] or ['it wrote nothing']
                raise ProcessEnded(
                    f'the {name} ended with exit code {process.handle.returncode}: {lines[0]}'
                )


def settings(demo: str) -> dict[str, object]:
    """Return the parameters of the node that one demo needs."""
    if demo == 'stance':
        return {'initial_height': DROP}
    return {
        'lockstep.enabled': True, 'lockstep.period': CONTROL_PERIOD, 'lockstep.timeout': 10.0,
        'lockstep.policy': 'pause',
    }  # fmt: skip


def observe(source: str, demo: str, contact_model: str, seconds: float, logs: Path) -> DemoRun:
    """Run the two processes and observe them.

    Raises:
        ContactSimError: a robot that cannot be loaded, or a process that ended.
        TimeoutError: a topic stayed silent.
    """
    robot = load_robot(source)
    client = DemoClient(logs, 'observer')
    observer = Observer(robot, client.node)
    client.start(
        {'robot': source, 'contact.model': contact_model, 'friction.mu': FRICTION,
         'start_paused': True, 'publish_rate.wrenches': WRENCH_RATE, **settings(demo)}
    )  # fmt: skip
    client.controller = Process(
        f'contact_sim.ros.controllers.{demo}', ros_arguments({'robot': source}), client.domain,
        logs / 'controller.log',
    )  # fmt: skip
    try:
        with client.controller:
            client.wait(observer.connected, 'both processes', START_TIMEOUT)
            client.wait(lambda: observer.clock > 0.0, '/clock', START_TIMEOUT)
            if demo == 'trot':
                _command_velocity(client)
            observer.forget()
            begin, wall = observer.clock, time.perf_counter()
            request = SetBool.Request(data=False)
            client.call(f'/{NODE}/pause', SetBool, request, START_TIMEOUT)
            client.wait(
                lambda: observer.clock >= begin + seconds, 'simulated time to pass',
                10.0 * seconds + START_TIMEOUT,
            )  # fmt: skip
            factor = (observer.clock - begin) / (time.perf_counter() - wall)
    finally:
        client.close()
    return DemoRun(robot, contact_model, seconds, observer, begin, factor)


def _command_velocity(client: DemoClient) -> None:
    publisher = client.node.create_publisher(Twist, 'cmd_vel', DEEP_QUEUE)
    heard = 'cmd_vel to be heard'
    client.wait(lambda: publisher.get_subscription_count() > 0, heard, START_TIMEOUT)
    message = Twist()
    message.linear.x, message.angular.z = TROT
    publisher.publish(message)


# -------------------------------------------------------------------- the verdict


def judge(run: DemoRun, track: Track) -> dict[str, Any]:
    """Return the figures of the run."""
    weight = run.robot.total_mass * 9.81
    supported = track.force[track.last(min(JUDGED, 0.5 * run.seconds)), :, 2].sum(axis=1)
    standing = track.contact_point[track.last(STANDING)]
    drift = np.linalg.norm(standing[:, :, :2] - standing[0, :, :2], axis=2)
    return {
        'robot': run.robot.name,
        'contact_model': run.contact_model,
        'simulated_seconds': run.observer.clock - run.begin,
        'real_time_factor': run.real_time_factor,
        'weight_error': float(np.mean(np.abs(supported - weight)) / weight),
        'foot_drift_m': float(drift.max()),
        'penetration_m': float(np.maximum(-track.contact_point[:, :, 2], 0.0).max()),
        'base_height_m': float(track.height[-1]),
        'samples': len(track.time),
        'commands_accepted': int(run.observer.diagnostics.get('commands_accepted', 0)),
        'messages': dict(run.observer.counts),
    }


def judge_trot(track: Track) -> dict[str, Any]:
    """Return the figures of a trot."""
    way = np.diff(track.configuration[:, :2], axis=0)
    commanded = TROT[0] * (track.time[-1] - track.time[0])
    return {
        'height_change_m': float(np.abs(track.height - track.height[0]).max()),
        'way_m': float(np.linalg.norm(way, axis=1).sum()),
        'commanded_way_m': float(commanded),
    }


def facts(result: dict[str, Any]) -> list[str]:
    """Return the lines of text in the figure."""
    if 'way_m' in result:
        return [
            f'{result["robot"]} trots',
            f'over ROS 2, contact model {result["contact_model"]}',
            f'{result["way_m"]:.2f} m in {result["simulated_seconds"]:.1f} s',
            f'base height within {1e3 * result["height_change_m"]:.1f} mm',
            f'penetration {power_of_ten(result["penetration_m"])} m',
        ]
    return [
        f'{result["robot"]} lands and stands',
        f'over ROS 2, dropped from {100 * DROP:g} cm, contact model {result["contact_model"]}',
        f'weight error {power_of_ten(result["weight_error"])}',
        f'foot drift {power_of_ten(result["foot_drift_m"])} m',
        f'penetration {power_of_ten(result["penetration_m"])} m',
    ]


def power_of_ten(value: float) -> str:
    """Return a small number as people write it: 3.2·10⁻⁸."""
    if value == 0.0:
        return '0'
    digits, exponent = f'{value:.1e}'.split('e')
    return f'{digits}·10' + str(int(exponent)).translate(
        str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
    )


def complaints(result: dict[str, Any], standing: float) -> list[str]:
    """Return what is wrong with a run, in words; `standing` is the height of the base [m]."""
    wrong = [f'no message on {topic}' for topic, n in result['messages'].items() if n == 0]
    if not result['base_height_m'] > SMALLEST_HEIGHT * standing:
        wrong.append(f'the robot fell: its base is at {result["base_height_m"]:.3f} m')
    if 'way_m' in result:
        if not result['height_change_m'] < LARGEST_BOB:
            wrong.append(f'the base left its height by {result["height_change_m"]:.3f} m')
        if not result['way_m'] > SMALLEST_WAY * result['commanded_way_m']:
            wrong.append(f'it went {result["way_m"]:.2f} m of {result["commanded_way_m"]:.2f} m')
    elif not result['weight_error'] < LARGEST_WEIGHT_ERROR:
        wrong.append(f'the feet do not carry the weight: error {result["weight_error"]:.3g}')
    return wrong
