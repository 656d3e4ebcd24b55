"""180 kg on compliant feet.

How stiff the ground must be, and what that costs. Over ROS: `contact_model:=compliant`.

A body of mass M on n corners that sink in by δ has springs of k = M g/(n δ) each. It bounces with
ω = √(g/δ), whatever its mass is, and explicit integration needs h < 2/ω: 20.2 ms for 1 mm. A foot
of 1 kg on one of those corners has a longest step of only 2/√(k/1 kg) = 4.26 ms.

Observe: explicit springs go wrong from one step size to the next, not gradually; implicit ones
rest at the same depth whatever the step is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Compliant, Plane, Simulator, load_robot
from contact_sim.step import SolverStatus
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: compliant contact models'
ROBOT = 'compliant_feet'
MASS, CORNERS, DEPTH, GRAVITY = 180.0, 8, 1e-3, 9.81
STIFFNESS = 220725.0
"""Of each corner [N/m]."""

Array = NDArray[np.float64]


def simulator(time_step: float = 1e-3, integration: str = 'implicit') -> Simulator:
    """Return the body above damped springs that are sized for DEPTH."""
    model = Compliant(
        normal_law='kelvin_voigt', friction_law='tanh', penetration=DEPTH, damping_ratio=0.1,
        integration=integration,
    )  # fmt: skip
    return Simulator(load_robot(ROBOT), model, time_step=time_step)


def undamped(time_step: float, integration: str, start: float = 0.0) -> Simulator:
    """Return the body on springs alone, at a height [m]."""
    model = Compliant(
        normal_law='linear', friction_law='tanh', penetration=DEPTH, integration=integration
    )
    sim = Simulator(load_robot(ROBOT), model, time_step=time_step)
    sim.reset([start])
    return sim


def period() -> float:
    """Return the period of small bounces on springs alone [s], between upward crossings."""
    sim, before = undamped(1e-4, 'explicit', -0.9 * DEPTH), 1.0
    crossings: list[float] = []
    while len(crossings) < 2:
        sim.step([])
        now = sim.q[0] + DEPTH
        if before < 0.0 <= now:
            crossings.append(sim.time - now / (now - before) * sim.time_step)
        before = now
    return float(crossings[1] - crossings[0])


def on_one_corner(time_step: float) -> Simulator:
    """Return 1 kg, the cart of `cart_and_wall`, pressed on one of the springs."""
    model = Compliant(
        normal_law='linear', friction_law='tanh', stiffness=STIFFNESS, integration='explicit'
    )
    sim = Simulator(
        load_robot('cart_and_wall'), model, Plane((1.0, 0.0, 0.0)), time_step=time_step
    )
    sim.reset([-1e-6])
    return sim


def longest_step(start: Callable[[float], Simulator]) -> float:
    """Return the step from which explicit springs are unstable [s], by bisection."""
    fine, bad = 1e-3, 0.1
    while bad - fine > 1e-6:
        middle = 0.5 * (fine + bad)
        sim = start(middle)
        status = sim.step(np.zeros(sim.robot.n_joints)).solver.status
        fine, bad = (fine, middle) if status is SolverStatus.UNSTABLE else (middle, bad)
    return bad


def quantities() -> list[Quantity]:
    """Return depth, stiffness, frequency and the longest explicit step."""
    sim = simulator()
    for _ in range(1000):
        report = sim.step([])
    ratio = undamped(1e-3, 'explicit', -DEPTH).step([]).stiffness_ratio
    coarse = simulator(0.05)
    for _ in range(200):
        coarse.step([])
    force = report.contacts.normal_force
    return [
        Quantity('T10', 'depth at rest [m]', DEPTH, -sim.q[0], 1e-6),
        Quantity(
            'T10', 'load of each corner [N]', [MASS * GRAVITY / CORNERS] * CORNERS, force, 1e-6
        ),
        Quantity('T10', 'stiffness of each corner [N/m]', STIFFNESS, force[0] / -sim.q[0], 1e-6),
        Quantity('T10', 'frequency, from its period [rad/s]', 99.05, 2.0 * np.pi / period(), 1e-4),
        Quantity('T10', 'frequency, from the stiffness ratio [rad/s]', 99.05, ratio / 1e-3, 1e-4),
        Quantity('T10', 'longest explicit step [s]', 20.2e-3,
                 longest_step(lambda h: undamped(h, 'explicit', -DEPTH)), 1e-3),
        Quantity('T10', 'longest explicit step of 1 kg on one corner [s]', 4.26e-3,
                 longest_step(on_one_corner), 1e-3),
        Quantity('T10', 'depth at rest, implicit steps of 50 ms [m]', DEPTH, -coarse.q[0], 1e-6),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the body settling, and undamped explicit springs on both sides of the limit."""
    upper, lower = figure.subplots(2, 1)
    sim, rows = simulator(), []
    for _ in range(500):
        sim.step([])
        rows.append([sim.time, 1e3 * sim.q[0]])
    upper.plot(*np.array(rows).T)
    upper.set(ylabel='height [mm]', title='settling, ζ = 0.1')
    for h in (19.5e-3, 20.5e-3):
        sim, rows = undamped(h, 'explicit', -0.999 * DEPTH), []
        for _ in range(30):
            sim.step([])
            rows.append([sim.time, 1e3 * sim.q[0]])
        lower.plot(*np.array(rows).T, 'o-', label=f'h = {1e3 * h:g} ms')
    lower.set(xlabel='time [s]', ylabel='height [mm]', title='explicit springs')
    lower.legend()
