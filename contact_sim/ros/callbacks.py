"""Serve the callbacks of a node in a thread of their own, whatever they raise."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

from rclpy.executors import ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node

from contact_sim.errors import ContactSimError

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
            said = ''.join(traceback.format_exception(error))
            self._log.error(f'a callback failed, its message is lost: {said}')
