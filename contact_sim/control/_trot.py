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
from math import isfinite

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
        share = share_of_swing(time, self.period, self.duty, offset)
        return None if share == STANDS else float(share)


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


STANDS = -1.0
"""Share of its swing of a foot that stands."""


@kernel
def share_of_swing(time, period, duty, offset):
    """Return the share of its swing that a foot has done, or STANDS; see `Gait.swing`."""
    cycle = time / period - offset
    phase = cycle - np.floor(cycle)
    if cycle < 0.0 or phase < duty:
        return STANDS
    return (phase - duty) / (1.0 - duty)


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
NOTHING = np.zeros(3)
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
        self._offset = 0.5 * diagonal_pairs(feet[:, :2])
        self._height = float(robot.reference_configuration()[2])
        self._natural = float(np.sqrt(self._height / GRAVITY))
        self.gait = gait = Gait(tuning.period * self._natural, tuning.duty)
        self._numbers = np.array([
            tuning.acceleration, tuning.lead * self._height, tuning.turn_lead, gait.period,
            gait.duty, gait.swing_time, tuning.capture * self._natural,
            tuning.press * self._height, tuning.swing_height * self._height, tuning.swing_p,
            tuning.swing_d,
        ])  # fmt: skip
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
        if type(time) is not float or not isfinite(time):
            return self.answer(time, q, v).effort  # checks it
        return self._answer(time, q, v).effort

    @checked
    def answer(self, time: float, q: Array, v: Array) -> Answer:
        """Return efforts, forces and acceleration for the state at `time` [s].

        A time that goes back, or leaps ahead, starts the gait anew.
        """
        return self._answer(time, q, v)

    def _answer(self, time: float, q: Array, v: Array) -> Answer:
        d = self.dynamics
        d.update(q, v)
        if self._last is None or not 0.0 <= time - self._last <= LARGEST_STEP:
            self._start(time)
        standing, feet, speed, place, yaw, yaw_rate = plan(
            time - self._begin, time - self._last, self._numbers, self._command, self._memory,  # type: ignore[operator]
            self._lift_off, self._in_air, self._offset, self._place, d.rotation, d.q, d.v,
            d.centre_of_mass, d.foot, d.foot_velocity,
        )  # fmt: skip
        self._last = time
        place[2] += self._height
        reference = BaseReference(place, yaw, speed, NOTHING, yaw_rate)
        base = base_acceleration(d, reference, self.tuning.gains)
        return self._inverse.solve(base, feet, standing)

    def _start(self, time: float) -> None:
        """Begin at the present state."""
        d = self.dynamics
        self._last, self._begin = time, time + STANDING_TIME
        # velocity that is commanded by now, desired heading, place along the ground, its height
        self._memory = np.zeros(7)
        self._memory[3] = yaw_of(d.rotation)
        self._memory[4:6], self._memory[6] = d.q[:2], d.foot[:, 2].mean()
        self._lift_off, self._in_air = d.foot.copy(), np.zeros(d.n_feet, dtype=bool)

    def __repr__(self) -> str:
        return summary(self, robot=self.dynamics.robot.name, velocity=self.velocity)


@kernel
def plan(
    time,
    step,
    numbers,
    command,
    memory,
    lift_off,
    in_air,
    offset,
    place,
    R,
    q,
    v,
    centre,
    foot,
    foot_velocity,
):
    """Return which feet stand, (n,), and what feet and base should do now.

    That is: accelerations of the feet (n, 3), velocity of the base (3,), its place above which it
    stays (3,), heading [rad] and its rate. `step`: time since the last plan [s], at which `memory`
    (7,), `lift_off` (n, 3) and `in_air` (n,) were left.
    """
    acceleration, lead, turn_lead, period, duty = numbers[:5]
    swing_time, capture, press, swing_height, swing_p, swing_d = numbers[5:]
    velocity, target, n = memory[:3], memory[4:6], foot.shape[0]
    # the desired pose moves by what is commanded, but not out of reach
    for k in range(3):
        change = acceleration * step
        velocity[k] += max(min(command[k] - velocity[k], change), -change)
    present = np.arctan2(R[1, 0], R[0, 0])
    turn = memory[3] + step * velocity[2] - present
    turn = (turn + np.pi) % (2.0 * np.pi) - np.pi  # in [−π, π)
    yaw = memory[3] = present + min(max(turn, -turn_lead), turn_lead)
    c, s = np.cos(yaw), np.sin(yaw)
    speed = np.array((c * velocity[0] - s * velocity[1], s * velocity[0] + c * velocity[1], 0.0))
    way_x, way_y = target[0] + step * speed[0] - q[0], target[1] + step * speed[1] - q[1]
    reach = min(1.0, lead / max(np.hypot(way_x, way_y), 1e-9))
    target[0], target[1] = q[0] + reach * way_x, q[1] + reach * way_y
    # a foot that leaves the ground swings from where it is to its foothold
    share, standing = np.empty(n), np.empty(n, dtype=np.bool_)
    for i in range(n):
        share[i] = share_of_swing(time, period, duty, offset[i])
        standing[i] = share[i] == STANDS
        if not standing[i] and not in_air[i]:
            lift_off[i] = foot[i]
        in_air[i] = not standing[i]
    aim = footholds(
        centre, R, v, speed, place, share, (yaw, velocity[2]),
        (swing_time, 0.5 * (duty * period)), capture,
    )  # fmt: skip
    aim[:, 2] = memory[6] - press
    desired, memory[6] = accelerations_of_feet(
        foot, foot_velocity, lift_off, aim, share, (swing_height, swing_time, swing_p, swing_d)
    )
    where = np.array((target[0], target[1], memory[6]))
    return standing, desired, speed, where, yaw, velocity[2]


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
