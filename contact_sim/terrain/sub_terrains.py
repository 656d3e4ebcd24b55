"""The kinds of ground by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.parameters import from_mapping
from contact_sim.terrain.sub_terrain import SubTerrain
from contact_sim.terrain.sub_terrains_height_field import (
    DiscreteObstacles,
    PyramidSlope,
    PyramidSlopeInv,
    RandomUniform,
    SteppingStones,
    Wave,
)
from contact_sim.terrain.sub_terrains_mesh import (
    Boxes,
    Gap,
    Pit,
    Plane,
    PyramidStairs,
    PyramidStairsInv,
    Rails,
    RandomGrid,
)

SUB_TERRAINS: dict[str, type[SubTerrain]] = {
    'plane': Plane,
    'pyramid_stairs': PyramidStairs,
    'pyramid_stairs_inv': PyramidStairsInv,
    'pyramid_slope': PyramidSlope,
    'pyramid_slope_inv': PyramidSlopeInv,
    'random_uniform': RandomUniform,
    'random_grid': RandomGrid,
    'stepping_stones': SteppingStones,
    'discrete_obstacles': DiscreteObstacles,
    'wave': Wave,
    'gap': Gap,
    'pit': Pit,
    'rails': Rails,
    'boxes': Boxes,
}
ALIASES = {
    'flat': 'plane',
    'random_rough': 'random_uniform',
    'hf_pyramid_slope': 'pyramid_slope',
    'hf_pyramid_slope_inv': 'pyramid_slope_inv',
}
"""Other names by which users know them."""


def sub_terrain(name: str, values: SubTerrain | Mapping[str, Any] | None = None) -> SubTerrain:
    """Return a kind of ground from plain values, as they stand in a YAML file.

    Args:
        name: what it is called. It is also its kind, unless `values` has a `type`: so one kind can
            stand twice among the sub-terrains.
        values: parameters by name, or the object itself, which is returned.

    Raises:
        UnknownName: no such kind or parameter; the message names the nearest.
        InvalidInput: a parameter that is missing or not allowed.
    """
    if isinstance(values, SubTerrain):
        return values
    if not isinstance(name, str):
        raise InvalidInput(f'sub-terrain {shown(name)}: expected a name')
    if not isinstance(values, Mapping | None):
        raise InvalidInput(f'sub-terrain {name!r} = {shown(values)}: expected parameters by name')
    given = dict(values or {})
    kind = given.pop('type', name)
    known = ALIASES.get(kind, kind)
    if known not in SUB_TERRAINS:
        raise UnknownName('sub-terrain', kind, SUB_TERRAINS)
    return from_mapping(SUB_TERRAINS[known], given)
