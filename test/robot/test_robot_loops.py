"""<loop_joint> in a URDF, and the rows of closed loops against numbers from elsewhere."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.constraints import Baumgarte, JointCoupling, LoopClosure
from contact_sim.errors import InvalidInput, RobotDescriptionError
from contact_sim.robot._constraints import ClosedLoops

FREE, RATES = np.array([1.2, 0.27341389, 1.37755106]), np.array([1.5, -0.14832411, 0.89530346])
"""Angles of crank, coupler and rocker of T4's four-bar, absolute, and their rates."""
SPHERICAL = (
    '<loop_joint name="pin" type="spherical"><link1 link="coupler" xyz="2 0 0"/>'
    '<link2 link="rocker" xyz="1.5 0 0"/></loop_joint>'
)


def rod(name, parent, x, length, limits=(-9, 9)):
    """Return a thin uniform rod of 1 kg/m along x, and its joint in the x-z plane."""
    about = length**3 / 12.0
    return (
        f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="{length}"/>'
        f'<inertia ixx="1e-9" ixy="0" ixz="0" iyy="{about}" iyz="0" izz="{about}"/></inertial>'
        f'</link><joint name="{name}_joint" type="revolute"><parent link="{parent}"/>'
        f'<child link="{name}"/><origin xyz="{x} 0 0"/><axis xyz="0 -1 0"/>'
        f'<limit lower="{limits[0]}" upper="{limits[1]}" effort="99" velocity="99"/></joint>'
    )


def four_bar(loop=SPHERICAL, angles=FREE, limits=(-9, 9)):
    """Return T4's four-bar of rods; it is cut where coupler and rocker meet."""
    rods = rod('crank', 'ground', 0, 1.0) + rod('coupler', 'crank', 1, 2.0)
    rods += rod('rocker', 'ground', 2, 1.5, limits)
    crank, coupler, rocker = angles
    standing = {
        'crank_joint': crank, 'coupler_joint': coupler - crank, 'rocker_joint': rocker,
    }  # fmt: skip
    return load_robot(
        f'<robot name="four_bar"><link name="ground"/>{rods}{loop}</robot>',
        floating_base=False, actuated_joints=['crank_joint'], poses={'standing': standing},
    )  # fmt: skip


HINGE = SPHERICAL.replace('spherical', 'revolute').replace(
    '</loop', '<axis xyz="0 3 0"/></loop'
)  # fmt: skip


@pytest.mark.parametrize('loop', [SPHERICAL, HINGE], ids=['spherical', 'revolute'])
def test_t4_four_bar_of_a_urdf(loop):
    """T4: accelerations and loop force of the four-bar, from a description."""
    robot = four_bar(loop)
    q = robot.reference_configuration()
    assert q[0] == 1.2  # the driven joint stays
    assert [q[0] + q[1], q[2]] == pytest.approx(FREE[1:], abs=1e-8)
    held = [replace(one, stabilisation=Baumgarte(0.0)) for one in robot.constraints]
    sim = Simulator(robot.with_constraints(held), time_step=1e-4)
    motion, _ = robot.loops.motion(robot.loops.jacobian(q), robot.joint_velocity_index)
    v = 1.5 * motion[:, 0]
    assert [v[0] + v[1], v[2]] == pytest.approx(RATES[1:], abs=1e-8)
    sim.reset(q, v)
    report = sim.step([0.0])
    angles = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    expected = [-3.82325152, 0.95587181, -1.64423588]
    assert angles @ report.acceleration == pytest.approx(expected, abs=5e-7)
    force = sum(state.force for state in report.constraints.values())
    assert np.abs(force[[0, 2]]) == pytest.approx([1.61844923, 7.33439081], abs=5e-7)


def test_loops_close_within_the_position_limits():
    """With the crank at 1.2 the rocker would be at 1.378: the crank must move, too."""
    robot = four_bar(angles=[1.2, 0.3, 1.25], limits=(1.0, 1.3))
    q = robot.reference_configuration()
    assert np.abs(robot.loops.error(q)).max() < 1e-11
    assert q[2] <= 1.3
    assert q[0] != 1.2
    report = Simulator(robot).step([0.0])
    assert np.abs(report.v).max() < 0.1  # it starts at rest, nothing throws it


def test_loops_that_close_only_beyond_a_limit_are_refused_by_name():
    """The tip of the rocker is then 0.5 m from the pivot of the crank, within 2 m - 1 m of it."""
    with pytest.raises(InvalidInput, match=r'standing.*joint \w+_joint at .* outside of'):
        four_bar(angles=[0.1, 0.2, 3.05], limits=(3.0, 3.1))


def test_loops_close_from_a_rough_pose_by_the_joints_without_motors():
    q = four_bar(angles=FREE + [0.0, 0.2, -0.3]).reference_configuration()
    assert [q[0], q[0] + q[1], q[2]] == pytest.approx(FREE, abs=1e-8)


def test_what_is_fixed_does_not_move():
    """A coupler welded to the rocker leaves a triangle."""
    sim = Simulator(four_bar(SPHERICAL.replace('spherical', 'fixed').replace(
        'xyz="2 0 0"', f'xyz="2 0 0" rpy="0 {FREE[1] - FREE[2]} 0"'
    )))  # fmt: skip
    start = sim.q.copy()
    for _ in range(100):
        sim.step([2.0])
    assert sim.q == pytest.approx(start, abs=1e-9)


def test_a_loop_is_no_part_of_what_other_parsers_read():
    robot = load_robot('four_bar_quadruped')
    model = pin.buildModelFromXML(robot.description, pin.JointModelFreeFlyer())
    assert (model.nq, model.nv) == (robot.nq, robot.nv) == (27, 26)
    assert 'loop_joint' in robot.description


@pytest.mark.parametrize(
    ('wrong', 'right', 'match'),
    [
        ('prismatic', 'spherical', "'pin': type = 'prismatic', expected one of spherical"),
        ('elbow', 'rocker', "<link2> link = 'elbow'"),
        ('coupler', 'rocker', 'both ends are on link'),
        ('crank_joint', 'pin', 'name that no other joint has'),
        ('two', '1.5', "<link2> xyz = 'two 0 0'"),
    ],
)
def test_bad_loop_joints_are_refused_by_name(wrong, right, match):
    with pytest.raises(RobotDescriptionError, match=match):
        four_bar(SPHERICAL.replace(f'"{right}', f'"{wrong}'))


def test_an_axis_of_length_zero_is_refused():
    with pytest.raises(RobotDescriptionError, match='<axis> xyz is 0 0 0'):
        four_bar(HINGE.replace('0 3 0', '0 0 0'))


def test_rows_and_drift_are_derivatives_of_the_error():
    """By central differences, of points, full closures and couplings on a floating base."""
    robot, rng = load_robot('four_bar_quadruped'), np.random.default_rng(3)
    model, e = robot.pinocchio_model, 1e-6
    loops = ClosedLoops(model, [
        *robot.constraints, JointCoupling('LF_HAA', 'RF_HAA', -0.7, 0.1),
        LoopClosure('RH_FOOT', 'LH_HIP', (0.1, 0.2, 0.3), (0.3, 0.0, 0.1), full=True),
    ])  # fmt: skip
    q = pin.integrate(model, robot.reference_configuration(), 0.2 * rng.normal(size=robot.nv))
    v, data = rng.normal(size=robot.nv), model.createData()
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    ahead, behind = (pin.integrate(model, q, sign * e * v) for sign in (1.0, -1.0))
    points = np.r_[0:15, 18]  # the turn of a full closure has its rate at small angles only
    rate = (loops.error(ahead) - loops.error(behind)) / (2 * e)
    assert (loops.rows(data) @ v)[points] == pytest.approx(rate[points], abs=1e-7)
    spin = [pin.getFrameVelocity(model, data, model.getFrameId(name), pin.LOCAL_WORLD_ALIGNED)
            for name in ('RH_FOOT', 'LH_HIP')]  # fmt: skip
    turning = spin[0].angular - spin[1].angular
    assert (loops.rows(data) @ v)[15:18] == pytest.approx(turning, abs=1e-12)
    drift = (loops.jacobian(ahead) - loops.jacobian(behind)) @ v / (2 * e)
    assert loops.drift(data, v) == pytest.approx(drift, abs=1e-7)
