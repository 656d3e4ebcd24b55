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

from contact_sim.control.legs import BASE, JOINTS, LeggedDynamics

Array = NDArray[np.float64]
UNBOUNDED = 1e20
ACCURACY = 1e-6
"""Largest residual of the QP: 1 µN."""
ACTIVE = 1e-10
"""Multiplier from which on a limit of the QP is active."""
SOFTNESS = 1e-12
"""Of active limits, so that rows that say the same are no trouble."""
EXCHANGES = 30
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
        self._weights = np.array(weights)
        self._regularisation = regularisation / robot.total_mass**2
        self._limit = np.minimum(robot.effort_limit, 1e6)
        self._damping = robot.joint_damping[JOINTS]
        self._dry = robot.joint_friction[JOINTS]
        side = friction / np.sqrt(2.0)
        pyramid = [[1.0, 0, -side], [-1, 0, -side], [0, 1, -side], [0, -1, -side], [0, 0, -1.0]]
        bound = [0.0, 0.0, 0.0, 0.0, -smallest_force * robot.total_mass * 9.81 / dynamics.n_feet]
        self._cones = [
            (np.kron(np.eye(n), pyramid), np.tile(bound, n)) for n in range(dynamics.n_feet + 1)
        ]
        self._programs: dict[int, proxsuite.proxqp.dense.QP] = {}

    def solve(self, base: Array, feet: Array, standing: NDArray[np.bool_]) -> Answer:
        """Return efforts at the state of the dynamics.

        Args:
            base: a*, wanted acceleration of the base in its own axes, linear first, shape (6,).
            feet: wanted acceleration of the feet [m/s²], world; zero if standing, (n_feet, 3).
            standing: which feet carry, at least one, shape (n_feet,).
        """
        d = self._dynamics
        M, h, J = d.inertia, d.nonlinear_effects, d.jacobian
        follow = np.linalg.solve(
            J[:, JOINTS], np.column_stack([J[:, BASE], feet.reshape(-1) - d.drift])
        )
        T = np.vstack([np.eye(6), -follow[:, :6]])
        c = np.concatenate([np.zeros(6), follow[:, 6]])
        Jf = J[np.repeat(standing, 3)]
        solved_base = np.linalg.solve(
            M[BASE] @ T, np.column_stack([Jf[:, BASE].T, -h[BASE] - M[BASE] @ c])
        )
        B, a0 = solved_base[:, :-1], solved_base[:, -1]
        Mj = M[JOINTS] @ T
        slope = Mj @ B - Jf[:, JOINTS].T
        friction = self._joint_friction(d.v[JOINTS])
        start = Mj @ a0 + M[JOINTS] @ c + h[JOINTS] + friction
        f, solved = self._forces(B, a0 - base, slope, start)
        force = np.zeros((d.n_feet, 3))
        force[standing] = f.reshape(-1, 3)
        effort = np.clip(slope @ f + start, -self._limit, self._limit)
        return Answer(effort, force, T @ (B @ f + a0) + c, solved)

    def _joint_friction(self, speed: Array) -> Array:
        """Return what the joints' own damping and dry friction take [N m]."""
        return self._damping * speed + self._dry * np.tanh(speed / STILL)

    def _forces(self, B: Array, rest: Array, slope: Array, start: Array) -> tuple[Array, bool]:
        """Return the forces of the standing feet, shape (n,), and whether they keep all limits."""
        n = B.shape[1]
        weighted = self._weights[:, None] * B
        H = weighted.T @ weighted + self._regularisation * np.eye(n)
        g = weighted.T @ (self._weights * rest)
        rows, top = self._cones[n // 3]
        C = np.concatenate([rows, slope])
        upper = np.concatenate([top, self._limit - start])
        lower = np.concatenate([np.full(len(rows), -UNBOUNDED), -self._limit - start])
        program = self._programs.get(n)
        if program is None:
            program = self._programs[n] = proxsuite.proxqp.dense.QP(n, 0, len(C))
            program.settings.eps_abs = ACCURACY
            program.settings.eps_rel = 0.0
            program.settings.max_iter = LARGEST_ITERATIONS
            program.init(H, g, None, None, C, lower, upper)
        else:
            program.settings.initial_guess = (
                proxsuite.proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
            )
            program.update(H=H, g=g, C=C, l=lower, u=upper)
        program.solve()
        solved = program.results.info.status == proxsuite.proxqp.QPSolverOutput.PROXQP_SOLVED
        f = np.array(program.results.x)
        if not np.isfinite(f).all():
            self._programs.pop(n)
            f = np.asarray(-np.linalg.solve(H, g))
            return f, bool(solved)
        return polished(H, g, C, lower, upper, np.array(program.results.z), f), bool(solved)


def polished(
    H: Array, g: Array, C: Array, lower: Array, upper: Array, multiplier: Array, guess: Array
) -> Array:
    """Return the exact minimum near a solver's answer, `guess` where it is not found.

    The limits that the solver took for active become equations; a few wrong ones are exchanged.
    The last digits of the solver depend on where its memory happens to lie, those of linear
    systems do not: equal states get equal efforts in every run.

    Args:
        H: of the cost ½ fᵀ H f + gᵀ f, shape (n, n).
        g: shape (n,).
        C: rows of lower <= C f <= upper, shape (m, n).
        lower: shape (m,).
        upper: shape (m,).
        multiplier: of the rows, positive at the upper limit, shape (m,).
        guess: the solver's answer, shape (n,).
    """
    side = np.where(np.abs(multiplier) > ACTIVE, np.sign(multiplier), 0.0)
    for _ in range(EXCHANGES):
        active, n = side != 0.0, len(g)
        rows = C[active]
        system = np.block([[H, rows.T], [rows, -SOFTNESS * np.eye(len(rows))]])
        bound = np.where(side > 0.0, upper, lower)[active]
        answer = np.linalg.solve(system, np.concatenate([-g, bound]))
        f, pulls = answer[:n], np.zeros(len(C))
        pulls[active] = -side[active] * answer[n:]
        if pulls.max() > ACTIVE:
            side[np.argmax(pulls)] = 0.0
            continue
        reached = C @ f
        excess = np.where(active, 0.0, np.maximum(reached - upper, lower - reached))
        worst = np.argmax(excess)
        if excess[worst] <= ACCURACY:
            return np.asarray(f)
        side[worst] = 1.0 if reached[worst] > upper[worst] else -1.0
    return guess
