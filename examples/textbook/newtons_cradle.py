"""Newton's cradle: what an impact does to three balls at once.

Equal balls in a row, the first comes in at 1. Simultaneous laws see both contacts closed, with
Newton's u_n⁺ = −e u_n⁻ at each: the second contact is not approached, so it asks for u_n⁺ = 0, and

    e = 1: v = (−⅓, ⅔, ⅔)        e = ½: v = (0, ½, ½)

Balls that are apart collide one after the other and pass the speed on: (0, 0, 1).

Observe: both answers keep momentum and energy for e = 1. Which one a cradle gives depends on the
air between its balls; no simultaneous law of rigid impact gives (0, 0, 1) for balls that touch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from textbook.quantity import Quantity

from contact_sim import Hybrid, RobotModel, Simulator, load_robot
from contact_sim.contact_models.protocol import ContactModel

SOURCE = 'Tedrake, Underactuated Robotics, B (impacts at several contacts)'
ROBOT = 'newtons_cradle'
GAP = 1e-3
"""Air between balls that collide one after the other, as an angle [rad] at rods of 1 m."""

Array = NDArray[np.float64]


def cradle() -> RobotModel:
    """Return three balls of which neighbours touch each other."""
    return load_robot(ROBOT).with_self_collision([('ball_1', 'ball_2'), ('ball_2', 'ball_3')])


def after(
    model: str | ContactModel,
    restitution: float,
    apart: Sequence[float] = (0.0, 0.0, 0.0),
    time_step: float = 1e-3,
    steps: int = 1,
) -> Array:
    """Return the speeds [rad/s] after the first ball came in at 1 rad/s, the others at rest."""
    sim = Simulator(
        cradle(),
        model,
        friction=0.0,
        restitution=restitution,
        gravity=0.0,
        time_step=time_step,
    )
    sim.reset(apart, [1.0, 0.0, 0.0])
    for _ in range(steps):
        sim.step([])
    return sim.v


def swing(gap: float, seconds: float, restitution: float = 1.0) -> Array:
    """Return rows of (t, three angles) of a cradle whose first ball is let go at −0.5 rad."""
    sim = Simulator(cradle(), friction=0.0, restitution=restitution)
    sim.reset([-0.5, gap, 2.0 * gap])
    rows = []
    for _ in range(round(seconds / sim.time_step)):
        sim.step([])
        rows.append([sim.time, *sim.q])
    return np.array(rows)


def quantities() -> list[Quantity]:
    """Return simultaneous impacts under several laws, and a sequence of them."""
    simultaneous = [-1 / 3, 2 / 3, 2 / 3]
    laws = {
        'ncp': 'ncp', 'lcp': 'lcp', 'hybrid newton': 'hybrid',
        'hybrid poisson': Hybrid(impact='poisson'), 'hybrid moreau': Hybrid(impact='moreau'),
    }  # fmt: skip
    apart, models = (0.0, GAP, 2.0 * GAP), ('ncp', 'hybrid')
    return [
        *(
            Quantity('X14', f'speeds, e = 1, {name}', simultaneous, after(model, 1.0), 2e-6)
            for name, model in laws.items()
        ),
        *(
            Quantity('X14', f'speeds, e = 0.5, {name}', [0.0, 0.5, 0.5], after(name, 0.5), 3e-6)
            for name in models
        ),
        *(
            Quantity('X14', f'speeds, e = 1, 1 mm apart, {name}', [0.0, 0.0, 1.0],
                     after(name, 1.0, apart, 1e-4, 40), 1e-9)
            for name in models
        ),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the angles of cradles whose balls touch and are 1 mm apart."""
    for axis, gap in zip(figure.subplots(2, 1, sharex=True), (0.0, GAP), strict=True):
        rows = swing(gap, 3.0)
        axis.plot(rows[:, 0], rows[:, 1:], label=['first', 'second', 'third'])
        axis.set(ylabel='angle [rad]', title=f'{1e3 * gap:g} mm apart')
    axis.set_xlabel('time [s]')
    axis.legend()
