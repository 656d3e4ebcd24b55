"""Processes of a launch: none starts where one is missing, and all end when the launch ends."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from launch_files import (
    DEMOS,
    launch_module,
    needs_launch,
    read_records,
    recorded_launch,
    recording,
)

ALL = ('simulation.launch.py', 'compare.launch.py', *DEMOS)
FIRST_ENDS = {'simulation': (1.0, 0)}
"""The simulation ends at once, and with it the launch."""
SOON = 40.0
"""Wall seconds in which processes end; by themselves they would take a minute."""


@pytest.mark.parametrize('name', ALL)
def test_every_launch_file_can_do_without_what_shows_the_robot(name):
    module, _ = launch_module(name)
    assert {'rviz', 'robot_state_publisher'} <= module.ARGUMENTS.keys()


@pytest.mark.parametrize('package', ['rviz2', 'robot_state_publisher'])
@pytest.mark.parametrize('name', ALL)
@needs_launch
def test_nothing_starts_where_a_package_is_missing_that_was_asked_for(tmp_path, name, package):
    asked = package.replace('rviz2', 'rviz') + ':=true'
    records, result = recorded_launch(tmp_path, name, asked, missing=[package])
    assert result.returncode == 1
    assert records == {}
    argument = package.replace('rviz2', 'rviz') + ':=false'
    assert f'{package!r} in AMENT_PREFIX_PATH' in result.stdout + result.stderr
    assert f'launch with {argument}' in result.stdout + result.stderr


@pytest.mark.parametrize('name', ALL)
@needs_launch
def test_by_default_nothing_is_needed_that_shows_the_robot(tmp_path, name):
    records, result = recorded_launch(
        tmp_path, name, missing=['rviz2', 'robot_state_publisher'], ends=FIRST_ENDS
    )
    assert result.returncode == 0, result.stderr
    assert {record.partition('-')[0] for record in records} <= {
        'simulation', 'stance_controller', 'trot_controller',
    }  # fmt: skip
    assert 'robot_state_publisher is not installed' in result.stdout + result.stderr


@needs_launch
def test_the_launch_fails_where_robot_state_publisher_dies(tmp_path):
    ends = {'robot_state_publisher': (1.0, 2)}
    records, result = recorded_launch(tmp_path, 'simulation.launch.py', ends=ends)
    assert result.returncode == 1
    assert all(ended(records))
    assert 'robot_state_publisher ended with exit code 2' in result.stdout + result.stderr


@pytest.mark.parametrize('name', ALL)
@needs_launch
def test_an_unknown_argument_is_an_error_with_the_near_miss(tmp_path, name):
    records, result = recorded_launch(tmp_path, name, 'robott:=go1')
    assert result.returncode == 1
    assert records == {}
    assert 'argument of ' + name in result.stdout + result.stderr
    assert "'robott'" in result.stdout + result.stderr
    assert "did you mean 'robot'" in result.stdout + result.stderr


@needs_launch
def test_processes_have_the_names_of_their_executables(tmp_path):
    _, result = recorded_launch(tmp_path, 'stance_demo.launch.py', ends=FIRST_ENDS)
    for name in ('simulation', 'stance_controller', 'robot_state_publisher'):
        assert f'[{name}-' in result.stdout + result.stderr
    assert '[setpriv' not in result.stdout + result.stderr


@needs_launch
def test_the_named_argument_does_without(tmp_path):
    records, result = recorded_launch(
        *(tmp_path, 'stance_demo.launch.py', 'robot_state_publisher:=false'),
        missing=['rviz2', 'robot_state_publisher'],
    )
    assert result.returncode == 0, result.stderr
    assert records.keys() == {'simulation', 'stance_controller'}


@pytest.mark.parametrize(('code', 'status'), [(0, 0), (3, 1)])
@pytest.mark.parametrize('name', DEMOS)
@needs_launch
def test_a_demo_ends_with_its_controller(tmp_path, name, code, status):
    controller = name.replace('_demo.launch.py', '_controller')
    begin = time.monotonic()
    records, result = recorded_launch(tmp_path, name, ends={controller: (2.0, code)})
    assert time.monotonic() - begin < SOON
    assert records.keys() == {'simulation', 'robot_state_publisher', controller}
    assert all(ended(records))
    assert result.returncode == status
    assert f'the {controller} ended' in result.stdout + result.stderr


@needs_launch
def test_a_simulation_that_fails_is_a_launch_that_failed(tmp_path):
    records, result = recorded_launch(
        tmp_path, 'simulation.launch.py', ends={'simulation': (1.0, 1)}
    )
    assert all(ended(records))
    assert result.returncode == 1
    assert 'the simulation ended with exit code 1' in result.stdout + result.stderr


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@needs_launch
def test_all_processes_end_when_the_launch_is_ended(tmp_path, number):
    if number != signal.SIGINT and shutil.which('setpriv') is None:
        pytest.skip('binding a process to its parent takes setpriv of util-linux')
    command, environment, folder = recording(
        *(tmp_path, 'compare.launch.py', 'models:=ncp sap'), ends={}
    )
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as launch:
        wait_for(lambda: len(list(folder.iterdir())) == 5)
        time.sleep(1.0)  # a record that is there may not be written yet
        records = read_records(folder)
        launch.send_signal(number)
        launch.wait(SOON)
    wait_for(lambda: all(ended(records)))


def ended(records):
    return [not Path('/proc', str(record['pid'])).exists() for record in records.values()]


def wait_for(condition):
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)
