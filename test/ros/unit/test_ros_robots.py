"""Several robots from parameters: what is said of them, what each has of its own; no network."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from labels import labelled
from urdf_texts import ONE_LEG

pytest.importorskip('rclpy', reason='needs ROS')

from sent import received, received_numbers

from contact_sim import (
    ContactSimError,
    InvalidInput,
    NullSpace,
    Simulator,
    UnknownName,
    joined,
    load_robot,
)
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._commands import CommandBuffer, Pushes, UncheckedPoint
from contact_sim.ros._factory import loaded_simulator, start_configuration
from contact_sim.ros._inputs import StateControl, SupportCommand
from contact_sim.ros._lockstep import Lockstep, Verdict, owned_joints
from contact_sim.ros._parameters import (
    PARAMETER_GROUPS,
    ActuatorParameters,
    ControllerParameters,
    JointGainParameters,
    LockstepParameters,
    NodeParameters,
    PushParameters,
)
from contact_sim.ros._robots import (
    RobotEntry,
    driven_robot,
    effort_order,
    entries_in,
    joint_gains,
    loaded_robot,
    poses_in,
    robot_entries,
)
from contact_sim.sensors import ContactSensing, DelayedSensor, Encoders, NoiseParameters, RobotView
from contact_sim.topics._markers import SupportMarkers
from contact_sim.topics._robot_topics import (
    SensorMessages,
    check_sensors,
    chosen_sensors,
    frame_id,
    own_settings,
)
from contact_sim.topics._table import JOINT_STATES, own_topic
from contact_sim.topics._world_topics import ShadowNumbers, SolverNumbers

GO1, SOLO8 = load_robot('go1'), load_robot('solo8')
PAIR = joined({'a': GO1, 'b': SOLO8}, {'b': (1.5, 0.2, 0.3)})
A, B = parts_of(PAIR)
TWO = ('a=go1', 'b=solo8@1.5,0.2,0.3')


def settings_of(robot=PAIR, **common):
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings[''] = NodeParameters(robots=TWO, **common)
    for joint in robot.joint_names:
        settings[f'gains.{joint}'] = JointGainParameters()
        settings[f'actuators.{joint}'] = ActuatorParameters()
    return settings


def joint_state(part, settings, values):
    """Return the message of the joints of a robot."""
    (content,) = SensorMessages(part, settings).joints(0, values)
    return received(JOINT_STATES, content)


# -------------------------------------------------------------------- which robots


def test_entries_say_name_robot_and_place():
    assert robot_entries(['a=go1', ' b_2 = /path/x.urdf @ 1.5, -2 ', 'c=hyq@0,0,0.3']) == (
        RobotEntry('a', 'go1'),
        RobotEntry('b_2', '/path/x.urdf', (1.5, -2.0, 0.0)),
        RobotEntry('c', 'hyq', (0.0, 0.0, 0.3)),
    )
    assert robot_entries(()) == ()


@pytest.mark.parametrize(
    'text',
    ['a=go1 b=x.urdf@1.5,0,0.3', ' a=go1,b=x.urdf@1.5,0,0.3,', 'a=go1, b = x.urdf @ 1.5, 0, 0.3'],
)
def test_a_text_may_list_them(text):
    assert robot_entries(entries_in(text)) == (
        RobotEntry('a', 'go1'), RobotEntry('b', 'x.urdf', (1.5, 0.0, 0.3)),
    )  # fmt: skip
    assert entries_in('') == []


@pytest.mark.parametrize(
    ('entries', 'what'),
    [
        (['go1'], "'go1': expected name=robot or name=robot@x,y,yaw, such as"),
        (['a='], "'a=': expected name=robot"),
        (['a=go1@'], "'a=go1@': expected name=robot"),
        (['=go1'], "'=go1': '' cannot be a namespace; expected a letter"),
        (['1a=go1'], "'1a=go1': '1a' cannot be a namespace"),
        (['a/b=go1'], "'a/b' cannot be a namespace"),
        (['a-b=go1'], "'a-b' cannot be a namespace"),
        (['a=go1', 'a=hyq'], "'a=hyq': the name 'a' is taken by 'go1'; give every robot"),
        (['a=go1@1'], "the place '1' is no x,y or x,y,yaw"),
        (['a=go1@1,2,3,4'], "the place '1,2,3,4' is no x,y"),
        (['a=go1@1,here'], "the place '1,here' is no x,y"),
        (['a=go1@1,nan'], "the place '1,nan' is no x,y"),
    ],
)
def test_entries_of_another_form_are_refused(entries, what):
    with pytest.raises(InvalidInput) as error:
        robot_entries(entries)
    assert str(error.value).startswith('robots: ')
    assert what in str(error.value)


def test_robots_are_loaded_with_what_is_theirs():
    common = {
        'contact_links': ('a/trunk',),
        'feet': ('b/FL_FOOT', 'b/FR_FOOT'),
        'joint_limits': False,
    }
    world = loaded_robot(settings_of(**common))
    a, b = parts_of(world)
    assert (world.name, a.robot.name, b.robot.name) == ('a + b', 'go1', 'solo8')
    assert {point.frame for point in a.robot.body_points} == {'trunk'}
    assert [foot.name for foot in a.robot.feet] == [foot.name for foot in GO1.feet]
    assert [foot.name for foot in b.robot.feet] == ['FL_FOOT', 'FR_FOOT']
    assert b.robot.collisions.grounded == load_robot('solo8').collisions.grounded
    assert world.position_limits == ()
    assert world.parts[1].place == (1.5, 0.2, 0.3)
    everything = loaded_robot(settings_of(contact_links=('all',)))
    assert all(part.robot.body_points for part in parts_of(everything))


@pytest.mark.parametrize(
    ('common', 'kind', 'what'),
    [
        ({'robots': ('a=nosuch',)}, InvalidInput, "robots: a=nosuch: .*'nosuch'.*anymal_b"),
        ({'contact_links': ('trunk',)}, UnknownName, "contact_links 'trunk'; known: a/, b/"),
        ({'feet': ('c/x',)}, UnknownName, "feet 'c/x'"),
        ({'srdf_path': 'x.srdf'}, InvalidInput, "srdf_path = 'x.srdf'"),
    ],
)
def test_robots_that_cannot_be_loaded(common, kind, what):
    settings = settings_of() | {'': NodeParameters(**{'robots': TWO} | common)}
    with pytest.raises(kind, match=what):
        loaded_robot(settings)


def test_what_may_touch_is_as_the_settings_say():
    robots = ('a=go1', 'b=go1@1.5,0', 'crate=box:0.3:0.4:0.2:2.0@3,0', 'ball=ball:0.1:0.5@4,0')
    common = {
        'robots': robots,
        'robots_touch': True,
        'pair_contacts': 12,
        'self_collision': ('a/FL_calf:a/FR_calf',),
    }
    world = loaded_robot(settings_of() | {'': NodeParameters(**common)})
    found = world.collisions
    assert found.most == 12
    within = [pair for pair in found.pairs if pair[0].split('/')[0] == pair[1].split('/')[0]]
    assert within == [('a/FL_calf_0', 'a/FR_calf_0')]
    assert ('crate/box_0', 'ball/ball_0') in found.pairs
    assert parts_of(world)[2].robot.total_mass == 2.0
    assert parts_of(world)[3].robot.total_mass == 0.5
    limited = settings_of(world) | {'actuators': ActuatorParameters(effort_limit=5.0)}
    driven = driven_robot(world, limited)
    assert driven.actuators.effort_limit.max() == 5.0
    assert driven.collisions.pairs == found.pairs
    alone = loaded_robot({'': NodeParameters(robot='go1', self_collision=('all',))})
    assert len(alone.collisions.pairs) > 100
    assert not loaded_robot({'': NodeParameters(robot='go1')}).collisions.pairs


@pytest.mark.parametrize(
    ('common', 'what'),
    [
        ({'robots': ('a=box:1:2:3',)}, 'expected box:x:y:z:mass or ball:radius:mass'),
        ({'robots': ('a=ball:0.1:heavy',)}, 'expected box:x:y:z:mass'),
        ({'robots': ('a=ball:0.1:-1.0',)}, 'mass = -1.0 kg'),
        ({'robots': ('a=go1',), 'self_collision': ('a/trunk',)}, "'trunk': expected link:link"),
        ({'robot': 'go1', 'self_collision': ('trunk:nose',)}, "collision geometry 'nose'"),
        (
            {'robots': ('a=go1',), 'self_collision': ('trunk:x',)},
            "self_collision 'trunk:x'; known",
        ),
    ],
)
def test_what_may_touch_and_is_said_wrong(common, what):
    with pytest.raises(ContactSimError, match=what):
        loaded_robot(settings_of() | {'': NodeParameters(**common)})


def test_a_loose_body_comes_to_rest_beside_a_robot(tmp_path):
    box = '<geometry><box size="0.2 0.2 0.2"/></geometry>'
    inertia = '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'
    (tmp_path / 'box.urdf').write_text(
        f'<robot name="box"><link name="box"><inertial><mass value="2"/>{inertia}</inertial>'
        f'<collision>{box}</collision></link></robot>'
    )
    robots = ('a=go1', f'box={tmp_path}/box.urdf@1,0')
    settings = settings_of() | {'': NodeParameters(robots=robots, contact_links=('box/box',))}
    world = loaded_robot(settings)
    body = parts_of(world)[1]
    assert (body.robot.n_joints, len(body.robot.body_points)) == (0, 8)
    stiffness, _ = joint_gains(world, settings)
    assert stiffness == pytest.approx(GO1.default_gains[0])
    sim = loaded_simulator(world, settings)
    q = start_configuration(sim, settings)
    q[body.q][2] += 0.05
    sim.reset(q)
    for _ in range(500):
        report = RobotView(sim.step(np.zeros(12)), body)
    assert report.q[:3] == pytest.approx([1.0, 0.0, 0.1], abs=1e-5)
    assert report.pairs.load_on(['box']) == pytest.approx(2.0 * 9.81)
    said = joint_state(body, settings, Encoders(body.robot).truth(report))
    assert (said.name, list(said.position)) == ([], [])


def test_each_robot_has_its_own_gains_and_actuators():
    settings = settings_of()
    stiffness, damping = joint_gains(PAIR, settings)
    for part in (A, B):  # those of the world together would be those of the softest
        own = part.robot.default_gains
        assert stiffness[part.joints] == pytest.approx(own[0])
        assert damping[part.joints] == pytest.approx(own[1])
    settings['gains.b/FL_HFE'] = JointGainParameters(p=3.0)
    settings['actuators.b/FL_HFE'] = ActuatorParameters(effort_limit=2.5)
    k = PAIR.joint_names.index('b/FL_HFE')
    changed = joint_gains(PAIR, settings)[0]
    assert np.flatnonzero(changed != stiffness).tolist() == [k]
    assert changed[k] == 3.0
    driven = driven_robot(PAIR, settings)
    assert np.flatnonzero(driven.effort_limit != PAIR.effort_limit).tolist() == [k]
    assert driven.effort_limit[k] == 2.5
    assert parts_of(driven)[0].robot is GO1


def test_every_robot_starts_as_high_as_asked_at_its_place():
    settings = settings_of(initial_height=0.1, initial_x=1.0)
    sim = loaded_simulator(PAIR, settings)
    sim.reset(start_configuration(sim, settings))
    gap = sim.last_report.contacts.gap
    assert (gap[:4].min(), gap[4:].min()) == pytest.approx((0.1, 0.1), abs=1e-9)
    assert sim.q[B.q][:2] - sim.q[A.q][:2] == pytest.approx((1.5, 0.2), abs=1e-9)
    assert sim.q[0] == pytest.approx(1.0)


# -------------------------------------------------------------------- names


def test_topics_and_frames_of_a_robot_are_those_of_a_node_in_its_namespace():
    assert own_topic('', '~/set_odom', 'contact_sim') == '~/set_odom'
    assert own_topic('', 'odom', 'contact_sim') == 'odom'
    assert own_topic('a', 'odom', 'contact_sim') == 'a/odom'
    assert own_topic('a', '~/set_odom', 'contact_sim') == 'a/contact_sim/set_odom'
    settings = settings_of(frame_prefix='x_')
    assert frame_id(A, settings, 'base') == 'x_a/base'
    assert frame_id(*parts_of(GO1), settings, 'base') == 'x_base'


def test_labels_and_markers_name_the_robot():
    sim = Simulator(PAIR)
    sim.shadow = ('sap',)
    report = sim.step(np.zeros(PAIR.n_joints))
    state = SolverNumbers((A, B), sim.terrain, ()).of(report, 1.0)
    assert {'time', 'a/support_rank', 'b/support_rank'} <= set(state)
    assert 'support_rank' not in state
    shadow = labelled(received_numbers(ShadowNumbers(PAIR).of(report)))
    assert len(shadow) == 4 + 3 * 8 + PAIR.nv
    assert {'sap.force.b/FL_FOOT.z', 'sap.velocity.b/w_z', 'sap.velocity.b/FL_HFE'} <= set(shadow)
    markers = [
        marker
        for part in (A, B)
        for marker in SupportMarkers(part.robot, sim.terrain, part.number).of(
            RobotView(report, part)
        )
    ]
    assert len({(group.namespace, group.first) for group in markers}) == 6
    centres = [group.pose[0, 0] for group in markers if group.namespace == 'centre_of_mass']
    assert centres[2] - centres[0] == pytest.approx(1.5, abs=0.1)


# -------------------------------------------------------------------- sensors


def test_joints_without_motors_are_told_behind_the_others():
    """robot_state_publisher needs every joint that moves, and controllers the driven ones."""
    linkage = load_robot('four_bar_quadruped')
    (part,) = parts_of(linkage)
    settings = settings_of(linkage)
    sensor = chosen_sensors(part, settings).joints
    report = Simulator(linkage).step(np.full(12, 0.5))
    said = joint_state(part, settings, sensor.truth(RobotView(report, part)))
    model = linkage.pinocchio_model
    joints = [model.joints[model.getJointId(name)] for name in said.name]
    assert list(said.name[:12]) == list(linkage.joint_names)
    assert set(said.name) == set(list(model.names)[2:])  # all but universe and base
    assert list(said.position) == [report.q[joint.idx_q] for joint in joints]
    assert list(said.velocity) == [report.v[joint.idx_v] for joint in joints]
    assert list(said.effort) == [0.5] * 12 + [0.0] * 8


def test_two_of_a_kind_have_noise_of_their_own():
    twins = joined({'a': GO1, 'b': GO1})
    settings = settings_of(twins) | {'noise': NoiseParameters(joint_position=0.01)}
    report = Simulator(twins).step(np.zeros(24))
    said = [
        DelayedSensor(chosen_sensors(part, settings).joints).read(RobotView(report, part)).measured
        for part in parts_of(twins)
    ]
    alone = DelayedSensor(chosen_sensors(*parts_of(GO1), settings).joints)
    first = alone.read(Simulator(GO1).step(np.zeros(12))).measured
    assert said[0].position == pytest.approx(first.position)  # the first has that of one alone
    assert np.abs(said[1].position - said[0].position).max() > 1e-3


def test_faults_are_of_one_robot():
    faults = ContactSensing(
        stuck_on=('a/FL_foot',), dropout=0.5, dropout_feet=('b/FL_FOOT', 'b/FR_FOOT')
    )
    settings = settings_of() | {'sensors.contacts': faults}
    check_sensors(PAIR, settings)
    a, b = (chosen_sensors(part, settings).contacts.sensing for part in (A, B))
    assert (a.stuck_on, a.dropout, a.dropout_feet) == (('FL_foot',), 0.0, ())
    assert (b.stuck_on, b.dropout, b.dropout_feet) == ((), 0.5, ('FL_FOOT', 'FR_FOOT'))
    settings['sensors.contacts'] = ContactSensing(stuck_on=('FL_foot',))
    with pytest.raises(UnknownName, match='a/FL_foot'):
        check_sensors(PAIR, settings)


def test_a_frame_of_one_robot_is_the_base_of_the_others():
    settings = settings_of()
    for group, frame in (('imu', 'trunk'), ('lidar', 'trunk')):
        settings[group] = replace(settings[group], frame_id=frame)
    check_sensors(PAIR, settings)
    a, b = (own_settings(part, settings) for part in (A, B))
    assert (a['imu'].frame_id, a['lidar'].frame_id) == ('trunk', 'trunk')
    assert (b['imu'].frame_id, b['lidar'].frame_id) == ('', '')
    for part in (A, B):
        assert chosen_sensors(part, own_settings(part, settings)).imu is not None
    settings['imu'] = replace(settings['imu'], frame_id='nose')
    with pytest.raises(UnknownName, match='nose'):
        check_sensors(PAIR, settings)


# -------------------------------------------------------------------- commands


@pytest.fixture
def buffer():
    n = PAIR.n_joints
    return CommandBuffer(PAIR.joint_names, np.zeros(n), np.full(n, 50.0), np.full(n, 2.0))


def test_efforts_and_their_age_are_of_one_robot(buffer):
    assert buffer.take_efforts(np.arange(1.0, 9.0), B.joints) is None
    assert buffer.current.effort.tolist() == [0.0] * 12 + list(np.arange(1.0, 9.0))
    assert buffer.age(A.joints) is None
    assert 0.0 <= buffer.age(B.joints) < 10.0
    refusal = buffer.take_efforts([0.0] * 20, B.joints)
    assert refusal.startswith('20 efforts: expected 8 in the order b/FL_HFE')
    buffer.take_efforts(np.ones(12), A.joints)
    buffer.hold(np.full(8, 0.5), B.joints)
    assert buffer.age(B.joints) is None
    assert buffer.current.effort.tolist() == [1.0] * 12 + [0.0] * 8
    assert buffer.current.position[12:].tolist() == [0.5] * 8
    assert buffer.current.stiffness[12:].tolist() == [50.0] * 8
    assert not buffer.current.stiffness[:12].any()


def test_unnamed_efforts_come_in_the_order_that_is_given():
    def order(part, *joints):
        return effort_order(part, {'': NodeParameters(effort_joints=joints)}).tolist()

    assert order(A) == list(range(12))
    assert order(B) == list(range(12, 20))
    some = [f'b/{name}' for name in SOLO8.joint_names[:1:-1]]
    assert order(B, *some) == [19, 18, 17, 16, 15, 14]
    assert order(A, *some) == list(range(12))
    with pytest.raises(UnknownName, match="'b/tail'"):
        order(B, 'b/tail')
    with pytest.raises(InvalidInput, match='one is twice'):
        order(B, *some, some[0])


def test_efforts_of_some_joints_leave_the_others_as_they_are(buffer):
    assert buffer.take_efforts([3.0, 2.0], np.array([15, 1])) is None
    applied = buffer.current.effort
    assert (applied[15], applied[1], np.count_nonzero(applied)) == (3.0, 2.0, 2)
    refusal = buffer.take_efforts([3.0], np.array([15, 1]))
    assert refusal == '1 efforts: expected 2 in the order b/FR_KFE, a/FL_thigh_joint'


def lockstep_of(buffer, controllers=(), timeout=10.0, **parameters):
    settings = {'lockstep': LockstepParameters(controllers=controllers)}
    settings |= {f'lockstep.{name}': ControllerParameters() for name in controllers}
    names = PAIR.joint_names
    lockstep = Lockstep(buffer, names, owned_joints(settings, names), lambda _: None)
    lockstep.configure(LockstepParameters(enabled=True, timeout=timeout, **parameters), 0)
    return lockstep


def test_a_step_waits_for_the_commands_of_every_robot(buffer):
    lockstep = lockstep_of(buffer)
    assert lockstep.verdict(5, 0) is Verdict.WAIT
    buffer.take_efforts(np.ones(12), A.joints)
    assert lockstep.verdict(5, 0) is Verdict.WAIT
    assert set(lockstep.awaited_joints) == {f'b/{name}' for name in SOLO8.joint_names}
    buffer.take_efforts(np.ones(8), B.joints)
    assert lockstep.verdict(5, 0) is Verdict.STEP
    lockstep.acknowledge('', 6, B.joints)  # nothing new for b, and a is not b's to speak for
    assert lockstep.verdict(6, 0) is Verdict.WAIT
    lockstep.acknowledge('', 6, A.joints)
    assert lockstep.verdict(6, 0) is Verdict.STEP


def test_a_robot_without_a_controller_costs_its_start_timeout_once(buffer):
    """Afterwards those who have spoken are waited for as long as if it were not there."""
    lockstep = lockstep_of(buffer, timeout=0.05, start_timeout=0.2)
    buffer.take_efforts(np.ones(8), B.joints)
    begin = time.perf_counter()
    while (verdict := lockstep.verdict(5, 0)) is Verdict.WAIT:
        pass
    assert verdict is Verdict.STEP
    assert time.perf_counter() - begin >= 0.2
    assert set(lockstep.lost_joints) == {f'a/{name}' for name in GO1.joint_names}
    assert not lockstep.misses_somebody
    begin = time.perf_counter()
    while (verdict := lockstep.verdict(6, 0)) is Verdict.WAIT:
        pass
    assert verdict is Verdict.STEP
    assert 0.05 <= time.perf_counter() - begin < 0.2
    assert lockstep.timeouts == 2


def test_a_controller_named_after_a_robot_owns_its_joints(buffer):
    """The other robot has none: it holds its pose and nobody waits for it."""
    lockstep = lockstep_of(buffer, ('b',))
    assert buffer.take_efforts(np.ones(8), B.joints) is None
    assert lockstep.verdict(5, 0) is Verdict.STEP
    assert 'belongs to no controller' in buffer.take_efforts(np.ones(12), A.joints)
    with pytest.raises(InvalidInput, match=r'lockstep\.c\.joints is empty'):
        lockstep_of(buffer, ('c',))


def test_links_that_are_pushed_are_those_of_the_robot():
    pushes = Pushes(Simulator(PAIR), '', ('odom', 'world'))
    pushes.rules = PushParameters(axes='world')
    force, torque = (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for frame in ('base_link', 'b/base_link'):
        pushes.clear()
        assert pushes.take(frame, 0, force, torque, B.prefix) is None
        assert list(pushes.acting(0)) == ['b/base_link']
    assert "'a/base'" in pushes.take('a/base', 0, force, torque, B.prefix)


# -------------------------------------------------------------------- states


class Loop:
    """Runs at once what is asked for between two steps."""

    begun = 0

    def between_steps(self, action):
        action()

    def announce_new_state(self, failure_ends=True):
        self.begun += 1


@pytest.fixture
def control(buffer):
    sim = Simulator(PAIR)
    for _ in range(5):
        sim.step(np.zeros(PAIR.n_joints))
    loop = Loop()
    settings = settings_of(initial_height=0.02, initial_x=1.0)
    control = StateControl(sim, loop, buffer, SimpleNamespace(settings=settings))
    return SimpleNamespace(sim=sim, loop=loop, control=control, buffer=buffer)


def test_a_robot_that_is_placed_leaves_the_other_one_alone(control):
    q, v = control.sim.q.copy(), control.sim.v.copy()
    twist = np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.2])
    control.control.place(B, np.array([3.0, 0.0, 0.5]), np.array([0.0, 0.0, 0.0, 1.0]), twist)
    assert control.sim.q[B.q][:7] == pytest.approx([3.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    assert control.sim.v[B.v][:6] == pytest.approx(twist)
    q[B.q][:7], v[B.v][:6] = control.sim.q[B.q][:7], twist
    assert np.array_equal(control.sim.q, q)
    assert np.array_equal(control.sim.v, v)
    assert control.loop.begun == 1


def test_a_robot_that_is_stood_elsewhere_leaves_the_other_one_alone(control):
    q, v = control.sim.q.copy(), control.sim.v.copy()
    control.buffer.take_efforts(np.ones(20))
    control.control.put_at(B, -1.0, 2.0, 0.5)
    assert np.array_equal(control.sim.q[A.q], q[A.q])
    assert np.array_equal(control.sim.v[A.v], v[A.v])
    own = control.sim.q[B.q]
    assert own[:2] == pytest.approx([-1.0, 2.0])
    assert own[5:7] == pytest.approx([np.sin(0.25), np.cos(0.25)])
    assert control.sim.last_report.contacts.gap[4:].min() == pytest.approx(0.02, abs=1e-9)
    assert not control.sim.v[B.v].any()
    assert control.buffer.current.effort.tolist() == [1.0] * 12 + [0.0] * 8
    standing = SOLO8.joint_positions(SOLO8.reference_configuration())
    assert control.buffer.current.position[12:] == pytest.approx(standing)


def test_a_trajectory_goes_on_after_a_restore_and_after_time_was_set_back(control):
    buffer, sim, n = control.buffer, control.sim, PAIR.n_joints
    names, still = PAIR.joint_names, np.zeros(n)
    points = [UncheckedPoint(100_000_000, [1.0] * n)]
    assert buffer.take_trajectory(names, points, 0, control.control.now) is None

    def ten_steps():
        wanted = []
        for _ in range(10):
            wanted.append(buffer.at(control.control.now, still, still).position.tolist())
            sim.step(np.zeros(n))
        return wanted

    ten_steps()
    control.control.snapshot()
    after = ten_steps()
    buffer.take_efforts(np.ones(n))
    control.control.restore()
    assert ten_steps() == after
    assert 0.0 < after[0][0] < after[-1][0] < 1.0
    last, step = after[-1][0], after[-1][0] - after[-2][0]
    control.control.reset_time()
    assert sim.time == sim.time_step
    assert ten_steps()[0][0] == pytest.approx(last + step)


def test_a_robot_with_a_fixed_base_cannot_be_placed(control):
    fixed = joined({'a': GO1, 'f': load_robot('go1', floating_base=False)})
    with pytest.raises(InvalidInput, match='the base of f is fixed'):
        control.control.put_at(parts_of(fixed)[1], 0.0, 0.0, 0.0)


def test_support_is_given_robot_by_robot():
    sim = Simulator(PAIR, NullSpace())
    a, b = (SupportCommand(sim, Loop(), part) for part in (A, B))
    for command, held, expected in (
        (a, [1, 0, 0, 1], [1, 0, 0, 1, 1, 1, 1, 1]),
        (b, [0, 1, 1, 0], [1, 0, 0, 1, 0, 1, 1, 0]),
        (a, [1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1, 0]),
    ):
        assert command.take(held) is None
        sim.reset()
        mode = sim.step(np.zeros(PAIR.n_joints)).contacts.mode
        assert (mode > 0).astype(int).tolist() == expected
    assert 'b/FL_FOOT' in b.take([1] * 8)


def alone(**common):
    return {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()} | {
        '': NodeParameters(**common)
    }


def test_poses_and_feet_of_the_parameters(tmp_path):
    path = tmp_path / 'leg.urdf'
    path.write_text(ONE_LEG)
    said = {'urdf_path': str(path), 'feet': ('foot',), 'poses': ('stand: hip=0.3 knee=-0.6',)}
    robot = loaded_robot(alone(**said))
    assert [point.name for point in robot.contact_points] == ['foot']
    q = robot.reference_configuration('stand')
    assert robot.joint_positions(q).tolist() == [0.3, -0.6]


def test_a_pose_of_one_of_several_robots():
    robots, poses = ('a=go1', 'b=go1'), ('b/low: FL_calf_joint=-2.5',)
    robot = loaded_robot(alone(robots=robots, poses=poses))
    q = robot.joint_positions(robot.reference_configuration('low'))
    calf = [robot.joint_names.index(f'{name}/FL_calf_joint') for name in 'ab']
    standing = GO1.joint_positions(GO1.reference_configuration())
    knee = standing[GO1.joint_names.index('FL_calf_joint')]
    assert q[calf].tolist() == [knee, -2.5]


@pytest.mark.parametrize(
    ('poses', 'message'),
    [
        (['hip=0.3'], 'expected name: joint=value'),
        (['stand:'], 'expected name: joint=value'),
        ([': hip=0.3'], 'expected name: joint=value'),
        (['stand: 0.3'], 'expected name: joint=value'),
        (['stand: hip=0.3 hip=0.4'], "joint 'hip' is listed more than once"),
        (['stand: hip=0.3', 'stand: knee=0.4'], 'the pose is listed more than once'),
    ],
)
def test_poses_of_another_form(poses, message):
    with pytest.raises(InvalidInput, match=message):
        poses_in(poses)


def test_more_robots_than_the_topics_of_a_node_can_have():
    """Transforms need data of Pinocchio for all of them: 23 with 18 freedoms are too many."""
    robots = tuple(f'r{k}=go1@{k},0,0' for k in range(23))
    with pytest.raises(InvalidInput, match=r'23 robots with 414 degrees .* at most 400, because'):
        loaded_robot(alone(robots=robots))
