"""Floating base: E3 feet that stay, E8 signs of forces, E10 what is singular alone."""

import numpy as np
import pytest
from robots import StandingController

from contact_sim import NullSpace, Simulator, load_robot, support

FEET = [0, 1, 2, 3]


def moving_stance(name, seed=1):
    """Return a stance on four feet, bent and in motion, and a generalized force."""
    robot, rng = load_robot(name), np.random.default_rng(seed)
    q = robot.reference_configuration()
    angles = robot.joint_positions(q) + 0.2 * rng.normal(size=robot.n_joints)
    q = robot.with_joint_positions(q, angles)
    stance = support.stance_dynamics(robot, q, 0.3 * rng.normal(size=robot.nv), FEET)
    effort = 5.0 * rng.normal(size=robot.n_joints)
    return stance, support.generalized_force(robot, effort)


@pytest.mark.parametrize('name', ['solo12', 'anymal_b'])
def test_e3_held_feet_obey_both_derivatives(name):
    """E3: J has three rows a foot; J u = 0 and J u̇ + J̇ u = 0 while a robot sways on its feet."""
    robot = load_robot(name)
    sim = Simulator(robot, NullSpace(support='given', feet=FEET), time_step=1e-4)
    hold, sway = StandingController(sim), np.tile([1.0, -1.0, 1.0], 4) * robot.total_mass / 20.0
    left, drifts = [], []
    for step in range(300):
        q, v = sim.q.copy(), sim.v.copy()
        report = sim.step(hold(sim) + sway * np.sin(0.05 * step))
        if step % 30 == 29:
            stance = support.stance_dynamics(robot, q, v, FEET)
            assert stance.contact_jacobian.shape == (12, robot.nv)
            assert np.abs(report.record.u_next[:12]).max() <= 1e-5  # −α φ is fed back
            left.append(stance.contact_jacobian @ report.acceleration + stance.drift)
            drifts.append(stance.drift)
    assert np.abs(drifts).max() > 1e-2
    assert np.abs(left).max() <= 0.02 * np.abs(drifts).max()  # O(h)


@pytest.mark.parametrize('name', ['solo12', 'anymal_b'])
def test_e8_forces_of_the_lecture_are_exerted_by_the_robot(name):
    """E8: q_j = S q, M u̇ + b + g + Jᵀ F_c = Sᵀ τ with F_c = −f, of a simulated step; not +f."""
    robot = load_robot(name)
    sim = Simulator(robot, 'ncp')
    hold = StandingController(sim)
    for _ in range(200):
        sim.step(hold(sim))
    q, v, S = sim.q.copy(), sim.v.copy(), robot.selection_matrix
    assert np.array_equal(S, np.hstack([np.zeros((12, 6)), np.eye(12)]))
    assert np.array_equal(S @ v, robot.joint_velocities(v))
    effort = hold(sim) + np.linspace(-0.1, 0.1, 12)
    report = sim.step(effort)
    stance = support.stance_dynamics(robot, q, v, FEET)
    J, f = (
        report.problem.jacobian,
        report.contacts.force.ravel(),
    )  # rows in world axes: flat ground
    damping = np.asarray(robot.pinocchio_model.damping) * v  # what M̂ does not hold of it
    rest = report.problem.inertia @ report.acceleration + stance.nonlinear_effects + damping
    rest = rest - S.T @ effort
    scale = robot.total_mass * 9.81
    assert f[2::3].sum() == pytest.approx(scale, rel=0.1)
    assert rest - J.T @ f == pytest.approx(np.zeros(robot.nv), abs=1e-9 * scale)
    assert np.abs(rest + J.T @ f).max() > scale


@pytest.mark.parametrize('name', ['solo12', 'anymal_b'])
def test_e10_the_projected_equation_alone_is_singular(name):
    """E10: N_cᵀ M v̇ + N_cᵀ h = N_cᵀ Sᵀ τ has rank n − m; with J v̇ = −J̇ v it is the KKT motion.

    F_c = (J M⁻¹ Jᵀ)⁻¹ (J M⁻¹ (Sᵀ τ − h) + J̇ v), by the robot, is right as printed.
    """
    stance, tau = moving_stance(name)
    M, J, drift = stance.inertia, stance.contact_jacobian, stance.drift
    h, n = stance.nonlinear_effects, len(stance.inertia)
    expected = support.acceleration(stance, tau)
    N = support.null_space_projector(M, J)
    projected, right = N.T @ M, N.T @ (tau - h)
    assert np.linalg.matrix_rank(projected, tol=1e-8 * np.linalg.norm(projected)) == n - len(J)
    alone = np.linalg.lstsq(projected, right, rcond=1e-8)[0]
    assert np.abs(J @ alone + drift).max() > 0.1
    both = np.linalg.lstsq(
        np.vstack([projected, J]), np.concatenate([right, -drift]), rcond=1e-10
    )[0]
    assert both == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())
    by_robot = np.linalg.solve(
        J @ np.linalg.solve(M, J.T), J @ np.linalg.solve(M, tau - h) + drift
    )
    found = support.constraint_force(stance, tau)
    assert by_robot == pytest.approx(-found, abs=1e-8 * np.abs(found).max())
