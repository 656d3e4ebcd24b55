"""State and contacts as ROS messages: made once, filled in place, one stamp per step.

Every value is that of the end of the step. Odometry twist and IMU are in body axes, as Pinocchio's
velocity is: no rotation at the border.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Int16MultiArray, MultiArrayDimension

from contact_sim.robot.feet import Foot
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_quaternion, set_stamp, set_vector
from contact_sim.simulation.contact_report import ContactReport
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator
from contact_sim.simulation.touch import normal_force, touching_links

Array = NDArray[np.float64]


def cross(a: Array, b: Array) -> Array:
    """Return a × b of two (3,) vectors; numpy's own takes 20 times as long on one pair."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


class ClockMessage:
    """/clock."""

    def __init__(self) -> None:
        self.message = Clock()

    def fill(self, time: float) -> Clock:
        """Return the message at simulated time [s]."""
        set_stamp(self.message.clock, time)
        return self.message


class JointStateMessage:
    """joint_states: actuated joints in Pinocchio order, all arrays full length."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        n = robot.n_joints
        self.message = JointState(
            name=list(robot.joint_names), position=[0.0] * n, velocity=[0.0] * n, effort=[0.0] * n
        )
        # views of the arrays inside the message, filled without making new ones
        self._position, self._velocity, self._effort = (
            np.frombuffer(array)
            for array in (self.message.position, self.message.velocity, self.message.effort)
        )

    def fill(self, report: StepReport, noise: Array | None = None) -> JointState:
        """Return the message; effort is what acted after saturation [N m].

        `noise` is added to positions and velocities, shape (2, n_joints).
        """
        set_stamp(self.message.header.stamp, report.time)
        self._position[:] = self._robot.joint_positions(report.q)
        self._velocity[:] = self._robot.joint_velocities(report.v)
        if noise is not None:
            self._position += noise[0]
            self._velocity += noise[1]
        self._effort[:] = report.effort
        return self.message


class OdometryMessage:
    """odom: ground-truth pose of the base in odom, twist in the base frame."""

    def __init__(self, robot: RobotModel, odom_frame: str, base_frame: str) -> None:
        self._floating = robot.floating_base
        self.message = Odometry(child_frame_id=base_frame)
        self.message.header.frame_id = odom_frame

    def fill(self, report: StepReport) -> Odometry:
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
    """imu/data: specific force (+g at rest), angular velocity and orientation of a base frame.

    The acceleration is the velocity change of the step over h, so an impact shows as Δv/h.

    Args:
        robot: the robot.
        frame: Pinocchio frame fixed to the base, '' for the base itself.
        frame_id: frame id of the message.
    """

    def __init__(self, robot: RobotModel, frame: str, frame_id: str) -> None:
        model = robot.pinocchio_model
        self._floating = robot.floating_base
        placement = (
            model.frames[model.getFrameId(frame)].placement if frame else pin.SE3.Identity()
        )
        self._arm = np.array(placement.translation)
        self._to_sensor = np.array(placement.rotation).T
        self._sensor_quaternion = pin.Quaternion(placement.rotation)
        self.message = Imu()
        self.message.header.frame_id = frame_id

    def set_deviations(self, gyroscope: float, accelerometer: float) -> None:
        """Have the covariances say how much noise there is, 0 for none known (REP 145)."""
        identity = np.eye(3).ravel()
        self.message.angular_velocity_covariance = gyroscope**2 * identity
        self.message.linear_acceleration_covariance = accelerometer**2 * identity

    def fill(self, report: StepReport, noise: Array | None = None) -> Imu:
        """Return the message; `noise` is added to its vectors, gyroscope first, shape (2, 3)."""
        message, record = self.message, report.record
        set_stamp(message.header.stamp, report.time)
        linear, angular, spin = np.zeros(3), np.zeros(3), np.zeros(3)
        attitude = pin.Quaternion.Identity()
        if self._floating:
            q = report.q
            attitude = pin.Quaternion(q[6], q[3], q[4], q[5])
            change = (record.v_next[:6] - record.v_start[:6]) / record.time_step[0]
            linear, angular, spin = change[:3], change[3:], report.v[3:6]
        arm = self._arm
        linear = linear + cross(angular, arm) + cross(spin, cross(spin, arm))
        force = linear - attitude.matrix().T @ record.gravity
        spin, force = self._to_sensor @ spin, self._to_sensor @ force
        if noise is not None:
            spin, force = spin + noise[0], force + noise[1]
        set_vector(message.linear_acceleration, force)
        set_vector(message.angular_velocity, spin)
        set_quaternion(message.orientation, (attitude * self._sensor_quaternion).coeffs())
        return message


class WrenchMessages:
    """contacts/<foot>/wrench: force of the ground on a foot, every period, zeros in swing.

    Likewise of links with body contacts, in the frame of the link where feet have theirs.

    Force and torque of all its contacts are about the origin of the frame of the message and in
    its axes, with forces and frame where they are at the end of the step.
    """

    def __init__(self, sim: Simulator, in_foot_frame: bool, prefix: str, odom_frame: str) -> None:
        self._sim = sim
        self._feet = (*sim.robot.feet, *touching_links(sim.robot))
        self._features = sim.terrain.features
        self._in_foot_frame = in_foot_frame
        self.messages = []
        for foot in self._feet:
            message = WrenchStamped()
            message.header.frame_id = prefix + foot.frame if in_foot_frame else odom_frame
            self.messages.append(message)

    def fill(self, report: StepReport) -> list[WrenchStamped]:
        """Return the messages in the order of `robot.feet`, then of `touching_links`."""
        for foot, message in zip(self._feet, self.messages, strict=True):
            set_stamp(message.header.stamp, report.time)
            wrenches = self._wrenches(foot, report.contacts)
            force, torque = next(wrenches)
            for other_force, other_torque in wrenches:
                force, torque = force + other_force, torque + other_torque
            set_vector(message.wrench.force, force)
            set_vector(message.wrench.torque, torque)
        return self.messages

    def _wrenches(self, foot: Foot, contacts: ContactReport) -> Iterator[tuple[Array, Array]]:
        """Yield force and torque of every contact of a foot, each (3,)."""
        if self._in_foot_frame:
            placement = self._sim.frame_placement(foot.frame)
            rotation = placement.rotation.T
        for point in foot.points:
            for k in range(self._features * point, self._features * (point + 1)):
                force, arm = contacts.force[k], contacts.position[k]
                if self._in_foot_frame:
                    force, arm = rotation @ force, rotation @ (arm - placement.translation)
                yield force, cross(arm, force)


class LinkContactsMessage:
    """link_contacts: 1 where a link with body contacts carries load, as `touching_links`."""

    def __init__(self, robot: RobotModel) -> None:
        self._links, self._candidates = touching_links(robot), len(robot.candidates)
        self.message = Int16MultiArray(data=[0] * len(self._links))
        self.message.layout.dim = [
            MultiArrayDimension(label=link.name, size=1, stride=1) for link in self._links
        ]

    def fill(self, report: StepReport) -> Int16MultiArray:
        """Return the message."""
        self.message.data = [
            int(normal_force(report, link.points, self._candidates) > 0.0) for link in self._links
        ]
        return self.message


class FootContactsMessage:
    """foot_contacts: 1 where a foot carries load, in the order of `robot.feet`."""

    def __init__(self, feet: Sequence[str]) -> None:
        self.message = Int16MultiArray(data=[0] * len(feet))
        self.message.layout.dim = [
            MultiArrayDimension(label=name, size=1, stride=1) for name in feet
        ]

    def fill(self, report: StepReport) -> Int16MultiArray:
        """Return the message."""
        self.message.data = [int(loaded) for loaded in report.feet.loaded]
        return self.message
