"""Anitescu: the convex relaxation of contact with friction.

    min ½ λᵀ G λ + gᵀ λ   over   λ ∈ K_μ                                       (physics.md 2.12)

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

from contact_sim.contact.polyhedron import fill_edges, split_impulse
from contact_sim.contact.solution import CONVERGED, CONVERGED_BY_FALLBACK, MAX_ITERATIONS
from contact_sim.contact.workspace import ContactRows
from contact_sim.contact_models.cone_law import ConeLaw, ConeParameters, solve_cones
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone import impulse_scale, largest_eigenvalue, row_velocity
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows


@dataclass(frozen=True)
class AnitescuParameters(ConeParameters):
    """Shape of the cone, and numerics."""

    sides: int = parameter(
        0, '-', 'even number of sides of the friction cone; 0: circular', at_least=0, at_most=64,
        live=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides % 2 or self.sides == 2:
            raise InvalidInput(
                f'AnitescuParameters.sides = {self.sides}: expected 0, 4, 6, 8, ...'
            )


class Anitescu(ConeLaw):
    """The convex relaxation, with a circular or a polyhedral cone.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'anitescu'
    associated: ClassVar[float] = 1.0
    parameter_class: ClassVar[type[Parameters]] = AnitescuParameters

    def __init__(self, **parameters: float) -> None:
        self.parameters: AnitescuParameters = AnitescuParameters(**parameters)  # type: ignore[arg-type]

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        if p.sides == 0 or rows.nc == 0:
            return super().solve_rows(rows)
        return solve_pyramids(  # type: ignore[no-any-return]
            rows.delassus, rows.g, rows.friction, rows.lower, rows.upper, rows.impulse, rows.nc,
            rows.n, p.tolerance, p.max_sweeps, p.max_admm_iterations, p.sides,
        )  # fmt: skip


@kernel
def solve_pyramids(
    delassus,
    g,
    mu,
    lower,
    upper,
    impulse,
    nc,
    n,
    tolerance,
    max_sweeps,
    max_admm_iterations,
    sides,
):
    """Solve for the shares β of the edges, which are scalar rows bounded by zero from below.

    Arguments and result as in `cone_law.solve_cones`. Converged is only what also obeys the law of
    the impulses: where μ is large the edges are nearly parallel, and their shares tell little.
    """
    ns = n - 3 * nc
    m = sides * nc + ns
    G = delassus[: n * n].reshape(n, n)
    D = np.empty((n, m))
    fill_edges(mu[:nc], sides, ns, D)
    low, high, beta = np.zeros(m), np.full(m, np.inf), np.empty(m)
    low[m - ns :], high[m - ns :] = lower, upper
    split_impulse(mu[:nc], sides, impulse[:n], beta)
    GD = np.dot(G, D)
    edges, edge_g = np.dot(D.T.copy(), GD), np.dot(D.T.copy(), g[:n])
    code, iterations, residual = solve_cones(
        edges.reshape(m * m), edge_g, np.empty(0), low, high, beta, 0, m, tolerance, max_sweeps,
        max_admm_iterations, 1.0,
    )  # fmt: skip
    impulse[:n] = np.dot(D, beta)
    rows = Rows(G, g[:n], mu[:nc], lower, upper)
    error = pyramid_residual(rows, sides, impulse[:n])
    allowed = sides * tolerance * impulse_scale(rows, impulse[:n])
    if code in (CONVERGED, CONVERGED_BY_FALLBACK) and error > allowed:
        code = MAX_ITERATIONS
    return code, iterations, max(residual, error)


@kernel
def pyramid_residual(rows, sides, impulse):
    """Return how far impulses in the pyramid are from the minimum [N s].

    There w·(n + μ d_j) ≥ 0 and λ·w = 0 (physics.md T20), here over λ_max(G_ii) and, for the work,
    over the size of an impulse.
    """
    G, g, mu = rows.delassus, rows.g, rows.friction
    worst, scale = 0.0, impulse_scale(rows, impulse)
    for i in range(mu.shape[0]):
        r = 3 * i
        w1, w2 = row_velocity(G, g, impulse, r), row_velocity(G, g, impulse, r + 1)
        wn, least = row_velocity(G, g, impulse, r + 2), np.inf
        for j in range(sides):
            angle = 2.0 * np.pi * j / sides
            least = min(least, wn + mu[i] * (w1 * np.cos(angle) + w2 * np.sin(angle)))
        work = abs(impulse[r] * w1 + impulse[r + 1] * w2 + impulse[r + 2] * wn)
        largest = largest_eigenvalue(G, r)
        worst = max(worst, -least / ((1.0 + mu[i]) * largest))
        if scale > 0.0:
            worst = max(worst, work / (scale * largest))
    return worst
