"""Arch of blocks.

Seven blocks hold each other up without mortar, as long as a line of thrust fits into them.

The joints of an arch push and do not pull, each at both of its ends. It stands if there are such
forces, within friction, that hold every block: a linear programme (limit analysis). From a least
thickness on it bears its own weight. A thicker one bears a sideways acceleration a too, as on a
slope or in an earthquake, up to

    largest a for which forces exist that hold every block against (a, −g)

Beyond it, four joints open as hinges, two inside and two outside, and the arch falls.

Observe: forces in a rigid arch are redundant, so the thrust may be any of a range, and even the
halves of the weight on both springings differ from law to law. But the arch gives way where no
thrust is left, whichever law finds it.
Over ROS: `self_collision:=block_0:block_1,block_1:block_2` and so on.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import linprog

from contact_sim import RobotModel, Simulator, load_robot
from textbook.quantity import Quantity

SOURCE = 'Livesley 1978: limit analysis of structures formed from rigid blocks'
ROBOT = 'arch'
COUNT, RADIUS, THICKNESS, DEPTH, DENSITY, GRAVITY = 7, 1.0, 0.2, 0.2, 1000.0, 9.81
"""Blocks, middle radius, thickness and depth [m], density [kg/m³]."""
FRICTION = 0.9
"""It falls by hinges, not by sliding."""
AIR = 5e-6
"""By which each block as loaded is farther from the middle [m]."""
STILL = 1e-9
"""Speed after a step from rest up to which it stands [m/s, rad/s]."""

Array = NDArray[np.float64]


def joints(count: int, thickness: float) -> tuple[Array, Array]:
    """Return the inner and outer ends (count + 1, 2) of the joints of a semicircular arch [m]."""
    angle = np.linspace(0.0, np.pi, count + 1)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return (RADIUS - 0.5 * thickness) * ring, (RADIUS + 0.5 * thickness) * ring


def bears_itself(count: int, thickness: float, sideways: float = 0.0) -> bool:
    """Return whether forces exist that hold every block.

    Args:
        count: blocks.
        thickness: of the arch [m].
        sideways: load along x over the weight [-].
    """
    inner, outer = joints(count, thickness)
    balance, load = np.zeros((3 * count, 4 * count + 4)), np.zeros(3 * count)
    for k in range(count):
        outline = np.array([inner[k], outer[k], outer[k + 1], inner[k + 1]])
        following = np.roll(outline, -1, axis=0)
        parts = outline[:, 0] * following[:, 1] - outline[:, 1] * following[:, 0]
        centre = ((outline + following) * parts[:, None]).sum(axis=0) / (3.0 * parts.sum())
        load[3 * k : 3 * k + 2] = np.array([-sideways, 1.0]) * 0.5 * parts.sum()
        for joint, sign in ((k, 1.0), (k + 1, -1.0)):
            angle = np.pi * joint / count
            push = sign * np.array([-np.sin(angle), np.cos(angle)])
            shear = sign * np.array([np.cos(angle), np.sin(angle)])
            for end, place in enumerate((inner[joint], outer[joint])):
                for column, way in ((end, push), (2 + end, shear)):
                    balance[3 * k : 3 * k + 2, 4 * joint + column] = way
                    x, y = place - centre
                    balance[3 * k + 2, 4 * joint + column] = x * way[1] - y * way[0]
    slides = np.zeros((4 * count + 4, 4 * count + 4))
    for joint in range(count + 1):
        for end in range(2):
            for row, side in ((0, 1.0), (1, -1.0)):
                place = slides[4 * joint + 2 * end + row]
                place[4 * joint + 2 + end], place[4 * joint + end] = side, -FRICTION
    found = linprog(
        np.zeros(4 * count + 4), slides, np.zeros(4 * count + 4), balance, load,
        [(0, None), (0, None), (None, None), (None, None)] * (count + 1),
    )  # fmt: skip
    return bool(found.status == 0)


def least_thickness(count: int) -> float:
    """Return the thickness from which an arch bears its weight [m], by bisection."""
    falls, stands = 0.02, 0.3
    while stands - falls > 1e-7:
        middle = 0.5 * (falls + stands)
        falls, stands = (falls, middle) if bears_itself(count, middle) else (middle, stands)
    return stands


def largest_load(stands: float = 0.0, falls: float = 1.0) -> float:
    """Return the sideways load over the weight up to which ours stands [-], by bisection."""
    while falls - stands > 1e-8:
        middle = 0.5 * (stands + falls)
        holds = bears_itself(COUNT, THICKNESS, middle)
        stands, falls = (middle, falls) if holds else (stands, middle)
    return stands


def blocks() -> RobotModel:
    """Return the blocks, of which neighbours touch each other."""
    pairs = [(f'block_{k - 1}', f'block_{k}') for k in range(1, COUNT)]
    return load_robot(ROBOT).with_self_collision(pairs, most=16 * COUNT)


def pushed(robot: RobotModel, model: str, sideways: float) -> Simulator:
    """Return the arch at rest on the floor under a load sideways, over the weight."""
    gravity = [sideways * GRAVITY, 0.0, -GRAVITY]
    sim = Simulator(robot, model, friction=FRICTION, gravity=gravity)
    q = pin.neutral(robot.pinocchio_model)
    q[2::7] -= AIR  # the joint of a block is turned as the block is
    sim.reset(q)
    return sim


def load_of(model: str) -> float:
    """Return the load sideways over the weight up to which the simulated arch stands [-]."""
    robot, stands, falls = blocks(), 0.0, 1.0
    while falls - stands > 1e-5:
        middle = 0.5 * (stands + falls)
        sim = pushed(robot, model, middle)
        sim.step([])
        rests = np.abs(sim.v).max() < STILL
        stands, falls = (middle, falls) if rests else (stands, middle)
    return stands


def at_rest(model: str, seconds: float = 0.1) -> tuple[float, float]:
    """Return the vertical force of the floor [N], and the largest way of a block [m]."""
    sim = pushed(blocks(), model, 0.0)
    start = sim.q.copy()
    for _ in range(round(seconds / sim.time_step)):
        report = sim.step([])
    pairs = report.pairs
    return float(pairs.force[pairs.on_ground, 2].sum()), float(np.abs(sim.q - start).max())


def middles(sim: Simulator) -> list[pin.SE3]:
    """Return the placements of the blocks."""
    model = sim.robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, sim.q)
    return list(data.oMi)[1:]


def quantities() -> list[Quantity]:
    """Return the least thickness, rest under the weight, and the load sideways that it bears."""
    weight, most = blocks().total_mass * GRAVITY, largest_load()
    table = [
        Quantity('X37', 'least thickness of 99 blocks over the radius, Milankovitch [-]', 0.1075,
                 least_thickness(99), 2e-3)
    ]  # fmt: skip
    for model in ('ncp', 'lcp', 'hybrid', 'anitescu'):
        carried, moved = at_rest(model)
        table += [
            Quantity('X37', f'force of the floor, {model} [N]', weight, carried, 1e-8),
            Quantity('X37', f'largest way in 0.1 s, {model} [m, -]', 0.0, moved, 1e-9),
            Quantity('X37', f'load sideways up to which it stands, {model} [-]', most,
                     load_of(model), 1e-4),
        ]  # fmt: skip
    return table


def figure(figure: Figure) -> None:
    """Draw the arch under a little less and more than it bears, and how fast it falls."""
    left, right = figure.subplots(1, 2)
    robot, most = blocks(), largest_load()
    inner, outer = joints(COUNT, THICKNESS)
    outline = np.array([inner[COUNT // 2], outer[COUNT // 2], outer[COUNT // 2 + 1],
                        inner[COUNT // 2 + 1], inner[COUNT // 2]])  # fmt: skip
    outline -= [0.0, middles(pushed(robot, 'ncp', 0.0))[COUNT // 2].translation[2]]
    for share, colour in ((0.95, 'tab:blue'), (1.2, 'tab:red')):
        sim, rows = pushed(robot, 'ncp', share * most), []
        while sim.time < 0.6:
            rows.append([sim.time, np.abs(sim.step([]).v).max()])
        for place in middles(sim):
            drawn = outline @ place.rotation[np.ix_([0, 2], [0, 2])].T + place.translation[[0, 2]]
            left.plot(*drawn.T, colour, lw=1)
        right.plot(*np.transpose(rows), colour, label=f'{share:g} of the load')
    left.set(aspect='equal', xlabel='x [m]', ylabel='z [m]', title='after 0.6 s')
    right.set(xlabel='time [s]', ylabel='largest speed of a block [m/s, rad/s]')
    right.legend()
