"""Standing on all feet: the base holds still, squats or sways, the feet stay where they are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.arguments import checked, checked_fields
from contact_sim.control.base_motion import (
    BaseGains,
    BaseReference,
    base_acceleration,
    turned,
    yaw_of,
)
from contact_sim.control.inverse_dynamics import Answer, InverseDynamics
from contact_sim.control.legs import BASE, JOINTS, LeggedDynamics
from contact_sim.errors import InvalidInput, SingularLegs, UnknownName, of_type, shown
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
MOTIONS = ('hold', 'squat', 'sway')
GAINS = BaseGains((400.0, 400.0, 400.0), (40.0, 40.0, 40.0), 400.0, 40.0)
FADE_TIME = 1.0
"""Seconds in which a motion grows to its amplitude."""
SHORT_AXIS = 0.5
"""Extent of the ellipse of `sway` fore and aft over its extent to the sides."""


@checked_fields
@dataclass(frozen=True)
class BaseMotion:
    """A periodic motion of the base about the pose where it begins.

    Raises:
        UnknownName: a motion that does not exist.
        InvalidInput: numbers that are not finite and at least zero.
    """

    name: str = 'hold'
    """hold; squat: down by 2 amplitudes and up; sway: an ellipse in the horizontal plane."""
    amplitude: float = 0.03
    """[m]."""
    frequency: float = 0.5
    """[Hz]."""

    def __post_init__(self) -> None:
        if self.name not in MOTIONS:
            raise UnknownName('motion', self.name, MOTIONS)
        for what in ('amplitude', 'frequency'):
            if not 0.0 <= getattr(self, what) < np.inf:
                raise InvalidInput(
                    f'{what} = {shown(getattr(self, what))}: expected a finite value of at least 0'
                )

    def at(self, time: float) -> tuple[Array, Array, Array]:
        """Return offset [m], velocity and acceleration of the base `time` s after the start."""
        if self.name == 'hold':
            return np.zeros(3), np.zeros(3), np.zeros(3)
        w = 2.0 * pi * self.frequency
        c, s = cos(w * time), sin(w * time)
        a, b = self.amplitude, SHORT_AXIS * self.amplitude
        if self.name == 'sway':
            curve = ((b * c, a * s, 0.0), (-b * s * w, a * c * w, 0.0),
                     (-b * c * w**2, -a * s * w**2, 0.0))  # fmt: skip
        else:
            curve = ((0.0, 0.0, a * (c - 1.0)), (0.0, 0.0, -a * s * w),
                     (0.0, 0.0, -a * c * w**2))  # fmt: skip
        share, rate, bend = _fade(time)
        product_rule = ((share, 0.0, 0.0), (rate, share, 0.0), (bend, 2.0 * rate, share))
        x, dx, ddx = np.array(product_rule) @ np.array(curve)
        return x, dx, ddx


class Stance:
    """Inverse dynamics of a robot on all its feet, with feed-forward and PD on the base.

    Args:
        robot: with three driven joints per leg.
        motion: what the base does, a name or a BaseMotion.
        friction: μ that it counts on [-].
        gains: of the base.

    Raises:
        InvalidInput: a robot whose legs cannot move their feet in all directions.
        UnknownName: a motion that does not exist.
    """

    def __init__(
        self,
        robot: RobotModel,
        motion: str | BaseMotion = 'hold',
        friction: float = 0.5,
        gains: BaseGains = GAINS,
    ) -> None:
        chosen = BaseMotion(motion) if isinstance(motion, str) else motion
        self.motion = of_type('motion', chosen, BaseMotion)
        self.dynamics = LeggedDynamics(robot)
        self._inverse = InverseDynamics(self.dynamics, friction)
        self._gains = of_type('gains', gains, BaseGains)
        self._standing = np.ones(self.dynamics.n_feet, dtype=bool)
        self._still = np.zeros((self.dynamics.n_feet, 3))
        self._height = float(robot.reference_configuration()[2])
        self._begin: tuple[float, Array, float] | None = None
        with suppress(SingularLegs):  # compiles kernels where that is still to be done
            self.answer(0.0, self.dynamics.q, self.dynamics.v)
        self._begin = None

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m] for the state q (nq,), v (nv,) at `time` [s].

        The first call decides where on the ground the robot stands.
        """
        return self.answer(time, q, v).effort

    @checked
    def answer(self, time: float, q: Array, v: Array) -> Answer:
        """Return efforts, forces and acceleration for the state at `time` [s]."""
        self.dynamics.update(q, v)
        base = base_acceleration(self.dynamics, self.reference(time), self._gains)
        return self._inverse.solve(base, self._still, self._standing)

    @checked
    def reference(self, time: float) -> BaseReference:
        """Return where the base should be at `time` [s]; the first call begins the motion."""
        if self._begin is None:
            height = self.dynamics.foot[:, 2].mean() + self._height
            place = np.array([*self.dynamics.q[:2], height])
            self._begin = time, place, yaw_of(self.dynamics.rotation)
        begin, place, yaw = self._begin
        offset, velocity, acceleration = self.motion.at(time - begin)
        return BaseReference(place + offset, yaw, velocity, acceleration)

    @checked
    def joint_targets(self, time: float) -> tuple[Array, Array]:
        """Return positions and velocities of the joints that take the base where it should be.

        To first order from the state of the last `effort`, with the feet where they are:
        q_j − J_j⁻¹ J_b ξ with ξ the way of the base, in its own axes. Shapes (n_joints,).
        """
        d, reference = self.dynamics, self.reference(time)
        heading, R = turned(reference.yaw), d.rotation
        way = np.concatenate([R.T @ (reference.position - d.q[:3]), pin.log3(R.T @ heading)])
        rate = np.concatenate([R.T @ reference.velocity, np.zeros(3)])
        moves = -np.linalg.solve(
            d.jacobian[:, JOINTS], d.jacobian[:, BASE] @ np.column_stack([way, rate])
        )
        return d.robot.joint_positions(d.q) + moves[:, 0], moves[:, 1]


def _fade(time: float) -> tuple[float, float, float]:
    """Return a share that grows from 0 to 1, with its first two derivatives."""
    s = min(max(time / FADE_TIME, 0.0), 1.0)
    if s >= 1.0:
        return 1.0, 0.0, 0.0
    return (
        s**3 * (10.0 - 15.0 * s + 6.0 * s**2),
        30.0 * s**2 * (1.0 - s) ** 2 / FADE_TIME,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / FADE_TIME**2,
    )
