"""Serve the callbacks of a node in a thread of their own, and answer, whatever they raise."""

from __future__ import annotations

import inspect
import os
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import Empty

from contact_sim.errors import ContactSimError, shortened

# --- Two simulations of one name: services, parameters and diagnostics of both would be mixed up.
#
# A node that has been killed stays in the graph for some 20 s, so its name alone says nothing: who
# simulates speaks on /diagnostics every second, and who is about to start bears a mark.

DISCOVERY = 0.3
"""Wall seconds after which nodes on a healthy network know of each other."""
SILENCE = 3.0
"""Wall seconds without /diagnostics after which a node is taken for one that has been killed."""


class NameTaken(ContactSimError):
    """Another node of this name runs on this ROS domain."""


class Claim:
    """A name that a node wants for itself: made with the node, checked before it speaks.

    Args:
        node: who bears the name.
    """

    def __init__(self, node: Node) -> None:
        self._node, self._since = node, time.perf_counter()
        self._name = node.get_fully_qualified_name()
        self._prefix = f'{self._name}/_starts_'  # hidden, and in the order of the starts
        self._mark = f'{self._prefix}{time.time_ns():020d}_{os.getpid()}'
        self._publisher = node.create_publisher(Empty, self._mark, 1)

    def check(self) -> None:
        """Return if the name is free, with a warning if it was taken by a node that is silent.

        Raises:
            NameTaken: another node runs under it, or has begun to start before this one.
        """
        time.sleep(max(0.0, DISCOVERY - (time.perf_counter() - self._since)))
        try:
            if not self._others():
                return
            marks = self._marks()
            if any(mark < self._mark for mark in marks):
                raise NameTaken(self._said('is starting'))
            if len(marks) < self._others() and self._somebody_speaks():
                raise NameTaken(self._said('runs'))
            if len(marks) < self._others():
                self._node.get_logger().warning(
                    f'there was a node {self._name}; it is silent, so it is taken for dead'
                )
        finally:
            self._node.destroy_publisher(self._publisher)

    def _others(self) -> int:
        """Return how many other nodes bear the name."""
        known = self._node.get_node_names_and_namespaces()
        names = [f'{namespace.rstrip("/")}/{name}' for name, namespace in known]
        return names.count(self._name) - 1

    def _marks(self) -> list[str]:
        """Return the marks of other nodes that are about to start."""
        topics = [name for name, _ in self._node.get_topic_names_and_types()]
        return [name for name in topics if name.startswith(self._prefix) and name != self._mark]

    def _somebody_speaks(self) -> bool:
        """Return whether a node of this name sends diagnostics."""
        end = time.perf_counter() + SILENCE
        while (left := end - time.perf_counter()) > 0.0 and self._others():
            heard, message = wait_for_message(
                DiagnosticArray, self._node, '/diagnostics', time_to_wait=left
            )
            own = self._name.lstrip('/')
            if heard and any(status.hardware_id == own for status in message.status):
                return True
        return False

    def _said(self, does: str) -> str:
        domain = os.environ.get('ROS_DOMAIN_ID', '0')
        return (
            f'a node {self._name} {does} on ROS domain {domain} already; end it, or start this '
            "one under another name or namespace, such as --ros-args -r __ns:='/second'"
        )


# --- Serve the callbacks of a node in a thread of their own, and answer, whatever they raise.

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
