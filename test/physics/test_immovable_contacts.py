"""Contacts that no motion can open take no part, and the step says so, under every model."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from robots import ball

from contact_sim import (
    Compliant,
    ContactPoint,
    ContactProblem,
    RobotModel,
    Simulator,
    contact_models,
    joined,
    law_residuals,
    load_robot,
)
from contact_sim.robot._coordinates import PositionLimit
from contact_sim.solvers._cone_problem import IMMOVABLE, NONFINITE, PULLING, worse_status
from contact_sim.step._problem import STATUSES, Cone, Interval, SolverStatus

H, DEPTH = 1e-3, 0.01
MODELS = contact_models()


def arm(joint, at=(0.0, 0.0, -DEPTH), com=(0.1, 0.0, 0.0), foot=(0.0, 0.0, 0.0), radius=0.0):
    """Return a body of 1 kg on a fixed base with one joint `at`, and one foot, both [m]."""
    model = pin.Model()
    place = pin.SE3(np.eye(3), np.array(at))
    index = model.addJoint(0, joint, place, 'joint')
    model.appendBodyToJoint(
        index, pin.Inertia(1.0, np.array(com), 0.01 * np.eye(3)), pin.SE3.Identity()
    )
    model.addBodyFrame('link', index, pin.SE3.Identity(), 0)
    point = ContactPoint('foot', 'link', 'joint', np.array(foot), radius)
    return RobotModel.from_pinocchio(model, [point], name='arm')


IMMOVABLE_FEET = {
    'on the axis': arm(pin.JointModelRY()),
    'wheel on a fixed axle': arm(pin.JointModelRY(), at=(0.0, 0.0, 0.09), radius=0.1),
    'slider along the ground': arm(pin.JointModelPX()),
    'turns about the normal': arm(pin.JointModelRZ(), foot=(0.2, 0.1, 0.0)),
    'far from the origin': arm(pin.JointModelRY(), at=(300.0, -40.0, -DEPTH)),
}


@pytest.mark.parametrize('model', MODELS)
@pytest.mark.parametrize('name', IMMOVABLE_FEET)
def test_an_immovable_foot_in_the_ground_is_left_out(name, model):
    """The robot moves as without a foot; a force of 1e14 N was found before."""
    robot = IMMOVABLE_FEET[name]
    sim = Simulator(robot, model, time_step=H)
    bare = Simulator(replace(robot, contact_points=()), model, time_step=H)
    for _ in range(20):
        report, free = sim.step([0.5]), bare.step([0.5])
        assert report.solver.status is SolverStatus.IMMOVABLE
        assert report.contacts.immovable.tolist() == [True]
        assert not report.contacts.force.any()
        assert report.contacts.mode.tolist() == [0]
        assert report.q == pytest.approx(free.q, abs=1e-15)
        assert report.v == pytest.approx(free.v, rel=1e-12)
        assert max(report.residuals[:6]) == 0.0
        momentum = free.residuals.momentum  # hybrid judges arcs by the terms of their start
        assert report.residuals.momentum == pytest.approx(momentum, abs=1e-12)
    assert report.solver.converged
    assert 'immovable' in report.solver.message
    assert free.solver.status is SolverStatus.FREE


@pytest.mark.parametrize('model', MODELS)
def test_an_immovable_foot_above_the_ground_is_no_news(model):
    sim = Simulator(arm(pin.JointModelPX(), at=(0.0, 0.0, 1e-3)), model, time_step=H)
    report = sim.step([0.5])
    assert report.solver.status is SolverStatus.FREE
    assert not report.contacts.force.any()


@pytest.mark.parametrize('model', MODELS)
@pytest.mark.parametrize('joint', ['slide', 'hinge'])
def test_one_joint_on_a_fixed_base_stands_on_its_one_foot(joint, model):
    """Weight on a slider; m g times the share of the lever on a hinge."""
    if joint == 'slide':
        robot, force = arm(pin.JointModelPZ(), at=(0.0, 0.0, 0.0)), 9.81
    else:
        lever = {'com': (0.15, 0.0, 0.0), 'foot': (0.3, 0.0, 0.0)}
        robot, force = arm(pin.JointModelRY(), at=(0.0, 0.0, 0.0), **lever), 0.5 * 9.81
    sim = Simulator(robot, model, time_step=H)
    for _ in range(500):
        report = sim.step([0.0])
        assert report.solver.converged
    assert report.contacts.immovable.tolist() == [False]
    assert report.contacts.normal_force == pytest.approx([force], rel=1e-3)
    assert abs(report.v[0]) < 1e-4


@pytest.mark.parametrize('model', MODELS)
def test_a_foot_behind_a_held_joint_is_immovable(model):
    """Bounds that leave one position make a joint a weld: its column counts for nothing."""
    robot = arm(pin.JointModelRY(), foot=(0.3, 0.0, 0.0))
    held = robot.with_position_limits([PositionLimit(('joint',), 0.0, 0.0)])
    sim = Simulator(held, model, time_step=H)
    for _ in range(20):
        report = sim.step([0.0])
    assert report.contacts.immovable.tolist() == [True]
    assert report.solver.status is SolverStatus.IMMOVABLE
    assert abs(report.q[0]) < 1e-3
    free = Simulator(robot, model, time_step=H).step([0.0])
    assert free.contacts.immovable.tolist() == [False]


@pytest.mark.parametrize('model', MODELS)
def test_others_are_solved_as_ever_beside_an_immovable_contact(model):
    """Two contact problems in one world; that of the ball is its own."""
    law = Compliant(stiffness=1e4) if model == 'compliant' else model  # else sized by all feet
    both = joined({'arm': arm(pin.JointModelRY()), 'ball': ball()}, {'ball': (1.0, 0.0)})
    sim, alone = Simulator(both, law, time_step=H), Simulator(ball(), law, time_step=H)
    for _ in range(20):
        report, own = sim.step([0.5]), alone.step([])
        assert report.q[1:] == pytest.approx(own.q + np.eye(7)[0], abs=1e-12)
        assert report.v[1:] == pytest.approx(own.v, abs=1e-9)
        assert report.contacts.immovable.tolist() == [True, False]
        assert report.contacts.normal_force[1] == pytest.approx(own.contacts.normal_force[0])
    assert report.solver.status is SolverStatus.IMMOVABLE


def turntable(x):
    """Return a URDF: a fixed box, on it a ball that turns about the vertical through it."""
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    return f"""<robot name="turntable{x}">
      <link name="base">
        <collision><geometry><box size="0.4 0.1 0.1"/></geometry></collision></link>
      <link name="ball"><inertial><mass value="1"/>{inertia}</inertial>
        <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
      <joint name="axis" type="continuous"><parent link="base"/><child link="ball"/>
        <origin xyz="0 0 0.3"/><axis xyz="0 0 1"/></joint></robot>"""


@pytest.mark.parametrize('model', MODELS)
def test_pairs_of_immovable_bodies_are_left_out(model):
    """Bases that overlap are both the world, and no pair; balls on parallel axes stay put."""
    one = load_robot(turntable(0), floating_base=False)
    pair = joined({'a': one, 'b': one}, {'b': (0.15, 0.0)}, against_each_other=True)
    sim = Simulator(pair, model, time_step=H)
    for _ in range(10):
        report = sim.step([0.5, 0.0])
    assert report.solver.status is SolverStatus.IMMOVABLE
    met = report.pairs.gap < 0.0
    assert report.pairs.immovable[met].all()
    assert met.any()
    assert not any(first == second for first, second in report.pairs.solids.tolist())
    assert not report.pairs.force.any()
    assert report.v == pytest.approx([10 * H * 0.5, 0.0], rel=1e-9)


@pytest.mark.parametrize('model', MODELS)
def test_body_contacts_are_left_out_likewise(model):
    robot = load_robot(turntable(0), floating_base=False)
    model_ = pin.Model(robot.pinocchio_model)
    lowered = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.09]))
    model_.jointPlacements[1] = lowered
    robot = replace(robot, pinocchio_model=model_).with_body_contacts(['ball'])
    report = Simulator(robot, model, time_step=H).step([0.5])
    assert report.solver.status is SolverStatus.IMMOVABLE
    assert report.contacts.immovable.all()
    assert report.v == pytest.approx([H * 0.5], rel=1e-9)


@pytest.mark.parametrize(('angle', 'left_out'), [(0.0, True), (1e-8, True), (1e-4, False)])
def test_what_counts_as_zero(angle, left_out):
    """A pendulum above its foot: |J_n| is its angle times |J_t|."""
    robot = arm(pin.JointModelRY(), at=(0.0, 0.0, 0.39), foot=(0.0, 0.0, -0.4))
    sim = Simulator(robot, 'sap', time_step=H)
    sim.reset([angle])
    assert sim.step([0.0]).contacts.immovable.tolist() == [left_out]


def test_a_floating_robot_has_no_immovable_contact():
    sim = Simulator(load_robot('go1'))
    for _ in range(50):
        report = sim.step(np.zeros(12))
        assert not report.contacts.immovable.any()


def test_failures_and_stances_are_told_first():
    assert STATUSES[IMMOVABLE] is SolverStatus.IMMOVABLE
    assert worse_status(NONFINITE, IMMOVABLE) == NONFINITE
    assert SolverStatus.IMMOVABLE.physical
    assert worse_status(PULLING, NONFINITE) == NONFINITE


def test_rows_that_nothing_can_move_have_residuals():
    """A problem from outside may have them: they miss no law, the others are judged as ever."""
    blocks = [Cone(np.zeros((3, 3)), 0.5, 0.0), Interval(np.eye(1, 3), -1.0, 1.0)]
    problem = ContactProblem.from_blocks(
        blocks, np.eye(3), np.zeros(3), np.array([0.1, 0.0, -1.0]), 1e-3
    )
    for impulse, missed in ((np.array([0.0, 0.0, 0.0, -0.1]), 0.0), (np.zeros(4), 0.1)):
        residuals = law_residuals(problem, impulse)
        assert np.isfinite(residuals).all()
        assert residuals.ncp == pytest.approx(missed, abs=1e-15)
