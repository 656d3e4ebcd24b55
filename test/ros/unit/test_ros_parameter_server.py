"""The parameters of a node as ros2cli asks for them and sets them, without a simulation."""

import math
import re
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
import yaml
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter, get_parameter_value, parameter_dict_from_yaml_file

from contact_sim import InvalidInput
from contact_sim.parameters import declared_parameters
from contact_sim.ros._parameter_server import LISTS, SCALARS, ParameterServer, full_name, is_list
from contact_sim.ros._parameters import PARAMETER_GROUPS
from contact_sim.ros.generate import yaml_text

SHIPPED = Path(__file__).resolve().parents[3] / 'config' / 'contact_sim.yaml'
FIELDS = {
    full_name(prefix, field.name): field
    for prefix, cls in PARAMETER_GROUPS.items()
    for field in declared_parameters(cls)
}
BOUNDED = [
    name
    for name, field in FIELDS.items()
    if re.search('tolerance|substep|stiction|slip_speed|time_step', name) and field.type is float
]


class Served:
    """A node with the parameters of the simulation, and what was applied."""

    def __init__(self, *arguments):
        self.context = Context()
        rclpy.init(args=['--ros-args', *arguments], context=self.context)
        self.node = Node('served', context=self.context)
        self.applied = []
        self.server = ParameterServer(self.node, lambda settings: None, self.apply)
        self.server.declare(PARAMETER_GROUPS)
        self.server.accept_changes()

    def apply(self, settings, prefixes):
        self.applied.append(prefixes)

    def set(self, name, text):
        """Do what `ros2 param set` and `ros2 param load` do with a text."""
        message = ParameterMessage(name=name, value=get_parameter_value(text))
        parameter = Parameter.from_parameter_msg(message)
        return self.node.set_parameters_atomically([parameter])

    def dump(self):
        """Return what `ros2 param dump` finds: all names, then all values in one request."""
        service = next(s for s in self.node.services if s.srv_name.endswith('/list_parameters'))
        names = service.callback(ListParameters.Request(), ListParameters.Response()).result.names
        service = next(s for s in self.node.services if s.srv_name.endswith('/get_parameters'))
        response = service.callback(GetParameters.Request(names=names), GetParameters.Response())
        return dict(zip(names, response.values, strict=True))

    def close(self):
        self.node.destroy_node()
        self.context.try_shutdown()


@pytest.fixture(scope='module')
def here():
    """A node at its defaults, for tests that leave it so."""
    one = Served()
    yield one
    one.close()


@pytest.fixture
def served():
    made = []

    def make(*arguments):
        made.append(Served(*arguments))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ros_type(field):
    return (LISTS[field.type.__args__[0]] if is_list(field) else SCALARS[field.type]).value


def test_every_value_can_be_dumped_and_has_its_declared_type(here):
    dumped = here.dump()
    assert FIELDS.keys() <= dumped.keys()
    for name, field in FIELDS.items():
        assert dumped[name].type == ros_type(field), name


@pytest.mark.parametrize('source', ['shipped', 'written anew'])
def test_yaml_1_1_reads_every_value_of_the_shipped_file_in_its_declared_type(source):
    text = SHIPPED.read_text() if source == 'shipped' else yaml_text(PARAMETER_GROUPS)
    values = {}

    def flatten(prefix, tree):
        for key, value in tree.items():
            name = f'{prefix}.{key}' if prefix else key
            if isinstance(value, dict):
                flatten(name, value)
            else:
                values[name] = value

    flatten('', yaml.safe_load(text)['/**']['ros__parameters'])
    assert values.keys() == {name for name, field in FIELDS.items() if field.default != ()}
    for name, value in values.items():
        field = FIELDS[name]
        if is_list(field):
            assert all(type(item) is field.type.__args__[0] for item in value), name
        else:
            assert type(value) is field.type, name


def test_ros2_param_load_takes_the_shipped_file(served):
    """Ros2cli makes a text of 1.0e-10 that YAML 1.1 reads as a text: 1e-10."""
    here = served()
    loaded = parameter_dict_from_yaml_file(str(SHIPPED), use_wildcard=True)
    assert loaded['contact.ncp.tolerance'].value.string_value == '1e-10'
    live = {name: one for name, one in loaded.items() if FIELDS[name].info.live}
    assert len(live) > 100
    for name, one in live.items():
        result = here.node.set_parameters_atomically([Parameter.from_parameter_msg(one)])
        assert result.successful, (name, result.reason)
    after = here.dump()
    for name in live:
        assert after[name].type == ros_type(FIELDS[name]), name
    assert after['contact.ncp.tolerance'].double_value == 1e-10
    assert here.server.settings == {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}


def test_an_empty_list_can_be_set(here):
    assert here.set('contact.shadow', "['sap']").successful
    assert here.server.settings['contact'].shadow == ('sap',)
    for nothing in ('[]', "['']"):
        assert here.set('contact.shadow', nothing).successful
        assert here.server.settings['contact'].shadow == ()
        assert here.node.get_parameter('contact.shadow').value == []
    assert not here.set('contact.shadow', 'sap').successful


@pytest.mark.parametrize('nothing', ['[]', "['']"])
def test_an_empty_list_can_be_given_at_the_start(served, nothing):
    here = served('-p', f'contact.shadow:={nothing}', '-p', f'robots:={nothing}')
    assert here.server.settings['contact'].shadow == ()
    assert here.server.settings[''].robots == ()


@pytest.mark.parametrize('text', ['rough', '1e', '1e5 m', '.nan', '[0.1]', "'-1'", '1e999'])
def test_a_text_that_is_no_number_is_refused(here, text):
    assert not here.set('friction.mu', text).successful
    assert here.node.get_parameter('friction.mu').value == 0.8


@pytest.mark.parametrize('name', BOUNDED)
def test_steps_and_tolerances_have_lower_bounds_that_a_computer_can_reach(name):
    field = FIELDS[name]
    assert field.info.at_least is not None
    assert field.info.at_least >= 1e-16
    assert field.info.refusal(field.info.at_least) is None
    for value in (1e-300, 0.0, -1.0, math.nan, math.nextafter(field.info.at_least, 0.0)):
        assert f'[{field.info.at_least:g}, ' in field.info.refusal(value)


def test_a_step_that_would_freeze_time_is_refused_with_its_bound(here):
    """Both of them never came back."""
    for name, value, bound in (
        ('contact.hybrid.max_substep', '1e-8', r'max_substep.*Min: 1e-05.*value: 1e-08'),
        ('contact.ncp.tolerance', '1e-300', r'tolerance.*Min: 1e-16.*value: 1e-300'),
    ):
        result = here.set(name, value)
        assert not result.successful
        assert re.search(bound, result.reason), result.reason


@pytest.mark.parametrize(
    ('name', 'guess'),
    [
        ('contact.modl', 'contact.model'), ('frction.mu', 'friction.mu'),
        ('contact.ncp.tolerence', 'contact.ncp.tolerance'),
    ],
)  # fmt: skip
def test_a_parameter_that_nobody_declared_is_named_with_the_nearest(served, name, guess):
    here = served('-p', f'{name}:=1', '-p', 'friction.mu:=0.3', '-p', 'use_sim_time:=false')
    (line,) = here.server.unknown()
    assert line == f"there is no parameter '{name}', it is ignored; did you mean {guess}?"


def test_a_parameter_far_from_all_others_is_named_alone(served):
    (line,) = served('-p', 'zzz:=1').server.unknown()
    assert line == "there is no parameter 'zzz', it is ignored"


def test_a_refusal_that_quotes_a_megabyte_is_short(here):
    result = here.set('contact.model', 'x' * 1_000_000)
    assert not result.successful
    assert 100 < len(result.reason) < 3000
    assert 'one of' in result.reason


def test_settings_that_could_not_be_applied_are_taken_back(served):
    here = served()
    before = here.server.settings
    assert here.set('friction.mu', '0.3').successful
    assert here.set('contact.shadow', "['sap']").successful
    here.applied.clear()
    here.server.restore(before)
    assert here.server.settings == before
    assert here.node.get_parameter('friction.mu').value == 0.8
    assert here.node.get_parameter('contact.shadow').value == []
    assert here.applied == []
    assert here.set('friction.mu', '0.4').successful


def test_a_value_at_the_start_that_is_not_allowed_names_value_and_bound():
    with pytest.raises(InvalidInput, match=r'max_substep = 1e-08 s: .*\[1e-05, 0.01\]'):
        PARAMETER_GROUPS['contact.hybrid'](max_substep=1e-8)
