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


TREES = tuple(name for name in contact_sim.robots() if name != 'four_bar_quadruped')


def test_a_robot_with_loops_is_not_rebuilt_as_a_tree():
    from mujoco_peer import MujocoPeer

    with pytest.raises(ValueError, match='loops and couplings'):
        MujocoPeer(contact_sim.load_robot('four_bar_quadruped'), friction=0.8, time_step=1e-3)


@pytest.mark.parametrize('name', TREES)
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


def run(script, folder, *arguments):
    """Run a benchmark; return its figures and what it printed."""
    figures = folder / f'{script}.json'
    command = [sys.executable, str(BENCHMARKS / script), *arguments, '--json', str(figures)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600.0)
    assert result.returncode == 0, result.stderr
    return json.loads(figures.read_text(encoding='utf-8')), result.stdout


def test_steps_are_timed_next_to_mujoco_in_the_same_place(tmp_path):
    figures, told = run(
        'step_time.py', tmp_path, '--robots', 'go1', '--blocks', '2',
        '--only', 'steps', 'one_call', 'reading',
    )  # fmt: skip
    standing = contact_sim.load_robot('go1').reference_configuration()[2]
    assert [row['motion'] for row in figures['steps']] == ['stand', 'squat', 'trot']
    for row in figures['steps']:
        theirs = row['mujoco']
        for found in (row, theirs):
            assert 0.0 < found['least'] <= min(found['median'], found['p99'])
        assert row['ratio'] > 0.0
        assert row['depth_um'] <= 1.0
        assert theirs['depth_um'] > row['depth_um']  # the softer problem
        assert row['height_m'] == pytest.approx(theirs['height_m'], abs=0.02)
        assert row['motion'] in told
    heights = {row['motion']: row['height_m'] for row in figures['steps']}
    assert heights['stand'] == pytest.approx(standing, abs=0.02)
    (call,) = figures['one_call']
    assert 0.0 < call['us_least'] <= call['us']
    assert 0.0 < call['mujoco_least'] <= call['mujoco']
    # both sag under gravity at the same gains
    assert call['height_m'] == pytest.approx(heights['stand'], abs=1e-4)
    assert call['height_m'] == pytest.approx(call['mujoco_height_m'], abs=5e-3)
    reading = figures['reading']
    assert all(0.0 < value < 1e4 for value in reading.values())
    assert {'residuals', 'contacts.force', 'contacts.mode', 'joint_positions'} <= set(reading)


def test_pd_actuators_of_mujoco_give_the_effort_of_the_command():
    from mujoco_peer import MujocoPeer

    robot = contact_sim.load_robot('go1')
    rng = np.random.default_rng(3)
    kp, kd = rng.uniform(10.0, 30.0, robot.n_joints), rng.uniform(0.1, 1.0, robot.n_joints)
    peer = MujocoPeer(robot, 0.8, 1e-3, (kp, kd))
    q = robot.reference_configuration()
    peer.reset(q, robot.joint_positions(q))
    velocity = rng.uniform(-1.0, 1.0, robot.n_joints)
    target = robot.joint_positions(q) + rng.uniform(-2.0, 2.0, robot.n_joints)
    peer.data.qvel[peer.joint_dofs] = velocity
    peer.set_targets(target)
    mujoco.mj_forward(peer.model, peer.data)
    effort = kp * (target - robot.joint_positions(q)) - kd * velocity
    limited = np.clip(effort, -robot.effort_limit, robot.effort_limit)
    assert (limited != effort).any()
    assert (limited == effort).any()
    assert peer.data.qfrc_actuator[peer.joint_dofs] == pytest.approx(limited, abs=1e-12)


def test_squat_bends_the_legs_and_comes_back():
    from motions import SQUAT_PERIOD, Squat

    robot = contact_sim.load_robot('anymal_b')
    squat = Squat(robot)
    low = robot.with_joint_positions(
        robot.reference_configuration(), squat.target(0.5 * SQUAT_PERIOD)
    )
    model = robot.pinocchio_model
    data = model.createData()
    heights = []
    for q in (robot.reference_configuration(), low):
        pin.forwardKinematics(model, data, q)
        feet = [
            data.oMi[model.getJointId(point.joint)].act(np.asarray(point.offset))[2]
            for point in robot.contact_points
        ]
        assert np.ptp(feet) <= 1e-3  # all legs bend alike: the base stays level
        heights.append(float(np.mean(feet)))
    assert heights[1] > heights[0] + 0.01
    assert np.allclose(squat.target(SQUAT_PERIOD), squat.pose, atol=1e-12)


def test_many_worlds_are_timed_next_to_a_rollout_of_mujoco(tmp_path):
    rows, _ = run(
        'worlds_time.py', tmp_path, '--worlds', '3', '--threads', '1', '2', '--blocks', '2'
    )
    assert [row['threads'] for row in rows] == [1, 2]
    for row in rows:
        assert 0.0 < row['us_least'] <= row['us']
        assert 0.0 < row['mujoco_least'] <= row['mujoco']
        assert row['base_m'] == rows[0]['base_m']  # to the bit, whatever the threads
        assert np.allclose(row['base_m'], row['mujoco_base_m'], atol=5e-3)
        assert np.diff(np.array(row['base_m'])[:, 0]) == pytest.approx(1e-3, abs=5e-4)


def test_robots_on_one_ground_are_timed(tmp_path):
    rows, _ = run('robots_time.py', tmp_path, '--robots', '1', '3', '--blocks', '2')
    assert [row['robots'] for row in rows] == [1, 3]
    assert rows[0]['linear'] == 1.0
    assert all(0.0 < row['least'] <= row['us'] for row in rows)


def test_a_link_of_a_chain_costs_no_more_the_longer_the_chain(tmp_path):
    """Formed and factorised, the mass matrix makes a link of 200 four times as dear as of 50."""
    rows, _ = run('robots_time.py', tmp_path, '--chains', '50', '200', '--blocks', '5')
    short, long = (row for row in rows if row['engine'] == 'ncp')
    assert 0.0 < long['least'] / 200 < 1.3 * short['least'] / 50


def test_reduced_and_maximal_coordinates_are_timed(tmp_path):
    figures, told = run('maximal.py', tmp_path, '--links', '5', '10')
    assert [row['unknowns'] for row in figures['rows']] == [55, 110]
    for row in figures['rows']:
        assert all(0.0 < row[kind] < 1e5 for kind in ('reduced', 'aba', 'sparse', 'dense'))
        assert row['aba'] < row['sparse']
    assert 'exponent' in told
    drift = {name: found['drift'] for name, found in figures['drifts'].items()}
    assert drift['Projection'] <= 1e-12 < drift['Baumgarte(50)'] < drift['none'] < 0.02


def test_the_error_of_a_landing_falls_with_the_step(tmp_path):
    """Order 1, the most that impacts allow; the convex relaxation tends to ncp (2.12)."""
    rows, told = run('order.py', tmp_path, '--laws', 'ncp', 'anitescu', '--grounds', 'plane')
    for row in rows:
        assert row['order'] == pytest.approx(1.0, abs=0.2)
        assert np.all(np.diff(row['errors_mm']) < 0.0)
        assert row['floor_mm'] < 0.1 * row['errors_mm'][-1]
        assert f'| plane | {row["law"]} |' in told
    assert rows[1]['to_ncp_mm'] < 0.1 * rows[1]['errors_mm'][-1]


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


def test_a_page_that_somebody_has_open_is_timed():
    pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
    command = [
        sys.executable,
        str(BENCHMARKS / 'viewer.py'),
        '--robot',
        'quadruped',
        '--seconds',
        '1',
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120.0)
    assert result.returncode == 0, result.stderr
    rows = [line for line in result.stdout.splitlines() if line.startswith(('real', 'fastest'))]
    factors, pictures, size = np.array([row.split()[-6:-3] for row in rows], dtype=float).T
    assert (factors > 0.0).all()
    for seen in (pictures, size):
        assert (seen[[0, 2]] == 0.0).all()
        assert (seen[[1, 3]] > 0.0).all()
