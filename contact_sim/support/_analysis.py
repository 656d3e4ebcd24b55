"""Support analysis of a set of feet: ranks, internal forces, uncontrollable base motions.

With J = [J_b J_j], base and joint columns (theory E5, E7):

    base fully controllable   iff rank J_b = 6
    internal constraints      rank J − rank J_b
    uncontrollable motions    6 − rank J_b, the null space of J_b

The condition on J_b says that the feet can push the base in every direction. Whether legs can
also follow is another matter: with `base_mobility` < 6 they are too few or too short of joints
(solo8), and the base moves in fewer directions as long as all feet stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._terrain import TerrainLike, as_terrain
from contact_sim.errors import one_line
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.support._generalized_coordinates import require_floating_base
from contact_sim.support._stance_dynamics import (
    DIRECTIONS,
    StanceDynamics,
    conditioning,
    null_space_basis,
    null_space_projector,
    rank,
    stance_dynamics,
)

# --- Support polygons, and rigid motions of the base as lines in space

ON_LINE = 1e-9
"""Distance within which a point lies on a line, as a share of the distances involved."""


@dataclass(frozen=True, eq=False)
class RigidMotion:
    """A rigid motion of the base: along a direction, or about a line (a screw if `pitch` ≠ 0)."""

    name: str
    """In words, e.g. 'rotation about the line LF_FOOT - RH_FOOT'."""
    twist: Array
    """Linear velocity of the base origin and angular velocity, world axes, unit length, (6,)."""
    direction: Array
    """Unit vector of the translation, or along the axis of the rotation, world, (3,)."""
    point: Array
    """Point of the axis nearest to the base origin [m], world, (3,); the origin if it turns not"""
    pitch: float
    """Translation along the axis per radian [m]; inf for a translation."""

    __repr__ = one_line


def base_motion(twist: Array, origin: Array, landmarks: dict[str, Array]) -> RigidMotion:
    """Return the motion that a twist (6,) at `origin` is, named after landmarks on its axis."""
    unit = twist / np.linalg.norm(twist)
    linear, omega = unit[:3], unit[3:]
    speed = float(np.linalg.norm(omega))
    if speed <= ON_LINE:
        name = f'translation along {_direction_words(linear)}'
        return RigidMotion(name, unit, linear, origin, np.inf)
    axis = omega / speed
    point = origin + np.cross(omega, linear) / speed**2
    pitch = float(axis @ linear) / speed
    # the line in words: two landmarks on it, its direction through one, or through a point
    reach = {name: place - point for name, place in landmarks.items()}
    on_axis = [
        name for name, lever in reach.items()
        if np.linalg.norm(np.cross(axis, lever)) <= 1e-7 * max(1.0, float(np.linalg.norm(lever)))
    ]  # fmt: skip
    if len(on_axis) > 1:
        line = 'the line ' + ' - '.join(on_axis)
    elif on_axis:
        line = f'{_direction_words(axis)} through {on_axis[0]}'
    else:
        line = _direction_words(axis) + ' through ({:.4g}, {:.4g}, {:.4g})'.format(*point)
    kind = 'rotation' if abs(pitch) <= ON_LINE else f'screw of pitch {pitch:.4g} m'
    return RigidMotion(f'{kind} about {line}', unit, axis, point, pitch)


def named_motions(
    null_space: Array, origin: Array, landmarks: dict[str, Array], most: int = 6
) -> tuple[RigidMotion, ...]:
    """Return motions that span a space of twists (6, k), plain ones first, the first `most`.

    Translations along and rotations about the world axes, through the middle of the landmarks,
    are taken where they lie in the space; the rest of an orthonormal basis follows.
    """
    count = min(null_space.shape[1], most)
    arm = np.mean(list(landmarks.values()), axis=0) - origin if landmarks else np.zeros(3)
    plain = [np.concatenate([axis, np.zeros(3)]) for axis in np.eye(3)]
    plain += [np.concatenate([np.cross(arm, axis), axis]) for axis in np.eye(3)]
    chosen: list[Array] = []
    for twist in [*plain, *null_space.T]:
        if len(chosen) == count:
            break
        inside = null_space @ (null_space.T @ twist)
        whole = np.linalg.norm(inside - twist) <= ON_LINE * np.linalg.norm(twist)
        if whole:
            both = np.array([t / np.linalg.norm(t) for t in [*chosen, twist]])
            if not chosen or np.linalg.svd(both, compute_uv=False)[-1] > 1e-6:
                chosen.append(twist)
    return tuple(base_motion(twist, origin, landmarks) for twist in chosen)


def support_polygon(points: Array, normals: Array) -> Array:
    """Return the corners of the support polygon, counter-clockwise seen from above, (k, 3)."""
    if len(points) == 0:
        return np.zeros((0, 3))
    # plain numbers: a few points take NumPy ten times as long
    nx, ny, nz = normals[0].tolist()
    least = min(abs(nx), abs(ny), abs(nz))
    if abs(nx) == least:
        ax, ay, az = 0.0, nz, -ny  # normal × x
    elif abs(ny) == least:
        ax, ay, az = -nz, 0.0, nx
    else:
        ax, ay, az = ny, -nx, 0.0
    bx, by, bz = ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax
    plane = [
        (ax * x + ay * y + az * z, bx * x + by * y + bz * z) for x, y, z in points.tolist()
    ]  # fmt: skip
    # the convex hull: points inside, and on an edge between two others, are left out
    order = sorted(range(len(plane)), key=plane.__getitem__)
    along, across = zip(*plane, strict=True)
    size = max(max(along) - min(along), max(across) - min(across))
    lower, upper = _chain(plane, order, size), _chain(plane, order[::-1], size)
    return np.asarray(points[lower[:-1] + upper[:-1] if len(order) > 1 else order])


def distance_inside(polygon: Array, point: Array) -> float:
    """Return how far a point (2,) lies inside a counter-clockwise polygon (n, 2); < 0: outside."""
    corners, (x, y) = polygon.tolist(), point.tolist()
    nearest, inside = math.inf, len(corners) > 2
    for (ax, ay), (bx, by) in zip(corners, [*corners[1:], *corners[:1]], strict=True):
        edge_x, edge_y, rel_x, rel_y = bx - ax, by - ay, x - ax, y - ay
        square = max(edge_x * edge_x + edge_y * edge_y, 1e-300)
        share = min(max((rel_x * edge_x + rel_y * edge_y) / square, 0.0), 1.0)
        distance = math.hypot(rel_x - share * edge_x, rel_y - share * edge_y)
        nearest = min(nearest, distance)
        inside = inside and edge_x * rel_y - edge_y * rel_x >= 0.0
    return nearest if inside else -nearest


def _chain(points: list[tuple[float, float]], order: list[int], size: float) -> list[int]:
    chain: list[int] = []
    for i in order:
        cx, cy = points[i]
        while len(chain) > 1:
            (ax, ay), (bx, by) = points[chain[-2]], points[chain[-1]]
            if (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > 1e-12 * size * size:
                break  # a turn to the left
            chain.pop()
        if chain:
            bx, by = points[chain[-1]]
        if not chain or max(abs(cx - bx), abs(cy - by)) > 1e-12 * size:
            chain.append(i)
    return chain


def _direction_words(direction: Array) -> str:
    axis = int(np.argmax(np.abs(direction)))
    if abs(direction[axis]) >= 1.0 - ON_LINE:
        return 'xyz'[axis]
    return '({:.4g}, {:.4g}, {:.4g})'.format(*direction)


# --- The analysis


@dataclass(frozen=True, eq=False)
class Support:
    """A set of feet under a robot; everything is computed when it is read."""

    robot: RobotModel
    stance: StanceDynamics
    q: Array
    """Configuration, shape (nq,)."""

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet in contact."""
        return self.stance.feet

    @property
    def contact_jacobian(self) -> Array:
        """J, rows (t1, t2, n) per foot, shape (m, nv); theory E3."""
        return self.stance.contact_jacobian

    @property
    def base_jacobian(self) -> Array:
        """J_b, the columns of the base, shape (m, n_b)."""
        return np.asarray(self.contact_jacobian[:, self.stance.base_dofs])

    @property
    def joint_jacobian(self) -> Array:
        """J_j, all other columns, shape (m, nv − n_b)."""
        return np.delete(self.contact_jacobian, self.stance.base_dofs, axis=1)

    @cached_property
    def rank(self) -> int:
        """Rank of J: velocities that the support takes away."""
        return rank(self.contact_jacobian)

    @cached_property
    def base_rank(self) -> int:
        """Rank of J_b: directions in which the feet can push the base."""
        return rank(self.base_jacobian)

    @cached_property
    def joint_rank(self) -> int:
        """Rank of J_j; below the number of rows some forces need no joint torque."""
        return rank(self.joint_jacobian)

    @property
    def internal_constraints(self) -> int:
        """Rank J − rank J_b: constraints between the joints, internal forces they can make."""
        return self.rank - self.base_rank

    @property
    def uncontrollable_base_dof(self) -> int:
        """n_b − rank J_b: motions of the base (n_b = 6) that no contact force can act on."""
        return len(self.stance.base_dofs) - self.base_rank

    @cached_property
    def base_mobility(self) -> int:
        """Directions in which the base can move while the feet stay, the rank of Z_b."""
        return rank(self.null_space_basis[self.stance.base_dofs])

    @cached_property
    def uncontrollable_base_directions(self) -> tuple[RigidMotion, ...]:
        """The uncontrollable motions of a floating base, one per `uncontrollable_base_dof`.

        Raises:
            InvalidInput: the base is fixed.
        """
        require_floating_base(self.robot, 'uncontrollable_base_directions')
        data = data_of(self.robot.pinocchio_model)
        pin.forwardKinematics(self.robot.pinocchio_model, data, self.q)
        base = data.oMi[1]
        local = null_space_basis(self.base_jacobian)
        world = np.vstack([base.rotation @ local[:3], base.rotation @ local[3:]])
        points = dict(zip(self.feet, self.stance.position, strict=True))
        return named_motions(world, np.array(base.translation), points)

    @cached_property
    def conditioning(self) -> float:
        """Largest singular value of J over the smallest that is not zero; 1 without feet."""
        return conditioning(self.contact_jacobian)

    @cached_property
    def base_conditioning(self) -> float:
        """The same of J_b."""
        return conditioning(self.base_jacobian)

    @cached_property
    def null_space_projector(self) -> Array:
        """N_c = I − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J, shape (nv, nv); theory E4, E10."""
        return null_space_projector(self.stance.inertia, self.contact_jacobian)

    @cached_property
    def null_space_basis(self) -> Array:
        """Orthonormal Z with J Z = 0, shape (nv, nv − rank); may replace N_c (theory E11)."""
        return null_space_basis(self.contact_jacobian)

    @cached_property
    def polygon(self) -> Array:
        """Corners of the support polygon [m], world, counter-clockwise seen from above, (k, 3)."""
        return support_polygon(self.stance.position, self.stance.frame[:, 2])

    @cached_property
    def centre_of_mass(self) -> Array:
        """Centre of mass [m], world, shape (3,)."""
        model = self.robot.pinocchio_model
        return np.array(pin.centerOfMass(model, data_of(model), self.q))

    @cached_property
    def margin(self) -> float:
        """Distance of the centre of mass inside the polygon, seen along world z [m].

        Negative outside; a robot at rest on level ground falls there. −inf without feet.
        """
        return distance_inside(self.polygon[:, :2], self.centre_of_mass[:2])

    __repr__ = one_line


@checked
def analyse_support(
    robot: RobotModel,
    q: ArrayLike,
    active: Iterable[str | int],
    directions: Sequence[str] = DIRECTIONS,
    terrain: TerrainLike = 'plane',
) -> Support:
    """Return the support of `robot` by the feet `active` at q (nq,); theory E5, E7.

    Args:
        robot: with a floating or a fixed base; the base of the latter are the coordinates that no
            joint drives.
        q: configuration.
        active: names or indices of the feet in contact; empty in flight.
        directions: which rows of each contact frame are held.
        terrain: the ground, which gives the contact frames.

    Raises:
        UnknownName: a foot or terrain that does not exist.
        InvalidInput: a wrong size, values that are not finite, a foot listed twice.
    """
    stance = stance_dynamics(robot, q, None, active, directions, as_terrain(terrain))
    return Support(robot, stance, robot.checked_configuration(q))
