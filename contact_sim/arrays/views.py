"""Views of fields inside kernels, and the arrays that are handed from kernel to kernel.

The views are made from addresses: a slice or reshape of numba calls functions of its runtime to
share ownership and to find strides, which is a quarter of a step. Nothing owns a view: the arrays
have to outlive it, as those that Python hands to an entry do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

from contact_sim.solvers.borrowed import borrowed
from contact_sim.solvers.jit import kernel

NUMBERS, INDICES, LAYOUT = range(3)
"""Places in `Arrays`."""
COLUMNS, ITEM = 4, 8
"""Columns of the layout array; bytes of a number and of an index."""


class Arrays(NamedTuple):
    """The arrays of one robot, without reference counts while a kernel works on them."""

    numbers: NDArray[np.float64]
    indices: NDArray[np.int64]
    layout: NDArray[np.int64]


@kernel
def arrays_of(numbers, indices, layout, world):
    """Return the arrays of one world: row `world` of `numbers` and of `indices`."""
    return Arrays(borrowed(numbers)[world], borrowed(indices)[world], borrowed(layout))


Shape = Callable[[Any, Callable[[int], Any], list[Any]], list[Any]]
"""(builder, column of the layout → its value, further arguments) → sizes of a view."""


def _view(data: Any, which: int, ndim: int, shape: Shape, extra: int = 0) -> tuple[Any, Any]:
    """Return signature and code of a view of a field: (data, field, `extra` integers) → array."""
    kind = types.Array(data.types[which].dtype, ndim, 'C')
    given = (data, types.intp, *(extra * [types.intp]))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays, field, *rest = arguments
        integer = context.get_value_type(types.intp)

        def parts(place: int) -> Any:
            array = arrayobj.make_array(signature.args[0].types[place])
            return array(context, builder, builder.extract_value(arrays, place))

        layout, array = parts(LAYOUT).data, parts(which)
        first = builder.mul(field, integer(COLUMNS))

        def column(k: int) -> Any:
            return builder.load(builder.gep(layout, [builder.add(first, integer(k))]))

        sizes, strides = shape(builder, column, rest), [integer(ITEM)]
        for size in sizes[:0:-1]:
            strides.insert(0, builder.mul(strides[0], size))
        view = arrayobj.make_array(signature.return_type)(context, builder)
        arrayobj.populate_array(
            view, data=builder.gep(array.data, [column(0)]),
            shape=cgutils.pack_array(builder, sizes),
            strides=cgutils.pack_array(builder, strides), itemsize=integer(ITEM), meminfo=None,
            parent=None,
        )  # fmt: skip
        return view._getvalue()

    return kind(*given), codegen


def _length(builder: Any, column: Callable[[int], Any], rest: list[Any]) -> list[Any]:
    return [builder.sub(column(1), column(0))]


def _rows_and_columns(builder: Any, column: Callable[[int], Any], rest: list[Any]) -> list[Any]:
    return [column(2), column(3)]


def _given(builder: Any, column: Callable[[int], Any], rest: list[Any]) -> list[Any]:
    return rest


def _three_by_three(builder: Any, column: Callable[[int], Any], rest: list[Any]) -> list[Any]:
    count = column(2)
    return [count, count.type(3), count.type(3)]


@intrinsic
def vector(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `numbers` as a vector."""
    return _view(data, NUMBERS, 1, _length)


@intrinsic
def matrix(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `numbers` as a matrix."""
    return _view(data, NUMBERS, 2, _rows_and_columns)


@intrinsic
def front(typingctx: Any, data: Any, field: Any, rows: Any, columns: Any) -> Any:
    """Return the front of a flat field of `numbers` as a matrix (rows, columns)."""
    return _view(data, NUMBERS, 2, _given, 2)


@kernel
def square(data, field, n):
    """Return the front of a flat field of `numbers` as a matrix (n, n)."""
    return front(data, field, n, n)


@intrinsic
def frames(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `numbers` as 3x3 matrices, shape (n, 3, 3)."""
    return _view(data, NUMBERS, 3, _three_by_three)


@intrinsic
def integers(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `indices` as a vector."""
    return _view(data, INDICES, 1, _length)


@intrinsic
def numbers_at(typingctx: Any, address: Any, length: Any) -> Any:
    """Return the `length` numbers at an address as a vector."""
    if not isinstance(address, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, size = signature.return_type, arguments[1]
        view = arrayobj.make_array(kind)(context, builder)
        arrayobj.populate_array(
            view, data=builder.inttoptr(arguments[0], view.data.type),
            shape=cgutils.pack_array(builder, [size]),
            strides=cgutils.pack_array(builder, [context.get_constant(types.intp, ITEM)]),
            itemsize=context.get_constant(types.intp, ITEM), meminfo=None, parent=None,
        )  # fmt: skip
        return view._getvalue()

    return types.Array(types.float64, 1, 'C')(types.intp, types.intp), codegen
