"""simulation_interfaces, asked as its clients do, where the real package is installed."""

import re
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')
pytest.importorskip(
    'simulation_interfaces',
    reason='simulation_interfaces is not installed (it has no wheel); '
    'test_ros_services.py tests the services of standard types',
)

from geometry_msgs.msg import Vector3
from rclpy.action import ActionClient
from ros_session import NODE, SECOND, SEEN, Session, published_topics, stamp_of, vector
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    EntityFilters,
    Result,
    SimulationState,
    SimulatorFeatures,
    TagsFilter,
)
from simulation_interfaces.srv import (
    GetCurrentWorld,
    GetEntities,
    GetEntitiesStates,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetNamedPoseBounds,
    GetNamedPoses,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityInfo,
    SetEntityState,
    SetSimulationState,
    StepSimulation,
)

from contact_sim import load_robot

STEP = SECOND // 1000
ROBOT = load_robot('go1')
FEET = tuple(foot.name for foot in ROBOT.feet)
TOPICS = {topic: kind for topic, kind in published_topics(FEET).items() if topic not in SEEN}
AT_TIMES = ('/diagnostics', f'/{NODE}/shadow', f'/{NODE}/terrain')
"""Once a second; only where other models answer the steps, too."""
STOPPED, PLAYING, PAUSED = 0, 1, 2
OK, UNSUPPORTED, NOT_FOUND, FAILED = 1, 0, 2, 4
EVERY_STEP = dict.fromkeys(
    (f'publish_rate.{name}' for name in ('joint_states', 'odom', 'imu', 'wrenches')), 1000.0
)


@pytest.fixture(scope='module')
def session(tmp_path_factory):
    parameters = EVERY_STEP | {'start_paused': True, 'services_at_root': True}
    with Session(tmp_path_factory.mktemp('interfaces'), TOPICS, parameters) as session:
        session.started()
        session.actions = {
            name: ActionClient(session.node, SimulateSteps, name)
            for name in (f'/{NODE}/simulate_steps', '/simulate_steps')
        }
        # the topic itself, because a client is deaf once it has the result
        session.feedback = []
        for name, client in session.actions.items():
            session.node.create_subscription(
                SimulateSteps.Impl.FeedbackMessage, f'{name}/_action/feedback',
                lambda message: session.feedback.append(message.feedback), 1000,
            )  # fmt: skip
            session.wait(client.server_is_ready, 'the action')
        yield session


def ask(session, kind, name=None, **request):
    name = name or f'/{NODE}/' + re.sub('(?<!^)([A-Z])', r'_\1', kind.__name__).lower()
    return session.call(name, kind, kind.Request(**request))


def state(session):
    response = ask(session, GetSimulationState)
    assert response.result.result == OK
    return response.state.state


def become(session, wanted):
    return ask(session, SetSimulationState, state=SimulationState(state=wanted)).result


CAN_CHOOSE = hasattr(SetEntityState.Request(), 'set_pose')
"""Before release 2.1 all of a state is set."""
INVALID_POSE = getattr(SetEntityState.Response, 'INVALID_POSE', FAILED)


def placing(**flags):
    """Return a request about the robot; flags that the release lacks are left out."""
    return SetEntityState.Request(entity='go1', **(flags if CAN_CHOOSE else {}))


@pytest.fixture
def paused(session):
    become(session, PAUSED)
    assert ask(session, ResetSimulation, scope=ResetSimulation.Request.SCOPE_STATE).result.result
    session.settle()
    session.clear()
    session.fresh('/clock')
    return session


def test_the_launch_state_is_stopped_and_features_are_told(session):
    assert state(session) == STOPPED
    features = ask(session, GetSimulatorFeatures).features
    assert {
        SimulatorFeatures.STEP_SIMULATION_SINGLE, SimulatorFeatures.STEP_SIMULATION_ACTION,
        SimulatorFeatures.SIMULATION_RESET_TIME, SimulatorFeatures.SIMULATION_RESET_STATE,
        SimulatorFeatures.ENTITY_STATE_SETTING, SimulatorFeatures.NAMED_POSES,
    } <= set(features.features)  # fmt: skip
    assert SimulatorFeatures.SPAWNING in features.features
    assert 'contact model ncp' in features.custom_info


def test_states_follow_each_other(session):
    codes = SetSimulationState.Response
    assert become(session, STOPPED).result == codes.ALREADY_IN_TARGET_STATE
    assert (become(session, PAUSED).result, state(session)) == (OK, PAUSED)
    assert (become(session, PLAYING).result, state(session)) == (OK, PLAYING)
    assert become(session, PLAYING).result == codes.ALREADY_IN_TARGET_STATE
    session.fresh('/odom', 50)
    assert (become(session, PAUSED).result, state(session)) == (OK, PAUSED)
    assert session.time > 50 * STEP
    assert (become(session, STOPPED).result, state(session)) == (OK, STOPPED)
    session.wait(lambda: session.time == STEP, 'the first stamp')
    for impossible in (SimulationState.STATE_NO_WORLD, SimulationState.STATE_LOADING_WORLD, 77):
        assert become(session, impossible).result == codes.INCORRECT_TRANSITION
    assert (become(session, PLAYING).result, state(session)) == (OK, PLAYING)
    assert (become(session, STOPPED).result, state(session)) == (OK, STOPPED)


@pytest.mark.parametrize('count', [1, 7, 1000])
def test_step_simulation_is_exact(paused, count):
    begin = paused.time
    assert ask(paused, StepSimulation, steps=count).result.result == OK
    assert state(paused) == PAUSED
    expected = [begin + k * STEP for k in range(1, count + 1)]
    for topic in ('/odom', '/joint_states', '/imu/data', f'/contacts/{FEET[0]}/wrench'):
        messages = paused.messages[topic]
        paused.wait(lambda m=messages: len(m) >= count, topic)
        assert [stamp_of(message) for message in messages] == expected
    paused.wait(lambda: paused.time == expected[-1], 'the clock')
    assert sorted({stamp_of(m) for m in paused.messages['/clock']} - {begin}) == expected


def test_a_thousand_calls_in_a_row(paused):
    begin = paused.time
    for _ in range(1000):
        assert ask(paused, StepSimulation, '/step_simulation', steps=1).result.result == OK
    odom = paused.messages['/odom']
    paused.wait(lambda: len(odom) >= 1000, 'odom')
    assert [stamp_of(message) for message in odom] == [begin + k * STEP for k in range(1, 1001)]


def test_steps_need_a_pause(session):
    become(session, PLAYING)
    refused = ask(session, StepSimulation, steps=1).result
    assert (refused.result, refused.error_message) == (FAILED, 'not paused')
    _, result = act(session, 5)
    assert result.result.result.result == FAILED
    become(session, PAUSED)


def act(session, steps, name=f'/{NODE}/simulate_steps', cancel_after=None):
    """Return (feedback, result of the action) of simulate_steps."""
    feedback = session.feedback
    feedback.clear()
    sent = session.actions[name].send_goal_async(SimulateSteps.Goal(steps=steps))
    session.wait(sent.done, 'the goal to be accepted')
    handle = sent.result()
    assert handle.accepted
    result = handle.get_result_async()
    if cancel_after is not None:
        session.wait(lambda: len(feedback) >= cancel_after, 'some steps')
        cancelled = handle.cancel_goal_async()
        session.wait(cancelled.done, 'the cancellation')
    session.wait(result.done, 'the result', 60.0)
    return feedback, result.result()


@pytest.mark.parametrize('name', [f'/{NODE}/simulate_steps', '/simulate_steps'])
def test_the_action_says_how_far_it_is_after_every_step(paused, name):
    begin = paused.time
    feedback, result = act(paused, 50, name)
    assert result.result.result.result == OK
    assert result.status == 4  # SUCCEEDED
    paused.wait(lambda: len(feedback) >= 50, 'the feedback')
    told = [(message.completed_steps, message.remaining_steps) for message in feedback]
    assert told == [(k, 50 - k) for k in range(1, 51)]
    paused.wait(lambda: paused.time == begin + 50 * STEP, 'the clock')


def test_the_action_can_be_cancelled(paused):
    begin = paused.time
    _, result = act(paused, 1_000_000, cancel_after=20)
    assert result.status == 5  # CANCELED
    assert re.search('cancelled, [0-9]+ steps left', result.result.result.error_message)
    taken = 1_000_000 - int(re.search('[0-9]+', result.result.result.error_message)[0])
    assert 20 <= taken < 1_000_000
    paused.wait(lambda: paused.time == begin + taken * STEP, 'the clock', 30.0)
    assert state(paused) == PAUSED
    assert ask(paused, StepSimulation, steps=1).result.result == OK


def test_scopes_of_a_reset(paused):
    scopes = ResetSimulation.Request
    ask(paused, StepSimulation, steps=100)

    def reset(scope):
        paused.settle()
        paused.clear()
        before = round(ask(paused, GetEntityState, entity='go1').state.pose.position.z, 12)
        result = ask(paused, ResetSimulation, scope=scope).result
        odom = paused.messages['/odom']
        if result.result == OK:
            paused.wait(lambda: len(odom) == 1, 'the new state')
            return before, round(odom[0].pose.pose.position.z, 12), stamp_of(odom[0])
        return result

    before, after, stamp = reset(scopes.SCOPE_TIME)
    assert (after, stamp) == (before, STEP)
    before, after, stamp = reset(scopes.SCOPE_STATE)
    assert after == pytest.approx(ROBOT.reference_configuration()[2], abs=1e-9)
    assert stamp == 2 * STEP
    ask(paused, StepSimulation, steps=100)
    for scope in (scopes.SCOPE_DEFAULT, scopes.SCOPE_TIME | scopes.SCOPE_STATE):
        before, after, stamp = reset(scope)
        assert after == pytest.approx(ROBOT.reference_configuration()[2], abs=1e-9)
        assert stamp == STEP
        ask(paused, StepSimulation, steps=10)
    for scope in (64, scopes.SCOPE_STATE | 8):
        assert reset(scope).result == UNSUPPORTED
    assert ask(paused, ResetSimulation, scope=scopes.SCOPE_SPAWNED).result.result == OK
    assert paused.messages['/odom'] == []


def resident(session):
    with open(f'/proc/{session.simulation.handle.pid}/statm', encoding='ascii') as file:
        return 4096 * int(file.read().split()[1])


@pytest.mark.parametrize('scope', [1, 2, 255])
def test_a_hundred_resets_of_each_scope(paused, scope):
    for _ in range(10):
        ask(paused, ResetSimulation, scope=scope)
    memory = resident(paused)
    for _ in range(3):  # another process may take the machine for a while
        latency = []
        for _ in range(100):
            begin = time.perf_counter()
            assert ask(paused, ResetSimulation, scope=scope).result.result == OK
            latency.append(time.perf_counter() - begin)
        first, last = np.median(latency[:10]), np.median(latency[-10:])
        if last <= 1.2 * first:
            break
    assert last <= 1.2 * first
    assert resident(paused) - memory <= 1_000_000
    paused.settle()
    paused.clear()
    ask(paused, StepSimulation, steps=40)
    alive = [messages for topic, messages in paused.messages.items() if topic not in AT_TIMES]
    paused.wait(lambda: all(alive), 'every topic')


def test_the_robot_and_its_links_are_entities(session):
    everything = ask(session, GetEntities)
    assert everything.result.result == OK
    assert everything.entities[0] == 'go1'
    assert {'go1/base', 'go1/FL_foot'} <= set(everything.entities)
    feet = ask(session, GetEntities, filters=EntityFilters(filter='_foot$'))
    assert feet.entities == [f'go1/{foot}' for foot in FEET]
    people = [EntityCategory(category=EntityCategory.CATEGORY_HUMAN)]
    assert ask(session, GetEntities, filters=EntityFilters(categories=people)).entities == []
    robots = [EntityCategory(category=EntityCategory.CATEGORY_ROBOT)]
    assert ask(session, GetEntities, filters=EntityFilters(categories=robots)).entities != []
    tagged = EntityFilters(tags=TagsFilter(tags=['red']))
    assert ask(session, GetEntities, filters=tagged).entities == []
    assert ask(session, GetEntities, filters=EntityFilters(filter='[')).result.result == FAILED
    for kind, result in ((Bounds.TYPE_CONVEX_HULL, UNSUPPORTED), (Bounds.TYPE_SPHERE, FAILED)):
        bounded = EntityFilters(bounds=Bounds(type=kind))
        assert ask(session, GetEntities, filters=bounded).result.result == result
    info = ask(session, GetEntityInfo, entity='go1')
    assert info.info.category.category == EntityCategory.CATEGORY_ROBOT
    assert f'{ROBOT.total_mass:.3f} kg' in info.info.description
    for kind in (GetEntityInfo, GetEntityState, SetEntityState):
        assert ask(session, kind, entity='go2').result.result == NOT_FOUND


def test_the_state_of_the_robot_is_that_of_its_messages(paused):
    ask(paused, StepSimulation, steps=30)
    odom = paused.messages['/odom']
    paused.wait(lambda: len(odom) == 30, 'odom')
    entity = ask(paused, GetEntityState, entity='go1').state
    assert entity.header.stamp == odom[-1].header.stamp
    assert vector(entity.pose.position) == pytest.approx(vector(odom[-1].pose.pose.position))
    many = ask(paused, GetEntitiesStates, filters=EntityFilters(filter='_foot$'))
    assert many.entities == [f'go1/{foot}' for foot in FEET]
    for foot in many.states:  # spheres of 20 mm on the ground
        assert foot.pose.position.z == pytest.approx(0.02, abs=1e-3)
        assert np.linalg.norm(vector(foot.twist.linear)) < 0.1


def test_pose_and_twist_are_set_in_the_world(paused):
    request = placing(set_pose=True, set_twist=True)
    pose, twist = request.state.pose, request.state.twist
    pose.position.x, pose.position.y, pose.position.z = 1.0, 2.0, 0.8
    pose.orientation.z = pose.orientation.w = np.sqrt(0.5)  # looks along +y
    twist.linear.y, twist.angular.z = 0.5, 0.25
    response = paused.call(f'/{NODE}/set_entity_state', SetEntityState, request)
    assert response.result.result == OK, response.result.error_message
    odom = paused.messages['/odom']
    paused.wait(lambda: len(odom) == 1, 'the new state')
    assert vector(odom[0].pose.pose.position).tolist() == [1.0, 2.0, 0.8]
    assert vector(odom[0].twist.twist.linear) == pytest.approx([0.5, 0.0, 0.0], abs=1e-12)
    assert vector(odom[0].twist.twist.angular) == pytest.approx([0.0, 0.0, 0.25], abs=1e-12)
    back = ask(paused, GetEntityState, entity='go1').state
    assert vector(back.twist.linear) == pytest.approx([0.0, 0.5, 0.0], abs=1e-12)
    assert vector(back.twist.angular) == pytest.approx([0.0, 0.0, 0.25], abs=1e-12)
    if not CAN_CHOOSE:
        return
    request.set_pose, twist.linear.y = False, 1.5
    paused.call(f'/{NODE}/set_entity_state', SetEntityState, request)
    paused.wait(lambda: len(odom) == 2, 'the new twist')
    assert vector(odom[1].pose.pose.position).tolist() == [1.0, 2.0, 0.8]
    assert odom[1].twist.twist.linear.x == pytest.approx(1.5)


def test_poses_that_cannot_be_are_refused(paused):
    request = placing(set_pose=True)
    request.state.pose.orientation.w = 0.5
    refused = paused.call(f'/{NODE}/set_entity_state', SetEntityState, request).result
    assert refused.result == INVALID_POSE
    assert 'norm 0.5' in refused.error_message
    request.state.pose.orientation.w = 1.0
    request.state.pose.position.x = np.nan
    refused = paused.call(f'/{NODE}/set_entity_state', SetEntityState, request).result
    assert refused.result == INVALID_POSE
    request.state.pose.position.x = 0.0
    request.state.header.frame_id = 'FL_foot'
    refused = paused.call(f'/{NODE}/set_entity_state', SetEntityState, request).result
    assert refused.result == FAILED
    request.entity, request.state.header.frame_id = 'go1/FL_foot', ''
    refused = paused.call(f'/{NODE}/set_entity_state', SetEntityState, request).result
    assert (refused.result, 'read only' in refused.error_message) == (FAILED, True)
    assert paused.messages['/odom'] == []


def test_named_poses_stand_on_the_ground(session):
    poses = ask(session, GetNamedPoses).poses
    assert [pose.name for pose in poses] == list(ROBOT.reference_configurations)
    for pose in poses:
        height = ROBOT.reference_configuration(pose.name)[2]
        assert pose.pose.position.z == pytest.approx(height)
    spawn = ask(session, GetNamedPoses, tags=TagsFilter(tags=['spawn', 'parking']))
    assert spawn.poses == poses
    both = TagsFilter(tags=['spawn', 'parking'], filter_mode=TagsFilter.FILTER_MODE_ALL)
    assert ask(session, GetNamedPoses, tags=both).poses == []
    assert spawn.result.result == Result.RESULT_OK


def test_bounds_information_and_world_over_the_network(paused):
    everything = ask(paused, GetEntities).entities
    bounds = ask(paused, GetEntityBounds, entity='go1').bounds
    upper, lower = (vector(corner) for corner in bounds.points)
    assert bounds.type == Bounds.TYPE_BOX
    assert ((upper - lower) > [0.5, 0.2, 0.2]).all()
    assert ask(paused, GetEntityBounds, entity='nobody').result.result == NOT_FOUND
    pose = ask(paused, GetNamedPoses).poses[0].name
    request = GetNamedPoseBounds.Request(name=pose)
    posed = paused.call(f'/{NODE}/get_named_pose_bounds', GetNamedPoseBounds, request)
    assert posed.result.result == OK
    low = Bounds(type=Bounds.TYPE_BOX, points=[Vector3(x=9.0, y=9.0, z=0.01), Vector3(z=-1.0)])
    low.points[1].x = low.points[1].y = -9.0
    found = ask(paused, GetEntities, filters=EntityFilters(bounds=low)).entities
    assert {'go1', 'go1/FL_foot'} <= set(found) < set(everything)
    info = ask(paused, GetEntityInfo, entity='go1/FL_foot').info
    info.tags = ['left']
    assert ask(paused, SetEntityInfo, entity='go1/FL_foot', info=info).result.result == OK
    tagged = EntityFilters(tags=TagsFilter(tags=['left']))
    assert ask(paused, GetEntitiesStates, filters=tagged).entities == ['go1/FL_foot']
    world = ask(paused, GetCurrentWorld)
    assert (world.result.result, world.world.name) == (OK, 'plane')


def test_every_feature_has_its_service_and_the_others_have_none(session):
    """Services that are not served are those of features that are not told."""
    told = set(ask(session, GetSimulatorFeatures).features.features)
    served = {
        name.rpartition('/')[2]
        for name, _ in session.node.get_service_names_and_types()
        if name.startswith(f'/{NODE}/')
    }
    services = {
        'SPAWNING': 'spawn_entity', 'DELETING': 'delete_entity', 'NAMED_POSES': 'get_named_poses',
        'POSE_BOUNDS': 'get_named_pose_bounds', 'ENTITY_BOUNDS': 'get_entity_bounds',
        'ENTITY_STATE_GETTING': 'get_entity_state', 'ENTITY_STATE_SETTING': 'set_entity_state',
        'ENTITY_INFO_GETTING': 'get_entity_info', 'ENTITY_INFO_SETTING': 'set_entity_info',
        'SPAWNABLES': 'get_spawnables', 'SIMULATION_RESET': 'reset_simulation',
        'SIMULATION_STATE_GETTING': 'get_simulation_state',
        'SIMULATION_STATE_SETTING': 'set_simulation_state',
        'STEP_SIMULATION_SINGLE': 'step_simulation', 'WORLD_LOADING': 'load_world',
        'WORLD_UNLOADING': 'unload_world', 'WORLD_INFO_GETTING': 'get_current_world',
        'AVAILABLE_WORLDS': 'get_available_worlds', 'SPAWNING_ENTITIES': 'spawn_entities',
    }  # fmt: skip
    for feature, service in services.items():
        number = getattr(SimulatorFeatures, feature, None)
        assert (number in told) == (service in served), feature


def test_quitting_ends_the_process(session):
    assert become(session, SimulationState.STATE_QUITTING).result == OK
    assert session.simulation.handle.wait(10.0) == 0
    assert 'Traceback' not in session.simulation.output()
