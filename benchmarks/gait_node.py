"""A gait as a ROS node: answers every state with efforts of the same stamp."""

from __future__ import annotations

import time as wall
from pathlib import Path

import numpy as np
import rclpy
from gaits import gait
from numpy.typing import NDArray
from rclpy.executors import ExternalShutdownException
from sensor_msgs.msg import JointState

from contact_sim.ros.controllers import ControllerNode

Array = NDArray[np.float64]


class GaitNode(ControllerNode):
    """Trots, or marches."""

    def __init__(self) -> None:
        super().__init__('gait')
        self._name = self.declare_parameter('gait', 'trot').value
        self._gait, self._time = gait(self._name, self.robot), 0.0
        self._arrivals: list[float] = []
        self._log = self.declare_parameter('arrivals', '').value

    def close(self) -> None:
        """Write the wall times [s] at which states came, where a file was named for them."""
        if self._log:
            np.save(Path(self._log), np.array(self._arrivals))

    def _on_state(self, message: bytes) -> None:
        self._arrivals.append(wall.perf_counter())
        super()._on_state(message)

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return the efforts of the gait; it begins anew where time goes back."""
        if time < self._time:
            self._gait = gait(self._name, self.robot)
        self._time = time
        try:
            return self.joints(self._gait.effort(time, q, v))
        except np.linalg.LinAlgError:  # fallen, and no state to go on from
            return self.joints(np.zeros(self.robot.n_joints))


def main() -> None:
    """Run until interrupted."""
    rclpy.init()
    node = GaitNode()
    node.connect()
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.close()
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
