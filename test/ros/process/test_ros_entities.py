"""Entities that come and go, and worlds, over the network with the real package."""

import re
import socket

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip(
    'simulation_interfaces',
    reason='simulation_interfaces is not installed (it has no wheel); '
    'test_ros_spawning.py asks the services without a network',
)

from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import NODE, SECOND, Session, stamp_of
from sensor_msgs.msg import JointState
from simulation_interfaces import msg, srv
from std_msgs.msg import String

if not hasattr(srv, 'SpawnEntities') or not hasattr(srv.SpawnEntity.Request(), 'entity_resource'):
    pytest.skip('fields of releases before 2.1: see test_ros_spawning.py', allow_module_level=True)

STEP = SECOND // 1000
OK = msg.Result.RESULT_OK
STATES = {'publish_rate.joint_states': 1000.0, 'publish_rate.odom': 1000.0}
TOPICS = {
    '/clock': 'rosgraph_msgs/msg/Clock', '/odom': 'nav_msgs/msg/Odometry',
    '/joint_states': 'sensor_msgs/msg/JointState',
    '/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
}  # fmt: skip
BOX = 'box:0.4:0.3:0.2:5'


def ask(session, kind, **request):
    name = re.sub('(?<!^)([A-Z])', r'_\1', kind.__name__).lower()
    return session.call(f'/{NODE}/{name}', kind, kind.Request(**request), timeout=60.0)


def spawn(session, uri, name, x=0.0, y=0.0, z=0.0, **fields):
    pose = PoseStamped()
    place = pose.pose.position
    place.x, place.y, place.z = x, y, z
    resource = msg.Resource(uri=uri)
    answer = ask(
        session, srv.SpawnEntity, name=name, entity_resource=resource, initial_pose=pose, **fields
    )
    assert answer.result.result == OK, answer.result.error_message
    return answer.entity_name


def delete(session, entity):
    answer = ask(session, srv.DeleteEntity, entity=entity)
    assert answer.result.result == OK, answer.result.error_message


def step(session, count):
    answer = ask(session, srv.StepSimulation, steps=count)
    assert answer.result.result == OK, answer.result.error_message


def reset(session):
    everything = srv.ResetSimulation.Request.SCOPE_ALL
    assert ask(session, srv.ResetSimulation, scope=everything).result.result == OK
    session.settle()
    session.clear()


def numbers(message):
    """Return pose and twist of a message on odom."""
    pose, twist = message.pose.pose, message.twist.twist
    vectors = pose.position, twist.linear, twist.angular
    return [value for v in vectors for value in (v.x, v.y, v.z)]


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    parameters = STATES | {'start_paused': True}
    with Session(tmp_path_factory.mktemp('entities'), TOPICS, parameters) as session:
        session.started()
        yield session


def collected(session, topic, count):
    messages = session.messages[topic]
    session.wait(lambda: len(messages) >= count, f'{count} messages on {topic}')
    return messages


def test_others_come_and_go_and_the_robot_does_not_notice(session):
    """Its topics and its motion are those of a run without them."""
    reset(session)
    step(session, 400)
    alone = [numbers(message) for message in collected(session, '/odom', 400)]
    reset(session)
    boxes = session.listen('/crate/odom', 'nav_msgs/msg/Odometry')
    joints = session.listen('/far/dog/joint_states', 'sensor_msgs/msg/JointState')
    step(session, 100)
    assert spawn(session, BOX, 'crate', 1.5, 0.0, 0.5) == 'crate'
    step(session, 100)
    assert spawn(session, 'solo12', 'dog', -1.5, entity_namespace='/far/dog') == 'dog'
    step(session, 100)
    delete(session, 'crate')
    step(session, 100)
    odom = collected(session, '/odom', 400)
    assert [stamp_of(message) for message in odom] == [k * STEP for k in range(2, 402)]
    assert np.array([numbers(message) for message in odom]) == pytest.approx(
        np.array(alone), abs=1e-9
    )
    session.wait(lambda: len(joints) >= 200, 'the joints of the dog')
    assert joints[0].name[0] == 'FL_HAA'
    session.wait(lambda: boxes, 'the box')
    fallen = 1e-3 * (stamp_of(boxes[-1]) - stamp_of(boxes[0])) / STEP
    expected = 0.5 - 0.5 * 9.81 * fallen * (fallen + 1e-3)
    assert boxes[-1].pose.pose.position.z == pytest.approx(expected, abs=1e-9)
    session.wait(lambda: not session.node.count_publishers('/crate/odom'), 'no publisher')
    assert session.node.count_publishers('/far/dog/odom') == 1
    del session.messages['/crate/odom'], session.messages['/far/dog/joint_states']
    reset(session)
    session.wait(lambda: not session.node.count_publishers('/far/dog/odom'), 'no publisher')


def test_one_that_comes_while_time_runs_obeys_commands(session):
    reset(session)
    ask(session, srv.SetSimulationState, state=msg.SimulationState(state=1))
    states = session.listen('/dog/joint_states', 'sensor_msgs/msg/JointState')
    publisher = session.node.create_publisher(JointState, '/dog/joint_commands', 10)
    spawn(session, 'solo12', 'dog', 2.0)
    session.wait_for_subscriber(publisher)
    before = session.time
    publisher.publish(JointState(name=['FL_KFE'], position=[-1.0]))
    at = 2

    def bent():
        return states and abs(states[-1].position[at] + 1.0) < 0.1

    session.wait(bent, 'the knee')
    assert states[-1].name[at] == 'FL_KFE'
    assert session.time > before
    delete(session, 'go1')
    assert ask(session, srv.GetEntities, filters=msg.EntityFilters(filter='^[^/]*$')).entities == [
        'dog'
    ]
    session.fresh('/dog/joint_states', 10)
    del session.messages['/dog/joint_states']
    ask(session, srv.SetSimulationState, state=msg.SimulationState(state=2))
    reset(session)
    assert session.node.count_publishers('/odom') == 1


def test_worlds_are_loaded_and_unloaded(session):
    names = {world.name for world in ask(session, srv.GetAvailableWorlds).worlds}
    assert {'plane', 'groove'} <= names
    spawn(session, BOX, 'crate', 1.0)
    for uri in ('groove', 'plane'):
        answer = ask(session, srv.LoadWorld, world_resource=msg.Resource(uri=uri))
        assert (answer.result.result, answer.world.name) == (OK, uri)
        assert ask(session, srv.GetCurrentWorld).world.name == uri
        assert ask(session, srv.GetSimulationState).state.state == 0
        step(session, 20)
    assert 'crate' not in ask(session, srv.GetEntities).entities
    assert ask(session, srv.UnloadWorld).result.result == OK
    assert ask(session, srv.GetSimulationState).state.state == msg.SimulationState.STATE_NO_WORLD
    answer = ask(session, srv.StepSimulation, steps=1)
    assert answer.result.result == msg.Result.RESULT_INCORRECT_STATE
    session.wait(lambda: session.time == STEP, 'the first stamp')
    answer = ask(session, srv.LoadWorld, world_resource=msg.Resource(uri='plane'))
    assert answer.result.result == OK


def test_many_entities_come_and_go(session):
    """Also under a name that was there before, whose parameters are declared."""
    reset(session)
    for k in range(30):
        spawn(session, 'ball:0.1:1' if k % 10 else 'solo12', f'one{k % 3}', 1.0, 0.0, 1.0)
        delete(session, f'one{k % 3}')
    step(session, 10)
    assert ask(session, srv.GetEntities, filters=msg.EntityFilters(filter='^one')).entities == []


def test_what_a_node_says_of_others(tmp_path):
    """A recording stays of the robots of the start; descriptions are kept for who comes late."""
    folder = tmp_path / 'recording'
    folder.mkdir()
    recorded = {'start_paused': True, 'record': str(folder / 'run.npz')}
    with Session(folder, TOPICS, recorded) as session:
        session.started()
        resource = msg.Resource(uri=BOX)
        answer = ask(session, srv.SpawnEntity, name='crate', entity_resource=resource)
        assert answer.result.result == msg.Result.RESULT_OPERATION_FAILED
        assert 'a recording is under way' in answer.result.error_message
        answer = ask(session, srv.LoadWorld, world_resource=msg.Resource(uri='plane'))
        assert answer.result.result == OK
        step(session, 5)
    parameters = {'start_paused': True, 'publish_robot_description': True}
    with Session(tmp_path, TOPICS, parameters) as session:
        session.started()
        spawn(session, BOX, 'crate', 1.0)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        heard = {}
        for topic in ('/robot_description', '/crate/robot_description'):
            session.node.create_subscription(
                String, topic, lambda message, topic=topic: heard.update({topic: message.data}),
                latched,
            )  # fmt: skip
        session.wait(lambda: len(heard) == 2, 'both descriptions')
        assert 'go1' in heard['/robot_description']
        assert 'box' in heard['/crate/robot_description']
        said = session.diagnostics()
        assert {'sent on odom', 'sent on crate/odom', 'crate/command_age'} <= said.keys()


def controlled(folder, spawning):
    """Return odom of a run in lockstep in which others come, and how the last command was."""
    parameters = STATES | {
        'start_paused': True, 'lockstep.enabled': True, 'real_time_factor': 0.0,
        'lockstep.timeout': 20.0, 'lockstep.start_timeout': 20.0,
    }  # fmt: skip
    folder.mkdir()
    with Session(folder, TOPICS, parameters) as session:
        session.started()

        def answer(topic):
            publisher = session.node.create_publisher(JointState, f'{topic}/joint_commands', 100)

            def command(message):
                time = stamp_of(message) / SECOND
                target = JointState(header=message.header, name=message.name)
                target.position = [p + 0.02 * np.sin(9.0 * time) for p in pose[topic]]
                publisher.publish(target)

            def first(message):
                pose.setdefault(topic, list(message.position))
                command(message)

            session.node.create_subscription(JointState, f'{topic}/joint_states', first, 1000)
            return publisher

        pose = {}
        session.wait_for_subscriber(answer(''))
        ask(session, srv.SetSimulationState, state=msg.SimulationState(state=1))
        odom = collected(session, '/odom', 100)
        if spawning:
            answer('/dog')
            spawn(session, BOX, 'crate', 2.0, 2.0)
            spawn(session, 'solo12', 'dog', 2.0)
            collected(session, '/odom', 200)
            delete(session, 'crate')
        session.wait(lambda: session.time >= 700 * STEP, '0.7 s', 60.0)
        values = session.diagnostics()
        assert values['lockstep_timeouts'] == '0'
        assert values['lockstep_late_commands'] == '0'
        return {stamp_of(message): numbers(message) for message in odom}


def test_others_come_in_lockstep(tmp_path):
    """The node waits for the commands of all; the robot moves as without the others."""
    alone = controlled(tmp_path / 'alone', spawning=False)
    among = controlled(tmp_path / 'among', spawning=True)
    times = sorted(alone.keys() & among.keys())
    assert len(times) >= 690
    difference = np.abs([np.subtract(alone[time], among[time]) for time in times])
    assert difference.max() < 1e-9


def test_the_page_shows_who_is_there(tmp_path):
    pytest.importorskip('viser', reason="needs viser: pip install 'contact_sim[view]'")
    from page_client import PageClient, wait_until

    drawn = []

    class Client(PageClient):
        def _hear(self, message):
            if message['type'] == 'BatchedMeshesMessage':
                drawn.append(message['name'])
            super()._hear(message)

    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        port = listener.getsockname()[1]
    with Session(tmp_path, TOPICS, {'viewer.port': port}) as session:
        session.started()
        session.wait(lambda: 'the viewer is at' in session.output_tail(), 'the page', 60.0)
        client = Client(re.search(r'the viewer is at (\S+)', session.output_tail())[1])
        wait_until(lambda: len(drawn) > 5, 'nothing is drawn')
        session.spin(1.0)
        alone = len(set(drawn))
        for change, count in ((lambda: spawn(session, BOX, 'crate', 1.0), alone + 1),
                              (lambda: delete(session, 'crate'), alone)):  # fmt: skip
            drawn.clear()
            change()
            session.wait(lambda count=count: len(set(drawn)) == count, 'the scene')
        client.close()
