"""Controllers that both engines of a comparison run, each fed with the state of its own engine.

stand   joint PD around the reference pose
squat   joint PD around a target that bends and stretches all legs once per second
trot    `contact_sim.control._trot.Trot` walking forward: closed loop, with feedback of the base
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import contact_sim
from contact_sim.control._trot import Trot

Array = NDArray[np.float64]
SQUAT_PERIOD = 1.0
"""Seconds per squat."""
SQUAT_DEPTH = 0.2
"""Largest change of a thigh joint [rad]; the knee bends twice as far."""
LEG_JOINTS = 3
FORWARD_SPEED = 0.3
"""Of the trot [m/s]."""


class Motion(Protocol):
    """What moves a robot."""

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts (n_joints,) [N m] at a time [s] and state."""
        ...


class Stand:
    """Joint PD around the reference pose."""

    def __init__(self, robot: contact_sim.RobotModel) -> None:
        self._robot = robot
        self.kp, self.kd = robot.default_gains
        self.pose = robot.joint_positions(robot.reference_configuration())

    def target(self, time: float) -> Array:
        """Return the joint positions aimed at [rad], shape (n_joints,)."""
        return self.pose

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m], shape (n_joints,)."""
        error = self.target(time) - self._robot.joint_positions(q)
        return np.asarray(self.kp * error - self.kd * self._robot.joint_velocities(v))


class Squat(Stand):
    """Joint PD around legs that bend and stretch, for robots with three joints per leg.

    Raises:
        ValueError: a robot with other legs.
    """

    def __init__(self, robot: contact_sim.RobotModel) -> None:
        super().__init__(robot)
        if robot.n_joints % LEG_JOINTS:
            raise ValueError(f'{robot.name}: {robot.n_joints} joints, expected 3 per leg')
        self._bend = np.zeros(robot.n_joints)
        for hip in range(0, robot.n_joints, LEG_JOINTS):
            # thighs turn on the way in which the legs are bent already
            side = np.sign(self.pose[hip + 1]) * SQUAT_DEPTH
            self._bend[hip + 1], self._bend[hip + 2] = side, -2.0 * side

    def target(self, time: float) -> Array:
        """Return the joint positions aimed at [rad], shape (n_joints,)."""
        share = 0.5 - 0.5 * np.cos(2.0 * np.pi * time / SQUAT_PERIOD)
        return np.asarray(self.pose + share * self._bend)


def trot(robot: contact_sim.RobotModel) -> Motion:
    """Return a trot that walks forward."""
    controller = Trot(robot)
    controller.velocity = [FORWARD_SPEED, 0.0, 0.0]
    return controller


MOTIONS: dict[str, Callable[[contact_sim.RobotModel], Motion]] = {
    'stand': Stand,
    'squat': Squat,
    'trot': trot,
}
