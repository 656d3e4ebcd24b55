"""One set of numba options for every kernel, so that all kernels obey the same arithmetic.

No fast-math: the same inputs give the same bits on every run, and NaN is never optimised away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, cached on disk, without reference to Python objects."""
    return numba.njit(cache=True, error_model='numpy')(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Return a small helper compiled for use inside kernels; LLVM inlines it."""
    return numba.njit(error_model='numpy')(function)
