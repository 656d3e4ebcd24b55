"""Bead on a circle.

A point mass without weight, h = ½ (|p|² - 1) = 0, H = p, Ḣ v = |v|²:

    ḧ + k_d ḣ + k_p h = 0,   λ = -(H M⁻¹ Hᵀ)⁺ (Ḣ v + k_d ḣ + k_p h)

The acceleration is right; what the integration misses in every step adds up. Feedback, k_d = 2 α
and k_p = α² in the words of the other text, bounds it. Explicit Euler, q⁺ = q + h v, v⁺ = v + h v̇,
is the method of the text, taken here with v̇ of the simulator.

Observe that explicit Euler leaves the circle outwards, and the semi-implicit step of the simulator
inwards, by as much; and that projection leaves nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from contact_sim.constraints import Baumgarte, Holonomic, Projection
from textbook.quantity import Quantity

SOURCE = 'Constrained rigid bodies: Baumgarte stabilisation'
ROBOT = 'bead'
Array = NDArray[np.float64]

TIME_STEP, STEPS = 0.01, 1000
NONE = np.zeros(0)
PLAIN, FED_BACK = Baumgarte(0.0), Baumgarte(kp=100.0, kd=20.0)


def on_the_circle(stabilisation: Baumgarte | Projection) -> Simulator:
    """Return the bead at (1, 0) with 1 m/s along the circle."""
    circle = Holonomic(
        lambda q: np.array([0.5 * (q @ q - 1.0)]),
        lambda q: q[None, :].copy(),
        1,
        stabilisation=stabilisation,
    )
    sim = Simulator(load_robot(ROBOT), time_step=TIME_STEP, gravity=0.0, constraints=[circle])
    sim.reset((1.0, 0.0), (0.0, 1.0))
    return sim


@cache
def explicit(stabilisation: Baumgarte) -> Array:
    """Return the error of the radius after each step of explicit Euler [m]."""
    sim, errors = on_the_circle(stabilisation), []
    for _ in range(STEPS):
        q, v = sim.q, sim.v
        acceleration = sim.step(NONE).acceleration
        sim.reset(q + TIME_STEP * v, v + TIME_STEP * acceleration)
        errors.append(np.linalg.norm(sim.q) - 1.0)
    return np.array(errors)


@cache
def semi_implicit(stabilisation: Baumgarte | Projection) -> Array:
    """Return the error of the radius after each step of the simulator [m]."""
    sim = on_the_circle(stabilisation)
    return np.array([np.linalg.norm(sim.step(NONE).q) - 1.0 for _ in range(STEPS)])


def quantities() -> list[Quantity]:
    """Return errors of the radius after 10 s."""
    return [
        Quantity('C6', 'radius error, explicit Euler, α = 0 [m]', 0.05126847, explicit(PLAIN)[-1],
                 1e-7),
        Quantity('C6', 'radius error, explicit Euler, kp = 100, kd = 20 [m]', 0.00124113,
                 explicit(FED_BACK)[-1], 5e-6),
        Quantity('C6', 'radius error, projection [m]', 0.0, semi_implicit(Projection())[-1],
                 1e-12),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the error of the radius."""
    axes = figure.subplots()
    times = TIME_STEP * np.arange(1, STEPS + 1)
    for label, stabilisation in (('α = 0', PLAIN), ('kp = 100, kd = 20', FED_BACK)):
        axes.plot(times, 1e3 * explicit(stabilisation), label=f'explicit Euler, {label}')
        axes.plot(times, 1e3 * semi_implicit(stabilisation), label=f'semi-implicit, {label}')
    axes.plot(times, 1e3 * semi_implicit(Projection()), 'k:', label='projection')
    axes.set(xlabel='time [s]', ylabel='error of the radius [mm]', title='h = 10 ms')
    axes.legend()
