"""The message ~/shadow: labelled numbers of what other models answer; without a network."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from labels import labelled
from robots import StandingController, cube, pose
from sent import received_numbers

from contact_sim import Compliant, Simulator, load_robot
from contact_sim.solvers._cone_problem import CONVERGED, NONFINITE
from contact_sim.topics._world_topics import ShadowNumbers


def numbers_of(robot, report):
    """Return the numbers of the message by label."""
    return labelled(received_numbers(ShadowNumbers(robot).of(report)))


def test_the_message_is_what_the_report_says():
    sim = Simulator(load_robot('go1'))
    controller = StandingController(sim)
    sim.reset(v=[0.6, 0.3, *(0.0 for _ in range(sim.robot.nv - 2))])
    sim.shadow = ('sap', 'anitescu')
    report = sim.step(controller(sim))
    numbers = numbers_of(sim.robot, report)
    assert numbers['time'] == report.time
    for name, shadow in report.shadows.items():
        assert numbers[f'{name}.status'] == CONVERGED
        feet = [point.name for point in sim.robot.contact_points]
        force = [[numbers[f'{name}.force.{foot}.{axis}'] for axis in 'xyz'] for foot in feet]
        assert np.array_equal(force, shadow.force_difference)
        velocity = [numbers[f'{name}.velocity.v_z'], numbers[f'{name}.velocity.FL_calf_joint']]
        calf = sim.robot.pinocchio_model.joints[
            sim.robot.pinocchio_model.getJointId('FL_calf_joint')
        ]
        assert velocity == [shadow.velocity_difference[i] for i in (2, calf.idx_v)]
    assert np.abs(report.shadows['anitescu'].force_difference).max() > 1.0  # feet that slide
    sim.shadow = ('lcp',)
    assert 'lcp.status' in numbers_of(sim.robot, sim.step(controller(sim)))


def test_no_number_is_published_that_is_none():
    sim = Simulator(cube())
    sim.shadow = (Compliant(integration='explicit', stiffness=1e308),)
    sim.reset(pose(z=0.1 - 1e-3), np.array([0, 0, -1e10, 0, 0, 0]))
    numbers = numbers_of(sim.robot, sim.step(np.zeros(0)))
    assert numbers['compliant.status'] == NONFINITE
    assert numbers['compliant.converged'] == 0.0
    assert np.isfinite(list(numbers.values())).all()
