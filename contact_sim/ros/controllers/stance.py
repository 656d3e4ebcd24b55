"""Executable `stance_controller`: a robot on all its feet stands still, squats or sways.

It answers every state with joint targets, which the simulator's PD follows, and the
efforts of inverse dynamics on top (contact_sim/control/_stance.py). At first, and wherever the
base is not where it should be, it waits in the standing pose: efforts carry the weight and calm
the base, with the contact forces f of least norm that balance gravity g on the base and brake its
velocity v_b,

    J_bᵀ f = g_b − d M_b v_b,     τ = g_j − J_jᵀ f.

Robots without three joints per leg, such as solo8, stay in that mode.

    ros2 run contact_sim stance_controller --ros-args -p robot:=anymal_b -p motion:=sway
"""

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
from sensor_msgs.msg import JointState

from contact_sim._command_line import ros_help
from contact_sim._types import Array
from contact_sim.control._inverse_dynamics import can_move_its_feet
from contact_sim.control._stance import BaseGains, BaseMotion, Stance
from contact_sim.errors import InvalidInput
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.ros.controllers import ControllerNode, run

BRAKING = 12.0
"""d: deceleration of the base over its velocity [1/s]."""
CALM = BaseGains((0.0, 0.0, 0.0), (BRAKING, BRAKING, BRAKING), 0.0, BRAKING)
"""Gains of the efforts: joint targets hold the base, however late commands come."""
BLEND_TIME = 0.5
"""Simulated seconds in which the efforts fade in: at first the robot may hang in its gains."""
ASTRAY = 0.05
"""Distance of the base from where it should be at which all begins anew [m]."""


class StanceEfforts:
    """Joint efforts of a robot that stands on all its feet, on level ground."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot, self._model = robot, robot.pinocchio_model
        self._data = data_of(self._model)
        self._base = slice(0, 6 if robot.floating_base else 0)

    def at(self, q: Array, v: Array) -> Array:
        """Return the efforts at q (nq,) and v (nv,) [N m], shape (n_joints,)."""
        gravity = pin.computeGeneralizedGravity(self._model, self._data, q)
        gravity = gravity - self._robot.spring_effort(q)
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


class StanceController(ControllerNode):
    """Stands, then moves its base.

    Parameters: `motion` (hold, squat, sway), `amplitude` [m], `frequency` [Hz] and `friction`, the
    coefficient that it counts on.
    """

    def __init__(self) -> None:
        super().__init__('stance_controller')
        motion = self.declare_parameter('motion', 'hold').value
        amplitude = self.declare_parameter('amplitude', 0.03).value
        frequency = self.declare_parameter('frequency', 0.5).value
        self._friction = self.declare_parameter('friction', 0.5).value
        self._motion = BaseMotion(motion, amplitude, frequency)
        self._whole_body = can_move_its_feet(self.robot)
        if not self._whole_body and motion != 'hold':
            raise InvalidInput(
                f'motion {motion!r}: robot {self.robot.name} can only hold, its legs have not '
                'three joints each under a floating base'
            )
        self._efforts = StanceEfforts(self.robot)
        self._pose = self.robot.joint_positions(self.robot.reference_configuration())
        self._first: float | None = None
        # the first one compiles kernels: now, not when a state waits
        self._stance = self._stance_anew() if self._whole_body else None

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return joint targets and efforts."""
        if self._first is None or time < self._first:
            self._first, self._stance = time, None
        share = (time - self._first) / BLEND_TIME
        if share < 1.0 or not self._whole_body:
            return self.joints(min(share, 1.0) * self._efforts.at(q, v), self._pose)
        if self._stance is None:
            self._stance = self._stance_anew()
        effort = self._stance.effort(time, q, v)
        reference = self._stance.reference(time).position
        if not np.isfinite(effort).all() or np.linalg.norm(q[:3] - reference) > ASTRAY:
            self._first = None
            return self.joints(np.zeros(self.robot.n_joints), self._pose)
        return self.joints(effort, *self._stance.joint_targets(time))

    def _stance_anew(self) -> Stance:
        return Stance(self.robot, self._motion, self._friction, CALM)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where it cannot start."""
    words = sys.argv[1:] if args is None else args
    examples = ('--ros-args -p robot:=go1 -p motion:=squat',)
    if ros_help(words, 'contact_sim stance', str(__doc__), examples):
        return 0
    return run(StanceController, 'stance_controller', args)


if __name__ == '__main__':
    sys.exit(main())
