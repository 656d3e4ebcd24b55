"""Arrays without reference counts for the inside of compiled functions."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

UNCOUNTED = ('nitems', 'itemsize', 'data', 'shape', 'strides')
"""Parts of an array of numba, besides its owner."""


@intrinsic
def borrowed(typingctx: Any, array: Any) -> Any:
    """Return the same array, as one that nobody owns; for use inside kernels.

    Its views, rows and slices cost nothing, where those of an ordinary array cost two atomic
    operations each. Whoever borrows has to keep the array alive: let what is borrowed never
    outlive the function whose argument the array is, and never return it.
    """
    if not isinstance(array, types.Array):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        given = arrayobj.make_array(kind)(context, builder, arguments[0])
        view = arrayobj.make_array(kind)(context, builder)
        for name in UNCOUNTED:
            setattr(view, name, getattr(given, name))
        for name in ('meminfo', 'parent'):
            setattr(view, name, cgutils.get_null_value(getattr(given, name).type))
        return view._getvalue()

    return array(array), codegen
