"""Rolling, back-spinning sphere.

A solid ball that slides until it rolls, I = ⅖ m r². While it slides friction is μ m g: v̇ = −μ g,
r ω̇ = ⁵⁄₂ μ g. Angular momentum about a line in the floor stays, so that whatever the law of
friction is it ends rolling with

    v = (5 v0 + 2 r ω0)/7      without spin after t = 2 v0/7 μ g and d = 12 v0²/49 μ g

On a slope α it rolls with a = ⁵⁄₇ g sin α and a friction of ²⁄₇ m g sin α, if μ ≥ ²⁄₇ tan α.

Observe: with enough back spin it comes back. Once it rolls friction is gone on the floor, and on
the slope it is less than μ N. ω is counted about +y here: rolling along +x is positive.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import InclinedPlane, Simulator, load_robot
from textbook.planar import place, run, velocity
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: putting it all together'
ROBOT = 'rolling_sphere'
MASS, RADIUS, FRICTION, GRAVITY = 1.0, 0.1, 0.2, 9.81
ANGLE = np.deg2rad(15.0)

Array = NDArray[np.float64]


def sliding(model: str, spin: float = 0.0) -> Simulator:
    """Return the ball on the floor at 1 m/s with a spin about +y [rad/s]."""
    sim = Simulator(load_robot(ROBOT), model, friction=FRICTION)
    place(sim, (0.0, RADIUS), velocity=(1.0, 0.0, -spin))
    return sim


def begins_to_roll() -> tuple[float, float]:
    """Return when [s] and where [m] the slip ends under hybrid, from the motion around it."""
    rows = run(sliding('hybrid'), 0.2)
    early, late = rows[100], rows[-1]
    rolling = late[4]
    time = early[0] + (early[4] - rolling) / (FRICTION * GRAVITY)
    return float(time), float(late[1] - rolling * (late[0] - time))


def down_the_slope(friction: float) -> tuple[float, float, float]:
    """Return acceleration [m/s²], friction [N] and slip speed [m/s] after a second, hybrid."""
    slope = InclinedPlane(float(ANGLE))
    sim = Simulator(load_robot(ROBOT), 'hybrid', slope, friction=friction)
    normal = slope.plane[:3]
    place(sim, (RADIUS * normal[0], RADIUS * normal[2]))
    for _ in range(1000):
        report = sim.step([])
    force, contacts = report.contacts.force[0], report.contacts
    tangential = force - (force @ normal) * normal
    speed = np.linalg.norm(velocity(sim)[:2])
    return (
        float(speed / sim.time), float(np.linalg.norm(tangential)), float(contacts.slip_speed[0])
    )  # fmt: skip


def quantities() -> list[Quantity]:
    """Return when and how it rolls on the floor, and its way down a slope."""
    time, distance = begins_to_roll()
    table = []
    for model, tolerance in (('hybrid', 1e-7), ('ncp', 1e-6), ('lcp', 1e-6), ('todorov', 3e-3)):
        rows = run(sliding(model), 0.3)
        end = [rows[-1, 4], -rows[-1, 6]]
        table.append(
            Quantity('X9', f'v, omega once it rolls, {model} [m/s, rad/s]', [5 / 7, 7.142857], end,
                     tolerance)
        )  # fmt: skip
    back = run(sliding('hybrid', -50.0), 1.2)
    rolls, slips = down_the_slope(0.0766), down_the_slope(0.0765)
    sliding_down = GRAVITY * (np.sin(ANGLE) - 0.0765 * np.cos(ANGLE))
    return [
        *table,
        Quantity('X9', 'rolls from [s]', 0.1456240, time, 5e-7),
        Quantity('X9', 'rolls from [m]', 0.1248206, distance, 5e-7),
        Quantity('X9', 'v after a back spin of 50 rad/s [m/s]', -0.714286, back[-1, 4], 1e-6),
        Quantity(
            'X9', 'acceleration on 15 degrees, mu = 0.0766 [m/s^2]', 1.813582, rolls[0], 1e-6
        ),
        Quantity('X9', 'friction there [N]', 10 * 0.07254328, rolls[1], 1e-7),
        Quantity('X9', 'slip speed there [m/s]', 0.0, rolls[2], 1e-9),
        Quantity('X9', 'acceleration, mu = 0.0765 [m/s^2]', sliding_down, slips[0], 1e-6),
    ]


def figure(figure: Figure) -> None:
    """Draw speed and rolling speed against time, without and with back spin."""
    for axis, spin, seconds in zip(figure.subplots(2, 1), (0.0, -50.0), (0.3, 1.2), strict=True):
        rows = run(sliding('ncp', spin), seconds)
        axis.plot(rows[:, 0], rows[:, 4], label='v')
        axis.plot(rows[:, 0], -RADIUS * rows[:, 6], '--', label='r ω')
        axis.set(ylabel='[m/s]', title=f'spin {spin:g} rad/s, μ = {FRICTION:g}')
        axis.legend()
    axis.set_xlabel('time [s]')
