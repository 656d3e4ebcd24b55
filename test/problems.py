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

    Masses are 1e-3·ratio^(i/(boxes − 1)) kg from the bottom up; physics.md X8.
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
