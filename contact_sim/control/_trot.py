"""Trot controller: diagonal pairs of feet alternate, and footholds balance the body.

A foot lands where the body will need it [Raibert 1986]: around the centre of mass c at touch-down,
half a stance ahead of it, and further where the robot is faster than desired,

    p = c + R(ψ) n + v T_stance / 2 + k √(z/g) (v − v*)

with n the place of the foot in the stance and ψ the heading at the middle of its stance. Between
the steps inverse dynamics hold height and attitude; on two feet the turn about the line through
them is beyond any controller, and only the next footholds mend it.

[Raibert 1986] Raibert. Legged Robots That Balance. MIT Press, chapter 2.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields
from math import cos, floor, hypot, sin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import (
    LARGEST,
    checked,
    checked_fields,
    closed_attributes,
    number_within,
    real_array,
)
from contact_sim.control._inverse_dynamics import Answer, InverseDynamicsQP, LeggedDynamics
from contact_sim.control._stance import BaseGains, BaseReference, base_acceleration, turned, yaw_of
from contact_sim.errors import InvalidInput, SingularLegs, of_type, shown, summary
from contact_sim.robot._model import RobotModel
from contact_sim.solvers._jit import kernel

# --- Gait and swing


@dataclass(frozen=True)
class Gait:
    """A trot: diagonal pairs of feet take turns, half a period apart."""

    period: float
    """From lift-off to lift-off of one foot [s]."""
    duty: float = 0.55
    """Share of the period in which a foot stands [-]; above 0.5 all four stand in between."""

    def __post_init__(self) -> None:
        if not 0.0 < self.period < np.inf:
            raise InvalidInput(f'gait period = {shown(self.period)} s: expected a positive number')
        if not 0.5 <= self.duty < 1.0:
            raise InvalidInput(f'gait duty = {shown(self.duty)}: expected a value in [0.5, 1)')

    @property
    def swing_time(self) -> float:
        """Duration of a swing [s]."""
        return (1.0 - self.duty) * self.period

    def swing(self, time: float, offset: float) -> float | None:
        """Return the share of its swing that a foot has done at `time` [s], None if it stands.

        Every foot begins with a stance; `offset` in shares of the period is 0 or 0.5 for a pair.
        """
        cycle = time / self.period - offset
        phase = cycle - floor(cycle)
        if cycle < 0.0 or phase < self.duty:
            return None
        return (phase - self.duty) / (1.0 - self.duty)


def diagonal_pairs(feet: ArrayLike) -> NDArray[np.int64]:
    """Return 0 or 1 for each of the feet (4, 2), equal for those diagonal to each other."""
    points = np.asarray(feet, dtype=float)
    if points.shape != (4, 2):
        raise InvalidInput(f'feet of a trot: shape {points.shape}, expected (4, 2): four feet')
    x, y = (points - points.mean(axis=0)).T
    around = np.argsort(np.arctan2(y, x))  # of the corners in turn, every other one
    pair = np.empty(4, dtype=np.int64)
    pair[around] = (0, 1, 0, 1)
    return pair


@kernel
def swing_motion(start, end, height, share, duration):
    """Return position, velocity and acceleration of a foot in the air, each of shape (3,).

    Least jerk from `start`, where it left the ground, to `end`, where it lands, (3,) [m], and a
    hump of 64 s³ (1 − s)³ on top, s in [0, 1] the `share`: at both ends velocity and acceleration
    are zero.
    """
    s, r = share, 1.0 - share
    hump = 64.0 * height
    # shares of the way and of the hump, in place, velocity and acceleration
    along = (s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 30.0 * (s * r) ** 2, 60.0 * s * r * (r - s))
    over = ((s * r) ** 3, 3.0 * (s * r) ** 2 * (r - s), 6.0 * s * r * ((r - s) ** 2 - s * r))
    position, velocity, acceleration = np.empty(3), np.empty(3), np.empty(3)
    for k in range(3):
        way, up = end[k] - start[k], hump if k == 2 else 0.0
        position[k] = start[k] + along[0] * way + over[0] * up
        velocity[k] = (along[1] * way + over[1] * up) / duration
        acceleration[k] = (along[2] * way + over[2] * up) / duration**2
    return position, velocity, acceleration


# --- The controller

GRAVITY = 9.81
GAINS = BaseGains((10.0, 10.0, 200.0), (6.0, 6.0, 25.0), 200.0, 25.0)
"""Soft along the ground, which the footholds look after."""
STANDING_TIME = 0.3
"""Seconds before the first step."""
STANDS = -1.0
"""Share of its swing of a foot that stands."""
LARGEST_STEP = 0.05
"""Longest time between two calls that still counts as one run [s]."""


@checked_fields
@dataclass(frozen=True)
class TrotTuning:
    """Parameters of a trot; lengths and times scale with the robot's standing height z."""

    period: float = 2.4
    """Of the gait over √(z/g) [-]."""
    duty: float = 0.55
    """Share of the period in which a foot stands [-]."""
    swing_height: float = 0.2
    """Over z [-]."""
    press: float = 0.005
    """Depth below the ground at which a swing aims, over z [-]: it lands before its time."""
    capture: float = 0.3
    """k: how much a wrong speed moves a foothold [-]."""
    swing_p: float = 900.0
    """Of feet in the air [1/s²]."""
    swing_d: float = 60.0
    """Of feet in the air, and of standing feet that do not stand yet [1/s]."""
    gains: BaseGains = GAINS
    """Of the base."""
    lead: float = 0.15
    """Largest distance of the desired place of the base from the real one, over z [-]."""
    turn_lead: float = 0.2
    """The same for its heading [rad]."""
    acceleration: float = 1.0
    """Rate at which a new command takes effect [m/s², rad/s²]."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type == 'float':
                number_within(f'TrotTuning.{field.name}', getattr(self, field.name), LARGEST)
        if not (self.period > 0.0 and 0.0 < self.duty < 1.0):
            raise InvalidInput(
                f'TrotTuning: period = {self.period}, duty = {self.duty}: expected > 0, and '
                'between 0 and 1'
            )


@closed_attributes(friction='give it to Trot(robot, friction=...)')
class Trot:
    """Trot controller of a four-legged robot with a commanded velocity.

    Args:
        robot: with three driven joints on each of four legs.
        friction: μ that it assumes [-].
        tuning: numbers of the gait.

    Raises:
        InvalidInput: a robot with other legs.
    """

    tuning: TrotTuning
    """Numbers of the gait."""
    dynamics: LeggedDynamics
    """Of the robot."""
    gait: Gait
    """When each foot stands and swings."""

    def __init__(
        self, robot: RobotModel, friction: float = 0.5, tuning: TrotTuning | None = None
    ) -> None:
        chosen = TrotTuning() if tuning is None else tuning
        self.tuning = tuning = of_type('tuning', chosen, TrotTuning)
        self.dynamics = dynamics = LeggedDynamics(robot)
        self._inverse = InverseDynamicsQP(dynamics, friction)
        feet = dynamics.foot - dynamics.foot.mean(axis=0)
        self._place = feet * [1.0, 1.0, 0.0]
        self._offset = (0.5 * diagonal_pairs(feet[:, :2])).tolist()
        self._height = float(robot.reference_configuration()[2])
        self._natural = float(np.sqrt(self._height / GRAVITY))
        self.gait = Gait(tuning.period * self._natural, tuning.duty)
        self._command = np.zeros(3)
        self._last: float | None = None
        with suppress(SingularLegs):  # compiles kernels where that is still to be done
            self.answer(0.0, dynamics.q, dynamics.v)
        self._last = None

    @property
    def velocity(self) -> Array:
        """Desired forward and sideways speed [m/s] and turning rate [rad/s]; assignable, (3,)."""
        return self._command.copy()

    @velocity.setter
    def velocity(self, value: ArrayLike) -> None:
        command = real_array('velocity', value)
        if command.shape != (3,) or not np.isfinite(command).all():
            raise InvalidInput(
                f'velocity = {shown(value)}: expected forward, sideways [m/s] and turn [rad/s], '
                'finite'
            )
        self._command = command.copy()

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m] for the state q (nq,), v (nv,) at `time` [s]."""
        return self.answer(time, q, v).effort

    @checked
    def answer(self, time: float, q: Array, v: Array) -> Answer:
        """Return efforts, forces and acceleration for the state at `time` [s].

        A time that goes back, or leaps ahead, starts the gait anew.
        """
        self.dynamics.update(q, v)
        if self._last is None or not 0.0 <= time - self._last <= LARGEST_STEP:
            self._start(time)
        self._advance(time - self._last)  # type: ignore[operator]
        self._last = time
        standing, feet = self._feet(time - self._begin)
        position = np.array([*self._target, self._ground + self._height])
        turning = float(self._velocity[2])
        reference = BaseReference(position, self._yaw, self._speed, yaw_rate=turning)
        base = base_acceleration(self.dynamics, reference, self.tuning.gains)
        return self._inverse.solve(base, feet, standing)

    def _start(self, time: float) -> None:
        """Begin at the present state."""
        d = self.dynamics
        self._last, self._begin = time, time + STANDING_TIME
        self._ground = float(d.foot[:, 2].mean())
        self._target = d.q[:2].copy()
        self._yaw = yaw_of(d.rotation)
        self._velocity = self._speed = np.zeros(3)
        self._lift_off = d.foot.copy()
        self._in_air = [False] * d.n_feet

    def _advance(self, step: float) -> None:
        """Move the desired pose by what is commanded, but not out of reach."""
        d, t = self.dynamics, self.tuning
        change = t.acceleration * step
        ahead = np.maximum(np.minimum(self._command - self._velocity, change), -change)
        self._velocity = self._velocity + ahead
        forward, sideways, rate = self._velocity.tolist()
        present = yaw_of(d.rotation)
        turn = self._yaw + step * rate - present
        turn = float((turn + np.pi) % (2.0 * np.pi) - np.pi)  # in [−π, π)
        self._yaw = present + min(max(turn, -t.turn_lead), t.turn_lead)
        c, s = cos(self._yaw), sin(self._yaw)
        self._speed = np.array([c * forward - s * sideways, s * forward + c * sideways, 0.0])
        way = self._target + step * self._speed[:2] - d.q[:2]
        reach = t.lead * self._height / max(hypot(*way.tolist()), 1e-9)
        self._target = d.q[:2] + min(1.0, reach) * way

    def _feet(self, time: float) -> tuple[NDArray[np.bool_], Array]:
        """Return which feet stand, and the desired accelerations of all."""
        d, t, gait = self.dynamics, self.tuning, self.gait
        share = np.full(len(self._offset), STANDS)
        for i, offset in enumerate(self._offset):
            swing = gait.swing(time, offset)
            if swing is not None:
                share[i] = swing
                if not self._in_air[i]:
                    self._lift_off[i] = d.foot[i]
            self._in_air[i] = swing is not None
        half_stance = 0.5 * (gait.duty * gait.period)
        aim = footholds(
            d.centre_of_mass, d.rotation, d.v, self._speed, self._place, share,
            (self._yaw, float(self._velocity[2])), (gait.swing_time, half_stance),
            t.capture * self._natural,
        )  # fmt: skip
        aim[:, 2] = self._ground - t.press * self._height
        acceleration, self._ground = accelerations_of_feet(
            d.foot, d.foot_velocity, self._lift_off, aim, share,
            (t.swing_height * self._height, gait.swing_time, t.swing_p, t.swing_d),
        )  # fmt: skip
        return share == STANDS, acceleration

    def __repr__(self) -> str:
        return summary(self, robot=self.dynamics.robot.name, velocity=self.velocity)


@kernel
def footholds(centre, R, v, speed, place, share, heading, times, capture):
    """Return where the feet should land, height left open, [m] in world, shape (n, 3).

    R: axes of the base in world; `speed` v*, in world; `place` n of every foot, (n, 3); `share` of
    its swing that each has done; `heading`: desired yaw and its rate; `times` of a swing, and half
    that of a stance [s]; `capture` k √(z/g) [s].
    """
    answer = np.empty(place.shape)
    for i in range(place.shape[0]):
        ahead = (1.0 - share[i]) * times[0] + times[1]
        turn = turned(heading[0] + ahead * heading[1])
        for k in range(3):
            present = R[k, 0] * v[0] + R[k, 1] * v[1] + R[k, 2] * v[2]
            answer[i, k] = centre[k] + ahead * present + capture * (present - speed[k])
            for j in range(3):
                answer[i, k] += turn[k, j] * place[i, j]
    return answer


@kernel
def accelerations_of_feet(foot, velocity, lift_off, aim, share, numbers):
    """Return the desired accelerations [m/s²], shape (n, 3), and the height of the ground [m].

    A foot swings from `lift_off` to `aim`, (n, 3) [m], and has done its `share` of that, or it
    STANDS and is braked. `numbers`: height [m] and duration [s] of a swing, p [1/s²] and d [1/s]
    of the feet.
    """
    height, duration, p, d = numbers
    desired, ground, n_standing = np.empty(foot.shape), 0.0, 0
    for i in range(foot.shape[0]):
        if share[i] == STANDS:
            ground += foot[i, 2]
            n_standing += 1
            for k in range(3):
                desired[i, k] = -d * velocity[i, k]
            continue
        x, dx, ddx = swing_motion(lift_off[i], aim[i], height, share[i], duration)
        for k in range(3):
            desired[i, k] = ddx[k] + p * (x[k] - foot[i, k]) + d * (dx[k] - velocity[i, k])
    return desired, ground / n_standing
