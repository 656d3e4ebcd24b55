"""Cart at a wall.

An impact as a complementarity problem. The cart of mass m is pushed by u; q ≥ 0 is its distance
from the wall, f ≥ 0 the force of it. A step h of implicit Euler asks for

    q' = q + h v + (h²/m)(u + f),    0 ≤ q' ⊥ f ≥ 0

which has one solution: f = max(0, −(m/h²)(q + h v + h² u/m)). As a quadratically constrained
quadratic program over x = (q', f) the same is q' ≥ 0, f ≥ 0, q' f ≥ 0, −q' f ≥ 0 and one linear
equation. The note takes q itself as the gap and J where Jᵀ belongs; in general w = φ + h n (v + h
M⁻¹ τ) + h² n M⁻¹ nᵀ f.

Observe: the impact takes two steps. The first stops the cart at the wall and takes half of its
speed, the second takes the rest. Nothing bounces, and nothing overlaps.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import minimize

from contact_sim import Plane, Simulator, load_robot
from textbook.complementarity import solutions
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: time-stepping LCP, normal force; rigid contact note'
ROBOT = 'cart_and_wall'
MASS, STEP = 1.0, 0.1
CASES = ((0.05, -1.0), (0.3, -1.0), (0.0, 2.0))
"""(q, v) of which the note gives the next (q', f)."""
ANSWERS = ((0.0, 5.0), (0.2, 0.0), (0.2, 0.0))
RELAXATIONS = 10.0 ** -np.arange(1, 14, 2)
"""Bounds ε of q' f ≤ ε on the way to 0."""

Array = NDArray[np.float64]


def lcp(q: float, v: float, push: float = 0.0) -> tuple[float, float]:
    """Return (q' [m], f [N]) after a step of implicit Euler."""
    free, response = q + STEP * v + STEP**2 * push / MASS, STEP**2 / MASS
    (force,) = solutions([[response]], [free])
    return free + response * float(force[0]), float(force[0])


def qcqp(q: float, v: float, push: float = 0.0) -> Array:
    """Return the feasible points (q', f) of least and of largest f, shape (2, 2).

    They are one point: the constraints leave nothing to choose.
    """
    free, response = q + STEP * v + STEP**2 * push / MASS, STEP**2 / MASS
    product = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = []
    for sign in (1.0, -1.0):
        x = np.array([1.0, 10.0])  # neither feasible nor the answer
        for most in RELAXATIONS:
            rows = [
                {'type': 'eq', 'fun': lambda x: x[0] - free - response * x[1]},
                {'type': 'ineq', 'fun': lambda x: x},
                {'type': 'ineq', 'fun': lambda x, most=most: most - 0.5 * x @ product @ x},
            ]
            answer = minimize(
                lambda x, sign=sign: sign * x[1], x, method='SLSQP', constraints=rows,
                options={'ftol': 1e-14},
            )  # fmt: skip
            x = answer.x
        found.append(x)
    return np.array(found)


def simulator(model: str) -> Simulator:
    """Return the cart, with the wall at 0."""
    wall = Plane((1.0, 0.0, 0.0))
    return Simulator(load_robot(ROBOT), model, wall, friction=0.0, time_step=STEP)


def crash(model: str, steps: int = 3) -> Array:
    """Return (q, v, f) of the steps from q = 0.05 m at −1 m/s."""
    sim, rows = simulator(model), []
    sim.reset([0.05], [-1.0])
    for _ in range(steps):
        force = sim.step([0.0]).contacts.force[0, 0]
        rows.append([sim.q[0], sim.v[0], force])
    return np.array(rows)


def quantities() -> list[Quantity]:
    """Return the impact in two steps, and single steps of the note by three methods."""
    expected = [(0.0, -0.5, 5.0), (0.0, 0.0, 5.0), (0.0, 0.0, 0.0)]
    table = [
        Quantity(
            'T16', f'q, v, f of three steps, {model} [m, m/s, N]', expected, crash(model), 1e-9
        )
        for model in ('lcp', 'ncp')
    ]
    sim, steps = simulator('ncp'), []
    for q, v in CASES:
        sim.reset([q], [v])
        force = sim.step([0.0]).contacts.force[0, 0]
        steps.append([sim.q[0], force])
    sim.reset([0.0], [0.0])
    held = sim.step([-2.0]).contacts.force[0, 0]
    both = np.array([qcqp(*case) for case in CASES])
    return [
        *table,
        Quantity('T16', 'force that holds a push of 2 N [N]', 2.0, held, 1e-9),
        Quantity('R2', "q', f of single steps, ncp [m, N]", ANSWERS, steps, 1e-9),
        Quantity('R2', "q', f, scalar LCP [m, N]", ANSWERS, [lcp(*case) for case in CASES], 1e-12),
        Quantity('R1', "q', f, QCQP with least f [m, N]", ANSWERS, both[:, 0], 1e-7),
        Quantity('R1', "q', f, QCQP with largest f [m, N]", ANSWERS, both[:, 1], 1e-7),
    ]


def figure(figure: Figure) -> None:
    """Draw distance, speed and force of the impact, step by step."""
    time = STEP * np.arange(5)
    q, v, f = np.vstack([[0.05, -1.0, 0.0], crash('ncp', 4)]).T
    axes = figure.subplots(3, 1, sharex=True)
    for axis, values, name in zip(axes, (q, v, f), ('q [m]', 'v [m/s]', 'f [N]'), strict=True):
        axis.plot(time, values, 'o-')
        axis.set_ylabel(name)
        axis.grid(True)
    axes[0].set_title('A cart stops at a wall in two steps')
    axes[-1].set_xlabel('time [s]')
