"""Stack of boxes.

Ten equal boxes at rest, and how far boxes can hang over.

Each interface bears what lies above it: of ten boxes of weight m g, n m g below the n uppermost
ones. Nothing moves and no energy appears.

A pile can hang over a box as long as the middle of what lies above an interface is within it. Of
boxes of width w, shifted from the top on by ½ w, ¼ w, … w/2k, …, n boxes hang over by

    ½ w (1 + ½ + ⅓ + … + 1/n)

at the most this way, four of them by ²⁵⁄₂₄ w: the topmost is beyond the box that they lie on. All
their interfaces are at the limit then, so the pile falls as soon as every shift is larger.

Observe: rigid boxes have redundant forces, four at each interface, but one sum and one middle of
pressure. Soft boxes sink into each other, under sap 0.3 mm in all, and bear the same once they
are at rest.
Over ROS: `self_collision:=box_0:box_1,box_1:box_2` and so on.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.simulation import StepReport
from textbook.quantity import Quantity

SOURCE = 'Statics of stacks; Johnson 1955: leaning tower of lire'
ROBOT = 'box_stack'
COUNT, WIDTH, HEIGHT, MASS, GRAVITY = 10, 0.2, 0.1, 1.0, 9.81
AIR = 2e-6
"""Between neighbours as they are loaded [m]."""
HANGING = 4
"""Boxes that hang over."""
LIMIT = 0.5 * WIDTH * sum(1.0 / k for k in range(1, HANGING + 1))
"""How far they can [m]."""

Array = NDArray[np.float64]


def boxes() -> RobotModel:
    """Return the boxes, of which neighbours touch each other."""
    pairs = [(f'box_{k - 1}', f'box_{k}') for k in range(1, COUNT)]
    return load_robot(ROBOT).with_self_collision(pairs, most=6 * COUNT)


def stacked(robot: RobotModel, shift: Array) -> Array:
    """Return the configuration of boxes without air that are shifted along x [m], (COUNT,)."""
    q = robot.reference_configuration()
    q[0::7] += shift
    q[2::7] -= AIR * np.arange(COUNT)
    return q


def interfaces(report: StepReport) -> Array:
    """Return the forces of the floor on the lowest box and of each on the next [N], (COUNT,)."""
    forces = np.zeros(COUNT)
    forces[0] = report.contacts.force[:, 2].sum()
    for (_, upper), force in zip(report.pairs.names, report.pairs.force, strict=True):
        forces[int(upper.split('_')[1])] -= force[2]  # that on the lower one
    return forces


def energy(sim: Simulator) -> float:
    """Return kinetic and potential energy [J]; all boxes are alike."""
    v = sim.v.reshape(COUNT, 6)
    inertia = MASS / 12.0 * np.array([WIDTH**2 + HEIGHT**2, WIDTH**2 + HEIGHT**2, 2 * WIDTH**2])
    kinetic = 0.5 * MASS * (v[:, :3] ** 2).sum() + 0.5 * (inertia * v[:, 3:] ** 2).sum()
    return float(kinetic + MASS * GRAVITY * sim.q[2::7].sum())


def at_rest(model: str, seconds: float) -> tuple[Array, float, float]:
    """Return the forces at the interfaces [N], the largest way of a box [m], the energy gained."""
    robot = boxes()
    sim = Simulator(robot, model, friction=0.5)
    start = stacked(robot, np.zeros(COUNT))
    sim.reset(start)
    before, most = energy(sim), -np.inf
    for _ in range(round(seconds / sim.time_step)):
        report = sim.step([])
        most = max(most, energy(sim) - before)
    return interfaces(report), float(np.abs(sim.q - start).max()), most


def overhang(scale: float) -> Array:
    """Return the shifts [m] of four boxes on the others, over the limit by a factor; (COUNT,)."""
    each = 0.5 * WIDTH / np.arange(HANGING, 0, -1)
    return np.concatenate([np.zeros(COUNT - HANGING), scale * np.cumsum(each)])


def reach(model: str) -> float:
    """Return by how much four boxes can hang over the others [m], by bisection on the shifts."""
    robot = boxes()
    sim, stays, falls = Simulator(robot, model, friction=0.5), 0.0, 2.0
    while falls - stays > 1e-6:
        middle = 0.5 * (stays + falls)
        sim.reset(stacked(robot, overhang(middle)))
        sim.step([])
        rests = np.abs(sim.v).max() < 1e-9
        stays, falls = (middle, falls) if rests else (stays, middle)
    return float(overhang(stays)[-1])


def quantities() -> list[Quantity]:
    """Return forces, rest and energy of the stack, and how far four boxes can hang over."""
    above = MASS * GRAVITY * np.arange(COUNT, 0, -1)
    table = []
    for model, seconds in (('ncp', 1.0), ('lcp', 1.0), ('anitescu', 1.0), ('hybrid', 0.05)):
        forces, moved, gained = at_rest(model, seconds)
        table += [
            Quantity('X30', f'forces from the floor up, {model} [N]', above, forces, 1e-7),
            Quantity('X30', f'largest way in {seconds:g} s, {model} [m]', 0.0, moved, 1e-9),
            Quantity('X30', f'most energy gained, {model} [J]', 0.0, max(gained, 0.0), 1e-8),
        ]  # fmt: skip
    for model in ('sap', 'compliant'):
        forces = at_rest(model, 1.0)[0]
        table.append(
            Quantity('X30', f'forces from the floor up, {model} [N]', above, forces, 1e-4)
        )
    table += [
        Quantity('X30', f'four boxes hang over by, {model} [m]', LIMIT, reach(model), 1e-5)
        for model in ('ncp', 'lcp', 'hybrid')
    ]
    return table


def figure(figure: Figure) -> None:
    """Draw piles that hang over by a little less and more than they can, and the lean of both."""
    left, right = figure.subplots(1, 2)
    robot = boxes()
    outline = 0.5 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * [WIDTH, HEIGHT]
    for scale, colour in ((0.99, 'tab:blue'), (1.05, 'tab:red')):
        sim, rows = Simulator(robot, 'ncp', friction=0.5), []
        sim.reset(stacked(robot, overhang(scale)))
        while sim.time < 0.4:
            turn = sim.step([]).q[7 * COUNT - 4 :]
            rows.append([sim.time, 2.0 * np.arctan2(turn[1], turn[3])])
        q = sim.q.reshape(COUNT, 7)
        for k in range(COUNT):
            turn = 2.0 * np.arctan2(q[k, 4], q[k, 6])
            c, s = np.cos(turn), np.sin(turn)
            at = [q[k, 0], q[k, 2] + (k + 0.5) * HEIGHT + k * AIR]
            left.plot(*(outline @ np.array([[c, -s], [s, c]]) + at).T, colour, lw=1)
        right.plot(*np.transpose(rows), colour, label=f'{scale:g} of the limit')
    left.set(aspect='equal', xlabel='x [m]', ylabel='z [m]', title='after 0.4 s')
    right.set(xlabel='time [s]', ylabel='angle of the topmost [rad]')
    right.legend()
