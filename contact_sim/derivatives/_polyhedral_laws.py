"""Linearised laws with polyhedral cones: lcp, and anitescu with `sides` > 0.

λ_t = Σ_j β_j d_j is within two neighbouring edges d_j, d_j+1 with the bisector m. Of a contact
that slides either one edge carries, or both do, and the slip is along the bisector:

    one     λ_t − μ λ_n d_j = 0
    two     m·λ_t − μ λ_n cos(π/k) = 0,   (d_j − d_j+1)·u_t = 0

with w_n = 0 in lcp and w_n + μ d_j·u_t = 0 in anitescu. A box bounds each tangent by itself.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, vector
from contact_sim.contact_models._anitescu import SIDES
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._rigid_laws import (
    TIE,
    choose_contact_modes,
    choose_interval_modes,
    collect,
    fill_scales,
    linearise_cones,
    refuse_guarded,
    set_closed_rows,
    set_intervals,
    set_sticking_row,
)
from contact_sim.solvers._jit import kernel

BOX, EDGES = 0, 1
"""Places of the kind of cone and of the number of sides in the numbers of lcp."""


@kernel
def sector_of(t1, t2, sides):
    """Return the edges d_j, d_j+1 about (t1, t2), and its shares of them."""
    width = 2.0 * np.pi / sides
    place = (np.arctan2(t2, t1) % (2.0 * np.pi)) / width
    j = int(place)
    angle, size = (place - j) * width, np.sqrt(t1 * t1 + t2 * t2)
    one, two = 2.0 * np.pi * (j % sides) / sides, 2.0 * np.pi * ((j + 1) % sides) / sides
    second = size * np.sin(angle) / np.sin(width)
    first = size * np.sin(width - angle) / np.sin(width)
    return (np.cos(one), np.sin(one)), (np.cos(two), np.sin(two)), (first, second)


@kernel
def choose_lcp_modes(data, linear):
    """Fill mode and margin of all contacts and rows under the law lcp."""
    law = vector(data, f.LAW)
    choose_polyhedral_modes(data, linear, 0.0, law[BOX] != 0.0, int(law[EDGES]))


@kernel
def choose_anitescu_modes(data, linear):
    """Fill mode and margin of all contacts and rows under anitescu."""
    sides = int(vector(data, f.LAW)[SIDES])
    choose_polyhedral_modes(data, linear, 1.0, False, sides)


@kernel
def choose_polyhedral_modes(data, linear, kappa, boxes, sides):
    """Fill mode and margin of all contacts and rows; 0 `sides` for circular cones."""
    fill_scales(data, linear)
    choose_contact_modes(data, linear, kappa)
    choose_interval_modes(data, linear)
    refuse_guarded(data, linear)
    if sides == 0:
        return
    modes, margin = integers(linear, d.D_MODES), vector(linear, d.D_MARGIN)
    scales, impulse, u = (
        vector(linear, d.D_SCALES),
        vector(data, f.IMPULSE),
        vector(data, f.U_NEXT),
    )
    mu = vector(data, f.FRICTION)
    for i in range(modes.shape[0] - vector(data, f.LOWER).shape[0]):
        if modes[i] == d.OPEN or mu[i] == 0.0:
            continue
        r = 3 * i
        t1, t2, normal = impulse[r], impulse[r + 1], impulse[r + 2]
        if boxes:
            slack = mu[i] * normal - max(abs(t1), abs(t2))
        else:
            _, _, (first, second) = sector_of(t1, t2, sides)
            slack = mu[i] * normal - first - second
        slide = np.sqrt(u[r] ** 2 + u[r + 1] ** 2) / scales[1]
        slack = slack / scales[0]
        modes[i] = d.SLIDE if slide > slack and slide > TIE else d.STICK
        margin[i] = min(max(normal / scales[0], TIE), max(slack, slide))


@kernel
def linearise_polyhedral_anitescu(data, linear):
    """Fill the rows of anitescu, with circular or polyhedral cones."""
    sides = int(vector(data, f.LAW)[SIDES])
    if sides == 0:
        linearise_cones(data, linear, 1.0)
    else:
        linearise_polyhedral(data, linear, 1.0, False, sides)


@kernel
def linearise_lcp(data, linear):
    """Fill the rows of lcp."""
    law = vector(data, f.LAW)
    linearise_polyhedral(data, linear, 0.0, law[BOX] != 0.0, int(law[EDGES]))


@kernel
def linearise_polyhedral(data, linear, kappa, boxes, sides):
    """Fill the rows of a law with pyramids of `sides` sides, or boxes."""
    n = collect(data, linear)
    row_of = integers(linear, d.D_ROW_OF)
    for a in range(0, 3 * integers(linear, d.D_COUNTS)[d.CONTACTS], 3):
        i = row_of[a] // 3
        if set_closed_rows(data, linear, i, a):
            if boxes:
                set_box_rows(data, linear, i, a)
            else:
                set_edge_rows(data, linear, i, a, kappa, sides)
    set_intervals(data, linear, n)


@kernel
def set_box_rows(data, linear, i, a):
    """Fill the tangents of a contact that slides along one of them, or both."""
    impulse, u, mu = vector(data, f.IMPULSE), vector(data, f.U_NEXT), vector(data, f.FRICTION)[i]
    on_impulse, scales = matrix(linear, d.D_ON_IMPULSE), vector(linear, d.D_SCALES)
    normal = impulse[3 * i + 2]
    for e in range(2):
        along, speed = impulse[3 * i + e], abs(u[3 * i + e]) / scales[1]
        slack = (mu * normal - abs(along)) / scales[0]
        if slack > speed:
            set_sticking_row(linear, a + e, e)
        else:
            side = -1.0 if along > 0.0 else 1.0
            on_impulse[a + e, e], on_impulse[a + e, 2] = 1.0, side * mu
            vector(linear, d.D_ON_FRICTION)[a + e] = side * normal
        if mu > 0.0:
            margin = vector(linear, d.D_MARGIN)
            margin[i] = min(margin[i], max(slack, speed))


@kernel
def set_edge_rows(data, linear, i, a, kappa, sides):
    """Fill the rows of a contact that slides under a pyramid."""
    impulse, u, mu = vector(data, f.IMPULSE), vector(data, f.U_NEXT), vector(data, f.FRICTION)[i]
    on_impulse, on_velocity = matrix(linear, d.D_ON_IMPULSE), matrix(linear, d.D_ON_VELOCITY)
    on_mu, scales = vector(linear, d.D_ON_FRICTION), vector(linear, d.D_SCALES)
    t1, t2, normal = impulse[3 * i], impulse[3 * i + 1], impulse[3 * i + 2]
    if mu == 0.0:
        on_impulse[a, 0] = on_impulse[a + 1, 1] = 1.0
        return
    one, two, (first, second) = sector_of(t1, t2, sides)
    along = abs(u[3 * i] * (one[0] - two[0]) + u[3 * i + 1] * (one[1] - two[1])) / scales[1]
    least = min(first, second) / scales[0]
    vector(linear, d.D_MARGIN)[i] = min(vector(linear, d.D_MARGIN)[i], max(least, along))
    edge = one if first >= second else two
    if least > along:
        m1, m2 = one[0] + two[0], one[1] + two[1]
        size, share = np.sqrt(m1 * m1 + m2 * m2), np.cos(np.pi / sides)
        on_impulse[a, 0], on_impulse[a, 1] = m1 / size, m2 / size
        on_impulse[a, 2], on_mu[a] = -mu * share, -normal * share
        on_velocity[a + 1, 0], on_velocity[a + 1, 1] = one[0] - two[0], one[1] - two[1]
    else:
        for e in range(2):
            on_impulse[a + e, e], on_impulse[a + e, 2] = 1.0, -mu * edge[e]
            on_mu[a + e] = -normal * edge[e]
    if kappa != 0.0:
        on_velocity[a + 2, 0], on_velocity[a + 2, 1] = mu * edge[0], mu * edge[1]
        on_mu[a + 2] = edge[0] * u[3 * i] + edge[1] * u[3 * i + 1]
