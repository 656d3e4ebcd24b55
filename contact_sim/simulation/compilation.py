"""Announcement of the first start, which compiles the numerical kernels."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger('contact_sim')
ANNOUNCED_AFTER = 1.5
"""Time before the announcement [s]; a start from the cache takes less."""


@contextmanager
def announced() -> Iterator[None]:
    """Log one line if the block takes long enough to be a first-time compilation."""
    timer = threading.Timer(
        ANNOUNCED_AFTER,
        logger.warning,
        ('compiling the numerical kernels (first start only, about half a minute)',),
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
