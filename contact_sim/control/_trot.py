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

from collections.abc import Callable
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
from contact_sim.control._inverse_dynamics import (
    Answer,
    InverseDynamicsQP,
    LeggedDynamics,
    inverse_dynamics,
    motion_of_legs,
)
from contact_sim.control._stance import BaseGains, turned, wanted_acceleration
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
        self._constants = (
            self._numbers, tuning.gains.numbers, self._offset, self._place, self._height
        )  # fmt: skip
        self._command = np.zeros(3)
        self._memory = new_memory(1)
        self._memories = new_memory(0)
        with suppress(SingularLegs):  # compiles kernels where that is still to be done
            self.answer(0.0, dynamics.q, dynamics.v)
        self._memory = new_memory(1)

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
        state, lift_off, in_air = self._memory
        standing, feet, base = plan(
            time, self._constants, self._command, state[0], lift_off[0], in_air[0], d.q, d.v,
            d.rotation, d.centre_of_mass, d.foot, d.foot_velocity,
        )  # fmt: skip
        return self._inverse.solve(base, feet, standing)

    @property
    def batch(self) -> Callable[[Array, Array, Array], Array] | None:
        """`efforts`, None for robots whose terms Pinocchio computes one by one."""
        return self.efforts if self.dynamics.compiled else None

    def efforts(self, time: Array, q: Array, v: Array) -> Array:
        """Return the joint efforts of many robots [N m], shape (n, n_joints), each as `effort`.

        At times (n,) [s], in states q (n, nq), v (n, nv); rows belong to the same robots in every
        call. NaN where legs cannot move their feet at will.

        Raises:
            InvalidInput: other shapes, states that are not finite, joints that follow others.
        """
        d = self.dynamics
        if not d.compiled:
            raise InvalidInput(
                f'efforts of many robots {d.robot.name}: it has joints that follow others; ask '
                'for the effort of each'
            )
        times, states, speeds = (
            real_array(name, value) for name, value in (('time', time), ('q', q), ('v', v))
        )
        n, robot = times.size, d.robot
        expected = (n,), (n, robot.nq), (n, robot.nv)
        if (times.shape, states.shape, speeds.shape) != expected:
            raise InvalidInput(
                f'efforts of many robots {robot.name}: time, q and v of shapes {times.shape}, '
                f'{states.shape} and {speeds.shape}, expected (n,), (n, {robot.nq}) and '
                f'(n, {robot.nv})'
            )
        if len(self._memories[0]) != n:
            self._memories = new_memory(n)
        q = robot.checked_configurations(states)
        v = robot.checked_velocities(speeds)
        answer = np.empty((n, robot.n_joints))
        efforts_of_worlds(
            np.ascontiguousarray(times), q, v, self._constants, self._command, *self._memories,
            *d.constants, d.scratch, d.terms, self._inverse.constants, answer,
        )  # fmt: skip
        return answer

    def __repr__(self) -> str:
        return summary(self, robot=self.dynamics.robot.name, velocity=self.velocity)


# --- The controller's memory, and its kernels
#
# Of every robot: time of the last call, that of the first step [s]; velocity commanded by now,
# (3,); desired heading [rad]; place that the base stays above, (2,); height of the ground [m].

MEMORY = 9


def new_memory(n: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return memory, places where feet left the ground, and which are in the air, of n robots."""
    return np.full((n, MEMORY), np.nan), np.zeros((n, 4, 3)), np.zeros((n, 4), dtype=np.bool_)


@kernel
def plan(time, constants, command, memory, lift_off, in_air, q, v, R, centre, foot, foot_velocity):
    """Return which feet stand, (n,), and the desired accelerations of feet (n, 3) and base (6,).

    `memory` (MEMORY,), `lift_off` (n, 3) and `in_air` (n,) are those of the last plan.
    """
    numbers, gains, offset, place, base_height = constants
    acceleration, lead, turn_lead, period, duty = numbers[:5]
    swing_time, capture, press, swing_height, swing_p, swing_d = numbers[5:]
    velocity, target, n = memory[2:5], memory[6:8], foot.shape[0]
    present = np.arctan2(R[1, 0], R[0, 0])
    # a new run begins at the present state
    if not 0.0 <= time - memory[0] <= LARGEST_STEP:
        memory[0], memory[1], memory[5] = time, time + STANDING_TIME, present
        velocity[:] = 0.0
        target[0], target[1], memory[8] = q[0], q[1], np.mean(foot[:, 2])
        lift_off[:], in_air[:] = foot, False
    step, since = time - memory[0], time - memory[1]
    memory[0] = time
    # the desired pose moves by what is commanded, but not out of reach
    for k in range(3):
        change = acceleration * step
        velocity[k] += max(min(command[k] - velocity[k], change), -change)
    turn = memory[5] + step * velocity[2] - present
    turn = (turn + np.pi) % (2.0 * np.pi) - np.pi  # in [−π, π)
    yaw = memory[5] = present + min(max(turn, -turn_lead), turn_lead)
    c, s = np.cos(yaw), np.sin(yaw)
    speed = np.array((c * velocity[0] - s * velocity[1], s * velocity[0] + c * velocity[1], 0.0))
    way_x, way_y = target[0] + step * speed[0] - q[0], target[1] + step * speed[1] - q[1]
    reach = min(1.0, lead / max(np.hypot(way_x, way_y), 1e-9))
    target[0], target[1] = q[0] + reach * way_x, q[1] + reach * way_y
    # a foot that leaves the ground swings from where it is to its foothold
    share, standing = np.empty(n), np.empty(n, dtype=np.bool_)
    for i in range(n):
        share[i] = share_of_swing(since, period, duty, offset[i])
        standing[i] = share[i] == STANDS
        if not standing[i] and not in_air[i]:
            lift_off[i] = foot[i]
        in_air[i] = not standing[i]
    aim = footholds(
        centre, R, v, speed, place, share, (yaw, velocity[2]),
        (swing_time, 0.5 * (duty * period)), capture,
    )  # fmt: skip
    aim[:, 2] = memory[8] - press
    feet, memory[8] = accelerations_of_feet(
        foot, foot_velocity, lift_off, aim, share, (swing_height, swing_time, swing_p, swing_d)
    )
    where = np.array((target[0], target[1], memory[8] + base_height))
    base = wanted_acceleration(R, q, v, yaw, where, speed, np.zeros(3), velocity[2], gains)
    return standing, feet, base


@kernel
def efforts_of_worlds(
    times,
    q,
    v,
    constants,
    command,
    memory,
    lift_off,
    in_air,
    tree,
    feet,
    scratch,
    terms,
    inverse,
    out,
):
    """Fill the efforts of many robots, (n, n_joints); see `Trot.efforts`."""
    M, h, R, centre, foot, foot_velocity, jacobian, drift = terms
    for k in range(times.shape[0]):
        motion_of_legs(tree, feet, scratch, q[k], v[k], terms)
        standing, wanted, base = plan(
            times[k], constants, command, memory[k], lift_off[k], in_air[k], q[k], v[k], R, centre,
            foot, foot_velocity,
        )  # fmt: skip
        torque, _, _, _, regular = inverse_dynamics(
            M.T, h, jacobian, drift, v[k], base, wanted, standing, inverse
        )
        if regular:
            out[k] = torque
        else:
            out[k] = np.nan


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
