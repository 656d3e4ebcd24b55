"""Linkages in the x-z plane: those of the textbook, and chains of any length."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_sim import RobotModel, load_robot

IN_PLANE = np.array([0.0, -1.0, 0.0])
"""Axis of all joints: a positive angle turns x towards z."""


def rod(length: float, mass: float) -> pin.Inertia:
    """Return a thin uniform rod along x from the origin of its frame."""
    about_centre = mass * length**2 / 12.0
    inertia = np.diag([1e-9, about_centre, about_centre])
    return pin.Inertia(mass, np.array([length / 2.0, 0.0, 0.0]), inertia)


def add_link(
    model: pin.Model, parent: int, place: tuple[float, float], inertia: pin.Inertia, name: str
) -> int:
    """Add a link on a joint in the plane, at a place (x, z) of its parent; return the joint."""
    placement = pin.SE3(np.eye(3), np.array([place[0], 0.0, place[1]]))
    turning = pin.JointModelRevoluteUnaligned(IN_PLANE)
    joint = model.addJoint(parent, turning, placement, name)
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    return joint


def add_tip(model: pin.Model, joint: int, x: float, name: str) -> None:
    """Add a frame on the x axis of a link."""
    at = pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))
    model.addFrame(pin.Frame(name, joint, 0, at, pin.FrameType.OP_FRAME))


def double_pendulum() -> RobotModel:
    """Return T2's: point masses, q1 from hanging, q2 relative; hanging, frame 'tip'."""
    return load_robot('double_pendulum', poses={'standing': {'q1': 0.0, 'q2': 0.0}})


def four_bar() -> RobotModel:
    """Return T4's four-bar of uniform rods, driven, cut where coupler and rocker meet.

    Angles of crank and rocker are absolute, that of the coupler relative to the crank; frames
    'coupler_tip' and 'rocker_tip'.
    """
    return load_robot('four_bar', actuated_joints=('crank', 'coupler', 'rocker'))


def chain(links: int) -> RobotModel:
    """Return C7's pinned chain of uniform rods, 1 kg and 1 m each, frame 'tip'."""
    model, parent, place = pin.Model(), 0, (0.0, 0.0)
    for i in range(links):
        parent = add_link(model, parent, place, rod(1.0, 1.0), f'joint{i + 1}')
        place = (1.0, 0.0)
    add_tip(model, parent, 1.0, 'tip')
    return RobotModel.from_pinocchio(model, name='chain')
