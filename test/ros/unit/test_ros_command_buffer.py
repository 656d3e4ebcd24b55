"""The command buffer: checked as a whole, taken by name, kept joint by joint; no network."""

import array
import math
import re

import numpy as np
import pytest
from bad_commands import BAD_EFFORTS, BAD_JOINT_STATES, INF, JOINTS, NAN
from hypothesis import example, given
from hypothesis import strategies as st

from contact_sim.ros._commands import CommandBuffer

N = len(JOINTS)
STIFFNESS, DAMPING = 50.0, 2.0
POSE = np.arange(N) / 10.0


def new_buffer():
    return CommandBuffer(JOINTS, POSE, np.full(N, STIFFNESS), np.full(N, DAMPING))


@pytest.fixture
def buffer():
    return new_buffer()


def effort(buffer, position=0.0, velocity=0.0):
    """Return what the command in force applies at equal positions and velocities of all joints."""
    return buffer.current.effort_at(np.full(N, position), np.full(N, velocity))


def test_before_the_first_command_the_pose_is_held(buffer):
    assert effort(buffer, velocity=1.0) == pytest.approx(50.0 * np.arange(N) / 10.0 - 2.0)
    assert buffer.age() is None


def test_the_three_parts_add_up_to_the_impedance_law(buffer):
    assert buffer.take_joint_state(JOINTS[:1], [0.3], [0.5], [7.0]) is None
    tau = effort(buffer, position=0.1, velocity=0.2)[0]
    assert tau == pytest.approx(7.0 + 50.0 * (0.3 - 0.1) + 2.0 * (0.5 - 0.2))


def test_position_alone_is_followed_towards_rest(buffer):
    assert buffer.take_joint_state(JOINTS[:1], [0.3], [], []) is None
    assert effort(buffer, 0.1, 0.2)[0] == pytest.approx(50.0 * 0.2 - 2.0 * 0.2)


def test_velocity_alone_is_damped_towards(buffer):
    assert buffer.take_joint_state(JOINTS[:1], [], [0.5], []) is None
    assert effort(buffer, 0.1, 0.2)[0] == pytest.approx(2.0 * 0.3)


def test_effort_alone_is_applied_as_it_is(buffer):
    assert buffer.take_joint_state(JOINTS[:1], [], [], [7.0]) is None
    assert effort(buffer, 0.1, 0.2)[0] == 7.0


def test_joints_that_are_not_named_keep_their_command(buffer):
    before = effort(buffer, 0.1, 0.2)
    assert buffer.take_joint_state(['RR_calf_joint'], [], [], [3.0]) is None
    after = effort(buffer, 0.1, 0.2)
    assert after[-1] == 3.0
    assert after[:-1] == pytest.approx(before[:-1], abs=0.0)


def test_names_decide_not_their_order(buffer):
    assert buffer.take_joint_state(JOINTS[::-1], [], [], np.arange(N, dtype=float)) is None
    assert effort(buffer) == pytest.approx(np.arange(N)[::-1], abs=0.0)


def test_unnamed_efforts_come_in_the_declared_order(buffer):
    assert buffer.take_efforts(np.arange(N, dtype=float)) is None
    assert effort(buffer, 0.4, 0.5) == pytest.approx(np.arange(N), abs=0.0)


def test_new_gains_act_on_the_command_in_force(buffer):
    buffer.take_joint_state(JOINTS[:2], [0.3, 0.3], [], [])
    buffer.take_joint_state(JOINTS[1:2], [], [], [7.0])
    buffer.set_gains(np.full(N, 100.0), np.zeros(N))
    assert effort(buffer, 0.1)[:2] == pytest.approx([20.0, 7.0])


@pytest.mark.parametrize(('command', 'reason'), BAD_JOINT_STATES.values(), ids=BAD_JOINT_STATES)
def test_a_bad_joint_command_is_dropped_as_a_whole(buffer, command, reason):
    before = effort(buffer, 0.1, 0.2)
    refusal = buffer.take_joint_state(*command)
    assert re.search(reason, refusal)
    assert (buffer.accepted, buffer.dropped, buffer.last_refusal) == (0, 1, refusal)
    assert buffer.age() is None
    assert effort(buffer, 0.1, 0.2) == pytest.approx(before, abs=0.0)


@pytest.mark.parametrize(('efforts', 'reason'), BAD_EFFORTS.values(), ids=BAD_EFFORTS)
def test_bad_efforts_are_dropped_as_a_whole(buffer, efforts, reason):
    before = effort(buffer, 0.1, 0.2)
    assert re.search(reason, buffer.take_efforts(efforts))
    assert buffer.dropped == 1
    assert effort(buffer, 0.1, 0.2) == pytest.approx(before, abs=0.0)


number = st.floats(-10.0, 10.0)
anything = st.floats() | st.sampled_from([NAN, INF, -INF, 1e300, -1e7, 0.0])
some_joints = st.lists(st.sampled_from(JOINTS), unique=True, min_size=1)


@st.composite
def good_commands(draw):
    """Draw (names, position, velocity, effort), at least one of the last three not empty."""
    names = draw(some_joints)
    values = st.lists(number, min_size=len(names), max_size=len(names))
    parts = draw(st.tuples(*[st.just([]) | values] * 3).filter(any))
    return (names, *parts)


@st.composite
def garbage(draw):
    """Draw what anybody may send: mostly wrong, now and then right by chance."""
    names = draw(st.lists(st.sampled_from([*JOINTS, '', 'tail', 'fl_hip_joint']) | st.text()))
    lengths = st.sampled_from([0, len(names)]) | st.integers(0, 20)
    parts = [
        array.array('d', draw(st.lists(anything, min_size=length, max_size=length)))
        for length in (draw(lengths), draw(lengths), draw(lengths))
    ]
    return (names, *parts)


@given(st.lists(garbage(), max_size=5))
@example([(JOINTS, [0.0] * N, [], [NAN] * N)])
def test_no_garbage_raises_or_leaves_a_trace(messages):
    buffer = new_buffer()
    for count, message in enumerate(messages, 1):
        before, pose = buffer.current, effort(buffer, 0.1, 0.2)
        refusal = buffer.take_joint_state(*message)
        assert buffer.accepted + buffer.dropped == count
        assert np.isfinite(effort(buffer, 0.1, 0.2)).all()
        if refusal is not None:
            assert refusal == buffer.last_refusal != ''
            assert buffer.current is before
            assert effort(buffer, 0.1, 0.2).tolist() == pose.tolist()
            continue
        names, *parts = message
        assert set(names) <= set(JOINTS)
        assert {len(part) for part in parts} <= {0, len(names)}
        assert all(math.isfinite(value) for part in parts for value in part)


@given(st.lists(anything, max_size=15) | st.lists(anything, min_size=N, max_size=N))
def test_no_garbage_efforts_raise_or_leave_a_trace(values):
    buffer = new_buffer()
    before = buffer.current
    good = len(values) == N and all(abs(value) <= 1e6 for value in values)
    refusal = buffer.take_efforts(array.array('d', values))
    assert (refusal is None) == good
    if good:
        assert effort(buffer, 0.1, 0.2).tolist() == values
    else:
        assert buffer.current is before


@given(st.lists(good_commands(), max_size=6))
def test_any_sequence_of_commands_acts_joint_by_joint(commands):
    """The last command that names a joint decides all about it."""
    buffer = new_buffer()
    expected = {
        name: STIFFNESS * (target - 0.1) - DAMPING * 0.2
        for name, target in zip(JOINTS, POSE, strict=True)
    }
    for names, position, velocity, feed_forward in commands:
        assert buffer.take_joint_state(names, position, velocity, feed_forward) is None
        for k, name in enumerate(names):
            total = feed_forward[k] if feed_forward else 0.0
            if position:
                total += STIFFNESS * (position[k] - 0.1)
            if position or velocity:
                total += DAMPING * ((velocity[k] if velocity else 0.0) - 0.2)
            expected[name] = total
    assert effort(buffer, 0.1, 0.2) == pytest.approx(list(expected.values()), abs=1e-9)
    assert buffer.accepted == len(commands)


@given(good_commands(), st.lists(number, min_size=N, max_size=N))
def test_a_reset_holds_the_pose_whatever_was_commanded(command, efforts):
    buffer, fresh = new_buffer(), new_buffer()
    buffer.take_joint_state(*command)
    buffer.take_efforts(efforts)
    buffer.hold(POSE)
    assert effort(buffer, 0.1, 0.2).tolist() == effort(fresh, 0.1, 0.2).tolist()
    assert buffer.age() is None
