"""examples/ros2_control_lockstep: its files agree with each other and with the simulation."""

import ast
import re
from xml.etree import ElementTree

import pytest
import xacro
import yaml
from launch_files import ROOT, node_parameters

from contact_sim import load_robot

FOLDER = ROOT / 'examples' / 'ros2_control_lockstep'
ROBOT = load_robot('quadruped')


def text_of(name):
    return (FOLDER / name).read_text(encoding='utf-8')


def parameters_of(name, node):
    return yaml.safe_load(text_of(f'config/{name}'))[node]['ros__parameters']


@pytest.fixture(scope='module')
def description(tmp_path_factory):
    """Return the URDF, as xacro makes it where ROS knows the package."""
    path = tmp_path_factory.mktemp('urdf') / 'quadruped.urdf.xacro'
    text = text_of('urdf/quadruped.urdf.xacro').replace('$(find contact_sim)', str(ROOT))
    path.write_text(text, encoding='utf-8')
    return xacro.process_file(str(path)).toxml()


def test_the_robot_is_that_of_the_catalogue(description):
    """The simulation loads it by name, the controller manager from here."""
    other = load_robot(description)
    assert other.joint_names == ROBOT.joint_names
    assert other.total_mass == ROBOT.total_mass


def test_every_driven_joint_has_its_interfaces(description):
    system = ElementTree.fromstring(description).find('ros2_control')
    joints = {joint.get('name'): joint for joint in system.findall('joint')}
    assert set(joints) == set(ROBOT.joint_names)
    for joint in joints.values():
        states = [interface.get('name') for interface in joint.findall('state_interface')]
        assert states == ['position', 'velocity', 'effort']
        assert [i.get('name') for i in joint.findall('command_interface')] == ['position']
    controller = parameters_of('controllers.yaml', 'joint_trajectory_controller')
    assert set(controller['joints']) == set(ROBOT.joint_names)


def test_the_plugin_has_one_name(description):
    plugin = ElementTree.fromstring(description).findtext('ros2_control/hardware/plugin')
    (declared,) = ElementTree.fromstring(text_of('lockstep_system.xml')).findall('class')
    assert plugin == declared.get('name')
    kind = declared.get('type')
    assert re.search(rf'PLUGINLIB_EXPORT_CLASS\(\s*{kind}, ', text_of('lockstep_system.cpp'))


def test_topics_agree(description):
    hardware = ElementTree.fromstring(description).find('ros2_control/hardware')
    given = {p.get('name'): p.text for p in hardware.findall('param')}
    source, launched = text_of('lockstep_system.cpp'), text_of('launch/quadruped.launch.py')
    for name, topic in given.items():
        assert f'"{name}"' in source
        if name.endswith('_topic'):
            assert f"SetRemap('{name.removesuffix('_topic')}', '{topic}')" in launched
    ast.parse(launched)


def test_beside_a_simulation_the_topics_are_those_of_the_node(description):
    """Before they are remapped, broadcaster and hardware have different names for theirs."""
    hardware = ElementTree.fromstring(description).find('ros2_control/hardware')
    given = {p.get('name'): p.text for p in hardware.findall('param')}
    launched = ast.parse(text_of('launch/quadruped.launch.py'))
    (beside,) = [
        dict(ast.literal_eval(node.value))
        for node in launched.body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'BESIDE'
    ]
    for name in ('joint_states', 'joint_commands'):
        assert beside[given[f'{name}_topic']] == name
    assert beside['joint_states'] != 'joint_states'  # only one publisher may be left on it


def test_controllers_that_time_waits_for_are_spawned():
    manager = parameters_of('controllers.yaml', 'controller_manager')
    awaited = manager['wait_for_controllers']
    assert awaited
    for name in awaited:
        assert 'type' in manager[name]
        assert f"'{name}'" in text_of('launch/quadruped.launch.py')


def test_an_update_is_an_instant():
    simulation = parameters_of('simulation.yaml', '/**')
    rate = parameters_of('controllers.yaml', 'controller_manager')['update_rate']
    assert rate * simulation['lockstep.period'] * simulation['time_step'] == pytest.approx(1.0)
    assert simulation['publish_rate.joint_states'] == rate
    declared = node_parameters()
    for name, value in simulation.items():
        assert isinstance(value, declared[name].type), name


def test_dependencies_are_declared():
    declared = set(re.findall(r'<(?:exec_)?depend>(\w+)<', text_of('package.xml')))
    built = set(re.findall(r'find_package\((\w+) REQUIRED', text_of('CMakeLists.txt')))
    launched = set(re.findall(r"package='(\w+)'", text_of('launch/quadruped.launch.py')))
    assert built - {'ament_cmake'} | launched <= declared | {'ros2_control_lockstep'}
    included = set()
    for path in (*FOLDER.glob('*.cpp'), *FOLDER.glob('*.hpp')):
        text = path.read_text(encoding='utf-8')
        included |= set(re.findall(r'#include <(\w+)/', text))
        assert max(map(len, text.splitlines())) <= 100, path.name
    assert included <= declared
