"""Redundant contact: every step is solved, to the tolerance, and no solution is a status.

benchmarks/redundant_contact.py takes 1500 steps of every motion with 1 to 4 points.
"""

import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from robots import rigid_body

from contact_sim import Anitescu, ContactProblem, Plane, Simulator, load_robot
from contact_sim.solvers._cone_solver import MAX_RELEASES
from contact_sim.step._problem import SolverStatus

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'benchmarks'))
from redundant_contact import MOTIONS, go1_with, run, simulator, worst_error

STEPS = dict.fromkeys(MOTIONS, 500) | {'pushed': 1000}
"""Until all has landed, stopped or settled, and the push has turned round."""
HALF = (0.1, 0.1, 0.05)
NO_EFFORT = np.zeros(0)


@pytest.mark.parametrize('model', ['ncp', 'anitescu'])
@pytest.mark.parametrize('motion', MOTIONS)
@pytest.mark.parametrize('dry', [True, False], ids=['dry', 'smooth'])
@pytest.mark.parametrize('points', [1, 4])
def test_every_step_of_go1_is_solved(points, dry, motion, model):
    done = run(simulator(points, dry, motion, model), motion, STEPS[motion])
    assert done.unsolved == 0
    if model == 'ncp':
        assert done.worst <= 1e-10


@pytest.mark.parametrize('motion', ['standing', 'dropped'])
@pytest.mark.parametrize('dry', [True, False], ids=['dry', 'smooth'])
@pytest.mark.parametrize('points', [3, 4])
def test_of_a_hundred_steps_one_at_most_needs_more_than_its_modes(points, dry, motion):
    """Where friction in the joints and redundant feet change modes together: slow steps."""
    done = run(simulator(points, dry, motion), motion, 1500)
    assert np.mean(done.iterations > MAX_RELEASES) <= 0.01
    assert np.mean(done.iterations) <= 0.5


@pytest.mark.parametrize('motion', ['standing', 'pushed'])
@pytest.mark.parametrize('points', [1, 4])
def test_calves_of_a_millionth_of_their_mass(points, motion):
    robot = go1_with(points, dry=True)
    model = pin.Model(robot.pinocchio_model)
    for k, name in enumerate(model.names):
        if 'calf' in name:
            old = model.inertias[k]
            model.inertias[k] = pin.Inertia(1e-6 * old.mass, old.lever, 1e-6 * old.inertia)
    sim = Simulator(replace(robot, pinocchio_model=model), 'ncp', friction=0.8)
    sim.reset(sim.standing_configuration())
    done = run(sim, motion, STEPS[motion])
    assert done.unsolved == 0
    assert done.worst <= 1e-10


def box(contacts):
    """Return a flat box with 4 contacts at its corners, or 8 more along its lower edges."""
    x, y, z = HALF
    places = [(a * x, b * y) for a in (-1, 1) for b in (-1, 1)]
    if contacts == 12:
        places += [(a * x, 0.3 * b * y) for a in (-1, 1) for b in (-1, 1)]
        places += [(0.3 * a * x, b * y) for a in (-1, 1) for b in (-1, 1)]
    inertia = np.diag([0.01, 0.012, 0.015])
    return rigid_body('box', 1.0, inertia, [([*place, -z], 0.0) for place in places])


def start(motion):
    """Return configuration and velocity at the start of a motion of the box."""
    q, v = np.array([0.0, 0.0, HALF[2], 0.0, 0.0, 0.0, 1.0]), np.zeros(6)
    if motion == 'sliding':
        v[:2], v[5] = (1.0, 0.4), 1.0
    elif motion == 'tilted':
        q[2] = 0.12
        q[3:] = pin.Quaternion(pin.rpy.rpyToMatrix(0.2, 0.3, 0.1)).coeffs()
    elif motion == 'thrown':
        q[2] = 0.1
        v[:] = 2.0, 1.0, -1.0, 3.0, -2.0, 4.0
    return q, v


@pytest.mark.parametrize('friction', [0.0, 0.1, 0.15, 0.8, 2.0, 10.0, 100.0])
@pytest.mark.parametrize('contacts', [4, 12])
def test_a_box_with_any_friction_step_and_gravity(contacts, friction):
    robot, unsolved, tolerance = box(contacts), 0, 1.1e-10 * max(1.0, friction)
    steps, gravities = (1e-5, 1e-3, 5e-3, 2e-2), (0.0, 9.81, 100.0, 1000.0)
    motions = ('rest', 'sliding', 'tilted', 'thrown')
    for h, g, motion in itertools.product(steps, gravities, motions):
        sim = Simulator(robot, 'ncp', friction=friction, time_step=h, gravity=g)
        sim.reset(*start(motion))
        for _ in range(60):
            report = sim.step(NO_EFFORT)
            if report.solver.converged:
                assert worst_error(report, tolerance) == tolerance
            else:
                unsolved += 1
    assert unsolved == 0


def test_a_problem_without_a_solution_says_so():
    """Two opposite contacts on one degree of freedom that both have to open."""
    J = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, -1.0]])
    G = J.T @ J + np.diag([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    problem = ContactProblem.from_delassus(G, [0.0, 0.0, -0.1, 0.0, 0.0, -0.1], [0.5, 0.5])
    solution = Anitescu().solve(problem)
    assert solution.solver.status is SolverStatus.INCONSISTENT
    assert not solution.solver.converged


@pytest.mark.parametrize('model', ['anitescu', 'ncp'])
def test_a_guess_that_fits_to_nothing_is_no_contradiction(model):
    """A cart rests at a wall that has just stopped it: g is 0, the last impulse is not."""
    sim = Simulator(load_robot('cart_and_wall'), model, Plane((1.0, 0.0, 0.0)), time_step=0.1)
    sim.reset([0.05], [-1.0])
    for _ in range(4):
        assert sim.step([0.0]).solver.status is SolverStatus.CONVERGED
    assert abs(sim.v[0]) < 1e-12
