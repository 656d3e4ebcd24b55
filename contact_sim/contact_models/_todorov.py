"""Todorov: MuJoCo's soft constraint, and its form of 2014.

    min_{f ∈ K} ½ fᵀ (A + R) f + fᵀ (a_u − a_ref)                               (theory 2.4)
    a_ref = −b u⁻ − k r,   b = 2/(d_max τ),   k = d(r)/(d_max² τ² ζ²),   r = φ, friction rows r = 0
    R_n = (1 − d)/d Â_nn,   R_t = R_n/impratio;   pyramid: R = 2 μ² R_n/impratio per edge n ± μ t_i

in impulses: v̂ = u⁻ + h a_ref. (τ, ζ) is solref, d(r) the impedance from solimp, Â MuJoCo's
approximation of the diagonal of A, or the diagonal. Contacts act only while φ < 0. Dry friction of
joints is a box with the same solref and d(0). Without parameters it is MuJoCo without parameters:
pyramids, the approximation, contacts that see the joint damping of the start of the step, μ no
smaller than 1e-5.

Under an elliptic cone with the exact diagonal a contact at rest sinks by g (1 − d) τ² ζ² and,
under load along the ground, creeps with R_t f_t/b, which `noslip_iterations` take out afterwards.
Under a pyramid it sinks by μ² (1 + μ²)/2 times that and creeps 1 + μ² times as fast.

`form: 2014` is that of the source text (T21, T22), with λ an impulse throughout:

    min_{λ ∈ K} ½ λᵀ (G + R) λ + λᵀ (u_f − v̂),   R = ε diag(G)
    v̂ = u⁻ − h B u⁻ − h K (0, 0, φ),   B = 2 (1 + ε)/κ,   K = (1 + ε)/κ²

and the implicit damping inertia M̂ + b diag(M), damped by b diag(M) v. Errata: the 1/h before the
linear term (with it λ would be neither force nor impulse), and the minimum is an impulse, not a
force. It acts at any distance on what approaches fast enough. At rest it sinks by
κ² ε/(1 + ε) · m g/(m + b).

[Todorov 2014] Convex and analytically-invertible dynamics with contacts and constraints.
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
    forget_undamping,
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
from contact_sim.solvers._cone_problem import Rows, friction_sweep
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._soft_newton import EXACT as EXACT_SEARCH
from contact_sim.solvers._soft_newton import linear_law
from contact_sim.step._contact_rows import (
    first_moment,
    unbiased_rows_of,
)
from contact_sim.step._moment_rows import note_softness

(
    FORM_2014, TIME_CONSTANT, DAMPING_RATIO, IMPEDANCE, _, _, _, _, IMPRATIO, ELLIPTIC, EXACT,
    REFSAFE, NOSLIP, TOLERANCE, ITERATION_LIMIT, EPSILON, KAPPA,
) = range(17)  # fmt: skip
"""Places of the parameters in the numbers of the law; from IMPEDANCE on the five of solimp."""
SMALLEST_IMPEDANCE, LARGEST_IMPEDANCE = 1e-4, 0.9999
SMALLEST_COMPLIANCE = 1e-15
OUT_OF_REACH = 1e12  # approach speed [m/s] at which a contact with φ ≥ 0 would act: never
SMALLEST_FRICTION = 1e-5  # MuJoCo's, which has no contact without friction [-]


@dataclass(frozen=True)
class TodorovParameters(Parameters):
    """MuJoCo's solref, solimp, impratio, cone and noslip, under MuJoCo's defaults."""

    form: str = parameter(
        'mujoco', '', 'of the soft constraint: MuJoCo of today, or the paper of 2014',
        choices=('mujoco', '2014'), live=True,
    )  # fmt: skip
    regularisation: float = parameter(
        0.05, '-', 'epsilon of 2014: compliance over the diagonal of G', above=0.0, live=True
    )
    error_reduction_time: float = parameter(
        0.02, 's', 'kappa of 2014: time constant of a gap or penetration', above=0.0, live=True
    )
    damping_inertia: float = parameter(
        0.01, '-', 'b of 2014 over the diagonal of M: inertia, and damping per second',
        at_least=0.0, live=True,
    )  # fmt: skip
    time_constant: float = parameter(
        0.02, 's', 'solref[0]: time constant of the constraint', above=0.0, live=True
    )
    damping_ratio: float = parameter(
        1.0, '-', 'solref[1]: damping ratio of the constraint', above=0.0, live=True
    )
    impedance_start: float = parameter(
        0.9, '-', 'solimp[0]: impedance at touch', above=0.0, below=1.0, live=True
    )
    impedance_end: float = parameter(
        0.95, '-', 'solimp[1]: impedance at the end of the width', above=0.0, below=1.0, live=True
    )
    impedance_width: float = parameter(
        0.001, 'm', 'solimp[2]: depth over which the impedance changes', above=0.0, live=True
    )
    impedance_midpoint: float = parameter(
        0.5, '-', 'solimp[3]: where it changes fastest', above=0.0, below=1.0, live=True
    )
    impedance_power: float = parameter(
        2.0, '-', 'solimp[4]: how suddenly it changes', at_least=1.0, live=True
    )
    impratio: float = parameter(
        1.0, '-', 'impedance of friction over that of the normal force', above=0.0, live=True
    )
    cone: str = parameter(
        'pyramidal', '', 'friction cone', choices=('pyramidal', 'elliptic'), live=True
    )
    diagonal: str = parameter(
        'reference', '', 'diagonal of A: of the reference pose as in MuJoCo, or exact',
        choices=('reference', 'exact'), live=True,
    )  # fmt: skip
    refsafe: bool = parameter(
        True, '', 'keep the time constant at least two steps long', live=True
    )
    noslip_iterations: int = parameter(
        0, '-', 'sweeps that take creep out of elliptic friction', at_least=0, at_most=1000,
        live=True,
    )  # fmt: skip
    tolerance: float = relative_tolerance(
        1e-10, 'momentum residual relative to the contact impulses'
    )
    max_iterations: int = parameter(
        100, '-', 'Newton iterations', at_least=1, at_most=100000, live=True
    )


@kernel
def sees_explicit_damping(data):
    """Return whether a dof is damped, under MuJoCo's form; that of 2014 has it in M̂."""
    return vector(data, f.LAW)[FORM_2014] == 0.0 and vector(data, f.DAMPING).any()


@kernel
def next_todorov(data):
    """Gather the next contact problem, with J M⁻¹ Jᵀ and J v_e where damping is explicit."""
    n = next_island_rows(data)
    if n > 0:
        begin_delassus(data, n, sees_explicit_damping(data), defers_delassus(data))
    return n


@kernel
def defers_delassus(data):
    """Return whether the problem is tried without G first, which only some options read."""
    law = vector(data, f.LAW)
    noslip = law[ELLIPTIC] != 0.0 and law[NOSLIP] > 0.0
    reads = law[FORM_2014] != 0.0 or law[EXACT] != 0.0 or noslip
    return not reads and has_short_tree(data)


# --- The soft constraint.


@kernel
def solve_todorov(data):
    """Solve the contact problem with soft constraints."""
    law, n = vector(data, f.LAW), integers(data, f.COUNTS)[1]
    rows, impulse = unbiased_rows_of(data), vector(data, f.ROW_IMPULSE)[:n]
    scratch, h = matrix(data, f.LAW_VECTORS), vector(data, f.TIME_STEP)[0]
    R, v_hat, start = scratch[0][:n], scratch[1][:n], vector(data, f.ROW_START)
    # MuJoCo has no frictionless contact: μ ≥ 1e-5
    for i in range(rows.friction.shape[0]):
        rows.friction[i] = max(rows.friction[i], SMALLEST_FRICTION)
    gap, interval_gap = vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP)
    if law[FORM_2014] != 0.0:
        fill_rules_2014(rows, start, (gap, interval_gap), h, law, R, v_hat)
    else:
        weight = vector(data, f.ROW_WEIGHT)
        fill_contact_rules(rows, start, gap, weight, h, law, R, v_hat)
        fill_interval_rules(rows, start, interval_gap, weight, h, law, R, v_hat)
        fill_moment_compliance(data, rows, R)
    note_softness(data, R, v_hat)
    # λ = min over the cones, or over the edges of the pyramids
    elliptic, given = law[ELLIPTIC] != 0.0, (sees_explicit_damping(data), defers_delassus(data))
    limits = law[TOLERANCE], int(law[ITERATION_LIMIT]), EXACT_SEARCH
    iterations, residual, converged = solve_soft_contact(
        data, rows, linear_law(v_hat, R, not elliptic), given, limits
    )
    # noslip: sweeps over the friction rows with R = 0 and the normal impulses fixed
    if elliptic:
        for _ in range(int(law[NOSLIP])):
            biased = Rows(rows.delassus, rows.g - v_hat, rows.friction, rows.lower, rows.upper)
            friction_sweep(biased, impulse)
    report_iterations(data, impulse, iterations, residual, converged)


@kernel
def impedance(solimp, r):
    """Return d(r) of solimp (start, end, width, midpoint, power)."""
    # y(x): x^p / m^(p−1) up to the midpoint m, mirrored behind it
    x = min(abs(r) / solimp[2], 1.0)
    middle, power = solimp[3], solimp[4]
    # most rows, and the default power, without calls of pow
    if power == 1.0 or x in (0.0, 1.0):
        y = x
    elif power == 2.0:
        y = x * x / middle if x <= middle else 1.0 - (1.0 - x) * (1.0 - x) / (1.0 - middle)
    elif x <= middle:
        y = x**power / middle ** (power - 1.0)
    else:
        y = 1.0 - (1.0 - x) ** power / (1.0 - middle) ** (power - 1.0)
    d = solimp[0] + y * (solimp[1] - solimp[0])
    return min(max(d, SMALLEST_IMPEDANCE), LARGEST_IMPEDANCE)


@kernel
def reference(start, h, b, k, r):
    """Return v̂ = u⁻ + h (−b u⁻ − k r)."""
    return start - h * (b * start + k * r)


@kernel
def common_gains(h, law):
    """Return solimp, and of a_ref the damping b [1/s] and d over the stiffness k [s²]."""
    # b = 2/(d_max τ), k = d/(d_max² τ² ζ²)
    i, tau, ratio = IMPEDANCE, law[TIME_CONSTANT], law[DAMPING_RATIO]
    solimp = law[i], law[i + 1], law[i + 2], law[i + 3], law[i + 4]
    if law[REFSAFE] != 0.0:  # at least two steps
        tau = max(tau, 2.0 * h)
    d_max = min(max(solimp[1], SMALLEST_IMPEDANCE), LARGEST_IMPEDANCE)
    return solimp, 2.0 / (d_max * tau), d_max * d_max * tau * tau * ratio * ratio


@kernel
def gains(gap, common):
    """Return the impedance d at `gap`, and damping b [1/s] and stiffness k [1/s²] of a_ref."""
    solimp, b, share = common
    d = impedance(solimp, gap)
    return d, b, d / share


@kernel
def fill_contact_rules(rows, start, gap, weight, h, law, R, v_hat):
    """Fill R and v̂ of the contact rows; for a pyramid R[3 i] holds the compliance of its edges."""
    G, mu, elliptic, exact = rows.delassus, rows.friction, law[ELLIPTIC] != 0.0, law[EXACT] != 0.0
    common, impratio = common_gains(h, law), law[IMPRATIO]
    for i in range(mu.shape[0]):
        n = 3 * i + 2
        d, b, k = gains(gap[i], common)
        # Â_nn; of an edge n ± μ t it is Â_nn + μ² Â_tt
        diagonal = G[n, n] if exact else weight[n]
        if not elliptic:
            diagonal += mu[i] ** 2 * (G[n - 2, n - 2] if exact else weight[n])
        # R_n = (1 − d)/d Â; R_t = R_n/impratio, or R of a pyramid edge, 2 μ² R_n/impratio
        R[n] = max(SMALLEST_COMPLIANCE, (1.0 - d) / d * diagonal)
        R[n - 2] = R[n] / impratio if elliptic else 2.0 * mu[i] ** 2 / impratio * R[n]
        R[n - 1] = R[n - 2]
        # v̂ = u⁻ + h a_ref; friction rows have no stiffness, open contacts do not act
        for row in range(n - 2, n):
            v_hat[row] = reference(start[row], h, b, 0.0, 0.0)
        v_hat[n] = reference(start[n], h, b, k, gap[i]) if gap[i] < 0.0 else -OUT_OF_REACH


@kernel
def fill_interval_rules(rows, start, gap, weight, h, law, R, v_hat):
    """Fill R and v̂ of the interval rows; a limit acts, like a contact, only while it is passed."""
    first, common, exact = 3 * rows.friction.shape[0], common_gains(h, law), law[EXACT] != 0.0
    for k in range(rows.lower.shape[0]):
        r, lower, upper = first + k, rows.lower[k], rows.upper[k]
        d, damping, stiffness = gains(gap[k], common)
        diagonal = rows.delassus[r, r] if exact else weight[r]
        R[r] = max(SMALLEST_COMPLIANCE, (1.0 - d) / d * diagonal)
        v_hat[r] = reference(start[r], h, damping, stiffness, gap[k])
        # a limit that is not passed does not act
        if np.isinf(upper) and lower >= 0.0 and gap[k] >= 0.0:
            v_hat[r] = -OUT_OF_REACH
        elif np.isinf(lower) and upper <= 0.0 and gap[k] <= 0.0:
            v_hat[r] = OUT_OF_REACH


@kernel
def fill_moment_compliance(data, rows, R):
    """Fill R of the moments of contacts, R_t (μ/r)², r their coefficient [m]."""
    torsional, rolling = vector(data, f.TORSIONAL_FRICTION), vector(data, f.ROLLING_FRICTION)
    row_of, law, nc = integers(data, f.ROW_OF), vector(data, f.LAW), rows.friction.shape[0]
    first = 3 * vector(data, f.GAP).shape[0] + first_moment(data)
    i = 0
    for a in range(3 * nc, R.shape[0]):
        k = row_of[a] - first
        if not 0 <= k < 3 * torsional.shape[0]:
            continue
        # the rows of the contacts and those of their moments have the same order
        while row_of[3 * i] != k - k % 3:
            i += 1
        coefficient = torsional[k // 3] if k % 3 == 0 else rolling[k // 3]
        R[a] = R[3 * i + 2] / law[IMPRATIO] * (rows.friction[i] / coefficient) ** 2


@kernel
def fill_rules_2014(rows, start, gaps, h, law, R, v_hat):
    """Fill R and v̂ of all rows by the rules of 2014; `gaps` of the contacts and intervals."""
    G, mu, epsilon, kappa = rows.delassus, rows.friction, law[EPSILON], law[KAPPA]
    b, k, nc = 2.0 * (1.0 + epsilon) / kappa, (1.0 + epsilon) / kappa**2, mu.shape[0]
    # R = ε diag(G),  v̂ = u⁻ − h B u⁻, and − h K φ in normal rows
    for r in range(rows.g.shape[0]):
        R[r] = max(SMALLEST_COMPLIANCE, epsilon * G[r, r])
        v_hat[r] = reference(start[r], h, b, 0.0, 0.0)
    for i in range(nc):
        t, m = 3 * i, 3 * i + 2
        v_hat[m] = reference(start[m], h, b, k, gaps[0][i])
        tangential = 0.5 * (R[t] + R[t + 1])
        elliptic = law[ELLIPTIC] != 0.0
        R[t] = R[t + 1] = tangential if elliptic else R[m] + mu[i] ** 2 * tangential
    for s in range(rows.lower.shape[0]):
        v_hat[3 * nc + s] = reference(start[3 * nc + s], h, b, k, gaps[1][s])


class Todorov(TimeSteppingModel):
    """MuJoCo's contact model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'todorov'
    parameter_class: ClassVar[type[Parameters]] = TodorovParameters
    compiled: CompiledLaw = compiled_law(
        solve_todorov, next_problem=next_todorov, before_solving=forget_undamping
    )

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: TodorovParameters = TodorovParameters(**parameters)  # type: ignore[arg-type]
        form_2014 = self.parameters.form == '2014'
        if form_2014:  # acts at any distance
            self.margin = self.limit_margin = np.inf
        self.damping_inertia = self.parameters.damping_inertia if form_2014 else 0.0
        self.implicit_springs = form_2014  # MuJoCo takes them at the start of the step

    def reach(self, h: float) -> tuple[float, float]:
        """Return the reach: penetrating contacts, or all contacts in the form of 2014."""
        return 0.0, 0.0

    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters in the order of the constants of this module."""
        p = self.parameters
        return (
            float(p.form == '2014'), p.time_constant, p.damping_ratio, p.impedance_start,
            p.impedance_end, p.impedance_width, p.impedance_midpoint, p.impedance_power,
            p.impratio, float(p.cone == 'elliptic'), float(p.diagonal == 'exact'),
            float(p.refsafe), float(p.noslip_iterations), p.tolerance, float(p.max_iterations),
            p.regularisation, p.error_reduction_time,
        )  # fmt: skip
