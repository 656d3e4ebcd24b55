"""Lockstep: which command acts when, whatever arrives when."""

import re
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from hypothesis import given
from hypothesis import strategies as st
from ros_session import NODE, SECOND, Session, published_topics, stamp_of
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header

from contact_sim import load_robot
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.ros.commands.inbox import CommandInbox
from contact_sim.ros.commands.lockstep import SLICE, Lockstep, Verdict, owned_joints
from contact_sim.ros.remote.processes import Process, ros_arguments
from contact_sim.ros.settings.declarations import ControllerParameters, LockstepParameters

pytestmark = pytest.mark.ros

STEP = SECOND // 1000
ROBOT = load_robot('go1')
JOINTS = list(ROBOT.joint_names)
N = len(JOINTS)
FRONT = [name for name in JOINTS if name.startswith('F')]
HIND = [name for name in JOINTS if name.startswith('R')]


# -------------------------------------------------------------------- without a network


class Rig:
    """An inbox and its lockstep, as the loop and the callbacks of the node use them."""

    def __init__(self, owned=None, **parameters):
        self.inbox = CommandInbox(JOINTS, np.zeros(N), np.full(N, 50.0), np.full(N, 2.0))
        self.said = []
        settings = {'lockstep': LockstepParameters(controllers=tuple(owned or ()))}
        for name, joints in (owned or {}).items():
            settings[f'lockstep.{name}'] = ControllerParameters(joints=tuple(joints))
        masks = owned_joints(settings, JOINTS)
        self.lockstep = Lockstep(self.inbox, JOINTS, masks, self.said.append)
        values = {'enabled': True, 'timeout': 0.05, **parameters}
        self.lockstep.configure(LockstepParameters(**values), 0)

    def command(self, stamp, effort, joints=JOINTS):
        return self.inbox.take_joint_state(joints, [], [], [effort] * len(joints), stamp)

    def verdict(self, now, tick=0):
        return self.lockstep.verdict(now, tick)

    def patiently(self, now):
        """Return the verdict once it is no longer to wait."""
        while (verdict := self.verdict(now)) is Verdict.WAIT:
            pass
        return verdict

    @property
    def effort(self):
        return self.inbox.current.effort.tolist()


def test_nothing_is_stepped_without_its_command():
    rig = Rig(timeout=10.0)
    begin = time.perf_counter()
    assert rig.verdict(5) is Verdict.WAIT
    assert 0.9 * SLICE < time.perf_counter() - begin < 1.0
    rig.command(4, 1.0)  # an older one will not do
    assert rig.verdict(5) is Verdict.WAIT
    assert rig.effort == [0.0] * N  # nor does it act
    rig.command(5, 2.0)
    assert rig.verdict(5) is Verdict.STEP
    assert rig.effort == [2.0] * N
    assert rig.lockstep.timeouts == 0


def test_a_command_ends_the_wait_at_once():
    rig = Rig(timeout=10.0)
    quickest = SLICE
    for now in range(1, 11):
        timer = threading.Timer(0.3 * SLICE, rig.command, (now, 1.0))
        timer.start()
        begin = time.perf_counter()
        assert rig.patiently(now) is Verdict.STEP
        quickest = min(quickest, time.perf_counter() - begin)
        timer.join()
    assert quickest < 0.8 * SLICE


def test_only_every_period_needs_a_command():
    rig = Rig(period=3, timeout=10.0)
    assert [rig.verdict(5, tick) for tick in range(4)] == [
        Verdict.WAIT, Verdict.STEP, Verdict.STEP, Verdict.WAIT,
    ]  # fmt: skip


def test_every_joint_of_every_controller_is_needed():
    rig = Rig({'front': FRONT, 'hind': HIND[:5]}, timeout=10.0)
    rig.command(5, 1.0, FRONT)
    assert rig.verdict(5) is Verdict.WAIT
    assert set(rig.lockstep.awaited_joints) == set(HIND[:5])
    rig.command(5, 2.0, HIND[:2])
    assert rig.verdict(5) is Verdict.WAIT
    rig.command(7, 3.0, HIND[2:5])
    assert rig.verdict(5) is Verdict.STEP
    assert rig.effort == [1.0] * 6 + [2.0, 2.0, 3.0, 3.0, 3.0, 0.0]


def test_a_command_ahead_of_time_serves_until_its_stamp():
    rig = Rig(timeout=10.0)
    rig.command(7, 1.0)
    rig.command(8, 2.0)
    efforts = []
    for now in (5, 6, 7, 8):
        assert rig.verdict(now) is Verdict.STEP
        efforts.append(rig.effort[0])
    assert efforts == [1.0, 1.0, 1.0, 2.0]
    assert rig.verdict(9) is Verdict.WAIT


def test_the_first_command_of_an_instant_acts_and_a_repetition_does_not():
    """A second one may come before or after the step: neither may make a difference."""
    rig = Rig(timeout=10.0)
    rig.command(5, 1.0)
    rig.command(5, 2.0)
    assert rig.verdict(5) is Verdict.STEP
    rig.command(5, 3.0)
    assert rig.effort == [1.0] * N
    assert rig.verdict(6) is Verdict.WAIT
    assert rig.lockstep.late == 1


@st.composite
def arrivals(draw):
    """Draw an order in which the commands of two controllers for four instants may arrive.

    Each controller's own commands keep their order, as the network guarantees it.
    """
    who = draw(st.permutations([FRONT] * 4 + [HIND] * 4))
    sent = {id(FRONT): 0, id(HIND): 0}
    order = []
    for joints in who:
        sent[id(joints)] += 1
        order.append((joints, sent[id(joints)]))
    return order


@given(arrivals())
def test_what_acts_does_not_depend_on_the_order_of_arrival(order):
    rig = Rig({'front': FRONT, 'hind': HIND}, timeout=100.0)
    waiting, efforts = list(order), []
    for now in (1, 2, 3, 4):
        while not {(tuple(FRONT), now), (tuple(HIND), now)} <= {
            (tuple(joints), stamp) for joints, stamp in order[: len(order) - len(waiting)]
        }:
            joints, stamp = waiting.pop(0)
            rig.command(stamp, stamp + (0.5 if joints is HIND else 0.0), joints)
        assert rig.verdict(now) is Verdict.STEP
        efforts.append(rig.effort)
    assert efforts == [[float(k)] * 6 + [k + 0.5] * 6 for k in (1, 2, 3, 4)]


def test_an_acknowledgement_leaves_the_command_in_force():
    rig = Rig({'front': FRONT, 'hind': HIND}, timeout=10.0)
    rig.command(5, 1.0, FRONT)
    rig.command(5, 1.0, HIND)
    assert rig.verdict(5) is Verdict.STEP
    rig.command(6, 2.0, FRONT)
    rig.lockstep.acknowledge('hind', 6)
    assert rig.verdict(6) is Verdict.STEP
    assert rig.effort == [2.0] * 6 + [1.0] * 6
    rig.lockstep.acknowledge('', 9)  # for everybody
    assert [rig.verdict(now) for now in (7, 8, 9, 10)] == [Verdict.STEP] * 3 + [Verdict.WAIT]
    with pytest.raises(UnknownName, match=r"'tail'.*front, hind"):
        rig.lockstep.acknowledge('tail', 9)


def test_a_message_without_a_stamp_is_for_the_next_instant():
    rig = Rig(timeout=10.0)
    assert rig.inbox.take_efforts([4.0] * N) is None
    assert rig.verdict(5) is Verdict.STEP
    assert rig.effort == [4.0] * N
    assert rig.verdict(6) is Verdict.WAIT
    rig.command(0, 5.0)
    assert rig.verdict(6) is Verdict.STEP
    assert rig.effort == [5.0] * N


@pytest.mark.parametrize(('policy', 'expected'), [('hold', 1.0), ('zero', 0.0)])
def test_after_the_timeout_the_policy_holds_until_the_controller_speaks_again(policy, expected):
    rig = Rig({'front': FRONT, 'hind': HIND}, policy=policy, timeout=0.1)
    for joints in (FRONT, HIND):
        rig.inbox.take_joint_state(joints, [0.2] * 6, [], [1.0] * 6, 5)
    assert rig.verdict(5) is Verdict.STEP
    begin = time.perf_counter()
    rig.command(6, 3.0, FRONT)
    assert rig.patiently(6) is Verdict.STEP
    assert 0.1 <= time.perf_counter() - begin < 0.6
    assert rig.effort == [3.0] * 6 + [expected] * 6
    assert rig.inbox.current.stiffness.tolist() == [0.0] * 6 + [50.0 * expected] * 6
    assert rig.lockstep.lost_joints == rig.lockstep.silent_joints == tuple(HIND)
    assert len(rig.said) == 1
    assert 'no command for RL_hip_joint' in rig.said[0]
    assert policy in rig.said[0]
    for now in (7, 8, 9):
        assert rig.verdict(now) is Verdict.WAIT  # the other one is still waited for
        rig.command(now, 4.0, FRONT)
        assert rig.verdict(now) is Verdict.STEP
    rig.command(7, 9.0, HIND)  # late, so it does not act; but it is back
    assert rig.lockstep.late == 1
    assert rig.lockstep.lost_joints == rig.lockstep.silent_joints == ()
    assert rig.effort == [4.0] * 6 + [expected] * 6
    rig.command(10, 5.0, FRONT)
    assert rig.verdict(10) is Verdict.WAIT
    rig.command(10, 6.0, HIND)
    assert rig.verdict(10) is Verdict.STEP
    assert rig.effort == [5.0] * 6 + [6.0] * 6
    assert rig.lockstep.timeouts == 1


def test_the_policy_pause_takes_no_step():
    rig = Rig(policy='pause')
    assert rig.patiently(5) is Verdict.PAUSE
    assert rig.lockstep.silent_joints == tuple(JOINTS)
    assert rig.patiently(5) is Verdict.PAUSE  # asked again, it waits again
    rig.command(5, 1.0)
    assert rig.verdict(5) is Verdict.STEP
    assert rig.lockstep.silent_joints == ()


def test_a_controller_that_has_not_spoken_yet_may_take_its_time():
    rig = Rig(timeout=0.03, start_timeout=0.2)
    begin = time.perf_counter()
    assert rig.patiently(5) is Verdict.STEP
    assert 0.2 <= time.perf_counter() - begin < 0.7
    rig.command(6, 1.0)
    assert rig.verdict(6) is Verdict.STEP
    begin = time.perf_counter()
    assert rig.patiently(7) is Verdict.STEP
    assert 0.03 <= time.perf_counter() - begin < 0.19


def test_a_restart_forgets_commands_and_refuses_those_of_another_time():
    rig = Rig(timeout=10.0)
    assert rig.verdict(10 * SECOND) is Verdict.WAIT
    rig.command(10 * SECOND, 1.0)
    rig.lockstep.restart(STEP)  # time was set back
    assert 'ahead' in rig.command(10 * SECOND + 1, 2.0)
    assert rig.verdict(STEP) is Verdict.WAIT
    rig.command(STEP, 3.0)
    assert rig.verdict(STEP) is Verdict.STEP
    assert rig.effort == [3.0] * N


def test_an_answer_from_before_a_reset_of_time_is_no_command_ahead_of_time():
    """It would act at every instant until time gets there; one of the time to come does."""
    rig = Rig(timeout=10.0)
    rig.command(8 * STEP, 1.0)
    assert rig.verdict(8 * STEP, 8) is Verdict.STEP
    rig.lockstep.restart(10 * STEP, told=9 * STEP)  # the state of 9 is being answered
    rig.lockstep.restart(STEP, told=10 * STEP)  # that of 10, too
    for late, stamp in enumerate((9, 10), start=1):
        assert rig.command(stamp * STEP, 2.0) is None
        assert rig.lockstep.late == late
    assert rig.verdict(2 * STEP, 2) is Verdict.WAIT
    rig.command(7 * STEP, 3.0)  # ahead of time
    for tick in range(2, 8):
        assert rig.verdict(tick * STEP, tick) is Verdict.STEP
        assert rig.effort == [3.0] * N
    assert rig.command(9 * STEP, 4.0) is None  # early, as answers to what has not been told are
    assert rig.verdict(8 * STEP, 8) is Verdict.WAIT
    rig.command(9 * STEP, 5.0)
    assert rig.verdict(8 * STEP, 8) is Verdict.STEP
    assert rig.effort == [5.0] * N


def test_switched_off_commands_act_at_once():
    rig = Rig(timeout=10.0)
    rig.command(5, 1.0)
    rig.lockstep.configure(LockstepParameters(enabled=False), 3)
    assert rig.effort == [0.0] * N
    rig.command(0, 2.0)
    assert rig.effort == [2.0] * N
    rig.lockstep.configure(LockstepParameters(enabled=True, timeout=10.0), 4)
    assert rig.verdict(4) is Verdict.WAIT  # what was there before does not count


def test_garbage_is_refused_and_nobody_waits_less():
    rig = Rig({'front': FRONT}, timeout=10.0)
    assert "'RL_hip_joint' belongs to no controller" in rig.command(5, 1.0)
    assert 'nan' in rig.command(5, np.nan, FRONT)
    assert 'unknown joint' in rig.command(5, 1.0, ['tail'])
    assert rig.inbox.dropped == 3
    assert rig.verdict(5) is Verdict.WAIT


def test_a_flood_is_bounded():
    rig = Rig(timeout=10.0)
    refusals = [rig.command(5 + k, 1.0) for k in range(1100)]
    assert refusals[:1000] == [None] * 1000
    assert all('waiting for their instant' in refusal for refusal in refusals[1000:])


@pytest.mark.parametrize(
    ('owned', 'error', 'reason'),
    [
        ({'legs': ['FL_knee']}, UnknownName, 'lockstep.legs.joints.*FL_knee'),
        ({'legs': []}, InvalidInput, 'lockstep.legs.joints is empty'),
        ({'a': FRONT, 'b': FRONT[:1]}, InvalidInput, "b.joints: joint 'FL_hip_joint'.*'a' too"),
    ],
)
def test_ownership_that_makes_no_sense_is_refused(owned, error, reason):
    with pytest.raises(error, match=reason):
        Rig(owned)


# -------------------------------------------------------------------- over DDS

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


def trajectory(folder, steps, delays, factor=0.0):
    """Return joint_states by stamp of a run under two controllers that take their time."""
    with Session(folder, TOPICS, IN_TURN | TWO | {'real_time_factor': factor}) as session:
        session.started()
        delay, *seeds = delays
        with (
            controller(session, FRONT, '--delay', str(delay), '--seed', str(seeds[0])) as front,
            controller(session, HIND, '--delay', str(delay), '--seed', str(seeds[1])) as hind,
        ):
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
    runs = [
        trajectory(tmp_path, 200, delays) for delays in ((0.0, 1, 2), (0.05, 1, 2), (0.05, 3, 4))
    ]
    first = runs[0]
    moved = np.array([np.frombuffer(value)[:N] for value in first.values()])
    assert np.ptp(moved, axis=0).min() > 0.02  # every joint follows its controller
    assert list(first) == [k * STEP for k in range(5, 202, 5)]
    assert runs[1] == first
    assert runs[2] == first


SETTINGS = {
    'lockstep.enabled': True,
    'lockstep.period': 4,
    'lockstep.timeout': 0.5,
    'lockstep.policy': 'hold',
    'real_time_factor': 1.0,
}


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
    assert 0.4 < pace(session) < 1.2  # slower where the machine is busy
    ticks = {}
    for message, sent in zip(session.messages['/clock'], session.sent['/clock'], strict=True):
        ticks.setdefault(stamp_of(message), sent)
    after = sorted(sent for sent in ticks.values() if sent > killed - SECOND)
    longest = 1e-9 * max(later - earlier for earlier, later in pairwise(after))
    assert 0.45 < longest < 2.0  # stood still for the timeout, once
    with stance_controller(session):
        session.wait(said(session, 'lockstep_lost', ''), 'a new controller to be heard', 30.0)
        assert 0.4 < pace(session) < 1.2  # slower where the machine is busy
        assert session.set({'real_time_factor': 0.0}).successful
        assert pace(session) > 0.4  # as fast as both of them can
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
