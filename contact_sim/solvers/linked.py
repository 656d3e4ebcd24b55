"""Compiled functions that only other compiled functions call: typed once, never machine code.

numba optimises every function with all that it calls, and writes machine code for it, before it
links it into its callers, which are optimised and written in turn: a kernel at depth ten is
optimised ten times. Here a function that is called by another one stays as it was lowered; the
outermost function, the one that Python calls, is optimised as a whole and is the only one cached.
It computes the same bits, and a first start takes a good half of the time.

Built on numba's custom compilers (`pipeline_class`), with a code library that ends early.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numba
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_number = count()
OVERRIDDEN = ('_optimize_final_module', '_finalize_final_module', '_finalize_dynamic_globals')
LINKS = all(hasattr(JITCodeLibrary, name) for name in OVERRIDDEN)
"""Whether this numba has the inner parts this is built on; else functions compile as usual."""


class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of one function as its callers link it."""

    def _optimize_final_module(self) -> None:
        """Leave that to the outermost caller."""

    def _finalize_final_module(self) -> None:
        """Finish without machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the null pointer: nobody calls the function by its address."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> LinkedLibrary:
        """What the lowering of numba tells the environment of the function to."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do without: the environment belongs to machine code."""


class LinkedCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler with such a library."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = LinkedLibrary(targetctx.codegen(), f'linked{next(_number)}')
        super().__init__(typingctx, targetctx, library, *rest)


def linked(function: Callable[..., Any], **options: Any) -> Any:
    """Return `function` compiled for callers that are compiled themselves.

    A literal argument does not get a version of its own: 0 is an integer as any other.
    """
    if not LINKS:
        return numba.njit(**options)(function)
    inner = numba.njit(
        pipeline_class=LinkedCompiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options
    )(function)
    find = inner.get_call_template

    def get_call_template(arguments: Any, by_name: Any) -> Any:
        types_of = {name: types.unliteral(kind) for name, kind in by_name.items()}
        return find(tuple(map(types.unliteral, arguments)), types_of)

    inner.get_call_template = get_call_template
    return inner
