"""Two robots in one world over DDS: what each has of its own, what they share, their lockstep."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from ros_session import NODE, SECOND, Session, published_topics, stamp_of, vector
from std_msgs.msg import Float64MultiArray

from contact_sim import joined, load_robot
from contact_sim.replay import Recording, repeat
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.topics._table import OF_ROBOT, OF_WORLD, SUBSCRIBED, own_topic, wrench_topic

STEP, STEPS = SECOND // 1000, 240
ROBOTS = {'a': load_robot('go1'), 'b': load_robot('anymal_b')}
PARTS = parts_of(joined(ROBOTS))
SETTINGS = {
    'robots': '[a=go1, "b=anymal_b@1.5,0,0.3"]',
    'start_paused': True,
    'real_time_factor': 0.0,
    'publish_rate.joint_states': 1000.0,
    'publish_rate.odom': 1000.0,
    'publish_rate.wrenches': 1000.0,
}
LOCKSTEP = {
    'lockstep.enabled': True,
    'lockstep.period': 4,
    'lockstep.timeout': 60.0,
}
WORLD = {topic: published_topics(())[topic] for topic in ('/clock', '/diagnostics')}
STATES = {f'/{name}/{topic}': OF_ROBOT[topic] for name in ROBOTS for topic in
          ('joint_states', 'odom')}  # fmt: skip
WRENCH = f'/b/{wrench_topic(ROBOTS["b"].feet[0].name)}'
TOPICS = WORLD | STATES | {WRENCH: 'geometry_msgs/msg/WrenchStamped'}


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp('robots')
    with Session(folder, TOPICS, SETTINGS | {'record': folder / 'run.npz'}) as session:
        yield session.started()


def last(session, topic, time):
    """Return the message of a topic that speaks of a time [ns]."""
    messages = session.messages[topic]
    session.wait(lambda: messages and stamp_of(messages[-1]) >= time, f'{topic} at {time}')
    return next(message for message in messages if stamp_of(message) == time)


def stepped(session, count):
    """Take steps; return odometry and joint states of the last one by robot."""
    session.fresh('/clock')
    time = session.time + count * STEP
    assert session.step(count).success
    return {
        name: (last(session, f'/{name}/odom', time), last(session, f'/{name}/joint_states', time))
        for name in ROBOTS
    }


def absolute(name, topic):
    return '/' + own_topic(name, topic, NODE).replace('~', NODE).lstrip('/')


def test_each_robot_has_its_topics_and_the_world_its_own(session):
    expected = {absolute('', topic): kind for topic, kind in OF_WORLD.items()}
    for name, robot in ROBOTS.items():
        for topic, kind in (OF_ROBOT | SUBSCRIBED).items():
            feet = [foot.name for foot in robot.feet] if '<foot>' in topic else ['']
            for foot in feet:
                own = topic.replace('contacts/<foot>/wrench', wrench_topic(foot))
                expected[absolute(name, own)] = kind

    def said():
        seen = session.node.get_topic_names_and_types()
        return {topic: kinds[0] for topic, kinds in seen}

    session.wait(lambda: expected.items() <= said().items(), 'all topics')
    others = said().keys() - expected.keys()
    assert others <= {'/rosout', '/parameter_events', '/tf', '/tf_static', f'/{NODE}/grid_map'}


def test_every_robot_speaks_of_itself(session):
    states = stepped(session, 20)
    for name, robot in ROBOTS.items():
        odom, joints = states[name]
        assert (odom.header.frame_id, odom.child_frame_id) == ('odom', f'{name}/base')
        assert tuple(joints.name) == robot.joint_names
    a, b = (vector(states[name][0].pose.pose.position) for name in ROBOTS)
    assert b[:2] - a[:2] == pytest.approx([1.5, 0.0], abs=0.02)
    assert b[2] - a[2] == pytest.approx(0.2143, abs=0.02)
    quaternion = states['b'][0].pose.pose.orientation
    assert 2.0 * np.arctan2(quaternion.z, quaternion.w) == pytest.approx(0.3, abs=0.01)
    assert session.messages[WRENCH][-1].header.frame_id == f'b/{ROBOTS["b"].feet[0].frame}'


def test_commands_and_pushes_and_poses_are_of_one_robot(session):
    efforts = session.node.create_publisher(
        Float64MultiArray, '/b/joint_group_effort_controller/commands', 1
    )
    session.wait_for_subscriber(efforts)
    accepted = int(session.diagnostics()['commands_accepted'])
    efforts.publish(Float64MultiArray(data=[0.5] * 12))
    session.wait(
        lambda: int(session.diagnostics()['commands_accepted']) == accepted + 1, 'the command'
    )
    told = session.diagnostics()
    assert told['a/command_age'] == 'none' != told['b/command_age']
    states = stepped(session, 1)
    assert list(states['b'][1].effort) == pytest.approx([0.5] * 12)
    assert np.abs(np.array(states['a'][1].effort) - 0.5).min() > 1e-3

    pushes = session.node.create_publisher(WrenchStamped, '/a/external_wrench', 1)
    places = session.node.create_publisher(Odometry, '/b/contact_sim/set_odom', 1)
    for publisher in (pushes, places):
        session.wait_for_subscriber(publisher)
    place = Odometry()
    place.pose.pose.position.x, place.pose.pose.position.z = 3.0, 1.0
    place.pose.pose.orientation.w = 1.0
    before = vector(states['a'][0].pose.pose.position)
    places.publish(place)
    session.wait(lambda: session.messages['/b/odom'][-1].pose.pose.position.x == 3.0, 'b there')
    push = WrenchStamped()
    push.header.frame_id, push.wrench.force.y = 'a/base', 300.0
    pushes.publish(push)
    session.wait(lambda: session.diagnostics()['pushes_accepted'] == '1', 'the push')
    after = stepped(session, 20)
    a, b = (vector(after[name][0].pose.pose.position) for name in ROBOTS)
    assert a[1] - before[1] > 1e-3
    assert a[0] == pytest.approx(before[0], abs=5e-3)
    assert b[:2] == pytest.approx([3.0, 0.0], abs=1e-3)
    assert b[2] == pytest.approx(1.0 - 0.5 * 9.81 * 0.02**2, abs=5e-4)  # it falls freely


def test_two_controllers_in_lockstep_are_repeated_to_the_bit(session):
    """A step from an instant is taken when the controllers of both robots have spoken."""
    assert session.set(LOCKSTEP | {'real_time_factor': 0.0}).successful
    session.reset()
    session.reset_time()
    session.settle()
    session.clear()
    controllers = [
        Process(
            'contact_sim.ros.controllers.stance',
            [*ros_arguments({'robot': robot.name}), '-r', f'__ns:=/{name}'],
            session.domain,
        )
        for name, robot in ROBOTS.items()
    ]
    with controllers[0], controllers[1]:
        for name in ROBOTS:
            session.wait(
                lambda name=name: session.node.count_publishers(f'/{name}/joint_commands'),
                'both controllers', 120.0,
            )  # fmt: skip
        assert session.step(STEPS, timeout=300.0).success
        assert all(controller.running for controller in controllers)
    told = session.diagnostics()
    assert told['lockstep_timeouts'] == '0'
    assert int(told['commands_accepted']) >= 2 * STEPS // 4
    for name, robot in ROBOTS.items():
        end = last(session, f'/{name}/odom', (1 + STEPS) * STEP).pose.pose.position
        place = {'a': [0.0, 0.0], 'b': [1.5, 0.0]}[name]
        assert [end.x, end.y] == pytest.approx(place, abs=0.02)
        assert end.z == pytest.approx(robot.reference_configuration()[2], abs=0.02)
    states = {
        name: {stamp_of(message): message for message in session.messages[f'/{name}/joint_states']}
        for name in ROBOTS
    }
    reports = []
    recording = Recording(session.folder / 'run.npz')
    outcome = repeat(recording, lambda step: reports.append(step.report))
    assert outcome.difference == ''
    loaded = 0
    for report in reports[-STEPS:]:
        for part in PARTS:
            message = states[part.name][round(report.time * SECOND)]
            assert message.effort.tobytes() == report.effort[part.joints].tobytes()
            position = part.robot.joint_positions(report.q[part.q])
            assert message.position.tobytes() == position.tobytes()
            loaded += np.abs(message.effort).max() > 1.0  # from the second step on or so
    assert loaded > 1.5 * STEPS


def test_a_robot_that_does_not_exist_ends_the_node_with_the_reason(tmp_path):
    arguments = ros_arguments({'robots': '["a=go1", "a=nosuch"]'})
    process = Process('contact_sim.ros.simulation_node', arguments, log=tmp_path / 'log')
    assert process.handle.wait(120.0) == 1
    assert "robots: 'a=nosuch': the name 'a' is taken by 'go1'" in process.output()
    assert 'Traceback' not in process.output()
