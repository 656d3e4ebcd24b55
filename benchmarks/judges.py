"""Judges of contact solutions that share no code with the solvers: each law by its own optimality.

Every judge returns a residual over what the solver's tolerance and the rounding of w = G λ + g
allow: a solution that says converged must come out at 1 or below. Residuals are impulses: what a
projection step of the size 1/λ_max of the contact's own block would still change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from judges_of_springs import (
    EPS,
    ROUNDING,
    SLACK,
    contact_weight,
    judge_compliant,
    judge_regularised,
)
from numpy.typing import NDArray

from contact_sim import Anitescu, Compliant, ContactProblem, Lcp, Ncp, Sap, Todorov
from contact_sim.contact_models._base import TimeSteppingModel

Array = NDArray[np.float64]


class Judged:
    """A problem with an answer: velocities, step sizes and rounding of every contact."""

    def __init__(self, problem: ContactProblem, impulse: Array) -> None:
        G, nc = problem.delassus, problem.n_contacts
        self.G, self.mu, self.nc, self.n = G, problem.friction, nc, len(impulse)
        self.force = impulse[: 3 * nc].reshape(-1, 3)
        self.w = (G @ impulse + problem.g)[: 3 * nc].reshape(-1, 3)
        blocks = np.array([G[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(nc)])
        self.largest = np.linalg.eigvalsh(blocks)[:, -1]
        self.rho = 1.0 / self.largest
        size = np.abs(G) @ np.abs(impulse) + np.abs(problem.g)
        worst = size[: 3 * nc].reshape(-1, 3).max(axis=1)
        self.rounding = ROUNDING * EPS * worst * self.rho
        free = np.abs(problem.g)[: 3 * nc].reshape(-1, 3).max(axis=1) * self.rho
        self.scale = max(np.abs(impulse).max(initial=0.0), free.max(initial=0.0), 1e-300)

    def over(self, residual: Array, tolerance: float) -> float:
        """Return the largest residual over what is allowed."""
        allowed = SLACK * (tolerance * self.scale + self.rounding)
        return float((residual / allowed).max(initial=0.0))


def project_on_cone(x: Array, mu: Array) -> Array:
    """Return the points of K_μ nearest to x, shape (nc, 3)."""
    t, n = np.hypot(x[:, 0], x[:, 1]), x[:, 2]
    normal = np.maximum((n + mu * t) / (1.0 + mu**2), 0.0)
    scale = np.divide(mu * normal, t, out=np.zeros_like(t), where=t > 0.0)
    out = np.column_stack([scale * x[:, 0], scale * x[:, 1], normal])
    inside = (t <= mu * n) & (n >= 0.0)
    out[inside] = x[inside]
    return out


def natural_map(judged: Judged, shift: float) -> Array:
    """Return |λ_i − Proj(λ_i − ρ_i (w_i + (1 − κ) Γ(w_i)))|, κ = 1 − `shift`, shape (nc,)."""
    w = judged.w.copy()
    w[:, 2] += shift * judged.mu * np.hypot(w[:, 0], w[:, 1])
    step = judged.force - judged.rho[:, None] * w
    return np.asarray(np.linalg.norm(judged.force - project_on_cone(step, judged.mu), axis=1))


def judge_ncp(model: Ncp, problem: ContactProblem, impulse: Array) -> float:
    """Signorini, Coulomb and maximum dissipation; RaiSim's rule has another direction of slip."""
    judged, tolerance = Judged(problem, impulse), model.parameters.tolerance
    if model.parameters.solver == 'raisim':
        return judged.over(raisim_residual(judged), tolerance)
    return judged.over(natural_map(judged, 1.0), tolerance)


def raisim_residual(judged: Judged) -> Array:
    """RaiSim: Signorini; what slips is on the cone, where it leaves the least energy."""
    force, w, mu = judged.force, judged.w, judged.mu
    normal = np.abs(force[:, 2] - np.maximum(force[:, 2] - judged.rho * w[:, 2], 0.0))
    size = np.hypot(force[:, 0], force[:, 1])
    outside = np.maximum(size - mu * force[:, 2], 0.0)
    inside = np.maximum(mu * force[:, 2] - size, 0.0)
    slip = judged.rho * np.hypot(w[:, 0], w[:, 1])
    residual: Array = np.maximum.reduce([normal, outside, np.minimum(slip, inside)])
    for i in np.flatnonzero((slip > 1e-6 * judged.scale) & (size > 1e-6 * judged.scale)):
        if energy_left(judged, int(i)) > (1.0 + 1e-6) * least_energy(judged, int(i)):
            residual[i] = judged.scale
    return residual


def energy_left(judged: Judged, i: int) -> float:
    """Return ½ w_iᵀ G_ii⁻¹ w_i."""
    block = judged.G[3 * i : 3 * i + 3, 3 * i : 3 * i + 3]
    return float(0.5 * judged.w[i] @ np.linalg.solve(block, judged.w[i]))


def least_energy(judged: Judged, i: int) -> float:
    """Return the least of the same over directions on the cone with w_n = 0 against the slip."""
    block = judged.G[3 * i : 3 * i + 3, 3 * i : 3 * i + 3]
    c, mu, least = judged.w[i] - block @ judged.force[i], judged.mu[i], np.inf
    for angle in 2.0 * np.pi * np.arange(256) / 256:
        d = np.array([np.cos(angle), np.sin(angle), 1.0 / mu])
        denominator = block[2] @ d
        radius = -c[2] / denominator if denominator > 0.0 else -1.0
        left = c + radius * block @ d
        if radius > 0.0 and left[:2] @ d[:2] <= 0.0:
            least = min(least, float(0.5 * left @ np.linalg.solve(block, left)))
    return least


def judge_anitescu(model: Anitescu, problem: ContactProblem, impulse: Array) -> float:
    """Minimum of ½ λᵀ G λ + gᵀ λ over circular cones or pyramids."""
    judged, p = Judged(problem, impulse), model.parameters
    if p.sides == 0:
        return judged.over(natural_map(judged, 0.0), p.tolerance)
    angles = 2.0 * np.pi * np.arange(p.sides) / p.sides
    edges = np.column_stack([np.cos(angles), np.sin(angles)])
    # w·(n + μ d_j) ≥ 0, λ in the pyramid, λ·w = 0
    speed = judged.w[:, 2:] + judged.mu[:, None] * (judged.w[:, :2] @ edges.T)
    below = np.maximum(-speed.min(axis=1), 0.0) * judged.rho / (1.0 + judged.mu)
    work = np.abs(np.sum(judged.force * judged.w, axis=1)) * judged.rho / judged.scale
    residual = np.maximum.reduce([below, work, outside_polygon(judged, p.sides)])
    return judged.over(residual, p.sides * p.tolerance)


def outside_polygon(judged: Judged, sides: int) -> Array:
    """Return how far λ_t lies outside the polygon μ λ_n conv(d_j), and λ_n below zero, (nc,)."""
    middle = 2.0 * np.pi * (np.arange(sides) + 0.5) / sides
    outward = np.column_stack([np.cos(middle), np.sin(middle)])
    reach = (judged.force[:, :2] @ outward.T).max(axis=1)
    bound = np.cos(np.pi / sides) * judged.mu * judged.force[:, 2]
    return np.asarray(np.maximum(np.maximum(reach - bound, -judged.force[:, 2]), 0.0))


def judge_lcp(model: Lcp, problem: ContactProblem, impulse: Array) -> float:
    """Signorini, friction in the pyramid that takes out most: (T19), or each tangent by itself."""
    judged, p = Judged(problem, impulse), model.parameters
    force, w, mu, rho = judged.force, judged.w, judged.mu, judged.rho
    normal = np.abs(force[:, 2] - np.maximum(force[:, 2] - rho * w[:, 2], 0.0))
    if p.friction_law == 'box':
        bound = (mu * force[:, 2])[:, None]
        step = np.clip(force[:, :2] - rho[:, None] * w[:, :2], -bound, bound)
        return judged.over(
            np.maximum(normal, np.abs(force[:, :2] - step).max(axis=1)), BOX_TOLERANCE
        )
    angles = 2.0 * np.pi * np.arange(p.sides) / p.sides
    against = -(w[:, :2] @ np.column_stack([np.cos(angles), np.sin(angles)]).T).min(axis=1)
    most = mu * force[:, 2] * np.maximum(against, 0.0)
    lacks = np.maximum(most + np.sum(force[:, :2] * w[:, :2], axis=1), 0.0) * rho / judged.scale
    residual = np.maximum.reduce([normal, lacks, outside_polygon(judged, p.sides)])
    return judged.over(residual, LCP_TOLERANCE)


LCP_TOLERANCE, BOX_TOLERANCE = 1e-9, 1e-8
"""Tolerance of Lemke's method and of the rounds of boxes, which have no parameter for it."""


def judge_soft(
    problem: ContactProblem, impulse: Array, R: Array, v_hat: Array, tolerance: float
) -> float:
    """Minimum of ½ γᵀ (G + R) γ + γᵀ (u_f − v̂) over the cones."""
    judged, nc = Judged(problem, impulse), problem.n_contacts
    u = problem.delassus @ impulse + problem.free_velocity - v_hat
    s = (u + R * impulse)[: 3 * nc].reshape(-1, 3)
    rho = 1.0 / (judged.largest + R[: 3 * nc].reshape(-1, 3).max(axis=1))
    step = judged.force - rho[:, None] * s
    residual = np.linalg.norm(judged.force - project_on_cone(step, judged.mu), axis=1)
    # the solver stops in the norm of G: what that allows one contact
    whole = np.linalg.eigvalsh(problem.delassus)[-1]
    spread = np.sqrt(whole * (impulse @ problem.delassus @ impulse))
    rows = np.abs(problem.free_velocity - v_hat)[: 3 * nc].reshape(-1, 3).max(axis=1)
    allowed = 2.0 * tolerance * spread * rho
    allowed += judged.rounding + ROUNDING * EPS * rows * rho
    return float((residual / (SLACK * allowed + 1e-300)).max(initial=0.0))


def judge_sap(model: Sap, problem: ContactProblem, impulse: Array) -> float:
    """SAP's cost with R and v̂ of theory 2.3, or the gradient of those of 2023."""
    p, h = model.parameters, problem.time_step
    if p.approximation != 'sap':
        return judge_regularised(model, problem, impulse)
    R, v_hat = np.empty(problem.n_rows), np.zeros(problem.n_rows)
    for i, gap in enumerate(problem.gap):
        w = contact_weight(model, problem, i)
        soft = 1.0 / (h * p.stiffness * (h + p.relaxation_time))
        R[3 * i : 3 * i + 3] = p.sigma * w, p.sigma * w, max(p.beta**2 * w / (4 * np.pi**2), soft)
        v_hat[3 * i + 2] = -gap / (h + p.relaxation_time)
    return judge_soft(problem, impulse, R, v_hat, p.tolerance)


def judge_pyramids(
    problem: ContactProblem, impulse: Array, R: Array, v_hat: Array, tolerance: float
) -> float:
    """Minimum of ½ γᵀ G γ + γᵀ (u_f − v̂) + ½ R |β|², γ = D β with β ≥ 0 on the edges n ± μ t_i.

    R is that of the edges of every contact, in all of its rows. Of the shares β of an impulse the
    smallest count; they exist where it lies in the pyramid.
    """
    judged, nc = Judged(problem, impulse), problem.n_contacts
    u = problem.delassus @ impulse + problem.free_velocity - v_hat
    whole = np.linalg.eigvalsh(problem.delassus)[-1]
    spread = np.sqrt(whole * (impulse @ problem.delassus @ impulse))
    rows = np.abs(problem.free_velocity - v_hat)[: 3 * nc].reshape(-1, 3).max(axis=1)
    worst = 0.0
    for i in range(nc):
        mu, force = problem.friction[i], judged.force[i]
        D = np.array([[mu, -mu, 0, 0], [0, 0, mu, -mu], [1, 1, 1, 1]])
        beta = np.linalg.pinv(D) @ force
        turn = np.array([1.0, 1.0, -1.0, -1.0])  # D turn = 0
        beta += turn * np.clip(0.0, -min(beta[:2]), max(min(beta[2:]), -min(beta[:2])))
        z = D.T @ u[3 * i : 3 * i + 3] + R[3 * i] * beta
        rho = 1.0 / (judged.largest[i] * np.linalg.norm(D, 2) ** 2 + R[3 * i])
        residual = np.abs(beta - np.maximum(beta - rho * z, 0.0)).max()
        allowed = 2.0 * tolerance * spread * rho * np.linalg.norm(D, 2)
        allowed += judged.rounding[i] * max(1.0, 1.0 / mu) + ROUNDING * EPS * rows[i] * rho
        worst = max(worst, residual / (SLACK * allowed + 1e-300))
    return float(worst)


LEAST_FRICTION = 1e-5
"""MuJoCo's [-]."""


def judge_todorov(model: Todorov, problem: ContactProblem, impulse: Array) -> float:
    """MuJoCo's dual with R and a_ref of theory 2.4, or that of 2014 (T21)."""
    p, h = model.parameters, problem.time_step
    problem = replace(problem, friction=np.maximum(problem.friction, LEAST_FRICTION))
    start, diagonal, weight = (
        problem.start_velocity, np.diag(problem.delassus), problem.inverse_weight,
    )  # fmt: skip
    elliptic = p.cone == 'elliptic'
    R, v_hat = np.empty(problem.n_rows), np.empty(problem.n_rows)
    for i, gap in enumerate(problem.gap):
        t, n = slice(3 * i, 3 * i + 2), 3 * i + 2
        mu = problem.friction[i]
        if p.form == '2014':
            b = 2.0 * (1.0 + p.regularisation) / p.error_reduction_time
            k = (1.0 + p.regularisation) / p.error_reduction_time**2
            R[t], R[n] = p.regularisation * diagonal[t].mean(), p.regularisation * diagonal[n]
            edge = R[n] + mu**2 * R[n - 1]
        else:
            tau = max(p.time_constant, 2.0 * h) if p.refsafe else p.time_constant
            x = min(abs(gap) / p.impedance_width, 1.0)
            y = 2.0 * x**2 if x <= 0.5 else 1.0 - 2.0 * (1.0 - x) ** 2  # midpoint ½, power 2
            d = p.impedance_start + y * (p.impedance_end - p.impedance_start)
            b = 2.0 / (p.impedance_end * tau)
            k = d / (p.impedance_end * tau * p.damping_ratio) ** 2
            normal, along = (
                (diagonal[n], diagonal[n - 2]) if p.diagonal == 'exact' else 2 * (weight[n],)
            )
            R[n] = (1.0 - d) / d * normal
            R[t] = R[n] / p.impratio
            edge = 2.0 * mu**2 / p.impratio * (1.0 - d) / d * (normal + mu**2 * along)
        if not elliptic:
            R[3 * i : 3 * i + 3] = edge
        v_hat[t] = start[t] * (1.0 - h * b)
        v_hat[n] = start[n] * (1.0 - h * b) - h * k * gap
    judge = judge_soft if elliptic else judge_pyramids
    if p.form == '2014':
        return judge(problem, impulse, R, v_hat, p.tolerance)
    acts = np.repeat(problem.gap < 0.0, 3)
    if np.abs(impulse[~acts]).max(initial=0.0) > 0.0:
        return np.inf
    if not acts.any():
        return 0.0
    return judge(part_of(problem, acts), impulse[acts], R[acts], v_hat[acts], p.tolerance)


def part_of(problem: ContactProblem, rows: NDArray[np.bool_]) -> ContactProblem:
    """Return the problem of some contacts, the impulses of the others being zero."""
    return ContactProblem(
        delassus=problem.delassus[np.ix_(rows, rows)], free_velocity=problem.free_velocity[rows],
        bias=problem.bias[rows], friction=problem.friction[rows[::3]], lower=problem.lower,
        upper=problem.upper, gap=problem.gap[rows[::3]],
        start_velocity=problem.start_velocity[rows], time_step=problem.time_step,
        inertia=problem.inertia, jacobian=problem.jacobian[rows], velocity=problem.velocity,
        free_motion=problem.free_motion,
    )  # fmt: skip


JUDGES: dict[type[TimeSteppingModel], Callable[..., float]] = {
    Ncp: judge_ncp,
    Anitescu: judge_anitescu,
    Lcp: judge_lcp,
    Sap: judge_sap,
    Todorov: judge_todorov,
    Compliant: judge_compliant,
}
"""Model class to its judge, called with (model, problem, impulse)."""
