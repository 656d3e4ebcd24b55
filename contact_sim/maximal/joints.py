"""Which rows make a joint, in space and in a plane.

Axes of a joint are x, y and z, the axis of a joint that has one (dynamics/tree.py). A revolute
joint has five rows: its origins on both bodies meet, and z of the child stays perpendicular to x
and y of the parent. All joints are made from such rows [Haug 1989].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from contact_sim.dynamics.tree import (
    CONTINUOUS,
    FREE_FLYER,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SPHERICAL,
    Tree,
)
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.maximal.bodies import Array, cross
from contact_sim.maximal.rows import JointRows

X, Y, Z = range(3)
PLANES = {'xy': (0, 1, 5), 'xz': (0, 2, 4), 'yz': (1, 2, 3)}
"""Velocities (ṗ, ω) of a body that moves in a plane."""
ALIGNED = 1e-9
"""Cosine up to which unit vectors are perpendicular."""


class Held(NamedTuple):
    """What a kind of joint holds."""

    meets: bool
    """Whether its origins on both bodies meet: three rows in world axes."""
    slides_not: tuple[int, ...]
    """Axes of the parent along which the origins do not part."""
    turns_not: tuple[tuple[int, int], ...]
    """Axes of child and parent that stay perpendicular."""


class PointRow(NamedTuple):
    """A row d · (x_c − x_p) of a joint."""

    joint: int
    direction: Array
    slides: bool


class AngleRow(NamedTuple):
    """A row s_c · s_p of a joint."""

    joint: int
    of_parent: Array
    of_child: Array


HINGE = Held(True, (), ((Z, X), (Z, Y)))
HELD = {
    REVOLUTE: HINGE,
    CONTINUOUS: HINGE,
    PRISMATIC: Held(False, (X, Y), ((Z, X), (Z, Y), (X, Y))),
    SPHERICAL: Held(True, (), ()),
    PLANAR: Held(False, (Z,), ((Z, X), (Z, Y))),
    FREE_FLYER: Held(False, (), ()),
}


def coordinates_of(plane: str | None) -> tuple[int, ...]:
    """Return which of the six velocities of a body are unknown; all of them in space.

    Raises:
        UnknownName: not the name of a plane of two world axes.
    """
    if plane is None:
        return tuple(range(6))
    if plane not in PLANES:
        raise UnknownName('plane', plane, PLANES)
    return PLANES[plane]


def normal_of(plane: str | None) -> Array | None:
    """Return the world axis about which bodies turn in a plane, shape (3,); None in space."""
    return None if plane is None else np.eye(3)[coordinates_of(plane)[2] - 3]


def joint_rows(
    tree: Tree,
    rotation: Array,
    anchors: tuple[Array, Array],
    plane: str | None,
    names: Sequence[str],
) -> JointRows:
    """Return the rows of all joints of a tree.

    Args:
        tree: the tree.
        rotation: of its bodies in the neutral pose, shape (nb, 3, 3).
        anchors: `JointRows.parent_anchor` and `child_anchor`.
        plane: in which all bodies move; None: space.
        names: what to call the joint of each body.

    Raises:
        InvalidInput: a joint of another kind, or one that leaves the plane.
    """
    normal = normal_of(plane)
    points: list[PointRow] = []
    angles: list[AngleRow] = []
    for j in range(1, len(tree.kind)):
        if int(tree.kind[j]) not in HELD:
            raise InvalidInput(
                f'joint {shown(names[j])}: maximal coordinates know revolute, prismatic, '
                'spherical, planar and universal joints, free flyers, and chains of these'
            )
        held, before = HELD[int(tree.kind[j])], rotation[tree.parent[j]]
        axes = _axes(rotation[j], normal)
        found: list[PointRow | AngleRow] = [
            *_points(j, held, before.T @ axes), *_angles(j, held, axes, before, rotation[j]),
        ]  # fmt: skip
        kept = [row for row in found if _acts_in(row, normal, before, rotation[j])]
        freedoms = tree.v_index[j + 1] - tree.v_index[j]
        if normal is not None and len(kept) + min(freedoms, 3) != 3:
            raise InvalidInput(
                f'joint {shown(names[j])} does not keep its body in the plane {plane}'
            )
        points += [row for row in kept if isinstance(row, PointRow)]
        angles += [row for row in kept if isinstance(row, AngleRow)]
    return JointRows(
        parent=tree.parent.astype(np.intp),
        parent_anchor=anchors[0],
        child_anchor=anchors[1],
        point_joint=np.array([row.joint for row in points], dtype=np.intp),
        direction=np.array([row.direction for row in points]).reshape(-1, 3),
        slides=np.array([row.slides for row in points], dtype=bool),
        angle_joint=np.array([row.joint for row in angles], dtype=np.intp),
        of_parent=np.array([row.of_parent for row in angles]).reshape(-1, 3),
        of_child=np.array([row.of_child for row in angles]).reshape(-1, 3),
    )


def _axes(rotation: Array, normal: Array | None) -> Array:
    """Return x, y, z of a joint in world as columns; x is the normal of a plane unless z is."""
    z = rotation[:, Z]
    x = rotation[:, X] if normal is None else normal - (normal @ z) * z
    length = np.linalg.norm(x)
    x = x / length if length > ALIGNED else rotation[:, X]
    return np.column_stack([x, cross(z, x), z])


def _points(joint: int, held: Held, of_parent: Array) -> Iterator[PointRow]:
    """Yield the point rows of a joint with these axes in the parent's."""
    if held.meets:
        yield from (PointRow(joint, d, False) for d in np.eye(3))
    yield from (PointRow(joint, of_parent[:, k], True) for k in held.slides_not)


def _angles(
    joint: int, held: Held, axes: Array, before: Array, behind: Array
) -> Iterator[AngleRow]:
    """Yield the angle rows of a joint, axes in world, between bodies with these rotations."""
    for c, p in held.turns_not:
        yield AngleRow(joint, before.T @ axes[:, p], behind.T @ axes[:, c])


def _acts_in(row: PointRow | AngleRow, normal: Array | None, before: Array, behind: Array) -> bool:
    """Return whether a row holds a motion in the plane; one that is askew counts as such."""
    if normal is None:
        return True
    if isinstance(row, PointRow):
        direction = before @ row.direction if row.slides else row.direction
        return bool(abs(normal @ direction) < 1.0 - ALIGNED)
    return bool(abs(normal @ cross(behind @ row.of_child, before @ row.of_parent)) > ALIGNED)
