"""Four-bar linkage.

Uniform rods of 1 kg/m, crank 1 m, coupler 2 m, rocker 1.5 m on a ground of 2 m, cut where coupler
and rocker meet and closed by two rows, h = p_coupler - p_rocker = 0:

    M v̇ = τ + Hᵀ λ,   ḧ = H v̇ + Ḣ v = -2 α ḣ - α² h
    in minimal coordinates v = Q ξ̇, H Q = 0:   Qᵀ M Q ξ̈ + Qᵀ (nle + M Q̇ ξ̇) = 0

Observe the drift: with α = 0 the loop opens by half a metre in 5 s of semi-implicit steps of 2 ms,
and by less than a micrometre in those of Runge-Kutta; α = 10 bounds both; projection leaves none.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Hybrid, RobotModel, Simulator, load_robot
from contact_sim.constraints import Baumgarte, LoopClosure, Projection
from contact_sim.support import stance_dynamics
from textbook.differences import rate
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: bilateral position constraints'
ROBOT = 'four_bar'
Array = NDArray[np.float64]

RATE = 1.5
"""Of the crank [rad/s]."""
NONE = np.zeros(0)
ARCS = Hybrid(max_substep=2e-3)
"""One step of Runge-Kutta in each step."""
AFTER = np.array([500, 1000, 2500])
"""Steps of 2 ms to 1, 2 and 5 s."""


@cache
def robot() -> RobotModel:
    """Return the rods."""
    return load_robot(ROBOT)


def closed(stabilisation: Baumgarte | Projection, model: str | Hybrid = 'ncp') -> Simulator:
    """Return the four-bar, closed to rounding, its crank turning."""
    loop = LoopClosure('coupler_tip', 'rocker_tip', stabilisation=stabilisation, name='loop')
    sim = Simulator(robot(), model, time_step=2e-3, constraints=[loop])
    sim.reset(assembled(), mobility(assembled()) * RATE)
    return sim


@cache
def assembled() -> Array:
    """Return q at which the loop is closed: projection moves the pose of the robot there."""
    return Simulator(robot(), constraints=[LoopClosure('coupler_tip', 'rocker_tip')]).q


def opening(q: Array) -> Array:
    """Return H, rows x and z, shape (2, 3)."""
    data = robot().pinocchio_model.createData()
    tips = [robot().pinocchio_model.getFrameId(f'{name}_tip') for name in ('coupler', 'rocker')]
    one, other = (
        pin.computeFrameJacobian(robot().pinocchio_model, data, q, tip, pin.LOCAL_WORLD_ALIGNED)
        for tip in tips
    )
    return np.asarray((one - other)[[0, 2]])


def mobility(q: Array) -> Array:
    """Return Q: the velocities for one of the crank, shape (3,)."""
    H = opening(q)
    return np.array([1.0, *np.linalg.solve(H[:, 1:], -H[:, 0])])


def minimal() -> float:
    """Return ξ̈ of the crank in minimal coordinates [rad/s²]."""
    q = assembled()
    v = mobility(q) * RATE
    s = stance_dynamics(robot(), q, v, [])
    Q, growth = mobility(q), rate(mobility, q, v) * RATE
    return float(-Q @ (s.nonlinear_effects + s.inertia @ growth) / (Q @ s.inertia @ Q))


def quantities() -> list[Quantity]:
    """Return accelerations, the force of the loop, and how far it opens."""
    report = closed(Baumgarte(0.0)).step(NONE)
    crank, coupler, rocker = report.acceleration
    force = report.constraints['loop'].force[[0, 2]]
    expected = (-3.82325152, 0.95587181, -1.64423588)
    return [
        Quantity('T4', 'θ̈ of crank, coupler, rocker [rad/s²]', expected,
                 (crank, crank + coupler, rocker), 5e-9),
        Quantity('T4', 'force of the loop [N]', (1.61844923, 7.33439081), force, 5e-9),
        Quantity('T4', 'ξ̈ in minimal coordinates', -3.823251519, minimal(), 5e-9),
        *(Quantity('X24', f'|h| after 1, 2, 5 s, α = {alpha:g} [µm]', drifts,
                   1e6 * drift(alpha)[AFTER - 1], 0.6 / drifts[1])
          for alpha, drifts in ((0.0, (1947, 63108, 447518)), (10.0, (446, 2764, 2102)))),
        Quantity('X24', '|h| after 1, 2, 5 s, α = 0, Runge-Kutta [µm]', (1e-4, 0.028, 0.37),
                 1e6 * drift(0.0, ARCS)[AFTER - 1], 0.014),
        Quantity('X24', '|h| after 1, 2, 5 s, α = 10, Runge-Kutta, below 1e-3 µm', (0.0,) * 3,
                 1e6 * drift(10.0, ARCS)[AFTER - 1], 1e-3),
    ]  # fmt: skip


@cache
def drift(alpha: float, model: str | Hybrid = 'ncp') -> Array:
    """Return |h| after each step of 5 s [m]."""
    sim = closed(Baumgarte(alpha), model)
    return np.array([sim.step(NONE).constraints['loop'].drift for _ in range(AFTER[-1])])


def figure(figure: Figure) -> None:
    """Draw how far the loop opens."""
    axes, times = figure.subplots(), 2e-3 * np.arange(1, AFTER[-1] + 1)
    for alpha in (0.0, 10.0):
        for model, label in (('ncp', 'semi-implicit'), (ARCS, 'Runge-Kutta')):
            line = np.maximum(drift(alpha, model), 1e-17)
            axes.semilogy(times, line, label=f'{label}, α = {alpha:g}')
    sim = closed(Projection())
    left = [sim.step(NONE).constraints['loop'].drift for _ in times]
    axes.semilogy(times, np.maximum(left, 1e-17), 'k:', label='projection')
    axes.set(xlabel='time [s]', ylabel='|h| [m]', title='h = 2 ms')
    axes.legend()
