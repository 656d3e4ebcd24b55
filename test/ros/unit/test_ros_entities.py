"""Robots as entities of simulation_interfaces; classes of that package are stood in for."""

import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ros_session import vector
from simulation_interfaces_stand_in import stand_in

from contact_sim import Simulator, joined, load_robot
from contact_sim.robot._several_robots import parts_of

PAIR = joined({'a': load_robot('go1'), 'b': load_robot('solo12')}, {'b': (1.5, 0.0, 0.3)})
MODULE = 'contact_sim.ros._simulation_interfaces'
OK = 1


@pytest.fixture
def entities(monkeypatch):
    """Return a function from a robot to its entities, the simulator and what was placed."""
    for name, module in stand_in('2.1.0').items():
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.find_spec(MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

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
