"""What other threads ask of a running simulation, done between two steps."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Request:
    """Something to be done between two steps, unless it is withdrawn before."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._begun = threading.Lock()
        self.done = threading.Event()
        self.error: Exception | None = None

    def serve(self) -> None:
        """Do it; keep what it raises."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._action()
        except Exception as error:
            self.error = error
        finally:
            self.done.set()

    def withdraw(self) -> bool:
        """Return whether it has not begun; then it never will."""
        return self._begun.acquire(blocking=False)
