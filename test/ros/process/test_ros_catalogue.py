"""Every robot of the catalogue in the node, under every contact model in turn."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from rclpy.parameter import Parameter

from contact_sim import contact_models, load_robot, robots, textbook_systems
from contact_sim.collision._terrain import TERRAINS
from contact_sim.ros._client import environment
from contact_sim.ros._processes import isolated_environment
from contact_sim.ros.simulation_node import SimulationNode

STEPS = 20
TIMEOUT = 60.0


@pytest.fixture(scope='module')
def context():
    """Return a ROS context on a domain of its own."""
    own = rclpy.Context()
    with environment(isolated_environment()):
        rclpy.init(args=[], context=own)
        yield own
    rclpy.try_shutdown(context=own)


def wait_for_step(node, count):
    """Wait until the simulation has taken so many steps, or has stopped."""
    end = time.monotonic() + TIMEOUT
    while node.sim.step_count < count and not node.loop.tally.failure:
        assert time.monotonic() < end, node.sim.contact_model
        time.sleep(1e-3)


@contextmanager
def running_node(context, **chosen):
    """Yield the node while it runs as fast as it can."""
    parameters = {'real_time_factor': 0.0} | chosen
    overrides = [Parameter(key, value=value) for key, value in parameters.items()]
    node = SimulationNode(context=context, parameter_overrides=overrides)
    ended = threading.Event()
    loop = threading.Thread(target=node.run, args=(lambda: not ended.is_set(),))
    loop.start()
    try:
        yield node
    finally:
        ended.set()
        loop.join()
        node.destroy_node()


@pytest.mark.parametrize(
    ('name', 'terrain'),
    [(name, list(TERRAINS)[k % len(TERRAINS)]) for k, name in enumerate(robots())],
)
def test_every_robot_runs_in_the_node_under_every_model(context, name, terrain):
    with running_node(context, robot=name, **{'terrain.type': terrain}) as node:
        height = node.sim.standing_configuration()[2]
        for model in contact_models():
            (result,) = node.set_parameters([Parameter('contact.model', value=model)])
            assert result.successful, result.reason
            wait_for_step(node, node.sim.step_count + STEPS)
            assert not node.loop.tally.failure
            assert node.sim.contact_model == model
        assert np.isfinite(node.sim.q).all()
        assert node.sim.q[2] == pytest.approx(height, rel=0.2)


@pytest.mark.parametrize('name', textbook_systems()[::3])
def test_systems_of_the_textbook_run_in_the_node(context, name):
    """As robot:=cart_pendulum starts it: fixed where the catalogue says so, from its pose."""
    with running_node(context, robot=name) as node:
        start = node.sim.standing_configuration()
        wait_for_step(node, STEPS)
        assert not node.loop.tally.failure
        assert node.sim.robot.name == name
        assert np.isfinite(node.sim.q).all()
        assert start == pytest.approx(load_robot(name).reference_configuration())
