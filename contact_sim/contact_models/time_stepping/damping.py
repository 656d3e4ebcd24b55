"""Viscous joint damping between contact and motion, as MuJoCo's Euler has it.

Its contacts see the damping of the start of the step; the motion is damped implicitly:

    λ = law(J M⁻¹ Jᵀ, J v_e),   v_e = v + h M⁻¹ (τ − nle − D v) + h (ω × v_lin)
    v⁺ = v_f + M̂⁻¹ Jᵀ λ,        M̂ = M + h D

so that the contacts are solved for a velocity other than v⁺. With v_f of M̂ it is
v_e = v_f + h M⁻¹ D (v_f − v), for D ω × v_lin = 0: no free flyer is damped.
"""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, matrix, vector
from contact_sim.contact.active_rows import row_velocities
from contact_sim.contact.bilateral import has_bilateral, undamp_bilateral
from contact_sim.contact.problem_views import contact_branches, interval_branches, tree_of
from contact_sim.contact_models.time_stepping.islands import fill_delassus, next_rows
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import factorise, solve

SCRATCH = 7
"""Place of the change of u_f among the vectors of the law."""


@kernel
def undamp(data):
    """Fill the factor of M and J (v_e − v_f), once in a step."""
    if not is_damped(vector(data, f.DAMPING)):
        return
    undamping, change = vector(data, f.UNDAMPING), matrix(data, f.LAW_VECTORS)[SCRATCH]
    fill_undamping(
        matrix(data, f.INERTIA), tree_of(data), vector(data, f.DAMPING),
        vector(data, f.TIME_STEP)[0], vector(data, f.V_START), vector(data, f.V_FREE),
        matrix(data, f.UNDAMPED_FACTOR), undamping,
    )  # fmt: skip
    if has_bilateral(data):
        undamp_bilateral(data)
    row_velocities(
        matrix(data, f.JACOBIAN_TRANSPOSED), contact_branches(data),
        interval_branches(data), integers(data, f.DOF_PARENT), undamping, change,
    )  # fmt: skip


@kernel
def next_undamped(data):
    """Gather the next contact problem with J M⁻¹ Jᵀ and J v_e; return its number of rows."""
    n = next_rows(data)
    if n == 0:
        return n
    if not is_damped(vector(data, f.DAMPING)):
        fill_delassus(data, n, False)
        return n
    row_of, row_free = integers(data, f.ROW_OF), vector(data, f.ROW_FREE)
    change = matrix(data, f.LAW_VECTORS)[SCRATCH]
    for a in range(n):
        row_free[a] += change[row_of[a]]
    fill_delassus(data, n, True)
    return n


@kernel
def is_damped(damping):
    """Return whether any dof is damped."""
    damped = False
    for k in range(damping.shape[0]):
        damped = damped or damping[k] != 0.0
    return damped


@kernel
def fill_undamping(inertia, tree, damping, h, v, v_free, factor, undamping):
    """Fill the factor of M = M̂ − h D and v_e − v_f.

    Args:
        inertia: lower triangle of M̂, shape (nv, nv).
        tree: see solvers.tree.
        damping: D [N m s/rad], shape (nv,).
        h: time step [s].
        v: velocity before the step, shape (nv,).
        v_free: v_f, shape (nv,).
        factor: out, of M, see solvers.tree, shape (nv, nv).
        undamping: out, h M⁻¹ D (v_f − v), shape (nv,).
    """
    dof_parent = tree[0]
    for k in range(damping.shape[0]):
        j = dof_parent[k]
        while j >= 0:
            factor[k, j] = inertia[k, j]
            j = dof_parent[j]
        factor[k, k] = inertia[k, k] - h * damping[k]
        undamping[k] = h * damping[k] * (v_free[k] - v[k])
    factorise(factor, tree)
    solve(factor, tree, undamping)
