"""The test kit in one process: what it does to a run, what it says about it, what it leaves."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robots import ball, cube, point_mass, pose

import contact_sim
from contact_sim import InvalidInput, Planes, Simulator, UnknownName, load_robot
from contact_sim.contact_models.guarantees import MAY_BREAK
from contact_sim.replay import Recording, repeat
from contact_sim.testing import TrajectoryFailure, Trial, recorded_trajectory
from contact_sim.testing._plugin import draw

ROOT = Path(__file__).resolve().parents[2]


class Stand:
    """PD around the standing pose; remembers when it was asked."""

    def __init__(self, robot):
        self.robot, self.times = robot, []
        self.target = robot.joint_positions(robot.reference_configuration())
        self.kp, self.kd = robot.default_gains

    def effort(self, time, q, v):
        self.times.append(time)
        error = self.target - self.robot.joint_positions(q)
        return self.kp * error - self.kd * self.robot.joint_velocities(v)


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def nothing(time, q, v):
    return np.zeros(0)


def broken(assertion, *arguments):
    """Return message and time of an assertion that must fail."""
    with pytest.raises(TrajectoryFailure) as caught:
        assertion(*arguments)
    return str(caught.value), caught.value.time


# ------------------------------------------------------------- what happens


@pytest.mark.parametrize('model', contact_sim.contact_models())
def test_a_robot_stands_in_a_trial(trial, go1, model):
    run = trial(Stand(go1), robot=go1, contact_model=model)
    run.advance(0.5)
    run.push('trunk', force=(0.0, 25.0, 0.0), seconds=0.1)
    run.advance(1.0)
    track = run.trajectory
    assert len(track.time) == 1500
    assert track.time[-1] == run.sim.time == 1.5
    track.assert_never_fell()
    track.assert_no_slip(over=0.05)
    if 'cone' not in MAY_BREAK[model]:
        track.assert_forces_inside_cone(tolerance=1e-4)
    track.assert_torque_within(0.9)
    pushed = track.after(0.5).until(0.7)
    assert np.abs(pushed.v[:, 1]).max() > 0.02  # it did feel the push
    run.close()
    outcome = repeat(Recording(run.recording))
    assert outcome.equal
    assert outcome.steps == 1500


def test_a_push_is_an_impulse(trial):
    """m Δv = F T, and a torque turns: I Δω = M T; pushes on one body add up."""
    run = trial(nothing, robot=ball(mass=2.0), gravity=0.0)
    run.sim.reset(pose(z=5.0))
    run.push('body', force=(3.0, 0.0, 0.0), seconds=0.2, torque=(0.0, 0.0, 0.01))
    run.push('body', force=(0.0, -1.0, 0.0), seconds=0.1)
    run.advance(0.5)
    inertia = 0.4 * 2.0 * 0.1**2
    turn = 0.01 / inertia * 0.2  # in its own axes: turned back by the angle reached
    world = run.sim.frame_placement('body').rotation @ run.sim.v[:3]
    assert world == pytest.approx([3.0 * 0.2 / 2.0, -1.0 * 0.1 / 2.0, 0.0], abs=1e-12)
    assert run.sim.v[5] == pytest.approx(turn, rel=1e-12)


def test_time_passes_exactly_and_control_has_its_period(trial, go1):
    controller = Stand(go1)
    run = trial(controller, robot=go1, control_steps=4)
    run.advance(0.02)
    run.advance(0.0)
    run.advance(0.02)
    assert run.sim.step_count == 40
    assert controller.times == pytest.approx(np.arange(10) * 4e-3)
    effort = run.trajectory.effort
    assert all((effort[k : k + 4] == effort[k]).all() for k in range(0, 40, 4))


def test_late_commands_act_late(trial, go1):
    def count(time, q, v):
        return np.full(12, 1e3 * time)

    run = trial(count, robot=go1)
    run.advance(0.005)
    run.delay_commands(0.003)
    run.advance(0.006)
    run.delay_commands(0.0)
    run.advance(0.002)
    steps = run.trajectory.effort[:, 0]
    assert steps == pytest.approx([0, 1, 2, 3, 4, 4, 4, 4, 5, 6, 7, 11, 12])


def test_a_blind_controller_commands_nothing_new(trial, go1):
    controller = Stand(go1)
    run = trial(controller, robot=go1)
    run.advance(0.01)
    run.drop_sensors(0.02)
    run.advance(0.03)
    assert controller.times == pytest.approx([*np.arange(10) * 1e-3, *np.arange(30, 40) * 1e-3])
    held = run.trajectory.effort[9:30]
    assert (held == held[0]).all()


def test_some_states_are_lost_and_always_the_same(trial, go1):
    seen = []
    for seed in (0, 0, 1):
        controller = Stand(go1)
        run = trial(controller, robot=go1)
        run.drop_sensors(0.4, share=0.25, seed=seed)
        run.advance(0.4)
        seen.append(tuple(controller.times))
    assert seen[0] == seen[1] != seen[2]
    assert 260 < len(seen[0]) < 340  # 300 expected, standard deviation 9


def test_what_is_changed_between_steps_is_recorded(trial, go1):
    run = trial(Stand(go1), robot=go1)
    run.advance(0.1)
    run.sim.friction, run.sim.contact_model = 0.3, 'sap'
    run.advance(0.1)
    assert (run.trajectory.friction[:100] == 0.8).all()
    assert (run.trajectory.friction[100:] == 0.3).all()
    run.close()
    recording = Recording(run.recording)
    assert [event['kind'] for event in recording.events] == ['contact_model', 'friction']
    again, track = recorded_trajectory(recording), run.trajectory
    for name in ('time', 'q', 'v', 'effort', 'force', 'gap', 'slip_speed', 'friction'):
        assert getattr(again, name).tobytes() == getattr(track, name).tobytes(), name


def test_bad_input_of_a_trial(go1, tmp_path):
    sim, path = Simulator(go1), tmp_path / 'trial.npz'
    with pytest.raises(InvalidInput, match='control_steps'):
        Trial(sim, nothing, path, control_steps=0)
    with pytest.raises(InvalidInput, match='controller = 3'):
        Trial(sim, 3, path)
    run = Trial(sim, Stand(go1), path)
    for act in (
        lambda: run.advance(0.0005),
        lambda: run.advance(-1.0),
        lambda: run.advance(np.nan),
        lambda: run.push('trunk', (1.0, np.nan, 0.0), 0.1),
        lambda: run.push('trunk', (1.0, 0.0), 0.1),
        lambda: run.drop_sensors(0.1, share=2.0),
    ):
        with pytest.raises(InvalidInput):
            act()
    with pytest.raises(UnknownName, match='nose'):
        run.push('nose', (1.0, 0.0, 0.0), 0.1)
    run.advance(0.01)
    assert len(run.trajectory.time) == 10


# ------------------------------------------------------------- what is said about it


def test_a_robot_without_efforts_falls(trial, go1):
    run = trial(lambda time, q, v: np.zeros(12), robot=go1)
    run.advance(1.0)
    track = run.trajectory
    message, time = broken(track.assert_never_fell)
    assert 'the robot fell: base 0.1' in message
    standing = go1.reference_configuration()[2]
    assert track.until(time - 2e-3).height.min() >= 0.5 * standing > track.until(time).height.min()
    track.until(time - 2e-3).assert_never_fell()


def test_a_robot_upside_down_has_fallen_over(trial):
    run = trial(nothing, robot=ball(), gravity=0.0)
    run.sim.reset(pose(z=5.0), np.array([0.0, 0, 0, 2.0, 0, 0]))
    run.advance(1.0)
    assert run.trajectory.tilt == pytest.approx(2.0 * run.trajectory.time, abs=1e-7)
    message, time = broken(run.trajectory.assert_never_fell)
    assert 'tilted by 1.00 rad' in message
    assert time == pytest.approx(0.501)


def test_slip_is_the_distance_slid(trial):
    """A point at 1 m/s with friction 0.4 stops after v²/(2 μ g); the first step acts at once."""
    run = trial(nothing, robot=point_mass(1.0), friction=0.4)
    run.sim.reset(v=np.array([1.0, 0.0, 0.0]))
    run.advance(0.5)
    track, distance = run.trajectory, 1.0 / (2 * 0.4 * 9.81)
    assert track.slip[-1] == pytest.approx(distance, rel=5e-3)
    assert track.slip[-1] == pytest.approx(track.q[-1, 0], rel=1e-9)
    track.assert_no_slip(over=1.01 * distance)
    message, time = broken(track.assert_no_slip, 0.5 * distance)
    assert 'slipped by 0.06' in message
    halfway = (1.0 - np.sqrt(0.5)) / (0.4 * 9.81)
    assert time == pytest.approx(halfway, abs=2e-3)
    track.assert_forces_inside_cone()
    track.assert_settled_by(0.3)
    message, time = broken(track.assert_settled_by, 0.2)
    assert 'not settled by t = 0.2 s' in message
    assert time == pytest.approx(0.99 / (0.4 * 9.81), abs=2e-3)  # 1 cm/s counts as settled
    assert 'ends before' in broken(track.assert_settled_by, 0.6)[0]


def test_a_trajectory_has_a_column_per_contact_not_per_contact_point(trial):
    """A ball slides along a groove: both contacts of its one contact point, by the same way."""
    groove = Planes((((0, 1, 1), 0.0), ((0, -1, 1), 0.0)))
    run = trial(nothing, robot=ball(), terrain=groove, friction=0.1)
    run.sim.reset(run.sim.standing_configuration(), v=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    run.advance(0.1)
    track = run.trajectory
    assert track.names == ('point_0/0', 'point_0/1')
    assert track.force.shape == (100, 2, 3)
    assert track.loaded[-1].all()
    message, _ = broken(track.assert_no_slip, 0.03)
    assert 'contact point_0/0 slipped by 0.03' in message
    track.assert_forces_inside_cone()
    draw(track, 'a ball in a groove', 0.05, run.recording.with_suffix('.png'))
    assert run.recording.with_suffix('.png').stat().st_size > 10_000


def test_slip_starts_anew_when_a_foot_is_set_down(trial):
    run = trial(nothing, robot=cube())
    run.advance(0.006)
    track = run.trajectory
    loaded = np.array([0, 5, 5, 0, 5, 5])[:, None, None] * np.array([0.0, 0.0, 1.0])
    track = replace(track, force=np.repeat(loaded, 4, axis=1), slip_speed=np.full((6, 4), 2.0))
    assert track.slip[:, 0] == pytest.approx([0.0, 0.002, 0.004, 0.0, 0.002, 0.004])


def test_forces_outside_the_cone_are_named(trial, go1):
    run = trial(Stand(go1), robot=go1)
    run.advance(0.1)
    track = run.trajectory
    force = track.force.copy()
    force[40, 2] = [5.0, 0.0, 5.0]  # friction is 0.8
    message, time = broken(replace(track, force=force).assert_forces_inside_cone)
    assert 'RL_foot outside its friction cone: [5.0, 0.0, 5.0] N' in message
    assert time == pytest.approx(0.041)
    force[40, 2] = [4.0, 0.0, 5.0]
    replace(track, force=force).assert_forces_inside_cone()
    force[40, 2] = [0.0, 0.0, -5.0]  # the ground does not pull
    assert broken(replace(track, force=force).assert_forces_inside_cone)[1] == time


def test_saturated_efforts_are_named(trial, go1):
    limit = go1.effort_limit

    def strong(time, q, v):
        return np.where(np.arange(12) == 7, 1.001 * limit, 0.0) * (time > 0.0095)

    run = trial(strong, robot=go1)
    run.advance(0.02)
    message, time = broken(run.trajectory.assert_torque_within)
    assert f'effort of joint {go1.joint_names[7]} is {limit[7]:.4g} N m' in message
    assert time == pytest.approx(0.011)
    run.trajectory.until(0.010).assert_torque_within()


# ------------------------------------------------------------- as a plugin

FAILING = """
import gc
import weakref

import numpy as np

ENDED = []

def test_it_stands(trial):
    run = trial(lambda time, q, v: np.zeros(12), robot='solo12', contact_model='sap')
    run.advance(1.0)
    run.trajectory.assert_never_fell()

def test_arithmetic(trial):
    assert 1 + 1 == 3

def test_it_ends(trial):
    run = trial(lambda time, q, v: np.zeros(12))
    run.advance(0.001)
    ENDED.append(weakref.ref(run))

def test_it_is_forgotten():
    gc.collect()
    assert ENDED[0]() is None
"""


def test_failures_leave_a_replay_file_and_a_figure(tmp_path):
    """As another package sees it: nothing but the fixture."""
    from matplotlib.image import imread

    (tmp_path / 'test_mine.py').write_text(FAILING)
    result = subprocess.run(
        [sys.executable, '-m', 'pytest', str(tmp_path), '--rootdir', str(tmp_path), '-p',
         'contact_sim.testing', '-p', 'no:cacheprovider', '--failures', 'broken'],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert result.returncode == 1, result.stdout
    assert '2 failed, 2 passed' in result.stdout
    replay, picture = (tmp_path / 'broken' / f'test_it_stands.{kind}' for kind in ('npz', 'png'))
    assert f'python -m contact_sim.replay {replay}' in result.stdout
    assert str(picture) in result.stdout
    assert sorted((tmp_path / 'broken').iterdir()) == [replay, picture]
    outcome = repeat(Recording(replay))
    assert outcome.equal
    assert outcome.steps == 1000
    pixels = imread(picture)
    assert min(pixels.shape[:2]) > 700
    red = (pixels[..., 0] > 0.7) & (pixels[..., 1] < 0.35)
    assert red.sum(axis=0).max() > 300  # the line where it fell


def test_the_plugin_needs_neither_ros_nor_plots():
    script = 'import sys, contact_sim.testing; print(*sys.modules)'
    result = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {'rclpy', 'matplotlib'}.isdisjoint(result.stdout.split())
