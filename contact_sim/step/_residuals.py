"""The judge: one definition of each residual for all models; no solver grades itself.

λ is the impulse on the robot [N s], u⁺ = G λ + u_f, w = u⁺ + b with the bias of the law,
Γ(w) = (0, 0, μ |w_t|). theory 2.15.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.errors import InvalidInput
from contact_sim.solvers._cone_problem import Rows, fill_rho, fill_velocity, natural_map_at
from contact_sim.solvers._jit import kernel
from contact_sim.step._problem import ContactProblem

TOUCHING = 1e-9
"""Gap above which a contact counts as apart [m]."""


class LawResiduals(NamedTuple):
    """Residuals of impulses as an answer to the laws of contact; zero is perfect."""

    signorini: float
    """max |λ_n w_n| [J]."""
    cone: float
    """max (|λ_t| − μ λ_n)₊ [N s]."""
    dissipation: float
    """max (μ λ_n |u_t| + λ_t·u_t) [J]: what maximum dissipation would dissipate in addition."""
    ncp: float
    """max |λ_i − Proj(λ_i − ρ_i (w_i + Γ(w_i)))| [N s], ρ_i = 1/λ_max(G_ii), over all blocks:
    natural map."""
    dual: float
    """max dist(w_i + Γ(w_i), K*_μ) [m/s]."""
    interval: float
    """max distance of an interval impulse from [lower, upper] [N s]."""
    dissipated: float
    """D = T(v⁺) − T(v_f) = ½ λᵀ(u_f + u⁺) [J]; ≤ −λᵀ b for a passive law."""
    bias_work: float
    """−λᵀ b [J]: work of the gap, stabilisation and restitution terms."""


LAW_RESIDUALS = len(LawResiduals._fields)


@checked
def law_residuals(problem: ContactProblem, impulse: Array) -> LawResiduals:
    """Judge `impulse` (n,) as an answer to `problem`.

    Raises:
        InvalidInput: impulses of the wrong size.
    """
    if np.shape(impulse) != (problem.n_rows,):
        raise InvalidInput(f'impulse: shape {np.shape(impulse)}, expected {(problem.n_rows,)}')
    rows = Rows(
        np.array(problem.delassus, order='C'), problem.g, np.array(problem.friction),
        np.array(problem.lower), np.array(problem.upper),
    )  # fmt: skip
    out, scratch = np.zeros(LAW_RESIDUALS), np.zeros((2, problem.n_rows))
    judge_rows(rows, np.array(problem.bias), np.array(impulse, dtype=float), *scratch, out)
    return LawResiduals(*out.tolist())


@kernel
def judge_rows(rows, bias, impulse, w, rho, out):
    """Fill the fields of LawResiduals, in their order.

    Args:
        rows: the problem, g = u_f + b.
        bias: b [m/s], shape (n,).
        impulse: λ [N s], shape (n,).
        w: scratch, shape (n,).
        rho: scratch, shape (n,).
        out: out, shape (at least 8,).
    """
    for k in range(LAW_RESIDUALS):
        out[k] = 0.0
    if impulse.shape[0] == 0:
        return
    fill_velocity(rows, impulse, w)
    fill_rho(rows, rho)
    for r in range(rho.shape[0]):
        if rho[r] == np.inf:  # nothing can move the row: no impulse is nearer to the law
            rho[r] = 0.0
    nc = rows.friction.shape[0]
    for i in range(nc):
        judge_contact(rows.friction[i], bias, impulse, w, 3 * i, out)
    for k in range(rows.lower.shape[0]):
        x = impulse[3 * nc + k]
        out[5] = max(out[5], rows.lower[k] - x, x - rows.upper[k])
    out[3] = natural_map_at(rows, impulse, w, rho, 0.0)
    for r in range(impulse.shape[0]):
        out[6] += 0.5 * impulse[r] * (rows.g[r] + w[r] - 2.0 * bias[r])
        out[7] -= impulse[r] * bias[r]


@kernel
def judge_contact(mu, bias, impulse, w, r, out):
    """Raise Signorini, cone, dissipation and dual residual to those of the contact at row `r`."""
    t1, t2, n = impulse[r], impulse[r + 1], impulse[r + 2]
    w1, w2, wn = w[r], w[r + 1], w[r + 2]
    u1, u2 = w1 - bias[r], w2 - bias[r + 1]
    tangential = np.sqrt(w1 * w1 + w2 * w2)
    out[0] = max(out[0], abs(n * wn))
    out[1] = max(out[1], np.sqrt(t1 * t1 + t2 * t2) - mu * n)
    out[2] = max(out[2], mu * n * np.sqrt(u1 * u1 + u2 * u2) + t1 * u1 + t2 * u2)
    out[4] = max(out[4], distance_to_dual_cone(tangential, wn + mu * tangential, mu))


@kernel
def distance_to_dual_cone(tangential, normal, mu):
    """Return the distance of (t, n) from K*_μ = {|t| μ ≤ n}, `tangential` = |t|."""
    if tangential <= -mu * normal:  # nearest point is the tip
        return np.sqrt(tangential * tangential + normal * normal)
    return max((mu * tangential - normal) / np.sqrt(1.0 + mu * mu), 0.0)


class EnergyBalance(NamedTuple):
    """Energy balance of one step [J].

    change = actuation + damping + contact + joint_friction + constraints + integration.
    """

    change: float
    """ΔT + ΔU, exactly from the states before and after."""
    actuation: float
    """½ h (v + v⁺)ᵀ τ with τ the applied effort and external wrenches."""
    damping: float
    """Work of viscous joint damping, taken at the end of the step."""
    contact: float
    """½ λᵀ (u⁻ + u⁺) over the contacts."""
    joint_friction: float
    """½ λᵀ (u⁻ + u⁺) over the interval rows: dry friction and limits of joints."""
    correction: float
    """−λᵀ b: the contact work of the gap, stabilisation and restitution terms."""
    constraints: float
    """½ λ_bᵀ H (v + v⁺) of the bilateral constraints."""

    @property
    def integration(self) -> float:
        """Remainder: the O(h²) residual of a step with frozen mass matrix."""
        work = self.actuation + self.damping + self.contact + self.joint_friction
        return self.change - work - self.constraints


class Residuals(NamedTuple):
    """The residuals of one step: those of the law as in LawResiduals, and those of the motion."""

    signorini: float
    """See LawResiduals; so the seven that follow."""
    cone: float
    dissipation: float
    ncp: float
    dual: float
    interval: float
    dissipated: float
    bias_work: float
    penetration: float
    """max (−φ(q⁺))₊ [m]."""
    force_at_distance: float
    """Σ λ_n over contacts with φ(q⁺) above 1e-9 m [N s]."""
    slip: float
    """Largest tangential speed of a contact that carries load [m/s]."""
    momentum: float
    """max |M̂ (v⁺ − v_f) − Jᵀ λ − Hᵀ λ_b| [N s, N m s]."""
    energy_change: float
    """See EnergyBalance; so the six that follow [J]."""
    energy_actuation: float
    energy_damping: float
    energy_contact: float
    energy_joint_friction: float
    energy_correction: float
    energy_constraints: float

    @property
    def energy_balance(self) -> EnergyBalance:
        """Energy balance of the step [J]."""
        return EnergyBalance(*self[-len(EnergyBalance._fields) :])

    @property
    def energy(self) -> float:
        """Integration residual of the energy balance [J]."""
        return self.energy_balance.integration

    def as_dict(self) -> dict[str, float]:
        """Return all residuals by name, `energy` included."""
        return {**self._asdict(), 'energy': self.energy}
