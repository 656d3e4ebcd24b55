"""The launch files of the two controllers: what they promise, and what they start."""

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


@pytest.fixture(params=['stance', 'trot'])
def demo(request):
    """Return (name, launch file as a module, the stubs of launch)."""
    return request.param, *launch_module(f'{request.param}_demo.launch.py')


def test_it_starts_the_simulation_and_the_controller(demo):
    name, module, stubs = demo
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    context = MagicMock(launch_configurations=given | {'robot': 'anymal_b'})
    assert len(module.parts(context)) == 2
    controller = stubs['launch_ros.actions'].Node.call_args.kwargs
    assert controller['executable'] == f'{name}_controller'
    assert controller['parameters'][0]['robot'] == 'anymal_b'
    included = stubs['launch.actions'].IncludeLaunchDescription.call_args.kwargs
    arguments = dict(included['launch_arguments'])
    assert arguments['robot'] == 'anymal_b'
    assert arguments['contact_model'] in contact_sim.contact_models()


def test_every_robot_gets_a_controller_in_its_namespace(demo):
    name, module, stubs = demo
    given = {argument: default for argument, (default, _) in module.ARGUMENTS.items()}
    robots = 'a=go1 b=anymal_b@1.5,0,0.3'
    assert len(module.parts(MagicMock(launch_configurations=given | {'robots': robots}))) == 3
    controllers = [call.kwargs for call in stubs['launch_ros.actions'].Node.call_args_list]
    assert [one['executable'] for one in controllers] == 2 * [f'{name}_controller']
    assert [one['namespace'] for one in controllers] == ['a', 'b']
    assert [one['parameters'][0]['robot'] for one in controllers] == ['go1', 'anymal_b']
    included = stubs['launch.actions'].IncludeLaunchDescription.call_args.kwargs
    assert dict(included['launch_arguments'])['robots'] == robots


def test_the_parameters_of_the_trot_exist():
    text = (ROOT / 'config' / 'trot_demo.yaml').read_text(encoding='utf-8')
    declared = node_parameters()
    given = yaml.safe_load(text)['/**']['ros__parameters']
    assert given['lockstep.enabled'] is True
    for name, value in given.items():
        assert type(value) is kind_of(declared[name]), name


@needs_launch
@pytest.mark.parametrize('name', ['stance', 'trot'])
def test_everything_starts_with_its_parameters(tmp_path, name):
    records, result = recorded_launch(tmp_path, f'{name}_demo.launch.py', 'robot:=anymal_b')
    assert result.returncode == 0, result.stderr
    controller = f'{name}_controller'
    assert records.keys() == {'simulation', 'robot_state_publisher', controller}
    given = parameters_of(records['simulation'])
    assert (given['robot'], given['contact.model']) == ('anymal_b', 'ncp')
    assert given.get('lockstep.enabled', False) is (name == 'trot')
    wanted = {'robot': 'anymal_b', 'urdf_path': ''}
    if name == 'stance':
        wanted |= {'motion': 'sway', 'amplitude': 0.03, 'frequency': 0.5}
    assert parameters_of(records[controller]) == wanted


@needs_launch
def test_a_stranger_is_told_to_both(tmp_path):
    urdf = tmp_path / 'stranger.urdf'
    urdf.write_text(contact_sim.load_robot('quadruped').description, encoding='utf-8')
    words = f'urdf:={urdf}', 'feet:=LF_FOOT RF_FOOT LH_FOOT RH_FOOT', 'check_meshes:=false'
    records, result = recorded_launch(tmp_path, 'stance_demo.launch.py', *words)
    assert result.returncode == 0, result.stderr
    for name in ('simulation', 'stance_controller'):
        given = parameters_of(records[name])
        assert given['urdf_path'] == str(urdf)
        assert list(given['feet']) == ['LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT']
        assert given['check_meshes'] is False
