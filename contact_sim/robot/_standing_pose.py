"""Reference poses of a robot, and the search for a standing pose on bent legs."""

from __future__ import annotations

import difflib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import real_array
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, shown
from contact_sim.robot._constraints import ClosedLoops, Constraint
from contact_sim.robot._contact_points import ContactPoint, feet_of
from contact_sim.robot._coordinates import PositionLimit, neutral_configuration, unit_parts
from contact_sim.robot._trees import data_of
from contact_sim.robot._urdf import JointValues

# -------------------------------------------------------------------------------------------- legs

DOWN = np.array([0.0, 0.0, -1.0])
PARALLEL = 0.7
"""Least cosine of the angle between two axes that count as parallel, and of a sole with DOWN."""
SAME_FACE = 1e-3
"""Distance of normals of triangles that are one face; meshes are rounded."""
LEAST_SOLE = 0.02
"""Least width of a sole [m]; what is narrower is a point."""


@dataclass(frozen=True, eq=False)
class Leg:
    """The joints between trunk and foot; all lengths in the neutral configuration."""

    foot: str
    joint: int
    """Index of the joint that moves the foot."""
    points: tuple[ContactPoint, ...]
    joints: tuple[int, ...]
    """Indices of the joints that move this foot and no other, from the trunk on."""
    bending: tuple[int, ...]
    """Those of them whose axes are parallel, across the leg: hip, knee and, if any, ankle."""
    directions: tuple[float, ...]
    """1 or -1 for each joint of `bending`: whether its axis is that of the first, or opposite."""
    sole: Array | None
    """Outward normal of the sole in the axes of `joint`, (3,); None: a point."""
    centre: Array
    """Of the sole or of the points, in the axes of `joint` [m], (3,)."""


def legs_of(model: pin.Model, points: Sequence[ContactPoint], q: Array) -> tuple[Leg, ...]:
    """Return the legs of a robot whose trunk is upright at `q` (nq,); () where a foot has none."""
    data = data_of(model)
    pin.computeJointJacobians(model, data, q)
    feet = feet_of(points)
    chains = [list(model.supports[model.getJointId(foot.joint)])[1:] for foot in feet]
    legs = []
    for foot, chain in zip(feet, chains, strict=True):
        others = {joint for chain_2 in chains if chain_2 is not chain for joint in chain_2}
        own = tuple(j for j in chain if j not in others and model.joints[j].nv == 1)
        bending, directions = _bending(model, data, own)
        if len(bending) < 2:
            return ()
        of_foot = tuple(points[k] for k in foot.points)
        joint = model.getJointId(foot.joint)
        sole, centre = _sole(of_foot, data.oMi[joint].rotation)
        legs.append(Leg(foot.name, joint, of_foot, own, bending, directions, sole, centre))
    return tuple(legs)


def _bending(
    model: pin.Model, data: pin.Data, own: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the largest family of joints of a leg with parallel, level axes; their directions."""
    best: tuple[tuple[int, ...], tuple[float, ...]] = ((), ())
    axes = {j: data.J[3:, model.joints[j].idx_v] for j in own}  # 0 for a joint that slides
    for first in own:
        reference = axes[first]
        if abs(reference[2]) > PARALLEL or not reference.any():
            continue
        family = tuple(j for j in own if abs(axes[j] @ reference) > PARALLEL)
        if len(family) > len(best[0]):
            best = family, tuple(float(np.sign(axes[j] @ reference)) for j in family)
    return best


def _sole(points: tuple[ContactPoint, ...], rotation: Array) -> tuple[Array | None, Array]:
    """Return the normal and the centre of the face of a foot that looks down most, or a point."""
    offsets = np.array([point.offset for point in points])
    radii = np.array([point.radius for point in points])
    down = rotation.T @ DOWN
    mean: Array = offsets.mean(axis=0)
    for normal, corners in _faces(offsets, down):
        low = offsets[corners] + radii[corners, None] * normal
        width = np.linalg.svd(low - low.mean(axis=0), compute_uv=False)
        flat = len(corners) >= 3 and width[1] > LEAST_SOLE
        if normal @ down > PARALLEL and flat and np.ptp(radii[corners]) < SAME_FACE:
            return normal, np.asarray(low.mean(axis=0))
    return None, mean


def _faces(offsets: Array, down: Array) -> list[tuple[Array, NDArray[np.intp]]]:
    """Return outward normals and corners of the faces of a hull, the one that is widest first."""
    if len(offsets) < 3:
        return []
    middle = offsets.mean(axis=0)
    _, sizes, axes = np.linalg.svd(offsets - middle)
    if sizes[-1] < 1e-4 * sizes[0] or len(offsets) == 3:  # all in a plane
        normal = axes[2] if axes[2] @ down > 0.0 else -axes[2]
        return [(normal, np.arange(len(offsets)))]
    try:
        hull = scipy.spatial.ConvexHull(offsets)
    except scipy.spatial.QhullError:
        return []
    faces: list[tuple[Array, NDArray[np.intp], float]] = []
    seen = np.zeros(len(hull.equations), dtype=bool)
    for k, plane in enumerate(hull.equations):
        if seen[k]:
            continue
        same = np.linalg.norm(hull.equations - plane, axis=1) < SAME_FACE
        seen |= same
        corners = np.unique(hull.simplices[same])
        edges = offsets[hull.simplices[same]]
        area = np.linalg.norm(
            np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0]), axis=1
        ).sum()
        faces.append((plane[:3], corners, float(area * max(plane[:3] @ down, 0.0))))
    faces.sort(key=lambda face: -face[2])
    return [(normal, corners) for normal, corners, _ in faces]


# ------------------------------------------------------------------------- placement on the ground

ROOT = 1
"""Index of the first joint of a Pinocchio model; joint 0 is the universe."""


def has_floating_base(model: pin.Model) -> bool:
    """Return whether the first joint of `model` is a free-flyer fixed to the world."""
    return bool(model.njoints > ROOT and model.joints[ROOT].shortname() == 'JointModelFreeFlyer')


def lowest_heights(
    model: pin.Model,
    contact_points: Sequence[ContactPoint],
    q: Array,
    data: pin.Data | None = None,
) -> Array:
    """Return the height of the lowest point of each contact sphere at `q` [m], shape (nc,)."""
    if not contact_points:
        return np.zeros(0)
    data = data_of(model) if data is None else data
    pin.forwardKinematics(model, data, q)
    joints = {point.joint for point in contact_points}
    place = {name: data.oMi[model.getJointId(name)] for name in joints}
    up = {name: M.rotation[2].copy() for name, M in place.items()}
    height = {name: M.translation[2] for name, M in place.items()}
    offsets = np.array([point.offset for point in contact_points])
    turned = np.einsum('ij,ij->i', [up[point.joint] for point in contact_points], offsets)
    lift = np.array([height[point.joint] - point.radius for point in contact_points])
    return np.asarray(turned + lift)


def placed_on_ground(model: pin.Model, contact_points: Sequence[ContactPoint], q: Array) -> Array:
    """Return `q` with the base moved along world z so that the lowest point touches z = 0."""
    placed = q.copy()
    joints = {point.joint for point in contact_points}
    moved = {name for name in joints if ROOT in list(model.supports[model.getJointId(name)])}
    # feet of a second free body in the same model do not count
    carried = [point for point in contact_points if point.joint in moved]
    if not has_floating_base(model) or not carried:
        return placed
    world_to_root = model.jointPlacements[ROOT]  # a name of its own: rotation is a view of it
    up = world_to_root.rotation[2].copy()
    data = data_of(model)
    for _ in range(2):  # the second pass removes the rounding of the first
        placed[:3] -= up * lowest_heights(model, carried, placed, data).min()
    return placed


# --------------------------------------------------------------------- inverse kinematics of a leg

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
"""Number of rows that need not be exact, turn and place in the plane; height and tilt do."""
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
    """The places to which a leg reaches; in the pose `neutral` (nq,) the trunk is upright."""

    def __init__(self, model: pin.Model, neutral: Array, leg: Leg, ranges: Ranges) -> None:
        self._model, self._leg, self._data = model, leg, data_of(model)
        self._dofs = np.array([model.joints[j].idx_v for j in leg.joints])
        pin.computeJointJacobians(model, self._data, neutral)
        places = [self._data.oMi[j].translation.copy() for j in leg.bending]
        foot = self._data.oMi[leg.joint].act(leg.centre)
        self._axis = self._data.J[3:, model.joints[leg.bending[0]].idx_v].copy()
        self._has_ankle = leg.sole is not None and len(places) > 2
        ends = places if self._has_ankle else [*places, foot]
        self._end = leg.bending[-1] if self._has_ankle else None
        self.reach = sum(self._across(b - a) for a, b in pairwise(ends))
        self._hip, self._below = places[0], 0.0
        if self._has_ankle:
            normal = self._data.oMi[leg.joint].rotation @ leg.sole
            self._below = float((foot - places[-1]) @ normal)
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

        The foot is `shift` (2,) away from below its hip [m]. Side 1 has the knee ahead of soles,
        or behind points, side -1 on the other side.
        """
        place = self._hip[:2] + self._beside + shift
        target = np.array([*place, height])
        start = self._start(target, side)
        if start is None:
            return None
        last = np.inf
        for _ in range(20):  # the lowest point of a foot without a sole changes as it turns
            found = self._solved(q, target, start)
            bent = self._moved(q, found)
            low = float(lowest_heights(self._model, self._leg.points, bent).min())
            off = abs(low - height)
            reached = np.abs(self._rows(bent, target)[1][SOFT:]).max() < REACHED
            if not reached or off < 0.1 * EXACT or off > CLOSER * last:
                break
            target[2] += height - low
            start, last = found, off
        pin.forwardKinematics(self._model, self._data, bent)
        foot = self._data.oMi[self._leg.joint].act(self._leg.centre)
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
        """Return the derivatives of the foot's place by the joints, and its errors."""
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

    def _tip(self) -> Array:
        """Return the ankle, or the foot of a leg without one."""
        if self._end is not None:
            return np.array(self._data.oMi[self._end].translation)
        return np.array(self._data.oMi[self._leg.joint].act(self._leg.centre))

    def _side(self, q: Array) -> float:
        """Return how far the knee is on the preferred side of the line from hip to tip [m]."""
        pin.forwardKinematics(self._model, self._data, q)
        hip, knee = (self._data.oMi[j].translation for j in self._leg.bending[:2])
        line = self._tip() - hip
        off = (knee - hip) - (knee - hip) @ line / max(line @ line, 1e-12) * line
        return float(off @ self._preferred)

    def _across(self, segment: Array) -> float:
        """Return the length of a segment seen along the axes that bend the leg [m]."""
        return float(np.linalg.norm(segment - segment @ self._axis * self._axis))


def ranges_of(model: pin.Model, legs: Sequence[Leg], limits: Sequence[PositionLimit]) -> Ranges:
    """Return the positions that the joints of legs may have, at most half a turn both ways."""
    by_joint = {
        limit.joints[0]: (limit.lower, limit.upper) for limit in limits if len(limit.joints) == 1
    }
    ranges = {}
    for j in {j for leg in legs for j in leg.joints}:
        lower, upper = by_joint.get(str(model.names[j]), (-np.inf, np.inf))
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


# --------------------------------------------------------------------------------- support polygon


def polygon_margin(points: Array, place: Array) -> float:
    """Return how far a place (2,) is inside the hull of points (n, 2) [m]; -inf: it is flat."""
    if len(points) < 3:
        return -np.inf
    try:
        faces = scipy.spatial.ConvexHull(points).equations
    except (scipy.spatial.QhullError, ValueError):
        return -np.inf
    return float(-(faces[:, :2] @ place + faces[:, 2]).max())


def polygon_centre(points: Array) -> Array:
    """Return the centroid of the area of the hull of `points` [m], (n, 2); (2,)."""
    corners = points[scipy.spatial.ConvexHull(points).vertices]
    x, y = (corners - corners[0]).T
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    weights = cross / (3.0 * cross.sum())
    return np.asarray(
        corners[0]
        + [(weights * (x + np.roll(x, -1))).sum(), (weights * (y + np.roll(y, -1))).sum()]
    )


# ---------------------------------------------------------------------- search for a standing pose
#
# The trunk is upright. Each foot is put below its hip, all at one height with level soles, and
# moved until the centre of mass is well inside the support polygon. The joints of each leg come
# from damped least squares with the best start of a grid, then height and attitude of the foot are
# solved exactly. Collisions between bodies are not checked.

STRETCHES = (0.9, 0.85, 0.95, 0.8, 0.7, 0.6)
"""Distances of the foot, or ankle, from the hip that are tried, as shares of the stretched leg."""
LEVEL = 1e-3
"""Differences of height with which a pose still stands [m]."""
LEAST_SUPPORT = 5e-3
"""Least margin of the middle of a support polygon: a line of points carries nothing [m]."""
INSIDE, WELL_INSIDE = 0.4, 0.8
"""Least margin of the centre of mass, as a share of that of the middle of the support polygon,
and the margin that is sought."""


def bent_legs(
    model: pin.Model,
    points: Sequence[ContactPoint],
    neutral: Array,
    limits: Sequence[PositionLimit],
    tied: Container[str] = (),
) -> tuple[Array | None, str]:
    """Return a pose (nq,) that stands on bent legs, or None, and how it was found, or why not.

    In `neutral` the trunk is upright, and there the other joints stay. No joint of a leg may be
    `tied` to others by constraints.
    """
    legs = legs_of(model, points, neutral)
    if len(legs) < 2:
        return None, 'no legs to bend: expected two feet with two parallel joints each'
    moved = {str(model.names[j]) for leg in legs for j in leg.joints}
    bound = ', '.join(sorted(joint for joint in moved if joint in tied)[:4])
    if bound:
        return None, f'joints of the legs follow others or are in loops: {bound}'
    ranges = ranges_of(model, legs, limits)
    stuck = [str(model.names[j]) for leg in legs for j in leg.bending if np.ptp(ranges[j]) == 0.0]
    if stuck:
        return None, f'position limits without room: {", ".join(stuck[:4])}'
    search = _Search(model, points, neutral, legs, ranges)
    if search.stands(neutral, LEVEL) and search.bent(neutral):
        return neutral, 'the neutral pose stands on bent legs'
    for stretch in STRETCHES:
        q = search.pose(stretch)
        if q is not None:
            return q, f'legs bent to {100 * stretch:.0f} % of their length by a search'
    return None, 'no bent legs within the position limits carry the centre of mass'


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
        self._data = data_of(model)
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
            feet, mass = self._supporting(q), pin.centerOfMass(self._model, self._data, q)[:2]
            if polygon_margin(feet, mass) == -np.inf:
                return standing
            shift = shift + mass - polygon_centre(feet)
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
        pin.forwardKinematics(self._model, self._data, q)
        for leg in self._legs:
            if leg.sole is not None:
                normal = self._data.oMi[leg.joint].rotation @ leg.sole
                if normal @ DOWN < 1.0 - 1e-4:
                    return False
        feet = self._supporting(q)
        inside = polygon_margin(feet, pin.centerOfMass(self._model, self._data, q)[:2])
        if inside <= 0.0:
            return False
        middle = polygon_margin(feet, polygon_centre(feet))
        return middle > LEAST_SUPPORT and inside >= share * middle

    def bent(self, q: Array) -> bool:
        """Return whether no leg of the neutral pose is stretched or at a position limit."""
        return all(hip.stretch(q) < STRETCHED and hip.free for hip in self._hips.values())

    def _placed(self, height: float, shift: Array) -> Array | None:
        """Return the pose with all feet at a height, moved by `shift` from below their hips."""
        for sides in ((1.0,), (-1.0,), (1.0, -1.0)):
            q = self._neutral
            for leg in self._legs:
                hip, before = self._hips[leg.foot], q
                tried = (hip.bent(before, height, shift, side) for side in sides)
                bent = next((pose for pose in tried if pose is not None), None)
                if bent is None:
                    break
                q = bent
            else:
                return q
        return None

    def _supporting(self, q: Array) -> Array:
        """Return where the contact points are that reach the ground, (n, 2)."""
        low = lowest_heights(self._model, self._points, q)
        pin.forwardKinematics(self._model, self._data, q)
        down = [point for point, z in zip(self._points, low, strict=True) if z < low.min() + LEVEL]
        return np.array(
            [
                self._data.oMi[self._model.getJointId(point.joint)].act(point.offset)[:2]
                for point in down
            ]
        )


# --------------------------------------------------------------------------------- reference poses

STANDING = 'standing'
"""Name of the reference pose that every robot has."""
Poses = Mapping[str, Mapping[str, Any]]
"""Joint values by joint, by pose: an angle or position [rad or m], or all values of the joint."""
ROUNDING = 0.01
"""Largest distance of the norm of a quaternion from 1: files hold a few digits."""
BEYOND = 0.1
"""Distance beyond a position limit at which a pose is still taken [rad or m]."""
MISSPELT = 0.9
"""Similarity of names (difflib) from which one is the other, misspelt."""
ROOT_JOINT = 'root_joint'
"""Name of the floating base in Pinocchio and in SRDFs."""


def reference_poses(
    model: pin.Model,
    described: Mapping[str, JointValues],
    declared: Poses | None,
    points: Sequence[ContactPoint],
    limits: Sequence[PositionLimit],
    constraints: Sequence[Constraint] = (),
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return the poses, q (nq,) by name, and notes about their choice.

    `declared` poses replace those `described` by SRDF and catalogue; joints left out are at
    neutral. Where neither has 'standing' it is searched for, on bent legs.
    """
    neutral = neutral_configuration(model)
    poses = {
        name: configuration(model, neutral, values, f'reference pose {shown(name)}')
        for name, values in described.items()
    }
    poses |= checked_poses(model, neutral, {} if declared is None else declared)
    if STANDING in poses or not points or not has_floating_base(model):
        return poses, ()
    q, note = bent_legs(model, points, neutral, limits, ClosedLoops(model, constraints).tied)
    if q is not None:
        poses[STANDING] = q
    return poses, (f'pose {shown(STANDING)}: {note}',)


def checked_poses(model: pin.Model, neutral: Array, poses: Poses) -> dict[str, Array]:
    """Return declared poses, q (nq,) by name, or refuse a name, a joint or a value."""
    if not isinstance(poses, Mapping):
        raise InvalidInput(
            f'poses = {shown(poses)}: expected values by joint, by name of the pose'
        )
    known = [str(joint) for joint in list(model.names)[1:]]
    configurations = {}
    for name, values in poses.items():
        place, numbers = f'poses[{shown(name)}]', {}
        if not isinstance(name, str) or not name:
            raise InvalidInput(f'{place}: expected a name that is not empty')
        if not isinstance(values, Mapping):
            raise InvalidInput(f'{place} = {shown(values)}: expected values by joint')
        for joint, value in values.items():
            if joint not in known:
                raise UnknownName(f'joint in {place}:', joint, known)
            array = np.atleast_1d(real_array(f'{place}[{shown(joint)}]', value))
            if array.ndim != 1 or not np.isfinite(array).all():
                raise InvalidInput(f'{place}[{joint!r}] = {shown(value)}: expected finite numbers')
            numbers[str(joint)] = tuple(array.tolist())
        try:
            configurations[name] = configuration(model, neutral, numbers, place)
        except RobotDescriptionError as error:
            raise InvalidInput(str(error)) from error
    return configurations


def configuration(model: pin.Model, neutral: Array, values: JointValues, place: str) -> Array:
    """Return `neutral` (nq,) with the joints in `values` set, or raise RobotDescriptionError.

    Joints that the model does not have are passed over, if some are known and none is misspelt:
    one SRDF may serve several versions of a robot (solo.srdf names the hip joints that solo8
    lacks). A pose may be as far beyond a limit as files round; an angle in degrees is refused.
    """
    known = list(model.names)[1:]
    joints = [name for name in values if name != ROOT_JOINT]
    unknown = [name for name in joints if not model.existJointName(name)]
    if joints and len(unknown) == len(joints):
        raise RobotDescriptionError(
            f'{place}: the robot has none of its joints {", ".join(joints)}; '
            f'known: {", ".join(known)}'
        )
    left_out = [str(name) for name in known if name not in values]
    for name in unknown:
        near = difflib.get_close_matches(name, left_out, n=1, cutoff=MISSPELT)
        if near:
            raise RobotDescriptionError(
                f'{place}: the robot has no joint {shown(name)}; did you mean {near[0]!r}?'
            )
    q = neutral.copy()
    for name, numbers in values.items():
        if not model.existJointName(name):
            continue
        joint, where = model.joints[model.getJointId(name)], f'{place}: {name}'
        part, k = _joint_part(joint, numbers, where), joint.idx_q
        lower, upper = model.lowerPositionLimit[k], model.upperPositionLimit[k]
        if joint.nq == 1 and lower < upper and not lower - BEYOND <= part[0] <= upper + BEYOND:
            raise RobotDescriptionError(
                f'{where} = {part[0]:g}, but the joint has the limits {lower:g} and {upper:g}'
            )
        q[k : k + joint.nq] = part
    return np.asarray(pin.normalize(model, q))


def _joint_part(joint: pin.JointModel, numbers: tuple[float, ...], where: str) -> Array:
    part = np.array(numbers)
    if joint.nq == 2 and len(part) == 1:
        return np.array([np.cos(part[0]), np.sin(part[0])])
    if len(part) != joint.nq:
        raise RobotDescriptionError(f'{where} has {len(part)} values, expected {joint.nq}')
    for what, start, length in unit_parts(joint):
        norm = float(np.linalg.norm(part[start : start + length]))
        if abs(norm - 1.0) > ROUNDING:
            raise RobotDescriptionError(f'{where}: the {what} has norm {norm:.4g}, expected 1')
    return part
