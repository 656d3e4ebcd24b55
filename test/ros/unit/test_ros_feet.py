"""Topics per foot: several contacts of a foot, and a ground with several features; no network."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from labels import labelled
from robots import StandingController, ball, pose, sled
from ros_session import vector
from sent import SentMessages, received, received_markers, received_numbers
from visualization_msgs.msg import Marker

from contact_sim import Compliant, NullSpace, Planes, Simulator, load_robot
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._inputs import SupportCommand
from contact_sim.ros._parameters import PARAMETER_GROUPS, NodeParameters
from contact_sim.ros.demo import Track, draw
from contact_sim.sensors import ContactFlags, FootForces
from contact_sim.sensors._foot_sensors import cross
from contact_sim.topics import _robot_topics
from contact_sim.topics._markers import ContactMarkers, SupportMarkers
from contact_sim.topics._messages import Step
from contact_sim.topics._messages import flags as flag_numbers
from contact_sim.topics._robot_topics import RobotTopics
from contact_sim.topics._table import FOOT_CONTACTS, FOOT_WRENCH, NODE
from contact_sim.topics._world_topics import ShadowNumbers, SolverNumbers

GRAVITY = 9.81
S, C = np.sin(0.6), np.cos(0.6)
GROOVE = Planes((((S, 0, C), 0.0), ((-S, 0, C), 0.0)))


@pytest.fixture(scope='module')
def turned_sled():
    """Return a sled at rest, turned by 0.7 rad, its load off the centre, and the last report."""
    sim = Simulator(sled(2.0, (0.02, 0.13)))
    sim.reset(pose(x=1.0, z=0.12, yaw=0.7))
    for _ in range(300):
        report = sim.step([])
    return sim, report


@pytest.fixture(scope='module')
def ball_in_groove():
    """Return a ball at rest in a groove, and the last report."""
    sim = Simulator(ball(1.5), terrain=GROOVE)
    for _ in range(200):
        report = sim.step([])
    return sim, report


def wrenches(robot, report, axes='foot'):
    """Return the messages of exact sensors, with the names of the feet as frames."""
    frames = [foot.frame for foot in robot.feet]
    contents = _robot_topics.wrenches(0, frames, FootForces(robot, axes).truth(report))
    return [received(FOOT_WRENCH, content) for content in contents]


def flags(robot, report):
    values = ContactFlags(robot).truth(report)
    return received(FOOT_CONTACTS, flag_numbers(report.feet.names, values.flag))


def test_the_wrench_of_a_sphere_is_its_force_and_arm():
    sim = Simulator(load_robot('go1'))
    controller = StandingController(sim)
    sim.reset(v=[0.6, 0.3, *(0.0 for _ in range(sim.robot.nv - 2))])
    for _ in range(20):
        report = sim.step(controller(sim))
    contacts = report.contacts
    local, world = wrenches(sim.robot, report), wrenches(sim.robot, report, 'world')
    model = sim.robot.pinocchio_model
    data = model.createData()
    pin.framesForwardKinematics(model, data, report.q)
    for k, point in enumerate(sim.robot.contact_points):
        frame = data.oMf[model.getFrameId(point.frame)]
        assert frame.isApprox(sim.frame_placement(point.frame), 1e-12)
        force = frame.rotation.T @ contacts.force[k]
        arm = frame.rotation.T @ (contacts.position[k] - frame.translation)
        assert vector(local[k].wrench.force) == pytest.approx(force, abs=1e-13)
        assert vector(local[k].wrench.torque) == pytest.approx(cross(arm, force), abs=1e-14)
        assert np.array_equal(vector(world[k].wrench.force), contacts.force[k])
        moment = cross(contacts.position[k], contacts.force[k])
        assert np.array_equal(vector(world[k].wrench.torque), moment)
        assert local[k].header.frame_id == point.frame


def test_the_wrench_of_a_box_foot_is_that_of_its_four_contacts(turned_sled):
    sim, report = turned_sled
    messages = wrenches(sim.robot, report)
    assert [message.header.frame_id for message in messages] == ['left', 'right']
    for k, message in enumerate(messages):
        rotation = sim.frame_placement(('left', 'right')[k]).rotation
        force = rotation @ vector(message.wrench.force)
        torque = rotation @ vector(message.wrench.torque)
        assert force == pytest.approx(report.feet.force[k], abs=1e-9)
        assert torque == pytest.approx(report.feet.torque[k], abs=1e-9)
    world = wrenches(sim.robot, report, 'world')
    assert sum(vector(m.wrench.force) for m in world) == pytest.approx(
        [0.0, 0.0, 2.0 * GRAVITY], abs=1e-7
    )
    centre = sim.q[:3] + pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ [0.02, 0.13, 0.0]
    moment = np.cross(centre, [0.0, 0.0, 2.0 * GRAVITY])
    assert sum(vector(m.wrench.torque) for m in world) == pytest.approx(moment, abs=1e-6)


def test_foot_contacts_has_one_entry_per_foot(turned_sled):
    sim, report = turned_sled
    message = flags(sim.robot, report)
    assert list(message.data) == [1, 1]
    (feet,) = message.layout.dim  # plain: one dimension of as many numbers as there are
    assert (feet.label, feet.size, feet.stride) == ('left right', 2, 2)
    sim = Simulator(sim.robot)
    roll = pin.Quaternion(pin.rpy.rpyToMatrix(0.1, 0.0, 0.0)).coeffs()  # on the right foot
    height = -pin.Quaternion(roll).matrix()[2] @ [0.05, -0.25, -0.12]
    sim.reset([0.0, 0.0, height, *roll])
    assert list(flags(sim.robot, sim.step([])).data) == [0, 1]


def test_one_wrench_and_two_arrows_for_a_ball_in_a_groove(ball_in_groove):
    sim, report = ball_in_groove
    (message,) = wrenches(sim.robot, report)
    rotation = sim.frame_placement('body').rotation
    force = rotation @ vector(message.wrench.force)
    assert force == pytest.approx([0.0, 0.0, 1.5 * GRAVITY], abs=1e-7)
    assert list(flags(sim.robot, report).data) == [1]
    markers = received_markers(ContactMarkers().of(report))
    arrows = [m for m in markers if m.ns == 'force' and m.action == Marker.ADD]
    starts = [[p.x, p.y, p.z] for p in (arrow.points[0] for arrow in arrows)]
    assert starts == pytest.approx(report.contacts.position, abs=1e-12)
    assert len([m for m in markers if m.ns == 'friction_cone']) == 2


@pytest.mark.parametrize('where', ['turned_sled', 'ball_in_groove'])
def test_support_and_solver_state_take_several_contacts_per_foot(where, request):
    sim, report = request.getfixturevalue(where)
    state = SolverNumbers(parts_of(sim.robot), sim.terrain, ()).of(report, 1.0)
    assert state['contacts'] == np.count_nonzero(report.contacts.mode)
    assert state['support_rank'] == (6.0 if where == 'turned_sled' else 3.0)
    polygon, *_ = SupportMarkers(sim.robot, sim.terrain).of(report)
    assert polygon.shown.all()


def test_shadows_tell_forces_per_foot():
    sim = Simulator(sled())
    sim.reset(pose(z=0.12 - 1e-4))
    sim.shadow = (Compliant(),)
    report = sim.step([])
    numbers = labelled(received_numbers(ShadowNumbers(sim.robot).of(report)))
    both = report.shadows['compliant'].force_difference.reshape(2, 4, 3).sum(axis=1)
    told = [
        [numbers[f'compliant.force.{foot}.{axis}'] for axis in 'xyz'] for foot in ('left', 'right')
    ]
    assert np.abs(both).max() > 0.1
    assert np.array(told) == pytest.approx(both, abs=1e-9)


# -------------------------------------------------------------------- ~/support


class Loop:
    """Runs at once what is asked for between two steps."""

    def between_steps(self, action):
        action()


def test_support_is_given_per_foot_or_per_contact_point():
    sim = Simulator(sled(), NullSpace())
    command = SupportCommand(sim, Loop(), *parts_of(sim.robot))
    for held, expected in (
        ([1, 0], [1, 1, 1, 1, 0, 0, 0, 0]),
        ([0, 1], [0, 0, 0, 0, 1, 1, 1, 1]),
        ([1, 0, 0, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0, 1, 0]),
    ):
        assert command.take(held) is None
        sim.reset(pose(z=0.12))
        assert (sim.step([]).contacts.mode > 0).tolist() == np.array(expected, bool).tolist()
    assert 'left, right' in command.take([1, 1, 1])


# -------------------------------------------------------------------- who listens


def test_a_track_has_forces_per_foot_and_places_per_contact_point(tmp_path, turned_sled):
    sim, report = turned_sled
    messages = wrenches(sim.robot, report)
    stamps = (0, 1_000_000)
    observer = SimpleNamespace(
        joints={stamp: np.zeros(0) for stamp in stamps},
        bases={stamp: np.array(sim.q) for stamp in stamps},
        forces={
            foot.name: {stamp: vector(message.wrench.force) for stamp in stamps}
            for foot, message in zip(sim.robot.feet, messages, strict=True)
        },
    )
    track = Track(sim.robot, observer)
    assert track.force[1] == pytest.approx(report.feet.force, abs=1e-9)
    assert track.contact_point[1] == pytest.approx(report.contacts.position, abs=1e-9)
    middle = report.contacts.position.reshape(2, 4, 3).mean(axis=1)
    assert track.foot[0] == pytest.approx(middle, abs=1e-9)
    draw(sim.robot, track, ['a sled'], tmp_path / 'sled.png')
    assert (tmp_path / 'sled.png').stat().st_size > 10_000


def test_links_with_body_contacts_have_wrenches_of_their_own():
    """All wrenches together carry the robot that lies on its belly."""
    robot = load_robot('go1').with_body_contacts(['trunk'], most=8)
    sim = Simulator(robot)
    for _ in range(800):
        report = sim.step(np.zeros(12))
    sent = SentMessages()

    def publishing(frame, prefix):
        settings = {name: group() for name, group in PARAMETER_GROUPS.items()}
        settings[''] = NodeParameters(
            contact_links=('trunk',), contact_wrench_frame=frame, frame_prefix=prefix
        )
        sent.clear()
        topics = RobotTopics(*parts_of(robot), report, settings, sent, NODE)
        for output in topics.sensors:
            output.publish(Step(report, {'wrenches'}))
        (message,) = sent['contacts/trunk/wrench']
        return message

    trunk, feet = publishing('odom', ''), wrenches(robot, report, 'world')
    total = sum(vector(message.wrench.force) for message in (trunk, *feet))
    arms, forces = report.pairs.position, report.pairs.force
    assert total == pytest.approx(report.contacts.force.sum(axis=0) + forces.sum(axis=0))
    assert vector(trunk.wrench.force) == pytest.approx(forces.sum(axis=0))
    torque = np.cross(arms, forces).sum(axis=0)
    assert vector(trunk.wrench.torque) == pytest.approx(torque, abs=1e-9)
    (said,) = sent['link_contacts']
    assert [dim.label for dim in said.layout.dim] == ['trunk']
    assert list(said.data) == [int(forces[:, 2].sum() > 0.0)] == [1]
    assert publishing('foot', 'a_').header.frame_id == 'a_trunk'
