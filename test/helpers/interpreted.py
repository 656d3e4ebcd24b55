"""Kernels as the Python they are written in, where compiling them takes longer than the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from contact_sim.solvers._jit import Kernel


@contextmanager
def interpreted() -> Iterator[None]:
    """Inside the block, kernels that Python calls run without numba; entries stay compiled."""

    def call(self: Kernel, *arguments: object) -> object:
        return self.py_func(*arguments)

    # the arithmetic of compiled kernels: x/0 is a value, not an error
    with patch.object(Kernel, '__call__', call), np.errstate(all='ignore'):
        yield
