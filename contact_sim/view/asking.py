"""From the switches of a page to its session, and its errors back to whoever looks at the page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import viser

from contact_sim.errors import ContactSimError

READ = 8.0
"""Wall seconds for which a notification stays."""
Action = Callable[[], None]


class Asking:
    """Does what the page asks for, one thing after the other.

    Args:
        server: of the page.

    Attributes:
        refused: how often something could not be done; what shows its value is wrong then.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server, self._lock = server, threading.Lock()
        self.refused = 0

    @property
    def busy(self) -> bool:
        """Whether something is being done just now."""
        return self._lock.locked()

    def of_value(self, handle: Any, act: Callable[[Any], None]) -> None:
        """Call `act` with the value of an input whenever somebody in a browser changes it."""

        def on_update(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:  # not where the page follows the session
                self.do(lambda: act(handle.value))

        handle.on_update(on_update)

    def of_click(self, button: Any, act: Action) -> None:
        """Call `act` whenever somebody clicks."""
        button.on_click(lambda event: self.do(act))

    def of_key(self, label: str, key: Any, act: Action) -> None:
        """Call `act` whenever somebody presses a key, or chooses the command of this label."""
        command = self._server.gui.add_command(label, hotkey=key)
        command.on_trigger(lambda event: self.do(act))

    def do(self, act: Action) -> None:
        """Do something; show in the page why it cannot be done."""
        with self._lock:  # the last of many changes of a slider is the one that lasts
            try:
                act()
            except Exception as error:  # nothing that a page asks for ends it
                self.refused += 1
                known = isinstance(error, ContactSimError)
                self.tell(str(error) if known else f'{type(error).__name__}: {error}', 'refused')

    def tell(self, text: str, title: str) -> None:
        """Show a text in all browsers that have the page open."""
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=READ, color='red')
