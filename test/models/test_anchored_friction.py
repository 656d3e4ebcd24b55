"""compliant with anchored friction: true stiction; the anchor is a state (theory E9)."""

import numpy as np
import pytest
from robots import StandingController, ball, point_mass, pose, stand

from contact_sim import Compliant, ContactProblem, InclinedPlane, Simulator, load_robot

GRAVITY = 9.81
STIFFNESS, TANGENTIAL = 1e4, 2e4
NO_EFFORT = np.zeros(0)


def anchored(**parameters):
    return Compliant(
        **{
            'normal_law': 'kelvin_voigt', 'friction_law': 'anchored', 'stiffness': STIFFNESS,
            'tangential_stiffness': TANGENTIAL, **parameters,
        }
    )  # fmt: skip


def resting_point(integration='implicit', friction=0.5):
    """A point of 1 kg at its static depth."""
    sim = Simulator(point_mass(1.0), anchored(integration=integration), friction=friction)
    sim.reset(np.array([0.0, 0.0, -GRAVITY / STIFFNESS]))
    return sim


@pytest.mark.parametrize('integration', ['implicit', 'explicit'])
def test_a_block_on_a_slope_holds_for_ever(integration):
    # tan 20° = 0.36 < 0.5: the spring along the ground carries m g sin α and nothing moves
    angle = np.deg2rad(20.0)
    model = anchored(integration=integration)
    sim = Simulator(point_mass(1.0), model, terrain=InclinedPlane(angle), friction=0.5)
    sim.reset(-GRAVITY * np.cos(angle) / STIFFNESS * sim.terrain.plane[:3])
    along = np.cross(sim.terrain.plane[:3], np.cross([0.0, 0.0, -1.0], sim.terrain.plane[:3]))
    along /= np.linalg.norm(along)
    for _ in range(2000):
        sim.step(NO_EFFORT)
    early = sim.q
    for _ in range(8000):
        report = sim.step(NO_EFFORT)
    assert report.contacts.slip_speed[0] <= 1e-14
    assert np.abs(sim.q - early).max() <= 1e-14
    assert sim.q @ along == pytest.approx(GRAVITY * np.sin(angle) / TANGENTIAL, rel=1e-9)
    assert report.record.memory[0, :3] @ along == pytest.approx(
        GRAVITY * np.sin(angle) / TANGENTIAL, rel=1e-9
    )


@pytest.mark.parametrize('integration', ['implicit', 'explicit'])
@pytest.mark.parametrize('share', [0.999, 1.001])
def test_releases_at_the_coulomb_limit_exactly(share, integration):
    # μ m g = 4.905 N: held 0.1 % below, a = (F − μ m g)/m 0.1 % above
    sim, limit = resting_point(integration), 0.5 * GRAVITY
    for k in range(3000):  # the push grows over two seconds, so that nothing overshoots
        push = share * limit * min(1.0, k / 2000)
        report = sim.step(NO_EFFORT, {'point': [push, 0, 0, 0, 0, 0]})
    if share < 1.0:
        assert abs(sim.v[0]) <= 1e-9
        assert sim.q[0] == pytest.approx(share * limit / TANGENTIAL, rel=1e-6)
    else:
        assert report.acceleration[0] == pytest.approx((share - 1.0) * limit, rel=1e-6)
        assert -report.contacts.force[0, 0] == pytest.approx(limit, rel=1e-9)


def test_slides_to_a_stop_and_stays():
    # v²/(2 μ g) less v h/2 of the semi-implicit sum, then the anchor springs back by μ m g/k_t
    sim = resting_point()
    sim.reset(sim.q, np.array([1.0, 0.0, 0.0]))
    for _ in range(1000):
        sim.step(NO_EFFORT)
    assert sim.q[0] == pytest.approx(1.0 / GRAVITY - 5e-4 - 0.5 * GRAVITY / TANGENTIAL, rel=2e-5)
    stopped = sim.q
    for _ in range(1000):
        sim.step(NO_EFFORT)
    assert np.abs(sim.q - stopped).max() <= 1e-12


def test_direction_of_sliding_friction_is_that_of_the_slip():
    sim = resting_point()
    sim.reset(sim.q, np.array([3.0, 4.0, 0.0]))
    for _ in range(200):
        report = sim.step(NO_EFFORT)
    assert report.contacts.force[0, :2] == pytest.approx([-0.3 * GRAVITY, -0.4 * GRAVITY], 1e-6)


def test_rolling_carries_the_anchor_along():
    sim = Simulator(ball(), anchored(stiffness=1e5), friction=0.5)
    sim.reset(pose(z=0.1 - GRAVITY / 1e5), np.array([0.5, 0, 0, 0, 5.0, 0]))
    for _ in range(1000):
        report = sim.step(NO_EFFORT)
    assert sim.q[0] == pytest.approx(0.5, rel=1e-3)
    assert np.abs(report.record.memory[:, :3]).max() <= 1e-6  # the anchor went 0.5 m


@pytest.mark.parametrize('name', ['go1', 'solo12'])
def test_a_standing_robot_does_not_creep(name):
    robot = load_robot(name)
    sims = {law: Simulator(robot, Compliant(friction_law=law)) for law in ('anchored', 'tanh')}
    drift = {}
    for law, sim in sims.items():
        reports = stand(sim, 4000)
        # rolling as the legs settle is no creep: what counts is how far the contact points slip
        slipped = 1e-3 * sum(report.contacts.velocity for report in reports[3000:])
        drift[law] = np.abs(slipped[:, :2]).max()
        if law == 'anchored':
            assert reports[-1].contacts.slip_speed.max() <= 1e-7
            assert all(report.solver.converged for report in reports)
            assert (reports[-1].contacts.normal_force > 0.0).all()
    assert drift['anchored'] <= 1e-7
    assert drift['tanh'] > 10 * drift['anchored']


def test_snapshot_and_restore_keep_the_anchor_to_the_bit():
    robot = load_robot('go1')
    sim = Simulator(robot, Compliant(friction_law='anchored'))
    controller = StandingController(sim)
    push = {robot.contact_points[0].frame: [20.0, 5.0, 0, 0, 0, 0]}
    for _ in range(200):
        sim.step(controller(sim), push)
    snapshot = sim.snapshot()
    ends = []
    for _ in range(2):
        for _ in range(100):
            report = sim.step(controller(sim))
        ends.append(report.record.buffer.tobytes())
        assert np.abs(report.record.memory).max() > 1e-6
        sim.contact_model = 'ncp'  # forgets
        sim.step(controller(sim))
        sim.restore(snapshot)
    assert ends[0] == ends[1]


def test_reset_switch_and_lift_off_forget_the_anchor():
    def loaded():
        sim = resting_point()
        for _ in range(50):
            report = sim.step(NO_EFFORT, {'point': [2.0, 0, 0, 0, 0, 0]})
        assert report.record.memory[0, 0] > 1e-5
        return sim

    sim = loaded()
    for _ in range(100):
        report = sim.step(NO_EFFORT, {'point': [0, 0, 12.0, 0, 0, 0]})
    assert report.contacts.gap[0] > 0.0
    assert not report.record.memory.any()
    sim = loaded()
    sim.contact_model = 'sap'
    assert not sim.step(NO_EFFORT).record.memory.any()
    sim.contact_model = anchored()
    sim.contact_model = Compliant(friction_law='tanh', stiffness=STIFFNESS)
    assert not sim.step(NO_EFFORT).record.memory.any()
    sim = loaded()
    sim.reset(sim.q)
    assert not sim._data.memory.any()


@pytest.mark.parametrize('integration', ['implicit', 'explicit'])
def test_the_problem_alone_gives_the_same_impulses(integration, tmp_path):
    model = Compliant(
        friction_law='anchored', stiffness=1e6, dissipation=1.0, integration=integration
    )
    sim = Simulator(load_robot('go1'), model)
    controller = StandingController(sim)
    for k in range(50):
        guess = sim.step(controller(sim)).record.impulse
        report = sim.step(controller(sim))
        rows = report.active_rows
        path = tmp_path / f'{k}.npz'  # to overwrite a file may wait for the disk
        report.problem.save(path)
        problem = ContactProblem.load(path)
        solution = model.solve(problem, guess[rows])
        stepped = report.record.impulse[rows]
        # a step finds implicit springs in joint velocities, the problem alone in rows
        most = 1e-11 * np.abs(stepped).max() if integration == 'implicit' else 0.0
        assert np.abs(solution.impulse - stepped).max() <= most
    assert np.abs(problem.memory).max() > 0.0


def test_turning_the_scene_turns_the_anchor():
    def run(yaw):
        sim = Simulator(load_robot('go1'), Compliant(friction_law='anchored'))
        q, v = sim.q.copy(), np.zeros(sim.robot.nv)
        q[3:7] = [0, 0, np.sin(yaw / 2), np.cos(yaw / 2)]
        v[:2] = 0.3, 0.1
        sim.reset(q, v)
        return stand(sim, 200)[-1].contacts

    plain, turned = run(0.0), run(1.0)
    c, s = np.cos(1.0), np.sin(1.0)
    back = turned.force @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    assert back == pytest.approx(plain.force, rel=1e-6, abs=1e-6)
