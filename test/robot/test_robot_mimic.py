"""<mimic> in a URDF: a constraint of the robot, or it is said that the joint moves on its own."""

import warnings

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import joint, link, robot

from contact_sim import (
    InvalidInput,
    RobotModel,
    Simulator,
    UnknownName,
    Worlds,
    joined,
    load_robot,
)
from contact_sim.constraints import JointCoupling, JointLock, LoopClosure
from contact_sim.errors import RobotDescriptionError
from contact_sim.robot._model import describe_limits


def gripper(more='<mimic joint="left" multiplier="-1.0" offset="0.1"/>'):
    return robot(
        link('palm'), link('a'), link('b'), joint('left', 'palm', 'a'),
        joint('right', 'palm', 'b', more=more), name='gripper',
    )  # fmt: skip


def test_a_mimic_joint_becomes_a_constraint_of_the_robot_and_has_no_motor():
    model = load_robot(gripper(), floating_base=False)
    assert model.joint_names == ('left',)
    assert model.passive_joint_names == ('right',)
    (coupling,) = model.constraints
    assert isinstance(coupling, JointCoupling)
    assert (coupling.joint, coupling.leader) == ('right', 'left')
    assert (coupling.ratio, coupling.offset) == (-1.0, 0.1)
    assert str(coupling) == 'right = -1 * left + 0.1'
    line = describe_limits(model.position_limits)
    assert line == 'position limits: -1 <= left <= 2; -1 <= right <= 2'
    assert describe_limits(()) == 'no joint has position limits'
    assert model.reference_configuration() == pytest.approx([0.0, 0.1])
    sim = Simulator(model)
    assert sim.constraints == model.constraints
    sim.remove_constraint(coupling)  # the gear breaks
    assert sim.constraints == ()


def test_who_names_a_follower_as_driven_gets_it_driven():
    model = load_robot(gripper(), floating_base=False, actuated_joints=['left', 'right'])
    assert model.joint_names == ('left', 'right')
    assert len(model.constraints) == 1


def test_a_chain_of_followers_and_one_that_stands_still():
    text = robot(
        link('palm'), link('a'), link('b'), link('c'), link('d'), joint('first', 'palm', 'a'),
        joint('third', 'b', 'c', more='<mimic joint="second" multiplier="2"/>'),
        joint('second', 'a', 'b', more='<mimic joint="first" multiplier="0.5" offset="0.1"/>'),
        joint('still', 'c', 'd', more='<mimic joint="first" multiplier="0" offset="0.3"/>'),
    )  # fmt: skip
    poses = {'standing': {'first': 0.4}}
    model = load_robot(text, floating_base=False, poses=poses)
    assert model.joint_names == ('first',)
    assert model.reference_configuration() == pytest.approx([0.4, 0.3, 0.6, 0.3], abs=1e-12)


def test_a_mimic_joint_that_turns_without_end_is_named_and_moves_on_its_own():
    wheels = robot(
        link('palm'), link('a'), link('b'), joint('left', 'palm', 'a', 'continuous'),
        joint('right', 'palm', 'b', 'continuous', more='<mimic joint="left"/>'),
    )  # fmt: skip
    with pytest.warns(UserWarning, match=r"<mimic> needs.* 'right' \(of 'left'\)") as told:
        model = load_robot(wheels, floating_base=False)
    assert told[0].filename == __file__
    sim = Simulator(model)
    sim.step(np.array([0.3, 0.0]))
    assert abs(sim.v[0]) > 1e-3
    assert sim.v[1] == pytest.approx(0.0, abs=1e-12)  # nothing moves it: it hangs still


@pytest.mark.parametrize('leader', ['right', 'middle', ''])
def test_a_mimic_joint_of_no_other_joint_is_refused(leader):
    with pytest.raises(RobotDescriptionError, match=r"'right': <mimic> joint = .*another joint"):
        load_robot(gripper(more=f'<mimic joint="{leader}"/>'), floating_base=False)


def test_without_mimic_there_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        load_robot(gripper(more=''), floating_base=False)


def test_joined_robots_keep_their_own_followers():
    one = load_robot(gripper(), floating_base=False)
    both = joined({'a': one, 'b': one}, {'b': (1.0, 0.0)})
    assert [(c.joint, c.leader) for c in both.constraints] == [
        ('a/right', 'a/left'), ('b/right', 'b/left'),
    ]  # fmt: skip
    sim, alone = Simulator(both), Simulator(one)
    for _ in range(50):
        sim.step([0.3, -0.2])
        alone.step([0.3])
    assert sim.q[:2] == pytest.approx(alone.q, abs=1e-12)
    assert sim.q[3] + sim.q[2] == pytest.approx(0.1, abs=1e-12)


def test_worlds_have_the_constraints_of_the_robot():
    model = load_robot(gripper(), floating_base=False)
    worlds, sim = Worlds(model, 2), Simulator(model)
    worlds.step(np.array([0.3]), 100)
    for _ in range(100):
        sim.step([0.3])
    assert (worlds.q == sim.q).all()
    assert abs(sim.q[0]) > 1e-3
    carried = Worlds(model, 2, integrator='momentum')  # the base is fixed: nothing is carried
    carried.step(np.array([0.3]), 100)
    assert (carried.q == sim.q).all()
    with pytest.raises(InvalidInput, match=r'world 1.*right = -1'):
        worlds.reset(q=np.array([[0.0, 0.1], [0.0, 0.0]]))


@pytest.mark.parametrize(
    ('constraint', 'error', 'match'),
    [
        (JointLock('left'), InvalidInput, 'LoopClosure and JointCoupling'),
        (JointCoupling('right', 'middle'), UnknownName, 'middle'),
        (LoopClosure('a', 'elbow'), UnknownName, 'elbow'),
        (LoopClosure('a', 'universe'), InvalidInput, 'PointAnchor'),
        (LoopClosure('a', 'b', point=(0.0, 0.0, 9.0)), InvalidInput, 'a to b: 9 m or rad'),
    ],
)
def test_constraints_that_a_robot_cannot_have_are_refused(constraint, error, match):
    model = load_robot(gripper(more=''), floating_base=False)
    with pytest.raises(error, match=match):
        model.with_constraints([constraint])


@pytest.mark.skipif(not hasattr(pin, 'JointModelMimic'), reason='Pinocchio before 3.6')
def test_a_pinocchio_model_with_a_mimic_joint_is_refused_by_name():
    model = pin.Model()
    for name in ('left', 'middle'):
        i = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), name)
        model.appendBodyToJoint(i, pin.Inertia.Random(), pin.SE3.Identity())
    mimic = pin.JointModelMimic(model.joints[1], 2.0, 0.1)
    i = model.addJoint(0, mimic, pin.SE3.Identity(), 'right')
    model.appendBodyToJoint(i, pin.Inertia.Random(), pin.SE3.Identity())
    with pytest.raises(
        RobotDescriptionError, match=r"joint 'right' mimics another.*mimic=True.*JointCoupling"
    ):
        RobotModel.from_pinocchio(model)
