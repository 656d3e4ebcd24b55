"""The visual or collision geometry of a robot description, as surfaces in colours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.drawing.surfaces import box, capsule, cylinder, sphere
from contact_sim.drawing.meshes import Parts, mesh_file, mesh_parts
from contact_sim.drawing.style import Colour
from contact_sim.drawing.surfaces import Surface
from contact_sim.errors import shown
from contact_sim.robot.description import parse_xml
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
PLAIN: Colour = (0.70, 0.73, 0.78, 1.0)
"""Of what has no colour of its own."""


@dataclass(frozen=True, eq=False)
class Look:
    """A geometry of a link."""

    link: str
    placement: pin.SE3
    """In the axes of the link."""
    surface: Surface
    colour: Colour


def looks_of(robot: RobotModel, use: str) -> tuple[tuple[Look, ...], tuple[str, ...]]:
    """Return the geometry of all links, and in words which meshes are missing.

    Args:
        robot: with a description; of others there is no geometry.
        use: 'visual' or 'collision'.
    """
    looks: list[Look] = []
    missing: list[str] = []
    if not robot.description:
        return (), ()
    root = parse_xml(robot.description, f'description of {robot.name}')
    colours = {m.get('name'): _colour(m) for m in root.iterfind('material')}
    for link in root.iterfind('link'):
        for element in link.iterfind(use):
            name = link.get('name', '')
            try:
                parts = _parts(element.find('geometry'), robot.package_dirs)
            except (KeyError, ValueError, OSError) as error:
                missing.append(f'link {name}: {error}')
                continue
            material = element.find('material')
            own = None if material is None else _colour(material)
            named = None if material is None else colours.get(material.get('name'))
            place = _origin(element)
            colour = own or named or PLAIN  # of what has none in its file, as in RViz
            looks += [Look(name, place, part, of or colour) for part, of in parts]
    return tuple(looks), tuple(dict.fromkeys(missing))


def _colour(material: ElementTree.Element) -> Colour | None:
    element = material.find('color')
    if element is None:
        return None
    r, g, b, a = (float(x) for x in element.get('rgba', '').split())
    return r, g, b, a


def _numbers(text: str) -> Array:
    return np.array([float(x) for x in text.split()])


def _origin(element: ElementTree.Element) -> pin.SE3:
    origin = element.find('origin')
    if origin is None:
        return pin.SE3.Identity()
    xyz, rpy = _numbers(origin.get('xyz', '0 0 0')), _numbers(origin.get('rpy', '0 0 0'))
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), xyz)


def _parts(geometry: ElementTree.Element | None, folders: tuple[str, ...]) -> Parts:
    """Return the surfaces of a <geometry>; the same objects for the same shape."""
    shape = None if geometry is None else next(iter(geometry), None)
    if shape is None:
        raise ValueError('no geometry')
    if shape.tag == 'mesh':
        x, y, z = _numbers(shape.get('scale', '1 1 1')).tolist()
        return mesh_parts(mesh_file(shape.get('filename', ''), folders), (x, y, z))
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
