"""Simulated time against the wall clock."""

from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import SECOND, Session, stamp_of

from contact_sim.topics._table import PUBLISHED

pytestmark = pytest.mark.real_time
STEP = SECOND // 1000
TOPICS = {topic: PUBLISHED[topic] for topic in ('/clock', '/diagnostics')}
SECONDS = 2.5
"""Wall time of a run."""


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    with Session(tmp_path_factory.mktemp('pace'), TOPICS, {'start_paused': True}) as session:
        yield session.started()


@pytest.fixture(scope='module')
def run_at(session):
    """Return a function that runs at a real-time factor, once at each; see `measured`."""
    return cache(partial(measured, session))


def measured(session, factor):
    """Return wall time of sending, simulated time [s] of the ticks, and whether time was slow."""
    session.pause()
    assert session.set(real_time_factor=factor).successful
    overruns = int(session.diagnostics()['overruns'])
    session.pause(False)
    session.spin(0.5)
    session.clear()
    session.spin(SECONDS)
    session.pause()
    slowed = int(session.diagnostics()['overruns']) > overruns
    wall = 1e-9 * np.array(session.sent['/clock'])
    simulated = np.array([stamp_of(message) for message in session.messages['/clock']]) / SECOND
    ticks = np.flatnonzero(np.diff(simulated) > 0.0)
    return wall[ticks] - wall[0], simulated[ticks] - simulated[0], slowed


@pytest.mark.parametrize('factor', [1.0, 0.5, 2.0])
def test_time_is_paced(run_at, factor):
    """Never ahead of the wall clock, and behind it only where /diagnostics says so."""
    wall, simulated, slowed = run_at(factor)
    ahead = simulated / factor - wall
    assert wall[-1] > 0.7 * SECONDS
    assert ahead.max() < 0.1
    assert ahead[-1] > -0.1 or slowed


def test_pacing_does_not_drift(run_at):
    """Over the second half the error of the schedule does not grow: sleeps do not add up."""
    wall, simulated, slowed = run_at(1.0)
    late = simulated - wall
    half = len(late) // 2
    assert abs(np.median(late[half:]) - np.median(late[:half])) < 0.005 or slowed


def test_too_slow_a_machine_slows_time_down_and_says_so(session):
    assert session.set(real_time_factor=1000.0).successful
    session.pause(False)
    session.spin(1.2)  # the factor is that of the last second
    values = session.diagnostics()
    session.pause()
    session.spin(0.3)
    assert values['level'] == 1
    assert 'slower than asked' in values['message']
    assert int(values['overruns']) > 0
    assert 0.0 < float(values['real_time_factor']) < 1000.0
    stamps = sorted({stamp_of(message) for message in session.messages['/clock']})
    assert {later - earlier for earlier, later in pairwise(stamps)} == {STEP}


def test_without_pacing_time_runs_as_fast_as_it_can(session):
    assert session.set(real_time_factor=0.0).successful
    session.pause(False)
    session.spin(1.2)
    values = session.diagnostics()
    assert values['level'] == 0
    assert float(values['real_time_factor']) > 1.0
