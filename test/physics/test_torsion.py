"""Moments of contacts: torsional and rolling friction against closed forms (theory 4.7)."""

import numpy as np
import pinocchio as pin
import pytest
from robots import ball, cube, rigid_body

from contact_sim import ContactPoint, RobotModel, Simulator, Worlds, load_robot
from contact_sim.collision._terrain import InclinedPlane, Planes, SphereGround
from contact_sim.contact_models import Anitescu, Lcp, Sap, Todorov
from contact_sim.errors import InvalidInput
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.simulation._resuming import resume
from contact_sim.step import SolverStatus

GRAVITY = 9.81
MASS, RADIUS, SOLID = 2.0, 0.1, 0.4
INERTIA = SOLID * MASS * RADIUS**2
TORSIONAL, ROLLING = 0.005, 0.004
RIGID = ('ncp', 'anitescu', 'lcp', 'null_space')
SOFT = ('todorov', 'sap', 'compliant')


def moving_ball(model, velocity=(0.0,) * 6, robot=None, settle=0.0, **settings):
    """Return a simulator with a ball that settles and then moves, `velocity` in world axes."""
    coefficients = {'torsional_friction': TORSIONAL, 'rolling_friction': ROLLING}
    sim = Simulator(robot or ball(MASS, RADIUS, SOLID), model, **(coefficients | settings))
    for _ in range(round(settle / sim.time_step)):
        sim.step([])
    buffer, start = sim.snapshot(), sim.sizes.layout['v'][0]
    turn = pin.Quaternion(sim.q[3:7]).matrix().T
    v = np.array(velocity, dtype=float).reshape(2, 3) @ turn.T
    buffer.buffer[start : start + 6] += v.ravel()
    sim.restore(buffer)
    return sim


def world_velocity(report):
    """Return velocity and angular velocity of a free body in world axes, (6,)."""
    turn = pin.Quaternion(report.q[3:7]).matrix()
    return np.concatenate([turn @ report.v[:3], turn @ report.v[3:]])


def run(sim, steps):
    """Return the reports of some steps and the velocities in world axes, (steps, 6)."""
    reports = [sim.step([]) for _ in range(steps)]
    return reports, np.array([world_velocity(report) for report in reports])


# --- Torsional friction


@pytest.mark.parametrize('h', [1e-3, 4e-3])
@pytest.mark.parametrize('model', RIGID)
def test_a_spinning_ball_slows_down_linearly_and_stops(model, h):
    """ω = ω₀ − r_s m g t/I, then 0; the moment is −r_s m g."""
    spin, rate = 3.0, TORSIONAL * MASS * GRAVITY / INERTIA
    sim = moving_ball(model, (0, 0, 0, 0, 0, spin), time_step=h)
    reports, velocity = run(sim, round(0.4 / h))
    time = h * np.arange(1, len(reports) + 1)
    expected = np.maximum(spin - rate * time, 0.0)
    assert np.abs(velocity[:, 5] - expected).max() < 1e-9 * spin
    assert np.abs(velocity[:, :5]).max() < 1e-9
    moment = reports[len(reports) // 4].contacts.moment[0]
    assert moment == pytest.approx([0.0, 0.0, -TORSIONAL * MASS * GRAVITY], rel=1e-9, abs=1e-12)
    # of the link as well: its torque about the centre of the ball, over which the force acts
    assert reports[0].links.torque[0, 2] == pytest.approx(moment[2], rel=1e-9)
    assert abs(reports[-1].contacts.moment[0, 2]) < 1e-9
    assert all(report.solver.status is SolverStatus.CONVERGED for report in reports)


@pytest.mark.parametrize(
    'model',
    [*SOFT, Todorov(cone='elliptic'), Todorov(form='2014'), Sap(approximation='sap')],
    ids=[*SOFT, 'elliptic', '2014', 'sap_original'],
)
def test_a_spinning_ball_slows_down_under_soft_laws(model):
    """The same rate: at rest the normal force is m g under every law.

    The inertia of 2014 is 1 + b times as large, and damped by b M v, b = 0.01. Under todorov a
    slow spin only fades, see `test_moments_are_those_of_mujoco`.
    """
    spin, h = 3.0, 1e-3
    b = getattr(model, 'damping_inertia', 0.0)
    sim = moving_ball(model, (0, 0, 0, 0, 0, spin), settle=0.5, time_step=h)
    _, velocity = run(sim, 2000)
    rate = (velocity[40, 5] - velocity[10, 5]) / (30 * h)
    expected = -(TORSIONAL * MASS * GRAVITY / INERTIA + b * velocity[25, 5]) / (1.0 + b)
    assert rate == pytest.approx(expected, rel=1e-3)
    assert np.abs(velocity[-1]).max() < 2e-3


def pivot(mass=2.0, inertia=0.3):
    """Return a foot of one point under a mass that moves along, and turns about, the vertical."""
    model = pin.Model()
    slide = model.addJoint(0, pin.JointModelPZ(), pin.SE3.Identity(), 'slide')
    yaw = model.addJoint(slide, pin.JointModelRZ(), pin.SE3.Identity(), 'yaw')
    body = pin.Inertia(mass, np.zeros(3), inertia * np.eye(3))
    model.appendBodyToJoint(yaw, body, pin.SE3.Identity())
    model.addBodyFrame('foot', yaw, pin.SE3.Identity(), 0)
    points = [ContactPoint('foot', 'foot', 'yaw', np.zeros(3), 0.0)]
    return RobotModel.from_pinocchio(model, points, actuated_joints=('yaw',), name='pivot')


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu'])
def test_a_foot_of_one_point_turns_only_above_its_bound(model):
    """|τ| ≤ r_s m g holds; beyond, ω̇ = (τ − r_s m g)/I. Its body has no axis to roll about."""
    mass, inertia = 2.0, 0.3
    bound = TORSIONAL * mass * GRAVITY
    sim = Simulator(
        pivot(mass, inertia), model, torsional_friction=TORSIONAL, rolling_friction=ROLLING
    )
    for torque in (0.999 * bound, -0.999 * bound):
        for _ in range(50):
            report = sim.step([torque])
        assert abs(report.v[1]) < 1e-12
        assert report.contacts.moment[0, 2] == pytest.approx(-torque, rel=1e-9)
    for _ in range(50):
        report = sim.step([1.5 * bound])
    assert report.v[1] == pytest.approx(0.5 * bound / inertia * 0.05, rel=1e-9)
    assert report.contacts.moment[0, 2] == pytest.approx(-bound, rel=1e-9)


@pytest.mark.parametrize('model', ['ncp', 'lcp'])
def test_the_bound_follows_a_normal_force_that_moves_with_the_step(model):
    """A spinning ball pressed by 10 sin(20 t) N: I ω̇ = −r_s (m g + F) in every step."""
    sim = moving_ball(model, (0, 0, 0, 0, 0, 20.0))
    before = 20.0
    for k in range(100):
        force = 10.0 * np.sin(20.0 * k * 1e-3)
        report = sim.step([], {'body': [0.0, 0.0, -force, 0.0, 0.0, 0.0]})
        spin = world_velocity(report)[5]
        load = MASS * GRAVITY + force
        assert (before - spin) * INERTIA == pytest.approx(1e-3 * TORSIONAL * load, rel=1e-8)
        before = spin


# --- Rolling friction


@pytest.mark.parametrize('heading', [0.0, 0.3, 0.25 * np.pi, 2.0])
@pytest.mark.parametrize('model', RIGID)
def test_a_rolling_ball_slows_down_and_stops(model, heading):
    """v̇ = −(r_r/r) g/(1 + 2/5), the same in every direction.

    With F of Coulomb friction: m v̇ = F and I v̇/r = −r_r m g − F r.
    """
    if model == 'null_space':
        heading = 0.0  # a foot that is held rolls, too
    speed, h = 0.5, 1e-3
    along = np.array([np.cos(heading), np.sin(heading)])
    across = np.array([-along[1], along[0]])
    rate = ROLLING / RADIUS * GRAVITY / (1.0 + SOLID)
    spin = across * speed / RADIUS
    sim = moving_ball(model, (*(speed * along), 0.0, *spin, 0.0), time_step=h)
    reports, velocity = run(sim, round(1.2 * speed / rate / h))
    time = h * np.arange(1, len(reports) + 1)
    expected = np.maximum(speed - rate * time, 0.0)
    assert np.abs(velocity[:, :2] @ along - expected).max() < 1e-8
    assert np.abs(velocity[:, :2] @ across).max() < 1e-8
    assert np.abs(velocity[-1]).max() < 1e-8
    moment = reports[10].contacts.moment[0]
    assert moment[:2] @ across == pytest.approx(-ROLLING * MASS * GRAVITY, rel=1e-9)
    assert max(report.residuals.ncp for report in reports) < 1e-9


@pytest.mark.parametrize('model', SOFT)
def test_a_rolling_ball_slows_down_under_soft_laws(model):
    speed, h = 0.5, 1e-3
    sim = moving_ball(model, (speed, 0.0, 0.0, 0.0, speed / RADIUS, 0.0), settle=0.5, time_step=h)
    _, velocity = run(sim, 600)
    rate = (velocity[500, 0] - velocity[100, 0]) / (400 * h)
    assert rate == pytest.approx(-ROLLING / RADIUS * GRAVITY / (1.0 + SOLID), rel=5e-3)


@pytest.mark.parametrize('share', [0.98, 1.02])
@pytest.mark.parametrize('model', ['ncp', 'anitescu', 'lcp', 'sap', 'compliant'])
def test_a_ball_on_a_slope_rolls_only_if_it_is_steep_enough(model, share):
    """At rest while tan α ≤ r_r/r, else v̇ = (g sin α − (r_r/r) g cos α)/(1 + 2/5).

    Soft laws creep below it, and above it the motion needs time to reach the bound. todorov creeps
    as MuJoCo does, see below.
    """
    rigid = model in RIGID
    if not rigid:
        share = 1.0 + 10.0 * (share - 1.0)
    slope = np.arctan(share * ROLLING / RADIUS)
    sim = moving_ball(model, terrain=InclinedPlane(slope), torsional_friction=0.0)
    reports, velocity = run(sim, 1000)
    speed = np.linalg.norm(velocity[:, :3], axis=1)
    excess = np.sin(slope) - ROLLING / RADIUS * np.cos(slope)
    rate = max(GRAVITY * excess, 0.0) / (1.0 + SOLID)
    measured = (speed[-1] - speed[499]) / 0.5
    assert measured == pytest.approx(
        rate, rel=1e-7 if rigid else 0.03, abs=1e-9 if rigid else 2e-4
    )
    if share < 1.0:
        assert speed[-1] < (1e-10 if rigid else 2e-4)
    assert reports[-1].solver.converged


EGG = np.diag([0.004, 0.009, 0.006])
"""Inertia of a body whose rolling is easier about one axis than about another [kg m²]."""


@pytest.mark.parametrize('friction', [0.0, 0.8])
@pytest.mark.parametrize('model', ['ncp', 'anitescu', 'lcp'])
def test_rolling_friction_is_a_disc_against_the_motion(model, friction):
    """λ_r = −r_r λ_n ω/|ω| along the ground, and λ_s = −r_s λ_n, for unequal inertias as well."""
    robot = rigid_body('egg', MASS, EGG, [([0.0, 0.0, 0.0], RADIUS)])
    sim = moving_ball(
        model, (0, 0, 0, 3.0, 5.0, 2.0), robot, friction=friction, torsional_friction=0.02,
        rolling_friction=0.03,
    )  # fmt: skip
    reports, velocity = run(sim, 60)
    for report, (*_, x, y, z) in zip(reports, velocity, strict=True):
        load, moment = report.contacts.normal_force[0], report.contacts.moment[0]
        expected = -0.03 * load * np.array([x, y]) / np.hypot(x, y)
        assert moment[:2] == pytest.approx(expected, abs=1e-8 * load)
        if abs(z) > 1e-6:
            assert moment[2] == pytest.approx(-0.02 * load * np.sign(z), abs=1e-8 * load)
        assert abs(moment[2]) <= 0.02 * load * (1.0 + 1e-8)
    assert min(np.hypot(*v[3:5]) for v in velocity) > 0.1  # it rolls all the time


def test_a_ball_held_in_a_corner_of_the_box_of_bounds_still_rolls():
    """A moment on both axes at once is bounded by the disc, not by a box around it."""
    bound = ROLLING * MASS * GRAVITY
    sim = moving_ball('ncp', friction=1.0)
    for angle in np.linspace(0.0, np.pi, 7):
        for share, moves in ((0.99, False), (1.01, True)):
            sim.reset()
            torque = share * bound * np.array([np.cos(angle), np.sin(angle), 0.0])
            for _ in range(20):
                report = sim.step([], {'body': [0.0, 0.0, 0.0, *torque]})
            speed = np.linalg.norm(report.v[3:])
            expected = 0.01 * bound / (INERTIA + MASS * RADIUS**2) * 0.02
            assert speed == pytest.approx(expected if moves else 0.0, rel=1e-6, abs=1e-10)


# --- MuJoCo: condim 6, friction (μ, r_s, r_r)


class MujocoBall:
    """The ball in MuJoCo, on a plane that is tilted about y by its gravity."""

    def __init__(self, cone, slope=0.0):
        self.mujoco = mujoco = pytest.importorskip('mujoco', reason='MuJoCo is not installed')
        contact = f'condim="6" friction="0.8 {TORSIONAL} {ROLLING}"'
        inertia = ' '.join([str(INERTIA)] * 3)
        self.model = mujoco.MjModel.from_xml_string(f'''
            <mujoco>
              <option timestep="0.001" cone="{cone}" iterations="100" tolerance="0"
                gravity="{GRAVITY * np.sin(slope)} 0 {-GRAVITY * np.cos(slope)}"/>
              <worldbody>
                <geom type="plane" size="5 5 .1" {contact}/>
                <body pos="0 0 {RADIUS}">
                  <freejoint/>
                  <inertial pos="0 0 0" mass="{MASS}" diaginertia="{inertia}"/>
                  <geom type="sphere" size="{RADIUS}" {contact}/>
                </body>
              </worldbody>
            </mujoco>''')
        self.data = mujoco.MjData(self.model)

    def run(self, steps):
        """Return the velocities in world axes, (steps, 6)."""
        rows, turn = [], np.zeros(9)
        for _ in range(steps):
            self.mujoco.mj_step(self.model, self.data)
            self.mujoco.mju_quat2Mat(turn, self.data.qpos[3:7])
            spin = turn.reshape(3, 3) @ self.data.qvel[3:]
            rows.append(np.concatenate([self.data.qvel[:3], spin]))
        return np.array(rows)


def test_moments_are_those_of_mujoco():
    """Under an elliptic cone, where nothing is at a bound: the same creep down a slope.

    At the bounds MuJoCo has one cone for force and moments together, which presses more. The spin
    then slows at the same rate, and fades in the same way.
    """
    elliptic = Todorov(cone='elliptic')
    slope = np.arctan(0.5 * ROLLING / RADIUS)
    creep = MujocoBall('elliptic', slope).run(1000)
    sim = moving_ball(elliptic, gravity=(GRAVITY * np.sin(slope), 0.0, -GRAVITY * np.cos(slope)))
    _, velocity = run(sim, 1000)
    assert creep[-1, 0] > 0.01
    assert velocity[50:] == pytest.approx(creep[50:], rel=1e-6, abs=1e-9)
    peer, spin = MujocoBall('elliptic'), (0, 0, 0, 0, 0, 3.0)
    peer.run(500)
    peer.data.qvel[5] = 3.0
    spins = peer.run(600)[:, 5]
    _, velocity = run(moving_ball(elliptic, spin, settle=0.5), 600)
    assert np.abs(velocity[:, 5] - spins).max() < 0.01


# --- Laws of all contacts with moments


@pytest.mark.parametrize(
    'model',
    ['ncp', 'anitescu', 'lcp', Anitescu(sides=8), Lcp(friction_law='box')],
    ids=['ncp', 'anitescu', 'lcp', 'anitescu_8', 'lcp_box'],
)
def test_moments_take_energy_from_a_tumbling_cube(model):
    """Without restitution T(v⁺) − T(v_f) ≤ −λᵀ b in every step, and it ends at rest."""
    sim = Simulator(cube(), model, torsional_friction=0.01, rolling_friction=0.01)
    q, v = sim.q.copy(), np.array([1.0, 0.4, 0.0, 3.0, -5.0, 8.0])
    q[2] += 0.1
    sim.reset(q, v)
    loaded = failed = 0
    for _ in range(1500):
        report = sim.step([])
        residuals = report.residuals
        assert residuals.dissipated <= residuals.bias_work + 1e-12
        assert residuals.momentum < 1e-10
        failed += not report.solver.converged
        loaded += np.abs(report.contacts.moment).max() > 0.0
    # boxes alternate with normal forces, which does not always end, with or without moments
    boxes = isinstance(model, Lcp)
    assert failed <= (5 if boxes else 0)
    assert loaded > 500
    assert np.abs(report.v).max() < 1e-8


def test_the_judge_measures_the_bounds_of_the_moments():
    """Residuals follow from coefficients and normal impulses of the step, not from its bounds."""
    sim = moving_ball('ncp', (0, 0, 0, 0, 0, 3.0))
    good, bad = sim.step([]), sim.step([])
    assert good.residuals.ncp < 1e-12
    bad.record.torsional_friction[:] *= 0.5
    excess = 0.5 * TORSIONAL * 1e-3 * MASS * GRAVITY
    assert bad.residuals.ncp == pytest.approx(excess, rel=1e-6)
    assert bad.residuals.interval == pytest.approx(excess, rel=1e-6)


def test_the_energy_balance_counts_moments_as_contact():
    """ΔE of a ball that spins is the work of its moment, −r_s m g ω h."""
    sim = moving_ball('ncp', (0, 0, 0, 0, 0, 3.0))
    report = sim.step([])
    balance = report.residuals.energy_balance
    mean = 0.5 * (3.0 + world_velocity(report)[5])
    work = -TORSIONAL * MASS * GRAVITY * mean * 1e-3
    assert balance.contact == pytest.approx(work, rel=1e-9)
    assert balance.change == pytest.approx(work, rel=1e-9)
    assert balance.joint_friction == 0.0


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'todorov', 'sap'])
def test_a_robot_stands_on_feet_with_moments(model):
    """Forces and moments of the feet carry go1: their wrench is that of its weight."""
    robot = load_robot('go1')
    sim = Simulator(robot, model, torsional_friction=0.01, rolling_friction=0.005)
    rest = robot.joint_positions(sim.q)
    for _ in range(800):
        error = rest - robot.joint_positions(sim.q)
        report = sim.step(200.0 * error - 5.0 * robot.joint_velocities(sim.v))
        assert report.solver.converged
    weight = robot.total_mass * GRAVITY
    assert report.contacts.normal_force.sum() == pytest.approx(weight, rel=1e-3)
    contacts = report.contacts
    largest = np.abs(contacts.moment[:, 2]) - 0.01 * contacts.normal_force
    assert largest.max() < 1e-9 * weight
    rolling = np.linalg.norm(contacts.moment[:, :2], axis=1) - 0.005 * contacts.normal_force
    assert rolling.max() < 1e-9 * weight


def test_moments_on_several_planes_and_on_a_round_ground():
    """In a groove a spinning ball has two moments; on a sphere the axis is its normal."""
    sim = moving_ball('ncp', terrain=Planes(), rolling_friction=0.0, friction=0.0)
    sim.reset(v=np.array([0.0, 0, 0, 0, 0, 3.0]))
    report = sim.step([])
    load = MASS * GRAVITY / np.sqrt(2.0)  # on each side
    assert report.contacts.normal_force == pytest.approx([load, load], rel=1e-6)
    # along z both moments act with cos 45°; along x they cancel
    spin = 3.0 - 2.0 * TORSIONAL * load * np.sqrt(0.5) / INERTIA * 1e-3
    assert world_velocity(report)[5] == pytest.approx(spin, rel=1e-9)
    sphere = SphereGround((0.0, 0.0, -1.0), 1.0)
    sim = moving_ball('ncp', (0, 0, 0, 0, 0, 3.0), terrain=sphere)
    report = sim.step([])
    rate = TORSIONAL * MASS * GRAVITY / INERTIA
    assert world_velocity(report)[5] == pytest.approx(3.0 - rate * 1e-3, rel=1e-9)


# --- Settings, state, replay


def thrown_cube(**settings):
    """Return a simulator with a cube that was thrown onto the ground."""
    sim = Simulator(cube(), **settings)
    q = sim.q.copy()
    q[2] += 0.02
    sim.reset(q, np.array([0.5, 0.2, 0.0, 1.0, -2.0, 6.0]))
    return sim


MOMENTS = {'torsional_friction': 0.01, 'rolling_friction': 0.004}


def bytes_of(sim, steps):
    """Return the bits of the state and the impulses over some steps."""
    records = [sim.step([]).record for _ in range(steps)]
    return [(r.q.tobytes(), r.v.tobytes(), r.impulse.tobytes()) for r in records]


def test_coefficients_per_contact_point():
    points = [0.0, 0.01, 0.02, 0.03]
    sim = thrown_cube(torsional_friction=points)
    assert sim.torsional_friction.tolist() == points
    assert sim.rolling_friction.tolist() == [0.0] * 4
    sim.rolling_friction = 0.002
    assert sim.rolling_friction.tolist() == [0.002] * 4
    assert sim.torsional_friction.tolist() == points
    for _ in range(300):
        report = sim.step([])
    over = np.abs(report.contacts.moment[:, 2]) - points * report.contacts.normal_force
    assert over.max() < 1e-9


def test_coefficients_may_come_and_go_between_steps():
    """Without them the simulation goes on as one that never had any, to the bit."""
    one, other = thrown_cube(), thrown_cube()
    assert bytes_of(one, 100) == bytes_of(other, 100)
    one.torsional_friction = 0.01
    assert one.sizes.n_moments == 4
    one.torsional_friction = 0.0
    assert one.sizes.n_moments == 0
    assert bytes_of(one, 100) == bytes_of(other, 100)


@pytest.mark.parametrize('model', ['ncp', 'todorov'])
def test_snapshots_repeat_the_steps_to_the_bit(model):
    sim = thrown_cube(contact_model=model, **MOMENTS)
    bytes_of(sim, 80)
    snapshot = sim.snapshot()
    after = bytes_of(sim, 80)
    sim.restore(snapshot)
    assert bytes_of(sim, 80) == after
    fresh = thrown_cube(contact_model=model)
    fresh.restore(snapshot)  # which brings its moments
    assert fresh.torsional_friction.tolist() == [0.01] * 4
    assert bytes_of(fresh, 80) == after
    fresh.torsional_friction = fresh.rolling_friction = 0.0
    resume(fresh, snapshot, 0.0)  # under the settings in force: none
    assert fresh.sizes.n_moments == 0
    assert fresh.q.tobytes() == snapshot.buffer[3 : 3 + 7].tobytes()


def test_a_recording_repeats_changes_of_the_coefficients(tmp_path):
    sim = thrown_cube()
    with Recorder(sim, tmp_path / 'run.npz'):
        for change in ({}, MOMENTS, {'rolling_friction': 0.001}, {'torsional_friction': 0.0},
                       {'rolling_friction': 0.0}):  # fmt: skip
            for name, value in change.items():
                setattr(sim, name, value)
            for _ in range(40):
                sim.step([])
    assert repeat(Recording(tmp_path / 'run.npz')).equal
    assert sim.sizes.n_moments == 0
    sim = thrown_cube(**MOMENTS)
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(40):
            sim.step([])
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.equal, outcome.difference
    assert outcome.steps == 40


def test_worlds_are_simulators_to_the_bit():
    torsional = np.array([[0.01], [0.0], [0.02]])
    worlds = Worlds(cube(), 3, torsional_friction=torsional, rolling_friction=0.004)
    sims = [
        Simulator(cube(), torsional_friction=float(own[0]), rolling_friction=0.004)
        for own in torsional
    ]
    q, v = sims[0].q.copy(), np.array([0.5, 0.2, 0.0, 1.0, -2.0, 6.0])
    q[2] += 0.02
    worlds.reset(q, v)
    for sim in sims:
        sim.reset(q, v)
        for _ in range(150):
            sim.step([])
    worlds.step(np.zeros((3, 0)), 150)
    assert worlds.q.tobytes() == np.array([sim.q for sim in sims]).tobytes()
    assert worlds.v.tobytes() == np.array([sim.v for sim in sims]).tobytes()


@pytest.mark.parametrize('name', ['torsional_friction', 'rolling_friction'])
def test_bad_coefficients_are_refused(name):
    for value in (-0.01, np.nan, [0.1, 0.2], 'smooth'):
        with pytest.raises(InvalidInput, match=name):
            Simulator(cube(), **{name: value})
        sim = thrown_cube()
        with pytest.raises(InvalidInput, match=name):
            setattr(sim, name, value)
        assert sim.sizes.n_moments == 0
    with pytest.raises(InvalidInput, match=name):
        Worlds(cube(), 2, **{name: -1.0})


def test_hybrid_has_no_moments():
    with pytest.raises(InvalidInput, match=r'hybrid: torsional_friction and rolling_friction'):
        Simulator(cube(), 'hybrid', torsional_friction=0.01)
    sim = Simulator(cube(), 'hybrid')
    with pytest.raises(InvalidInput, match='time-stepping'):
        sim.rolling_friction = 0.01
    assert sim.rolling_friction.tolist() == [0.0] * 4
    sim.step([])
    sim = Simulator(cube(), 'ncp', rolling_friction=0.01)
    with pytest.raises(InvalidInput, match='time-stepping'):
        sim.contact_model = 'hybrid'
    assert sim.contact_model == 'ncp'
    sim.step([])
