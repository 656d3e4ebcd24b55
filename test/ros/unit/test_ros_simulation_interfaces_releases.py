"""Services and action of simulation_interfaces with the classes of every release; no network.

The classes are stood in for; test_ros_simulation_interfaces.py speaks to the node where the
package is installed.
"""

import asyncio
import importlib.util
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import vector
from simulation_interfaces_stand_in import LACKING, PACKAGE, SERVICES, stand_in

from contact_sim import Simulator, joined, load_robot
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._commands import CommandBuffer
from contact_sim.ros._inputs import StateControl
from contact_sim.ros._loop import Tally
from contact_sim.ros._parameters import PARAMETER_GROUPS

ROBOT = load_robot('go1')
PAIR = joined({'a': ROBOT, 'b': load_robot('solo12')}, {'b': (1.5, 0.0, 0.3)})
N = ROBOT.n_joints
MODULE = 'contact_sim.ros._simulation_interfaces'
OK, FAILED, UNSUPPORTED = 1, 4, 0


class Loop:
    """Does at once what is asked for between two steps."""

    def __init__(self):
        self.paused, self.tally = True, Tally()

    def between_steps(self, action):
        action()

    def set_paused(self, paused):
        self.paused = paused

    def announce_new_state(self, failure_ends=True):
        pass


class Node:
    """Keeps the services that it is to serve."""

    def __init__(self):
        self.served, self.context = {}, SimpleNamespace(try_shutdown=lambda: None)

    def get_logger(self):
        return None

    def create_service(self, kind, name, callback, callback_group):
        self.served[name.removeprefix('~/')] = kind, callback

    def create_timer(self, period, callback):
        self.ending = callback


class Server:
    """The services on a simulator, asked without a network."""

    def __init__(self, module, sim):
        self.node, self.sim, self.loop = Node(), sim, Loop()
        settings = {prefix: kind() for prefix, kind in PARAMETER_GROUPS.items()}
        parameters = SimpleNamespace(settings=settings)
        buffer = CommandBuffer(ROBOT.joint_names, *np.zeros((3, N)))
        control = StateControl(sim, self.loop, buffer, parameters)
        module.ActionServer = self.action_server
        services = SimpleNamespace(take_steps=self.take_steps)
        self.interfaces = module.SimulationInterfaces(self.node, control, services)

    def action_server(self, node, kind, name, execute, **_):
        self.action = kind, execute

    async def take_steps(self, count, after_step=None):
        for left in range(count - 1, -1, -1):
            self.sim.step(np.zeros(N))
            if after_step is not None and not after_step(left):
                return f'cancelled, {left} steps left'
        return ''

    def ask(self, name, **fields):
        kind, callback = self.node.served[name]
        response = callback(kind.Request(**fields), kind.Response())
        return asyncio.run(response) if asyncio.iscoroutine(response) else response


def loaded(release, monkeypatch):
    """Return the module with the classes of a release, and these by the names of their modules."""
    modules = stand_in(release)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.find_spec(MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, modules


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
    names = {re.sub('(?<!^)([A-Z])', r'_\1', name).lower() for name in SERVICES}
    assert server.node.served.keys() == names
    features = server.ask('get_simulator_features').features
    assert len(features.features) == 14
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
    for scope, expected in ((0, OK), (1, OK), (2, OK), (3, OK), (255, OK), (4, UNSUPPORTED)):
        server.ask('step_simulation', steps=20)
        before, time = server.sim.q.copy(), server.sim.time
        assert server.ask('reset_simulation', scope=scope).result.result == expected
        stays = scope in (1, 4)
        assert server.sim.q == pytest.approx(before if stays else start, abs=1e-12)
        goes_on = {2: time + server.sim.time_step, 4: time}
        assert server.sim.time == pytest.approx(goes_on.get(scope, server.sim.time_step))


def test_robots_and_links_are_entities(server):
    entities = server.ask('get_entities').entities
    assert entities[0] == 'go1'
    states = server.ask('get_entities_states').states
    assert vector(states[0].pose.position) == pytest.approx(server.sim.q[:3])
    assert server.ask('get_entity_info', entity='go1').info.category.category == 1
    assert server.ask('get_entity_state', entity='nobody').result.result == 2
    boxes = server.msg.EntityFilters(bounds=server.msg.Bounds(type=1))
    assert server.ask('get_entities', filters=boxes).result.result == UNSUPPORTED
    poses = server.ask('get_named_poses').poses
    assert [pose.name for pose in poses] == list(ROBOT.reference_configurations)


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
