"""Bilateral constraints of the node: parameters, what they hold, what is published of them."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from rcl_interfaces.msg import Parameter as ParameterMessage
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter, get_parameter_value

from contact_sim import load_robot
from contact_sim.constraints import (
    Baumgarte,
    FrameAnchor,
    JointCoupling,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
)
from contact_sim.constraints._constraint_rows import KINDS
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.ros._factory import (
    FIELDS,
    check_constraints,
    chosen_constraints,
    constraint_groups,
    constraints_in,
    described_constraints,
    loaded_simulator,
    start_configuration,
)
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._parameters import (
    PARAMETER_GROUPS,
    ConstraintNames,
    ConstraintParameters,
    NodeParameters,
)
from contact_sim.ros._robots import loaded_robot


def settings_of(**constraints):
    """Return the settings of constraints by name."""
    return {'constraints': ConstraintNames(tuple(constraints))} | {
        f'constraints.{name}': ConstraintParameters(**said) for name, said in constraints.items()
    }


def one(**said):
    return described_constraints(settings_of(it=said))[0]


# -------------------------------------------------------------------- what parameters describe


@pytest.mark.parametrize(
    ('said', 'expected'),
    [
        ({'kind': 'frame_anchor', 'frame': 'trunk'}, FrameAnchor('trunk', name='it')),
        (
            {'kind': 'frame_anchor', 'frame': 'trunk', 'at': (0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0)},
            FrameAnchor('trunk', (0, 0, 0.5, 0, 0, 0, 1), name='it'),
        ),
        (
            {'kind': 'point_anchor', 'frame': 'trunk', 'at': (1, 2, 3), 'point': (0.1, 0, 0),
             'alpha': 10.0},
            PointAnchor('trunk', (1, 2, 3), (0.1, 0, 0), name='it',
                        stabilisation=Baumgarte(10.0)),
        ),
        (
            {'kind': 'loop_closure', 'frame': 'a', 'other': 'b', 'other_point': (0, 0, 1.0),
             'full': True, 'kp': 4.0, 'kd': 3.0},
            LoopClosure('a', 'b', other_point=(0, 0, 1), full=True, name='it',
                        stabilisation=Baumgarte(kp=4.0, kd=3.0)),
        ),
        ({'kind': 'joint_lock', 'joint': 'knee', 'at': (0.5,)}, JointLock('knee', 0.5, name='it')),
        ({'kind': 'joint_lock', 'joint': 'knee', 'alpha': 0.0},
         JointLock('knee', name='it', stabilisation=Baumgarte(0.0))),
        ({'kind': 'joint_coupling', 'joint': 'a', 'leader': 'b', 'ratio': -1.5, 'offset': 0.2},
         JointCoupling('a', 'b', -1.5, 0.2, name='it')),
        ({'kind': 'joint_velocity', 'joint': 'a'}, JointVelocity('a', 0.0, name='it')),
        ({'kind': 'joint_velocity', 'joint': 'a', 'velocity': 2.0, 'alpha': 3.0},
         JointVelocity('a', 2.0, 3.0, name='it')),
    ],
)  # fmt: skip
def test_parameters_describe_every_kind(said, expected):
    assert one(**said) == expected


def test_every_kind_and_field_has_a_parameter():
    declared = {field.name for field in FIELDS}
    for kind in KINDS.values():
        fields = {field.name for field in dataclasses.fields(kind)} - {'name', 'stabilisation'}
        assert fields <= declared


def test_those_that_are_not_enabled_are_described_only():
    settings = settings_of(
        stand={'kind': 'frame_anchor', 'frame': 'trunk', 'enabled': False},
        lock={'kind': 'joint_lock', 'joint': 'RL_calf_joint'},
    )
    assert [each.name for each in described_constraints(settings)] == ['stand', 'lock']
    assert [each.name for each in chosen_constraints(settings)] == ['lock']


@pytest.mark.parametrize(
    ('said', 'message'),
    [
        ({}, r"^constraints\.it: unknown kind ''; known: .*frame_anchor"),
        ({'kind': 'joint_lok'}, "unknown kind 'joint_lok'.*did you mean 'joint_lock'"),
        ({'kind': 'joint_lock'}, r'^constraints\.it: joint is not set: a joint_lock needs it'),
        ({'kind': 'joint_lock', 'joint': 'a', 'frame': 'b'},
         'frame: a joint_lock has none; it has alpha, at, joint, kd, kp'),
        ({'kind': 'joint_velocity', 'joint': 'a', 'kp': 1.0}, 'kp: a joint_velocity has none'),
        ({'kind': 'joint_lock', 'joint': 'a', 'at': (1.0, 2.0)}, r'JointLock\.at = \(1\.0, 2'),
        ({'kind': 'point_anchor', 'frame': 'a', 'at': (1.0,)}, r'PointAnchor\.at = 1\.0: exp'),
        ({'kind': 'frame_anchor', 'frame': 'a', 'at': (0.0,) * 7}, 'a unit quaternion'),
        ({'kind': 'joint_lock', 'joint': 'a', 'kp': 1.0}, 'expected alpha, or kp and kd'),
        ({'kind': 'joint_coupling', 'joint': 'a', 'leader': 'a'}, 'the joint itself'),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_by_the_name_of_its_entry(said, message):
    with pytest.raises(InvalidInput, match=message):
        one(**said)


@pytest.mark.parametrize('value', [math.nan, math.inf, 1e6])
def test_places_are_bounded(value):
    for field in ('at', 'point', 'other_point'):
        with pytest.raises(InvalidInput, match=field):
            ConstraintParameters(**{field: (0.0, value, 0.0)})
    with pytest.raises(InvalidInput, match='velocity'):
        ConstraintParameters(velocity=value)


@pytest.mark.parametrize(
    ('names', 'message'),
    [
        (['left stand'], "'left stand' cannot be part of a topic"),
        (['a/stand'], "'a/stand' cannot be part of a topic"),
        (['names'], r'constraints\.names is this list'),
        (['stand', 'stand'], 'more than once'),
    ],
)
def test_names_that_cannot_be(names, message):
    with pytest.raises(InvalidInput, match=message):
        constraint_groups(names)


@pytest.mark.parametrize(
    ('said', 'message'),
    [
        ({'kind': 'frame_anchor', 'frame': 'trnk'}, r"constraints\.it: .*'trnk'.*mean 'trunk'"),
        ({'kind': 'joint_lock', 'joint': 'knee'}, "unknown joint of a constraint: 'knee'"),
        ({'kind': 'joint_lock', 'joint': 'root_joint'}, 'FrameAnchor holds a base'),
        ({'kind': 'loop_closure', 'frame': 'trunk', 'other': 'crate'}, "'crate'"),
        ({'kind': 'joint_coupling', 'joint': 'RL_calf_joint', 'leader': 'x'}, "'x'"),
    ],
)
def test_what_the_robot_does_not_have_is_refused_before_it_is_needed(said, message):
    settings = settings_of(it=said | {'enabled': False})
    with pytest.raises(InvalidInput, match=message):
        check_constraints(load_robot('go1'), settings)


def all_settings(**constraints):
    return {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()} | settings_of(**constraints)


def test_a_start_closes_loops_and_holds_the_rest_where_it_is():
    """Two feet of a robot in the air are tied nearer than they stand, the trunk is held."""
    settings = all_settings(
        feet={'kind': 'loop_closure', 'frame': 'FL_foot', 'other': 'FR_foot',
              'other_point': (0.0, 0.15, 0.0)},
        stand={'kind': 'frame_anchor', 'frame': 'trunk'},
        later={'kind': 'joint_lock', 'joint': 'RL_calf_joint', 'enabled': False},
    )  # fmt: skip
    settings[''] = NodeParameters(initial_height=0.4, initial_x=2.0)
    robot = load_robot('go1')
    sim = loaded_simulator(robot, settings)
    free = loaded_simulator(robot, all_settings())
    expected = start_configuration(free, settings)
    for _ in range(2):  # and again after it has been elsewhere
        sim.reset(start_configuration(sim, settings))
        left, right = (sim.frame_placement(f'F{side}_foot') for side in 'LR')
        tied = right.act(np.array([0.0, 0.15, 0.0]))
        assert left.translation == pytest.approx(tied, abs=1e-11)
        assert sim.q[:7] == pytest.approx(expected[:7], abs=1e-11)
        assert [each.name for each in sim.constraints] == ['feet', 'stand']
        report = sim.step(np.zeros(robot.n_joints))
        assert report.constraints['feet'].drift < 1e-12
        settings[''] = NodeParameters(initial_height=0.4)
        expected = start_configuration(free, settings)


def test_frames_of_several_robots_say_whose_they_are():
    settings = all_settings(
        grasp={'kind': 'loop_closure', 'frame': 'a/FL_foot', 'other': 'crate/box'},
        lock={'kind': 'joint_lock', 'joint': 'a/RL_calf_joint'},
    )
    settings[''] = NodeParameters(robots=('a=go1', 'crate=box:0.3:0.4:0.2:2@1,0'))
    robot = loaded_robot(settings)
    boxes = [f.name for f in robot.pinocchio_model.frames if f.name.startswith('crate/')]
    settings['constraints.grasp'] = ConstraintParameters(
        kind='loop_closure', frame='a/FL_foot', other=boxes[-1]
    )
    check_constraints(robot, settings)
    settings['constraints.lock'] = ConstraintParameters(kind='joint_lock', joint='RL_calf_joint')
    with pytest.raises(InvalidInput, match="mean 'a/RL_calf_joint'"):
        check_constraints(robot, settings)


# -------------------------------------------------------------------- the argument of launch files


def test_a_text_of_the_launch_argument():
    said = constraints_in(
        'stand: kind=frame_anchor frame=trunk enabled=false;'
        ' rope: kind=point_anchor frame=trunk at=0,0,1.5 alpha=10;'
    )
    assert said == {
        'constraints.names': ['stand', 'rope'],
        'constraints.stand.kind': 'frame_anchor',
        'constraints.stand.frame': 'trunk',
        'constraints.stand.enabled': False,
        'constraints.rope.kind': 'point_anchor',
        'constraints.rope.frame': 'trunk',
        'constraints.rope.at': [0.0, 0.0, 1.5],
        'constraints.rope.alpha': 10.0,
    }
    assert constraints_in('') == {}


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('stand', 'expected name: field=value'),
        ('stand:', 'expected name: field=value'),
        ('stand: frame_anchor', "'frame_anchor': expected name"),
        ('stand: knd=frame_anchor', "did you mean 'kind'"),
        ('stand: at=0,x', "at = '0,x': expected numbers with commas"),
        ('stand: alpha=1,2', "alpha = '1,2': expected a number"),
        ('stand: enabled=maybe', 'expected true or false'),
        ('a b: kind=joint_lock', "'a b' cannot be part of a topic"),
        ('a: kind=joint_lock; a: joint=b', 'more than once'),
    ],
)
def test_a_text_that_says_nothing(text, message):
    with pytest.raises((InvalidInput, UnknownName), match=message):
        constraints_in(text)


# -------------------------------------------------------------------- as ROS parameters


class Served:
    """A node with the parameters of these constraints."""

    def __init__(self, names, *values, arguments=()):
        self.context = Context()
        given = [*arguments, *(word for value in values for word in ('-p', value))]
        rclpy.init(args=['--ros-args', *given], context=self.context)
        self.node = Node('served', context=self.context)
        self.server = ParameterServer(self.node, lambda settings: None, lambda *changes: None)
        try:
            self.server.declare({'constraints': PARAMETER_GROUPS['constraints']})
            self.server.declare(constraint_groups(names))
            self.server.accept_changes()
        except ContactSimError:
            self.close()
            raise

    def set(self, name, text):
        """Do what `ros2 param set` does with a text."""
        message = ParameterMessage(name=name, value=get_parameter_value(text))
        return self.node.set_parameters_atomically([Parameter.from_parameter_msg(message)])

    def close(self):
        self.node.destroy_node()
        self.context.try_shutdown()


@pytest.mark.parametrize(
    ('given', 'value'),
    [('[0, 0, 1]', (0.0, 0.0, 1.0)), ('[0.0, 0.0, 0.5]', (0.0, 0.0, 0.5)), ('0.5', (0.5,)),
     ('1', (1.0,)), ('[]', ()), ("['']", ())],
)  # fmt: skip
def test_a_list_of_numbers_is_read_as_people_write_it(given, value):
    served = Served(['it'], 'constraints.names:=[it]', f'constraints.it.at:={given}')
    assert served.server.settings['constraints.it'].at == value
    assert list(served.node.get_parameter('constraints.it.at').value) == list(value)
    assert served.set('constraints.it.at', '[0.0, 0.0, 2.0]').successful
    assert served.set('constraints.it.at', given).successful
    assert served.server.settings['constraints.it'].at == value
    served.close()


@pytest.mark.parametrize('given', ['rough', '[rough]', 'true', '[true]'])
def test_what_is_no_number_ends_the_start_with_its_name(given):
    with pytest.raises(InvalidInput, match=r'^constraints\.it: ConstraintParameters\.at = '):
        Served(['it'], f'constraints.it.at:={given}')


def test_the_file_in_the_docs_is_read(tmp_path):
    page = Path(__file__).resolve().parents[3] / 'docs' / 'constraints.md'
    (text,) = re.findall(r'```yaml\n(.*?)```', page.read_text(encoding='utf-8'), re.DOTALL)
    (tmp_path / 'held.yaml').write_text(text, encoding='utf-8')
    names = ['stand', 'knee', 'tether']
    served = Served(names, arguments=['--params-file', str(tmp_path / 'held.yaml')])
    settings = served.server.settings
    assert list(settings['constraints'].names) == names
    stand, knee, tether = described_constraints(settings)
    assert stand == FrameAnchor('trunk', name='stand')
    assert knee == JointLock('RL_calf_joint', -1.8, name='knee')
    assert tether == PointAnchor(
        'trunk', (0, 0, 0.5), name='tether', stabilisation=Baumgarte(10.0)
    )
    assert [one.name for one in chosen_constraints(settings)] == ['stand', 'knee']
    check_constraints(load_robot('go1'), settings)
    served.close()


def test_frames_and_kinds_stay_what_they_are():
    served = Served(['it'], 'constraints.it.kind:=joint_lock', 'constraints.it.joint:=knee')
    assert not served.set('constraints.it.joint', 'hip').successful
    assert not served.set('constraints.it.kind', 'point_anchor').successful
    assert served.set('constraints.it.enabled', 'false').successful
    assert served.server.settings['constraints.it'].enabled is False
    served.close()
