"""Double pendulum of point masses.

q1 from hanging, q2 relative to the first rod, s12 = sin(q1 + q2), driven by u in both joints:

    M q̈ + C q̇ = τ_g + u
    M = [[(m1 + m2) l1² + m2 l2² + 2 m2 l1 l2 c2, m2 l2² + m2 l1 l2 c2], [., m2 l2²]]
    C q̇ = m2 l1 l2 s2 (-(2 q̇1 + q̇2) q̇2, q̇1²)
    τ_g = -g ((m1 + m2) l1 s1 + m2 l2 s12, m2 l2 s12)

The same equations follow from virtual work, τ_g = Σ J_iᵀ m_i g = -∂U/∂q, and from Hamilton's form
p = M q̇, ṗ = ½ ∂(q̇ᵀ M q̇)/∂q + τ_g + u. Ṁ - 2 C is skew for the C of Christoffel only; the one
that the text prints gives the same C q̇ but not that.

Observe the energy: Runge-Kutta (the arcs of `hybrid`) keeps it to 1e-9 J for 10 s. The
semi-implicit step is symplectic only where M is constant; here it loses 0.2 J. The action along
the motion is stationary.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.dynamics import mechanical_energy
from contact_sim.support import stance_dynamics
from textbook.differences import gradient, rate
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: simple double pendulum, variational mechanics'
ROBOT = 'double_pendulum'
Array = NDArray[np.float64]

Q, V, EFFORT = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([0.5, -0.2])
UPRIGHT = np.array([np.pi, 0.0])
NONE = np.zeros(2)
GRAVITY = np.array([0.0, 0.0, -9.81])
SECONDS = 10


@cache
def robot() -> RobotModel:
    """Return the pendulum."""
    return load_robot(ROBOT)


def quantities() -> list[Quantity]:
    """Return matrices, motions and variations."""
    return [*equations(), *christoffel(), *motions(), *variations(), *hamilton()]


def inertia(q: Array) -> Array:
    """Return M."""
    return stance_dynamics(robot(), q, None, []).inertia


def gravity_effort(q: Array) -> Array:
    """Return τ_g."""
    return -stance_dynamics(robot(), q, None, []).nonlinear_effects


def first_acceleration(q: Array, v: Array, effort: Array) -> Array:
    """Return q̈ of the simulation."""
    sim = Simulator(robot())
    sim.reset(q, v)
    return sim.step(effort).acceleration


def equations() -> list[Quantity]:
    """Return the terms of the equation of motion."""
    coriolis = stance_dynamics(robot(), Q, V, []).nonlinear_effects + gravity_effort(Q)
    energy = mechanical_energy(robot().pinocchio_model, Q, V, GRAVITY)
    return [
        Quantity('T2', 'M [kg m²]', ((5.02968437, 1.26484219), (1.26484219, 0.5)), inertia(Q),
                 2e-9),
        Quantity('T2', 'C q̇ [N m]', (-0.46383673, -0.7795034), coriolis, 1e-8),
        Quantity('T2', 'τ_g [N m]', (-4.87696574, 3.82019394), gravity_effort(Q), 2e-9),
        Quantity('T2', 'q̈ [rad/s²]', (-8.22005712, 29.59354474),
                 first_acceleration(Q, V, EFFORT), 1e-9),
        Quantity('T2', 'energy [J]', -34.62473274, energy, 1e-9),
    ]  # fmt: skip


def christoffel() -> list[Quantity]:
    """Return how skew Ṁ - 2 C is, for two choices of C."""
    slope, growth = gradient(inertia, Q), rate(inertia, Q, V)  # slope[k, i, j] = ∂M_ij/∂q_k
    terms = np.einsum('kij,k->ij', slope, V), np.einsum('jik,k->ij', slope, V)
    own = 0.5 * (terms[0] + terms[1] - terms[1].T)
    pull = 2.0 * np.sin(Q[1]) * 0.5  # m2 l1 s2 l2
    fast = 2.0 * V[0] + V[1]
    printed = pull * np.array([[0.0, -fast], [0.5 * fast, -0.5 * V[0]]])
    parts = [growth - 2.0 * C for C in (own, printed)]
    skew, not_skew = (float(np.linalg.norm(part + part.T)) for part in parts)
    return [
        Quantity(
            'T3', 'C q̇ with C of Christoffel [N m]', (-0.46383673, -0.7795034), own @ V, 2e-8
        ),
        Quantity('T3', '|A + Aᵀ|, A = Ṁ - 2 C, Christoffel', 0.0, skew, 1e-8),
        Quantity('T3', '|A + Aᵀ|, A = Ṁ - 2 C, C of the text', 2.9465, not_skew, 2e-5),
    ]


def trajectory(model: str, seconds: float, effort: Array = NONE) -> tuple[Array, Array]:
    """Return q and v at each millisecond from the start, shapes (steps + 1, 2)."""
    sim = Simulator(robot(), model)
    sim.reset(Q, V)
    states = [(sim.q, sim.v)]
    for _ in range(round(seconds * 1000)):
        report = sim.step(effort)
        states.append((report.q, report.v))
    q, v = zip(*states, strict=True)
    return np.array(q), np.array(v)


@cache
def free(model: str) -> tuple[Array, Array, Array]:
    """Return q, v and energy gained [J] at each millisecond of a free motion of 10 s."""
    q, v = trajectory(model, SECONDS)
    energy = np.array([mechanical_energy(robot().pinocchio_model, *s, GRAVITY)
                       for s in zip(q, v, strict=True)])  # fmt: skip
    return q, v, energy - energy[0]


def motions() -> list[Quantity]:
    """Return where 10 s without efforts end, and what becomes of the energy."""
    q, v, gained = free('hybrid')
    swing = free('ncp')[2]
    return [
        Quantity('T2', 'q, q̇ after 10 s, Runge-Kutta, h = 1 ms',
                 (0.13764278, 0.8032905, -0.44390936, 0.41300351), (*q[-1], *v[-1]), 2e-7),
        Quantity('T2', 'energy gained in 10 s, Runge-Kutta [J]', 0.0, gained[-1], 1e-9),
        Quantity('T2', 'energy gained, least and most, semi-implicit [J]', (-0.2017, 0.0074),
                 (swing.min(), swing.max()), 5e-4),
    ]  # fmt: skip


def variations() -> list[Quantity]:
    """Return virtual work, equilibria and the action."""
    hanging, upright = (gradient(lambda q: -gravity_effort(q), at) for at in (NONE, UPRIGHT))
    squares = np.linalg.eigvals(np.linalg.solve(inertia(NONE), hanging))
    held = first_acceleration(Q, NONE, np.array([4.87696574, -3.82019394]))
    return [
        Quantity('T25', 'τ_g as virtual work of the weights [N m]', (-4.87696574, 3.82019394),
                 virtual_work(), 2e-9),
        Quantity('T25', 'q̈ under u = -τ_g', NONE, held, 1e-7),
        Quantity('T25', 'curvature of U, hanging [N m/rad]', (6.83977098, 42.21022894),
                 np.linalg.eigvalsh(hanging), 5e-9),
        Quantity('T25', 'curvature of U, upright: sign', (-1.0, -1.0),
                 np.sign(np.linalg.eigvalsh(upright)), 0.0),
        Quantity('T25', 'small oscillations [rad/s]', (2.66703245, 9.00982451),
                 np.sort(np.sqrt(squares.real)), 5e-9),
        Quantity('T25', 'first over second variation of the action in 1 s', 0.0, stationary(),
                 1e-5),
    ]  # fmt: skip


def virtual_work() -> Array:
    """Return Σ J_iᵀ m_i g over both masses."""
    model, total = robot().pinocchio_model, np.zeros(2)
    data = model.createData()
    pin.computeJointJacobians(model, data, Q)
    for joint in (1, 2):
        J = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)
        lever = data.oMi[joint].rotation @ model.inertias[joint].lever
        point = J[:3] + np.cross(J[3:].T, lever).T
        total += point.T @ (model.inertias[joint].mass * GRAVITY)
    return total


def stationary() -> float:
    """Return δS/δ²S of q + ε η along the free motion, η = sin(π t) (1, 1)."""
    q, v = (part[:1001] for part in free('hybrid')[:2])
    times = np.linspace(0.0, 1.0, len(q))[:, None]
    shape = np.sin(np.pi * times) * np.ones(2)
    speed = np.pi * np.cos(np.pi * times) * np.ones(2)
    model = robot().pinocchio_model
    data = model.createData()

    def action(epsilon: float) -> float:
        states = zip(q + epsilon * shape, v + epsilon * speed, strict=True)
        values = [
            pin.computeKineticEnergy(model, data, at, moving)
            - pin.computePotentialEnergy(model, data, at)
            for at, moving in states
        ]
        return float(1e-3 * (sum(values) - 0.5 * (values[0] + values[-1])))

    epsilon = 1e-3
    ahead, here, behind = map(action, (epsilon, 0.0, -epsilon))
    return 0.5 * epsilon * (ahead - behind) / (ahead - 2.0 * here + behind)


def hamilton() -> list[Quantity]:
    """Return ṗ by Hamilton's equation, and as d/dt (M q̇) of the simulation."""
    expected = (-4.37696574, 4.11624156)
    by_hamilton = 0.5 * gradient(lambda q: V @ inertia(q) @ V, Q) + gravity_effort(Q) + EFFORT
    acceleration = first_acceleration(Q, V, EFFORT)
    by_motion = inertia(Q) @ acceleration + rate(inertia, Q, V) @ V
    return [
        Quantity('T25', 'ṗ by Hamilton [N m]', expected, by_hamilton, 5e-9),
        Quantity('T25', 'ṗ = d/dt (M q̇) of the motion [N m]', expected, by_motion, 5e-9),
    ]


def figure(figure: Figure) -> None:
    """Draw the path of the tip and the energy of both integrators."""
    path, energy = figure.subplots(2)
    for model, label in (('hybrid', 'Runge-Kutta'), ('ncp', 'semi-implicit')):
        q, _, gained = free(model)
        angles = np.cumsum(q, axis=1)
        x, z = np.sin(angles) @ [1.0, 0.5], -np.cos(angles) @ [1.0, 0.5]
        path.plot(x, z, linewidth=0.6, label=label)
        energy.plot(1e-3 * np.arange(len(gained)), gained, linewidth=0.8, label=label)
    path.set(xlabel='x of the tip [m]', ylabel='z [m]', aspect='equal')
    energy.set(xlabel='time [s]', ylabel='energy gained [J]')
    energy.legend()
    figure.suptitle('10 s of free motion, h = 1 ms')
