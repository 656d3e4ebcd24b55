"""<mimic> in a URDF: such a joint moves on its own, and that is said."""

import warnings

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import joint, link, robot

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.errors import RobotDescriptionError


def gripper(more='<mimic joint="left" multiplier="-1.0" offset="0.1"/>'):
    return robot(
        link('palm'), link('a'), link('b'), joint('left', 'palm', 'a'),
        joint('right', 'palm', 'b', more=more), name='gripper',
    )  # fmt: skip


def test_a_mimic_joint_is_named_in_a_warning_and_moves_on_its_own():
    with pytest.warns(
        UserWarning, match=r"<mimic> is not modelled.* 'right' \(of 'left'\)"
    ) as told:
        model = load_robot(gripper(), floating_base=False)
    assert told[0].filename == __file__
    assert model.joint_names == ('left', 'right')
    sim, effort = Simulator(model), np.array([0.3, 0.0])
    report = sim.step(effort)
    plain = model.pinocchio_model
    expected = pin.aba(plain, plain.createData(), np.zeros(2), np.zeros(2), effort)
    assert report.acceleration == pytest.approx(expected, abs=1e-9)
    assert abs(expected[0]) > 1.0
    assert expected[1] == pytest.approx(0.0, abs=1e-9)  # nothing moves it: it hangs still


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
