"""Executable `trot_controller`: a four-legged robot trots at the velocity of `cmd_vel`.

It answers every state with joint efforts (contact_sim/control/_trot.py). Without a
command it trots on the spot. It is at its best in lockstep, where every command comes in time:

    ros2 launch contact_sim trot_demo.launch.py robot:=anymal_b
    ros2 topic pub -r 1 /cmd_vel geometry_msgs/Twist '{linear: {x: 0.3}, angular: {z: 0.3}}'
"""

from __future__ import annotations

import sys

import numpy as np
from sensor_msgs.msg import JointState

from contact_sim._command_line import ros_help
from contact_sim._types import Array
from contact_sim.control._trot import Trot
from contact_sim.errors import SingularLegs
from contact_sim.ros.controllers import CommandedVelocity, ControllerNode, run


class TrotController(ControllerNode):
    """Trots at the velocity of `cmd_vel`: linear x and y [m/s], angular z [rad/s].

    Parameters: `friction`, the coefficient that it counts on, and those of `CommandedVelocity`;
    where a command is too old the robot comes to rest.
    """

    def __init__(self) -> None:
        super().__init__('trot_controller')
        friction = self.declare_parameter('friction', 0.5).value
        self._trot = Trot(self.robot, friction)
        self._velocity = CommandedVelocity(self, self._follow)

    def _follow(self, velocity: tuple[float, float, float]) -> None:
        self._trot.velocity = velocity

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return efforts; none at all where the legs are in no state to trot."""
        self._velocity.advance(time)
        try:
            effort = self._trot.effort(time, q, v)
        except SingularLegs:
            effort = np.full(self.robot.n_joints, np.nan)
        return self.efforts(effort)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where it cannot start."""
    words = sys.argv[1:] if args is None else args
    if ros_help(words, 'contact_sim trot', str(__doc__), ('--ros-args -p robot:=go1',)):
        return 0
    return run(TrotController, 'trot_controller', args)


if __name__ == '__main__':
    sys.exit(main())
