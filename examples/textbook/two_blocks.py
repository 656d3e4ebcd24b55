"""Two blocks.

One runs into the other, and implicit Euler sees the impact before it happens. Blocks of mass m = 1
and width 1, A at −2 with speed 3, B at 0 at rest, step h = 1:

    q_A' = q_A + h v_A',  v_A' = v_A − (h/m) f        q_B' = q_B + h v_B',  v_B' = v_B + (h/m) f
    0 ≤ φ' = q_B' − q_A' − 1  ⊥  f ≥ 0

Observe: after the first step A is at 0, not at −1 where B's near side was: the constraint is about
positions at the end of the step, and by then B has moved on to 1. The impact of rigid bodies gives
both 1.5 at once; here they have 2 and 1 first. Momentum is 3 in every step.

The unit of length is a centimetre: contacts between bodies are searched within 2 cm.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from textbook.complementarity import solutions
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: exercise, two blocks'
ROBOT = 'two_blocks'
UNIT = 0.01
"""Length of 1 [m]."""
MASS, WIDTH, STEP = 1.0, 1.0, 1.0
START = (-2.0, 3.0, 0.0, 0.0)
"""q_A, v_A, q_B, v_B."""
EXPECTED = ((0.0, 2.0, 1.0, 1.0, 1.0), (1.5, 1.5, 2.5, 1.5, 0.5), (3.0, 1.5, 4.0, 1.5, 0.0))
"""q_A, v_A, q_B, v_B, f after each step."""

Array = NDArray[np.float64]


def implicit_euler(steps: int) -> Array:
    """Return q_A, v_A, q_B, v_B, f after each step, shape (steps, 5)."""
    q_a, v_a, q_b, v_b = START
    rows = []
    for _ in range(steps):
        gap = q_b - q_a - WIDTH + STEP * (v_b - v_a)
        force = float(solutions([[2.0 * STEP**2 / MASS]], [gap])[0][0])
        v_a, v_b = v_a - STEP * force / MASS, v_b + STEP * force / MASS
        q_a, q_b = q_a + STEP * v_a, q_b + STEP * v_b
        rows.append([q_a, v_a, q_b, v_b, force])
    return np.array(rows)


def simulated(model: str, steps: int) -> Array:
    """Return the same from the simulator."""
    robot = load_robot(ROBOT).with_self_collision([('block_a', 'block_b')])
    sim = Simulator(robot, model, friction=0.0, time_step=STEP)
    at = np.array([START[0], START[2]])  # where the joints are 0
    sim.reset([0.0, 0.0], [UNIT * START[1], UNIT * START[3]])
    rows = []
    for _ in range(steps):
        force = -sim.step([]).pairs.force[:, 0].sum() / UNIT
        (q_a, q_b), (v_a, v_b) = at + sim.q / UNIT, sim.v / UNIT
        rows.append([q_a, v_a, q_b, v_b, force])
    return np.array(rows)


def quantities() -> list[Quantity]:
    """Return the three steps of the exercise."""
    by_hand, found = implicit_euler(3), simulated('ncp', 3)
    name = 'q_A, v_A, q_B, v_B, f of three steps'
    return [
        Quantity('T26', f'{name}, ncp', EXPECTED, found, 1e-9),
        Quantity('T26', f'{name}, lcp', EXPECTED, simulated('lcp', 3), 1e-9),
        Quantity('T26', f'{name}, scalar LCP', EXPECTED, by_hand, 1e-12),
        Quantity('T26', 'momentum after each step', [3.0] * 3, MASS * found[:, [1, 3]].sum(axis=1),
                 1e-12),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw both blocks as bands over the steps, and the impact of rigid bodies."""
    rows = np.vstack([[*START, 0.0], simulated('ncp', 3)])
    axis = figure.subplots()
    time = STEP * np.arange(len(rows))
    for column, name, colour in ((0, 'A', 'tab:blue'), (2, 'B', 'tab:orange')):
        q = rows[:, column]
        axis.fill_between(time, q - 0.5 * WIDTH, q + 0.5 * WIDTH, alpha=0.4, color=colour)
        axis.plot(time, q, 'o-', color=colour, label=f'{name}, h = 1')
    instant = 1.0 / 3.0  # A has run through the gap of 1 at speed 3
    axis.plot([0.0, instant, 3.0], [-2.0, -1.0, -1.0 + 1.5 * (3.0 - instant)], 'k--', lw=1,
              label='rigid impact')  # fmt: skip
    axis.plot([0.0, instant, 3.0], [0.0, 0.0, 1.5 * (3.0 - instant)], 'k--', lw=1)
    axis.set(xlabel='time', ylabel='position', title='Two blocks meet within a long step')
    axis.legend()
