"""Bodies on planes with their collision geometry, as boxes with hand-made corners would be."""

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import InclinedPlane, Simulator, contact_models, load_robot, robots
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot._collision_pairs import NO_COLLISIONS
from contact_sim.robot._standing_pose import lowest_heights

GRAVITY, STEP = 9.81, 1e-3


def box(sides, mass=1.0):
    """Return a loose uniform box from a URDF whose collision geometry touches."""
    x, y, z = (side * side for side in sides)
    moments = [mass * s / 12.0 for s in (y + z, x + z, x + y)]
    inertia = '<inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/>'.format(*moments)
    shape = f'<box size="{" ".join(str(side) for side in sides)}"/>'
    return load_robot(f'''<robot name="box"><link name="box">
      <inertial><mass value="{mass}"/>{inertia}</inertial>
      <collision><geometry>{shape}</geometry></collision>
    </link></robot>''').with_body_contacts()


def tilted(q, roll, pitch):
    """Return q turned by roll and pitch [rad], in its own axes."""
    turned, R = q.copy(), pin.rpy.rpyToMatrix(roll, pitch, 0.0)
    turned[3:7] = (pin.Quaternion(q[3:7]) * pin.Quaternion(R)).coeffs()
    return turned


def test_a_box_that_flew_and_is_put_down_is_carried_from_the_first_step_on():
    """hybrid takes the contacts of the state, not those of its last step."""
    sim = Simulator(box((0.3, 0.2, 0.1)), 'hybrid', friction=0.5)
    lies = sim.standing_configuration()
    sim.reset(lies + [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    sim.step([])
    sim.reset(lies)
    report = sim.step([])
    assert report.record.impulse[2::3].sum() == pytest.approx(GRAVITY * STEP, rel=1e-12)
    assert report.solver.iterations == 0  # without an event
    assert np.abs(sim.v).max() < 1e-12


@pytest.mark.parametrize('model', contact_models())
def test_a_box_moves_as_one_with_hand_made_corners(model):
    touching = box((0.3, 0.2, 0.1))
    by_hand = replace(touching, contact_points=touching.body_points, collisions=NO_COLLISIONS)
    motions = []
    for robot in (touching, by_hand):
        sim = Simulator(robot, model, InclinedPlane(0.2), friction=0.4)
        q = tilted(sim.standing_configuration(), 0.3, 0.2)
        q[2] += 0.15
        sim.reset(q)
        reports = [sim.step([]) for _ in range(300)]
        motions.append([np.concatenate([report.q, report.v]) for report in reports])
        assert max(report.links.force[:, 2].max() for report in reports) > 0.0
    # at step 186 four corners act: the LCP has several solutions, and rounding chooses
    first, second = np.array(motions)[:, : 180 if model == 'lcp' else None]
    assert first == pytest.approx(second, abs=1e-6)


@pytest.mark.parametrize('model', ['ncp', 'hybrid', 'lcp'])
@pytest.mark.parametrize('slope', [0.45, 0.6])
def test_a_box_on_its_corners_slides_where_the_slope_is_steeper_than_friction(model, slope):
    angle, friction = math.atan(slope), 0.5
    sim = Simulator(box((0.3, 0.2, 0.05)), model, InclinedPlane(angle), friction=friction)
    sim.reset(sim.standing_configuration())
    for _ in range(400):
        sim.step([])
    expected = max(GRAVITY * (math.sin(angle) - friction * math.cos(angle)), 0.0) * 400 * STEP
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(expected, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize('model', ['ncp', 'hybrid', 'lcp'])
@pytest.mark.parametrize('slope', [0.98, 1.02])
def test_a_cube_on_its_corners_tips_where_the_slope_is_steeper_than_its_sides(model, slope):
    """About its lower edge by δ (cosh λt − 1), λ² = g r / (k² + r²), δ the angle over 45°."""
    angle, side, time = math.atan(slope), 0.2, 0.4
    sim = Simulator(box((side, side, side)), model, InclinedPlane(angle), friction=3.0)
    sim.reset(sim.standing_configuration())
    start = pin.Quaternion(sim.q[3:7])
    for _ in range(round(time / STEP)):
        sim.step([])
    turned = start.angularDistance(pin.Quaternion(sim.q[3:7]))
    arm = side / math.sqrt(2.0)
    rate = math.sqrt(GRAVITY * arm / (side * side / 6.0 + arm * arm))
    expected = max(angle - math.pi / 4.0, 0.0) * (math.cosh(rate * time) - 1.0)
    assert turned == pytest.approx(expected, rel=0.03, abs=1e-7)


def lowest(robot, q, body=False):
    """Return the height of the lowest point of a robot in a pose, or of its bodies alone [m]."""
    points = robot.body_points if body else (*robot.contact_points, *robot.body_points)
    return lowest_heights(robot.pinocchio_model, points, q).min()


def on_its_back(name, model):
    """Drop a robot upside down from 0.5 m, its joints held; return it and its reports.

    Of 2 s; springs come to rest within 3 s.
    """
    robot = load_robot(name).with_body_contacts()
    sim = Simulator(robot, model, friction=0.8)
    q = sim.standing_configuration()
    q[2:7] = 0.0, 1.0, 0.0, 0.0, 0.0
    sim.reset(q)
    q[2] = 0.5 - lowest(robot, q)
    sim.reset(q)
    (kp, kd), pose = robot.default_gains, robot.joint_positions(q)
    reports = []
    for _ in range(3000 if model == 'compliant' else 2000):
        effort = kp * (pose - robot.joint_positions(sim.q)) - kd * robot.joint_velocities(sim.v)
        reports.append(sim.step(effort))
    return robot, reports


@pytest.mark.parametrize(
    ('name', 'model'),
    [(name, 'ncp') for name in robots()]
    + [(name, 'compliant') for name in robots() if name != 'go1']
    + [('go1', model) for model in contact_models() if model != 'ncp'],
)
def test_a_robot_that_falls_on_its_back_comes_to_rest(name, model):
    robot, reports = on_its_back(name, model)
    assert all(report.solver.converged for report in reports)
    last, rigid = reports[-1], model not in ('compliant', 'sap', 'todorov')
    assert np.abs(last.v).max() < (1e-8 if rigid else 1e-3)
    assert last.links.force.sum(axis=0) == pytest.approx(
        [0.0, 0.0, GRAVITY * robot.total_mass], rel=1e-5, abs=1e-3 * GRAVITY * robot.total_mass
    )
    assert last.feet.force == pytest.approx(0.0)  # they point at the sky
    reports = reports if rigid else reports[-1:]
    depth = -min(report.pairs.gap.min(initial=0.0) for report in reports)
    assert depth < (1e-6 if rigid else 2e-3)  # soft: a millimetre where four carry alike


def test_a_recording_keeps_the_solids_of_the_body(tmp_path):
    sim = Simulator(load_robot('go1').with_body_contacts(['trunk']))
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(20):
            sim.step(np.zeros(12))
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.equal
    again = Recording(tmp_path / 'run.npz').simulator().robot
    assert again.collisions.grounded == sim.robot.collisions.grounded == ('trunk_0',)


def test_bodies_have_the_largest_friction_of_the_contact_points():
    robot = load_robot('go1').with_body_contacts(['trunk'])
    friction = np.linspace(0.1, 0.4, 4)
    sim = Simulator(robot, friction=friction)
    assert sim.friction == pytest.approx(friction)
    q = sim.standing_configuration()
    q[2] -= lowest(robot.with_body_contacts(['trunk']), q, body=True) + 1e-4
    sim.reset(q)
    sim.step(np.zeros(12))
    report = sim.step(np.zeros(12))
    slots = report.record.feature_start[sim.sizes.n_ground :] >= 0.0
    assert slots.any()
    assert report.record.friction[sim.sizes.n_ground :][slots] == pytest.approx(0.4)


@pytest.mark.parametrize('attitude', [(1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)])
@pytest.mark.parametrize('model', ['ncp', 'todorov', 'sap'])
def test_a_fallen_go1_rests_as_in_mujoco(model, attitude):
    """On its back and on its side, with MuJoCo's own boxes, cylinders and spheres."""
    pytest.importorskip('mujoco', reason='the peer MuJoCo is not installed')
    from mujoco_peer import MujocoPeer

    robot = load_robot('go1').with_body_contacts()
    sim, peer = (
        Simulator(robot, model, friction=0.8),
        MujocoPeer(robot, 0.8, STEP, whole_body=True),
    )
    q = sim.standing_configuration()
    q[2], q[3:7] = 0.0, np.array(attitude) / np.linalg.norm(attitude)
    sim.reset(q)
    q[2] = 0.1 - lowest(robot, q)
    sim.reset(q)
    (kp, kd), pose, limit = robot.default_gains, robot.joint_positions(q), robot.effort_limit
    peer.reset(q, pose)
    for _ in range(1500):
        sim.step(kp * (pose - robot.joint_positions(sim.q)) - kd * robot.joint_velocities(sim.v))
        effort = kp * (pose - peer.joint_positions) - kd * peer.joint_velocities
        peer.set_effort(np.clip(effort, -limit, limit))
        peer.step()
    theirs = peer.state(robot)[0]
    assert peer.contacts >= 4
    assert sim.q[:3] == pytest.approx(theirs[:3], abs=2e-3)
    turned = pin.Quaternion(sim.q[3:7]).angularDistance(pin.Quaternion(theirs[3:7]))
    assert turned <= math.radians(1.0)
    assert sim.q[7:] == pytest.approx(theirs[7:], abs=math.radians(1.0))


@pytest.mark.parametrize('pairs', [False, True], ids=['ground', 'ground and links'])
def test_the_delassus_matrix_of_a_fallen_robot_is_that_of_its_jacobian(pairs):
    # contacts of links with the ground lie on one branch, those of two legs on two
    robot = load_robot('go1')
    if pairs:
        robot = robot.with_self_collision()
    sim = Simulator(robot, 'ncp')
    q = sim.standing_configuration().copy()
    q[3:7] = math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)
    q[2] = 0.2
    sim.reset(q)
    for _ in range(400):
        report = sim.step(np.zeros(robot.n_joints))
    problem = report.problem
    touching = report.pairs.normal_force > 0.0
    assert touching.sum() >= 2
    expected = problem.jacobian @ np.linalg.solve(problem.inertia, problem.jacobian.T)
    scale = np.abs(expected).max()
    assert np.abs(problem.delassus - expected).max() < 1e-10 * scale
    weights = sim._workspace.inverse_weight[report.active_rows]
    assert problem.inverse_weight == pytest.approx(weights, rel=1e-15)
    assert (weights > 0.0).all()
