"""Runs of the real node, recorded and repeated without ROS."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import SECOND, Session, stamp_of

from contact_sim.replay import Recording, repeat
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.topics._table import PUBLISHED

TOPICS = {topic: PUBLISHED[topic] for topic in ('/clock', 'joint_states', '/diagnostics')}
SETTINGS = {
    'robot': 'go1',
    'initial_height': 0.02,
    'start_paused': True,
    'publish_rate.joint_states': 1000.0,
}


def test_a_free_run_is_repeated_to_the_bit(tmp_path):
    """Commands come when they come; the recording knows which step they met.

    The efforts and positions of every message are those of the repeated run, to the last bit.
    """
    record = tmp_path / 'run.npz'
    with Session(tmp_path, TOPICS, {**SETTINGS, 'record': record}) as session:
        session.started()
        controller = Process(
            'contact_sim.ros.controllers.stance', ros_arguments({'robot': 'go1'}), session.domain
        )
        with controller:
            session.pause(False)
            while session.diagnostics()['commands_accepted'] == '0':
                pass  # they have not yet met
            begin = session.time
            session.wait(lambda: session.time > begin + 0.5 * SECOND, 'half a second')
            assert session.set({'contact.model': 'sap', 'friction.mu': 0.4}).successful
            session.wait(lambda: session.time > begin + 0.8 * SECOND, 'time under sap')
            assert session.set({'contact.model': 'ncp', 'restitution': 0.3}).successful
            session.reset()
            session.wait(lambda: session.time > begin + 1.2 * SECOND, 'time after the reset')
            session.pause()
        session.settle()
        states = {stamp_of(m): m for m in session.messages['joint_states']}
        partly = repeat(Recording(record))  # while the node still runs
        session.step(50)
    assert partly.difference == ''
    recording = Recording(record)
    reports = []
    outcome = repeat(recording, lambda step: reports.append(step.report))
    assert outcome.equal, outcome
    assert outcome.steps == partly.steps + 50 > 1200
    kinds = [event['kind'] for event in recording.events]
    assert kinds.count('contact_model') == 2
    assert 'reset' in kinds
    assert recording.header['parameters']['node']['initial_height'] == 0.02
    compared = 0
    robot = recording.robot()
    for report in reports:
        message = states.get(round(report.time * SECOND))
        if message is not None:
            assert message.effort.tobytes() == report.effort.tobytes()
            assert message.position.tobytes() == robot.joint_positions(report.q).tobytes()
            compared += 1
    assert compared > 600


def test_a_killed_node_leaves_its_recording(tmp_path):
    record = tmp_path / 'run.npz'
    with Session(
        tmp_path, {'/clock': PUBLISHED['/clock']}, {**SETTINGS, 'record': record}
    ) as session:
        session.started()
        assert session.step(100).success
        session.simulation.handle.kill()
        session.simulation.handle.wait()
    outcome = repeat(Recording(record))
    assert (outcome.steps, outcome.difference) == (100, '')
    assert 'ends in the middle' in outcome.damage


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    arguments = ros_arguments({'record': '/nowhere/run.npz'})
    log = tmp_path / 'simulation.log'
    process = Process('contact_sim.ros.simulation_node', arguments, log=log)
    assert process.handle.wait(60.0) == 1
    assert 'cannot write /nowhere/run.npz' in process.output()
    assert 'Traceback' not in process.output()
