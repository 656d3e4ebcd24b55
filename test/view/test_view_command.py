"""python -m contact_sim.view: what it prints, and how it ends where something is wrong."""

import importlib.util
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from contact_sim.replay import Recording
from contact_sim.replay._replayer import Replayer
from contact_sim.view import _process as servers
from contact_sim.view.__main__ import main, parser, simulator

needs_viser = pytest.mark.skipif(
    importlib.util.find_spec('viser') is None, reason="no viser: pip install 'contact_sim[view]'"
)


def said(capsys, *arguments):
    """Return exit status and the one line of reason."""
    status = main(arguments)
    (line,) = capsys.readouterr().err.strip().splitlines()
    return status, line


def test_options_make_the_simulation():
    sim = simulator(
        parser().parse_args(
            ['quadruped', '--model', 'sap', '--terrain', 'stairs', '--friction', '0.3',
             '--time-step', '5e-4']
        )
    )  # fmt: skip
    assert (sim.contact_model, sim.time_step, sim.friction[0]) == ('sap', 5e-4, 0.3)
    assert type(sim.terrain).__name__ != 'Plane'
    assert sim.terrain.height(0.0, 4.0) != sim.terrain.height(0.0, 0.0)


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['no_such_robot'], 'no_such_robot'),
        (['quadruped', '--terrain', 'lava.txt'], 'lava.txt'),
        (['quadruped', '--friction', '-1'], 'friction'),
        (['quadruped', '--controller', 'dance'], 'dance'),
        (['quadruped', '--controller', 'dance:'], 'module:name'),
        (['quadruped', '--record', '/nowhere/run.npz'], '/nowhere/run.npz'),
        (['quadruped', '--record=/nowhere/run.npz'], 'cannot write /nowhere/run.npz'),
        (['/nowhere/run.npz'], '/nowhere/run.npz'),
        (['quadruped', '--controller', 'no.such:Thing'], 'no.such:Thing'),
        (['quadruped', '--speed', '-1'], 'speed'),
        (['quadruped', '--port', '99999'], '99999'),
    ],
)
@needs_viser
def test_what_cannot_be_is_one_line(capsys, arguments, reason):
    status, line = said(capsys, *arguments)
    assert status == 1
    assert reason in line


@needs_viser
def test_a_port_that_is_taken(capsys):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = str(taken.getsockname()[1])
        status, line = said(capsys, 'quadruped', '--host', '127.0.0.1', '--port', port)
    assert status == 1
    assert port in line
    assert 'another port' in line


def test_without_viser_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(servers, 'is_installed', lambda: False)
    status, line = said(capsys, 'quadruped')
    assert status == 1
    assert "pip install 'contact_sim[view]'" in line


@needs_viser
def test_it_serves_until_ctrl_c(free_port):
    process = subprocess.Popen(
        [sys.executable, '-m', 'contact_sim.view', 'quadruped', '--port', str(free_port),
         '--host', '127.0.0.1'],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # what a shell runs in the background would not hear of Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        found = re.fullmatch(
            rf'quadruped: http://localhost:{free_port}/([\w-]{{22}})/ \(Ctrl-C ends\)\n', line
        )
        assert found, line
        address = f'http://127.0.0.1:{free_port}/{found[1]}/'
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert 'Traceback' not in errors


@needs_viser
def test_whoever_lets_others_in_is_warned(capsys, monkeypatch, free_port):
    from contact_sim.view._page import Page

    def stop(self, wanted):
        raise KeyboardInterrupt

    monkeypatch.setattr(Page, 'run', stop)
    assert main(['quadruped', '--host', '0.0.0.0', '--port', str(free_port)]) == 0
    assert 'without encryption' in capsys.readouterr().err


@needs_viser
def test_a_moving_scene_is_saved(capsys, tmp_path):
    path, run = tmp_path / 'scene.html', tmp_path / 'run.npz'
    trots = ['--controller', 'trot', '--velocity', '0.3', '0', '0', '--record', str(run)]
    assert main(['quadruped', *trots, '--save', str(path), '--duration', '1.5']) == 0
    player = Replayer(Recording(run))
    steps = sum(1 for _ in player.steps())
    assert steps * 1e-3 == pytest.approx(1.5, abs=0.04)
    assert player.sim.q[0] > 0.1
    assert capsys.readouterr().out.strip() == str(path)
    assert '<html' in path.read_text(encoding='utf-8')[:2000].lower()
    for bad in (tmp_path / 'nowhere' / 'scene.html', tmp_path / 'scene.txt'):
        status, line = said(capsys, 'quadruped', '--save', str(bad), '--duration', '0.1')
        assert status == 1
        assert bad.name in line
