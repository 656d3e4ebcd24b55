"""The benchmark of environment steps and the example of training."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contact_sim import load_robot

ROOT = Path(__file__).resolve().parents[2]


def test_the_peer_observes_what_mujoco_states(monkeypatch):
    """Batched states and observations against the peer's own state, one world at a time."""
    pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `peers`)')
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    from gym_time import Theirs

    robot = load_robot('go1')
    theirs, random = Theirs(robot, 3, threads=1), np.random.default_rng(0)
    for _ in range(5):
        actions = random.uniform(-1.0, 1.0, (3, 12))
        theirs.step(actions)
    q, v = theirs.states
    peer = theirs._peer
    for world, row in enumerate(theirs._state):
        peer.data.qpos[:] = row[1 : 1 + peer.model.nq]
        peer.data.qvel[:] = row[1 + peer.model.nq : 1 + peer.model.nq + peer.model.nv]
        expected_q, expected_v = peer.state(robot)
        np.testing.assert_allclose(q[world], expected_q, atol=1e-12)
        np.testing.assert_allclose(v[world], expected_v, atol=1e-12)
    np.testing.assert_allclose(theirs.observation[:, 36:], actions, rtol=1e-6)
    assert np.abs(q[0] - q[1]).max() > 1e-3


def test_the_benchmark_prints_and_writes_its_figures(tmp_path):
    figures = tmp_path / 'figures.json'
    command = [
        sys.executable, str(ROOT / 'benchmarks/gym_time.py'), '--worlds', '3', '--calls', '2',
        '--threads', '1', '--json', str(figures),
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=300.0)
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(figures.read_text(encoding='utf-8'))
    assert row['environment'] > 0.0
    assert row['bare'] > 0.0
    assert max(row['tilt'].values()) < 0.5
    if row['rollout'] is not None:
        assert row['ratio'] > 0.0


def test_the_example_learns():
    """Two generations under one model are enough to see it."""
    pytest.importorskip('cma', reason='cma is not installed (extra `verdict`)')
    from train_transfer import FIRST, TRAINED, evaluate, train

    gait, history = train(TRAINED[0], 2, seed=0)
    assert history[1] > history[0]
    before, after = (evaluate(own, TRAINED[0], worlds=2) for own in (FIRST, gait))
    assert after[0] > before[0] + 0.1
