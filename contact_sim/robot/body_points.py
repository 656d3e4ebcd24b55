"""From the collision geometry of links to contact points: where a robot touches but for its feet.

    sphere            itself
    capsule           the spheres at its ends: exact on a plane
    box               its corners: exact on a plane; with rounded edges the spheres in them
    cylinder, cone    points on its rims, the apex
    mesh              corners of its convex hull

Of the corners of one moving body at most `most` are kept, those that leave out least: the convex
hull of what is kept grows by the corner that lies farthest outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, shown
from contact_sim.numbers import real_number
from contact_sim.arguments import as_tuple
from contact_sim.robot.contact_point import ContactPoint
from contact_sim.robot.description import parse_xml
from contact_sim.robot.meshes import mesh_path
from contact_sim.robot.rewritten import collision_text

Array = NDArray[np.float64]
RIM = 8
"""Points on each rim of a cylinder."""
LEAST, MOST = 4, 16
"""Smallest allowed number of corners of one body: they enclose a volume; and the default."""
SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
SUM = 1e4
"""Weight with which shares of points are made to add up to 1, the distances being 1 at most."""


@dataclass(frozen=True)
class Approximation:
    """What became of the collision geometry of one moving body."""

    joint: str
    """Joint that moves it."""
    geometries: tuple[str, ...]
    """Names of its geometries: of their links, with a number."""
    points: int
    """Number of contact points."""
    error: float
    """Bound on the distance by which the convex hull of the geometries reaches beyond that of the
    points with their radii [m]; 0 is exact on a plane."""


@dataclass(frozen=True)
class _Shape:
    """A collision geometry as corners and spheres."""

    link: str
    name: str
    corners: Array
    """In the axes of the joint [m], shape (n, 3)."""
    radius: float
    """Of spheres about the corners [m]."""
    whole: bool
    """Whether all of it is kept: a sphere or a capsule."""
    error: float
    """Largest distance by which the shape reaches beyond the hull of its corners [m]."""


def body_contacts(
    model: pin.Model,
    description: str,
    package_dirs: Sequence[str],
    links: Iterable[str] | None,
    feet: Iterable[str],
    most: int = MOST,
    edge_radius: float = 0.0,
) -> tuple[tuple[ContactPoint, ...], tuple[Approximation, ...]]:
    """Return contact points for the collision geometry of links, and what was approximated.

    Args:
        model: of the robot.
        description: its URDF.
        package_dirs: folders in which its package:// URIs are found.
        links: names of links; None: all that move and have collision geometry, but for `feet`.
        feet: frames of the feet, which have contact points already: links, or their fixed joints.
        most: largest number of corners of one moving body.
        edge_radius: of the edges of boxes [m]; in a box that is thinner, half its thickness.

    Raises:
        UnknownName: a link without collision geometry.
        InvalidInput: no description, a link that does not move or is a foot, too small a limit, a
            radius that is negative or not finite.
        RobotDescriptionError: a mesh that cannot be read, or without a convex hull.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < LEAST:
        raise InvalidInput(f'most = {shown(most)}: expected an integer >= {LEAST}')
    if not 0.0 <= real_number('edge_radius', edge_radius) < np.inf:
        raise InvalidInput(f'edge_radius = {shown(edge_radius)} m: expected a finite value >= 0')
    geometries = collision_geometry(model, description, package_dirs)
    chosen = _chosen_links(geometries, links, {link_of(model, foot) for foot in feet})
    bodies: dict[str, list[_Shape]] = {}
    for link in chosen:
        for geometry in geometries[link]:
            joint = str(model.names[geometry.parentJoint])
            bodies.setdefault(joint, []).append(_shape(link, geometry, edge_radius))
    points: list[ContactPoint] = []
    approximations: list[Approximation] = []
    for joint, shapes in bodies.items():
        found, approximation = _points_of_body(joint, shapes, most)
        points += found
        approximations.append(approximation)
    return tuple(points), tuple(approximations)


def link_of(model: pin.Model, frame: str) -> str:
    """Return the link that a frame names: itself, or what the fixed joint of that name carries."""
    named = [index for index, other in enumerate(model.frames) if other.name == frame]
    for other in model.frames:
        at_joint = model.frames[other.parentFrame].type == pin.FrameType.FIXED_JOINT
        if other.type == pin.FrameType.BODY and at_joint and other.parentFrame in named:
            return str(other.name)
    return frame


def _chosen_links(
    geometries: dict[str, list[Any]], links: Iterable[str] | None, feet: set[str]
) -> list[str]:
    moving = {link: shapes for link, shapes in geometries.items() if shapes[0].parentJoint}
    if links is None:
        return [link for link in moving if link not in feet]
    chosen = list(as_tuple('links', links, 'names of links'))
    for k, link in enumerate(chosen):
        if link not in geometries:
            raise UnknownName('link with collision geometry', link, geometries)
        if link not in moving:
            raise InvalidInput(f'links: {link!r} is fixed to the world and touches nothing')
        if link in feet or link in chosen[:k]:
            raise InvalidInput(f'links: {link!r} is a foot, or listed twice')
    return chosen


def _points_of_body(
    joint: str, shapes: Sequence[_Shape], most: int
) -> tuple[list[ContactPoint], Approximation]:
    """Return the spheres of a body, and its corners or the most important of them."""
    corners = [(shape, k) for shape in shapes for k in range(len(shape.corners))]
    balls = [(shape, k) for shape, k in corners if shape.whole]
    sharp = [(shape, k) for shape, k in corners if not shape.whole]
    error = max(shape.error for shape in shapes)
    if len(sharp) > most:
        places = np.array([shape.corners[k] for shape, k in sharp])
        kept = spread(places, most, f'collision geometry that joint {joint!r} moves')
        radii = [shape.radius for shape, _ in sharp]
        error += reach_beyond(places[kept], places) + max(radii) - min(radii)
        sharp = [sharp[k] for k in sorted(kept)]
    points = [
        ContactPoint(f'{shape.name}.{k}', shape.link, joint, shape.corners[k], shape.radius)
        for shape, k in (*balls, *sharp)
    ]
    names = tuple(shape.name for shape in shapes)
    return points, Approximation(joint, names, len(points), error)


def collision_geometry(
    model: pin.Model, description: str, package_dirs: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the collision geometries of every link that has some."""
    if not description:
        raise InvalidInput('the robot was made without a URDF: no collision geometry is known')
    root = parse_xml(description, 'collision geometry')
    for mesh in root.iterfind('link/collision/geometry/mesh'):
        mesh.set('filename', mesh_path(mesh.get('filename', ''), package_dirs))
    text = collision_text(root, 'collision geometry')
    try:
        geometries = pin.buildGeomFromUrdfString(
            model, text, pin.GeometryType.COLLISION, package_dirs=list(package_dirs)
        ).geometryObjects
    except Exception as error:  # Pinocchio passes on whatever C++ throws
        raise RobotDescriptionError(f'collision geometry: {error}') from error
    described = sum(len(link.findall('collision')) for link in root.iterfind('link'))
    if len(geometries) != described:
        raise RobotDescriptionError(
            f'collision geometry: Pinocchio reads {len(geometries)} of {described} shapes'
        )
    by_link: dict[str, list[Any]] = {}
    for geometry in geometries:
        by_link.setdefault(str(model.frames[geometry.parentFrame].name), []).append(geometry)
    return by_link


def _shape(link: str, geometry: Any, edge_radius: float) -> _Shape:
    corners, radius, error = corners_of(geometry.geometry, str(geometry.name), edge_radius)
    placed = np.array([geometry.placement.act(corner) for corner in corners])
    whole = type(geometry.geometry).__name__ in ('Sphere', 'Capsule')
    return _Shape(link, str(geometry.name), placed, radius, whole, error)


def corners_of(shape: Any, name: str, edge_radius: float = 0.0) -> tuple[Array, float, float]:
    """Return the corners of a shape of coal in its frame [m], (n, 3), their radius and the error.

    Boxes have edges of `edge_radius` [m]: what the sharp ones reach beyond is in the error.

    Raises:
        RobotDescriptionError: a mesh without convex hull, or another shape; the message says
            `name`.
    """
    kind = type(shape).__name__
    if kind == 'Sphere':
        return np.zeros((1, 3)), float(shape.radius), 0.0
    if kind == 'Capsule':
        ends = np.outer([-1.0, 1.0], [0.0, 0.0, shape.halfLength])
        return ends, float(shape.radius), 0.0
    if kind == 'Box':
        radius = min(edge_radius, float(np.min(shape.halfSide)))
        return SIGNS * (shape.halfSide - radius), radius, (np.sqrt(3.0) - 1.0) * radius
    if kind in ('Cylinder', 'Cone'):
        rims = _rims(shape.radius, shape.radius if kind == 'Cylinder' else 0.0, shape.halfLength)
        return rims, 0.0, float(shape.radius * (1.0 - np.cos(np.pi / RIM)))
    if not hasattr(shape, 'vertices'):
        raise RobotDescriptionError(
            f'collision geometry {name!r}: {kind} is none of sphere, capsule, box, '
            'cylinder, cone and mesh'
        )
    vertices = shape.vertices() if callable(shape.vertices) else shape.vertices
    return _hull_of_mesh(np.array(vertices, dtype=float), name), 0.0, 0.0


def _rims(bottom: float, top: float, half_length: float) -> Array:
    """Return points on the rims of a cylinder, or on that of a cone with its apex."""
    angle = 2.0 * np.pi * np.arange(RIM) / RIM
    circle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(RIM)])
    upper = top * circle if top > 0.0 else np.zeros((1, 3))
    return np.vstack([bottom * circle - [0.0, 0.0, half_length], upper + [0.0, 0.0, half_length]])


def _hull_of_mesh(vertices: Array, name: str) -> Array:
    """Return the corners of the convex hull of a mesh."""
    if len(vertices) == 0 or not np.isfinite(vertices).all():
        raise RobotDescriptionError(f'collision mesh {name!r}: expected finite vertices')
    return np.asarray(vertices[_hull(vertices, f'collision mesh {name!r}').vertices])


def _hull(points: Array, place: str) -> ConvexHull:
    try:
        return ConvexHull(points)
    except (QhullError, ValueError) as error:  # fewer than four points, or all in a plane
        raise RobotDescriptionError(f'{place}: it is flat and has no convex hull') from error


def spread(corners: Array, most: int, place: str) -> list[int]:
    """Return the indices of at most `most` corners (n, 3) whose convex hull leaves out little.

    First four that enclose a volume, then again and again the one that lies farthest outside the
    hull of those chosen.

    Raises:
        RobotDescriptionError: all corners lie in a plane; the message calls them `place`.
    """
    _hull(corners, place)
    chosen = _simplex(corners)
    while len(chosen) < most:
        outside = _beyond_faces(corners[chosen], corners)
        outside[chosen] = 0.0
        if outside.max() <= 0.0:
            break
        chosen.append(int(np.argmax(outside)))
    return chosen


def _simplex(corners: Array) -> list[int]:
    """Return the indices of four corners that span the largest extents one after the other."""
    first = int(np.argmin(corners[:, 0]))
    chosen, basis = [first], np.zeros((0, 3))
    for _ in range(3):
        away = corners - corners[first]
        away = away - away @ basis.T @ basis
        size = np.linalg.norm(away, axis=1)
        chosen.append(int(np.argmax(size)))
        basis = np.vstack([basis, away[chosen[-1]] / size[chosen[-1]]])
    return chosen


def _beyond_faces(kept: Array, corners: Array) -> Array:
    """Return by how much corners lie beyond the faces of the hull of those kept [m], (n,)."""
    faces = ConvexHull(kept).equations
    return np.asarray((corners @ faces[:, :3].T + faces[:, 3]).max(axis=1))


def reach_beyond(kept: Array, corners: Array) -> float:
    """Return the largest distance of corners (n, 3) from the convex hull of those kept [m]."""
    outside = corners[_beyond_faces(kept, corners) > 0.0]
    return max((_distance(kept, corner) for corner in outside), default=0.0)


def _distance(kept: Array, point: Array) -> float:
    """Return the distance of a point from a convex hull [m]: the nearest convex combination."""
    away = (kept - point).T
    size = np.abs(away).max()
    weights, _ = nnls(np.vstack([away / size, np.full(len(kept), SUM)]), [0.0, 0.0, 0.0, SUM])
    return float(np.linalg.norm(away @ weights))
