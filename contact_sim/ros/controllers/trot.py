"""Executable `trot_controller`: a four-legged robot trots at the velocity of `cmd_vel`.

It answers every state with joint efforts (contact_sim/control/_trot.py). Without a
command it trots on the spot. It is at its best in lockstep, where every command comes in time:

    ros2 launch contact_sim trot_demo.launch.py robot:=anymal_b
    ros2 topic pub -r 1 /cmd_vel geometry_msgs/Twist '{linear: {x: 0.3}, angular: {z: 0.3}}'
"""

from __future__ import annotations

import math
import sys

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from sensor_msgs.msg import JointState

from contact_sim._command_line import ros_help
from contact_sim._types import Array
from contact_sim.control._trot import Trot
from contact_sim.errors import InvalidInput, SingularLegs
from contact_sim.ros._conversions import seconds
from contact_sim.ros.controllers import LATEST, ControllerNode, run

CMD_VEL_TIMEOUT = 0.5
"""Default of `cmd_vel_timeout` for commands with a stamp [s], as of ros2_controllers."""


class TrotController(ControllerNode):
    """Trots at the velocity of `cmd_vel`: linear x and y [m/s], angular z [rad/s].

    Parameters: `friction`, the coefficient that it counts on. `use_stamped_vel`: whether
    `cmd_vel` is of TwistStamped, not of Twist. `cmd_vel_timeout`: simulated time [s] after its
    stamp, or where it has none after its arrival, at which a command is no longer followed, and
    the robot comes to rest; 0 for never, the default without stamps.
    """

    def __init__(self) -> None:
        super().__init__('trot_controller')
        friction = self.declare_parameter('friction', 0.5).value
        stamped = self.declare_parameter('use_stamped_vel', False).value
        default = CMD_VEL_TIMEOUT if stamped else 0.0
        self._timeout: float = self.declare_parameter('cmd_vel_timeout', default).value
        if not self._timeout >= 0.0:
            raise InvalidInput(f'cmd_vel_timeout = {self._timeout}: expected at least 0 s')
        self._trot = Trot(self.robot, friction)
        self._now = -math.inf  # simulated time of the last state [s]
        self._since: float | None = None  # age of the command; None: from the next state on
        if stamped:
            self.create_subscription(TwistStamped, 'cmd_vel', self._on_stamped, LATEST)
        else:
            self.create_subscription(Twist, 'cmd_vel', self._on_velocity, LATEST)

    def _on_velocity(self, message: Twist, stamp: float = 0.0) -> None:
        """Follow a velocity that is as old as its stamp [s], 0 for now."""
        try:
            self._trot.velocity = (message.linear.x, message.linear.y, message.angular.z)
        except InvalidInput as error:
            self.get_logger().warning(f'cmd_vel: {error}', throttle_duration_sec=1.0)
            return
        self._since = stamp if 0.0 < stamp < self._now else None

    def _on_stamped(self, message: TwistStamped) -> None:
        stamp = seconds(message.header.stamp)
        if self._timeout and 0.0 < stamp < self._now - self._timeout:
            text = f'cmd_vel: stamped {stamp:.9g} s at t = {self._now:.9g} s: too old'
            self.get_logger().warning(text, throttle_duration_sec=1.0)
            return
        self._on_velocity(message.twist, stamp)

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return efforts; none at all where the legs are in no state to trot."""
        if self._since is None or time < self._now:  # new, or time was set back
            self._since = time
        self._now = time
        if self._timeout and time - self._since > self._timeout:
            self._trot.velocity = (0.0, 0.0, 0.0)  # on the spot
        try:
            effort = self._trot.effort(time, q, v)
        except SingularLegs:
            effort = np.full(self.robot.n_joints, np.nan)
        if not np.isfinite(effort).all():
            self.get_logger().warning('no efforts for this state', throttle_duration_sec=1.0)
            effort = np.zeros(self.robot.n_joints)
        return self.joints(effort)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where it cannot start."""
    words = sys.argv[1:] if args is None else args
    if ros_help(words, 'contact_sim trot', str(__doc__), ('--ros-args -p robot:=go1',)):
        return 0
    return run(TrotController, 'trot_controller', args)


if __name__ == '__main__':
    sys.exit(main())
