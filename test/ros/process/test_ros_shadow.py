"""~/shadow and contact.shadow over ROS: other models answer the steps of a running simulation."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from labels import labelled
from ros_session import Session

from contact_sim import load_robot

TOPIC, DIAGNOSTICS = '/contact_sim/shadow', '/diagnostics'
TOPICS = {
    TOPIC: 'std_msgs/msg/Float64MultiArray',
    '/contact_sim/solver_state': 'std_msgs/msg/Float64MultiArray',
    DIAGNOSTICS: 'diagnostic_msgs/msg/DiagnosticArray',
}


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
