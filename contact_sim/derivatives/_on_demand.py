"""Parts of a linearisation that many steps never run: compiled when they first run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from contact_sim.arrays._views import Arrays
from contact_sim.solvers._jit import INT64, call_address, part_on_demand

ADDRESSES = types.void(*6 * [types.intp])
"""Signature of a function that takes the arrays of a step and of its linearisation."""


@intrinsic
def call_with_both(typingctx: Any, address: Any, data: Any, linear: Any) -> Any:
    """Call the function at an address with the addresses in `data` and `linear`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, *both = arguments
        addresses = [builder.extract_value(one, k) for one in both for k in range(3)]
        call_address(builder, address, 6 * (INT64,), addresses)
        return context.get_dummy_value()

    return types.void(types.intp, data, linear), codegen


def run_at_addresses(
    numbers: Any, indices: Any, layout: Any, linear: Any, linear_indices: Any, linear_layout: Any
) -> None:
    """Run `part` on the arrays by their addresses."""
    part(Arrays(numbers, indices, layout), Arrays(linear, linear_indices, linear_layout))


def run_through_address(data: Any, linear: Any) -> None:
    """Run a part through its address."""
    call_with_both(address(), data, linear)


part: Any = None
address: Any = None


def linear_part_on_demand(function: Callable[[Any, Any], None]) -> Any:
    """Return `function(data, linear)` as a kernel that is compiled when it first runs."""
    return part_on_demand(function, ADDRESSES, run_at_addresses, run_through_address)
