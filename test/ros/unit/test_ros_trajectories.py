"""Trajectories, interpolated and refused as by joint_trajectory_controller; no network."""

import math
import re

import numpy as np
import pytest
from bad_commands import INF, JOINTS, NAN
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BPoly, CubicHermiteSpline

from contact_sim import Simulator, load_robot
from contact_sim.ros._commands import (
    LONGEST_WAIT,
    MOST_POINTS,
    SECOND,
    CommandBuffer,
    TrajectoryPoint,
    UncheckedPoint,
    interpolate,
)
from contact_sim.ros._lockstep import Lockstep, Verdict
from contact_sim.ros._parameters import LockstepParameters, TrajectoryParameters

N = len(JOINTS)
POSE = np.arange(N) / 10.0
KP, KD = 50.0, 2.0
STILL = np.zeros(N)
T0 = 3 * SECOND
STEP = SECOND // 1000


def new_buffer(continuous=None, **rules):
    buffer = CommandBuffer(JOINTS, POSE, np.full(N, KP), np.full(N, KD), continuous)
    buffer.rules = TrajectoryParameters(**rules)
    return buffer


@pytest.fixture
def buffer():
    return new_buffer()


def point(time, positions, velocities=(), accelerations=(), effort=()):
    """Return a point at `time` [s] with the same numbers for all joints where they are single."""
    fields = (
        [value] * N if isinstance(value, float) else value
        for value in (positions, velocities, accelerations, effort)
    )
    return UncheckedPoint(round(time * SECOND), *fields)


def take(buffer, *points, stamp=0.0, now=T0, names=JOINTS, **more):
    return buffer.take_trajectory(names, points, round(stamp * SECOND), now, **more)


def at(buffer, time, position=POSE, velocity=STILL):
    """Return the command in the step from `time` [s]."""
    return buffer.at(round(time * SECOND), position, velocity)


# -------------------------------------------------------------------- interpolation

numbers = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2).map(np.array)


@given(numbers, numbers, numbers, numbers, st.integers(10**6, 10**10), st.floats(0.0, 0.999))
def test_velocities_make_cubics(p, q, v, w, duration, share):
    time = int(share * duration)
    position, velocity, _ = interpolate(
        TrajectoryPoint(0, p, v), TrajectoryPoint(duration, q, w), time
    )
    spline = CubicHermiteSpline([0.0, duration / SECOND], [p, q], [v, w])
    assert position == pytest.approx(spline(time / SECOND), abs=1e-9)
    scale = 1.0 + 10.0 * SECOND / duration
    assert velocity == pytest.approx(spline(time / SECOND, 1), abs=1e-9 * scale)


@given(*[numbers] * 6, st.floats(0.01, 5.0), st.floats(0.0, 0.999))
def test_accelerations_make_quintics(p, q, v, w, a, b, seconds, share):
    duration, time = round(seconds * SECOND), int(share * seconds * SECOND)
    position, velocity, _ = interpolate(
        TrajectoryPoint(0, p, v, a), TrajectoryPoint(duration, q, w, b), time
    )
    spline = BPoly.from_derivatives([0.0, duration / SECOND], [[p, v, a], [q, w, b]])
    assert position == pytest.approx(spline(time / SECOND), abs=1e-9)
    assert velocity == pytest.approx(spline(time / SECOND, 1), abs=1e-7)


def test_positions_alone_are_joined_by_lines(buffer):
    assert take(buffer, point(1.0, 1.0), point(3.0, 0.5)) is None
    begun = at(buffer, 3.0)
    assert begun.position == pytest.approx(POSE)
    assert begun.velocity == pytest.approx(1.0 - POSE)
    quarter = at(buffer, 3.25)
    assert quarter.position == pytest.approx(POSE + 0.25 * (1.0 - POSE))
    assert quarter.stiffness.tolist() == [KP] * N
    assert quarter.damping.tolist() == [KD] * N
    assert at(buffer, 4.0).position.tolist() == [1.0] * N
    later = at(buffer, 5.0)
    assert later.position == pytest.approx(0.75)
    assert later.velocity == pytest.approx(-0.25)


def test_after_the_last_point_it_is_held(buffer):
    take(buffer, point(1.0, 1.0, 0.0, 0.0, 4.0))
    at(buffer, 3.0)
    for time in (4.0, 4.001, 1000.0):
        held = at(buffer, time)
        assert (held.position[0], held.velocity[0], held.effort[0]) == (1.0, 0.0, 4.0)


def test_the_first_segment_has_the_degree_of_the_first_point(buffer):
    take(buffer, point(2.0, 1.0, 0.5, 0.2), point(3.0, 2.0, 0.0, 0.0))
    at(buffer, 3.0)
    spline = BPoly.from_derivatives([0.0, 2.0], [[POSE[4], 0.0, 0.0], [1.0, 0.5, 0.2]])
    assert at(buffer, 3.7).position[4] == pytest.approx(spline(0.7), abs=1e-12)


def test_efforts_are_joined_by_lines(buffer):
    buffer.take_joint_state(JOINTS, POSE, [], [2.0] * N)
    take(buffer, point(1.0, 1.0, effort=4.0), point(2.0, 1.0))
    at(buffer, 3.0)
    assert at(buffer, 3.5).effort.tolist() == [3.0] * N
    assert at(buffer, 4.5).effort.tolist() == [0.0] * N


# -------------------------------------------------------------------- where and when it begins


def test_by_default_it_begins_where_joints_were_told_to_be(buffer):
    sagged, falling = POSE - 0.3, np.full(N, -1.0)
    take(buffer, point(1.0, 1.0))
    assert at(buffer, 3.0, sagged, falling).position == pytest.approx(POSE)
    buffer.take_joint_state(JOINTS[:1], [], [], [5.0])  # no position is told any more
    take(buffer, point(1.0, 1.0))
    begun = at(buffer, 3.0, sagged, falling)
    assert begun.position == pytest.approx([sagged[0], *POSE[1:]])


def test_it_can_begin_where_joints_are():
    buffer = new_buffer(interpolate_from_desired_state=False)
    present, speed = POSE - 0.3, np.full(N, -1.0)
    take(buffer, point(1.0, 1.0, 0.0))
    begun = at(buffer, 3.0, present, speed)
    assert begun.position == pytest.approx(present)
    assert begun.velocity == pytest.approx(speed)
    spline = CubicHermiteSpline([0.0, 1.0], [present[2], 1.0], [-1.0, 0.0])
    assert at(buffer, 3.4, STILL).position[2] == pytest.approx(spline(0.4), abs=1e-12)


def test_a_stamp_says_when_the_points_count_from(buffer):
    take(buffer, point(0.0, 1.0), point(1.0, 2.0), stamp=5.0)
    assert at(buffer, 3.0).position == pytest.approx(POSE)
    assert at(buffer, 4.0).position == pytest.approx(0.5 * (POSE + 1.0))
    assert at(buffer, 5.5).position == pytest.approx(1.5)


def test_one_that_has_begun_in_the_past_is_joined_under_way(buffer):
    take(buffer, point(0.0, 1.0), point(4.0, 2.0), stamp=1.0)
    assert at(buffer, 3.0).position == pytest.approx(1.5)


def test_a_joint_that_turns_without_end_takes_the_short_way():
    continuous = np.zeros(N, dtype=bool)
    continuous[1] = True
    buffer = new_buffer(continuous)
    take(buffer, point(1.0, 6.0))
    at(buffer, 3.0)
    half = at(buffer, 3.5).position
    assert half[0] == pytest.approx(3.0)
    assert half[1] == pytest.approx(0.5 * (0.1 + 2 * math.pi + 6.0))
    assert at(buffer, 4.0).position[1] == 6.0


def test_without_points_the_joints_hold_their_position(buffer):
    take(buffer, point(1.0, 1.0))
    at(buffer, 3.0)
    at(buffer, 3.5)
    assert buffer.take_trajectory([], [], 0, T0) is None
    for time in (3.5, 3.6, 9.0):
        held = at(buffer, time)
        assert held.position == pytest.approx(0.5 * (POSE + 1.0))
        assert not held.velocity.any()
    measured = new_buffer(interpolate_from_desired_state=False)
    measured.take_trajectory([], [], 0, T0)
    assert at(measured, 3.0, POSE - 0.2).position == pytest.approx(POSE - 0.2)


@pytest.mark.parametrize(('desired', 'sinks'), [(True, 0.0), (False, 0.0086)])
def test_a_standing_robot_keeps_its_height_when_it_begins_where_it_was_told_to_be(desired, sinks):
    """Where it begins where it is, its PD gains let go: the figures of docs/commands.md."""
    robot = load_robot('go1')
    sim = Simulator(robot)
    sim.reset()
    pose = robot.joint_positions(sim.q)
    buffer = CommandBuffer(JOINTS, pose, np.full(N, 150.0), np.full(N, 5.0))
    buffer.rules = TrajectoryParameters(interpolate_from_desired_state=desired)

    def heights(steps):
        for _ in range(steps):
            q, v = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
            sim.step(buffer.at(round(sim.time * SECOND), q, v).effort_at(q, v))
            yield sim.q[2]

    *_, before = heights(1500)
    take(buffer, point(1.0, pose.tolist()), now=round(sim.time * SECOND))
    assert before - min(heights(1000)) == pytest.approx(sinks, abs=2e-4)


# -------------------------------------------------------------------- several of them


def test_a_new_one_replaces_the_old_one_from_where_it_is(buffer):
    take(buffer, point(1.0, 1.0))
    at(buffer, 3.0)
    at(buffer, 3.499)
    take(buffer, point(1.0, 3.0))
    begun = at(buffer, 3.5)
    assert begun.position == pytest.approx(POSE + 0.499 * (1.0 - POSE))
    assert at(buffer, 4.5).position.tolist() == [3.0] * N


def test_other_joints_go_on():
    buffer = new_buffer(allow_partial_joints_goal=True)
    take(buffer, point(1.0, 1.0))
    at(buffer, 3.0)
    assert (
        take(buffer, UncheckedPoint(SECOND, [5.0, 6.0]), names=['FR_hip_joint', JOINTS[0]]) is None
    )
    buffer.take_joint_state(JOINTS[1:2], [], [], [7.0])
    at(buffer, 3.25)
    later = at(buffer, 4.25)
    fr = JOINTS.index('FR_hip_joint')
    assert (later.position[0], later.position[fr]) == (6.0, 5.0)
    assert (later.effort[1], later.stiffness[1]) == (7.0, 0.0)
    others = [k for k in range(N) if k not in (0, 1, fr)]
    assert later.position[others].tolist() == [1.0] * len(others)


def test_a_reset_ends_it(buffer):
    take(buffer, point(1.0, 1.0))
    at(buffer, 3.0)
    buffer.hold(POSE)
    assert at(buffer, 3.5).position.tolist() == POSE.tolist()


def test_it_goes_on_where_it_was_after_time_was_set(buffer):
    take(buffer, point(1.0, 1.0), point(2.0, -1.0))
    at(buffer, 3.0)
    at(buffer, 3.2)
    kept = buffer.state
    after = [at(buffer, 3.2 + 0.1 * k).position.tolist() for k in range(20)]
    take(buffer, point(0.1, 9.0), now=10 * SECOND)
    at(buffer, 10.0)
    buffer.state = kept
    buffer.shift(round(7.0 * SECOND))
    assert [at(buffer, 10.2 + 0.1 * k).position.tolist() for k in range(20)] == after


def test_it_commands_its_joints_until_its_last_point(buffer, monkeypatch):
    """Otherwise /diagnostics would miss commands all along."""
    wall = [100.0]
    monkeypatch.setattr('contact_sim.ros._commands.time.monotonic', lambda: wall[0])
    take(buffer, point(10.0, 1.0))
    for wall[0], time, age in ((101.0, 3.0, 0.0), (109.0, 11.0, 0.0), (111.0, 13.0, 0.0)):
        at(buffer, time)
        assert buffer.age() == age
    wall[0] = 114.0
    at(buffer, 16.0)
    assert buffer.age() == 3.0


def test_nothing_is_computed_once_it_is_over(buffer):
    take(buffer, point(1.0, 1.0))
    at(buffer, 3.0)
    last = at(buffer, 4.0)
    assert at(buffer, 4.1) is last


# -------------------------------------------------------------------- refusals

BAD = {
    'unknown joint': ([point(1.0, 0.0)], {'names': [*JOINTS[:-1], 'tail']}, "joint 'tail' in"),
    'joint twice': ([point(1.0, 0.0)], {'names': [*JOINTS[:-1], JOINTS[0]]}, 'named twice'),
    'no names': ([point(1.0, 0.0)], {'names': []}, 'without joint names'),
    'some joints': (
        [UncheckedPoint(1, [0.0])], {'names': JOINTS[:1]},
        r'without FL_thigh_joint.{20,60} \[\.\.\. .{30,80}: expected all 12 joints, or trajectory',
    ),
    'too few positions': ([point(1.0, [0.0] * 11)], {}, '11 values of position of point 0 for 12'),
    'too many velocities': (
        [point(1.0, 0.0), point(2.0, 0.0, [0.0] * 13)], {}, '13 values of velocity of point 1',
    ),
    'no positions': ([point(1.0, 0.0), point(2.0, (), 0.0)], {}, 'point 1 has no positions'),
    'no velocities': ([point(1.0, 0.0, (), 0.0)], {}, 'accelerations, but no velocities'),
    'the same time': (
        [point(1.0, 0.0), point(1.0, 0.0)], {}, 'of point 1 is 1 s: not after that of point 0',
    ),
    'before the start': ([point(-1.0, 0.0)], {}, 'of point 0 is -1 s: negative'),
    'over': ([point(1.0, 0.0)], {'stamp': 1.5}, r'from 1\.5 s to 2\.5 s is over at t = 3 s'),
    'no points, over': ([], {'stamp': 1.5}, 'is over'),
    'wall clock': ([point(1.0, 0.0)], {'stamp': 1.7e9}, 'without use_sim_time'),
    'moving in the end': ([point(1.0, 0.0, 0.1)], {}, 'moves at the last point, with 0.1'),
    'NaN': ([point(1.0, [*[0.0] * 11, NAN])], {}, "of joint 'RR_calf_joint' = nan"),
    'infinity': ([point(1.0, 0.0, 0.0, INF)], {}, "acceleration of point 0 of joint 'FL_hip_joi"),
    'too many': ([point(1.0, 0.0)] * (MOST_POINTS + 1), {}, 'expected at most 20000'),
}  # fmt: skip


@pytest.mark.parametrize(('points', 'more', 'reason'), BAD.values(), ids=BAD)
def test_a_bad_trajectory_is_refused_as_a_whole(buffer, points, more, reason):
    before = buffer.current
    refusal = take(buffer, *points, **more)
    assert re.search(reason, refusal)
    assert len(refusal) < 300
    assert (buffer.accepted, buffer.dropped) == (0, 1)
    assert at(buffer, 3.0) is before


def test_a_name_of_any_length_makes_a_short_refusal(buffer):
    refusal = take(buffer, point(1.0, 0.0), names=[*JOINTS[:-1], 'x' * 10**6])
    assert 'characters ...' in refusal
    assert len(refusal) < 400


def test_the_latest_and_the_earliest_that_are_taken(buffer):
    assert take(buffer, point(1.0, 0.0), stamp=2.0) is None
    assert take(buffer, point(1.0, 0.0), stamp=3.0 + LONGEST_WAIT / SECOND) is None


def test_of_several_robots_each_has_its_own_joints():
    buffer = new_buffer()
    hind = slice(6, 12)
    assert take(buffer, UncheckedPoint(SECOND, [1.0] * 6), names=JOINTS[hind], joints=hind) is None
    assert buffer.take_trajectory([], [], 0, T0, slice(0, 6)) is None
    at(buffer, 3.0)
    assert at(buffer, 9.0).position.tolist() == [*POSE[:6].tolist(), *[1.0] * 6]


anything = st.floats() | st.sampled_from([NAN, INF, 1e300, 1e6, -1e6, 0.0])
rows = st.lists(anything, min_size=N, max_size=N) | st.just([]) | st.lists(anything, max_size=3)
points = st.builds(UncheckedPoint, st.integers(-5, 10**10), rows, rows, rows, rows)


@given(st.lists(points, max_size=4), st.integers(0, 2**63), st.lists(st.integers(0, 10**10)))
def test_no_garbage_raises_or_makes_an_effort_that_is_not_finite(given_points, stamp, times):
    buffer = new_buffer()
    buffer.take_trajectory(JOINTS, given_points, stamp, T0)
    for time in sorted(times):
        command = buffer.at(T0 + time, POSE, STILL)
        assert np.isfinite(command.effort_at(POSE, STILL)).all()


# -------------------------------------------------------------------- lockstep


def lockstep_of(buffer):
    lockstep = Lockstep(buffer, JOINTS, {}, lambda _: None)
    lockstep.configure(LockstepParameters(enabled=True, timeout=10.0), 0)
    return lockstep


def test_in_lockstep_it_begins_at_its_stamp_and_goes_on_without_another(buffer):
    lockstep, seen = lockstep_of(buffer), []
    for tick in range(5, 40):
        now = tick * STEP
        if tick == 10:
            assert lockstep.verdict(now, tick) is Verdict.WAIT
            assert buffer.take_trajectory(JOINTS, [point(0.02, 1.0)], now, now) is None
        else:
            lockstep.acknowledge('', now)
        assert lockstep.verdict(now, tick) is Verdict.STEP
        seen.append(buffer.at(now, POSE, STILL).position.tolist())
    assert seen[:6] == [POSE.tolist()] * 6
    assert seen[15] == pytest.approx(0.5 * (POSE + 1.0))
    assert seen[25:] == [[1.0] * N] * 10


def test_in_lockstep_one_for_a_step_that_was_taken_does_not_act(buffer):
    lockstep = lockstep_of(buffer)
    lockstep.acknowledge('', STEP)
    assert lockstep.verdict(STEP, 1) is Verdict.STEP
    assert buffer.take_trajectory(JOINTS, [point(0.02, 1.0)], STEP, 2 * STEP) is None
    assert lockstep.late == 1
    assert lockstep.verdict(2 * STEP, 2) is Verdict.WAIT
    assert buffer.at(2 * STEP, POSE, STILL).position.tolist() == POSE.tolist()


def test_in_lockstep_only_the_joints_without_a_command_follow_it(buffer):
    lockstep = lockstep_of(buffer)
    buffer.take_joint_state(JOINTS[:1], [9.0], [], [], STEP)
    take(buffer, point(1.0, 1.0), now=STEP)
    assert lockstep.verdict(STEP, 1) is Verdict.STEP
    buffer.at(STEP, POSE, STILL)
    later = buffer.at(STEP + SECOND, POSE, STILL).position
    assert later.tolist() == [9.0, *[1.0] * (N - 1)]
