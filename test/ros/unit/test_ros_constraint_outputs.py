"""What the node publishes of bilateral constraints, against statics; without a network."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from labels import labelled
from linkages import double_pendulum
from sent import SentMessages, received_numbers

from contact_sim import Simulator
from contact_sim.drawing._step_shapes import METRES_PER_NEWTON
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._factory import chosen_constraints, described_constraints
from contact_sim.ros._parameters import (
    PARAMETER_GROUPS,
    ConstraintNames,
    ConstraintParameters,
    NodeParameters,
)
from contact_sim.topics._messages import Step
from contact_sim.topics._messages import labelled as labelled_numbers
from contact_sim.topics._world_topics import SimulationTopics, SolverNumbers

MASS, CENTRE = 2.0, np.array([0.1, -0.2, 0.3])
WEIGHT = MASS * 9.81
TILT = pin.rpy.rpyToMatrix(0.4, -0.7, 1.1)


def body():
    """Return a floating body whose centre of mass is not at its frame 'base'."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root')
    model.appendBodyToJoint(
        joint, pin.Inertia(MASS, CENTRE, np.diag([0.02, 0.03, 0.04])), pin.SE3.Identity()
    )
    frame = pin.Frame('base', joint, 0, pin.SE3.Identity(), pin.FrameType.BODY)
    model.addFrame(frame)
    return RobotModel.from_pinocchio(model, name='body')


def settings_of(**constraints):
    """Return settings with these constraints, robots in the air."""
    settings = {prefix: cls() for prefix, cls in PARAMETER_GROUPS.items()}
    settings[''] = NodeParameters(frame_prefix='left/')
    settings['constraints'] = ConstraintNames(tuple(constraints))
    return settings | {
        f'constraints.{name}': ConstraintParameters(**said) for name, said in constraints.items()
    }


def simulated(robot, settings, q=None):
    """Return a simulator in which the enabled constraints hold at q."""
    sim = Simulator(robot)
    sim.reset(q)
    sim.constraints = chosen_constraints(settings)
    sent = SentMessages()
    topics = SimulationTopics(sim, settings, described_constraints(settings), sent)
    return sim, lambda report: topics.publish(Step(report, {'wrenches', 'markers'})), sent


def arrow_of(sent):
    """Return the arrow of the only constraint."""
    (message,) = sent['~/contact_markers']
    (arrow,) = (marker for marker in message.markers if marker.ns == 'constraint_force')
    return arrow


def vector(message):
    return np.array([message.x, message.y, message.z])


def tilted(position=(0.0, 0.0, 5.0)):
    return pin.SE3ToXYZQUAT(pin.SE3(TILT, np.array(position)))


def test_a_stand_carries_the_weight_and_its_moment():
    """In the axes of the frame: f = m g Rᵀ z, and c x f about its origin."""
    settings = settings_of(stand={'kind': 'frame_anchor', 'frame': 'base'})
    sim, publish, sent = simulated(body(), settings, tilted())
    report = sim.step(np.zeros(0))
    publish(report)
    (message,) = sent['constraints/stand/wrench']
    up = TILT.T @ [0.0, 0.0, WEIGHT]
    assert message.header.frame_id == 'left/base'
    assert message.header.stamp.nanosec == 1_000_000
    assert vector(message.wrench.force) == pytest.approx(up, abs=1e-9)
    assert vector(message.wrench.torque) == pytest.approx(np.cross(CENTRE, up), abs=1e-9)
    arrow = arrow_of(sent)
    tip, foot = (vector(arrow.points[k]) for k in (1, 0))
    assert foot == pytest.approx([0.0, 0.0, 5.0], abs=1e-12)
    assert tip - foot == pytest.approx([0.0, 0.0, METRES_PER_NEWTON * WEIGHT], abs=1e-9)
    assert arrow.header.frame_id == 'odom'


@pytest.mark.parametrize('kind', ['point_anchor', 'loop_closure'])
def test_a_rope_pulls_at_its_point(kind):
    """From rest, theory 4.6 for a rigid body: (I/m + dᵀ J⁻¹ d) f = g, with d = [p - c]x."""
    point = np.array([0.05, 0.15, -0.1])
    held = TILT @ point + [0.0, 0.0, 5.0]
    said = {'kind': kind, 'frame': 'base', 'point': tuple(point)}
    if kind == 'loop_closure':
        said |= {'other': 'universe', 'other_point': tuple(held)}
    sim, publish, sent = simulated(body(), settings_of(rope=said), tilted())
    report = sim.step(np.zeros(0))
    publish(report)
    wrench = sent['constraints/rope/wrench'][0].wrench
    d = pin.skew(point - CENTRE)
    mobility = np.eye(3) / MASS - d @ np.linalg.inv(np.diag([0.02, 0.03, 0.04])) @ d
    expected = np.linalg.solve(mobility, TILT.T @ [0.0, 0.0, 9.81])
    assert vector(wrench.force) == pytest.approx(expected, rel=2e-3, abs=2e-3)  # R turns in h
    lever = np.cross(point, vector(wrench.force))
    assert vector(wrench.torque) == pytest.approx(lever, abs=1e-9)
    assert np.abs(lever).max() > 0.1
    arrow = arrow_of(sent)
    assert vector(arrow.points[0]) == pytest.approx(held, abs=1e-9)


def test_efforts_of_joints_balance_what_is_commanded():
    """Hanging at rest: the gear takes τ2 and puts ratio τ2 on its leader, the lock the rest."""
    settings = settings_of(
        gear={'kind': 'joint_coupling', 'joint': 'q2', 'leader': 'q1', 'ratio': -1.5},
        lock={'kind': 'joint_lock', 'joint': 'q1'},
    )
    sim, publish, sent = simulated(double_pendulum(), settings)
    publish(sim.step(np.array([0.7, 2.0])))
    (gear,), (lock,) = sent['constraints/gear/effort'], sent['constraints/lock/effort']
    assert list(gear.name) == ['q2', 'q1']
    assert list(gear.effort) == pytest.approx([-2.0, -1.5 * 2.0], abs=1e-9)
    assert list(lock.name) == ['q1']
    assert list(lock.effort) == pytest.approx([-0.7 + 1.5 * 2.0], abs=1e-9)
    assert lock.header.stamp.nanosec == 1_000_000


def test_what_does_not_hold_has_no_force():
    settings = settings_of(
        stand={'kind': 'frame_anchor', 'frame': 'tip', 'enabled': False},
        lock={'kind': 'joint_lock', 'joint': 'q1', 'enabled': False},
    )
    sim, publish, sent = simulated(double_pendulum(), settings)
    report = sim.step(np.array([0.7, 2.0]))
    publish(report)
    assert not vector(sent['constraints/stand/wrench'][0].wrench.force).any()
    assert list(sent['constraints/lock/effort'][0].effort) == [0.0]
    arrow = arrow_of(sent)
    assert arrow.action == arrow.DELETE


def test_a_wrench_on_the_world_is_told_in_odom():
    said = {'kind': 'loop_closure', 'frame': 'universe', 'other': 'base', 'point': (0.0, 0.0, 5.0)}
    sim, publish, sent = simulated(body(), settings_of(rope=said), tilted())
    publish(sim.step(np.zeros(0)))
    (message,) = sent['constraints/rope/wrench']
    assert message.header.frame_id == 'odom'
    assert message.wrench.force.z < -1.0  # the body pulls the world down


def test_errors_are_told_by_label_whether_it_holds_or_not():
    """Without feedback the error of the position is that of the integration, and is told."""
    settings = settings_of(
        soft={'kind': 'point_anchor', 'frame': 'tip', 'alpha': 0.0},
        lock={'kind': 'joint_lock', 'joint': 'q1', 'enabled': False},
    )
    sim, _, _ = simulated(double_pendulum(), settings, np.array([0.5, -0.3]))
    names = settings['constraints'].names
    sim.reset(np.array([0.5, -0.3]), [1.0, -0.5])
    held = sim.frame_placement('tip').translation.copy()
    for _ in range(50):
        report = sim.step(np.zeros(2))
    values = SolverNumbers(parts_of(sim.robot), sim.terrain, names).of(report, 0.0)
    numbers = labelled(received_numbers(labelled_numbers(values, list(values.values()))))
    gone = np.linalg.norm(sim.frame_placement('tip').translation - held)
    assert gone > 1e-6
    assert numbers['constraints.soft.drift'] == pytest.approx(gone, rel=1e-9)
    assert numbers['constraints.soft.drift_rate'] > 0.0
    assert numbers['constraints.lock.drift'] == numbers['constraints.lock.drift_rate'] == 0.0
