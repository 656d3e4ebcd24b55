"""SAP: compliant contact as an unconstrained convex problem, in Drake's three approximations.

    lagged    γ_n = n(u_n),   γ_t = −μ n₀ t                                     (theory 2.3)
    similar   γ_n = n(z),     γ_t = −μ γ_n t,   z = u_n − μ (S − ε)
    n(z) = h k (−φ − h z)₊ (1 − d z)₊,   t = u_t/S,   S = √(|u_t|² + ε²)
    n₀ = h k (−φ)₊ (1 − d u_n⁻)₊,   ε = max(v_s, μ σ w n₀)

    sap       γ = P(R⁻¹ (v̂ − u)),   γ_n/h = k (−φ − (h + τ_d) u_n)₊ while it sticks
    R_n = max(β²/(4π²) w, 1/(h k (h + τ_d))),   R_t = σ w,   w = |G_ii|_F / 3
    v̂_n = −φ/(h + τ_d),   v̂_t = 0

`lagged`, Drake's default and ours, bounds friction by the normal impulse of the start of the step:
friction does not pull on the normal force, and a sliding contact is not lifted. Under `similar` it
rides higher by h μ (S − ε), under `sap` by (h + τ_d)(μ |u_t| − (R_n + μ² R_t) γ_n). A contact that
sticks creeps: with u_t = ε γ_t/√((μ n₀)² − γ_t²), under `sap` with σ w γ_t. Dry friction of joints
is a box with R = σ w in all three.

Contacts act from φ < 0 on, as in Drake. With `acts_ahead` they act as soon as the law says so:
`lagged` on what would be closed at the end of the step, `sap` from −φ > (h + τ_d) u_n on, ahead of
the ground by what dissipation reaches. `weight: delassus` takes w from G; the default takes it as
Drake does from J diag(M̂)⁻¹ Jᵀ. The defaults are those of two bodies in Drake without materials.

[Castro et al. 2022] An Unconstrained Convex Formulation of Compliant Contact, section IV.
[Castro et al. 2023] A Theory of Irrotational Contact Fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, vector
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.contact_models._soft_contact import (
    begin_delassus,
    has_short_tree,
    solve_soft_contact,
)
from contact_sim.contact_models._stages import (
    CompiledLaw,
    compiled_law,
    next_island_rows,
    report_iterations,
)
from contact_sim.parameters import Parameters, parameter, relative_tolerance
from contact_sim.solvers._delassus import EVERYWHERE
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import (
    BOUND,
    COARSE,
    CONE,
    GAP,
    LAGGED,
    SIMILAR,
    STICTION,
    SoftLaw,
)
from contact_sim.step._contact_rows import last_dof, unbiased_rows_of
from contact_sim.step._inertia import fill_inertia_diagonal
from contact_sim.step._moment_rows import note_softness

(
    FORM, STIFFNESS, DISSIPATION, STICTION_TOLERANCE, RELAXATION_TIME, SIGMA, BETA, EXACT_WEIGHT,
    ACTS_AHEAD, TOLERANCE, ITERATION_LIMIT,
) = range(11)  # fmt: skip
"""Places of the parameters in the numbers of the law."""
FORMS = {'sap': CONE, 'lagged': LAGGED, 'similar': SIMILAR}  # approximation to form of a contact
OUT_OF_REACH = 1e12  # approach speed [m/s] at which a contact that does not touch would act: never


@dataclass(frozen=True)
class SapParameters(Parameters):
    """Compliance and numerics of SAP."""

    approximation: str = parameter(
        'lagged', '', 'form of the convex problem', choices=('lagged', 'similar', 'sap'), live=True
    )
    stiffness: float = parameter(
        5e5, 'N/m', 'contact stiffness k of every contact point', above=0.0, live=True
    )
    dissipation: float = parameter(
        50.0, 's/m', 'Hunt and Crossley d of lagged and similar', at_least=0.0, live=True
    )
    stiction_tolerance: float = parameter(
        1e-4, 'm/s', 'slip speed v_s below which lagged and similar regularise friction',
        at_least=1e-12, live=True,
    )  # fmt: skip
    relaxation_time: float = parameter(
        0.2, 's', 'dissipation time scale tau_d of sap, and of limits', at_least=0.0, live=True
    )
    sigma: float = parameter(
        1e-3, '-', 'tangential compliance over the Delassus diagonal w', above=0.0, at_most=1.0,
        live=True,
    )  # fmt: skip
    beta: float = parameter(
        1.0, '-', 'near-rigid limit of sap: smallest period of a contact in steps; 0: none',
        at_least=0.0, live=True,
    )  # fmt: skip
    weight: str = parameter(
        'mass_diagonal', '', 'what w is taken from: as in Drake J and the diagonal of M, or G',
        choices=('mass_diagonal', 'delassus'), live=True,
    )  # fmt: skip
    acts_ahead: bool = parameter(
        False, '', 'act on what is about to touch; Drake: only on what does', live=True
    )
    tolerance: float = relative_tolerance(
        1e-9, 'momentum residual relative to the contact impulses'
    )
    max_iterations: int = parameter(
        100, '-', 'Newton iterations', at_least=1, at_most=100000, live=True
    )


@kernel
def next_sap(data):
    """Gather the next contact problem."""
    n = next_island_rows(data)
    if n > 0:
        begin_delassus(data, n, False, defers_delassus(data))
    return n


@kernel
def defers_delassus(data):
    """Return whether the problem is tried without G first, which only exact weights read."""
    return vector(data, f.LAW)[EXACT_WEIGHT] == 0.0 and has_short_tree(data)


@kernel
def solve_sap(data):
    """Solve the contact problem with compliance and dissipation."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    rows, impulse = unbiased_rows_of(data), vector(data, f.ROW_IMPULSE)[:n]
    soft = fill_rules(data, rows)
    note_softness(data, soft.R, soft.v_hat)
    # Newton on the convex problem in the velocities u = G λ + u_f, with exact line search
    limits = law[TOLERANCE], int(law[ITERATION_LIMIT]), COARSE
    iterations, residual, converged = solve_soft_contact(
        data, rows, soft, (False, defers_delassus(data)), limits
    )
    report_iterations(data, impulse, iterations, residual, converged)


@kernel
def fill_rules(data, rows):
    """Fill R and v̂ of the rows, or the numbers of regularised friction; return the `SoftLaw`."""
    law, h, n = vector(data, f.LAW), vector(data, f.TIME_STEP)[0], integers(data, f.COUNTS)[1]
    gap, weight = vector(data, f.ROW_GAP), vector(data, f.ROW_WEIGHT)
    scratch, nc = matrix(data, f.LAW_VECTORS), rows.friction.shape[0]
    R, v_hat = scratch[0][:n], scratch[1][:n]
    soft = SoftLaw(int(law[FORM]), v_hat, R, scratch[6], (h, law[STIFFNESS], law[DISSIPATION]))
    fill_weights(data, rows, n)
    interval_gap = vector(data, f.ROW_INTERVAL_GAP)
    fill_interval_compliance(rows, interval_gap, weight, h, law, R, v_hat)
    if soft.form == CONE:
        for i in range(nc):  # R_t = σ w, v̂_t = 0; v̂_n = −φ/(h + τ_d)
            r = 3 * i
            R[r] = R[r + 1] = law[SIGMA] * weight[r]
            v_hat[r] = v_hat[r + 1] = 0.0
            R[r + 2] = spring_compliance(weight[r], h, law)
            v_hat[r + 2] = reference(gap[i], h, law)
    else:
        fill_regularisation(rows, gap, vector(data, f.ROW_START), weight, law, soft)
    return soft


@kernel
def fill_weights(data, rows, n):
    """Fill w, the effective inverse mass of each row: as in Drake, or |G_ii|_F / 3."""
    law, weight, G = vector(data, f.LAW), vector(data, f.ROW_WEIGHT), rows.delassus
    nc = rows.friction.shape[0]
    if law[EXACT_WEIGHT] == 0.0:
        fill_diagonal_weight(data, nc, weight)
        return
    for r in range(0, 3 * nc, 3):
        total = 0.0
        for a in range(3):
            for b in range(3):
                total += G[r + a, r + b] ** 2
        weight[r] = weight[r + 1] = weight[r + 2] = np.sqrt(total) / 3.0
    for r in range(3 * nc, n):
        weight[r] = G[r, r]


@kernel
def fill_diagonal_weight(data, nc, weight):
    """Fill |J_i D⁻¹ J_iᵀ|_F / 3 of every contact in its rows, D the diagonal of M̂."""
    columns, inverse = matrix(data, f.JACOBIAN_TRANSPOSED), vector(data, f.MOMENTUM)
    fill_inertia_diagonal(data, inverse)
    for k in range(inverse.shape[0]):
        inverse[k] = 1.0 / inverse[k]
    parent, n = integers(data, f.DOF_PARENT), integers(data, f.COUNTS)[1]
    row_of, row_leaf = integers(data, f.ROW_OF), integers(data, f.ROW_LEAF)
    for i in range(nc):
        r1, r2, r3 = row_of[3 * i], row_of[3 * i + 1], row_of[3 * i + 2]
        # J_i D⁻¹ J_iᵀ (3 × 3), its six entries summed along the branch
        aa = bb = cc = ab = ac = bc = 0.0
        everywhere = row_leaf[3 * i] == EVERYWHERE
        k = parent.shape[0] - 1 if everywhere else row_leaf[3 * i]
        while k >= 0:
            a, b, c = columns[k, r1], columns[k, r2], columns[k, r3]
            aa += a * a * inverse[k]
            bb += b * b * inverse[k]
            cc += c * c * inverse[k]
            ab += a * b * inverse[k]
            ac += a * c * inverse[k]
            bc += b * c * inverse[k]
            k = k - 1 if everywhere else parent[k]
        total = aa * aa + bb * bb + cc * cc + 2.0 * (ab * ab + ac * ac + bc * bc)
        weight[3 * i] = weight[3 * i + 1] = weight[3 * i + 2] = np.sqrt(total) / 3.0
    # interval rows: J_r D⁻¹ J_rᵀ
    first, end = 3 * vector(data, f.GAP).shape[0], integers(data, f.INTERVAL_END)
    for r in range(3 * nc, n):
        everywhere, row, weight[r] = row_leaf[r] == EVERYWHERE, row_of[r], 0.0
        k = last_dof(row_leaf[r], parent)
        while k > end[row - first]:
            weight[r] += columns[k, row] * columns[k, row] * inverse[k]
            k = k - 1 if everywhere else parent[k]


@kernel
def spring_compliance(weight, h, law):
    """Return R of a spring of stiffness k and relaxation time τ_d."""
    # R_n = max(β²/(4π²) w, 1/(h k (h + τ_d)))
    near_rigid = law[BETA] ** 2 / (4.0 * np.pi**2) * weight
    return max(near_rigid, 1.0 / (h * law[STIFFNESS] * (h + law[RELAXATION_TIME])))


@kernel
def reference(gap, h, law):
    """Return v̂ of a row that opposes a gap on one side: a normal row or a limit."""
    if law[ACTS_AHEAD] == 0.0 and gap > 0.0:
        return -OUT_OF_REACH
    return -gap / (h + law[RELAXATION_TIME])


@kernel
def fill_regularisation(rows, gap, start, weight, law, soft):
    """Fill φ, μ n₀ and ε of the contacts; `start` is u⁻ [m/s], shape (n,)."""
    h, k, d = soft.spring
    for i in range(rows.friction.shape[0]):
        # n₀ = h k (−φ)₊ (1 − d u_n⁻)₊, friction bound μ n₀, ε = max(v_s, σ w μ n₀)
        acts = law[ACTS_AHEAD] != 0.0 or gap[i] <= 0.0
        elastic, viscous = h * k * max(-gap[i], 0.0), max(1.0 - d * start[3 * i + 2], 0.0)
        bound = rows.friction[i] * elastic * viscous
        soft.contact[3 * i + GAP] = gap[i] if acts else np.inf
        soft.contact[3 * i + BOUND] = bound
        softened = law[SIGMA] * weight[3 * i] * bound
        soft.contact[3 * i + STICTION] = max(law[STICTION_TOLERANCE], softened)


@kernel
def fill_interval_compliance(rows, gap, weight, h, law, R, v_hat):
    """Fill R and v̂ of the interval rows: bounded ones are friction, others oppose their gap."""
    first = 3 * rows.friction.shape[0]
    for k in range(rows.lower.shape[0]):
        r, lower, upper = first + k, rows.lower[k], rows.upper[k]
        # dry friction: a box with R = σ w
        if np.isfinite(lower) and np.isfinite(upper):
            R[r], v_hat[r] = law[SIGMA] * weight[r], 0.0
            continue
        R[r] = spring_compliance(weight[r], h, law)
        if np.isfinite(lower):
            v_hat[r] = reference(gap[k], h, law)
        elif np.isfinite(upper):
            v_hat[r] = -reference(-gap[k], h, law)
        else:
            v_hat[r] = -gap[k] / (h + law[RELAXATION_TIME])


class Sap(TimeSteppingModel):
    """Drake's SAP.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'sap'
    parameter_class: ClassVar[type[Parameters]] = SapParameters
    compiled: CompiledLaw = compiled_law(solve_sap, next_problem=next_sap)

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: SapParameters = SapParameters(**parameters)  # type: ignore[arg-type]

    def reach(self, h: float) -> tuple[float, float]:
        """Return (0, 0): only what touches; ahead by h or h + τ_d, and 1 where friction lifts."""
        p = self.parameters
        if not p.acts_ahead:
            return 0.0, 0.0
        if p.approximation == 'sap':
            return h + p.relaxation_time, 1.0
        return h, float(p.approximation == 'similar')

    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters in the order of the constants of this module."""
        p = self.parameters
        return (
            float(FORMS[p.approximation]), p.stiffness, p.dissipation,
            p.stiction_tolerance, p.relaxation_time, p.sigma, p.beta,
            float(p.weight == 'delassus'), float(p.acts_ahead), p.tolerance,
            float(p.max_iterations),
        )  # fmt: skip
