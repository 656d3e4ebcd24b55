"""Gaits for long runs: the package's trot, and a march without a plan that costs next to nothing.

March lifts diagonal legs in turn, in joint space, under PD. It keeps every foot touching down and
lifting off; it is no way to walk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import contact_sim
from contact_sim.control._trot import Trot

Array = NDArray[np.float64]
PERIOD = 0.5
"""Seconds per stride."""
LIFT = 0.2
"""Largest change of a thigh joint [rad]; the knee bends twice as far."""


class March:
    """Marches on the spot with a quadruped whose legs have three joints each."""

    def __init__(self, robot: contact_sim.RobotModel) -> None:
        self._robot = robot
        self._kp, self._kd = robot.default_gains
        self._stand = robot.joint_positions(robot.reference_configuration())
        self._swing = np.zeros((4, robot.n_joints))
        for leg in range(4):
            # thighs swing towards the body: forwards or backwards, as the robot stands
            side = np.sign(self._stand[3 * leg + 1]) * LIFT
            self._swing[leg, 3 * leg + 1 : 3 * leg + 3] = side, -2.0 * side
        self._phase = np.array([0.0, np.pi, np.pi, 0.0])

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return joint efforts [N m], shape (n_joints,)."""
        up = np.maximum(np.sin(2.0 * np.pi * time / PERIOD + self._phase), 0.0)
        target = self._stand + min(time, 1.0) * up @ self._swing
        error = target - self._robot.joint_positions(q)
        return self._kp * error - self._kd * self._robot.joint_velocities(v)


GAITS = ('trot', 'march')
FORWARD = (0.3, 0.0, 0.1)
"""Speed of the trot at the beginning: forward, sideways [m/s], turn [rad/s]."""


def gait(name: str, robot: contact_sim.RobotModel) -> March | Trot:
    """Return a gait that has just begun."""
    if name == 'march':
        return March(robot)
    trot = Trot(robot)
    trot.velocity = FORWARD
    return trot


def chosen(model: str) -> contact_sim.NullSpace | str:
    """Return the model; null_space has to let feet go, or nothing trots."""
    return contact_sim.NullSpace(release=True) if model == 'null_space' else model
