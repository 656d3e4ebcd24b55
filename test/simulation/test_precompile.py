"""Compiling ahead: once, in a process that ends with the one it works for."""

import os
import subprocess
import sys
import time

from contact_sim.simulation import precompile


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
        assert command[1:] == ['-m', 'contact_sim.simulation.precompile']
        return started[-1]

    monkeypatch.setattr(precompile, 'DONE', tmp_path / 'never')
    monkeypatch.setattr(subprocess, 'Popen', spy)
    begin = time.monotonic()
    with precompile.compiling_meanwhile():
        assert started[0].poll() is None
    assert started[0].poll() is not None
    assert time.monotonic() - begin < 30.0


def test_every_model_is_compiled_and_remembered(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(precompile, 'DONE', tmp_path / 'kernels' / 'done')
    monkeypatch.setattr(os, 'nice', lambda increment: increment)
    precompile.main()
    assert precompile.DONE.exists()
    printed = capsys.readouterr().out.split()
    assert printed[::2] == [f'{model}:' for model in precompile.contact_models()]
