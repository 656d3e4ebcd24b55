"""Todorov: MuJoCo's soft constraint, and the one of 2014 that it grew out of.

    min_{f ∈ K} ½ fᵀ (A + R) f + fᵀ (a_u − a_ref)                               (physics.md 2.4)
    a_ref = −b u⁻ − k r,   b = 2/(d_max τ),   k = d(r)/(d_max² τ² ζ²),   r = φ, friction rows r = 0
    R_n = (1 − d)/d Â_nn,   R_t = R_n/impratio;   pyramid: R = 2 μ² R_n/impratio per edge n ± μ t_i

in impulses: v̂ = u⁻ + h a_ref. (τ, ζ) is solref, d(r) the impedance from solimp, Â the diagonal of
A or MuJoCo's approximation of it. Contacts act only while φ < 0. A contact at rest sinks by
g (1 − d) τ² ζ² and, under load along the ground, creeps with R_t f_t/b; `noslip_iterations` take
the creep out afterwards. Dry friction of joints is a box with the same solref and d(0).

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

from contact_sim.contact.polyhedron import fill_edges, split_impulse
from contact_sim.contact.solution import CONVERGED, MAX_ITERATIONS, NONFINITE
from contact_sim.contact.workspace import ContactRows, Workspace
from contact_sim.contact_models.law import Law
from contact_sim.contact_models.protocol import ContactLaw, Stepper
from contact_sim.contact_models.time_stepping import TimeStepping
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_newton import newton
from contact_sim.solvers.disc import friction_sweep
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.rows import Rows

SMALLEST_IMPEDANCE, LARGEST_IMPEDANCE = 1e-4, 0.9999
SMALLEST_COMPLIANCE = 1e-15
OUT_OF_REACH = 1e12
"""Speed [m/s] that the bias of a contact with φ ≥ 0 would ask for before it acts."""
PYRAMID_SIDES = 4


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
        'elliptic', '', 'friction cone', choices=('elliptic', 'pyramidal'), live=True
    )
    diagonal: str = parameter(
        'exact', '', 'diagonal of A: exact, or of the reference pose as in MuJoCo',
        choices=('exact', 'reference'), live=True,
    )  # fmt: skip
    refsafe: bool = parameter(
        True, '', 'keep the time constant at least two steps long', live=True
    )
    noslip_iterations: int = parameter(
        0, '-', 'sweeps that take creep out of elliptic friction', at_least=0, at_most=1000,
        live=True,
    )  # fmt: skip
    tolerance: float = parameter(
        1e-10, '-', 'momentum residual relative to the contact impulses', above=0.0, below=1.0,
        live=True,
    )  # fmt: skip
    max_iterations: int = parameter(
        100, '-', 'Newton iterations', at_least=1, at_most=100000, live=True
    )


class Todorov(Law):
    """MuJoCo's contact model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'todorov'
    parameter_class: ClassVar[type[Parameters]] = TodorovParameters

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: TodorovParameters = TodorovParameters(**parameters)  # type: ignore[arg-type]
        p = self.parameters
        self._solimp = np.array(
            [p.impedance_start, p.impedance_end, p.impedance_width, p.impedance_midpoint,
             p.impedance_power]
        )  # fmt: skip

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law; that of 2014 has its damping inertia."""
        p = self.parameters
        if p.form == '2014' and p.damping_inertia > 0.0:
            return DampedTimeStepping(workspace, self, p.damping_inertia)
        return TimeStepping(workspace, self)

    @property
    def margin(self) -> float:
        """Infinite for 2014, which acts at any distance."""
        return np.inf if self.parameters.form == '2014' else 0.0

    def reach(self, h: float) -> tuple[float, float]:
        """Return (0, 0): contacts act only while they penetrate, or all of them take part."""
        return 0.0, 0.0

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        if p.form == '2014':
            return solve_2014(  # type: ignore[no-any-return]
                rows.delassus, rows.free_velocity, rows.start_velocity, rows.friction, rows.gap,
                rows.lower, rows.upper, rows.impulse, rows.nc, rows.n, rows.time_step,
                p.regularisation, p.error_reduction_time, p.cone == 'elliptic',
                p.noslip_iterations, p.tolerance, p.max_iterations,
            )  # fmt: skip
        tau = max(p.time_constant, 2.0 * rows.time_step) if p.refsafe else p.time_constant
        return solve_todorov(  # type: ignore[no-any-return]
            rows.delassus, rows.free_velocity, rows.start_velocity, rows.friction, rows.gap,
            rows.lower, rows.upper, rows.inverse_weight, rows.impulse, rows.nc, rows.n,
            rows.time_step, tau, p.damping_ratio, self._solimp, p.impratio, p.cone == 'elliptic',
            p.diagonal == 'exact', p.noslip_iterations, p.tolerance, p.max_iterations,
        )  # fmt: skip


class DampedTimeStepping(TimeStepping):
    """Time-stepping with the implicit damping inertia: (M̂ + B)(v_f − v) = h (τ − nle − B v)."""

    def __init__(self, workspace: Workspace, law: ContactLaw, share: float) -> None:
        super().__init__(workspace, law)
        self._share = share

    def advance(self) -> bool:
        """Advance the state by h; the record holds M̂ + B, the efforts and damping of the robot."""
        work, record = self._workspace, self._workspace.record
        damping, tau, h = work.damping.copy(), record.tau.copy(), float(record.time_step[0])
        added = self._share * np.diag(work.terms.inertia)
        # as viscous damping it would come with the force −(B/h) v
        work.damping += added / h
        record.tau += (1.0 / h - 1.0) * added * record.v
        finite = super().advance()
        work.damping[:] = damping
        record.tau[:] = tau
        return finite


@kernel
def impedance(solimp, r):
    """Return d(r) of solimp (start, end, width, midpoint, power)."""
    x = min(abs(r) / solimp[2], 1.0)
    middle, power = solimp[3], solimp[4]
    if power == 1.0:
        y = x
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
def fill_rules(
    G, start, mu, gap, weight, h, tau, zeta, solimp, impratio, elliptic, exact, R, v_hat
):
    """Fill R and v̂ of all rows; for a pyramid R[3 i] holds the compliance of its edges."""
    nc, d_max = mu.shape[0], min(max(solimp[1], SMALLEST_IMPEDANCE), LARGEST_IMPEDANCE)
    b = 2.0 / (d_max * tau)
    for i in range(nc):
        n = 3 * i + 2
        d = impedance(solimp, gap[i])
        k = d / (d_max * d_max * tau * tau * zeta * zeta)
        diagonal = G[n, n] if exact else weight[n]
        if not elliptic:
            diagonal += mu[i] ** 2 * (G[n - 2, n - 2] if exact else weight[n])
        R[n] = max(SMALLEST_COMPLIANCE, (1.0 - d) / d * diagonal)
        R[n - 2] = R[n] / impratio if elliptic else 2.0 * mu[i] ** 2 / impratio * R[n]
        R[n - 1] = R[n - 2]
        for row in range(n - 2, n):
            v_hat[row] = reference(start[row], h, b, 0.0, 0.0)
        v_hat[n] = reference(start[n], h, b, k, gap[i]) if gap[i] < 0.0 else -OUT_OF_REACH
    d = impedance(solimp, 0.0)
    for r in range(3 * nc, G.shape[0]):
        diagonal = G[r, r] if exact else weight[r]
        R[r] = max(SMALLEST_COMPLIANCE, (1.0 - d) / d * diagonal)
        v_hat[r] = reference(start[r], h, b, 0.0, 0.0)


@kernel
def solve_pyramids(G, u_free, mu, lower, upper, R, v_hat, impulse, tolerance, max_iterations):
    """Solve for shares of the edges n ± μ t_i; v̂ of an edge is that of n plus ±μ that of t_i."""
    nc, n = mu.shape[0], G.shape[0]
    ns = n - 3 * nc
    m = PYRAMID_SIDES * nc + ns
    D = np.empty((n, m))
    fill_edges(mu, PYRAMID_SIDES, ns, D)
    Dt = D.T.copy()
    low, high, beta, edge_R = np.zeros(m), np.full(m, np.inf), np.empty(m), np.empty(m)
    low[m - ns :], high[m - ns :] = lower, upper
    for i in range(nc):
        edge_R[PYRAMID_SIDES * i : PYRAMID_SIDES * (i + 1)] = R[3 * i]
    edge_R[m - ns :] = R[3 * nc :]
    split_impulse(mu, PYRAMID_SIDES, impulse, beta)
    edges = np.dot(Dt, np.dot(G, D))
    iterations, residual, converged = newton(
        Rows(edges, np.dot(Dt, u_free), np.empty(0), low, high), np.dot(Dt, v_hat), edge_R, beta,
        tolerance, max_iterations,
    )  # fmt: skip
    impulse[:] = np.dot(D, beta)
    return iterations, residual, converged


@kernel
def solve_todorov(
    delassus, u_free, start, mu, gap, lower, upper, weight, impulse, nc, n, h, tau, zeta, solimp,
    impratio, elliptic, exact, noslip, tolerance, max_iterations,
):  # fmt: skip
    """Solve the first `nc` contacts and `n` rows; return (status code, iterations, residual)."""
    G = delassus[: n * n].reshape(n, n)
    R, v_hat, mu, impulse = np.empty(n), np.empty(n), mu[:nc], impulse[:n]
    fill_rules(
        G, start, mu, gap, weight, h, tau, zeta, solimp, impratio, elliptic, exact, R, v_hat
    )
    return solve_soft(
        G, u_free[:n], mu, lower, upper, R, v_hat, impulse, elliptic, noslip, tolerance,
        max_iterations,
    )  # fmt: skip


@kernel
def solve_2014(
    delassus, u_free, start, mu, gap, lower, upper, impulse, nc, n, h, epsilon, kappa, elliptic,
    noslip, tolerance, max_iterations,
):  # fmt: skip
    """Solve with the rules of 2014; arguments and result as in `solve_todorov`."""
    G, mu = delassus[: n * n].reshape(n, n), mu[:nc]
    R, v_hat = np.empty(n), np.empty(n)
    b, k = 2.0 * (1.0 + epsilon) / kappa, (1.0 + epsilon) / kappa**2
    for r in range(n):
        R[r] = max(SMALLEST_COMPLIANCE, epsilon * G[r, r])
        v_hat[r] = reference(start[r], h, b, 0.0, 0.0)
    for i in range(nc):
        t, m = 3 * i, 3 * i + 2
        v_hat[m] = reference(start[m], h, b, k, gap[i])
        tangential = 0.5 * (R[t] + R[t + 1])
        R[t] = R[t + 1] = tangential if elliptic else R[m] + mu[i] ** 2 * tangential
    return solve_soft(
        G, u_free[:n], mu, lower, upper, R, v_hat, impulse[:n], elliptic, noslip, tolerance,
        max_iterations,
    )  # fmt: skip


@kernel
def solve_soft(
    G, u_free, mu, lower, upper, R, v_hat, impulse, elliptic, noslip, tolerance, max_iterations
):
    """Solve the rules R, v̂ of `fill_rules`; return (status code, iterations, residual)."""
    if elliptic:
        iterations, residual, converged = newton(
            Rows(G, u_free, mu, lower, upper), v_hat, R, impulse, tolerance, max_iterations
        )
        for _ in range(noslip):
            friction_sweep(Rows(G, u_free - v_hat, mu, lower, upper), impulse)
    else:
        iterations, residual, converged = solve_pyramids(
            G, u_free, mu, lower, upper, R, v_hat, impulse, tolerance, max_iterations
        )
    if converged:
        return CONVERGED, iterations, residual
    if not np.isfinite(residual):
        impulse[:] = 0.0
        return NONFINITE, iterations, residual
    return MAX_ITERATIONS, iterations, residual
