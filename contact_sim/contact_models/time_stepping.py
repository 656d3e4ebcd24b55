"""The step shared by all time-stepping models: they differ only in the law.

v_f = v + h M̂⁻¹ (Sᵀτ + τ_ext − nle),  u_f = J v_f,  G = J M̂⁻¹ Jᵀ,  g = u_f + b
λ   = law(G, g, μ, ...)
v⁺  = v_f + M̂⁻¹ Jᵀ λ,   q⁺ = q ⊕ h v⁺                                    (physics.md 2)
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision.detect import contact_jacobian, detect
from contact_sim.contact.bias import fill_bias
from contact_sim.contact.delassus import (
    collect_rows,
    fill_delassus,
    gather,
    multiply_rows,
    select_active,
    within_reach,
)
from contact_sim.contact.memory import recall, remember
from contact_sim.contact.solution import FREE
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.protocol import ContactLaw
from contact_sim.dynamics.free_motion import free_velocity
from contact_sim.dynamics.integrate import step_increment
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import solve_factor

GUARD_HALVINGS = 40


class TimeStepping:
    """One law bound to one workspace; the argument lists of the kernels are built once."""

    def __init__(self, workspace: Workspace, law: ContactLaw) -> None:
        self._workspace, self._law = workspace, law
        if not law.remembers:
            workspace.record.memory[:] = 0.0
        workspace.reach[:] = *law.reach(float(workspace.record.time_step[0])), law.margin
        w, r, t, s, p = (
            workspace,
            workspace.record,
            workspace.terms,
            workspace.spheres,
            workspace.rows,
        )
        self._prepare = (
            t.inertia, t.nonlinear_effects, r.tau, r.v_start, w.damping, t.dof_parent,
            t.free_flyer_v, r.time_step, r.inertia, w.factor, r.transport, r.v_free,
            r.nonlinear_effects, t.jacobian, s.leaf_dof, r.position_start, r.frame_start,
            r.jacobian_transposed, r.gap_start, r.impulse, w.restitution, w.stabilisation,
            r.u_start, r.u_free, r.bias, r.restitution_bias, r.friction, w.reach, r.active,
        )  # fmt: skip
        self._assemble = (
            r.active, w.row_of, r.jacobian_transposed, w.factor, t.dof_parent, w.Y, p.delassus,
            r.u_free, r.u_start, r.bias, r.restitution_bias, r.friction, r.gap_start, r.impulse,
            r.lower, r.upper, w.inverse_weight, p.g, p.free_velocity, p.start_velocity, p.friction,
            p.gap, p.impulse, p.lower, p.upper, p.inverse_weight,
        )  # fmt: skip
        self._finish = (
            p.impulse, w.row_of, w.Y, w.factor, t.dof_parent, t.free_flyer_v, r.time_step,
            r.v_start, r.v_free, r.transport, r.jacobian_transposed, r.gap_start, r.friction,
            w.reach, r.active, r.impulse, r.v_next, r.acceleration, r.u_next, w.increment,
            w.v_after,
        )  # fmt: skip
        self._detect = (
            t.placements, s.joint, s.offset, s.radius, w.plane, r.position, r.frame, r.gap,
        )  # fmt: skip

    def advance(self) -> bool:
        """Advance the state by h; return False, with q and v as before, if it is not finite."""
        record, terms = self._workspace.record, self._workspace.terms
        record.start[:] = record.now
        impacts = self.begin()
        finite = self._solve(1.0)
        if impacts and finite:
            finite = self._guard_energy()
        if not finite:
            return False
        if self._law.remembers:
            rows = self._workspace.rows
            remember(rows.memory_next, record.frame_start, record.active, record.memory)
        record.q[:] = terms.integrate(record.q_start, self._workspace.increment)
        record.v[:] = self._workspace.v_after
        self.update_contacts()
        return True

    def begin(self) -> int:
        """Fill everything that does not depend on the impulses; return the number of impacts."""
        record = self._workspace.record
        self._workspace.terms.update_velocity(record.q_start, record.v_start)
        return int(prepare(*self._prepare))

    def update_contacts(self) -> None:
        """Fill Pinocchio's position terms and the contact points at the current q."""
        self._workspace.terms.update_configuration(self._workspace.record.q)
        detect(*self._detect)

    def _solve(self, restitution_scale: float) -> bool:
        """Solve the step; contacts that were left out but would close join until none is left."""
        rows, record = self._workspace.rows, self._workspace.record
        while True:
            rows.nc, rows.n = assemble(*self._assemble, restitution_scale)
            if self._law.remembers:
                recall(record.memory_start, record.frame_start, record.active, rows.memory)
            outcome = self._law.solve_rows(rows) if rows.n else (FREE, 0, 0.0)
            record.solver[:] = outcome
            closing = finish(*self._finish, rows.nc, rows.n)
            if closing <= 0:
                return bool(closing == 0)

    def _guard_energy(self) -> bool:
        """Reduce restitution until contact work ½ λᵀ(u⁺ + u⁻) ≤ 0.

        Newton's law can create energy when there is friction (physics.md 2.8).
        """
        if self._contact_work() <= 0.0:
            return True
        low, high = 0.0, 1.0
        for _ in range(GUARD_HALVINGS):
            middle = 0.5 * (low + high)
            if not self._solve(middle):
                return False
            low, high = (middle, high) if self._contact_work() <= 0.0 else (low, middle)
        return self._solve(low)

    def _contact_work(self) -> float:
        """Return ½ λᵀ(u⁻ + u⁺) over the contact rows [J]; rounding counts as zero."""
        record, n = self._workspace.record, 3 * self._workspace.sizes.nc
        impulse, before, after = record.impulse[:n], record.u_start[:n], record.u_next[:n]
        work = 0.5 * float(impulse @ (before + after))
        rounding = 1e-12 * float(np.abs(impulse) @ np.abs(before))
        return work if work > rounding else 0.0


@kernel
def prepare(
    M, nle, tau, v_start, damping, parent, free_flyer_v, time_step, inertia, factor, transport,
    v_free, nonlinear_effects, world_jacobian, leaf_dof, position_start, frame_start,
    jacobian_transposed, gap_start, impulse, restitution, stabilisation, u_start, u_free, bias,
    restitution_bias, friction, reach, active,
):  # fmt: skip
    """Fill everything that does not depend on the impulses; return the number of impacts."""
    h = time_step[0]
    nonlinear_effects[:] = nle
    free_velocity(
        M, nle, tau, v_start, damping, parent, free_flyer_v, h, inertia, factor, transport, v_free
    )
    contact_jacobian(
        world_jacobian,
        leaf_dof,
        parent,
        position_start,
        frame_start,
        gap_start,
        jacobian_transposed,
    )
    multiply_rows(jacobian_transposed, v_start, u_start)
    multiply_rows(jacobian_transposed, v_free, u_free)
    impacts = fill_bias(
        gap_start, u_start, u_free, impulse, h, stabilisation[0], restitution, stabilisation[1],
        bias, restitution_bias,
    )  # fmt: skip
    select_active(gap_start, u_free, impulse, friction, reach, active)
    return impacts


@kernel
def assemble(
    active, row_of, jacobian_transposed, factor, parent, Y, delassus, u_free, u_start, bias,
    restitution_bias, friction, gap_start, impulse, lower, upper, weight, g, free, start, mu, phi,
    guess, low, high, row_weight, restitution_scale,
):  # fmt: skip
    """Fill the contact problem of the active contacts; return (contacts, rows)."""
    nc, ns = active.shape[0], lower.shape[0]
    na, n = collect_rows(active, nc, ns, row_of)
    fill_delassus(jacobian_transposed, factor, parent, row_of, n, Y, delassus)
    gather(
        row_of, n, na, u_free, u_start, bias, friction, gap_start, impulse, lower, upper, weight,
        g, free, start, mu, phi, guess, low, high, row_weight,
    )  # fmt: skip
    for k in range(na):
        g[3 * k + 2] += restitution_scale * restitution_bias[row_of[3 * k] // 3]
    return na, n


@kernel
def finish(
    solved, row_of, Y, factor, parent, free_flyer_v, time_step, v_start, v_free, transport,
    jacobian_transposed, gap_start, friction, reach, active, impulse, v_next, acceleration,
    u_next, increment, v_after, na, n,
):  # fmt: skip
    """Apply the impulses; return how many inactive contacts would close, −1 if not finite.

    Contacts that would close are made active.
    """
    h, nv = time_step[0], v_free.shape[0]
    impulse[:] = 0.0
    for a in range(n):
        impulse[row_of[a]] = solved[a]
    for k in range(nv):
        total = 0.0
        for a in range(n):
            total += Y[k * n + a] * solved[a]
        v_next[k] = total
    solve_factor(factor, parent, v_next)
    size = 0.0
    for k in range(nv):
        v_next[k] += v_free[k]
        acceleration[k] = (v_next[k] - v_start[k]) / h - transport[k]
        size += abs(v_next[k])
    if not np.isfinite(size):
        return -1
    multiply_rows(jacobian_transposed, v_next, u_next)
    closing = 0
    for i in range(active.shape[0]):
        if active[i] == 0.0 and within_reach(gap_start, u_next, i, friction, reach) < 0.0:
            active[i] = 1.0
            closing += 1
    step_increment(v_next, free_flyer_v, h, increment, v_after)
    return closing
