"""Executable `policy_controller`: a trained policy controls a robot.

It answers every state with joint targets of the policy, which the simulator's PD follows with the
gains of the policy; the controller sets them before it begins. With `gains: own` it computes the
PD itself, at the rate of the states, and answers with efforts. docs/policies.md describes the file
of a policy. A policy that observes the ground around the robot reads it from `height_scan`, whose
rate and grid the simulation has to have. It is at its best in lockstep:

    ros2 run contact_sim policy_controller --ros-args -p robot:=go1 -p policy:=go1.yaml
    ros2 topic pub -r 1 /cmd_vel geometry_msgs/Twist '{linear: {x: 0.5}}'
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import rclpy
from numpy.typing import ArrayLike
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from scipy.spatial import KDTree
from sensor_msgs.msg import JointState, PointCloud2

from contact_sim._command_line import ros_help
from contact_sim._types import Array
from contact_sim.control import load_policy
from contact_sim.control._policy_file import read_policy
from contact_sim.errors import ContactSimError, InvalidInput, known_name
from contact_sim.ros.controllers import LATEST, CommandedVelocity, ControllerNode, run

GAINS = 'simulation', 'own'
"""Who follows the joint targets of a policy."""
WAIT = 1.0
"""Wall seconds after which the controller says that it still waits for the simulation."""


class ScannedGround:
    """The ground as the last message of `height_scan` says; the points are those of the scan."""

    regions = ()

    def __init__(self, points: int) -> None:
        self._points = points
        self._tree: KDTree | None = None
        self._z = np.zeros(points)

    @property
    def known(self) -> bool:
        """Whether a message has come."""
        return self._tree is not None

    def take(self, message: PointCloud2) -> None:
        """Keep the heights of a message.

        Raises:
            InvalidInput: another number of points, or no x, y, z.
        """
        number = message.width * message.height
        places = {field.name: field.offset for field in message.fields}
        if number != self._points or not places.keys() >= set('xyz'):
            raise InvalidInput(
                f'height_scan: {number} points, the policy observes {self._points}: set the '
                'parameters height_scan.* of the simulation to the grid of the policy'
            )
        rows = np.frombuffer(bytes(message.data), np.uint8).reshape(number, message.point_step)
        x, y, z = (
            np.ascontiguousarray(rows[:, places[name] : places[name] + 4]).view('<f4').ravel()
            for name in 'xyz'
        )
        self._tree, self._z = KDTree(np.column_stack([x, y])), z.astype(float)

    def heights(self, points: ArrayLike) -> Array:
        """Return the heights of the nearest points of the scan to points (n, 2) [m], (n,).

        The robot has moved since, and the order of the points may be another.
        """
        assert self._tree is not None
        return np.asarray(self._z[self._tree.query(points)[1]])


class PolicyController(ControllerNode):
    """Runs a policy at the velocity of `cmd_vel`: linear x and y [m/s], angular z [rad/s].

    Parameters: `policy`, its file. `gains`: who follows its joint targets, 'simulation' with the
    gains of the policy, or this node, 'own'. `simulation`: name of the node that simulates.
    Besides those of `CommandedVelocity`.

    Raises:
        InvalidInput: no policy, or one that cannot be used with the robot.
    """

    def __init__(self) -> None:
        super().__init__('policy_controller')
        path = self.declare_parameter('policy', '').value
        gains = self.declare_parameter('gains', GAINS[0]).value
        self._simulation = self.declare_parameter('simulation', 'contact_sim').value
        if not path:
            raise InvalidInput('policy: expected the file of a policy, -p policy:=walk.yaml')
        self._own_gains = known_name('gains', gains, GAINS) == 'own'
        self._policy = load_policy(path, self.robot)
        file = read_policy(Path(path), self.robot)
        self._gains = dict(zip(file.joints, zip(file.kp, file.kd, strict=True), strict=True))
        self._velocity = CommandedVelocity(self, self._follow, tuple(file.velocity.tolist()))
        self._scanned: ScannedGround | None = None
        if file.scan is not None:
            self._scanned = ground = ScannedGround(len(file.scan.grid))
            self._policy.ground = ground

            def on_scan(message: PointCloud2) -> None:
                try:
                    ground.take(message)
                except InvalidInput as error:
                    self.get_logger().error(str(error), throttle_duration_sec=1.0)

            self.create_subscription(PointCloud2, 'height_scan', on_scan, LATEST)

    def connect(self) -> None:
        """Set the gains of the simulation, then appear on the topics."""
        if not self._own_gains:
            self._set_gains()
        super().connect()

    def _set_gains(self) -> None:
        client = self.create_client(SetParameters, f'{self._simulation}/set_parameters')
        while not client.wait_for_service(timeout_sec=WAIT):
            if not rclpy.ok():
                return
            self.get_logger().info(
                f'waits for the simulation, the node {self._simulation!r}, to set the gains of '
                'the policy; gains:=own does without', once=True,
            )  # fmt: skip
        request = SetParameters.Request()
        for joint, values in self._gains.items():
            for name, value in zip('pd', values, strict=True):
                number = Parameter(f'gains.{joint}.{name}', value=float(value))
                request.parameters.append(number.to_parameter_msg())
        future = client.call_async(request)
        rclpy.spin_until_future_complete(self, future)
        refused = [one.reason for one in future.result().results if not one.successful]
        if refused:
            raise ContactSimError(f'the simulation refused the gains of the policy: {refused[0]}')

    def _follow(self, velocity: tuple[float, float, float]) -> None:
        self._policy.velocity = velocity

    def command(self, time: float, q: Array, v: Array) -> JointState:
        """Return joint targets, or efforts with `gains: own`."""
        self._velocity.advance(time)
        if self._scanned is not None and not self._scanned.known:
            text = 'waits for height_scan: set publish_rate.height_scan of the simulation'
            self.get_logger().warning(text, throttle_duration_sec=1.0)
            return self.joints(np.zeros(self.robot.n_joints))
        if self._own_gains:
            return self.efforts(self._policy.effort(time, q, v))
        target = self._policy.command(time, q, v)
        return self.joints(target.effort, target.position, target.velocity)


def main(args: list[str] | None = None) -> int:
    """Run the controller until it is interrupted; return 1 where it cannot start."""
    words = sys.argv[1:] if args is None else args
    example = '--ros-args -p robot:=go1 -p policy:=walk.yaml'
    if ros_help(words, 'contact_sim policy', str(__doc__), (example,)):
        return 0
    return run(PolicyController, 'policy_controller', args)


if __name__ == '__main__':
    sys.exit(main())
