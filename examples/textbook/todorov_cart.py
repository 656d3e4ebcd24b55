"""Cart at a relaxed wall.

A soft constraint that pushes before it is touched: the scalar case of the convex relaxation of
2014, with a damping inertia b and u the push:

    (m + b)(v' − v)/h = u + f/h − b v,   f = argmin_{f ≥ 0} ½ f² (1 + ε)/(m + b) + f (v⁻ − v*)
    v* = v − 2 h (1 + ε)/κ v − h (1 + ε)/κ² q

v⁻ is v' without contact. f is an impulse: v' = v⁻ + f/(m + b), the force is f/h. (The text has
them in one unit.) v* is the velocity of a critically damped spring of time κ.

Observe: with q = 0.02 m and v = −1 m/s the wall slows the cart down in a step in which it does not
reach it. Pressed against the wall by its weight it rests inside, κ² ε/(1 + ε) m g/(m + b) deep.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from contact_sim import Plane, Simulator, Todorov, load_robot
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: relaxed complementarity-free formulation'
ROBOT = 'cart_and_wall'
MASS, INERTIA, EPSILON, KAPPA, STEP, GRAVITY = 1.0, 0.1, 0.05, 0.1, 0.01, 9.81


def relaxation(q: float, v: float, push: float = 0.0) -> tuple[float, float, float]:
    """Return (q' [m], v' [m/s], impulse f [N s]) after a step."""
    total = MASS + INERTIA
    without = v + STEP * (push - INERTIA * v) / total
    stiff = STEP * (1.0 + EPSILON) / KAPPA
    wanted = v - 2.0 * stiff * v - stiff / KAPPA * q
    impulse = max(0.0, -(without - wanted) * total / (1.0 + EPSILON))
    after = without + impulse / total
    return q + STEP * after, after, impulse


def simulator(gravity: float = 0.0) -> Simulator:
    """Return the cart with the wall at 0; gravity [m/s²] pulls it into the wall."""
    model = Todorov(
        form='2014', regularisation=EPSILON, error_reduction_time=KAPPA, damping_inertia=INERTIA,
        cone='elliptic', tolerance=1e-14,
    )  # fmt: skip
    return Simulator(
        load_robot(ROBOT), model, Plane((1.0, 0.0, 0.0)), friction=0.0, time_step=STEP,
        gravity=[-gravity, 0.0, 0.0],
    )  # fmt: skip


def step(sim: Simulator, q: float, v: float) -> tuple[float, float, float]:
    """Return (q', v', impulse) of a step from q and v."""
    sim.reset([q], [v])
    force = float(sim.step([0.0]).contacts.force[0, 0])
    return float(sim.q[0]), float(sim.v[0]), STEP * force


def reach(sim: Simulator, v: float) -> float:
    """Return the distance [m] up to which the wall acts on a cart of speed v, by bisection."""
    near, far = 0.0, 1.0
    while far - near > 1e-9:
        middle = 0.5 * (near + far)
        near, far = (middle, far) if step(sim, middle, v)[2] > 0.0 else (near, middle)
    return near


def quantities() -> list[Quantity]:
    """Return a step at a distance, how far the wall reaches, and the depth at rest."""
    sim, pressed = simulator(), simulator(GRAVITY)
    near, slow = step(sim, 0.02, -1.0), step(sim, 0.02, -0.05)
    pressed.reset([0.0])
    for _ in range(1000):
        report = pressed.step([0.0])
    depth = KAPPA**2 * EPSILON / (1.0 + EPSILON) * MASS * GRAVITY / (MASS + INERTIA)
    expected = [0.01180043, -0.81995671, 0.19704762]
    return [
        Quantity('T22', "q', v', f from (0.02, -1) [m, m/s, N s]", expected, near, 1e-8),
        Quantity('T22', 'the same, by the formula', expected, relaxation(0.02, -1.0), 1e-8),
        Quantity('T22', 'f from (0.02, -0.05) [N s]', 0.0, slow[2], 1e-12),
        Quantity('T22', 'acts at -1 m/s from [m]', 0.1991342, reach(sim, -1.0), 5e-7),
        Quantity('T22', 'depth at rest [m]', 0.0042467532, -pressed.q[0], 2e-8),
        Quantity('T22', 'the same, by the formula [m]', 0.0042467532, depth, 2e-8),
        Quantity('T22', 'force at rest [N]', MASS * GRAVITY, report.contacts.force[0, 0], 1e-9),
    ]


def figure(figure: Figure) -> None:
    """Draw the cart that comes in at 1 m/s, and the force that meets it."""
    sim = simulator()
    sim.reset([0.3], [-1.0])
    rows = []
    for _ in range(120):
        force = sim.step([0.0]).contacts.force[0, 0]
        rows.append([sim.time, sim.q[0], force])
    time, q, force = np.array(rows).T
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(time, q)
    upper.axhline(0.0, color='k', lw=1)
    upper.set_ylabel('distance from the wall [m]')
    lower.plot(time, force, 'tab:red')
    lower.set(xlabel='time [s]', ylabel='force [N]')
    upper.set_title('A relaxed wall acts at a distance')
