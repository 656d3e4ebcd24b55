"""From the switches of a page to its session, and its errors back to whoever looks at the page."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import viser

from contact_sim.errors import ContactSimError

READ = 8.0
"""Wall seconds for which a notification stays."""
Action = Callable[[], None]


class Asking:
    """Does what the page asks for, one thing after the other, in the order in which it asks.

    Values are taken when the browser sends them, and done later: until then the page may have
    shown an older setting in the same input.

    Args:
        server: of the page.

    Attributes:
        answered: how often something was done or refused; inputs may show something else since.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server, self._lock = server, threading.Lock()
        self._worker = ThreadPoolExecutor(1, 'asking')
        self._waiting: deque[object] = deque()
        self.answered = 0

    @property
    def busy(self) -> bool:
        """Whether something is being done just now, or waits for it."""
        return bool(self._waiting) or self._lock.locked()

    def of_value(self, handle: Any, act: Callable[[Any], None]) -> None:
        """Call `act` with the value of an input whenever somebody in a browser changes it."""

        async def on_update(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:  # not where the page follows the session
                self._later(partial(act, handle.value), handle)

        handle.on_update(on_update)

    def of_click(self, button: Any, act: Action) -> None:
        """Call `act` whenever somebody clicks."""

        async def on_click(event: viser.GuiEvent[Any]) -> None:
            self._later(act, button)

        button.on_click(on_click)

    def of_key(self, label: str, key: Any, act: Action) -> None:
        """Call `act` whenever somebody presses a key, or chooses the command of this label."""
        command = self._server.gui.add_command(label, hotkey=key)

        async def on_trigger(event: object) -> None:
            self._later(act, command)

        command.on_trigger(on_trigger)

    def waits(self, handle: object) -> bool:
        """Whether somebody has used this input, and what it asks for is not done yet."""
        return any(one is handle for one in list(self._waiting))

    def in_between(self, act: Action) -> None:
        """Do something for the page itself, if nothing is being done just now."""
        if self._lock.acquire(blocking=False):
            try:
                act()
            finally:
                self._lock.release()

    def _later(self, act: Action, handle: object) -> None:
        """Have something done after all that was asked for before; called by the server's loop."""
        self._waiting.append(handle)
        self._worker.submit(self._do_next, act)

    def _do_next(self, act: Action) -> None:
        try:
            self.do(act)
        finally:
            self._waiting.popleft()

    def do(self, act: Action) -> None:
        """Do something; show in the page why it cannot be done."""
        with self._lock:
            try:
                act()
            except Exception as error:  # nothing that a page asks for ends it
                known = isinstance(error, ContactSimError)
                self.tell(str(error) if known else f'{type(error).__name__}: {error}', 'refused')
            finally:
                self.answered += 1

    def tell(self, text: str, title: str) -> None:
        """Show a text in all browsers that have the page open."""
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=READ, color='red')
