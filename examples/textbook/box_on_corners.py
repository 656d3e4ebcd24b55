"""Box on two corners.

Resting contact as a complementarity problem of accelerations: a unit square without friction, its
corners at x_i = ±½ from the middle along the floor. With the wrench (F_t, F_n, T about −y) on its
middle and rows n_i = (0, 1, x_i),

    0 ≤ f ⊥ a = N M⁻¹ Nᵀ f + N M⁻¹ (F_t, F_n, T) ≥ 0

On a slope α the weight is F_n = −m g cos α, F_t = m g sin α, and each corner carries ½ m g cos α.
A torque beyond ½ m g lifts one corner: the other then carries (g + ½ T/I)/(1/m + ¼/I).

Observe: the law is about accelerations, so the corner is let go at the instant at which its force
would have to pull; a step at the level of velocities gives the same. More corners than needed have
forces that this does not determine: the matrix is then singular.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from contact_sim import InclinedPlane, Plane, Simulator, load_robot
from textbook.complementarity import solutions
from textbook.planar import place, run
from textbook.quantity import Quantity

SOURCE = 'Constrained rigid bodies: resting contact; Baraff 1994'
ROBOT = 'box_on_corners'
MASS, SIDE, GRAVITY = 1.0, 1.0, 9.81
INERTIA = MASS * SIDE**2 / 6.0
CORNERS = (-0.5, 0.5)
"""x of the corners from the middle [m]: rear, front."""

Array = NDArray[np.float64]


def resting_forces(wrench: ArrayLike) -> tuple[Array, Array]:
    """Return forces f [N] and accelerations a [m/s²] of both corners at rest.

    `wrench` is (F_t, F_n, T) on the middle [N, N m], along the floor, out of it, about −y.
    """
    rows = np.array([[0.0, 1.0, x] for x in CORNERS])
    inverse = np.diag([1.0 / MASS, 1.0 / MASS, 1.0 / INERTIA])
    A, b = rows @ inverse @ rows.T, rows @ inverse @ np.asarray(wrench, dtype=float)
    (force,) = solutions(A, b)
    return force, A @ force + b


def weight(degrees: float) -> Array:
    """Return the wrench of the weight on a slope."""
    angle = np.deg2rad(degrees)
    return MASS * GRAVITY * np.array([np.sin(angle), -np.cos(angle), 0.0])


def simulator(model: str, degrees: float = 0.0) -> Simulator:
    """Return the square at rest on a slope without friction."""
    slope = InclinedPlane(float(np.deg2rad(degrees))) if degrees else Plane()
    sim = Simulator(load_robot(ROBOT), model, slope, friction=0.0)
    normal = 0.5 * SIDE * slope.plane[:3]
    place(sim, (normal[0], normal[2]), -np.deg2rad(degrees))
    return sim


def simulated(model: str, degrees: float = 0.0, torque: float = 0.0) -> Array:
    """Return the forces of the first step under a torque about −y [N m], rear and front."""
    sim = simulator(model, degrees)
    report = sim.step([], {'square': [0.0, 0.0, 0.0, 0.0, -torque, 0.0]})
    return np.array(report.contacts.normal_force)


def quantities() -> list[Quantity]:
    """Return the forces on a slope, under a torque that both corners bear, and under one more."""
    each, lifting = [4.6091923, 4.6091923], 6.0
    table = []
    for model in ('hybrid', 'ncp', 'lcp'):
        table.append(
            Quantity(
                'C8', f'forces on 20 degrees, {model} [N]', each, simulated(model, 20.0), 1e-8
            )
        )
    shared = 0.5 * MASS * GRAVITY + np.array([1.0, -1.0]) * 3.0 / SIDE
    alone = (GRAVITY + 0.5 * lifting / INERTIA) / (1.0 / MASS + 0.25 / INERTIA)
    lifted, rate = resting_forces([0.0, -MASS * GRAVITY, lifting])
    return [
        Quantity('C8', 'forces on 20 degrees, LCP of accelerations [N]', each,
                 resting_forces(weight(20.0))[0], 1e-8),
        *table,
        Quantity('C8', 'forces under 3 N m, LCP of accelerations [N]', shared,
                 resting_forces([0.0, -MASS * GRAVITY, 3.0])[0], 1e-12),
        Quantity('C8', 'forces under 3 N m, hybrid [N]', shared, simulated('hybrid', torque=3.0),
                 1e-8),
        Quantity('C8', 'forces under 6 N m, LCP of accelerations [N]', [alone, 0.0], lifted,
                 1e-12),
        *(
            Quantity('C8', f'forces under 6 N m, {model} [N]', [alone, 0.0],
                     simulated(model, torque=lifting), tolerance)
            for model, tolerance in (('hybrid', 1e-6), ('ncp', 1e-8))  # that of hybrid is a mean
        ),
        Quantity('C8', 'a of the corner that stays under 6 N m [m/s^2]', 0.0, rate[0], 1e-12),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw both forces against the torque, and the way down the slope."""
    left, right = figure.subplots(1, 2)
    torque = np.linspace(0.0, 8.0, 33)
    force = np.array([resting_forces([0.0, -MASS * GRAVITY, one])[0] for one in torque])
    left.plot(torque, force, label=['rear', 'front'])
    ours = np.array([simulated('ncp', torque=one) for one in torque[::4]])
    left.plot(torque[::4], ours, 'ko', markerfacecolor='none')
    left.set(xlabel='torque [N m]', ylabel='force [N]', title='lines: LCP, dots: ncp')
    left.legend()
    rows = run(simulator('ncp', 20.0), 1.0)
    right.plot(rows[:, 0], np.hypot(rows[:, 1] - rows[0, 1], rows[:, 2] - rows[0, 2]), label='ncp')
    fall = 0.5 * GRAVITY * np.sin(np.deg2rad(20.0)) * rows[:, 0] ** 2
    right.plot(rows[:, 0], fall, 'k--', label='½ g sin α t²')
    right.set(xlabel='time [s]', ylabel='way [m]', title='sliding down 20°')
    right.legend()
