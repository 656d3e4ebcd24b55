"""The loop with a step that takes long, and with the clock of another simulation."""

import threading
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from contact_sim.errors import shortened
from contact_sim.ros import _loop as loops
from contact_sim.ros._loop import JUMP, ClockFollower, Loop, StepTakesLong, Watchdog
from contact_sim.simulation._running import Request

H = 1e-3


class Stub:
    """Takes any call."""

    def __getattr__(self, name):
        return lambda *arguments, **named: None


class SlowSim:
    """Steps that last until they are let go."""

    time, time_step, step_count = 0.5, H, 0

    def __init__(self):
        self.stepping, self.go_on = threading.Event(), threading.Event()

    def hang(self):
        self.stepping.set()
        assert self.go_on.wait(20.0)


@pytest.fixture
def hung(monkeypatch):
    """Return a loop in the middle of a step, its simulation, and the complaints so far."""
    monkeypatch.setattr(loops, 'LONG', 0.1)
    monkeypatch.setattr(loops, 'PATIENCE', 0.2)
    monkeypatch.setattr(loops, 'DIAGNOSTICS_PERIOD', 0.05)
    monkeypatch.setattr(loops, 'TouchGuard', lambda *arguments: None)
    sim, complaints = SlowSim(), []
    sim.robot = Stub()
    sim.robot.continuous_joints = np.zeros(1, dtype=bool)
    loop = Loop(
        sim, Stub(), Stub(), Stub(), Stub(), Stub(), print,
        lambda: complaints.append(loop.watchdog.complaint),
    )  # fmt: skip

    def step():
        loop.watchdog.begin('the step from', sim.time)
        sim.hang()
        loop.watchdog.end()

    monkeypatch.setattr(loop, '_wait', lambda: True)
    monkeypatch.setattr(loop, '_may_step', lambda: True)
    monkeypatch.setattr(loop, '_step', step)
    running = threading.Event()
    running.set()
    thread = threading.Thread(target=loop.run, args=(running.is_set,), daemon=True)
    thread.start()
    assert sim.stepping.wait(10.0)
    yield loop, sim, complaints
    running.clear()
    sim.go_on.set()
    thread.join(10.0)


def wait_for(condition, patience=10.0):
    end = time.perf_counter() + patience
    while not condition() and time.perf_counter() < end:
        time.sleep(0.01)
    return condition()


def test_a_step_that_takes_long_is_told_while_it_lasts(hung):
    loop, sim, complaints = hung
    assert wait_for(lambda: len([c for c in complaints if c]) > 3)
    assert 'the step from t = 0.5 s has taken' in complaints[-1]
    sim.go_on.set()
    assert wait_for(lambda: loop.watchdog.long >= 1)


def test_a_request_does_not_wait_for_a_step_that_takes_long(hung):
    loop, sim, _ = hung
    done = []
    with pytest.raises(StepTakesLong, match=r'the step from t = 0\.5 s has taken .* nothing was'):
        loop.between_steps(lambda: done.append('withdrawn'))
    loop.after_step(lambda: done.append('after'))
    assert done == []
    sim.go_on.set()
    assert wait_for(lambda: done == ['after'])
    loop.between_steps(lambda: done.append('later'))
    assert done == ['after', 'later']


def test_a_request_is_served_or_withdrawn_never_both():
    for first in ('serve', 'withdraw'):
        done = []
        request = Request(lambda done=done: done.append(1))
        if first == 'serve':
            request.serve()
            assert not request.withdraw()
        else:
            assert request.withdraw()
            request.serve()
        assert len(done) == (first == 'serve')
        assert request.done.is_set() == (first == 'serve')


def test_a_request_keeps_what_it_raised():
    def fail():
        raise ValueError('no')

    request = Request(fail)
    request.serve()
    assert request.done.is_set()
    assert str(request.error) == 'no'


def test_nothing_is_said_about_a_short_step():
    watchdog = Watchdog(print)
    watchdog.begin('the step from', 0.0)
    assert watchdog.complaint == ''
    watchdog.end()
    assert (watchdog.seconds, watchdog.long) == (0.0, 0)


# -------------------------------------------------------------------- the clock of another one


def test_steps_are_taken_as_the_other_clock_allows():
    follower, own, taken = ClockFollower(), H, 0
    assert not follower.allows(own, H)
    for tick in range(1, 200):
        follower.receive(0.005 * tick)  # every fifth step
        new_time = follower.new_time(H)
        assert (new_time is not None) == (tick == 1)
        own = own if new_time is None else new_time
        while follower.allows(own, H):
            own += H
            taken += 1
        assert own == pytest.approx(0.005 * tick, abs=1e-9)
    assert taken == 198 * 5


@pytest.mark.parametrize('stamp', [100.0004, 0.002, 0.0])
def test_own_time_is_set_where_the_other_is_heard_first_or_was_set(stamp):
    follower = ClockFollower()
    follower.receive(50.0)
    assert follower.new_time(H) == 50.0
    follower.receive(50.0 + H)
    assert follower.new_time(H) is None
    follower.receive(stamp)
    expected = max(round(stamp / H), 1) * H
    assert follower.new_time(H) == pytest.approx(expected, abs=1e-12)
    assert follower.new_time(H) is None


def test_who_cannot_keep_up_falls_behind_and_skips_nothing():
    follower = ClockFollower()
    for k in range(1000):
        follower.receive(1.0 + 0.01 * k)
        assert (follower.new_time(H) is None) == (k > 0)
    assert follower.allows(1.0, H)


def test_after_a_pause_own_time_is_set():
    follower = ClockFollower()
    follower.rejoin(3.0)
    assert follower.new_time(H) is None
    follower.receive(3.0)
    follower.new_time(H)
    follower.rejoin(3.0 - 0.9 * JUMP)
    assert follower.new_time(H) is None
    follower.rejoin(3.0 - 1.1 * JUMP)
    assert follower.new_time(H) == pytest.approx(3.0)


def test_texts_are_shortened_in_the_middle():
    assert shortened('ab' * 10, 20) == 'ab' * 10
    text = shortened('a' * 5000 + 'b' * 5000, 200)
    assert len(text) == 200
    assert text.startswith('aaa')
    assert text.endswith('bbb')
    assert '10000 characters' in text
