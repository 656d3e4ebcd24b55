"""The demo as users run it: processes, topics, numbers, picture."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import SEEN, published_topics

from contact_sim import load_robot
from contact_sim.view._saved import NAMES

real_time = pytest.mark.real_time  # of a trot in lockstep nothing depends on it
GO1 = load_robot('go1')


def run(*arguments):
    return subprocess.run(
        [sys.executable, '-m', 'contact_sim.ros.demo', *arguments],
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp('demo') / 'new' / 'folder'
    return run('--robot', 'go1', '--seconds', '3', '--out', str(out)), out


@real_time
def test_the_demo_succeeds_and_prints_a_table(finished):
    process, _ = finished
    assert process.returncode == 0, process.stderr
    for word in ('weight_error', 'foot_drift', 'penetration', '/clock', 'viewer:=true'):
        assert word in process.stdout


@real_time
def test_the_demo_writes_what_it_found(finished):
    _, out = finished
    result = json.loads((out / 'demo.json').read_text(encoding='utf-8'))
    assert (result['robot'], result['contact_model']) == ('go1', 'ncp')
    assert result['simulated_seconds'] == pytest.approx(3.0, abs=0.1)
    assert 0.1 < result['real_time_factor'] < 1.05
    # the controller runs free: on a busy machine the robot may still settle, its feet rolling
    assert result['weight_error'] < 5e-2
    assert 0.0 <= result['foot_drift_m'] < 5e-2
    assert 0.0 <= result['penetration_m'] < 1e-6
    feet = tuple(foot.name for foot in GO1.feet)
    topics = {topic.lstrip('/') for topic in published_topics(feet).keys() - SEEN}
    topics.add('joint_commands')
    # silent without shadow models, sent where somebody listens, said once before anybody watches
    topics -= {'contact_sim/shadow', 'contact_sim/solver_diagnostics', 'contact_sim/terrain'}
    topics -= {'foot_contacts_stamped'}  # only while somebody subscribes
    topics = {topic for topic in topics if 'ground_truth' not in topic}
    assert {topic.lstrip('/') for topic in result['messages']} == topics
    assert all(count > 0 for count in result['messages'].values())
    # one per step, of which a watcher that is late gets the latest
    assert result['messages']['/clock'] >= 1500


@real_time
def test_the_demo_draws_a_picture(finished):
    from matplotlib.image import imread

    process, out = finished
    rendered = any(map(shutil.which, NAMES))
    assert ('no scene in the picture: no browser' in process.stderr) == (not rendered)
    picture = imread(out / 'demo.png')
    assert picture.shape[0] > 500
    assert picture.shape[1] > 1000
    assert len({tuple(pixel) for pixel in picture[::7, ::7].reshape(-1, picture.shape[2])}) > 20


@real_time
def test_the_demo_of_another_robot(tmp_path):
    process = run('--robot', 'solo12', '--seconds', '2', '--out', str(tmp_path), '--no-scene')
    assert process.returncode == 0, process.stderr
    result = json.loads((tmp_path / 'demo.json').read_text(encoding='utf-8'))
    assert result['robot'] == 'solo12'
    assert result['simulated_seconds'] == pytest.approx(2.0, abs=0.1)
    assert result['penetration_m'] < 1e-6
    assert result['weight_error'] < 1e-3
    assert (tmp_path / 'demo.png').stat().st_size > 10_000


def test_the_demo_trots(tmp_path):
    process = run('--demo', 'trot', '--seconds', '2', '--out', str(tmp_path), '--no-scene')
    assert process.returncode == 0, process.stderr
    result = json.loads((tmp_path / 'demo.json').read_text(encoding='utf-8'))
    assert result['height_change_m'] < 0.03
    assert 0.7 < result['way_m'] / (0.3 * 2.0) < 1.2
    assert result['penetration_m'] < 1e-6
    assert (tmp_path / 'demo.png').stat().st_size > 10_000


def test_the_demo_refuses_an_unknown_robot():
    process = run('--robot', 'go7')
    assert process.returncode == 1
    assert "unknown robot or file 'go7'" in process.stderr
    assert 'Traceback' not in process.stderr


def test_a_controller_that_refuses_the_robot_ends_the_demo():
    process = run('--demo', 'trot', '--robot', 'solo8')
    assert process.returncode == 1
    assert 'demo: the controller ended with exit code 1: trot_controller:' in process.stderr


@pytest.mark.parametrize('name', ['controller', 'simulation'])
def test_a_process_that_dies_ends_the_demo_with_its_reason(tmp_path, name):
    command = [sys.executable, '-m', 'contact_sim.ros.demo', '--demo', 'trot', '--seconds', '3000']
    with subprocess.Popen(
        [*command, '--out', str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as demo:  # fmt: skip
        modules = {'simulation': 'simulation_node', 'controller': 'controllers.trot'}
        os.kill(child_of(demo.pid, f'contact_sim.ros.{modules[name]}'), signal.SIGKILL)
        _, said = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert f'demo: the {name} ended with exit code -9' in said


def child_of(parent, module):
    """Return the id of the process that `parent` started to run a module, once it is there."""
    children = Path(f'/proc/{parent}/task/{parent}/children')
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        for child in children.read_text().split():
            if module in Path('/proc', child, 'cmdline').read_text().split('\0'):
                return int(child)
        time.sleep(0.2)
    raise TimeoutError(module)
