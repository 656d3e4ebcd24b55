"""Compiling ahead: once, in a process that ends with the one it works for."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from contact_sim import precompile


def test_nothing_is_started_when_all_is_compiled(monkeypatch, tmp_path):
    done = tmp_path / 'done'
    done.touch()
    monkeypatch.setattr(precompile, 'DONE', done)
    monkeypatch.setattr(subprocess, 'Popen', lambda *args, **kwargs: 1 / 0)
    with precompile.compiling_meanwhile():
        pass


def test_the_process_ends_with_the_block(monkeypatch, tmp_path):
    started = []
    popen = subprocess.Popen

    def spy(command, **options):
        started.append(popen([sys.executable, '-c', 'import time; time.sleep(60)'], **options))
        assert command[1:3] == ['-m', 'contact_sim.precompile']
        assert options['start_new_session']  # Ctrl-C in a terminal does not reach it
        return started[-1]

    monkeypatch.setattr(precompile, 'DONE', tmp_path / 'never')
    monkeypatch.setattr(subprocess, 'Popen', spy)
    begin = time.monotonic()
    with precompile.compiling_meanwhile():
        assert started[0].poll() is None
    assert started[0].poll() is not None
    assert time.monotonic() - begin < 30.0


SWITCHES = """
from numba.core import event

recorder = event.RecordingListener()
event.register('numba:compile', recorder)
import contact_sim

from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.control import Stance, Trot
from contact_sim.precompile import variants

robot = contact_sim.load_robot('solo12')
sim = contact_sim.Simulator(robot)
for name in contact_sim.contact_models():
    for model in variants(CONTACT_MODELS[name]):
        sim.contact_model = model
        report = sim.step([0.0] * 12)
        print(model, report.residuals.penetration, report.contacts.force.sum())
        if isinstance(model, TimeSteppingModel):
            TimeSteppingModel.solve(model, report.problem)
sim.shadow = contact_sim.contact_models()
print(sim.step([0.0] * 12).shadows['sap'].force)
for model in ('ncp', 'compliant'):
    for controller in (Stance(robot), Trot(robot)):
        sim = contact_sim.Simulator(robot, model)
        for _ in range(500):
            sim.step(controller.effort(sim.time, sim.q, sim.v))
print('compiled', [e.data['dispatcher'].__name__ for _, e in recorder.buffer if e.is_start])
"""


def test_it_gives_way_to_everybody():
    code = 'import os; from contact_sim.precompile import run_idle; run_idle();'
    code += 'print(os.nice(0), os.sched_getscheduler(0) == os.SCHED_IDLE)'
    said = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ['19', 'True']


@pytest.mark.skipif(not Path('/proc/self/autogroup').exists(), reason='Linux without autogroups')
def test_it_takes_nothing_from_others_of_its_session():
    """The group of a session has one priority: that of the terminal, of pytest, of a launch."""
    group = Path('/proc/self/autogroup')
    before = group.read_text()
    code = 'from contact_sim.precompile import run_idle; run_idle();'
    code += f'print(open({str(group)!r}).read())'
    said = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert said.stdout == f'{before}\n'
    assert group.read_text() == before


def test_every_model_is_compiled_and_a_switch_compiles_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(precompile, 'DONE', tmp_path / 'kernels' / 'done')
    monkeypatch.setattr(precompile, 'run_idle', lambda: None)
    precompile.main([])
    assert precompile.DONE.exists()
    printed = capsys.readouterr().out.split()
    expected = [*precompile.contact_models(), precompile.CONTROLLERS]
    assert set(printed[::2]) == {f'{name}:' for name in expected}
    said = subprocess.run(
        [sys.executable, '-c', SWITCHES], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines()[-1] == 'compiled []'


def test_it_ends_when_its_input_does():
    """A node that is killed leaves no compiler behind."""
    command = [sys.executable, '-m', 'contact_sim.precompile', '--delay', '60', '--end-with-input']
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(30) == 0
