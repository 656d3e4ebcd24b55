"""The search over facets, compiled once and called by its address; see `by_address`."""

from __future__ import annotations

from typing import Any

from numba import carray, types

from contact_sim.arrays.fields import TERRAIN_DATA
from contact_sim.collision.field import field_bend, find_on_field
from contact_sim.collision.kinds import FIELD, Ground
from contact_sim.collision.mesh import find_on_mesh, mesh_bend
from contact_sim.collision.slots import clear_slots
from contact_sim.solvers.jit import kernel, pointer

NUMBERS = types.CPointer(types.float64)
WHOLE, REAL = types.intp, types.float64


@kernel
def ground_at(kind, data, relief, length):
    """Return the ground whose numbers are at two addresses."""
    return Ground(kind, carray(data, (TERRAIN_DATA,)), carray(relief, (length,)), 0, 0, 0)


@pointer(
    types.void(
        WHOLE, NUMBERS, NUMBERS, WHOLE, REAL, REAL, REAL, REAL, NUMBERS, NUMBERS, NUMBERS, WHOLE,
        WHOLE,
    )
)  # fmt: skip
def find_facets(
    kind: Any, data: Any, relief: Any, length: Any, x: Any, y: Any, z: Any, reach: Any,
    distance: Any, frame: Any, feature: Any, first: Any, slots: Any,
) -> None:  # fmt: skip
    """Fill the slots of a point, as `surface.find_contacts`; the arrays by their addresses."""
    ground, count = ground_at(kind, data, relief, length), first + slots
    found = carray(distance, (count,)), carray(frame, (count, 3, 3)), carray(feature, (count,))
    clear_slots(found, first, slots)
    if kind == FIELD:
        find_on_field(ground, x, y, z, reach, found, first, slots)
    else:
        find_on_mesh(ground, x, y, z, reach, found, first, slots)


@pointer(types.void(WHOLE, NUMBERS, NUMBERS, WHOLE, REAL, REAL, REAL, REAL, NUMBERS))
def bend_of_facet(
    kind: Any, data: Any, relief: Any, length: Any, feature: Any, x: Any, y: Any, z: Any, out: Any
) -> None:
    """Fill H of a facet, as `surface.curvature`, shape (6,)."""
    ground, bend = ground_at(kind, data, relief, length), carray(out, (6,))
    if kind == FIELD:
        H = field_bend(ground, feature, x, y, z)
    else:
        H = mesh_bend(ground, feature, x, y, z)
    for k in range(6):
        bend[k] = H[k]
