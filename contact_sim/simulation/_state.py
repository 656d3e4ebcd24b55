"""Snapshots of a simulation, and the state of a robot that stands on a terrain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import finite_array, number_within, real_array, within
from contact_sim.collision._surface import FACETED, PLANES, STEEP
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import InvalidInput, one_line, shown
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import JoinedRobots, parts_of
from contact_sim.robot._standing_pose import STANDING
from contact_sim.robot._trees import data_of


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State on which the next steps depend, besides robot, terrain and commands."""

    robot: str
    buffer: Array
    """The step data, see `StepData`."""
    friction: Array
    """Outside of regions, shape (nc,)."""
    restitution: Array
    """Outside of regions, shape (nc,)."""
    stabilisation: Array
    contact_model: ContactModel
    constraints: tuple[Constraint, ...] = ()
    """With their places."""
    moments: bool = False
    """Whether the buffer has moments of contacts."""

    def check_fits(self, now: Snapshot) -> None:
        """Raise InvalidInput unless it can follow on `now`, one of the same simulation."""
        if not isinstance(self.robot, str) or self.robot != now.robot:
            raise InvalidInput(
                f'snapshot of robot {shown(self.robot)}: expected one of {now.robot!r}'
            )
        numbers = {}
        for name in ('buffer', 'friction', 'restitution', 'stabilisation'):
            array = real_array(f'snapshot: {name}', getattr(self, name))
            expected = getattr(now, name)
            if array.shape != expected.shape:
                raise InvalidInput(
                    f'snapshot: {name} of {array.size} numbers, expected {expected.size}: the '
                    'robot had other contact points or the ground other features'
                )
            numbers[name] = array
        within('snapshot: friction', numbers['friction'], np.inf)
        within('snapshot: restitution', numbers['restitution'], 1.0)
        within('snapshot: baumgarte', numbers['stabilisation'][0], 1.0)
        within('snapshot: restitution_threshold', numbers['stabilisation'][1], np.inf)

    __repr__ = one_line


# --- Standing a robot on a terrain

ROUNDING = 1e-15
"""Error of a distance, relative to the lengths that it is computed from."""
UP = np.array([0.0, 0.0, 1.0])
MOST_ROUNDS = 100
LIFT = 1.0
"""Height from which a robot comes down on a ground of facets [m]."""
CLOSE = 1e-9
"""Gap at which it stands [m]."""
FALLEN = 0.5
"""Share of the height at which it stands below which a robot has fallen."""


def standing_on(
    robot: RobotModel,
    terrain: Terrain,
    pose: str = 'standing',
    x: float = 0.0,
    y: float = 0.0,
    yaw: float = 0.0,
) -> Array:
    """Return the reference configuration `pose` with the lowest foot on the terrain, (nq,).

    The robot is turned with the ground below it: what was vertical over z = 0 is normal to the
    terrain. On a ground of several planes it stays upright, and walls do not carry it.
    A fixed base stays where it is. Of joined robots each stands at its own place.

    Args:
        robot: the robot to place.
        terrain: the ground.
        pose: reference pose.
        x: where in world [m]; on a plane this is measured from the foot of the origin's normal.
        y: as x.
        yaw: turn about the robot's own vertical [rad].
    """
    q = robot.reference_configuration(pose)
    if isinstance(robot, JoinedRobots):
        cos, sin, states = math.cos(yaw), math.sin(yaw), []
        for part in robot.parts:
            own = pose if pose in part.robot.references else STANDING
            u, v, turn = part.place[:3]  # among the robots, which are at x, y, yaw together
            place = x + (cos * u - sin * v), y + (sin * u + cos * v), yaw + turn
            states.append(standing_on(part.robot, terrain, own, *place))
        return np.concatenate(states)
    if not robot.floating_base:
        return q
    q = q.copy()
    if yaw:
        turned = _quaternion(q) * pin.Quaternion(math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
        q[3:7] = turned.coeffs()
    if terrain.kind == PLANES and terrain.features == 1:
        plane = terrain.data[:4]  # feet that stand on z = 0 stand on it
        q[:3] = _turned(q, plane[:3]) + plane[3] * plane[:3]
        if x or y:
            q[:3] += x, y, -(x * plane[0] + y * plane[1]) / plane[2]  # along the ground
        return q
    height = terrain.height(x, y)
    if math.isnan(height):
        raise InvalidInput(f'no ground to stand on at x = {x:g} m, y = {y:g} m: {shown(terrain)}')
    below = np.array([x, y, height])
    up = terrain.normals(below[None])[0] if terrain.features == 1 else UP
    q[:3] = _turned(q, up) + below
    _touch(robot, terrain, q, up, pose)
    return q


def with_base(
    robot: RobotModel,
    terrain: Terrain,
    q: Array,
    height: float | None,
    orientation: ArrayLike | None,
) -> Array:
    """Return q (nq,) with the floating bases moved and turned, see `Simulator.reset`."""
    parts = [part for part in parts_of(robot) if part.robot.floating_base]
    if not parts:
        raise InvalidInput(
            f'height, orientation: the base of robot {shown(robot.name)} is fixed; reset(q) with '
            'joint positions'
        )
    if orientation is not None and len(parts) > 1:
        raise InvalidInput(
            f'orientation: {len(parts)} robots have one each; reset(q) with their quaternions'
        )
    gap = 0.0 if height is None else number_within('height', height, np.inf)
    moved = q.copy()
    for part in parts:
        moved[part.q] = placed(part.robot, terrain, q[part.q], gap, orientation)
    return moved


def placed(
    robot: RobotModel, terrain: Terrain, q: Array, height: float, orientation: ArrayLike | None
) -> Array:
    """Return q (nq,) of one robot with its lowest sphere `height` [m] over the ground.

    Args:
        robot: a robot with a floating base.
        terrain: the ground.
        q: where its base is along the ground, and its joints.
        height: distance along the normal of the ground.
        orientation: quaternion x y z w, or roll, pitch, yaw [rad]; None: as in q.
    """
    q = q.copy()
    if orientation is not None:
        q[3:7] = quaternion_of(orientation)
    up = terrain.normals(q[None, :3])[0] if terrain.features == 1 else UP
    _touch(robot, terrain, q, up, 'given')
    q[:3] += height * up
    return q


UNIT = 1e-3
"""Largest distance of the norm of a quaternion that somebody writes from 1."""


def random_state(
    robot: RobotModel,
    terrain: Terrain,
    assembled: Callable[[Array], Array],
    seed: int,
    sizes: Mapping[str, float],
) -> tuple[Array, Array]:
    """Return q (nq,) and v (nv,), see `Simulator.random_start`; `assembled` closes the loops.

    `sizes`: largest joints, tilt, yaw, height and speed.
    """
    most = {name: abs(number_within(name, size, np.inf)) for name, size in sizes.items()}  # no −0
    if seed < 0:
        raise InvalidInput(f'seed = {seed}: expected a whole number of at least 0')
    rng = np.random.default_rng(seed)
    q = standing_on(robot, terrain)
    change = rng.uniform(-most['joints'], most['joints'], robot.n_joints)
    limits = robot.lower_position_limit, robot.upper_position_limit
    q = robot.with_joint_positions(q, np.clip(robot.joint_positions(q) + change, *limits))
    q = np.array(assembled(q))
    for part in parts_of(robot):
        if part.robot.floating_base:
            tilt = rng.uniform(-most['tilt'], most['tilt'], 2)
            turn = np.append(tilt, rng.uniform(-most['yaw'], most['yaw']))
            gap = float(rng.uniform(0.0, most['height']))
            q[part.q] = placed(part.robot, terrain, q[part.q], gap, turn)
    return q, rng.uniform(-most['speed'], most['speed'], robot.nv)


def quaternion_of(orientation: ArrayLike) -> Array:
    """Return a unit quaternion x y z w (4,) from one, or from roll, pitch and yaw (3,) [rad]."""
    numbers = finite_array('orientation', orientation)
    if numbers.shape == (3,):
        return np.asarray(pin.Quaternion(pin.rpy.rpyToMatrix(*numbers)).coeffs())
    norm = float(np.linalg.norm(numbers))
    if numbers.shape != (4,) or not abs(norm - 1.0) <= UNIT:
        raise InvalidInput(
            f'orientation = {shown(orientation)}: expected a unit quaternion (x, y, z, w), or '
            '(roll, pitch, yaw) in rad'
        )
    return np.asarray(numbers / norm)


def lift(robot: RobotModel, q: Array, terrain: Terrain, height: float) -> None:
    """Move the floating bases of q (nq,) away from the ground by `height` [m]."""
    for part in parts_of(robot):
        base = q[part.q]
        if part.robot.floating_base:
            base[:3] += height * terrain.normals(base[None, :3])[0]


def _quaternion(q: Array) -> pin.Quaternion:
    return pin.Quaternion(*q[[6, 3, 4, 5]])


def _turned(q: Array, normal: Array) -> Array:
    """Turn the base with the vertical onto `normal`; return its position turned alike."""
    turn = pin.Quaternion.FromTwoVectors(UP, normal)
    q[3:7] = (turn * _quaternion(q)).coeffs()
    return np.asarray(turn.matrix() @ q[:3])


def _touch(robot: RobotModel, terrain: Terrain, q: Array, up: Array, pose: str) -> None:
    """Move the base along `up` until the lowest foot touches."""
    points = (*robot.contact_points, *robot.body_points)
    if not points:
        return
    model = robot.pinocchio_model
    data = data_of(model)
    pin.forwardKinematics(model, data, q)
    centres = np.array([
        data.oMi[model.getJointId(point.joint)].act(point.offset) for point in points
    ])  # fmt: skip
    radii = np.array([point.radius for point in points])
    if terrain.kind in FACETED:
        # from above, each time by the gap of the nearest sphere, which leaves no facet in between
        over = [terrain.height(x, y) for x, y, _ in centres]
        rise = LIFT + float(np.nanmax([*(over - centres[:, 2] + radii), 0.0]))
        for _ in range(MOST_ROUNDS):
            gap = float((terrain.signed_distance(centres + [0.0, 0.0, rise]) - radii).min())
            rise -= gap
            if gap <= CLOSE:
                break
        q[:3] += rise * up
        return
    extent = 1.0 + float(np.abs(q[:3]).max()) + float(np.abs(terrain.data).max())
    for _ in range(MOST_ROUNDS):
        # by how much the spheres must rise until none is in the ground, to first order
        distance, normal = terrain.contacts(centres)
        slope = normal @ up
        missing = (radii[:, None] - distance) / np.maximum(slope, STEEP)
        rise = float(missing[slope >= STEEP].max()) if (slope >= STEEP).any() else math.nan
        if math.isnan(rise):  # nothing would hold them
            break
        centres += rise * up
        q[:3] += rise * up
        if abs(rise) <= ROUNDING * extent:
            return
    raise InvalidInput(f'robot {robot.name!r} does not fit on {terrain!r} in the pose {pose!r}')


# --- Rays

LEAST_ADVANCE = 1e-3
"""By how much a ray advances at least [m]: one along the ground ends, too."""
LONGEST_RAY = 1000.0
"""[m]."""
BISECTIONS = 60


def cast_rays(
    terrain: Terrain, origin: ArrayLike, direction: ArrayLike, longest: float
) -> float | Array:
    """Return the distances along rays to the ground, see `Simulator.ray_cast`.

    Each ray advances by its distance from the ground, which is free of it; where it comes out
    below, the ground is between its last two places.
    """
    longest = number_within('longest', longest, LONGEST_RAY)
    start, heading = finite_array('origin', origin), finite_array('direction', direction)
    for name, array in (('origin', start), ('direction', heading)):
        if array.ndim not in (1, 2) or array.shape[-1] != 3:
            raise InvalidInput(f'{name}: shape {array.shape}, expected (3,) or (n, 3)')
    try:
        start, heading = np.broadcast_arrays(start, heading)
    except ValueError as error:
        raise InvalidInput(
            f'origin, direction: {len(start)} and {len(heading)} rays, expected as many'
        ) from error
    single = start.ndim == 1
    start, heading = np.atleast_2d(start), np.atleast_2d(heading)
    length = np.linalg.norm(heading, axis=1)
    if not (length > 0.0).all():
        raise InvalidInput('direction: expected three numbers, not all zero')
    heading = heading / length[:, None]
    reached, before = np.zeros(len(start)), np.zeros(len(start))
    distance = terrain.signed_distance(start)
    ways = np.where(distance <= 0.0, 0.0, np.inf)
    under_way = np.flatnonzero(distance > 0.0)
    while len(under_way):
        before[under_way] = reached[under_way]
        reached[under_way] += np.maximum(distance[under_way], LEAST_ADVANCE)
        places = start[under_way] + reached[under_way, None] * heading[under_way]
        distance[under_way] = terrain.signed_distance(places)
        met = under_way[distance[under_way] <= 0.0]
        if len(met):
            ways[met] = _crossing(terrain, start[met], heading[met], before[met], reached[met])
        under_way = under_way[(distance[under_way] > 0.0) & (reached[under_way] < longest)]
    ways[ways > longest] = np.inf
    return float(ways[0]) if single else ways


def _crossing(
    terrain: Terrain, start: Array, heading: Array, outside: Array, inside: Array
) -> Array:
    """Return where rays cross the ground between two distances, by bisection [m]."""
    for _ in range(BISECTIONS):
        middle = 0.5 * (outside + inside)
        within = terrain.signed_distance(start + middle[:, None] * heading) <= 0.0
        outside, inside = np.where(within, outside, middle), np.where(within, middle, inside)
    return np.asarray(0.5 * (outside + inside))
