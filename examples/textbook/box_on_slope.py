"""Box on a slope.

It rests or slides, and stands harder on its lower edge. Over ROS: `terrain:=inclined_plane`.

A cube of side a on a slope α with friction μ, down along +x. It rests if tan α ≤ μ, else it slides
with g (sin α − μ cos α). Friction at the floor acts a/2 below the middle, and the normal forces
balance that moment. At rest, per corner of the lower and the upper edge:

    N = ¼ m g cos α (1 ± tan α)

Observe: the edges share the load as written, the corners of one edge as they like: four corners of
a rigid box have forces that no motion can tell apart. Rigid models do not creep, soft ones do.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import InclinedPlane, Simulator, load_robot
from textbook.planar import place, run
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: beyond point contact'
ROBOT = 'box_on_slope'
MASS, SIDE, FRICTION, GRAVITY = 1.0, 0.2, 0.4, 9.81

Array = NDArray[np.float64]


def on_slope(model: str, degrees: float) -> Simulator:
    """Return the box at rest on a slope."""
    slope = InclinedPlane(float(np.deg2rad(degrees)))
    sim = Simulator(load_robot(ROBOT), model, slope, friction=FRICTION)
    normal = 0.5 * SIDE * slope.plane[:3]
    place(sim, (normal[0], normal[2]), -np.deg2rad(degrees))
    return sim


def speed(model: str, degrees: float) -> float:
    """Return the speed after half a second [m/s]."""
    return float(np.hypot(*run(on_slope(model, degrees), 0.5)[-1, 4:6]))


def loads(model: str, degrees: float) -> Array:
    """Return half of the normal forces of the lower and of the upper edge [N] at rest."""
    sim = on_slope(model, degrees)
    for _ in range(100):
        contacts = sim.step([]).contacts
    lower = contacts.position[:, 0] > sim.q[0]
    normal = contacts.normal_force
    return 0.5 * np.array([normal[lower].sum(), normal[~lower].sum()])


def quantities() -> list[Quantity]:
    """Return speeds and loads on both sides of the friction angle."""
    angle = np.deg2rad(20.0)
    share = 0.25 * MASS * GRAVITY * np.cos(angle)
    expected = share * np.array([1.0 + np.tan(angle), 1.0 - np.tan(angle)])
    found = {model: loads(model, 20.0) for model in ('ncp', 'lcp', 'hybrid')}
    return [
        *(
            Quantity('X4', f'speed after 0.5 s on 20 and 25 degrees, {model} [m/s]',
                     [0.0, 0.2947667], [speed(model, 20.0), speed(model, 25.0)], 1e-6)
            for model in ('ncp', 'lcp', 'hybrid')
        ),
        *(
            Quantity('X4', f'load per corner, lower and upper edge, {model} [N]', expected, one,
                     1e-6)
            for model, one in found.items()
        ),
        Quantity('X4', 'one side of it [N]', 3.16518988 + 1.44400242, found['ncp'].sum(), 1e-6),
        Quantity('X4', 'creep on 20 degrees, sap [m/s]', 0.0, speed('sap', 20.0), 1e-3),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw the acceleration against the slope, and how a soft model creeps."""
    left, right = figure.subplots(1, 2)
    degrees = np.arange(18.0, 29.0, 2.0)
    left.plot(degrees, [2.0 * speed('ncp', one) for one in degrees], 'o', label='ncp')
    angle = np.deg2rad(degrees)
    coulomb = GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle))
    left.plot(degrees, np.maximum(coulomb, 0.0), label='Coulomb')
    left.set(xlabel='slope [°]', ylabel='acceleration [m/s²]')
    left.legend()
    for model in ('ncp', 'sap', 'todorov', 'compliant'):
        rows = run(on_slope(model, 20.0), 0.2)
        creep = np.hypot(rows[:, 4], rows[:, 5])
        right.plot(rows[:, 0], np.maximum(creep, 1e-16), label=model)
    right.set(xlabel='time [s]', ylabel='speed on 20° [m/s]', yscale='log')
    right.legend()
