"""The ground as layers on a grid, and these in the order of a GridMap; without ROS."""

import numpy as np
import pytest

from contact_sim import InvalidInput, Plane
from contact_sim.collision._terrain import as_terrain
from contact_sim.terrain import HeightField, Region
from contact_sim.terrain._grid import ground_grid
from contact_sim.topics._messages import encoder, schema_text
from contact_sim.topics._table import GRID_MAP
from contact_sim.topics._world_topics import grid_map


def place_of(grid, row, column):
    """Return the middle of a cell as grid_map defines it: index (0, 0) at the largest x and y."""
    length, cell = np.array(grid.length), grid.resolution
    return np.array(grid.centre) + 0.5 * length - cell * (np.array([row, column]) + 0.5)


def test_every_cell_has_height_friction_and_restitution_of_its_middle():
    slope = HeightField.of_function(lambda x, y: 0.1 * x + 0.2 * y, (4.0, 3.0), 0.1, (-1.0, -1.0))
    regions = [
        Region((0.0, 1.0), (0.0, 0.5), friction=0.2),
        Region((0.5, 2.0), (-1.0, 1.0), friction=0.3, restitution=0.4),
    ]
    terrain = as_terrain(slope).with_regions(regions)
    grid = ground_grid(terrain, 0.8, 0.1, (5.0, 3.0), 0.1, (1.0, 0.0))
    assert grid.layers['elevation'].shape == (50, 30)
    assert grid.length == pytest.approx((5.0, 3.0))
    for row, column in np.ndindex(50, 30):
        x, y = place_of(grid, row, column)
        height, friction, restitution = (layer[row, column] for layer in grid.layers.values())
        if -1.0 < x < 3.0 and -1.0 < y < 2.0:
            assert height == pytest.approx(0.1 * x + 0.2 * y, abs=1e-9)
        else:
            assert np.isnan(height)
        expected = 0.8, 0.1
        for region in regions:
            if region.contains(x, y):
                expected = region.friction, region.restitution or expected[1]
        assert (friction, restitution) == expected
    with pytest.raises(InvalidInput, match='expected > 0'):
        ground_grid(terrain, 0.8, 0.1, resolution=0.0)


def test_lengths_are_whole_cells():
    grid = ground_grid(Plane(), 0.8, 0.0, (0.25, 0.3), 0.1)
    assert grid.layers['elevation'].shape == (3, 3)
    assert place_of(grid, 1, 1) == pytest.approx([0.0, 0.0])


def grid_map_types():
    """Return a rosbags typestore with the message of our definition."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(schema_text('grid_map_msgs/GridMap'), GRID_MAP.type))
    return store


def test_a_grid_map_has_its_numbers_column_by_column():
    """As grid_map reads them: element (row, column) at column · stride of rows + row."""
    pytest.importorskip('rosbags', reason='needs rosbags')
    grid = ground_grid(Plane(offset=0.3), 0.8, 0.1, (0.4, 0.2), 0.1, (1.0, 2.0))
    grid.layers['friction'][:] = np.arange(8.0).reshape(4, 2)
    raw = encoder('grid_map_msgs/GridMap')(grid_map(grid, 1_500_000_000, 'odom'))
    message = grid_map_types().deserialize_cdr(raw, GRID_MAP.type)
    assert (message.header.frame_id, message.header.stamp.sec) == ('odom', 1)
    assert (message.info.length_x, message.info.length_y) == pytest.approx((0.4, 0.2))
    assert message.info.resolution == 0.1
    position = message.info.pose.position
    assert (position.x, position.y, position.z) == (1.0, 2.0, 0.0)
    assert message.info.pose.orientation.w == 1.0
    assert message.layers == ['elevation', 'friction', 'restitution']
    assert message.basic_layers == ['elevation']
    assert [len(layer.data) for layer in message.data] == [8, 8, 8]
    assert message.data[0].data == pytest.approx([0.3] * 8)
    friction = message.data[1]
    dimensions = [(dim.label, dim.size, dim.stride) for dim in friction.layout.dim]
    assert dimensions == [('column_index', 2, 8), ('row_index', 4, 4)]
    stride = friction.layout.dim[1].stride
    read = [[friction.data[column * stride + row] for column in range(2)] for row in range(4)]
    assert np.array_equal(read, grid.layers['friction'])
    assert friction.data.dtype == np.float32
    assert (message.outer_start_index, message.inner_start_index) == (0, 0)
