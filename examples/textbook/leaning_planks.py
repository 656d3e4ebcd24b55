"""Leaning planks.

The smallest arch: two planks hold each other up, and push the floor apart.

Uniform planks of weight W each, at the angle θ from the floor, that lean head against head. Each
foot carries one weight. The heads push each other with the thrust H, along the floor by symmetry,
which the floor bears by friction. Moments about a foot of a plank of length L:

    H L sin θ = ½ W L cos θ      so H = W/(2 tan θ),  and they stand iff μ ≥ H/W = 1/(2 tan θ)

On ice each of them is a ladder on a smooth floor and wall: θ̈ = −3 g cos θ/(2 L).

Observe: the friction of the heads plays no part, and the weight neither: an arch stands by its
form. The flatter it is, the larger its thrust.
Over ROS: `self_collision:=left:right`.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from textbook.quantity import Quantity

SOURCE = 'Statics of arches: two members that lean against each other'
ROBOT = 'leaning_planks'
ANGLE, LENGTH, MASS, GRAVITY = np.pi / 3, 1.0, 1.0, 9.81
"""θ [rad], L [m], mass of a plank [kg]."""
AIR = 1e-9
"""Between the heads as they are loaded [m]."""
NEEDED = 1.0 / (2.0 * np.tan(ANGLE))
"""Friction from which they stand [-]."""
RISE = 1
"""Component of the velocity of a plank, in its own axes, that turns its head down [rad/s]."""

Array = NDArray[np.float64]


def leaning(model: str, friction: float) -> Simulator:
    """Return both planks at rest, their heads in contact."""
    robot = load_robot(ROBOT).with_self_collision([('left', 'right')])
    sim = Simulator(robot, model, friction=friction)
    q = robot.reference_configuration()
    # the joint of the left one is turned as the plank is: the air, along the floor
    q[[0, 2]] += AIR * np.array([np.cos(ANGLE), -np.sin(ANGLE)])
    sim.reset(q)
    return sim


def forces(model: str, friction: float, seconds: float = 0.2) -> tuple[list[float], Array, float]:
    """Return the force of the heads on the left one (x, z), those of the floor, and the speed."""
    sim = leaning(model, friction)
    for _ in range(round(seconds / sim.time_step)):
        report = sim.step([])
    heads = report.pairs.force.sum(axis=0)
    return [heads[0], heads[2]], report.contacts.force[:, [0, 2]], float(np.abs(sim.v).max())


def least_friction(model: str) -> float:
    """Return the friction from which they stand [-], by bisection."""
    sim = leaning(model, 0.0)
    start, slides, holds = sim.q, 0.0, 1.0
    while holds - slides > 1e-7:
        sim.friction = 0.5 * (slides + holds)
        sim.reset(start)
        sim.step([])
        rests = np.abs(sim.v).max() < 1e-9
        slides, holds = (slides, sim.friction[0]) if rests else (sim.friction[0], holds)
    return float(holds)


def fall(model: str) -> float:
    """Return the angular acceleration of a plank on ice [rad/s²]."""
    sim = leaning(model, 0.0)
    sim.step([])
    return float(sim.v[3 + RISE] / sim.time_step)


def quantities() -> list[Quantity]:
    """Return the thrust, the forces of the floor, and the friction that it takes to stand."""
    weight = MASS * GRAVITY
    thrust, table = weight * NEEDED, []
    feet = [[thrust, weight], [-thrust, weight]]
    for model in ('ncp', 'lcp', 'hybrid', 'anitescu'):
        heads, floor, speed = forces(model, 0.5)
        table += [
            Quantity('X31', f'force x, z on the left head, {model} [N]', [-thrust, 0.0], heads,
                     1e-6),
            Quantity('X31', f'forces x, z of the floor, {model} [N]', feet, floor, 1e-6),
            Quantity('X31', f'speed after 0.2 s, {model} [m/s, rad/s]', 0.0, speed, 1e-8),
        ]  # fmt: skip
    for model in ('ncp', 'lcp', 'hybrid'):
        table += [
            Quantity('X31', f'stands from a friction of, {model} [-]', NEEDED,
                     least_friction(model), 1e-5),
            Quantity('X31', f'angular acceleration on ice, {model} [rad/s^2]',
                     1.5 * GRAVITY * np.cos(ANGLE) / LENGTH, fall(model), 1e-3),
        ]  # fmt: skip
    return table


def figure(figure: Figure) -> None:
    """Draw the forces on both planks, and how the thrust and the head come down on ice."""
    left, right = figure.subplots(1, 2)
    heads, floor, _ = forces('ncp', 0.5)
    top = np.array([0.0, LENGTH * np.sin(ANGLE)])
    for side, force in zip((-1.0, 1.0), floor, strict=True):
        foot = np.array([side * LENGTH * np.cos(ANGLE), 0.0])
        left.plot(*np.transpose([foot, top]), 'tab:grey', lw=6)
        left.quiver(*foot, *force, scale=40.0, color='tab:red')
        left.quiver(*top, side * abs(heads[0]), 0.0, scale=40.0, color='tab:blue')
    left.set(aspect='equal', xlim=(-0.7, 0.7), ylim=(-0.1, 1.1), xlabel='x [m]', ylabel='z [m]',
             title='floor (red), heads (blue)')  # fmt: skip
    for friction in (0.0, 0.2, 0.28, 0.3):
        sim, rows = leaning('ncp', friction), []
        while sim.time < 0.4:
            speed = np.abs(sim.step([]).v[:3]).max()
            rows.append([sim.time, speed])
        right.plot(*np.transpose(rows), label=f'μ = {friction:g}')
    right.set(xlabel='time [s]', ylabel='speed of a plank [m/s]', title='stands from μ = 0.289')
    right.legend()
