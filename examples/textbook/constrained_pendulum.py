"""Double pendulum with a point on a line, a locked joint, a driven joint.

Rows h(q) = 0 with H = ∂h/∂q, or h_v(q, v) = 0 with W = ∂h_v/∂v, take the forces Hᵀ λ that keep
them:

    M v̇ = τ + Hᵀ λ,   λ = -(H M⁻¹ Hᵀ)⁺ (H M⁻¹ τ + Ḣ v + 2 α H v + α² h)
    driven:  λ = -(W M⁻¹ Wᵀ)⁺ (W M⁻¹ τ + ∂h_v/∂q v + α h_v)
    locked:  row and column of the joint deleted, v̇_i = 0

The tip stays on the vertical line through it: one row. By Gauss's principle v̇ is the nearest to
v̇_free in the metric of M that the rows allow, and λ minimises ½ λᵀ H M⁻¹ Hᵀ λ + λᵀ ḧ_free.

Observe that rows given twice share the force, and that with α = 0 nothing brings an error back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.constraints import (
    Baumgarte,
    Constraint,
    Holonomic,
    JointLock,
    JointVelocity,
    gauss_dual,
    gauss_primal,
)
from contact_sim.simulation import StepReport
from textbook.differences import rate
from textbook.quantity import Quantity

SOURCE = 'Tedrake, multibody dynamics: bilateral constraints, Gauss, joint locking'
ROBOT = 'double_pendulum'
Array = NDArray[np.float64]

Q, V, EFFORT = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([0.5, -0.2])


@cache
def robot() -> RobotModel:
    """Return the pendulum."""
    return load_robot(ROBOT)


def place(q: Array) -> Array:
    """Return x of the tip [m], shape (1,)."""
    model, data = robot().pinocchio_model, robot().pinocchio_model.createData()
    pin.framesForwardKinematics(model, data, q)
    return np.array(data.oMf[model.getFrameId('tip')].translation[:1])


def direction(q: Array) -> Array:
    """Return H of the tip's x, shape (1, 2)."""
    model, data = robot().pinocchio_model, robot().pinocchio_model.createData()
    tip = model.getFrameId('tip')
    return np.asarray(pin.computeFrameJacobian(model, data, q, tip, pin.LOCAL_WORLD_ALIGNED)[:1])


def line(alpha: float, error: float = 0.0, name: str = 'line') -> Holonomic:
    """Return the tip on the vertical line through its place at Q, missed by `error` [m]."""
    start = place(Q)
    return Holonomic(
        lambda q: place(q) - start + error, direction, 1, stabilisation=Baumgarte(alpha), name=name
    )


def held(
    constraints: Sequence[Constraint], v: ArrayLike = V, time_step: float = 1e-3
) -> Simulator:
    """Return the simulation under constraints, at its first state."""
    sim = Simulator(robot(), time_step=time_step)
    sim.reset(Q, v)
    for constraint in constraints:
        sim.add_constraint(constraint)
    return sim


def first(constraints: Sequence[Constraint], v: ArrayLike = V) -> tuple[StepReport, list[float]]:
    """Return the report of the first step and the forces of all rows."""
    report = held(constraints, v).step(EFFORT)
    return report, [float(row) for one in report.constraints.values() for row in one.force]


def quantities() -> list[Quantity]:
    """Return accelerations and forces."""
    return [*on_the_line(), *gauss(), *joints()]


def on_the_line() -> list[Quantity]:
    """Return T4: once, with feedback, twice."""
    alone, force = first([line(0.0)])
    _, pushed = first([line(5.0, 0.01)])
    twice, shared = first([line(0.0), line(0.0, name='again')])
    expected = (-8.73664421, 27.42944962)
    return [
        Quantity('T4', 'tip on a line: q̈ [rad/s²]', expected, alone.acceleration, 1e-9),
        Quantity('T4', 'tip on a line: λ [N]', -3.76836869, force[0], 2e-9),
        Quantity('T4', 'α = 5, h = 0.01 m: λ [N]', -34.25989494, pushed[0], 1e-9),
        Quantity('T4', 'row given twice: q̈', expected, twice.acceleration, 1e-9),
        Quantity('T4', 'row given twice: λ', (-1.884184345, -1.884184345), shared, 5e-9),
    ]


def gauss() -> list[Quantity]:
    """Return the same by Gauss's principle, from M and the free acceleration."""
    report, _ = first([line(0.0)])
    free, _ = first([])
    terms = (report.problem.inertia, free.acceleration, direction(Q), rate(direction, Q, V) @ V)
    return [
        Quantity('T5', 'primal: q̈ nearest to the free one', (-8.73664421, 27.42944962),
                 gauss_primal(*terms), 1e-8),
        Quantity('T5', 'dual: λ', (-3.76836869,), gauss_dual(*terms), 1e-7),
    ]  # fmt: skip


def joints() -> list[Quantity]:
    """Return the driven and the locked joint."""
    driven, drive = first([JointVelocity('q2', 0.2, alpha=3.0)])
    locked, lock = first([JointLock('q2')], (1.1, 0.0))
    return [
        Quantity('T6', 'q̇2 driven to 0.2, α = 3: q̈', (-1.2306627, 1.8), driven.acceleration, 1e-8),
        Quantity('T6', 'q̇2 driven: effort of the drive [N m]', -5.05629144, drive[0], 2e-9),
        Quantity('T7', 'q2 locked: q̈', (-0.8702267216, 0.0), locked.acceleration, 2e-10),
        Quantity('T7', 'q2 locked: effort of the lock [N m]', -5.50039681, lock[0], 2e-9),
    ]


def figure(figure: Figure) -> None:
    """Draw how an error of 1 cm decays, and how a driven joint reaches its speed."""
    above, below = figure.subplots(2, sharex=True)
    times = 2e-3 * np.arange(500)
    for alpha in (0.0, 2.0, 5.0, 10.0):
        sim = held([line(alpha, 0.01)], (0.0, 0.0), 2e-3)
        errors = [sim.step(EFFORT).constraints['line'].error[0] for _ in times]
        above.plot(times, 1e3 * np.array(errors), label=f'α = {alpha:g}')
    for alpha in (1.0, 3.0, 10.0):
        sim = held([JointVelocity('q2', 0.2, alpha=alpha)], time_step=2e-3)
        below.plot(times, [sim.step(EFFORT).v[1] for _ in times], label=f'α = {alpha:g}')
    above.set(ylabel='tip off its line [mm]')
    below.set(xlabel='time [s]', ylabel='speed of q2, to be 0.2 [rad/s]')
    for axes in (above, below):
        axes.legend()
