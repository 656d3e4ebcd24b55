"""What a compliant problem is made of: the form of its contacts, and the numbers of its rows.

    CONE, PYRAMID      γ = P(R⁻¹ (v̂ − u))                   soft_cone.py, soft_pyramid.py
    LAGGED, SIMILAR    springs with regularised friction     soft_regularised.py

Scalar rows are γ = clip(R⁻¹ (v̂ − u), lower, upper) in all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from contact_sim.solvers.jit import kernel

CONE, PYRAMID, LAGGED, SIMILAR = range(4)
"""Forms of a contact."""
GAP, BOUND, STICTION = range(3)
"""Columns of `SoftLaw.contact`."""


class SoftLaw(NamedTuple):
    """The compliance of every row of one problem."""

    form: int
    """CONE, PYRAMID, LAGGED or SIMILAR."""
    v_hat: Any
    """v̂ [m/s], shape (n,); LAGGED and SIMILAR: of scalar rows only."""
    R: Any
    """Compliance [1/kg], > 0; both tangential rows of a contact alike, shape (n,); as v̂."""
    contact: Any
    """φ [m], inf where it does not act; μ n₀ [N s]; ε [m/s]; shape (nc, 3). LAGGED, SIMILAR."""
    spring: Any
    """h [s], k [N/m] and d [s/m] of n(z). LAGGED, SIMILAR."""


@kernel
def linear_law(v_hat, R, pyramidal):
    """Return the law of form CONE or PYRAMID with these v̂ and R, shapes (n,)."""
    form = PYRAMID if pyramidal else CONE
    return SoftLaw(form, v_hat, R, R[:0].reshape(0, 3), (0.0, 0.0, 0.0))


@kernel
def scalar_impulse(law, r, u):
    """Return R⁻¹ (v̂ − u) of the scalar row `r`, before its bounds."""
    return (law.v_hat[r] - u[r]) / law.R[r]
