"""Messages between two processes on one machine: a line of JSON each, over a socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

Message = dict[str, Any]


class Channel:
    """One end of a connection; any thread may send, one thread reads.

    Args:
        end: of a pair of connected sockets.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end, self._sending = end, threading.Lock()
        self._lines = end.makefile('rb')

    def send(self, kind: str, **said: Any) -> None:
        """Send a message of a kind; wait until the other process has room for it.

        Raises:
            OSError: the other process is gone.
        """
        line = json.dumps({'kind': kind, **said}).encode() + b'\n'
        with self._sending:
            self._end.sendall(line)

    def messages(self) -> Iterator[Message]:
        """Yield the messages of the other process until it is gone."""
        with suppress(OSError):
            for line in self._lines:
                if line.endswith(b'\n'):  # without it the process died in the middle
                    yield json.loads(line)

    def close(self) -> None:
        """Be gone for the other process; whoever sends or reads here comes back."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
