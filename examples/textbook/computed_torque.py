"""Arm under computed torque.

The double pendulum, driven in both joints, with e = q_d - q:

    τ = M (q̈_d + K_d ė + K_p e) + C q̇ + g   gives   ë + K_d ė + K_p e = 0

K_p = 100, K_d = 20 is critically damped, e = e_0 (1 + 10 t) exp(-10 t), whatever the arm does. It
needs an effort for every coordinate: no efforts of the joints give a floating base, or the cart of
a pendulum, the acceleration that is asked for.

Observe that both joints follow the same curve, scaled by where they began, and that the simulation
comes to it in the first order of h: the torque is held over a step.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.support import inverse_dynamics, stance_dynamics
from textbook.quantity import Quantity

SOURCE = 'Constrained rigid bodies, canonical equation: computed torque'
ROBOT = 'double_pendulum'
Array = NDArray[np.float64]

START, ERROR = np.array([0.3, -0.7]), np.array([0.1, -0.2])
KP, KD = 100.0, 20.0


@cache
def robot() -> RobotModel:
    """Return the arm."""
    return load_robot(ROBOT)


def torque(q: Array, v: Array) -> Array:
    """Return τ for a target at rest [N m]."""
    wanted = KP * (START + ERROR - q) - KD * v
    return inverse_dynamics(stance_dynamics(robot(), q, v, []), wanted).effort


def errors(time_step: float, seconds: float) -> Array:
    """Return e after each step, the start included, shape (steps + 1, 2)."""
    sim = Simulator(robot(), time_step=time_step)
    sim.reset(START)
    found = [ERROR]
    for _ in range(round(seconds / time_step)):
        report = sim.step(torque(sim.q, sim.v))
        found.append(START + ERROR - report.q)
    return np.array(found)


def quantities() -> list[Quantity]:
    """Return e after 0.1 s, at a step and without its first order, and who cannot have this."""
    coarse, fine = (errors(time_step, 0.1)[-1] for time_step in (1e-3, 5e-4))
    cart = load_robot('cart_pendulum')
    at_rest = stance_dynamics(cart, cart.reference_configuration(), None, [])
    expected = (0.07357589, -0.14715178)
    return [
        Quantity('C5', 'e after 0.1 s, h = 1 ms [rad]', expected, coarse, 0.01),
        Quantity('C5', 'e after 0.1 s, h → 0', expected, 2.0 * fine - coarse, 5e-5),
        Quantity('C5', 'force that a cart at rest lacks for ẍ = 1 m/s² [N]', 3.0,
                 inverse_dynamics(at_rest, (1.0, 0.0)).residual[0], 1e-12),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw e of both joints beside the curve that it is to be."""
    axes = figure.subplots()
    for time_step in (5e-3, 2e-2):
        found = errors(time_step, 0.8)
        times = time_step * np.arange(len(found))
        for joint, part in enumerate((found / ERROR).T):
            axes.plot(times, part, label=f'joint {joint + 1}, h = {1e3 * time_step:g} ms')
    axes.plot(
        times, (1.0 + 10.0 * times) * np.exp(-10.0 * times), 'k:', label='ë + 20 ė + 100 e = 0'
    )
    axes.set(xlabel='time [s]', ylabel='e / e_0')
    axes.legend()
