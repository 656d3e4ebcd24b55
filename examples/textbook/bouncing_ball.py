"""Spinning, bouncing ball.

Impacts with spin, and infinitely many of them in finite time.

Thin shell, I = ⅔ m r², restitution e; (v_x, v_z, ω) with ω about −y, so that v_x + r ω is the slip
of the lowest point. An impact with enough friction stops the slip and turns v_z round:

    v_x⁺ = ⅗ v_x − ⅖ r ω      v_z⁺ = −e v_z      ω⁺ = −⅗ v_x/r + ⅖ ω

with the impulses −m (1 + e) v_z along z and −⅖ m (v_x + r ω) along x; the friction that this takes
is their ratio. (The text prints the row of gravity as +m g.) Dropped from H, bounces follow each
other after 2 e^k √(2H/g); they end at √(2H/g) (1 + e)/(1 − e).

Observe: spin becomes speed and back, but energy only falls. A time-stepping model meets the ground
at the ends of its steps and is off by O(h); hybrid finds each bounce, and the end of them all.
Over ROS `height:=1.0` drops the ball; its restitution is the parameter `restitution`.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from textbook.planar import place, run, velocity
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: impulsive collisions, a spinning ball'
ROBOT = 'bouncing_ball'
MASS, RADIUS, RESTITUTION, HEIGHT, GRAVITY = 2.0, 0.3, 0.8, 1.0, 9.81
BEFORE = (1.0, -2.0, 4.0)
"""(v_x, v_z, ω) before the impact with spin."""
ENOUGH = 0.24444444
"""Friction from which its slip stops."""
BOUNCES = (0.45152364, 1.17396147, 1.75191173)
"""Times of the first bounces [s]."""
APEXES = (0.64, 0.4096, 0.262144)
"""Heights after them [m]."""

Array = NDArray[np.float64]


def impact(model: str, friction: float) -> tuple[Array, Array]:
    """Return (v_x, v_z, ω) after the impact with spin, and its impulse (x, z)."""
    sim = Simulator(
        load_robot(ROBOT), model, friction=friction, restitution=RESTITUTION, gravity=0.0,
        time_step=1e-9,
    )  # fmt: skip
    place(sim, (0.0, RADIUS), velocity=BEFORE)
    force = sim.step([]).contacts.force[0]
    return velocity(sim), sim.time_step * force[[0, 2]]


def energy(motion: Array) -> float:
    """Return the kinetic energy of (v_x, v_z, ω) [J]."""
    inertia = 2.0 / 3.0 * MASS * RADIUS**2
    return float(0.5 * np.array([MASS, MASS, inertia]) @ motion**2)


def dropped(model: str, threshold: float = 1e-2) -> Simulator:
    """Return the ball at rest with its lowest point at HEIGHT; slower impacts are plastic."""
    sim = Simulator(load_robot(ROBOT), model, restitution=RESTITUTION)
    sim.restitution_threshold = threshold
    place(sim, (0.0, RADIUS + HEIGHT))
    return sim


def bounces() -> tuple[list[float], list[float]]:
    """Return the times of the bounces [s] and the heights after them [m], hybrid."""
    sim, times, apexes = dropped('hybrid'), [], []
    for k, bounce in enumerate(BOUNCES, 1):
        while sim.time < bounce + 0.01:
            sim.step([])
        speed = sim.v[2]
        start = RESTITUTION**k * np.sqrt(2.0 * GRAVITY * HEIGHT)
        times.append(sim.time - (start - speed) / GRAVITY)
        apexes.append(float(sim.q[2] - RADIUS + speed**2 / (2.0 * GRAVITY)))
    return times, apexes


def first_apex(model: str) -> float:
    """Return the height after the first bounce with steps of 1 ms [m]."""
    sim = dropped(model)
    while sim.v[2] <= 0.0:
        sim.step([])
    while sim.v[2] > 0.0:
        sim.step([])
    return float(sim.q[2] - RADIUS + sim.v[2] ** 2 / (2.0 * GRAVITY))


def end_of_bounces() -> float:
    """Return when the ball is at rest under hybrid [s], to the millisecond of a step."""
    sim = dropped('hybrid', threshold=1e-5)
    while sim.time < 5.0:
        sim.step([])
        if abs(sim.v[2]) < 1e-9 and sim.q[2] < RADIUS + 1e-9:
            break
    return sim.time


def quantities() -> list[Quantity]:
    """Return the impact with spin, the first bounces, and the end of them all."""
    after, (along, up) = impact('ncp', ENOUGH + 1e-6)
    table = [
        Quantity('T14', f'v_x, v_z, omega after the impact, {model} [m/s, rad/s]',
                 [0.12, 1.6, -0.4], impact(model, ENOUGH + 1e-6)[0], 1e-6)
        for model in ('ncp', 'lcp', 'hybrid')
    ]  # fmt: skip
    slips = impact('ncp', ENOUGH - 1e-3)[0]
    times, apexes = bounces()
    change = energy(after) - energy(np.array(BEFORE))
    return [
        *table,
        Quantity('T14', 'impulse along z and x [N s]', [7.2, -1.76], [up, along], 1e-6),
        Quantity('T14', 'friction from which it does not slip [-]', ENOUGH, -along / up, 1e-7),
        Quantity('T14', 'slip left with 0.001 less [m/s]', 2.5 * 7.2e-3 / MASS,
                 slips[0] + RADIUS * slips[2], 1e-4),
        Quantity('T14', 'energy gained [J]', -3.376, change, 1e-6),
        Quantity('X1', 'bounces, hybrid [s]', BOUNCES, times, 1e-8),
        Quantity('X1', 'heights after them, hybrid [m]', APEXES, apexes, 1e-8),
        Quantity('X1', 'first height at h = 1 ms, ncp [m]', 0.64039, first_apex('ncp'), 1e-5),
        Quantity('T15', 'all bounces end at, hybrid [s]', 4.06371277, end_of_bounces(), 3e-4),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the height under three contact models, and the path of a ball with back spin."""
    height, path = figure.subplots(2, 1)
    for model in ('hybrid', 'ncp', 'sap'):
        rows = run(dropped(model), 2.5)
        height.plot(rows[:, 0], rows[:, 2] - RADIUS, label=model)
    height.set(xlabel='time [s]', ylabel='height [m]', title='A ball dropped from 1 m, e = 0.8')
    height.legend()
    for spin in (0.0, 10.0, 20.0):
        sim = dropped('hybrid')
        place(sim, (0.0, RADIUS + HEIGHT), velocity=(1.0, 0.0, spin))
        rows = run(sim, 2.0)
        path.plot(rows[:, 1], rows[:, 2] - RADIUS, label=f'back spin {spin:g} rad/s')
    path.set(xlabel='x [m]', ylabel='height [m]')
    path.legend()
