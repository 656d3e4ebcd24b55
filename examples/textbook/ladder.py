"""Ladder on a wall.

It slides if the floor is too smooth, and it lets go of the wall before it lies on the floor.

Uniform rod of length 2 l and mass m at the angle θ from the floor; friction μ_1 at the floor and
μ_2 at the wall. At the limit both contacts slide at once. Forces and moments then balance for

    tan θ = (1 − μ_1 μ_2)/(2 μ_1)      so μ_1 = 1/(2 tan θ + μ_2);  of one μ: θ = π/2 − 2 atan μ

Without friction its middle moves on a circle about the corner. From rest at θ_0

    θ̇² = (3 g/2 l)(sin θ_0 − sin θ),   wall: N = ¾ m g cos θ (3 sin θ − 2 sin θ_0)

so it leaves the wall at two thirds of its first height. From there on its speed along the floor
stays, and at that instant the floor bears m g/4 however steep the ladder was.

Observe: where it stands its forces are not unique, four of them in three equations; whether it
stands is. The gap at the wall opens slowly at first, as t³.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from contact_sim.collision import Planes
from textbook.planar import place, run, velocity
from textbook.quantity import Quantity

SOURCE = 'Statics of a ladder; a ladder that slides without friction leaves the wall'
ROBOT = 'falling_rod'
LOADED, HALF, MASS, GRAVITY = 0.6, 1.0, 1.0, 9.81
"""Angle of the rod as it is loaded [rad], half length [m], mass [kg]."""
STEEP, WALL_FRICTION = 1.0, 0.3
"""Angle of the ladder whose friction is looked for [rad], μ_2."""
START = 1.2
"""Angle from which it slides without friction [rad]."""
ROOM = Planes((((0.0, 0.0, 1.0), 0.0), ((1.0, 0.0, 0.0), 0.0)))
"""The floor, and a wall at x = 0."""

Array = NDArray[np.float64]


def simulator(model: str, friction: tuple[float, float], time_step: float = 1e-3) -> Simulator:
    """Return the ladder with μ_1 of its end on the floor, μ_2 of that at the wall."""
    return Simulator(load_robot(ROBOT), model, ROOM, friction=friction, time_step=time_step)


def lean(sim: Simulator, angle: float) -> None:
    """Place the ladder at rest at an angle from the floor [rad]."""
    at = HALF * np.cos(angle), HALF * np.sin(angle)
    place(sim, at, np.pi - angle - LOADED)  # its upper end is to the left


def stands(sim: Simulator, angle: float) -> bool:
    """Return whether the ladder is at rest after a step."""
    lean(sim, angle)
    sim.step([])
    return bool(np.abs(velocity(sim)).max() < 1e-9)


def least_friction(model: str) -> float:
    """Return μ_1 from which it stands at STEEP with μ_2 = WALL_FRICTION, by bisection."""
    sim, slides, holds = simulator(model, (0.0, WALL_FRICTION)), 0.0, 1.0
    while holds - slides > 1e-7:
        middle = 0.5 * (slides + holds)
        sim.friction = middle, WALL_FRICTION
        slides, holds = (slides, middle) if stands(sim, STEEP) else (middle, holds)
    return holds


def least_angle(model: str, friction: float) -> float:
    """Return the angle [rad] from which it stands with one friction everywhere, by bisection."""
    sim, slides, holds = simulator(model, (friction, friction)), 0.1, 1.5
    while holds - slides > 1e-7:
        middle = 0.5 * (slides + holds)
        slides, holds = (slides, middle) if stands(sim, middle) else (middle, holds)
    return holds


def slide(model: str, time_step: float = 1e-3) -> Array:
    """Return rows of (sin θ, force of the wall, of the floor, v_x) without friction.

    Forces are means over a step, so is sin θ. The rows end before the ladder lies on the floor.
    """
    sim = simulator(model, (0.0, 0.0), time_step)
    lean(sim, START)
    rows, before = [], np.sin(START)
    while sim.q[2] > 0.2 * HALF:
        force = sim.step([]).contacts.force.sum(axis=0)
        after = sim.q[2] / HALF
        rows.append([0.5 * (before + after), force[0], force[2], velocity(sim)[0]])
        before = after
    return np.array(rows)


def leaves(rows: Array) -> tuple[float, float, float]:
    """Return sin θ over sin θ_0 where the wall ends to push, floor [N] there, v_x after [m/s].

    From all steps in contact but the last: before, N/cos θ of the wall is linear in sin θ, and
    the force of the floor a parabola.
    """
    sine, wall, floor, _ = rows[rows[:, 1] > 0.0][:-1].T
    slope, start = np.polyfit(sine, wall / np.sqrt(1.0 - sine**2), 1)
    at = -start / slope
    bears = np.polyval(np.polyfit(sine, floor, 2), at)
    return float(at / np.sin(START)), float(bears), float(rows[-1, 3])


def quantities() -> list[Quantity]:
    """Return both limits of standing, and where a ladder without friction leaves the wall."""
    table = []
    limit, angle = 1.0 / (2.0 * np.tan(STEEP) + WALL_FRICTION), np.pi / 2 - 2 * np.arctan(0.4)
    for model in ('ncp', 'lcp', 'hybrid'):
        table += [
            Quantity('X34', f'mu of the floor from which it stands, {model} [-]', limit,
                     least_friction(model), 1e-5),
            Quantity('X34', f'angle from which it stands, mu = 0.4, {model} [rad]', angle,
                     least_angle(model, 0.4), 1e-5),
        ]  # fmt: skip
    height = 2.0 / 3.0 * np.sin(START)
    speed = HALF * height * np.sqrt(0.75 * GRAVITY * height / HALF)
    for model, step, tolerance in (('hybrid', 1e-3, 1e-5), ('ncp', 1e-4, 1e-3)):
        fraction, floor, along = leaves(slide(model, step))
        table += [
            Quantity('X34', f'height at which it leaves the wall over the first, {model} [-]',
                     2.0 / 3.0, fraction, tolerance),
            Quantity('X34', f'force of the floor then, {model} [N]', 0.25 * MASS * GRAVITY, floor,
                     tolerance),
            Quantity('X34', f'speed along the floor afterwards, {model} [m/s]', speed, along,
                     tolerance),
        ]  # fmt: skip
    return table


def figure(figure: Figure) -> None:
    """Draw the sliding ladder and the forces of wall and floor."""
    left, right = figure.subplots(1, 2)
    sim = simulator('hybrid', (0.0, 0.0))
    lean(sim, START)
    rows = run(sim, 0.9)
    for _, x, z, turn, *_ in rows[:: len(rows) // 10]:
        along = HALF * np.array([np.cos(turn + LOADED), np.sin(turn + LOADED)])
        left.plot([x - along[0], x + along[0]], [z - along[1], z + along[1]], 'tab:grey', lw=1)
    left.plot(rows[:, 1], rows[:, 2], 'tab:red', label='middle')
    left.axhline(0.0, color='k', lw=1)
    left.axvline(0.0, color='k', lw=1)
    left.set(aspect='equal', xlabel='x [m]', ylabel='z [m]', title='without friction')
    left.legend()
    height, wall, floor, _ = slide('hybrid').T
    right.plot(height / np.sin(START), wall, label='wall')
    right.plot(height / np.sin(START), floor, label='floor')
    right.axvline(2.0 / 3.0, color='k', ls='--', lw=1)
    right.axhline(0.25 * MASS * GRAVITY, color='k', ls=':', lw=1)
    right.invert_xaxis()
    right.set(xlabel='height over the first', ylabel='force [N]')
    right.legend()
