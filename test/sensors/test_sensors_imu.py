"""The inertial sensor against the true velocity, gravity and closed forms."""

import numpy as np
import pinocchio as pin
import pytest
from robots import FREE_FLYER, StandingController, ball, rigid_body

from contact_sim import RobotModel, Simulator, UnknownName, load_robot
from contact_sim.sensors import Imu

GRAVITY = np.array([0.0, 0.0, -9.81])
ARM = np.array([0.3, -0.1, 0.2])
TURNED = pin.rpy.rpyToMatrix(0.4, -0.7, 1.1)


def with_sensor(body):
    """Return a free body with a frame `sensor` away from its centre, turned."""
    model = pin.Model(body.pinocchio_model)
    joint = model.getJointId(FREE_FLYER)
    model.addFrame(pin.Frame('sensor', joint, pin.SE3(TURNED, ARM), pin.FrameType.OP_FRAME))
    return RobotModel.from_pinocchio(model, body.contact_points, name=body.name)


def brick(inertia=(0.02, 0.03, 0.04)):
    """Return a body with eight corners to land on and a frame `sensor` away from its centre."""
    corners = [([x, y, z], 0.02) for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (-0.05, 0.05)]
    return with_sensor(rigid_body('brick', 2.0, np.diag(inertia), corners))


def axes_of(values):
    x, y, z, w = values.orientation
    return pin.Quaternion(w, x, y, z).matrix()


def true_velocity(robot, frame, q, v):
    """Return the velocity of the origin of a frame in world [m/s], by Pinocchio's Jacobian."""
    model = robot.pinocchio_model
    data = model.createData()
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    return pin.computeFrameJacobian(model, data, q, model.getFrameId(frame), world)[:3] @ v


def integrated(sim, steps):
    """Return the error of the integral of the sensor after every step, and the largest force."""
    robot, imu, h = sim.robot, Imu(sim.robot, 'sensor'), sim.time_step
    velocity, errors, largest = true_velocity(robot, 'sensor', sim.q, sim.v), [], 0.0
    for _ in range(steps):
        report = sim.step([])
        felt = imu.truth(report)
        velocity = velocity + h * (axes_of(felt) @ felt.specific_force + GRAVITY)
        errors.append(velocity - true_velocity(robot, 'sensor', report.q, report.v))
        largest = max(largest, np.linalg.norm(felt.specific_force))
    return np.abs(errors).max(), largest


@pytest.mark.parametrize('integrator', ['semi_implicit', 'momentum'])
@pytest.mark.parametrize('restitution', [0.0, 0.6])
def test_its_integral_over_a_tumbling_drop_and_impacts_is_the_true_velocity(
    integrator, restitution
):
    sim = Simulator(brick(), friction=0.7, restitution=restitution, integrator=integrator)
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(0.5, 0.3, 0.0)).coeffs()
    sim.reset([0.0, 0.0, 0.35, *turn], [0.5, -0.3, 0.0, 4.0, -3.0, 5.0])
    error, largest = integrated(sim, 600)
    assert error < 1e-12
    assert largest > 500.0  # it did land


@pytest.mark.parametrize(('model', 'restitution'), [('compliant', 0.0), ('hybrid', 0.5)])
def test_its_integral_is_the_true_velocity_under_springs_and_between_events(model, restitution):
    sim = Simulator(with_sensor(ball()), model, friction=0.5, restitution=restitution)
    sim.reset([0.0, 0.0, 0.12, 0, 0, 0, 1.0], [0.5, -0.3, 0.0, 2.0, -3.0, 5.0])
    error, largest = integrated(sim, 300)
    assert error < 1e-13
    assert largest > 200.0


def test_an_impact_is_the_change_of_velocity_over_the_step():
    sim = Simulator(ball(radius=0.1))
    sim.reset([0, 0, 0.1 + 1e-4, 0, 0, 0, 1.0], [0, 0, -1.0, 0, 0, 0])
    report = sim.step([])  # it falls on by what the gap allows, 0.1 m/s in one step of 1 ms
    felt = Imu(sim.robot).truth(report).specific_force
    assert felt == pytest.approx([0.0, 0.0, 0.9 / 1e-3 + 9.81], rel=1e-9, abs=1e-9)


def test_in_free_fall_it_feels_nothing_but_what_spinning_asks_for():
    """A ball about its centre: f = −Ω² r, of which a step of h sees sinc(ω h/2), half a turn late.

    The change of velocity of a point on a circle, seen from its axes at the end, is the chord.
    """
    inertia = (0.02, 0.02, 0.02)
    robot, h, spin = brick(inertia=inertia), 1e-3, np.array([2.0, 3.0, 6.0])
    sim = Simulator(robot, time_step=h)
    sim.reset([0.0, 0.0, 5.0, 0, 0, 0, 1.0], [1.0, -2.0, 3.0, *spin])
    for _ in range(50):
        felt = Imu(robot, 'sensor').truth(sim.step([]))
    turned = pin.exp3(-0.5 * h * spin)
    angle = 0.5 * h * np.linalg.norm(spin)
    inwards = np.cross(spin, np.cross(spin, ARM)) * np.sin(angle) / angle
    assert felt.specific_force == pytest.approx(TURNED.T @ turned @ inwards, abs=1e-9)
    assert felt.specific_force == pytest.approx(
        TURNED.T @ np.cross(spin, np.cross(spin, ARM)), abs=0.5 * h * np.linalg.norm(spin) ** 3
    )
    assert felt.angular_velocity == pytest.approx(TURNED.T @ spin, abs=1e-12)


def test_a_spinning_top_feels_euler_and_centripetal_acceleration():
    """α × r + ω × (ω × r) with Euler's equations for α, independent of the point's velocity."""
    inertia = np.array([0.02, 0.03, 0.04])
    robot, spin = brick(inertia=inertia), np.array([3.0, -2.0, 4.0])
    felt, errors = Imu(robot, 'sensor'), []
    alpha = -np.cross(spin, inertia * spin) / inertia
    expected = TURNED.T @ (np.cross(alpha, ARM) + np.cross(spin, np.cross(spin, ARM)))
    assert np.linalg.norm(np.cross(alpha, ARM)) > 1.0
    for h in (1e-3, 1e-4):
        sim = Simulator(robot, time_step=h)
        sim.reset([0.0, 0.0, 5.0, 0, 0, 0, 1.0], [0.0, 0.0, 0.0, *spin])
        errors.append(np.abs(felt.truth(sim.step([])).specific_force - expected).max())
    assert errors[1] < 0.02
    assert errors[1] == pytest.approx(errors[0] / 10.0, rel=0.1)  # of first order in h


FRAMES = ('imu_link', 'trunk', 'FL_calf', 'RR_foot')


@pytest.mark.parametrize('frame', FRAMES)
def test_at_rest_gravity_points_up_in_any_frame(frame, standing):
    sim, report = standing
    felt = Imu(sim.robot, frame).truth(report)
    up = axes_of(felt).T @ [0.0, 0.0, 9.81]
    assert felt.specific_force == pytest.approx(up, abs=1e-4)
    assert felt.angular_velocity == pytest.approx(np.zeros(3), abs=1e-5)
    assert axes_of(felt) == pytest.approx(sim.frame_placement(frame).rotation, abs=1e-12)


@pytest.fixture(scope='module')
def standing():
    """Return go1 at rest in another pose than that of the catalogue, and the last report."""
    sim = Simulator(load_robot('go1'))
    controller = StandingController(sim)
    controller.target = controller.target + np.tile([0.1, 0.2, -0.2], 4)
    for _ in range(2500):
        report = sim.step(controller(sim))
    return sim, report


@pytest.mark.parametrize('frame', FRAMES)
def test_on_a_squatting_robot_it_feels_the_acceleration_of_its_link(frame, standing):
    """Against Pinocchio's classical acceleration of the frame from the acceleration solved for."""
    (slow, start), h = standing, 2e-4
    robot, model = slow.robot, slow.robot.pinocchio_model
    data, imu, sim = model.createData(), Imu(robot, frame), Simulator(robot, time_step=h)
    sim.reset(start.q, start.v)
    controller, target = StandingController(sim), robot.joint_positions(start.q)
    world, moved = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, 0.0
    for k in range(600):
        phase = 2.0 * np.pi * 4.0 * k * h
        controller.target = target + 0.15 * (1.0 - np.cos(phase)) * np.tile([0.0, 1.0, -1.8], 4)
        report = sim.step(controller(sim))
        record, felt = report.record, imu.truth(report)
        pin.forwardKinematics(model, data, record.q_start, record.v_start, report.acceleration)
        motion = pin.getFrameClassicalAcceleration(model, data, model.getFrameId(frame), world)
        acceleration = axes_of(felt) @ felt.specific_force + GRAVITY
        assert acceleration == pytest.approx(motion.linear, abs=0.02)  # h times the jerk
        moved = max(moved, np.abs(motion.linear).max())
    assert moved > (0.5 if frame == 'RR_foot' else 2.0)


def test_a_fixed_base_feels_gravity_and_so_do_its_legs_in_motion():
    robot = load_robot('go1', floating_base=False)
    sim = Simulator(robot)
    report = sim.step(np.zeros(12))
    assert Imu(robot).truth(report).specific_force == pytest.approx([0.0, 0.0, 9.81])
    assert np.abs(Imu(robot, 'FL_calf').truth(report).specific_force).max() > 1.0


def test_a_state_on_which_nothing_has_acted_is_at_rest():
    sim = Simulator(load_robot('go1'))
    sim.reset(v=np.full(sim.robot.nv, 0.3))
    felt = Imu(sim.robot, 'FL_calf').truth(sim.last_report)
    assert axes_of(felt) @ felt.specific_force == pytest.approx(-GRAVITY)


def test_it_reads_gravity_from_the_simulation():
    sim = Simulator(ball(), gravity=[1.0, 0.0, -1.62])
    sim.reset([0.0, 0.0, 0.1, 0, 0, 0, 1.0])
    felt = Imu(sim.robot).truth(sim.last_report).specific_force
    assert felt == pytest.approx([-1.0, 0.0, 1.62])


def test_frames_that_do_not_exist_are_refused():
    with pytest.raises(UnknownName, match=r"'imu_lnk'.*did you mean 'imu_link'"):
        Imu(load_robot('go1'), 'imu_lnk')


ARM_URDF = """<robot name="arm"><link name="base"/>
<joint name="one" type="revolute"><parent link="base"/><child link="upper"/>
<origin xyz="0 0 1" rpy="0.2 0 0.1"/><axis xyz="0 1 0"/>
<limit lower="-9" upper="9" effort="9" velocity="99"/></joint>
<link name="upper"><inertial><origin xyz="0.05 0 -0.2"/><mass value="1.2"/>
<inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="two" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0.1 0 -0.4" rpy="0 0.3 0"/><axis xyz="1 0 0"/>
<limit lower="-9" upper="9" effort="9" velocity="99"/></joint>
<link name="lower"><inertial><origin xyz="0 0.1 -0.1"/><mass value="0.7"/>
<inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="mount" type="fixed"><parent link="lower"/><child link="sensor"/>
<origin xyz="0.15 -0.05 -0.3" rpy="0.5 -0.4 1.2"/></joint><link name="sensor"/></robot>"""


def test_it_agrees_with_the_sensors_of_mujoco():
    """Accelerometer and gyroscope of MuJoCo on the second link of a driven arm, to first order."""
    mujoco = pytest.importorskip('mujoco')
    spec = mujoco.MjSpec.from_string(ARM_URDF)
    spec.compiler.fusestatic = False
    site = spec.body('lower').add_site(
        name='sensor', pos=[0.15, -0.05, -0.3],
        quat=np.roll(pin.Quaternion(pin.rpy.rpyToMatrix(0.5, -0.4, 1.2)).coeffs(), 1),
    )  # fmt: skip
    for kind in (mujoco.mjtSensor.mjSENS_ACCELEROMETER, mujoco.mjtSensor.mjSENS_GYRO):
        spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site.name)
    model = spec.compile()
    data = mujoco.MjData(model)
    robot = load_robot(ARM_URDF, floating_base=False, feet=[])
    q, v, effort = [0.4, -0.7], [3.0, -5.0], [1.0, -0.5]
    data.qpos, data.qvel, data.qfrc_applied = q, v, effort
    mujoco.mj_forward(model, data)
    errors = []
    for h in (1e-4, 1e-5):
        sim = Simulator(robot, time_step=h)
        sim.reset(q, v)
        felt = Imu(robot, 'sensor').truth(sim.step(effort))
        said = np.concatenate([felt.specific_force, felt.angular_velocity])
        errors.append(np.abs(said - data.sensordata).max())
    assert np.abs(data.sensordata).min() > 0.1
    assert errors[1] < 5e-3
    assert errors[1] == pytest.approx(errors[0] / 10.0, rel=0.1)  # of first order in h
