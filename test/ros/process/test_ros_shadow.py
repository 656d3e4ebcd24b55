"""~/shadow and contact.shadow over ROS: other models answer the steps of a running simulation."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from robots import StandingController, cube, pose
from ros_session import Session

from contact_sim import Compliant, Simulator, load_robot
from contact_sim.contact.solution import CONVERGED, NONFINITE
from contact_sim.ros.outputs.shadow import ShadowMessage

TOPIC, DIAGNOSTICS = '/contact_sim/shadow', '/diagnostics'
TOPICS = {
    TOPIC: 'std_msgs/msg/Float64MultiArray',
    '/contact_sim/solver_state': 'std_msgs/msg/Float64MultiArray',
    DIAGNOSTICS: 'diagnostic_msgs/msg/DiagnosticArray',
}


def labelled(message):
    """Return the numbers of a message by label."""
    labels = [dim.label for dim in message.layout.dim]
    assert len(labels) == len(set(labels)) == len(message.data)
    return dict(zip(labels, message.data, strict=True))


def test_the_message_is_what_the_report_says():
    sim = Simulator(load_robot('go1'))
    controller = StandingController(sim)
    sim.reset(v=[0.6, 0.3, *(0.0 for _ in range(sim.robot.nv - 2))])
    sim.shadow = ('sap', 'anitescu')
    report = sim.step(controller(sim))
    numbers = labelled(ShadowMessage(sim.robot).fill(report))
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
    message = ShadowMessage(sim.robot)
    assert 'lcp.status' in labelled(message.fill(sim.step(controller(sim))))


def test_no_number_is_published_that_is_none():
    sim = Simulator(cube())
    sim.shadow = (Compliant(integration='explicit', stiffness=1e308),)
    sim.reset(pose(z=0.1 - 1e-3), np.array([0, 0, -1e10, 0, 0, 0]))
    numbers = labelled(ShadowMessage(sim.robot).fill(sim.step(np.zeros(0))))
    assert numbers['compliant.status'] == NONFINITE
    assert numbers['compliant.converged'] == 0.0
    assert np.isfinite(list(numbers.values())).all()


@pytest.mark.ros
def test_shadows_come_and_go_while_the_simulation_runs(tmp_path):
    with Session(
        tmp_path, TOPICS, {'start_paused': True, 'publish_rate.shadow': 100.0}
    ) as session:
        session.started().step(100)
        session.settle()
        assert session.messages[TOPIC] == []
        assert session.set({'contact.shadow': ['sap', 'lcp']}).successful
        session.step(100)
        session.settle()
        messages = session.messages[TOPIC]
        assert len(messages) == 10
        numbers = labelled(messages[-1])
        assert {name.partition('.')[0] for name in numbers} == {'time', 'sap', 'lcp'}
        weight = load_robot('go1').total_mass * 9.81
        vertical = {
            model: sum(
                value
                for name, value in numbers.items()
                if name.startswith(f'{model}.force') and name.endswith('.z')
            )
            for model in ('sap', 'lcp')
        }
        assert abs(vertical['lcp']) < 1e-3 * weight  # two rigid laws, a robot that stands
        assert vertical['sap'] < -0.01 * weight  # springs that are not compressed yet
        said = session.diagnostics()
        assert said['shadow_models'] == 'sap lcp'
        assert said['contact_model'] == 'ncp'
        assert said['contact_model_switches'] == '0'
        assert said['last_contact_model_switch'] == 'none'
        assert session.set({'contact.shadow': ['']}).successful
        assert session.diagnostics()['shadow_models'] == ''
