"""Every robot of the catalogue on every terrain in the node, under every contact model in turn."""

import threading
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from rclpy.parameter import Parameter

from contact_sim import contact_models, robots
from contact_sim.collision.terrain import TERRAINS
from contact_sim.ros.node import SimulationNode
from contact_sim.ros.remote.client import environment
from contact_sim.ros.remote.processes import isolated_environment

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


@pytest.mark.parametrize('terrain', TERRAINS)
@pytest.mark.parametrize('name', robots())
def test_every_robot_runs_in_the_node_under_every_model(context, name, terrain):
    chosen = {'robot': name, 'terrain.type': terrain, 'real_time_factor': 0.0}
    overrides = [Parameter(key, value=value) for key, value in chosen.items()]
    node = SimulationNode(context=context, parameter_overrides=overrides)
    ended = threading.Event()
    loop = threading.Thread(target=node.run, args=(lambda: not ended.is_set(),))
    height = node.sim.q[2]
    loop.start()
    try:
        for model in contact_models():
            (result,) = node.set_parameters([Parameter('contact.model', value=model)])
            assert result.successful, result.reason
            wait_for_step(node, node.sim.step_count + STEPS)
            assert not node.loop.tally.failure
            assert node.sim.contact_model == model
        assert np.isfinite(node.sim.q).all()
        assert node.sim.q[2] == pytest.approx(height, rel=0.2)
    finally:
        ended.set()
        loop.join()
        node.destroy_node()
