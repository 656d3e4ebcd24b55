"""The ground as layers on a grid seen from above: height, friction and restitution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]
ELEVATION, FRICTION, RESTITUTION = 'elevation', 'friction', 'restitution'


@dataclass(frozen=True, eq=False)
class GroundGrid:
    """Layers of a ground around a point; rows run against x, columns against y, as in grid_map."""

    resolution: float
    """Side of a cell [m]."""
    centre: tuple[float, float]
    """Of the grid, in world [m]."""
    layers: dict[str, Array]
    """By name, at the middle of the cells, shape (rows, columns); NaN where there is no ground."""

    @property
    def length(self) -> tuple[float, float]:
        """Extent along x and y [m]."""
        rows, columns = self.layers[ELEVATION].shape
        return rows * self.resolution, columns * self.resolution


def ground_grid(
    terrain: Terrain,
    friction: float,
    restitution: float,
    length: tuple[float, float] = (10.0, 10.0),
    resolution: float = 0.1,
    centre: tuple[float, float] = (0.0, 0.0),
) -> GroundGrid:
    """Return the layers of a ground.

    Args:
        terrain: the ground.
        friction: Coulomb coefficient outside of regions [-].
        restitution: coefficient of restitution outside of regions [-].
        length: extent along x and y [m], rounded up to whole cells.
        resolution: side of a cell [m].
        centre: of the grid, in world [m].

    Raises:
        InvalidInput: a length or resolution that is not > 0.
    """
    if not (resolution > 0.0 and min(length) > 0.0):
        raise InvalidInput(f'length = {length} m, resolution = {resolution} m: expected > 0')
    counts = [int(np.ceil(side / resolution - 1e-9)) for side in length]
    x, y = (
        middle + resolution * (0.5 * (count - 1) - np.arange(count))
        for middle, count in zip(centre, counts, strict=True)
    )
    layers = {
        ELEVATION: np.array([[terrain.height(a, b) for b in y] for a in x]),
        FRICTION: np.full(counts, float(friction)),
        RESTITUTION: np.full(counts, float(restitution)),
    }
    for region in terrain.regions:
        inside = _within(x, region.x_range)[:, None] & _within(y, region.y_range)
        for name in (FRICTION, RESTITUTION):
            value = getattr(region, name)
            if value is not None:
                layers[name][inside] = value
    return GroundGrid(resolution, centre, layers)


def _within(values: NDArray[Any], ends: tuple[float, float]) -> NDArray[np.bool_]:
    return np.asarray((ends[0] <= values) & (values < ends[1]))
