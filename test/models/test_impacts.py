"""Impact maps as functions of values (theory 2.8)."""

from unittest.mock import patch

import cone_entry
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim.contact_models.hybrid import _impacts
from contact_sim.contact_models.hybrid._impacts import IMPACT_LAWS
from contact_sim.step._problem import STATUSES, ContactSolution, SolverReport


def solve_cones(rows, impulse, work, tolerance, limits, associated):
    return cone_entry.solve_cones(rows, impulse, tolerance, limits, associated)


def impact_impulse(law, G, u, mu, e):
    """Return the impulses of an impact, with the energy guard."""
    impulse, arrays = np.zeros(len(u)), (np.asarray(a, dtype=float) for a in (G, u, mu, e))
    code, *report = _impacts.solve_impact(IMPACT_LAWS.index(law), True, *arrays, impulse)
    return ContactSolution(impulse, SolverReport(STATUSES[code], *report))


@pytest.fixture(scope='module', autouse=True)
def _compiled_cones(interpreted_kernels):
    """The maps as Python, around the cone solver that ncp compiles; hybrid compiles both."""
    with patch.object(_impacts, 'solve_cones', solve_cones):
        yield


@pytest.mark.parametrize(
    ('e', 'expected'), [(1.0, (-1 / 3, 2 / 3, 2 / 3)), (0.5, (0.0, 0.5, 0.5))]
)
@pytest.mark.parametrize('law', ['newton', 'poisson', 'moreau', 'frictionless'])
def test_simultaneous_laws_on_the_cradle(law, e, expected):
    # 2.8, X14: three balls in a row, v = (1, 0, 0); only the sequence of impacts gives (0, 0, 1)
    J = np.zeros((6, 3))
    J[2], J[5] = [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]
    across = np.diag([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])  # no coupling along the ground
    v = np.array([1.0, 0.0, 0.0])
    solution = impact_impulse(law, J @ J.T + across, J @ v, [0.0, 0.0], [e, e])
    assert v + J.T @ solution.impulse == pytest.approx(expected, abs=1e-9)
    assert solution.solver.converged


def random_impact(seed, contacts):
    rng = np.random.default_rng(seed)
    n = 3 * contacts
    A = rng.standard_normal((n, n + 2))
    u = rng.standard_normal(n)
    u[2::3] = -np.abs(u[2::3])
    return A @ A.T, u, rng.uniform(0.0, 1.0, contacts), rng.uniform(0.0, 1.0, contacts)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(IMPACT_LAWS))
def test_no_impact_creates_energy_or_approach(seed, contacts, law):
    G, u, mu, e = random_impact(seed, contacts)
    solution = impact_impulse(law, G, u, mu, e)
    if law == 'infinite_friction' and not solution.solver.converged:
        return  # letting contacts go one by one may run in circles; the status says so
    impulse, after = solution.impulse, u + G @ solution.impulse
    work = 0.5 * impulse @ (u + after)
    size = np.abs(impulse) @ np.abs(u)
    if law != 'poisson':  # two phases of friction have no such bound
        assert work <= 1e-8 * size
    assert after[2::3].min() >= -1e-7 * np.abs(u).max()
    assert impulse[2::3].min() >= -1e-9 * np.abs(impulse).max()
    if law not in ('frictionless', 'infinite_friction'):
        tangential = np.hypot(impulse[::3], impulse[1::3])
        assert np.all(tangential <= mu * impulse[2::3] + 1e-9 * np.abs(impulse).max())
    assert solution.solver.converged


def sequence_impulse(law, G, u, mu, e, threshold=1e-3):
    """Return the impulses of a sequence of impacts, with the energy guard, and the outcome."""
    nc, impulse = len(mu), np.zeros(len(u))
    arrays = [np.asarray(a, dtype=float) for a in (G, u, mu, e)]
    outcome = _impacts.sequence_of_impacts(
        IMPACT_LAWS.index(law), True, *arrays, np.full(nc, threshold), np.zeros(nc), impulse
    )
    return impulse, outcome


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(['plastic', 'newton', 'moreau']))
def test_no_sequence_of_impacts_creates_energy_or_approach(seed, contacts, law):
    G, u, mu, e = random_impact(seed, contacts)
    impulse, (code, count, _) = sequence_impulse(law, G, u, mu, e)
    after = u + G @ impulse
    assert 0.5 * impulse @ (u + after) <= 1e-8 * np.abs(impulse) @ np.abs(u)
    assert after[2::3].min() >= -1e-7 * np.abs(u).max()
    assert impulse[2::3].min() >= -1e-9 * np.abs(impulse).max()
    assert STATUSES[code].converged
    assert count >= 1


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_elastic_sequences_without_friction_keep_the_energy(seed, contacts):
    G, u, _, _ = random_impact(seed, contacts)
    impulse, (code, *_) = sequence_impulse(
        'newton', G, u, np.zeros(contacts), np.ones(contacts), 1e-9
    )
    if not STATUSES[code].converged:
        return  # the status says so
    work = 0.5 * impulse @ (2.0 * u + G @ impulse)
    assert work == pytest.approx(0.0, abs=1e-7 * np.abs(impulse) @ np.abs(u))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_a_sequence_does_not_depend_on_the_order_of_contacts(seed, contacts):
    G, u, mu, e = random_impact(seed, contacts)
    order = np.random.default_rng(seed).permutation(contacts)
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    impulse, _ = sequence_impulse('newton', G, u, mu, e)
    other, _ = sequence_impulse('newton', G[np.ix_(rows, rows)], u[rows], mu[order], e[order])
    assert G[rows] @ impulse == pytest.approx(
        G[np.ix_(rows, rows)] @ other, abs=1e-6 * np.abs(u).max()
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_all_laws_but_two_agree_without_restitution(seed, contacts):
    G, u, mu, _ = random_impact(seed, contacts)
    none = np.zeros(contacts)
    plastic = u + G @ impact_impulse('plastic', G, u, mu, none).impulse
    for law in ('newton', 'poisson', 'moreau'):
        after = u + G @ impact_impulse(law, G, u, mu, none).impulse
        assert after == pytest.approx(plastic, abs=1e-8)
