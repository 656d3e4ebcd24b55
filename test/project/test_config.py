"""The configuration files say what the code says."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from contact_sim.drawing._step_shapes import COLOURS
from contact_sim.parameters import Parameters, declared_parameters, parameter
from contact_sim.ros._parameters import PARAMETER_GROUPS, NodeParameters
from contact_sim.ros.generate import generated_files, markdown_text, yaml_text
from contact_sim.topics._table import PUBLISHED

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outer(Parameters):
    label: str = parameter('on', '', 'a word that YAML reads as true')
    ratio: float = parameter(1e-10, '-', 'a number that YAML 1.1 reads as text', above=0.0)
    whole: float = parameter(2.0, 'm', 'a float without decimals', live=True)
    names: tuple[str, ...] = parameter((), '', 'an empty list')
    lengths: tuple[float, ...] = parameter((0.0, 1e-6), 'm', 'a | in the meaning')
    paused: bool = parameter(False, '', 'a switch')


@dataclass(frozen=True)
class Inner(Parameters):
    count: int = parameter(3, '', 'a number', at_least=1)


GROUPS = {'': Outer, 'contact': Inner, 'imu': Inner, 'contact.ncp': Inner}


def flat(tree, prefix=''):
    """Return {dotted name: value} of a nested mapping."""
    found = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= flat(value, f'{prefix}{key}.')
        else:
            found[prefix + key] = value
    return found


def parameters_in(text):
    return flat(yaml.safe_load(text)['/**']['ros__parameters'])


def defaults(groups):
    """Return {dotted name: default} of every parameter that a YAML file can state."""
    return {
        f'{prefix}.{field.name}' if prefix else field.name: field.default
        for prefix, cls in groups.items()
        for field in declared_parameters(cls)
        if field.default != ()
    }


def same(written, declared):
    value = tuple(written) if isinstance(written, list) else written
    return value == declared and type(value) is type(declared)


@pytest.mark.parametrize('path', generated_files(), ids=str)
def test_generated_file_matches_the_code(path):
    assert (ROOT / path).read_text(encoding='utf-8') == generated_files()[path], (
        'the declarations changed: run `make generate`'
    )


@pytest.mark.parametrize('groups', [GROUPS, PARAMETER_GROUPS], ids=['difficult', 'node'])
def test_yaml_reads_back_as_the_defaults(groups):
    written = parameters_in(yaml_text(groups))
    expected = defaults(groups)
    assert written.keys() == expected.keys()
    assert [name for name in expected if not same(written[name], expected[name])] == []


def test_an_empty_list_is_named_in_a_comment():
    assert '# names: []' in yaml_text(GROUPS)


def test_every_parameter_has_a_row_with_unit_and_meaning():
    rows = {
        line.split('`')[1]: line for line in markdown_text(GROUPS).splitlines() if '| `' in line
    }
    assert len(rows) == 9
    assert 'list of float' in rows['lengths']
    assert r'a \| in the meaning' in rows['lengths']
    assert '(0, inf)' in rows['ratio']
    assert '| live |' in rows['whole']
    assert '| live |' not in rows['ratio']


def test_every_parameter_of_the_node_has_a_meaning():
    fields = [field for cls in PARAMETER_GROUPS.values() for field in declared_parameters(cls)]
    assert fields
    assert [field.name for field in fields if len(field.info.meaning) < 5] == []


def test_generating_needs_no_ros():
    script = 'import sys, contact_sim.ros.generate; print(*sys.modules)'
    result = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert 'rclpy' not in result.stdout.split()


def test_ros_reads_the_file_with_the_declared_types():
    """The file passes through rcl, whose YAML is not quite everybody's."""
    pytest.importorskip('rclpy', reason='needs ROS')
    script = (
        'import sys, rclpy;'
        "rclpy.init(args=['--ros-args', '--params-file', sys.argv[1]]);"
        "node = rclpy.create_node('contact_sim', namespace='robot1',"
        ' automatically_declare_parameters_from_overrides=True);'
        "values = node.get_parameters_by_prefix('');"
        "print('|'.join(f'{name}={values[name].type_.name}' for name in values))"
    )
    command = [sys.executable, '-c', script, str(ROOT / 'config/contact_sim.yaml')]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    read = dict(item.split('=') for item in result.stdout.strip().split('|'))
    names = {bool: 'BOOL', int: 'INTEGER', float: 'DOUBLE', str: 'STRING', tuple: '_ARRAY'}
    expected = {name: names[type(value)] for name, value in defaults(PARAMETER_GROUPS).items()}
    assert {name for name in expected if not read[name].endswith(expected[name])} == set()


# ------------------------------------------------------------------ RViz

SHOWN = {
    'Contacts': 'visualization_msgs/msg/MarkerArray',
    'Terrain': 'visualization_msgs/msg/MarkerArray',
    'Odometry': 'nav_msgs/msg/Odometry',
    'Robot': 'std_msgs/msg/String',
}
"""What the displays of RViz subscribe to."""
FROM_ROBOT_STATE_PUBLISHER = {'/robot_description': 'std_msgs/msg/String'}


@pytest.fixture(scope='module')
def rviz():
    text = (ROOT / 'config/contact_sim.rviz').read_text(encoding='utf-8')
    return yaml.safe_load(text)['Visualization Manager']


def displays(rviz):
    """Return {name of display: display}."""
    return {display['Name']: display for display in rviz['Displays']}


def topic_of(display):
    return display.get('Topic') or display.get('Description Topic')


def absolute(topic):
    """Return the full name of a topic of the node in the root namespace."""
    return '/' + topic.replace('~', 'contact_sim').lstrip('/')


def test_rviz_shows_topics_that_are_published_with_their_type(rviz):
    published = {absolute(topic): kind for topic, kind in PUBLISHED.items()}
    published |= FROM_ROBOT_STATE_PUBLISHER
    shown = {name: display for name, display in displays(rviz).items() if topic_of(display)}
    assert shown.keys() == SHOWN.keys()
    for name, display in shown.items():
        assert published[topic_of(display)['Value']] == SHOWN[name]


def test_rviz_shows_every_kind_of_marker(rviz):
    shown = [displays(rviz)[name]['Namespaces'] for name in ('Contacts', 'Terrain')]
    assert shown[0] | shown[1] == dict.fromkeys(COLOURS, True)
    assert set(shown[1]) == {'terrain', 'region'}


def test_rviz_looks_from_the_odometry_frame(rviz):
    assert rviz['Global Options']['Fixed Frame'] == NodeParameters().odom_frame
    kinds = {display['Class'].rpartition('/')[2] for display in rviz['Displays']}
    assert {'RobotModel', 'TF', 'MarkerArray'} <= kinds


def test_rviz_quality_of_service_matches_the_publishers(rviz):
    """Description and ground are latched: an RViz that starts late must get them all the same."""
    for name, display in displays(rviz).items():
        topic = topic_of(display)
        if topic:
            latched = topic['Durability Policy'] == 'Transient Local'
            assert latched == (name in ('Robot', 'Terrain')), name
            assert topic['Reliability Policy'] == 'Reliable', name
