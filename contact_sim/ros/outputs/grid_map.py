"""~/grid_map: the ground as a grid_map_msgs/GridMap, where that package is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.grid import ELEVATION, GroundGrid

try:
    from grid_map_msgs.msg import GridMap
except ImportError:  # the ROS wheels do not have it
    GridMap = None

Array = NDArray[np.float64]
__all__ = ['GridMap', 'array_fields', 'fill_grid_map']


def array_fields(layer: Array) -> tuple[list[tuple[str, int, int]], NDArray[np.float32]]:
    """Return (label, size, stride) of both dimensions, and the numbers, column by column."""
    rows, columns = layer.shape
    dimensions = [('column_index', columns, rows * columns), ('row_index', rows, rows)]
    return dimensions, layer.astype(np.float32).ravel(order='F')


def fill_grid_map(message: Any, grid: GroundGrid, frame: str, array: Any, dimension: Any) -> Any:
    """Fill a GridMap in the frame `frame` and return it.

    `array` and `dimension` are the classes Float32MultiArray and MultiArrayDimension.
    """
    message.header.frame_id = frame
    info, position = message.info, message.info.pose.position
    info.resolution, (info.length_x, info.length_y) = grid.resolution, grid.length
    position.x, position.y = grid.centre
    info.pose.orientation.w = 1.0
    message.layers, message.basic_layers = list(grid.layers), [ELEVATION]
    message.data = []
    for layer in grid.layers.values():
        dimensions, numbers = array_fields(layer)
        values = array()
        values.layout.dim = [
            dimension(label=label, size=size, stride=stride) for label, size, stride in dimensions
        ]
        values.data = numbers.tolist()
        message.data.append(values)
    return message
