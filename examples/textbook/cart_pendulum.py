"""Cart with a pendulum in three supports.

A cart (x, m_c) on a rail carries a pendulum (φ from hanging, m_p, l to its centre of mass, θ_p
about it), whose joint alone is driven. Its end P at 2 l is held, or a part of its motion is:

    M q̈ + b + g + J_cᵀ F_c = Sᵀ τ,   J_c q̇ = 0,   J_c q̈ = -J̇_c q̇,   F_c by the pendulum
    M = [[m_c + m_p, l m_p cos φ], [., m_p l² + θ_p]],   b = (-φ̇² l m_p sin φ, 0)
    g = (0, m_p g l sin φ),   J_c = [[1, 2 l cos φ], [0, 2 l sin φ]]

P held: the base is controllable, one constraint is internal, nothing moves. Only z of P held, as
on a frictionless floor: the base is out of reach, and the torque changes the force but no motion.
Only x of P held: the base follows, and no force changes without a motion.

Observe that the floor itself makes the first two of these: with friction P sticks, without it
slides, and the force is the same.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, analyse_support, load_robot
from contact_sim.support import (
    StanceDynamics,
    acceleration,
    constraint_force,
    free_acceleration,
    generalized_force,
    impulse_transfer,
    minimal_acceleration,
    null_space_projector,
    stance_dynamics,
)
from textbook.quantity import Quantity

SOURCE = 'ETH floating base, support-consistent dynamics'
ROBOT = 'cart_pendulum'
Array = NDArray[np.float64]

Q, EFFORT = np.array([0.0, 0.6]), 1.5
SUPPORTS = {'P held': ('t1', 'n'), 'z of P held': ('n',), 'x of P held': ('t1',)}
"""Rows of the contact frame that hold: along x, along z."""
VELOCITY = {
    'P held': (0.0, 0.0),
    'z of P held': (0.3, 0.0),
    'x of P held': (-np.cos(Q[1]) * 0.8, 0.8),
}
"""What each support allows of ẋ = 0.3 m/s, φ̇ = 0.8 rad/s."""
FRICTION = {'P held': 1.0, 'z of P held': 0.0}
"""Supports that a floor makes, by its friction."""


def held(support: str, velocity: tuple[float, float] | None = None) -> StanceDynamics:
    """Return the matrices in a support, at a velocity that it allows unless another is given."""
    v = VELOCITY[support] if velocity is None else velocity
    return stance_dynamics(load_robot(ROBOT), Q, v, ['P'], SUPPORTS[support])


def quantities() -> list[Quantity]:
    """Return ranks, forces, motions and impacts."""
    return [*ranks(), *forces(), *on_a_floor(), *impacts()]


def ranks() -> list[Quantity]:
    """Return what each support takes away."""
    expected = {'P held': (2, 1, 1), 'z of P held': (1, 0, 1), 'x of P held': (1, 1, 0)}
    found = []
    for name, rows in SUPPORTS.items():
        s = analyse_support(load_robot(ROBOT), Q, ['P'], rows)
        value = s.rank, s.base_rank, s.internal_constraints
        label = f'{name}: rank J, rank J_b, internal constraints'
        found.append(Quantity('E6', label, expected[name], value, 0.0))
    return found


def forces() -> list[Quantity]:
    """Return forces and motions in each support, and in none."""
    tau = generalized_force(load_robot(ROBOT), [EFFORT])
    fixed, level, upright = (held(name) for name in SUPPORTS)
    free = stance_dynamics(load_robot(ROBOT), Q, (0.3, 0.8), ['P'])
    selected = upright.selection_matrix[0]
    moved, unmoved = (
        null_space_projector(s.inertia, s.contact_jacobian).T @ selected for s in (upright, level)
    )
    return [
        Quantity('E11', 'free: q̈ [m/s², rad/s²]', (0.70403282, -4.68030904),
                 free_acceleration(free, tau), 1e-8),
        Quantity('E11', 'P held: F_c by the pendulum [N]', (0.0, -2.2484517),
                 -constraint_force(fixed, tau), 1e-8),
        Quantity('E11', 'P held: q̈', (0.0, 0.0), acceleration(fixed, tau), 1e-12),
        Quantity('E11', 'z of P held: F_c [N]', -2.2484517, -constraint_force(level, tau)[0],
                 1e-8),
        Quantity('E11', 'z of P held: q̈', (0.0, 0.0), acceleration(level, tau), 1e-12),
        Quantity('E11', 'z of P held: Nᵀ Sᵀ', (0.0, 0.0), unmoved, 1e-12),
        Quantity('E11', 'x of P held: F_c [N]', -1.72242383, -constraint_force(upright, tau)[0],
                 1e-8),
        Quantity('E11', 'x of P held: q̈', (0.68896953, -0.39692744), acceleration(upright, tau),
                 2e-8),
        Quantity('E11', 'x of P held: Nᵀ Sᵀ', (-1.21681305, -0.00427914), moved, 1e-8),
        Quantity('E13', 'x of P held: ξ̈ with Q = (-2 l cos φ, 1)', -0.3969274367,
                 minimal_acceleration(upright, tau, np.array([1]))[1][0], 1e-9),
    ]  # fmt: skip


def on_a_floor() -> list[Quantity]:
    """Return the same forces from a simulation of P on the floor."""
    found = []
    for name, friction in FRICTION.items():
        report = simulator(friction, VELOCITY[name]).step([EFFORT])
        force = report.contacts.force[0, [0, 2]]
        found += [
            Quantity('E11', f'{name} by friction {friction:g}: force of the floor [N]',
                     (0.0, 2.2484517), force, 1e-8),
            Quantity('E11', f'{name} by friction {friction:g}: q̈', (0.0, 0.0),
                     report.acceleration, 1e-10),
        ]  # fmt: skip
    return found


def impacts() -> list[Quantity]:
    """Return what is left of u⁻ = (0.5, -1.2) as each support closes."""
    expected = {
        'P held': ((1.00479863, -1.81169898), (0.0, 0.0), -0.3673993155),
        'x of P held': ((-0.23995511,), (0.4979015, -0.60327155), -0.05883732143),
        'z of P held': ((-0.58777391,), (0.33493288, 0.0), -0.1991292674),
    }
    found = []
    for name, (impulse, after, loss) in expected.items():
        hit = impulse_transfer(held(name, (0.5, -1.2)))
        found += [
            Quantity('E12', f'{name}: impulse by the pendulum [N s]', impulse, -hit.impulse, 1e-8),
            Quantity('E12', f'{name}: u⁺ [m/s, rad/s]', after, hit.velocity, 1e-8),
            Quantity('E12', f'{name}: energy lost [J]', loss, hit.energy_change, 1e-9),
        ]
    return found


def simulator(friction: float, velocity: tuple[float, float]) -> Simulator:
    """Return the pendulum with P on a floor."""
    sim = Simulator(load_robot(ROBOT), friction=friction)
    sim.reset(Q, velocity)
    return sim


def figure(figure: Figure) -> None:
    """Draw position of the cart and force of the floor under a torque that swings."""
    places, forces = figure.subplots(2, sharex=True)
    times = 1e-3 * np.arange(600)
    for name, friction in FRICTION.items():
        sim = simulator(friction, VELOCITY[name])
        run = [sim.step([EFFORT + 0.8 * np.sin(20.0 * t)]) for t in times]
        label = f'{name} (friction {friction:g})'
        places.plot(times, [report.q[0] for report in run], label=label)
        forces.plot(times, [report.contacts.force[0, 2] for report in run], label=label)
    places.set_ylabel('cart [m]')
    places.legend()
    forces.set(xlabel='time [s]', ylabel='force of the floor on P [N]')
    figure.suptitle('A torque that swings: the force follows, no motion does')
