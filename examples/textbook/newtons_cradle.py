"""Newton's cradle.

What an impact does to three balls at once. Equal balls in a row, the first comes in at 1.
Simultaneous laws see both contacts closed, with Newton's u_n⁺ = −e u_n⁻ at each: the second
contact is not approached, so it asks for u_n⁺ = 0, and

    e = 1: v = (−⅓, ⅔, ⅔)        e = ½: v = (0, ½, ½)

A sequence of single impacts passes the speed on, until no ball approaches the next one:

    e = 1: v = (0, 0, 1)         e = ½: v = (13/64, 15/64, 9/16)

That is what balls do that are apart. For balls that touch it is the option
`multiple_impacts: sequential` of the models with restitution.

Observe: both answers keep momentum and energy for e = 1. Which one a cradle gives depends on the
air between its balls; no simultaneous law of rigid impact gives (0, 0, 1) for balls that touch.
Over ROS: `self_collision:=ball_1:ball_2,ball_2:ball_3`.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Hybrid, RobotModel, Simulator, load_robot
from contact_sim.contact_models import CONTACT_MODELS, ContactModel
from textbook.quantity import Quantity

SOURCE = 'Brogliato 2016: multiple impacts'
ROBOT = 'newtons_cradle'
RESTITUTING = ('ncp', 'lcp', 'anitescu', 'hybrid')
GAP = 1e-3
"""Air between balls that collide one after the other, as an angle [rad] at rods of 1 m."""

Array = NDArray[np.float64]


def cradle() -> RobotModel:
    """Return three balls of which neighbours touch each other."""
    return load_robot(ROBOT).with_self_collision([('ball_1', 'ball_2'), ('ball_2', 'ball_3')])


def simulator(
    model: str | ContactModel, restitution: float, gravity: float = 0.0, time_step: float = 1e-3
) -> Simulator:
    """Return the cradle without friction."""
    return Simulator(
        cradle(), model, friction=0.0, restitution=restitution, gravity=gravity,
        time_step=time_step,
    )  # fmt: skip


def together(model: str | ContactModel, restitution: float) -> Array:
    """Return the speeds [rad/s] after the first ball hits, at 1 rad/s, two that touch."""
    sim = simulator(model, restitution)
    sim.reset([0.0] * 3, [1.0, 0.0, 0.0])
    sim.step([])
    return sim.v


def one_by_one(model: str) -> Array:
    """Return rows of (t, three angles, three speeds) of balls that are GAP apart, e = 1."""
    sim, rows = simulator(model, 1.0, time_step=1e-4), []
    sim.reset([0.0, GAP, 2.0 * GAP], [1.0, 0.0, 0.0])
    for _ in range(40):
        sim.step([])
        rows.append([sim.time, *sim.q, *sim.v])
    return np.array(rows)


def in_sequence(model: str) -> ContactModel:
    """Return a model that resolves multiple impacts as a sequence."""
    return CONTACT_MODELS[model](multiple_impacts='sequential')


def swing(model: str | ContactModel, restitution: float, seconds: float) -> Array:
    """Return rows of (t, three angles) of a cradle whose first ball is let go at −0.5 rad."""
    sim, rows = simulator(model, restitution, 9.81), []
    sim.reset([-0.5, 0.0, 0.0])
    for _ in range(round(seconds / sim.time_step)):
        sim.step([])
        rows.append([sim.time, *sim.q])
    return np.array(rows)


def quantities() -> list[Quantity]:
    """Return simultaneous impacts under several laws, and a sequence of them."""
    simultaneous = [-1 / 3, 2 / 3, 2 / 3]
    laws: dict[str, str | ContactModel] = {
        'ncp': 'ncp', 'lcp': 'lcp', 'hybrid newton': 'hybrid',
        'hybrid poisson': Hybrid(impact='poisson'), 'hybrid moreau': Hybrid(impact='moreau'),
    }  # fmt: skip
    return [
        *(
            Quantity('X14', f'speeds, e = 1, {name}', simultaneous, together(model, 1.0), 2e-6)
            for name, model in laws.items()
        ),
        *(
            Quantity('X14', f'speeds, e = 0.5, {name}', [0.0, 0.5, 0.5], together(name, 0.5), 3e-6)
            for name in ('ncp', 'hybrid')
        ),
        *(
            Quantity('X14', f'speeds, e = 1, 1 mm apart, {name}', [0.0, 0.0, 1.0],
                     one_by_one(name)[-1, 4:], 1e-9)
            for name in ('ncp', 'hybrid')
        ),
        *(
            Quantity('X14', f'speeds, e = {e:g}, in sequence, {name}', expected,
                     together(in_sequence(name), e), 3e-6)
            for e, expected in ((1.0, [0.0, 0.0, 1.0]), (0.5, [13 / 64, 15 / 64, 9 / 16]))
            for name in RESTITUTING
        ),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw swinging cradles whose balls touch, and a sequence of impacts."""
    touching, sequence, apart = figure.subplots(3, 1)
    models: list[tuple[Axes, str | ContactModel, str]] = [
        (touching, 'ncp', 'balls that touch'),
        (sequence, in_sequence('ncp'), 'balls that touch, impacts in sequence'),
    ]
    for axes, model, title in models:
        for restitution, style in ((1.0, '-'), (0.5, ':')):
            rows = swing(model, restitution, 3.0)
            axes.set_prop_cycle(None)
            names = [f'ball {k}, e = {restitution:g}' for k in (1, 2, 3)]
            axes.plot(rows[:, 0], rows[:, 1:], style, label=names)
        axes.set(xlabel='time [s]', ylabel='angle [rad]', title=title)
    touching.legend(ncols=2, fontsize='small')
    rows = one_by_one('ncp')
    apart.plot(1e3 * rows[:, 0], 1e3 * rows[:, 1:4])
    apart.set(xlabel='time [ms]', ylabel='angle [mrad]', title='balls 1 mm apart, e = 1')
