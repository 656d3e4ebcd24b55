"""Newton on modes: what a step does to redundant impulses, and what of its equations is left."""

import numpy as np
import pytest
from interpreted import interpreted

from contact_sim.solvers._cone_methods import (
    MIN_SLACK_SHARE,
    active_set_residual,
    fill_newton_system,
    guess_active_set,
    newton_step,
)
from contact_sim.solvers._cone_problem import Rows, cone_work, fill_rho

MU = 0.5
VELOCITY = np.array([1e-3, -2e-3, 3e-3])


def two_contacts_on_a_particle():
    """Return two contacts at one place of a unit mass: only the sum of their impulses acts."""
    G = np.tile(np.eye(3), (2, 2))
    return Rows(G, np.tile(VELOCITY, 2), np.array([MU, MU]), np.zeros(0), np.zeros(0))


@interpreted()
def changes(room, careful):
    """Return the changes of two impulses (2, 3) where the first has a share `room` of the other's.

    Both press with 1 N s; g makes w = VELOCITY.
    """
    rows, work = two_contacts_on_a_particle(), cone_work(6)
    impulse = np.array([MU * (1.0 - room), 0.0, 1.0, 0.0, 0.0, 1.0])
    moved = impulse.copy()
    share, m = newton_step(rows, moved, np.tile(VELOCITY, 2), work, 0.0, True, careful)
    assert share == 1.0
    assert m == (5 if room == 0.0 else 6)
    return (moved - impulse).reshape(2, 3)


@pytest.mark.parametrize('room', [1.0, 0.5, 0.1, 0.03])
def test_redundant_impulses_change_with_the_square_of_their_room(room):
    """Least Σ |Δλ_i|² / room_i² with Δλ_1 + Δλ_2 = −w: Δλ_i ∝ room_i²."""
    first, second = changes(room, True)
    assert np.allclose(first + second, -VELOCITY, rtol=1e-4)
    assert np.allclose(first, room**2 * second, rtol=1e-4)


def test_the_weight_of_a_contact_at_the_edge_is_bounded():
    first, second = changes(1e-4, True)
    assert np.allclose(first, MIN_SLACK_SHARE**2 * second, rtol=1e-2)


def test_where_modes_are_known_redundant_impulses_change_alike():
    first, second = changes(0.1, False)
    assert np.allclose(first, second, rtol=1e-4)


def test_a_redundant_contact_that_slips_neither_turns_nor_gives_way():
    """Its equations follow from those of the other: without a weight θ is rounding over zero."""
    first, second = changes(0.0, True)
    assert np.allclose(second, -VELOCITY, rtol=1e-3)
    assert np.linalg.norm(first) <= 1e-3 * np.linalg.norm(VELOCITY)


@pytest.mark.parametrize('associated', [0.0, 1.0])
@interpreted()
def test_the_rest_of_the_equations_is_that_of_the_system(associated):
    # one contact slips, one sticks, one is open, one scalar row is inside and one at its bound
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((11, 11))
        bounds = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
        rows = Rows(A @ A.T, rng.standard_normal(11), np.array([0.3, 0.8, 0.5]), *bounds)
        impulse = np.zeros(11)
        impulse[:6] = 0.3, 0.1, np.hypot(0.3, 0.1) / 0.3, 0.05, 0.02, 0.9
        impulse[9:] = 0.2, 1.0
        work, w = cone_work(11), rows.delassus @ impulse + rows.g
        fill_rho(rows, work.rho)
        m, _ = guess_active_set(rows, impulse, work)
        assert m == 6
        fill_newton_system(rows, impulse, w, work, m, associated)
        expected = np.abs(work.step[:m] * work.rho[work.row[:m]]).max()
        rest = active_set_residual(rows, impulse, w, work, m, associated)
        assert np.isclose(rest, expected, rtol=1e-12)
