"""Executable `stance_controller`: holds a robot in its standing pose over joint_commands.

Every state it receives it answers with the standing joint positions (followed by the simulator's
PD) and the joint efforts that carry the weight: with the contact forces f of least norm that
balance gravity on the base,

    J_bᵀ f = g_b,     τ = g_j − J_jᵀ f.

A small example to start from: it knows nothing of the simulator but its topics.
"""

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
import rclpy
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from contact_sim.errors import ContactSimError
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot

Array = NDArray[np.float64]


def weight_bearing_effort(robot: RobotModel, q: Array) -> Array:
    """Return joint efforts (n_joints,) [N m] that hold the robot still at q (nq,) on all feet."""
    model = robot.pinocchio_model
    data = model.createData()
    gravity = pin.computeGeneralizedGravity(model, data, q)
    pin.computeJointJacobians(model, data, q)
    rows = []
    for point in robot.contact_points:
        joint = model.getJointId(point.joint)
        centre = data.oMi[joint].act(point.offset)
        contact = pin.SE3(np.eye(3), centre - [0.0, 0.0, point.radius])
        jacobian = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.WORLD)
        rows.append(contact.actInv(pin.SE3.Identity()).toActionMatrix()[:3] @ jacobian)
    contact_jacobian = np.vstack(rows)
    base = slice(0, 6)
    force = np.linalg.lstsq(contact_jacobian[:, base].T, gravity[base], rcond=None)[0]
    return np.asarray(robot.selection_matrix @ (gravity - contact_jacobian.T @ force))


class StanceController(Node):
    """Answers every joint_states message with a joint_commands message."""

    def __init__(self) -> None:
        super().__init__('stance_controller')
        name = self.declare_parameter('robot', 'go1').value
        urdf_path = self.declare_parameter('urdf_path', '').value
        self._robot = load_robot(urdf_path or name)
        self._q = self._robot.reference_configuration('standing').copy()
        self._command = JointState(name=list(self._robot.joint_names))
        self._command.position = self._robot.joint_positions(self._q).tolist()
        self._command.velocity = [0.0] * self._robot.n_joints
        self._publisher = self.create_publisher(JointState, 'joint_commands', QoSProfile(depth=1))
        self.create_subscription(Odometry, 'odom', self._on_odom, QoSProfile(depth=1))
        self.create_subscription(JointState, 'joint_states', self._on_state, QoSProfile(depth=1))

    def _on_odom(self, message: Odometry) -> None:
        p, r = message.pose.pose.position, message.pose.pose.orientation
        self._q[:7] = p.x, p.y, p.z, r.x, r.y, r.z, r.w

    def _on_state(self, message: JointState) -> None:
        index = {name: k for k, name in enumerate(message.name)}
        measured = np.array([message.position[index[name]] for name in self._robot.joint_names])
        q = self._robot.with_joint_positions(self._q, measured)
        self._command.header.stamp = message.header.stamp
        self._command.effort = weight_bearing_effort(self._robot, q).tolist()
        self._publisher.publish(self._command)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where the robot cannot be loaded."""
    rclpy.init(args=args)
    try:
        rclpy.spin(StanceController())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except ContactSimError as error:
        print(f'stance_controller: {error}', file=sys.stderr)
        return 1
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
