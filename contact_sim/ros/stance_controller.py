"""A small controller that stands: joint targets, and the efforts that carry the robot's weight.

    τ = g_j(q) − J_jᵀ f,   f = argmin |f|²  such that  J_bᵀ f = g_b(q)

g is gravity as a generalized force, rows b of the floating base and j of the joints; f [N] are
the forces of the ground on the feet and J their Jacobian, both in world axes.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import rclpy
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import JointState

from contact_sim.errors import ContactSimError
from contact_sim.robot.contact_point import ContactPoint
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot

Array = NDArray[np.float64]
UP = np.array([0.0, 0.0, 1.0])
BLEND_TIME = 0.5
"""Simulated seconds over which the efforts fade in: the robot may be hanging in its gains."""


class StaticForces:
    """Joint efforts that hold a robot still on all its feet, on level ground."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self._model = robot.pinocchio_model
        self._data = self._model.createData()
        self._base = slice(0, 6 if robot.floating_base else 0)

    def efforts(self, q: Array) -> Array:
        """Return the efforts at configuration q (nq,) [N m], shape (n_joints,)."""
        gravity = pin.computeGeneralizedGravity(self._model, self._data, q)
        pin.computeJointJacobians(self._model, self._data, q)
        jacobian = np.vstack([self._jacobian(point) for point in self._robot.contact_points])
        forces = np.linalg.lstsq(jacobian[:, self._base].T, gravity[self._base], rcond=None)[0]
        return np.asarray((gravity - jacobian.T @ forces)[self._robot.joint_velocity_index])

    def _jacobian(self, point: ContactPoint) -> Array:
        """Return the Jacobian of the lowest point of a foot, world axes, shape (3, nv)."""
        joint = self._model.getJointId(point.joint)
        arm = self._data.oMi[joint].rotation @ point.offset - point.radius * UP
        J = pin.getJointJacobian(self._model, self._data, joint, pin.LOCAL_WORLD_ALIGNED)
        return np.asarray(J[:3] - pin.skew(arm) @ J[3:])


class StanceController(Node):
    """Publishes joint_commands in answer to joint_states and odom, at `rate` in simulated time."""

    def __init__(self) -> None:
        super().__init__('stance_controller')
        name = self.declare_parameter('robot', 'go1').value
        self._period = 1.0 / float(self.declare_parameter('rate', 250.0).value or 250.0)
        self._robot = robot = load_robot(name)
        self._forces = StaticForces(robot)
        self._q = robot.reference_configuration()
        self._target = robot.joint_positions(self._q)
        self._first: float | None = None
        self._last = -np.inf
        self._command = JointState(
            name=list(robot.joint_names),
            position=self._target.tolist(),
            velocity=[0.0] * robot.n_joints,
        )
        self._publisher = self.create_publisher(JointState, 'joint_commands', 1)
        self.create_subscription(Odometry, 'odom', self._on_odometry, 1)
        self.create_subscription(JointState, 'joint_states', self._on_joint_states, 1)
        self.get_logger().info(f'holding {robot.name} with {robot.n_joints} joints')

    def _on_odometry(self, message: Odometry) -> None:
        p, o = message.pose.pose.position, message.pose.pose.orientation
        if self._robot.floating_base:
            self._q[:7] = p.x, p.y, p.z, o.x, o.y, o.z, o.w

    def _on_joint_states(self, message: JointState) -> None:
        now = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        if now < self._last + self._period - 1e-9:
            return
        self._last = now
        self._first = now if self._first is None else self._first
        position = dict(zip(message.name, message.position, strict=True))
        angles = [position[joint] for joint in self._robot.joint_names]
        self._q = self._robot.with_joint_positions(self._q, angles)
        blend = min((now - self._first) / BLEND_TIME, 1.0)
        self._command.header.stamp = message.header.stamp
        self._command.effort = (blend * self._forces.efforts(self._q)).tolist()
        self._publisher.publish(self._command)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is asked to end; return the exit code."""
    rclpy.init(args=args)
    try:
        rclpy.spin(StanceController())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except ContactSimError as error:
        rclpy.logging.get_logger('stance_controller').fatal(str(error))
        return 1
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
