"""Two rigid bodies with a point constraint, in maximal coordinates.

Six coordinates for each body, and the force F on the first one of a ball joint at r_1, r_2:

    m_1 p̈_1 - F = m_1 g,   I_1 ω̇_1 - r_1 × F = -ω_1 × I_1 ω_1
    m_2 p̈_2 + F = m_2 g,   I_2 ω̇_2 + r_2 × F = -ω_2 × I_2 ω_2
    p̈_1 - r_1 × ω̇_1 - p̈_2 + r_2 × ω̇_2 = -ω_1 × (ω_1 × r_1) + ω_2 × (ω_2 × r_2)

The text has y upwards, as the axes of both bodies here: its vectors are ours in body axes.

Observe that F is internal, Σ m p̈ = Σ m g, and that the points part without feedback.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from contact_sim.constraints import Baumgarte, LoopClosure, Projection
from textbook.quantity import Quantity

SOURCE = 'Constrained rigid bodies: two bodies, maximal coordinates'
ROBOT = 'two_bodies'
Array = NDArray[np.float64]

ARMS = np.array([[0.5, 0.0, 0.0], [-0.4, 0.1, 0.0]])
RATES = np.array([[0.1, 0.2, 1.0], [-0.3, 0.5, 0.2]])
VELOCITY = np.concatenate([[*-np.cross(w, r), *w] for w, r in zip(RATES, ARMS, strict=True)])
"""Both ends of the joint at rest."""
MASSES = 1.0, 2.0
NONE = np.zeros(0)


def joined(stabilisation: Baumgarte | Projection, time_step: float) -> Simulator:
    """Return both bodies, joined and turning."""
    joint = LoopClosure('first_end', 'second_end', stabilisation=stabilisation, name='joint')
    robot = load_robot(ROBOT)
    sim = Simulator(robot, gravity=9.8, time_step=time_step, constraints=[joint])
    sim.reset(robot.reference_configuration(), VELOCITY)
    return sim


def quantities() -> list[Quantity]:
    """Return accelerations and the force of the joint."""
    sim = joined(Baumgarte(0.0), 1e-6)
    to_text = sim.frame_placement('first').rotation.T
    report = sim.step(NONE)
    rates = report.acceleration.reshape(4, 3)
    own = np.cross(RATES, VELOCITY.reshape(4, 3)[::2])  # the axes of Pinocchio's v turn
    first, second = rates[::2] + own
    force = to_text @ report.constraints['joint'].force
    weight = sum(MASSES) * np.array([0.0, -9.8, 0.0])
    return [
        Quantity('C3', 'p̈_1 [m/s²]', (0.4059308, -9.80346367, 0.01586902), first, 2e-9),
        Quantity('C3', 'ω̇_1 [rad/s²]', (-0.2, 0.06032746, -0.01243945), rates[1], 5e-8),
        Quantity('C3', 'p̈_2 [m/s²]', (-0.2029654, -9.79826817, -0.00793451), second, 2e-9),
        Quantity('C3', 'ω̇_2 [rad/s²]', (0.02103275, 0.01884131, 0.12103806), rates[3], 5e-8),
        Quantity('C3', 'F on the first body [N]', (0.4059308, -0.00346367, 0.01586902), force,
                 2e-8),
        Quantity('C3', 'Σ m p̈ = Σ m g [N]', weight, MASSES[0] * first + MASSES[1] * second,
                 1e-9),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw how far the points part."""
    axes, times = figure.subplots(), 1e-3 * np.arange(1, 2001)
    for label, stabilisation in (
        ('α = 0', Baumgarte(0.0)),
        ('α = 10', Baumgarte(10.0)),
        ('projection', Projection()),
    ):
        sim = joined(stabilisation, 1e-3)
        drifts = [sim.step(NONE).constraints['joint'].drift for _ in times]
        axes.semilogy(times, np.maximum(drifts, 1e-17), label=label)
    axes.set(xlabel='time [s]', ylabel='distance of the points [m]', title='h = 1 ms')
    axes.legend()
