"""Painlevé's rod.

Rigid contact with friction can have no answer; what do the models do then?

Uniform rod of length l = 1 at tan θ = 2, whose lower end slides with μ = 2. With G = J M⁻¹ Jᵀ of
that end the normal acceleration is a_n = p f_n − g, where

    p = G_nn − μ G_nt û        p = 4 sliding one way, −0.8 the other; p = 0 at μ = 4/3

For p < 0 no f_n ≥ 0 gives 0 ≤ a_n ⊥ f_n: sliding on is inconsistent. Impulses have an answer where
forces have none: the end jams, u_t = 0 at once, and energy is lost. (Here p has the two signs for
the two directions; a rod that leans the other way has them the other way round.)

An impact with restitution and friction is another trap: Newton's law, u_n⁺ = −e u_n⁻ with an
impulse in the friction cone, creates energy for the rod at θ = 0.75 that spins with 6 rad/s.

Observe: hybrid says INCONSISTENT and takes a step of ncp; ncp and lcp jam without a word. The
guard of hybrid lowers e until no energy is created; Poisson's and Moreau's laws create none here.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Hybrid, Simulator, load_robot
from contact_sim.contact_models import ContactModel
from contact_sim.simulation import StepReport
from contact_sim.step import SolverStatus
from textbook.complementarity import solutions
from textbook.planar import place, velocity
from textbook.quantity import Quantity

SOURCE = 'Painlevé 1895; Génot, Brogliato 1999'
ROBOT = 'painleve_rod'
ANGLE, HALF, FRICTION, GRAVITY = np.arctan(2.0), 0.5, 2.0, 9.81
WEIGHT = np.array([1.0, 1.0, HALF**2 / 3.0])
"""Mass along x and z [kg], moment of inertia [kg m²]."""
LANDING = (-0.25, -1.0, 6.0)
"""(v_x, v_z, ω) of the rod that Newton's law lets jump."""

Array = NDArray[np.float64]


def sliding(
    speed: float, model: str, time_step: float, friction: float = FRICTION
) -> tuple[Simulator, StepReport]:
    """Return the rod after a step in which its end slid at `speed` [m/s]."""
    sim = Simulator(load_robot(ROBOT), model, friction=friction, time_step=time_step)
    place(sim, (0.0, HALF * np.sin(ANGLE)), velocity=(speed, 0.0, 0.0))
    return sim, sim.step([])


def inverse_masses() -> tuple[float, float]:
    """Return G_nn and G_nt of the lower end [1/kg]."""
    _, report = sliding(1.0, 'ncp', 1e-6)
    normal = report.problem.delassus[2]
    return float(normal[2]), float(normal[0])


def sliding_forces(slip: float) -> list[float]:
    """Return every f_n [N] with 0 ≤ f_n ⊥ p f_n − g ≥ 0 while the end slides along `slip`."""
    normal, coupling = inverse_masses()
    p = normal - FRICTION * coupling * np.sign(slip)
    return [float(force[0]) for force in solutions([[p]], [-GRAVITY])]


def critical_friction() -> float:
    """Return the friction from which hybrid calls sliding inconsistent [-], by bisection."""
    fine, bad = 1.0, 2.0
    while bad - fine > 1e-5:
        middle = 0.5 * (fine + bad)
        status = sliding(-1.0, 'hybrid', 1e-6, middle)[1].solver.status
        fine, bad = (fine, middle) if status is SolverStatus.INCONSISTENT else (middle, bad)
    return bad


def jam(model: str) -> tuple[list[float], list[float]]:
    """Return impulse (x, z) of the jam [N s], and (slip speed [m/s], energy [J]) after it."""
    sim, report = sliding(-1.0, model, 1e-3)
    impulse = sim.time_step * report.contacts.force[0]
    energy = 0.5 * WEIGHT @ velocity(sim) ** 2
    return [impulse[0], impulse[2]], [float(report.contacts.slip_speed[0]), float(energy)]


def landing(model: ContactModel) -> tuple[float, float]:
    """Return the energy that the impact creates [J], and its ratio of normal speeds [-]."""
    sim = Simulator(
        load_robot(ROBOT), model, friction=0.5, restitution=1.0, gravity=0.0, time_step=1e-9
    )
    place(sim, (0.0, HALF * np.sin(0.75)), 0.75 - ANGLE, LANDING)
    before = velocity(sim)
    sim.step([])
    after = velocity(sim)
    normal = np.array([0.0, 1.0, -HALF * np.cos(0.75)])
    gained = 0.5 * WEIGHT @ (after**2 - before**2)
    return float(gained), float(-(normal @ after) / (normal @ before))


def quantities() -> list[Quantity]:
    """Return both directions of sliding, the jam, and the energy of the impact laws."""
    normal, coupling = inverse_masses()
    consistent = sliding(1.0, 'hybrid', 1e-6)[1].contacts.normal_force[0]
    says_so = [
        float(sliding(speed, 'hybrid', 1e-6)[1].solver.status is SolverStatus.INCONSISTENT)
        for speed in (1.0, -1.0)
    ]
    jams = {model: jam(model) for model in ('hybrid', 'ncp', 'lcp')}
    newton, guarded = (landing(Hybrid(energy_guard=guard)) for guard in (False, True))
    poisson, moreau = (landing(Hybrid(impact=law))[0] for law in ('poisson', 'moreau'))
    p = [normal - FRICTION * coupling, normal + FRICTION * coupling]
    return [
        Quantity('X16', 'p in both directions [1/kg]', [4.0, -0.8], p, 1e-9),
        Quantity('X16', 'forces that sliding on along +x allows [N]', [2.4525],
                 sliding_forces(1.0), 1e-9),
        Quantity('X16', 'f_n there, hybrid [N]', 2.4525, consistent, 1e-5),
        Quantity('X16', 'number of them along -x', 0.0, len(sliding_forces(-1.0)), 0.0),
        Quantity('X16', 'hybrid is INCONSISTENT along +x, -x', [0.0, 1.0], says_so, 0.0),
        Quantity('X16', 'from a friction of [-]', 4.0 / 3.0, critical_friction(), 1e-5),
        *(
            Quantity('X16', f'impulse x, z of the jam, {model} [N s]', [0.402943, 0.3083385],
                     one[0], 2e-6)
            for model, one in jams.items()
        ),
        Quantity('X16', 'slip speed, energy after it, ncp [m/s, J]', [0.0, 0.29706422],
                 jams['ncp'][1], 1e-7),
        Quantity('X15', 'energy created by newton [J]', 1.09567, newton[0], 5e-6),
        Quantity('X15', 'energy created by poisson [J]', -0.6441, poisson, 5e-5),
        Quantity('X15', 'energy created by moreau [J]', 0.0, moreau, 1e-8),
        Quantity('X15', 'energy created, guarded newton [J]', 0.0, guarded[0], 1e-8),
        Quantity('X15', 'restitution that the guard leaves [-]', 0.80082523, guarded[1], 2e-8),
    ]  # fmt: skip


def figure(figure: Figure) -> None:
    """Draw p against friction, and the energy of a rod that slides into its jam."""
    normal, coupling = inverse_masses()
    left, right = figure.subplots(1, 2)
    friction = np.linspace(0.0, 2.5, 100)
    for sign, name in ((-1.0, 'one way'), (1.0, 'the other')):
        left.plot(friction, normal + sign * friction * coupling, label=f'sliding {name}')
    left.axhline(0.0, color='k', lw=1)
    left.set(xlabel='μ', ylabel='p [1/kg]', title='No force for p < 0')
    left.legend()
    for model in ('ncp', 'lcp', 'compliant'):
        sim = Simulator(load_robot(ROBOT), model, friction=FRICTION, time_step=1e-4)
        place(sim, (0.0, HALF * np.sin(ANGLE)), velocity=(-1.0, 0.0, 0.0))
        energy = [0.5]
        for _ in range(300):
            sim.step([])
            energy.append(float(0.5 * WEIGHT @ velocity(sim) ** 2))
        right.plot(1e-4 * np.arange(301), energy, label=model)
    right.set(xlabel='time [s]', ylabel='kinetic energy [J]', title='The end jams, μ = 2')
    right.legend()
