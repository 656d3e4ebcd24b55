"""Bodies of the published cases: two balls that collide, cubes as boxes, an ellipsoid.

[Le Lidec et al. 2024] End-to-end and highly-efficient differentiable simulation for robotics, with
the tests and examples of its public code; docs/derivatives.md has a table of the cases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from step_differences import compare

import contact_sim
from contact_sim.derivatives._fields import OPEN, SLIDE, STICK

LAW = contact_sim.Ncp(tolerance=1e-13)
H, G = 1e-3, 9.81
ACCURACY = 1e-7
"""Largest error beside the largest derivative to the same input."""
NOTHING = np.zeros(0)


def assert_right(sim: contact_sim.Simulator, derivatives: Any, mostly: float = 0.6) -> None:
    """Assert that derivatives are those of the differences, at least in a share of them."""
    error, share = compare(sim, NOTHING, derivatives, accuracy=ACCURACY)
    assert error < ACCURACY
    assert share > mostly


def carrying(derivatives: Any) -> list[int]:
    """Return the modes of the contacts that carry."""
    return [mode for mode in derivatives.modes.tolist() if mode != OPEN]


# --- Two balls that collide: v⁺ in closed form, differentiated by complex steps

RADIUS = 0.1, 0.15
MASS = 1.0, 3.0
TINY = 1e-30
"""Complex step: the derivative of what is analytic, without a difference."""


def turned(theta: Any, x: Any) -> Any:
    """Return exp(θ) x by its series."""
    term, total = x, x
    for k in range(1, 25):
        term = np.cross(theta, term) / k
        total = total + term
    return total


def after_collision(
    places: Any, change: Any, v: Any, friction: float, restitution: float, stick: bool
) -> Any:
    """Return v⁺ of two balls without gravity, q changed by `change`, in the axes of their end.

    With the unit vector n from the second to the first, arms a = r + φ/2 up to the middle of the
    gap and 1/m = 1/m₁ + 1/m₂, 1/m_t = 1/m + a₁²/I₁ + a₂²/I₂,

        λ_n = −m (u_n + φ/h), or −m (1 + e) u_n,    λ_t = −m_t u_t, or −μ λ_n u_t/|u_t|
    """
    d, v = np.reshape(change, (2, 6)), np.reshape(v, (2, 6))
    # tangents of q turn the axes in which v is given, by δθ to first order
    linear, angular = (v[:, k : k + 3] + np.cross(d[:, 3:], v[:, k : k + 3]) for k in (0, 3))
    away = places[0] + d[0, :3] - places[1] - d[1, :3]
    distance = np.sqrt(away @ away)
    n, gap = away / distance, distance - sum(RADIUS)
    arms = [(RADIUS[0] + 0.5 * gap) * -n, (RADIUS[1] + 0.5 * gap) * n]
    points = [linear[k] + np.cross(angular[k], arms[k]) for k in range(2)]
    u = points[0] - points[1]
    inertia = [0.4 * MASS[k] * RADIUS[k] ** 2 for k in range(2)]
    along = sum(1.0 / m for m in MASS)
    across = along + sum(arms[k] @ arms[k] / inertia[k] for k in range(2))
    normal = -((1.0 + restitution) * (n @ u) if restitution else n @ u + gap / H) / along
    slip = u - (n @ u) * n
    size = np.sqrt(slip @ slip)
    impulse = normal * n + (-slip / across if stick else -friction * normal * slip / size)
    after = []
    for k, sign in ((0, 1.0), (1, -1.0)):
        v_next = linear[k] + sign * impulse / MASS[k]
        w_next = angular[k] + sign * np.cross(arms[k], impulse) / inertia[k]
        own = [x - np.cross(d[k, 3:], x) for x in (v_next, w_next)]
        after += [turned(-H * own[1], own[0]), own[1]]
    return np.concatenate(after)


@pytest.mark.parametrize('restitution', [0.0, 0.6])
@pytest.mark.parametrize(
    ('side', 'friction', 'mode'), [(0.0, 0.5, STICK), (0.3, 0.9, STICK), (0.3, 0.05, SLIDE)],
    ids=['head-on', 'oblique, sticks', 'oblique, slides'],
)  # fmt: skip
def test_two_balls_that_collide(
    side: float, friction: float, mode: int, restitution: float
) -> None:
    """All of ∂v⁺/∂q and ∂v⁺/∂v; the gap closes within the step."""
    balls = {name: contact_sim.loose_ball(RADIUS[k], MASS[k]) for k, name in enumerate(('a', 'b'))}
    sim = contact_sim.Simulator(
        contact_sim.joined(balls, against_each_other=True), contact_model=LAW, time_step=H,
        gravity=0.0, friction=friction, restitution=restitution,
    )  # fmt: skip
    n = np.array([-np.sqrt(1.0 - side**2), side, 0.0])
    places = np.array([(sum(RADIUS) + 1e-3) * n, np.zeros(3)]) + [0.0, 0.0, 1.0]
    v = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    if side:
        v[[2, 3, 4, 9, 11]] = 0.2, 1.0, -2.0, 0.5, 3.0
    turn = [0.0, 0.0, 0.0, 1.0]
    sim.reset([*places[0], *turn, *places[1], *turn], v)
    derivatives = sim.derivatives(NOTHING)
    assert carrying(derivatives) == [mode]
    rest = friction, restitution, mode == STICK
    unit, still = 1j * TINY * np.eye(12), np.zeros(12)
    expected = after_collision(places, still, v, *rest)
    np.testing.assert_allclose(derivatives.step.v, expected, atol=1e-12)
    for own, columns in (
        (derivatives.velocity.q, [after_collision(places, e, v + 0j, *rest) for e in unit]),
        (derivatives.velocity.v, [after_collision(places, still, v + e, *rest) for e in unit]),
    ):
        closed = np.transpose(columns).imag / TINY
        np.testing.assert_allclose(own, closed, atol=1e-9 * np.abs(closed).max())
    if side:
        assert_right(sim, derivatives)


# --- Cubes as boxes

CUBE = contact_sim.loose_box((1.0, 1.0, 1.0), 1.0)
DEPTH = 1e-4
"""At gaps of 0 a step has a kink: boxes are a little deep [m]."""


@pytest.mark.parametrize(('speed', 'friction', 'mode'), [(0.0, 0.9, STICK), (1.0, 0.2, SLIDE)])
def test_a_box_on_the_plane(speed: float, friction: float, mode: int) -> None:
    """Its forces are not unique, its motion is."""
    sim = contact_sim.Simulator(CUBE, contact_model=LAW, friction=friction, time_step=H)
    sim.reset([0.0, 0.0, 0.5 - DEPTH, 0.0, 0.0, 0.0, 1.0], [speed, 0.0, 0.0, 0.0, 0.0, 0.0])
    derivatives = sim.derivatives(NOTHING)
    assert carrying(derivatives) == [mode] * 4
    assert derivatives.redundant
    if mode == STICK:
        np.testing.assert_allclose(derivatives.velocity.v, 0.0, atol=1e-12)
    assert_right(sim, derivatives, 0.4)


@pytest.mark.parametrize(('speed', 'friction', 'mode'), [(0.0, 0.9, STICK), (1.0, 0.2, SLIDE)])
def test_a_box_on_a_box(speed: float, friction: float, mode: int) -> None:
    """The lower one stands, the upper one stands or slides on it."""
    boxes = {
        'low': contact_sim.loose_box((1.0, 1.0, 1.0), 2.0),
        'top': contact_sim.loose_box((0.5, 0.4, 0.5), 1.0),
    }
    sim = contact_sim.Simulator(
        contact_sim.joined(boxes, against_each_other=True), contact_model=LAW,
        friction=friction, time_step=H,
    )  # fmt: skip
    turn = [0.0, 0.0, 0.0, 1.0]
    q = [0.0, 0.0, 0.5 - DEPTH, *turn, 0.05, -0.03, 1.25 - 2.5 * DEPTH, *turn]
    v = np.zeros(12)
    v[6] = speed
    sim.reset(q, v)
    derivatives = sim.derivatives(NOTHING)
    assert sorted(carrying(derivatives)) == sorted([STICK] * 4 + [mode] * 4)
    assert derivatives.redundant
    assert_right(sim, derivatives, 0.4)


# --- An ellipsoid

AXES = 0.3, 0.2, 0.1


@pytest.mark.parametrize(('slip', 'friction', 'mode'), [(0.0, 0.9, STICK), (1.0, 0.2, SLIDE)])
def test_an_ellipsoid_on_the_plane(slip: float, friction: float, mode: int) -> None:
    """It rolls or slides on a point that travels over its curved surface."""
    body = contact_sim.loose_ellipsoid(AXES, 2.0)
    sim = contact_sim.Simulator(body, contact_model=LAW, friction=friction, time_step=H)
    R = pin.rpy.rpyToMatrix(0.4, -0.3, 0.5)
    n = R.T @ [0.0, 0.0, 1.0]
    reach = np.linalg.norm(np.array(AXES) * n)
    at = -(np.array(AXES) ** 2) * n / reach
    w = np.array([1.0, -2.0, 0.5])
    v = np.concatenate([np.cross(at, w) + slip * R.T @ [0.8, 0.6, 0.0], w])
    sim.reset([0.0, 0.0, reach - DEPTH, *pin.Quaternion(R).coeffs()], v)
    derivatives = sim.derivatives(NOTHING)
    assert carrying(derivatives) == [mode]
    assert not derivatives.redundant
    assert_right(sim, derivatives)
