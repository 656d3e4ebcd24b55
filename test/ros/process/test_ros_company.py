"""Not alone: two simulations in one domain, one of them in a namespace, and a frozen listener."""

import signal
from itertools import pairwise

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from ros_session import NODE, SECOND, SEEN, START_TIMEOUT, Session, published_topics, stamp_of
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from contact_sim import load_robot
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.topics._table import PUBLISHED

STEP = SECOND // 1000
GO1, SOLO12 = load_robot('go1'), load_robot('solo12')
OTHER = '/other'
SHARED = ('/clock', '/diagnostics')
SILENT = ('shadow', 'terrain')
"""Nobody asks other models; the ground stays."""
EFFORTS = 'joint_group_effort_controller/commands'


def relative_topics(robot, namespace=''):
    """Return topic to type of what a simulation publishes in its namespace."""
    topics = published_topics(tuple(foot.name for foot in robot.feet))
    return {f'{namespace}{topic}': topics[topic] for topic in topics if topic not in SHARED}


HERE, THERE = relative_topics(GO1), relative_topics(SOLO12, OTHER)
TOPICS = HERE | THERE | {'/diagnostics': PUBLISHED['/diagnostics']}


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    """Return go1 without a namespace and solo12 in one, both paused."""
    folder = tmp_path_factory.mktemp('company')
    with Session(folder, TOPICS, {'start_paused': True}) as session:
        arguments = ros_arguments({'robot': 'solo12', 'start_paused': True})
        arguments += ['-r', f'__ns:={OTHER}']
        log = folder / 'other.log'
        with Process('contact_sim.ros.simulation_node', arguments, session.domain, log):
            session.started()
            session.wait(lambda: len(states(session)) == 2, 'two voices', START_TIMEOUT)
            yield session


@pytest.fixture
def quiet(session):
    listen(session)
    session.clear()
    return session


def states(session):
    """Return the values of the last /diagnostics of each simulation, by its name."""
    last = {
        message.status[0].name: message.status[0] for message in session.messages['/diagnostics']
    }
    return {
        name: {value.key: value.value for value in status.values} for name, status in last.items()
    }


def fresh_states(session):
    """Return what both simulations say about themselves from now on."""
    session.clear()
    session.wait(lambda: len(states(session)) == 2, 'two voices')
    return states(session)


def listen(session):
    """Listen until both simulations, paused, have been silent for half a second."""
    seen = -1
    while seen != (seen := sum(len(session.messages[topic]) for topic in HERE | THERE)):
        session.spin(0.5)


def step_there(session):
    return session.call(f'{OTHER}/{NODE}/step', Trigger, Trigger.Request())


def set_there(session, **values):
    request = SetParametersAtomically.Request(
        parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
    )
    name = f'{OTHER}/{NODE}/set_parameters_atomically'
    return session.call(name, SetParametersAtomically, request).result


def heard(session, topics):
    return {topic for topic in topics if session.messages[topic]}


def test_the_namespace_stands_before_every_relative_name(session):
    seen = dict(session.node.get_topic_names_and_types())
    assert {topic: seen.get(topic) for topic in THERE} == {t: [k] for t, k in THERE.items()}
    assert all(session.node.count_publishers(topic) == 1 for topic in HERE | THERE)
    assert all(session.node.count_publishers(topic) == 2 for topic in SHARED)
    services = dict(session.node.get_service_names_and_types())
    assert {f'{OTHER}/{NODE}/{name}' for name in ('pause', 'reset', 'step')} <= set(services)


def test_diagnostics_tell_the_two_apart(session):
    assert set(fresh_states(session)) == {f'{NODE}: simulation', f'other/{NODE}: simulation'}


def test_diagnostics_come_once_a_second(session):
    """From the node as it is, which is the other one: see talkative_node.py."""

    def times():
        told = zip(session.messages['/diagnostics'], session.sent['/diagnostics'], strict=True)
        return [sent for message, sent in told if message.status[0].name.startswith('other/')]

    session.clear()
    session.wait(lambda: len(times()) >= 2, 'the other one twice')
    first, second = times()[:2]
    assert 0.9 < 1e-9 * (second - first) < 3.0  # later on a busy machine


def test_a_step_of_one_is_no_step_of_the_other(quiet):
    assert set_there(quiet, step_count=200).successful
    assert step_there(quiet).success
    said = set(THERE) - {f'{OTHER}/{NODE}/{name}' for name in SILENT}
    said -= {f'{OTHER}{topic}' for topic in SEEN}
    quiet.wait(lambda: heard(quiet, THERE) >= said, 'what it has to say')
    listen(quiet)
    assert heard(quiet, THERE | HERE) == said
    assert tuple(quiet.messages[f'{OTHER}/joint_states'][-1].name) == SOLO12.joint_names
    quiet.clear()
    assert quiet.step(200).success
    said = set(HERE) - {f'/{NODE}/{name}' for name in SILENT} - SEEN
    quiet.wait(lambda: heard(quiet, HERE) >= said, 'what it has to say')
    listen(quiet)
    assert heard(quiet, THERE | HERE) == said
    assert tuple(quiet.messages['/joint_states'][-1].name) == GO1.joint_names


def test_a_command_of_one_is_none_of_the_other(quiet):
    before = fresh_states(quiet)
    publisher = quiet.node.create_publisher(Float64MultiArray, f'{OTHER}/{EFFORTS}', 1)
    quiet.wait_for_subscriber(publisher)
    publisher.publish(Float64MultiArray(data=[0.1] * SOLO12.n_joints))
    here, there = f'{NODE}: simulation', f'other/{NODE}: simulation'
    quiet.wait(lambda: states(quiet)[there]['command_age'] != 'none', 'the command')
    after = fresh_states(quiet)
    assert int(after[there]['commands_accepted']) == int(before[there]['commands_accepted']) + 1
    assert after[here]['commands_accepted'] == before[here]['commands_accepted']


def test_parameters_are_each_ones_own(quiet):
    assert set_there(quiet, **{'contact.model': 'lcp'}).successful
    after = fresh_states(quiet)
    assert after[f'other/{NODE}: simulation']['contact_model'] == 'lcp'
    assert after[f'{NODE}: simulation']['contact_model'] == 'ncp'


# -------------------------------------------------------------------- a listener that stops


@pytest.mark.real_time
def test_a_frozen_listener_costs_no_message(tmp_path):
    """A controller that has stopped reading: reliable must not mean that all wait for it."""
    topics = {topic: PUBLISHED[topic] for topic in SHARED} | {
        '/joint_states': HERE['/joint_states']
    }
    with Session(tmp_path, topics, {'start_paused': True}) as session:
        session.started()
        arguments = ros_arguments({'robot': 'go1'})
        with Process(
            'contact_sim.ros.controllers.stance', arguments, session.domain, tmp_path / 'c.log'
        ) as controller:
            session.wait(
                lambda: session.node.count_subscribers('joint_states') == 2, 'the controller', 60.0
            )
            session.wait(
                lambda: session.step(100) and session.diagnostics()['commands_accepted'] != '0',
                'commands of the controller',
                60.0,
            )
            controller.handle.send_signal(signal.SIGSTOP)
            try:
                session.settle()
                session.clear()
                (begin,) = session.fresh('/clock')
                for k in range(1, 4):
                    assert session.step(1000).success
                    end = stamp_of(begin) + k * SECOND
                    session.wait(lambda end=end: session.time == end, 'the last tick')
                session.settle()
            finally:
                controller.handle.send_signal(signal.SIGCONT)
            values = session.diagnostics()
            assert values['messages_lost'] == '0'
            stamps = sorted({stamp_of(message) for message in session.messages['/clock']})
            assert stamps[0] == stamp_of(begin)
            assert {later - earlier for earlier, later in pairwise(stamps)} == {STEP}
            assert len(stamps) == 3001
            assert len(session.messages['/joint_states']) == 750
