"""Support polygons, and rigid motions of the base described as lines in space; numbers only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ON_LINE = 1e-9
"""Distance within which a point lies on a line, as a share of the distances involved."""
AXES = ('x', 'y', 'z')


@dataclass(frozen=True, eq=False)
class BaseMotion:
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


def base_motion(twist: Array, origin: Array, landmarks: dict[str, Array]) -> BaseMotion:
    """Return the motion that a twist (6,) at `origin` (3,) is, named after landmarks on its axis.

    Args:
        twist: linear velocity of the origin, then angular velocity, world axes.
        origin: of the base [m], world.
        landmarks: points [m] by name, the feet.
    """
    unit = twist / np.linalg.norm(twist)
    linear, omega = unit[:3], unit[3:]
    speed = float(np.linalg.norm(omega))
    if speed <= ON_LINE:
        name = f'translation along {_direction_words(linear)}'
        return BaseMotion(name, unit, linear, origin, np.inf)
    axis = omega / speed
    point = origin + np.cross(omega, linear) / speed**2
    pitch = float(axis @ linear) / speed
    on_axis = [name for name, place in landmarks.items() if _on_line(place, point, axis)]
    kind = 'rotation' if abs(pitch) <= ON_LINE else f'screw of pitch {pitch:.4g} m'
    return BaseMotion(
        f'{kind} about {_line_words(on_axis, axis, point)}', unit, axis, point, pitch
    )


def named_motions(
    null_space: Array, origin: Array, landmarks: dict[str, Array]
) -> tuple[BaseMotion, ...]:
    """Return motions that span a space of twists (6, k), plain ones first.

    Translations along and rotations about the world axes, through the middle of the landmarks,
    are taken where they lie in the space; the rest of an orthonormal basis follows.
    """
    wanted = null_space.shape[1]
    arm = np.mean(list(landmarks.values()), axis=0) - origin if landmarks else np.zeros(3)
    plain = [np.concatenate([axis, np.zeros(3)]) for axis in np.eye(3)]
    plain += [np.concatenate([np.cross(arm, axis), axis]) for axis in np.eye(3)]
    chosen: list[Array] = []
    for twist in [*plain, *null_space.T]:
        inside = null_space @ (null_space.T @ twist)
        whole = np.linalg.norm(inside - twist) <= ON_LINE * np.linalg.norm(twist)
        if len(chosen) < wanted and whole and _new(twist, chosen):
            chosen.append(twist)
    return tuple(base_motion(twist, origin, landmarks) for twist in chosen)


def convex_hull(points: Array) -> NDArray[np.intp]:
    """Return the corners of the convex hull of points (n, 2) in the plane, counter-clockwise.

    Points inside, and on an edge between two others, are left out; two points make a line.
    """
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()
    size = float(np.max(np.ptp(points, axis=0)))
    lower, upper = _chain(points, order, size), _chain(points, order[::-1], size)
    corners = lower[:-1] + upper[:-1] if len(order) > 1 else order
    return np.array(corners, dtype=np.intp)


def support_polygon(points: Array, normals: Array) -> Array:
    """Return the corners of the support polygon, counter-clockwise seen from above, (k, 3).

    Args:
        points: contact points of the standing feet [m], world, shape (n, 3).
        normals: of the ground, world; the first gives the plane of the polygon.
    """
    if len(points) == 0:
        return np.zeros((0, 3))
    normal = normals[0]
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    axes = np.stack([first, np.cross(normal, first)], axis=1)
    return np.asarray(points[convex_hull(points @ axes)])


def distance_inside(polygon: Array, point: Array) -> float:
    """Return how far a point (2,) lies inside a counter-clockwise polygon (n, 2).

    Negative outside. A polygon of one or two corners has no inside.
    """
    if len(polygon) == 0:
        return -np.inf
    start, edge = polygon, np.roll(polygon, -1, axis=0) - polygon
    length = np.linalg.norm(edge, axis=1)
    share = np.einsum('ij,ij->i', point - start, edge) / np.maximum(length, 1e-150) ** 2
    nearest = start + np.clip(share, 0.0, 1.0)[:, None] * edge
    distance = float(np.linalg.norm(point - nearest, axis=1).min())
    relative = point - start
    left = edge[:, 0] * relative[:, 1] - edge[:, 1] * relative[:, 0]
    return distance if len(polygon) > 2 and (left >= 0.0).all() else -distance


def _chain(points: Array, order: list[int], size: float) -> list[int]:
    chain: list[int] = []
    for i in order:
        while len(chain) > 1 and _turn(*points[[*chain[-2:], i]]) <= 1e-12 * size * size:
            chain.pop()
        if not chain or np.abs(points[i] - points[chain[-1]]).max() > 1e-12 * size:
            chain.append(i)
    return chain


def _turn(a: Array, b: Array, c: Array) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _new(twist: Array, chosen: list[Array]) -> bool:
    if not chosen:
        return True
    matrix = np.array([t / np.linalg.norm(t) for t in [*chosen, twist]])
    return bool(np.linalg.svd(matrix, compute_uv=False)[-1] > 1e-6)


def _on_line(place: Array, point: Array, axis: Array) -> bool:
    reach = place - point
    far = max(1.0, float(np.linalg.norm(reach)))
    return bool(np.linalg.norm(np.cross(axis, reach)) <= 1e-7 * far)


def _direction_words(direction: Array) -> str:
    axis = int(np.argmax(np.abs(direction)))
    if abs(direction[axis]) >= 1.0 - ON_LINE:
        return AXES[axis]
    return '({:.4g}, {:.4g}, {:.4g})'.format(*direction)


def _line_words(on_axis: list[str], axis: Array, point: Array) -> str:
    if len(on_axis) > 1:
        return 'the line ' + ' - '.join(on_axis)
    if on_axis:
        return f'{_direction_words(axis)} through {on_axis[0]}'
    return _direction_words(axis) + ' through ({:.4g}, {:.4g}, {:.4g})'.format(*point)
