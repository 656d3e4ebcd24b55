"""Maximal coordinates against the numbers of the theory: C3 and C7."""

import numpy as np
import pinocchio as pin
import pytest
from linkages import IN_PLANE, add_link, chain, rod

from contact_sim import RobotModel
from contact_sim.maximal import MaximalSimulator

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
TURN = np.array([-12.43864641, 3.33323204, -0.89428177, 0.24389503, -0.08129834])
"""Angular accelerations of the five links, absolute [rad/s²]."""


def two_bodies():
    """Return C3's two bodies and their state: a free one, and another one on a ball joint."""
    model = pin.Model()
    first = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'first')
    inertia = pin.Inertia(1.0, np.zeros(3), np.diag([0.1, 0.2, 0.3]))
    model.appendBodyToJoint(first, inertia, pin.SE3.Identity())
    place = pin.SE3(np.eye(3), np.array([0.5, 0.0, 0.0]))
    second = model.addJoint(first, pin.JointModelSpherical(), place, 'second')
    inertia = pin.Inertia(2.0, np.array([0.4, -0.1, 0.0]), np.diag([0.4, 0.3, 0.2]))
    model.appendBodyToJoint(second, inertia, pin.SE3.Identity())
    turning, other = np.array([0.1, 0.2, 1.0]), np.array([-0.3, 0.5, 0.2])
    v = np.concatenate([[0.3, -0.2, 0.1], turning, other - turning])
    return RobotModel.from_pinocchio(model), pin.neutral(model), v


def test_c3_two_bodies_and_a_ball_joint():
    """C3: accelerations of two bodies, and the force that the ball joint exerts on the first."""
    robot, q, v = two_bodies()
    sim = MaximalSimulator(robot, gravity=(0.0, -9.8, 0.0))
    sim.reset(q, v)
    assert sim.state.velocity[1:, 3:] == pytest.approx(
        np.array([[0.1, 0.2, 1.0], [-0.3, 0.5, 0.2]]), abs=1e-15
    )
    acceleration, force = sim.acceleration()
    first = [0.4059308, -9.80346367, 0.01586902, -0.2, 0.06032746, -0.01243945]
    second = [-0.2029654, -9.79826817, -0.00793451, 0.02103275, 0.01884131, 0.12103806]
    assert acceleration[1] == pytest.approx(first, abs=5e-9)
    assert acceleration[2] == pytest.approx(second, abs=5e-9)
    assert -force == pytest.approx([0.4059308, -0.00346367, 0.01586902], abs=5e-9)


@pytest.mark.parametrize(('plane', 'size', 'entries'), [('xz', 25, 87), (None, 55, 330)])
def test_c7_chain_of_five_links(plane, size, entries):
    """C7: pinned, horizontal, at rest; 25 x 25 with 87 entries in the plane.

    In space: 5 (6 + 5) unknowns; 60 entries of M, twice 15 for each of the 9 bodies at joints.
    """
    sim = MaximalSimulator(chain(5), plane=plane)
    acceleration, multipliers = sim.acceleration()
    assert -acceleration[1:, 4] == pytest.approx(TURN, abs=5e-9)  # about −y
    report = sim.step()
    assert report.joint_force[1] == pytest.approx([0.0, 0.0, 2.83189227], abs=5e-9)
    assert sim.system.matrix.shape == (size, size)
    assert sim.system.matrix.nnz == entries
    assert len(multipliers) == size - 5 * len(sim.mechanism.coordinates)


def free_chain():
    """Return C7's chain with a free first link, in the x-z plane."""
    model = pin.Model()
    upright = pin.SE3(pin.utils.rotate('x', np.pi / 2.0), np.zeros(3))  # its plane is x-z
    first = model.addJoint(0, pin.JointModelPlanar(), upright, 'first')
    model.appendBodyToJoint(first, rod(1.0, 1.0), upright.inverse())
    tip = pin.SE3(upright.rotation.T, np.array([1.0, 0.0, 0.0]))
    joint = model.addJoint(first, pin.JointModelRevoluteUnaligned(IN_PLANE), tip, 'second')
    model.appendBodyToJoint(joint, rod(1.0, 1.0), pin.SE3.Identity())
    for i in range(2, 5):
        joint = add_link(model, joint, (1.0, 0.0), rod(1.0, 1.0), f'link{i + 1}')
    return RobotModel.from_pinocchio(model)


def test_c7_chain_with_a_free_first_link():
    """C7: 7 coordinates against 15 + 8; falls without turning, and without forces."""
    sim = MaximalSimulator(free_chain(), plane='xz')
    acceleration, multipliers = sim.acceleration()
    assert sim.robot.nv == 7
    assert sim.system.size == 23
    assert acceleration[1:] == pytest.approx(np.tile([0, 0, -9.81, 0, 0, 0], (5, 1)), abs=1e-12)
    assert multipliers == pytest.approx(np.zeros(8), abs=1e-12)
