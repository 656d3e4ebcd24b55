"""Executable `balance_controller`: a robot keeps standing on its soles, also when it is pushed.

It answers every state with joint efforts (contact_sim/control/_balance.py). It is at its best in
lockstep, where every command comes in time. For bipeds, humanoids, and every other robot whose
contact points on the ground enclose an area; `python -m contact_sim.inspect` says which do.

    ros2 run contact_sim balance_controller --ros-args -p robot:=go1
"""

from __future__ import annotations

import sys

from sensor_msgs.msg import JointState

from contact_sim._command_line import ros_help
from contact_sim._types import Array
from contact_sim.control._balance import Balance
from contact_sim.ros.controllers import ControllerNode, run


class BalanceController(ControllerNode):
    """Keeps the pose `pose` over the soles.

    Parameters: `pose`, a reference pose of the robot, and `friction`, the coefficient that it
    counts on.
    """

    def __init__(self) -> None:
        super().__init__('balance_controller')
        pose = self.declare_parameter('pose', 'standing').value
        friction = self.declare_parameter('friction', 0.5).value
        self._balance = Balance(self.robot, pose, friction)

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return efforts; none at all where they would not be finite."""
        return self.efforts(self._balance.effort(time, q, v))


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where it cannot start."""
    words = sys.argv[1:] if args is None else args
    examples = ('--ros-args -p robot:=go1', '--ros-args -p urdf_path:=my_humanoid.urdf')
    if ros_help(words, 'contact_sim balance', str(__doc__), examples):
        return 0
    return run(BalanceController, 'balance_controller', args)


if __name__ == '__main__':
    sys.exit(main())
