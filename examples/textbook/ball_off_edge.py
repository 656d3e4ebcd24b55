"""Ball on the edge of a table.

It rolls or slips over the edge, and leaves it where the edge would have to pull.

Solid ball of mass m and radius r, θ the angle of its centre from the vertical above the edge. From
rest at θ_0, with and without slip,

    rolling        θ̇² = ¹⁰⁄₇ (g/r)(cos θ_0 − cos θ)   N = m g (¹⁷⁄₇ cos θ − ¹⁰⁄₇ cos θ_0)
    no friction    θ̇² = 2 (g/r)(cos θ_0 − cos θ)      N = m g (3 cos θ − 2 cos θ_0)

so it leaves at cos θ = ¹⁰⁄₁₇ cos θ_0, or at ⅔ cos θ_0, with r θ̇² = g cos θ in both cases. From
there on it flies: the spin θ̇ of the ball that rolled stays, and so does the speed along x.

Observe: the contact stays at one point of the table, and the normal turns with the ball. Rolling
takes a friction of ²⁄₇ m g sin θ, and N tends to zero: no μ is enough to the end. It is 100 000
here; a real ball slips before it leaves.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from contact_sim.terrain import TriangleMesh, boxes
from textbook.planar import place, velocity
from textbook.quantity import Quantity

SOURCE = 'A ball that rolls off the edge of a table'
ROBOT = 'rolling_sphere'
RADIUS, GRAVITY, START = 0.1, 9.81, 0.2
"""r [m], θ_0 [rad]."""
ROUGH, SMOOTH = 1e5, 0.0
"""Friction [-]."""

Array = NDArray[np.float64]


def table_top() -> TriangleMesh:
    """Return a table 1 m high whose top is at z = 0 and ends at x = 0."""
    return boxes([[-1.0, -1.0, -1.0]], [[0.0, 1.0, 0.0]])


def fall(model: str, friction: float, time_step: float = 1e-3) -> Array:
    """Return rows of (x, z, cos θ, N, v_x, spin) until 50 ms after the ball left.

    x, z and the velocities are those of the end of a step; cos θ and N are means over it.
    """
    sim = Simulator(load_robot(ROBOT), model, table_top(), friction=friction, time_step=time_step)
    place(sim, (RADIUS * np.sin(START), RADIUS * np.cos(START)))
    rows, before, free = [], START, 0
    while free * time_step < 0.05:
        force = sim.step([]).contacts.force.sum(axis=0)
        x, z = sim.q[0], sim.q[2]
        after = np.arctan2(x, z)
        angle, (along, _, spin) = 0.5 * (before + after), velocity(sim)
        normal = force[0] * np.sin(angle) + force[2] * np.cos(angle)
        rows.append([x, z, np.cos(angle), normal, along, -spin])
        before, free = after, 0 if force.any() else free + 1
    return np.array(rows)


def leaves(rows: Array) -> float:
    """Return cos θ at which N is zero: it is linear in cos θ. From two steps with contact."""
    touching = rows[rows[:, 3] > 0.0]
    (c1, n1), (c2, n2) = touching[len(touching) // 2, 2:4], touching[-3, 2:4]
    return float(c2 - n2 * (c1 - c2) / (n1 - n2))


def quantities() -> list[Quantity]:
    """Return where it leaves the edge and its motion afterwards, with and without friction."""
    table = []
    cases = (('rolling', ROUGH, 10.0 / 17.0), ('no friction', SMOOTH, 2.0 / 3.0))
    for model, step, tolerance in (
        ('hybrid', 1e-3, 3e-5),
        ('ncp', 1e-4, 2e-3),
        ('lcp', 1e-4, 2e-3),
    ):
        for name, friction, factor in cases:
            cosine = factor * np.cos(START)
            rate = np.sqrt(GRAVITY * cosine / RADIUS)
            rows = fall(model, friction, step)
            motion = [RADIUS * rate * cosine, rate if friction else 0.0]
            table += [
                Quantity('X33', f'leaves at the cosine of, {name}, {model} [-]', cosine,
                         leaves(rows), tolerance),
                Quantity('X33', f'v_x and spin in flight, {name}, {model} [m/s, rad/s]', motion,
                         rows[-1, 4:], tolerance),
            ]  # fmt: skip
    return table


def figure(figure: Figure) -> None:
    """Draw the way of the centre over the edge, and the force of the edge."""
    left, right = figure.subplots(1, 2)
    for name, friction, factor in (('rolling', ROUGH, 10 / 17), ('no friction', SMOOTH, 2 / 3)):
        x, z, cosine, normal, *_ = fall('hybrid', friction).T
        left.plot(x, z, label=name)
        right.plot(np.rad2deg(np.arccos(cosine)), normal, label=name)
        angle = np.rad2deg(np.arccos(factor * np.cos(START)))
        right.axvline(angle, color='k', ls='--', lw=1)
    left.plot([-0.1, 0.0, 0.0], [0.0, 0.0, -0.1], 'k', lw=1)
    left.set(aspect='equal', xlabel='x [m]', ylabel='z [m]', title='centre of the ball')
    left.legend()
    right.set(xlabel='angle [°]', ylabel='normal force [N]', xlim=(0.0, 90.0))
    right.legend()
