"""State and contacts as ROS messages: made once, filled in place, one stamp per step.

Odometry is that of the end of the step, its twist in body axes, as Pinocchio's velocity is: no
rotation at the border. Everything else is filled with what sensors tell, or with what is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import ColorRGBA, Int16MultiArray, MultiArrayDimension
from visualization_msgs.msg import Marker, MarkerArray

from contact_sim._types import Array
from contact_sim.collision._terrain import ELEVATION, GroundGrid
from contact_sim.robot._model import RobotModel
from contact_sim.ros._conversions import set_quaternion, set_stamp, set_vector
from contact_sim.sensors import ContactValues, ForceValues, ImuValues, JointValues
from contact_sim.sensors import Imu as ImuSensor
from contact_sim.sensors._robot_view import Report
from contact_sim.topics import _markers as plain
from contact_sim.topics._sensor_set import EXACT_COVARIANCE, LinkFlags, imu_covariances

# --- Markers as messages for RViz.


class MarkerMessages:
    """The markers of a topic, each made once and filled in place.

    Args:
        frame: frame id of the world.
    """

    def __init__(self, frame: str) -> None:
        self._frame = frame
        self._made: dict[tuple[str, int], tuple[Marker, plain.Marker | None]] = {}

    def fill(self, time: float, markers: Iterable[plain.Marker]) -> MarkerArray:
        """Return the message at simulated time [s]."""
        return MarkerArray(markers=[self._filled(time, marker) for marker in markers])

    def _filled(self, time: float, marker: plain.Marker) -> Marker:
        """Return a marker; points that are the same array as before are left as they are."""
        key = marker.namespace, marker.number
        message, last = self._made.get(key) or (self._new(marker), None)
        self._made[key] = message, marker
        set_stamp(message.header.stamp, time)
        message.action = marker.action
        set_vector(message.pose.position, marker.pose[:3])
        set_quaternion(message.pose.orientation, marker.pose[3:])
        if last is None or marker.colour != last.colour:
            r, g, b, a = marker.colour
            message.color = ColorRGBA(r=r, g=g, b=b, a=a)
        if last is None or marker.points is not last.points:
            message.points = [Point(x=x, y=y, z=z) for x, y, z in marker.points.tolist()]
        return message

    def _new(self, marker: plain.Marker) -> Marker:
        message = Marker(ns=marker.namespace, id=marker.number, type=marker.kind)
        message.header.frame_id = self._frame
        message.scale.x, message.scale.y, message.scale.z = marker.scale
        return message


# --- ~/grid_map: the ground as a grid_map_msgs/GridMap, where that package is installed.

try:
    from grid_map_msgs.msg import GridMap
except ImportError:  # the ROS wheels do not have it
    GridMap = None

__all__ = ['GridMap', 'array_fields', 'fill_grid_map']


def array_fields(layer: Array) -> tuple[list[tuple[str, int, int]], NDArray[np.float32]]:
    """Return (label, size, stride) of both dimensions, and the numbers, column by column."""
    rows, columns = layer.shape
    dimensions = [('column_index', columns, rows * columns), ('row_index', rows, rows)]
    return dimensions, layer.astype(np.float32).ravel(order='F')


def fill_grid_map(message: Any, grid: GroundGrid, frame: str, array: Any, dimension: Any) -> Any:
    """Fill a GridMap in the frame `frame` and return it.

    `array` and `dimension` are the classes Float32MultiArray and MultiArrayDimension.
    """
    message.header.frame_id = frame
    info, position = message.info, message.info.pose.position
    info.resolution, (info.length_x, info.length_y) = grid.resolution, grid.length
    position.x, position.y = grid.centre
    info.pose.orientation.w = 1.0
    message.layers, message.basic_layers = list(grid.layers), [ELEVATION]
    message.data = []
    for layer in grid.layers.values():
        dimensions, numbers = array_fields(layer)
        values = array()
        values.layout.dim = [
            dimension(label=label, size=size, stride=stride) for label, size, stride in dimensions
        ]
        values.data = numbers.tolist()
        message.data.append(values)
    return message


# --- State and contacts as ROS messages: made once, filled in place, one stamp per step.


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
