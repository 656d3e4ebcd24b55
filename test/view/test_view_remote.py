"""The session of a simulation in another process: what it says when that does not answer."""

import json
import os
import threading
from multiprocessing import Pipe

import pytest
from robots import ball

from contact_sim import Simulator
from contact_sim.replay._format import RecordingError, header_of
from contact_sim.view import viewer_main
from contact_sim.view._process import received
from contact_sim.view.viewer_main import Refused, RemoteSession


@pytest.fixture
def ends():
    """Return a session, the connection at its other end, and what is set when that is gone."""
    ours, other = Pipe()
    over = threading.Event()
    session = RemoteSession(ours, -1, over.set)
    yield session, other, over
    session.close()
    assert over.wait(10.0)
    for end in (ours, other):
        end.close()


def answering(other, *refusals):
    """Answer as many questions with these refusals; return what was asked."""
    asked = []

    def answer():
        for refusal, (_, number, *command) in zip(refusals, received(other), strict=False):
            asked.append(tuple(command))
            other.send(('answer', number, refusal))

    threading.Thread(target=answer, daemon=True).start()
    return asked


def test_what_is_asked_for_is_done_or_refused_in_the_words_of_the_simulation(ends):
    session, other, _ = ends
    asked = answering(other, '', 'friction.mu = -1: expected at least 0')
    session.set_contact_model('sap')
    with pytest.raises(Refused, match=r'^friction\.mu = -1: expected at least 0$'):
        session.set_friction(-1)
    assert asked == [
        ('set', {'name': 'contact_model', 'value': 'sap'}),
        ('set', {'name': 'friction', 'value': -1.0}),
    ]


def test_no_answer_is_told(ends, monkeypatch):
    monkeypatch.setattr(viewer_main, 'PATIENCE', 0.05)
    session, _, _ = ends
    with pytest.raises(Refused, match=r'reset: no answer in 0\.05 s'):
        session.reset()


def test_the_end_of_the_simulation_is_told(ends):
    session, other, over = ends
    other.close()
    assert over.wait(10.0)
    with pytest.raises(Refused, match='pause: the simulation has ended'):
        session.pause()


def test_a_message_that_was_cut_off_is_none(ends):
    """As by a process that is killed while it writes."""
    session, other, over = ends
    os.write(other.fileno(), b'\0\0\0\x10answ')  # of 16 bytes
    other.close()
    assert over.wait(10.0)
    assert session.take_messages() == []


def test_a_robot_that_cannot_be_built_is_an_error(ends):
    session, other, _ = ends
    header = json.loads(json.dumps(header_of(Simulator(ball()), 1, None)))
    header['robot']['hash'] = 'another'
    other.send(('world', 1, 1, header, []))
    with pytest.raises(RecordingError, match=r'the description of robot .* was changed'):
        session.wait()
