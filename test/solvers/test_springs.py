"""Forces of scalar rows in the compliant model: dry friction, limits and bilateral springs."""

import numpy as np
import pytest

from contact_sim import Compliant, ContactProblem
from contact_sim.solvers._cone_problem import Rows
from contact_sim.solvers._springs import (
    ANCHORED,
    DAMPING_RATIO,
    DISSIPATION,
    EXPONENT,
    HUNT_CROSSLEY,
    KELVIN_VOIGT,
    SECANT_STIFFNESS,
    SLIP_SPEED,
    STIFFNESS,
    TANGENTIAL_DAMPING_RATIO,
    TANGENTIAL_STIFFNESS,
    TANH,
    LinearSprings,
    Springs,
    contact_forces,
    interval_forces,
    stiffness_ratio,
)

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
SECANT, RATIO, SLIP, STEP = 2e3, 0.7, 1e-2, 1e-3
LOWER = np.array([-0.3, -0.1, 0.0, -np.inf, -np.inf, 0.0])
UPPER = np.array([0.3, 0.5, np.inf, 0.0, np.inf, np.inf])
GAP = np.array([0.0, 0.0, -2e-3, 1e-3, -1e-3, 5e-2])


def forces(u, implicit):
    material = np.zeros(9)
    material[SECANT_STIFFNESS], material[DAMPING_RATIO] = SECANT, RATIO
    material[SLIP_SPEED] = SLIP
    springs = Springs(KELVIN_VOIGT, TANH, material, STEP, STEP if implicit else 0.0)
    rows = Rows(np.diag(np.arange(1.0, 7.0)), np.zeros(6), np.zeros(0), LOWER, UPPER)
    impulse, slope = np.full(6, np.nan), np.zeros((6, 3))
    interval_forces(rows, u, GAP, springs, impulse, slope)
    return impulse, slope


@pytest.mark.parametrize('implicit', [False, True])
@pytest.mark.parametrize('seed', range(5))
def test_forces_are_their_formulas_and_slopes_their_derivatives(implicit, seed):
    u = 0.02 * np.random.default_rng(seed).standard_normal(6)
    impulse, slope = forces(u, implicit)
    low, high = LOWER[:2], UPPER[:2]
    friction = 0.5 * (low + high) - 0.5 * (high - low) * np.tanh(u[:2] / SLIP)
    assert impulse[:2] == pytest.approx(friction, rel=1e-12)
    damping = 2.0 * RATIO * np.sqrt(SECANT / np.arange(3.0, 7.0))
    error = GAP[2:] + (STEP * u[2:] if implicit else 0.0)
    spring = -STEP * (SECANT * error + damping * u[2:])
    cut = np.clip(spring, LOWER[2:], UPPER[2:])
    assert impulse[2:] == pytest.approx(cut, rel=1e-12, abs=1e-15)
    delta = 1e-7
    change = (forces(u + delta, implicit)[0] - forces(u - delta, implicit)[0]) / (2.0 * delta)
    assert slope[:, 0] == pytest.approx(change, rel=1e-4, abs=1e-6)
    assert not slope[:, 1:].any()


def test_a_limit_out_of_reach_is_free_and_one_that_is_passed_pushes_back():
    impulse, _ = forces(np.zeros(6), implicit=True)
    assert impulse[2] == pytest.approx(STEP * SECANT * 2e-3)
    assert impulse[3] == pytest.approx(-STEP * SECANT * 1e-3)
    assert impulse[4] == pytest.approx(STEP * SECANT * 1e-3)
    assert impulse[5] == 0.0


def test_an_implicit_bilateral_row_equals_its_closed_form():
    G, speed, h = 1.7, 0.4, 1.0
    model = Compliant(stiffness=30.0, normal_law='linear', damping_ratio=RATIO)
    problem = ContactProblem.from_delassus(
        [[G]], [speed], [], lower=[-np.inf], upper=[np.inf]
    )  # h = 1 s
    gain = 30.0 * h + 2.0 * RATIO * np.sqrt(30.0 / G)
    solution = model.solve(problem)
    assert solution.solver.converged
    assert solution.impulse == pytest.approx([-h * gain * speed / (1.0 + h * gain * G)], rel=1e-9)


@pytest.mark.parametrize('seed', range(20))
def test_the_stiffness_ratio_is_two_where_the_explicit_step_stops_being_stable(seed):
    """u⁺ = u − h G (K x + D u), x⁺ = x + h u⁺: its largest eigenvalue passes 1 at ratio 2."""
    rng, nc = np.random.default_rng(seed), 1 + seed % 4
    n = 3 * nc
    J = rng.standard_normal((n, n + 3))
    G = J @ J.T
    springs = LinearSprings(*rng.uniform(0.0, [1e4, 2.0, 30.0, 1e4, 2.0]))
    k, d = np.empty(n), np.empty(n)
    for i in range(nc):
        t, r = slice(3 * i, 3 * i + 2), 3 * i + 2
        G_tt = 0.5 * (G[r - 2, r - 2] + G[r - 1, r - 1])
        k[t], k[r] = springs.tangential_stiffness, springs.stiffness
        d[t] = 2 * springs.tangential_damping_ratio * np.sqrt(springs.tangential_stiffness / G_tt)
        d[r] = 2 * springs.damping_ratio * np.sqrt(springs.stiffness / G[r, r]) + springs.damping

    def radius(h):
        A, B = -h * G * k, np.eye(n) - h * G * d
        step = np.block([[np.eye(n) + h * A, h * B], [A, B]])
        return np.abs(np.linalg.eigvals(step)).max()

    low, high = 1e-6, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if radius(middle) <= 1.0 + 1e-9 else (low, middle)
    assert stiffness_ratio(G, nc, low, springs) == pytest.approx(2.0, rel=1e-6)


def contact(u, friction_law, held, holding):
    """Return h f and S of two pressed contacts that lie 1 mm and 2 mm deep."""
    material = np.zeros(9)
    material[[STIFFNESS, EXPONENT, DISSIPATION]] = 1e6, 1.5, 2.0
    material[[SLIP_SPEED, TANGENTIAL_STIFFNESS, TANGENTIAL_DAMPING_RATIO]] = SLIP, 1e4, 1.0
    springs = Springs(HUNT_CROSSLEY, friction_law, material, STEP, STEP)
    rows = Rows(np.eye(6), np.zeros(6), np.array([0.8, 0.5]), np.zeros(0), np.zeros(0))
    memory = np.array([[1e-4, -2e-4, 0, 0], [0, 3e-4, 0, 0]])
    impulse, slope = np.full(6, np.nan), np.full((6, 3), np.nan)
    contact_forces(
        rows, u, np.array([-1e-3, -2e-3]), memory, springs, held, holding, impulse, slope
    )
    return impulse, slope


@pytest.mark.parametrize('friction_law', [TANH, ANCHORED])
@pytest.mark.parametrize('holding', [False, True])
@pytest.mark.parametrize('seed', range(4))
def test_slopes_of_contacts_are_derivatives_also_where_normal_forces_are_held(
    friction_law, holding, seed
):
    u, held = 0.2 * np.random.default_rng(seed).standard_normal(6), np.array([5.0, 200.0])
    slope = contact(u, friction_law, held, holding)[1]
    for k in range(3):
        delta = np.zeros(6)
        delta[[k, 3 + k]] = 1e-7
        ahead, behind = (contact(u + sign * delta, friction_law, held, holding)[0]
                         for sign in (1, -1))  # fmt: skip
        assert slope[:, k] == pytest.approx((ahead - behind) / 2e-7, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize('friction_law', [TANH, ANCHORED])
def test_friction_counts_on_normal_forces_that_are_held_and_then_only_falls(friction_law):
    """It is cut at μ f of the held f, and S is symmetric and negative semidefinite."""
    u, held = np.array([5.0, -3.0, 0.1, 0.0, 4.0, -0.2]), np.array([7.0, 0.0])
    free, (impulse, slope) = (contact(u, friction_law, held, holding) for holding in (False, True))
    assert impulse[[2, 5]].tolist() == free[0][[2, 5]].tolist()
    assert np.hypot(*free[0][:2]) == pytest.approx(0.8 * free[0][2], rel=1e-9)
    assert np.hypot(*impulse[:2]) == pytest.approx(0.8 * 7.0 * STEP, rel=1e-9)
    assert not impulse[3:5].any()
    for block in (slope[:3], slope[3:]):
        assert block == pytest.approx(block.T, abs=1e-15)
        assert np.linalg.eigvalsh(block).max() < 1e-12
