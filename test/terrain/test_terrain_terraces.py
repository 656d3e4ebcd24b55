"""Terraces: exactly the cells and walls that the numbers say, as one surface."""

import numpy as np
import pytest
from ground_checks import (
    areas,
    assert_walkable,
    border_ends,
    heights_under,
    level,
    upright,
    vertices_inside_edges,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim.errors import InvalidInput
from contact_sim.terrain import Terraces, blocks_on
from contact_sim.terrain._terraces import rectangles_mesh

WIDTHS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def terraces(draw):
    x, y = (np.concatenate([[0.0], np.cumsum(draw(WIDTHS))]) for _ in range(2))
    count = (len(x) - 1) * (len(y) - 1)
    z = draw(st.lists(st.integers(-2, 2), min_size=count, max_size=count))
    return Terraces(0.1 * x, 0.1 * y - 0.3, 0.1 * np.reshape(z, (len(x) - 1, len(y) - 1)))


def wall_area(ground):
    """Return Σ |step| · length over all lines between cells, the land at height 0 around."""
    z = np.pad(ground.heights, 1)
    x, y = np.diff(ground.x_cuts), np.diff(ground.y_cuts)
    across_x = np.abs(np.diff(z, axis=0))[:, 1:-1] @ y
    across_y = np.abs(np.diff(z, axis=1))[1:-1].T @ x
    return across_x.sum() + across_y.sum()


@settings(max_examples=60, deadline=None)
@given(terraces(), st.integers(0, 1000))
def test_the_surface_is_that_of_the_numbers(ground, seed):
    mesh = ground.as_mesh()
    assert_walkable(mesh)
    assert vertices_inside_edges(mesh) == 0
    assert areas(mesh)[level(mesh)].sum() == pytest.approx(
        np.ptp(ground.x_cuts) * np.ptp(ground.y_cuts)
    )
    assert areas(mesh)[upright(mesh)].sum() == pytest.approx(wall_area(ground), abs=1e-12)
    random = np.random.default_rng(seed)
    x = random.uniform(ground.x_cuts[0], ground.x_cuts[-1], 8)
    y = random.uniform(ground.y_cuts[0], ground.y_cuts[-1], 8)
    for found, expected in zip(heights_under(mesh, x, y), ground.height_at(x, y), strict=True):
        assert found == pytest.approx(expected, abs=1e-12)  # one triangle, or two at their edge


def test_one_step_in_numbers():
    mesh = Terraces([0.0, 1.0, 3.0], [0.0, 2.0], [[0.0], [0.5]]).as_mesh()
    wall = upright(mesh) & (np.abs(mesh.normals[:, 0] + 1.0) < 1e-12)
    corners = mesh.vertices[mesh.triangles[wall]].reshape(-1, 3)
    assert np.unique(corners, axis=0).tolist() == [[1, 0, 0], [1, 0, 0.5], [1, 2, 0], [1, 2, 0.5]]
    assert len(mesh.triangles) == 2 * 2 + 4 * 2  # two tops, the step, and three walls at the rim


def test_columns_that_touch_in_an_edge_have_an_edge_each():
    mesh = Terraces([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]]).as_mesh()
    assert_walkable(mesh)
    assert (mesh.vertices == [1.0, 1.0, 1.0]).all(axis=1).sum() == 2
    assert (mesh.vertices == [1.0, 1.0, 0.0]).all(axis=1).sum() == 1


def test_rectangles_that_do_not_line_up_have_no_vertex_inside_an_edge():
    mesh = rectangles_mesh(
        np.array(
            [
                (0.0, 1.0, 0.0, 3.0, 0.0),
                (1.0, 2.0, 0.0, 1.0, 0.0),
                (1.0, 2.0, 1.0, 2.5, 0.2),
                (1.0, 2.0, 2.5, 3.0, -0.1),
            ]
        )
    )
    assert_walkable(mesh)
    assert vertices_inside_edges(mesh) == 0
    assert areas(mesh)[level(mesh)].sum() == pytest.approx(6.0)
    assert border_ends(mesh)[..., :2].min() == 0.0


def test_rectangles_must_not_overlap():
    with pytest.raises(InvalidInput, match='overlap'):
        rectangles_mesh(np.array([(0.0, 1.0, 0.0, 1.0, 0.0), (0.0, 2.0, 0.0, 1.0, 0.0)]))


def test_blocks_lie_on_each_other():
    ground = blocks_on((3.0, 2.0), [((1.0, 3.0), (0.0, 1.0), 0.2), ((2.0, 9.0), (0.0, 9.0), 0.3)])
    assert ground.x_cuts.tolist() == [0, 1, 2, 3]
    assert ground.y_cuts.tolist() == [0, 1, 2]
    assert ground.heights.tolist() == [[0, 0], [0.2, 0], [0.3, 0.3]]


def test_heights_at_points_and_outside():
    ground = Terraces([0.0, 1.0, 2.0], [0.0, 1.0], [[0.1], [0.2]])
    assert ground.height_at([-1.0, 0.0, 1.0, 2.0], 0.5).tolist() == [0.0, 0.1, 0.2, 0.0]
    assert ground.moved(10.0, -1.0).height_at(11.5, -0.5) == 0.2


@pytest.mark.parametrize(
    ('x', 'y', 'heights', 'message'),
    [
        ([0.0], [0.0, 1.0], [[]], 'x_cuts.*2 or more, increasing'),
        ([0.0, 0.0], [0.0, 1.0], [[1.0]], 'x_cuts'),
        ([0.0, 1.0], [0.0, np.nan], [[1.0]], 'y_cuts'),
        ([0.0, 1.0], [0.0, 1.0], [[1.0, 2.0]], r'shape \(1, 2\): expected \(1, 1\)'),
        ([0.0, 1.0], [0.0, 1.0], [[np.inf]], 'finite'),
    ],
)
def test_bad_terraces_are_refused(x, y, heights, message):
    with pytest.raises(InvalidInput, match=message):
        Terraces(x, y, heights)


def test_numbers_are_copied_and_fixed():
    heights = np.zeros((1, 1))
    ground = Terraces([0.0, 1.0], [0.0, 1.0], heights)
    heights[0, 0] = 1.0
    assert ground.is_ground_level
    with pytest.raises(ValueError, match='read-only'):
        ground.heights[0, 0] = 1.0
