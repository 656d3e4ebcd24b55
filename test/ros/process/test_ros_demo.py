"""The demo as users run it: processes, topics, numbers, picture."""

import json
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import published_topics

from contact_sim import load_robot
from contact_sim.ros.demo.__main__ import main
from contact_sim.ros.demo.verdict import complaints, power_of_ten

pytestmark = pytest.mark.ros

GO1 = load_robot('go1')
GOOD = {
    'base_height_m': 0.27,
    'weight_error': 1e-9,
    'messages': {'/clock': 5000, 'odom': 1250},
}


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
    return run('--robot', 'go1', '--seconds', '5', '--out', str(out)), out


def test_the_demo_succeeds_and_prints_a_table(finished):
    process, _ = finished
    assert process.returncode == 0, process.stderr
    for word in ('weight_error', 'foot_drift', 'penetration', '/clock', 'joint_commands'):
        assert word in process.stdout


def test_the_demo_writes_what_it_found(finished):
    _, out = finished
    result = json.loads((out / 'demo.json').read_text(encoding='utf-8'))
    assert (result['robot'], result['contact_model']) == ('go1', 'ncp')
    assert result['simulated_seconds'] == pytest.approx(5.0, abs=0.1)
    assert 0.1 < result['real_time_factor'] < 1.05
    # the controller runs free: on a busy machine the robot may still settle, its feet rolling
    assert result['weight_error'] < 5e-2
    assert 0.0 <= result['foot_drift_m'] < 5e-2
    assert 0.0 <= result['penetration_m'] < 1e-6
    feet = tuple(point.name for point in GO1.contact_points)
    topics = {topic.lstrip('/') for topic in published_topics(feet)} | {'joint_commands'}
    topics -= {'contact_sim/shadow'}  # silent without shadow models
    assert {topic.lstrip('/') for topic in result['messages']} == topics
    assert all(count > 0 for count in result['messages'].values())
    assert result['messages']['/clock'] >= 5000


def test_the_demo_draws_a_picture(finished):
    from matplotlib.image import imread

    _, out = finished
    picture = imread(out / 'demo.png')
    assert picture.shape[0] > 500
    assert picture.shape[1] > 1000
    assert len({tuple(pixel) for pixel in picture[::7, ::7].reshape(-1, picture.shape[2])}) > 20


def test_the_demo_of_another_robot(tmp_path):
    process = run('--robot', 'solo12', '--seconds', '2', '--out', str(tmp_path))
    assert process.returncode == 0, process.stderr
    result = json.loads((tmp_path / 'demo.json').read_text(encoding='utf-8'))
    assert result['robot'] == 'solo12'
    assert result['simulated_seconds'] == pytest.approx(2.0, abs=0.1)
    assert result['penetration_m'] < 1e-6
    assert result['weight_error'] < 1e-3
    assert (tmp_path / 'demo.png').stat().st_size > 10_000


def test_the_demo_trots(tmp_path):
    process = run('--demo', 'trot', '--seconds', '3', '--out', str(tmp_path))
    assert process.returncode == 0, process.stderr
    result = json.loads((tmp_path / 'demo.json').read_text(encoding='utf-8'))
    assert result['height_change_m'] < 0.03
    assert 0.7 < result['way_m'] / (0.3 * 3.0) < 1.2
    assert result['penetration_m'] < 1e-6
    assert (tmp_path / 'demo.png').stat().st_size > 10_000


def test_the_demo_refuses_an_unknown_robot():
    process = run('--robot', 'go7')
    assert process.returncode == 1
    assert "unknown robot or file 'go7'" in process.stderr
    assert 'Traceback' not in process.stderr


@pytest.mark.parametrize('seconds', ['0', '-1', 'nan', 'inf', '0.01', 'five'])
def test_the_demo_refuses_a_time_that_is_none(seconds, capsys):
    with pytest.raises(SystemExit) as end:
        main([f'--seconds={seconds}'])
    assert end.value.code == 2
    assert f'argument --seconds: {seconds}' in capsys.readouterr().err.replace("'", '').replace(
        'invalid watched_seconds value: ', ''
    )


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        ({}, None),
        ({'base_height_m': 0.1}, 'the robot fell: its base is at 0.100 m'),
        ({'base_height_m': float('nan')}, 'the robot fell'),
        ({'weight_error': 0.2}, 'do not carry the weight: error 0.2'),
        ({'weight_error': float('nan')}, 'do not carry the weight'),
        ({'messages': {'/clock': 5000, 'odom': 0}}, 'no message on odom'),
    ],
)
def test_what_the_demo_complains_about(change, complaint):
    check_complaints(GOOD | change, complaint)


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        ({}, None),
        ({'height_change_m': 0.04}, 'left its height by 0.040 m'),
        ({'way_m': 0.1}, 'it went 0.10 m of 0.90 m'),
        ({'way_m': float('nan')}, 'it went nan m'),
    ],
)
def test_what_the_trot_demo_complains_about(change, complaint):
    good = {name: value for name, value in GOOD.items() if name != 'weight_error'}
    good |= {'height_change_m': 2e-3, 'way_m': 0.88, 'commanded_way_m': 0.9}
    check_complaints(good | change, complaint)


def check_complaints(figures, complaint):
    """Check that there is one complaint with these words, or none."""
    found = complaints(figures, standing=0.27)
    assert len(found) == (complaint is not None)
    assert all(complaint in one for one in found)


@pytest.mark.parametrize(
    ('value', 'text'), [(3.24e-8, '3.2·10⁻⁸'), (0.0, '0'), (1.0, '1.0·10⁰'), (12e9, '1.2·10¹⁰')]
)
def test_small_numbers_are_written_as_people_do(value, text):
    assert power_of_ten(value) == text
