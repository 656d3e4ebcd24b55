"""The session of a simulation in another process: what it says when that does not answer."""

import json
import socket
import threading

import pytest
from robots import ball

from contact_sim import Simulator
from contact_sim.replay._archive import RecordingError
from contact_sim.replay._header import header_of
from contact_sim.view import viewer_main
from contact_sim.view._process import Channel
from contact_sim.view.viewer_main import Refused, RemoteSession


@pytest.fixture
def ends():
    """Return a session, the channel at its other end, and what is set when that is gone."""
    ours, theirs = socket.socketpair()
    over = threading.Event()
    session, other = RemoteSession(Channel(ours), -1, over.set), Channel(theirs)
    yield session, other, over
    other.close()
    session.close()
    assert over.wait(10.0)
    for end in (ours, theirs):
        end.close()


def answering(other, *refusals):
    """Answer as many questions with these refusals; return what was asked."""
    asked = []

    def answer():
        for refusal, message in zip(refusals, other.messages(), strict=False):
            asked.append((message['what'], message['how']))
            other.send('answer', number=message['number'], refusal=refusal)

    threading.Thread(target=answer, daemon=True).start()
    return asked


def test_what_is_asked_for_is_done_or_refused_in_the_words_of_the_simulation(ends):
    session, other, _ = ends
    asked = answering(other, '', 'friction.mu = -1: expected at least 0')
    session.set_contact_model('sap')
    with pytest.raises(Refused, match=r'^friction\.mu = -1: expected at least 0$'):
        session.set_friction(-1)
    assert asked == [('set_contact_model', {'name': 'sap'}), ('set_friction', {'friction': -1.0})]


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
    other._end.sendall(b'{"kind": "answer", "num')
    other.close()
    assert over.wait(10.0)
    assert session.take_messages() == []


def test_a_robot_that_cannot_be_built_is_an_error(ends):
    session, other, _ = ends
    header = json.loads(json.dumps(header_of(Simulator(ball()), 1, None)))
    header['robot']['hash'] = 'another'
    other.send('world', number=1, header=header, shadows=[], offers={'fixed': []}, length=1)
    with pytest.raises(RecordingError, match=r'the description of robot .* was changed'):
        session.wait()
