"""What a simulation answers when asked, and when asked wrongly."""

import json
import math

import numpy as np
import pinocchio as pin
import pytest

import contact_sim
from contact_sim.control import Trot
from contact_sim.errors import ReadOnlyAttribute, UnknownAttribute, UnknownKeyword
from contact_sim.robot import holding
from contact_sim.terrain._generator import ready_made

GO1 = contact_sim.load_robot('go1')


@pytest.fixture(scope='module')
def sim():
    return contact_sim.Simulator(GO1)


@pytest.fixture(autouse=True)
def start_again(request):
    if 'sim' in request.fixturenames:
        request.getfixturevalue('sim').reset(terrain='plane')


@pytest.fixture(scope='module')
def worlds():
    return contact_sim.Worlds(GO1, 2)


def stand(time, q, v):
    pose = GO1.joint_positions(GO1.reference_configuration())
    kp, kd = GO1.default_gains
    return kp * (pose - GO1.joint_positions(q)) - kd * GO1.joint_velocities(v)


# --- Attributes and keywords


def test_an_attribute_that_does_not_exist_is_refused_with_the_nearest(sim, worlds):
    with pytest.raises(UnknownAttribute, match=r"'frction'.*did you mean 'friction'\?"):
        sim.frction = 0.3
    assert not hasattr(sim, 'frction')
    with pytest.raises(UnknownAttribute, match="of Worlds to set 'gravty'"):
        worlds.gravty = 1.62
    with pytest.raises(UnknownAttribute, match="did you mean 'velocity'"):
        Trot(GO1).velocty = (0.3, 0.0, 0.0)


@pytest.mark.parametrize(
    ('name', 'call'),
    [('q', r'reset\(q\)'), ('v', r'reset\(q, v\)'), ('time', 'reset'), ('terrain', r'reset\(terr'),
     ('robot', r'new Simulator\(robot\)'), ('gravity', 'gravity=')],
)  # fmt: skip
def test_what_cannot_be_assigned_names_the_call_that_changes_it(sim, name, call):
    before = getattr(sim, name)
    with pytest.raises(ReadOnlyAttribute, match=rf'\.{name} cannot be assigned: .*{call}'):
        setattr(sim, name, before)
    with pytest.raises(AttributeError):  # as Python has it
        setattr(sim, name, before)


def test_worlds_name_the_call_too(worlds):
    with pytest.raises(ReadOnlyAttribute, match='reset'):
        worlds.q = worlds.q
    with pytest.raises(ReadOnlyAttribute, match=r'Worlds\(robot, n, '):
        worlds.friction = 0.3


def test_a_copy_of_the_state_cannot_be_written_into(sim):
    before = sim.q
    with pytest.raises(ValueError, match='read-only'):
        sim.q[2] = 1.0
    assert (sim.q == before).all()


def test_a_subclass_may_have_attributes_of_its_own():
    class Mine(contact_sim.Simulator):
        def __init__(self):
            super().__init__(GO1)
            self.log = []

    mine = Mine()
    mine.log.append(1)
    with pytest.raises(ReadOnlyAttribute):
        mine.q = 0.0


@pytest.mark.parametrize(
    ('call', 'guess'),
    [
        (lambda: contact_sim.Simulator(GO1, frction=0.3), 'friction'),
        (lambda: contact_sim.Simulator(GO1).reset(hieght=0.3), 'height'),
        (lambda: contact_sim.Worlds(GO1, 2, restituton=0.3), 'restitution'),
        (lambda: contact_sim.load_robot('go1', floating_bas=True), 'floating_base'),
        (lambda: contact_sim.Sap(stifness=1e5), 'stiffness'),
        (lambda: contact_sim.Plane(ofset=0.1), 'offset'),
        (lambda: contact_sim.robot.PositionLimit(joins=('a',)), 'joints'),
    ],
)
def test_an_unknown_keyword_names_the_nearest(call, guess):
    with pytest.raises(UnknownKeyword, match=rf"did you mean '{guess}'\?"):
        call()
    with pytest.raises(TypeError):  # as Python has it
        call()


# --- Names


@pytest.mark.parametrize(
    ('call', 'guess'),
    [
        (lambda: contact_sim.Simulator(GO1, 'npc'), 'ncp'),
        (lambda: contact_sim.Simulator(GO1, terrain='Stair'), 'stairs'),
        (lambda: contact_sim.Simulator(GO1, integrator='Momentom'), 'momentum'),
        (lambda: contact_sim.load_robot('ANYMAL_D'), 'anymal_c'),
        (lambda: ready_made('WAVES'), 'wave'),
    ],
)
def test_a_near_miss_of_a_name_is_named(call, guess):
    with pytest.raises(contact_sim.UnknownName, match=rf"did you mean '{guess}'\?"):
        call()


def test_a_near_miss_of_a_choice_is_named():
    with pytest.raises(contact_sim.InvalidInput, match=r"did you mean 'elliptic'\?"):
        contact_sim.Todorov(cone='eliptic')


def test_names_are_known_in_any_case():
    robot = contact_sim.load_robot('GO1')
    assert robot.name == 'go1'
    sim = contact_sim.Simulator(robot, 'NCP', terrain='Inclined-Plane', integrator='MOMENTUM')
    assert (sim.contact_model, sim.integrator) == ('ncp', 'momentum')
    assert sim.terrain == contact_sim.InclinedPlane()
    sim.contact_model = 'Sap'
    assert sim.contact_model == 'sap'
    assert contact_sim.Todorov(cone='Elliptic').parameters.cone == 'elliptic'


def test_real_robots_are_listed_before_systems_of_the_textbook():
    with pytest.raises(contact_sim.UnknownName) as error:
        contact_sim.load_robot('go3')
    listed = str(error.value).split('known: ')[1].split(';')[0].split(', ')
    assert tuple(listed) == contact_sim.robots() + contact_sim.textbook_systems()


@pytest.mark.parametrize('name', ['plane', 'groove', 'sphere', 'cylinder', 'Stairs', 'grid'])
def test_a_robot_stands_on_a_ground_by_its_name(name):
    assert name.lower() in contact_sim.terrains()
    sim = contact_sim.Simulator(GO1, terrain=name)
    gap = sim.last_report.contacts.gap.reshape(4, -1).min(axis=1)
    assert gap.min() == pytest.approx(0.0, abs=1e-6)


def test_node_and_viewer_know_the_same_terrains():
    parameters = pytest.importorskip('contact_sim.ros._parameters')
    from contact_sim.view.__main__ import parser

    assert (*contact_sim.terrains(), 'file') == parameters.GROUNDS
    described = ' '.join(parser().format_help().split())
    assert ', '.join(contact_sim.terrains()) in described


def test_a_file_is_a_terrain(tmp_path):
    heights = np.zeros((21, 21))
    heights[:, 10:] = 0.1
    np.save(tmp_path / 'step.npy', heights)
    sim = contact_sim.Simulator(GO1, terrain=str(tmp_path / 'step.npy'))
    assert sim.terrain.height(0.0, 0.5) == pytest.approx(0.1)
    with pytest.raises(contact_sim.InvalidInput, match=r'nothing\.npy'):
        contact_sim.Simulator(GO1, terrain='nothing.npy')


# --- Errors show what is accepted


def test_errors_show_the_accepted_form(sim):
    with pytest.raises(contact_sim.InvalidInput, match=r'such as 0\.8, or a list of 4 '):
        sim.friction = {'FL_foot': 0.3}
    with pytest.raises(contact_sim.InvalidInput, match=r'12 numbers .*robot\.joint_n'):
        sim.step({'FL_hip_joint': 1.0})
    with pytest.raises(contact_sim.InvalidInput, match=r"contact_sim.load_robot\('go1'\)"):
        contact_sim.Simulator('go1')
    with pytest.raises(contact_sim.InvalidInput, match=r"such as 'ncp' or contact_sim\.Sap\("):
        contact_sim.Simulator(GO1, contact_model=3)


def test_a_blow_up_under_own_gains_names_their_stable_time_step():
    robot = GO1.with_actuators(effort_limit=1e9, velocity_limit=1e9)
    kp, kd = (6.0 * gain for gain in robot.default_gains)
    pose = robot.joint_positions(robot.reference_configuration())
    sim = contact_sim.Simulator(robot, time_step=5e-3)

    def too_stiff(time, q, v):
        return kp * (pose - robot.joint_positions(q)) - kd * robot.joint_velocities(v)

    limit = contact_sim.robot._model.gains_limit(robot, kp, kd, sim.q)
    assert limit < 5e-3
    sim.reset(height=0.1)
    with pytest.raises(contact_sim.NonFiniteState, match='PD gains of the controller') as error:
        sim.run(too_stiff, 5.0)
    said = float(str(error.value).split('below a time_step of ')[1].split(' s')[0])
    assert said == pytest.approx(limit, rel=0.03)
    assert 'smaller gains' in str(error.value)


def test_a_blow_up_step_by_step_names_the_limit_of_the_gains_of_the_robot():
    robot = GO1.with_actuators(effort_limit=1e9, velocity_limit=1e9)
    h = 2.0 * robot.gains_time_step
    sim = contact_sim.Simulator(robot, time_step=h)
    sim.reset(height=0.1)

    def fall():
        for _ in range(5000):
            sim.step(3.0 * stand(sim.time, sim.q, sim.v))

    with pytest.raises(contact_sim.NonFiniteState, match=r'robot\.default_gains is stable below'):
        fall()


def test_a_blow_up_for_other_reasons_does_not_blame_gains(sim):
    sim.reset(v=np.full(GO1.nv, 1e30))
    with pytest.raises(contact_sim.NonFiniteState) as error:
        sim.run(lambda time, q, v: np.zeros(12), 0.1)
    assert 'PD gains' not in str(error.value)


# --- Placing


def test_reset_places_the_lowest_foot_at_a_height(sim):
    sim.reset(height=0.25)
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.25, abs=1e-9)
    assert sim.q[2] == pytest.approx(sim.standing_configuration()[2] + 0.25, abs=1e-9)
    sim.reset(terrain='stairs', height=0.1)
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.1, abs=1e-6)
    falls = math.sqrt(2 * 0.1 / 9.81)
    run = sim.run(lambda time, q, v: np.zeros(12), round(falls, 3) - 5e-3)
    assert not run.loaded.any()


@pytest.mark.parametrize('angles', [(0.3, 0.0, 0.0), (0.0, -0.5, 2.0), (math.pi, 0.0, 0.0)])
def test_reset_turns_the_base_and_keeps_it_out_of_the_ground(sim, angles):
    sim.reset(orientation=angles)
    expected = pin.rpy.rpyToMatrix(*angles)
    assert sim.frame_placement('trunk').rotation == pytest.approx(expected, abs=1e-9)
    lowest = [*sim.last_report.contacts.gap, *sim.last_report.pairs.gap]
    assert min(lowest) == pytest.approx(0.0, abs=1e-6)
    quaternion = pin.Quaternion(expected).coeffs()
    q = sim.q
    sim.reset(orientation=quaternion)
    assert sim.q == pytest.approx(q, abs=1e-9)


def test_a_pose_that_is_given_is_placed_as_well(sim):
    q = np.array(GO1.reference_configuration())
    q[2] = 7.0
    sim.reset(q, height=0.05)
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize(
    ('values', 'text'),
    [
        ({'height': -0.1}, 'height'),
        ({'height': math.nan}, 'height'),
        ({'orientation': (0.0, 0.0, 0.0, 2.0)}, 'unit quaternion'),
        ({'orientation': (1.0, 2.0)}, r'roll, pitch, yaw'),
        ({'orientation': (math.nan, 0.0, 0.0)}, 'not finite'),
    ],
)
def test_placements_that_are_none_are_refused_and_nothing_changes(sim, values, text):
    before = sim.snapshot().buffer
    with pytest.raises(contact_sim.InvalidInput, match=text):
        sim.reset(**values)
    assert np.array_equal(sim.snapshot().buffer, before)


def test_a_fixed_base_and_several_robots_are_not_turned():
    fixed = contact_sim.Simulator(contact_sim.load_robot('go1', floating_base=False))
    with pytest.raises(contact_sim.InvalidInput, match='fixed'):
        fixed.reset(height=0.1)
    two = contact_sim.joined({'a': GO1, 'b': GO1}, {'b': (2.0, 0.0)})
    sim = contact_sim.Simulator(two)
    sim.reset(height=0.1)
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.1, abs=1e-9)
    assert sim.q[[2, 21]] == pytest.approx(sim.standing_configuration()[[2, 21]] + 0.1)
    with pytest.raises(contact_sim.InvalidInput, match='2 robots'):
        sim.reset(orientation=(0.0, 0.0, 1.0))


def test_random_starts_are_repeated_and_within_what_is_asked_for(sim):
    q, v = sim.random_start(5, joints=0.2, tilt=0.3, height=0.1, speed=0.5)
    again = sim.random_start(5, joints=0.2, tilt=0.3, height=0.1, speed=0.5)
    assert np.array_equal(q, again[0])
    assert np.array_equal(v, again[1])
    assert not np.array_equal(q, sim.random_start(6, joints=0.2)[0])
    assert sim.random_start(3, height=-0.0)[0][2] == sim.random_start(3)[0][2]
    standing = sim.standing_configuration()
    for seed in range(20):
        q, v = sim.random_start(seed, joints=0.2, tilt=0.3, height=0.1, speed=0.5)
        moved = GO1.joint_positions(q) - GO1.joint_positions(standing)
        assert 0.05 < np.abs(moved).max() <= 0.2 + 1e-12
        assert 0.0 < np.abs(v).max() <= 0.5
        sim.reset(q, v)
        contacts, pairs = sim.last_report.contacts, sim.last_report.pairs
        assert -1e-9 <= min([*contacts.gap, *pairs.gap]) <= 0.1 + 1e-9
        roll, pitch, _ = pin.rpy.matrixToRpy(sim.frame_placement('trunk').rotation)
        assert max(abs(roll), abs(pitch)) <= 0.3
    with pytest.raises(contact_sim.InvalidInput, match='tilt'):
        sim.random_start(0, tilt=-1.0)


# --- Running


def test_run_is_what_steps_are(sim):
    run = sim.run(stand, 0.1)
    end = sim.snapshot().buffer
    sim.reset()
    reports = [sim.step(stand(sim.time, sim.q, sim.v)) for _ in range(100)]
    assert np.array_equal(sim.snapshot().buffer, end)
    assert np.array_equal(run.q, [report.q for report in reports])
    assert run.time == pytest.approx(1e-3 * np.arange(1, 101))
    assert run.force[-1, :, 2] == pytest.approx(reports[-1].contacts.normal_force)


def test_run_takes_objects_functions_and_commands(sim):
    pose, gains = GO1.joint_positions(sim.q), GO1.default_gains
    command = holding(pose, *gains)
    by_command = sim.run(command, 0.05).q
    sim.reset()
    assert np.array_equal(sim.run(lambda time, q, v: command, 0.05).q, by_command)
    sim.reset()
    assert sim.run(stand, 0.05).q == pytest.approx(by_command, abs=1e-9)
    sim.reset()
    calls = []
    sim.run(lambda time, q, v: calls.append(time) or np.zeros(12), 0.02, period=5)
    assert calls == pytest.approx([0.0, 0.005, 0.010, 0.015])


@pytest.mark.parametrize(
    ('controller', 'seconds', 'text'),
    [
        (3.0, 0.1, 'expected an object with effort'),
        (stand, 0.0005, 'whole number of steps'),
        (stand, -1.0, 'seconds'),
        (lambda time, q, v: [0.0], 0.1, '12 numbers'),
        (lambda time, q, v: np.full(12, np.nan), 0.1, "joint 'FL_hip_joint'"),
    ],
)
def test_runs_that_are_none_are_refused(sim, controller, seconds, text):
    with pytest.raises(contact_sim.InvalidInput, match=text):
        sim.run(controller, seconds)


def test_a_trajectory_is_a_dictionary_of_arrays_and_a_table(sim):
    run = sim.run(stand, 0.05)
    table = run.to_dict()
    assert list(table)[:3] == ['time [s]', 'q.x [m]', 'q.y [m]']
    assert {len(column) for column in table.values()} == {50}
    assert np.array_equal(table['effort.FL_hip_joint [N m]'], run.effort[:, 0])
    assert np.array_equal(table['contact.FR_foot.gap [m]'], run.gap[:, 1])
    assert len(table) == 1 + GO1.nq + GO1.nv + 12 + 4 * 7
    try:
        import pandas
    except ImportError:
        with pytest.raises(contact_sim.InvalidInput, match='pip install pandas'):
            run.to_dataframe()
    else:
        frame = run.to_dataframe()
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame.columns) == list(table)


def test_a_report_is_json(sim):
    sim.run(stand, 0.05)
    report = sim.last_report
    found = json.loads(json.dumps(report.to_dict()))
    assert found['time'] == report.time
    assert found['q'] == report.q.tolist()
    assert list(found['contacts']) == list(report.contacts.names)
    assert found['contacts']['RL_foot']['force'] == report.contacts.force[2].tolist()
    assert found['contacts']['RL_foot']['mode'] == 'stick'
    assert found['residuals']['slip'] == report.residuals.slip
    assert found['solver']['converged'] is True
    assert found['pairs'] == []


# --- Asking


def test_contacts_in_words(sim):
    sim.reset(height=0.1)
    assert sim.contacts() == ()
    sim.reset()
    sim.run(stand, 0.1)
    sentences = sim.contacts()
    assert len(sentences) == 4
    normal = sim.last_report.contacts.normal_force[0]
    assert sentences[0].startswith(f'FL_foot sticks with {normal:.3g} N normal, ')
    sim.friction = 0.01
    sim.run(stand, 0.2, external_wrenches={'trunk': [0, 80.0, 0, 0, 0, 0]})
    assert any('slips at' in sentence for sentence in sim.contacts())
    sim.friction = 0.8
    sim.reset(orientation=(math.pi, 0.0, 0.0))
    sim.run(lambda time, q, v: np.zeros(12), 0.05)
    assert any(sentence.startswith('trunk_0 on the ground ') for sentence in sim.contacts())


def test_rays_meet_the_ground(sim):
    assert sim.ray_cast((0.0, 0.0, 1.0), (0.0, 0.0, -3.0)) == pytest.approx(1.0, abs=1e-12)
    directions = [(1.0, 0.0, -1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, -0.01)]
    found = sim.ray_cast((0.0, 0.0, 1.0), directions)
    slope = math.hypot(100.0, 1.0)
    assert found[0] == pytest.approx(math.sqrt(2.0), abs=1e-12)
    assert list(found[1:]) == [math.inf, math.inf, math.inf]
    far = sim.ray_cast((0.0, 0.0, 1.0), (1.0, 0.0, -0.01), longest=200.0)
    assert far == pytest.approx(slope, abs=1e-9)
    assert sim.ray_cast((0.0, 0.0, -1.0), (1.0, 0.0, 0.0)) == 0.0


@pytest.mark.parametrize('name', ['stairs', 'rough', 'boxes', 'groove'])
def test_vertical_rays_measure_the_height_of_the_ground(name):
    sim = contact_sim.Simulator(GO1, terrain=name)
    x, y = np.random.default_rng(0).uniform(-4.0, 4.0, (2, 40))
    found = sim.ray_cast(np.column_stack([x, y, np.full(40, 6.0)]), (0.0, 0.0, -1.0))
    heights = np.array([sim.terrain.height(*place) for place in zip(x, y, strict=True)])
    assert 6.0 - found == pytest.approx(heights, abs=1e-6)


def test_rays_meet_a_sphere_where_it_is():
    sim = contact_sim.Simulator(GO1, terrain='sphere')
    x = np.linspace(-9.0, 9.0, 31)
    found = sim.ray_cast(np.column_stack([x, 0.0 * x, 5.0 + 0.0 * x]), (0.0, 0.0, -1.0))
    assert 5.0 - found == pytest.approx(np.sqrt(100.0 - x * x) - 10.0, abs=1e-9)


@pytest.mark.parametrize(
    'arguments',
    [((0.0, 0.0), (0.0, 0.0, 1.0)), ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0)),
     (np.zeros((2, 3)), np.ones((3, 3))), ((0.0, 0.0, 1.0), (0.0, 0.0, -1.0), 1e6),
     ((0.0, 0.0, math.nan), (0.0, 0.0, 1.0))],
)  # fmt: skip
def test_rays_that_are_none_are_refused(sim, arguments):
    with pytest.raises(contact_sim.InvalidInput):
        sim.ray_cast(*arguments)
