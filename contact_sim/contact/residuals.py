"""The judge: one definition of each residual, for all models; no solver grades itself.

λ is the impulse on the robot [N s], u⁺ = G λ + u_f, w = u⁺ + b what the law sees,
Γ(w) = (0, 0, μ |w_t|). physics.md 2.15.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact.problem import ContactProblem
from contact_sim.errors import InvalidInput
from contact_sim.solvers.cone import natural_map
from contact_sim.solvers.rows import Rows

Array = NDArray[np.float64]
TOUCHING = 1e-9
"""Gap above which a contact counts as apart [m]."""


@dataclass(frozen=True)
class LawResiduals:
    """How far impulses are from the laws of contact; zero is perfect."""

    signorini: float
    """max |λ_n w_n| [J]."""
    cone: float
    """max (|λ_t| − μ λ_n)₊ [N s]."""
    dissipation: float
    """max (μ λ_n |u_t| + λ_t·u_t) [J]: what maximum dissipation would take out more."""
    ncp: float
    """max |λ_i − Proj_K(λ_i − ρ_i (w_i + Γ(w_i)))| [N s], ρ_i = 1/λ_max(G_ii): natural map."""
    dual: float
    """max dist(w_i + Γ(w_i), K*_μ) [m/s]."""
    dissipated: float
    """D = T(v⁺) − T(v_f) = ½ λᵀ(u_f + u⁺) [J]; ≤ −λᵀ b for a passive law."""
    bias_work: float
    """−λᵀ b [J]: work of the gap, stabilisation and restitution terms."""


def law_residuals(problem: ContactProblem, impulse: Array) -> LawResiduals:
    """Judge `impulse` (n,) as an answer to `problem`.

    Raises:
        InvalidInput: impulses of the wrong size.
    """
    if np.shape(impulse) != (problem.n_rows,):
        raise InvalidInput(f'impulse: shape {np.shape(impulse)}, expected {(problem.n_rows,)}')
    u_next = problem.delassus @ impulse + problem.free_velocity
    contacts = 3 * problem.n_contacts
    force = impulse[:contacts].reshape(-1, 3)
    u = u_next[:contacts].reshape(-1, 3)
    w = u + problem.bias[:contacts].reshape(-1, 3)
    mu = problem.friction
    tangential, slip = np.linalg.norm(force[:, :2], axis=1), np.linalg.norm(u[:, :2], axis=1)
    shifted = w[:, 2] + mu * np.linalg.norm(w[:, :2], axis=1)
    return LawResiduals(
        signorini=_largest(np.abs(force[:, 2] * w[:, 2])),
        cone=_largest(tangential - mu * force[:, 2]),
        dissipation=_largest(mu * force[:, 2] * slip + np.sum(force[:, :2] * u[:, :2], axis=1)),
        ncp=_natural_map(problem, impulse),
        dual=_largest(_distance_to_dual_cone(w[:, :2], shifted, mu)),
        dissipated=float(0.5 * impulse @ (problem.free_velocity + u_next)),
        bias_work=float(-impulse @ problem.bias),
    )


def _natural_map(problem: ContactProblem, impulse: Array) -> float:
    if problem.n_rows == 0:
        return 0.0
    G = np.ascontiguousarray(problem.delassus)
    bounds = problem.lower.copy(), problem.upper.copy()
    rows = Rows(G, problem.g, problem.friction.copy(), *bounds)
    return float(natural_map(rows, np.array(impulse, dtype=float), 0.0))


def _distance_to_dual_cone(tangential: Array, normal: Array, mu: Array) -> Array:
    """Distance of (t, n) from K*_μ = {|t| μ ≤ n}, shape (nc,)."""
    t = np.linalg.norm(tangential, axis=1)
    outside = (mu * t - normal) / np.sqrt(1.0 + mu**2)
    in_polar = t <= -mu * normal  # nearest point is the tip
    return np.asarray(np.where(in_polar, np.hypot(t, normal), np.maximum(outside, 0.0)))


def _largest(values: Array) -> float:
    return float(max(values.max(initial=0.0), 0.0))


@dataclass(frozen=True)
class EnergyBalance:
    """Where the energy of one step went [J].

    change = actuation + damping + contact + joint_friction + integration.
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
    """½ λᵀ (u⁻ + u⁺) over the dry-friction rows."""
    correction: float
    """−λᵀ b: the part of the contact work asked for by gap, stabilisation and restitution."""

    @property
    def integration(self) -> float:
        """What is left: the O(h²) residual of a step with frozen mass matrix."""
        work = self.actuation + self.damping + self.contact + self.joint_friction
        return self.change - work


@dataclass(frozen=True)
class Residuals(LawResiduals):
    """The residuals of one step: those of the law, and those of the motion."""

    penetration: float
    """max (−φ(q⁺))₊ [m]."""
    force_at_distance: float
    """Σ λ_n over contacts with φ(q⁺) above 1e-9 m [N s]."""
    slip: float
    """Largest tangential speed of a contact that carries load [m/s]."""
    momentum: float
    """max |M̂ (v⁺ − v_f) − Jᵀ λ| [N s, N m s]."""
    energy_balance: EnergyBalance

    @property
    def energy(self) -> float:
        """Integration residual of the energy balance [J]."""
        return self.energy_balance.integration

    def as_dict(self) -> dict[str, float]:
        """Return all residuals as plain numbers, the energy balance with prefix `energy_`."""
        numbers = {name: value for name, value in asdict(self).items() if name != 'energy_balance'}
        energy = {f'energy_{name}': value for name, value in asdict(self.energy_balance).items()}
        return {**numbers, 'energy': self.energy, **energy}
