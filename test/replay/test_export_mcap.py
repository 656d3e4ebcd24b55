"""A run as MCAP, read back by rosbags and compared with the run itself."""

import json
import math
from dataclasses import asdict

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rosbags', reason='needs rosbags')
pytest.importorskip('mcap', reason='needs mcap')

from exported import numbers, read_bag, stamp_of

from contact_sim import InclinedPlane, Simulator, joined, load_robot, loose_box
from contact_sim.errors import InvalidInput
from contact_sim.replay import Recorder, Recording, _export, repeat
from contact_sim.replay.__main__ import main
from contact_sim.replay._export import Targets, export

STEPS = 60
PUSHED = range(20, 30)


def run(sim, path, steps=STEPS, **recorder):
    """Return the reports of a recorded run under noisy efforts, with a push."""
    random = np.random.default_rng(1)
    reports = []
    frame = sim.robot.pinocchio_model.frames[-1].name
    with Recorder(sim, path, **recorder):
        for k in range(steps):
            effort = 5.0 * random.normal(size=sim.robot.n_joints)
            push = {frame: [10.0, -20.0, 0.0, 0.0, 0.0, 1.0]} if k in PUSHED else {}
            reports.append(sim.step(effort, push))
    return reports


@pytest.fixture(scope='module')
def walked(tmp_path_factory):
    """Return a run of go1 on a slope, its reports, and the file, read back."""
    folder = tmp_path_factory.mktemp('mcap')
    sim = Simulator(load_robot('go1'), terrain=InclinedPlane(0.2, 0.3))
    sim.reset(time=1.0)
    reports = run(sim, folder / 'run.npz')
    assert main([str(folder / 'run.npz'), '--mcap', str(folder / 'run.mcap')]) == 0
    return sim, reports, read_bag(folder / 'run.mcap')


def test_one_stamp_per_step(walked):
    _, reports, bag = walked
    stamps = [round(report.time * 1e9) for report in reports]
    assert stamps[0] == 1_001_000_000
    for topic in ('/clock', '/odom', '/joint_states', '/imu/data', '/contacts/FL_foot/wrench'):
        assert [stamp_of(message) for message in bag.messages[topic]] == stamps, topic
        assert bag.stamps[topic] == stamps, topic
    for topic in ('/tf', '/contact_sim/contact_markers', '/contact_sim/solver_state',
                  '/foot_contacts', '/contact_sim/solver_diagnostics'):  # fmt: skip
        assert bag.stamps[topic] == stamps, topic


def test_state_is_that_of_the_run(walked):
    sim, reports, bag = walked
    robot = sim.robot
    rows = zip(reports, bag.messages['/joint_states'], bag.messages['/odom'], strict=True)
    for report, joints, odom in rows:
        assert joints.name == list(robot.joint_names)
        assert joints.position.tolist() == robot.joint_positions(report.q).tolist()
        assert joints.velocity.tolist() == robot.joint_velocities(report.v).tolist()
        assert joints.effort.tolist() == report.effort.tolist()
        pose, twist = odom.pose.pose, odom.twist.twist
        assert [*numbers(pose.position), *numbers(pose.orientation)] == report.q[:7].tolist()
        assert [*numbers(twist.linear), *numbers(twist.angular)] == report.v[:6].tolist()
        assert (odom.header.frame_id, odom.child_frame_id) == ('odom', robot.base_frame)


def test_the_imu_feels_gravity_and_what_changes_the_velocity(walked):
    """f = Rᵀ (Δv / h − g) of a frame on the base, from the velocities of the run."""
    sim, reports, bag = walked
    model, data = sim.robot.pinocchio_model, sim.robot.pinocchio_model.createData()
    frame = model.getFrameId(bag.messages['/imu/data'][0].header.frame_id)

    def velocity(report):
        pin.forwardKinematics(model, data, report.q, report.v)
        pin.updateFramePlacements(model, data)
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        return data.oMf[frame].rotation, pin.getFrameVelocity(model, data, frame, world)

    for k in range(1, STEPS):
        (_, before), (R, after) = velocity(reports[k - 1]), velocity(reports[k])
        R = R.copy()
        message = bag.messages['/imu/data'][k]
        force = R.T @ ((after.linear - before.linear) / 1e-3 + [0.0, 0.0, 9.81])
        assert numbers(message.linear_acceleration) == pytest.approx(force, abs=1e-8)
        assert numbers(message.angular_velocity) == pytest.approx(R.T @ after.angular, abs=1e-12)
        q = message.orientation
        turned = pin.Quaternion(q.w, q.x, q.y, q.z).matrix()
        assert turned == pytest.approx(R, abs=1e-12)


def test_wrenches_of_the_feet_are_the_forces_of_the_ground(walked):
    sim, reports, bag = walked
    model, data = sim.robot.pinocchio_model, sim.robot.pinocchio_model.createData()
    for k, report in enumerate(reports):
        pin.framesForwardKinematics(model, data, report.q)
        for row, foot in enumerate(sim.robot.feet):
            message = bag.messages[f'/contacts/{foot.name}/wrench'][k]
            R = data.oMf[model.getFrameId(message.header.frame_id)].rotation
            force = R @ numbers(message.wrench.force)
            assert force == pytest.approx(report.feet.force[row], abs=1e-9)
        flags = bag.messages['/foot_contacts'][k]
        (feet,) = flags.layout.dim
        assert feet.label.split() == [foot.name for foot in sim.robot.feet]
        stamped = bag.messages['/foot_contacts_stamped'][k]
        assert stamped.name == feet.label.split()
        assert stamped.position.tolist() == flags.data.tolist()
        assert flags.data.tolist() == report.feet.loaded.astype(int).tolist()


def test_transforms_lead_to_every_link(walked):
    """Chained from odom, /tf and /tf_static place the links where Pinocchio has them."""
    sim, reports, bag = walked
    model, data = sim.robot.pinocchio_model, sim.robot.pinocchio_model.createData()
    (fixed,) = bag.messages['/tf_static']
    assert (fixed.transforms[0].header.frame_id, fixed.transforms[0].child_frame_id) == (
        'world', 'odom',
    )  # fmt: skip
    report, moving = reports[-1], bag.messages['/tf'][-1]
    tree = {
        one.child_frame_id: (one.header.frame_id, one.transform)
        for one in (*fixed.transforms, *moving.transforms)
    }
    pin.framesForwardKinematics(model, data, report.q)
    links = [frame for frame in model.frames if frame.type == pin.FrameType.BODY]
    assert {frame.name for frame in links} == tree.keys() - {'odom', 'base_link'}
    parent, pose = tree['base_link']  # REP 105: the root link under its name
    assert parent == sim.robot.base_frame
    assert (pose.translation.x, pose.rotation.w) == (0.0, 1.0)
    for frame in links:
        placed, link = pin.SE3.Identity(), frame.name
        while link != 'odom':
            link, step = tree[link]
            pose = np.concatenate([numbers(step.translation), numbers(step.rotation)])
            placed = pin.XYZQUATToSE3(pose) * placed
        expected = data.oMf[model.getFrameId(frame.name)]
        assert placed.homogeneous == pytest.approx(expected.homogeneous, abs=1e-12), frame.name


def test_markers_show_the_forces_and_the_push(walked):
    sim, reports, bag = walked
    for k in (5, PUSHED[0]):
        report, message = reports[k], bag.messages['/contact_sim/contact_markers'][k]
        shown = {(one.ns, one.id): one for one in message.markers if one.action == 0}
        for row, force in enumerate(report.contacts.force):
            if np.abs(force).max() > 1e-3:
                start, end = shown['force', row].points
                assert numbers(start) == pytest.approx(report.contacts.position[row], abs=1e-12)
                assert numbers(end) - numbers(start) == pytest.approx(0.01 * force, abs=1e-12)
        assert (('push', 0) in shown) == (k in PUSHED)
        centre = pin.centerOfMass(sim.robot.pinocchio_model, report_data(sim), report.q)
        ball = shown['centre_of_mass', 0].pose.position
        assert numbers(ball) == pytest.approx(centre, abs=1e-12)
    start, end = shown['push', 0].points
    assert numbers(end) - numbers(start) == pytest.approx([0.1, -0.2, 0.0], abs=1e-12)
    (ground,) = bag.messages['/contact_sim/terrain']
    assert [one.ns for one in ground.markers] == ['', 'terrain']


def report_data(sim):
    return sim.robot.pinocchio_model.createData()


def test_solver_state_and_diagnostics_are_those_of_the_steps(walked):
    _, reports, bag = walked
    both = zip(bag.messages['/contact_sim/solver_state'],
               bag.messages['/contact_sim/solver_diagnostics'], strict=True)  # fmt: skip
    for report, (state, named) in zip(reports, both, strict=True):
        values = dict(zip((dim.label for dim in state.layout.dim), state.data, strict=True))
        assert values['time'] == report.time
        assert values['iterations'] == report.solver.iterations
        assert values['penetration'] == report.residuals.penetration
        assert values['energy'] == report.residuals.energy
        assert values['contacts'] == np.count_nonzero(report.contacts.mode)
        (status,) = named.status
        assert {pair.key: float(pair.value) for pair in status.values} == values
    last = bag.messages['/diagnostics'][-1].status[0]
    counts = {pair.key: pair.value for pair in last.values}
    assert counts['contact_model'] == 'ncp'
    solved = [int(count) for key, count in counts.items() if key.startswith('solver_')]
    assert sum(solved) == STEPS


def test_what_is_said_once_is_there_for_who_comes_late(walked):
    sim, _, bag = walked
    (said,) = bag.messages['/robot_description']
    assert said.data == sim.robot.description
    kept = {'/robot_description', '/tf_static', '/contact_sim/terrain'}
    for topic, connection in bag.connections.items():
        (quality,) = connection.ext.offered_qos_profiles
        assert quality.reliability.name == 'RELIABLE'
        assert (quality.durability.name == 'TRANSIENT_LOCAL') == (topic in kept), topic


def test_several_robots_have_their_namespaces(tmp_path):
    pair = joined({'a': load_robot('go1'), 'b': loose_box((0.2, 0.2, 0.2), 1.0)}, {'b': (1, 0, 0)})
    sim = Simulator(pair)
    reports = run(sim, tmp_path / 'run.npz', 5)
    assert main([str(tmp_path / 'run.npz'), '--mcap', str(tmp_path / 'run.mcap')]) == 0
    bag = read_bag(tmp_path / 'run.mcap')
    assert {'/a/joint_states', '/a/odom', '/b/odom', '/a/contacts/FL_foot/wrench',
            '/b/imu/data', '/a/robot_description', '/clock'} <= bag.messages.keys()  # fmt: skip
    for report, a, b in zip(reports, *(bag.messages[f'/{n}/odom'] for n in 'ab'), strict=True):
        assert numbers(a.pose.pose.position).tolist() == report.q[:3].tolist()
        first = load_robot('go1').nq
        assert numbers(b.pose.pose.position).tolist() == report.q[first : first + 3].tolist()
        assert a.child_frame_id.startswith('a/')
        assert b.child_frame_id.startswith('b/')
    moving = {one.child_frame_id for one in bag.messages['/tf'][0].transforms}
    assert {'a/base', 'a/FL_calf', bag.messages['/b/odom'][0].child_frame_id} <= moving


def test_robots_that_touch_are_repeated_as_the_parts_they_were(tmp_path):
    """One box falls on the other, which leans on nothing: pairs, places and bits are the same."""
    box = loose_box((0.2, 0.2, 0.2), 1.0)
    places = {'under': (0.3, 0.0, 0.5), 'over': (0.3, 0.05, 0.0)}
    both = joined({'under': box, 'over': box}, places, against_each_other=True)
    sim = Simulator(both)
    q = sim.q.copy()
    q[both.of('over')[0]][2] += 0.2005
    sim.reset(q)
    with Recorder(sim, tmp_path / 'run.npz'):
        touched = [len(sim.step([]).pairs) for _ in range(40)]
    assert max(touched) > 0
    recording = Recording(tmp_path / 'run.npz')
    assert repeat(recording).equal
    again = recording.robot()
    assert {part.name: part.place for part in again.parts} == places
    assert asdict(again.collisions) == asdict(both.collisions)


def test_rates_are_those_asked_for(tmp_path):
    sim = Simulator(load_robot('go1'))
    run(sim, tmp_path / 'run.npz', 40)
    rates = ['--rate', '500', '--rate', 'markers=100', '--rate', 'imu=0']
    assert main([str(tmp_path / 'run.npz'), '--mcap', str(tmp_path / 'run.mcap'), *rates]) == 0
    bag = read_bag(tmp_path / 'run.mcap')
    assert np.diff(bag.stamps['/joint_states']).tolist() == 19 * [2_000_000]
    assert np.diff(bag.stamps['/contact_sim/contact_markers']).tolist() == 3 * [10_000_000]
    assert '/imu/data' not in bag.messages


@pytest.mark.parametrize(
    ('rates', 'said'),
    [(['300'], 'must divide the step rate 1000 Hz; nearest: 250 and 333.333 Hz'),
     (['fast'], "'fast': expected a number of Hz"), (['=3'], 'expected a number of Hz'),
     (['nan'], 'expected a number of Hz'), (['0'], 'rate = 0 Hz: expected more'),
     (['wind=3'], "rate of 'wind': expected one of joint_states")],
)  # fmt: skip
def test_rates_that_cannot_be_are_refused(rates, said, tmp_path, capsys):
    sim = Simulator(load_robot('go1'))
    run(sim, tmp_path / 'run.npz', 2)
    words = [word for rate in rates for word in ('--rate', rate)]
    target = tmp_path / 'run.mcap'
    assert main([str(tmp_path / 'run.npz'), '--mcap', str(target), *words]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count('\n') == 1
    assert [path.name for path in tmp_path.iterdir()] == ['run.npz']


def test_a_switch_of_the_model_and_another_ground_are_seen(tmp_path):
    sim = Simulator(load_robot('go1'))
    with Recorder(sim, tmp_path / 'run.npz'):
        sim.step(np.zeros(12))
        sim.contact_model = 'sap'
        sim.step(np.zeros(12))
        sim.reset(terrain=InclinedPlane(math.radians(10.0), 0.0))
        last = sim.step(np.zeros(12))
    assert main([str(tmp_path / 'run.npz'), '--mcap', str(tmp_path / 'run.mcap')]) == 0
    bag = read_bag(tmp_path / 'run.mcap')
    values = {pair.key: pair.value for pair in bag.messages['/diagnostics'][-1].status[0].values}
    assert (values['contact_model'], values['contact_model_switches']) == ('sap', '1')
    assert values['last_contact_model_switch'] == 'from ncp to sap at t = 0.001 s'
    _, sloped = bag.messages['/contact_sim/terrain']
    turned = numbers(sloped.markers[1].pose.orientation)
    normal = pin.Quaternion(*turned[[3, 0, 1, 2]]).matrix()[:, 2]
    assert normal == pytest.approx(last.contacts.normal[0], abs=1e-12)


def test_another_model_is_written_where_it_is_asked_for(tmp_path):
    sim = Simulator(load_robot('go1'))
    run(sim, tmp_path / 'run.npz', 10)
    targets = Targets(mcap=tmp_path / 'sap.mcap')
    assert export(Recording(tmp_path / 'run.npz'), targets, 'sap').first_difference is None
    values = read_bag(tmp_path / 'sap.mcap').messages['/diagnostics'][-1].status[0].values
    assert {pair.key: pair.value for pair in values}['contact_model'] == 'sap'


@pytest.mark.parametrize(
    ('parameters', 'said'),
    [({'node': {'seed': -3}}, 'FrameParameters.seed = -3'), ({'noise': 7}, 'parameters or constr'),
     ('nonsense', 'parameters or constr'),
     ({'imu': {'frame_id': 'nowhere'}}, "unknown frame 'nowhere'")],
)  # fmt: skip
def test_parameters_that_cannot_be_are_named(parameters, said, tmp_path, capsys):
    """A recording is data from anywhere: what is wrong in it is said in one line."""
    run(Simulator(load_robot('go1')), tmp_path / 'run.npz', 2)
    with np.load(tmp_path / 'run.npz') as file:
        arrays = dict(file)
    header = {**json.loads(str(arrays['header'])), 'parameters': parameters}
    np.savez(tmp_path / 'odd.npz', **{**arrays, 'header': np.array(json.dumps(header))})
    assert main([str(tmp_path / 'odd.npz'), '--mcap', str(tmp_path / 'run.mcap')]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count('\n') == 1
    assert not (tmp_path / 'run.mcap').exists()


def test_without_mcap_the_line_to_install_it_is_said(tmp_path, monkeypatch):
    sim = Simulator(load_robot('go1'))
    run(sim, tmp_path / 'run.npz', 2)
    monkeypatch.setattr(_export, 'mcap_writer', None)
    with pytest.raises(InvalidInput, match=r"pip install 'contact_sim\[export\]'"):
        export(Recording(tmp_path / 'run.npz'), Targets(mcap=tmp_path / 'run.mcap'))
    assert [path.name for path in tmp_path.iterdir()] == ['run.npz']
