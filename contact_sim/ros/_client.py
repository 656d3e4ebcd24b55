"""A client of a simulation: it starts one as a process and talks to it over ROS."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import SetBool, Trigger

from contact_sim.ros._processes import Process, isolated_environment, ros_arguments
from contact_sim.topics._table import NODE

TIMEOUT = 10.0
"""Wall seconds for anything that should happen at once; discovery alone may take three."""
CALL_TIMEOUT = 60.0
"""Wall seconds for the answer of a service."""
OUTPUT_TAIL = 3000
"""Characters at the end of a process's output that an error quotes."""


class SimulationClient:
    """A simulation as a process on a ROS domain of its own, and a `node` in this process.

    Logs go to `folder`. `domain` is the environment of processes that may meet the simulation.
    """

    def __init__(self, folder: Path, name: str = 'client') -> None:
        self.folder = folder
        self.domain = isolated_environment() | {'ROS_LOG_DIR': str(folder)}
        self._context = rclpy.Context()
        with environment(self.domain):
            rclpy.init(args=[], context=self._context)
            self.node = Node(name, context=self._context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def start(self, parameters: Mapping[str, Any]) -> None:
        """Start the simulation with these ROS parameters."""
        self.simulation = Process(
            'contact_sim.ros.simulation_node', ros_arguments(dict(parameters)), self.domain,
            self.folder / 'simulation.log',
        )  # fmt: skip

    def close(self) -> None:
        """End the simulation and the node."""
        if hasattr(self, 'simulation'):
            self.simulation.stop()
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def spin(self, seconds: float) -> None:
        """Serve callbacks for some wall time."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0.0:
            self._executor.spin_once(left)

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = TIMEOUT) -> None:
        """Serve callbacks until `condition` holds; raise TimeoutError if that takes too long."""
        end = time.perf_counter() + timeout
        while not condition():
            left = end - time.perf_counter()
            if left <= 0.0:
                raise TimeoutError(f'waited {timeout:g} s for {what}\n{self.output_tail()}')
            self.check_alive()
            self._executor.spin_once(min(left, 0.1))

    def check_alive(self) -> None:
        """Raise TimeoutError where the simulation has ended."""
        if not self.simulation.running:
            raise TimeoutError(f'the simulation has ended\n{self.output_tail()}')

    def output_tail(self) -> str:
        """Return the end of the output of the simulation."""
        return self.simulation.output()[-OUTPUT_TAIL:]

    def call(self, name: str, kind: Any, request: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Return the response of a service."""
        future = self.ask(name, kind, request)
        self.wait(future.done, f'response of {name}', timeout)
        return future.result()

    def ask(self, name: str, kind: Any, request: Any) -> Any:
        """Call a service and return the future of its response."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client = self._clients[name]
        self.wait(client.service_is_ready, f'service {name}')
        return client.call_async(request)

    def pause(self, paused: bool = True) -> Any:
        """Let simulated time stand still, or go on."""
        return self.call(f'/{NODE}/pause', SetBool, SetBool.Request(data=paused))

    def reset(self) -> Any:
        """Put the robot back into its pose."""
        return self.call(f'/{NODE}/reset', Trigger, Trigger.Request())

    def reset_time(self) -> Any:
        """Set simulated time back to its start."""
        return self.call(f'/{NODE}/reset_time', Trigger, Trigger.Request())

    def step(self, count: int | None = None, timeout: float = CALL_TIMEOUT) -> Any:
        """Take steps: `count`, or as many as the parameter step_count says."""
        if count is not None:
            result = self.set(step_count=count)
            if not result.successful:
                raise ValueError(result.reason)
        return self.call(f'/{NODE}/step', Trigger, Trigger.Request(), timeout)

    def set(self, values: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Set parameters in one request; return the result with `successful` and `reason`."""
        values = {**(values or {}), **more}
        request = SetParametersAtomically.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        name = f'/{NODE}/set_parameters_atomically'
        return self.call(name, SetParametersAtomically, request).result

    def get(self, *names: str) -> list[Any]:
        """Return the values of parameters."""
        request = GetParameters.Request(names=names)
        response = self.call(f'/{NODE}/get_parameters', GetParameters, request)
        return [parameter_value_to_python(value) for value in response.values]

    def describe(self, *names: str) -> list[Any]:
        """Return the descriptors of parameters."""
        request = DescribeParameters.Request(names=names)
        name = f'/{NODE}/describe_parameters'
        return list(self.call(name, DescribeParameters, request).descriptors)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables inside the block: DDS reads them when a node is made."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
