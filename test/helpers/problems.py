"""Contact problems with known answers or known difficulty."""

from __future__ import annotations

import numpy as np

from contact_sim import ContactProblem

GRAVITY = 9.81


def random_problem(seed: int, contacts: int = 2, friction: float | None = None) -> ContactProblem:
    """Return a well-posed random problem: G positive definite, g of order 1."""
    rng = np.random.default_rng(seed)
    n = 3 * contacts
    A = rng.standard_normal((n, n + 2))
    mu = rng.uniform(0.1, 1.2, contacts) if friction is None else np.full(contacts, friction)
    return ContactProblem.from_delassus(A @ A.T, rng.standard_normal(n), mu)


def _skew(r: np.ndarray) -> np.ndarray:
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


def _point_rows(r: np.ndarray) -> np.ndarray:
    """Return the velocity of a point at r on a body with twist (linear, angular)."""
    return np.hstack([np.eye(3), -_skew(r)])


def box_stack(ratio: float, boxes: int = 10, friction: float = 0.4) -> tuple:
    """Return (problem, masses): boxes stacked heavy on top, four corners per interface.

    Masses are 1e-3·ratio^(i/(boxes − 1)) kg from the bottom up; theory X8.
    """
    h, half = 1e-3, 0.1
    mass = 1e-3 * ratio ** (np.arange(boxes) / (boxes - 1))
    inertia = np.diag(
        np.concatenate([[m, m, m, *(m * (2 * half) ** 2 / 6 * np.ones(3))] for m in mass])
    )
    rows = []
    for i in range(boxes):
        for x in (-half, half):
            for y in (-half, half):
                J = np.zeros((3, 6 * boxes))
                J[:, 6 * i : 6 * i + 6] = _point_rows(np.array([x, y, -half]))
                if i > 0:
                    J[:, 6 * i - 6 : 6 * i] = -_point_rows(np.array([x, y, half]))
                rows.append(J)
    free = np.zeros(6 * boxes)
    free[2::6] = -GRAVITY * h
    problem = ContactProblem.from_dynamics(
        inertia=inertia,
        jacobian=np.vstack(rows),
        velocity=np.zeros(6 * boxes),
        free_motion=free,
        friction=np.full(4 * boxes, friction),
        gap=np.zeros(4 * boxes),
        bias=np.zeros(12 * boxes),
        time_step=h,
    )
    return problem, mass


def nearly_coincident_contacts() -> ContactProblem:
    """Return a singular problem: a rod lands on two points 2 mm apart (rank 5 of 6), sliding."""
    length, mass = 1.0, 8.0
    across = mass * length**2 / 12
    inertia = np.diag([mass, mass, mass, across, across, 1e-2])
    tilt = np.array([0.4, 0.3, -0.5])
    offset = np.array([2e-3, 0.0, 0.0])
    jacobian = np.vstack([_point_rows(tilt), _point_rows(tilt + offset)])
    free = np.array([0.5, -0.1, -2.4, 0.2, -0.3, 0.1])
    return ContactProblem.from_dynamics(
        inertia=inertia,
        jacobian=jacobian,
        velocity=free,
        free_motion=free,
        friction=np.full(2, 0.9),
        gap=np.zeros(2),
        bias=np.zeros(6),
        time_step=1e-3,
    )


def coupled_contact() -> ContactProblem:
    """Return one sliding contact whose normal and tangent couple; theory 2.11.

    The matrix is that of a cube on its corner in the tests of ContactBench (tests/solvers.cpp).
    """
    G = [
        [5.32596138, -0.72388089, -0.9707955],
        [-0.72388089, 4.11915949, -2.07305584],
        [-0.9707955, -2.07305584, 2.88477717],
    ]
    return ContactProblem.from_delassus(G, [0.5, -0.8, -1.0], [0.3])


def two_dependent_contacts() -> ContactProblem:
    """Return two contacts of rank 3, the singular problem of theory 2.11.

    The numbers are those of the tests of ContactBench (tests/solvers.cpp); as they are rounded
    there, three eigenvalues are ±1e-9 in place of 0.
    """
    lower = [
        [0.00746183],
        [0.01030469, 0.05200239],
        [-0.02459814, 0.00350998, 0.11827849],
        [0.00146251, 0.00977178, 0.00287095, 0.00750077],
        [0.0106132, 0.05230589, 0.00237138, 0.00957129, 0.05263244],
        [-0.02493933, 0.00358581, 0.11994601, 0.00312712, 0.00242249, 0.12164495],
    ]
    G = np.zeros((6, 6))
    for i, row in enumerate(lower):
        G[i, : i + 1] = G[: i + 1, i] = row
    g = [0.516331117, -0.0347716091, -2.44411637, 0.249915611, -0.0236700375, -2.46724553]
    return ContactProblem.from_delassus(G, g, [0.9, 0.9])


def rolling_balls(push: float, time_step: float = 1e-3) -> ContactProblem:
    """Return X12: 25 balls of 1 kg on a box of 10 kg, pushed at 30° off the y axis from rest.

    μ = 0.4 under the box, 0.8 under the balls; the box on its four corners, no turning of its
    own. Velocities: the box's three, then six of every ball. The rolling test of SimBenchmark.
    """
    balls, radius, n = 25, 0.5, 3 + 6 * 25
    inertia = np.diag([10.0] * 3 + [1.0, 1.0, 1.0, *(0.4 * radius**2 * np.ones(3))] * balls)
    box = np.zeros((3, n))
    box[:, :3] = np.eye(3)
    rows = [box] * 4
    for k in range(balls):
        J = -box
        J[:, 3 + 6 * k : 9 + 6 * k] = _point_rows(np.array([0.0, 0.0, -radius]))
        rows.append(J)
    free = np.zeros(n)
    free[2] = free[5::6] = -GRAVITY * time_step
    free[:2] += push / 10.0 * time_step * np.array([0.5, np.sqrt(0.75)])
    return ContactProblem.from_dynamics(
        inertia=inertia,
        jacobian=np.vstack(rows),
        velocity=np.zeros(n),
        free_motion=free,
        friction=np.array([0.4] * 4 + [0.8] * balls),
        gap=np.zeros(4 + balls),
        bias=np.zeros(3 * (4 + balls)),
        time_step=time_step,
    )
