"""RayScene: distances along rays to the ground and to the links of a robot.

Planes, round ground, spheres, capsules, cylinders, boxes and ellipsoids are cut in closed form.
Triangles of height fields and meshes are found by Embree, a ray tracer in single precision; where
a ray cuts the plane of the triangle that was found is then computed in double precision.

    [Wald 2014] Embree: a kernel framework for efficient CPU ray tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull

from contact_sim._types import Array, Indices
from contact_sim._validation import as_tuple, finite_array, number_within, shaped
from contact_sim.collision._mesh_contacts import TRIANGLE_NUMBERS, TRIANGLES
from contact_sim.collision._surface import FACETED, FIELD, PLANES
from contact_sim.collision._terrain import Terrain, TerrainLike, as_terrain
from contact_sim.errors import InvalidInput, UnknownName, of_type, one_line
from contact_sim.robot._collision_pairs import Solid
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import JoinedRobots, Part
from contact_sim.robot._trees import data_of
from contact_sim.robot._urdf import collision_geometry
from contact_sim.simulation._state import LONGEST_RAY

ROUNDING = 1e-9  # of squared distances [m²]
NOTHING, GROUND = -1, 0
"""Numbers of what a ray meets; links follow from 1 on."""
Cut = tuple[Array, Array]
"""Where rays enter and leave a convex body [m], (n,) each; (inf, -inf) where they miss it."""


@dataclass(frozen=True, eq=False)
class RayHits:
    """What rays meet first."""

    distance: Array
    """[m], shape (n,); inf where a ray meets nothing."""
    met: Indices
    """Index in `names` of what was met, -1 for nothing, shape (n,)."""
    names: tuple[str, ...]
    """'ground', then the links."""

    __repr__ = one_line


class RayScene:
    """The ground and the links of a robot, as rays see them: their collision geometry.

    Surfaces are seen from both sides. A ray that begins in the ground meets it at 0; one that
    begins in a link meets where it leaves it.

    Args:
        robot: whose links are seen.
        terrain: the ground, as `Simulator` takes it.
        hidden: names of links that are not seen; None: all of them.

    Raises:
        InvalidInput: triangles to see, and no ray tracer installed.
        UnknownName: a hidden link that does not exist.
    """

    def __init__(
        self, robot: RobotModel, terrain: TerrainLike, hidden: Iterable[str] | None = ()
    ) -> None:
        self._robot, terrain = of_type('robot', robot, RobotModel), as_terrain(terrain)
        self._terrain = terrain
        self._data = data_of(robot.pinocchio_model)
        self._ground = _Triangles(*triangles_of(terrain)) if terrain.kind in FACETED else None
        self._bodies = [] if hidden is None else _bodies(robot, hidden)
        self.names = ('ground', *dict.fromkeys(body.link for body in self._bodies))

    def cast(
        self,
        q: ArrayLike,
        origins: ArrayLike,
        directions: ArrayLike,
        longest: float = LONGEST_RAY,
    ) -> RayHits:
        """Return what rays meet first.

        Args:
            q: configuration of the robot, shape (nq,).
            origins: where the rays begin [m], world, shape (n, 3) or (3,) for all.
            directions: of any length, world, shape (n, 3).
            longest: distance up to which they see [m], at most 1000.

        Raises:
            InvalidInput: other shapes, numbers that are not finite, a direction that is zero.
        """
        longest = number_within('longest', longest, LONGEST_RAY)
        ways = finite_array('directions', directions)
        ways = shaped('directions', ways, len(np.atleast_1d(ways)), 3)
        begin = finite_array('origins', origins)
        begin = np.array(np.broadcast_to(begin, ways.shape)) if begin.shape == (3,) else begin
        begin = shaped('origins', begin, len(ways), 3)
        if not len(ways):
            return RayHits(np.zeros(0), np.zeros(0, dtype=np.intp), self.names)
        length = np.linalg.norm(ways, axis=1)
        if not (length > 0.0).all():
            raise InvalidInput('directions: expected three numbers, not all zero')
        ways = ways / length[:, None]
        distance = self._to_ground(begin, ways)
        met = np.where(distance <= longest, GROUND, NOTHING)
        if self._bodies:
            pin.forwardKinematics(
                self._robot.pinocchio_model, self._data, self._robot.checked_configuration(q)
            )
        placed = [self._data.oMi[body.joint] * body.placement for body in self._bodies]
        for body, placement, near in zip(
            self._bodies, placed, self._near(placed, begin, ways), strict=True
        ):
            if len(near):
                axes = placement.rotation
                found = body.first((begin[near] - placement.translation) @ axes, ways[near] @ axes)
                nearer = found < distance[near]
                distance[near[nearer]] = found[nearer]
                met[near[nearer]] = self.names.index(body.link)
        beyond = distance > longest
        distance[beyond], met[beyond] = np.inf, NOTHING
        return RayHits(distance, met, self.names)

    def _to_ground(self, begin: Array, ways: Array) -> Array:
        """Return the distances to the ground (n,), inf where there is none."""
        ground = self._terrain
        if self._ground is not None:
            distance = self._ground.first(begin, ways)
        elif ground.kind == PLANES:
            planes = ground.data[: 4 * ground.features].reshape(-1, 4)
            rate = ways @ planes[:, :3].T
            with np.errstate(divide='ignore', invalid='ignore'):
                reached = (planes[:, 3] - begin @ planes[:, :3].T) / rate
            distance = np.where(rate < 0.0, reached, np.inf).min(axis=1)
        else:
            distance = _to_round_ground(ground.data, begin, ways)
        single = begin[:1] if (begin == begin[0]).all() else begin
        distance[np.broadcast_to(ground.signed_distance(single) <= 0.0, len(begin))] = 0.0
        return np.asarray(distance)

    def _near(self, placed: list[pin.SE3], begin: Array, ways: Array) -> Iterator[Indices]:
        """Return for every body which rays come within its reach."""
        if not placed:
            return
        centres = np.array([placement.translation for placement in placed])
        reach = np.array([body.reach for body in self._bodies])
        along = ways @ centres.T - np.einsum('ij,ij->i', begin, ways)[:, None]
        if (begin == begin[0]).all():
            away = ((centres - begin[0]) ** 2).sum(axis=1)
        else:
            away = ((centres - begin[:, None]) ** 2).sum(axis=2)
        away = away - reach**2 - ROUNDING  # beyond the spheres about the bodies
        near = (away <= 0.0) | ((along > 0.0) & (along**2 >= away))
        for k in range(len(placed)):
            yield np.flatnonzero(near[:, k])

    def __repr__(self) -> str:
        return f'RayScene({self._robot.name!r} on {self._terrain!r}, {len(self._bodies)} bodies)'


def _to_round_ground(data: Array, begin: Array, ways: Array) -> Array:
    """Return the distances to a solid sphere or cylinder, or to the walls of a hollow one."""
    axis, from_axis = data[5:8], begin - data[:3]
    from_axis = from_axis - np.outer(from_axis @ axis, axis)
    across = ways - np.outer(ways @ axis, axis)
    enter, leave = _quadratic((across**2).sum(1), (from_axis * across).sum(1),
                              (from_axis**2).sum(1) - data[3] ** 2)  # fmt: skip
    met = enter if data[4] > 0.0 else leave
    return np.where((met >= 0.0) & (enter <= leave), met, np.inf)


# --- Triangles


def triangles_of(terrain: Terrain) -> tuple[Array, Indices]:
    """Return the triangles of a height field or mesh: vertices (n, 3) in world, corners (m, 3)."""
    data, relief = terrain.data, terrain.relief
    if terrain.kind == FIELD:
        nx, ny = int(data[0]), int(data[1])
        i, j = np.meshgrid(np.arange(nx), np.arange(ny), indexing='ij')
        vertices = np.column_stack([
            data[3] + data[2] * i.ravel(), data[4] + data[2] * j.ravel(), relief[: nx * ny]
        ])  # fmt: skip
        corner = (ny * i + j)[:-1, :-1].ravel()
        opposite = corner + ny + 1
        lower = np.column_stack([corner, corner + ny, opposite])
        upper = np.column_stack([corner, opposite, corner + 1])
        return vertices, np.concatenate([lower, upper])
    count = int(data[TRIANGLES])
    corners = relief[: TRIANGLE_NUMBERS * count].reshape(count, TRIANGLE_NUMBERS)[:, :9]
    return corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


class _Triangles:
    """Triangles for the ray tracer, about their middle: it computes in single precision."""

    def __init__(self, vertices: Array, triangles: Indices) -> None:
        try:
            from embreex import mesh_construction, rtcore_scene
        except ImportError as error:
            raise InvalidInput(
                'rays at height fields and meshes need the ray tracer Embree: pip install '
                "'contact_sim[rays]'"
            ) from error
        self._middle = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
        around = vertices - self._middle
        a, b, c = (around[triangles[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        self._normal, self._offset = normal, (normal * a).sum(axis=1)
        self._scene = rtcore_scene.EmbreeScene()
        self._mesh = mesh_construction.TriangleMesh(
            self._scene, around.astype(np.float32), triangles.astype(np.int32)
        )

    def first(self, begin: Array, ways: Array) -> Array:
        """Return the distances to the first triangles (n,), inf where there is none."""
        begin = begin - self._middle
        distance = np.full(len(begin), np.inf)
        found = self._scene.run(begin.astype(np.float32), ways.astype(np.float32))
        rays = np.flatnonzero(found >= 0)
        normal, offset = self._normal[found[rays]], self._offset[found[rays]]
        with np.errstate(divide='ignore', invalid='ignore'):
            exact = offset - (normal * begin[rays]).sum(axis=1)
            exact /= (normal * ways[rays]).sum(axis=1)
        # a ray that begins on a surface, or almost along one
        distance[rays] = np.where(np.isfinite(exact), np.maximum(exact, 0.0), np.inf)
        return distance


# --- Bodies


@dataclass(frozen=True, eq=False)
class _Body:
    """A collision shape of a link."""

    link: str
    joint: int
    placement: pin.SE3
    """In the axes of the joint."""
    reach: float
    """Largest distance of its surface from its origin [m]."""
    kind: str
    sizes: tuple[float, ...] = ()
    """Radius and half length, half sizes, or semi-axes [m]."""
    triangles: _Triangles | None = None

    def first(self, begin: Array, ways: Array) -> Array:
        """Return the distances to the shape, of rays in its axes (n,); inf where they miss."""
        if self.triangles is not None:
            return self.triangles.first(begin, ways)
        enter, leave = CUTS[self.kind](begin, ways, *self.sizes)
        met = np.where(enter >= 0.0, enter, leave)
        return np.where((enter <= leave) & (met >= 0.0), met, np.inf)


def checked_links(robot: RobotModel, hidden: Iterable[str]) -> tuple[str, ...]:
    """Return names of links, or raise UnknownName."""
    names = as_tuple('hidden', hidden, 'a list of names of links')
    frames = robot.pinocchio_model.frames
    links = [frame.name for frame in frames if frame.type == pin.FrameType.BODY]
    for name in names:
        if name not in links:
            raise UnknownName('link', name, links)
    return names


def _bodies(robot: RobotModel, hidden: Iterable[str]) -> list[_Body]:
    names, model = checked_links(robot, hidden), robot.pinocchio_model
    bodies: list[_Body] = []
    if isinstance(robot, JoinedRobots):
        for part in robot.parts:
            bodies += [_in_world(body, part, robot) for body in _bodies(part.robot, ())]
        return [body for body in bodies if body.link not in names]
    if not robot.description:
        for solid in robot.solids:
            if solid.frame not in names:
                bodies.append(_body_of_solid(solid, model.getJointId(solid.joint)))
        return bodies
    for link, several in collision_geometry(model, robot.description, robot.package_dirs).items():
        if link not in names:
            bodies += [_body(link, one.joint, one.placement, one.shape) for one in several]
    return bodies


def _in_world(body: _Body, part: Part, world: JoinedRobots) -> _Body:
    """Return a body of one of several robots as one of all."""
    link = part.qualified_name(body.link)
    if body.joint == 0:  # fixed to the world
        return replace(body, link=link, placement=part.placement * body.placement)
    name = part.qualified_name(part.robot.pinocchio_model.names[body.joint])
    return replace(body, link=link, joint=world.pinocchio_model.getJointId(name))


def _body(link: str, joint: int, placement: pin.SE3, shape: Any) -> _Body:
    """Return a shape of coal as a body."""
    kind = type(shape).__name__
    if kind == 'Sphere':
        sizes: tuple[float, ...] = (float(shape.radius),)
        reach = sizes[0]
    elif kind == 'Capsule':
        sizes = float(shape.radius), float(shape.halfLength)
        reach = sum(sizes)
    elif kind == 'Cylinder':
        sizes = float(shape.radius), float(shape.halfLength)
        reach = float(np.hypot(*sizes))
    elif kind == 'Box':
        sizes = tuple(map(float, shape.halfSide))
        reach = float(np.linalg.norm(sizes))
    elif kind == 'Ellipsoid':
        sizes = tuple(map(float, shape.radii))
        reach = max(sizes)
    else:  # a mesh
        vertices = np.array(shape.vertices(), dtype=float)
        corners = (shape.tri_indices(k) for k in range(shape.num_tris))
        triangles = np.array([[one[0], one[1], one[2]] for one in corners], dtype=np.int64)
        reach = float(np.linalg.norm(vertices, axis=1).max())
        return _Body(link, joint, placement, reach, kind, (), _Triangles(vertices, triangles))
    return _Body(link, joint, placement, reach, kind, sizes)


def _body_of_solid(solid: Solid, joint: int) -> _Body:
    """Return a solid of a robot without a description as a body."""
    x, _, z = solid.half
    sizes: tuple[float, ...] = ()
    triangles = None
    if solid.corners:
        kind = 'Convex'
        corners = np.array(solid.corners)
        triangles = _Triangles(corners, ConvexHull(corners).simplices)
    elif solid.cylinder:
        kind, sizes = 'Cylinder', solid.cylinder
    elif solid.ellipsoid:
        kind, sizes = 'Ellipsoid', solid.ellipsoid
    elif x > 0.0:  # rounded edges are not seen
        kind, sizes = 'Box', tuple(side + solid.radius for side in solid.half)
    else:
        kind = 'Capsule' if z > 0.0 else 'Sphere'
        sizes = (solid.radius, z) if z > 0.0 else (solid.radius,)
    reach = solid.reach + (np.sqrt(3.0) - 1.0) * solid.radius
    return _Body(solid.frame, joint, solid.placement, reach, kind, sizes, triangles)


def _quadratic(a: Array, b: Array, c: Array) -> Cut:
    """Return where a t² + 2 b t + c becomes negative and positive again."""
    with np.errstate(divide='ignore', invalid='ignore'):
        root = np.sqrt(b * b - a * c)
        # of -b - root and -b + root one loses digits; their product is a c
        far = -b - np.where(b >= 0.0, root, -root)
        one, other = far / a, c / far
        enter, leave = np.minimum(one, other), np.maximum(one, other)
    missed = ~(root >= 0.0)
    along = (a == 0.0) | ~np.isfinite(enter) | ~np.isfinite(leave)
    inside = along & (c <= 0.0)
    enter = np.where(inside, -np.inf, np.where(missed | along, np.inf, enter))
    leave = np.where(inside, np.inf, np.where(missed | along, -np.inf, leave))
    return enter, leave


def _both(first: Cut, second: Cut) -> Cut:
    """Return the cut of what two convex bodies have in common."""
    enter, leave = np.maximum(first[0], second[0]), np.minimum(first[1], second[1])
    missed = enter > leave
    return np.where(missed, np.inf, enter), np.where(missed, -np.inf, leave)


def _slab(begin: Array, way: Array, half: float) -> Cut:
    """Return the cut of |x| <= half by rays with these coordinates."""
    with np.errstate(divide='ignore', invalid='ignore'):
        one, other = (-half - begin) / way, (half - begin) / way
    along, inside = way == 0.0, np.abs(begin) <= half
    enter = np.where(along, np.where(inside, -np.inf, np.inf), np.minimum(one, other))
    leave = np.where(along, np.where(inside, np.inf, -np.inf), np.maximum(one, other))
    return enter, leave


def cut_ellipsoid(begin: Array, ways: Array, a: float, b: float, c: float) -> Cut:
    """Return where rays (n, 3) cut an ellipsoid with semi-axes along x, y, z [m]."""
    axes = np.array([a, b, c])
    begin, ways = begin / axes, ways / axes
    return _quadratic((ways**2).sum(1), (begin * ways).sum(1), (begin**2).sum(1) - 1.0)


def cut_sphere(begin: Array, ways: Array, radius: float) -> Cut:
    """Return where rays (n, 3) cut a sphere."""
    return _quadratic((ways**2).sum(1), (begin * ways).sum(1), (begin**2).sum(1) - radius**2)


def cut_cylinder(begin: Array, ways: Array, radius: float, half: float) -> Cut:
    """Return where rays (n, 3) cut a cylinder along z."""
    side = cut_sphere(begin[:, :2], ways[:, :2], radius)
    return _both(side, _slab(begin[:, 2], ways[:, 2], half))


def cut_capsule(begin: Array, ways: Array, radius: float, half: float) -> Cut:
    """Return where rays (n, 3) cut a capsule along z: a cylinder and two spheres."""
    end = np.array([0.0, 0.0, half])
    cuts = (
        cut_cylinder(begin, ways, radius, half),
        cut_sphere(begin - end, ways, radius),
        cut_sphere(begin + end, ways, radius),
    )
    return np.min([cut[0] for cut in cuts], axis=0), np.max([cut[1] for cut in cuts], axis=0)


def cut_box(begin: Array, ways: Array, x: float, y: float, z: float) -> Cut:
    """Return where rays (n, 3) cut a box with these half sizes [m]."""
    cut = _slab(begin[:, 0], ways[:, 0], x)
    for k, half in ((1, y), (2, z)):
        cut = _both(cut, _slab(begin[:, k], ways[:, k], half))
    return cut


CUTS: dict[str, Callable[..., Cut]] = {
    'Sphere': cut_sphere,
    'Capsule': cut_capsule,
    'Cylinder': cut_cylinder,
    'Box': cut_box,
    'Ellipsoid': cut_ellipsoid,
}
