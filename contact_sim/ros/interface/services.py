"""Services of standard types, always there: pause, step, reset, snapshot."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from contact_sim.errors import ContactSimError
from contact_sim.ros.interface.state_control import StateControl
from contact_sim.ros.parameter_server import ParameterServer
from contact_sim.ros.stepping.loop import Loop, Steps
from contact_sim.simulation.simulator import Simulator


class Services:
    """Services under the node's name.

    They have a callback group of their own, so that commands are taken while one is under way.
    """

    def __init__(
        self,
        node: Node,
        sim: Simulator,
        loop: Loop,
        control: StateControl,
        parameters: ParameterServer,
    ) -> None:
        self._node, self._sim, self._loop, self._control = node, sim, loop, control
        self._parameters = parameters
        group = MutuallyExclusiveCallbackGroup()
        node.create_service(SetBool, '~/pause', self._on_pause, callback_group=group)
        node.create_service(Trigger, '~/step', self._on_step, callback_group=group)
        for name, action in {
            'reset': self._reset,
            'reset_time': self._reset_time,
            'snapshot': self._snapshot,
            'restore': self._restore,
            'end_pushes': self._end_pushes,
        }.items():
            node.create_service(Trigger, f'~/{name}', _answering(action), callback_group=group)

    async def take_steps(self, count: int, after_step: Callable[[int], bool] | None = None) -> str:
        """Take steps; return why not all were taken, '' if they were. The last one is published.

        Other callbacks run meanwhile. `after_step` is called with the number of steps left, in
        the thread of the loop; no more are taken when it returns False.
        """
        done = Future()

        def finish(reason: str) -> None:
            done.set_result(reason)
            if self._node.executor is not None:
                self._node.executor.wake()

        self._loop.ask_for_steps(Steps(count, finish, after_step))
        await done
        return str(done.result())

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._loop.between_steps(lambda: self._loop.set_paused(request.data))
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _reset(self) -> str:
        self._control.reset()
        return f'standing at t = {self._sim.time:.9g} s; time goes on'

    def _reset_time(self) -> str:
        self._control.reset_time()
        return f't = {self._sim.time:.9g} s'

    def _snapshot(self) -> str:
        return f'state at t = {self._control.snapshot():.9g} s kept'

    def _restore(self) -> str:
        self._control.restore()
        return f'restored at t = {self._sim.time:.9g} s; time goes on'

    def _end_pushes(self) -> str:
        self._loop.between_steps(self._loop.end_pushes)
        return 'nothing pushes any more'

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


def _answering(
    action: Callable[[], str],
) -> Callable[[Trigger.Request, Trigger.Response], Trigger.Response]:
    """Return a callback that does something and says what, or why it did not."""

    def callback(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message, response.success = action(), True
        except ContactSimError as error:
            response.message, response.success = str(error), False
        return response

    return callback
