"""Sliding brick.

It slides on the floor and stops: Coulomb's friction as a complementarity problem. In one
dimension, with f = f⁺ − f⁻ the friction on the brick and v' = v + (h/m)(u + f):

    0 ≤ s + v'            ⊥  f⁺ ≥ 0
    0 ≤ s − v'            ⊥  f⁻ ≥ 0
    0 ≤ μ m g − f⁺ − f⁻   ⊥  s  ≥ 0          s becomes |v'|

Observe: while it slides the friction is μ m g against the motion. In the last step it is just what
stops the brick, and at rest just what holds it: nothing creeps and nothing turns round.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from textbook.complementarity import solutions
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: time-stepping LCP, Coulomb friction'
ROBOT = 'sliding_brick'
MASS, FRICTION, STEP, GRAVITY = 1.0, 0.5, 0.1, 9.81

Array = NDArray[np.float64]


def lcp(v: float, push: float = 0.0) -> tuple[float, float]:
    """Return (v' [m/s], friction f [N]) after a step."""
    free, response = v + STEP * push / MASS, STEP / MASS
    A = [[response, -response, 1.0], [-response, response, 1.0], [-1.0, -1.0, 0.0]]
    answer = solutions(A, [free, -free, FRICTION * MASS * GRAVITY])[0]
    force = float(answer[0] - answer[1])
    return free + response * force, force


def simulator(model: str = 'ncp', time_step: float = STEP) -> Simulator:
    """Return the brick on the floor."""
    robot = load_robot(ROBOT)
    return Simulator(robot, model, friction=FRICTION, time_step=time_step)


def step(sim: Simulator, push: float = 0.0) -> tuple[float, float]:
    """Step under a push along x [N]; return (v [m/s], friction [N])."""
    report = sim.step([], {'brick': [push, 0.0, 0.0, 0.0, 0.0, 0.0]})
    return float(sim.v[0]), float(report.contacts.force[:, 0].sum())


def sliding(sim: Simulator, steps: int) -> Array:
    """Return (v, friction) of the steps from 1 m/s."""
    sim.reset(v=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    return np.array([step(sim) for _ in range(steps)])


def from_rest(push: float) -> tuple[float, float]:
    """Return (v, friction) of the first step under a push."""
    sim = simulator()
    return step(sim, push)


def quantities() -> list[Quantity]:
    """Return the four steps until it rests, and a push that it bears and one that moves it."""
    speeds, forces = [0.5095, 0.019, 0.0, 0.0], [-4.905, -4.905, -0.19, 0.0]
    expected = np.column_stack([speeds, forces])
    by_hand, v = [], 1.0
    for _ in range(4):
        v, force = lcp(v)
        by_hand.append([v, force])
    return [
        *(
            Quantity('T18', f'v, f of four steps, {model} [m/s, N]', expected,
                     sliding(simulator(model), 4), 1e-9)
            for model in ('ncp', 'lcp')
        ),
        Quantity('T18', 'v, f of four steps, scalar LCP [m/s, N]', expected, by_hand, 1e-12),
        Quantity('T18', "v', f under 3 N [m/s, N]", [0.0, -3.0], from_rest(3.0), 1e-9),
        Quantity('T18', "v', f under 6 N [m/s, N]", [0.1095, -4.905], from_rest(6.0), 1e-9),
        Quantity('T18', "v', f under 3 and 6 N, scalar LCP", [[0.0, -3.0], [0.1095, -4.905]],
                 [lcp(0.0, 3.0), lcp(0.0, 6.0)], 1e-12),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw speed and friction under three contact models."""
    speed, friction = figure.subplots(2, 1, sharex=True)
    for model in ('ncp', 'sap', 'compliant'):
        v, force = sliding(simulator(model, 1e-3), 300).T
        time = 1e-3 * np.arange(1, 301)
        speed.plot(time, v, label=model)
        friction.plot(time, force, label=model)
    v, force = sliding(simulator(), 3).T
    speed.plot(STEP * np.arange(1, 4), v, 'ko', label='ncp, h = 0.1 s')
    friction.plot(STEP * np.arange(1, 4), force, 'ko')
    speed.set_ylabel('v [m/s]')
    speed.legend()
    friction.set(xlabel='time [s]', ylabel='friction [N]')
    speed.set_title('A brick slides, stops and stays')
