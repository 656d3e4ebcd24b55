"""J̇ v of the contacts between bodies, for laws at acceleration level.

The rate at which u = C (v_A(p) − v_B(p)) changes while v̇ = 0, C and p those of the contact
wherever it is: a central difference over an instant in the motion of both bodies.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays.fields import PAIR_NUMBERS
from contact_sim.collision.pairs import meet
from contact_sim.collision.pool import CONTACTS, clear_pool, pair_of
from contact_sim.dynamics.vectors import add, cross, dot, put, scaled, sub, vec
from contact_sim.solvers.jit import kernel

INSTANT = 1e-5
"""[s]: at 10 rad/s the difference is exact to 1e-8, and rounding is smaller."""


@kernel
def pair_drift(solids, motion, pairs, feature, drift):
    """Fill J̇ v of every slot, rows (t1, t2, n).

    Args:
        solids: (place, size, body): placements in world (n, 12), half sizes and radius (n, 4),
            body that carries each (n,).
        motion: (twist, bias, origin, gravity), see `detect.contact_drift`.
        pairs: see arrays.fields.PAIR_NUMBERS, shape (any,).
        feature: what each slot holds, shape (slots,).
        drift: out, shape (3 slots,).
    """
    place, size = np.empty((2, 12)), np.empty((2, 4))
    pool = (
        0, np.zeros(2, np.int64), np.empty((CONTACTS, 3)), np.empty((CONTACTS, 3, 3)),
        np.empty(CONTACTS), np.empty(CONTACTS),
    )  # fmt: skip
    for i in range(feature.shape[0]):
        put(drift, 3 * i, (0.0, 0.0, 0.0))
        k = PAIR_NUMBERS * pair_of(feature[i])
        if k < 0:
            continue
        pair, key = (pairs[k], pairs[k + 1]), feature[i] % CONTACTS
        size[0], size[1] = solids[1][pair[0]], solids[1][pair[1]]
        u, seen = (0.0, 0.0, 0.0), 0
        for side in (1.0, -1.0):
            moved(solids, motion, pair, side * INSTANT, place)
            clear_pool(pool)
            meet(place, size, 0, 1, pool, 0.0)
            for c in range(CONTACTS):
                if pool[5][c] == key:
                    at = velocity_at(solids, motion, pair, side * INSTANT, pool, c)
                    u, seen = add(u, scaled(side / (2.0 * INSTANT), at)), seen + 1
        if seen == 2:  # else it is about to come or go
            put(drift, 3 * i, u)


@kernel
def moved(solids, motion, pair, time, place):
    """Fill the placements of both solids of a pair after a time [s]."""
    twist, origin = motion[0], vec(motion[2], 0)
    for s in range(2):
        i, j = pair[s], solids[2][pair[s]]
        v, w = vec(twist[j], 0), vec(twist[j], 3)
        turned_by(solids[0][i], scaled(time, w), place[s])
        centre = vec(solids[0][i], 9)
        speed = add(v, cross(w, sub(centre, origin)))
        put(place[s], 9, add(centre, scaled(time, speed)))


@kernel
def turned_by(axes, angle, out):
    """Fill three axes turned by a small angle vector [rad], by Rodrigues' formula."""
    size = np.sqrt(dot(angle, angle))
    s = np.sin(size) / size if size > 0.0 else 1.0
    c = 2.0 * (np.sin(0.5 * size) / size) ** 2 if size > 0.0 else 0.5
    for k in range(0, 9, 3):
        a = vec(axes, k)
        first = cross(angle, a)
        put(out, k, add(a, add(scaled(s, first), scaled(c, cross(angle, first)))))


@kernel
def velocity_at(solids, motion, pair, time, pool, c):
    """Return u of contact c of a pool, its bodies moving as after a time [s] with v̇ = 0."""
    twist, bias, origin, gravity = motion
    i, j = solids[2][pair[0]], solids[2][pair[1]]
    arm = sub(vec(pool[2][c], 0), vec(origin, 0))
    v = sub(velocity_of(twist, bias, gravity, i, time, arm),
            velocity_of(twist, bias, gravity, j, time, arm))  # fmt: skip
    frame = pool[3][c]
    return dot(vec(frame[0], 0), v), dot(vec(frame[1], 0), v), dot(vec(frame[2], 0), v)


@kernel
def velocity_of(twist, bias, gravity, j, time, arm):
    """Return the velocity of a point of body j, `arm` from the origin of the twists."""
    if j == 0:
        return 0.0, 0.0, 0.0
    linear = add(vec(bias[j], 0), vec(gravity, 0))
    v = add(vec(twist[j], 0), scaled(time, linear))
    w = add(vec(twist[j], 3), scaled(time, vec(bias[j], 3)))
    return add(v, cross(w, arm))
