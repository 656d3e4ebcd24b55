"""hybrid at the edge of the friction cone, where slip is slow and its direction stiff.

A body pulled along the ground by (1 + ε) times what friction holds slides at the acceleration of
what is left, g (sin α − μ cos α) on a slope, however small ε is, and straight ahead.
"""

import numpy as np
import pinocchio as pin
import pytest
from robots import cube, point_mass, rigid_body

from contact_sim import InclinedPlane, RobotModel, Simulator
from contact_sim.step._problem import SolverStatus

GRAVITY, FRICTION, SECONDS = 9.81, 0.5, 0.1
EXACT = 1e-4
"""Speed off the exact law and sideways, relative to it."""
HEADINGS = [0.0, 0.6, np.pi / 4, 2.3]
STIFF = [(1e-3, 1e-3), (5e-3, 1e-5)]
"""Time step [s], and the share of the pull that friction does not hold."""


def slab() -> RobotModel:
    """Five contacts under one rigid body: two normal forces are redundant."""
    corners = [([x, y, -0.1], 0.0) for x in (-0.2, 0.2) for y in (-0.1, 0.1)]
    inertia = np.diag([0.01, 0.02, 0.025])
    return rigid_body('slab', 2.0, inertia, [*corners, ([0.0, 0.0, -0.1], 0.0)])


def ton() -> RobotModel:
    return point_mass(1000.0)


BODIES = [cube, slab, ton]


def run(sim, pull=None):
    """Return how far the body gets, its last velocity [m/s], and the reports."""
    start, efforts, reports = sim.q[:3].copy(), np.zeros(0), []
    for _ in range(round(SECONDS / sim.time_step)):
        reports.append(sim.step(efforts, pull) if pull else sim.step(efforts))
    velocity = sim.v[:3]
    if sim.q.shape[0] == 7:
        velocity = pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ velocity
    return sim.q[:3] - start, velocity, reports


def assert_slides(moved, velocity, reports, along, acceleration):
    assert {report.solver.status for report in reports} == {SolverStatus.CONVERGED}
    speed = acceleration * SECONDS
    assert velocity / speed == pytest.approx(along, abs=EXACT)
    assert moved / (0.5 * speed * SECONDS) == pytest.approx(along, abs=EXACT)
    forces = [report.contacts.force for report in reports]
    weight = np.abs(forces[0]).sum()
    # statuses are true: Coulomb and Signorini hold in the judge's eyes in every step
    assert max(report.residuals.cone for report in reports[::10]) <= 1e-9 * weight
    assert max(report.residuals.ncp for report in reports[::10]) <= 1e-9 * weight


def on_slope(body, angle, heading, yaw, h, friction=FRICTION):
    """Return the simulator of a body at rest on a slope, and the way down."""
    terrain = InclinedPlane(angle, heading)
    sim = Simulator(body(), 'hybrid', terrain=terrain, friction=friction, time_step=h)
    normal = np.array(terrain.plane[:3])
    if sim.q.shape[0] == 7:
        lie = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), normal)
        turn = lie * pin.Quaternion(pin.AngleAxis(yaw, np.array([0.0, 0.0, 1.0])))
        sim.reset([*0.1 * normal, *turn.coeffs()])
    down = normal[2] * normal - [0.0, 0.0, 1.0]
    return sim, down / np.linalg.norm(down)


@pytest.mark.parametrize('heading', HEADINGS)
@pytest.mark.parametrize(('h', 'excess'), STIFF)
@pytest.mark.parametrize('body', BODIES)
def test_a_body_just_above_the_angle_of_friction_slides_as_coulomb_says(body, h, excess, heading):
    # 2.7: v(t) = g (sin α − μ cos α) t from rest
    angle = np.arctan((1.0 + excess) * FRICTION)
    sim, down = on_slope(body, angle, heading, 0.35, h)
    acceleration = GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle))
    assert_slides(*run(sim), down, acceleration)


@pytest.mark.parametrize('heading', HEADINGS)
@pytest.mark.parametrize(('h', 'excess'), STIFF)
@pytest.mark.parametrize('body', BODIES)
def test_a_body_pulled_a_little_more_than_friction_holds(body, h, excess, heading):
    # T18: a = ε μ g
    sim = Simulator(body(), 'hybrid', friction=FRICTION, time_step=h)
    along = np.array([np.cos(heading), np.sin(heading), 0.0])
    if sim.q.shape[0] == 7:
        sim.reset([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    frame = 'point' if body is ton else 'body'
    pull = (1.0 + excess) * FRICTION * sim.robot.total_mass * GRAVITY * along
    outcome = run(sim, {frame: [*pull, 0.0, 0.0, 0.0]})
    assert_slides(*outcome, along, excess * FRICTION * GRAVITY)


@pytest.mark.parametrize('body', BODIES)
def test_a_body_just_below_the_angle_of_friction_stays(body):
    sim, _ = on_slope(body, np.arctan(0.99999 * FRICTION), 0.6, 0.35, 1e-3)
    moved, velocity, reports = run(sim)
    assert {report.solver.status for report in reports} == {SolverStatus.CONVERGED}
    assert np.abs(velocity).max() <= 1e-12
    assert np.abs(moved).max() <= 1e-12


def test_any_friction_slope_and_step():
    # a yaw that grew by a factor of −2 per step, where normal forces were shared differently in
    # the choice of directions and in the motion; here slab, μ = 0.163 and 0.2 ms gave 1.04
    rng = np.random.default_rng(0)
    for k in range(30):
        friction, excess = rng.uniform(0.1, 0.9), 10.0 ** rng.uniform(-5.0, -2.0)
        heading, yaw, h = rng.uniform(-3.2, 3.2), rng.uniform(-3.0, 3.0), [1e-3, 5e-3, 2e-4][k % 3]
        angle = np.arctan((1.0 + excess) * friction)
        sim, down = on_slope(slab if k % 2 else cube, angle, heading, yaw, h, friction)
        acceleration = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
        assert_slides(*run(sim), down, acceleration)


@pytest.mark.parametrize(('share', 'error'), [(0.3, 0.01), (0.9, 1e-6), (0.99, 1e-6)])
def test_a_slip_pulled_aside_turns_and_stops_as_a_curve_of_pursuit_does(share, error):
    # pulled across by k μ m g, |v| + k v_y falls by μ g (1 − k²): whatever way the slip has turned
    sim = Simulator(point_mass(2.0), 'hybrid', friction=FRICTION, time_step=2e-3)
    sim.reset(sim.q, [0.2, 0.0, 0.0])
    rate = FRICTION * GRAVITY * (1.0 - share**2)
    pull = {'point': [0.0, share * FRICTION * 2.0 * GRAVITY, 0.0, 0.0, 0.0, 0.0]}
    events = 0
    while sim.time <= 1.2 * 0.2 / rate:
        events += sim.step(np.zeros(0), pull).solver.iterations
        left = np.hypot(*sim.v[:2]) + share * sim.v[1]
        assert left == pytest.approx(max(0.2 - rate * sim.time, 0.0), abs=error * 0.2)
    assert np.abs(sim.v).max() == 0.0
    assert events <= 5
