"""Steps from recordings, bags, MuJoCo and Drake, and the command."""

import json
from functools import cache

import numpy as np
import pytest

from contact_sim import InclinedPlane, InvalidInput, Sap, Simulator, UnknownName, load_robot
from contact_sim.compare._scenarios import hold
from contact_sim.judge import (
    DrakeRecorder,
    MujocoRecorder,
    Steps,
    from_drake,
    from_mcap,
    from_mujoco,
    from_recording,
    from_reports,
    judge,
)
from contact_sim.judge.__main__ import main
from contact_sim.replay import Recorder, Recording
from contact_sim.replay._export import Targets, export
from contact_sim.replay._format import RecordingError

FRICTION, TIME_STEP = 0.8, 1e-3
SAME_DIGITS = ('penetration', 'creep', 'slip', 'signorini', 'dissipation', 'ncp', 'force_apart')


@cache
def go1(dry=True):
    """Feet only, as the peers have it."""
    robot = load_robot('go1', body_contacts=False).with_actuators(velocity_limit=np.inf)
    return robot if dry else robot.with_actuators(dry_friction=0.0)


def simulated(model, steps, robot=None):
    robot = go1() if robot is None else robot
    sim = Simulator(robot, model, friction=FRICTION, time_step=TIME_STEP)
    q = sim.standing_configuration().copy()
    q[2] -= 1e-6  # not where rounding decides whether a foot touches
    sim.reset(q)
    control = hold(robot, q)
    reports = [sim.step(control(0.0, sim.q, sim.v)) for _ in range(steps)]
    return judge(robot, from_reports(robot, reports))


# --- MuJoCo


def mujoco_peer(robot, q, tolerance=0.0):
    pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `peers`)')
    from mujoco_peer import MujocoPeer

    peer = MujocoPeer(robot, FRICTION, TIME_STEP)
    peer.model.opt.tolerance = tolerance
    peer.reset(q, robot.joint_positions(q))
    return peer


def standing(robot):
    q = Simulator(robot).standing_configuration().copy()
    q[2] -= 1e-6
    return q


def test_go1_standing_in_mujoco_scores_the_digits_of_todorov():
    """Its forces explain its motion to rounding, whatever its solver has left over."""
    robot, q = go1(), standing(go1())
    peer = mujoco_peer(robot, q, tolerance=1e-8)
    steps = from_mujoco(robot, peer.model, peer.data, 300, hold(robot, q))
    theirs, ours = judge(robot, steps), simulated('todorov', 300)
    assert theirs['momentum'].max() <= 1e-13
    for name in SAME_DIGITS:
        assert theirs.maximum(name) == pytest.approx(ours.maximum(name), rel=1e-5), name
        assert theirs[name] == pytest.approx(ours[name], rel=1e-4, abs=1e-8), name
    assert theirs.broken.keys() == ours.broken.keys()
    assert {'penetration', 'signorini', 'creep', 'ncp'} <= set(theirs.broken)


@pytest.mark.parametrize(
    ('damped', 'solver', 'least', 'largest'),
    [
        (True, 'mjSOL_CG', 0.0, 1e-13),  # the velocity is made from the forces once more
        (False, 'mjSOL_CG', 1e-9, 1e-4),  # what the solver leaves over
        (False, 'mjSOL_NEWTON', 0.0, 1e-12),
    ],
)
def test_the_momentum_of_mujoco_is_what_its_solver_leaves_over(damped, solver, least, largest):
    mujoco = pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `peers`)')
    robot = go1(dry=False).with_actuators(viscous_friction=0.01 if damped else 0.0)
    q = standing(robot)
    peer = mujoco_peer(robot, q, tolerance=1e-8)
    peer.model.dof_frictionloss[:] = 0.0
    peer.model.dof_damping[6:] = 0.01 if damped else 0.0
    peer.model.opt.solver = getattr(mujoco.mjtSolver, solver)
    score = judge(robot, from_mujoco(robot, peer.model, peer.data, 80, hold(robot, q)))
    assert least <= score.maximum('momentum') <= largest


def test_a_tumbling_robot_has_its_velocities_in_the_right_frames():
    """In flight with a turning base: a wrong frame of linear or angular velocity shows at once."""
    robot = go1(dry=False)
    q = standing(robot)
    q[2] += 2.0
    peer = mujoco_peer(robot, q)
    peer.model.dof_frictionloss[:] = 0.0
    peer.data.qpos[3:7] = 0.5, 0.5, -0.5, 0.5
    peer.data.qvel[:] = np.linspace(-2.0, 3.0, 18)
    recorder = MujocoRecorder(robot, peer.model, peer.data)
    recorder.step(30)
    steps = recorder.steps()
    assert np.abs(steps.v[0, :3] - peer.data.qvel[:3]).max() > 1.0  # the axes do differ
    score = judge(robot, steps)
    assert score['momentum'].max() <= 1e-13
    # the positions moved with these velocities
    import pinocchio as pin

    for k in range(30):
        shift = steps.q[k + 1, :3] - steps.q[k, :3]
        turn = pin.Quaternion(steps.q[k + 1, 3:7]).toRotationMatrix()
        assert shift == pytest.approx(1e-3 * turn @ steps.v[k + 1, :3], abs=1e-12)


def test_a_push_and_dry_friction_are_external_forces():
    robot, q = go1(), standing(go1())
    peer = mujoco_peer(robot, q)
    peer.data.xfrc_applied[3] = 5.0, -8.0, 3.0, 0.2, 0.1, -0.3
    steps = from_mujoco(robot, peer.model, peer.data, 50, hold(robot, q))
    assert np.abs(steps.external[:, 6:]).max() > 0.1
    assert judge(robot, steps)['momentum'].max() <= 1e-13


def test_other_models_of_mujoco_are_refused():
    mujoco = pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `peers`)')
    robot, q = go1(), standing(go1())
    peer = mujoco_peer(robot, q)
    peer.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    with pytest.raises(InvalidInput, match='RK4 solves four contact problems'):
        MujocoRecorder(robot, peer.model, peer.data)
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(UnknownName, match="joint of MuJoCo's model 'FL_hip_joint'"):
        MujocoRecorder(robot, model, mujoco.MjData(model))
    peer = mujoco_peer(robot, q)
    peer.model.body_mass[1] *= 1.1
    with pytest.raises(InvalidInput, match=r'MuJoCo has .* kg, our robot'):
        MujocoRecorder(robot, peer.model, peer.data)
    peer = mujoco_peer(robot, q)
    recorder = MujocoRecorder(robot, peer.model, peer.data)
    with pytest.raises(InvalidInput, match='no step was taken'):
        recorder.steps()
    recorder.step(3)
    peer.data.qvel[0] += 0.1
    with pytest.raises(InvalidInput, match=r'state of MuJoCo was set at t = 0.003 s'):
        recorder.step()


# --- Drake


def test_go1_standing_in_drake_scores_the_digits_of_sap():
    pytest.importorskip('pydrake', reason='Drake is not installed (extra `peers`)')
    from drake_peer import DrakePeer

    robot = go1(dry=False)
    q = standing(robot)
    peer = DrakePeer(robot, FRICTION, TIME_STEP)
    peer.set_state(q, np.zeros(robot.nv))
    steps = from_drake(robot, peer.plant, peer._simulator, 200, FRICTION, hold(robot, q))
    assert steps.count == 200
    assert np.ptp(steps.lengths) == 0.0
    theirs, ours = judge(robot, steps), simulated(Sap(), 200, robot)
    assert 1e-12 < theirs['momentum'].max() <= 1e-5  # its solver stops at a relative 1e-6
    for name in (*SAME_DIGITS, 'cone'):
        assert theirs.percentile(name, 90.0) == pytest.approx(
            ours.percentile(name, 90.0), rel=0.02, abs=1e-7
        ), name
    recorder = DrakeRecorder(robot, peer.plant, peer.context, FRICTION)
    with pytest.raises(InvalidInput, match=r'effort: shape \(3,\)'):
        recorder.record(np.zeros(3))
    with pytest.raises(UnknownName, match='joint of the plant'):
        DrakeRecorder(load_robot('anymal_b'), peer.plant, peer.context, FRICTION)


# --- Recordings and bags


def recording_of(robot, path):
    """Record a run on a slope; return its file, and its reports."""
    sim = Simulator(robot, 'todorov', InclinedPlane(0.1), friction=0.7)
    control = hold(robot, sim.q)
    with Recorder(sim, path):
        reports = [sim.step(control(0.0, sim.q, sim.v)) for _ in range(120)]
    return path, reports


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """A run without dry friction of joints, whose efforts a bag does not have."""
    return recording_of(go1(dry=False), tmp_path_factory.mktemp('judge') / 'run.npz')


def test_a_recording_scores_what_its_reports_say(recorded):
    path, reports = recorded
    robot, steps = from_recording(path)
    score = judge(robot, steps)
    for name in ('signorini', 'cone', 'ncp', 'slip', 'momentum', 'penetration', 'energy'):
        expected = [report.residuals.as_dict()[name] for report in reports]
        assert score[name] == pytest.approx(expected, abs=1e-12), name
    other = judge(*from_recording(path, 'ncp'))
    assert other.broken == {}
    assert 'contact model ncp' in other.source
    with pytest.raises(RecordingError):
        from_recording(path.with_name('none.npz'))


def test_a_recording_in_which_the_state_was_set_is_refused(tmp_path):
    sim = Simulator(go1())
    with Recorder(sim, tmp_path / 'run.npz'):
        sim.step(np.zeros(12))
        sim.reset()
        sim.step(np.zeros(12))
    with pytest.raises(InvalidInput, match='does not begin where the one before it ended'):
        from_recording(Recording(tmp_path / 'run.npz'))


def test_a_bag_scores_what_the_reports_say(recorded):
    """All but the first step, whose start is not in the file."""
    pytest.importorskip('rosbags', reason='needs rosbags')
    pytest.importorskip('mcap', reason='needs mcap')
    path, reports = recorded
    bag = path.with_suffix('.mcap')
    export(Recording(path), Targets(mcap=bag, ground_truth=True, overwrite=True))
    robot = go1(dry=False)
    steps = from_mcap(robot, bag, InclinedPlane(0.1), 0.7)
    assert steps.count == len(reports) - 1
    score = judge(robot, steps)
    for name in ('signorini', 'cone', 'ncp', 'slip', 'momentum', 'penetration', 'dissipation'):
        expected = [report.residuals.as_dict()[name] for report in reports[1:]]
        assert score[name] == pytest.approx(expected, abs=1e-10), name
    with pytest.raises(UnknownName, match='joint in joint_states'):
        from_mcap(load_robot('anymal_b', body_contacts=False), bag)
    # the definition in the file is damaged, where the messages are not: it calls a field otherwise
    damaged = path.parent / 'damaged.mcap'
    damaged.write_bytes(bag.read_bytes().replace(b'Vector3 force\n', b'Vector3 fbrce\n'))
    again = from_mcap(robot, damaged, InclinedPlane(0.1), 0.7)
    assert again.force.tobytes() == steps.force.tobytes()
    (path.parent / 'odd.mcap').write_bytes(b'nothing')
    with pytest.raises(InvalidInput, match='no MCAP file of ROS 2'):
        from_mcap(robot, path.parent / 'odd.mcap')


# --- The command


def test_the_command_prints_a_table(tmp_path, capsys):
    path, _ = recording_of(load_robot('go1'), tmp_path / 'run.npz')
    saved = str(tmp_path / 'steps.npz')
    assert main([str(path), '--save', saved]) == 0
    table = capsys.readouterr().out
    assert 'go1, run.npz, contact model todorov: 120 steps to t = 0.12 s' in table
    assert 'beyond the limits: ' in table
    assert main([saved, '--check']) == 1
    assert capsys.readouterr().out == table
    assert main([str(path), '--model', 'ncp', '--check']) == 0
    assert 'within the limits: penetration' in capsys.readouterr().out
    assert main([saved, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['steps'] == 120
    assert found['residuals']['creep']['max'] > found['residuals']['creep']['limit']


def test_the_command_says_what_it_cannot_do(recorded, tmp_path, capsys):
    path, _ = recorded
    steps = from_recording(path)[1]
    bare = tmp_path / 'bare.npz'
    Steps(steps.time, steps.q, steps.v).save(bare)
    cases = {
        ('none.npz',): 'No such file',
        (str(bare),): 'which robot? it has no entry `robot`',
        (str(bare), '--robot', 'go2', '--model', 'ncp'): 'arrays cannot be replayed',
        (str(bare), '--robot', 'pepper'): 'unknown',
        (str(tmp_path / 'odd.npz'),): 'odd.npz',
    }
    (tmp_path / 'odd.npz').write_text('no archive')
    for arguments, message in cases.items():
        assert main(list(arguments)) == 1
        error = capsys.readouterr().err
        assert error.startswith('python -m contact_sim.judge: ')
        assert message in error
    with pytest.raises(SystemExit):
        main(['--help'])
    assert 'examples:' in capsys.readouterr().out


@pytest.mark.parametrize(('name', 'module'), [('Bullet tuned', 'pybullet'), ('DART', 'dartpy')])
def test_bullet_and_dart_get_the_same_robot(name, module):
    """Wrong masses, frames, signs of forces or places of contacts would show in the momentum."""
    pytest.importorskip(module, reason='not installed: no extra has it')
    import judge_engines

    robot = judge_engines.robot_of()
    steps = judge_engines.run(judge_engines.ENGINES[name](robot), robot, 'stand', 0.2)
    score = judge(robot, steps)
    loaded = 1e-3 * steps.force[..., 2].sum(axis=1)  # N s per step
    assert loaded.max() > 5e-3 * robot.total_mass
    assert score.maximum('momentum') < 1e-3 * loaded.max()
    assert score.maximum('penetration') < 1e-3


def test_the_engines_are_compared(tmp_path, capsys):
    pytest.importorskip('mujoco', reason='MuJoCo is not installed (extra `peers`)')
    pytest.importorskip('matplotlib', reason='needs matplotlib')
    import judge_engines

    arguments = ['--engines', 'ncp', 'MuJoCo', 'MuJoCo tuned', '--seconds', '0.1']
    assert judge_engines.main([*arguments, '--motions', 'stand', '--out', str(tmp_path)]) == 0
    assert '| MuJoCo | **' in capsys.readouterr().out
    assert (tmp_path / 'judge.png').stat().st_size > 1000
    scores = json.loads((tmp_path / 'judge.json').read_text())['scores']['stand']
    assert scores['ncp']['verdict'].startswith('within the limits')
    depths = {name: row['residuals']['penetration']['p99'] for name, row in scores.items()}
    assert depths['ncp'] <= 1e-9 < depths['MuJoCo tuned'] < depths['MuJoCo']
