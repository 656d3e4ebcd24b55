"""The cone solvers as ncp and anitescu compile them, called with rows and limits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from contact_sim import Anitescu, Ncp
from contact_sim.arrays._fields import MEMORY_NUMBERS
from contact_sim.solvers._cone_problem import Rows
from contact_sim.step._problem import ProblemArrays


def solve_cones(
    rows: Rows,
    impulse: np.ndarray,
    tolerance: float,
    limits: tuple[int, int, int],
    associated: float,
) -> tuple[int, int, float]:
    """Call `solve_cones` of solvers/_cone_solver.py, arguments and result as there.

    Called by itself it would be compiled for arrays that own their memory, which takes a minute.
    """
    n, nc, ns = len(rows.g), len(rows.friction), len(rows.lower)
    problem = SimpleNamespace(
        n_contacts=nc, n_rows=n, delassus=rows.delassus, g=rows.g, friction=rows.friction,
        lower=rows.lower, upper=rows.upper, free_velocity=rows.g, start_velocity=np.zeros(n),
        gap=np.zeros(nc), interval_gap=np.zeros(ns), inverse_weight=np.zeros(n),
        memory=np.zeros((nc, MEMORY_NUMBERS)), time_step=1.0, inertia=np.zeros((0, 0)),
        velocity=np.zeros(0), jacobian=np.zeros((n, 0)),
    )  # fmt: skip
    arrays = ProblemArrays(problem, np.zeros(n))
    arrays.row_impulse[:n] = impulse
    arrays.law[:4] = tolerance, *limits
    law = Anitescu.compiled if associated else Ncp.compiled
    law.answer(*arrays.arrays)
    impulse[:] = arrays.row_impulse
    code, iterations, residual = arrays.island_solver[0]
    return int(code), int(iterations), float(residual)
