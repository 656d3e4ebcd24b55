"""<mimic> in a URDF: such a joint follows another, or it is said that it does not."""

import warnings

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import joint, link, robot

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.position_limits import describe_limits


def gripper(more='<mimic joint="left" multiplier="-1.0" offset="0.1"/>'):
    return robot(
        link('palm'), link('a'), link('b'), joint('left', 'palm', 'a'),
        joint('right', 'palm', 'b', more=more), name='gripper',
    )  # fmt: skip


def test_a_mimic_joint_becomes_a_bilateral_row():
    model = load_robot(gripper(), floating_base=False)
    assert model.joint_names == ('left', 'right')
    assert str(model.position_limits[-1]) == 'right + left = 0.1'
    assert describe_limits(model.position_limits) == [
        'position limits: -1 <= left <= 2; -1 <= right <= 2',
        'joints that follow others: right + left = 0.1',
    ]
    assert describe_limits(()) == ['no joint has position limits']
    assert model.reference_configuration() == pytest.approx([0.0, 0.1])


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


@pytest.mark.skipif(not hasattr(pin, 'JointModelMimic'), reason='Pinocchio before 3.6')
def test_a_pinocchio_model_with_a_mimic_joint_is_refused_by_name():
    model = pin.Model()
    for name in ('left', 'middle'):
        i = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), name)
        model.appendBodyToJoint(i, pin.Inertia.Random(), pin.SE3.Identity())
    mimic = pin.JointModelMimic(model.joints[1], 2.0, 0.1)
    i = model.addJoint(0, mimic, pin.SE3.Identity(), 'right')
    model.appendBodyToJoint(i, pin.Inertia.Random(), pin.SE3.Identity())
    with pytest.raises(RobotDescriptionError, match=r"joint 'right' mimics another.*mimic=True"):
        RobotModel.from_pinocchio(model)
