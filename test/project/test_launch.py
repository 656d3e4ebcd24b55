"""The launch file: what it promises, and (where ROS has launch) what it starts."""

import os
import re
import time
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
from contact_sim.errors import InvalidInput

NAME = 'simulation.launch.py'
GO1 = {
    'robot': 'go1', 'urdf_path': '', 'robot_description': '', 'robots': [''],
    'publish_robot_description': False,
}  # fmt: skip


@pytest.fixture(scope='module')
def launch_file():
    return launch_module(NAME)[0]


def test_every_argument_is_described(launch_file):
    assert 'robot' in launch_file.ARGUMENTS
    for name, (default, description) in launch_file.ARGUMENTS.items():
        assert isinstance(default, str), name
        assert len(description) > 10, name


def test_arguments_set_parameters_that_the_node_has(launch_file):
    declared = node_parameters()
    assert launch_file.PARAMETERS.keys() <= launch_file.ARGUMENTS.keys()
    for parameter, kind in launch_file.PARAMETERS.values():
        assert declared[parameter].type is kind, parameter


def test_the_default_robot_is_in_the_catalogue(launch_file):
    assert launch_file.ARGUMENTS['robot'][0] in contact_sim.robots()


def test_arguments_in_the_texts_exist(launch_file):
    """Every `simulation.launch.py name:=value` that people are told to type works."""
    texts = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]
    texts.append(ROOT / 'launch' / NAME)
    commands = [
        command
        for path in texts
        for command in re.findall(
            r'simulation\.launch\.py((?: +\w+:=\S+)*)', path.read_text(encoding='utf-8')
        )
    ]
    used = {name for command in commands for name in re.findall(r'(\w+):=', command)}
    assert {'robot', 'contact_model'} <= used
    assert used <= launch_file.ARGUMENTS.keys()


def test_rviz_topics_move_into_the_namespace(launch_file):
    config = (ROOT / 'config' / 'contact_sim.rviz').read_text(encoding='utf-8')
    absolute = set(re.findall(r'Value: /(\S+)', config))
    assert {*launch_file.TOPICS_OF_ROBOT, *launch_file.TOPICS_OF_WORLD} == absolute


def test_several_robots_get_a_state_publisher_and_displays_each():
    module, stubs = launch_module(NAME)
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    given |= {'robots': 'a=go1, b=solo12@1.5,0,0.3', 'namespace': 'zoo', 'frame_prefix': 'z_'}
    stubs['launch.conditions'].IfCondition.return_value.evaluate.return_value = True
    assert len(module.nodes(MagicMock(launch_configurations=given))) == 4
    simulation, first, second, rviz = (
        call.kwargs for call in stubs['launch_ros.actions'].Node.call_args_list
    )
    assert simulation['namespace'] == 'zoo'
    assert simulation['parameters'][0]['robots'] == ['a=go1', 'b=solo12@1.5,0,0.3']
    for name, robot, publisher in (('a', 'go1', first), ('b', 'solo12', second)):
        assert publisher['executable'] == 'robot_state_publisher'
        assert publisher['namespace'] == f'zoo/{name}'
        (told,) = publisher['parameters']
        assert told['frame_prefix'] == f'z_{name}/'
        assert told['robot_description'] == contact_sim.load_robot(robot).description
    assert ('/b/robot_description', 'b/robot_description') in rviz['remappings']
    assert ('/contact_sim/terrain', 'contact_sim/terrain') in rviz['remappings']
    shown = yaml.safe_load(Path(rviz['arguments'][1]).read_text())['Visualization Manager']
    topics = [d['Topic']['Value'] for d in shown['Displays'] if 'Topic' in d]
    assert topics == [
        '/contact_sim/contact_markers', '/contact_sim/terrain', '/a/odom', '/b/odom',
    ]  # fmt: skip
    models = [d for d in shown['Displays'] if d['Class'].endswith('/RobotModel')]
    assert [d['TF Prefix'] for d in models] == ['z_a', 'z_b']
    assert [d['Description Topic']['Value'] for d in models] == [
        '/a/robot_description', '/b/robot_description',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ('state_publisher', 'wanted', 'expected'),
    [('true', 'true', False), ('true', 'false', False), ('false', 'true', True),
     ('false', 'false', False)],
)  # fmt: skip
def test_robot_description_never_has_two_publishers(state_publisher, wanted, expected):
    module, stubs = launch_module(NAME)
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    given |= {'robot_state_publisher': state_publisher, 'publish_robot_description': wanted}
    values = stubs['launch.substitutions'].LaunchConfiguration
    values.side_effect = lambda name, default=None: given.get(name, default)
    stubs['launch.conditions'].IfCondition.side_effect = lambda value: MagicMock(
        evaluate=lambda _: value == 'true'
    )
    nodes = module.nodes(MagicMock(launch_configurations=given))
    assert len(nodes) == (2 if state_publisher == 'true' else 1)
    simulation = stubs['launch_ros.actions'].Node.call_args_list[0].kwargs
    assert simulation['parameters'][0]['publish_robot_description'] is expected


@pytest.mark.parametrize(
    ('content', 'namespace', 'fits'),
    [
        ('/**', '', True), ('/**', 'left', True), ('/**', 'a/b', True), ('/*', '', True),
        ('contact_sim', '', True), ('/contact_sim', '', True), ('/contact_sim', 'left', False),
        ('contact_sim', 'left', False), ('/left/contact_sim', '/left', True),
        ('/*/contact_sim', 'left', True), ('/*/contact_sim', '', False),
        ('/contact_simx', '', False), ('left: {contact_sim', 'left', True), ('other', '', False),
    ],
)  # fmt: skip
def test_a_params_file_is_for_the_node_or_refused(tmp_path, content, namespace, fits):
    module, _ = launch_module(NAME)
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    path = tmp_path / 'parameters.yaml'
    path.write_text(content + ': {ros__parameters: {seed: 3}}' + '}' * content.count('{'))
    given |= {'params_file': str(path), 'namespace': namespace}
    context = MagicMock(launch_configurations=given)
    if fits:
        module.simulation(context)
        return
    with pytest.raises(InvalidInput, match=r'is not the name of the node /.*contact_sim, so ROS'):
        module.simulation(context)


@pytest.mark.parametrize('content', ['', '[1, 2]', 'seed: 3', '{', None])
def test_what_is_no_params_file_is_refused(tmp_path, content):
    path = tmp_path / 'parameters.yaml'
    if content is not None:
        path.write_text(content)
    module, _ = launch_module(NAME)
    with pytest.raises(InvalidInput, match=re.escape(f'params_file:={str(path)!r}')):
        module.check_params_file(str(path), '/contact_sim')


def test_constraints_become_parameters_of_theirs():
    module, stubs = launch_module(NAME)
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    given['constraints'] = 'stand: kind=point_anchor frame=trunk at=0,0,1 alpha=10'
    stubs['launch.conditions'].IfCondition.return_value.evaluate.return_value = False
    node = MagicMock()
    module.required_process = node
    module.simulation(MagicMock(launch_configurations=given))
    (parameters, _) = node.call_args.kwargs['parameters']
    said = {name: value for name, value in parameters.items() if name.startswith('constraints.')}
    assert said == {
        'constraints.names': ['stand'],
        'constraints.stand.kind': 'point_anchor',
        'constraints.stand.frame': 'trunk',
        'constraints.stand.at': [0.0, 0.0, 1.0],
        'constraints.stand.alpha': 10.0,
    }


@pytest.mark.parametrize(
    ('said', 'port'),
    [('', None), ('true', 8080), ('True', 8080), ('8091', 8091), ('false', 0), ('0', 0)],
)
def test_a_page_is_served_at_a_port(said, port):
    module, _ = launch_module(NAME)
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    module.required_process = node = MagicMock()
    module.simulation(MagicMock(launch_configurations=given | {'viewer': said}))
    (parameters, _) = node.call_args.kwargs['parameters']
    assert parameters.get('viewer.port') == port


@pytest.mark.parametrize('said', ['yes', '65536', '-1', '80.0'])
def test_a_page_at_no_port_ends_the_launch(said):
    module, _ = launch_module(NAME)
    with pytest.raises(InvalidInput, match=f"viewer:='{said}': expected true, false, or a port"):
        module.viewer_port(said)


# ------------------------------------------------------------- with launch


@pytest.fixture
def start(tmp_path):
    """Return a function that launches with recording executables and returns the records."""
    return lambda *arguments: recorded_launch(tmp_path, NAME, *arguments)


@needs_launch
def test_by_default_only_the_robot_is_given(start):
    records, result = start()
    assert result.returncode == 0, result.stderr
    assert records.keys() == {'simulation', 'robot_state_publisher'}
    assert parameters_of(records['simulation']) == GO1
    assert '__node:=contact_sim' in records['simulation']['argv']


@needs_launch
def test_everything_ends_when_the_simulation_ends(start):
    begin = time.monotonic()
    records, result = start('rviz:=true')
    assert records.keys() == {'simulation', 'robot_state_publisher', 'rviz2'}
    assert result.returncode == 0
    assert time.monotonic() - begin < 30.0  # the other two would sleep for a minute


@needs_launch
def test_arguments_become_typed_parameters(start):
    records, _ = start(
        *('robot:=solo12', 'contact_model:=ncp', 'paused:=true', 'rate:=0', 'terrain:=plane'),
        *('frame_prefix:=left/', 'viewer:=true'),
    )
    given = parameters_of(records['simulation'])
    declared = node_parameters()
    for name, value in given.items():
        assert type(value) is kind_of(declared[name]), name
    assert given['robot'] == 'solo12'
    assert given['start_paused'] is True
    assert given['frame_prefix'] == 'left/'
    assert given['viewer.port'] == 8080
    assert parameters_of(records['robot_state_publisher'])['frame_prefix'] == 'left/'


@needs_launch
@pytest.mark.parametrize(('given', 'expected'), [('true', 'LOCALHOST'), ('false', None)])
def test_nodes_stay_on_this_machine_where_that_is_asked_for(start, given, expected, monkeypatch):
    monkeypatch.delenv('ROS_AUTOMATIC_DISCOVERY_RANGE', raising=False)
    records, _ = start(f'localhost_only:={given}', 'clock:=none')
    assert parameters_of(records['simulation'])['clock'] == 'none'
    for record in records.values():
        assert record['env'].get('ROS_AUTOMATIC_DISCOVERY_RANGE') == expected


@needs_launch
def test_arguments_win_over_the_parameter_file(start, tmp_path):
    file = tmp_path / 'own.yaml'
    file.write_text('/**: {ros__parameters: {real_time_factor: 0.5, time_step: 0.002}}')
    records, _ = start(f'params_file:={file}', 'rate:=2.0')
    given = parameters_of(records['simulation'])
    assert given == GO1 | {'real_time_factor': 2.0, 'time_step': 0.002}


@needs_launch
def test_robot_state_publisher_shows_the_robot_that_is_simulated(start):
    records, _ = start('robot:=anymal_b')
    given = parameters_of(records['robot_state_publisher'])
    assert given['robot_description'] == contact_sim.load_robot('anymal_b').description
    assert given['publish_frequency'] >= 100.0
    assert given['use_sim_time'] is True


@needs_launch
def test_several_robots_share_one_simulation(start):
    records, result = start('robots:=a=go1 b=anymal_b@1.5,0,0.3')
    assert result.returncode == 0, result.stderr
    publishers = {f'robot_state_publisher-{name}' for name in 'ab'}
    assert records.keys() == {'simulation', *publishers}
    given = parameters_of(records['simulation'])
    assert given['robots'] == ['a=go1', 'b=anymal_b@1.5,0,0.3']
    told = parameters_of(records['robot_state_publisher-b'])
    assert told['frame_prefix'] == 'b/'
    assert told['robot_description'] == contact_sim.load_robot('anymal_b').description


@needs_launch
def test_rviz_finds_meshes_and_topics_in_the_namespace(start):
    records, _ = start('rviz:=true', 'namespace:=left', 'robot_state_publisher:=false')
    assert records.keys() == {'simulation-left', 'rviz2-left'}
    command = records['rviz2-left']['argv']
    assert Path(command[command.index('-d') + 1]).name == 'contact_sim.rviz'
    assert '/robot_description:=robot_description' in command
    prefixes = records['rviz2-left']['env']['AMENT_PREFIX_PATH'].split(os.pathsep)
    assert any(Path(prefix, 'share', 'example-robot-data').is_dir() for prefix in prefixes)


@needs_launch
@pytest.mark.parametrize(
    ('argument', 'problem'),
    [
        ('robot:=nosuch', 'anymal_b'),
        ('robots:=a=go1@x', 'x,y,yaw'),
        ('constraints:=stand: knd=frame_anchor', "did you mean 'kind'"),
        ('rate:=fast', 'fast'),
        ('rviz:=perhaps', 'perhaps'),
    ],
)
def test_a_bad_argument_ends_the_launch_with_the_reason(start, argument, problem):
    _, result = start(argument)
    assert result.returncode == 1
    assert problem in result.stdout + result.stderr
