"""The node serves its page: by a process of its own, which neither ends it nor outlives it."""

import json
import os
import re
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import asking_viewer
from ros_session import START_TIMEOUT, Session, published_topics

from contact_sim import load_robot
from contact_sim.replay import Recording, repeat
from contact_sim.ros._processes import Process, ros_arguments

NODE_THAT_IS_ASKED = (sys.executable, asking_viewer.__file__)
TOPICS = {'/diagnostics': published_topics(())['/diagnostics']}


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def is_running(process):
    """Return whether a process is there that has not ended."""
    try:
        return Path(f'/proc/{process}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def viewers_of(process):
    """Return the processes that a node has started to serve its page."""
    children = [int(word) for task in Path(f'/proc/{process}/task').iterdir()
                for word in (task / 'children').read_text().split()]  # fmt: skip
    return [
        child
        for child in children
        if b'view.viewer_main' in Path(f'/proc/{child}/cmdline').read_bytes()
    ]


def test_a_page_is_served_and_its_end_is_a_warning(tmp_path):
    pytest.importorskip('viser', reason="needs viser: pip install 'contact_sim[view]'")
    port = free_port()
    parameters = {'viewer.port': port, 'real_time_factor': 0.0}
    with Session(tmp_path, TOPICS, parameters) as session:
        session.started()
        served = re.compile(rf'the viewer is at (http://localhost:{port}/[\w-]{{22}}/)')
        session.wait(lambda: served.search(session.output_tail()), 'it', START_TIMEOUT)
        address = served.search(session.output_tail())[1]
        with pytest.raises(urllib.error.HTTPError, match='403'):
            urllib.request.urlopen(f'http://localhost:{port}/', timeout=10.0)
        with urllib.request.urlopen(address, timeout=10.0) as answer:
            assert answer.status == 200
            assert b'<html' in answer.read()
        assert session.diagnostics()['viewer'] == address
        (viewer,) = viewers_of(session.simulation.handle.pid)
        os.kill(viewer, signal.SIGKILL)
        session.wait(lambda: 'the viewer has ended' in session.output_tail(), 'the warning')
        said = session.diagnostics()
        assert (said['level'], said['viewer']) == (1, '')
        assert 'the viewer has ended; the simulation goes on' in said['message']
        assert int(session.diagnostics()['steps_since_reset']) > int(said['steps_since_reset'])
        assert session.output_tail().count('the viewer has ended') == 1


class Asked(Session):
    """A node whose viewer asks for everything."""

    def start(self, parameters):
        os.environ[asking_viewer.RESULTS] = str(self.folder / 'results.json')
        self.simulation = Process(
            NODE_THAT_IS_ASKED, ros_arguments(parameters), self.domain,
            self.folder / 'simulation.log',
        )  # fmt: skip

    def results(self):
        path = self.folder / 'results.json'
        self.wait(path.exists, 'the results of the viewer', START_TIMEOUT)
        return json.loads(path.read_text())


def test_what_the_page_asks_for_happens_to_the_node(tmp_path):
    with Asked(tmp_path, TOPICS, {'viewer.port': 1, 'record': tmp_path / 'run.npz'}) as session:
        found = session.results()
        names = ('contact.model', 'friction.mu', 'restitution', 'real_time_factor')
        assert session.get(*names) == ['sap', 0.3, 0.25, 2.0]
        assert session.diagnostics()['contact_model'] == 'sap'
        session.simulation.handle.send_signal(signal.SIGINT)
        assert session.simulation.handle.wait(60.0) == 0
        deadline = time.monotonic() + 10.0
        while is_running(found['pid']) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_running(found['pid'])
    check_what_it_found(found)
    check_the_recording(tmp_path / 'run.npz')


def check_what_it_found(found):
    assert found['robot'] == 'go1'
    assert 'trunk' in found['frames']
    assert found['paused']
    assert found['resumed']
    chosen = found['chosen']
    assert (chosen['contact_model'], chosen['friction']) == ('sap', 0.3)
    assert (chosen['restitution'], chosen['speed'], chosen['time_step']) == (0.25, 2.0, 1e-3)
    assert found['gap'] == pytest.approx(1.0, abs=1e-9)
    assert found['standing'] == pytest.approx(0.0, abs=1e-9)
    assert found['time'] == pytest.approx(0.112, abs=1e-9)  # 1 + 50 + 60 + 1 steps
    check_the_momentum(found)
    assert found['pushed'] == {'trunk': [40.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
    assert list(found['dragged']) == ['trunk']
    assert found['dragged']['trunk'][2] < -1.0  # towards a foot, which is below
    assert found['let_go'] == []
    expected = {
        'set_pose': 'no such pose', 'set_friction': 'mu', 'set_contact_model': 'saap',
        'push': "unknown link .*'nose'", 'drag': "'nose'", 'step': 'number of steps',
        'set_time_step': 'time_step of the node', 'unknown': 'no such thing',
    }  # fmt: skip
    for name, words in expected.items():
        assert re.search(words, found['refusals'][name]), name


def check_the_momentum(found):
    """In the air the momentum of the robot changes by F Δt and m g Δt, whatever its joints do."""
    before, after = np.array(found['momentum'])
    mass = load_robot('go1').total_mass
    assert after - before == pytest.approx([4.0, 0.0, -mass * 9.81 * 0.111], abs=0.02)


def check_the_recording(path):
    """A recording has the changes as what they are, and repeats to the bit."""
    outcome = repeat(Recording(path))
    assert outcome.equal, outcome
    kinds = {e['kind'] for c in Recording(path).chunks() for es in c.events.values() for e in es}
    assert {'contact_model', 'friction', 'restitution', 'wrenches', 'reset'} <= kinds
