"""Executable `trot_controller`: a four-legged robot trots as fast as `cmd_vel` says.

Every state it receives it answers with joint efforts (contact_sim/control/trot.py). Without a
command it trots on the spot. It is at its best in lockstep, where every command comes in time:

    ros2 launch contact_sim trot_demo.launch.py robot:=anymal_b
    ros2 topic pub -r 1 /cmd_vel geometry_msgs/Twist '{linear: {x: 0.3}, angular: {z: 0.3}}'
"""

from __future__ import annotations

import sys

import numpy as np
from geometry_msgs.msg import Twist
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from contact_sim.control.trot import Trot
from contact_sim.errors import InvalidInput
from contact_sim.ros.controllers.base import LATEST, Controller, run

Array = NDArray[np.float64]


class TrotController(Controller):
    """Trots at the velocity of `cmd_vel`: linear x and y [m/s], angular z [rad/s].

    Parameters: `friction`, the coefficient that it counts on.
    """

    def __init__(self) -> None:
        super().__init__('trot_controller')
        friction = self.declare_parameter('friction', 0.5).value
        self._trot = Trot(self.robot, friction)
        self.create_subscription(Twist, 'cmd_vel', self._on_velocity, LATEST)

    def _on_velocity(self, message: Twist) -> None:
        try:
            self._trot.velocity = (message.linear.x, message.linear.y, message.angular.z)
        except InvalidInput as error:
            self.get_logger().warning(f'cmd_vel: {error}', throttle_duration_sec=1.0)

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return efforts; none at all where the legs are in no state to trot."""
        try:
            effort = self._trot.effort(time, q, v)
        except np.linalg.LinAlgError:
            effort = np.full(self.robot.n_joints, np.nan)
        if not np.isfinite(effort).all():
            self.get_logger().warning('no efforts for this state', throttle_duration_sec=1.0)
            effort = np.zeros(self.robot.n_joints)
        return self.joints(effort)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where it cannot start."""
    return run(TrotController, 'trot_controller', args)


if __name__ == '__main__':
    sys.exit(main())
