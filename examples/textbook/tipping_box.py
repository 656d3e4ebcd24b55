"""Tipping box.

It tips when it is pushed, or on a slope that is steeper than its sides.

Width w, height a, mass m. A horizontal push P through its middle turns it about its front edge,
inertia I + ¼ m (w² + a²), as soon as P a > m g w; friction must bear P, μ > w/a. At that instant

    θ̈ = ½ (P a − m g w)/(I + ¼ m (w² + a²))
    N = m (g + ½ w θ̈),   f_t = P − ½ m a θ̈

On a slope α with friction it tips from tan α = w/a on. (With μ below that it slides first.)

Observe: the rear corners are let go at the instant at which their force becomes zero. Soft ground
lets the box lean into it before it tips.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import InclinedPlane, Simulator, load_robot
from textbook.planar import place, run, velocity
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: beyond point contact'
ROBOT = 'tipping_box'
MASS, WIDTH, HEIGHT, FRICTION, GRAVITY = 1.0, 0.2, 0.4, 0.9, 9.81
SQUARE = WIDTH**2 + HEIGHT**2
INERTIA = MASS * SQUARE / 12.0 + 0.25 * MASS * SQUARE
"""About the front edge [kg m²]."""
PUSH = 6.0
"""Push that tips it [N]."""

Array = NDArray[np.float64]


def on_the_floor(model: str, time_step: float = 1e-3) -> Simulator:
    """Return the box at rest."""
    sim = Simulator(load_robot(ROBOT), model, friction=FRICTION, time_step=time_step)
    place(sim, (0.0, 0.5 * HEIGHT))
    return sim


def pushed(sim: Simulator, push: float) -> tuple[float, Array]:
    """Return θ̈ over the front edge [rad/s²] and the force (x, z) of the floor [N], one step."""
    place(sim, (0.0, 0.5 * HEIGHT))
    report = sim.step([], {'box': [push, 0.0, 0.0, 0.0, 0.0, 0.0]})
    return -float(velocity(sim)[2]) / sim.time_step, report.contacts.force.sum(axis=0)[[0, 2]]


def least_push(model: str) -> float:
    """Return the push from which it turns [N], by bisection."""
    sim, stays, tips = on_the_floor(model), 0.0, 10.0
    while tips - stays > 1e-6:
        middle = 0.5 * (stays + tips)
        stays, tips = (stays, middle) if pushed(sim, middle)[0] > 1e-6 else (middle, tips)
    return tips


def tips_on(slope: float, model: str) -> float:
    """Return by how much it turns within 0.4 s on a slope of this tangent [rad]."""
    angle = float(np.arctan(slope))
    ground = InclinedPlane(angle)
    sim = Simulator(load_robot(ROBOT), model, ground, friction=FRICTION)
    normal = 0.5 * HEIGHT * ground.plane[:3]
    place(sim, (normal[0], normal[2]), -angle)
    return float(-run(sim, 0.4)[-1, 3]) - angle


def growth(slope: float) -> float:
    """Return the same from the linearised motion δ (cosh λt − 1), δ the angle beyond balance."""
    beyond = np.arctan(slope) - np.arctan(WIDTH / HEIGHT)
    rate = np.sqrt(MASS * GRAVITY * 0.5 * np.sqrt(SQUARE) / INERTIA)
    return float(max(beyond, 0.0) * (np.cosh(0.4 * rate) - 1.0))


def quantities() -> list[Quantity]:
    """Return the instant of tipping under a push, and both sides of balance on a slope."""
    rate = 0.5 * (PUSH * HEIGHT - MASS * GRAVITY * WIDTH) / INERTIA
    force = [-(PUSH - 0.5 * MASS * HEIGHT * rate), MASS * (GRAVITY + 0.5 * WIDTH * rate)]
    table = []
    for model, step, tolerance in (('hybrid', 1e-7, 1e-6), ('ncp', 1e-4, 1e-8)):
        ours = pushed(on_the_floor(model, step), PUSH)
        table += [
            Quantity('T24', f'angular acceleration under 6 N, {model} [rad/s^2]', rate, ours[0],
                     tolerance),
            Quantity('T24', f'force x, z of the floor, {model} [N]', force, ours[1], tolerance),
        ]  # fmt: skip
    return [
        Quantity('T24', 'tips from, hybrid [N]', MASS * GRAVITY * WIDTH / HEIGHT,
                 least_push('hybrid'), 1e-6),
        Quantity('T24', 'tips from, lcp [N]', MASS * GRAVITY * WIDTH / HEIGHT, least_push('lcp'),
                 1e-6),
        *table,
        Quantity('T24', 'turn on a slope of 0.49 in 0.4 s, ncp [rad]', 0.0, tips_on(0.49, 'ncp'),
                 1e-7),
        Quantity('T24', 'turn on a slope of 0.51 in 0.4 s, ncp [rad]', growth(0.51),
                 tips_on(0.51, 'ncp'), 0.03),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the box on a slope that is a little too steep, and the angle against time."""
    left, right = figure.subplots(1, 2)
    for push in (4.8, 5.0, 6.0):
        sim, rows = on_the_floor('ncp'), []
        for _ in range(400):
            sim.step([], {'box': [push, 0.0, 0.0, 0.0, 0.0, 0.0]})
            rows.append([sim.time, 2.0 * np.arctan2(sim.q[4], sim.q[6]), sim.q[0], sim.q[2]])
        time, turn, x, z = np.array(rows).T
        right.plot(time, np.rad2deg(turn), label=f'{push:g} N')
    corners = 0.5 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) * [WIDTH, HEIGHT]
    for k in range(0, 400, 80):
        c, s = np.cos(turn[k]), np.sin(turn[k])
        outline = corners @ np.array([[c, -s], [s, c]]) + [x[k], z[k]]
        left.plot(*outline.T, color=str(0.8 - 0.002 * k))
    left.set(aspect='equal', xlabel='x [m]', ylabel='z [m]', title='pushed with 6 N')
    right.set(xlabel='time [s]', ylabel='angle [°]')
    right.legend()
