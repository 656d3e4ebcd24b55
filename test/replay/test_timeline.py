"""Any step of a recording, in any order, is the state that the run itself was in: to the bit."""

import numpy as np
import pytest
from robots import ball, cube, pose, rigid_body

from contact_sim import InclinedPlane, InvalidInput, NonFiniteState, Simulator, load_robot
from contact_sim.constraints import JointLock
from contact_sim.replay import Recorder, Recording
from contact_sim.replay._event_detection import (
    CHANGE,
    END,
    FALL,
    LIFT_OFF,
    MODEL,
    NOT_FINITE,
    PUSH,
    SLIPS,
    TOUCH_DOWN,
    Series,
    detect_events,
)
from contact_sim.replay._replayer import SPACING, Timeline

GRAVITY, H = 9.81, 1e-3
PUSHED = {'trunk': [60.0, -25.0, 0.0, 0.0, 1.0, 0.0]}


def drive(sim, steps, seed, push=None):
    """Step under PD towards targets that wander; return what there was to see of each step."""
    robot, noise = sim.robot, np.random.default_rng(seed)
    kp, kd = robot.default_gains
    target = robot.joint_positions(sim.standing_configuration())
    seen = []
    for _ in range(steps):
        target = target + 0.004 * noise.standard_normal(robot.n_joints)
        error = target - robot.joint_positions(sim.q)
        effort = kp * error - kd * robot.joint_velocities(sim.v)
        seen.append(seen_of(sim.step(effort, push), sim, push))
    return seen


def seen_of(report, sim, push=None):
    return (
        report.record.buffer.tobytes(), report.residuals, sim.contact_model,
        sim.terrain.data.tobytes(), push or {},
    )  # fmt: skip


def seen_at(moment):
    return (
        moment.report.record.buffer.tobytes(), moment.report.residuals, moment.contact_model,
        moment.ground.data.tobytes(), moment.wrenches,
    )  # fmt: skip


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """Return the file of a run in which everything happens, and what was seen of each step."""
    path = tmp_path_factory.mktemp('timeline') / 'run.npz'
    sim = Simulator(load_robot('go1', body_contacts=False))
    drive(sim, 5, 9)  # the recording begins in the middle
    seen = [seen_of(sim.last_report, sim)]
    with Recorder(sim, path, chunk=100):
        seen += drive(sim, 130, 0)
        sim.friction = 0.3
        seen += drive(sim, 60, 1, PUSHED)
        kept = sim.snapshot()
        seen += drive(sim, 20, 2)
        sim.contact_model = 'sap'
        seen += drive(sim, 40, 3)
        sim.restore(kept)
        sim.contact_model = 'lcp'
        seen += drive(sim, 30, 4)
        sim.reset(terrain=InclinedPlane(0.1, 0.2))
        sim.add_constraint(JointLock('FL_calf_joint', name='knee'))
        seen += drive(sim, 50, 5)
        v = np.zeros(18)
        v[8] = 1e99
        sim.reset(v=v)
        with pytest.raises(NonFiniteState):
            sim.step(np.zeros(12))
        seen.append(None)
        sim.remove_constraint('knee')
        sim.reset(terrain='plane', time=3.0)
        seen += drive(sim, 70, 6)
    return path, seen


def at_random(seen, seed, count):
    steps = np.random.default_rng(seed).permutation(len(seen))[:count]
    return [int(k) for k in steps if seen[k] is not None]


def test_every_step_in_random_order_is_the_recorded_one_to_the_bit(run):
    """Without a walk before: what is kept, is kept on the way."""
    path, seen = run
    timeline = Timeline(Recording(path))
    assert timeline.steps == len(seen) - 1 == 401
    for k in at_random(seen, 0, 150):
        moment = timeline.at(k)
        assert (moment.step, moment.finite) == (k, True)
        assert seen_at(moment) == seen[k]


def test_states_are_given_up_when_there_is_no_room(run):
    path, seen = run
    timeline = Timeline(Recording(path), room=100_000)
    for moment, _ in timeline.walk():
        assert seen[moment.step] is None or seen_at(moment) == seen[moment.step]
    assert 0 < timeline.known < timeline.steps
    assert timeline.known % (2 * SPACING) == 0  # every second one went
    for k in at_random(seen, 1, 50):
        assert seen_at(timeline.at(k)) == seen[k]


def test_a_step_that_was_not_finite_shows_the_state_before_it(run):
    path, seen = run
    timeline, k = Timeline(Recording(path)), seen.index(None)
    moment = timeline.at(k)
    assert not moment.finite
    assert moment.report.v[8] == 1e99
    assert timeline.at(k + 1).finite
    assert timeline.at(k - 1).finite


@pytest.mark.parametrize('step', [-1, 402, 1.5, 'last'])
def test_steps_that_are_not_there(run, step):
    timeline = Timeline(Recording(run[0]))
    with pytest.raises(InvalidInput, match='step'):
        timeline.at(step)


def test_changes_from_outside_are_events(run):
    found = detect_events(Timeline(Recording(run[0])))
    assert found.first_difference is None
    events = [(event.step, event.kind, event.text) for event in found.events]
    assert (131, PUSH, 'wrench on trunk') in events
    assert (191, PUSH, 'no wrench any more') in events
    assert (211, MODEL, 'contact model sap') in events
    assert (251, MODEL, 'contact model lcp') in events
    assert (281, CHANGE, 'another terrain') in events
    assert (331, NOT_FINITE, 'not finite under lcp') in events
    assert events[-1][:2] == (401, END)
    assert found.next(131, (MODEL,)).step == 211
    assert found.previous(131, (MODEL,)) is None
    assert found.previous(401, (PUSH, MODEL)).step == 251


def test_an_edited_run_is_not_the_recorded_one(run, tmp_path):
    with np.load(run[0]) as file:
        arrays = dict(file)
    arrays['steps-0000000100/effort'][16, 5] += 1e-12
    np.savez(tmp_path / 'edited.npz', **arrays)
    found = detect_events(Timeline(Recording(tmp_path / 'edited.npz')))
    assert found.first_difference == 117


def test_under_another_model_until_it_is_not_finite(run):
    """Whatever was kept: the same run as when it is taken from the beginning to the end."""
    walked = [seen_at(m) for m, _ in Timeline(Recording(run[0]), 'compliant').walk()]
    timeline = Timeline(Recording(run[0]), 'compliant', room=60_000)
    assert detect_events(timeline).first_difference is None
    for k in np.random.default_rng(2).permutation(timeline.steps)[:40]:
        assert seen_at(timeline.at(int(k) + 1)) == walked[k]
    assert timeline.at(20).contact_model == 'compliant'


# ------------------------------------------------------------- events with known answers


def recorded(path, sim, steps):
    with Recorder(sim, path):
        reports = [sim.step(np.zeros(sim.robot.n_joints)) for _ in range(steps)]
    return detect_events(Timeline(Recording(path))), reports


def steps_of(found, kind):
    return [event.step for event in found.events if event.kind == kind]


def test_a_bouncing_ball_touches_down_when_it_should(tmp_path):
    """z falls by g h² n (n + 1)/2 in n steps; the impact is in the step that would close it."""
    gap, e = 0.05, 0.5
    sim = Simulator(ball(), restitution=e)
    sim.reset(pose(z=0.1 + gap))
    found, reports = recorded(tmp_path / 'bounce.npz', sim, 320)
    impact = next(n for n in range(1, 1000) if GRAVITY * H**2 * n * (n + 1) / 2 >= gap)
    rebound = e * GRAVITY * H * (impact - 1)
    touches, lifts = steps_of(found, TOUCH_DOWN), steps_of(found, LIFT_OFF)
    assert touches[0] == impact
    assert lifts[0] == impact + 1
    flight = 2.0 * rebound / (GRAVITY * H)
    assert touches[1] - touches[0] == pytest.approx(flight, abs=2.0)
    force = found.force.column('point_0')
    assert force[impact - 2] == 0.0
    assert force[impact - 1] == np.linalg.norm(reports[impact - 1].contacts.force[0])


def test_a_cube_slips_once_and_its_energy_goes_into_the_ground(tmp_path):
    """Thrown along the ground at v: it slips from the first step on, and loses m v²/2."""
    mass, speed = 1.0, 0.4
    sim = Simulator(cube(mass=mass), friction=0.5)
    sim.reset(pose(z=0.1), np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.0]))
    found, _ = recorded(tmp_path / 'slide.npz', sim, 200)
    slips = [event.text for event in found.events if event.kind == SLIPS]
    assert slips == ['body begins to slip']
    assert steps_of(found, SLIPS) == [1]
    assert found.work.column('change')[-1] == pytest.approx(-0.5 * mass * speed**2, abs=1e-9)
    assert found.work.column('contacts')[-1] == pytest.approx(-0.5 * mass * speed**2, abs=1e-6)
    assert found.force.column('body')[-1] == pytest.approx(mass * GRAVITY, rel=1e-6)
    assert found.elapsed.column('elapsed')[-1] == pytest.approx(200 * H)


def test_a_post_that_tips_over_falls_once(tmp_path):
    """Its middle stands 0.5 m high; it has fallen where that is less than 0.25 m."""
    corners = [([0.05 * x, 0.05 * y, -0.5], 0.0) for x in (-1, 1) for y in (-1, 1)]
    sim = Simulator(rigid_body('post', 1.0, 0.08 * np.eye(3), corners))
    sim.reset(pose(z=0.5), np.array([0.5, 0.0, 0.0, 0.0, 1.0, 0.0]))
    found, reports = recorded(tmp_path / 'post.npz', sim, 900)
    height = np.array([report.q[2] for report in reports])
    assert height[0] > 0.49
    assert steps_of(found, FALL) == [int(np.flatnonzero(height < 0.25)[0]) + 1]


def test_bins_of_a_long_series():
    largest = Series({'a': 'N'}, np.fmax, bins=4)
    latest = Series({'a': 'N'}, lambda earlier, later: later, bins=4)
    for value in (3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0):
        largest.add(np.array([value]))
        latest.add(np.array([value]))
    assert largest.stride == 2
    assert largest.steps.tolist() == [2, 4, 6, 7]
    assert largest.column('a').tolist() == [3.0, 4.0, 9.0, 2.0]
    assert latest.column('a').tolist() == [1.0, 1.0, 9.0, 2.0]
