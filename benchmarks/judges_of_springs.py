"""Judges of laws that give the impulse as a function of velocity: λ = F(u_f + G λ).

Each is judged by the distance to the answer, which Newton's method finds next to the impulse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim import Compliant, ContactProblem, Sap

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)
ROUNDING = 64.0
SLACK = 4.0
"""Judges may measure with another norm than the solver: four times the tolerance passes."""
NEWTON_STEPS = 20


def judge_regularised(model: Sap, problem: ContactProblem, impulse: Array) -> float:
    """λ = γ(u_f + G λ) of lagged and similar, judged by the distance to the answer λ*.

    The solver returns λ = γ(u_f + G x) for an x from which it differs by e. To first order
    λ* − λ = ((I + H G)⁻¹ − I) e, and I + H G is symmetric and ≥ I in the norm of G, the one in
    which the solver measures e: there |λ* − λ| ≤ |e|.
    """
    G = problem.delassus
    norm = np.sqrt(np.linalg.eigvalsh(G)[-1])  # |x| in the norm of G is at most this |x|
    tolerance = 2.0 * model.parameters.tolerance * np.sqrt(impulse @ G @ impulse)
    found = answer_near(
        problem, impulse, lambda u: regularised_forces(model, problem, u), tolerance / norm
    )
    if found is None:
        return np.inf
    distance, allowed = found.impulse - impulse, tolerance + norm * found.rounding
    return float(np.sqrt(abs(distance @ G @ distance)) / (SLACK * allowed + 1e-300))


def regularised_forces(model: Sap, problem: ContactProblem, u: Array) -> tuple[Array, Array]:
    """Return γ of lagged or similar at velocities u (3 nc,), and its derivative by differences."""
    p, h, mu = model.parameters, problem.time_step, problem.friction
    acts = (problem.gap <= 0.0) | p.acts_ahead
    start = problem.start_velocity[2::3]
    before = h * p.stiffness * np.maximum(-problem.gap, 0.0)
    before *= np.maximum(1.0 - p.dissipation * start, 0.0)
    w = np.array([contact_weight(model, problem, i) for i in range(problem.n_contacts)])
    eps = np.maximum(p.stiction_tolerance, mu * p.sigma * w * before)

    def force(u: Array) -> Array:
        size = np.sqrt(u[:, 0] ** 2 + u[:, 1] ** 2 + eps**2)
        lagged = p.approximation == 'lagged'
        z = u[:, 2] if lagged else u[:, 2] - mu * (size - eps)
        elastic = p.stiffness * np.maximum(-(problem.gap + h * z), 0.0)
        normal = acts * h * elastic * np.maximum(1.0 - p.dissipation * z, 0.0)
        bound = mu * (before if lagged else normal)
        return np.column_stack([-(bound / size)[:, None] * u[:, :2], normal])

    return with_slope(force, u, 1e-6 * p.stiction_tolerance)


def judge_compliant(model: Compliant, problem: ContactProblem, impulse: Array) -> float:
    """λ = h f at the end of the step: Hunt-Crossley springs and tanh friction (T10).

    Judged is the distance to the answer λ*, for a residual of stiff springs says little. The
    solver returns λ = h f(u_f + G λ') for a λ' from which it differs by e, |e| within its
    tolerance. With A = I − (∂ h f/∂u) G at the answer, λ* − λ' = A⁻¹ e and λ* − λ = (A⁻¹ − I) e
    to first order, so that |λ* − λ| ≤ (1 + |A⁻¹|) |e|: friction is not symmetric, it turns and
    stretches. Newton's method finds λ*: more than one step, since G e may be as large as the slip
    speed, over which tanh bends.
    """
    tolerance = model.parameters.tolerance * max(np.abs(impulse).max(initial=0.0), 1e-12)
    found = answer_near(problem, impulse, lambda u: spring_forces(model, problem, u), tolerance)
    if found is None:
        return np.inf
    amplified = 1.0 + np.linalg.norm(np.linalg.inv(found.matrix), 2)
    allowed = amplified * tolerance + found.rounding
    return float(np.linalg.norm(found.impulse - impulse) / (SLACK * allowed))


def spring_forces(model: Compliant, problem: ContactProblem, u: Array) -> tuple[Array, Array]:
    """Return h f at contact velocities u (3 nc,), and its derivative by central differences."""
    p, h = model.parameters, problem.time_step

    def force(u: Array) -> Array:
        x = np.maximum(-(problem.gap + h * u[:, 2]), 0.0)
        normal = h * p.stiffness * x**p.exponent * np.maximum(1.0 - p.dissipation * u[:, 2], 0.0)
        slip = np.hypot(u[:, 0], u[:, 1])
        over = np.where(slip > 0.0, np.tanh(slip / p.slip_speed) / np.maximum(slip, 1e-300), 0.0)
        along = -(problem.friction * normal * over)[:, None] * u[:, :2]
        return np.column_stack([along, normal])

    return with_slope(force, u, 1e-6 * p.slip_speed)


@dataclass(frozen=True)
class Answer:
    """The answer λ* of λ = F(u_f + G λ) next to an impulse."""

    impulse: Array
    """λ* [N s], shape (n,)."""
    matrix: Array
    """A = I − F' G there, shape (n, n)."""
    rounding: float
    """What rounding leaves of λ* [N s]."""


def answer_near(
    problem: ContactProblem, impulse: Array, law: Callable[[Array], tuple[Array, Array]],
    tolerance: float,
) -> Answer | None:  # fmt: skip
    """Return Newton's answer from `impulse` on, far below `tolerance` [N s], or None.

    `law` returns F(u) and its derivative F'.
    """
    G, answer = problem.delassus, impulse.copy()
    size = np.abs(G) @ np.abs(impulse) + np.abs(problem.free_velocity)
    for _ in range(NEWTON_STEPS):
        force, slope = law(G @ answer + problem.free_velocity)
        A = np.eye(len(impulse)) - slope @ G
        step = np.linalg.solve(A, force - answer)
        answer += step
        rounding = ROUNDING * EPS * np.linalg.norm(np.linalg.solve(A, slope), 2) * size.max()
        if np.linalg.norm(step) <= 1e-3 * tolerance + rounding:
            return Answer(answer, A, float(rounding))
    return None


def with_slope(force: Callable[[Array], Array], u: Array, delta: float) -> tuple[Array, Array]:
    """Return force(u), contact by contact, and its derivative to u (3 nc,) by differences."""
    each = u.reshape(-1, 3)
    slope = np.zeros((u.size, u.size))
    for a in range(3):
        shift = np.zeros(3)
        shift[a] = delta
        change = (force(each + shift) - force(each - shift)) / (2.0 * delta)
        for i in range(len(each)):
            slope[3 * i : 3 * i + 3, 3 * i + a] = change[i]
    return force(each).ravel(), slope


def contact_weight(model: Sap, problem: ContactProblem, i: int) -> float:
    """Return w of contact `i`."""
    rows, G = slice(3 * i, 3 * i + 3), problem.delassus
    if model.parameters.weight == 'delassus':
        return float(np.linalg.norm(G[rows, rows])) / 3.0
    J = problem.jacobian[rows]
    return float(np.linalg.norm(J / np.diag(problem.inertia) @ J.T)) / 3.0
