"""The viewer as a process: whatever happens to it, the simulation is told in one line, at once."""

import logging
import socket
import time

import numpy as np
import pytest
from robots import ball

from contact_sim import Simulator
from contact_sim.collision._terrain import InclinedPlane, Plane, as_terrain
from contact_sim.terrain._generator import ready_made
from contact_sim.view import _process
from contact_sim.view._process import Feed, PageState, ViewerProcess
from contact_sim.view._session import Capabilities, Settings

STATE = PageState(Settings('ncp', 0.8, 0.0, 1e-3, 1.0, 'standing'), '')
ENDS_AT_ONCE = '-c', 'pass'
NEVER_READS = '-c', 'import time; time.sleep(60.0)'
SAYS_AND_WAITS = (
    '-c',
    (
        'import sys, time\n'
        'from multiprocessing.connection import Connection\n'
        'end = Connection(int(sys.argv[2]))\n'
        "end.send(('serving', 'there'))\n"
        'time.sleep(60.0)'
    ),
)

TELLS_WHAT_IT_SEES = (
    '-c',
    """\
import os, sys, time
from multiprocessing.connection import Connection
import numpy as np
from contact_sim.view.viewer_main import RemoteSession
session = RemoteSession(Connection(int(sys.argv[2])), int(sys.argv[1]), lambda: os._exit(0))
session.wait()
while True:
    shown = session.latest()
    gap = float(session.ground.signed_distance(np.array([[0.3, 0.4, 1.0]]))[0])
    seen = dict(gap=gap, own_gap=float(shown.report.contacts.gap.min()),
                shadows=list(shown.shadows), time=shown.report.time)
    session.execute('seen', seen)
    time.sleep(0.01)
""",
)


@pytest.fixture
def made(monkeypatch):
    """Return what makes a viewer; all end with the test."""
    monkeypatch.setattr(_process, 'is_installed', lambda: True)
    ends = []

    def make():
        sim, said = Simulator(ball()), []
        feed = Feed(sim, ('body',), lambda: (0.0, 1.0))
        viewer = ViewerProcess(
            sim, feed, Capabilities(frames=('body',)), lambda: STATE, lambda *_: None,
            lambda line, level: said.append((line, level)),
        )  # fmt: skip
        ends.extend((viewer.close, feed.memory.close))
        return viewer, said

    yield make
    for end in ends:
        end()


def wait_for(condition, patience=30.0):
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_a_port_that_is_taken_is_told_with_its_number(made):
    pytest.importorskip('viser', reason="needs viser: pip install 'contact_sim[view]'")
    viewer, said = made()
    with socket.create_server(('localhost', 0)) as taken:
        port = taken.getsockname()[1]
        viewer.start('localhost', port)
        assert wait_for(lambda: viewer.error)
    expected = f'the viewer does not run: port {port} of localhost: Address already in use'
    assert viewer.error == f'{expected}; choose another port'
    assert said == [(viewer.error, logging.ERROR)]  # once
    assert viewer.address == ''


def test_without_viser_the_line_that_installs_it_is_told(made, monkeypatch):
    monkeypatch.setattr(_process, 'is_installed', lambda: False)
    viewer, said = made()
    viewer.start('localhost', 1)
    assert "pip install 'contact_sim[view]'" in viewer.error
    assert said == [(viewer.error, logging.ERROR)]
    viewer.close()  # there is no process to end


def test_other_interfaces_are_warned_about(made, monkeypatch):
    monkeypatch.setattr(_process, 'PROGRAM', SAYS_AND_WAITS)
    for host, warned in (('localhost', False), ('127.0.0.1', False), ('0.0.0.0', True)):
        viewer, said = made()
        viewer.start(host, 8080)
        assert wait_for(lambda viewer=viewer: viewer.address)
        assert said[-1] == ('the viewer is at there', logging.INFO)
        assert [level for _, level in said[:-1]] == [logging.WARNING] * warned
        assert all('without encryption' in line for line, _ in said[:-1])


def test_a_viewer_that_ends_is_told_once(made, monkeypatch):
    monkeypatch.setattr(_process, 'PROGRAM', ENDS_AT_ONCE)
    viewer, said = made()
    viewer.start('localhost', 8080)
    assert wait_for(lambda: viewer.error)
    viewer.answer(1)
    viewer.close()
    expected = 'the viewer has ended; the simulation goes on without it'
    assert said == [(expected, logging.WARNING)]


def test_a_viewer_that_does_nothing_holds_up_nobody(made, monkeypatch):
    """It reads no message: what is told it fills the pipe, which is the matter of a thread."""
    monkeypatch.setattr(_process, 'PROGRAM', NEVER_READS)
    viewer, said = made()
    viewer.start('localhost', 8080)
    begin = time.perf_counter()
    for number in range(20_000):
        viewer.answer(number, 'a refusal of some length')
    viewer.close()
    assert time.perf_counter() - begin < 5.0
    assert said == []


def last(seen):
    return seen[-1]['time'] if seen else None


def test_the_viewer_follows_other_ground_and_other_shadows(monkeypatch):
    """It sees the newest step on the ground on which that was taken, whenever that changes."""
    monkeypatch.setattr(_process, 'is_installed', lambda: True)
    monkeypatch.setattr(_process, 'PROGRAM', TELLS_WHAT_IT_SEES)
    sim, seen = Simulator(ball(radius=0.1)), []
    feed = Feed(sim, ('body',), lambda: (0.0, 1.0))

    def execute(number, name, arguments):
        seen.append(arguments)
        viewer.answer(number)

    viewer = ViewerProcess(
        sim, feed, Capabilities(frames=('body',)), lambda: STATE, execute, lambda *_: None
    )
    viewer.start('localhost', 8080)
    try:
        for ground in (Plane(), InclinedPlane(0.3), as_terrain(ready_made('rough', 0.5, 0))):
            sim.reset([0.3, 0.4, 1.0, 0.0, 0.0, 0.0, 1.0], terrain=ground)
            expected = float(ground.signed_distance(np.array([[0.3, 0.4, 1.0]]))[0])
            for shadows in ([], ['lcp']):
                sim.shadow = shadows
                feed.latest = sim.step([]), {}
                assert wait_for(lambda now=sim.time: feed.write_if_due() or last(seen) == now)
                assert seen[-1]['gap'] == expected
                assert seen[-1]['own_gap'] == pytest.approx(expected - 0.1, abs=1e-4)
                assert seen[-1]['shadows'] == shadows
        assert viewer.error == ''
    finally:
        viewer.close()
        feed.memory.close()
