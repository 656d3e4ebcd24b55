"""Rolling coin.

It rolls on its rim around its centre, which stays where it is.

Disc of mass m and radius R, half as thick as 2 d: inertia I about a diameter and I_3 about its
axis, tilted so that its face is at an angle α to the floor. It rolls without slip, its centre at
rest, so that it turns about the line from the contact to the centre. With e along the steepest way
down its face and the axis e_3,

    ω = Ω sin α (−e + (d/R) e_3)

while all of it precesses at Ω about the vertical. The rate of I ω is the moment of m g at the
contact:

    Ω² = m g (R cos α − d sin α)/(sin α (I cos α − I_3 (d/R) sin α)),   thin: Ω² = 4 g/(R sin α)

Observe: the contact runs along the rim at about R Ω, and no friction is needed. The flatter the
coin, the faster, with no bound; a real one loses energy on the way, which is not the subject here.
ncp is of first order in h, hybrid of fourth.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from textbook.quantity import Quantity

SOURCE = 'Appell 1900, Moffatt 2000: a disc that rolls with its centre at rest'
ROBOT = 'rolling_disc'
MASS, RADIUS, HALF, GRAVITY = 1.0, 0.1, 0.001, 9.81
INERTIA = MASS * (RADIUS**2 / 4.0 + HALF**2 / 3.0)
AXIAL = 0.5 * MASS * RADIUS**2
"""I and I_3 [kg m²]."""

Array = NDArray[np.float64]


def rate(alpha: float) -> float:
    """Return Ω [rad/s]."""
    sine, cosine = np.sin(alpha), np.cos(alpha)
    moment = MASS * GRAVITY * (RADIUS * cosine - HALF * sine)
    return float(np.sqrt(moment / (sine * (INERTIA * cosine - AXIAL * HALF / RADIUS * sine))))


def rolling(model: str, alpha: float, time_step: float, seconds: float) -> Array:
    """Return rows of (t, azimuth [rad], α [rad], way of the centre [m]) of the coin."""
    sim = Simulator(load_robot(ROBOT), model, friction=1.0, time_step=time_step)
    height, turn = RADIUS * np.sin(alpha) + HALF * np.cos(alpha), rate(alpha) * np.sin(alpha)
    q = np.array([0.0, 0.0, height, 0.0, np.sin(0.5 * alpha), 0.0, np.cos(0.5 * alpha)])
    sim.reset(q, [0.0, 0.0, 0.0, -turn, 0.0, turn * HALF / RADIUS])
    rows = []
    for _ in range(round(seconds / time_step)):
        sim.step([])
        axis = pin.Quaternion(sim.q[3:7]).matrix()[:, 2]
        off = np.linalg.norm(sim.q[:3] - [0.0, 0.0, height])
        rows.append([sim.time, np.arctan2(axis[1], axis[0]), np.arccos(axis[2]), off])
    table = np.array(rows)
    table[:, 1] = np.unwrap(table[:, 1])
    return table


def precession(model: str, alpha: float, time_step: float, seconds: float = 0.5) -> float:
    """Return the mean of Ω [rad/s]."""
    end = rolling(model, alpha, time_step, seconds)[-1]
    return float(end[1] / end[0])


def quantities() -> list[Quantity]:
    """Return the precession at two angles, and how its error falls with the time step."""
    table = []
    for alpha in (0.3, 0.1):
        rows = rolling('hybrid', alpha, 1e-3, 0.3)
        table += [
            Quantity('X35', f'precession at alpha = {alpha:g}, hybrid [rad/s]', rate(alpha),
                     rows[-1, 1] / rows[-1, 0], 1e-7),
            Quantity('X35', 'alpha, way of the centre [rad, m]', [alpha, 0.0], rows[-1, 2:], 1e-6),
        ]  # fmt: skip
        for model in ('ncp', 'lcp'):
            coarse, fine = (precession(model, alpha, h) for h in (2.5e-4, 1.25e-4))
            table += [
                Quantity('X35', f'precession, {model}, h = 0.125 ms [rad/s]', rate(alpha), fine,
                         5e-3),
                Quantity('X35', f'precession, {model}, h to 0 [rad/s]', rate(alpha),
                         2.0 * fine - coarse, 5e-4),
                Quantity('X35', f'error at h/2 over that at h, {model} [-]', 0.5,
                         (fine - rate(alpha)) / (coarse - rate(alpha)), 0.08),
            ]  # fmt: skip
    return table


def figure(figure: Figure) -> None:
    """Draw angle and way of the centre at several time steps."""
    upper, lower = figure.subplots(2, 1, sharex=True)
    for h in (1e-3, 5e-4, 2.5e-4):
        rows = rolling('ncp', 0.3, h, 0.5)
        upper.plot(rows[:, 0], rows[:, 2], label=f'h = {1e3 * h:g} ms')
        lower.plot(rows[:, 0], 1e3 * rows[:, 3])
    upper.set(ylabel='α [rad]', title='ncp: a coin rolls around its centre')
    lower.set(xlabel='time [s]', ylabel='way of the centre [mm]')
    upper.legend()
