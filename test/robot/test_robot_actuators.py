"""Actuators as data: from the URDF, from settings, in words; what is refused."""

import numpy as np
import pinocchio as pin
import pytest
from robots import axle
from urdf_texts import ONE_LEG, joint, link, robot

from contact_sim import InvalidInput, RobotDescriptionError, RobotModel, UnknownName, load_robot
from contact_sim.robot._actuators import ENDLESS, POSITIVE, quantities
from contact_sim.robot._model import describe_actuators

LEG = load_robot(ONE_LEG)


def geared(*transmissions):
    """Return the text of the one-legged robot with transmissions."""
    return ONE_LEG.replace('</robot>', ''.join(transmissions) + '</robot>')


def transmission(name, ratio, tag='mechanicalReduction'):
    inner = f'<{tag}>{ratio}</{tag}>'
    where = f'<actuator name="m">{inner}</actuator>' if tag == 'mechanicalReduction' else ''
    inside = '' if where else inner
    return f'<transmission name="t"><joint name="{name}">{inside}</joint>{where}</transmission>'


# ------------------------------------------------------------------------ from the URDF


def test_actuators_are_those_of_the_urdf_and_the_rest_is_off():
    actuators = LEG.actuators
    assert actuators.joint_names == LEG.joint_names == ('hip', 'knee')
    assert actuators.effort_limit.tolist() == [30.0, 30.0]
    assert actuators.velocity_limit.tolist() == [20.0, 20.0]
    assert actuators.viscous_friction.tolist() == [0.3, 0.0]
    assert actuators.dry_friction.tolist() == [0.4, 0.0]
    assert actuators.gear_ratio.tolist() == [1.0, 1.0]
    for name in ('rotor_inertia', 'armature', 'delay', 'time_constant'):
        assert not getattr(actuators, name).any()
    assert np.isinf(actuators.saturation_effort).all()


def test_a_joint_of_which_the_urdf_says_nothing_has_no_limits():
    text = robot(link('a'), link('b'), joint('j', 'a', 'b', 'continuous', limit=''))
    actuators = load_robot(text).actuators
    assert np.isinf(actuators.effort_limit).all()
    assert np.isinf(actuators.velocity_limit).all()
    assert not actuators.dry_friction.any()
    assert not actuators.viscous_friction.any()


def test_a_velocity_limit_of_zero_is_none():
    text = ONE_LEG.replace('velocity="20"', 'velocity="0"')
    assert np.isinf(load_robot(text).actuators.velocity_limit).all()


def test_gear_ratios_of_transmissions():
    text = geared(
        transmission('hip', -50),
        '<ros2_control>' + transmission('knee', 6.33, 'mechanical_reduction') + '</ros2_control>',
    )
    leg = load_robot(text)
    assert leg.actuators.gear_ratio.tolist() == [50.0, 6.33]
    assert not leg.actuators.total_armature.any()  # a ratio alone has no inertia
    heavy = leg.with_actuators(rotor_inertia={'knee': 1e-3}, armature=[0.2, 0.1])
    assert heavy.actuators.total_armature == pytest.approx([0.2, 0.1 + 6.33**2 * 1e-3], rel=1e-15)


def test_a_differential_has_no_ratio_of_one_joint():
    both = '<joint name="hip"/><joint name="knee"/>'
    text = geared(
        f'<transmission name="d">{both}<actuator name="m"><mechanicalReduction>7'
        '</mechanicalReduction></actuator></transmission>'
    )
    assert load_robot(text).actuators.gear_ratio.tolist() == [1.0, 1.0]


@pytest.mark.parametrize('ratio', ['0', 'fast', '', 'nan', 'inf'])
def test_bad_gear_ratios_are_refused(ratio):
    with pytest.raises(RobotDescriptionError, match=r"joint 'hip': <mechanicalReduction> = "):
        load_robot(geared(transmission('hip', ratio)))


def test_two_ratios_of_one_joint_are_refused():
    with pytest.raises(RobotDescriptionError, match="joint 'hip' has gear ratios 5 and 6"):
        load_robot(geared(transmission('hip', 5), transmission('hip', 6)))


# ------------------------------------------------------------------------ from settings


def test_changes_by_number_by_joint_and_for_each_joint():
    driven = LEG.with_actuators(delay=0.002, time_constant={'knee': 0.01}, effort_limit=[5.0, 7.0])
    actuators = driven.actuators
    assert actuators.delay.tolist() == [0.002, 0.002]
    assert actuators.time_constant.tolist() == [0.0, 0.01]
    assert actuators.effort_limit.tolist() == [5.0, 7.0]
    assert actuators.dry_friction.tolist() == [0.4, 0.0]  # not mentioned
    again = driven.with_actuators(delay={'hip': 0.0})
    assert again.actuators.delay.tolist() == [0.0, 0.002]
    assert again.actuators.time_constant.tolist() == [0.0, 0.01]
    assert LEG.actuators.delay.tolist() == [0.0, 0.0]  # a robot is a value


def test_pinocchio_has_the_numbers_too():
    driven = LEG.with_actuators(
        effort_limit=3.0, velocity_limit=4.0, viscous_friction=0.5, dry_friction=0.6,
        armature=0.25, rotor_inertia=0.5, gear_ratio=2.0,
    )  # fmt: skip
    model = driven.pinocchio_model
    for name, value in (
        ('effortLimit', 3.0), ('velocityLimit', 4.0), ('damping', 0.5), ('friction', 0.6),
        ('armature', 2.25),
    ):  # fmt: skip
        assert np.reshape(getattr(model, name), -1)[6:].tolist() == [value, value]
        assert np.array_equal(
            np.reshape(getattr(model, name), -1)[:6],
            np.reshape(getattr(LEG.pinocchio_model, name), -1)[:6],
        )
    assert driven.effort_limit.tolist() == [3.0, 3.0]
    assert driven.joint_friction[6:].tolist() == [0.6, 0.6]
    q, data = pin.neutral(model), model.createData()
    bare = LEG.pinocchio_model
    added = np.diag(pin.crba(model, data, q)) - np.diag(pin.crba(bare, bare.createData(), q))
    assert added[6:] == pytest.approx([2.25, 2.25], rel=1e-12)
    # saying the same again changes nothing: the rotor is not added twice
    same = driven.with_actuators()
    assert same.pinocchio_model.saveToString() == model.saveToString()
    assert driven.with_body_contacts(['foot']).actuators is driven.actuators


def test_armature_of_a_pinocchio_model_is_kept():
    model = pin.Model(axle().pinocchio_model)
    model.armature = np.array([0.7])
    wheel = RobotModel.from_pinocchio(model).with_actuators(rotor_inertia=0.1)
    assert wheel.actuators.armature.tolist() == [0.7]
    assert np.reshape(wheel.pinocchio_model.armature, -1) == pytest.approx([0.8], rel=1e-15)


def test_actuators_are_read_only_values():
    for name in quantities():
        with pytest.raises(ValueError, match='read-only'):
            getattr(LEG.actuators, name)[0] = 1.0


# ------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize('name', quantities())
def test_numbers_that_no_actuator_has(name):
    bad = [-1.0, np.nan]
    bad += [0.0] if name in POSITIVE else []
    bad += [] if name in ENDLESS else [np.inf]
    for value in bad:
        with pytest.raises(InvalidInput, match=rf"Actuators\.{name} of joint 'knee' = {value:g}"):
            LEG.with_actuators(**{name: [1.0, value]})
    with pytest.raises(InvalidInput, match=rf'Actuators\.{name}: shape \(3,\), expected one'):
        LEG.with_actuators(**{name: np.ones(3)})
    with pytest.raises(InvalidInput, match=rf"Actuators\.{name} = 'much': expected real numbers"):
        LEG.with_actuators(**{name: 'much'})
    with pytest.raises(UnknownName, match=r"'kneee'.*did you mean 'knee'"):
        LEG.with_actuators(**{name: {'kneee': 1.0}})


def test_other_things_that_are_refused():
    with pytest.raises(UnknownName, match=r"'delays'.*did you mean 'delay'"):
        LEG.with_actuators(delays=0.1)
    with pytest.raises(InvalidInput, match=r"actuators of joints \('axle',\): expected \('hip'"):
        LEG.with_actuators(axle().actuators)
    with pytest.raises(InvalidInput, match=r"of joint 'axle': .* needs a finite velocity_limit"):
        axle().with_actuators(saturation_effort=2.0, velocity_limit=np.inf)


@pytest.mark.parametrize(('delay', 'near'), [(0.0015, '0.001 and 0.002'), (1e-4, '0 and 0.001')])
def test_a_delay_is_a_multiple_of_the_time_step(delay, near):
    actuators = LEG.with_actuators(delay={'knee': delay}).actuators
    with pytest.raises(InvalidInput, match=rf"joint 'knee' = {delay:g} s: .*; nearest: {near} s"):
        actuators.delay_steps(1e-3)
    assert actuators.delay_steps(delay / 3).tolist() == [0, 3]


# ------------------------------------------------------------------------ in words


def test_the_words_say_what_acts_and_what_does_not():
    driven = LEG.with_actuators(
        delay={'knee': 0.004}, saturation_effort={'knee': 45.0}, gear_ratio=10.0,
        rotor_inertia={'hip': 2e-4}, armature={'hip': 0.01}, time_constant={'hip': 0.003},
    )  # fmt: skip
    assert describe_actuators(driven) == [
        'actuators of hip: effort limit 30 N m, velocity limit 20 rad/s (not driven faster), '
        'viscous friction 0.3 N m s/rad, dry friction 0.4 N m, '
        'armature 0.03 kg m² = 10² × 0.0002 + 0.01, lag 0.003 s',
        'actuators of knee: effort limit 30 N m, velocity limit 20 rad/s (not driven faster), '
        'torque-speed curve from 45 N m at rest to 0 at the velocity limit, delay 0.004 s',
        'backlash is not modelled',
    ]


def test_equal_joints_share_a_line_and_sliding_ones_have_their_units():
    slides = robot(
        link('a'), link('b'), link('c'),
        joint('x', 'a', 'b', 'prismatic', more='<dynamics damping="2" friction="1"/>'),
        joint('y', 'b', 'c', 'prismatic', more='<dynamics damping="2" friction="1"/>'),
    )  # fmt: skip
    lines = describe_actuators(load_robot(slides).with_actuators(armature=0.5))
    assert lines == [
        'actuators of x, y: effort limit 30 N, velocity limit 20 m/s (not driven faster), '
        'viscous friction 2 N s/m, dry friction 1 N, armature 0.5 kg',
        'off in all actuators: torque-speed curve, delay, lag',
        'backlash is not modelled',
    ]


def test_a_perfect_actuator_and_a_robot_without_any():
    model = pin.Model()
    turn = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), 'turn')
    model.appendBodyToJoint(turn, pin.Inertia.Random(), pin.SE3.Identity())
    free = RobotModel.from_pinocchio(model)
    assert describe_actuators(free)[0] == 'actuators of turn: nothing, commands act as they are'
    passive = RobotModel.from_pinocchio(model, actuated_joints=())
    assert describe_actuators(passive) == ['no joint is driven']
