"""Cases on which the published method was tried, here with answers in closed form where there are.

[Le Lidec et al. 2024] End-to-end and highly-efficient differentiable simulation for robotics, with
the tests and examples of its public code; [Le Lidec et al. 2021] Differentiable simulation for
physical system identification. docs/derivatives.md has a table of these cases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from step_differences import compare

import contact_sim
from contact_sim.derivatives import linearised_run
from contact_sim.derivatives._fields import SLIDE, STICK

LAW = contact_sim.Ncp(tolerance=1e-13)
H, G, MASS, FRICTION = 1e-3, 9.81, 1.0, 0.9


def on_plane(
    robot: contact_sim.RobotModel, height: float, friction: float = FRICTION
) -> contact_sim.Simulator:
    """Return a simulation on a plane, the last coordinate of the place at `height` [m]."""
    sim = contact_sim.Simulator(robot, contact_model=LAW, friction=friction, time_step=H)
    q = pin.neutral(robot.pinocchio_model)
    q[robot.nq - 5 if robot.floating_base else -1] = height
    sim.reset(q)
    return sim


def body(inertia: pin.Inertia, offsets: Any, radius: float) -> contact_sim.RobotModel:
    """Return a free body that touches the ground with balls at `offsets` [m]."""
    model = pin.Model()
    model.appendBodyToJoint(
        model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'body'),
        inertia, pin.SE3.Identity(),
    )  # fmt: skip
    return with_balls(model, offsets, radius)


def with_balls(model: pin.Model, offsets: Any, radius: float) -> contact_sim.RobotModel:
    """Return a robot with contact points on the last joint of a model."""
    points = []
    for k, offset in enumerate(offsets):
        place = pin.SE3(np.eye(3), np.array(offset, float))
        last = model.njoints - 1
        model.addFrame(pin.Frame(f'ball_{k}', last, 0, place, pin.FrameType.OP_FRAME))
        points.append(contact_sim.ContactPoint(
            f'ball_{k}', f'ball_{k}', model.names[last], place.translation, radius
        ))  # fmt: skip
    return contact_sim.RobotModel.from_pinocchio(model, contact_points=points)


def cart(mass: float, radius: float = 0.05) -> contact_sim.RobotModel:
    """Return a ball that cannot turn, with an effort along each axis."""
    model = pin.Model()
    for joint in (pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ()):
        last = model.addJoint(model.njoints - 1, joint, pin.SE3.Identity(), joint.shortname())
    model.appendBodyToJoint(last, pin.Inertia.FromSphere(mass, radius), pin.SE3.Identity())
    return with_balls(model, [(0, 0, 0)], radius)


# --- A ball on a plane, of 1 kg and 1 m radius


BALL = body(pin.Inertia.FromSphere(MASS, 1.0), [(0, 0, 0)], 1.0)


def test_a_ball_that_sticks() -> None:
    """It rolls on: v_x⁺ = (5 v_x + 2 r ω_y)/7, and likewise for the rest; I = 2/5 m r²."""
    sim = on_plane(BALL, 1.0)
    derivatives = sim.derivatives(np.zeros(0))
    assert derivatives.modes.tolist() == [STICK]
    expected = np.zeros((6, 6))
    expected[5, 5] = 1.0  # it turns about the normal
    for linear, turn, sign in ((0, 4, 1.0), (1, 3, -1.0)):
        expected[linear, [linear, turn]] = 5.0 / 7.0, sign * 2.0 / 7.0
        expected[turn, [linear, turn]] = sign * 5.0 / 7.0, 2.0 / 7.0
    np.testing.assert_allclose(derivatives.velocity.v, expected, atol=1e-12)


def test_a_ball_that_slides() -> None:
    """v⁺ = v − μ g h u/|u|, with u = v of the contact: 1 m/s along x."""
    sim = on_plane(BALL, 1.0)
    sim.reset(sim.q, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    derivatives = sim.derivatives(np.zeros(0))
    assert derivatives.modes.tolist() == [SLIDE]
    to_v, across = derivatives.velocity.v, FRICTION * G * H
    # more speed down loads the contact: μ against the slip
    np.testing.assert_allclose(to_v[0, :3], [1.0, 0.0, FRICTION], atol=1e-12)
    second = 3e-8  # v⁺ has the axes of the base, which turns by h ω_y: ½ h² ω_y
    np.testing.assert_allclose(to_v[1, :4], [0.0, 1.0 - across, 0.0, -across], atol=second)
    of_friction = derivatives.with_respect_to('friction').velocity[:, 0]
    up = H * 2.5 * G * H * (1.0 - 2.0 * across)  # of h ω_y v_x, ω_y = 5/2 μ g h, v_x = 1 − μ g h
    np.testing.assert_allclose(of_friction, [-G * H, 0, up, 0, 2.5 * G * H, 0], atol=second)


def test_descent_to_the_effort_that_takes_the_load_off_the_ground() -> None:
    """½ |f|² becomes least where the effort bears the weight: 100 steps of 0.1 along −∇."""
    sim, effort = on_plane(cart(MASS), 0.05), np.zeros(3)
    for k in range(100):
        derivatives = sim.derivatives(effort)
        force = derivatives.step.contact_force[0]
        effort = effort - 0.1 * derivatives.force.effort.T @ force
        assert effort[2] == pytest.approx(MASS * G * (1.0 - 0.9 ** (k + 1)), rel=1e-9)
    assert effort[2] == pytest.approx(MASS * G, rel=1e-4)


# --- Cubes on balls

EDGES = (-1.0, 1.0)


@pytest.mark.parametrize(('speed', 'friction', 'mode'), [(0.0, 0.9, STICK), (1.0, 0.2, SLIDE)])
def test_a_cube_on_four_balls(speed: float, friction: float, mode: int) -> None:
    """It sticks or slides on all of them; forces are not unique, the motion is."""
    corners = [(0.5 * x, 0.5 * y, -0.5) for x in EDGES for y in EDGES]
    cube = body(pin.Inertia.FromBox(MASS, 1.0, 1.0, 1.0), corners, 0.1)
    sim = on_plane(cube, 0.6 - 1e-3, friction)
    sim.reset(sim.q, [speed, 0.0, 0.0, 0.0, 0.0, 0.0])
    derivatives = sim.derivatives(np.zeros(0))
    assert derivatives.modes.tolist() == [mode] * 4
    assert derivatives.redundant
    if mode == STICK:  # all velocities are taken away
        np.testing.assert_allclose(derivatives.velocity.v, 0.0, atol=1e-12)
    error, share = compare(sim, np.zeros(0), derivatives)
    assert error < 1e-7
    assert share > 0.4


SMALL_CUBE = body(
    pin.Inertia.FromBox(MASS, 0.05, 0.05, 0.05),
    [(0.05 * x, 0.05 * y, 0.05 * z) for x in EDGES for y in EDGES for z in EDGES], 0.005,
)  # fmt: skip
TOSS = 50
"""Steps."""


def toss(sim: contact_sim.Simulator, v: Any) -> contact_sim.Simulator:
    """Put a cube of 0.1 m on the ground with a velocity."""
    sim.reset([0.0, 0.0, 0.055, 0.0, 0.0, 0.0, 1.0], v)
    return sim


def end_of_toss(sim: contact_sim.Simulator, v: Any) -> Any:
    """Return the last pose."""
    toss(sim, v)
    for _ in range(TOSS):
        sim.step(np.zeros(0))
    return sim.q


def fitted(seed: int) -> float:
    """Return ½ |error of the last pose|² after at most 10 steps of Gauss-Newton."""
    rng, model = np.random.default_rng(seed), SMALL_CUBE.pinocchio_model
    sim = on_plane(SMALL_CUBE, 0.055)
    on_ground = np.arange(6) == 2  # no speed up or down
    target = np.where(on_ground, 0.0, rng.uniform(-3.0, 3.0, 6))
    v = np.where(on_ground, 0.0, target + rng.uniform(-3.0, 3.0, 6))
    end = end_of_toss(sim, target)

    def cost(v: Any) -> float:
        error = pin.difference(model, end, end_of_toss(sim, v))
        return float(0.5 * error @ error)

    for _ in range(10):
        run = linearised_run(toss(sim, v), np.zeros((TOSS, 0)))
        gradients = np.zeros((6, TOSS + 1, 12))
        gradients[:, -1, :6] = pin.dDifference(model, end, run.q[-1])[1]
        slope = np.array([run.adjoint(g).start[6:] for g in gradients])
        gradient = slope.T @ pin.difference(model, end, run.q[-1])
        if np.linalg.norm(gradient) < 1e-7:
            break
        step, before = np.linalg.solve(slope.T @ slope + 1e-6 * np.eye(6), -gradient), cost(v)
        shares = (s for s in 0.5 ** np.arange(10) if cost(v + s * step) < before)
        share = next(shares, 0.0)
        if share == 0.0:
            break
        v = v + share * step
    return cost(v)


def test_the_initial_velocity_of_a_tossed_cube() -> None:
    """From velocities that are up to 3 m/s and rad/s wrong; two of ten end in other minima."""
    costs = np.array([fitted(seed) for seed in range(10)])
    assert (costs < 1e-8).sum() >= 8


# --- Inverse dynamics through contacts


def test_efforts_that_hold_go1() -> None:
    """Gauss-Newton on ½ |v̇|² of one step; the efforts bear the weight by themselves."""
    robot = contact_sim.load_robot('go1')
    sim, effort = contact_sim.Simulator(robot, contact_model=LAW), np.zeros(12)
    sim.reset(sim.q)
    before = np.linalg.norm(sim.derivatives(effort).step.v_next) / H
    for _ in range(10):
        derivatives = sim.derivatives(effort)
        rate, slope = derivatives.step.v_next / H, derivatives.velocity.effort / H
        if np.linalg.norm(rate) < 1e-9:
            break
        effort = effort - np.linalg.lstsq(slope, rate, rcond=1e-9)[0]
    assert before > 1.0
    assert np.linalg.norm(rate) < 1e-9


# --- Friction and mass from a motion

PUSH = np.array([8.0, 0.0, 0.0])
STEPS = 100


def slide(mass: float, friction: float, force: float) -> Any:
    """Return the run of a sliding cart that is pushed, linearised."""
    sim = on_plane(cart(mass), 0.05, friction)
    sim.reset(sim.q, [0.5, 0.0, 0.0])
    return linearised_run(sim, np.tile(force * PUSH, (STEPS, 1)), ('friction', 'inertial'))


def of_parameters(run: Any) -> Any:
    """Return ∂x/∂(μ, m) at the end."""
    gradients = np.zeros((STEPS + 1, 6))
    gradients[-1, 0] = 1.0
    found = run.adjoint(gradients).parameters
    return np.array([found['friction'][0], found['inertial'][20]])


def test_friction_and_mass_of_a_sliding_body() -> None:
    """x = x₀ + v T + (F/m − μ g) h² n (n + 1)/2; Gauss-Newton finds both from two runs."""
    time = 0.5 * H**2 * STEPS * (STEPS + 1)
    slope = of_parameters(slide(2.0, 0.3, 1.0))
    np.testing.assert_allclose(slope, [-G * time, -PUSH[0] / 4.0 * time], rtol=1e-9)
    seen = [slide(2.0, 0.3, force).q[-1, 0] for force in (0.0, 1.0)]
    friction, mass = 0.6, 1.2
    for _ in range(12):
        runs = [slide(mass, friction, force) for force in (0.0, 1.0)]
        miss = np.array([run.q[-1, 0] for run in runs]) - seen
        friction, mass = np.array([friction, mass]) - np.linalg.solve(
            [of_parameters(run) for run in runs], miss
        )
    assert friction == pytest.approx(0.3, abs=1e-9)
    assert mass == pytest.approx(2.0, abs=1e-9)
