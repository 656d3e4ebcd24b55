"""Newton's method of the soft laws, before and after the Delassus matrix is formed.

The Newton step of soft contact is found in joint velocities (step/_tree_newton.py) without G, and
nearly all steps are solved so: G would be a sixth of their cost. It is formed where a few steps
are not enough, where the rows are not all on one tree, and where the law reads it.
"""

from __future__ import annotations

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import square, vector
from contact_sim.contact_models._stages import fill_delassus
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import (
    LAGGED,
    SIMILAR,
    fill_linearised_guess,
    minimise,
    solve_without_delassus,
)
from contact_sim.step._contact_rows import newton_work_of
from contact_sim.step._inertia import is_deep
from contact_sim.step._tree_newton import tree_of_rows


@kernel
def has_short_tree(data):
    """Return whether all rows are on one tree, along which a step is cheaper than G."""
    return not is_deep(data) and tree_of_rows(data)[1] > 0


@kernel
def begin_delassus(data, n, undamped, defers):
    """Fill G of the `n` problem rows, or only reference values of its diagonal if it `defers`."""
    if not defers:
        fill_delassus(data, n, undamped)
        return
    G, weight = square(data, f.DELASSUS, n), vector(data, f.ROW_WEIGHT)
    for r in range(n):
        G[r, r] = weight[r]


@kernel
def solve_soft_contact(data, rows, soft, given, limits):
    """Fill the impulses of the problem at hand; return (iterations, residual, converged).

    Args:
        data: the arrays.
        rows: the problem, after `begin_delassus`.
        soft: a `SoftLaw`.
        given: whether G is that of M, and whether it is deferred, as for `begin_delassus`.
        limits: tolerance, most Newton steps and accuracy of line searches, see `minimise`.
    """
    (undamped, defers), (tolerance, most, accuracy) = given, limits
    impulse, start = vector(data, f.ROW_IMPULSE)[: rows.g.shape[0]], vector(data, f.ROW_START)
    work = newton_work_of(data, undamped)
    if defers:
        count, residual, converged = solve_without_delassus(
            rows, soft, start, impulse, work, tolerance, most
        )
        if converged:
            return count, residual, True
        fill_delassus(data, rows.g.shape[0], undamped)
    if soft.form in (LAGGED, SIMILAR):
        fill_linearised_guess(rows, soft, start, impulse, work)
    return minimise(rows, soft, impulse, work, tolerance, most, accuracy)
