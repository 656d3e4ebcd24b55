"""Compilation of the numerical kernels at the first start: announced, and given up on request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from contact_sim.solvers._jit import progress

logger = logging.getLogger('contact_sim')
PATIENCE = 1.5
"""Seconds before the announcement; a start from the cache takes less."""
INTERVAL = 5.0
"""Seconds between two lines on the progress."""


@contextmanager
def announced(*modules: str) -> Iterator[None]:
    """Log the progress of a compilation while the block runs, if it takes long.

    Args:
        modules: full names of the modules whose kernels the block needs.
    """
    ended = threading.Event()

    def announce() -> None:
        pause = PATIENCE
        while not ended.wait(pause):
            done, existing = progress(modules)
            logger.warning(
                'compiling the numerical kernels: %d of about %d (first start only)',
                done,
                existing,
            )
            pause = INTERVAL

    threading.Thread(target=announce, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


class _Interrupter(event.Listener):  # type: ignore[misc]
    """Raises KeyboardInterrupt before a kernel when `go_on()` has become False."""

    def __init__(self, go_on: Callable[[], bool]) -> None:
        self.go_on = go_on

    def on_start(self, event: Any) -> None:
        if not self.go_on():
            raise KeyboardInterrupt

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def compiling_while(go_on: Callable[[], bool]) -> Iterator[None]:
    """Give up a compilation in the block at its next kernel when `go_on()` has become False.

    An exception in a signal handler would not do: it may end in a callback of the compiler, which
    prints it and goes on.

    Raises:
        KeyboardInterrupt: the compilation was given up.
    """
    with event.install_listener('numba:compile', _Interrupter(go_on)):
        yield
