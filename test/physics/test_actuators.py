"""Actuators: friction, limits, inertia, delay and lag against closed forms; state to the bit."""

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted import interpreted
from robots import StandingController, axle

from contact_sim import InvalidInput, Simulator, Worlds, contact_models, load_robot
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.dynamics._forces import effort_range, fill_effort
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot._actuators import holding
from contact_sim.simulation._resuming import resume

H = 1e-3
MODELS = contact_models()
YIELDING = {'sap', 'todorov', 'compliant'}
"""Models whose dry friction needs some speed: it creeps instead of holding."""
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def wheel(**changes):
    """Return an axle of inertia 1 without friction, with these actuators."""
    return axle().with_actuators(dry_friction=0.0, viscous_friction=0.0).with_actuators(**changes)


def efforts(sim, commands):
    """Return the efforts of steps under these commands, one row each."""
    return np.array([sim.step(np.atleast_1d(u)).effort for u in commands])


# ------------------------------------------------------------------------ friction


@pytest.mark.parametrize('model', MODELS)
def test_dry_friction_holds_and_sliding_ends_at_the_balance_of_efforts(model):
    # at rest up to τ_d; above, v = (u − τ_d)/b, reached as exp(−b t): I = 1, b = 4, τ_d = 0.5
    robot = axle().with_actuators(viscous_friction=4.0, dry_friction=0.5)
    sim = Simulator(robot, model, time_step=1e-2)
    creep = 0.0
    for effort in (0.0, 0.4, -0.499):
        for _ in range(50):
            sim.step(np.array([effort]))
            creep = max(creep, abs(sim.v[0]))
    assert creep <= (3e-3 if model in YIELDING else 1e-16)
    for effort in (3.0, -1.5):
        for _ in range(700):
            sim.step(np.array([effort]))
        assert sim.v[0] == pytest.approx((effort - 0.5 * np.sign(effort)) / 4.0, rel=1e-9)


# ------------------------------------------------------------------------ inertia


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_the_rotor_adds_the_square_of_the_ratio_times_its_inertia(model):
    # I + n² J_r + armature = 1 + 36 · 0.05 + 0.2 = 3
    sim = Simulator(wheel(gear_ratio=6.0, rotor_inertia=0.05, armature=0.2), model)
    report = sim.step(np.array([1.5]))
    assert report.acceleration[0] == pytest.approx(0.5, rel=1e-13)
    assert sim.v[0] == pytest.approx(0.5 * H, rel=1e-13)
    energy = report.residuals.energy_balance
    assert energy.change == pytest.approx(0.5 * 3.0 * sim.v[0] ** 2, rel=1e-12)
    assert energy.actuation == pytest.approx(energy.change, rel=1e-12)


# ------------------------------------------------------------------------ limits


def test_efforts_are_cut_at_the_limit_and_nowhere_else():
    sim = Simulator(wheel(effort_limit=2.0))
    commands = [1.0, 2.0, 2.5, 1e9, -1.0, -2.0, -7.0, 0.0]
    assert efforts(sim, commands)[:, 0].tolist() == np.clip(commands, -2.0, 2.0).tolist()


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_a_motor_with_a_load_runs_where_its_line_meets_the_load(model):
    # τ_s (1 − ω/ω₀) = b ω + τ_d: ω = (τ_s − τ_d)/(τ_s/ω₀ + b) = (12 − 2)/(0.6 + 0.4) = 10
    load = {'viscous_friction': 0.4, 'dry_friction': 2.0}
    motor = wheel(saturation_effort=12.0, velocity_limit=20.0, effort_limit=9.0, **load)
    sim = Simulator(motor, model, time_step=1e-2)
    for sign in (1.0, -1.0):
        for _ in range(3000):
            report = sim.step(np.array([sign * 100.0]))
        assert sim.v[0] == pytest.approx(sign * 10.0, rel=1e-9)
        assert report.effort[0] == pytest.approx(sign * 6.0, rel=1e-9)
    sim.reset()
    assert sim.step(np.array([100.0])).effort[0] == 9.0  # at rest the limit comes first


def test_a_motor_with_a_line_brakes_what_turns_faster():
    # τ_s (1 − 30/20) = −6 at command 0, no more than the limit of 9 at 40 rad/s
    motor = wheel(saturation_effort=12.0, velocity_limit=20.0, effort_limit=9.0)
    sim = Simulator(motor)
    for speed, command, effort in (
        (30.0, 0.0, -6.0), (30.0, -7.0, -7.0), (40.0, 0.0, -9.0), (-30.0, 0.0, 6.0),
        (10.0, 8.0, 6.0), (10.0, -20.0, -9.0), (-10.0, 20.0, 9.0),
    ):  # fmt: skip
        sim.reset(v=[speed])
        assert sim.step(np.array([command])).effort[0] == pytest.approx(effort, abs=1e-12)


def test_nothing_is_driven_beyond_the_velocity_limit():
    # I = 1, 5 N m, ω ≤ 2: overshoot below h τ/I; braking and what pushes from outside are free
    sim = Simulator(wheel(velocity_limit=2.0))
    speeds = []
    for _ in range(1000):
        sim.step(np.array([5.0]))
        speeds.append(sim.v[0])
    assert 2.0 <= max(speeds) < 2.0 + 5.0 * H
    assert sim.v[0] >= 2.0
    assert speeds[398] == pytest.approx(5.0 * 0.399, rel=1e-12)  # below it the limit does nothing
    for speed, command, effort in ((7.0, 5.0, 0.0), (7.0, -5.0, -5.0), (-7.0, -5.0, 0.0)):
        sim.reset(v=[speed])
        assert sim.step(np.array([command])).effort[0] == effort
        assert sim.v[0] == pytest.approx(speed + H * effort, rel=1e-15)


speeds = st.floats(-200.0, 200.0)
amounts = st.floats(0.01, 100.0)


@patient
@given(st.floats(-1e4, 1e4), speeds, amounts, amounts, amounts)
def test_the_line_is_the_one_of_isaac_lab(command, speed, limit, fastest, standstill):
    """Its DCMotor, which bounds the speed instead of the effort."""
    corner = fastest * (1.0 + limit / standstill)
    bounded = np.clip(speed, -corner, corner)
    top = min(standstill * (1.0 - bounded / fastest), limit)
    bottom = max(standstill * (-1.0 - bounded / fastest), -limit)
    expected = np.clip(command, bottom, top)
    limits = tuple(np.array([value]) for value in (limit, fastest, standstill))
    with interpreted():
        lower, upper = effort_range(*(column[0] for column in limits), speed)
    assert np.clip(command, lower, upper) == pytest.approx(expected, abs=1e-9 * standstill + 1e-9)


@patient
@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6), speeds, amounts, amounts,
       st.one_of(st.just(np.inf), amounts), st.floats(0.0, 0.999), st.integers(0, 3))  # fmt: skip
def test_no_effort_exceeds_its_limit_nor_drives_beyond_the_speed(
    commands, speed, limit, fastest, standstill, decay, delay
):
    bounds = tuple(np.array([value]) for value in (limit, fastest, standstill))
    memory = np.array(commands[:3])[:, None], np.array([np.clip(commands[4], -limit, limit)])
    effort = np.zeros(1)
    timing = np.array([delay]), np.array([decay])
    with interpreted():
        bad = fill_effort(
            np.array(commands[5:]), np.array([speed]), np.array([0]), bounds, memory, timing,
            effort,
        )  # fmt: skip
    assert bad == -1
    assert abs(effort[0]) <= limit
    if abs(speed) >= fastest:
        assert effort[0] * np.sign(speed) <= 0.0


# ------------------------------------------------------------------------ delay and lag


@cache
def leg():
    """A robot of two joints, fixed to the world, without limits or friction."""
    text = """<robot name="leg"><link name="a"/>
    <link name="b"><inertial><mass value="1"/>
      <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <link name="c"><inertial><mass value="1"/>
      <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="hip" type="continuous"><parent link="a"/><child link="b"/></joint>
    <joint name="knee" type="continuous"><parent link="b"/><child link="c"/></joint></robot>"""
    return load_robot(text, floating_base=False)


@pytest.mark.parametrize('model', MODELS)
def test_a_command_acts_after_its_delay_to_the_step(model):
    sim = Simulator(leg().with_actuators(delay={'hip': 3 * H, 'knee': 1 * H}), model)
    commands = np.random.default_rng(0).standard_normal((12, 2))
    found = efforts(sim, commands)
    assert found[:, 0].tolist() == [0.0] * 3 + commands[:9, 0].tolist()
    assert found[:, 1].tolist() == [0.0] + commands[:11, 1].tolist()
    sim.reset()  # what was commanded before is forgotten
    assert not efforts(sim, [[1.0, 1.0]]).any()


def test_what_is_delayed_is_what_the_gains_command():
    robot = leg().with_actuators(delay={'hip': 2 * H})
    sim, stand = Simulator(robot), holding(np.array([0.3, -0.2]), np.full(2, 5.0), np.ones(2))
    commanded, acted = [], []
    for _ in range(20):
        angles, speeds = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
        commanded.append(stand.effort_at(angles, speeds, robot.continuous_joints))
        report = sim.follow(stand, 1)
        acted.append(report.effort)
        assert report.record.command == pytest.approx(commanded[-1], abs=1e-14)
    commanded, acted = np.array(commanded), np.array(acted)
    assert acted[2:, 0] == pytest.approx(commanded[:-2, 0], abs=1e-14)
    assert acted[:, 1] == pytest.approx(commanded[:, 1], abs=1e-14)


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
@pytest.mark.parametrize('h', [1e-3, 5e-3])
def test_an_effort_follows_its_command_exponentially(model, h):
    # τ(t) = u (1 − exp(−t/T)) at every step of any length
    sim = Simulator(wheel(time_constant=0.02), model, time_step=h)
    t = h * np.arange(1, 41)
    rising = efforts(sim, np.full(40, 2.0))[:, 0]
    assert rising == pytest.approx(2.0 * (1.0 - np.exp(-t / 0.02)), rel=1e-12)
    falling = efforts(sim, np.zeros(40))[:, 0]
    assert falling == pytest.approx(rising[-1] * np.exp(-t / 0.02), rel=1e-12)


def test_the_lag_is_the_exact_filter_of_mujoco():
    mujoco = pytest.importorskip('mujoco', reason='the peer MuJoCo is not installed')
    model = mujoco.MjModel.from_xml_string("""<mujoco><option timestep="0.002" gravity="0 0 0"/>
    <worldbody><body><joint name="j" axis="0 0 1" armature="0.3" damping="0.05"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody><actuator>
    <general joint="j" dyntype="filterexact" dynprm="0.015" actearly="true" ctrllimited="true"
      ctrlrange="-3 3"/></actuator></mujoco>""")
    data = mujoco.MjData(model)
    robot = wheel(time_constant=0.015, effort_limit=3.0, armature=0.3, viscous_friction=0.05)
    sim = Simulator(robot, time_step=2e-3)
    for command in 4.0 * np.sin(0.05 * np.arange(300)):
        data.ctrl[0] = command
        mujoco.mj_step(model, data)
        sim.step(np.array([command]))
        assert data.actuator_force[0] == pytest.approx(sim.last_report.effort[0], abs=1e-12)
    assert sim.v[0] == pytest.approx(data.qvel[0], rel=1e-10)
    assert abs(sim.v[0]) > 0.1


def test_nothing_winds_up_behind_a_limit():
    sim = Simulator(wheel(time_constant=0.02, effort_limit=2.0))
    efforts(sim, np.full(200, 1e6))
    assert efforts(sim, np.zeros(20))[-1, 0] == pytest.approx(2.0 * np.exp(-1.0), rel=1e-3)


def test_delay_comes_before_lag():
    sim = Simulator(wheel(delay=5 * H, time_constant=0.01))
    found = efforts(sim, np.ones(30))[:, 0]
    expected = 1.0 - np.exp(-np.maximum(np.arange(1, 31) - 5, 0) / 10.0)
    assert found == pytest.approx(expected, abs=1e-14)


# ------------------------------------------------------------------------ state to the bit


@cache
def quadruped():
    """The package's own robot with all that an actuator may have."""
    return load_robot('quadruped').with_actuators(
        delay={'LF_KFE': 3 * H, 'RH_HAA': 7 * H, 'RF_HFE': 1 * H}, dry_friction=0.1,
        time_constant={'LH_KFE': 4 * H, 'LF_KFE': 2 * H}, saturation_effort=45.0,
        rotor_inertia=2e-5, gear_ratio=8.0,
    )  # fmt: skip


def walk(sim, steps, seed=0):
    """Take steps under commands that wander; return the step data of each."""
    controller, noise = StandingController(sim), np.random.default_rng(seed)
    buffers = []
    for _ in range(steps):
        effort = controller(sim) + noise.standard_normal(sim.robot.n_joints)
        buffers.append(sim.step(effort).record.buffer.tobytes())
    return buffers


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_snapshots_hold_what_is_under_way(model):
    sim = Simulator(quadruped(), model)
    walk(sim, 20)
    snapshot = sim.snapshot()
    first, end = walk(sim, 15, 1), sim.q
    sim.restore(snapshot)
    assert walk(sim, 15, 1) == first
    resume(sim, snapshot, 5.0)  # the same at another time
    walk(sim, 15, 1)
    assert sim.q.tobytes() == end.tobytes()
    start = Simulator(quadruped(), model)
    start.restore(snapshot)
    start.reset(start.q, start.v)  # the same state with nothing under way
    walk(start, 15, 1)
    assert np.abs(start.q - end).max() > 1e-6


@pytest.mark.parametrize('model', ['ncp', 'hybrid'])
def test_recordings_are_repeated_from_the_middle_of_a_delay(model, tmp_path):
    sim = Simulator(quadruped(), model)
    walk(sim, 10)
    with Recorder(sim, tmp_path / 'run.npz'):
        reports = walk(sim, 10)
        snapshot = sim.snapshot()
        reports += walk(sim, 6, 1)
        sim.contact_model = 'ncp' if model == 'hybrid' else 'lcp'
        reports += walk(sim, 6, 2)
        sim.restore(snapshot)
        reports += walk(sim, 6, 3)
        sim.reset()
        reports += walk(sim, 10, 4)
    recording, played = Recording(tmp_path / 'run.npz'), []
    outcome = repeat(recording, lambda step: played.append(step.report.record.buffer.tobytes()))
    assert outcome.equal, outcome.difference
    assert played == reports
    for name in ('delay', 'time_constant', 'saturation_effort', 'rotor_inertia', 'effort_limit'):
        assert np.array_equal(
            getattr(recording.robot().actuators, name), getattr(quadruped().actuators, name)
        )


def test_a_robot_without_a_description_is_recorded_with_its_actuators(tmp_path):
    sim = Simulator(wheel(delay=2 * H, rotor_inertia=0.05, gear_ratio=6.0, armature=0.2))
    with Recorder(sim, tmp_path / 'run.npz'):
        efforts(sim, [1.0, -2.0, 3.0, 0.5])
    recording = Recording(tmp_path / 'run.npz')
    again = recording.robot()
    assert np.reshape(again.pinocchio_model.armature, -1) == pytest.approx([2.0], rel=1e-15)
    assert again.actuators.armature.tolist() == [0.2]
    assert np.isinf(again.actuators.saturation_effort).all()
    assert repeat(recording).equal
    assert recording.effort[:, 0].tolist() == [1.0, -2.0, 3.0, 0.5]


def test_shadows_take_the_same_efforts_and_change_nothing():
    alone, watched = Simulator(quadruped()), Simulator(quadruped())
    watched.shadow = ('lcp',)
    walk(alone, 12)
    walk(watched, 12)
    report = watched.step(np.ones(12))
    shadow = report.shadows['lcp'].step
    assert np.array_equal(shadow.effort, report.effort)
    assert np.array_equal(shadow.record.delay_line, report.record.delay_line)
    alone.step(np.ones(12))
    assert np.array_equal(alone.q, watched.q)


def test_worlds_equal_simulations_with_the_actuators_of_each():
    base = quadruped()
    robots = [
        base,
        base.with_actuators(delay=0.0, time_constant=0.0, effort_limit=12.0, viscous_friction=0.3),
        base.with_actuators(delay=9 * H, armature=0.01, velocity_limit=5.0, dry_friction=0.4),
    ]
    masses = [[1.1 * inertia.mass for inertia in list(base.pinocchio_model.inertias)[1:]]] * 3
    kp, kd = base.default_gains
    stand = holding(base.joint_positions(base.reference_configuration()), 0.3 * kp, 0.2 * kd)
    plain = Worlds(base, 2, threads=1)
    plain.follow(stand, 60)
    own = Worlds(base, 3, actuators=[robot.actuators for robot in robots], threads=1)
    heavy = Worlds(
        base, 3, actuators=[robot.actuators for robot in robots], masses=masses, threads=1
    )
    own.follow(stand, 60)
    heavy.follow(stand, 60)
    for i, robot in enumerate(robots):
        sim = Simulator(robot)
        report = sim.follow(stand, 60)
        assert own.q[i].tobytes() == sim.q.tobytes()
        assert own.v[i].tobytes() == sim.v.tobytes()
        assert own.report(i).effort.tolist() == report.effort.tolist()
    assert plain.q[1].tobytes() == own.q[0].tobytes()
    assert not np.array_equal(heavy.q, own.q)
    own.reset()
    own.follow(stand, 60)
    assert plain.q[1].tobytes() == own.q[0].tobytes()  # a reset empties the delays


def test_actuators_of_worlds_that_do_not_fit():
    base = quadruped().actuators
    with pytest.raises(InvalidInput, match='actuators: 1 given, expected 2'):
        Worlds(quadruped(), 2, actuators=[base])
    with pytest.raises(InvalidInput, match='world 1: dry friction in other joints than'):
        Worlds(quadruped(), 2, actuators=[base, base.changed(dry_friction=0.0)])
    with pytest.raises(InvalidInput, match='must be a multiple of the time step'):
        Worlds(quadruped(), 2, actuators=[base, base.changed(delay=0.5 * H)])
    with pytest.raises(InvalidInput, match=r"joint 'LF_HFE' = 0\.0025 s: must be a multiple"):
        Simulator(quadruped().with_actuators(delay={'LF_HFE': 2.5 * H}))


def test_robots_without_delay_and_lag_keep_nothing():
    sizes = Simulator(load_robot('quadruped')).sizes
    assert sizes.shapes()['delay_line'] == (0, 12)
    assert sizes.shapes()['lagged_effort'] == (0,)


def test_every_model_is_among_those_tested():
    assert set(MODELS) == set(CONTACT_MODELS)
    assert set(MODELS) >= YIELDING
