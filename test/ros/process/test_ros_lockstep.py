"""Lockstep over DDS: late, killed and silent controllers."""

import re
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import NODE, SECOND, Session, published_topics, stamp_of
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from contact_sim import load_robot
from contact_sim.ros._processes import Process, ros_arguments

STEP = SECOND // 1000
JOINTS = list(load_robot('go1').joint_names)
N = len(JOINTS)
FRONT = [name for name in JOINTS if name.startswith('F')]
HIND = [name for name in JOINTS if name.startswith('R')]

TOPICS = {
    topic: published_topics(())[topic] for topic in ('/clock', '/joint_states', '/diagnostics')
}
IN_TURN = {
    'start_paused': True,
    'real_time_factor': 0.0,
    'lockstep.enabled': True,
    'lockstep.period': 5,
    'lockstep.timeout': 30.0,
    'publish_rate.joint_states': 200.0,
}
TWO = {
    'lockstep.controllers': '[front, hind]',
    'lockstep.front.joints': f'[{", ".join(FRONT)}]',
    'lockstep.hind.joints': f'[{", ".join(HIND)}]',
}
GONE = 40.0
"""Wall seconds after which a process that said no goodbye is gone for DDS: more than its lease."""


def controller(session, joints, *options):
    """Start a controller of some joints (delayed_controller.py) as a process."""
    environment = session.domain | {'PYTHONPATH': str(Path(__file__).parents[2] / 'helpers')}
    return Process('delayed_controller', [*options, *joints], environment)


def distinct(session):
    """Return stamp to (positions, velocities, efforts) of joint_states, as exact bytes."""
    states = {}
    for message in session.messages['/joint_states']:
        value = np.array([message.position, message.velocity, message.effort]).tobytes()
        assert states.setdefault(stamp_of(message), value) == value  # a repetition is one
    return states


def trajectory(session, steps, delay, seeds):
    """Return joint_states by stamp of a run under two controllers that take their time.

    From the first stamp on; up to `delay` wall seconds for every command.
    """
    session.wait(
        lambda: session.node.count_publishers('/joint_commands') == 0, 'nobody else', GONE
    )
    session.reset()
    session.reset_time()
    session.settle()
    session.clear()
    front, hind = (
        controller(session, joints, '--delay', str(delay), '--seed', str(seed))
        for joints, seed in zip((FRONT, HIND), seeds, strict=True)
    )
    with front, hind:
        session.wait(
            lambda: (
                session.node.count_subscribers('/joint_states') == 3
                and session.node.count_publishers('/joint_commands') == 2
            ),
            'both controllers',
            60.0,
        )
        response = session.step(steps)
        assert response.success, response.message
        assert front.running
        assert hind.running
        last = (1 + steps) * STEP
        session.wait(lambda: session.time == last, 'the last tick')
        session.settle()
    assert session.diagnostics()['lockstep_timeouts'] == '0'
    return distinct(session)


def test_random_delays_of_two_controllers_change_no_bit(tmp_path):
    """0 to 50 ms at every step of either controller, and none at all."""
    with Session(tmp_path, TOPICS, IN_TURN | TWO) as session:
        session.started()
        first = trajectory(session, 200, 0.0, (1, 2))
        delayed = trajectory(session, 200, 0.05, (3, 4))
    moved = np.array([np.frombuffer(value)[:N] for value in first.values()])
    assert np.ptp(moved, axis=0).min() > 0.02  # every joint follows its controller
    assert list(first) == [k * STEP for k in range(5, 202, 5)]
    assert delayed == first


SETTINGS = {
    'lockstep.enabled': True,
    'lockstep.period': 4,
    'lockstep.timeout': 0.5,
    'lockstep.policy': 'hold',
    'real_time_factor': 1.0,
}
GOES_ON = 0.1
"""Pace that no machine falls short of, however busy; with a timeout in each period it is 0.01."""


@pytest.fixture(scope='module')
def simulation(tmp_path_factory):
    """Return a simulation in lockstep at its real pace; nobody commands it yet."""
    with Session(tmp_path_factory.mktemp('lockstep'), TOPICS, SETTINGS) as session:
        yield session.started()


@pytest.fixture
def session(simulation):
    """Return it as it was at its start, in whatever state a test before has left it."""
    assert simulation.set(SETTINGS).successful
    simulation.pause(False)
    simulation.reset()
    simulation.wait(said(simulation, 'lockstep_lost', ' '.join(JOINTS)), 'nobody to wait for')
    return simulation


def pace(session, seconds=1.0):
    """Return simulated over wall time from now on."""
    begin, wall = stamp_of(session.fresh('/clock')[-1]), time.perf_counter()
    session.spin(seconds)
    return 1e-9 * (session.time - begin) / (time.perf_counter() - wall)


def stance_controller(session):
    return Process(
        'contact_sim.ros.controllers.stance', ros_arguments({'robot': 'go1'}), session.domain
    )


def said(session, key, value):
    return lambda: session.diagnostics()[key] == value


@pytest.mark.real_time
def test_a_killed_controller_costs_its_timeout_and_time_goes_on(session):
    with stance_controller(session) as controller:
        session.wait(said(session, 'lockstep_lost', ''), 'the controller to be heard', 30.0)
        session.clear()
        session.spin(1.0)
        timeouts = int(session.diagnostics()['lockstep_timeouts'])
        session.spin(1.0)
        diagnostics = session.diagnostics()
        assert int(diagnostics['lockstep_timeouts']) == timeouts  # they understand each other
        controller.handle.kill()
        controller.handle.wait()
        killed = time.time_ns()
    session.wait(said(session, 'lockstep_timeouts', str(timeouts + 1)), 'the policy')
    diagnostics = session.diagnostics()
    assert diagnostics['level'] == 1
    assert re.search('lockstep: no command for FL_hip_joint.*; hold', diagnostics['message'])
    assert diagnostics['lockstep_lost'].split() == JOINTS
    assert GOES_ON < pace(session) < 1.2
    ticks = {}
    for message, sent in zip(session.messages['/clock'], session.sent['/clock'], strict=True):
        ticks.setdefault(stamp_of(message), sent)
    after = sorted(sent for sent in ticks.values() if sent > killed - SECOND)
    longest = 1e-9 * max(later - earlier for earlier, later in pairwise(after))
    assert 0.45 < longest < 2.0  # stood still for the timeout, once
    with stance_controller(session):
        session.wait(said(session, 'lockstep_lost', ''), 'a new controller to be heard', 30.0)
        assert GOES_ON < pace(session) < 1.2
        assert session.set({'real_time_factor': 0.0}).successful
        assert pace(session) > GOES_ON  # as fast as both of them can
        assert session.set({'real_time_factor': 1.0}).successful
    stamps = list(ticks)
    assert {later - earlier for earlier, later in pairwise(stamps)} == {STEP}


def test_nobody_there_the_policy_pause_stops_until_somebody_is(session):
    assert session.set({'lockstep.policy': 'pause', 'lockstep.timeout': 0.3}).successful
    commands = session.node.create_publisher(JointState, 'joint_commands', 10)
    session.wait_for_subscriber(commands)
    commands.publish(JointState(name=JOINTS, effort=[0.0] * N))  # somebody speaks, then no more
    session.wait(said(session, 'paused', 'True'), 'the pause')
    assert 'lockstep: no command for' in session.diagnostics()['message']
    stopped = session.time
    assert pace(session, 0.5) == 0.0
    states = session.listen('/joint_states', TOPICS['/joint_states'])
    session.pause(False)
    session.wait(lambda: states, 'the state at which it goes on')
    assert stamp_of(states[0]) == stopped
    answer = JointState(name=JOINTS, effort=[0.0] * N)
    answer.header.stamp = states[0].header.stamp
    commands.publish(answer)
    session.wait(lambda: session.time > stopped, 'steps')
    session.wait(lambda: session.time == stopped + 4 * STEP, 'the next instant')


def waits_for(session, speak):
    """Have somebody speak once; return the instant [ns] at which the loop waits for more."""
    assert session.set({'lockstep.timeout': 30.0}).successful
    speak()

    def stands():
        before = session.time
        session.spin(0.1)
        return session.time == before

    session.wait(stands, 'the next instant')
    assert session.time % (4 * STEP) == 0
    return session.time


def test_who_subscribes_while_commands_are_awaited_gets_the_state(session):
    """A controller that was started again: others have commanded its joints before."""
    commands = session.node.create_publisher(JointState, 'joint_commands', 10)
    session.wait_for_subscriber(commands)
    answer = JointState(name=JOINTS, effort=[0.0] * N)
    stopped = waits_for(session, lambda: commands.publish(answer))
    session.spin(0.5)
    states = session.listen('/joint_states', TOPICS['/joint_states'])
    session.wait(lambda: states, 'the state from which the next step is taken')
    assert {stamp_of(state) for state in states} == {stopped}
    answer.header.stamp = states[0].header.stamp
    commands.publish(answer)
    session.wait(lambda: session.time == stopped + 4 * STEP, 'the next instant')


def test_acknowledgements_take_steps_too(session):
    acknowledgements = session.node.create_publisher(Header, f'{NODE}/lockstep_ack', 10)
    session.wait_for_subscriber(acknowledgements)
    first = waits_for(session, lambda: acknowledgements.publish(Header()))
    for k in range(1, 11):
        session.spin(0.02)
        assert session.time == first + (k - 1) * 4 * STEP
        ack = Header()
        ack.stamp.sec, ack.stamp.nanosec = divmod(session.time, SECOND)
        acknowledgements.publish(ack)
        session.wait(lambda k=k: session.time == first + k * 4 * STEP, 'the next instant')


def test_efforts_without_a_stamp_take_steps_too(session):
    efforts = session.node.create_publisher(
        Float64MultiArray, 'joint_group_effort_controller/commands', 10
    )
    session.wait_for_subscriber(efforts)
    first = waits_for(session, lambda: efforts.publish(Float64MultiArray(data=[0.0] * N)))
    for k in range(1, 6):
        efforts.publish(Float64MultiArray(data=[0.0] * N))
        session.wait(lambda k=k: session.time == first + k * 4 * STEP, 'the next instant')
