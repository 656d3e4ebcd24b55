"""compare.launch.py: one simulation per model in its namespace, and RViz that shows all."""

import re
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml
from launch_files import (
    ROOT,
    kind_of,
    launch_module,
    needs_launch,
    node_parameters,
    parameters_of,
    recorded_launch,
)

import contact_sim

NAME = 'compare.launch.py'
CONFIG = ROOT / 'config' / 'contact_sim.rviz'


@pytest.fixture(scope='module')
def launch_file():
    return launch_module(NAME)[0]


def test_arguments_are_those_of_the_simulation(launch_file):
    simulation = launch_module('simulation.launch.py')[0]
    assert set(launch_file.PASSED_ON) <= simulation.ARGUMENTS.keys() & launch_file.ARGUMENTS.keys()
    assert {
        'contact_model',
        'namespace',
        'frame_prefix',
        'y',
        'rviz',
    } <= simulation.ARGUMENTS.keys()
    assert launch_file.ARGUMENTS['models'][0].split() == list(contact_sim.contact_models())
    files = ROOT / 'README.md', ROOT / 'launch' / NAME
    texts = ''.join(path.read_text(encoding='utf-8') for path in files)
    used = re.findall(r'compare\.launch\.py((?: +\w+:=\S+)*)', texts)
    assert {
        n for line in used for n in re.findall(r'(\w+):=', line)
    } <= launch_file.ARGUMENTS.keys()


@pytest.mark.parametrize(
    ('said', 'pages'),
    [('', ['', '']), ('false', ['false', 'false']), ('8090', ['8090', '8091'])],
)
def test_every_model_has_a_page_of_its_own(said, pages):
    module, stubs = launch_module(NAME)
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    given |= {'models': 'ncp sap', 'viewer': said}
    module.everything(MagicMock(launch_configurations=given))
    included = stubs['launch.actions'].IncludeLaunchDescription.call_args_list
    told = [dict(call.kwargs['launch_arguments'])['viewer'] for call in included]
    assert told == pages


def test_rviz_shows_every_robot_and_the_ground_once(launch_file):
    config = yaml.safe_load(CONFIG.read_text(encoding='utf-8'))
    shown = launch_file.with_displays_of(['ncp', 'sap'], config)['Visualization Manager']
    robots = {d['TF Prefix']: d for d in shown['Displays'] if d['Class'].endswith('/RobotModel')}
    assert robots.keys() == {'ncp', 'sap'}
    assert robots['sap']['Description Topic']['Value'] == '/sap/robot_description'
    contacts = [d['Topic']['Value'] for d in shown['Displays'] if 'MarkerArray' in d['Class']]
    assert contacts == [
        '/ncp/contact_sim/contact_markers',
        '/sap/contact_sim/contact_markers',
        '/ncp/contact_sim/terrain',
    ]
    assert sum(d['Class'].endswith('/Grid') for d in shown['Displays']) == 1
    assert config == yaml.safe_load(CONFIG.read_text(encoding='utf-8'))


@pytest.fixture
def start(tmp_path):
    """Return a function that launches with recording executables and returns the records."""
    return lambda *arguments: recorded_launch(tmp_path, NAME, *arguments)


@needs_launch
def test_every_model_gets_a_robot_beside_the_others(start):
    records, result = start('models:=ncp sap', 'spacing:=2.0', 'height:=0.2')
    assert result.returncode == 0, result.stderr
    assert records.keys() == {
        *('simulation-ncp', 'simulation-sap', 'rviz2'),
        *('robot_state_publisher-ncp', 'robot_state_publisher-sap'),
    }
    declared = node_parameters()
    for model, y in (('ncp', -1.0), ('sap', 1.0)):
        given = parameters_of(records[f'simulation-{model}'])
        assert given['contact.model'] == model
        assert given['initial_y'] == y
        assert given['initial_height'] == 0.2
        assert given['frame_prefix'] == f'{model}/'
        assert all(type(value) is kind_of(declared[name]) for name, value in given.items())
    assert '/clock:=clock' not in records['simulation-ncp']['argv']
    assert '/clock:=clock' in records['simulation-sap']['argv']
    assert '/clock:=clock' in records['robot_state_publisher-sap']['argv']
    command = records['rviz2']['argv']
    assert Path(command[command.index('-d') + 1]).name == 'compare.rviz'


@needs_launch
def test_an_unknown_model_ends_the_launch_with_the_known_ones(start):
    _, result = start('models:=ncp magic')
    assert result.returncode == 1
    assert 'todorov' in result.stdout + result.stderr


@needs_launch
def test_all_get_the_robot_as_it_is_told(start, tmp_path):
    path = tmp_path / 'leg.xacro'
    path.write_text(
        '<robot name="leg" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:arg name="mass" default="1"/><link name="base"><inertial>'
        '<mass value="$(arg mass)"/><inertia ixx="1" iyy="1" izz="1" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    records, result = start(
        f'urdf:={path}', 'models:=ncp sap', 'xacro_arguments:=mass:=3', 'feet:=base',
        'poses:=low: root_joint=1; high: root_joint=2', 'check_meshes:=false',
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    for model in ('ncp', 'sap'):
        given = parameters_of(records[f'simulation-{model}'])
        assert given['xacro_arguments'] == ['mass:=3']
        assert given['feet'] == ['base']
        assert given['poses'] == ['low: root_joint=1', ' high: root_joint=2']
        assert given['check_meshes'] is False
        shown = parameters_of(records[f'robot_state_publisher-{model}'])
        assert 'mass value="3"' in shown['robot_description']
