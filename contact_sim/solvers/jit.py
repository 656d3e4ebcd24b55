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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any

import numba

from contact_sim.solvers.linked import linked

PACKAGE = Path(__file__).resolve().parent.parent
KERNELS: defaultdict[str, list[Kernel]] = defaultdict(list)
"""The kernels of every module that was imported."""
OPTIONS = {'error_model': 'numpy'}
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
    return sum(kernel.ready for kernel in kernels), len(kernels)


@cache
def cache_folder(module: str) -> str:
    """Return the folder for the kernels of a module of this package, e.g. 'solvers.cone'."""
    digest = hashlib.sha256(numba.__version__.encode())
    for name in sorted(_reached([module])):
        digest.update(_source(name)[0])
    chosen = os.environ.get('NUMBA_CACHE_DIR')
    home = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'contact_sim'
    return str((Path(chosen) if chosen else home) / f'kernels-{digest.hexdigest()[:12]}')


class Kernel:
    """A function compiled where it is first needed: for other kernels, and for Python.

    Made at import by the hundred, of which a simulation that finds its entries on disk needs none.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function

    @cached_property
    def linked(self) -> Any:
        """The version that other kernels call."""
        return linked(self.py_func, **OPTIONS)

    @cached_property
    def compiled(self) -> Any:
        """The version that Python calls, cached on disk."""
        return _compiled(self.py_func, nogil=False)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes a kernel for that it meets in another one."""
        return self.linked._numba_type_

    @property
    def ready(self) -> bool:
        """Whether a version of it is compiled or loaded."""
        made = (vars(self).get(name) for name in ('linked', 'compiled'))
        return any(version is not None and version.overloads for version in made)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the version for Python."""
        return self.compiled(*arguments, **named)


class Entry(Kernel):
    """A kernel that only Python calls."""

    @cached_property
    def compiled(self) -> Any:
        """The version that Python calls, cached on disk; it lets other threads run meanwhile."""
        return _compiled(self.py_func, nogil=True)


class Pointer:
    """A compiled function that kernels call by its address: compiled once, not into each of them.

    For what few simulations need and many kernels would carry along. Made where the address is
    first asked for, and cached on disk.
    """

    def __init__(self, signature: Any, function: Callable[..., None]) -> None:
        self.__doc__ = function.__doc__
        self._signature, self._function = signature, function

    @cached_property
    def address(self) -> int:
        """Where its machine code begins; it stays there as long as this object lives."""
        return int(self._callback.address)

    @cached_property
    def _callback(self) -> Any:
        with _cached_in(_module(self._function)):
            return numba.cfunc(self._signature, cache=True, **OPTIONS)(self._function)


def pointer(signature: Any) -> Callable[[Callable[..., None]], Pointer]:
    """Return a decorator that makes a `Pointer` of a function with this signature."""
    return partial(Pointer, signature)


def kernel(function: Callable[..., Any]) -> Any:
    """Return `function` compiled by numba, without reference to Python objects."""
    return _listed(Kernel(function))


def entry(function: Callable[..., Any]) -> Any:
    """Return a kernel that only Python calls: it lets other threads run meanwhile."""
    return _listed(Entry(function)).compiled


def _listed(made: Kernel) -> Kernel:
    KERNELS[_module(made.py_func)].append(made)
    return made


def _module(function: Callable[..., Any]) -> str:
    return function.__module__.removeprefix(f'{PACKAGE.name}.')


def _compiled(function: Callable[..., Any], nogil: bool) -> Any:
    """Return the function compiled for calls from Python."""
    with _cached_in(_module(function)):
        return numba.njit(cache=True, nogil=nogil, no_cfunc_wrapper=True, **OPTIONS)(function)


@contextmanager
def _cached_in(module: str) -> Iterator[None]:
    """Let numba keep what is declared meanwhile in the folder of a module."""
    chosen, numba.config.CACHE_DIR = numba.config.CACHE_DIR, cache_folder(module)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = chosen
