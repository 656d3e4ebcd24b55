"""One set of numba options for every kernel, so that all kernels obey the same arithmetic.

No fast-math: the same inputs give the same bits on every run, and NaN is never optimised away.

Compiled kernels are kept per state of their source and of all modules of this package that it
imports: numba itself looks only at the file of the outermost function, and would go on using
yesterday's version of a kernel or constant from elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

PACKAGE = Path(__file__).resolve().parent.parent
IMPORT = re.compile(rf'^from {PACKAGE.name}\.([\w.]+) import (\([^)]*\)|.+)', re.MULTILINE)


@cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the text of a module, and the modules of this package that it imports."""
    place = PACKAGE.joinpath(*module.split('.'))
    file = place / '__init__.py' if place.is_dir() else place.with_suffix('.py')
    text = file.read_bytes()
    imported = []
    for room, names in IMPORT.findall(text.decode()):
        imported.append(room)
        modules = [f'{room}.{name}' for name in re.findall(r'\w+', names)]
        imported += [name for name in modules if _file(name).exists()]
    return text, tuple(imported)


def _file(module: str) -> Path:
    return PACKAGE.joinpath(*module.split('.')).with_suffix('.py')


@cache
def cache_folder(module: str) -> str:
    """Return the folder for the kernels of a module of this package, e.g. 'solvers.cone'."""
    reached, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _source(name)[1]
    digest = hashlib.sha256(numba.__version__.encode())
    for name in sorted(reached):
        digest.update(_source(name)[0])
    chosen = os.environ.get('NUMBA_CACHE_DIR')
    home = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'contact_sim'
    return str((Path(chosen) if chosen else home) / f'kernels-{digest.hexdigest()[:12]}')


def kernel(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, cached on disk, without reference to Python objects."""
    return _compiled(function, nogil=False)


def entry(function: Callable[..., Any]) -> Any:
    """Return a kernel that Python calls: it lets other threads run meanwhile."""
    return _compiled(function, nogil=True)


def _compiled(function: Callable[..., Any], nogil: bool) -> Any:
    module = function.__module__.removeprefix(f'{PACKAGE.name}.')
    chosen, numba.config.CACHE_DIR = numba.config.CACHE_DIR, cache_folder(module)
    try:
        return numba.njit(cache=True, error_model='numpy', nogil=nogil)(function)
    finally:
        numba.config.CACHE_DIR = chosen
