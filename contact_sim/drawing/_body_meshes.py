"""Coloured triangle surfaces of the bodies of a robot, moved by its joints.

From the top: the bodies of a robot, the geometry of the links of a URDF, mesh files (COLLADA is
read here, other formats by trimesh), and surfaces of primitive shapes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from contact_sim import _reading
from contact_sim._types import Array, Indices
from contact_sim.errors import shown
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._files import mesh_file
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.robot._urdf import parse_xml

LOG = logging.getLogger(__name__)

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""
DEFAULT_COLOUR: Colour = (0.70, 0.73, 0.78, 1.0)
"""Of geometry without a colour of its own."""
MIN_RADIUS = 0.008
"""Smallest radius of a capsule that stands for a link without geometry [m]."""
MAX_TRIANGLES = 5_000
"""Triangles of a mesh: more is not seen; the mesh of go1's trunk has 351 394."""
SIDES = 24
"""Corners of a circle."""
ARCS = 7
"""Points on a quarter of a circle."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles; their corners go around counterclockwise as seen from outside."""

    vertices: Array
    """Corners [m], shape (n, 3)."""
    triangles: Indices
    """Three corners each, shape (m, 3)."""


@dataclass(frozen=True, eq=False)
class LinkGeometry:
    """A geometry of a link."""

    link: str
    placement: pin.SE3
    """In the axes of the link."""
    surface: Surface
    colour: Colour


@dataclass(frozen=True, eq=False)
class Body:
    """A surface that a joint moves."""

    link: str
    """Name of the link among those of the whole robot."""
    joint: int
    """Pinocchio's number of the joint, 0 for the world."""
    placement: Array
    """Of the surface in the axes of the joint: position [m], quaternion x y z w, shape (7,)."""
    surface: Surface
    """The same object for bodies of the same shape."""
    colour: Colour


MeshPart = tuple[Array, Indices, Colour | None]
"""Corners [m] (n, 3), triangles (m, 3), and the colour, if the file has one."""
Surfaces = tuple[tuple[Surface, Colour | None], ...]


# ------------------------------------------------ bodies of a robot


@lru_cache(maxsize=16)
def bodies_of(robot: RobotModel) -> tuple[Body, ...]:
    """Return the bodies of a robot, or of all robots that were joined.

    A body has its visual geometry. If it has none, or its meshes are missing, it has its
    collision geometry; without that, capsules from its joint to the next joints and to its
    contact points, or a ball at its centre of mass. Missing meshes are logged once.
    """
    return tuple(body for part in parts_of(robot) for body in _bodies_of_part(robot, part))


def compose(first: Array, second: Array) -> tuple[Array, Array]:
    """Return position and quaternion w x y z of placements (n, 7), the second in the first."""
    p, u, w = first[:, :3], first[:, 3:6], first[:, 6:]
    r, s, c = second[:, :3], second[:, 3:6], second[:, 6:]
    t = 2.0 * np.cross(u, r)
    position = p + r + w * t + np.cross(u, t)
    real = w * c - np.sum(u * s, axis=1, keepdims=True)
    return position, np.concatenate([real, w * s + c * u + np.cross(u, s)], axis=1)


def _bodies_of_part(whole: RobotModel, part: RobotPart) -> Iterator[Body]:
    own, model = part.robot.pinocchio_model, whole.pinocchio_model
    looks, missing = link_geometries(part.robot, 'visual')
    with_mass = {j for j in range(1, own.njoints) if own.inertias[j].mass > 0.0}
    bare = with_mass - {_joint(own, look.link) for look in looks}
    if bare:
        solid, _ = link_geometries(part.robot, 'collision')
        instead = [look for look in solid if _joint(own, look.link) in bare]
        looks += instead
        bare -= {_joint(own, look.link) for look in instead}
    looks += [look for joint in sorted(bare) for look in _capsules(part.robot, joint)]
    if missing:
        LOG.warning(
            'robot %s: %s; drawn without them, or as simple shapes', whole.name, '; '.join(missing)
        )
    for look in looks:
        name = part.qualified_name(look.link)
        frame, alone = find_frame(model, name), find_frame(own, look.link)
        moved = frame.placement * alone.placement.inverse()  # of a part whose base is fixed
        at = pin.SE3ToXYZQUAT(moved * alone.placement * look.placement)
        yield Body(name, frame.parentJoint, at, look.surface, look.colour)


def _joint(model: pin.Model, link: str) -> int:
    return int(find_frame(model, link).parentJoint)


def _capsules(robot: RobotModel, joint: int) -> Iterator[LinkGeometry]:
    """Yield capsules along a body, in the axes of a frame of it."""
    model = robot.pinocchio_model
    points = [p for p in robot.contact_points if _joint(model, p.frame) == joint]
    ends = [np.array(model.jointPlacements[j].translation)
            for j in range(1, model.njoints) if model.parents[j] == joint]  # fmt: skip
    ends += [np.array(p.offset) for p in points]
    shapes = [
        (pin.SE3(np.eye(3), np.array(point.offset)), sphere(point.radius))
        for point in points
        if point.radius > 0.0
    ]
    long = [end for end in ends if np.linalg.norm(end) > MIN_RADIUS]
    for end in long:
        length = float(np.linalg.norm(end))
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end / length).matrix()
        shapes.append((pin.SE3(turn, 0.5 * end), capsule(max(MIN_RADIUS, 0.06 * length), length)))
    if not long and not points:
        centre = pin.SE3(np.eye(3), np.array(model.inertias[joint].lever))
        shapes.append((centre, sphere(3.0 * MIN_RADIUS)))
    frame = next(f for f in model.frames if f.parentJoint == joint)
    back = frame.placement.inverse()
    for placement, surface in shapes:
        yield LinkGeometry(frame.name, back * placement, surface, DEFAULT_COLOUR)


def tinted(bodies: tuple[Body, ...], colour: Colour) -> tuple[Body, ...]:
    """Return bodies in one colour."""
    return tuple(replace(body, colour=colour) for body in bodies)


# ------------------------------------------------ geometry of the links of a URDF


def link_geometries(robot: RobotModel, use: str) -> tuple[list[LinkGeometry], tuple[str, ...]]:
    """Return the geometry of all links, and a line for each missing mesh."""
    looks: list[LinkGeometry] = []
    missing: list[str] = []
    if not robot.description:
        return [], ()
    root = parse_xml(robot.description, f'description of {robot.name}')
    colours = {m.get('name'): _material_colour(m) for m in root.iterfind('material')}
    for link in root.iterfind('link'):
        for element in link.iterfind(use):
            name = link.get('name', '')
            try:
                parts = _parts(element.find('geometry'), robot.package_dirs)
            except (KeyError, ValueError, OSError) as error:
                missing.append(f'link {name}: {error}')
                continue
            material = element.find('material')
            own = None if material is None else _material_colour(material)
            named = None if material is None else colours.get(material.get('name'))
            place = _origin(element)
            colour = own or named or DEFAULT_COLOUR  # of what has none in its file, as in RViz
            looks += [LinkGeometry(name, place, part, of or colour) for part, of in parts]
    return looks, tuple(dict.fromkeys(missing))


def _material_colour(material: ElementTree.Element) -> Colour | None:
    element = material.find('color')
    if element is None:
        return None
    r, g, b, a = (float(x) for x in element.get('rgba', '').split())
    return r, g, b, a


def _numbers(text: str | None) -> Array:
    return np.array((text or '').split(), dtype=np.float64)


def _origin(element: ElementTree.Element) -> pin.SE3:
    origin = element.find('origin')
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = _numbers(origin.get('xyz', '0 0 0')), _numbers(origin.get('rpy', '0 0 0'))
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), xyz)


def _parts(geometry: ElementTree.Element | None, folders: tuple[str, ...]) -> Surfaces:
    """Return the surfaces of a <geometry>; the same objects for the same shape."""
    shape = None if geometry is None else next(iter(geometry), None)
    if shape is None:
        raise ValueError('no geometry')
    if shape.tag == 'mesh':
        x, y, z = _numbers(shape.get('scale', '1 1 1')).tolist()
        file = mesh_file(shape.get('filename', ''), folders)
        return _read_mesh(file, (x, y, z), file.stat().st_mtime_ns)
    return ((_primitive(shape.tag, tuple(sorted(shape.attrib.items()))), None),)


@cache
def _primitive(kind: str, sizes: tuple[tuple[str, str], ...]) -> Surface:
    given = dict(sizes)
    if kind == 'box':
        x, y, z = _numbers(given['size'])
        return box((x, y, z))
    if kind == 'sphere':
        return sphere(float(given['radius']))
    if kind == 'cylinder':
        return cylinder(float(given['radius']), float(given['length']))
    if kind == 'capsule':
        return capsule(float(given['radius']), float(given['length']))
    raise ValueError(f'{shown(kind)} is none of box, sphere, cylinder, capsule and mesh')


# ------------------------------------------------ mesh files


@lru_cache(maxsize=128)
def _read_mesh(file: Path, scale: tuple[float, float, float], changed: int) -> Surfaces:
    """Return the surfaces in a mesh file, with fewer triangles where there are very many.

    They are the same objects until the file is changed.
    """
    try:
        with _reading.reading(file):
            collada = file.suffix.lower() == '.dae'
            parts = collada_parts(file) if collada else list(_trimesh_parts(file))
    except Exception as error:  # trimesh passes on whatever its readers raise
        raise ValueError(f'mesh {shown(str(file))} cannot be read: {error}') from error
    total = sum(len(triangles) for _, triangles, _ in parts)
    if not total:
        raise ValueError(f'mesh {shown(str(file))} has no triangles')
    found = []
    for vertices, triangles, colour in parts:
        order = triangles if np.prod(scale) > 0.0 else triangles[:, ::-1]
        surface = without_slivers(vertices * scale, order)
        most = max(MAX_TRIANGLES * len(triangles) // total, 12)
        found.append((simplified(surface, most), colour))
    return tuple(found)


def _trimesh_parts(file: Path) -> Iterator[MeshPart]:
    try:
        scene = _reading.mesh_scene(file)
    except ImportError as error:
        raise ValueError("trimesh is not installed: pip install 'contact_sim[view]'") from error
    for mesh in scene.dump(concatenate=False):
        if not len(mesh.faces):
            continue
        source = getattr(mesh.visual, 'material', mesh.visual if mesh.visual.defined else None)
        colour = None
        if source is not None:
            r, g, b = (float(part) / 255.0 for part in source.main_color[:3])
            colour = r, g, b, 1.0
        yield np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces), colour


# ------------------------------------------------ COLLADA files
#
# Lengths are scaled by the unit of the file. Its up axis is ignored, as all readers of robot
# descriptions do: the description says how the mesh is turned. trimesh with pycollada ignores
# the unit and finds nothing in some meshes, such as the feet of anymal_b; coal reads no colours.


def collada_parts(file: Path) -> list[MeshPart]:
    """Return the parts of a file, one for each material."""
    try:
        return list(_ColladaFile(file).parts())
    except (ElementTree.ParseError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(f'not the COLLADA that is read here: {error!r}') from error


class _ColladaFile:
    """A COLLADA document."""

    def __init__(self, file: Path) -> None:
        text = _reading.file_bytes(file, _reading.MESH_SHARE)
        root = _reading.xml_root(text, _reading.BoundedTree(str(file)), str(file))
        for element in root.iter():
            element.tag = element.tag.rpartition('}')[2]  # without the namespace
        self._root, self._folder = root, file.parent
        self._by_id = {e.get('id'): e for e in root.iter() if e.get('id')}
        unit = root.find('asset/unit')
        self._metres = 1.0 if unit is None else float(unit.get('meter', '1'))

    def parts(self) -> Iterator[MeshPart]:
        """Yield what the visual scene shows."""
        scale = np.diag([self._metres] * 3 + [1.0])
        for scene in self._root.iterfind('library_visual_scenes/visual_scene'):
            for node in scene.iterfind('node'):
                yield from self._node(node, scale)

    def _at(self, reference: str) -> ElementTree.Element:
        return self._by_id[reference.removeprefix('#')]

    def _node(self, node: ElementTree.Element, above: Array) -> Iterator[MeshPart]:
        here = above @ _transform(node)
        for instance in node.iterfind('instance_geometry'):
            bound = {one.get('symbol'): one.get('target', '')
                     for one in instance.iter('instance_material')}  # fmt: skip
            mesh = self._at(instance.get('url', '')).find('mesh')
            if mesh is not None:
                yield from self._mesh(mesh, bound, here)
        for child in node.iterfind('node'):
            yield from self._node(child, here)
        for instance in node.iterfind('instance_node'):
            yield from self._node(self._at(instance.get('url', '')), here)

    def _mesh(
        self, mesh: ElementTree.Element, bound: dict[str | None, str], here: Array
    ) -> Iterator[MeshPart]:
        for kind in ('triangles', 'polylist', 'polygons'):
            for element in mesh.iterfind(kind):
                if not int(element.get('count', '0')):
                    continue
                points, triangles = self._points(element), _triangles(element)
                moved = points @ here[:3, :3].T + here[:3, 3]
                if np.linalg.det(here[:3, :3]) < 0.0:
                    triangles = triangles[:, ::-1]
                used, number = np.unique(triangles, return_inverse=True)
                material = bound.get(element.get('material'), '')
                yield moved[used], number.reshape(-1, 3), self._colour(material)

    def _points(self, element: ElementTree.Element) -> Array:
        """Return the positions that the corners of triangles refer to, (n, 3)."""
        vertex = next(i for i in element.iterfind('input') if i.get('semantic') == 'VERTEX')
        vertices = self._at(vertex.get('source', ''))
        given = next(i for i in vertices.iterfind('input') if i.get('semantic') == 'POSITION')
        source = self._at(given.get('source', ''))
        return _numbers(source.findtext('float_array')).reshape(-1, 3)

    def _colour(self, reference: str) -> Colour | None:
        """Return the diffuse colour of a material, the mean one where that is an image."""
        if not reference:
            return None
        instance = self._at(reference).find('instance_effect')
        effect = self._at(instance.get('url', ''))  # type: ignore[union-attr]
        diffuse = next(effect.iter('diffuse'), None)
        if diffuse is None:
            return None
        colour = diffuse.find('color')
        if colour is not None:
            r, g, b, *_ = _numbers(colour.text).tolist()
            return r, g, b, 1.0
        image = next(self._root.iterfind('library_images/image/init_from'), None)
        if diffuse.find('texture') is None or image is None:
            return None
        return mean_colour(self._folder / unquote(image.text or ''))


def mean_colour(file: Path) -> Colour | None:
    """Return the mean colour of an image, None of one that is not there."""
    try:
        image = _reading.image_file(file)
    except _reading.Unreadable:
        return None
    r, g, b = np.asarray(image.convert('RGB').resize((16, 16))).reshape(-1, 3).mean(0)
    return float(r) / 255.0, float(g) / 255.0, float(b) / 255.0, 1.0


def _integers(text: str | None) -> Indices:
    return np.array((text or '').split(), dtype=np.int64)


def _triangles(element: ElementTree.Element) -> Indices:
    """Return the vertices of triangles, (m, 3); polygons become fans."""
    inputs = list(element.iterfind('input'))
    stride = 1 + max(int(i.get('offset', '0')) for i in inputs)
    place = next(int(i.get('offset', '0')) for i in inputs if i.get('semantic') == 'VERTEX')
    texts = [p.text for p in element.iterfind('p')]
    if element.tag == 'polygons':
        corners = [_integers(text)[place::stride] for text in texts]
        sizes, flat = np.array([len(c) for c in corners]), np.concatenate(corners)
    else:
        flat = _integers(texts[0])[place::stride]
        counts = element.find('vcount')
        whole = np.full(len(flat) // 3, 3)
        sizes = whole if counts is None else _integers(counts.text)
    fans = np.maximum(sizes - 2, 0)
    first = np.repeat(np.cumsum(sizes) - sizes, fans)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    return np.asarray(np.stack([flat[first], flat[first + step + 1], flat[first + step + 2]], 1))


def _transform(node: ElementTree.Element) -> Array:
    """Return the homogeneous transform of a node, (4, 4)."""
    total = np.eye(4)
    for element in node:
        step = np.eye(4)
        if element.tag == 'matrix':
            step = _numbers(element.text).reshape(4, 4)
        elif element.tag == 'translate':
            step[:3, 3] = _numbers(element.text)
        elif element.tag == 'scale':
            step[:3, :3] = np.diag(_numbers(element.text))
        elif element.tag == 'rotate':
            *axis, degrees = _numbers(element.text)
            x, y, z = np.array(axis) / np.linalg.norm(axis)
            angle = np.radians(degrees)
            cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            squared = (1.0 - np.cos(angle)) * cross @ cross
            step[:3, :3] = np.eye(3) + np.sin(angle) * cross + squared
        total = total @ step
    return total


# ------------------------------------------------ primitive shapes, simplification


_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def box(size: tuple[float, float, float]) -> Surface:
    """Return a box about the origin with edges of these lengths [m]."""
    triangles = [t for a, b, c, d in _FACES for t in ((a, b, c), (a, c, d))]
    return Surface(_CORNERS * size, np.array(triangles))


def sphere(radius: float) -> Surface:
    """Return a sphere about the origin [m]."""
    return capsule(radius, 0.0)


def capsule(radius: float, length: float) -> Surface:
    """Return a capsule about a segment along z, centred at the origin [m]."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * ARCS)
    z = radius * np.sin(angle) + np.repeat([-0.5, 0.5], ARCS) * length
    return revolved(radius * np.cos(angle), z)


def cylinder(radius: float, length: float) -> Surface:
    """Return a cylinder along z about the origin [m]."""
    half = 0.5 * length
    return revolved(np.array([0.0, radius, radius, 0.0]), np.array([-half, -half, half, half]))


def revolved(radii: Array, heights: Array) -> Surface:
    """Return the surface of revolution about z of radii and heights (n,), from the lowest up."""
    angle = 2.0 * np.pi * np.arange(SIDES) / SIDES
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(SIDES)], axis=1)
    radii = np.where(radii > 1e-12 * radii.max(), radii, 0.0)  # cos(π/2) is not quite zero
    rings = radii[:, None, None] * circle + heights[:, None, None] * [0.0, 0.0, 1.0]
    a = np.arange(len(radii) - 1)[:, None] * SIDES + np.arange(SIDES)
    b = np.arange(len(radii) - 1)[:, None] * SIDES + (np.arange(SIDES) + 1) % SIDES
    quads = np.stack([a, b, b + SIDES, a, b + SIDES, a + SIDES], axis=-1).reshape(-1, 3)
    return without_slivers(rings.reshape(-1, 3), quads)


def without_slivers(vertices: Array, triangles: Indices) -> Surface:
    """Return a surface without repeated vertices, and without triangles that have no area."""
    _, first, same = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    triangles = same.ravel()[triangles]
    a, b, c = triangles.T
    kept = triangles[(a != b) & (b != c) & (c != a)]
    return Surface(vertices[first], kept)


def simplified(surface: Surface, most: int) -> Surface:
    """Return a surface with at most `most` triangles by vertex clustering.

    The vertices in one cell of a grid are replaced by their mean. The volume of the cells doubles
    until there are few enough triangles; no vertex moves further than the diagonal of a cell.
    """
    if len(surface.triangles) <= most:
        return surface
    extent = np.ptp(surface.vertices, axis=0)
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    area = float(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())
    side = float(np.sqrt(area / most)) if area > 0.0 else float(extent.max() / np.sqrt(most))
    found = _cluster_vertices(surface, side)
    while len(found.triangles) > most:
        side *= 2.0 ** (1.0 / 3.0)
        found = _cluster_vertices(surface, side)
    return found


def _cluster_vertices(surface: Surface, side: float) -> Surface:
    """Return the surface with the vertices of each grid cell of this side [m] at their mean."""
    cells = np.floor((surface.vertices - surface.vertices.min(axis=0)) / side).astype(np.int64)
    counts = cells.max(axis=0) + 1
    key = (cells[:, 0] * counts[1] + cells[:, 1]) * counts[2] + cells[:, 2]
    _, cell, number = np.unique(key, return_inverse=True, return_counts=True)
    means = [np.bincount(cell, column) / number for column in surface.vertices.T]
    a, b, c = triangles = cell[surface.triangles].T
    kept = triangles.T[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(kept, axis=1), axis=0, return_index=True)
    return Surface(np.stack(means, axis=1), kept[np.sort(first)])
