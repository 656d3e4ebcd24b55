"""Entities and worlds that come and go, with the classes of every release; no network."""

import asyncio

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from geometry_msgs.msg import PoseStamped
from simulation_interfaces_server import Server, loaded
from simulation_interfaces_stand_in import LACKING, PACKAGE

from contact_sim import Simulator, joined, load_robot
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._commands import UncheckedPoint
from contact_sim.ros._lockstep import Verdict
from contact_sim.ros._parameters import LockstepParameters
from contact_sim.ros._spawning import spawnables

ROBOT = load_robot('go1')
OK, NOT_FOUND, INCORRECT_STATE, FAILED = 1, 2, 3, 4
NOT_UNIQUE, INVALID, FORMAT, NO_RESOURCE, NAMESPACE, PARSE, MISSING, POSE = (
    101, 102, 103, 104, 105, 106, 107, 109
)  # fmt: skip
BOX = 'box:0.4:0.3:0.2:5'
URDF = (
    '<robot name="crate"><link name="crate"><inertial><mass value="2"/><inertia ixx="0.01" '
    'iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry>'
    '<box size="0.2 0.2 0.2"/></geometry></collision></link></robot>'
)
SDF = """<sdf version="1.7"><model name="can"><link name="can"><inertial><mass>0.5</mass>
<inertia><ixx>1e-3</ixx><iyy>1e-3</iyy><izz>1e-3</izz></inertia></inertial><collision name="c">
<geometry><cylinder><radius>0.05</radius><length>0.1</length></cylinder></geometry></collision>
</link></model></sdf>"""


def served(release, monkeypatch, robot=ROBOT):
    module, modules = loaded(release, monkeypatch)
    server = Server(module, Simulator(robot))
    server.lacks, server.release = LACKING[release], release
    server.msg, server.srv = modules[f'{PACKAGE}.msg'], modules[f'{PACKAGE}.srv']
    return server


@pytest.fixture(params=LACKING)
def server(request, monkeypatch):
    return served(request.param, monkeypatch)


@pytest.fixture
def newest(monkeypatch):
    return served('2.1.0', monkeypatch)


def pose(x=0.0, y=0.0, z=0.0, frame='', turn=(0.0, 0.0, 0.0, 1.0)):
    stamped = PoseStamped()
    stamped.header.frame_id = frame
    for name, value in zip('xyz', (x, y, z), strict=True):
        setattr(stamped.pose.position, name, value)
    for name, value in zip('xyzw', turn, strict=True):
        setattr(stamped.pose.orientation, name, value)
    return stamped


def resource(server, field, uri='', text=''):
    """Return the fields of a resource as the release has them."""
    if server.release < '2':
        return {'uri': uri, 'resource_string': text}
    return {field: server.msg.Resource(uri=uri, resource_string=text)}


def spawn(server, uri='', text='', name='', **fields):
    fields = {'initial_pose': pose(1.0, 0.5, 1.0)} | fields
    return server.ask(
        'spawn_entity', name=name, **resource(server, 'entity_resource', uri, text), **fields
    )


def entities(server):
    return [name for name in server.ask('get_entities').entities if '/' not in name]


def step(server, count):
    assert server.ask('step_simulation', steps=count).result.result == OK


def untouched(server, request):
    """Return the answer to a request, and check that nothing has changed."""
    before, names = server.sim.snapshot().buffer, entities(server)
    robot, members, topics = server.sim.robot, server.population.members, [*server.node.subscribed]
    answer = request()
    assert (server.sim.snapshot().buffer == before).all()
    assert (server.sim.robot, server.population.members) == (robot, members)
    assert (entities(server), server.node.subscribed) == (names, topics)
    assert answer.result.error_message
    return answer.result.result


def test_a_box_comes_falls_and_goes(server):
    step(server, 50)
    before, time = server.sim.q.copy(), server.sim.time
    answer = spawn(server, BOX, name='crate')
    assert (answer.result.result, answer.entity_name) == (OK, 'crate')
    assert entities(server) == ['go1', 'crate']
    assert 'crate/box' in server.ask('get_entities').entities
    assert server.sim.time == time
    assert (server.sim.q[:19] == before).all()
    assert server.sim.q[19:22].tolist() == [1.0, 0.5, 1.0]
    assert {'crate/joint_commands', 'crate/contact_sim/set_odom'} <= set(server.node.subscribed)
    assert server.outputs.arrived == ['crate']
    info = server.ask('get_entity_info', entity='crate').info
    assert info.category.category == 4  # a dynamic object
    step(server, 500)
    state = server.ask('get_entity_state', entity='crate').state
    assert state.pose.position.z == pytest.approx(0.1, abs=1e-3)
    assert server.ask('delete_entity', entity='crate').result.result == OK
    assert entities(server) == ['go1']
    assert server.sim.robot is server.population.at_start[0].robot
    assert server.node.subscribed == []
    step(server, 50)


def test_what_comes_moves_as_if_it_had_been_there(newest):
    """Compared with a simulation of both from the start."""
    spawn(newest, 'solo12', name='solo', initial_pose=pose(2.0, 1.0))
    step(newest, 300)
    both = joined({'': ROBOT, 'solo': load_robot('solo12')}, {'solo': (2.0, 1.0, 0.0)})
    sim = Simulator(both)
    for _ in range(300):
        sim.step(np.zeros(both.n_joints))
    assert newest.sim.q == pytest.approx(sim.q, abs=1e-9)
    assert newest.sim.v == pytest.approx(sim.v, abs=1e-7)


def test_commands_and_gains_of_others_stay(newest):
    commands, names = newest.loop.commands, ROBOT.joint_names
    commands.take_joint_state(names[:2], [0.1, 0.2], [], [])
    before = commands.current
    spawn(newest, 'solo12', name='solo', initial_pose=pose(2.0))
    spawn(newest, BOX, name='crate')
    now = commands.current
    for field in ('position', 'velocity', 'effort', 'stiffness', 'damping'):
        assert (getattr(now, field)[:12] == getattr(before, field)).all()
    solo = parts_of(newest.sim.robot)[1]
    held = solo.robot.joint_positions(newest.sim.q[solo.q])
    assert now.position[solo.joints] == pytest.approx(held)
    assert commands.take_joint_state(['solo/FL_HAA'], [0.3], [], []) is None
    assert commands.current.position[12] == 0.3
    newest.ask('delete_entity', entity='go1')
    assert commands.current.position[0] == 0.3
    assert 'unknown joint' in commands.take_joint_state(names[:1], [0.3], [], [])
    assert entities(newest) == ['solo', 'crate']
    step(newest, 20)


def test_trajectories_and_commands_on_their_way_follow_their_joints(newest):
    """What waits for its instant in lockstep, and a trajectory under way, are of names."""
    commands, lockstep, names = newest.loop.commands, newest.loop.lockstep, ROBOT.joint_names
    q, second = ROBOT.joint_positions(newest.sim.q), 1_000_000_000
    points = [UncheckedPoint(second, (q + 1.0).tolist())]
    assert commands.take_trajectory(names, points, 0, 0) is None
    half = commands.at(0, q, 0.0 * q), commands.at(second // 2, q, 0.0 * q)
    spawn(newest, 'solo12', name='solo', initial_pose=pose(2.0))
    zeros = np.zeros(24)
    moved = commands.at(second // 2, zeros, zeros)
    assert moved.position[:12] == pytest.approx(half[1].position, abs=1e-12)
    assert moved.velocity[:12] == pytest.approx(half[1].velocity, abs=1e-12)
    lockstep.configure(LockstepParameters(enabled=True), 0)
    commands.take_joint_state(names, q, [], [], 5_000_000)
    commands.take_joint_state(['solo/FL_HAA'], [0.7], [], [], 5_000_000)
    newest.parameters.settings['lockstep'] = LockstepParameters()
    newest.ask('delete_entity', entity='go1')
    assert lockstep.verdict(5_000_000, 5) is Verdict.WAIT  # eleven joints are missing
    others = [f'solo/{name}' for name in load_robot('solo12').joint_names[1:]]
    commands.take_joint_state(others, np.zeros(11), [], [], 5_000_000)
    assert lockstep.verdict(5_000_000, 5) is Verdict.STEP
    assert commands.current.position[0] == 0.7


def test_pushes_on_those_that_stay_go_on(newest):
    pushes = newest.loop.pushes
    pushes.push('trunk', [5.0, 0.0, 0.0], [0.0, 0.0, 0.0], 10.0)
    spawn(newest, BOX, name='crate')
    pushes.push('crate/box', [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], 10.0)
    assert list(pushes.acting(0)) == ['trunk', 'crate/box']
    newest.ask('delete_entity', entity='crate')
    assert list(pushes.acting(0)) == ['trunk']


@pytest.mark.parametrize('text', [URDF, SDF])
def test_a_text_is_a_robot(server, text):
    answer = spawn(server, text=text)  # its name is in it
    assert (answer.result.result, answer.entity_name) == (OK, {URDF: 'crate', SDF: 'can'}[text])
    step(server, 20)


def test_files_are_found_by_path_and_uri(newest, tmp_path, monkeypatch):
    file = tmp_path / 'share' / 'my_robots' / 'a crate.urdf'
    file.parent.mkdir(parents=True)
    file.write_text(URDF)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    for k, uri in enumerate((str(file), file.as_uri(), 'package://my_robots/a%20crate.urdf')):
        assert spawn(newest, uri, name=f'crate{k}').result.result == OK
    found = newest.ask('get_spawnables', sources=[file.parent.as_uri(), 'nowhere'])
    assert found.result.result == OK
    assert 'nowhere' in found.result.error_message
    uris = [one.entity_resource.uri for one in found.spawnables]
    assert uris == [*spawnables(), file.as_uri()]


def test_everything_that_can_be_spawned_can(newest):
    assert {BOX.replace(':5', ':5.0'), 'ball:0.1:1.0', 'go1', 'quadruped'} <= set(spawnables())
    for k, uri in enumerate(('ball:0.1:1.0', 'go1', 'quadruped')):
        assert spawn(newest, uri, name=f'x{k}', initial_pose=pose(k + 1.0)).result.result == OK
    step(newest, 20)


def test_names_are_unique_or_numbered(server):
    assert spawn(server, BOX, name='crate').result.result == OK
    for name in ('crate', 'go1'):
        assert untouched(server, lambda name=name: spawn(server, BOX, name=name)) == NOT_UNIQUE
    answer = spawn(server, BOX, name='crate', allow_renaming=True)
    assert (answer.result.result, answer.entity_name) == (OK, 'crate_1')
    for name in ('a/b', '1st', 'a-b', '/crate', 'ü', ' ', 'x' * 101):
        assert untouched(server, lambda name=name: spawn(server, BOX, name=name)) == INVALID
    text = URDF.replace('"crate"', '"my-crate 7"')
    assert untouched(server, lambda: spawn(server, text=text)) == INVALID
    answer = spawn(server, text=text, allow_renaming=True)
    assert answer.entity_name == 'my_crate_7'


def test_topics_live_in_the_namespace(newest):
    for wrong in ('a b', '/', 'a//b', '1/x', 'a/é', 'x/' * 60):
        request = lambda wrong=wrong: spawn(newest, BOX, name='x', entity_namespace=wrong)  # noqa: E731
        assert untouched(newest, request) == NAMESPACE
    spawn(newest, BOX, name='crate', entity_namespace='fleet/one')
    spawn(newest, BOX, name='other', entity_namespace='/far')
    assert {'fleet/one/joint_commands', '/far/joint_commands'} <= set(newest.node.subscribed)
    assert newest.outputs.namespaces == {'': '', 'crate': 'fleet/one', 'other': '/far'}
    for taken in ('fleet/one', '/fleet/one/', 'far'):
        request = lambda taken=taken: spawn(newest, BOX, name='x', entity_namespace=taken)  # noqa: E731
        assert untouched(newest, request) == NAMESPACE


@pytest.mark.parametrize(
    ('uri', 'text', 'code'),
    [
        ('', '', NO_RESOURCE), ('', ' \n', NO_RESOURCE), ('nobody', '', NOT_FOUND),
        ('/nowhere/x.urdf', '', NOT_FOUND), ('package://nobody/x.urdf', '', NOT_FOUND),
        ('http://example.com/x.urdf', '', FORMAT), ('/nowhere/x.usd', '', FORMAT),
        ('file://elsewhere/x.urdf', '', FORMAT), ('http://[x', '', FORMAT),
        ('x' * 5000 + '.urdf', '', NOT_FOUND),
        ('', 'a robot', FORMAT), ('', '<usd/>', FORMAT), ('', '<robot', PARSE),
        ('', '<robot name="x"/>', PARSE), ('box:1:2', '', PARSE), ('box:1:1:1:-1', '', PARSE),
        ('', URDF.replace('box size="0.2 0.2 0.2"', 'mesh filename="file:///no.stl"'), MISSING),
    ],
)  # fmt: skip
def test_resources_that_cannot_be_spawned(newest, uri, text, code):
    assert untouched(newest, lambda: spawn(newest, uri, text, name='x')) == code


def test_poses_that_cannot_be(newest):
    for wrong in (
        pose(np.nan), pose(1e9), pose(turn=(0.0, 0.0, 0.0, 0.0)), pose(turn=(0.0, 0.0, 0.0, 2.0)),
        pose(frame='go1'),
        pose(frame='nowhere'),
    ):  # fmt: skip
        request = lambda wrong=wrong: spawn(newest, BOX, name='x', initial_pose=wrong)  # noqa: E731
        assert untouched(newest, request) == POSE
    for k, frame in enumerate(('world', 'odom', '')):
        good = pose(float(k), frame=frame)
        assert spawn(newest, BOX, name=f'x{k}', initial_pose=good).result.result == OK


def test_what_would_be_in_the_ground_is_raised(newest):
    spawn(newest, BOX, name='flat', initial_pose=pose(2.0))
    upright = pose(4.0, 0.0, -3.0, turn=(0.5**0.5, 0.0, 0.0, 0.5**0.5))
    spawn(newest, BOX, name='upright', initial_pose=upright)
    spawn(newest, BOX, name='high', initial_pose=pose(6.0, z=0.7))
    states = newest.ask('get_entities_states').states
    names = newest.ask('get_entities').entities
    heights = {name: state.pose.position.z for name, state in zip(names, states, strict=True)}
    assert heights['flat'] == pytest.approx(0.1, abs=1e-9)
    assert heights['upright'] == pytest.approx(0.15, abs=1e-9)
    assert heights['high'] == 0.7


def test_links_and_the_last_robot_stay(server):
    refused = {'go1/trunk': FAILED, 'nobody': NOT_FOUND, '': NOT_FOUND, 'go1': FAILED}
    for entity, code in refused.items():
        request = lambda entity=entity: server.ask('delete_entity', entity=entity)  # noqa: E731
        assert untouched(server, request) == code
    spawn(server, BOX, name='crate')
    assert server.ask('delete_entity', entity='go1').result.result == OK
    assert entities(server) == ['crate']
    step(server, 20)
    last = lambda: server.ask('delete_entity', entity='crate')  # noqa: E731
    assert untouched(server, last) == FAILED


def test_resets_let_go_what_has_come(newest):
    scopes = newest.srv.ResetSimulation.Request
    spawn(newest, BOX, name='crate')
    step(newest, 300)
    time = newest.sim.time
    newest.ask('reset_simulation', scope=scopes.SCOPE_STATE)
    assert newest.sim.q[19:22].tolist() == [1.0, 0.5, 1.0]  # where it was spawned
    assert newest.sim.time > time
    newest.ask('reset_simulation', scope=scopes.SCOPE_SPAWNED)
    assert entities(newest) == ['go1']
    assert newest.sim.time > time
    spawn(newest, BOX, name='crate')
    newest.ask('delete_entity', entity='go1')
    newest.ask('reset_simulation', scope=scopes.SCOPE_SPAWNED)
    assert entities(newest) == ['go1']  # something has to be there
    spawn(newest, BOX, name='crate')
    newest.ask('delete_entity', entity='go1')
    newest.ask('reset_simulation', scope=scopes.SCOPE_ALL)
    assert entities(newest) == ['go1']
    assert newest.sim.time == newest.sim.time_step
    assert newest.sim.q == pytest.approx(newest.sim.standing_configuration(), abs=1e-12)
    spawn(newest, BOX, name='crate')
    newest.loop.paused = False
    stopped = newest.msg.SimulationState(state=0)
    newest.ask('set_simulation_state', state=stopped)
    assert entities(newest) == ['go1']


def test_reasons_why_nobody_may_come(newest):
    newest.refusal = 'a recording is under way'
    assert untouched(newest, lambda: spawn(newest, BOX, name='x')) == FAILED
    newest.refusal = ''
    newest.parameters.settings['lockstep'] = type('L', (), {'controllers': ('legs',)})()
    own = type('C', (), {'joints': ROBOT.joint_names})()
    newest.parameters.settings['lockstep.legs'] = own
    assert spawn(newest, BOX, name='x').result.result == OK
    request = lambda: newest.ask('delete_entity', entity='go1')  # noqa: E731
    assert untouched(newest, request) == FAILED  # a controller owns its joints


def test_a_snapshot_of_other_robots_is_no_state(newest):
    newest.control.snapshot()
    spawn(newest, BOX, name='x')
    with pytest.raises(ValueError, match='before robots came or went'):
        newest.control.restore()
    newest.control.snapshot()
    newest.control.restore()


def test_several_at_once(newest):
    def one(name, uri=BOX, **fields):
        return newest.msg.SpawnEntity(
            name=name,
            entity_resource=newest.msg.Resource(uri=uri),
            initial_pose=pose(1.0),
            **fields,
        )

    answer = newest.ask('spawn_entities', spawn_requests=[one('a'), one('b')])
    assert answer.result.result == OK
    assert [result.entity_name for result in answer.results] == ['a', 'b']
    answer = newest.ask('spawn_entities', spawn_requests=[one('c'), one('a'), one('d', 'nobody')])
    assert answer.result.result == 150
    codes = [result.result.result for result in answer.results]
    assert codes == [OK, NOT_UNIQUE, NOT_FOUND]
    assert entities(newest) == ['go1', 'a', 'b', 'c']
    assert newest.ask('spawn_entities').result.result == OK


def test_two_requests_at_once_come_one_after_the_other(newest):
    kind, callback = newest.node.served['spawn_entity']

    async def both():
        answers = [
            callback(
                kind.Request(
                    name=name, entity_resource=newest.msg.Resource(uri=BOX), initial_pose=pose(1.0)
                ),
                kind.Response(),
            )
            for name in 'abc'
        ]
        return await asyncio.gather(*answers)

    assert [answer.result.result for answer in asyncio.run(both())] == [OK, OK, OK]
    assert entities(newest) == ['go1', 'a', 'b', 'c']


# --- Worlds


@pytest.fixture(params=[release for release in LACKING if 'LoadWorld' not in LACKING[release]])
def world(request, monkeypatch):
    return served(request.param, monkeypatch)


def load(server, uri='', text=''):
    return server.ask('load_world', **resource(server, 'world_resource', uri, text))


def state(server):
    return server.ask('get_simulation_state').state.state


def test_a_world_is_loaded_by_name(world):
    worlds = world.ask('get_available_worlds').worlds
    assert {'plane', 'groove', 'rough'} <= {one.name for one in worlds}
    spawn(world, BOX, name='crate')
    world.loop.paused = False
    answer = load(world, 'groove')
    assert (answer.result.result, answer.world.name) == (OK, 'groove')
    assert (state(world), world.sim.time) == (0, world.sim.time_step)
    assert entities(world) == ['go1']
    assert world.sim.terrain.features == 2
    current = world.ask('get_current_world').world
    assert (current.name, current.tags) == ('groove', ['analytic'])
    assert world.parameters.settings['terrain'].type == 'groove'
    step(world, 20)


def test_a_world_is_a_file_or_a_text(world, tmp_path):
    file = tmp_path / 'hills.npy'
    np.save(file, 0.01 * np.random.default_rng(1).random((40, 40)))
    assert load(world, file.as_uri()).result.result == OK
    current = world.ask('get_current_world').world
    assert (current.name, current.world_resource.uri) == ('file', file.as_uri())
    found = world.ask('get_available_worlds', additional_sources=[str(tmp_path)]).worlds
    assert [one.world_resource.uri for one in found][-1] == file.as_uri()
    filters = world.msg.TagsFilter(tags=['file'])
    named = world.ask('get_available_worlds', filter=filters).worlds
    assert {one.name for one in named} == {'file'}
    text = 'size: [8.0, 8.0]\nsub_terrains: {a: {type: wave, amplitude_range: [0.02, 0.1]}}\n'
    assert load(world, text=text).result.result == OK
    current = world.ask('get_current_world').world
    assert current.world_resource.resource_string == text
    assert load(world, 'plane').result.result == OK
    assert world.ask('get_current_world').world.name == 'plane'


@pytest.mark.parametrize(
    ('uri', 'text', 'code'),
    [
        ('', '', 102), ('nowhere', '', 101), ('/nowhere/x.sdf', '', 101),
        ('/nowhere/x.npy', '', NOT_FOUND),
        ('http://x/y.npy', '', 101), ('', '<sdf/>', 101), ('', 'hello', 101), ('file', '', 101),
        ('', 'size: [1', 103), ('', 'sizes: [1.0, 1.0]', 103),
    ],
)  # fmt: skip
def test_worlds_that_cannot_be_loaded(newest, uri, text, code):
    newest.loop.paused = False
    spawn(newest, BOX, name='crate')
    assert untouched(newest, lambda: load(newest, uri, text)) == code
    assert not newest.loop.paused
    assert newest.ask('get_current_world').world.name == 'plane'


def test_without_a_world_nothing_moves(world):
    load(world, 'groove')
    assert world.ask('unload_world').result.result == OK
    assert state(world) == 4  # NO_WORLD
    for name, code in (
        ('unload_world', 101), ('get_current_world', 101), ('step_simulation', INCORRECT_STATE),
        ('reset_simulation', INCORRECT_STATE),
    ):  # fmt: skip
        assert untouched(world, lambda name=name: world.ask(name)) == code
    for target in (0, 1, 2):
        asked = world.msg.SimulationState(state=target)
        request = lambda asked=asked: world.ask('set_simulation_state', state=asked)  # noqa: E731
        assert untouched(world, request) == 103
    assert untouched(world, lambda: spawn(world, BOX, name='x')) == INCORRECT_STATE
    assert load(world, 'plane').result.result == OK
    assert state(world) == 0
    step(world, 10)


def test_sources_of_worlds_that_are_none(world):
    answer = world.ask('get_available_worlds', additional_sources=['/nowhere'])
    assert answer.result.result == FAILED
    answer = world.ask(
        'get_available_worlds', additional_sources=['http://x'], continue_on_error=True
    )
    assert answer.result.result == OK
    assert len(answer.worlds) > 10
