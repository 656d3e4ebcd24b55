"""The first start compiles the numerical kernels; people should not wonder what takes so long."""

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
"""Seconds of silence before the announcement; a start from the cache takes less."""
INTERVAL = 5.0
"""Seconds between two lines on the progress."""


@contextmanager
def announced(*modules: str) -> Iterator[None]:
    """Log how far the compilation is while the block runs, if it takes long enough to be one.

    Args:
        modules: full names of the modules whose kernels the block needs.
    """
    ended = threading.Event()
    watch = threading.Thread(target=_announce, args=(ended, modules), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()


def _announce(ended: threading.Event, modules: tuple[str, ...]) -> None:
    pause = PATIENCE
    while not ended.wait(pause):
        done, existing = progress(modules)
        logger.warning(
            'compiling the numerical kernels: %d of about %d (first start only)', done, existing
        )
        pause = INTERVAL


class _Watch(event.Listener):  # type: ignore[misc]
    """Asks before every kernel whether to go on."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self.wanted = wanted

    def on_start(self, event: Any) -> None:
        if not self.wanted():
            raise KeyboardInterrupt

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def compiling_while(wanted: Callable[[], bool]) -> Iterator[None]:
    """Give up a compilation in the block at its next kernel when `wanted()` has become False.

    An exception in a signal handler would not do: it may end in a callback of the compiler, which
    prints it and goes on.

    Raises:
        KeyboardInterrupt: the compilation was given up.
    """
    with event.install_listener('numba:compile', _Watch(wanted)):
        yield
