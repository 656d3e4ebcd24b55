"""The first start compiles the numerical kernels; people should not wonder what takes so long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger('contact_sim')
PATIENCE = 1.5
"""Seconds of silence before the announcement; a start from the cache takes less."""


@contextmanager
def announced() -> Iterator[None]:
    """Log one line if the block takes long enough to be a first-time compilation."""
    timer = threading.Timer(
        PATIENCE,
        logger.warning,
        ('compiling the numerical kernels (first start only, about half a minute)',),
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
