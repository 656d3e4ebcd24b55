"""State and contacts as ROS messages: made once, filled in place, one stamp per step.

Odometry is that of the end of the step, its twist in body axes, as Pinocchio's velocity is: no
rotation at the border. Everything else is filled with what sensors tell, or with what is true.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Int16MultiArray, MultiArrayDimension

from contact_sim.messages.told import EXACT_COVARIANCE, LinkFlags, imu_covariances
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector
from contact_sim.sensors import ContactValues, ForceValues, ImuValues, JointValues
from contact_sim.sensors import Imu as ImuSensor
from contact_sim.sensors.part_report import Report


class ClockMessage:
    """/clock."""

    def __init__(self) -> None:
        self.message = Clock()

    def fill(self, time: float) -> Clock:
        """Return the message at simulated time [s]."""
        set_stamp(self.message.clock, time)
        return self.message


class JointStateMessage:
    """joint_states: actuated joints in Pinocchio order, then passive ones; full arrays."""

    def __init__(self, robot: RobotModel) -> None:
        names = [*robot.joint_names, *robot.passive_joint_names]
        n = len(names)
        self.message = JointState(
            name=names, position=[0.0] * n, velocity=[0.0] * n, effort=[0.0] * n
        )
        # views of the arrays inside the message, filled without making new ones
        self._position, self._velocity, self._effort = (
            np.frombuffer(array)
            for array in (self.message.position, self.message.velocity, self.message.effort)
        )

    def fill(self, time: float, values: JointValues) -> JointState:
        """Return the message at simulated time [s]; effort acted after saturation [N m]."""
        set_stamp(self.message.header.stamp, time)
        self._position[:] = values.position
        self._velocity[:] = values.velocity
        self._effort[:] = values.effort
        return self.message


class OdometryMessage:
    """odom: ground-truth pose of the base in odom, twist in the base frame."""

    def __init__(self, robot: RobotModel, odom_frame: str, base_frame: str) -> None:
        self._floating = robot.floating_base
        self.message = Odometry(child_frame_id=base_frame)
        self.message.header.frame_id = odom_frame
        self.message.pose.covariance = self.message.twist.covariance = EXACT_COVARIANCE

    def fill(self, report: Report) -> Odometry:
        """Return the message; a fixed base stays at the origin."""
        message = self.message
        set_stamp(message.header.stamp, report.time)
        if self._floating:
            q, v = report.q, report.v
            set_vector(message.pose.pose.position, q[:3])
            set_quaternion(message.pose.pose.orientation, q[3:7])
            set_vector(message.twist.twist.linear, v[:3])
            set_vector(message.twist.twist.angular, v[3:6])
        return message


class ImuMessage:
    """imu/data: specific force (+g at rest), angular velocity and orientation of a frame.

    Args:
        frame_id: frame id of the message.
    """

    def __init__(self, frame_id: str) -> None:
        self.message = Imu()
        self.message.header.frame_id = frame_id

    def set_sensor(self, sensor: ImuSensor) -> None:
        """State the covariances of a sensor."""
        message, said = self.message, imu_covariances(sensor)
        message.orientation_covariance = said['orientation']
        message.angular_velocity_covariance = said['angular_velocity']
        message.linear_acceleration_covariance = said['specific_force']

    def fill(self, time: float, values: ImuValues) -> Imu:
        """Return the message at simulated time [s]."""
        message = self.message
        set_stamp(message.header.stamp, time)
        set_vector(message.linear_acceleration, values.specific_force)
        set_vector(message.angular_velocity, values.angular_velocity)
        set_quaternion(message.orientation, values.orientation)
        return message


class WrenchMessages:
    """contacts/<foot>/wrench: force of the ground on a foot, every period, zeros in swing.

    Likewise of links with body contacts, in the frame of the link where feet have theirs.

    Force and torque of all its contacts are about the origin of the frame of the message and in
    its axes, see `sensors.FootForces`.

    Args:
        frame_ids: frame id of every foot, in the order of `robot.feet`.
    """

    def __init__(self, frame_ids: Sequence[str]) -> None:
        self.messages = []
        for frame_id in frame_ids:
            message = WrenchStamped()
            message.header.frame_id = frame_id
            self.messages.append(message)

    def fill(self, time: float, values: ForceValues) -> list[WrenchStamped]:
        """Return the messages at simulated time [s] in the order of `robot.feet`."""
        rows = zip(self.messages, values.force, values.torque, strict=True)
        for message, force, torque in rows:
            set_stamp(message.header.stamp, time)
            set_vector(message.wrench.force, force)
            set_vector(message.wrench.torque, torque)
        return self.messages


class LinkContactsMessage:
    """link_contacts: 1 where a link with body contacts carries load, as `touching_links`."""

    def __init__(self, robot: RobotModel) -> None:
        self._flags = LinkFlags(robot)
        links = self._flags.links
        self.message = Int16MultiArray(data=[0] * len(links))
        self.message.layout.dim = [
            MultiArrayDimension(label=link.name, size=1, stride=1) for link in links
        ]

    def fill(self, report: Report) -> Int16MultiArray:
        """Return the message."""
        self.message.data = self._flags.of(report)
        return self.message


class FootContactsMessage:
    """foot_contacts: 1 where a foot is told to stand, in the order of `robot.feet`."""

    def __init__(self, feet: Sequence[str]) -> None:
        self.message = Int16MultiArray(data=[0] * len(feet))
        self.message.layout.dim = [
            MultiArrayDimension(label=name, size=1, stride=1) for name in feet
        ]

    def fill(self, values: ContactValues) -> Int16MultiArray:
        """Return the message."""
        self.message.data = [int(flag) for flag in values.flag]
        return self.message
