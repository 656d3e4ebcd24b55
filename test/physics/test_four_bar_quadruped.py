"""The quadruped with a four-bar linkage in each leg: it is closed, stands, and trots."""

import numpy as np
import pinocchio as pin
import pytest
from robots import centre_of_mass_acceleration

from contact_sim import Simulator, contact_models, load_robot
from contact_sim.control import Stance, Trot
from contact_sim.control._inverse_dynamics import LeggedDynamics
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot._actuators import holding

ROBOT = load_robot('four_bar_quadruped')
WEIGHT = 9.81 * ROBOT.total_mass
LEGS = ('LF', 'LH', 'RF', 'RH')
THIGH, CRANK, ROD, LEVER = 0.21, 0.045, 0.21, 0.04
"""Lengths of the linkage [m]; the motor is on the axis of the hip, the lever behind the knee."""


def linkage(knee):
    """Return the angles of DRIVE and ROD for a knee angle, by the law of cosines."""
    end = np.array([LEVER * np.sin(knee), LEVER * np.cos(knee) - THIGH])  # x, z from the motor
    far = np.hypot(*end)
    between = np.arccos((CRANK**2 + far**2 - ROD**2) / (2.0 * CRANK * far))
    crank = np.arctan2(*end) + between  # the crank is behind the thigh, as the lever
    rod = end - CRANK * np.array([np.sin(crank), np.cos(crank)])
    return np.array([crank, np.arctan2(-rod[0], -rod[1]) - crank])


def gap(data, q):
    """Return the largest distance between the end of a rod and of its lever [m]."""
    model = ROBOT.pinocchio_model
    pin.framesForwardKinematics(model, data, q)
    place = {name: data.oMf[model.getFrameId(name)] for name in
             (f'{leg}_{link}' for leg in LEGS for link in ('ROD_LINK', 'SHANK'))}  # fmt: skip
    return max(
        np.linalg.norm(
            place[f'{leg}_ROD_LINK'].act(np.array([0.0, 0.0, -ROD]))
            - place[f'{leg}_SHANK'].act(np.array([0.0, -0.02 if leg[0] == 'L' else 0.02, LEVER]))
        )
        for leg in LEGS
    )


def joint(q, name):
    model = ROBOT.pinocchio_model
    return q[model.joints[model.getJointId(name)].idx_q]


@pytest.mark.parametrize('pose', ROBOT.reference_configurations)
def test_poses_are_those_of_the_linkage(pose):
    q = ROBOT.reference_configuration(pose)
    assert gap(ROBOT.pinocchio_model.createData(), q) < 1e-12
    for leg in LEGS:
        drive, rod = linkage(joint(q, f'{leg}_KFE'))
        assert joint(q, f'{leg}_DRIVE') == pytest.approx(drive, abs=1e-11)
        assert joint(q, f'{leg}_ROD') == pytest.approx(rod, abs=1e-11)


def test_motors_are_on_cranks_and_knees_follow():
    assert ROBOT.n_joints == 12
    assert not any('KFE' in name or 'ROD' in name for name in ROBOT.joint_names)
    assert len(ROBOT.constraints) == 4
    q, e = ROBOT.reference_configuration(), 1e-6
    motion, _ = ROBOT.loops.motion(ROBOT.loops.jacobian(q), ROBOT.joint_velocity_index)
    slope = (linkage(joint(q, 'RH_KFE') + e) - linkage(joint(q, 'RH_KFE') - e)) / (2.0 * e)
    model = ROBOT.pinocchio_model
    of_drive = motion[:, ROBOT.joint_names.index('RH_DRIVE')]
    knee, rod = (of_drive[model.joints[model.getJointId(f'RH_{j}')].idx_v] for j in ('KFE', 'ROD'))
    assert knee == pytest.approx(1.0 / slope[0], rel=1e-8)
    assert rod == pytest.approx(slope[1] / slope[0], rel=1e-8)


@pytest.mark.parametrize('name', [name for name in contact_models() if name != 'hybrid'])
def test_it_stands_for_ten_seconds_and_its_loops_stay_closed(name):
    """The cranks carry what the weight asks of the knees, over the gear ratio of the linkage."""
    sim, data = Simulator(ROBOT, name), ROBOT.pinocchio_model.createData()
    command = holding(ROBOT.joint_positions(sim.q), *ROBOT.default_gains)
    worst = 0.0
    for _ in range(500):
        report = sim.follow(command, 20)
        worst = max(worst, gap(data, report.q))
    assert sim.time == pytest.approx(10.0)
    assert worst <= 1e-6
    assert max(state.drift for state in report.constraints.values()) <= 1e-12
    force = report.contacts.force
    assert force.sum(axis=0) == pytest.approx([0.0, 0.0, WEIGHT], abs=1e-4 * WEIGHT)
    assert force[:, 2].min() > 0.15 * WEIGHT
    assert report.effort == pytest.approx(static_efforts(report.q, report.contacts), abs=5e-3)


def static_efforts(q, contacts):
    """Return the efforts of virtual work at rest, with the gear ratios of `linkage`."""
    model, data = ROBOT.pinocchio_model, ROBOT.pinocchio_model.createData()
    pin.computeJointJacobians(model, data, q)
    load = pin.computeGeneralizedGravity(model, data, q)
    for point, place, force in zip(
        ROBOT.contact_points, contacts.position, contacts.force, strict=True
    ):
        twist = pin.getJointJacobian(
            model, data, model.getJointId(point.joint), pin.ReferenceFrame.WORLD
        )
        load = load - twist.T @ np.concatenate([force, np.cross(place, force)])
    efforts = []
    for name in ROBOT.joint_names:
        own = load[model.joints[model.getJointId(name)].idx_v]
        if 'DRIVE' in name:
            leg, e = name[:2], 1e-6
            knee = joint(q, f'{leg}_KFE')
            slope = (linkage(knee + e) - linkage(knee - e)) / (2.0 * e)
            of_knee, of_rod = (load[model.joints[model.getJointId(f'{leg}_{j}')].idx_v]
                               for j in ('KFE', 'ROD'))  # fmt: skip
            own += (of_knee + slope[1] * of_rod) / slope[0]
        efforts.append(own)
    return np.array(efforts)


def test_it_stands_between_events():
    sim = Simulator(ROBOT, 'hybrid')
    command = holding(ROBOT.joint_positions(sim.q), *ROBOT.default_gains)
    report = sim.follow(command, 300)
    assert gap(ROBOT.pinocchio_model.createData(), report.q) <= 1e-6
    upward = centre_of_mass_acceleration(ROBOT, report) + [0.0, 0.0, 9.81]
    expected = ROBOT.total_mass * upward
    assert report.contacts.force.sum(axis=0) == pytest.approx(expected, abs=1e-3 * WEIGHT)


def test_the_dynamics_of_the_controller_are_those_of_a_step():
    """M ẇ + h = Sᵀ τ in the air, at random states: what a step of the simulator does."""
    rng, dynamics = np.random.default_rng(5), LeggedDynamics(ROBOT)
    model, h = ROBOT.pinocchio_model, 1e-7
    driven = ROBOT.joint_velocity_index
    sim = Simulator(ROBOT, time_step=h)
    q = ROBOT.reference_configuration()
    q[2] += 1.0
    w = np.concatenate([rng.normal(size=6), 2.0 * rng.normal(size=12)])
    effort = 3.0 * rng.normal(size=12)
    N, _ = ROBOT.loops.motion(ROBOT.loops.jacobian(q), np.r_[0:6, driven])
    before = ROBOT.loops.closed(pin.integrate(model, q, -h * (N @ w)), driven)
    sim.reset(before, ROBOT.loops.motion(ROBOT.loops.jacobian(before), np.r_[0:6, driven])[0] @ w)
    sim.step(effort)  # so that v belongs to the rows of a step before
    report = sim.step(effort)
    dynamics.update(sim.q, sim.v)
    friction = np.concatenate([np.zeros(6), 0.02 * sim.v[driven]])
    right = np.concatenate([np.zeros(6), effort]) - friction - dynamics.nonlinear_effects
    found = dynamics.acceleration(np.linalg.solve(dynamics.inertia, right))
    expected = report.acceleration
    assert found == pytest.approx(expected, abs=2e-4 * np.abs(expected).max())


def test_the_whole_body_controller_squats():
    """The controller drives the cranks; what it announces happens, at the knees as well."""
    sim, controller = Simulator(ROBOT, 'ncp'), Stance(ROBOT, 'squat')
    slip = 0.0
    for _ in range(1500):
        answer = controller.answer(sim.time, sim.q, sim.v)
        report = sim.step(answer.effort)
        slip = slip + np.linalg.norm(report.contacts.velocity[:, :2], axis=1) * sim.time_step
        error = np.linalg.norm(sim.q[:3] - controller.reference(sim.time).position)
        assert error < 2e-3
    assert slip.max() < 1e-6
    assert answer.solved
    np.testing.assert_allclose(report.contacts.force, answer.force, atol=1e-2 * WEIGHT)
    np.testing.assert_allclose(report.acceleration, answer.acceleration, atol=0.05)


def test_it_trots_three_metres():
    sim, trot, data = Simulator(ROBOT, 'ncp'), Trot(ROBOT), ROBOT.pinocchio_model.createData()
    trot.velocity = (0.5, 0.0, 0.0)
    height, airborne, worst = sim.q[2], np.zeros(4), 0.0
    for k in range(7000):
        if k % 2 == 0:
            effort = trot.effort(sim.time, sim.q, sim.v)
        report = sim.step(effort)
        if k % 10 == 0:
            worst = max(worst, gap(data, report.q))
            airborne += report.contacts.gap > 0.01
            assert abs(sim.q[2] - height) < 0.03
    assert sim.q[0] > 3.0
    assert abs(sim.q[1]) < 0.3
    assert (airborne > 50).all()  # every foot leaves the ground again and again
    assert worst <= 1e-6


def test_a_recording_repeats_it_to_the_bit_also_when_a_rod_breaks(tmp_path):
    sim, path = Simulator(ROBOT, 'ncp'), tmp_path / 'run.npz'
    command = holding(ROBOT.joint_positions(sim.q), *ROBOT.default_gains)
    with Recorder(sim, path):
        sim.follow(command, 40)
        sim.remove_constraint('RH_LEVER')
        sim.follow(command, 40)
    assert len(sim.constraints) == 3
    recording = Recording(path)
    assert recording.robot().constraints == ROBOT.constraints
    outcome = repeat(recording)
    assert outcome.steps == 80
    assert outcome.equal, outcome.difference
