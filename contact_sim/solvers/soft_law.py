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
"""Places of the numbers of a contact in `SoftLaw.contact`."""


class SoftLaw(NamedTuple):
    """The compliance of every row of one problem."""

    form: int
    """CONE, PYRAMID, LAGGED or SIMILAR."""
    v_hat: Any
    """v̂ [m/s], shape (n,); LAGGED and SIMILAR: of scalar rows only."""
    R: Any
    """Compliance [1/kg], > 0; both tangential rows of a contact alike, shape (n,); as v̂."""
    contact: Any
    """φ [m], inf where it does not act; μ n₀ [N s]; ε [m/s] of each, (3 nc,). LAGGED, SIMILAR."""
    spring: Any
    """h [s], k [N/m] and d [s/m] of n(z). LAGGED, SIMILAR."""


@kernel
def linear_law(v_hat, R, pyramidal):
    """Return the law of form CONE or PYRAMID with these v̂ and R, shapes (n,)."""
    form = PYRAMID if pyramidal else CONE
    return SoftLaw(form, v_hat, R, R[:0], (0.0, 0.0, 0.0))


@kernel
def scalar_impulse(v_hat, R, r, u):
    """Return R⁻¹ (v̂ − u) of the scalar row `r`, before its bounds."""
    return (v_hat[r] - u[r]) / R[r]


@kernel
def missing_speed(v_hat, u, r):
    """Return v̂ − u of the contact at row r."""
    return v_hat[r] - u[r], v_hat[r + 1] - u[r + 1], v_hat[r + 2] - u[r + 2]


@kernel
def speed_of(u, r):
    """Return u of the contact at row r."""
    return u[r], u[r + 1], u[r + 2]


@kernel
def place_of(contact, r):
    """Return (φ, μ n₀, ε) of the contact at row r."""
    return contact[r + GAP], contact[r + BOUND], contact[r + STICTION]
