"""compare.launch.py: one simulation per model in its namespace, and RViz that shows all."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_launch import (
    LAUNCH_MODULES,
    RECORDER,
    STARTER,
    MagicMock,
    needs_launch,
    node_parameters,
    parameters_of,
)

import contact_sim

ROOT = Path(__file__).resolve().parent.parent
LAUNCH_FILE = ROOT / 'launch' / 'compare.launch.py'
CONFIG = ROOT / 'config' / 'contact_sim.rviz'


def module_of(path):
    """Return a launch file as a module; its constants do not depend on launch."""
    spec = importlib.util.spec_from_file_location(path.name.replace('.', '_'), path)
    module = importlib.util.module_from_spec(spec)
    names = (*LAUNCH_MODULES, 'launch.launch_description_sources')
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setitem(sys.modules, name, MagicMock())
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def launch_file():
    return module_of(LAUNCH_FILE)


def test_arguments_are_those_of_the_simulation(launch_file):
    simulation = module_of(ROOT / 'launch' / 'simulation.launch.py')
    assert set(launch_file.PASSED_ON) <= simulation.ARGUMENTS.keys() & launch_file.ARGUMENTS.keys()
    assert {
        'contact_model',
        'namespace',
        'frame_prefix',
        'y',
        'rviz',
    } <= simulation.ARGUMENTS.keys()
    assert launch_file.ARGUMENTS['models'][0].split() == list(contact_sim.contact_models())
    texts = (ROOT / 'README.md').read_text(encoding='utf-8') + LAUNCH_FILE.read_text('utf-8')
    used = re.findall(r'compare\.launch\.py((?: +\w+:=\S+)*)', texts)
    assert {
        n for line in used for n in re.findall(r'(\w+):=', line)
    } <= launch_file.ARGUMENTS.keys()


def test_rviz_shows_every_robot_and_the_ground_once(launch_file):
    config = yaml.safe_load(CONFIG.read_text(encoding='utf-8'))
    shown = launch_file.with_displays_of(['ncp', 'sap'], config)['Visualization Manager']
    robots = {d['TF Prefix']: d for d in shown['Displays'] if d['Class'].endswith('/RobotModel')}
    assert robots.keys() == {'ncp', 'sap'}
    assert robots['sap']['Description Topic']['Value'] == '/sap/robot_description'
    contacts = [d['Topic']['Value'] for d in shown['Displays'] if 'MarkerArray' in d['Class']]
    assert contacts == ['/ncp/contact_sim/contact_markers', '/sap/contact_sim/contact_markers']
    assert sum(d['Class'].endswith('/Grid') for d in shown['Displays']) == 1
    assert config == yaml.safe_load(CONFIG.read_text(encoding='utf-8'))


NAMED = RECORDER.replace(
    "os.path.basename(sys.argv[0]), 'w')",
    "os.path.basename(sys.argv[0]) + '-' + next((w[6:].strip('/') for w in sys.argv if "
    "w.startswith('__ns:=')), ''), 'w')",
)


@pytest.fixture
def start(tmp_path):
    """Return a function that launches with recording executables and returns the records."""
    prefix = tmp_path / 'prefix'
    for package, executable in (
        ('contact_sim', 'simulation'),
        ('robot_state_publisher', 'robot_state_publisher'),
        ('rviz2', 'rviz2'),
    ):
        script = prefix / 'lib' / package / executable
        script.parent.mkdir(parents=True)
        script.write_text(NAMED.format(python=sys.executable, seconds=4.0))
        script.chmod(0o755)
        marker = prefix / 'share/ament_index/resource_index/packages' / package
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

    def launch(*arguments):
        command = [sys.executable, '-c', STARTER, str(LAUNCH_FILE), *arguments]
        environment = os.environ | {
            'AMENT_PREFIX_PATH': str(prefix),
            'RECORD': str(tmp_path),
            'ROS_LOG_DIR': str(tmp_path / 'log'),
        }
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=90
        )
        records = {
            path.name: json.loads(path.read_text())
            for path in tmp_path.iterdir()
            if path.is_file()
        }
        return records, result

    return launch


@needs_launch
def test_every_model_gets_a_robot_beside_the_others(start):
    records, result = start('models:=ncp sap', 'spacing:=2.0', 'height:=0.2')
    assert result.returncode == 0, result.stderr
    assert records.keys() == {
        *('simulation-ncp', 'simulation-sap', 'rviz2-'),
        *('robot_state_publisher-ncp', 'robot_state_publisher-sap'),
    }
    declared = node_parameters()
    for model, y in (('ncp', -1.0), ('sap', 1.0)):
        given = parameters_of(records[f'simulation-{model}'])
        assert given['contact.model'] == model
        assert given['initial_y'] == y
        assert given['initial_height'] == 0.2
        assert given['frame_prefix'] == f'{model}/'
        assert all(type(value) is declared[name].type for name, value in given.items())
    assert '/clock:=clock' not in records['simulation-ncp']['argv']
    assert '/clock:=clock' in records['simulation-sap']['argv']
    assert '/clock:=clock' in records['robot_state_publisher-sap']['argv']
    command = records['rviz2-']['argv']
    assert Path(command[command.index('-d') + 1]).name == 'compare.rviz'


@needs_launch
def test_an_unknown_model_ends_the_launch_with_the_known_ones(start):
    _, result = start('models:=ncp magic')
    assert result.returncode == 1
    assert 'todorov' in result.stdout + result.stderr
