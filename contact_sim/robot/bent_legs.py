"""A pose that stands on bent legs, for robots whose description has no pose.

The trunk is upright. Each foot is put below its hip, at one height for all, soles level, and moved
until the centre of mass is well inside the support polygon. The joints of each leg are found by
damped least squares from the best of a grid of starts, and the height and attitude of the foot
then exactly. Bodies that touch each other are not looked for.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_sim.robot.support_polygon import centre, margin
from contact_sim.robot.contact_point import Array, ContactPoint
from contact_sim.robot.leg_reach import EXACT, STRETCHED, LegReach, Ranges, ranges_of
from contact_sim.robot.legs import DOWN, Leg, legs_of
from contact_sim.robot.placement import lowest_heights
from contact_sim.robot.position_limits import PositionLimit

STRETCHES = (0.9, 0.85, 0.95, 0.8, 0.7, 0.6)
"""Distances of the foot, or ankle, from the hip that are tried, as shares of the stretched leg."""
LEVEL = 1e-3
"""Differences of height with which a pose still stands [m]."""
LEAST_SUPPORT = 5e-3
"""Least margin of the middle of a support polygon: a line of points carries nothing [m]."""
INSIDE, WELL_INSIDE = 0.4, 0.8
"""Least margin of the centre of mass, as a share of that of the middle of the support polygon,
and the margin that is sought."""


@dataclass(frozen=True, eq=False)
class BentLegs:
    """A pose, or why there is none."""

    q: Array | None
    """Of shape (nq,); None: none was found."""
    said: str
    """What was done, in words."""


def bent_legs(
    model: pin.Model,
    points: Sequence[ContactPoint],
    neutral: Array,
    limits: Sequence[PositionLimit],
    tied: Container[str] = (),
) -> BentLegs:
    """Return a pose that stands on bent legs.

    Args:
        model: of the robot, with a floating base.
        points: its contact points.
        neutral: pose of the joints that belong to no leg, trunk upright, (nq,).
        limits: of the joints.
        tied: joints that constraints tie to others; no leg may have any.
    """
    legs = legs_of(model, points, neutral)
    if len(legs) < 2:
        return BentLegs(None, 'no legs to bend: expected two feet with two parallel joints each')
    moved = {str(model.names[j]) for leg in legs for j in leg.joints}
    bound = sorted(joint for joint in moved if joint in tied)
    if bound:
        return BentLegs(
            None, f'joints of the legs follow others or are in loops: {", ".join(bound[:4])}'
        )
    ranges = ranges_of(model, legs, limits)
    stuck = [str(model.names[j]) for leg in legs for j in leg.bending if np.ptp(ranges[j]) == 0.0]
    if stuck:
        return BentLegs(None, f'position limits without room: {", ".join(stuck[:4])}')
    search = _Search(model, points, neutral, legs, ranges)
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
        ranges: Ranges,
    ) -> None:
        self._model, self._points, self._neutral, self._legs = model, points, neutral, legs
        self._data = model.createData()
        self._hips = {leg.foot: LegReach(model, neutral, leg, ranges) for leg in legs}

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
            if margin(feet, mass) == -np.inf:
                return standing
            shift = shift + mass - centre(feet)
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
        inside = margin(feet, self._centre_of_mass(q))
        if inside <= 0.0:
            return False
        middle = margin(feet, centre(feet))
        return middle > LEAST_SUPPORT and inside >= share * middle

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
