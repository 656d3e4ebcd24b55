"""Feet: groups of contact points that share a frame."""

import pinocchio as pin
import pytest
from robots import FREE_FLYER, ball, cube, sled

from contact_sim import ContactPoint, Foot, InvalidInput, RobotModel, UnknownName, load_robot
from contact_sim.robot._contact_points import contact_point_indices, foot_frame


def test_a_foot_with_one_point_has_its_name():
    robot = load_robot('anymal_b')
    assert robot.feet == tuple(
        Foot(point.name, point.frame, point.joint, (k,))
        for k, point in enumerate(robot.contact_points)
    )
    only = ball()
    assert only.feet == (Foot('point_0', 'body', FREE_FLYER, (0,)),)


def test_points_that_share_a_frame_are_a_foot_with_the_name_of_the_frame():
    assert cube().feet == (Foot('body', 'body', FREE_FLYER, (0, 1, 2, 3)),)
    assert sled().feet == (
        Foot('left', 'left', FREE_FLYER, (0, 1, 2, 3)),
        Foot('right', 'right', FREE_FLYER, (4, 5, 6, 7)),
    )
    assert '2 feet' in repr(sled())
    assert RobotModel.from_pinocchio(sled().pinocchio_model).feet == ()


def test_feet_stand_in_the_order_of_their_first_points():
    robot = sled()
    left, right = robot.contact_points[0], robot.contact_points[4]
    mixed = (right, left, robot.contact_points[5])
    feet = RobotModel.from_pinocchio(robot.pinocchio_model, mixed).feet
    assert [(foot.name, foot.points) for foot in feet] == [('right', (0, 2)), ('left_0', (1,))]


def test_two_feet_of_one_name_are_refused():
    robot = sled()
    stranger = ContactPoint('left', 'right', FREE_FLYER, [0.0, 0.0, 0.0], 0.0)
    points = (*robot.contact_points[:4], stranger)
    with pytest.raises(InvalidInput, match="foot 'left' is listed more than once"):
        RobotModel.from_pinocchio(robot.pinocchio_model, points)


def test_a_name_stands_for_the_points_of_a_foot_or_for_one_point():
    robot = sled()

    def points(name):
        return contact_point_indices('foot', name, robot.feet, robot.contact_points)

    assert points('right') == (4, 5, 6, 7)
    assert points('right_2') == (6,)
    assert points('3') == (3,)
    for wrong in ('tail', '8', '-1', ''):
        with pytest.raises(UnknownName, match=r'known: left_0.*right_0.*, left, right'):
            points(wrong)


def test_the_frame_of_a_foot_is_the_link_where_a_joint_has_the_same_name():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root')
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    model.addJointFrame(joint, 0)
    body = pin.SE3.Random()
    model.addFrame(pin.Frame('root', joint, 0, body, pin.FrameType.BODY))
    robot = RobotModel.from_pinocchio(model, ['root'])
    assert foot_frame(robot.pinocchio_model, robot.feet[0]).placement == body
