"""Parameters without a network: groups, descriptors, rates and gains; names of topics."""

import math
import re
from dataclasses import replace
from typing import get_origin

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from hypothesis import example, given
from hypothesis import strategies as st
from rcl_interfaces.msg import ParameterType
from rclpy.validate_topic_name import validate_topic_name
from urdf_texts import ONE_LEG

from contact_sim import InvalidInput, load_robot
from contact_sim.drawing._step_shapes import ground_triangles
from contact_sim.errors import RobotDescriptionError
from contact_sim.parameters import declared_parameters
from contact_sim.robot._actuators import quantities
from contact_sim.ros._factory import loaded_simulator, start_configuration
from contact_sim.ros._parameter_server import full_name, parameter_descriptor
from contact_sim.ros._parameters import PARAMETER_GROUPS, ActuatorParameters, JointGainParameters
from contact_sim.ros._robots import driven_robot, joint_gains, loaded_robot
from contact_sim.terrain._generator import READY_MADE
from contact_sim.topics._table import (
    PublishRateParameters,
    publish_periods,
    steps_between,
    wrench_topic,
)

FIELDS = {
    full_name(prefix, field.name): field
    for prefix, cls in PARAMETER_GROUPS.items()
    for field in declared_parameters(cls)
}
TIME_STEPS = st.sampled_from([5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 1 / 600, 2e-3, 5e-3, 0.01, 0.1])

# -------------------------------------------------------------------- groups and descriptors


def test_names_are_unique_and_can_be_typed():
    declared = [
        full_name(prefix, field.name)
        for prefix, cls in PARAMETER_GROUPS.items()
        for field in declared_parameters(cls)
    ]
    assert len(declared) == len(set(declared))
    assert all(re.fullmatch(r'[a-z]+[a-z0-9_]*(\.[a-z0-9_]+)*', name) for name in declared)
    groups = {f'{prefix}.' for prefix in PARAMETER_GROUPS if prefix}
    assert not any(f'{name}.' in groups for name in declared)  # no value is a group as well


def test_defaults_are_allowed_and_fit_together():
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    periods = publish_periods(settings['publish_rate'], settings[''].time_step)
    assert periods == {
        'joint_states': 4, 'odom': 4, 'imu': 4, 'wrenches': 8, 'markers': 40, 'solver_state': 40,
        'shadow': 40, 'height_scan': 0, 'lidar': 0, 'depth': 0,
    }  # fmt: skip


@pytest.mark.parametrize('name', FIELDS)
def test_a_descriptor_says_unit_meaning_bounds_and_whether_it_may_change(name):
    field = FIELDS[name]
    descriptor, info = parameter_descriptor(field), field.info
    assert descriptor.description.endswith(info.meaning)
    assert descriptor.description.startswith(f'[{info.unit}] ' if info.unit else info.meaning)
    assert descriptor.read_only != info.live
    if field.type is float:
        assert info.unit, 'a number without unit; [-] if it has none'
        assert descriptor.type == ParameterType.PARAMETER_DOUBLE
    ranges = [*descriptor.floating_point_range, *descriptor.integer_range]
    assert all(bounds.from_value < bounds.to_value < math.inf for bounds in ranges)
    if info.choices is not None:
        assert all(choice in descriptor.additional_constraints for choice in info.choices)
    limits = (info.above, info.below, info.at_least, info.at_most)
    if limits != (None,) * 4 or info.choices is not None:
        assert descriptor.additional_constraints


@pytest.mark.parametrize(
    ('name', 'says'),
    [
        ('time_step', ('[s] physics step', True, '[1e-06, 0.1]', [(1e-06, 0.1)])),
        ('friction.mu', ('[-] friction coefficient', False, '[0, inf)', [])),
        ('real_time_factor', ('[-] simulated seconds', False, '[0, 1000]', [(0.0, 1000.0)])),
        ('step_count', ('steps taken by one call', False, '[1, 1e+07]', [(1, 10_000_000)])),
        ('contact.model', ('contact model', False, 'one of ', [])),
        ('terrain.angle', ('[rad] slope', False, '(-1.57, 1.57)', [(-1.57, 1.57)])),
        ('feet', ('frames of the feet', True, '', [])),
    ],
)
def test_some_descriptors(name, says):
    descriptor = parameter_descriptor(FIELDS[name])
    description, read_only, constraints, ranges = says
    assert descriptor.description.startswith(description)
    assert descriptor.read_only == read_only
    assert constraints in descriptor.additional_constraints
    given_ranges = [*descriptor.floating_point_range, *descriptor.integer_range]
    assert [(bounds.from_value, bounds.to_value) for bounds in given_ranges] == ranges


@pytest.mark.parametrize(
    'name', [name for name, field in FIELDS.items() if get_origin(field.type) is not tuple]
)
def test_every_parameter_refuses_another_type(name):
    prefix, _, field = name.rpartition('.')
    wrong = 3 if FIELDS[name].type is str else 'three'
    with pytest.raises(InvalidInput, match=rf'{field}.*expected {FIELDS[name].type.__name__}'):
        PARAMETER_GROUPS[prefix](**{field: wrong})


# -------------------------------------------------------------------- rates


@pytest.mark.parametrize(
    ('rate', 'time_step', 'steps'),
    [(1000.0, 1e-3, 1), (250.0, 1e-3, 4), (333.333, 1e-3, 3), (0.0, 1e-3, 0), (400.0, 2.5e-4, 10),
     (0.1, 1e-3, 10000)],
)  # fmt: skip
def test_rates_that_divide_the_step_rate(rate, time_step, steps):
    assert steps_between('odom', rate, time_step) == steps


@given(st.integers(1, 20_000), TIME_STEPS)
def test_every_divisor_of_the_step_rate_is_taken_with_six_digits(steps, time_step):
    rate = 1.0 / (steps * time_step)
    assert steps_between('odom', rate, time_step) == steps
    assert steps_between('odom', float(f'{rate:.6g}'), time_step) == steps


@pytest.mark.parametrize(
    ('rate', 'nearest'), [(300.0, '250 and 333.333'), (2000.0, '1000'), (999.0, '500 and 1000')]
)
def test_other_rates_are_refused_with_the_nearest_ones(rate, nearest):
    with pytest.raises(InvalidInput, match=f'nearest: {nearest} Hz'):
        steps_between('odom', rate, 1e-3)


@given(st.floats(1e-3, 1e6), TIME_STEPS)
@example(1001.0, 1e-3)
@example(1000.1, 1e-3)
def test_a_refusal_names_rates_on_both_sides_that_are_taken(rate, time_step):
    try:
        steps = steps_between('publish_rate.imu', rate, time_step)
    except InvalidInput as error:
        found = re.fullmatch(
            r'publish_rate\.imu = .* Hz: must divide the step rate .* Hz; nearest: (.*) Hz',
            str(error),
        )
        nearest = [float(number) for number in found[1].split(' and ')]
        assert all(steps_between('imu', near, time_step) for near in nearest)
        assert nearest[0] < rate
        assert rate < nearest[-1] or nearest[-1] == pytest.approx(1.0 / time_step)
    else:
        assert steps * time_step * rate == pytest.approx(1.0, rel=2e-5)


def test_the_refused_rate_is_named():
    rates = PublishRateParameters(markers=30.0)
    for rate in (5e-324, 1e-310, 9e-7):
        with pytest.raises(InvalidInput, match=r'Hz: expected 0, or at least 1e-06 Hz'):
            steps_between('imu', rate, 1e-3)
    with pytest.raises(InvalidInput, match=r'publish_rate\.markers = 30 Hz'):
        publish_periods(rates, 1e-3)


# -------------------------------------------------------------------- gains


def test_own_gains_win_over_common_ones_and_those_over_the_robots():
    robot = load_robot('go1')
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings |= {f'gains.{name}': JointGainParameters() for name in robot.joint_names}
    default = [np.broadcast_to(gain, 12) for gain in robot.default_gains]
    stiffness, damping = joint_gains(robot, settings)
    assert stiffness == pytest.approx(default[0])
    assert damping == pytest.approx(default[1])
    settings['gains'] = type(settings['gains'])(p=70.0)
    settings['gains.RL_hip_joint'] = JointGainParameters(p=5.0, d=0.5)
    stiffness, damping = joint_gains(robot, settings)
    own = robot.joint_names.index('RL_hip_joint')
    assert (stiffness[own], damping[own]) == (5.0, 0.5)
    assert np.delete(stiffness, own) == pytest.approx(np.full(11, 70.0))
    assert np.delete(damping, own) == pytest.approx(np.delete(default[1], own))


# -------------------------------------------------------------------- actuators


def actuator_settings(robot, shared, **own):
    """Return settings with actuators of all joints, and of single ones."""
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings['actuators'] = ActuatorParameters(**shared)
    return settings | {
        f'actuators.{name}': ActuatorParameters(**own.get(name, {})) for name in robot.joint_names
    }


def test_actuators_have_the_same_names_everywhere():
    assert tuple(field.name for field in declared_parameters(ActuatorParameters)) == quantities()


def test_own_actuators_win_over_common_ones_and_those_over_the_urdf():
    robot = load_robot('go1')
    assert driven_robot(robot, actuator_settings(robot, {})) is robot
    shared = {'delay': 0.004, 'dry_friction': 0.1, 'saturation_effort': 40.0}
    calf = {'dry_friction': 0.0, 'velocity_limit': 0.0, 'saturation_effort': 0.0, 'delay': 0.002}
    driven = driven_robot(robot, actuator_settings(robot, shared, FL_calf_joint=calf)).actuators
    i, urdf = robot.joint_names.index('FL_calf_joint'), robot.actuators
    for name, common, own in (
        ('delay', 0.004, 0.002), ('dry_friction', 0.1, 0.0), ('saturation_effort', 40.0, math.inf),
    ):  # fmt: skip
        assert getattr(driven, name)[i] == own
        assert set(np.delete(getattr(driven, name), i)) == {common}
    assert driven.velocity_limit[i] == math.inf
    assert np.array_equal(np.delete(driven.velocity_limit, i), np.delete(urdf.velocity_limit, i))
    for name in ('effort_limit', 'viscous_friction', 'gear_ratio', 'armature', 'time_constant'):
        assert np.array_equal(getattr(driven, name), getattr(urdf, name))


def test_actuators_that_cannot_be_are_refused():
    robot = load_robot('go1')
    for bad, message in (
        ({'gear_ratio': 0.0}, r"gear_ratio of joint 'FL_hip_joint' = 0: expected a finite"),
        ({'armature': -0.5}, r"armature of joint 'FL_hip_joint' = -0\.5"),
        ({'velocity_limit': 0.0, 'saturation_effort': 9.0}, 'needs a finite velocity_limit'),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=message):
            driven_robot(robot, actuator_settings(robot, bad))
    with pytest.raises(InvalidInput, match=r'ActuatorParameters\.delay = 2\.0 s'):
        ActuatorParameters(delay=2.0)


# -------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ('foot', 'topic'),
    [
        ('FL_foot', 'contacts/FL_foot/wrench'),
        ('left-foot', 'contacts/left_foot/wrench'),
        ('robot/left.foot', 'contacts/robot_left_foot/wrench'),
        ('2nd', 'contacts/foot_2nd/wrench'),
    ],
)
def test_every_foot_has_a_topic(foot, topic):
    assert wrench_topic(foot) == topic


@given(st.text(min_size=1))
def test_no_name_of_a_foot_makes_a_topic_that_ros_refuses(foot):
    assert validate_topic_name(wrench_topic(foot))


@pytest.mark.parametrize('angle', [0.0, 0.3])
def test_the_robot_starts_where_it_is_told(angle):
    """At x, y of the world, its lowest foot `initial_height` above the ground, sloping or not."""
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings['terrain'] = replace(settings['terrain'], type='inclined_plane', angle=angle)
    sim = loaded_simulator(loaded_robot(settings), settings)
    origin = start_configuration(sim, settings)
    settings[''] = replace(settings[''], initial_x=1.5, initial_y=-2.0, initial_height=0.1)
    q = start_configuration(sim, settings)
    sim.reset(q)
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.1, abs=1e-6)
    assert q[:2] - origin[:2] == pytest.approx([1.5 + 0.1 * np.sin(angle), -2.0], abs=1e-9)


# -------------------------------------------------------------------- grounds

HEADING = 0.4
ALONG = np.array([np.cos(HEADING), np.sin(HEADING), 0.0])
ACROSS = np.array([-np.sin(HEADING), np.cos(HEADING), 0.0])
UP = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ('ground', 'features', 'on_it', 'above'),
    [
        ({'type': 'inclined_plane', 'angle': 0.3}, 1,
         [ACROSS, np.cos(0.3) * ALONG - np.sin(0.3) * UP], (UP, np.cos(0.3))),
        ({'type': 'groove', 'angle': 0.3}, 2,
         [ALONG, *(side * np.cos(0.3) * ACROSS + np.sin(0.3) * UP for side in (-1, 1))],
         (UP, np.cos(0.3))),
        ({'type': 'sphere', 'radius': 2.0}, 1,
         [2.0 * ALONG - 2.0 * UP, 2.0 * ACROSS - 2.0 * UP], (3.0 * UP, 3.0)),
        ({'type': 'sphere', 'radius': 2.0, 'hollow': True}, 1,
         [2.0 * ALONG + 2.0 * UP, 4.0 * UP], (1.5 * UP, 1.5)),
        ({'type': 'cylinder', 'radius': 2.0}, 1,
         [7.0 * ALONG, 2.0 * ACROSS - 2.0 * UP], (3.0 * UP, 3.0)),
        ({'type': 'cylinder', 'radius': 2.0, 'hollow': True}, 1,
         [7.0 * ALONG, 2.0 * ACROSS + 2.0 * UP], (1.5 * UP, 1.5)),
    ],
)  # fmt: skip
def test_the_ground_lies_where_its_parameters_say(ground, features, on_it, above):
    """Through the origin, along its heading; `above` is a point and its distance."""
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings['terrain'] = replace(settings['terrain'], heading=HEADING, **ground)
    sim = loaded_simulator(loaded_robot(settings), settings)
    assert sim.terrain.features == features
    points = np.array([np.zeros(3), *on_it])
    assert sim.terrain.signed_distance(points) == pytest.approx(np.zeros(len(points)), abs=1e-12)
    assert sim.terrain.signed_distance([above[0]]) == pytest.approx([above[1]])
    sim.reset(start_configuration(sim, settings))
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.0, abs=1e-9)


def on_ground(**ground):
    """Return the simulator of the default robot on a ground, and where it starts."""
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings['terrain'] = replace(settings['terrain'], **ground)
    sim = loaded_simulator(loaded_robot(settings), settings)
    sim.reset(start_configuration(sim, settings))
    return sim


@pytest.mark.parametrize('name', READY_MADE)
def test_a_robot_stands_on_every_ready_made_ground(name):
    sim = on_ground(type=name, difficulty=0.3)
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.0, abs=1e-8)
    assert ground_triangles(sim.terrain).shape[0] >= 6
    for _ in range(20):
        report = sim.step(np.zeros(sim.robot.n_joints))
    assert -1e-4 < report.contacts.gap.min() < 1e-3
    assert report.solver.converged


def test_files_give_the_ground_they_hold(tmp_path):
    np.save(tmp_path / 'hill.npy', np.array([[0.0, 0.1, 0.0], [0.1, 0.3, 0.1], [0.0, 0.1, 0.0]]))
    hill = on_ground(type='file', file=str(tmp_path / 'hill.npy'), horizontal_scale=2.0)
    assert hill.terrain.height(0.0, 0.0) == pytest.approx(0.3)
    assert hill.terrain.height(-2.0, -2.0) == pytest.approx(0.0)
    (tmp_path / 'world.yaml').write_text(
        'size: [4.0, 4.0]\nsub_terrains:\n  boxes: {box_height_range: [0.2, 0.2]}\n'
    )
    boxes = on_ground(type='file', file=str(tmp_path / 'world.yaml'))
    assert boxes.terrain.height(0.0, 0.0) == pytest.approx(0.2)
    for file, words in (
        ('', 'terrain.file is empty'),
        (str(tmp_path / 'none.yaml'), 'No such file'),
        (str(tmp_path / 'ground.txt'), "ending '.txt'"),
    ):
        with pytest.raises(InvalidInput, match=words):
            on_ground(type='file', file=file)


def test_what_a_node_may_say_of_its_robot(tmp_path):
    path = tmp_path / 'leg.xacro'
    xacro = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
    argument = f'<xacro:arg {xacro} name="called" default="dog"/><link'
    named = ONE_LEG.replace('name="one_leg"', 'name="$(arg called)"')
    path.write_text(named.replace('<link', argument, 1))
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    common = replace(
        settings[''], urdf_path=str(path), xacro_arguments=('called:=spot',), floating_base=False,
        actuated_joints=('knee',),
    )  # fmt: skip
    robot = loaded_robot(settings | {'': common})
    assert (robot.name, robot.floating_base, robot.joint_names) == ('spot', False, ('knee',))
    path.write_text(ONE_LEG.replace('<collision>', '<visual><geometry><mesh filename="no.stl"/>'
                                    '</geometry></visual><collision>'))  # fmt: skip
    with pytest.raises(RobotDescriptionError, match='where check_meshes is false'):
        loaded_robot(settings | {'': common})
    assert loaded_robot(settings | {'': replace(common, check_meshes=False)}).nv == 2
