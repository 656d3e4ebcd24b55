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
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from contact_sim.solvers.linked import let_link

PACKAGE = Path(__file__).resolve().parent.parent
KERNELS: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
"""The kernels of every module that was imported; each for Python and for other kernels."""
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


def _reached(modules: Iterable[str]) -> set[str]:
    """Return these modules and all modules of this package that they import."""
    reached: set[str] = set()
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _source(name)[1]
    return reached


def progress(modules: Iterable[str]) -> tuple[int, int]:
    """Return how many kernels that modules can reach are compiled or loaded, and how many exist.

    Args:
        modules: full names of modules, as in `__module__`; those of other packages count nothing.
    """
    prefix = f'{PACKAGE.name}.'
    own = [name.removeprefix(prefix) for name in modules if name.startswith(prefix)]
    kernels = [kernel for name in _reached(own) for kernel in KERNELS.get(name, ())]
    done = sum(any(version.overloads for version in kernel) for kernel in kernels)
    return done, len(kernels)


@cache
def cache_folder(module: str) -> str:
    """Return the folder for the kernels of a module of this package, e.g. 'solvers.cone'."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in sorted(_reached([module])):
        digest.update(_source(name)[0])
    chosen = os.environ.get('NUMBA_CACHE_DIR')
    home = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'contact_sim'
    return str((Path(chosen) if chosen else home) / f'kernels-{digest.hexdigest()[:12]}')


def kernel(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, without reference to Python objects.

    Compiled twice if need be: for Python, cached on disk, and for other kernels (linked.py).
    """
    compiled = _compiled(function, nogil=False)
    linked = let_link(compiled, function, error_model='numpy')
    KERNELS[_module(function)].append((compiled, linked))
    return compiled


def entry(function: Callable[..., Any]) -> Any:
    """Return a kernel that only Python calls: it lets other threads run meanwhile."""
    compiled = _compiled(function, nogil=True)
    KERNELS[_module(function)].append((compiled,))
    return compiled


def _module(function: Callable[..., Any]) -> str:
    return function.__module__.removeprefix(f'{PACKAGE.name}.')


def _compiled(function: Callable[..., Any], nogil: bool) -> Any:
    """Return the function compiled for calls from Python."""
    options = {'error_model': 'numpy', 'nogil': nogil, 'no_cfunc_wrapper': True}
    chosen, numba.config.CACHE_DIR = numba.config.CACHE_DIR, cache_folder(_module(function))
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = chosen
