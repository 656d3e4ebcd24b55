"""Falling rod.

It leans on the floor and falls: stick, slip and impact of one point with friction.

Uniform rod of half length l, mass m, I = ⅓ m l², at the angle θ from the floor; (x, z, θ) of its
middle, its lower end at (x − l cos θ, z − l sin θ). With n and t the rows of that end,

    slip    n v̇ + ṅ v = 0,  f_t = −μ f_n û    f_n = −(n M⁻¹τ + ṅ v)/(n M⁻¹ (n − μ û t)ᵀ)
    stick   both rows of the end are at rest

An impact without friction is v⁺ = (1 − (1 + e) M⁻¹nᵀ (n M⁻¹nᵀ)⁻¹ n) v⁻. With unlimited friction it
is v⁺ = v⁻ − M⁻¹Jᵀ (J M⁻¹Jᵀ)⁻¹ diag(1, 1 + e) J v⁻ with the rows (t, n): the text has the diagonal
matrix on the other side, which is another velocity as soon as t and n couple.

Observe: without friction the middle falls along a vertical line. With friction the end stays at
first, then slips: how far it gets before that depends on μ.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Hybrid, Simulator, load_robot
from contact_sim.contact_models import ContactModel
from textbook.planar import place, run, velocity
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: contact modes, impulsive collisions'
ROBOT = 'falling_rod'
SHORT = 'painleve_rod'
"""Rod of 1 m, which the impacts of the text have."""
ANGLE, HALF, GRAVITY = 0.6, 1.0, 9.81
"""Angle of the rod as it is loaded [rad], half length [m]."""
INSTANT = 1e-9
"""Step of an impact [s]."""

Array = NDArray[np.float64]


def end_at(slip: float, rate: float) -> tuple[float, float, float]:
    """Return (v_x, v_z, ω) with which the lower end moves along the floor at `slip` [m/s]."""
    return slip - HALF * np.sin(ANGLE) * rate, HALF * np.cos(ANGLE) * rate, rate


def leaning(model: str, friction: float, time_step: float = 1e-3) -> Simulator:
    """Return the rod at rest with its lower end on the floor."""
    return Simulator(load_robot(ROBOT), model, friction=friction, time_step=time_step)


def modes(slip: float, friction: float) -> tuple[Array, Array, float]:
    """Return force (t, n) [N], acceleration (x, z, θ) and slip speed in a mode, ω = 0.5 rad/s."""
    sim = leaning('hybrid', friction, 1e-7)
    place(sim, (0.0, HALF * np.sin(ANGLE)), velocity=end_at(slip, 0.5))
    before = velocity(sim)
    contacts = sim.step([]).contacts
    rate = (velocity(sim) - before) / sim.time_step
    return contacts.force[0, [0, 2]], rate, float(contacts.slip_speed[0])


def least_friction() -> float:
    """Return the friction from which the end sticks [-], by bisection."""
    slips, sticks = 0.0, 1.0
    while sticks - slips > 1e-5:
        middle = 0.5 * (slips + sticks)
        slips, sticks = (slips, middle) if modes(0.0, middle)[2] < 1e-10 else (middle, sticks)
    return sticks


def impact(model: str | ContactModel, friction: float) -> Array:
    """Return (v_x, v_z, ω) of the rod of 1 m after it lands at 0.6 rad, e = 0.5."""
    sim = Simulator(
        load_robot(SHORT), model, friction=friction, restitution=0.5, gravity=0.0,
        time_step=INSTANT,
    )  # fmt: skip
    turn = ANGLE - np.arctan(2.0)  # from the angle at which it is loaded
    place(sim, (0.0, 0.5 * np.sin(ANGLE)), turn, (0.5, -1.0, 0.7))
    sim.step([])
    return velocity(sim)


def fall(friction: float, model: str = 'hybrid') -> Array:
    """Return rows of `planar.run` until the rod lies on the floor."""
    sim = leaning(model, friction)
    rows = run(sim, 1.0)
    return rows[rows[:, 3] + ANGLE > 0.01]


def quantities() -> list[Quantity]:
    """Return forces and accelerations of both modes, the impacts, and a fall without friction."""
    force, rate, _ = modes(1.0, 0.3)
    held, _, _ = modes(0.0, 0.8)
    smooth, rough = [0.5, -0.36478465, -2.44559513], [0.6449054, -0.29822187, -2.28429644]
    landings = [
        Quantity('T12', f'v_x, v_z, omega without friction, {name} [m/s, rad/s]', smooth,
                 impact(model, 0.0), 2e-8)
        for name, model in (('ncp', 'ncp'), ('hybrid', Hybrid(impact='frictionless')))
    ] + [
        Quantity('T13', f'v_x, v_z, omega without slip, {name} [m/s, rad/s]', rough,
                 impact(model, 5.0), 2e-8)
        for name, model in (('ncp', 'ncp'), ('hybrid', Hybrid(impact='infinite_friction')))
    ]  # fmt: skip
    last = fall(0.0)[-1]
    drop = HALF * np.sin(ANGLE) - last[2]
    spin = np.sqrt(2.0 * GRAVITY * drop / (HALF**2 / 3.0 + (HALF * np.cos(last[3] + ANGLE)) ** 2))
    return [
        Quantity('T8', 'slip: f_t, f_n [N]', [-0.3 * 2.79207831, 2.79207831], force, 1e-6),
        Quantity('T8', 'slip: acceleration of x, z, theta',
                 [-0.83762349, -7.01792169, -8.33207842], rate, 2e-6),
        Quantity('T8', 'stick: f_t, f_n [N]', [3.22240488, 4.65706579], held, 1e-6),
        Quantity('T8', 'sticks from mu = [-]', 0.6919, least_friction(), 1e-4),
        *landings,
        Quantity('T8', 'falling without friction: x of the middle [m]', 0.0, last[1], 1e-9),
        Quantity('T8', 'and its rate near the floor over that of its energy [-]', 1.0,
                 -last[6] / spin, 1e-7),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw where both ends and the middle go, with and without friction."""
    for axis, friction in zip(figure.subplots(3, 1, sharex=True), (0.0, 0.3, 0.8), strict=True):
        rows = fall(friction)
        for _, x, z, turn, *_ in rows[:: max(len(rows) // 12, 1)]:
            reach = HALF * np.array([np.cos(turn + ANGLE), np.sin(turn + ANGLE)])
            axis.plot([x - reach[0], x + reach[0]], [z - reach[1], z + reach[1]], 'tab:grey', lw=1)
        axis.plot(rows[:, 1], rows[:, 2], 'tab:red', label='middle')
        axis.axhline(0.0, color='k', lw=1)
        axis.set(aspect='equal', xlim=(-1.2, 2.0), ylabel='z [m]', title=f'μ = {friction:g}')
    axis.set_xlabel('x [m]')
    axis.legend(loc='upper left')
