"""The viewer as a process: whatever happens to it, the simulation is told in one line, at once."""

import logging
import socket
import time

import pytest
from robots import ball

from contact_sim import Simulator
from contact_sim.view import child as children
from contact_sim.view.child import Child, Told
from contact_sim.view.feed import Feed
from contact_sim.view.session import Chosen, Offers

CHOSEN = Chosen('ncp', 0.8, 0.0, 1e-3, 1.0, 'standing')
ENDS_AT_ONCE = '-c', 'pass'
NEVER_READS = '-c', 'import time; time.sleep(60.0)'
SAYS_AND_WAITS = (
    '-c',
    (
        'import socket, sys, time\n'
        'end = socket.socket(fileno=int(sys.argv[2]))\n'
        """end.sendall(b'{"kind": "serving", "address": "there"}\\n')\n"""
        'time.sleep(60.0)'
    ),
)


@pytest.fixture
def made(monkeypatch):
    """Return what makes a child; all end with the test."""
    monkeypatch.setattr(children, 'is_installed', lambda: True)
    ends = []

    def make():
        sim, said = Simulator(ball()), []
        feed = Feed(sim, ('body',), lambda: (0.0, 1.0))
        told = lambda: Told(CHOSEN, '')  # noqa: E731
        child = Child(
            sim, feed, Offers(frames=('body',)), told, lambda message: None,
            lambda line, level: said.append((line, level)),
        )  # fmt: skip
        ends.extend((child.close, feed.memory.close))
        return child, said

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
    child, said = made()
    with socket.create_server(('localhost', 0)) as taken:
        port = taken.getsockname()[1]
        child.start('localhost', port)
        assert wait_for(lambda: child.complaint)
    expected = f'the viewer does not run: port {port} of localhost: Address already in use'
    assert child.complaint == f'{expected}; choose another port'
    assert said == [(child.complaint, logging.ERROR)]  # once
    assert child.address == ''


def test_without_viser_the_line_that_installs_it_is_told(made, monkeypatch):
    monkeypatch.setattr(children, 'is_installed', lambda: False)
    child, said = made()
    child.start('localhost', 1)
    assert "pip install 'contact_sim[view]'" in child.complaint
    assert said == [(child.complaint, logging.ERROR)]
    child.close()  # there is no process to end


def test_other_interfaces_are_warned_about(made, monkeypatch):
    monkeypatch.setattr(children, 'PROGRAM', SAYS_AND_WAITS)
    for host, warned in (('localhost', False), ('127.0.0.1', False), ('0.0.0.0', True)):
        child, said = made()
        child.start(host, 8080)
        assert wait_for(lambda child=child: child.address)
        assert said[-1] == ('the viewer is at there', logging.INFO)
        assert [level for _, level in said[:-1]] == [logging.WARNING] * warned
        assert all('no password' in line for line, _ in said[:-1])


def test_a_viewer_that_ends_is_told_once(made, monkeypatch):
    monkeypatch.setattr(children, 'PROGRAM', ENDS_AT_ONCE)
    child, said = made()
    child.start('localhost', 8080)
    assert wait_for(lambda: child.complaint)
    child.answer(1)
    child.close()
    expected = 'the viewer has ended; the simulation goes on without it'
    assert said == [(expected, logging.WARNING)]


def test_a_viewer_that_does_nothing_holds_up_nobody(made, monkeypatch):
    """It reads no message: what is told it fills the socket, which is the matter of a thread."""
    monkeypatch.setattr(children, 'PROGRAM', NEVER_READS)
    child, said = made()
    child.start('localhost', 8080)
    begin = time.perf_counter()
    for number in range(20_000):
        child.answer(number, 'a refusal of some length')
    child.close()
    assert time.perf_counter() - begin < 5.0
    assert said == []
