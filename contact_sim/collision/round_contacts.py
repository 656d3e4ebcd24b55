"""Contacts of spheres and capsules: with each other and with boxes.

The distance of two of them is that of their cores, without their radii; its normal is the line
between the nearest points. A capsule that lies on a face touches at both ends of what lies there,
two capsules side by side at both ends of what they share.
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision.pool import keep_contact
from contact_sim.collision.solids import (
    axis_of,
    clamped,
    half_of,
    in_axes,
    nearest_in_core,
    out_of_axes,
)
from contact_sim.dynamics.vectors import add, cross, dot, scaled, sub
from contact_sim.solvers.jit import kernel

TOUCHING = 1e-12
"""Distance of cores below which they meet [m]."""
PARALLEL = 0.1
"""Sine of the angle below which two capsules lie side by side."""
EXACTLY_PARALLEL = 1e-3
"""Sine below which their nearest points are nowhere in particular."""
UPRIGHT = 1.0 - 1e-12
"""Cosine above which a normal is that of a face."""
SEARCHES = 40
"""Steps towards the nearest point of a segment, each exact on a piece of a parabola."""


@kernel
def sphere_on_core(a, b, near, pool, key):
    """Keep the contact of a sphere with any solid."""
    local = in_axes(b, a[3])
    nearest = nearest_in_core(local, b[4])
    away = sub(local, nearest)
    distance = np.sqrt(dot(away, away))
    if distance > TOUCHING:
        normal = scaled(1.0 / distance, away)
    else:
        distance, normal = way_out(local, b[4])
    gap = distance - a[5] - b[5]
    if gap <= near:
        n = out_of_axes(b, normal)
        keep_contact(pool, key, gap, n, sub(a[3], scaled(a[5], n)))


@kernel
def way_out(a, half):
    """Return the distance, at most 0, and the normal from a point `a` in a core to its surface."""
    least, k = half[0] - abs(a[0]), 0
    if half[1] - abs(a[1]) < least:
        least, k = half[1] - abs(a[1]), 1
    if half[2] - abs(a[2]) < least:
        least, k = half[2] - abs(a[2]), 2
    if k == 0:
        return -least, (1.0 if a[0] >= 0.0 else -1.0, 0.0, 0.0)
    if k == 1:
        return -least, (0.0, 1.0 if a[1] >= 0.0 else -1.0, 0.0)
    return -least, (0.0, 0.0, 1.0 if a[2] >= 0.0 else -1.0)


# ---------------------------------------------------------------- two capsules


@kernel
def capsules(a, b, near, pool, key):
    """Keep the contacts of two capsules: where they are nearest, or side by side at two places."""
    u, w, c = a[2], b[2], dot(a[2], b[2])
    sine = np.sqrt(max(0.0, 1.0 - c * c))
    away = sub(a[3], b[3])
    if sine < PARALLEL:
        middle, reach = -dot(away, u), half_of(b, 2) * abs(c)
        low, high = max(-half_of(a, 2), middle - reach), min(half_of(a, 2), middle + reach)
        if low < high:
            keep_round(a, b, low, near, pool, key + 1.0)
            keep_round(a, b, high, near, pool, key + 2.0)
            if sine < EXACTLY_PARALLEL:
                return
    keep_round(a, b, nearest_on_segment(u, w, c, away, a[4][2], b[4][2]), near, pool, key)


@kernel
def nearest_on_segment(u, w, c, away, half_a, half_b):
    """Return where, from the middle, segment a along u is nearest to segment b along w.

    [Ericson 2005] Real-Time Collision Detection, section 5.1.9.
    """
    p, q, sine = dot(u, away), dot(w, away), 1.0 - c * c
    s = clamped((c * q - p) / sine, half_a) if sine > 0.0 else 0.0
    t = clamped(q + c * s, half_b)
    return clamped(c * t - p, half_a)


@kernel
def keep_round(a, b, s, near, pool, key):
    """Keep the contact of the point at `s` on the axis of capsule a with capsule b."""
    point = add(a[3], scaled(s, a[2]))
    local = in_axes(b, point)
    on_axis = clamped(local[2], half_of(b, 2))
    away = sub(point, add(b[3], scaled(on_axis, b[2])))
    distance = np.sqrt(dot(away, away))
    n = scaled(1.0 / distance, away) if distance > TOUCHING else crossing(a[2], b[2])
    gap = distance - a[5] - b[5]
    if gap <= near:
        keep_contact(pool, key, gap, n, sub(point, scaled(a[5], n)))


@kernel
def crossing(u, w):
    """Return a unit normal of two crossing directions, of u alone where they are parallel."""
    n = cross(u, w)
    size = np.sqrt(dot(n, n))
    if size < EXACTLY_PARALLEL:
        n = cross(u, (1.0, 0.0, 0.0) if abs(u[0]) < 0.6 else (0.0, 1.0, 0.0))
        size = np.sqrt(dot(n, n))
    return scaled(1.0 / size, n)


# ---------------------------------------------------------------- a capsule and a box


@kernel
def capsule_on_box(a, b, near, pool, key):
    """Keep the contacts of a capsule with a box."""
    middle, end = in_axes(b, a[3]), in_axes(b, add(a[3], scaled(a[4][2], a[2])))
    along = sub(end, middle)
    t = nearest_on_line(middle, along, b[4])
    point = add(middle, scaled(t, along))
    away = sub(point, nearest_in_core(point, b[4]))
    distance = np.sqrt(dot(away, away))
    if distance <= TOUCHING:
        keep_lying(a, b, shortest_way_out(middle, along, b[4]), middle, along, (near, pool, key))
        return
    normal = scaled(1.0 / distance, away)
    if distance - a[5] - b[5] > near:
        return
    for k in range(3):
        if abs(component(normal, k)) > UPRIGHT:
            face = (k, 1.0 if component(normal, k) > 0.0 else -1.0)
            if keep_lying(a, b, face, middle, along, (near, pool, key)):
                return
    n = out_of_axes(b, normal)
    place = add(a[3], scaled(t * a[4][2], a[2]))
    gap = distance - a[5] - b[5]
    keep_contact(pool, key, gap, n, sub(place, scaled(a[5], n)))


@kernel
def shortest_way_out(middle, along, half):
    """Return the face, (axis, side), through which a segment in a box leaves it soonest."""
    face, most = (0, 1.0), -np.inf
    for k in range(3):
        x = component(middle, k)
        away = abs(x) - abs(component(along, k)) - component(half, k)
        if away > most:
            face, most = (k, 1.0 if x >= 0.0 else -1.0), away
    return face


@kernel
def component(a, k):
    """Return component k of a vector."""
    if k == 0:
        return a[0]
    return a[1] if k == 1 else a[2]


@kernel
def nearest_on_line(middle, along, half):
    """Return t in [−1, 1] at which middle + t · along is nearest to a core.

    The squared distance is a convex function made of parabolas: Newton's steps, between bounds.
    """
    low, high, t = -1.0, 1.0, 0.0
    for _ in range(SEARCHES):
        slope = bend = 0.0
        for k in range(3):
            x, d = component(middle, k) + t * component(along, k), component(along, k)
            out = x - clamped(x, component(half, k))
            slope += out * d
            bend += d * d if out != 0.0 else 0.0
        if slope > 0.0:
            high = t
        elif slope < 0.0:
            low = t
        else:
            return t
        step = t - slope / bend if bend > 0.0 else t
        following = step if low < step < high else bound_or_middle(step, low, high)
        if following == t:
            return t
        t = following
    return t


@kernel
def bound_or_middle(step, low, high):
    """Return an end of the segment where the step leads there, else the middle of the bounds."""
    if step <= -1.0 and low == -1.0:
        return low
    if step >= 1.0 and high == 1.0:
        return high
    return 0.5 * (low + high)


@kernel
def keep_lying(a, b, face, middle, along, into):
    """Keep both ends of what lies over a face, (axis, side); return False if that is a point."""
    near, pool, key = into
    k, side = face
    low, high = -1.0, 1.0
    for e in range(3):
        x, d, half = component(middle, e), component(along, e), half_of(b, e)
        if e == k:
            continue
        if abs(d) > TOUCHING:
            first, last = (-half - x) / d, (half - x) / d
            low, high = max(low, min(first, last)), min(high, max(first, last))
        elif abs(x) > half:
            high = low
    if high - low < 1e-6:
        return False
    n = scaled(side, axis_of(b, k))
    for i in range(2):
        t = low if i == 0 else high
        over = side * (component(middle, k) + t * component(along, k)) - half_of(b, k)
        gap = over - a[5] - b[5]
        if gap <= near:
            place = add(a[3], scaled(t * a[4][2], a[2]))
            keep_contact(pool, key + 1.0 + i, gap, n, sub(place, scaled(a[5], n)))
    return True
