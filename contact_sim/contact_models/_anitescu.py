"""Anitescu: the convex relaxation of contact with friction.

    min ½ λᵀ G λ + gᵀ λ   over   λ ∈ K_μ                                       (theory 2.12)

The minimum always exists and its velocity is unique. The price: Signorini's condition becomes
u_n + μ u_t·d = 0, so a contact that slides lifts off with u_n = μ |u_t| and hovers up to h μ |u_t|
over the ground. Exact where nothing slides and where there is no friction.

With `sides` > 0 the cone is a pyramid of that many sides, impulses along its edges n + μ d_j (the
text's n − μ d_j is the same set, because ±d_j are both present).

[Anitescu 2006] Optimization-based simulation of nonsmooth rigid multibody dynamics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, vector
from contact_sim.contact_models._base import (
    FIRST_OWN,
    TOLERANCE,
    ConeModel,
    ConeParameters,
    iteration_limits,
)
from contact_sim.contact_models._impact_sequence import (
    SEQUENTIAL,
    multiple_impacts_parameter,
    sequence_impacts,
)
from contact_sim.contact_models._kept_impulses import (
    last_impulses_hold,
    next_unheld_problem,
    try_last_impulses,
)
from contact_sim.contact_models._stages import CompiledLaw, compiled_law, report_solve
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers._cone_problem import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    MAX_ITERATIONS,
    Rows,
    cone_work,
    impulse_scale,
    largest_eigenvalue,
    row_velocity,
)
from contact_sim.solvers._cone_solver import solve_cones
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import cone_work_of, rows_of

SIDES = FIRST_OWN  # place of the number of sides in the numbers of the law


@dataclass(frozen=True)
class AnitescuParameters(ConeParameters):
    """Shape of the cone, and numerics."""

    sides: int = parameter(
        0, '-', 'even number of sides of the friction cone; 0: circular', at_least=0, at_most=64,
        live=True,
    )  # fmt: skip
    multiple_impacts: str = multiple_impacts_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides % 2 or self.sides == 2:
            raise InvalidInput(
                f'AnitescuParameters.sides = {self.sides}: expected 0, 4, 6, 8, ...'
            )


@kernel
def solve_anitescu(data):
    """Solve the contact problem with the associated law."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    rows, impulse = rows_of(data), vector(data, f.ROW_IMPULSE)[:n]
    tolerance, limits, sides = law[TOLERANCE], iteration_limits(law), int(law[SIDES])
    # κ = 1: the convex problem over circular cones; over pyramids it is one over β ≥ 0
    work = cone_work_of(data)
    if last_impulses_hold(data):
        return
    if sides == 0 or rows.friction.shape[0] == 0:
        outcome = solve_cones(rows, impulse, work, tolerance, limits, 1.0)
    else:
        outcome = solve_pyramids(rows, impulse, tolerance, limits, sides)
    report_solve(data, outcome)


@kernel
def try_impulses(data):
    """Try the impulses of the last step."""
    law = vector(data, f.LAW)
    # largest circle in the polygon of friction, over that of the cone
    share = np.cos(np.pi / law[SIDES]) if law[SIDES] > 0.0 else 1.0
    try_last_impulses(data, law[TOLERANCE], 1.0, share)


@kernel
def solve_pyramids(rows, impulse, tolerance, limits, sides):
    """Solve for the shares β of the edges, interval rows [0, ∞); as `solve_cones`."""
    n, nc, ns = rows.g.shape[0], rows.friction.shape[0], rows.lower.shape[0]
    m = sides * nc + ns
    # λ = D β: bounds of β, and the guess in the shares of the edges
    D = np.empty((n, m))
    fill_edges(rows.friction, sides, ns, D)
    low, high, beta = np.zeros(m), np.full(m, np.inf), np.empty(m)
    low[m - ns :], high[m - ns :] = rows.lower, rows.upper
    split_impulse(rows.friction, sides, impulse, beta)
    # min ½ βᵀ (Dᵀ G D) β + (Dᵀ g)ᵀ β over β ≥ 0 and the bounds of the interval rows
    Dt = D.T.copy()
    edges = Rows(np.dot(Dt, np.dot(rows.delassus, D)), np.dot(Dt, rows.g), np.empty(0), low, high)
    code, iterations, residual = solve_cones(edges, beta, cone_work(m), tolerance, limits, 1.0)
    assign(impulse, np.dot(D, beta))
    # converged is only what also obeys the law of the impulses: where μ is large the edges are
    # nearly parallel, and their shares tell little
    error = pyramid_residual(rows, sides, impulse)
    allowed = sides * tolerance * impulse_scale(rows, impulse)
    if code in (CONVERGED, CONVERGED_BY_FALLBACK) and error > allowed:
        code = MAX_ITERATIONS
    return code, iterations, max(residual, error)


@kernel
def fill_edges(mu, k, ns, D):
    """Fill D with λ = D (β, interval rows), shape (3 nc + ns, k nc + ns)."""
    # λ_i = Σ_j β_ij (μ d_j, 1),   β ≥ 0,   d_j = (cos 2πj/k, sin 2πj/k)
    nc = mu.shape[0]
    D[:] = 0.0
    for i in range(nc):
        for j in range(k):
            angle = 2.0 * np.pi * j / k
            D[3 * i, k * i + j] = mu[i] * np.cos(angle)
            D[3 * i + 1, k * i + j] = mu[i] * np.sin(angle)
            D[3 * i + 2, k * i + j] = 1.0
    for s in range(ns):
        D[3 * nc + s, k * nc + s] = 1.0


@kernel
def split_impulse(mu, k, impulse, beta):
    """Fill shares β ≥ 0 of the edges that add up to `impulse` as far as it is in the cones."""
    nc = mu.shape[0]
    width = 2.0 * np.pi / k
    for i in range(nc):
        t1, t2, n = impulse[3 * i], impulse[3 * i + 1], impulse[3 * i + 2]
        beta[k * i : k * (i + 1)] = 0.0
        size = np.sqrt(t1 * t1 + t2 * t2)
        left = n
        # μ (β_j d_j + β_j+1 d_j+1) = λ_t, d_j and d_j+1 the edges beside λ_t; what is left of the
        # normal part is spread evenly, so that it adds nothing tangential
        if size > 0.0 and mu[i] > 0.0:
            place = (np.arctan2(t2, t1) % (2.0 * np.pi)) / width
            j = int(place)
            angle = (place - j) * width
            second = size * np.sin(angle) / (mu[i] * np.sin(width))
            first = size * np.sin(width - angle) / (mu[i] * np.sin(width))
            beta[k * i + j % k] += first
            beta[k * i + (j + 1) % k] += second
            left -= first + second
        for j in range(k):
            beta[k * i + j] += max(left, 0.0) / k
    for s in range(impulse.shape[0] - 3 * nc):
        beta[k * nc + s] = impulse[3 * nc + s]


@kernel
def pyramid_residual(rows, sides, impulse):
    """Return how far impulses in the pyramid are from the minimum [N s]."""
    # there w·(n + μ d_j) ≥ 0 and λ·w = 0 (theory T20), here over λ_max(G_ii) and, for the work,
    # over the size of an impulse
    G, g, mu = rows.delassus, rows.g, rows.friction
    worst, scale = 0.0, impulse_scale(rows, impulse)
    for i in range(mu.shape[0]):
        r = 3 * i
        w1, w2 = row_velocity(G, g, impulse, r), row_velocity(G, g, impulse, r + 1)
        wn, least = row_velocity(G, g, impulse, r + 2), np.inf
        # smallest w·(n + μ d_j) over the edges, which has to be ≥ 0, and |λ·w|, which has to be 0
        for j in range(sides):
            angle = 2.0 * np.pi * j / sides
            least = min(least, wn + mu[i] * (w1 * np.cos(angle) + w2 * np.sin(angle)))
        work = abs(impulse[r] * w1 + impulse[r + 1] * w2 + impulse[r + 2] * wn)
        largest = largest_eigenvalue(G, r)
        worst = max(worst, -least / ((1.0 + mu[i]) * largest))
        if scale > 0.0:
            worst = max(worst, work / (scale * largest))
    return worst


IN_SEQUENCE = compiled_law(solve_anitescu, before_solving=sequence_impacts)


class Anitescu(ConeModel):
    """The convex relaxation, with a circular or a polyhedral cone.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'anitescu'
    associated: ClassVar[float] = 1.0
    parameter_class: ClassVar[type[Parameters]] = AnitescuParameters
    compiled: CompiledLaw = compiled_law(
        solve_anitescu, before_solving=try_impulses, next_problem=next_unheld_problem
    )

    def __init__(self, **parameters: float | str) -> None:
        self.parameters: AnitescuParameters = AnitescuParameters(**parameters)  # type: ignore[arg-type]
        if self.parameters.multiple_impacts == SEQUENTIAL:
            self.compiled = IN_SEQUENCE

    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters of all cone models and the number of sides."""
        return (*super().law_numbers(), float(self.parameters.sides))
