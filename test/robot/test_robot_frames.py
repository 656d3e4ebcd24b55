"""A joint and its link that share a name, as in many descriptions of others."""

import numpy as np
import pytest

from contact_sim import Simulator, Worlds, joined, load_robot
from contact_sim.constraints import FrameAnchor

TEXT = """
<robot name="one">
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="leg" type="revolute"><parent link="base"/><child link="leg"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="10"/></joint>
  <link name="leg"><inertial><origin xyz="0 0 -0.1"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/></geometry></collision>
  </link>
</robot>
"""


@pytest.fixture(scope='module')
def robot():
    return load_robot(TEXT, feet=['leg'])


def test_pushed_and_held(robot):
    """The weight as thrust on the link keeps the height; an anchor holds it where it is."""
    sim = Simulator(robot)
    sim.reset(sim.q + np.eye(robot.nq)[2])
    up = np.r_[0.0, 0.0, robot.total_mass * 9.81, np.zeros(3)]
    assert sim.step([0.0], {'leg': up}).acceleration[2] == pytest.approx(0.0, abs=1e-12)
    sim.add_constraint(FrameAnchor('leg'))
    assert sim.frame_placement('leg').translation == pytest.approx(sim.constraints[0].at[:3])
    worlds = Worlds(robot, n=2)
    worlds.push('leg', up)


def test_two_of_them_are_joined(robot):
    pair = joined({'a': robot, 'b': robot}, {'a': (0.0, 0.0, 0.0), 'b': (1.0, 0.0, 0.0)})
    assert pair.joint_names == ('a/leg', 'b/leg')
    sim = Simulator(pair)
    for _ in range(10):
        report = sim.step(np.zeros(2))
    assert report.solver.converged
    apart = sim.frame_placement('b/leg').translation - sim.frame_placement('a/leg').translation
    assert apart == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)
