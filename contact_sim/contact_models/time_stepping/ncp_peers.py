"""The exact-cone problem by the methods of other engines, to reproduce what they do.

Compiled apart from ncp.py: only those who ask for a peer wait for it. See solvers/cone_peers.py.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import arrays_of, integers, vector
from contact_sim.contact.problem_views import rows_of
from contact_sim.contact_models.time_stepping.cone import FIRST_OWN, MAX_SWEEPS, TOLERANCE
from contact_sim.contact_models.time_stepping.islands import next_problem, report_solve
from contact_sim.contact_models.time_stepping.stages import (
    apply_impulses,
    begin_step,
    contact_rows,
    free_motion,
    integrate,
)
from contact_sim.solvers.cone_peers import solve_as_peer
from contact_sim.solvers.jit import entry, kernel
from contact_sim.solvers.status import CONVERGED, MAX_ITERATIONS, NONFINITE

PEERS = ('pgs', 'raisim', 'staggered')
"""In the order of the codes in solvers/cone_peers.py."""
PEER = FIRST_OWN
"""Place of the code of the peer in the numbers of the law."""


@kernel
def solve_as_engine(data):
    """Solve the contact problem by the method of a peer."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    impulse = vector(data, f.ROW_IMPULSE)[:n]
    sweeps, residual, converged = solve_as_peer(
        rows_of(data), impulse, law[TOLERANCE], int(law[MAX_SWEEPS]), int(law[PEER])
    )
    code = CONVERGED if converged else MAX_ITERATIONS
    if not np.isfinite(residual):
        impulse[:] = 0.0
        code = NONFINITE
    report_solve(data, (code, sweeps, residual))


@entry
def advance(numbers, indices, layout, steps):
    """Advance every world by `steps` steps; a world that stops does so alone."""
    for world in range(numbers.shape[0]):
        data = arrays_of(numbers, indices, layout, world)
        for _ in range(steps):
            if not begin_step(data):
                break
            free_motion(data)
            contact_rows(data)
            while True:
                while next_problem(data):
                    solve_as_engine(data)
                if apply_impulses(data):
                    break
            integrate(data)


@entry
def answer(numbers, indices, layout):
    """Solve the problem in the arrays."""
    solve_as_engine(arrays_of(numbers, indices, layout, 0))
