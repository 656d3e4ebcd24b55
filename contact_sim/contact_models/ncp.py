"""NCP: Signorini's condition, the isotropic Coulomb cone and maximum dissipation, all exact.

    K*_μ ∋ w + Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)

The reference among the models: no penetration, no creep, no force at a distance. physics.md 2.11.

The solver can be exchanged for those of other engines, to reproduce what they do
(solvers/cone_peers.py); what they call converged is judged like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.contact.solution import CONVERGED, MAX_ITERATIONS, NONFINITE
from contact_sim.contact.workspace import ContactRows
from contact_sim.contact_models.cone_law import ConeLaw, ConeParameters
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_peers import solve_as_peer
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows

EXACT = 'exact'
PEERS = ('pgs', 'raisim', 'staggered')
"""In the order of the codes in solvers/cone_peers.py."""


@dataclass(frozen=True)
class NcpParameters(ConeParameters):
    """Numerics of the exact-cone model; it has no physical parameter besides friction."""

    solver: str = parameter(
        EXACT, '', 'exact, or the method of another engine', choices=(EXACT, *PEERS), live=True
    )


class Ncp(ConeLaw):
    """The exact-cone model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'ncp'
    associated: ClassVar[float] = 0.0
    parameter_class: ClassVar[type[Parameters]] = NcpParameters

    def __init__(self, **parameters: float | str) -> None:
        self.parameters: NcpParameters = NcpParameters(**parameters)  # type: ignore[arg-type]

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        if p.solver == EXACT:
            return super().solve_rows(rows)
        return solve_peer(  # type: ignore[no-any-return]
            rows.delassus, rows.g, rows.friction, rows.lower, rows.upper, rows.impulse, rows.nc,
            rows.n, p.tolerance, p.max_sweeps, PEERS.index(p.solver),
        )  # fmt: skip


@kernel
def solve_peer(delassus, g, mu, lower, upper, impulse, nc, n, tolerance, max_sweeps, method):
    """Solve the first `nc` contacts and `n` rows in place; as `cone_law.solve_cones`."""
    rows = Rows(delassus[: n * n].reshape(n, n), g[:n], mu[:nc], lower, upper)
    sweeps, residual, converged = solve_as_peer(rows, impulse[:n], tolerance, max_sweeps, method)
    if not np.isfinite(residual):
        impulse[:n] = 0.0
        return NONFINITE, sweeps, residual
    return (CONVERGED if converged else MAX_ITERATIONS), sweeps, residual
