"""LCP: Signorini's condition with polyhedral friction cones of k sides.

    0 ≤ λ_n        ⊥  w_n                 ≥ 0
    0 ≤ β_j        ⊥  w_t·d_j + s         ≥ 0        λ_t = Σ_j β_j d_j, d_j at angles 2πj/k
    0 ≤ s          ⊥  μ λ_n − Σ_j β_j     ≥ 0                                (theory 2.9)

solved by Lemke's method. A box on a scalar row is p ≥ 0 ⊥ w + ν ≥ 0, ν ≥ 0 ⊥ upper − lower − p ≥ 0
with λ = lower + p. Scalar rows are first tried in the modes of the guess, at a bound or at rest;
where this fails, they enter Lemke's method.

Friction depends on direction: in the worst one it is μ cos(π/k). Of many equivalent force
distributions Lemke's method finds a vertex. While nothing slides, the modes of the last step are
tried first, and their answer is taken if it obeys the law above: it is a distribution next to the
last one, and a vertex is found only by pivoting. A step on which the method ends on a ray, or
loses its digits, is answered with the circular cone, and the status says so.

`friction_law: box` bounds λ_t1 and λ_t2 separately by μ λ_n, as ODE, Bullet and DART do
(theory 2.10): up to √2 μ along the diagonals.

[Stewart & Trinkle 1996], [Anitescu & Potra 1997].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, vector
from contact_sim.contact_models._base import TimeSteppingModel
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
from contact_sim.solvers._complementarity import TOLERANCE, solve_boxes, solve_pyramids
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import cone_work_of, rows_of


@dataclass(frozen=True)
class LcpParameters(Parameters):
    """Shape of the friction cone, and numerics."""

    sides: int = parameter(
        8, '-', 'even number of sides of the friction cone', at_least=4, at_most=64, live=True
    )
    friction_law: str = parameter(
        'pyramid', '', 'pyramid: cone of `sides` sides; box: each tangent bounded by itself',
        choices=('pyramid', 'box'), live=True,
    )  # fmt: skip
    max_pivots: int = parameter(
        1000, '-', 'pivots of the complementary pivoting', at_least=1, at_most=1000000, live=True
    )
    max_box_iterations: int = parameter(
        200, '-', 'rounds of normal forces and friction bounds under the box law', at_least=1,
        at_most=100000, live=True,
    )  # fmt: skip
    multiple_impacts: str = multiple_impacts_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sides % 2:
            raise InvalidInput(f'LcpParameters.sides = {self.sides}: expected an even number >= 4')


@kernel
def solve_lcp(data):
    """Solve the contact problem with pyramids or boxes."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    rows, impulse, work = rows_of(data), vector(data, f.ROW_IMPULSE)[:n], cone_work_of(data)
    if last_impulses_hold(data):
        return
    # box: |λ_t1|, |λ_t2| ≤ μ λ_n, else a pyramid of `sides` edges by Lemke
    if law[0] != 0.0:
        outcome = solve_boxes(rows, impulse, work, int(law[3]))
    else:
        outcome = solve_pyramids(rows, impulse, work, int(law[1]), int(law[2]))
    report_solve(data, outcome)


@kernel
def try_impulses(data):
    """Try the impulses of the last step."""
    law = vector(data, f.LAW)
    # largest circle in the polygon, or in the box, of friction, over that of the cone
    share = np.cos(np.pi / law[1]) if law[0] == 0.0 else 1.0
    try_last_impulses(data, TOLERANCE, 0.0, share)


IN_SEQUENCE = compiled_law(solve_lcp, before_solving=sequence_impacts)


class Lcp(TimeSteppingModel):
    """Stewart and Trinkle's linear complementarity problem.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'lcp'
    parameter_class: ClassVar[type[Parameters]] = LcpParameters
    compiled: CompiledLaw = compiled_law(
        solve_lcp, before_solving=try_impulses, next_problem=next_unheld_problem
    )

    def __init__(self, **parameters: int | str) -> None:
        self.parameters: LcpParameters = LcpParameters(**parameters)  # type: ignore[arg-type]
        if self.parameters.multiple_impacts == SEQUENTIAL:
            self.compiled = IN_SEQUENCE

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, 0): no force at a distance."""
        return h, 0.0

    def law_numbers(self) -> tuple[float, ...]:
        """Return the box flag, the number of sides, and the iteration limits."""
        p = self.parameters
        boxes = p.friction_law == 'box'
        return float(boxes), float(p.sides), float(p.max_pivots), float(p.max_box_iterations)
