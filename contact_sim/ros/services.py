"""Services of standard types, always there: pause, step and reset."""

from __future__ import annotations

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from contact_sim.ros.loop import Loop, Steps
from contact_sim.ros.parameter_server import ParameterServer
from contact_sim.ros.setup import start_configuration
from contact_sim.simulation.simulator import Simulator


class Services:
    """Services under the node's name.

    They have a callback group of their own, so that commands are taken while one is under way.
    """

    def __init__(
        self, node: Node, sim: Simulator, loop: Loop, parameters: ParameterServer
    ) -> None:
        self._node, self._sim, self._loop, self._parameters = node, sim, loop, parameters
        group = MutuallyExclusiveCallbackGroup()
        for kind, name, callback in (
            (SetBool, 'pause', self._on_pause),
            (Trigger, 'reset', self._on_reset),
            (Trigger, 'step', self._on_step),
        ):
            node.create_service(kind, f'~/{name}', callback, callback_group=group)

    async def take_steps(self, count: int) -> str:
        """Take steps; return why not all were taken, '' if they were. The last one is published.

        Other callbacks run meanwhile.
        """
        done = Future()

        def finish(reason: str) -> None:
            done.set_result(reason)
            if self._node.executor is not None:
                self._node.executor.wake()

        self._loop.ask_for_steps(Steps(count, finish))
        await done
        return str(done.result())

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._loop.between_steps(lambda: self._loop.set_paused(request.data))
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        q = start_configuration(self._sim, self._parameters.settings)
        self._loop.between_steps(lambda: self._loop.reset(q))
        response.success = True
        response.message = f'standing at t = {self._sim.time:.9g} s; time goes on'
        return response

    async def _on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Answer after the last step has been published; commands are taken meanwhile."""
        if not self._loop.paused:
            response.success, response.message = False, 'not paused: call ~/pause first'
            return response
        count = self._parameters.settings[''].step_count
        reason = await self.take_steps(count)
        response.success = not reason
        response.message = reason or f'{count} steps, t = {self._sim.time:.9g} s'
        return response
