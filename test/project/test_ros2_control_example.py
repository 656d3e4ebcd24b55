"""examples/ros2_control_lockstep: its files agree with each other and with the simulation."""

import ast
import contextlib
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xacro
import yaml
from launch_files import ROOT, node_parameters

from contact_sim import load_robot
from contact_sim.ros._lockstep_socket import ACKNOWLEDGEMENT, COMMAND, GREETING, REFUSAL

FOLDER = ROOT / 'examples' / 'ros2_control_lockstep'
ROBOT = load_robot('quadruped')
ARGUMENTS = {'simulation', 'controller', 'rate', 'record', 'socket'}
"""Arguments of the launch file."""


def text_of(name):
    return (FOLDER / name).read_text(encoding='utf-8')


def parameters_of(name, node):
    return yaml.safe_load(text_of(f'config/{name}'))[node]['ros__parameters']


@pytest.fixture(scope='module')
def expand(tmp_path_factory):
    """Return what makes the URDF, as xacro does where ROS knows the packages."""
    path = tmp_path_factory.mktemp('urdf') / 'quadruped.urdf.xacro'
    text = text_of('urdf/quadruped.urdf.xacro').replace('$(find contact_sim)', str(ROOT))
    path.write_text(text.replace('$(find ros2_control_lockstep)', str(FOLDER)), encoding='utf-8')
    return lambda **arguments: xacro.process_file(str(path), mappings=arguments).toxml()


@pytest.fixture(scope='module')
def description(expand):
    return expand()


def interfaces_of(system):
    """Return the names of the command and of the state interfaces, the same of every joint."""
    kinds = 'command_interface', 'state_interface'
    found = {
        tuple(tuple(i.get('name') for i in joint.findall(kind)) for kind in kinds)
        for joint in system.findall('joint')
    }
    (common,) = found
    return common


def test_the_robot_is_that_of_the_catalogue(description):
    """The simulation loads it by name, the controller manager from here."""
    other = load_robot(description)
    assert other.joint_names == ROBOT.joint_names
    assert other.total_mass == ROBOT.total_mass


SIMULATORS = {
    'contact_sim': ('ros2_control_lockstep/LockstepSystem', ('position', 'effort')),
    'gazebo': ('gz_ros2_control/GazeboSimSystem', ('position', 'effort')),
    # an actuator of MuJoCo is of one kind
    'mujoco': ('mujoco_ros2_control/MujocoSystemInterface', ('position',)),
}
"""Argument `hardware`: plugin, and the command interfaces that controllers may claim."""


@pytest.mark.parametrize('hardware', SIMULATORS)
def test_every_driven_joint_has_its_interfaces_in_every_simulator(expand, hardware):
    plugin, commands = SIMULATORS[hardware]
    model = ElementTree.fromstring(expand(hardware=hardware, mujoco_model='scene.xml'))
    (system,) = model.findall('ros2_control')
    assert [found.text for found in system.findall('hardware/plugin')] == [plugin]
    assert {joint.get('name') for joint in system.findall('joint')} == set(ROBOT.joint_names)
    assert interfaces_of(system) == (commands, ('position', 'velocity', 'effort'))
    given = {p.get('name'): p.text for p in system.findall('hardware/param')}
    topics = {'joint_states_topic', 'joint_commands_topic', 'timeout'}
    assert given.keys() == {
        'contact_sim': topics, 'gazebo': set(), 'mujoco': {'mujoco_model', 'headless'}
    }[hardware]  # fmt: skip
    assert given.get('mujoco_model', 'scene.xml') == 'scene.xml'


def test_the_default_is_contact_sim(expand, description):
    assert description == expand(hardware='contact_sim')


@pytest.mark.parametrize('hardware', SIMULATORS)
@pytest.mark.parametrize('commands', ['effort', 'velocity', 'position velocity effort'])
def test_command_interfaces_are_chosen(expand, hardware, commands):
    system = ElementTree.fromstring(expand(hardware=hardware, commands=commands)).find(
        'ros2_control'
    )
    assert interfaces_of(system)[0] == tuple(commands.split())


def test_joints_begin_in_the_pose_in_which_contact_sim_puts_them(description):
    start = ROBOT.joint_positions(ROBOT.reference_configuration())
    places = "state_interface[@name='position']/param[@name='initial_value']"
    for joint in ElementTree.fromstring(description).findall('ros2_control/joint'):
        k = ROBOT.joint_names.index(joint.get('name'))
        assert float(joint.findtext(places)) == pytest.approx(start[k], abs=1e-12)


def test_gazebo_alone_runs_the_controller_manager_itself(expand):
    for hardware in SIMULATORS:
        model = ElementTree.fromstring(expand(hardware=hardware))
        plugins = model.findall('gazebo/plugin')
        assert len(plugins) == (hardware == 'gazebo')
    model = ElementTree.fromstring(expand(hardware='gazebo'))
    plugin = model.find('gazebo/plugin')
    assert plugin.get('name') == 'gz_ros2_control::GazeboSimROS2ControlPlugin'
    assert plugin.get('filename') == 'libgz_ros2_control-system.so'
    assert plugin.findtext('parameters') == str(FOLDER / 'config/controllers.yaml')
    other = ElementTree.fromstring(expand(hardware='gazebo', controllers='/mine.yaml'))
    assert other.findtext('gazebo/plugin/parameters') == '/mine.yaml'


def test_the_socket_is_a_parameter_only_where_one_is_given(expand, description):
    hardware = 'ros2_control/hardware/param'
    names = [p.get('name') for p in ElementTree.fromstring(description).findall(hardware)]
    assert 'socket' not in names
    given = ElementTree.fromstring(expand(socket='/tmp/own', timeout='60')).findall(hardware)
    assert {p.get('name'): p.text for p in given}.items() >= {'socket': '/tmp/own'}.items()


def test_the_plugin_has_one_name(description):
    plugin = ElementTree.fromstring(description).findtext('ros2_control/hardware/plugin')
    (declared,) = ElementTree.fromstring(text_of('lockstep_system.xml')).findall('class')
    assert plugin == declared.get('name')
    kind = declared.get('type')
    assert re.search(rf'PLUGINLIB_EXPORT_CLASS\(\s*{kind}, ', text_of('lockstep_system.cpp'))


def test_the_socket_speaks_one_protocol():
    source = text_of('lockstep_socket.cpp')
    assert f'GREETING[] = "{GREETING.decode()}"'.replace('\n', '\\n') in source
    for name, value in (('COMMAND', COMMAND), ('ACKNOWLEDGEMENT', ACKNOWLEDGEMENT),
                        ('REFUSAL', REFUSAL)):  # fmt: skip
        assert f"{name} = '{value.decode()}'" in source


def test_topics_agree(description):
    hardware = ElementTree.fromstring(description).find('ros2_control/hardware')
    given = {p.get('name'): p.text for p in hardware.findall('param')}
    source, text = text_of('lockstep_system.cpp'), text_of('launch/quadruped.launch.py')
    for name, topic in given.items():
        assert f'"{name}"' in source
        if name.endswith('_topic'):
            assert f"SetRemap('{name.removesuffix('_topic')}', '{topic}')" in text


def test_beside_a_simulation_the_topics_are_those_of_the_node(description):
    """Before they are remapped, broadcaster and hardware have different names for theirs."""
    hardware = ElementTree.fromstring(description).find('ros2_control/hardware')
    given = {p.get('name'): p.text for p in hardware.findall('param')}
    beside = dict(launched()['BESIDE'])
    for name in ('joint_states', 'joint_commands'):
        assert beside[given[f'{name}_topic']] == name
    assert beside['joint_states'] != 'joint_states'  # only one publisher may be left on it


def launched():
    """Return the assignments at the head of the launch file."""
    module = ast.parse(text_of('launch/quadruped.launch.py'))
    found = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with contextlib.suppress(ValueError):
                found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def test_the_controllers_that_can_be_launched_are_described(expand):
    manager = parameters_of('controllers.yaml', 'controller_manager')
    controllers = [name for name, value in manager.items() if isinstance(value, dict)]
    assert {'joint_state_broadcaster', 'joint_trajectory_controller'} < set(controllers)
    for name in controllers:
        assert set(manager[name]) == {'type'}
        if name == 'joint_state_broadcaster':
            continue
        own = parameters_of('controllers.yaml', name)
        assert set(own['joints']) == set(ROBOT.joint_names)
        claimed = own.get('command_interfaces', [own.get('interface_name')])
        assert set(claimed) <= set(SIMULATORS['contact_sim'][1])
        assert set(own.get('gains', ROBOT.joint_names)) == set(ROBOT.joint_names)


def test_every_argument_of_the_launch_file_is_described():
    text = text_of('launch/quadruped.launch.py')
    (declared,) = [
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == 'ARGUMENTS'
    ]
    assert {key.value for key in declared.keys} == ARGUMENTS
    page = (ROOT / 'docs' / 'ros2_control.md').read_text(encoding='utf-8')
    for name in ARGUMENTS:
        assert f'| `{name}` |' in page
        assert f"given['{name}']" in text


def test_an_update_is_an_instant():
    simulation = parameters_of('simulation.yaml', '/**')
    constants = launched()
    assert constants['STEPS'] * simulation['time_step'] == pytest.approx(1.0)
    text = text_of('launch/quadruped.launch.py')
    set_here = dict(re.findall(r"SetParameter\('([\w.]+)', ([^)]*)\)?", text))
    assert set_here['lockstep.period'] == 'STEPS // rate'
    assert set_here['publish_rate.joint_states'].startswith('float(rate')
    declared = node_parameters()
    for name, value in simulation.items():
        assert isinstance(value, declared[name].type), name
    assert set_here.keys() <= declared.keys()
    assert not set_here.keys() & simulation.keys()  # a file would win
    manager = parameters_of('controllers.yaml', 'controller_manager')
    assert manager['update_rate'] == constants['STEPS']  # the default of `rate`


def test_dependencies_are_declared():
    declared = set(re.findall(r'<(?:exec_)?depend>(\w+)<', text_of('package.xml')))
    built = set(re.findall(r'find_package\((\w+) REQUIRED', text_of('CMakeLists.txt')))
    launched = set(re.findall(r"package='(\w+)'", text_of('launch/quadruped.launch.py')))
    assert built - {'ament_cmake'} | launched <= declared | {'ros2_control_lockstep'}
    manager = parameters_of('controllers.yaml', 'controller_manager')
    types = [value['type'] for value in manager.values() if isinstance(value, dict)]
    assert {kind.split('/')[0] for kind in types} <= declared
    included = set()
    for path in (*FOLDER.glob('*.cpp'), *FOLDER.glob('*.hpp')):
        text = path.read_text(encoding='utf-8')
        included |= set(re.findall(r'#include <(\w+)/', text))
        assert max(map(len, text.splitlines())) <= 100, path.name
    assert included - {'sys'} <= declared  # headers of the kernel


def test_the_benchmark_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    import ros2_control_time

    what = ros2_control_time.missing()
    if not what:
        pytest.skip('ros2_control is installed: the benchmark would run')
    assert ros2_control_time.main([]) == 2
    assert f'{what}: nothing is measured' in capsys.readouterr().out


def test_the_benchmark_launches_what_there_is(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    import ros2_control_time

    manager = parameters_of('controllers.yaml', 'controller_manager')
    assert set(ros2_control_time.CONTROLLERS) < manager.keys()
    assert len(ROBOT.joint_names) == ros2_control_time.JOINTS
    package, file, *given = ros2_control_time.launch_arguments('x', 'topics', 250, Path('run'))
    assert (package, file) == (FOLDER.name, 'quadruped.launch.py')
    assert {argument.partition(':=')[0] for argument in given} <= ARGUMENTS
