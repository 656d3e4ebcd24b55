"""Height fields: where heights lie, the two triangles of a cell, steep steps as walls."""

import numpy as np
import pytest
from ground_checks import areas, cross, heights_under, level, upright
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from contact_sim.errors import InvalidInput
from contact_sim.terrain import HeightField

HEIGHTS = hnp.arrays(
    float,
    st.tuples(st.integers(2, 7), st.integers(2, 7)),
    elements=st.integers(-3, 3).map(lambda k: 0.1 * k),
)


def projected_areas(field):
    """Return the areas of all triangles seen from above, in cells, negative facing down."""
    nx, ny = field.heights.shape
    place = np.stack(np.meshgrid(np.arange(nx), np.arange(ny), indexing='ij'), 2) + field.shifts()
    a, b, c, d = place[:-1, :-1], place[1:, :-1], place[1:, 1:], place[:-1, 1:]
    return 0.5 * np.stack([cross(b - a, c - a), cross(c - a, d - a)])


def test_heights_lie_on_the_grid():
    field = HeightField([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], 0.5, origin=(10.0, -2.0))
    assert field.height_at([10.0, 10.0, 10.5], [-2.0, -1.0, -1.5]).tolist() == [0.0, 2.0, 4.0]
    assert field.size == (0.5, 1.0)
    moved = field.moved(1.0, 1.0)
    assert moved.origin == (11.0, -1.0)
    assert moved.height_at(11.0, 0.0) == 2.0


def test_a_cell_is_two_planes_that_meet_in_its_diagonal():
    field = HeightField([[0.0, 0.3], [0.1, 0.7]], 1.0)
    x, y = np.array([0.75, 0.25, 0.6]), np.array([0.25, 0.75, 0.6])
    low = 0.1 * x + 0.6 * y
    high = 0.3 * y + 0.4 * x
    assert field.height_at(x, y) == pytest.approx([low[0], high[1], 0.7 * 0.6])
    corners = field.as_mesh()
    assert corners.vertices[corners.triangles].tolist() == [
        [[0, 0, 0], [1, 0, 0.1], [1, 1, 0.7]],
        [[0, 0, 0], [1, 1, 0.7], [0, 1, 0.3]],
    ]


@settings(max_examples=30)
@given(HEIGHTS, st.integers(0, 1000))
def test_mesh_and_field_are_the_same_ground(heights, seed):
    field = HeightField(heights, 0.2, origin=(-0.3, 0.1))
    mesh = field.as_mesh()
    assert (mesh.normals[:, 2] > 0.0).all()
    u, v = np.random.default_rng(seed).uniform(size=(2, 6))
    x, y = field.origin[0] + u * field.size[0], field.origin[1] + v * field.size[1]
    for found, expected in zip(heights_under(mesh, x, y), field.height_at(x, y), strict=True):
        assert found == pytest.approx(expected, abs=1e-12)


def test_samples_of_a_function():
    field = HeightField.of_function(lambda x, y: x - 2.0 * y, (2.0, 1.0), 0.25, (1.0, 3.0))
    assert field.heights.shape == (9, 5)
    assert field.height_at(1.6, 3.3) == pytest.approx(1.6 - 6.6)
    level_one = HeightField.of_function(lambda x, y: 0.5, (1.0, 1.0), 0.5)
    assert (level_one.heights == 0.5).all()
    with pytest.raises(InvalidInput, match=r'shape \(3,\), expected \(5, 5\)'):
        HeightField.of_function(lambda x, y: np.zeros(3), (1.0, 1.0), 0.25)
    with pytest.raises(InvalidInput, match=r'multiples of horizontal_scale = 0\.3 m'):
        HeightField.of_function(lambda x, y: x, (1.0, 0.9), 0.3)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'heights': [[1.0, 2.0]]}, r'shape \(1, 2\)'),
        ({'heights': [1.0, 2.0]}, r'shape \(2,\)'),
        ({'heights': [['a', 'b'], ['c', 'd']]}, 'expected real numbers'),
        ({'heights': [[0.0, 1.0], [np.nan, 2.0]]}, r'heights\[1, 0\] = nan m: not finite'),
        ({'heights': [[0.0, 1.0], [np.inf, np.nan]]}, r'2 such'),
        ({'horizontal_scale': 0.0}, 'horizontal_scale = 0.0 m'),
        ({'horizontal_scale': np.nan}, 'horizontal_scale'),
        ({'slope_threshold': 0.0}, 'slope_threshold'),
        ({'slope_threshold': -1.0}, 'slope_threshold'),
        ({'origin': (0.0, np.inf)}, 'origin'),
        ({'origin': (0.0, 1.0, 2.0)}, 'origin'),
    ],
)
def test_bad_numbers_are_refused(changes, message):
    given = {'heights': np.zeros((2, 2)), 'horizontal_scale': 0.1} | changes
    with pytest.raises(InvalidInput, match=message):
        HeightField(**given)


def test_heights_are_copied_and_fixed():
    heights = np.zeros((2, 2))
    field = HeightField(heights, 0.1)
    heights[:] = 1.0
    assert not field.heights.any()
    with pytest.raises(ValueError, match='read-only'):
        field.heights[0, 0] = 1.0


def test_no_threshold_moves_nothing():
    field = HeightField([[0.0, 9.0], [0.0, 9.0]], 0.1)
    shifts = field.shifts()
    assert (shifts.dtype, shifts.shape, shifts.any()) == (np.int8, (2, 2, 2), False)


@pytest.mark.parametrize(('rise', 'wall'), [(0.074, False), (0.075, False), (0.076, True)])
@pytest.mark.parametrize('axis', [0, 1])
@pytest.mark.parametrize('sign', [1, -1])
def test_a_step_above_the_threshold_is_a_wall_under_its_top(rise, wall, axis, sign):
    heights = np.zeros((6, 6))
    heights[3:] = rise
    heights = np.moveaxis(heights[::sign], 0, axis)
    shifts = HeightField(heights, 0.1, slope_threshold=0.75).shifts()
    foot = 2 if sign == 1 else 3
    expected = np.zeros((6, 6, 2), dtype=int)
    expected[foot, :, 0] = sign * wall
    expected = expected if axis == 0 else expected.swapaxes(0, 1)[..., ::-1]
    assert shifts.tolist() == expected.tolist()


def test_a_block_has_walls_and_its_top_stays():
    heights = np.zeros((8, 9))
    heights[3:6, 3:7] = 0.2
    mesh = HeightField(heights, 0.1, slope_threshold=0.75).as_mesh()
    assert (level(mesh) | upright(mesh)).all()
    assert areas(mesh)[upright(mesh)].sum() == pytest.approx(2 * (0.2 + 0.3) * 0.2)
    x, y = np.random.default_rng(0).uniform((0.0, 0.0), (0.7, 0.8), (50, 2)).T
    on_top = (x > 0.3) & (x < 0.5) & (y > 0.3) & (y < 0.6)
    for found, inside in zip(heights_under(mesh, x, y), on_top, strict=True):
        assert found == pytest.approx(0.2 if inside else 0.0)


@settings(max_examples=300)
@given(HEIGHTS, st.sampled_from([0.5, 1.0, 1.5, 2.5]))
def test_moved_vertices_never_fold_the_surface(heights, threshold):
    """No triangle faces down and their areas sum to the rectangle: each place is covered once."""
    field = HeightField(heights, 0.1, slope_threshold=threshold)
    projected = projected_areas(field)
    assert projected.min() >= 0.0
    assert projected.sum() == (heights.shape[0] - 1) * (heights.shape[1] - 1)


@settings(max_examples=100)
@given(HEIGHTS, st.sampled_from([0.5, 1.0, 1.5, 2.5]), st.integers(0, 1000))
def test_walls_make_a_surface_with_thickness_everywhere(heights, threshold, seed):
    """On steps between −0.3 m and 0.3 m inside a level rim: one height at each place."""
    field = HeightField(np.pad(heights, 1), 0.1, slope_threshold=threshold)
    mesh = field.as_mesh()
    assert mesh.normals[:, 2].min() > -1e-12
    joined = mesh.neighbours >= 0
    beside = (mesh.normals[:, None] * mesh.normals[mesh.neighbours]).sum(axis=2)[joined]
    assert beside.min() > -1.0 + 1e-6  # no two faces back to back
    assert areas(mesh) @ mesh.normals[:, 2] == pytest.approx(field.size[0] * field.size[1])
    x, y = np.random.default_rng(seed).uniform(0.0, np.array(field.size), (6, 2)).T
    for found in heights_under(mesh, x, y):
        assert len(found) > 0
        assert np.ptp(found) < 1e-12


def test_a_thin_ridge_stays_a_ridge():
    """Both its feet under its top would be a wall without thickness."""
    heights = np.zeros((7, 7))
    heights[3, 1:-1] = 0.3
    shifts = HeightField(heights, 0.1, slope_threshold=0.75).shifts()
    assert not shifts[[2, 4], 2:-2].any()


def test_a_steep_plane_stays_a_plane():
    """Only its foot moves: a slope is no stair."""
    x = np.clip(np.arange(12.0) - 3.0, 0.0, 5.0)
    field = HeightField(np.tile(0.1 * x[:, None], 6), 0.1, slope_threshold=0.75)
    assert np.argwhere(field.shifts().any(axis=2))[:, 0].tolist() == 6 * [3]


def test_a_large_grid_needs_little_memory():
    field = HeightField(np.zeros((1000, 1000)), 0.1, slope_threshold=0.75)
    assert field.heights.nbytes == 8_000_000
    assert field.shifts().nbytes == 2_000_000
