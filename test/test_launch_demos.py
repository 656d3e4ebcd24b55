"""The launch files of the two controllers: what they promise, and what they start."""

import importlib.util
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml
from test_launch import LAUNCH_MODULES, node_parameters

import contact_sim

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(params=['stance', 'trot'])
def demo(request):
    """Return (name, launch file as a module, the stubs of launch)."""
    path = ROOT / 'launch' / f'{request.param}_demo.launch.py'
    spec = importlib.util.spec_from_file_location('demo_launch', path)
    module = importlib.util.module_from_spec(spec)
    names = (*LAUNCH_MODULES, 'launch.launch_description_sources')
    stubs = {name: MagicMock() for name in names}
    with pytest.MonkeyPatch.context() as patch:
        for name, stub in stubs.items():
            patch.setitem(sys.modules, name, stub)
        spec.loader.exec_module(module)
    return request.param, module, stubs


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


def test_the_parameters_of_the_trot_exist():
    text = (ROOT / 'config' / 'trot_demo.yaml').read_text(encoding='utf-8')
    declared = node_parameters()
    given = yaml.safe_load(text)['/**']['ros__parameters']
    assert given['lockstep.enabled'] is True
    for name, value in given.items():
        assert type(value) is declared[name].type, name
