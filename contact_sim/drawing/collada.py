"""COLLADA files (.dae), the meshes of most robot descriptions, as surfaces in their colours.

Lengths are scaled by the unit of the file. Its up axis is left as it is, as everything that reads
robot descriptions does: the description says how the mesh is turned.

Own code, because trimesh with pycollada leaves out the unit, and finds nothing in some meshes, as
the feet of anymal_b; coal reads no colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from contact_sim.drawing.style import Colour

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Part = tuple[Array, Indices, Colour | None]
"""Corners [m] (n, 3), triangles (m, 3), and the colour, if the file says one."""


def collada_parts(file: Path) -> list[Part]:
    """Return the parts of a file, one for each material.

    Raises:
        ValueError: it is not COLLADA, or refers to what it does not have.
        OSError: it cannot be read.
    """
    try:
        return list(_File(file).parts())
    except (ElementTree.ParseError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(f'not the COLLADA that is read here: {error!r}') from error


class _File:
    """A COLLADA document."""

    def __init__(self, file: Path) -> None:
        root = ElementTree.parse(file).getroot()
        for element in root.iter():
            element.tag = element.tag.rpartition('}')[2]  # without the namespace
        self._root, self._folder = root, file.parent
        self._by_id = {e.get('id'): e for e in root.iter() if e.get('id')}
        unit = root.find('asset/unit')
        self._metres = 1.0 if unit is None else float(unit.get('meter', '1'))

    def parts(self) -> Iterator[Part]:
        """Yield what the visual scene shows."""
        scale = np.diag([self._metres] * 3 + [1.0])
        for scene in self._root.iterfind('library_visual_scenes/visual_scene'):
            for node in scene.iterfind('node'):
                yield from self._node(node, scale)

    def _at(self, reference: str) -> ElementTree.Element:
        return self._by_id[reference.removeprefix('#')]

    def _node(self, node: ElementTree.Element, above: Array) -> Iterator[Part]:
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
    ) -> Iterator[Part]:
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
        return _floats(source.find('float_array')).reshape(-1, 3)

    def _colour(self, reference: str) -> Colour | None:
        """Return the diffuse colour of a material, the mean one where that is an image."""
        if not reference:
            return None
        instance = self._at(reference).find('instance_effect')
        effect = self._at(instance.get('url', ''))  # type: ignore[union-attr]
        diffuse = next(effect.iter('diffuse'), None)
        colour = None if diffuse is None else diffuse.find('color')
        if colour is not None:
            r, g, b, *_ = _floats(colour).tolist()
            return r, g, b, 1.0
        image = next(self._root.iterfind('library_images/image/init_from'), None)
        texture = None if diffuse is None else diffuse.find('texture')
        if texture is None or image is None:
            return None
        return mean_colour(self._folder / unquote(image.text or ''))


def mean_colour(file: Path) -> Colour | None:
    """Return the mean colour of an image, None of one that is not there."""
    try:
        with Image.open(file) as image:
            r, g, b = np.asarray(image.convert('RGB').resize((16, 16))).reshape(-1, 3).mean(0)
    except OSError:
        return None
    return float(r) / 255.0, float(g) / 255.0, float(b) / 255.0, 1.0


def _floats(element: ElementTree.Element | None) -> Array:
    text = '' if element is None else element.text or ''
    return np.array(text.split(), dtype=np.float64)


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
    """Return what a node does to what is in it, (4, 4)."""
    total = np.eye(4)
    for element in node:
        step = np.eye(4)
        if element.tag == 'matrix':
            step = _floats(element).reshape(4, 4)
        elif element.tag == 'translate':
            step[:3, 3] = _floats(element)
        elif element.tag == 'scale':
            step[:3, :3] = np.diag(_floats(element))
        elif element.tag == 'rotate':
            step[:3, :3] = _rotation(_floats(element))
        total = total @ step
    return total


def _rotation(axis_and_degrees: Array) -> Array:
    x, y, z = axis_and_degrees[:3] / np.linalg.norm(axis_and_degrees[:3])
    angle = np.radians(axis_and_degrees[3])
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: Array = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
    return turned
