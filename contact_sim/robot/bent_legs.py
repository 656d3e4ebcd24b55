"""A pose that stands on bent legs, for robots whose description has no pose.

The trunk is upright. Each foot is put below its hip, at one height for all, soles level, and moved
until the centre of mass is well inside the support polygon. The joints of each leg are found by
damped least squares from the best of a grid of starts, and the height and attitude of the foot
then exactly. Bodies that touch each other are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pinocchio as pin

from contact_sim.robot import support_polygon
from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.legs import DOWN, Leg, legs_of
from contact_sim.robot.placement import lowest_heights

STRETCHES = (0.9, 0.85, 0.95, 0.8, 0.7, 0.6)
"""Distances of the foot, or ankle, from the hip that are tried, as shares of the stretched leg."""
STRETCHED = 0.97
"""Share from which a leg counts as straight."""
GRID = 13
"""Starts along the first two bending joints."""
NEAR_LIMIT = (0.05, 0.1)
"""Distance kept from position limits: share of the range, and at most this [rad]."""
LEVEL = 1e-3
"""Differences of height with which a pose still stands [m]."""
EXACT = 1e-9
"""Differences of height in a pose that was found [m]."""
INSIDE, WELL_INSIDE = 0.4, 0.8
"""Least margin of the centre of mass, as a share of that of the middle of the support polygon,
and the margin that is sought."""
SOFT = 3
"""Number of rows that need not be exact: turn, and place in the plane."""
FAR = 0.3
"""Largest distance of a foot from its place, as a share of the stretched leg."""
TILT_LENGTH = 0.3
"""Length that makes a tilt of a sole comparable with a distance [m/rad]."""
TURN_LENGTH = 0.1
"""The same of a turn of a sole about the vertical, which may remain [m/rad]."""
REST = 0.02
"""Weight that keeps joints near their starts [m/rad]."""


@dataclass(frozen=True, eq=False)
class BentLegs:
    """A pose, or why there is none."""

    q: Array | None
    """Of shape (nq,); None: none was found."""
    said: str
    """What was done, in words."""


def bent_legs(
    model: pin.Model, points: Sequence[ContactPoint], neutral: Array, tied: Iterable[str]
) -> BentLegs:
    """Return a pose that stands on bent legs.

    Args:
        model: of the robot, with a floating base.
        points: its contact points.
        neutral: pose of the joints that belong to no leg, trunk upright, (nq,).
        tied: joints that follow others; no leg may have them.
    """
    legs = legs_of(model, points, neutral)
    if len(legs) < 2:
        return BentLegs(None, 'no legs to bend: expected two feet with two parallel joints each')
    moved = {str(model.names[j]) for leg in legs for j in leg.joints}
    following = sorted(moved.intersection(tied))
    if following:
        return BentLegs(None, f'joints of the legs follow others: {", ".join(following[:4])}')
    stuck = [str(model.names[j]) for leg in legs for j in leg.bending if _room(model, j) == 0.0]
    if stuck:
        return BentLegs(None, f'position limits without room: {", ".join(stuck[:4])}')
    search = _Search(model, points, neutral, legs)
    if search.stands(neutral, LEVEL) and search.bent(neutral):
        return BentLegs(neutral, 'the neutral pose stands on bent legs')
    for stretch in STRETCHES:
        q = search.pose(stretch)
        if q is not None:
            return BentLegs(q, f'legs bent to {100 * stretch:.0f} % of their length by a search')
    return BentLegs(None, 'no bent legs within the position limits carry the centre of mass')


class _Search:
    """The kinematics of the legs of one robot."""

    def __init__(
        self,
        model: pin.Model,
        points: Sequence[ContactPoint],
        neutral: Array,
        legs: tuple[Leg, ...],
    ) -> None:
        self._model, self._points, self._neutral, self._legs = model, points, neutral, legs
        self._data = model.createData()
        self._hips = {leg.foot: _Hip(model, neutral, leg) for leg in legs}

    def pose(self, stretch: float) -> Array | None:
        """Return a pose with legs as long as `stretch` of their length, or None."""
        height = max(hip.height(stretch) for hip in self._hips.values())
        shift = np.zeros(2)
        reach, standing = min(hip.reach for hip in self._hips.values()), None
        for _ in range(6):
            q = self._placed(height, shift)
            if q is None or self.stands(q, EXACT, WELL_INSIDE):
                return standing if q is None else q
            if self.stands(q, EXACT):
                standing = q
            feet, mass = self._supporting(q, LEVEL), self._centre_of_mass(q)
            if support_polygon.margin(feet, mass) == -np.inf:
                return standing
            shift = shift + mass - support_polygon.centre(feet)
            if np.linalg.norm(shift) > reach:
                return standing
        return standing

    def stands(self, q: Array, level: float, share: float = INSIDE) -> bool:
        """Return whether the centre of mass is well inside of feet at one height [m]."""
        low = lowest_heights(self._model, self._points, q)
        names = [point.frame for point in self._points]
        of_foot = [min(low[k] for k, n in enumerate(names) if n == name) for name in set(names)]
        if np.ptp(of_foot) > level:
            return False
        for leg in self._legs:
            if leg.sole is not None and self._normal(q, leg) @ DOWN < 1.0 - 1e-4:
                return False
        feet = self._supporting(q, LEVEL)
        inside = support_polygon.margin(feet, self._centre_of_mass(q))
        if inside <= 0.0:
            return False
        middle = support_polygon.margin(feet, support_polygon.centre(feet))
        return inside >= share * middle

    def bent(self, q: Array) -> bool:
        """Return whether no leg of the neutral pose is stretched or at a position limit."""
        return all(hip.stretch(q) < STRETCHED and hip.free for hip in self._hips.values())

    def _placed(self, height: float, shift: Array) -> Array | None:
        """Return the pose with all feet at a height, moved by `shift` from below their hips."""
        for sides in ((1.0,), (-1.0,), (1.0, -1.0)):
            q: Array | None = self._neutral
            for leg in self._legs:
                q = self._first(q, leg, height, shift, sides) if q is not None else None
            if q is not None:
                return q
        return None

    def _first(
        self, q: Array, leg: Leg, height: float, shift: Array, sides: tuple[float, ...]
    ) -> Array | None:
        hip = self._hips[leg.foot]
        for side in sides:
            bent = hip.bent(q, height, shift, side)
            if bent is not None:
                return bent
        return None

    def _normal(self, q: Array, leg: Leg) -> Array:
        pin.forwardKinematics(self._model, self._data, q)
        return np.asarray(self._data.oMi[leg.joint].rotation @ leg.sole)

    def _centre_of_mass(self, q: Array) -> Array:
        return np.array(pin.centerOfMass(self._model, self._data, q)[:2])

    def _supporting(self, q: Array, level: float) -> Array:
        """Return where the contact points are that reach the ground, (n, 2)."""
        low = lowest_heights(self._model, self._points, q)
        pin.forwardKinematics(self._model, self._data, q)
        down = [point for point, z in zip(self._points, low, strict=True) if z < low.min() + level]
        return np.array(
            [
                self._data.oMi[self._model.getJointId(point.joint)].act(point.offset)[:2]
                for point in down
            ]
        )


class _Hip:
    """One leg: where its foot can be put."""

    def __init__(self, model: pin.Model, neutral: Array, leg: Leg) -> None:
        self._model, self._leg, self._data = model, leg, model.createData()
        self._dofs = np.array([model.joints[j].idx_v for j in leg.joints])
        pin.computeJointJacobians(model, self._data, neutral)
        places = [self._data.oMi[j].translation.copy() for j in leg.bending]
        foot = self._data.oMi[leg.joint].act(leg.centre)
        self._axis = self._data.J[3:, model.joints[leg.bending[0]].idx_v].copy()
        self._has_ankle = leg.sole is not None and len(places) > 2
        ends = places if self._has_ankle else [*places, foot]
        self._end = None if not self._has_ankle else leg.bending[-1]
        self.reach = sum(self._across(b - a) for a, b in pairwise(ends))
        below = 0.0
        if leg.sole is not None and self._has_ankle:
            normal = self._data.oMi[leg.joint].rotation @ leg.sole
            below = float((foot - places[-1]) @ normal)
        self._hip, self._below = places[0], below
        self._upright = self._data.oMi[leg.joint].rotation.copy()
        self._beside = ((foot - places[0]) @ self._axis * self._axis)[:2]
        self._neutral = neutral
        self._low, self._high = _bounds(model, leg, neutral)
        forward = np.cross(self._axis, -DOWN)
        back = forward if forward[0] < 0.0 else -forward
        outward = forward if forward @ self._hip > 0.0 else -forward
        ahead = -back if self._has_ankle else back
        self._preferred = ahead if abs(self._axis[1]) > 0.9 else outward

    @property
    def free(self) -> bool:
        """Whether its joints are well within their limits in neutral."""
        return bool((self._low <= 0.0).all() and (self._high >= 0.0).all())

    def height(self, stretch: float) -> float:
        """Return the height of the ground below the hip with the leg that long [m]."""
        return float(self._hip[2] - stretch * self.reach - self._below)

    def stretch(self, q: Array) -> float:
        """Return the distance from hip to ankle or foot as a share of the stretched leg."""
        pin.forwardKinematics(self._model, self._data, q)
        hip = self._data.oMi[self._leg.bending[0]].translation
        return self._across(self._tip() - hip) / self.reach

    def bent(self, q: Array, height: float, shift: Array, side: float) -> Array | None:
        """Return `q` with the foot on the ground, or None where the leg cannot put it there.

        Args:
            q: pose of the other joints (nq,).
            height: of the ground [m].
            shift: of the foot from below its hip [m], (2,).
            side: 1: with the knee ahead of soles, or behind points; -1: on the other side.
        """
        target = np.array([*(self._hip[:2] + self._beside + shift), height])
        start = self._start(q, target, side)
        if start is None:
            return None
        for _ in range(20):  # the lowest point of a foot without a sole changes as it turns
            found = self._solved(q, target, start)
            low = self._lowest(self._moved(q, found))
            if abs(low - height) < 1e-12:
                break
            target[2] += height - low
            start = found
        bent = self._moved(q, found)
        foot = self._foot(bent)
        place = self._hip[:2] + self._beside + shift
        away = np.linalg.norm(foot[:2] - place)
        inside = (found > self._low - 1e-9).all() and (found < self._high + 1e-9).all()
        if abs(low - height) > EXACT or away > FAR * self.reach or not inside:
            return None
        return bent if self.stretch(bent) < STRETCHED and self._side(bent) * side > 0.0 else None

    def _start(self, q: Array, target: Array, side: float) -> Array | None:
        """Return the best start of a grid over hip and knee with the knee on this side."""
        first, second = (self._leg.joints.index(j) for j in self._leg.bending[:2])
        best, least = None, np.inf
        wanted = target + [0.0, 0.0, self._below]
        for a in np.linspace(self._low[first], self._high[first], GRID):
            for b in np.linspace(self._low[second], self._high[second], GRID):
                moves = np.clip(np.zeros(len(self._dofs)), self._low, self._high)
                moves[first], moves[second] = a, b
                pin.forwardKinematics(self._model, self._data, self._moved(q, moves))
                distance = float(np.linalg.norm(self._tip() - wanted))
                if distance < least and self._knee() * side > 0.0:
                    best, least = moves, distance
        return best

    def _solved(self, q: Array, target: Array, start: Array) -> Array:
        """Return moves of the joints from least squares, then with height and tilt exact."""
        moves = start.copy()
        for _ in range(30):
            rows, error = self._rows(self._moved(q, moves), target)
            wide = np.vstack([rows, REST * np.eye(len(moves))])
            right = np.concatenate([error, REST * (start - moves)])
            step = self._free_step(wide, right, moves)
            moves = np.clip(moves + step, self._low, self._high)
            if np.abs(step).max() < 1e-6:
                break
        for _ in range(15):
            rows, error = self._rows(self._moved(q, moves), target)
            if np.abs(error[SOFT:]).max() < 1e-13:
                break
            step = self._free_step(rows[SOFT:], error[SOFT:], moves)
            moves = np.clip(moves + step, self._low, self._high)
        return moves

    def _free_step(self, rows: Array, right: Array, moves: Array) -> Array:
        """Return the least step that solves the rows, without joints that it would push out."""
        free = np.ones(len(moves), dtype=bool)
        step = np.zeros(len(moves))
        for _ in range(len(moves)):
            step[:] = 0.0
            step[free] = np.linalg.lstsq(rows[:, free], right, rcond=1e-9)[0]
            step = np.clip(step, -0.5, 0.5)
            out = (moves + step < self._low - 1e-12) & (moves <= self._low + 1e-12)
            out |= (moves + step > self._high + 1e-12) & (moves >= self._high - 1e-12)
            if not (out & free).any():
                break
            free &= ~out
        return step

    def _rows(self, q: Array, target: Array) -> tuple[Array, Array]:
        """Return the derivatives of the foot's place by the joints, and its errors.

        The last ones, from SOFT on, are to be exact: height and tilt.
        """
        pin.computeJointJacobians(self._model, self._data, q)
        placement, leg = self._data.oMi[self._leg.joint], self._leg
        foot = placement.act(leg.centre)
        jacobian = self._data.J[:, self._dofs]
        rows = jacobian[:3] + np.cross(jacobian[3:].T, foot).T
        error = target - foot
        turned = pin.log3(placement.rotation @ self._upright.T)[2] if self._has_ankle else 0.0
        turn = TURN_LENGTH * jacobian[5] if self._has_ankle else np.zeros(len(self._dofs))
        rows = np.vstack([turn, rows])
        error = np.concatenate([[-TURN_LENGTH * turned], error])
        if not self._has_ankle:
            return rows, error
        normal = placement.rotation @ leg.sole
        tilt = TILT_LENGTH * np.cross(jacobian[3:].T, normal).T[:2]
        return np.vstack([rows, tilt]), np.concatenate([error, -TILT_LENGTH * normal[:2]])

    def _moved(self, q: Array, moves: Array) -> Array:
        """Return `q` with the joints of the leg moved from neutral, (nq,)."""
        v = np.zeros(self._model.nv)
        v[self._dofs] = moves
        bent = pin.integrate(self._model, self._neutral, v)
        whole = q.copy()
        for j in self._leg.joints:
            joint = self._model.joints[j]
            whole[joint.idx_q : joint.idx_q + joint.nq] = bent[
                joint.idx_q : joint.idx_q + joint.nq
            ]
        return whole

    def _lowest(self, q: Array) -> float:
        return float(lowest_heights(self._model, self._leg.points, q).min())

    def _foot(self, q: Array) -> Array:
        pin.forwardKinematics(self._model, self._data, q)
        return np.array(self._data.oMi[self._leg.joint].act(self._leg.centre))

    def _tip(self) -> Array:
        """Return the ankle, or the foot of a leg without one."""
        if self._end is not None:
            return np.array(self._data.oMi[self._end].translation)
        return np.array(self._data.oMi[self._leg.joint].act(self._leg.centre))

    def _side(self, q: Array) -> float:
        pin.forwardKinematics(self._model, self._data, q)
        return self._knee()

    def _knee(self) -> float:
        """Return how far the knee is on the preferred side of the line from hip to tip [m]."""
        hip, knee = (self._data.oMi[j].translation for j in self._leg.bending[:2])
        line = self._tip() - hip
        off = (knee - hip) - (knee - hip) @ line / max(line @ line, 1e-12) * line
        return float(off @ self._preferred)

    def _across(self, segment: Array) -> float:
        """Return the length of a segment seen along the axes that bend the leg [m]."""
        return float(np.linalg.norm(segment - segment @ self._axis * self._axis))


def _room(model: pin.Model, j: int) -> float:
    """Return the range of a joint [rad or m]; inf for one that turns without end."""
    k = model.joints[j].idx_q
    if model.joints[j].nq != 1:
        return np.inf
    return float(model.upperPositionLimit[k] - model.lowerPositionLimit[k])


def _bounds(model: pin.Model, leg: Leg, neutral: Array) -> tuple[Array, Array]:
    """Return the moves from neutral that stay well within the position limits, (n,) each."""
    low, high = [], []
    for j in leg.joints:
        joint = model.joints[j]
        if joint.nq != 1:  # it turns without end
            lower, upper, at = -np.pi, np.pi, 0.0
        else:
            lower = max(float(model.lowerPositionLimit[joint.idx_q]), -np.pi)
            upper = min(float(model.upperPositionLimit[joint.idx_q]), np.pi)
            at = float(neutral[joint.idx_q])
        near = min(NEAR_LIMIT[0] * (upper - lower), NEAR_LIMIT[1])
        low.append(lower + near - at)
        high.append(upper - near - at)
    return np.array(low), np.array(high)
