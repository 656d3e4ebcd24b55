"""The example controllers know the robot by the same parameters as the simulation."""

import numpy as np
import pytest
import rclpy

from contact_sim import load_robot
from contact_sim.control import Balance
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.ros.controllers.balance import BalanceController
from contact_sim.ros.controllers.stance import StanceController

FEET = ['RH_FOOT', 'LH_FOOT', 'RF_FOOT', 'LF_FOOT']


@pytest.fixture
def stranger(tmp_path):
    """Our quadruped as somebody else's file: no catalogue and no SRDF know it."""
    path = tmp_path / 'stranger.urdf'
    path.write_text(load_robot('quadruped').description, encoding='utf-8')
    return path


def controller(*parameters, kind=StanceController):
    """Return the controller that a command line makes."""
    rclpy.init(args=['--ros-args', *(word for one in parameters for word in ('-p', one))])
    try:
        node = kind()
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
    return node


def test_a_stranger_with_the_feet_and_pose_that_it_was_told(stranger):
    hips = ' '.join(f'{leg}_HFE=0.6' for leg in ('LF', 'RF', 'LH', 'RH'))
    feet = f'feet:=[{",".join(FEET)}]'
    node = controller(f'urdf_path:={stranger}', feet, f"poses:=['standing: {hips}']")
    assert [foot.frame for foot in node.robot.feet] == FEET
    index = node.robot.joint_names.index('LF_HFE')
    q = node.robot.reference_configuration()
    assert node.robot.joint_positions(q)[index] == 0.6


def test_a_foot_that_the_stranger_does_not_have(stranger):
    with pytest.raises(UnknownName, match='hoof'):
        controller(f'urdf_path:={stranger}', 'feet:=[hoof]')


def test_balance_sends_the_efforts_of_the_python_controller():
    node = controller('robot:=quadruped', 'friction:=0.6', kind=BalanceController)
    robot = node.robot
    q, v = robot.reference_configuration(), np.full(robot.nv, 0.01)
    message = node.command(0.0, q, v)
    assert message.name == list(robot.joint_names)
    assert not len(message.position)
    np.testing.assert_array_equal(message.effort, Balance(robot, friction=0.6).effort(0.0, q, v))


def test_balance_says_why_it_cannot():
    with pytest.raises(InvalidInput, match='its base is fixed'):
        controller('robot:=quadruped', 'floating_base:=false', kind=BalanceController)
