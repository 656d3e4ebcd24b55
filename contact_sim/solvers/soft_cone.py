"""A compliant contact with the circular cone: projection in the norm of R, and its derivative.

A contact that sticks has a unit vector per row, h = 1/R; one that slides has the generator of the
cone e = (μ d, 1)/√(1 + μ²) and the tangent across d; one that is open has none.

Arguments, of one contact in its rows t1, t2, n: `missing` v̂ − u [m/s], `mu` its friction [-],
`R` its compliances (R_t, R_n) [1/kg].
"""

from __future__ import annotations

import numpy as np

from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import NO_STIFFNESS, Directions


@kernel
def project_compliant(y1, y2, yn, mu, rt, rn):
    """Return (γ_t1, γ_t2, γ_n, region): P(y) in the norm of R; region 0 open, 1 stick, 2 slide."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    if size <= mu * yn and yn >= 0.0:  # without friction μ y_n is −0 for a pull
        return y1, y2, yn, 1
    weak = mu * rt / rn
    if yn <= -weak * size or size == 0.0:
        return 0.0, 0.0, 0.0, 0
    normal = (yn + weak * size) / (1.0 + mu * weak)
    return mu * normal * y1 / size, mu * normal * y2 / size, normal, 2


@kernel
def cone_impulse(missing, mu, R):
    """Return γ [N s]."""
    rt, rn = R
    y1, y2, yn = missing[0] / rt, missing[1] / rt, missing[2] / rn
    g1, g2, gn, _ = project_compliant(y1, y2, yn, mu, rt, rn)
    return g1, g2, gn


@kernel
def sliding_stiffness(y1, y2, normal, mu, rt, rn):
    """Return d and (h of the generator, h across) of a sliding contact [kg]."""
    size = np.sqrt(y1 * y1 + y2 * y2)
    generator = (1.0 + mu * mu) / (rn + mu * mu * rt)
    return y1 / size, y2 / size, generator, mu * normal / (size * rt)


@kernel
def cone_stiffness_along(missing, mu, R, way):
    """Return wayᵀ H way [J]; `way` is a change of u [m/s]."""
    rt, rn = R
    y1, y2, yn = missing[0] / rt, missing[1] / rt, missing[2] / rn
    _, _, normal, region = project_compliant(y1, y2, yn, mu, rt, rn)
    w1, w2, wn = way
    if region == 0:
        return 0.0
    if region == 1:
        return (w1 * w1 + w2 * w2) / rt + wn * wn / rn
    d1, d2, h1, h2 = sliding_stiffness(y1, y2, normal, mu, rt, rn)
    along, across = mu * (d1 * w1 + d2 * w2) + wn, d1 * w2 - d2 * w1
    return h1 / (1.0 + mu * mu) * along * along + h2 * across * across


@kernel
def cone_directions(missing, mu, R, trace):
    """Return its `Directions`; `trace` is that of G_ii [1/kg]."""
    rt, rn = R
    y1, y2, yn = missing[0] / rt, missing[1] / rt, missing[2] / rn
    _, _, normal, region = project_compliant(y1, y2, yn, mu, rt, rn)
    e1, e2, e3 = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    if region == 0:
        return Directions(e1, e2, e3, (np.inf, np.inf, np.inf))
    if region == 1:
        return Directions(e1, e2, e3, (rt, rt, rn))
    d1, d2, h1, h2 = sliding_stiffness(y1, y2, normal, mu, rt, rn)
    share = 1.0 / np.sqrt(1.0 + mu * mu)
    across = 1.0 / h2 if h2 * trace > NO_STIFFNESS else np.inf
    return Directions(
        (share * mu * d1, share * mu * d2, share), (-d2, d1, 0.0), e3, (1.0 / h1, across, np.inf)
    )
