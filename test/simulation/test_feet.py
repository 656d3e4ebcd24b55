"""Forces per contact, per foot and per link: sums, closed forms, frames."""

import numpy as np
import pinocchio as pin
import pytest
from robots import FREE_FLYER, StandingController, ball, cube, pose, sled, stand

from contact_sim import (
    InvalidInput,
    NullSpace,
    Planes,
    RobotModel,
    Simulator,
    UnknownName,
    Worlds,
    load_robot,
)
from contact_sim.step._workspace import OPEN, SLIP, STICK

GRAVITY = 9.81


def landing(name):
    """Return the simulator of a robot that lands with sideways speed, and 400 reports."""
    sim = Simulator(load_robot(name), friction=0.7)
    q = sim.standing_configuration().copy()
    q[2] += 2e-3
    sim.reset(q, v=[0.6, 0.3, *(0.0 for _ in range(sim.robot.nv - 2))])
    controller = StandingController(sim)
    return sim, [sim.step(controller(sim)) for _ in range(400)]


def frame_origins(robot, q, feet):
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    pin.framesForwardKinematics(model, data, np.array(q))
    return np.array([data.oMf[model.getFrameId(foot.frame)].translation for foot in feet])


# -------------------------------------------------------------------- sums


@pytest.mark.parametrize('name', ['go1', 'anymal_b'])
def test_feet_links_and_contacts_add_up_to_the_same_wrench(name):
    sim, reports = landing(name)
    pressed = 0
    for report in reports:
        contacts, position = report.contacts, report.record.position_start
        position = position[: len(contacts.gap)]
        total = contacts.force.sum(axis=0)
        moment = np.cross(position, contacts.force).sum(axis=0)
        pressed += total[2] > 1.0
        scale = 1.0 + np.abs(contacts.force).sum()
        for part in (report.feet, report.links):
            assert part.force.sum(axis=0) == pytest.approx(total, abs=1e-13 * scale)
            about_world = part.torque + np.cross(part.origin, part.force)
            assert about_world.sum(axis=0) == pytest.approx(moment, abs=1e-12 * scale)
        origins = frame_origins(sim.robot, report.record.q_start, sim.robot.feet)
        assert report.feet.origin == pytest.approx(origins, abs=1e-12)
    assert pressed > 200


def test_a_foot_with_one_contact_is_that_contact_to_the_bit():
    _, reports = landing('go1')
    modes = set()
    for report in reports:
        feet, contacts = report.feet, report.contacts
        assert feet.names == contacts.names
        for name in ('force', 'gap', 'mode', 'slip_speed'):
            assert np.array_equal(getattr(feet, name), getattr(contacts, name))
        assert np.array_equal(feet.loaded, contacts.normal_force > 0.0)
        modes |= set(feet.mode.tolist())
    assert modes == {OPEN, STICK, SLIP}


def test_the_motor_of_a_link_bears_the_torque_about_its_joint():
    """Statics: τ = g − axis · torque of the ground about the joint, last joint of a leg."""
    sim = Simulator(load_robot('anymal_b'))
    report = stand(sim, 3000)[-1]
    robot, model = sim.robot, sim.robot.pinocchio_model
    assert not robot.joint_friction.any()
    data, q = model.createData(), np.array(report.record.q_start)
    weight = pin.computeGeneralizedGravity(model, data, q)
    columns = pin.computeJointJacobians(model, data, q)
    feet = [point.joint for point in robot.contact_points]
    assert set(feet) <= set(report.links.names)
    for name, torque in zip(report.links.names, report.links.torque, strict=True):
        if name not in feet:
            assert not torque.any()
            continue
        dof = model.joints[model.getJointId(name)].idx_v
        effort = report.effort[robot.joint_names.index(name)]
        assert effort == pytest.approx(weight[dof] - columns[3:, dof] @ torque, abs=1e-5)
        assert abs(effort) > 1.0


# -------------------------------------------------------------------- several contacts per foot


@pytest.mark.parametrize('lean', [(0.0, 0.0), (0.02, 0.13), (-0.03, -0.08)])
def test_torques_of_box_feet_balance_an_eccentric_load(lean):
    """At rest the feet bear the moments of the weight and of a push down off the centre."""
    robot = sled(2.0, lean)
    sim = Simulator(robot)
    sim.reset(pose(z=0.12))
    down, at = 30.0, np.array([0.01, -0.05])
    push = np.array([0, 0, -down, -at[1] * down, at[0] * down, 0])
    for _ in range(300):
        report = sim.step([], {'body': push})
    feet, weight = report.feet, 2.0 * GRAVITY
    assert feet.names == ('left', 'right')
    assert feet.loaded.all()
    assert feet.force.sum(axis=0) == pytest.approx([0.0, 0.0, weight + down], abs=5e-8)
    moment = weight * np.array([lean[1], -lean[0]]) + down * np.array([at[1], -at[0]])
    assert report.links.names == (FREE_FLYER,)
    assert report.links.force[0] == pytest.approx([0.0, 0.0, weight + down], abs=5e-8)
    assert report.links.torque[0] == pytest.approx([*moment, 0.0], abs=5e-8)
    about_body = feet.torque + np.cross(feet.origin - sim.q[:3], feet.force)
    assert about_body.sum(axis=0) == pytest.approx([*moment, 0.0], abs=5e-8)
    assert np.abs(feet.torque[:, :2]).max() > 0.0


def test_one_box_foot_bears_the_moment_of_its_load():
    """All weight on one foot of 0.1 m: the torque about its frame is lever times weight."""
    body = sled(3.0, (0.02, 0.17))
    robot = RobotModel.from_pinocchio(body.pinocchio_model, body.contact_points[:4])
    sim = Simulator(robot)
    sim.reset(pose(z=0.12))
    for _ in range(300):
        report = sim.step([])
    weight, lever = 3.0 * GRAVITY, (0.02, 0.17 - 0.2)
    assert report.feet.names == ('left',)
    assert report.feet.force[0] == pytest.approx([0.0, 0.0, weight], abs=1e-9 * weight)
    expected = [weight * lever[1], -weight * lever[0], 0.0]
    assert report.feet.torque[0] == pytest.approx(expected, abs=1e-9)
    assert report.feet.mode.tolist() == [STICK]


def test_gap_mode_and_slip_of_a_foot_that_stands_on_an_edge():
    robot = cube()
    sim = Simulator(robot, friction=0.1)
    tilt = 0.2
    q = pose()
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, tilt, 0.0)).coeffs()
    q[2] = 0.1 * (np.cos(tilt) + np.sin(tilt))  # the edge at x = 0.1 touches
    sim.reset(q, v=[np.cos(tilt), 0.0, np.sin(tilt), 0.0, 0.0, 0.0])
    report = sim.step([])
    contacts = report.contacts
    pressed = contacts.normal_force > 0.0
    assert pressed.tolist() == [False, False, True, True]
    assert report.feet.mode.tolist() == [SLIP]
    assert report.feet.loaded.tolist() == [True]
    assert report.feet.gap.tolist() == [contacts.gap.min()]
    assert contacts.gap.max() > 0.03
    assert report.feet.slip_speed.tolist() == [contacts.slip_speed[pressed].max()]
    sim.reset(pose(z=0.5), v=[0.3, 0.4, 0.0, 0.0, 0.0, 0.0])
    flying = sim.step([]).feet
    assert (flying.mode.tolist(), flying.loaded.tolist()) == ([OPEN], [False])
    assert flying.slip_speed == pytest.approx([0.5])
    assert not flying.force.any()
    assert not flying.torque.any()
    assert flying.gap == pytest.approx([0.4], abs=1e-4)


# -------------------------------------------------------------------- several features


@pytest.mark.parametrize('friction', [0.0, 0.7])
def test_a_ball_in_a_groove_presses_on_both_sides(friction):
    """Two contacts of one contact point: without friction each bears m g / (2 cos α)."""
    angle, mass = 0.6, 1.5
    s, c = np.sin(angle), np.cos(angle)
    ground = Planes((((s, 0, c), 0.0), ((-s, 0, c), 0.0)))
    sim = Simulator(ball(mass), terrain=ground, friction=friction)
    sim.reset()
    for _ in range(200):
        report = sim.step([])
    weight = mass * GRAVITY
    assert report.contacts.names == ('point_0/0', 'point_0/1')
    assert report.contacts.force.shape == (2, 3)
    assert report.feet.names == ('point_0',)
    assert report.feet.force[0] == pytest.approx([0.0, 0.0, weight], abs=1e-9 * weight)
    assert report.feet.torque[0] == pytest.approx(np.zeros(3), abs=1e-9)
    assert report.links.force[0] == pytest.approx([0.0, 0.0, weight], abs=1e-9 * weight)
    assert report.feet.gap.tolist() == [report.contacts.gap.min()]
    if not friction:
        each = weight / (2.0 * c)
        assert report.contacts.normal_force == pytest.approx([each, each], rel=1e-9)


def test_on_a_plane_contacts_have_the_names_of_their_points():
    robot = sled()
    report = Simulator(robot).step([])
    assert report.contacts.names == tuple(point.name for point in robot.contact_points)


# -------------------------------------------------------------------- where else reports are made


def test_reports_of_worlds_and_of_shadows_tell_feet():
    robot = sled(2.0, (0.01, 0.05))
    sim, worlds = Simulator(robot), Worlds(robot, 2)
    sim.reset(pose(z=0.12))
    worlds.reset(pose(z=0.12))
    sim.shadow = ('sap',)
    report = sim.step([])
    worlds.step(np.zeros(0))
    for world in range(2):
        other = worlds.report(world).feet
        assert np.array_equal(other.force, report.feet.force)
        assert np.array_equal(other.torque, report.feet.torque)
    shadow = report.shadows['sap'].step
    force = shadow.contacts.force.reshape(2, 4, 3).sum(axis=1)
    assert shadow.feet.force == pytest.approx(force, abs=1e-12)


def test_a_robot_without_contact_points_has_no_feet():
    model = sled().pinocchio_model
    report = Simulator(RobotModel.from_pinocchio(model)).step([])
    assert report.feet.names == report.links.names == ()
    assert report.feet.force.shape == report.links.torque.shape == (0, 3)


def test_torques_of_a_joint_that_only_pinocchio_knows():
    """A ball hangs on an ellipsoid joint; the plane is pushed up against it."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelEllipsoid(0.1, 0.2, 0.3), pin.SE3.Random(), 'egg')
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    place = pin.SE3(np.eye(3), np.array([0.1, -0.2, 0.3]))
    model.addBodyFrame('tip', joint, place, 0)
    robot = RobotModel.from_pinocchio(model, ['tip'])
    sim = Simulator(robot)
    q = np.array([0.3, -0.2, 0.4])
    sim.reset(q)
    report = sim.step([])
    origins = frame_origins(robot, q, robot.feet)
    assert report.feet.origin == pytest.approx(origins, abs=1e-12)
    assert report.links.torque == pytest.approx(
        np.cross(origins - report.links.origin, report.links.force), abs=1e-12
    )


# -------------------------------------------------------------------- given feet of null_space


def test_null_space_holds_a_foot_by_its_name_a_point_by_its_name_or_index():
    robot = sled()
    for feet, held in (
        (('left',), [1, 1, 1, 1, 0, 0, 0, 0]),
        (('left', 'right_1'), [1, 1, 1, 1, 0, 1, 0, 0]),
        ((0, '6'), [1, 0, 0, 0, 0, 0, 1, 0]),
    ):
        sim = Simulator(robot, NullSpace(support='given', feet=feet))
        sim.reset(pose(z=0.12))
        report = sim.step([])
        assert (report.contacts.mode != OPEN).tolist() == np.array(held, dtype=bool).tolist()


def test_null_space_refuses_a_point_that_is_given_twice():
    with pytest.raises(InvalidInput, match='left_2 is listed twice'):
        Simulator(sled(), NullSpace(support='given', feet=('left', 'left_2')))
    with pytest.raises(UnknownName, match=r"'tail'.*left_0"):
        Simulator(sled(), NullSpace(support='given', feet=('tail',)))


def test_a_given_point_in_a_groove_is_held_at_the_nearest_side():
    s, c = np.sin(0.6), np.cos(0.6)
    ground = Planes((((s, 0, c), 0.0), ((-s, 0, c), 0.0)))
    sim = Simulator(ball(1.5), NullSpace(support='given', feet=('point_0',)), terrain=ground)
    q = sim.standing_configuration().copy()
    q[:3] += 1e-3, 0.0, 1e-2
    sim.reset(q)
    report = sim.step([])
    assert (report.contacts.mode != OPEN).tolist() == [False, True]
    assert report.contacts.gap[1] < report.contacts.gap[0]
