"""The simulation and a gait as processes that have met: where benchmarks over ROS begin."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contact_sim.ros._client import SimulationClient
from contact_sim.ros._processes import Process, ros_arguments

CONTROLLER_LOG = 'controller.log'
"""Its name in the folder of the client."""
START = 120.0
"""Wall seconds until all processes have met; a first start compiles the kernels."""


@contextmanager
def gait_session(
    simulation: Mapping[str, Any], controller: Mapping[str, Any], program: str = 'gait_node'
) -> Iterator[SimulationClient]:
    """Start the simulation, paused, and a controller, a module, with these ROS parameters.

    Raises:
        RuntimeError: the controller has ended, even if only by the end of the block.
        TimeoutError: they do not meet.
    """
    with tempfile.TemporaryDirectory() as logs:
        client = SimulationClient(Path(logs))
        client.start({'start_paused': True, **simulation})
        places = [str(Path(__file__).parent), os.environ.get('PYTHONPATH', '')]
        gait = Process(
            program, ros_arguments(dict(controller)),
            client.domain | {'PYTHONPATH': os.pathsep.join(places)}, Path(logs) / CONTROLLER_LOG,
        )  # fmt: skip
        try:
            client.wait(lambda: _met(client, gait), 'the controller', START)
            yield client
            _check_alive(gait)
        finally:
            gait.stop()
            client.close()


def _met(client: SimulationClient, gait: Process) -> bool:
    _check_alive(gait)
    node = client.node
    return bool(node.count_subscribers('joint_states') and node.count_publishers('joint_commands'))


def _check_alive(gait: Process) -> None:
    if not gait.running:
        raise RuntimeError(f'the controller has ended\n{gait.output()}')
