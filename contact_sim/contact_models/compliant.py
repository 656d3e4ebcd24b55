"""Compliant: springs and dampers in the ground, friction that grows with the slip speed.

Normal force, x = −φ penetration, ẋ = −u_n (physics.md 2.1, T10):

    linear          k x₊
    kelvin_voigt    (k x + d ẋ)₊ for x > 0,   d = 2 ζ √(k/G_nn)
    hunt_crossley   k x₊^p (1 + a ẋ)₊

Friction −μ(s) f_n û with s = |u_t|, regularised below v_s:

    piecewise       μ min(s/v_s, 1)
    tanh            μ tanh(s/v_s)
    stribeck        rises as μ_s x (2 − x), x = s/v_s, and falls smoothly to μ from v_s to 3 v_s

`implicit` evaluates the force at the end of the step, x⁺ = −(φ + h u_n⁺), by Newton on
λ = h f(u_f + G λ): stable at any stiffness. `explicit` evaluates it at the start: the textbook
law, which explodes once h ω_max exceeds 2 (`stiffness_ratio`), friction first.

A stiffness of 0 is sized from the wanted penetration under the robot's weight.

[Hunt & Crossley 1975], [Armstrong-Hélouvry 1994].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.contact.problem import Array, ContactProblem
from contact_sim.contact.solution import CONVERGED, MAX_ITERATIONS, NONFINITE, ContactSolution
from contact_sim.contact.workspace import ContactRows, Workspace
from contact_sim.contact_models.law import Law
from contact_sim.contact_models.protocol import Stepper
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.cone_active_set import eliminate
from contact_sim.solvers.jit import kernel

NORMAL_LAWS = ('linear', 'kelvin_voigt', 'hunt_crossley')
FRICTION_LAWS = ('piecewise', 'tanh', 'stribeck')
LINEAR, KELVIN_VOIGT, HUNT_CROSSLEY = range(3)
PIECEWISE, TANH, STRIBECK = range(3)
HALVINGS = 12


@dataclass(frozen=True)
class CompliantParameters(Parameters):
    """Material of the ground."""

    normal_law: str = parameter(
        'hunt_crossley', '', 'law of the normal force', choices=NORMAL_LAWS, live=True
    )
    friction_law: str = parameter(
        'tanh', '', 'law of the friction force', choices=FRICTION_LAWS, live=True
    )
    stiffness: float = parameter(
        0.0, 'N/m^p', 'k of every contact point; 0: from `penetration`', at_least=0.0, live=True
    )
    penetration: float = parameter(
        1e-3, 'm', 'depth wanted when all contact points share the weight', above=0.0, live=True
    )
    exponent: float = parameter(
        1.5, '-', 'p of hunt_crossley; 1.5: Hertz', at_least=1.0, at_most=3.0, live=True
    )
    dissipation: float = parameter(
        1.0, 's/m', 'a of hunt_crossley; rebound is never faster than 1/a', at_least=0.0, live=True
    )
    damping_ratio: float = parameter(0.5, '-', 'zeta of kelvin_voigt', at_least=0.0, live=True)
    slip_speed: float = parameter(
        1e-3, 'm/s', 'v_s below which friction is regularised', above=0.0, live=True
    )
    static_ratio: float = parameter(
        1.0, '-', 'static over dynamic friction, for stribeck', at_least=1.0, at_most=10.0,
        live=True,
    )  # fmt: skip
    integration: str = parameter(
        'implicit', '', 'when the force is evaluated: end or start of the step',
        choices=('implicit', 'explicit'), live=True,
    )  # fmt: skip
    tolerance: float = parameter(
        1e-9, '-', 'force residual relative to the largest impulse', above=0.0, below=1.0,
        live=True,
    )  # fmt: skip
    max_iterations: int = parameter(
        500, '-', 'Newton iterations and their halvings', at_least=1, at_most=100000, live=True
    )


class Compliant(Law):
    """Spring-damper contact with regularised friction.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'compliant'
    parameter_class: ClassVar[type[Parameters]] = CompliantParameters

    def __init__(self, **parameters: float | str) -> None:
        self.parameters: CompliantParameters = CompliantParameters(**parameters)  # type: ignore[arg-type]
        self._stiffness = self.parameters.stiffness

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law, sized for the robot if no stiffness is given."""
        p = self.parameters
        if p.stiffness == 0.0:
            weight = float(np.linalg.norm(workspace.record.gravity) * workspace.terms.total_mass)
            share = weight / max(workspace.sizes.nc, 1)
            power = p.exponent if p.normal_law == 'hunt_crossley' else 1.0
            self._stiffness = share / p.penetration**power
        return super().bind(workspace)

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, 0): the force may start within the step, never ahead of it."""
        return (h if self.parameters.integration == 'implicit' else 0.0), 0.0

    def solve(self, problem: ContactProblem, guess: Array | None = None) -> ContactSolution:
        """Return the impulses that answer `problem`, starting from `guess` [N s].

        Raises:
            InvalidInput: no stiffness was given, and there is no robot to size it for.
        """
        if self._stiffness == 0.0:
            raise InvalidInput(
                'CompliantParameters.stiffness = 0: give one; only a Simulator can size it'
            )
        return super().solve(problem, guess)

    def stiffness_ratio(self, problem: ContactProblem) -> float:
        """Return h ω_max, ω_max² = k λ_max(G_nn): above 2 the explicit law is unstable.

        For hunt_crossley with the stiffness of its secant at the wanted penetration.
        """
        p, n = self.parameters, slice(2, 3 * problem.n_contacts, 3)
        power = p.exponent if p.normal_law == 'hunt_crossley' else 1.0
        stiffness = self._stiffness * p.penetration ** (power - 1.0)
        largest = np.linalg.eigvalsh(problem.delassus[n, n])[-1] if problem.n_contacts else 0.0
        return float(problem.time_step * np.sqrt(stiffness * largest))

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        return solve_compliant(  # type: ignore[no-any-return]
            rows.delassus, rows.free_velocity, rows.start_velocity, rows.friction, rows.gap,
            rows.lower, rows.upper, rows.impulse, rows.nc, rows.n, rows.time_step,
            NORMAL_LAWS.index(p.normal_law), FRICTION_LAWS.index(p.friction_law), self._stiffness,
            p.exponent, p.dissipation, p.damping_ratio, p.slip_speed, p.static_ratio,
            p.integration == 'implicit', p.tolerance, p.max_iterations,
        )  # fmt: skip


@kernel
def normal_force(law, x, speed, k, exponent, dissipation, damping):
    """Return f_n and its derivatives to the penetration x and to its rate ẋ = `speed`."""
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    if law == LINEAR:
        return k * x, k, 0.0
    if law == KELVIN_VOIGT:
        force = k * x + damping * speed
        return (force, k, damping) if force > 0.0 else (0.0, 0.0, 0.0)
    spring, viscous = k * x**exponent, 1.0 + dissipation * speed
    if viscous <= 0.0:
        return 0.0, 0.0, 0.0
    return spring * viscous, exponent * spring / x * viscous, spring * dissipation


@kernel
def friction_coefficient(law, s, mu, v_s, ratio):
    """Return μ(s) and dμ/ds at slip speed s."""
    x = s / v_s
    if law == PIECEWISE:
        return (mu * x, mu / v_s) if x < 1.0 else (mu, 0.0)
    if law == TANH:
        value = np.tanh(x)
        return mu * value, mu * (1.0 - value * value) / v_s
    static = ratio * mu
    if x < 1.0:
        return static * x * (2.0 - x), 2.0 * static * (1.0 - x) / v_s
    if x < 3.0:
        y = 0.5 * (x - 1.0)
        fall = y * y * (3.0 - 2.0 * y)
        return static - (static - mu) * fall, -(static - mu) * 3.0 * y * (1.0 - y) / v_s
    return mu, 0.0


@kernel
def contact_forces(
    G, u, mu, gap, h, normal_law, friction_law, k, exponent, dissipation, zeta, v_s, ratio,
    implicit, impulse, slope,
):  # fmt: skip
    """Fill h f and its derivative to u, a 3x3 block per contact in `slope` (n, 3)."""
    ahead = h if implicit else 0.0
    for i in range(mu.shape[0]):
        r = 3 * i
        u1, u2, un = u[r], u[r + 1], u[r + 2]
        damping = 2.0 * zeta * np.sqrt(k / G[r + 2, r + 2])
        f, f_x, f_rate = normal_force(
            normal_law, -(gap[i] + ahead * un), -un, k, exponent, dissipation, damping
        )
        d_f = -(ahead * f_x + f_rate)
        s = np.sqrt(u1 * u1 + u2 * u2)
        m, d_m = friction_coefficient(friction_law, s, mu[i], v_s, ratio)
        over = m / s if s > 1e-12 * v_s else d_m  # μ(s)/s
        d1, d2 = (u1 / s, u2 / s) if s > 0.0 else (0.0, 0.0)
        impulse[r], impulse[r + 1], impulse[r + 2] = -h * over * f * u1, -h * over * f * u2, h * f
        along, across = h * f * d_m, h * f * over
        slope[r, 0] = -(along * d1 * d1 + across * (1.0 - d1 * d1))
        slope[r, 1] = slope[r + 1, 0] = -(along - across) * d1 * d2
        slope[r + 1, 1] = -(along * d2 * d2 + across * (1.0 - d2 * d2))
        slope[r, 2], slope[r + 1, 2] = -h * over * u1 * d_f, -h * over * u2 * d_f
        slope[r + 2, 0] = slope[r + 2, 1] = 0.0
        slope[r + 2, 2] = h * d_f


@kernel
def joint_friction(u, lower, upper, nc, v_s, impulse, slope):
    """Fill the dry-friction rows: the box, regularised below v_s [rad/s] like the ground."""
    for k in range(lower.shape[0]):
        r = 3 * nc + k
        value = np.tanh(u[r] / v_s)
        size = 0.5 * (upper[k] - lower[k])
        impulse[r] = 0.5 * (upper[k] + lower[k]) - size * value
        slope[r, 0] = -size * (1.0 - value * value) / v_s


@kernel
def fill_newton_matrix(G, slope, nc, A):
    """Fill A = I − (∂ h f/∂u) G."""
    n = G.shape[0]
    for r in range(n):
        b = 3 * (r // 3)
        for c in range(n):
            if r >= 3 * nc:
                A[r, c] = -slope[r, 0] * G[r, c]
            else:
                A[r, c] = -(slope[r, 0] * G[b, c] + slope[r, 1] * G[b + 1, c])
                A[r, c] -= slope[r, 2] * G[b + 2, c]
        A[r, r] += 1.0


@kernel
def slope_times(slope, u, nc):
    """Return (∂ h f/∂u) u."""
    result = np.empty(u.shape[0])
    for r in range(u.shape[0]):
        b = 3 * (r // 3)
        if r >= 3 * nc:
            result[r] = slope[r, 0] * u[r]
        else:
            result[r] = slope[r, 0] * u[b] + slope[r, 1] * u[b + 1] + slope[r, 2] * u[b + 2]
    return result


@kernel
def solve_compliant(
    delassus, u_free, start, mu, gap, lower, upper, impulse, nc, n, h, normal_law, friction_law, k,
    exponent, dissipation, zeta, v_s, ratio, implicit, tolerance, max_iterations,
):  # fmt: skip
    """Solve the first `nc` contacts and `n` rows; return (status code, iterations, residual)."""
    G, mu, impulse, u_free = delassus[: n * n].reshape(n, n), mu[:nc], impulse[:n], u_free[:n]
    force, slope, A, step = np.empty(n), np.zeros((n, 3)), np.empty((n, n)), np.empty(n)
    if not implicit:
        contact_forces(
            G, start, mu, gap, h, normal_law, friction_law, k, exponent, dissipation, zeta, v_s,
            ratio, False, impulse, slope,
        )  # fmt: skip
        joint_friction(start, lower, upper, nc, v_s, impulse, slope)
        return CONVERGED, 1, 0.0
    # first linearise at the velocity before the step: of several answers, the one that it leads to
    contact_forces(
        G, start, mu, gap, h, normal_law, friction_law, k, exponent, dissipation, zeta, v_s, ratio,
        True, force, slope,
    )  # fmt: skip
    joint_friction(start, lower, upper, nc, v_s, force, slope)
    fill_newton_matrix(G, slope, nc, A)
    trial = force + slope_times(slope, u_free - start[:n], nc)
    if not eliminate(A, trial, n):
        return NONFINITE, 0, np.inf
    x, alpha, best = trial.copy(), 1.0, np.inf
    for count in range(max_iterations + 1):
        u = u_free + np.dot(G, trial)
        contact_forces(
            G, u, mu, gap, h, normal_law, friction_law, k, exponent, dissipation, zeta, v_s, ratio,
            True, force, slope,
        )  # fmt: skip
        joint_friction(u, lower, upper, nc, v_s, force, slope)
        error = np.sqrt(np.sum((trial - force) ** 2))
        if not np.isfinite(error):
            impulse[:] = 0.0
            return NONFINITE, count, error
        if error <= tolerance * max(np.abs(force).max(), np.abs(trial).max(), 1e-12):
            impulse[:] = force
            return CONVERGED, count, error
        if error > best and alpha > 0.5**HALVINGS:
            alpha *= 0.5
            trial[:] = x + alpha * step
            continue
        x[:] = trial
        best, alpha = error, 1.0
        step[:] = force - x
        fill_newton_matrix(G, slope, nc, A)
        if not eliminate(A, step, n):
            break
        trial[:] = x + step
    impulse[:] = x  # the iterate closest to its own force
    return MAX_ITERATIONS, max_iterations, best
