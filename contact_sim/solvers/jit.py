"""One set of numba options for every kernel, so that all kernels obey the same arithmetic.

No fast-math: the same inputs give the same bits on every run, and NaN is never optimised away.

Compiled kernels are kept per state of the sources: numba itself looks only at the file of the
outermost function, and would go on using yesterday's version of a kernel called from there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

PACKAGE = Path(__file__).resolve().parent.parent


def _cache_folder() -> str:
    """Return the folder for kernels compiled from the sources as they are now."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(PACKAGE.rglob('*.py')):
        text = source.read_bytes()
        if b'@kernel' in text:
            digest.update(text)
    chosen = os.environ.get('NUMBA_CACHE_DIR')
    home = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'contact_sim'
    return str((Path(chosen) if chosen else home) / f'kernels-{digest.hexdigest()[:12]}')


CACHE_FOLDER = _cache_folder()


def kernel(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, cached on disk, without reference to Python objects."""
    chosen, numba.config.CACHE_DIR = numba.config.CACHE_DIR, CACHE_FOLDER
    try:
        return numba.njit(cache=True, error_model='numpy')(function)
    finally:
        numba.config.CACHE_DIR = chosen
