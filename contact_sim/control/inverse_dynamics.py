"""Support-consistent inverse dynamics of a robot on some of its feet, as a small QP in the forces.

Every foot is told how to accelerate: not at all if it stands, as its swing wants otherwise. With
J = [J_b J_j] of all feet and square J_j that leaves the base acceleration a free,

    J v̇ = r − J̇ v    →    v̇ = T a + c,   T = (I, −J_j⁻¹ J_b),   c = (0, J_j⁻¹ (r − J̇ v))

and the six rows that no joint drives fix a by the forces f of the standing feet (physics.md E8):

    M_b (T a + c) + h_b = J_bᵀ f          →    a = B f + a_0,   τ = M_j v̇ + h_j − J_jᵀ f

    minimise  ½ |W (B f + a_0 − a*)|² + ½ ρ |f|²
    such that |f_x|, |f_y| ≤ μ f_z / √2,  f_z ≥ f_min,  |τ| ≤ τ_max

|f|² chooses among the internal forces, those that move nothing; the pyramid lies in the cone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import proxsuite
from numpy.typing import NDArray

from contact_sim.control.legs import JOINTS, LeggedDynamics
from contact_sim.solvers.dual_active_set import least_quadratic
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]
UNBOUNDED = 1e20
ACCURACY = 1e-9
"""Excess of a limit of the QP that does not matter: 1 nN, 1 nN m."""
LARGEST_ITERATIONS = 200
STILL = 0.02
"""Joint speed over which dry friction, fed forward, changes its sign [rad/s]."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What the inverse dynamics want to happen."""

    effort: Array
    """τ [N m], shape (n_joints,)."""
    force: Array
    """Forces on the robot at the feet [N], world axes, zero in the air, shape (n_feet, 3)."""
    acceleration: Array
    """v̇ [m/s², rad/s²], shape (nv,)."""
    solved: bool
    """False where no forces in the cones satisfy the effort limits; the answer is the nearest."""


class InverseDynamics:
    """Efforts for a wanted acceleration of the base and of the feet in the air.

    Args:
        friction: μ that the controller counts on [-]; less than what the ground has.
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
        self._passive = np.array([robot.joint_damping[JOINTS], robot.joint_friction[JOINTS]])
        side = friction / np.sqrt(2.0)
        pyramid = [[1.0, 0, -side], [-1, 0, -side], [0, 1, -side], [0, -1, -side], [0, 0, -1.0]]
        bound = [0.0, 0.0, 0.0, 0.0, -smallest_force * robot.total_mass * 9.81 / dynamics.n_feet]
        self._cones = [
            (np.kron(np.eye(n), pyramid), np.tile(bound, n)) for n in range(dynamics.n_feet + 1)
        ]

    def solve(self, base: Array, feet: Array, standing: NDArray[np.bool_]) -> Answer:
        """Return efforts at the state of the dynamics, a function of these alone.

        Args:
            base: a*, wanted acceleration of the base in its own axes, linear first, shape (6,).
            feet: wanted acceleration of the feet [m/s²], world; zero if standing, (n_feet, 3).
            standing: which feet carry, at least one, shape (n_feet,).

        Raises:
            LinAlgError: legs that cannot move their feet in all directions, a state that is not
                finite.
        """
        d = self._dynamics
        motion, effort = response(
            d.inertia, d.nonlinear_effects, d.jacobian, d.drift, d.v, feet, standing, self._passive
        )
        rows, top = self._cones[np.count_nonzero(standing)]
        H, g, C, lower, upper = program(
            motion, effort, base, self._weights, rows, top, self._limit
        )
        f, solved = least_quadratic(H, g, C, lower, upper, ACCURACY)
        if not solved:
            f = nearest(H, g, C, lower, upper)
        return Answer(*outcome(motion, effort, f, standing, self._limit), solved)


@kernel
def response(M, h, J, drift, v, feet, standing, passive):
    """Return v̇ = P f + p and τ = S f + s as (P, p), shape (nv, n + 1), and (S, s).

    Args:
        M: shape (nv, nv).
        h: shape (nv,).
        J: shape (3 n_feet, nv).
        drift: J̇ v, shape (3 n_feet,).
        v: shape (nv,).
        feet: wanted accelerations r, shape (n_feet, 3).
        standing: shape (n_feet,).
        passive: damping and dry friction of the joints, shape (2, n_joints).
    """
    nv, n_joints = M.shape[0], M.shape[0] - 6
    right = np.empty((n_joints, 7))
    right[:, :6] = J[:, :6]
    right[:, 6] = feet.reshape(-1) - drift
    follow = np.linalg.solve(np.ascontiguousarray(J[:, 6:]), right)
    T = np.zeros((nv, 7))  # (T, c)
    for i in range(6):
        T[i, i] = 1.0
    T[6:, :6], T[6:, 6] = -follow[:, :6], follow[:, 6]
    MT = M @ T
    n = 3 * np.sum(standing)
    Jf = np.empty((nv, n))  # transposed, of the standing feet
    k = 0
    for i in range(standing.shape[0]):
        if standing[i]:
            Jf[:, k : k + 3] = J[3 * i : 3 * i + 3].T
            k += 3
    right = np.empty((6, n + 1))
    right[:, :n] = Jf[:6]
    right[:, n] = -h[:6] - MT[:6, 6]
    base = np.linalg.solve(np.ascontiguousarray(MT[:6, :6]), right)
    motion = np.ascontiguousarray(T[:, :6]) @ base
    motion[:, n] += T[:, 6]
    effort = M[6:] @ motion
    effort[:, :n] -= Jf[6:]
    effort[:, n] += h[6:] + passive[0] * v[6:] + passive[1] * np.tanh(v[6:] / STILL)
    return motion, effort


@kernel
def program(motion, effort, base, weights, rows, top, limit):
    """Return H, g, C, lower and upper of the QP in the forces, see the head of this file.

    Args:
        motion: of `response`.
        effort: of `response`.
        base: a*, shape (6,).
        weights: W, then ρ, shape (7,).
        rows: of the cones, shape (m, n).
        top: their upper bounds, shape (m,).
        limit: τ_max, shape (n_joints,).
    """
    m, n = rows.shape
    weighted = np.empty((n, 6))
    rest = np.empty(6)
    for i in range(6):
        weighted[:, i] = weights[i] * motion[i, :n]
        rest[i] = weights[i] * (motion[i, n] - base[i])
    H = weighted @ weighted.T
    for i in range(n):
        H[i, i] += weights[6]
    C = np.empty((m + limit.shape[0], n))
    lower, upper = np.empty(C.shape[0]), np.empty(C.shape[0])
    C[:m], C[m:] = rows, effort[:, :n]
    lower[:m], upper[:m] = -UNBOUNDED, top
    lower[m:], upper[m:] = -limit - effort[:, n], limit - effort[:, n]
    return H, weighted @ rest, C, lower, upper


@kernel
def outcome(motion, effort, f, standing, limit):
    """Return τ (n_joints,), forces at all feet (n_feet, 3) and v̇ (nv,) for the forces f (n,)."""
    n, k = f.shape[0], 0
    force = np.zeros((standing.shape[0], 3))
    for i in range(standing.shape[0]):
        if standing[i]:
            force[i] = f[k : k + 3]
            k += 3
    with_one = np.ones(n + 1)
    with_one[:n] = f
    torque = effort @ with_one
    return np.minimum(np.maximum(torque, -limit), limit), force, motion @ with_one


def nearest(H: Array, g: Array, C: Array, lower: Array, upper: Array) -> Array:
    """Return what ProxQP comes to from nothing where no forces keep all limits, shape (n,)."""
    program = proxsuite.proxqp.dense.QP(len(g), 0, len(C))
    program.settings.eps_abs = ACCURACY
    program.settings.eps_rel = 0.0
    program.settings.max_iter = LARGEST_ITERATIONS
    program.settings.initial_guess = proxsuite.proxqp.InitialGuess.NO_INITIAL_GUESS
    program.init(H, g, None, None, C, lower, upper)
    program.solve()
    f = np.array(program.results.x)
    return f if np.isfinite(f).all() else np.asarray(-np.linalg.solve(H, g))
