"""The ground of a simulation, as its kernels find it in the arrays of a step."""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import integers, numbers_at, vector
from contact_sim.collision.kinds import Ground
from contact_sim.collision.regions import fill_coefficients
from contact_sim.solvers.jit import kernel


@kernel
def ground_of(data):
    """Return the ground in the arrays of a step."""
    kind, features, address, length, search, bend, _, _ = integers(data, f.GROUND)
    relief = numbers_at(address, length)
    return Ground(kind, vector(data, f.TERRAIN), relief, search, bend, features)


@kernel
def fill_ground_coefficients(data, position, feature):
    """Fill friction and restitution of the contacts at `position` (nc, 3)."""
    ground = integers(data, f.GROUND)
    defaults = (vector(data, f.DEFAULT_FRICTION), vector(data, f.DEFAULT_RESTITUTION))
    fill_coefficients(
        numbers_at(ground[6], ground[7]), position,
        (feature, integers(data, f.LEAF_DOF).shape[0]), defaults, vector(data, f.FRICTION),
        vector(data, f.RESTITUTION),
    )  # fmt: skip
