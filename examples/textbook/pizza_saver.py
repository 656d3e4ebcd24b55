"""Pizza saver.

A disc on three legs that sticks under a moment, and spins under a larger one.

Mass m = 3, legs at R = 1.5, I = 6.75 about the vertical, g = 10, μ = ⅔, on springs of k = 1e4 with
relaxation time τ = 0.01 s, step h = 0.01 s. The legs carry m g/3 each, −m g/3k deep. A moment M is
borne by friction M/3R at each leg up to μ m g R = 30 N m; beyond that ω̇ = (M − μ m g R)/I.

Observe: sap finds the velocity of the end of the step as the least of a convex function. Its price
is that sticking legs creep, but at most at σ h g: a hundredth of a millimetre per second here.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Sap, Simulator, load_robot
from contact_sim.simulation import StepReport
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: SAP; Castro, Permenter, Han 2022'
ROBOT = 'pizza_saver'
MASS, ARM, INERTIA, FRICTION, GRAVITY = 3.0, 1.5, 6.75, 2.0 / 3.0, 10.0
STIFFNESS, RELAXATION, STEP, SIGMA = 1e4, 0.01, 0.01, 1e-3

Array = NDArray[np.float64]


def simulator() -> Simulator:
    """Return the disc half as deep in the ground as it will be."""
    model = Sap(
        approximation='sap', weight='delassus', acts_ahead=True, stiffness=STIFFNESS,
        relaxation_time=RELAXATION, sigma=SIGMA, beta=0.0,
    )  # fmt: skip
    sim = Simulator(load_robot(ROBOT), model, friction=FRICTION, gravity=GRAVITY, time_step=STEP)
    sim.reset([-0.5 * MASS * GRAVITY / (3.0 * STIFFNESS), 0.0, 0.0, 0.0])
    return sim


def turned(moment: float, steps: int = 500) -> StepReport:
    """Return the last of some steps under a moment [N m]."""
    sim = simulator()
    for _ in range(steps):
        report = sim.step([moment])
    return report


def friction(report: StepReport) -> Array:
    """Return the friction of each leg [N]."""
    along, across = report.contacts.force[:, :2].T
    return np.asarray(np.hypot(along, across))


def quantities() -> list[Quantity]:
    """Return rest, sticking under 20 N m and spinning under 40 N m."""
    rest, sticks, slides = turned(0.0), turned(20.0), turned(40.0)
    creep = sticks.contacts.slip_speed
    return [
        Quantity('2.3', 'depth at rest [m]', 1e-3, -rest.q[0], 1e-6),
        Quantity('2.3', 'load of each leg [N]', [10.0] * 3, rest.contacts.normal_force, 1e-7),
        Quantity('2.3', 'friction under 20 N m [N]', [4.44444444] * 3, friction(sticks), 1e-6),
        Quantity('2.3', 'creep under 20 N m [m/s]', [1.21e-5] * 3, creep, 4e-3),
        Quantity('2.3', 'creep beyond sigma h g [m/s]', 0.0,
                 max(creep.max() - SIGMA * STEP * GRAVITY, 0.0), 0.0),
        Quantity('2.3', 'friction under 40 N m [N]', [FRICTION * 10.0] * 3, friction(slides),
                 1e-6),
        Quantity('2.3', 'acceleration under 40 N m [rad/s^2]', 1.48148148, slides.acceleration[3],
                 1e-6),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw friction and spin while the moment grows."""
    sim, rows = simulator(), []
    for moment in np.linspace(0.0, 45.0, 900):
        report = sim.step([moment])
        rows.append([moment, friction(report).sum() * ARM, sim.v[3]])
    moment, borne, spin = np.array(rows).T
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(moment, borne, label='moment of friction')
    upper.plot(moment, moment, 'k--', lw=1, label='moment')
    upper.set_ylabel('[N m]')
    upper.legend()
    lower.plot(moment, spin)
    lower.set(xlabel='moment [N m]', ylabel='spin [rad/s]')
