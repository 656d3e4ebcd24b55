"""lcp: complementary pivoting, the textbook steps, and the anisotropy of flat-sided cones."""

import numpy as np
import pytest
from interpreted import interpreted
from problems import random_problem
from robots import cube, point_mass, pose, stand

from contact_sim import InvalidInput, Lcp, Simulator, load_robot
from contact_sim.solvers._complementarity import RAY, SOLVED, lemke

NO_EFFORT = np.zeros(0)
GRAVITY = 9.81


def solve(M, q):
    z = np.empty(len(q))
    with interpreted():
        status, _ = lemke(np.array(M, dtype=float), np.array(q, dtype=float), z, 1000)
    return status, z


@pytest.mark.parametrize('seed', range(200))
def test_lemke_solves_positive_definite_problems(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 8))
    M, q = A @ A.T + 1e-3 * np.eye(8), rng.standard_normal(8)
    status, z = solve(M, q)
    w = M @ z + q
    assert status == SOLVED
    assert z.min() >= 0.0
    assert w.min() >= -1e-9
    assert np.abs(z * w).max() <= 1e-9


def test_lemke_of_a_two_by_two_done_by_hand():
    # w1 = 2 z1 + z2 − 5, w2 = z1 + 2 z2 − 6: z = (4/3, 7/3)
    assert solve([[2, 1], [1, 2]], [-5, -6])[1] == pytest.approx([4 / 3, 7 / 3], abs=1e-12)


def test_lemke_ends_on_a_ray_where_nothing_solves():
    # w = −z − 1 is negative for every z ≥ 0
    assert solve([[-1.0]], [-1.0])[0] == RAY


@pytest.mark.parametrize('sides', [4, 8, 16])
@pytest.mark.parametrize('contacts', [1, 2, 4])
@pytest.mark.parametrize('seed', range(20))
def test_random_problems_obey_signorini_and_the_pyramid(seed, contacts, sides):
    # T19: friction in the pyramid, and on it where the contact slides
    problem = random_problem(seed + 1000 * contacts, contacts)
    solution = Lcp(sides=sides).solve(problem)
    assert solution.solver.converged
    force = solution.impulse.reshape(-1, 3)
    w = (problem.delassus @ solution.impulse + problem.g).reshape(-1, 3)
    assert w[:, 2].min() >= -1e-9
    assert np.abs(force[:, 2] * w[:, 2]).max() <= 1e-9
    tangential = np.linalg.norm(force[:, :2], axis=1)
    assert (tangential - problem.friction * force[:, 2]).max() <= 1e-9
    sliding = np.linalg.norm(w[:, :2], axis=1) > 1e-6
    inner = np.cos(np.pi / sides) * problem.friction * force[:, 2]
    assert np.all(tangential[sliding] >= inner[sliding] - 1e-9)


@pytest.mark.parametrize(
    ('parameters', 'degrees'),
    [({'sides': 4}, 45.0), ({'sides': 8}, 33.3215), ({'friction_law': 'box'}, 27.197)],
)
def test_pushed_point_snaps_to_an_edge(parameters, degrees):
    # X11a: 38.66° would be right
    sim = Simulator(point_mass(0.2), Lcp(**parameters), friction=0.3, time_step=0.01)
    sim.reset(np.zeros(3))
    for _ in range(50):
        sim.step(NO_EFFORT, {'point': [-1.0, 0.8, 0.0, 0.0, 0.0, 0.0]})
    assert np.degrees(np.arctan2(sim.q[1], -sim.q[0])) == pytest.approx(degrees, abs=1e-3)
    assert sim.q[2] == pytest.approx(0.0, abs=1e-12)


def test_picks_a_vertex_of_the_redundant_stance():
    # theory 2.9: a box at rest stands on two diagonal corners
    sim = Simulator(cube(), 'lcp')
    sim.reset(pose(z=0.1))
    for _ in range(5):
        report = sim.step(NO_EFFORT)
    assert sorted(report.contacts.normal_force) == pytest.approx([0, 0, 4.905, 4.905], abs=1e-9)


@pytest.mark.parametrize('name', ['go1', 'anymal_b', 'solo8'])
def test_robots_stand(name):
    robot = load_robot(name)
    reports = stand(Simulator(robot, 'lcp'), 800)
    assert all(report.solver.converged for report in reports)
    assert reports[-1].residuals.slip <= 1e-9
    assert reports[-1].residuals.penetration <= 1e-6
    weight = robot.total_mass * GRAVITY
    assert reports[-1].contacts.force[:, 2].sum() == pytest.approx(weight, rel=0.02)


@pytest.mark.parametrize(
    ('parameter', 'value'),
    [('sides', 3), ('sides', 5), ('sides', 65), ('friction_law', 'disc'), ('max_pivots', 0)],
)
def test_bad_parameters_name_themselves(parameter, value):
    with pytest.raises(InvalidInput, match=f'LcpParameters.{parameter}'):
        Lcp(**{parameter: value})


def test_an_open_foot_is_not_part_of_the_problem():
    """Three feet of go1, whose joints have dry friction, slide: the fourth has no say."""
    sim = Simulator(load_robot('go1'), 'lcp')
    v = np.zeros(sim.robot.nv)
    v[:2] = 0.6, 0.3
    sim.reset(v=v)
    reports = stand(sim, 60)
    assert {report.problem.n_contacts for report in reports} >= {3, 4}
    assert max(report.solver.residual for report in reports) <= 1e-12
