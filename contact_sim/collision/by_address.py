"""Calls of compiled functions by their address, from inside of kernels.

Few simulations stand on facets. Compiled into every contact model, the search over them would make
each first start a tenth longer; so it is compiled once, where such a ground is first made, and the
kernels get its address with the ground.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba import types
from numba.core.cgutils import ir
from numba.extending import intrinsic
from numba.np import arrayobj

BENDS = 6
"""Numbers of a curvature."""
REAL, WHOLE = ir.DoubleType(), ir.IntType(64)
NUMBERS = REAL.as_pointer()
GROUND = WHOLE, NUMBERS, NUMBERS, WHOLE
"""Kind, data, relief and length of the relief."""


def _array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return arrayobj.make_array(kind)(context, builder, value)


def _ground(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """Return kind, data, relief, and length of the relief of a `Ground`."""
    data, relief = (
        _array(context, builder, kind.types[k], builder.extract_value(value, k)) for k in (1, 2)
    )
    (length,) = cgutils.unpack_tuple(builder, relief.shape)
    return [builder.extract_value(value, 0), data.data, relief.data, length]


def _call(builder: Any, address: Any, kinds: tuple[Any, ...], arguments: list[Any]) -> None:
    function = ir.FunctionType(ir.VoidType(), kinds).as_pointer()
    builder.call(builder.inttoptr(address, function), arguments)


@intrinsic
def search_by_address(
    typingctx: Any, ground: Any, x: Any, y: Any, z: Any, reach: Any, found: Any, first: Any,
    slots: Any,
) -> Any:  # fmt: skip
    """Call `search.find_facets` at ground.search; arguments as `surface.find_contacts`."""
    whole, real = types.intp, types.float64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ground, x, y, z, reach, found, first, slots = arguments
        kinds = signature.args
        out = [
            _array(context, builder, kinds[5].types[k], builder.extract_value(found, k)).data
            for k in range(3)
        ]
        given = _ground(context, builder, kinds[0], ground)
        _call(
            builder, builder.extract_value(ground, 3),
            (*GROUND, REAL, REAL, REAL, REAL, NUMBERS, NUMBERS, NUMBERS, WHOLE, WHOLE),
            [*given, x, y, z, reach, *out, first, slots],
        )  # fmt: skip
        return context.get_dummy_value()

    return types.void(ground, real, real, real, real, found, whole, whole), codegen


@intrinsic
def bend_by_address(typingctx: Any, ground: Any, feature: Any, x: Any, y: Any, z: Any) -> Any:
    """Return what `search.bend_of_facet` at ground.bend fills; as `surface.curvature`."""
    real = types.float64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ground, feature, x, y, z = arguments
        out = cgutils.alloca_once(builder, REAL, size=WHOLE(BENDS))
        given = _ground(context, builder, signature.args[0], ground)
        _call(
            builder, builder.extract_value(ground, 4),
            (*GROUND, REAL, REAL, REAL, REAL, NUMBERS), [*given, feature, x, y, z, out],
        )  # fmt: skip
        numbers = [builder.load(builder.gep(out, [WHOLE(k)])) for k in range(BENDS)]
        return context.make_tuple(builder, signature.return_type, numbers)

    return types.UniTuple(real, BENDS)(ground, real, real, real, real), codegen


@intrinsic
def call_with_arrays(typingctx: Any, address: Any, data: Any) -> Any:
    """Call the function at an address with the numbers, indices and layout of `data`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, data = arguments
        arrays = [
            _array(context, builder, signature.args[1].types[k], builder.extract_value(data, k))
            for k in range(3)
        ]
        whole = WHOLE.as_pointer()
        _call(builder, address, (NUMBERS, whole, whole), [array.data for array in arrays])
        return context.get_dummy_value()

    return types.void(types.intp, data), codegen
