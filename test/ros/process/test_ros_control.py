"""Time under control: pause, step and reset, over services and topics."""

import re
import time
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import NODE, SECOND, SEEN, Session, published_topics, stamp_of, vector
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker

from contact_sim import load_robot

STEP = SECOND // 1000
ROBOT = load_robot('go1')
FEET = tuple(foot.name for foot in ROBOT.feet)
TOPICS = published_topics(FEET)


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    with Session(tmp_path_factory.mktemp('control'), TOPICS, {'start_paused': True}) as session:
        yield session.started()


@pytest.fixture
def paused(session):
    """Return the session paused, standing, at its default parameters."""
    session.set(real_time_factor=1.0, initial_height=0.0, step_count=1)
    session.pause()
    session.reset()
    session.settle()
    session.fresh('/clock', 2)
    session.clear()
    session.fresh('/clock')
    return session


def ticks(session):
    """Return the distinct stamps of /clock in the order of arrival [ns]."""
    stamps = [stamp_of(message) for message in session.messages['/clock']]
    return stamps[:1] + [later for earlier, later in pairwise(stamps) if later != earlier]


def test_the_clock_is_alive_and_positive_before_the_first_step(session):
    begin = time.perf_counter()
    stamps = {stamp_of(message) for message in session.fresh('/clock', 20)}
    assert time.perf_counter() - begin < 2.0  # at least 10 Hz
    assert stamps == {STEP}


@pytest.mark.parametrize('count', [1, 7, 300])
def test_steps_are_exact(paused, count):
    begin = paused.time
    response = paused.step(count)
    assert response.success, response.message
    paused.settle()
    paused.fresh('/clock', 3)
    assert ticks(paused) == [begin + k * STEP for k in range(count + 1)]
    joint_states = [stamp_of(message) for message in paused.messages['/joint_states']]
    assert joint_states == [t for t in ticks(paused)[1:] if t % (4 * STEP) == 0]


def test_a_step_answers_after_its_messages(paused):
    """What the response says has happened can be heard without waiting for another step."""
    for _ in range(20):
        response = paused.step()
        now = round(float(re.search(r't = ([\d.]+) s', response.message)[1]) * SECOND)
        paused.wait(lambda now=now: paused.time >= now, 'the clock of the step', 1.0)
        assert paused.time == now


def test_commands_and_diagnostics_go_on_while_steps_are_under_way(paused):
    efforts = paused.node.create_publisher(
        Float64MultiArray, 'joint_group_effort_controller/commands', 1
    )
    paused.wait_for_subscriber(efforts)
    assert paused.set(step_count=5000).successful
    before = int(paused.diagnostics()['commands_accepted'])
    answer = paused.ask(f'/{NODE}/step', Trigger, Trigger.Request())
    efforts.publish(Float64MultiArray(data=[0.0] * ROBOT.n_joints))
    paused.wait(
        lambda: int(paused.diagnostics()['commands_accepted']) == before + 1, 'the command'
    )
    under_way = not answer.done()
    assert paused.set({'friction.mu': 0.8}).successful  # parameters, too
    paused.wait(answer.done, 'the steps', 60.0)
    assert answer.result().success
    assert under_way


def test_many_single_steps_add_up(paused):
    begin = paused.time
    for _ in range(100):
        paused.step()
    paused.fresh('/clock', 3)
    assert paused.time == begin + 100 * STEP


def test_a_step_is_refused_while_time_runs(paused):
    paused.pause(False)
    response = paused.step(3)
    assert not response.success
    assert 'pause' in response.message


def test_pause_stops_time_and_the_clock_goes_on(paused):
    paused.pause(False)
    paused.fresh('/joint_states', 20)
    assert paused.pause().success
    paused.settle()
    paused.clear()
    stamps = {stamp_of(message) for message in paused.fresh('/clock', 10)}
    assert len(stamps) == 1
    assert paused.messages['/joint_states'] == []


def test_resets_keep_the_clock_monotone_and_every_step(paused):
    paused.pause(False)
    for _ in range(10):
        assert paused.reset().success
        paused.spin(0.05)
    paused.pause()
    paused.settle()
    stamps = ticks(paused)
    assert {later - earlier for earlier, later in pairwise(stamps)} == {STEP}
    assert len(stamps) > 100


def test_every_topic_is_alive_after_a_reset(paused):
    paused.step(500)
    paused.settle()
    paused.reset()
    paused.settle()
    paused.clear()
    paused.step(40)
    paused.settle()
    silent = [t for t, messages in paused.messages.items() if not messages]
    # once a second; only where other models answer the steps, too; only where the ground changes
    expected = {'/diagnostics', '/contact_sim/shadow', '/contact_sim/terrain'}
    assert set(silent) <= expected | SEEN  # without rates
    assert paused.diagnostics()['level'] == 0


def test_a_reset_returns_to_the_start_and_removes_the_markers(paused, request):
    request.addfinalizer(lambda: paused.set({'publish_rate.odom': 250.0}))
    assert paused.set({'publish_rate.odom': 1000.0}).successful
    paused.step(4)
    paused.settle()
    start = vector(paused.messages['/odom'][-1].pose.pose.position)
    paused.step(300)
    paused.settle()
    moved = vector(paused.messages['/odom'][-1].pose.pose.position)
    paused.messages['/contact_sim/contact_markers'].clear()
    paused.reset()
    paused.step(4)
    paused.settle()
    again = vector(paused.messages['/odom'][-1].pose.pose.position)
    assert np.abs(moved - start).max() > 1e-6
    assert again == pytest.approx(start, abs=1e-15)
    first = paused.messages['/contact_sim/contact_markers'][0]
    assert [marker.action for marker in first.markers] == [Marker.DELETEALL]


def test_wrenches_integrated_over_a_drop_are_the_weight_times_the_time(paused):
    """∫ Σ f dt = m g t from rest to rest: impulse over time step is the force published."""
    names = [f'publish_rate.{name}' for name in ('wrenches', 'odom', 'joint_states')]
    before = dict(zip(names, paused.get(*names), strict=True))
    assert paused.set(dict.fromkeys(names, 1000.0) | {'initial_height': 0.1}).successful
    paused.reset()
    paused.settle()
    paused.clear()
    paused.step(2100)  # after 2000 it is at rest
    paused.settle()
    paused.set(before)
    force = forces_in_world(paused)
    assert len(force) == 2100
    lifting = force.sum(axis=1)[:, 2]
    fall = 1000.0 * np.sqrt(2.0 * 0.1 / 9.81)
    assert np.argmax(lifting > 0.0) == pytest.approx(fall, abs=2)
    weight = ROBOT.total_mass * 9.81
    assert lifting.max() > 5.0 * weight
    assert 1e-3 * force.sum(axis=(0, 1)) == pytest.approx([0.0, 0.0, 2.1 * weight], abs=1e-3)


def forces_in_world(session):
    """Return the forces of the wrench topics in world axes [N], shape (messages, feet, 3)."""
    model = ROBOT.pinocchio_model
    data = model.createData()
    frames = [model.getFrameId(foot) for foot in FEET]
    wrenches = [session.messages[f'/contacts/{foot}/wrench'] for foot in FEET]
    states = [session.messages['/odom'], session.messages['/joint_states']]
    forces = []
    for odom, joints, *feet in zip(*states, *wrenches, strict=True):
        position, o = odom.pose.pose.position, odom.pose.pose.orientation
        q = np.concatenate([vector(position), [o.x, o.y, o.z, o.w], joints.position])
        pin.framesForwardKinematics(model, data, q)
        forces.append(
            [
                data.oMf[frame].rotation @ vector(foot.wrench.force)
                for frame, foot in zip(frames, feet, strict=True)
            ]
        )
    return np.array(forces)
