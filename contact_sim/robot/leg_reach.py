"""One leg of a robot whose trunk is upright: where its foot can be put, and with which joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import pinocchio as pin

from contact_sim.robot.contact_point import Array
from contact_sim.robot.legs import DOWN, Leg
from contact_sim.robot.placement import lowest_heights
from contact_sim.robot.position_limits import PositionLimit

GRID = 13
"""Starts along the first two bending joints."""
NEAR_LIMIT = (0.05, 0.1)
"""Distance kept from position limits: share of the range, and at most this [rad]."""
FAR = 0.3
"""Largest distance of a foot from its place, as a share of the stretched leg."""
TILT_LENGTH = 0.3
"""Length that makes a tilt of a sole comparable with a distance [m/rad]."""
TURN_LENGTH = 0.1
"""The same of a turn of a sole about the vertical, which may remain [m/rad]."""
REST = 0.02
"""Weight that keeps joints near their starts [m/rad]."""
SOFT = 3
"""Number of rows that need not be exact: turn, and place in the plane."""
STRETCHED = 0.97
"""Share from which a leg counts as straight."""
REACHED = 1e-6
"""Error of height and tilt with which a leg reaches its place [m]."""
CLOSER = 0.9
"""Share of the last error of height that a round must beat."""
EXACT = 1e-9
"""Differences of height in a pose that was found [m]."""
Ranges = Mapping[int, tuple[float, float]]
"""Least and largest position by the index of a joint [rad or m]."""


class LegReach:
    """The places to which a leg reaches.

    Args:
        model: of the robot.
        neutral: pose with an upright trunk, (nq,).
        leg: the leg.
        ranges: positions that its joints may have.
    """

    def __init__(self, model: pin.Model, neutral: Array, leg: Leg, ranges: Ranges) -> None:
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
        self._low, self._high = _bounds(model, leg, neutral, ranges)
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
        start = self._start(target, side)
        if start is None:
            return None
        last = np.inf
        for _ in range(20):  # the lowest point of a foot without a sole changes as it turns
            found = self._solved(q, target, start)
            bent = self._moved(q, found)
            low = self._lowest(bent)
            off = abs(low - height)
            reached = np.abs(self._rows(bent, target)[1][SOFT:]).max() < REACHED
            if not reached or off < 0.1 * EXACT or off > CLOSER * last:
                break
            target[2] += height - low
            start, last = found, off
        foot = self._foot(bent)
        place = self._hip[:2] + self._beside + shift
        away = np.linalg.norm(foot[:2] - place)
        inside = (found > self._low - 1e-9).all() and (found < self._high + 1e-9).all()
        if not reached or off > EXACT or away > FAR * self.reach or not inside:
            return None
        return bent if self.stretch(bent) < STRETCHED and self._side(bent) * side > 0.0 else None

    def _start(self, target: Array, side: float) -> Array | None:
        """Return the best start of the grid with the knee on this side."""
        moves, tips, knees = self._grid
        distance = np.linalg.norm(tips - target - [0.0, 0.0, self._below], axis=1)
        distance[knees * side <= 0.0] = np.inf
        best = int(np.argmin(distance))
        return moves[best] if np.isfinite(distance[best]) else None

    @cached_property
    def _grid(self) -> tuple[Array, Array, Array]:
        """Moves of the joints over hip and knee, where the tip is then, and how far the knee."""
        first, second = (self._leg.joints.index(j) for j in self._leg.bending[:2])
        middle = np.clip(np.zeros(len(self._dofs)), self._low, self._high)
        moves, tips, knees = [], [], []
        for a in np.linspace(self._low[first], self._high[first], GRID):
            for b in np.linspace(self._low[second], self._high[second], GRID):
                moved = middle.copy()
                moved[first], moved[second] = a, b
                moves.append(moved)
                knees.append(self._side(self._moved(self._neutral, moved)))
                tips.append(self._tip())
        return np.array(moves), np.array(tips), np.array(knees)

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


def ranges_of(model: pin.Model, legs: Sequence[Leg], limits: Sequence[PositionLimit]) -> Ranges:
    """Return the positions that the joints of legs may have, at most half a turn both ways."""
    own = [limit for limit in limits if len(limit.joints) == 1]
    said = {limit.joints[0]: (limit.lower, limit.upper) for limit in own}
    ranges = {}
    for j in {j for leg in legs for j in leg.joints}:
        lower, upper = said.get(str(model.names[j]), (-np.inf, np.inf))
        ranges[j] = max(lower, -np.pi), min(upper, np.pi)
    return ranges


def _bounds(model: pin.Model, leg: Leg, neutral: Array, ranges: Ranges) -> tuple[Array, Array]:
    """Return the moves from neutral that stay well within the position limits, (n,) each."""
    low, high = [], []
    for j in leg.joints:
        joint, (lower, upper) = model.joints[j], ranges[j]
        at = float(neutral[joint.idx_q]) if joint.nq == 1 else 0.0
        near = min(NEAR_LIMIT[0] * (upper - lower), NEAR_LIMIT[1])
        low.append(lower + near - at)
        high.append(upper - near - at)
    return np.array(low), np.array(high)
