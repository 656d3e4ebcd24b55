"""Support-consistent inverse dynamics of a robot on some of its feet, as a small QP in the forces.

Every foot has a desired acceleration r: zero if it stands, that of its swing otherwise. With
J = [J_b J_j] of all feet and square J_j that leaves the base acceleration a free,

    J v̇ = r − J̇ v    →    v̇ = T a + c,   T = (I, −J_j⁻¹ J_b),   c = (0, J_j⁻¹ (r − J̇ v))

and the six rows that no joint drives fix a by the forces f of the standing feet (theory E8):

    M_b (T a + c) + h_b = J_bᵀ f          →    a = B f + a_0,   τ = M_j v̇ + h_j − J_jᵀ f

    minimise  ½ |W (B f + a_0 − a*)|² + ½ ρ |f|²
    such that |f_x|, |f_y| ≤ μ f_z / √2,  f_z ≥ f_min,  |τ| ≤ τ_max

|f|² chooses among the internal forces, those that move nothing; the pyramid lies in the cone. Of a
robot with joints that follow others v is w, see control/_legs.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import positive
from contact_sim.control._legs import STILL, LeggedDynamics, symmetric
from contact_sim.errors import SingularLegs
from contact_sim.solvers._dense import eliminate_right_sides, solve_qp
from contact_sim.solvers._jit import kernel

UNBOUNDED = 1e20
ACCURACY = 1e-9
"""Excess of a limit of the QP that does not matter: 1 nN, 1 nN m."""
EXCESS_WEIGHT = 1e6
"""Cost of an excess of effort over that of the forces, where no forces keep all limits [-]."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Outcome of the inverse dynamics: efforts, accelerations and forces as planned."""

    effort: Array
    """τ [N m], shape (n_joints,)."""
    force: Array
    """Forces on the robot at the feet [N], world axes, zero in the air, shape (n_feet, 3)."""
    acceleration: Array
    """v̇ [m/s², rad/s²], shape (nv,)."""
    solved: bool
    """False where no forces in the cones satisfy the effort limits.

    Then the answer is that of the forces with the least excess in squares, cut at the limits.
    """


class InverseDynamicsQP:
    """Efforts for a desired acceleration of the base and of the feet in the air.

    Args:
        friction: μ that the controller assumes [-]; less than that of the ground.
        weights: of errors in the linear (first three) and angular acceleration of the base, (6,).
        regularisation: ρ over 1/m² [-].
        smallest_force: f_min over the share of the weight of a standing foot [-].
    """

    def __init__(
        self,
        dynamics: LeggedDynamics,
        friction: float = 0.5,
        weights: tuple[float, ...] = (1.0, 1.0, 1.0, 0.3, 0.3, 0.3),
        regularisation: float = 1e-4,
        smallest_force: float = 0.02,
    ) -> None:
        robot = dynamics.robot
        self._dynamics = dynamics
        self._weights = np.array([*weights, regularisation / robot.total_mass**2])
        self._limit = np.minimum(robot.effort_limit, 1e6)
        driven = robot.joint_velocity_index
        self._passive = np.array([robot.joint_damping[driven], robot.joint_friction[driven]])
        side = positive('friction', friction, '') / np.sqrt(2.0)
        pyramid = [[1.0, 0, -side], [-1, 0, -side], [0, 1, -side], [0, -1, -side], [0, 0, -1.0]]
        bound = [0.0, 0.0, 0.0, 0.0, -smallest_force * robot.total_mass * 9.81 / dynamics.n_feet]
        self._cones = [
            (np.kron(np.eye(n), pyramid), np.tile(bound, n)) for n in range(dynamics.n_feet + 1)
        ]

    def solve(self, base: Array, feet: Array, standing: NDArray[np.bool_]) -> Answer:
        """Return efforts at the state of the dynamics, a function of these alone.

        Args:
            base: a*, desired acceleration of the base in its own axes, linear first, shape (6,).
            feet: desired acceleration of the feet [m/s²], world; zero if standing, (n_feet, 3).
            standing: which feet carry, at least one, shape (n_feet,).
        """
        d = self._dynamics
        motion, effort, regular = response(
            d.upper_inertia, d.nonlinear_effects, d.jacobian, d.drift, d.w, feet, standing,
            self._passive,
        )  # fmt: skip
        if not regular:
            raise SingularLegs('singular legs: they cannot move their feet at will')
        rows, top = self._cones[np.count_nonzero(standing)]
        weights, limit = self._weights, self._limit
        torque, force, acceleration, solved = efforts(
            motion, effort, base, standing, weights, rows, top, limit
        )
        if not solved:
            f = least_excess(motion, effort, base, weights, rows, top, limit)
            torque, force, acceleration = outcome(motion, effort, f, standing, limit)
        return Answer(torque, force, d.acceleration(acceleration), solved)


@kernel
def follow(J, drift, feet):
    """Return the joints' accelerations as −(F, c): v̇_j = −F a + c; and whether J_j is regular.

    Args:
        J: shape (3 n_feet, nv).
        drift: J̇ v, shape (3 n_feet,).
        feet: desired accelerations r, shape (n_feet, 3).
    """
    n = J.shape[0]
    joints, F = np.empty((n, n)), np.empty((n, 7))
    for i in range(n):
        for k in range(6):
            F[i, k] = J[i, k]
        F[i, 6] = drift[i] - feet[i // 3, i % 3]
        for k in range(n):
            joints[i, k] = J[i, 6 + k]
    return F, eliminate_right_sides(joints, F)


@kernel
def response(upper_inertia, h, J, drift, v, feet, standing, passive):
    """Return v̇ = P f + p and τ = S f + s as (P, p), (nv, n + 1), and (S, s); whether they exist.

    Args:
        upper_inertia: M, only its upper triangle is read, shape (nv, nv).
        h: shape (nv,).
        J: shape (3 n_feet, nv).
        drift: J̇ v, shape (3 n_feet,).
        v: shape (nv,).
        feet: desired accelerations r, shape (n_feet, 3).
        standing: shape (n_feet,).
        passive: damping and dry friction of the joints, shape (2, n_joints).
    """
    M, nv, feet_rows = symmetric(upper_inertia), h.shape[0], J.shape[0]
    F, regular = follow(J, drift, feet)
    stands, n = np.empty(feet_rows, np.int64), 0
    for j in range(feet_rows):
        if standing[j // 3]:
            stands[n] = j
            n += 1
    motion, inertia, base = np.empty((nv, n + 1)), np.empty((6, 6)), np.empty((6, n + 1))
    for i in range(6):
        for k in range(n):
            base[i, k] = J[stands[k], i]
        base[i, n] = -h[i]
        for k in range(6):
            inertia[i, k] = M[i, k]
        for j in range(feet_rows):
            base[i, n] += M[i, 6 + j] * F[j, 6]
            for k in range(6):
                inertia[i, k] -= M[i, 6 + j] * F[j, k]
    regular &= eliminate_right_sides(inertia, base)
    for k in range(n + 1):
        for i in range(6):
            motion[i, k] = base[i, k]
        for j in range(feet_rows):
            total = F[j, 6] if k == n else 0.0
            for i in range(6):
                total += F[j, i] * base[i, k]
            motion[6 + j, k] = -total
    effort = M[6:] @ motion
    for j in range(feet_rows):
        for k in range(n):
            effort[j, k] -= J[stands[k], 6 + j]
        friction = passive[0, j] * v[6 + j] + passive[1, j] * np.tanh(v[6 + j] / STILL)
        effort[j, n] += h[6 + j] + friction
    return motion, effort, regular


@kernel
def program(motion, effort, base, weights, rows, top, limit):
    """Return H, g, C, lower and upper of the QP in the forces, see the head of this file.

    Args:
        motion: (P, p), shape (nv, n + 1).
        effort: (S, s), shape (n_joints, n + 1).
        base: a*, shape (6,).
        weights: W, then ρ, shape (7,).
        rows: of the cones, shape (m, n).
        top: their upper bounds, shape (m,).
        limit: τ_max, shape (n_joints,).
    """
    m, n = rows.shape
    H, g = np.zeros((n, n)), np.zeros(n)
    for a in range(n):
        H[a, a] = weights[6]
    for i in range(6):
        square = weights[i] ** 2
        for a in range(n):
            g[a] += square * motion[i, a] * (motion[i, n] - base[i])
            for b in range(n):
                H[a, b] += square * motion[i, a] * motion[i, b]
    C = np.empty((m + limit.shape[0], n))
    lower, upper = np.empty(C.shape[0]), np.empty(C.shape[0])
    for i in range(C.shape[0]):
        j = i - m
        for a in range(n):
            C[i, a] = rows[i, a] if j < 0 else effort[j, a]
        lower[i] = -UNBOUNDED if j < 0 else -limit[j] - effort[j, n]
        upper[i] = top[i] if j < 0 else limit[j] - effort[j, n]
    return H, g, C, lower, upper


@kernel
def outcome(motion, effort, f, standing, limit):
    """Return τ (n_joints,), forces at all feet (n_feet, 3) and v̇ (nv,) for the forces f (n,)."""
    n, k = f.shape[0], 0
    force, with_one = np.zeros((standing.shape[0], 3)), np.ones(n + 1)
    for i in range(standing.shape[0]):
        for j in range(3 * standing[i]):
            force[i, j] = with_one[k] = f[k]
            k += 1
    torque = effort @ with_one
    for i in range(limit.shape[0]):
        torque[i] = min(max(torque[i], -limit[i]), limit[i])
    return torque, force, motion @ with_one


@kernel
def efforts(motion, effort, base, standing, weights, rows, top, limit):
    """Return the `outcome` of the best forces, and whether there are any that keep all limits."""
    H, g, C, lower, upper = program(motion, effort, base, weights, rows, top, limit)
    f, solved = solve_qp(H, g, C, lower, upper, ACCURACY)
    torque, force, acceleration = outcome(motion, effort, f, standing, limit)
    return torque, force, acceleration, solved


@kernel
def least_excess(motion, effort, base, weights, rows, top, limit):
    """Return the best forces (n,) in the cones where efforts may exceed their limits, at a cost.

    Each joint gets an excess e as a further unknown: |τ + e| ≤ τ_max, and w e² / 2 in the cost.
    """
    H, g, C, lower, upper = program(motion, effort, base, weights, rows, top, limit)
    n, m, joints = g.shape[0], rows.shape[0], limit.shape[0]
    weight = EXCESS_WEIGHT * np.trace(H)
    wide_H, wide_g = np.zeros((n + joints, n + joints)), np.zeros(n + joints)
    wide_C = np.zeros((m + joints, n + joints))
    wide_H[:n, :n], wide_g[:n], wide_C[:, :n] = H, g, C
    for j in range(joints):
        wide_H[n + j, n + j], wide_C[m + j, n + j] = weight, 1.0
    tolerance = ACCURACY * (1.0 + np.abs(effort[:, n]).max())
    x, solved = solve_qp(wide_H, wide_g, wide_C, lower, upper, tolerance)
    return x[:n] if solved else np.linalg.solve(H, -g)
