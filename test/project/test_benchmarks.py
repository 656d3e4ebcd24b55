"""The benchmark compares like with like, and its figures add up."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import contact_sim

mujoco = pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `peers`)')

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'
STAGES = ['nle', 'crba', 'integrate', 'prepare', 'assemble', 'solve', 'advance', 'detect', 'rest']


@pytest.fixture(autouse=True)
def _benchmarks_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def mujoco_mass_matrix(peer):
    """Return M with rows in the order of Pinocchio's base and robot.joint_names."""
    mujoco.mj_forward(peer.model, peer.data)
    columns = np.concatenate([np.arange(6), peer.joint_dofs])
    full = np.zeros((peer.model.nv, peer.model.nv))
    mujoco.mj_fullM(peer.model, peer.data, full)
    return full[np.ix_(columns, columns)]


@pytest.mark.parametrize('name', contact_sim.robots())
def test_mujoco_gets_the_same_robot_in_the_same_place(name):
    from mujoco_peer import MujocoPeer

    robot = contact_sim.load_robot(name)
    peer = MujocoPeer(robot, friction=0.8, time_step=1e-3)
    q = robot.reference_configuration()
    q[2] -= 1e-6  # so that every foot is in contact in spite of rounding
    peer.reset(q, robot.joint_positions(q))
    ours = pin.crba(robot.pinocchio_model, robot.pinocchio_model.createData(), q)
    order = np.concatenate([np.arange(6), robot.joint_velocity_index])
    scale = np.abs(ours).max()
    assert np.abs(mujoco_mass_matrix(peer) - ours[np.ix_(order, order)]).max() <= 1e-12 * scale
    assert peer.contacts == len(robot.contact_points)
    assert peer.penetration == pytest.approx(1e-6, abs=1e-12)


def test_stages_add_up_to_the_total(tmp_path):
    figures = tmp_path / 'step_time.json'
    command = [sys.executable, str(BENCHMARKS / 'step_time.py'), '--robots', 'quadruped']
    result = subprocess.run(
        [*command, '--repeats', '3', '--json', str(figures)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    (row,) = json.loads(figures.read_text(encoding='utf-8'))
    assert sum(row[stage] for stage in STAGES) == pytest.approx(row['total'])
    assert all(row[stage] > 0.0 for stage in STAGES[:-1])
    assert row['mujoco'] > 0.0
    assert row['mujoco_contacts'] == 4
    assert row['penetration_um'] <= 1.0
    assert 'quadruped' in result.stdout


def test_round_trips_of_lockstep_are_counted(tmp_path):
    pytest.importorskip('rclpy', reason='rclpy is not installed (extra `ros`)')
    figures = tmp_path / 'lockstep.json'
    command = [sys.executable, str(BENCHMARKS / 'lockstep.py'), '--seconds', '0.2']
    result = subprocess.run(
        [*command, '--json', str(figures)], capture_output=True, text=True, timeout=120.0
    )
    assert figures.exists(), result.stderr
    found = json.loads(figures.read_text(encoding='utf-8'))
    assert found['round_trips'] == 199
    assert 0.05 < found['median_ms'] <= found['p95_ms'] <= found['p99_ms'] <= 1e3 * found['wall_s']


def test_every_controller_and_reading_is_timed(tmp_path):
    figures = tmp_path / 'control_time.json'
    command = [sys.executable, str(BENCHMARKS / 'control_time.py'), '--robots', 'solo12']
    result = subprocess.run(
        [*command, '--calls', '20', '--json', str(figures)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    times = json.loads(figures.read_text(encoding='utf-8'))
    for law in ('Stance.effort', 'Trot.effort'):
        assert list(times[law]) == ['solo12']
    for reading in ('joint_positions', 'joint_velocities'):
        assert list(times[reading]) == ['solo12', 'wheel']
    for row in times.values():
        assert all(0.0 < median <= high for median, high in row.values())
