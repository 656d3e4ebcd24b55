"""Newton's method of the soft laws, before and after the Delassus matrix is formed.

The Newton step of soft contact is found in joint velocities (step/_tree_newton.py) without G, and
nearly all steps are solved so: G would be a sixth of their cost. It is formed where a few steps
are not enough, where the rows are not all on one tree, and where the law reads it.
"""

from __future__ import annotations

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, square, vector
from contact_sim.contact_models._stages import UNDAMPED_KNOWN, fill_delassus
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import (
    LAGGED,
    SIMILAR,
    fill_linearised_guess,
    minimise,
    solve_without_delassus,
)
from contact_sim.step._bilateral_rows import CONSTRAIN_UNDAMPED, has_bilateral, run_task
from contact_sim.step._contact_rows import (
    contact_branches,
    interval_branches,
    newton_work_of,
    row_velocities,
)
from contact_sim.step._inertia import UNDAMPED, factor_undamped_inertia, is_deep, solve_inertia
from contact_sim.step._tree_newton import (
    UNDAMPED_FROM_FREE,
    WITH_DAMPING,
    WITHOUT_DAMPING,
    tree_of_rows,
)

# --- Contacts that see explicit joint damping, as in MuJoCo (theory 2.4).
#
#     λ = law(J M⁻¹ Jᵀ, J v_e),   v_e = v + h M⁻¹ (τ − nle − D v) + h (ω × v_lin)
#     v⁺ = v_f + M̂⁻¹ Jᵀ λ,        M̂ = M + h D
#
# The contacts see the damping of the start of the step, the motion is damped implicitly: the
# contacts are solved for a velocity other than v⁺. With v_f of M̂ it is
# v_e = v_f + h M⁻¹ D (v_f − v), for D ω × v_lin = 0: no free flyer is damped. Steps along the tree
# need neither v_e nor the factor of M.

UNDAMPED_CHANGE = 7  # place of J (v_e − v_f) among the vectors of the law


@kernel
def forget_undamping(data):
    """Note that a step has no factor of M yet."""
    integers(data, f.COUNTS)[UNDAMPED_KNOWN] = 0


@kernel
def undamp_contacts(data):
    """Fill the factor of M and J (v_e − v_f)."""
    damping, h = vector(data, f.DAMPING), vector(data, f.TIME_STEP)[0]
    v, v_free, change = vector(data, f.V_START), vector(data, f.V_FREE), vector(data, f.UNDAMPING)
    # M = M̂ − h D; v_e − v_f = M⁻¹ h D (v_f − v)
    for k in range(damping.shape[0]):
        change[k] = h * damping[k] * (v_free[k] - v[k])
    factor_undamped_inertia(data)
    solve_inertia(data, UNDAMPED, change)
    if has_bilateral(data):
        run_task(data, CONSTRAIN_UNDAMPED)
    # J (v_e − v_f) of the rows
    row_velocities(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data), interval_branches(data),
        integers(data, f.DOF_PARENT), change, matrix(data, f.LAW_VECTORS)[UNDAMPED_CHANGE],
    )  # fmt: skip


@kernel
def undamp_rows(data, n):
    """Make u_f of the `n` problem rows J v_e; the factor of M is filled once in a step."""
    counts = integers(data, f.COUNTS)
    if counts[UNDAMPED_KNOWN] == 0:
        undamp_contacts(data)
        counts[UNDAMPED_KNOWN] = 1
    row_of, row_free = integers(data, f.ROW_OF), vector(data, f.ROW_FREE)
    change = matrix(data, f.LAW_VECTORS)[UNDAMPED_CHANGE]
    for a in range(n):
        row_free[a] += change[row_of[a]]


# --- Newton


@kernel
def has_short_tree(data):
    """Return whether all rows are on one tree, along which a step is cheaper than G."""
    return not is_deep(data) and tree_of_rows(data)[1] > 0


@kernel
def begin_delassus(data, n, undamped, defers):
    """Fill G of the `n` problem rows, or only reference values of its diagonal if it `defers`.

    If `undamped`, G is that of M, and u_f becomes J v_e.
    """
    if not defers:
        if undamped:
            undamp_rows(data, n)
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
    if defers:
        work = newton_work_of(data, UNDAMPED_FROM_FREE if undamped else WITH_DAMPING)
        count, residual, converged = solve_without_delassus(
            rows, soft, start, impulse, work, tolerance, most
        )
        if converged:
            return count, residual, True
        begin_delassus(data, rows.g.shape[0], undamped, False)
    work = newton_work_of(data, WITHOUT_DAMPING if undamped else WITH_DAMPING)
    if soft.form in (LAGGED, SIMILAR):
        fill_linearised_guess(rows, soft, start, impulse, work)
    return minimise(rows, soft, impulse, work, tolerance, most, accuracy)
