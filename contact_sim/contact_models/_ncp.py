"""NCP: Signorini's condition, the isotropic Coulomb cone and maximum dissipation, all exact.

    K*_μ ∋ w + Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)          (theory 2.11)

The reference among the models: no penetration, no creep, no force at a distance.

The solver can be exchanged for those of other engines (solvers/_cone_methods.py), to reproduce
what they do. What they call converged is judged like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, vector
from contact_sim.contact_models._base import (
    FIRST_OWN,
    MAX_SWEEPS,
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
from contact_sim.contact_models._stages import (
    CompiledLaw,
    compiled_law,
    report_iterations,
    report_solve,
)
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers._cone_methods import solve_baseline
from contact_sim.solvers._cone_solver import solve_cones
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import cone_work_of, rows_of

EXACT = 'exact'
PEERS = ('pgs', 'raisim', 'staggered', 'pgs_box')
"""Methods of other engines, in the order of their codes in solvers/_cone_methods.py."""
PEER, RELAXATION = FIRST_OWN, FIRST_OWN + 1
"""Places of the code of the method and of ω in the numbers of the law."""


@dataclass(frozen=True)
class NcpParameters(ConeParameters):
    """Numerics of the exact-cone model; it has no physical parameter besides friction."""

    solver: str = parameter(
        EXACT, '', 'exact, or the method of another engine', choices=(EXACT, *PEERS), live=True
    )
    over_relaxation: float = parameter(
        1.0, '-', 'omega of pgs_box: over-relaxation of a sweep', above=0.0, below=2.0, live=True
    )
    multiple_impacts: str = multiple_impacts_parameter()


@kernel
def solve_ncp(data):
    """Solve the contact problem with exact cones."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    rows, work, tolerance = rows_of(data), cone_work_of(data), law[TOLERANCE]
    # κ = 0: the law with Γ(w), not the convex relaxation; warm start from the last impulses
    if not last_impulses_hold(data):
        impulse = vector(data, f.ROW_IMPULSE)[:n]
        report_solve(data, solve_cones(rows, impulse, work, tolerance, iteration_limits(law), 0.0))


@kernel
def try_impulses(data):
    """Try the impulses of the last step."""
    try_last_impulses(data, vector(data, f.LAW)[TOLERANCE], 0.0, 1.0)


@kernel
def solve_as_engine(data):
    """Solve the contact problem by the method of another engine."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    impulse = vector(data, f.ROW_IMPULSE)[:n]
    sweeps, residual, converged = solve_baseline(
        rows_of(data), impulse, law[TOLERANCE], int(law[MAX_SWEEPS]), int(law[PEER]),
        law[RELAXATION],
    )  # fmt: skip
    report_iterations(data, impulse, sweeps, residual, converged)


AS_ENGINE = compiled_law(solve_as_engine)
IN_SEQUENCE = compiled_law(solve_ncp, before_solving=sequence_impacts)
AS_ENGINE_IN_SEQUENCE = compiled_law(solve_as_engine, before_solving=sequence_impacts)


class Ncp(ConeModel):
    """The exact-cone model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'ncp'
    associated: ClassVar[float] = 0.0
    parameter_class: ClassVar[type[Parameters]] = NcpParameters
    compiled: CompiledLaw = compiled_law(
        solve_ncp, before_solving=try_impulses, next_problem=next_unheld_problem
    )

    def __init__(self, **parameters: float | str) -> None:
        self.parameters: NcpParameters = NcpParameters(**parameters)  # type: ignore[arg-type]
        sequential = self.parameters.multiple_impacts == SEQUENTIAL
        if self.parameters.solver != EXACT:
            self.compiled = AS_ENGINE_IN_SEQUENCE if sequential else AS_ENGINE
        elif sequential:
            self.compiled = IN_SEQUENCE

    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters of all cone models, the code of the method and ω."""
        solver = self.parameters.solver
        code = 0.0 if solver == EXACT else float(PEERS.index(solver))
        return (*super().law_numbers(), code, self.parameters.over_relaxation)
