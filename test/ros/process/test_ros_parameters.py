"""Parameters over ROS: described, bounded, live, refused with a reason."""

import math
import re

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from rcl_interfaces.msg import ParameterType
from ros_session import Session, published_topics, vector

from contact_sim import contact_models, load_robot
from contact_sim.parameters import declared_parameters
from contact_sim.ros._parameters import PARAMETER_GROUPS

ROBOT = load_robot('go1')
HEARD = ('/clock', '/diagnostics', '/joint_states', '/odom', '/contact_sim/contact_markers')
TOPICS = {topic: published_topics(())[topic] for topic in HEARD}
DECLARED = {
    f'{prefix}.{field.name}' if prefix else field.name: field
    for prefix, cls in PARAMETER_GROUPS.items()
    for field in declared_parameters(cls)
}
JOINT_GAINS = [f'gains.{joint}.{gain}' for joint in ROBOT.joint_names for gain in 'pd']
TYPES = {
    bool: ParameterType.PARAMETER_BOOL,
    int: ParameterType.PARAMETER_INTEGER,
    float: ParameterType.PARAMETER_DOUBLE,
    str: ParameterType.PARAMETER_STRING,
    tuple[str, ...]: ParameterType.PARAMETER_STRING_ARRAY,
    tuple[float, float, float]: ParameterType.PARAMETER_DOUBLE_ARRAY,
}


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    with Session(tmp_path_factory.mktemp('parameters'), TOPICS, {'start_paused': True}) as session:
        session.started().step(1000)
        session.settle()
        yield session


def step(session, count):
    """Take steps; return what they published, by topic."""
    session.clear()
    assert session.step(count).success
    session.settle()
    return session.messages


@pytest.mark.parametrize('name', [*DECLARED, *JOINT_GAINS])
def test_descriptions_types_ranges_and_what_is_live(session, name):
    (descriptor,) = session.describe(name)
    assert len(descriptor.description) > 5
    if name not in DECLARED:
        assert not descriptor.read_only
        return
    field = DECLARED[name]
    assert field.info.meaning in descriptor.description
    assert descriptor.type == TYPES[field.type]
    assert descriptor.read_only != field.info.live
    bounded = (field.info.at_least, field.info.at_most)
    if field.type is float and None not in bounded:
        (allowed,) = descriptor.floating_point_range
        assert (allowed.from_value, allowed.to_value) == bounded


@pytest.mark.parametrize('name', [name for name, field in DECLARED.items() if field.default != ()])
def test_start_values_are_the_declared_defaults(session, name):
    if name not in ('start_paused', 'step_count'):
        (value,) = session.get(name)
        default = DECLARED[name].default
        assert (tuple(value) if isinstance(default, tuple) else value) == default


def test_a_list_of_numbers_is_set_as_a_whole(session):
    name = 'sensors.imu.gyro_scale'
    assert session.set({name: [0.01, -0.02, 0.0]}).successful
    assert tuple(session.get(name)[0]) == (0.01, -0.02, 0.0)
    for wrong, reason in (([0.1], 'expected 3 values'), ([0.0, 2.0, 0.0], r'in \[-1, 1\]')):
        result = session.set({name: wrong})
        assert not result.successful
        assert re.search(reason, result.reason), result.reason
    assert session.set({name: [0, 0, 0]}).successful  # whole numbers will do
    assert tuple(session.get(name)[0]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ('values', 'reason'),
    [
        ({'friction.mu': -0.1}, r'mu = -0\.1.*\[0, inf\)'),
        ({'friction.mu': math.nan}, r'mu = nan.*\[0, inf\)'),
        ({'friction.mu': math.inf}, r'mu = inf.*\[0, inf\)'),
        ({'friction.mu': 'rough'}, "mu = 'rough': expected float"),
        ({'restitution': 1.5}, r'restitution out of range Min: 0\.0, Max: 1\.0, value: 1\.5'),
        ({'restitution': math.nan}, 'restitution .*nan'),
        ({'contact.model': 'magic'}, 'magic.*' + '.*'.join(contact_models())),
        ({'contact.model': 3}, 'Wrong parameter type'),
        ({'contact.shadow': ['sap', 'magic']}, 'shadow.*magic.*' + '.*'.join(contact_models())),
        (
            {'contact.shadow': ['sap', 'sap']},
            "shadow = \\['sap', 'sap'\\]: every contact model only",
        ),
        ({'contact.ncp.tolerance': 0.0}, r'tolerance out of range Min: 1e-16'),
        ({'contact.ncp.max_sweeps': 0}, 'max_sweeps out of range. Min: 1'),
        ({'real_time_factor': -1.0}, r'real_time_factor out of range Min: 0\.0'),
        ({'gains.p': -1.0}, r'gains\.p out of range Min: 0\.0'),
        ({'gains.FL_hip_joint.d': -1.0}, r'gains\.FL_hip_joint\.d out of range Min: 0\.0'),
        ({'step_count': 0}, 'step_count out of range. Min: 1'),
        ({'publish_rate.joint_states': 300.0}, r'300 Hz.*250 and 333\.333 Hz'),
        ({'publish_rate.odom': 2000.0}, r'publish_rate\.odom = 2000 Hz.*nearest: 1000 Hz'),
        ({'time_step': 0.002}, 'read-only.*time_step'),
        ({'robot': 'a1'}, 'read-only.*robot'),
    ],
    ids=str,
)
def test_bad_values_are_refused_with_the_reason(session, values, reason):
    before = session.get(*values)
    result = session.set(values)
    assert not result.successful
    assert re.search(reason, result.reason, re.DOTALL), result.reason
    assert session.get(*values) == before


def test_a_request_is_taken_as_a_whole_or_not_at_all(session):
    result = session.set({'friction.mu': 0.55, 'restitution': 2.0})
    assert not result.successful
    assert 'restitution' in result.reason
    assert session.get('friction.mu', 'restitution') == [0.8, 0.0]


def test_whole_numbers_are_taken_for_floats(session):
    assert session.set({'friction.mu': 1}).successful
    assert session.get('friction.mu') == [1]
    assert session.set({'friction.mu': 0.8}).successful


def test_friction_changes_live(session):
    def opening():
        messages = step(session, 40)['/contact_sim/contact_markers']
        cone = next(m for m in messages[-1].markers if m.ns == 'friction_cone')
        rim = np.array([vector(point) for point in cone.points if vector(point).any()])
        return np.linalg.norm(rim[0, :2]) / rim[0, 2]

    assert opening() == pytest.approx(0.8)
    assert session.set({'friction.mu': 0.3}).successful
    assert opening() == pytest.approx(0.3)
    assert session.set({'friction.mu': 0.8}).successful


def test_publish_rates_change_live(session):
    assert session.set({'publish_rate.joint_states': 500.0, 'publish_rate.odom': 0.0}).successful
    messages = step(session, 100)
    assert session.set({'publish_rate.joint_states': 250.0, 'publish_rate.odom': 250.0}).successful
    assert len(messages['/joint_states']) == 50
    assert messages['/odom'] == []
    assert len(step(session, 100)['/odom']) == 25


def test_a_rate_typed_with_six_digits_is_exact(session):
    assert session.set({'publish_rate.joint_states': 333.333}).successful
    assert len(step(session, 300)['/joint_states']) == 100
    assert session.set({'publish_rate.joint_states': 250.0}).successful


@pytest.mark.parametrize('model', contact_models())
def test_the_contact_model_switches_between_two_steps(session, model):
    """State and time survive; /diagnostics names the model in force."""
    before = step(session, 4)
    height, time = before['/odom'][-1].pose.pose.position.z, session.time
    assert session.set({'contact.model': model}).successful
    after = step(session, 4)
    session.fresh('/clock')
    assert session.time == time + 4_000_000
    assert after['/odom'][-1].pose.pose.position.z == pytest.approx(height, abs=1e-4)
    said, switch = session.diagnostics(), f'from ncp to {model} at t = {time / 1e9:.9g} s'
    assert said['contact_model'] == model
    assert int(said['contact_model_switches']) % 2 == (model != 'ncp')  # none from ncp to ncp
    if model != 'ncp':
        assert said['last_contact_model_switch'] == switch
        assert f'switched {switch}' in session.output_tail()
    assert session.set({'contact.model': 'ncp'}).successful


def test_model_parameters_act_live(session):
    """No landing can be solved to less than rounding: the solver says so."""
    limits = {
        'contact.ncp.max_points': 0, 'contact.ncp.max_sweeps': 1,
        'contact.ncp.max_admm_iterations': 0, 'contact.ncp.tolerance': 1e-16,
    }  # fmt: skip
    before = dict(zip(limits, session.get(*limits), strict=True))
    failed = int(session.diagnostics()['solver_max_iterations'])
    assert session.set({**limits, 'initial_height': 0.05}).successful
    session.reset()
    step(session, 300)
    assert int(session.diagnostics()['solver_max_iterations']) > failed
    assert session.set({**before, 'initial_height': 0.0}).successful
    session.reset()


def test_gains_change_live_for_one_joint_and_for_all(session):
    """The pose in which the robot stands sags less with stiffer gains."""

    def sag():
        session.reset()
        reference = ROBOT.joint_positions(ROBOT.reference_configuration())
        return np.abs(np.array(step(session, 1500)['/joint_states'][-1].position) - reference)

    soft = sag()
    assert session.set({'gains.p': 500.0}).successful
    stiff = sag()
    assert session.set({'gains.p': 0.0, 'gains.FL_calf_joint.p': 500.0}).successful
    one_stiff = sag()
    assert session.set({'gains.FL_calf_joint.p': 0.0}).successful
    calf = ROBOT.joint_names.index('FL_calf_joint')
    other = ROBOT.joint_names.index('RR_calf_joint')
    assert stiff.max() < 0.5 * soft.max()
    assert one_stiff[calf] < 0.5 * soft[calf]
    assert one_stiff[other] > 0.8 * soft[other]
