"""Launch files as modules, and launches whose executables only record what they were given."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_origin
from unittest.mock import MagicMock

import pytest
import yaml

from contact_sim.parameters import declared_parameters
from contact_sim.ros._parameters import PARAMETER_GROUPS

ROOT = Path(__file__).resolve().parents[2]
LAUNCH_MODULES = (
    *('launch', 'launch.actions', 'launch.conditions', 'launch.launch_description_sources'),
    *('launch.substitutions', 'launch_ros', 'launch_ros.actions'),
    *('launch_ros.parameter_descriptions', 'ament_index_python', 'ament_index_python.packages'),
)
SHARED = 'contact_sim.ros.launching'
DEMOS = ('stance_demo.launch.py', 'trot_demo.launch.py')
EXECUTABLES = (
    *('contact_sim/simulation', 'contact_sim/stance_controller', 'contact_sim/trot_controller'),
    *('robot_state_publisher/robot_state_publisher', 'rviz2/rviz2'),
)
needs_launch = pytest.mark.skipif(
    importlib.util.find_spec('launch_ros') is None,
    reason='launch_ros comes with a ROS installation, there is no wheel',
)

RECORDER = """\
#!{python}
import json, os, sys, time
namespace = next((word[6:].strip('/') for word in sys.argv if word.startswith('__ns:=')), '')
name = os.path.basename(sys.argv[0]) + ('-' + namespace if namespace else '')
with open(os.environ['RECORD'] + '/' + name, 'w') as record:
    files = [sys.argv[i + 1] for i, word in enumerate(sys.argv) if word == '--params-file']
    parameters = [open(name).read() for name in files]
    json.dump({{'argv': sys.argv, 'parameters': parameters, 'env': dict(os.environ),
               'pid': os.getpid()}}, record)
time.sleep({seconds})
sys.exit({status})
"""
STARTER = """\
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

service = LaunchService()
source = PythonLaunchDescriptionSource(sys.argv[1])
arguments = [tuple(argument.split(':=', 1)) for argument in sys.argv[2:]]
service.include_launch_description(
    IncludeLaunchDescription(source, launch_arguments=arguments)
)
sys.exit(service.run())
"""


def launch_module(name):
    """Return (launch file as a module, the stubs that stand for launch in it)."""
    stubs = {module: MagicMock() for module in LAUNCH_MODULES}
    with pytest.MonkeyPatch.context() as patch:
        for module, stub in stubs.items():
            patch.setitem(sys.modules, module, stub)
        shared = executed(importlib.util.find_spec(SHARED))
        patch.setitem(sys.modules, SHARED, shared)
        shared.installed = lambda package, executable: True
        path = ROOT / 'launch' / name
        return executed(importlib.util.spec_from_file_location(name, path)), stubs


def executed(spec):
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def node_parameters():
    """Return {dotted name: declared field} of the node."""
    return {
        f'{prefix}.{field.name}' if prefix else field.name: field
        for prefix, cls in PARAMETER_GROUPS.items()
        for field in declared_parameters(cls)
    }


def recorded_launch(folder, name, *arguments, **prepared):
    """Launch with recording executables; return ({executable[-namespace]: record}, result)."""
    command, environment, records = recording(folder, name, *arguments, **prepared)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
    return read_records(records), result


def recording(folder, name, *arguments, missing=(), ends=None):
    """Return (command, environment, folder of the records) of a launch with such executables.

    Args:
        folder: for all files.
        name: of the launch file.
        arguments: of the launch.
        missing: packages that are not installed.
        ends: {executable: (seconds that it runs, exit code)}; others would go on for a minute.
            None: the simulation ends after some seconds.
    """
    prefix, records = folder / 'prefix', folder / 'records'
    records.mkdir()
    ends = {'simulation': (4.0, 0)} if ends is None else ends
    for package, executable in (path.split('/') for path in EXECUTABLES):
        if package in missing:
            continue
        script = prefix / 'lib' / package / executable
        script.parent.mkdir(parents=True, exist_ok=True)
        seconds, status = ends.get(executable, (60.0, 0))
        script.write_text(RECORDER.format(python=sys.executable, seconds=seconds, status=status))
        script.chmod(0o755)
        marker = prefix / 'share/ament_index/resource_index/packages' / package
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    command = [sys.executable, '-c', STARTER, str(ROOT / 'launch' / name), *arguments]
    environment = os.environ | {
        'AMENT_PREFIX_PATH': str(prefix),
        'RECORD': str(records),
        'ROS_LOG_DIR': str(folder / 'log'),
    }
    return command, environment, records


def read_records(records):
    """Return {executable[-namespace]: what it was started with}."""
    return {path.name: json.loads(path.read_text()) for path in records.iterdir()}


def kind_of(declared):
    """Return the type that a value of a declared parameter has in a file."""
    return list if get_origin(declared.type) is tuple else declared.type


class ParameterFile(yaml.SafeLoader):
    """Reads files of launch_ros, which marks lists as tuples; ROS does not look at the mark."""


ParameterFile.add_constructor(
    'tag:yaml.org,2002:python/tuple', lambda loader, node: loader.construct_sequence(node)
)


def parameters_of(record):
    """Return all parameters of a started node, later files winning."""
    merged = {}
    for text in record['parameters']:
        for sections in yaml.load(text, ParameterFile).values():
            merged |= sections['ros__parameters']
    return merged
