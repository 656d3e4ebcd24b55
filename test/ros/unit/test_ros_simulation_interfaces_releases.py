"""Services and action of simulation_interfaces with the classes of every release; no network.

The classes are stood in for; test_ros_simulation_interfaces.py speaks to the node where the
package is installed.
"""

import asyncio
import itertools
import re
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from geometry_msgs.msg import Vector3
from ros_session import vector
from simulation_interfaces_server import Server, loaded
from simulation_interfaces_stand_in import LACKING, PACKAGE, SERVICES

from contact_sim import Simulator, joined, load_robot
from contact_sim.robot._collision_pairs import Solid
from contact_sim.robot._several_robots import parts_of

ROBOT = load_robot('go1')
PAIR = joined({'a': ROBOT, 'b': load_robot('solo12')}, {'b': (1.5, 0.0, 0.3)})
N = ROBOT.n_joints
OK, FAILED, UNSUPPORTED = 1, 4, 0


@pytest.fixture(params=LACKING)
def server(request, monkeypatch):
    module, modules = loaded(request.param, monkeypatch)
    assert module.INSTALLED
    server = Server(module, Simulator(ROBOT))
    server.lacks = LACKING[request.param]
    server.msg, server.SetEntityState = (
        modules[f'{PACKAGE}.msg'], modules[f'{PACKAGE}.srv'].SetEntityState
    )  # fmt: skip
    return server


def test_every_service_is_served(server):
    names = {
        re.sub('(?<!^)([A-Z])', r'_\1', name).lower()
        for name in SERVICES.keys() - set(server.lacks)
    }
    assert server.node.served.keys() == names
    features = server.ask('get_simulator_features').features
    lacks = {'WORLD_INFO_GETTING', 'WORLD_LOADING', 'SPAWNING_ENTITIES'} & set(server.lacks)
    assert len(features.features) == (24 if lacks else 31)
    assert features.spawn_formats[0] == 'urdf'
    assert server.msg.SimulatorFeatures.NAMED_POSES in features.features


def test_states_follow_each_other(server):
    def become(number):
        return server.ask('set_simulation_state', state=server.msg.SimulationState(state=number))

    def state():
        answer = server.ask('get_simulation_state')
        assert answer.result.result == OK
        return answer.state.state

    assert state() == 0
    assert become(0).result.result == 101
    for number in (2, 1, 2, 0, 1):
        assert (become(number).result.result, state()) == (OK, number)
    for impossible in (4, 5, 77):
        assert become(impossible).result.result == 103
    server.loop.tally.failure = 'fell over'
    become(2)
    assert become(1).result.error_message == 'fell over'
    assert become(3).result.result == OK
    assert server.node.ending is not None


def test_steps_are_counted_and_told(server):
    assert server.ask('step_simulation', steps=5).result.result == OK
    assert server.sim.step_count == 5
    kind, execute = server.action
    told, goal = [], SimpleNamespace(request=kind.Goal(steps=3), is_cancel_requested=False)
    goal.succeed = goal.abort = lambda: None
    goal.publish_feedback = lambda said: told.append((said.completed_steps, said.remaining_steps))
    assert asyncio.run(execute(goal)).result.result == OK
    assert told == [(1, 2), (2, 1), (3, 0)]
    server.loop.paused = False
    assert server.ask('step_simulation', steps=5).result.result == FAILED


def test_scopes_of_a_reset(server):
    start = server.sim.q.copy()
    for scope, expected in (
        (0, OK),
        (1, OK),
        (2, OK),
        (3, OK),
        (255, OK),
        (4, OK),
        (8, UNSUPPORTED),
    ):
        server.ask('step_simulation', steps=20)
        before, time = server.sim.q.copy(), server.sim.time
        assert server.ask('reset_simulation', scope=scope).result.result == expected
        stays = scope in (1, 4, 8)
        assert server.sim.q == pytest.approx(before if stays else start, abs=1e-12)
        goes_on = {2: time + server.sim.time_step, 4: time, 8: time}
        assert server.sim.time == pytest.approx(goes_on.get(scope, server.sim.time_step))


def test_robots_and_links_are_entities(server):
    entities = server.ask('get_entities').entities
    assert entities[0] == 'go1'
    states = server.ask('get_entities_states').states
    assert vector(states[0].pose.position) == pytest.approx(server.sim.q[:3])
    assert server.ask('get_entity_info', entity='go1').info.category.category == 1
    assert server.ask('get_entity_state', entity='nobody').result.result == 2
    for kind, result in ((1, FAILED), (2, UNSUPPORTED), (3, FAILED), (9, FAILED)):
        filters = server.msg.EntityFilters(bounds=server.msg.Bounds(type=kind))
        assert server.ask('get_entities', filters=filters).result.result == result
    poses = server.ask('get_named_poses').poses
    assert [pose.name for pose in poses] == list(ROBOT.reference_configurations)


def points(*rows):
    return [Vector3(x=x, y=y, z=z) for x, y, z in rows]


def corners(bounds):
    """Return the lower and the upper corner of a box."""
    assert bounds.type == 1
    upper, lower = (vector(point) for point in bounds.points)
    return lower, upper


def test_bounds_of_entities_hold_their_bodies(server):
    """Checked by points on the surfaces of the bodies."""
    q = server.sim.q.copy()
    q[3:7] = pin.Quaternion(pin.utils.rpyToMatrix(0.4, -0.3, 0.8)).coeffs()
    q[7:] += 0.2 * np.random.default_rng(1).normal(size=12)
    server.sim.reset(q)
    model = ROBOT.pinocchio_model
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    reached = {}
    feet = [
        Solid(p.name, p.frame, p.joint, (0.0, 0.0, 0.0), p.radius, tuple(p.offset))
        for p in ROBOT.contact_points
    ]
    for solid in (*ROBOT.collisions.solids, *feet):
        placement = data.oMi[model.getJointId(solid.joint)] * solid.placement
        surface = samples_of(solid) @ placement.rotation.T + placement.translation
        reached.setdefault(solid.frame, []).append(surface)
    assert len(reached) > 20
    robot = data.oMf[model.getFrameId('base')]
    for link, parts in reached.items():
        frame = data.oMf[model.getFrameId(link)]
        surface = np.concatenate(parts)
        local = (surface - frame.translation) @ frame.rotation
        lower, upper = corners(server.ask('get_entity_bounds', entity=f'go1/{link}').bounds)
        assert (local.min(axis=0) >= lower - 1e-9).all()
        assert (local.max(axis=0) <= upper + 1e-9).all()
        assert local.min(axis=0) == pytest.approx(lower, abs=2e-3)
        assert local.max(axis=0) == pytest.approx(upper, abs=2e-3)
        whole = corners(server.ask('get_entity_bounds', entity='go1').bounds)
        seen = (surface - robot.translation) @ robot.rotation
        assert (seen >= whole[0] - 1e-9).all()
        assert (seen <= whole[1] + 1e-9).all()
    assert server.ask('get_entity_bounds', entity='nobody').result.result == 2


def samples_of(solid):
    """Return points on the surface of a solid, in its axes."""
    angles = np.linspace(0.0, 2.0 * np.pi, 73)
    circle = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    ball = np.concatenate([circle, circle[:, [0, 2, 1]], circle[:, [2, 0, 1]]])
    if solid.corners:
        return np.array(solid.corners)
    if solid.cylinder:
        radius, half = solid.cylinder
        return np.concatenate([radius * circle + [0.0, 0.0, side * half] for side in (-1, 1)])
    if solid.ellipsoid:
        return ball * solid.half
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    return np.concatenate([corner + solid.radius * ball for corner in signs * solid.half])


def test_entities_are_found_by_bounds(server):
    def found(kind, *rows):
        filters = server.msg.EntityFilters(
            bounds=server.msg.Bounds(type=kind, points=points(*rows))
        )
        answer = server.ask('get_entities', filters=filters)
        assert answer.result.result == OK
        return set(answer.entities)

    everything = set(server.ask('get_entities').entities)
    assert found(1, (9.0, 9.0, 9.0), (-9.0, -9.0, -9.0)) == everything
    assert found(1, (-9.0, -9.0, 9.0), (9.0, 9.0, -9.0)) == everything  # any two corners
    assert found(3, (0.0, 0.0, 0.3), (5.0, 0.0, 0.0)) == everything
    assert found(1, (50.0, 1.0, 1.0), (40.0, 0.0, 0.0)) == set()
    low = found(1, (9.0, 9.0, 0.01), (-9.0, -9.0, -9.0))
    assert {'go1', 'go1/FL_foot', 'go1/RR_foot'} <= low
    assert 'go1/trunk' not in low
    foot = vector(server.ask('get_entity_state', entity='go1/FL_foot').state.pose.position)
    near = found(3, foot, (0.01, 0.0, 0.0))
    assert {'go1', 'go1/FL_foot'} <= near
    assert not near & {'go1/FR_foot', 'go1/trunk', 'go1/RR_calf'}


def test_information_of_entities_can_be_set(server):
    info = server.ask('get_entity_info', entity='go1/FL_foot').info
    assert info.tags == []
    info.tags, info.description = ['foot', 'left'], 'of interest'
    info.category.category = 4
    assert server.ask('set_entity_info', entity='go1/FL_foot', info=info).result.result == OK
    other = server.msg.EntityInfo(tags=['foot', 'right'])
    other.category.category = 1
    assert server.ask('set_entity_info', entity='go1/FR_foot', info=other).result.result == OK
    told = server.ask('get_entity_info', entity='go1/FL_foot').info
    assert (told.tags, told.description) == (['foot', 'left'], 'of interest')

    def found(mode, *tags, categories=()):
        wanted = server.msg.TagsFilter(tags=list(tags), filter_mode=mode)
        kinds = [server.msg.EntityCategory(category=number) for number in categories]
        filters = server.msg.EntityFilters(tags=wanted, categories=kinds)
        return server.ask('get_entities', filters=filters).entities

    assert found(0, 'foot') == ['go1/FL_foot', 'go1/FR_foot']
    assert found(1, 'foot', 'left') == ['go1/FL_foot']
    assert found(0, 'left', 'right') == ['go1/FL_foot', 'go1/FR_foot']
    assert found(0, 'wheel') == []
    assert found(0, categories=[4]) == ['go1/FL_foot']
    assert 'go1/FL_foot' not in found(0, categories=[1])
    assert server.ask('set_entity_info', entity='nobody', info=info).result.result == 2


def test_the_world_is_the_ground(server):
    if 'GetCurrentWorld' in server.lacks:
        assert 'get_current_world' not in server.node.served
        return
    answer = server.ask('get_current_world')
    assert answer.result.result == OK
    assert answer.world.name == 'plane'
    assert answer.world.world_resource.uri == ''
    assert 'Plane' in answer.world.description


def test_bounds_of_a_named_pose_are_those_of_the_robot_in_it(server):
    pose = next(iter(ROBOT.reference_configurations))
    server.sim.reset(server.sim.standing_configuration(pose))
    here = corners(server.ask('get_entity_bounds', entity='go1').bounds)
    server.ask('step_simulation', steps=200)
    there = corners(server.ask('get_named_pose_bounds', name=pose).bounds)
    assert np.array(there) == pytest.approx(np.array(here), abs=1e-9)
    refused = server.ask('get_named_pose_bounds', name='no pose').result
    assert refused.result == 2
    assert pose in refused.error_message


def place(server, position, orientation=1.0, speed=0.0, **flags):
    """Return the answer of set_entity_state; flags that the release lacks are left out."""
    known = {name: flag for name, flag in flags.items() if name not in server.lacks}
    request = server.SetEntityState.Request(entity='go1', **known)
    state = request.state
    state.pose.position.x, state.pose.position.y, state.pose.position.z = position
    state.pose.orientation.w, state.twist.linear.x = orientation, speed
    _, callback = server.node.served['set_entity_state']
    return callback(request, server.SetEntityState.Response()).result


def test_pose_and_twist_are_set_as_far_as_the_release_can_say(server):
    """Before 2.1 there are no flags: all of the state is set, as that standard says."""
    can_choose = 'set_pose' not in server.lacks
    assert place(server, (1.0, 2.0, 0.5), 1.0, 0.3, set_pose=True, set_twist=True).result == OK
    assert server.sim.q[:3].tolist() == [1.0, 2.0, 0.5]
    assert server.sim.v[0] == 0.3
    assert place(server, (4.0, 2.0, 0.5), 1.0, 0.6, set_twist=True).result == OK
    assert server.sim.q[0] == (1.0 if can_choose else 4.0)
    assert server.sim.v[0] == 0.6
    assert place(server, (5.0, 2.0, 0.5), 1.0, 0.9, set_pose=True).result == OK
    assert server.sim.q[0] == 5.0
    assert server.sim.v[0] == (0.6 if can_choose else 0.9)


def test_an_impossible_pose_is_refused_with_the_code_that_there_is(server):
    q, code = server.sim.q.copy(), FAILED if 'INVALID_POSE' in server.lacks else 101
    for position, orientation in (((0.0, 0.0, 0.5), 0.5), ((np.inf, 0.0, 0.5), 1.0)):
        refused = place(server, position, orientation, set_pose=True)
        assert refused.result == code
        assert 'expected' in refused.error_message
    assert server.sim.q.tolist() == q.tolist()


# -------------------------------------------------------------------- several robots


@pytest.fixture
def entities(monkeypatch):
    """Return a function from a robot to its entities, the simulator and what was placed."""
    module, _ = loaded('2.1.0', monkeypatch)

    def made(robot):
        sim, placed = Simulator(robot), []
        common = SimpleNamespace(world_frame='world', odom_frame='odom')
        control = SimpleNamespace(
            sim=sim,
            loop=SimpleNamespace(between_steps=lambda read: read()),
            parameters=SimpleNamespace(settings={'': common}),
            place=lambda part, *_, **__: placed.append(part.name),
        )
        services = module.Entities(control).services()

        def ask(name, **request):
            kind, callback = services[name]
            return callback(kind.Request(**request), kind.Response())

        return ask, sim, placed

    return made


def test_each_robot_and_its_links_are_entities(entities):
    ask, sim, placed = entities(PAIR)
    names = ask('get_entities').entities
    assert {'a', 'a/base', 'a/FL_foot', 'b', 'b/FL_FOOT'} <= set(names)
    states = ask('get_entities_states').states
    for part in parts_of(PAIR):
        state = states[names.index(part.name)]
        assert vector(state.pose.position) == pytest.approx(sim.q[part.q][:3])
        assert ask('get_entity_info', entity=part.name).info.description == (
            f'{part.robot.total_mass:.3f} kg, 12 joints, 4 feet'
        )
    assert 'link of b' in ask('get_entity_info', entity='b/FL_FOOT').info.description
    state = states[names.index('b')]
    assert ask('set_entity_state', entity='b', state=state, set_pose=True).result.result == OK
    assert placed == ['b']
    refused = ask('set_entity_state', entity='b/FL_FOOT', state=state).result
    assert 'can be read only' in refused.error_message


def test_named_poses_are_of_each_robot(entities):
    ask, _, _ = entities(PAIR)
    poses = {pose.name: pose.pose.position for pose in ask('get_named_poses').poses}
    assert poses['b/standing'].x - poses['a/standing'].x == pytest.approx(1.5, abs=1e-6)


def test_a_robot_alone_is_called_by_its_name(entities):
    robot = load_robot('go1')
    ask, sim, placed = entities(robot)
    names = ask('get_entities').entities
    assert names[0] == 'go1'
    assert 'go1/FL_foot' in names
    state = ask('get_entity_state', entity='go1').state
    assert np.allclose(vector(state.pose.position), sim.q[:3])
    assert [pose.name for pose in ask('get_named_poses').poses] == [
        *robot.reference_configurations
    ]
    assert ask('set_entity_state', entity='go1', state=state, set_pose=True).result.result == OK
    assert placed == ['']
