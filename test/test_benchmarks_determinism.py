"""The scripts that measure determinism and endurance, on short runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import contact_sim

BENCHMARKS = Path(__file__).resolve().parent.parent / 'benchmarks'


def run(script, *arguments):
    """Return the process, and the figures that it wrote."""
    result = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, 'PYTHONPATH': str(BENCHMARKS.parent)},
        timeout=200,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def test_every_model_has_one_hash(tmp_path):
    """Twice in one process, and in another process."""
    figures = []
    for name in ('first', 'second'):
        path = tmp_path / f'{name}.json'
        run(
            'determinism.py',
            '--runs',
            '2',
            '--seconds',
            '0.3',
            '--gait',
            'march',
            '--json',
            str(path),
        )
        figures.append(json.loads(path.read_text(encoding='utf-8')))
    assert [row['model'] for row in figures[0]] == list(contact_sim.contact_models())
    for first, second in zip(*figures, strict=True):
        assert len(first['hashes']) == 1
        assert first['hashes'] == second['hashes']
        assert first['steps'] == 300
    assert len({row['hashes'][0] for row in figures[0]}) == len(figures[0])  # models do differ


def test_a_long_run_leaves_nothing_behind(tmp_path):
    path = tmp_path / 'soak.json'
    run('soak.py', '--seconds', '20', '--gait', 'march', '--replay', '--json', str(path))
    figures = json.loads(path.read_text(encoding='utf-8'))
    assert figures['simulated_s'] == 20
    assert figures['memory_grown_mb'] < 5.0
    assert figures['warnings'] == []
    assert figures['inexact_times'] == 0
    assert figures['repeated_steps'] == 20_000
    assert figures['repeated'] is True
    assert figures['switches'] == figures['pushes'] == figures['frictions'] == 5
