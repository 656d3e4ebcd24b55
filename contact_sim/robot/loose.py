"""Loose bodies: a box, a ball or a capsule to step on, push or carry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import positive
from contact_sim.arguments import as_tuple
from contact_sim.robot.contact_point import Array
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot


@checked
def loose_box(size: Sequence[float], mass: float, name: str = 'box') -> RobotModel:
    """Return a box of even density that moves freely and touches the ground at its corners.

    Args:
        size: lengths of its edges [m], three numbers.
        mass: [kg].
        name: what to call it.

    Raises:
        InvalidInput: sizes or a mass that are not finite numbers > 0.
    """
    edges = as_tuple('size', size, 'three lengths')
    if len(edges) != 3:
        raise InvalidInput(f'size = {shown(size)} m: expected three lengths')
    x, y, z = (positive('size', edge, 'm') for edge in edges)
    square = np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    return _loose(name, f'<box size="{x!r} {y!r} {z!r}"/>', mass, square / 12.0)


@checked
def loose_ball(radius: float, mass: float, name: str = 'ball') -> RobotModel:
    """Return a solid ball of even density that moves freely.

    Args:
        radius: [m].
        mass: [kg].
        name: what to call it.

    Raises:
        InvalidInput: a radius or mass that is not a finite number > 0.
    """
    r = positive('radius', radius, 'm')
    return _loose(name, f'<sphere radius="{r!r}"/>', mass, np.full(3, 0.4 * r * r))


def _loose(name: str, geometry: str, mass: float, square: Array) -> RobotModel:
    """Return a free body with this geometry and moments of inertia of `square` per mass [m²]."""
    m = positive('mass', mass, 'kg')
    ixx, iyy, izz = (m * square).tolist()
    return load_robot(
        f'<robot name="{name}"><link name="{name}"><inertial><mass value="{m!r}"/>'
        f'<inertia ixx="{ixx!r}" iyy="{iyy!r}" izz="{izz!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<visual><geometry>{geometry}</geometry></visual>'
        f'<collision><geometry>{geometry}</geometry></collision></link></robot>',
        feet=(),
    ).with_body_contacts()
