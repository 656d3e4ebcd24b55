"""The scripts that measure determinism and endurance, on short runs."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import contact_sim

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'


def run(script, *arguments, codes=(0,)):
    """Return the figures that a script writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'figures.json'
        result = subprocess.run(
            [sys.executable, str(BENCHMARKS / script), *arguments, '--json', str(file)],
            capture_output=True,
            text=True,
            env={**os.environ, 'PYTHONPATH': str(BENCHMARKS.parent)},
            timeout=200,
        )
        assert result.returncode in codes, result.stdout + result.stderr
        return json.loads(file.read_text(encoding='utf-8'))


def test_every_model_has_one_hash():
    """Twice in one process, and in another process."""
    short = ('--seconds', '0.15', '--gait', 'march', '--runs')
    figures = [run('determinism.py', *short, runs) for runs in ('2', '1')]
    assert [row['model'] for row in figures[0]] == list(contact_sim.contact_models())
    for first, second in zip(*figures, strict=True):
        assert len(first['hashes']) == 1
        assert first['hashes'] == second['hashes']
        assert first['steps'] == 150
    assert len({row['hashes'][0] for row in figures[0]}) == len(figures[0])  # models do differ


def test_a_long_run_leaves_nothing_behind():
    figures = run('soak.py', '--seconds', '12', '--gait', 'march', '--replay')
    assert figures['simulated_s'] == 12
    assert figures['memory_grown_mb'] < 5.0
    assert figures['warnings'] == []
    assert figures['inexact_times'] == 0
    assert figures['repeated_steps'] == 12_000
    assert figures['repeated'] is True
    assert figures['switches'] == figures['pushes'] == figures['frictions'] == 3


@pytest.mark.ros
def test_free_runs_are_repeated_from_their_recording():
    pytest.importorskip('rclpy', reason='needs ROS')
    short = ('--runs', '2', '--times', '2', '--seconds', '0.4', '--models', 'ncp')
    (row,) = run('determinism.py', '--free', *short)
    assert row['runs'] == row['repeated'] == 2
    assert row['steps'] > 100


@pytest.mark.ros
def test_a_long_run_over_ros_keeps_its_clock():
    """In lockstep. Memory is not judged: it grows until every model has been met."""
    pytest.importorskip('rclpy', reason='needs ROS')
    figures = run('soak_node.py', '--seconds', '4', '--replay', codes=(0, 1))
    assert figures['inexact_times'] == figures['ticks_out_of_order'] == 0
    assert figures['warnings'] == []
    assert figures['repeated_steps'] == 4000
    assert figures['repeated'] is True
    counts = [figures[kind] for kind in ('switches', 'pushes', 'frictions', 'commands')]
    assert counts == [1, 1, 1, 1]
