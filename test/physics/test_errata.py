"""Forms of contact as texts print them, shown wrong, and as docs/errata.md corrects them, right.

T13 order of the diagonal    T14 gravity of the ball     T15 release guard
T20 dual, directions, hover  T21, T22 force or impulse   R1, R2 gap and transpose
2.11 poles of the slide direction        E9 signs and cases of the soft foot, drag
Rigid bodies: test_bodies_golden.py, test_pendulum_golden.py; support: test_support_golden.py.
"""

import numpy as np
import pinocchio as pin
import pytest
from linkages import add_link, add_tip, rod
from robots import ball, cube, point_mass, pose, world_velocity
from rods import leaning_rod, planar, tip_velocity
from scipy.optimize import nnls

from contact_sim import (
    Anitescu,
    Compliant,
    ContactProblem,
    Ncp,
    Plane,
    RobotModel,
    Simulator,
    Todorov,
)

GRAVITY = 9.81
NO_EFFORT = np.zeros(0)


# ------------------------------------------------------------------ events (T13, T14, T15)


def test_t13_the_diagonal_stands_next_to_the_velocity():
    """T13: the order printed gives J v⁺ = (0.58827816, −0.27022752), not (0.64443373, 0)."""
    start = np.array([0.5, -1.0, 0.7])
    sim = leaning_rod(
        0.6, 1.0, tuple(start), contact_model='ncp', restitution=0.5, friction=5.0, gravity=0.0,
        time_step=1e-9,
    )  # fmt: skip
    sim.step(NO_EFFORT)
    x, z = (tip_velocity(np.eye(3), 0.6)[k] for k in (0, 1))
    J = np.array([z, x])  # rows (n, t)
    inverse, bounce = np.diag([1.0, 1.0, 12.0]), np.diag([1.5, 1.0])
    pushed = inverse @ J.T
    inner = np.linalg.inv(J @ pushed)
    right, printed = (
        start - pushed @ order @ J @ start for order in (inner @ bounce, bounce @ inner)
    )
    assert planar(sim) == pytest.approx(right, abs=2e-8)
    assert J @ planar(sim) == pytest.approx([0.64443373, 0.0], abs=2e-8)
    assert J @ printed == pytest.approx([0.58827816, -0.27022752], abs=5e-9)


def test_t14_gravity_brings_the_ball_back():
    """T14: with −m g the ball of (0.12, 1.6, −0.4) lands after 3.2/g; with +m g it never would."""
    sim = Simulator(ball(2.0, 0.3, 2 / 3), 'hybrid', friction=0.25, restitution=0.8)
    sim.reset(pose(z=0.3 + 1e-12), np.array([0.12, 0.0, 1.6, 0.0, 0.4, 0.0]))
    while not sim.step(NO_EFFORT).contacts.force.any():
        assert sim.time < 1.0
    landing = (
        sim.time + (world_velocity(sim)[2] - 0.8 * 1.6) / GRAVITY
    )  # it rose with 1.28 m/s since
    assert landing == pytest.approx(3.2 / GRAVITY, abs=1e-8)


def test_t15_a_release_has_no_speed():
    """T15: at release f_n → 0 with φ̇ = 0, and φ̈ > 0 afterwards; a guard on φ̇ > 0 sees nothing."""
    start, omega = 1.2, -np.sqrt(2.854 * GRAVITY)
    sim = leaning_rod(
        np.pi / 2 - start, 1.0, (0.0, -0.5 * np.sin(start) * omega, -omega), friction=0.0,
        contact_model='hybrid',
    )  # fmt: skip
    forces, speeds = [], []
    while len(forces) < 2 or forces[-2] > 0.0:
        report = sim.step(NO_EFFORT)
        forces.append(report.contacts.normal_force[0])
        speeds.append(report.contacts.velocity[0, 2])
    held = np.array(forces[:-3])  # the step of the release follows, and two in flight
    assert len(held) > 50
    assert 0.0 < held[-1] < 0.1 * GRAVITY
    assert np.abs(speeds[:-3]).max() <= 1e-10
    assert 1e-7 < speeds[-3] < speeds[-2] < speeds[-1] < 0.1
    assert np.diff(speeds[-3:], 2)[0] > 0.0  # φ̈ begins at 0 and grows


# ------------------------------------------------------------------ the convex relaxation (T20)


def edges_of(problem, sides):
    """Return the rows n + μ d_j and n of every contact, and those of n − μ d_j."""
    angles = 2.0 * np.pi * np.arange(sides) / sides
    plus, normal, minus = [], [], []
    for i, mu in enumerate(problem.friction):
        t1, t2, n = problem.jacobian[3 * i : 3 * i + 3]
        for angle in angles:
            slip = mu * (np.cos(angle) * t1 + np.sin(angle) * t2)
            plus.append(n + slip)
            minus.append(n - slip)
            normal.append(n)
    return np.array(plus), np.array(normal), np.array(minus)


def sliding_cube():
    """Return the problem of a cube that slides at 1 m/s."""
    sim = Simulator(cube(), friction=0.4)
    sim.reset(pose(z=0.1), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    return sim.step(NO_EFFORT).problem


def test_t20_the_dual_needs_the_friction_in_its_linear_term():
    """T20: min ½ |Eᵀβ|² + βᵀ(N + μ D) v_f is the law; with N v_f alone the edges are violated."""
    problem = sliding_cube()
    E, N, _ = edges_of(problem, 4)
    free, M = problem.free_motion, problem.inertia
    L = np.linalg.cholesky(M)
    pushed = np.linalg.solve(L, E.T)

    def next_velocity(linear):
        # the target y of nnls has pushedᵀ y = −linear
        target = -np.linalg.lstsq(pushed.T, linear)[0]
        return free + np.linalg.solve(M, E.T @ nnls(pushed, target)[0])

    found = Anitescu(sides=4).solve(problem).impulse
    expected = free + np.linalg.solve(M, problem.jacobian.T @ found)
    assert next_velocity(E @ free) == pytest.approx(expected, abs=1e-8)
    assert (E @ expected).min() >= -1e-9
    assert (E @ next_velocity(N @ free)).min() < -0.1


@pytest.mark.parametrize(('sides', 'same'), [(4, True), (3, False)])
def test_t20_impulses_go_along_n_plus_friction(sides, same):
    """T20: (n + μ d_j)·v ≥ 0 pushes along n + μ d_j; along n − μ d_j only with ±d_j."""
    free = np.array([-0.9, 0.5, -0.3])
    problem = ContactProblem.from_dynamics(
        np.eye(3), np.eye(3), free, free, [0.5], [0.0], np.zeros(3), 1e-3
    )
    E, _, printed = edges_of(problem, sides)
    beta, _ = nnls(E.T, -free)  # dual of the projection of v_f on the cone E v ≥ 0
    v = free + E.T @ beta
    assert (E @ v).min() >= -1e-12
    assert np.abs(beta * (E @ v)).max() <= 1e-12
    _, left = nnls(printed.T, v - free)
    assert (left < 1e-12) == same


def test_t20_a_hop_is_higher_than_the_bound():
    """T20: φ ≥ h μ |u_t| is a lower bound. From contact u_n = μ |u_t| at first, then it flies."""
    sim = Simulator(cube(), 'anitescu', friction=0.4)
    sim.reset(pose(z=0.1), np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    report = sim.step(NO_EFFORT)
    slip, rise = sim.v[0], sim.v[2]
    lift = report.record.u_next.reshape(-1, 3)
    assert lift[:, 2].max() == pytest.approx(0.4 * np.hypot(*lift[0, :2]), abs=1e-9)
    bound = 1e-3 * 0.4 * slip
    assert report.contacts.gap.max() == pytest.approx(bound, abs=1e-9)
    gaps, t = [], 1e-3 * np.arange(1, 31)
    for _ in t:
        report = sim.step(NO_EFFORT)
        assert not report.contacts.force.any()
        gaps.append(report.contacts.gap.mean())
    start = sim.last_report.record.gap_start
    assert len(start) == 4
    assert gaps[-1] > 10.0 * bound
    # a body in flight: semi-implicit parabola of the mean corner
    assert np.diff(gaps, 2) == pytest.approx(-GRAVITY * 1e-6, abs=1e-9)
    assert gaps[0] - report.contacts.gap.mean() < 0.0
    assert rise > 0.0


# ------------------------------------------------------------------ Todorov (T21, T22)


def scalar_cart():
    """Return T22's model at (0.02, −1)."""
    model = Todorov(
        form='2014', regularisation=0.05, error_reduction_time=0.1, damping_inertia=0.1,
        cone='elliptic', tolerance=1e-14,
    )  # fmt: skip
    sim = Simulator(
        point_mass(1.0), model, terrain=Plane((1.0, 0.0, 0.0)), friction=0.0, time_step=0.01,
        gravity=0.0,
    )  # fmt: skip
    sim.reset(np.array([0.02, 0.0, 0.0]), np.array([-1.0, 0.0, 0.0]))
    return sim


def test_t22_the_minimum_is_an_impulse():
    """T22: v⁺ = v⁻ + f/(m + b); f taken as a force gives −0.989, and 1/h before it 18.8 m/s."""
    sim, h, mass, eps, kappa = scalar_cart(), 0.01, 1.1, 0.05, 0.1
    report = sim.step(NO_EFFORT)
    q, v = 0.02, -1.0
    free = v - h * 0.1 * v / mass
    wanted = v - 2.0 * h * (1.0 + eps) / kappa * v - h * (1.0 + eps) / kappa**2 * q
    least = mass / (1.0 + eps) * (wanted - free)
    assert least == pytest.approx(0.19704762, abs=5e-9)
    assert report.record.impulse[2] == pytest.approx(least, abs=1e-9)
    assert report.contacts.force[0, 0] == pytest.approx(least / h, rel=1e-9)
    assert sim.v[0] == pytest.approx(free + least / mass, abs=1e-9)
    assert sim.v[0] == pytest.approx(-0.81995671, abs=5e-9)
    as_force, scaled = free + h * least / mass, free + least / h / mass
    assert min(abs(as_force - sim.v[0]), abs(scaled - sim.v[0])) > 0.1


def test_t21_no_time_step_before_the_linear_term():
    """T21: with 1/h before it the minimum is λ/h, a force; as an impulse it is too much."""
    free = np.array([0.3, 0.1, -1.0])
    M, h = 2.0 * np.eye(3), 1e-2
    model = Todorov(
        form='2014',
        regularisation=0.05,
        error_reduction_time=0.1,
        cone='elliptic',
        tolerance=1e-14,
    )

    def impulse(scale):
        rows = ContactProblem.from_dynamics(
            M, np.eye(3), scale * free, scale * free, [0.6], [0.0], np.zeros(3), h
        )
        return model.solve(rows).impulse

    right, printed = impulse(1.0), impulse(1.0 / h)
    assert printed == pytest.approx(right / h, rel=1e-6)
    assert -0.9 < np.linalg.solve(M, right)[2] + free[2] < -0.7
    assert np.linalg.solve(M, printed)[2] + free[2] > 10.0


# ------------------------------------------------------------------ the contact note (R1, R2)


@pytest.mark.parametrize(
    ('q', 'v', 'expected'), [(0.05, -1.0, (0, 5)), (0.3, -1.0, (0.2, 0)), (0.0, 2.0, (0.2, 0))]
)
def test_r1_the_quadratic_rows_leave_one_point(q, v, expected):
    """R1: ½ xᵀ Q x + rᵀ x ≥ 0 with Q = ±[[0, 1], [1, 0]], and the step, in x = (q⁺, f)."""
    swap, none = np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((2, 2))
    rows = [(swap, np.zeros(2)), (-swap, np.zeros(2)), (none, np.eye(2)[0]), (none, np.eye(2)[1])]
    response, free = 0.01, q + 0.1 * v  # q⁺ = q + h v + (h²/m) f
    # on the line of the step the product is a quadratic in f: its roots are all there is to try
    candidates = {-free / response, 0.0}
    feasible = [
        (free + response * f, f)
        for f in candidates
        if all(
            0.5 * x @ Q @ x + r @ x >= -1e-12
            for Q, r in rows
            for x in [np.array([free + response * f, f])]
        )
    ]
    (found,) = feasible
    assert found == pytest.approx(expected, abs=1e-12)
    sim = Simulator(
        point_mass(1.0), 'ncp', Plane((1.0, 0.0, 0.0)), friction=0.0, time_step=0.1, gravity=0.0
    )
    sim.reset(np.array([q, 0.0, 0.0]), np.array([v, 0.0, 0.0]))
    force = sim.step(NO_EFFORT).contacts.force[0, 0]
    assert (sim.q[0], force) == pytest.approx(found, abs=1e-9)


def lever(length=0.5):
    """Return a rod that turns about its end, over the ground where its angle is positive."""
    model = pin.Model()
    joint = add_link(model, 0, (0.0, 0.0), rod(length, 2.0), 'hinge')
    add_tip(model, joint, length, 'tip')
    return RobotModel.from_pinocchio(model, ['tip'], name='lever')


def test_r2_the_gap_is_not_the_coordinate():
    """R2: w = φ + h n (v + h M⁻¹ τ) + h² n M⁻¹ nᵀ f; with q for φ and J for n M⁻¹ nᵀ it misses."""
    angle, rate, h, length = 0.8, -12.0, 0.1, 0.5
    sim = Simulator(lever(length), 'lcp', friction=0.0, time_step=h)
    sim.reset(np.array([angle]), np.array([rate]))
    force = sim.step(np.zeros(1)).contacts.force[0, 2]
    M, n, gap = 2.0 * length**2 / 3.0, length * np.cos(angle), length * np.sin(angle)
    tau = -2.0 * GRAVITY * 0.5 * length * np.cos(angle)
    speed = rate + h * tau / M
    right = max(0.0, -(gap + h * n * speed) / (h**2 * n * n / M))
    printed = max(0.0, -(angle + h * speed) / (h**2 * n / M))
    assert force == pytest.approx(right, rel=1e-9)
    assert right > 1.0
    assert abs(printed - force) > 0.1 * force
    # the gap is closed to the curvature of the arc, the angle is not zero at once
    assert n * sim.q[0] == pytest.approx(n * angle - gap, abs=1e-9)


def test_r2_the_columns_are_those_of_the_transpose():
    """R2: with two joints and one contact H⁻¹ J has no meaning, H⁻¹ Jᵀ has."""
    H, J = np.array([[5.0, 1.3], [1.3, 0.5]]), np.array([[1.2, 0.4]])
    with pytest.raises(ValueError, match='matmul'):
        np.linalg.inv(H) @ J
    problem = ContactProblem.from_dynamics(
        H, J, np.zeros(2), [-1.0, 0.5], [], [], [0.0], 0.1, lower=[0.0], upper=[np.inf]
    )
    impulse = Ncp().solve(problem).impulse
    v = np.array([-1.0, 0.5]) + np.linalg.inv(H) @ J.T @ impulse
    assert J @ v == pytest.approx([0.0], abs=1e-12)


# ------------------------------------------------------------------ the slide direction (2.11)


def test_2_11_scanning_the_slide_direction_meets_poles():
    """2.11: with μ |G_nt| > G_nn, w_t × d changes sign at poles of r, which are no solutions."""
    G = np.array([[2.0, 0.0, 0.9], [0.0, 2.0, 0.0], [0.9, 0.0, 1.0]])
    g, mu = np.array([-1.0, 0.7, -0.5]), 2.0
    theta = np.linspace(0.0, 2.0 * np.pi, 100_001)
    d = np.stack([np.cos(theta), np.sin(theta)])
    below = G[2, 2] / mu + G[2, :2] @ d
    r = -g[2] / below
    w = G[:2, :2] @ (r * d) + np.outer(G[:2, 2], r / mu) + g[:2, None]
    cross = w[0] * d[1] - w[1] * d[0]
    signs = np.flatnonzero(np.diff(np.sign(cross)))
    poles = [k for k in signs if abs(cross[k]) > 1e3]
    assert len(poles) == 2  # what a scan would take for roots
    without = cross * below
    assert np.abs(without).max() < 100.0
    # with the denominator taken out: of its roots, those that press and oppose the slip
    roots = [
        k
        for k in np.flatnonzero(np.diff(np.sign(without)))
        if below[k] > 0.0 and w[:, k] @ d[:, k] < 0.0
    ]
    solution = Ncp().solve(ContactProblem.from_delassus(G, g, [mu]))
    assert solution.solver.converged
    impulse = solution.impulse
    answers = [np.array([*(r[k] * d[:, k]), r[k] / mu]) for k in roots]
    assert min(np.abs(impulse - answer).max() for answer in answers) <= 1e-3
    slip = (G @ impulse + g)[:2]
    assert slip @ impulse[:2] == pytest.approx(
        -np.linalg.norm(slip) * np.linalg.norm(impulse[:2]), rel=1e-9
    )


# ------------------------------------------------------------------ the soft foot (E9)


def soft_force(depth, rate, law):
    """Return the normal force at a depth and its rate: k = 1e4, b = 2 ζ √(k m) = 40, a = 2."""
    model = Compliant(
        normal_law=law, stiffness=1e4, damping_ratio=0.2, dissipation=2.0, exponent=1.0,
        integration='explicit', friction_law='tanh',
    )  # fmt: skip
    sim = Simulator(point_mass(1.0), model, friction=0.0, time_step=1e-6)
    sim.reset(np.array([0.0, 0.0, -depth]), np.array([0.0, 0.0, -rate]))
    return sim.step(NO_EFFORT).contacts.force[0, 2]


@pytest.mark.parametrize(
    ('law', 'pressed', 'leaving'),
    [('unclamped', 30.0, -10.0), ('kelvin_voigt', 30.0, 0.0), ('hunt_crossley', 20.0, 0.0)],
)
def test_e9_the_ground_pushes_below_its_surface_only(law, pressed, leaving):
    """E9: F_n = 0 above; below k δ + b δ̇ unclamped (1), clamped (2), or k δ (1 + a δ̇)₊."""
    assert soft_force(1e-3, 0.5, law) == pytest.approx(pressed, rel=1e-9)
    assert soft_force(1e-3, -0.5, law) == pytest.approx(leaving, abs=1e-9)
    assert soft_force(-1e-3, 0.5, law) == 0.0


def test_e9_the_spring_pulls_the_foot_back():
    """E9: k_p (r − r_0) + k_d ṙ is the force by the robot; that on the robot is its negative.

    r_0 is set at touch-down, and dragged along where the force would leave its cone.
    """
    model = Compliant(
        normal_law='kelvin_voigt', friction_law='anchored', stiffness=1e4,
        tangential_stiffness=2e4, integration='explicit',
    )  # fmt: skip
    sim = Simulator(point_mass(1.0), model, friction=0.5)
    sim.reset(np.array([0.3, 0.0, -GRAVITY / 1e4]))

    def pushed(force):
        for _ in range(2000):
            report = sim.step(NO_EFFORT, {'point': [force, 0.0, 0.0, 0.0, 0.0, 0.0]})
        return sim.q[0], report.contacts.force[0, 0]

    assert pushed(2.0) == pytest.approx((0.3 + 2.0 / 2e4, -2.0), rel=1e-6)
    assert pushed(0.0) == pytest.approx((0.3, 0.0), abs=1e-9)
    place, force = pushed(6.0)  # more than μ m g: the anchor slides
    assert force == pytest.approx(-0.5 * GRAVITY, rel=1e-6)
    assert place > 1.0


def test_e9_drag_grows_with_the_square_of_speed():
    """E9: ½ ρ c_v² A c_L = 24 N at 10 m/s: what weighs 24 N falls at 10 m/s in the end."""
    rho, area, lift = 1.2, 0.5, 0.8
    sim = Simulator(point_mass(24.0 / GRAVITY), time_step=1e-2)
    sim.reset(np.array([0.0, 0.0, 1e3]))
    for _ in range(800):
        drag = 0.5 * rho * sim.v[2] ** 2 * area * lift
        sim.step(NO_EFFORT, {'point': [0.0, 0.0, drag, 0.0, 0.0, 0.0]})
    assert sim.v[2] == pytest.approx(-10.0, rel=1e-4)
    assert 0.5 * rho * 10.0 * area * lift == pytest.approx(2.4)  # as printed: a tenth of it
