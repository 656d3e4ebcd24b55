"""Let a go1 jump by differential dynamic programming through contact, then try it on other laws.

    python examples/jump.py [--law todorov] [--height 0.25] [--iterations 60]

Needs the extra `optimal` (crocoddyl). The efforts of 0.35 s are found by the solver BoxFDDP of
crocoddyl [Mastalli 2022]. It gets the derivatives of every step from `Simulator.derivatives`; no
contact is planned, and no law is smoothed. The cost asks for a height of the base at the end and
for an upright trunk before. The jump is then run under every law in steps of 1 ms, with the
gains that the solver found on the way.

The plan takes some seconds. The efforts start at those that keep the robot standing. Laws with
exact dry friction of joints have no derivative there: friction holds every joint.

[Mastalli 2022] Mastalli, Marti-Saumell, Merkt, Solà, Mansard, Vijayakumar. A feasibility-driven
approach to control-limited DDP. Autonomous Robots 46. arXiv:2010.00411.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import crocoddyl
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot

Array = NDArray[np.float64]
PERIOD, STEPS = 5e-3, 70
"""Time step of the planned jump [s], and how many there are."""
FINE_STEP = 1e-3
"""Time step in which it is tried [s]."""
SETTLING = 200
"""Steps until the robot stands still."""
STIFFNESS, DAMPING = 60.0, 2.0
"""Of the joints while it settles [N m/rad, N m s/rad]."""
LAWS = ('todorov', 'ncp', 'lcp', 'anitescu', 'sap', 'compliant')
ON_THE_WAY = {'place': 1.0, 'tilt': 1.0, 'joints': 0.1, 'velocity': 1e-3, 'effort': 1e-3}
"""Weights per second of deviations from the standing pose and its efforts."""
AT_THE_END = {'place': 200.0, 'height': 4000.0, 'tilt': 200.0, 'joints': 10.0, 'velocity': 0.01}


@dataclass(frozen=True)
class Stance:
    """Where the jump begins."""

    x: Array
    """Configuration, then velocity, shape (nq + nv,)."""
    effort: Array
    """What keeps it there [N m], shape (n_joints,)."""


def stance(sim: Simulator) -> Stance:
    """Return how a robot stands when its joints are held."""
    robot, q = sim.robot, sim.standing_configuration()
    for _ in range(SETTLING):
        error = robot.joint_positions(q) - robot.joint_positions(sim.q)
        effort = STIFFNESS * error - DAMPING * robot.joint_velocities(sim.v)
        sim.step(effort)
    return Stance(np.concatenate([sim.q, np.zeros(robot.nv)]), effort)


class StepAction(crocoddyl.ActionModelAbstract):  # type: ignore[misc]
    """A step of a simulation as a node of an optimal control problem.

    Args:
        sim: simulates the step.
        state: of crocoddyl.
        target: configuration from which deviations are measured, shape (nq,).
        weights: of the tangent at the target and of the velocity, shape (2 nv,).
        effort: efforts from which deviations are measured [N m], and their weight.
    """

    def __init__(
        self, sim: Simulator, state: Any, target: Array, weights: Array,
        effort: tuple[Array, float],
    ) -> None:  # fmt: skip
        super().__init__(state, sim.robot.n_joints, 1)
        self._sim, self._model = sim, sim.robot.pinocchio_model
        self._target, self._weights, (self._usual, self._dear) = target, weights, effort
        self.u_ub = sim.robot.actuators.effort_limit
        self.u_lb = -self.u_ub

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Fill the next state and the cost."""
        deviation, nq = self._deviation(x), self._model.nq
        data.cost, data.xnext = 0.5 * self._weights @ deviation**2, x
        if u is not None:
            data.cost += 0.5 * self._dear * np.sum((u - self._usual) ** 2)
            self._sim.reset(x[:nq], x[nq:])
            self._sim.step(u)
            data.xnext = np.concatenate([self._sim.q, self._sim.v])

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        """Fill the derivatives of both."""
        deviation, nq, nv = self._deviation(x), self._model.nq, self._model.nv
        jacobian = np.eye(2 * nv)
        jacobian[:nv, :nv] = pin.dDifference(self._model, self._target, x[:nq], pin.ARG1)
        data.Lx = jacobian.T @ (self._weights * deviation)
        data.Lxx = jacobian.T @ (self._weights[:, np.newaxis] * jacobian)
        if u is not None:
            data.Lu, data.Luu = self._dear * (u - self._usual), self._dear * np.eye(len(u))
            self._sim.reset(x[:nq], x[nq:])
            derivatives = self._sim.derivatives(u)
            data.Fx, data.Fu = derivatives.state_matrix, derivatives.input_matrix

    def _deviation(self, x: Array) -> Array:
        nq = self._model.nq
        return np.concatenate([pin.difference(self._model, self._target, x[:nq]), x[nq:]])


def weights_of(nv: int, each: dict[str, float]) -> Array:
    """Return the weights of the tangent and of the velocity, shape (2 nv,)."""
    weights = np.empty(2 * nv)
    weights[:2], weights[2] = each['place'], each.get('height', 0.0)
    weights[3:6], weights[6:nv], weights[nv:] = each['tilt'], each['joints'], each['velocity']
    return weights


def planned(sim: Simulator, start: Stance, height: float, iterations: int) -> Any:
    """Return the solver with states `xs`, efforts `us` and gains `K` of a jump.

    Args:
        sim: simulates the steps; its law and time step are those of the plan.
        start: where the jump begins.
        height: of the base at the end over where it begins [m].
        iterations: largest number.
    """
    nq, nv = sim.robot.nq, sim.robot.nv
    state = crocoddyl.StateMultibody(sim.robot.pinocchio_model)
    standing, above = start.x[:nq], start.x[:nq].copy()
    above[2] += height
    on_the_way = PERIOD * weights_of(nv, ON_THE_WAY)
    effort = start.effort, PERIOD * ON_THE_WAY['effort']
    node = StepAction(sim, state, standing, on_the_way, effort)
    end = StepAction(sim, state, above, weights_of(nv, AT_THE_END), (start.effort, 0.0))
    problem = crocoddyl.ShootingProblem(start.x, [node] * STEPS, end)
    solver = crocoddyl.SolverBoxFDDP(problem)
    efforts = [start.effort] * STEPS
    solver.solve(list(problem.rollout(efforts)), efforts, iterations)
    return solver


def tried(law: str, start: Stance, plan: Any) -> tuple[float, float]:
    """Return how far the base and the lowest foot rise when the plan is followed [m]."""
    sim = Simulator(load_robot('go1'), contact_model=law, time_step=FINE_STEP)
    nq, limit = sim.robot.nq, sim.robot.actuators.effort_limit
    state = plan.problem.runningModels[0].state
    sim.reset(start.x[:nq], start.x[nq:])
    for x, u, gains in zip(plan.xs, plan.us, plan.K, strict=False):
        for _ in range(round(PERIOD / FINE_STEP)):
            error = state.diff(x, np.concatenate([sim.q, sim.v]))
            report = sim.step(np.clip(u - gains @ error, -limit, limit))
    return float(sim.q[2] - start.x[2]), float(report.contacts.gap.min())


def main(arguments: Sequence[str] | None = None) -> int:
    """Plan a jump and print how high it is under every law."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--law', default='todorov', choices=LAWS, help='of the plan')
    parser.add_argument('--height', type=float, default=0.25, help='of the base at the end [m]')
    parser.add_argument('--iterations', type=int, default=60)
    options = parser.parse_args(arguments)
    sim = Simulator(load_robot('go1'), contact_model=options.law, time_step=PERIOD)
    start, began = stance(sim), time.perf_counter()
    plan = planned(sim, start, options.height, options.iterations)
    rise = plan.xs[-1][2] - start.x[2]
    print(f'{options.law}: {plan.iter + 1} iterations in {time.perf_counter() - began:.0f} s')
    print(f'planned: the base rises by {100.0 * rise:.1f} cm')
    print(f'{"law":12}{"base [cm]":>12}{"feet [cm]":>12}')
    for law in LAWS:
        base, feet = tried(law, start, plan)
        print(f'{law:12}{100.0 * base:12.1f}{100.0 * feet:12.1f}')
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
