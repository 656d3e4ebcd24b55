"""Names and types of all topics and services of the node in one table."""

from __future__ import annotations

import re

OF_ROBOT: dict[str, str] = {
    'joint_states': 'sensor_msgs/msg/JointState',
    'odom': 'nav_msgs/msg/Odometry',
    'imu/data': 'sensor_msgs/msg/Imu',
    'contacts/<foot>/wrench': 'geometry_msgs/msg/WrenchStamped',
    'foot_contacts': 'std_msgs/msg/Int16MultiArray',
    '~/ground_truth/joint_states': 'sensor_msgs/msg/JointState',
    '~/ground_truth/imu': 'sensor_msgs/msg/Imu',
    '~/ground_truth/contacts/<foot>/wrench': 'geometry_msgs/msg/WrenchStamped',
    '~/ground_truth/foot_contacts': 'std_msgs/msg/Int16MultiArray',
}
"""Published for every robot; of several, in the namespace of each, see `own_topic`."""
OF_WORLD: dict[str, str] = {
    '/clock': 'rosgraph_msgs/msg/Clock',
    '~/contact_markers': 'visualization_msgs/msg/MarkerArray',
    '~/terrain': 'visualization_msgs/msg/MarkerArray',
    '~/solver_state': 'std_msgs/msg/Float64MultiArray',
    '~/solver_diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
    '~/shadow': 'std_msgs/msg/Float64MultiArray',
    '/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
}
"""Published once, however many robots there are."""
PUBLISHED: dict[str, str] = OF_ROBOT | OF_WORLD
OPTIONAL: dict[str, str] = {
    '/tf': 'tf2_msgs/msg/TFMessage',
    '/tf_static': 'tf2_msgs/msg/TFMessage',
    '~/grid_map': 'grid_map_msgs/msg/GridMap',
}
"""Published where their packages are installed."""
OF_LINKS: dict[str, str] = {
    'contacts/<link>/wrench': 'geometry_msgs/msg/WrenchStamped',
    'link_contacts': 'std_msgs/msg/Int16MultiArray',
}
"""Published for the links of `contact_links`."""
OF_CONSTRAINTS: dict[str, str] = {
    'constraints/<name>/wrench': 'geometry_msgs/msg/WrenchStamped',
    'constraints/<name>/effort': 'sensor_msgs/msg/JointState',
}
"""Published once for the constraints of `constraints.names`: those of frames, those of joints."""
DESCRIPTION: dict[str, str] = {'robot_description': 'std_msgs/msg/String'}
"""Published for every robot with `publish_robot_description`."""
GROUND_TRUTH = '~/ground_truth/'
"""Before the topics of sensors: the same messages without errors and latency."""
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
SERVICES: dict[str, str] = {
    '~/pause': 'std_srvs/srv/SetBool',
    '~/reset': 'std_srvs/srv/Trigger',
    '~/reset_time': 'std_srvs/srv/Trigger',
    '~/snapshot': 'std_srvs/srv/Trigger',
    '~/restore': 'std_srvs/srv/Trigger',
    '~/end_pushes': 'std_srvs/srv/Trigger',
    '~/step': 'std_srvs/srv/Trigger',
}


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

    Characters that ROS refuses in topics become underscores: left-foot speaks on
    contacts/left_foot/wrench. Before a leading digit comes `foot_`.
    """
    token = re.sub('[^A-Za-z0-9_]', '_', foot)
    return f'contacts/{"foot_" if token[:1].isdigit() else ""}{token}/wrench'


def constraint_topic(constraint: str, kind: str) -> str:
    """Return the topic of the wrench or the effort of a constraint."""
    return f'constraints/{constraint}/{kind}'
