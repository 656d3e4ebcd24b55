"""The inbox of commands: checked as a whole, taken by name, kept joint by joint; no network."""

import array
import math
import re

import numpy as np
import pytest
from bad_commands import BAD_EFFORTS, BAD_JOINT_STATES, INF, JOINTS, NAN
from hypothesis import example, given
from hypothesis import strategies as st

from contact_sim.ros._joint_commands import CommandInbox

N = len(JOINTS)
STIFFNESS, DAMPING = 50.0, 2.0
POSE = np.arange(N) / 10.0


def new_inbox():
    return CommandInbox(JOINTS, POSE, np.full(N, STIFFNESS), np.full(N, DAMPING))


@pytest.fixture
def inbox():
    return new_inbox()


def effort(inbox, position=0.0, velocity=0.0):
    """Return what the command in force applies at equal positions and velocities of all joints."""
    return inbox.current.effort_at(np.full(N, position), np.full(N, velocity))


def test_before_the_first_command_the_pose_is_held(inbox):
    assert effort(inbox, velocity=1.0) == pytest.approx(50.0 * np.arange(N) / 10.0 - 2.0)
    assert inbox.age() is None


def test_the_three_parts_add_up_to_the_impedance_law(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [0.3], [0.5], [7.0]) is None
    tau = effort(inbox, position=0.1, velocity=0.2)[0]
    assert tau == pytest.approx(7.0 + 50.0 * (0.3 - 0.1) + 2.0 * (0.5 - 0.2))


def test_position_alone_is_followed_towards_rest(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [0.3], [], []) is None
    assert effort(inbox, 0.1, 0.2)[0] == pytest.approx(50.0 * 0.2 - 2.0 * 0.2)


def test_velocity_alone_is_damped_towards(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [], [0.5], []) is None
    assert effort(inbox, 0.1, 0.2)[0] == pytest.approx(2.0 * 0.3)


def test_effort_alone_is_applied_as_it_is(inbox):
    assert inbox.take_joint_state(JOINTS[:1], [], [], [7.0]) is None
    assert effort(inbox, 0.1, 0.2)[0] == 7.0


def test_joints_that_are_not_named_keep_their_command(inbox):
    before = effort(inbox, 0.1, 0.2)
    assert inbox.take_joint_state(['RR_calf_joint'], [], [], [3.0]) is None
    after = effort(inbox, 0.1, 0.2)
    assert after[-1] == 3.0
    assert after[:-1] == pytest.approx(before[:-1], abs=0.0)


def test_names_decide_not_their_order(inbox):
    assert inbox.take_joint_state(JOINTS[::-1], [], [], np.arange(N, dtype=float)) is None
    assert effort(inbox) == pytest.approx(np.arange(N)[::-1], abs=0.0)


def test_unnamed_efforts_come_in_the_declared_order(inbox):
    assert inbox.take_efforts(np.arange(N, dtype=float)) is None
    assert effort(inbox, 0.4, 0.5) == pytest.approx(np.arange(N), abs=0.0)


def test_new_gains_act_on_the_command_in_force(inbox):
    inbox.take_joint_state(JOINTS[:2], [0.3, 0.3], [], [])
    inbox.take_joint_state(JOINTS[1:2], [], [], [7.0])
    inbox.set_gains(np.full(N, 100.0), np.zeros(N))
    assert effort(inbox, 0.1)[:2] == pytest.approx([20.0, 7.0])


@pytest.mark.parametrize(('command', 'reason'), BAD_JOINT_STATES.values(), ids=BAD_JOINT_STATES)
def test_a_bad_joint_command_is_dropped_as_a_whole(inbox, command, reason):
    before = effort(inbox, 0.1, 0.2)
    refusal = inbox.take_joint_state(*command)
    assert re.search(reason, refusal)
    assert (inbox.accepted, inbox.dropped, inbox.last_refusal) == (0, 1, refusal)
    assert inbox.age() is None
    assert effort(inbox, 0.1, 0.2) == pytest.approx(before, abs=0.0)


@pytest.mark.parametrize(('efforts', 'reason'), BAD_EFFORTS.values(), ids=BAD_EFFORTS)
def test_bad_efforts_are_dropped_as_a_whole(inbox, efforts, reason):
    before = effort(inbox, 0.1, 0.2)
    assert re.search(reason, inbox.take_efforts(efforts))
    assert inbox.dropped == 1
    assert effort(inbox, 0.1, 0.2) == pytest.approx(before, abs=0.0)


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
    inbox = new_inbox()
    for count, message in enumerate(messages, 1):
        before, pose = inbox.current, effort(inbox, 0.1, 0.2)
        refusal = inbox.take_joint_state(*message)
        assert inbox.accepted + inbox.dropped == count
        assert np.isfinite(effort(inbox, 0.1, 0.2)).all()
        if refusal is not None:
            assert refusal == inbox.last_refusal != ''
            assert inbox.current is before
            assert effort(inbox, 0.1, 0.2).tolist() == pose.tolist()
            continue
        names, *parts = message
        assert set(names) <= set(JOINTS)
        assert {len(part) for part in parts} <= {0, len(names)}
        assert all(math.isfinite(value) for part in parts for value in part)


@given(st.lists(anything, max_size=15) | st.lists(anything, min_size=N, max_size=N))
def test_no_garbage_efforts_raise_or_leave_a_trace(values):
    inbox = new_inbox()
    before = inbox.current
    good = len(values) == N and all(abs(value) <= 1e6 for value in values)
    refusal = inbox.take_efforts(array.array('d', values))
    assert (refusal is None) == good
    if good:
        assert effort(inbox, 0.1, 0.2).tolist() == values
    else:
        assert inbox.current is before


@given(st.lists(good_commands(), max_size=6))
def test_any_sequence_of_commands_acts_joint_by_joint(commands):
    """The last command that names a joint decides all about it."""
    inbox = new_inbox()
    expected = {
        name: STIFFNESS * (target - 0.1) - DAMPING * 0.2
        for name, target in zip(JOINTS, POSE, strict=True)
    }
    for names, position, velocity, feed_forward in commands:
        assert inbox.take_joint_state(names, position, velocity, feed_forward) is None
        for k, name in enumerate(names):
            total = feed_forward[k] if feed_forward else 0.0
            if position:
                total += STIFFNESS * (position[k] - 0.1)
            if position or velocity:
                total += DAMPING * ((velocity[k] if velocity else 0.0) - 0.2)
            expected[name] = total
    assert effort(inbox, 0.1, 0.2) == pytest.approx(list(expected.values()), abs=1e-9)
    assert inbox.accepted == len(commands)


@given(good_commands(), st.lists(number, min_size=N, max_size=N))
def test_a_reset_holds_the_pose_whatever_was_commanded(command, efforts):
    inbox, fresh = new_inbox(), new_inbox()
    inbox.take_joint_state(*command)
    inbox.take_efforts(efforts)
    inbox.hold(POSE)
    assert effort(inbox, 0.1, 0.2).tolist() == effort(fresh, 0.1, 0.2).tolist()
    assert inbox.age() is None
