"""Table of topics: names, types, rates; stamps and labels of their numbers.

A new topic is a row here, and a function that makes its content in `_robot_topics.py` or
`_world_topics.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, declared_parameters, parameter

# --- The topics that are published.


class Topic(NamedTuple):
    """A topic that is published."""

    name: str
    """`~` stands for the name of the node; <foot>, <link> and <name> are filled in."""
    type: str
    """Type of its messages, `package/msg/Name`."""
    rates: tuple[str, ...] = ()
    """Fields of `publish_rate`: a message is due when any of them is. Empty: no fixed rate."""
    depth: int = 1000
    """Messages that a publisher keeps for subscribers that are slow."""
    latched: bool = False
    """Whether subscribers that come late get the last message."""


JOINT_STATES = Topic('joint_states', 'sensor_msgs/msg/JointState', ('joint_states',))
ODOM = Topic('odom', 'nav_msgs/msg/Odometry', ('odom',))
IMU = Topic('imu/data', 'sensor_msgs/msg/Imu', ('imu',))
FOOT_WRENCH = Topic('contacts/<foot>/wrench', 'geometry_msgs/msg/WrenchStamped', ('wrenches',))
FOOT_CONTACTS = Topic('foot_contacts', 'std_msgs/msg/Int16MultiArray', ('wrenches',))
FOOT_CONTACTS_STAMPED = Topic('foot_contacts_stamped', 'sensor_msgs/msg/JointState', ('wrenches',))
"""The same with time and names, which an Int16MultiArray has not."""
SENSORS = {
    'joints': JOINT_STATES,
    'imu': IMU,
    'forces': FOOT_WRENCH,
    'contacts': FOOT_CONTACTS,
}
"""Topics of the sensors, by the fields of `RobotSensors`."""
LINK_WRENCH = Topic('contacts/<link>/wrench', 'geometry_msgs/msg/WrenchStamped', ('wrenches',))
LINK_CONTACTS = Topic('link_contacts', 'std_msgs/msg/Int16MultiArray', ('wrenches',))
"""Wrenches and contacts of the links of `contact_links`."""
HEIGHT_SCAN = Topic('height_scan', 'sensor_msgs/msg/PointCloud2', ('height_scan',), 10)
"""Points of the ground around the robot, with how far they are below it."""
LASER_SCAN = Topic('scan', 'sensor_msgs/msg/LaserScan', ('lidar',), 10)
"""Of the ring of the lidar that is nearest to the x-y plane of its frame."""
POINTS = Topic('points', 'sensor_msgs/msg/PointCloud2', ('lidar',), 10)
"""Of all rings."""
DEPTH_IMAGE = Topic('depth/image', 'sensor_msgs/msg/Image', ('depth',), 10)
CAMERA_INFO = Topic('depth/camera_info', 'sensor_msgs/msg/CameraInfo', ('depth',), 10)
DESCRIPTION = Topic('robot_description', 'std_msgs/msg/String', depth=1, latched=True)
"""URDF of the robot, with `publish_robot_description`."""

CLOCK = Topic('/clock', 'rosgraph_msgs/msg/Clock')
TF = Topic('/tf', 'tf2_msgs/msg/TFMessage', ('odom', 'joint_states'), depth=100)
TF_STATIC = Topic('/tf_static', 'tf2_msgs/msg/TFMessage', depth=1, latched=True)
CONSTRAINT_WRENCH = Topic(
    'constraints/<name>/wrench', 'geometry_msgs/msg/WrenchStamped', ('wrenches',)
)
CONSTRAINT_EFFORT = Topic('constraints/<name>/effort', 'sensor_msgs/msg/JointState', ('wrenches',))
MARKERS = Topic('~/contact_markers', 'visualization_msgs/msg/MarkerArray', ('markers',), 10)
TERRAIN = Topic('~/terrain', 'visualization_msgs/msg/MarkerArray', depth=1, latched=True)
GRID_MAP = Topic('~/grid_map', 'grid_map_msgs/msg/GridMap', depth=1, latched=True)
SOLVER_STATE = Topic('~/solver_state', 'std_msgs/msg/Float64MultiArray', ('solver_state',))
SOLVER_DIAGNOSTICS = Topic(
    '~/solver_diagnostics', 'diagnostic_msgs/msg/DiagnosticArray', ('solver_state',),
)  # fmt: skip
SHADOW = Topic('~/shadow', 'std_msgs/msg/Float64MultiArray', ('shadow',))
DIAGNOSTICS = Topic('/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray', depth=10)

GROUND_TRUTH = '~/ground_truth/'
"""Before the topics of sensors: the same messages without errors and latency."""


def ground_truth(topic: Topic) -> Topic:
    """Return the topic of the exact values of a sensor."""
    name = GROUND_TRUTH + topic.name.removesuffix('/data')
    return topic._replace(name=name)


def _types(*topics: Topic) -> dict[str, str]:
    return {topic.name: topic.type for topic in topics}


OF_ROBOT = _types(
    JOINT_STATES, ODOM, IMU, FOOT_WRENCH, FOOT_CONTACTS, FOOT_CONTACTS_STAMPED,
    HEIGHT_SCAN, LASER_SCAN, POINTS, DEPTH_IMAGE, CAMERA_INFO,
    *map(ground_truth, SENSORS.values()),
)  # fmt: skip
"""Type of every topic that each robot has; of several, in the namespace of each: `own_topic`."""
OF_WORLD = _types(CLOCK, MARKERS, TERRAIN, SOLVER_STATE, SOLVER_DIAGNOSTICS, SHADOW, DIAGNOSTICS)
"""Type of every topic that is published once, however many robots there are."""
PUBLISHED = OF_ROBOT | OF_WORLD
"""Type of every topic that is always published, by its name."""

# --- Topics that are subscribed to.

SUBSCRIBED: dict[str, str] = {
    'joint_commands': 'sensor_msgs/msg/JointState',
    'joint_group_effort_controller/commands': 'std_msgs/msg/Float64MultiArray',
    'joint_trajectory': 'trajectory_msgs/msg/JointTrajectory',
    'joint_group_effort_controller/joint_trajectory': 'trajectory_msgs/msg/JointTrajectory',
    '~/lockstep_ack': 'std_msgs/msg/Header',
    '~/support': 'std_msgs/msg/Int16MultiArray',
    'external_wrench': 'geometry_msgs/msg/WrenchStamped',
    'initialpose': 'geometry_msgs/msg/PoseWithCovarianceStamped',
    '~/set_odom': 'nav_msgs/msg/Odometry',
}
"""Of every robot, as OF_ROBOT."""

# --- Names of topics.

NODE = 'contact_sim'
"""Name of the node."""


def absolute(topic: str) -> str:
    """Return the absolute name of a topic of the node outside of namespaces."""
    return '/' + topic.replace('~', NODE).lstrip('/')


def own_topic(robot: str, topic: str, node: str) -> str:
    """Return a topic of one of several robots, or of the one without a name.

    It is that of a simulation of this robot alone in the namespace `robot`: `odom` becomes
    `a/odom`, and `~/set_odom`, a topic under the name of the `node`, `a/contact_sim/set_odom`.
    """
    if not robot:
        return topic
    return f'{robot}/{topic.replace("~", node)}'


def wrench_topic(foot: str) -> str:
    """Return the topic of the contact wrench of a foot or link.

    Characters that ROS refuses in topics become underscores: left-foot becomes
    contacts/left_foot/wrench. Before a leading digit comes `foot_`.
    """
    token = re.sub('[^A-Za-z0-9_]', '_', foot)
    return f'contacts/{"foot_" if token[:1].isdigit() else ""}{token}/wrench'


# --- Rates of messages, which divide the step rate.

RATE_TOLERANCE = 1e-5
"""Relative error of a rate that still counts as exact: six digits are enough to type."""
SLOWEST, FASTEST = 1e-6, 1e6
"""Bounds of publish rates [Hz]; 0 besides."""


def steps_between(name: str, rate: float, time_step: float) -> int:
    """Return the number of steps between two messages, 0 for never.

    Raises:
        InvalidInput: a rate that does not divide the step rate; names the nearest that do. A rate
            above 0 but below SLOWEST.
    """
    if rate == 0.0:
        return 0
    if not rate >= SLOWEST:
        raise InvalidInput(f'{name} = {rate:g} Hz: expected 0, or at least {SLOWEST:g} Hz')
    steps = 1.0 / (rate * time_step)
    if steps > 1.0 - RATE_TOLERANCE and abs(steps - round(steps)) <= RATE_TOLERANCE * steps:
        return round(steps)
    fewer = int(steps)
    allowed = (fewer + 1, fewer) if fewer else (1,)
    near = ' and '.join(f'{1.0 / (n * time_step):.6g}' for n in allowed)
    raise InvalidInput(
        f'{name} = {rate:g} Hz: must divide the step rate {1.0 / time_step:g} Hz; '
        f'nearest: {near} Hz'
    )


def _rate(default: float, meaning: str) -> Any:
    return parameter(default, 'Hz', meaning, at_least=0.0, at_most=FASTEST, live=True)


@dataclass(frozen=True)
class PublishRateParameters(Parameters):
    """Rates in simulated time; each must divide the step rate. 0: not published."""

    joint_states: float = _rate(250.0, 'joint_states')
    odom: float = _rate(250.0, 'odom and TF')
    imu: float = _rate(250.0, 'imu/data')
    wrenches: float = _rate(125.0, 'contacts/<foot>/wrench, foot_contacts, constraints/<name>/*')
    markers: float = _rate(25.0, '~/contact_markers')
    solver_state: float = _rate(25.0, '~/solver_state')
    shadow: float = _rate(25.0, '~/shadow, see contact.shadow')
    height_scan: float = _rate(0.0, 'height_scan')
    lidar: float = _rate(0.0, 'scan and points')
    depth: float = _rate(0.0, 'depth/image and depth/camera_info')


def publish_periods(rates: PublishRateParameters, time_step: float) -> dict[str, int]:
    """Return the steps between two messages for every rate."""
    return {
        field.name: steps_between(
            f'publish_rate.{field.name}', getattr(rates, field.name), time_step
        )
        for field in declared_parameters(PublishRateParameters)  # type: ignore[arg-type]
    }


# --- Stamps.

NANOSECONDS = 1_000_000_000


def nanoseconds(time: float) -> int:
    """Return simulated time [s] as stamps have it [ns]."""
    return round(time * NANOSECONDS)
