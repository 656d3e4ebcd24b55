"""The texts' own algorithms beside the examples: on more than the numbers of the texts.

R1 quadratically constrained program   R2 linear complementarity   C8 resting contact
T18 friction of a brick                T22 relaxed complementarity T26 two blocks
"""

import numpy as np
import pytest
from textbook import (
    box_on_corners,
    cart_and_wall,
    sliding_brick,
    todorov_cart,
    two_blocks,
)
from textbook.complementarity import solutions

from contact_sim import InvalidInput

SEEDS = range(20)


@pytest.mark.parametrize('seed', SEEDS)
def test_all_solutions_are_found(seed):
    """Of a symmetric positive definite A there is one; it satisfies all three conditions."""
    rng = np.random.default_rng(seed)
    L, b = rng.standard_normal((4, 4)), rng.standard_normal(4)
    A = L @ L.T + 0.1 * np.eye(4)
    (z,) = solutions(A, b)
    w = A @ z + b
    assert min(z.min(), w.min()) >= -1e-10
    assert z @ w == pytest.approx(0.0, abs=1e-9)


def test_none_and_several_are_answers():
    assert solutions([[-0.8]], [-1.0]) == []
    assert sorted(float(z[0]) for z in solutions([[-0.5]], [1.0])) == [0.0, 2.0]
    assert solutions(np.zeros((0, 0)), []) == [pytest.approx([])]


@pytest.mark.parametrize(('A', 'b'), [([[1.0]], [1.0, 2.0]), (np.eye(13), np.ones(13))])
def test_what_it_cannot_try_is_refused(A, b):
    with pytest.raises(InvalidInput, match='n <= 12'):
        solutions(A, b)


def test_r1_r2_a_step_of_the_cart_is_one_point():
    # R1, R2: (0.05, −1) → (0, 5), (0.3, −1) → (0.2, 0), (0, 2) → (0.2, 0), and at random
    rng = np.random.default_rng(0)
    sim = cart_and_wall.simulator('ncp')
    cases = [(*case, 0.0) for case in cart_and_wall.CASES]
    cases += [(q, v, u) for q, v, u in rng.uniform([0, -3, -5], [0.3, 1, 5], (8, 3)).tolist()]
    for q, v, push in cases:
        expected = cart_and_wall.lcp(q, v, push)
        assert cart_and_wall.qcqp(q, v, push) == pytest.approx(np.array([expected] * 2), abs=1e-6)
        sim.reset([q], [v])
        force = sim.step([push]).contacts.force[0, 0]
        assert (sim.q[0], force) == pytest.approx(expected, abs=1e-9)
    found = [cart_and_wall.lcp(*case) for case in cases[:3]]
    assert np.array(found) == pytest.approx(np.array([[0, 5], [0.2, 0], [0.2, 0]]), abs=1e-12)


@pytest.mark.parametrize('seed', SEEDS)
def test_t18_the_brick_obeys_its_scalar_problem(seed):
    v, push = np.random.default_rng(seed).uniform([-1.0, -10.0], [1.0, 10.0])
    sim = sliding_brick.simulator()
    sim.reset(v=[v, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert sliding_brick.step(sim, push) == pytest.approx(sliding_brick.lcp(v, push), abs=1e-9)


@pytest.mark.parametrize('seed', SEEDS)
def test_t22_the_relaxation_is_that_of_the_model(seed):
    q, v = np.random.default_rng(seed).uniform([-0.05, -1.0], [0.2, 0.5])
    found = todorov_cart.step(todorov_cart.simulator(), q, v)
    assert found == pytest.approx(todorov_cart.relaxation(q, v), abs=1e-9)


def test_t26_the_blocks_go_on_alike():
    assert two_blocks.simulated('ncp', 6) == pytest.approx(two_blocks.implicit_euler(6), abs=1e-9)


@pytest.mark.parametrize('model', ['hybrid', 'ncp'])
@pytest.mark.parametrize('degrees', [0.0, 20.0])
@pytest.mark.parametrize('torque', [-7.0, -2.0, 4.0, 5.5])
def test_c8_accelerations_and_velocities_agree(model, degrees, torque):
    """Resting forces from accelerations are those of a step, also where a corner is lifted."""
    wrench = box_on_corners.weight(degrees) + [0.0, 0.0, torque]
    force, rate = box_on_corners.resting_forces(wrench)
    assert force @ rate == pytest.approx(0.0, abs=1e-12)
    assert min(force.min(), rate.min()) >= -1e-12
    ours = box_on_corners.simulated(model, degrees, torque)
    assert ours == pytest.approx(force, rel=2e-6, abs=1e-8)
