"""Rattleback.

A boat that spins one way only: spun the other way it begins to rattle, stops, and turns round.

Its surface is an ellipsoid A = diag(a, b, c) m, its mass lies below the middle, and its axes of
inertia are turned by a little from those of the surface. Rolling without slip, with the vertical n
and all else in axes of the body, r from the centre of mass to the contact, s to the middle:

    r = s − A² n/|A n|,   ṅ = n × ω,   v = r × ω
    F = m (ṙ × ω + r × ω̇ + ω × (r × ω) + g n)
    I ω̇ + ω × I ω = r × F

Three equations for ω̇. They are integrated here by Runge and Kutta's method of order 8 to 1e-11,
without the simulator. Energy stays: spin goes into rocking about the long way, and from there into
spin the other way.

Observe: started at −2 rad/s it stops after 2.2 s and turns round; started at +2 rad/s it goes on.
How soon depends on the first tilt, half a degree here, because the rocking grows exponentially.
That makes errors grow, too: ncp, of first order in h, turns round 5 % too soon at 0.1 ms and 0.8 %
at 0.05 ms. hybrid is of fourth order.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from contact_sim import Simulator, load_robot
from textbook.quantity import Quantity

SOURCE = 'Kane and Levinson 1982: realistic mathematical modeling of the rattleback'
ROBOT = 'rattleback'
AXES, MIDDLE = np.array([0.2, 0.03, 0.02]), np.array([0.0, 0.0, 0.01])
"""a, b, c and s [m]."""
MASS, GRAVITY = 1.0, 9.81
INERTIA = np.array([[2e-4, -2e-5, 0.0], [-2e-5, 1.6e-3, 0.0], [0.0, 0.0, 1.7e-3]])
"""I [kg m²]."""
TILT, SECONDS = np.deg2rad(0.5), 2.5
FRICTION = 5.0
"""It does not slip: 0.8 is enough."""

Array = NDArray[np.float64]


def start(spin: float) -> tuple[Array, Array]:
    """Return attitude and ω, in axes of the body, of the boat at first."""
    turn = pin.rpy.rpyToMatrix(TILT, TILT, 0.0)
    return turn, spin * turn[2]


def rates(_: float, state: Array) -> Array:
    """Return (ṅ, ω̇) of (n, ω)."""
    n, w = state[:3], state[3:]
    reach, n_rate = np.linalg.norm(AXES * n), np.cross(n, w)
    r = MIDDLE - AXES**2 * n / reach
    r_rate = AXES**2 * (n * ((AXES * n) @ (AXES * n_rate)) / reach**3 - n_rate / reach)
    smooth = np.cross(r_rate, w) + np.cross(w, np.cross(r, w)) + GRAVITY * n
    K = pin.skew(r)
    moment = MASS * np.cross(r, smooth) - np.cross(w, INERTIA @ w)
    return np.r_[n_rate, np.linalg.solve(INERTIA - MASS * K @ K, moment)]


@cache
def equations(spin: float) -> tuple[Array, Array]:
    """Return time [s] and spin n · ω [rad/s] by the equations of motion, each ms."""
    turn, w = start(spin)
    times = 1e-3 * np.arange(1, round(1e3 * SECONDS) + 1)
    found = solve_ivp(rates, (0.0, SECONDS), np.r_[turn[2], w], method='DOP853', t_eval=times,
                      rtol=1e-11, atol=1e-13)  # fmt: skip
    return times, np.sum(found.y[:3] * found.y[3:], axis=0)


@cache
def simulated(model: str, spin: float, time_step: float, seconds: float = SECONDS) -> Array:
    """Return the spin n · ω of the simulator [rad/s], each ms."""
    sim = Simulator(load_robot(ROBOT), model, friction=FRICTION, time_step=time_step)
    turn, w = start(spin)
    n = turn[2]
    height = np.linalg.norm(AXES * n)
    q = np.r_[0.0, 0.0, height, pin.Quaternion(turn).coeffs()]
    sim.reset(q, np.r_[np.cross(w, AXES**2 * n / height), w])
    each, spins = round(1e-3 / time_step), []
    for k in range(round(seconds / time_step)):
        sim.step([])
        if (k + 1) % each == 0:
            spins.append(pin.Quaternion(sim.q[3:7]).matrix()[2] @ sim.v[3:6])
    return np.array(spins)


def turns_round(spins: Array) -> float:
    """Return when the spin passes zero [s]."""
    k = int(np.argmax(spins > 0.0))
    return float(1e-3 * (k + spins[k - 1] / (spins[k - 1] - spins[k])))


def quantities() -> list[Quantity]:
    """Return the spin over its reversal beside that of the equations of motion."""
    _, exact = equations(-2.0)
    _, other = equations(2.0)
    spins = simulated('hybrid', -2.0, 1e-3)
    some = np.array([500, 1000, 1500, 2000, 2300])
    early = 700
    errors = [
        np.abs(simulated('ncp', -2.0, h)[:early] - exact[:early]).max() for h in (1e-4, 5e-5)
    ]
    return [
        Quantity('X36', 'spin after 0.5, 1, 1.5, 2, 2.3 s, hybrid [rad/s]', exact[some - 1],
                 spins[some - 1], 5e-4),
        Quantity('X36', 'it turns round after, hybrid [s]', turns_round(exact),
                 turns_round(spins), 1e-4),
        Quantity('X36', 'spun the right way, after 1 s, hybrid [rad/s]', other[999],
                 simulated('hybrid', 2.0, 1e-3, 1.0)[999], 1e-4),
        Quantity('X36', 'it turns round after, ncp, h = 0.05 ms [s]', turns_round(exact),
                 turns_round(simulated('ncp', -2.0, 5e-5)), 0.02),
        Quantity('X36', 'largest error of the spin up to 0.7 s, ncp, h = 0.05 ms [rad/s]', 0.0,
                 errors[1], 0.04),
        Quantity('X36', 'that over the one at 0.1 ms [-]', 0.5, errors[1] / errors[0], 0.05),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the spin against time, by the equations of motion and by ncp."""
    axes = figure.subplots()
    for spin in (-2.0, 2.0):
        times, exact = equations(spin)
        axes.plot(times, exact, 'k', lw=1, label='equations of motion' if spin < 0.0 else None)
    for h in (1e-3, 1e-4):
        axes.plot(times, simulated('ncp', -2.0, h), label=f'ncp, h = {1e3 * h:g} ms')
    axes.axhline(0.0, color='k', lw=0.5)
    axes.set(xlabel='time [s]', ylabel='spin [rad/s]', title='a rattleback turns round')
    axes.legend()
