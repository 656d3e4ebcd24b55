"""Pacing against a wall clock that only goes on when told to."""

import math

import numpy as np
import pytest

from contact_sim.simulation._running import LARGEST_LAG, WINDOW, Pacer

STEP = 1e-3
BEGIN = 100.0


class WallClock:
    """A clock whose sleeps last as long as it is told."""

    def __init__(self):
        self.now = BEGIN

    def __call__(self):
        return self.now


@pytest.fixture
def wall():
    return WallClock()


@pytest.mark.parametrize('factor', [0.5, 1.0, 2.0])
def test_the_schedule_is_kept_however_long_each_sleep_lasts(wall, factor):
    pacer = Pacer(factor, wall)
    pacer.restart(5.0)
    for k in range(1, 3001):
        wall.now += pacer.wait(5.0 + STEP * k) + 7e-5  # every sleep is a bit too long
    assert wall.now - BEGIN == pytest.approx(3.0 / factor, abs=2e-4)
    assert pacer.overruns == 0
    assert pacer.measured == pytest.approx(factor, rel=1e-3)


def test_errors_of_a_hundred_thousand_sleeps_do_not_add_up(wall):
    """Sleeps too long by 60 µs on average, and now and then by 20 ms."""
    steps = 100_000
    noise = np.random.default_rng(1)
    too_long = noise.exponential(60e-6, steps) + 0.02 * (noise.random(steps) < 1e-3)
    pacer = Pacer(1.0, wall)
    late = np.empty(steps)
    for k in range(steps):
        time = STEP * (k + 1)
        ahead = pacer.wait(time)
        wall.now += ahead + (too_long[k] if ahead > 0.0 else 1e-4)  # a step itself takes 0.1 ms
        late[k] = wall.now - BEGIN - time
    assert too_long.sum() > 5.0  # this is what a pacer of relative sleeps would lose
    assert late.min() > -1e-9  # never ahead of time
    assert np.median(late[-1000:]) == pytest.approx(np.median(late[:1000]), abs=2e-5)
    assert late[-1] < 0.03
    assert pacer.overruns == 0


def test_a_short_delay_is_made_up_for(wall):
    pacer = Pacer(1.0, wall)
    wall.now += 0.9 * LARGEST_LAG
    due = [pacer.wait(STEP * k) == 0.0 for k in range(1, 101)]
    assert due == [True] * 90 + [False] * 10
    assert pacer.overruns == 0


def test_a_long_delay_starts_the_schedule_anew_once(wall):
    pacer = Pacer(2.0, wall)
    assert pacer.wait(STEP) == pytest.approx(STEP / 2.0)
    wall.now += 3.0
    assert pacer.wait(2 * STEP) == 0.0
    assert pacer.overruns == 1
    assert pacer.wait(3 * STEP) == pytest.approx(STEP / 2.0)  # no rush to make up for it
    assert pacer.overruns == 1


def test_a_machine_that_cannot_keep_up_slows_time_down(wall):
    """Every step takes ten times as long as it may; what is lost is not caught up later."""
    pacer = Pacer(1.0, wall)
    for k in range(1, 501):
        wall.now += pacer.wait(STEP * k) + 10.0 * STEP
    assert pacer.overruns == pytest.approx(500 * 9.0 * STEP / LARGEST_LAG, rel=0.15)
    assert pacer.measured == pytest.approx(0.1, rel=0.02)
    begin = wall.now
    for k in range(501, 1501):
        wall.now += pacer.wait(STEP * k)
    assert 1.0 - 1.2 * LARGEST_LAG < wall.now - begin < 1.0 + STEP


def test_a_factor_of_zero_never_waits_and_measures_the_speed(wall):
    pacer = Pacer(0.0, wall)
    for k in range(1, 50_001):
        assert pacer.wait(STEP * k) == 0.0
        wall.now += 5e-5
    assert pacer.overruns == 0
    assert pacer.measured == pytest.approx(20.0, rel=1e-3)


def test_the_measured_factor_follows_within_a_window(wall):
    pacer = Pacer(1.0, wall)
    assert pacer.measured == 0.0
    time = 0.0
    for duration in (STEP, 4.0 * STEP):
        end = wall.now + 2.5 * WINDOW
        while wall.now < end:
            time += STEP
            wall.now += max(pacer.wait(time), duration)
        assert pacer.measured == pytest.approx(STEP / duration, rel=0.02)


def test_a_restart_counts_from_the_present_with_a_new_factor(wall):
    pacer = Pacer(1.0, wall)
    for k in range(1, 3001):
        wall.now += pacer.wait(STEP * k)
    pacer.restart(3.0, 0.25)
    assert pacer.measured == 0.0
    assert pacer.wait(3.0 + STEP) == pytest.approx(4.0 * STEP)
    wall.now += 50.0  # a pause
    pacer.restart(3.0)
    assert pacer.wait(3.0 + STEP) == pytest.approx(4.0 * STEP)
    assert pacer.overruns == 0


@pytest.mark.parametrize('factor', [1e-3, 1.0, 1000.0])
def test_waits_are_finite_and_never_negative(wall, factor):
    pacer = Pacer(factor, wall)
    for delay in (0.0, 1e-9, 1.0, 1e6):
        wall.now += delay
        for time in (0.0, STEP, 1e6):
            assert 0.0 <= pacer.wait(time) < math.inf
