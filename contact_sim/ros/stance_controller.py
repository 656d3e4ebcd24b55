"""Executable `stance_controller`: holds a robot in its standing pose over joint_commands.

Every state it receives it answers with the standing joint positions (followed by the simulator's
PD) and joint efforts that carry the weight and calm the base: with the contact forces f of least
norm that balance gravity g on the base and brake its velocity v_b,

    J_bᵀ f = g_b − d M_b v_b,     τ = g_j − J_jᵀ f.

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
from contact_sim.robot.contact_point import ContactPoint
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot

Array = NDArray[np.float64]
LATEST = QoSProfile(depth=1)
BRAKING = 12.0
"""d: deceleration of the base over its velocity [1/s]."""
BLEND_TIME = 0.5
"""Simulated seconds in which the efforts fade in: at first the robot may hang in its gains."""


class StanceEfforts:
    """Joint efforts of a robot that stands on all its feet, on level ground."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot, self._model = robot, robot.pinocchio_model
        self._data = self._model.createData()
        self._base = slice(0, 6 if robot.floating_base else 0)

    def at(self, q: Array, v: Array) -> Array:
        """Return the efforts at q (nq,) and v (nv,) [N m], shape (n_joints,)."""
        gravity = pin.computeGeneralizedGravity(self._model, self._data, q)
        inertia = pin.crba(self._model, self._data, q)[self._base, self._base]
        balance = gravity[self._base] - BRAKING * inertia @ v[self._base]
        pin.computeJointJacobians(self._model, self._data, q)
        rows = [self._jacobian(point) for point in self._robot.contact_points]
        jacobian = np.vstack([np.zeros((0, self._model.nv)), *rows])
        force = np.linalg.lstsq(jacobian[:, self._base].T, balance, rcond=None)[0]
        return np.asarray((gravity - jacobian.T @ force)[self._robot.joint_velocity_index])

    def _jacobian(self, point: ContactPoint) -> Array:
        """Return the Jacobian of the lowest point of a foot, world axes, shape (3, nv)."""
        joint = self._model.getJointId(point.joint)
        arm = self._data.oMi[joint].rotation @ point.offset - [0.0, 0.0, point.radius]
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        jacobian = pin.getJointJacobian(self._model, self._data, joint, axes)
        return np.asarray(jacobian[:3] - pin.skew(arm) @ jacobian[3:])


class StanceController(Node):
    """Answers odom and joint_states of one step with joint_commands for it."""

    def __init__(self) -> None:
        super().__init__('stance_controller')
        name = self.declare_parameter('robot', 'go1').value
        urdf_path = self.declare_parameter('urdf_path', '').value
        self._robot = robot = load_robot(urdf_path or name)
        self._efforts = StanceEfforts(robot)
        self._q = robot.reference_configuration()
        self._v = np.zeros(robot.nv)
        self._first: float | None = None
        self._state: JointState | None = None
        self._odom: Odometry | None = None
        self._command = JointState(name=list(robot.joint_names))
        self._command.position = robot.joint_positions(self._q).tolist()
        self._command.velocity = [0.0] * robot.n_joints
        self._publisher = self.create_publisher(JointState, 'joint_commands', LATEST)
        self.create_subscription(Odometry, 'odom', self._on_odom, LATEST)
        self.create_subscription(JointState, 'joint_states', self._on_state, LATEST)

    def _on_odom(self, message: Odometry) -> None:
        self._odom = message
        self._act_on_a_whole_state()

    def _on_state(self, message: JointState) -> None:
        self._state = message
        self._act_on_a_whole_state()

    def _act_on_a_whole_state(self) -> None:
        """Answer once both messages of one step are there: nothing says which comes first."""
        state, odom = self._state, self._odom
        if not self._robot.floating_base and state is not None:
            self._answer(state)
        elif state is not None and odom is not None and state.header.stamp == odom.header.stamp:
            p, r = odom.pose.pose.position, odom.pose.pose.orientation
            linear, angular = odom.twist.twist.linear, odom.twist.twist.angular
            self._q[:7] = p.x, p.y, p.z, r.x, r.y, r.z, r.w
            self._v[:3] = linear.x, linear.y, linear.z
            self._v[3:6] = angular.x, angular.y, angular.z
            self._answer(state)

    def _answer(self, message: JointState) -> None:
        self._state = None
        time = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self._first = time if self._first is None else self._first
        measured = dict(zip(message.name, message.position, strict=True))
        positions = [measured[name] for name in self._robot.joint_names]
        self._q = self._robot.with_joint_positions(self._q, positions)
        share = min((time - self._first) / BLEND_TIME, 1.0)
        self._command.header.stamp = message.header.stamp
        self._command.effort = (share * self._efforts.at(self._q, self._v)).tolist()
        self._publisher.publish(self._command)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where the robot cannot be loaded."""
    try:
        rclpy.init(args=args)
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
