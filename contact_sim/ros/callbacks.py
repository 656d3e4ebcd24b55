"""Serve the callbacks of a node in a thread of their own, and answer, whatever they raise."""

from __future__ import annotations

import inspect
import threading
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node

from contact_sim.errors import ContactSimError, shortened

LONGEST_END = 2.0
"""Wall seconds that the thread may take to end."""


class CallbacksEnded(ContactSimError):
    """Callbacks are served no more: the node hears nobody, and has to end."""


class CallbackThread:
    """Serves the callbacks of a node.

    A callback that raises costs its own message or request, and is reported. Should the executor
    itself fail, `alive` turns False and `end` says why.

    Args:
        node: whose callbacks.
        ok: whether ROS is up, by default the context of the node is asked.
    """

    def __init__(self, node: Node, ok: Callable[[], bool] | None = None) -> None:
        self._log, self._ok = node.get_logger(), ok or node.context.ok
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether callbacks are served."""
        return self._thread.is_alive()

    def end(self) -> None:
        """Serve no more.

        Raises:
            CallbacksEnded: that was over already, though ROS is up.
        """
        if self._error is None:
            self._executor.shutdown(timeout_sec=1.0)
            self._thread.join(timeout=LONGEST_END)
        else:
            raise CallbacksEnded(f'callbacks are served no more: {self._error!r}') from self._error

    def _serve(self) -> None:
        try:
            while self._ok():
                self._serve_one()
        except ShutdownException:
            pass
        except BaseException as error:
            if self._ok():
                self._error = error

    def _serve_one(self) -> None:
        try:
            task, _, _ = self._executor.wait_for_ready_callbacks()
        except TimeoutException:
            return
        try:
            task()
            error = task.exception()
        except BaseException as raised:  # rclpy keeps those of Exception, and passes on the rest
            error = raised
        if error is not None and self._ok():
            self._log.error(f'a callback failed, its message is lost: {described(error)}')


def described(error: BaseException) -> str:
    """Return an error with its traceback, in a bounded text."""
    return shortened(''.join(traceback.format_exception(error)))


def answering(
    callback: Callable[[Any, Any], Any], report: Callable[[str], None]
) -> Callable[[Any, Any], Coroutine[Any, Any, Any]]:
    """Return a callback of a service that answers even if `callback` raises.

    Args:
        callback: takes request and response, returns the response; a coroutine or not.
        report: told in words what it raised.
    """

    async def answer(request: Any, response: Any) -> Any:
        try:
            returned = callback(request, response)
            return await returned if inspect.isawaitable(returned) else returned
        except Exception as error:
            expected = isinstance(error, ContactSimError)
            report(f'a service failed: {error if expected else described(error)}')
            reason = str(error) if expected else shortened(repr(error))
            return refusal(request, type(response)(), reason)

    return answer


def refusal(request: Any, response: Any, reason: str) -> Any:
    """Return a response that says why nothing was done, in the fields that its type has for it."""
    result: Any = getattr(response, 'result', None)
    if hasattr(response, 'success'):  # std_srvs
        response.success, response.message = False, reason
    elif hasattr(result, 'error_message'):  # simulation_interfaces
        result.result, result.error_message = result.RESULT_OPERATION_FAILED, reason
    elif hasattr(result, 'successful'):
        result.successful, result.reason = False, reason
    elif hasattr(response, 'results'):
        refused = SetParametersResult(successful=False, reason=reason)
        response.results = [refused] * len(request.parameters)
    return response
