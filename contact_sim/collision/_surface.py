"""Signed distance, outward normal and curvature of every kind of ground.

A ground is a kind, TERRAIN_DATA numbers (arrays/_fields.py) and, where it has one, a relief of any
length. It has features, each with a signed distance φ of its own; a sphere may touch several of
them at once, up to MAX_FEATURES. |∇φ| = 1, n = ∇φ points out of the ground, and H = ∇²φ = ∂n/∂x
tells how n turns along it.

    kind    feature   data
    PLANES  f         [4 f: 4 f + 4] unit normal n and offset d of plane f: φ = n·x − d
    ROUND   0         [0:3] a point of the axis, or the centre; [3] radius R;
                      [4] side s: 1 outside a solid, −1 inside a hollow;
                      [5:8] unit axis of a cylinder, zero for a sphere: φ = s (ρ − R), ρ the
                      distance from the axis or the centre
    FIELD   facet     see _height_field_contacts.py; its triangles, edges and corners
    MESH    facet     see _mesh_contacts.py; likewise
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.dynamics._vectors import add, cross, dot, scaled
from contact_sim.solvers._jit import call_facet_curvature, call_find_facets, kernel

PLANES, ROUND, FIELD, MESH = range(4)
KINDS = PLANES, ROUND, FIELD, MESH
FACETED = FIELD, MESH  # kinds with more features than a sphere has slots
MAX_FEATURES = 4  # contacts that a sphere may have at once


class Ground(NamedTuple):
    """Parameters of a ground for kernels."""

    kind: int
    """One of KINDS."""
    data: NDArray[np.float64]
    """Shape (TERRAIN_DATA,)."""
    relief: NDArray[np.float64]
    """Shape (any,)."""
    find_facets: int
    """Address of `find_facets`; 0 on a ground without facets."""
    facet_curvature: int
    """Address of `facet_curvature`; 0 likewise."""
    features: int
    """Contacts that a sphere may have at once: slots of each candidate."""
    find_edges: int
    """Address of `find_edges`; 0 likewise."""


NEAR = 0.02  # gap up to which all contacts of a sphere are found; beyond it only the nearest [m]
FAR = 1e6  # height from which a vertical is intersected with the ground [m]
STEEP = 1e-3  # vertical part of a unit normal below which a surface counts as a wall
SINGULAR = 1e-9
"""Distance from the centre or axis below which n has no direction and counts as vertical [m]."""
PARALLEL = 1e-12  # square of the sine below which planes have no edge in common
ROUNDING = 1e-12  # rounding of places over their distance from the origin [-]


@kernel
def distance_and_normal(ground, feature, x, y, z):
    """Return φ [m], negative inside the ground, and n = ∇φ of a feature at a point in world."""
    data = ground.data
    if ground.kind == PLANES:
        (nx, ny, nz), offset = plane_of(data, feature)
        return nx * x + ny * y + nz * z - offset, (nx, ny, nz)
    reach, (ex, ey, ez) = _from_axis(data, x, y, z)
    side = data[4]
    return side * (reach - data[3]), (side * ex, side * ey, side * ez)


@kernel
def smooth_signed_distance(ground, x, y, z):
    """Return the signed distance of a point from planes or round ground [m]."""
    if ground.kind == PLANES:
        return planes_signed_distance(ground.data, ground.features, (x, y, z))
    return distance_and_normal(ground, 0, x, y, z)[0]


@kernel
def planes_signed_distance(data, count, p):
    """Return the signed distance of a point from the room in front of all planes [m].

    In the room, and behind a single plane, that of the nearest plane. Else minus the distance from
    the room: from a face, an edge or a corner, the nearest that none of the planes cuts off. If
    the planes leave no room, that of the plane farthest in front of the point.
    """
    least = np.inf
    for f in range(count):
        n, offset = plane_of(data, f)
        least = min(least, dot(n, p) - offset)
    if least >= 0.0 or count == 1:
        return least
    depth = np.inf
    for f in range(count):
        n, offset = plane_of(data, f)
        away = dot(n, p) - offset
        depth = min(depth, depth_at(data, count, p, scaled(-away, n)))
        for g in range(f):
            m, offset = plane_of(data, g)
            other, cosine = dot(m, p) - offset, dot(n, m)
            square = 1.0 - cosine * cosine
            if square < PARALLEL:
                continue
            share, rest = (cosine * other - away) / square, (cosine * away - other) / square
            way = add(scaled(share, n), scaled(rest, m))
            depth = min(depth, depth_at(data, count, p, way))
            along = cross(n, m)
            for h in range(g):
                k, offset = plane_of(data, h)
                slope = dot(k, along)
                if slope * slope >= PARALLEL:
                    further = (offset - dot(k, add(p, way))) / slope
                    corner = add(way, scaled(further, along))
                    depth = min(depth, depth_at(data, count, p, corner))
    return -depth if depth < np.inf else least


@kernel
def depth_at(data, count, p, way):
    """Return the length of a way if it leads from p into the room in front of planes, else inf."""
    place = add(p, way)
    room = ROUNDING * (1.0 + np.sqrt(dot(place, place)))
    for f in range(count):
        n, offset = plane_of(data, f)
        if dot(n, place) - offset < -room:
            return np.inf
    return np.sqrt(dot(way, way))


@kernel
def curvature(ground, feature, x, y, z):
    """Return H = ∂n/∂x [1/m] as (xx, xy, xz, yy, yz, zz). Arguments as `distance_and_normal`."""
    data = ground.data
    if ground.kind == PLANES:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if ground.find_facets != 0:
        return call_facet_curvature(ground, feature, x, y, z)
    # (1 − e eᵀ − a aᵀ) s/ρ on round ground, a its axis
    reach, (ex, ey, ez) = _from_axis(data, x, y, z)
    if reach < SINGULAR:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s, ax, ay, az = data[4] / reach, data[5], data[6], data[7]
    return (
        s * (1.0 - ex * ex - ax * ax),
        s * (-ex * ey - ax * ay),
        s * (-ex * ez - ax * az),
        s * (1.0 - ey * ey - ay * ay),
        s * (-ey * ez - ay * az),
        s * (1.0 - ez * ez - az * az),
    )


@kernel
def plane_of(data, feature):
    """Return unit normal and offset of a feature of PLANES."""
    k = 4 * int(feature)
    return (data[k], data[k + 1], data[k + 2]), data[k + 3]


@kernel
def _from_axis(data, x, y, z):
    """Return the distance of a point from the axis (or centre) and the unit vector away from it.

    On the axis the direction is one at right angles to it: downwards in a hollow and upwards on a
    solid, as far as the axis allows, so that n points up.
    """
    ax, ay, az = data[5], data[6], data[7]
    x, y, z = x - data[0], y - data[1], z - data[2]
    along = ax * x + ay * y + az * z
    x, y, z = x - along * ax, y - along * ay, z - along * az
    reach = np.sqrt(x * x + y * y + z * z)
    if reach >= SINGULAR:
        return reach, (x / reach, y / reach, z / reach)
    if abs(az) < 0.9:
        x, y, z = -az * ax, -az * ay, 1.0 - az * az
    else:
        x, y, z = 1.0 - ax * ax, -ax * ay, -ax * az
    length = data[4] * np.sqrt(x * x + y * y + z * z)
    return reach, (x / length, y / length, z / length)


@kernel
def tangents(nx, ny, nz):
    """Return t1 and t2 = n × t1; t1 is the world x axis projected on the tangent plane of n.

    World y if x is nearly normal, |n_x| >= 0.9.
    """
    if abs(nx) < 0.9:
        ax, ay, az = 1.0 - nx * nx, -nx * ny, -nx * nz
    else:
        ax, ay, az = -ny * nx, 1.0 - ny * ny, -ny * nz
    length = np.sqrt(ax * ax + ay * ay + az * az)
    ax, ay, az = ax / length, ay / length, az / length
    return (ax, ay, az), (ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax)


@kernel
def tangent_rates(n, t1, rate):
    """Return ṫ1 and ṫ2 of `tangents` for ṅ = `rate`; tuples of three numbers.

    t1 = w/|w| with w = e − n (n·e), e = world x or y.
    """
    nx, ny, nz = n
    dx, dy, dz = rate
    if abs(nx) < 0.9:
        part, turn = nx, dx
    else:
        part, turn = ny, dy
    size = np.sqrt(1.0 - part * part)
    wx, wy, wz = -dx * part - nx * turn, -dy * part - ny * turn, -dz * part - nz * turn
    along = t1[0] * wx + t1[1] * wy + t1[2] * wz
    ax = (wx - along * t1[0]) / size
    ay = (wy - along * t1[1]) / size
    az = (wz - along * t1[2]) / size
    return (ax, ay, az), (
        dy * t1[2] - dz * t1[1] + ny * az - nz * ay,
        dz * t1[0] - dx * t1[2] + nz * ax - nx * az,
        dx * t1[1] - dy * t1[0] + nx * ay - ny * ax,
    )


@kernel
def find_contacts(ground, x, y, z, reach, found, first, slots):
    """Fill the slots of a point with its nearest features, nearest first.

    Ground of few features fills all of them, near or not.

    Args:
        ground: a `Ground`.
        x: of the point in world [m].
        y: of the point.
        z: of the point.
        reach: distance up to which all contacts count, farther only the nearest [m]; with a minus
            sign, those farther away are left out where that is faster.
        found: out: φ [m], frames of which only n is filled, and features, shapes (any,),
            (any, 3, 3), (any,). The first feature is a guess of the nearest, in a search of any
            reach; no guess changes the result.
        first: first slot of the point.
        slots: number of its slots, that of features where they are few.
    """
    find_listed(ground, x, y, z, reach, 0, found, first, slots)


@kernel
def find_listed(ground, x, y, z, reach, listed, found, first, slots):
    """Fill the slots of a point, as `find_contacts`, with the help of a list of near facets.

    `listed` is its address, see _facets.py, 0 without one.
    """
    if ground.find_facets != 0:
        call_find_facets(ground, x, y, z, reach, listed, found, first, slots)
        return
    distance, frame, feature = found
    for s in range(slots):
        i = first + s
        distance[i], n = distance_and_normal(ground, s, x, y, z)
        frame[i, 2, 0], frame[i, 2, 1], frame[i, 2, 2] = n
        feature[i] = s


@kernel
def find_all(ground, slots, points, found):
    """Fill the contacts of many points, shape (n, 3); as `find_contacts`, n · slots of them."""
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        find_contacts(ground, x, y, z, NEAR, found, slots * i, slots)


@kernel
def height(ground, features, x, y):
    """Return where a vertical meets the ground from above [m], NaN where it meets only walls.

    Of `features` the highest counts.
    """
    highest = np.nan
    for k in range(features):
        z = _crossing(ground, k, x, y)
        if not z <= highest and np.isfinite(z):
            highest = z
    return highest


@kernel
def _crossing(ground, feature, x, y):
    """Return where φ becomes positive on the way up, NaN if nowhere.

    Newton's method converges from above the ground where φ is convex along the vertical and from
    below where it is concave; from the other end n points down.
    """
    for z in (FAR, -FAR):
        last = np.inf
        for _ in range(100):
            phi, n = distance_and_normal(ground, feature, x, y, z)
            if n[2] < STEEP:
                break
            step = phi / n[2]
            z -= step
            # a large radius makes the rounding of φ larger than that of z: steps shrink no more
            if abs(step) <= 1e-15 * (1.0 + abs(z)) or last <= abs(step) < 1e-9:
                return z
            last = abs(step)
    return np.nan
