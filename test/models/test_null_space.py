"""null_space: hard stance, its equality with ncp while it is physical, and its honesty after."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from problems import random_problem
from robots import StandingController, cube, pose, rigid_body, stand

from contact_sim import (
    InvalidInput,
    NullSpace,
    Simulator,
    UnknownName,
    analyse_support,
    load_robot,
    support,
)
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.step._problem import ContactProblem, SolverStatus
from contact_sim.step._workspace import SLIP, STICK

GRAVITY = 9.81
ROBOTS = {
    name: load_robot(name).with_position_limits(())  # rows of contacts and friction only
    for name in ('go1', 'anymal_b', 'solo12', 'solo8')
}
NO_EFFORT = np.zeros(0)


def pushed_pair(name, friction, direction, ramp, steps):
    """Yield (report of null_space, report of ncp, distance of the states) under a growing push."""
    robot = ROBOTS[name]
    sims = [Simulator(robot, model, friction=friction) for model in ('null_space', 'ncp')]
    controllers = [StandingController(sim) for sim in sims]
    for k in range(steps):
        force = k * ramp * robot.total_mass * GRAVITY * np.asarray(direction, dtype=float)
        push = {robot.base_frame: [*force, 0.0, 0.0, 0.0]}
        reports = [
            sim.step(control(sim), push) for sim, control in zip(sims, controllers, strict=True)
        ]
        yield *reports, np.abs(sims[0].q - sims[1].q).max()


@pytest.mark.parametrize(
    ('friction', 'direction'),
    [
        (0.6, (0.3, 1.0, 0.0)),  # slips sideways
        (5.0, (0.0, 1.0, 0.1)),  # tips over: a foot carries ever less, and slips before it lifts
    ],
)
@pytest.mark.parametrize('name', ['anymal_b', 'solo12'])
def test_equals_ncp_until_the_stance_is_no_longer_physical(name, friction, direction):
    steps = pushed_pair(name, friction, direction, 2e-3, 1000)
    for ours, theirs, distance in steps:
        if not ours.solver.physical:
            break
        assert ours.solver.status is SolverStatus.CONVERGED
        assert (theirs.contacts.mode == STICK).all()
        assert distance <= 1e-10
        assert ours.contacts.force == pytest.approx(theirs.contacts.force, abs=1e-5)
    # in the same step ncp gives way; ours has solved its equations and says what is wrong
    assert 0.02 < ours.time < 0.9
    assert not (theirs.contacts.mode == STICK).all()
    assert ours.solver.converged
    assert ours.solver.status is SolverStatus.OUTSIDE_CONE
    # pushed on, the robot would tip over: the ground has to pull
    assert SolverStatus.PULLING in [ours.solver.status for ours, _, _ in steps]


def test_solo8_equals_ncp_while_it_stands():
    """Twelve rows of rank ten: forces differ by those that do nothing, the motion does not."""
    sims = [Simulator(ROBOTS['solo8'], model) for model in ('null_space', 'ncp')]
    for ours, theirs in zip(*(stand(sim, 500) for sim in sims), strict=True):
        assert ours.solver.physical
        assert np.abs(ours.q - theirs.q).max() <= 1e-10


def test_go1_with_dry_friction_equals_ncp_until_it_slips():
    """Settling on its PD, go1 slides a forefoot: that step is flagged, all before are equal."""
    for ours, theirs, distance in pushed_pair('go1', 0.8, (0, 0, 0), 0.0, 400):
        if not ours.solver.physical:
            break
        assert distance <= 1e-10
        assert SLIP not in theirs.contacts.mode
    assert ours.time > 0.05
    assert ours.solver.status is SolverStatus.OUTSIDE_CONE
    assert SLIP in theirs.contacts.mode


@pytest.mark.parametrize('name', ['go1', 'anymal_b'])
def test_joint_friction_obeys_its_boxes(name):
    sim = Simulator(ROBOTS[name], 'null_space')
    controller, ns = StandingController(sim), sim.sizes.ns
    assert ns == (12 if name == 'go1' else 0)
    modes = set()
    for k in range(300):
        record = sim.step(controller(sim) + 3.0 * np.sin(0.05 * k)).record
        p, u = record.impulse[-ns:] if ns else NO_EFFORT, record.u_next[len(record.u_next) - ns :]
        assert (np.abs(p) <= record.upper).all()
        inside = np.abs(p) < record.upper * (1 - 1e-9)
        assert np.abs(u[inside]).max(initial=0.0) <= 1e-8
        assert (u[~inside] * np.sign(p[~inside]) <= 1e-8).all()
        modes |= set(inside.tolist())
    assert modes == ({True, False} if ns else set())


@pytest.mark.parametrize('name', ['anymal_b', 'solo8'])
def test_touch_down_is_the_impulse_transfer(name):
    """theory E12: v⁺ = N_c v⁻ for the feet that meet the ground at once."""
    robot = ROBOTS[name]
    sim = Simulator(robot, 'null_space')
    v = 0.3 * np.random.default_rng(1).standard_normal(robot.nv)
    v[:3], v[3:6] = (0.2, -0.1, -2.0), 0.0
    sim.reset(v=v)
    report = sim.step(np.zeros(robot.n_joints))
    assert (report.contacts.mode == STICK).all()
    held = support.stance_dynamics(robot, report.record.q_start, report.record.v_free, range(4))
    transfer = support.impulse_transfer(replace(held, inertia=report.problem.inertia))
    assert report.record.v_next == pytest.approx(transfer.velocity, abs=1e-9)
    assert report.record.impulse[:12] == pytest.approx(transfer.impulse, abs=1e-9)
    assert transfer.energy_change < -0.1
    assert transfer.energy_change_by_velocity == pytest.approx(transfer.energy_change, rel=1e-9)
    assert transfer.energy_change_by_contact == pytest.approx(transfer.energy_change, rel=1e-9)


def redundant_stances():
    """Reports of solo8 (rank 10 of 12), a cube on four corners (6 of 12) and stretched legs."""
    yield stand(Simulator(ROBOTS['solo8'], 'null_space'), 50)[-1], 10
    box = Simulator(cube(), 'null_space', gravity=[1.0, 0.4, -GRAVITY])
    box.reset(pose(z=0.1, yaw=0.3), np.array([0.5, 0.2, -0.1, 0, 0, 0]))
    yield box.step(NO_EFFORT), 6
    robot = ROBOTS['solo12']
    legs = Simulator(robot, 'null_space')
    q = robot.with_joint_positions(robot.reference_configuration(), np.zeros(12))
    q[2] -= min(legs_gap(legs, q))
    legs.reset(q)
    yield legs.step(np.full(12, 0.2)), 12


def legs_gap(sim, q):
    sim.reset(q)
    return sim.step(np.zeros(sim.robot.n_joints)).record.gap_start


def test_redundant_feet_take_the_least_norm():
    for report, expected in redundant_stances():
        problem = report.problem
        assert np.linalg.matrix_rank(problem.delassus, tol=1e-9) == expected
        least = -np.linalg.pinv(problem.delassus, rcond=1e-10, hermitian=True) @ problem.g
        impulse = report.record.impulse[report.active_rows]
        assert impulse == pytest.approx(least, abs=1e-9 * np.abs(least).max())
        assert np.abs(problem.delassus @ impulse + problem.g).max() <= 1e-9
        assert report.solver.converged


@pytest.mark.parametrize('seed', range(6))
def test_random_problems_are_held_and_the_explicit_face_agrees(seed):
    problem = random_problem(seed, contacts=4)
    object.__setattr__(problem, 'free_velocity', problem.free_velocity - 1.0)
    solution = NullSpace().solve(problem)
    w = (problem.delassus @ solution.impulse + problem.g).reshape(-1, 3)
    held = np.abs(solution.impulse.reshape(-1, 3)).max(axis=1) > 0.0
    assert held.any()
    assert np.abs(w[held]).max() <= 1e-9
    assert (w[~held, 2] >= -1e-9).all()


def held_with_intervals(J, free, bias, lower, upper):
    """A problem of feet, all held, and interval rows, with M = 1 and v_f = `free`, J (n, nv)."""
    n, nv, ns = len(J), len(free), len(lower)
    nc = (n - ns) // 3
    return ContactProblem(
        delassus=J @ J.T, free_velocity=J @ free, bias=bias, friction=np.full(nc, 0.5),
        lower=np.array(lower), upper=np.array(upper), gap=np.full(nc, -1e-3),
        start_velocity=np.zeros(n), time_step=1e-3, inertia=np.eye(nv), jacobian=J,
        velocity=np.zeros(nv), free_motion=free,
    )  # fmt: skip


def test_joints_that_held_feet_lock_get_no_force_or_say_that_they_contradict():
    # two feet hold all six freedoms; friction at rest, friction that slides, a limit kept and one
    # that the feet break
    rng = np.random.default_rng(3)
    J = rng.normal(size=(10, 6))
    J[:6] = np.linalg.qr(J[:6])[0]
    free = -J[:6].T @ np.full(6, 1.0)  # both feet close
    bias = np.zeros(10)
    bias[7:] = 0.2, 0.3, 0.0
    bounds = [-2.0, -2.0, 0.0, 0.0], [2.0, 2.0, np.inf, np.inf]
    solution = NullSpace().solve(held_with_intervals(J, free, bias, *bounds))
    assert solution.solver.status is not SolverStatus.INCONSISTENT
    assert solution.impulse[6:] == pytest.approx([0.0, -2.0, 0.0, 0.0], abs=1e-12)
    assert np.abs(free + J.T @ solution.impulse).max() <= 1e-12
    bias[9] = -0.1
    solution = NullSpace().solve(held_with_intervals(J, free, bias, *bounds))
    assert solution.solver.status is SolverStatus.INCONSISTENT
    assert solution.impulse[6:] == pytest.approx([0.0, -2.0, 0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize('seed', range(20))
def test_intervals_obey_their_law_while_redundant_feet_are_held(seed):
    # 15 rows of feet of rank 9 in 14 freedoms, 8 rows of friction and limits
    rng = np.random.default_rng(seed)
    J = np.vstack([rng.normal(size=(15, 9)) @ rng.normal(size=(9, 14)), rng.normal(size=(8, 14))])
    motion = rng.normal(size=14)  # what closes all feet: a motion that J can stop
    motion -= 10.0 * np.linalg.pinv(J[2:15:3]) @ (np.abs(J[2:15:3] @ motion) + 1.0)
    lower = np.array([-0.5] * 5 + [0.0] * 3)
    upper = np.array([0.5] * 5 + [np.inf] * 3)
    problem = held_with_intervals(J, motion, np.zeros(23), lower, upper)
    solution = NullSpace().solve(problem)
    w, impulse = problem.delassus @ solution.impulse + problem.g, solution.impulse[15:]
    assert solution.solver.converged
    assert np.abs(w[:15]).max() <= 1e-9
    inside = (impulse > lower) & (impulse < upper)
    assert (impulse >= lower).all()
    assert (impulse <= upper).all()
    assert np.abs(w[15:][inside]).max(initial=0.0) <= 1e-8
    assert (w[15:][impulse == lower] >= -1e-9).all()
    assert (w[15:][impulse == upper] <= 1e-9).all()


def test_solving_a_reported_problem_gives_the_same_bits():
    sim = Simulator(ROBOTS['go1'], 'null_space')
    controller, guess = StandingController(sim), None
    for _ in range(50):
        report = sim.step(controller(sim))
        rows = report.active_rows
        if guess is not None:
            again = sim.model.solve(report.problem, guess[rows])
            assert np.array_equal(again.impulse, report.record.impulse[rows])
            assert again.solver == report.solver
        guess = report.record.impulse


def test_nan_in_a_problem_is_a_status():
    problem = random_problem(0)
    object.__setattr__(problem, 'free_velocity', problem.free_velocity * np.nan)
    solution = NullSpace().solve(problem)
    assert solution.solver.status is SolverStatus.NONFINITE
    assert not solution.impulse.any()


# -------------------------------------------------------------------- which feet are held


def test_given_feet_are_held_wherever_they_are():
    robot = ROBOTS['anymal_b']
    sim = Simulator(robot, NullSpace(support='given', feet=['LF_FOOT', 3]))
    q = sim.q.copy()
    q[2] += 0.05
    sim.reset(q)
    start = sim.step(np.zeros(12)).record
    for _ in range(100):
        report = sim.step(np.zeros(12))
    held = np.array([True, False, False, True])
    assert report.contacts.gap[held] == pytest.approx(0.05, abs=3e-4)  # O(h²) a step
    assert start.gap_start[: len(held)] == pytest.approx(0.05, abs=1e-9)
    assert (report.contacts.mode == np.where(held, STICK, 0)).all()
    assert report.residuals.force_at_distance > 0.0
    assert np.abs(report.contacts.force[~held]).max() == 0.0
    assert np.abs(report.contacts.force[held, 2]).min() > 1.0


def test_a_foot_that_is_not_given_sinks_and_is_flagged():
    sim = Simulator(ROBOTS['anymal_b'], NullSpace(support='given', feet=('LF_FOOT', 'RF_FOOT')))
    report = sim.step(np.zeros(12))
    assert report.solver.status is SolverStatus.SINKING
    assert report.solver.converged
    for _ in range(100):
        report = sim.step(np.zeros(12))
    assert report.residuals.penetration > 1e-3


def test_nothing_given_is_flight():
    sim = Simulator(ROBOTS['anymal_b'], NullSpace(support='given'))
    q = sim.q.copy()
    q[2] += 1.0
    sim.reset(q)
    for _ in range(100):
        report = sim.step(np.zeros(12))
    assert not report.contacts.force.any()
    model = sim.robot.pinocchio_model
    data = model.createData()
    pin.centerOfMass(model, data, sim.q, sim.v)
    assert data.vcom[0][2] == pytest.approx(-GRAVITY * 0.1, rel=1e-3)


def test_the_given_set_changes_live_and_keeps_the_state():
    robot = ROBOTS['anymal_b']
    sim = Simulator(robot, NullSpace(support='given', feet=range(4)))
    stand(sim, 100)
    before = sim.snapshot()
    sim.contact_model = NullSpace(support='given', feet=[0, 3])
    report = sim.step(np.zeros(12))
    assert (report.contacts.mode == [STICK, 0, 0, STICK]).all()
    sim.restore(before)
    assert (sim.step(np.zeros(12)).contacts.mode == STICK).all()


def test_feet_enter_early_within_the_touch_gap_and_keep_their_height():
    robot = ROBOTS['anymal_b']
    for touch_gap, held in ((1e-3, True), (0.0, False)):
        sim = Simulator(robot, NullSpace(touch_gap=touch_gap))
        q = sim.q.copy()
        q[2] += 5e-4
        sim.reset(q)
        report = stand(sim, 1)[0]
        assert (report.contacts.mode == (STICK if held else 0)).all()
        if held:
            assert stand(sim, 200)[-1].contacts.gap == pytest.approx(5e-4, abs=1e-6)


def lifted(model, steps=400):
    """Anymal_b lifted by a force of 1.3 weights for 0.1 s, then let go.

    Its joints share one stiffness: with stiffer hips it rocks on landing, and a foot that was let
    go and sank in the same step stays held, at a pull of up to 2 N (status PULLING).
    """
    robot = ROBOTS['anymal_b']
    sim = Simulator(robot, model, friction=1e4)
    stand(sim, 100)
    controller, reports = StandingController(sim), []
    controller.stiffness[:] = 394.0
    for k in range(steps):
        lift = 1.3 * robot.total_mass * GRAVITY if k < 100 else 0.0
        reports.append(sim.step(controller(sim), {robot.base_frame: [0, 0, lift, 0, 0, 0]}))
    return sim, reports


def test_without_release_the_ground_pulls_and_says_so():
    _, reports = lifted('null_space', steps=100)
    assert any(report.solver.status is SolverStatus.PULLING for report in reports)
    assert max(report.contacts.gap.max() for report in reports) <= 1e-4


def test_with_release_the_ground_never_pulls():
    """Held feet press, free feet do not sink in: Signorini's law, with friction without end."""
    _, reports = lifted(NullSpace(release=True))
    assert max(report.contacts.gap.min() for report in reports) > 5e-3  # it did fly
    assert (reports[-1].contacts.mode == STICK).all()  # and landed
    for report in reports:
        problem, impulse = report.problem, report.record.impulse[report.active_rows]
        w = problem.delassus @ impulse + problem.g
        assert (impulse[2::3] >= -1e-9).all()
        assert (w[2::3] >= -1e-9).all()
        assert (np.abs(impulse[2::3] * w[2::3]) <= 1e-9).all()
        assert report.residuals.penetration <= 1e-4
        assert report.solver.physical


@pytest.mark.parametrize(('fall', 'feet'), [(0.1, 1), (1.0, 2)])
def test_a_free_foot_is_held_where_the_stop_of_another_closes_it(fall, feet):
    """A rod of 1 m lands on one end; the impulse there lowers the other by half its speed."""
    gap, rise = 1e-4, 0.05
    ends = [([x, 0.0, 0.0], 0.0) for x in (-0.5, 0.5)]
    rod = rigid_body('rod', 1.0, np.diag([1e-3, 1.0, 1.0]) / 12, ends)
    half = np.arcsin(gap) / 2
    q = np.array([0.0, 0.0, gap / 2, 0.0, -np.sin(half), 0.0, np.cos(half)])
    v = np.array([0.0, 0.0, (rise - fall) / 2, 0.0, -(rise + fall), 0.0])
    impulses = []
    for model in ('null_space', 'ncp'):
        sim = Simulator(rod, model, friction=0.5)
        sim.reset(q, v)
        report = sim.step(NO_EFFORT)
        impulses.append(report.record.impulse[[2, 5]])
        assert len(report.active_rows) == 3 * feet
        tilt = pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix()[2, 0]
        assert sim.q[2] - abs(tilt) / 2 >= -1e-6
    # λ_n = G⁻¹ Δu: the first end stops, the second rises on, or closes its gap in the step
    h = sim.time_step
    stop, close = fall + GRAVITY * h, GRAVITY * h - rise - gap / h
    G = np.array([[4.0, -2.0], [-2.0, 4.0]])
    expected = np.linalg.solve(G, [stop, close]) if feet == 2 else [stop / 4.0, 0.0]
    for impulse in impulses:  # null_space and ncp share what acts along the rod in other ways
        assert impulse == pytest.approx(expected, abs=1e-4)


def test_release_force_bears_a_pull():
    robot = ROBOTS['anymal_b']
    strong = NullSpace(release=True, release_force=robot.total_mass * GRAVITY)
    _, reports = lifted(strong, steps=100)
    assert max(report.contacts.gap.max() for report in reports) <= 1e-4
    assert any(report.solver.status is SolverStatus.PULLING for report in reports)


def test_a_released_foot_must_clear_the_touch_gap_before_it_is_caught_early():
    sim, reports = lifted(NullSpace(release=True, touch_gap=2e-3), steps=100)
    assert max(report.contacts.gap.min() for report in reports) > 2e-3
    gaps = np.array([report.contacts.gap.min() for report in reports])
    assert (np.diff(gaps[gaps > 1e-4]) > 0.0).all()  # not caught on the way up
    for _ in range(200):
        report = sim.step(np.zeros(12))
        if (report.contacts.mode == STICK).any():
            break
    caught = report.contacts.mode == STICK
    assert (report.contacts.gap[caught] > 1e-4).all()  # on the way down, before it touches


def test_a_run_with_changing_supports_is_repeated_to_the_bit(tmp_path):
    sim = Simulator(ROBOTS['anymal_b'], 'null_space')
    with Recorder(sim, tmp_path / 'run.npz'):
        stand(sim, 30)
        for feet in ([0, 3], [1, 2], range(4)):
            sim.contact_model = NullSpace(support='given', feet=feet)
            stand(sim, 30)
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.equal
    assert outcome.steps == 120


# -------------------------------------------------------------------- stabilisation, impacts


def test_stabilisation_of_gaps():
    robot = ROBOTS['anymal_b']
    for stabilisation, left in (('baumgarte', 0.8**20), ('velocity', 1.0)):
        sim = Simulator(robot, NullSpace(stabilisation=stabilisation))
        stand(sim, 5)
        q, v = sim.q.copy(), sim.v.copy()
        q[2] -= 1e-3
        sim.reset(q, v)
        first = sim.step(StandingController(sim)(sim)).contacts.gap  # touch-down takes a share too
        report = stand(sim, 20)[-1]
        assert report.contacts.gap == pytest.approx(left * first, abs=2e-6)


def test_restitution_has_no_place():
    robot = ROBOTS['anymal_b']
    sims = [Simulator(robot, 'null_space', restitution=e) for e in (0.0, 0.7)]
    for sim in sims:
        v = np.zeros(robot.nv)
        v[2] = -1.0
        sim.reset(v=v)
        report = sim.step(np.zeros(12))
        assert np.abs(report.contacts.velocity).max() <= 1e-9
    assert np.array_equal(sims[0].q, sims[1].q)


@pytest.mark.parametrize(
    ('parameters', 'error', 'words'),
    [
        ({'support': 'given', 'feet': ['tail']}, UnknownName, "'tail'.*LF_FOOT"),
        ({'support': 'given', 'feet': [4]}, UnknownName, "'4'"),
        ({'support': 'given', 'feet': [0, 'LF_FOOT']}, InvalidInput, 'LF_FOOT is listed twice'),
        ({'feet': 'LF_FOOT'}, InvalidInput, 'NullSpaceParameters.feet.*expected a list'),
        ({'support': 'all'}, InvalidInput, 'detected, given'),
        ({'touch_gap': -1.0}, InvalidInput, 'touch_gap'),
        ({'release_force': np.nan}, InvalidInput, 'release_force'),
    ],
)
def test_bad_parameters_change_nothing(parameters, error, words):
    sim = Simulator(ROBOTS['anymal_b'], 'ncp')
    with pytest.raises(error, match=words):
        sim.contact_model = NullSpace(**parameters)
    assert sim.contact_model == 'ncp'
    assert stand(sim, 2)[-1].solver.converged


def test_the_step_is_that_of_the_support_consistent_dynamics():
    """theory 2.5: v̇ of a step is that of E10 up to the O(h) of damping and of rolling."""
    robot = ROBOTS['anymal_b']
    sim = Simulator(robot, 'null_space', time_step=1e-6)
    held = stand(sim, 5)[-1]
    effort = 5.0 * np.ones(12)
    report = sim.step(effort)
    analysis = analyse_support(robot, report.record.q_start, range(4))
    dynamics = replace(analysis.stance, velocity=report.record.v_start)
    tau = support.generalized_force(robot, effort)
    expected = support.acceleration(dynamics, tau)
    assert held.solver.converged
    assert report.acceleration == pytest.approx(expected, abs=1e-3 * np.abs(expected).max())
    force = support.constraint_force(dynamics, tau).reshape(-1, 3)
    assert report.contacts.force == pytest.approx(force, rel=1e-3, abs=0.05)
