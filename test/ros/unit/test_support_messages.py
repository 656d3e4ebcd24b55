"""The support in ~/solver_state and in RViz, and ~/support; without a network."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from robots import stand
from sent import received_markers
from visualization_msgs.msg import Marker

from contact_sim import InclinedPlane, NullSpace, Simulator, load_robot, loose_box
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._inputs import SupportCommand
from contact_sim.topics._markers import SupportMarkers
from contact_sim.topics._world_topics import SolverNumbers

ROBOT = load_robot('anymal_b')
ALL = [1, 1, 1, 1]


def drawn(markers, report):
    """Return markers as messages."""
    return received_markers(markers.of(report))


class Loop:
    """Runs at once what is asked for between two steps."""

    def between_steps(self, action):
        action()


def values(sim, report):
    numbers = SolverNumbers(parts_of(sim.robot), sim.terrain, ()).of(report, 1.0)
    assert np.isfinite(list(numbers.values())).all()
    return numbers


def given(*feet):
    sim = Simulator(ROBOT, NullSpace(support='given', feet=feet))
    return sim, stand(sim, 1)[0]


def test_solver_state_tells_what_two_feet_hold():
    sim, report = given('LF_FOOT', 'RH_FOOT')
    found = values(sim, report)
    named = ('rank', 'base_rank', 'internal_constraints', 'uncontrollable_base_dof')
    assert [found[f'support_{name}'] for name in named] == [6, 5, 1, 1]
    direction = np.array([found[f'support_free_direction_{axis}'] for axis in 'xyz'])
    point = np.array([found[f'support_free_point_{axis}'] for axis in 'xyz'])
    a, b = report.contacts.position[[0, 3]]
    line = (b - a) / np.linalg.norm(b - a)
    assert abs(direction @ line) == pytest.approx(1.0, abs=1e-9)
    assert np.abs(np.cross(line, point - a)).max() <= 1e-9
    assert found['support_free_rotation'] == 1.0
    assert found['physical'] == 0.0  # the other two feet sink in


def test_solver_state_in_flight_has_the_same_labels():
    sim = Simulator(ROBOT)
    standing = values(sim, stand(sim, 1)[0])
    q = sim.q.copy()
    q[2] += 1.0
    sim.reset(q)
    flying = values(sim, stand(sim, 1)[0])
    assert list(flying) == list(standing)
    assert flying['support_uncontrollable_base_dof'] == 6.0
    assert flying['support_margin'] == 0.0
    assert standing['support_margin'] == pytest.approx(0.2001, abs=1e-3)


@pytest.mark.parametrize('angle', [0.0, 0.2])
def test_markers_of_the_support(angle):
    terrain = InclinedPlane(angle)
    sim = Simulator(ROBOT, terrain=terrain)
    report = stand(sim, 10)[-1]
    polygon, centre, plumb = drawn(SupportMarkers(ROBOT, terrain), report)
    assert polygon.action == Marker.ADD
    corners = np.array([[p.x, p.y, p.z] for p in polygon.points])
    assert corners.shape == (5, 3)
    assert np.array_equal(corners[0], corners[-1])
    feet = {tuple(position) for position in report.contacts.position.round(9).tolist()}
    assert {tuple(corner) for corner in corners.round(9).tolist()} == feet
    top, foot = ([p.x, p.y, p.z] for p in plumb.points)
    assert top == [getattr(centre.pose.position, axis) for axis in 'xyz']
    assert foot[:2] == top[:2]
    assert terrain.plane[:3] @ foot == pytest.approx(0.0, abs=1e-12)
    assert centre.color.g > centre.color.r


def test_a_centre_of_mass_beside_the_polygon_is_red():
    sim, report = given('LF_FOOT', 'LH_FOOT')
    polygon, centre, _ = drawn(SupportMarkers(ROBOT, sim.terrain), report)
    assert len(polygon.points) == 2
    assert centre.color.r > centre.color.g
    sim, report = given()
    polygon, _, _ = drawn(SupportMarkers(ROBOT, sim.terrain), report)
    assert polygon.action == Marker.DELETE


def test_a_body_that_lies_on_the_ground_has_contacts_but_no_feet_that_stand():
    box = loose_box((0.2, 0.2, 0.2), 1.0)
    sim = Simulator(box)
    sim.reset(np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0]))
    numbers = values(sim, sim.step([]))
    assert numbers['contacts'] > 0
    assert numbers['support_rank'] == 0
    assert numbers['support_margin'] == 0.0


def test_support_on_a_topic():
    sim = Simulator(ROBOT, NullSpace(release=True))
    command = SupportCommand(sim, Loop(), *parts_of(sim.robot))
    assert command.take([1, 0, 0, 1]) is None
    report = stand(sim, 1)[0]
    assert (report.contacts.mode > 0).tolist() == [True, False, False, True]
    assert sim.model.parameters.release  # what else was set stays
    model = sim.model
    assert command.take([5, 0, 0, -1]) is None
    assert sim.model is model  # nothing new
    assert command.take(ALL) is None
    assert (stand(sim, 1)[0].contacts.mode > 0).all()
    assert '3 numbers, expected one for each of the 4 feet' in command.take([1, 0, 1])
    sim.contact_model = 'ncp'
    assert 'the contact model is ncp' in command.take(ALL)
    assert sim.contact_model == 'ncp'
