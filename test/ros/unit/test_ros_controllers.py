"""The example controllers know the robot by the same parameters as the simulation."""

import pytest
import rclpy

from contact_sim import load_robot
from contact_sim.errors import UnknownName
from contact_sim.ros.controllers.stance import StanceController

FEET = ['RH_FOOT', 'LH_FOOT', 'RF_FOOT', 'LF_FOOT']


@pytest.fixture
def stranger(tmp_path):
    """Our quadruped as somebody else's file: no catalogue and no SRDF know it."""
    path = tmp_path / 'stranger.urdf'
    path.write_text(load_robot('quadruped').description, encoding='utf-8')
    return path


def controller(*parameters):
    """Return the controller that a command line makes."""
    rclpy.init(args=['--ros-args', *(word for one in parameters for word in ('-p', one))])
    try:
        node = StanceController()
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
