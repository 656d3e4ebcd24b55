"""The event-driven model on curved ground and on several planes, against closed forms."""

import numpy as np
import pinocchio as pin
import pytest
from robots import ball, cube, pose
from scipy.special import ellipk

from contact_sim import Hybrid, Simulator
from contact_sim.collision._terrain import CylinderGround, Planes, SphereGround
from contact_sim.dynamics import mechanical_energy
from contact_sim.terrain import HeightField

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)
BOWL, BALL = 1.0, 0.1
"""Radii of the bowl and of the ball in it [m]."""


def world_velocity(sim):
    """Velocity of the base in world axes."""
    return pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ sim.v[:3]


def in_bowl(ground, friction, angle, h):
    """A ball at rest in a hollow with its centre at the origin, `angle` away from the bottom."""
    sim = Simulator(ball(1.0, BALL), 'hybrid', terrain=ground, friction=friction, time_step=h)
    path = BOWL - BALL
    sim.reset(pose(x=path * np.sin(angle), z=-path * np.cos(angle)))
    return sim


@pytest.mark.parametrize('ground', ['sphere', 'cylinder'])
@pytest.mark.parametrize(('friction', 'inertia'), [(0.0, 0.0), (5.0, 0.4)])
def test_a_ball_swings_in_a_bowl_with_the_period_of_a_pendulum(ground, friction, inertia):
    # (1 + I/m r²) (R − r) θ̈ = −g sin θ: T = 4 √((1 + I/m r²)(R − r)/g) K(sin θ0/2), I = 0 for a
    # ball that slides without friction, 2/5 m r² for one that rolls
    angle, steps = 0.8, 1600
    length = (1.0 + inertia) * (BOWL - BALL)
    period = 4.0 * np.sqrt(length / GRAVITY) * ellipk(np.sin(0.5 * angle) ** 2)
    hollow = {
        'sphere': SphereGround((0.0, 0.0, 0.0), BOWL, hollow=True),
        'cylinder': CylinderGround((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), BOWL, hollow=True),
    }[ground]
    sim = in_bowl(hollow, friction, angle, period / steps)
    start = sim.q[:3].copy()
    impulse = np.zeros(3)
    for k in range(1, steps + 1):
        report = sim.step(NO_EFFORT)
        assert abs(report.contacts.gap[0]) <= 1e-8
        assert report.solver.converged
        impulse += report.contacts.force[0] * sim.time_step
        if k == steps // 2:
            assert sim.q[:3] == pytest.approx([-start[0], 0.0, start[2]], abs=1e-6)
    assert sim.q[:3] == pytest.approx(start, abs=1e-6)
    assert np.abs(sim.v).max() <= 1e-5
    # all forces together, in world axes, carried the weight over a whole period
    assert impulse == pytest.approx([0.0, 0.0, GRAVITY * period], abs=1e-5)


@pytest.mark.parametrize(('friction', 'inertia'), [(0.0, 0.0), (1e6, 0.4)])
def test_a_ball_leaves_a_sphere_where_its_force_ends(friction, inertia):
    # from rest at θ0: g cos θ = v²/(R + r), v² = 2 g (R + r)(cos θ0 − cos θ)/(1 + I/m r²), so it
    # leaves at cos θ = 2 cos θ0/(3 + I/m r²): 2/3 without friction, 10/17 rolling, from the top.
    # Whatever μ, it slips just before: by 1/μ
    angle, path = 0.2, BOWL + BALL
    sim = Simulator(
        ball(1.0, BALL), 'hybrid', friction=friction, time_step=1e-3,
        terrain=SphereGround((0.0, 0.0, 0.0), BOWL),
    )  # fmt: skip
    sim.reset(pose(x=path * np.sin(angle), z=path * np.cos(angle)))
    while sim.step(NO_EFFORT).contacts.normal_force[0] > 0.0:
        assert sim.time < 3.0
    assert sim.time > 0.3
    leaves = 2.0 * np.cos(angle) / (3.0 + inertia)
    speed = np.sqrt(path * GRAVITY * leaves)
    # in flight the horizontal velocity stays what it was where it left: v cos θ
    velocity = world_velocity(sim)
    assert velocity[0] == pytest.approx(speed * leaves, abs=1e-6)


def test_a_ball_in_a_groove_rests_on_both_planes():
    # two planes at 45 degrees: N = m g/(2 cos 45°) each
    sim = Simulator(ball(), 'hybrid', terrain=Planes(), friction=0.0)
    sim.reset(pose(z=0.1 * np.sqrt(2.0)))
    for _ in range(100):
        report = sim.step(NO_EFFORT)
    expected = GRAVITY / np.sqrt(2.0)
    assert report.contacts.normal_force == pytest.approx([expected, expected], abs=1e-8)
    assert np.abs(sim.v).max() <= 1e-10


def test_a_ball_rolls_along_a_groove_until_nothing_slips():
    # it touches r/√2 below its centre: friction F over time gives m (v0 − v) = F, I ω = F r/√2,
    # until v = ω r/√2: v = v0/(1 + 2 I/m r²) = v0/1.8
    sim = Simulator(ball(), 'hybrid', terrain=Planes(), friction=0.2)
    sim.reset(pose(z=0.1 * np.sqrt(2.0)), np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    for _ in range(400):
        report = sim.step(NO_EFFORT)
    velocity = world_velocity(sim)
    assert velocity == pytest.approx([0.0, 1.0 / 1.8, 0.0], abs=1e-8)
    assert report.contacts.slip_speed.max() <= 1e-8


@pytest.mark.parametrize('seed', range(3))
def test_a_cube_tumbles_in_a_bowl_without_gaining_energy(seed):
    rng = np.random.default_rng(seed)
    sim = Simulator(
        cube(), Hybrid(), terrain=SphereGround((0.0, 0.0, 0.8), 0.8, hollow=True), friction=0.4,
        restitution=0.3,
    )  # fmt: skip
    q = pose(z=0.4)
    q[3:] = pin.Quaternion(pin.exp3(0.8 * rng.standard_normal(3))).coeffs()
    sim.reset(q, rng.standard_normal(6) * [1, 1, 1, 4, 4, 4])
    model = sim.robot.pinocchio_model
    energy = mechanical_energy(model, sim.q, sim.v, sim.gravity)
    for _ in range(500):
        report = sim.step(NO_EFFORT)
        before, energy = energy, mechanical_energy(model, sim.q, sim.v, sim.gravity)
        assert energy <= before + 1e-6
        assert report.contacts.gap.min() >= -1e-4


@pytest.mark.parametrize(
    ('grid', 'seed'), [(0.01, 1), (0.01, 6), (0.01, 11), (0.01, 30), (0.02, 6)]
)
def test_a_ball_rolls_over_a_rough_field(grid, seed):
    """Heights of ±0.1 mm: facets trade places as the nearest, and end where others begin."""
    rng = np.random.default_rng(seed)
    n = int(1.2 / grid) + 1
    field = HeightField(rng.uniform(-1e-4, 1e-4, (n, n)), grid, (-0.6, -0.6))
    radius, friction = (0.05, 0.1)[seed % 2], (0.6, 0.3, 0.0)[seed % 3]
    sim = Simulator(
        ball(1.0, radius),
        'hybrid',
        field,
        friction=friction,
        restitution=(0.3, 0.0, 0.8)[seed % 3],
    )
    x, y = rng.uniform(-0.2, 0.2), rng.uniform(-0.2, 0.2)
    height = radius + (0.05 if seed % 4 < 2 else 2e-4)
    v = [rng.uniform(-0.3, 0.3), 0.2, 0.0, *rng.uniform(-5.0, 5.0, 3)]
    sim.reset(pose(x, y, height), v)
    model = sim.robot.pinocchio_model
    energy = mechanical_energy(model, sim.q, sim.v, sim.gravity)
    for _ in range(400):
        report = sim.step(NO_EFFORT)
        assert report.solver.converged
        assert report.contacts.gap.min() >= -5e-7
        before, energy = energy, mechanical_energy(model, sim.q, sim.v, sim.gravity)
        assert energy <= before + 5e-6  # a penetration that is taken out
