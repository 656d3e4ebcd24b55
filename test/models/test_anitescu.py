"""The convex relaxation: its optimum, where it is exact, and its known artefacts."""

from itertools import pairwise

import numpy as np
import pytest
from problems import random_problem
from robots import point_mass

from contact_sim import Anitescu, ContactProblem, InvalidInput, Ncp, Simulator

GRAVITY = 9.81
SEEDS = range(40)
NO_EFFORT = np.zeros(0)


def next_velocity(problem, impulse):
    return problem.delassus @ impulse + problem.g


@pytest.mark.parametrize('contacts', [1, 3])
@pytest.mark.parametrize('seed', SEEDS)
def test_circular_cone_meets_the_optimality_conditions(seed, contacts):
    problem = random_problem(seed + 100 * contacts, contacts)
    solution = Anitescu().solve(problem)
    force, w = (
        x.reshape(-1, 3) for x in (solution.impulse, next_velocity(problem, solution.impulse))
    )
    mu = problem.friction
    assert solution.solver.converged
    assert (np.hypot(force[:, 0], force[:, 1]) - mu * force[:, 2]).max() <= 1e-9
    assert (mu * np.hypot(w[:, 0], w[:, 1]) - w[:, 2]).max() <= 1e-7
    assert abs(np.sum(force * w)) <= 1e-7


@pytest.mark.parametrize('seed', SEEDS[:20])
def test_more_sides_come_closer_to_the_circle(seed):
    problem = random_problem(seed, 3)

    def cost(sides):
        impulse = Anitescu(sides=sides).solve(problem).impulse
        return 0.5 * impulse @ problem.delassus @ impulse + problem.g @ impulse

    costs = [cost(sides) for sides in (4, 8, 16, 32, 0)]
    assert all(a >= b - 1e-9 for a, b in pairwise(costs))
    assert costs[3] - costs[4] <= 0.02 * abs(costs[4]) + 1e-12


@pytest.mark.parametrize('friction', [1e2, 1e4, 1e6])
def test_steep_pyramids_say_when_they_lose_their_digits(friction):
    # held by this much friction nothing moves; the edges n + μ d_j are nearly parallel
    model, converged = Anitescu(sides=8), 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        G, impulse = random_problem(seed).delassus, rng.standard_normal(6)
        impulse[2::3] = 0.5 + np.abs(impulse[2::3])
        held = ContactProblem.from_delassus(G, -G @ impulse, [friction, friction])
        solution = model.solve(held)
        converged += solution.solver.converged
        if solution.solver.converged:
            speed = np.abs(next_velocity(held, solution.impulse)).max()
            assert speed <= 1e-7 * np.abs(held.g).max(), seed
    assert converged >= (20 if friction < 1e3 else 0)


def test_approaching_tangentially_is_enough_for_an_impulse():
    # separating at u_n > 0 but slower than μ |u_t|: Coulomb gives nothing, the relaxation pushes
    problem = ContactProblem.from_delassus(np.eye(3), [1.0, 0.0, 0.1], [0.5])
    assert np.all(Ncp().solve(problem).impulse == 0.0)
    assert Anitescu().solve(problem).impulse[2] > 0.0


def test_pushed_point_goes_the_right_way_and_lifts():
    # X11a: the direction of the exact model, z = 0.00518 m
    sim = Simulator(point_mass(0.2), Anitescu(), friction=0.3, time_step=0.01)
    sim.reset(np.zeros(3))
    for _ in range(50):
        sim.step(NO_EFFORT, {'point': [-1.0, 0.8, 0.0, 0.0, 0.0, 0.0]})
    assert np.degrees(np.arctan2(sim.q[1], -sim.q[0])) == pytest.approx(38.6598, abs=1e-3)
    assert sim.q[2] == pytest.approx(0.00518, abs=1e-5)


@pytest.mark.parametrize(('model', 'height'), [('anitescu', 6e-4), ('ncp', 0.0)])
def test_driven_point_hovers(model, height):
    # X11b: driven at 0.2 m/s with μ = 0.3, h = 0.01: hovers at h μ |u_t|
    sim = Simulator(point_mass(0.2), model, friction=0.3, time_step=0.01)
    q = np.zeros(3)
    for _ in range(60):
        sim.reset(q, np.array([0.2, 0.0, sim.v[2]]))
        force = [5.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        speed = sim.step(NO_EFFORT, {'point': force}).record.v_next[0]
        # correct the drive so that the end-of-step speed is 0.2 m/s
        force[0] -= (speed - 0.2) * 0.2 / 0.01
        sim.reset(q, np.array([0.2, 0.0, 0.0]))
        for _ in range(20):
            report = sim.step(NO_EFFORT, {'point': force})
            force[0] -= (report.record.v_next[0] - 0.2) * 0.2 / 0.01
            if abs(report.record.v_next[0] - 0.2) < 1e-12:
                break
            sim.reset(q, np.array([0.2, 0.0, 0.0]))
        q = sim.q
    assert q[2] == pytest.approx(height, abs=1e-6)


@pytest.mark.parametrize(('model', 'speed'), [(Anitescu(), 0.33333), (Ncp(), 1.0285)])
def test_bead_in_a_slot(model, speed):
    # X11c: 0.2 kg, slot ±1 mm, μ = 0.3, h = 0.01, pulled with 1 N for 50 steps
    mass, h, half = 0.2, 0.01, 1e-3
    up, down = np.eye(3), np.diag([1.0, -1.0, -1.0])  # rows t1, t2, n of floor and ceiling
    position, velocity = np.zeros(3), np.zeros(3)
    for _ in range(50):
        gap = np.array([half + position[2], half - position[2]])
        bias = np.array([0.0, 0.0, gap[0] / h, 0.0, 0.0, gap[1] / h])
        free = velocity + h * np.array([1.0 / mass, 0.0, -GRAVITY])
        problem = ContactProblem.from_dynamics(
            mass * np.eye(3), np.vstack([up, down]), velocity, free, [0.3, 0.3], gap, bias, h
        )
        impulse = model.solve(problem).impulse
        velocity = free + problem.jacobian.T @ impulse / mass
        position = position + h * velocity
    assert velocity[0] == pytest.approx(speed, abs=5e-5)


@pytest.mark.parametrize('sides', [2, 3, -4, 65, 4.5])
def test_bad_numbers_of_sides_are_refused(sides):
    with pytest.raises(InvalidInput, match='sides'):
        Anitescu(sides=sides)
