"""Compiled functions that only other compiled functions call: typed once, never machine code.

numba optimises every function with all that it calls, and writes machine code for it, before it
links it into its callers, which are optimised and written in turn: a kernel at depth ten is
optimised ten times. Here a function that is called by another one stays as it was lowered; the
outermost function, the one that Python calls, is optimised as a whole and is the only one cached.
It computes the same bits, and a first start takes a good half of the time.

Built on numba's custom compilers (`pipeline_class`), with a code library that ends early.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_number = count()


class LinkedLibrary(JITCodeLibrary):
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


class LinkedCompiler(Compiler):
    """numba's compiler with such a library."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        library = LinkedLibrary(targetctx.codegen(), f'linked{next(_number)}')
        super().__init__(typingctx, targetctx, library, *rest)
