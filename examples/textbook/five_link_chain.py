"""Chain of five links.

Uniform rods of 1 kg and 1 m hang from a pin, stretched out level, at rest. In reduced coordinates
the five joints are all there is: M is 5 × 5 and dense, since every rod moves all that follow. In
maximal coordinates each rod has three and each joint two rows, [[M, Jᵀ], [J, 0]] is 25 × 25 and
sparse. The angles of the text are absolute, ours relative to the rod before: θ_i = q_1 + … + q_i.

Observe that the first rod falls fastest while the second one turns upwards, and that the pin
carries little of the weight.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from contact_sim.maximal import MaximalSimulator
from contact_sim.support import stance_dynamics
from textbook.quantity import Quantity

SOURCE = 'Constrained rigid bodies: five-link chain'
ROBOT = 'five_link_chain'
Array = NDArray[np.float64]

NONE, LEVEL = np.zeros(0), np.zeros(5)
DROP = (-12.43864641, 3.33323204, -0.89428177, 0.24389503, -0.08129834)
"""θ̈ of the text."""


def quantities() -> list[Quantity]:
    """Return accelerations, the force of the pin, and the size of the system."""
    robot = load_robot(ROBOT)
    sim = Simulator(robot)
    acceleration = sim.step(NONE).acceleration
    data = robot.pinocchio_model.createData()
    pin.rnea(robot.pinocchio_model, data, LEVEL, LEVEL, acceleration)
    first = data.f[1].linear
    inertia = stance_dynamics(robot, LEVEL, None, []).inertia
    maximal = MaximalSimulator(robot, plane='xz')
    matrix = maximal.system.matrix
    return [
        Quantity('C7', 'θ̈ [rad/s²]', DROP, np.cumsum(acceleration), 5e-10),
        Quantity('C7', 'force of the pin [N]', (0.0, 2.83189227), first[[0, 2]], 2e-9),
        Quantity('C7', 'reduced: rows, non-zeros of M', (5, 25),
                 (len(inertia), int(np.count_nonzero(inertia))), 0.0),
        Quantity('C7', 'maximal: θ̈', DROP, turning(maximal), 5e-10),
        Quantity('C7', 'maximal: force of the pin',
                 (0.0, 2.83189227), maximal.step().joint_force[1][[0, 2]], 2e-9),
        Quantity('C7', 'maximal: rows, non-zeros', (25, 87), (matrix.shape[0], matrix.nnz), 0.0),
        Quantity('C7', 'θ̈ at a random state, maximal less reduced', np.zeros(5), disagreement(),
                 1e-9),
    ]  # fmt: skip


def turning(maximal: MaximalSimulator) -> Array:
    """Return θ̈ in maximal coordinates: our angles turn about -y."""
    return -maximal.acceleration()[0][1:, 4]


def disagreement() -> Array:
    """Return by how much θ̈ in maximal coordinates differs at a state without symmetry."""
    random = np.random.default_rng(1)
    q, v = random.uniform(-1.0, 1.0, (2, 5))
    sim, maximal = Simulator(load_robot(ROBOT)), MaximalSimulator(load_robot(ROBOT), plane='xz')
    sim.reset(q, v)
    maximal.reset(q, v)
    return turning(maximal) - np.cumsum(sim.step(NONE).acceleration)


def figure(figure: Figure) -> None:
    """Draw the chain as it falls."""
    axes = figure.subplots()
    sim = Simulator(load_robot(ROBOT))
    for step in range(601):
        if step % 100 == 0:
            angles = np.cumsum(sim.q)
            x, z = (np.cumsum([0.0, *part]) for part in (np.cos(angles), np.sin(angles)))
            axes.plot(x, z, 'o-', label=f'{sim.time:.1f} s')
        sim.step(NONE)
    axes.set(xlabel='x [m]', ylabel='z [m]', aspect='equal')
    axes.legend()
