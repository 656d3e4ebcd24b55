"""The equations of motion at one instant, with what the closed contacts add to them.

    v̇ = M⁻¹ (τ − nle − D v) + M⁻¹ Jᵀ f,   J v̇ + J̇ v = G f + a

What drifts by the error of the integration is taken back at the end of a step, at the level of
velocities: u_t = 0 and u_n = −α φ for what is held (physics.md T8: no Baumgarte along the ground).
"""

from __future__ import annotations

import numpy as np

from contact_sim.collision.detect import contact_drift, contact_jacobian, detect
from contact_sim.contact.delassus import collect_rows, fill_delassus, multiply_rows
from contact_sim.contact_models.hybrid.modes import (
    freeze_slow_slips,
    mode_forces,
    select_modes,
    slip_direction,
)
from contact_sim.contact_models.hybrid.mode_elimination import OPEN, SLIP, STICK
from contact_sim.contact_models.hybrid.redundant_forces import spread_redundant
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.tree import factorise, solve_factor, solve_transposed

SEPARATES = 1e-9
"""Speed from which a contact counts as leaving after an impact [m/s]."""
GENTLY = 1e-3
"""Largest change of a normal velocity in one step to take out a penetration [m/s]."""


@kernel
def fill_instant(
    placements, twists, bias_accelerations, world_jacobian, M, nle, joint, offset, radius,
    leaf_dof, plane, gravity, parent, damping, tau, v, position, frame, gap, no_gap, jt, u, drift,
    factor, free,
):  # fmt: skip
    """Fill contact points, Jᵀ (nv, rows), u = J v, J̇ v, the factor of M and M⁻¹ (τ − nle − D v).

    Inputs as in `dynamics.terms` and `contact.workspace`; J at the points c − r n of the spheres
    (`no_gap` is zero).
    """
    detect(placements, joint, offset, radius, plane, position, frame, gap)
    contact_jacobian(world_jacobian, leaf_dof, parent, position, frame, no_gap, jt)
    contact_drift(
        twists, bias_accelerations, placements, joint, offset, radius, frame, gravity, drift
    )
    multiply_rows(jt, v, u)
    for i in range(v.shape[0]):
        for j in range(i + 1):
            factor[i, j] = M[i, j]
        free[i] = tau[i] - nle[i] - damping[i] * v[i]
    factorise(factor, parent)
    solve_transposed(factor, parent, free)
    solve_factor(factor, parent, free)


@kernel
def fill_rows(closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, a):
    """Fill G and a for the closed contacts and the dry joints; return (contacts, rows)."""
    nc, ns = closed.shape[0], u.shape[0] - 3 * closed.shape[0]
    na, n = collect_rows(closed, nc, ns, row_of)
    fill_delassus(jt, factor, parent, row_of, n, Y, delassus)
    for e in range(n):
        r = row_of[e]
        total = drift[r]
        for k in range(free.shape[0]):
            total += jt[k, r] * free[k]
        a[e] = total
    return na, n


@kernel
def add_response(force, n, Y_buffer, factor, parent, out):
    """Add M⁻¹ Jᵀ f to `out` (nv,); `force` (n,) in the order of the rows of Y."""
    nv = out.shape[0]
    Y, response = Y_buffer[: nv * n].reshape(nv, n), np.zeros(nv)
    for k in range(nv):
        for e in range(n):
            response[k] += Y[k, e] * force[e]
    solve_factor(factor, parent, response)
    out += response


@kernel
def hold(
    closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, friction,
    joint_friction, mode, direction, frozen, joint_mode, reference, force, acceleration,
):  # fmt: skip
    """Fill the forces (rows of the record) that hold the modes, and v̇; False if there are none."""
    a = np.empty(u.shape[0])
    na, n = fill_rows(closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, a)
    ns = joint_mode.shape[0]
    mu, modes, slip = np.empty(na), np.empty(na, np.int64), np.empty((na, 2))
    near, answer = np.empty(n), np.empty(n)
    for c in range(na):
        i = row_of[3 * c] // 3
        mu[c], modes[c] = friction[i], mode[i]
        slip[c] = slip_direction(
            u[3 * i], u[3 * i + 1], direction[i, 0], direction[i, 1], frozen[i]
        )
    for e in range(n):
        near[e] = reference[row_of[e]]
    G = delassus[: n * n].reshape(n, n)
    held = mode_forces(G, a[:n], mu, modes, slip, joint_friction, joint_mode[:ns], near, answer)
    force[:] = 0.0
    for e in range(n):
        force[row_of[e]] = answer[e]
    acceleration[:] = free
    add_response(answer, n, Y, factor, parent, acceleration)
    return held and bool(np.isfinite(np.sum(acceleration)))


@kernel
def choose(
    closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, friction,
    joint_friction, stiction_speed, at_end, mode, direction, heading, frozen, joint_mode,
    reference, dt,
):  # fmt: skip
    """Choose the modes of the closed contacts for an arc of about dt, and open those that leave.

    `heading` is the direction in which each contact slips at first, `direction` that against
    which friction acts; they differ where a slow slip turns (`frozen`).
    `mode` says what held before: what stuck counts as at rest. `reference` (rows of the record) is
    guess and answer. Returns (status code, sweeps, natural map [N]).
    """
    a = np.empty(u.shape[0])
    na, n = fill_rows(closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, a)
    nc, ns = closed.shape[0], joint_mode.shape[0]
    mu, modes, slip = np.empty(na), np.empty(na, np.int64), np.zeros((na, 2))
    speed, guess, ends = np.empty(n), np.empty(n), np.zeros(2 * na + ns, np.int64)
    keep = np.empty(na, np.int64)
    for e in range(n):
        speed[e], guess[e] = u[row_of[e]], reference[row_of[e]]
    for c in range(na):
        i = row_of[3 * c] // 3
        mu[c], ends[c], ends[na + c] = friction[i], at_end[i], at_end[nc + i]
        if mode[i] == STICK:
            speed[3 * c] = speed[3 * c + 1] = 0.0
    ends[2 * na :] = at_end[2 * nc :]
    G = delassus[: n * n].reshape(n, n)
    freeze_slow_slips(G, a[:n], speed, mu, joint_friction, stiction_speed, dt, guess, slip, keep)
    outcome = select_modes(
        G, a[:n], speed, mu, joint_friction, stiction_speed, ends, keep, guess, modes, slip,
        joint_mode,
    )  # fmt: skip
    spread_redundant(G, a[:n], mu, modes, slip, joint_friction, joint_mode, guess)
    mode[:], frozen[:] = OPEN, 0
    reference[:] = 0.0
    for e in range(n):
        reference[row_of[e]] = guess[e]
    for c in range(na):
        i = row_of[3 * c] // 3
        mode[i] = modes[c]
        direction[i], frozen[i] = slip[c], keep[c]
        heading[i] = slip_direction(u[3 * i], u[3 * i + 1], 0.0, 0.0, 0)
        if u[3 * i] ** 2 + u[3 * i + 1] ** 2 <= stiction_speed**2:
            heading[i] = slip[c]
        closed[i] = 0.0 if modes[c] == OPEN else 1.0
    return outcome


@kernel
def rest_exactly(
    closed, u, gap, rate, row_of, Y, delassus, factor, parent, friction, joint_friction, mode,
    joint_mode, v, impulse,
):  # fmt: skip
    """Take the drift out of the velocity of what is held: u_t = 0, u_n = −α φ, q̇ = 0.

    A penetration that was there before is taken out gently: u_n changes by no more than GENTLY.
    The impulses, of the size of the integration error, are added to `impulse`. G and Y as `hold`
    left them. Returns the largest drift [m/s, rad/s].
    """
    nc, ns = closed.shape[0], joint_mode.shape[0]
    na, n = collect_rows(closed, nc, ns, row_of)
    mu, modes = np.zeros(na), np.empty(na, np.int64)
    drift, answer, worst = np.zeros(n), np.zeros(n), 0.0
    for c in range(na):
        i = row_of[3 * c] // 3
        modes[c] = mode[i]
        error = u[3 * i + 2] + rate * gap[i]
        drift[3 * c + 2] = min(max(error, -GENTLY), GENTLY)
        if mode[i] == STICK:
            drift[3 * c], drift[3 * c + 1] = u[3 * i], u[3 * i + 1]
    for k in range(ns):
        if joint_mode[k] == 0:
            drift[3 * na + k] = u[3 * nc + k]
    if n > 0:
        worst = np.abs(drift).max()
    if worst > 0.0:
        G, none = delassus[: n * n].reshape(n, n), np.zeros((na, 2))
        mode_forces(G, drift, mu, modes, none, np.zeros(ns), joint_mode, np.zeros(n), answer)
        add_response(answer, n, Y, factor, parent, v)
        for e in range(n):
            impulse[row_of[e]] += answer[e]
    return worst


@kernel
def fill_impact(
    closed, jt, factor, parent, u, row_of, Y, delassus, friction, restitution, threshold, before,
    mu, e,
):  # fmt: skip
    """Fill G, u⁻, μ and e of the closed contacts; return their number of rows."""
    na, _ = collect_rows(closed, closed.shape[0], 0, row_of)
    n = 3 * na
    fill_delassus(jt, factor, parent, row_of, n, Y, delassus)
    for r in range(n):
        before[r] = u[row_of[r]]
    for c in range(na):
        i = row_of[3 * c] // 3
        mu[c] = friction[i]
        e[c] = restitution[i] if before[3 * c + 2] < -threshold else 0.0
    return n


@kernel
def take_impact(closed, row_of, Y, delassus, factor, parent, before, answer, mode, v, impulse):
    """Change v by the impulses of an impact and open the contacts that leave.

    After an impact nothing counts as sticking until `choose` has decided. The impulses are added
    to `impulse` (rows of the record).
    """
    n = answer.shape[0]
    add_response(answer, n, Y, factor, parent, v)
    after = before + np.dot(delassus[: n * n].reshape(n, n), answer)
    fastest = np.abs(before).max() if n > 0 else 0.0
    for c in range(n // 3):
        i = row_of[3 * c] // 3
        leaves = after[3 * c + 2] > SEPARATES * (1.0 + fastest)
        closed[i] = 0.0 if leaves else 1.0
        mode[i] = OPEN if leaves else SLIP
    for r in range(n):
        impulse[row_of[r]] += answer[r]
