"""Every kind of generated ground: sizes and heights are those that its parameters say."""

import numpy as np
import pytest
from ground_checks import assert_walkable, heights_under
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.terrain import SUB_TERRAINS, HeightField, Terraces, sub_terrain
from contact_sim.terrain._sub_terrains import ALIASES

SIZE = (8.0, 8.0)
STEPS = {
    'plane': {},
    'pyramid_stairs': {'step_height_range': (0.05, 0.23), 'step_width': 0.3},
    'pyramid_stairs_inv': {'step_height_range': (0.05, 0.23), 'step_width': 0.3},
    'random_grid': {'grid_width': 0.45, 'grid_height_range': (0.05, 0.2)},
    'rails': {'rail_thickness_range': (0.1, 0.2), 'rail_height_range': (0.05, 0.1)},
    'pit': {'pit_depth_range': (0.1, 0.5)},
    'boxes': {'box_height_range': (0.1, 0.5)},
    'gap': {'gap_width_range': (0.1, 0.6)},
}
GRIDS = {
    'random_uniform': {'noise_range': (-0.02, 0.1), 'noise_step': 0.02},
    'pyramid_slope': {'slope_range': (0.1, 0.4)},
    'pyramid_slope_inv': {'slope_range': (0.1, 0.4)},
    'discrete_obstacles': {
        'obstacle_width_range': (0.3, 1.0),
        'obstacle_height_range': (0.05, 0.2),
        'num_obstacles': 30,
    },
    'wave': {'amplitude_range': (0.1, 0.4), 'num_waves': 4},
    'stepping_stones': {
        'stone_height_max': 0.05,
        'stone_width_range': (0.3, 1.0),
        'stone_distance_range': (0.2, 0.4),
    },
}
EXAMPLES = STEPS | GRIDS


def build(name, difficulty=0.5, seed=0, size=SIZE, **changes):
    kind = sub_terrain(name, EXAMPLES[name] | changes)
    return kind.build(size, difficulty, np.random.default_rng(seed))


def profile(ground, size=SIZE):
    """Return the heights along x through the middle, each height once in a row."""
    x = np.linspace(0.0, size[0], 8001)[:-1] + 1e-7
    z = ground.height_at(x, np.full_like(x, 0.5 * size[1]))
    return z[np.append(True, np.abs(np.diff(z)) > 1e-9)]


def width_at(ground, height, size=SIZE):
    """Return the length at a height along x through the middle [m]."""
    x = np.linspace(0.0, size[0], 80001)[:-1] + 0.00005
    z = ground.height_at(x, np.full_like(x, 0.5 * size[1]))
    return np.isclose(z, height, atol=1e-9).mean() * size[0]


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(SUB_TERRAINS)


@pytest.mark.parametrize('name', EXAMPLES)
def test_the_same_seed_gives_the_same_bits(name):
    one, same, other = (build(name, seed=seed).heights for seed in (7, 7, 8))
    assert one.tobytes() == same.tobytes()
    random = name in ('random_grid', 'random_uniform', 'discrete_obstacles', 'stepping_stones')
    assert (one.tobytes() != other.tobytes()) == random


@pytest.mark.parametrize('name', STEPS)
@pytest.mark.parametrize('difficulty', [0.0, 0.37, 1.0])
def test_steps_are_exact_terraces_over_the_whole_size(name, difficulty):
    ground = build(name, difficulty)
    assert isinstance(ground, Terraces)
    assert (ground.x_cuts[0], ground.x_cuts[-1]) == (0.0, 8.0)
    mesh = ground.as_mesh()
    assert_walkable(mesh)
    x, y = np.random.default_rng(1).uniform(0.0, 8.0, (2, 40))
    for found, expected in zip(heights_under(mesh, x, y), ground.height_at(x, y), strict=True):
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize('name', GRIDS)
@pytest.mark.parametrize('difficulty', [0.0, 1.0])
def test_grids_have_the_scales_and_a_level_rim(name, difficulty):
    ground = build(
        name, difficulty, border_width=0.5, horizontal_scale=0.25, vertical_scale=0.01,
        slope_threshold=0.6,
    )  # fmt: skip
    assert isinstance(ground, HeightField)
    assert (ground.heights.shape, ground.horizontal_scale) == ((33, 33), 0.25)
    assert ground.slope_threshold == 0.6
    assert ground.heights / 0.01 == pytest.approx(np.rint(ground.heights / 0.01))
    inside = np.zeros((33, 33), dtype=bool)
    inside[3:-3, 3:-3] = True  # two level cells, then their last height
    assert not ground.heights[~inside].any()
    assert ground.heights[inside].any()


@pytest.mark.parametrize(('difficulty', 'step'), [(0.0, 0.05), (0.5, 0.14), (1.0, 0.23)])
@pytest.mark.parametrize(('name', 'sign'), [('pyramid_stairs', 1), ('pyramid_stairs_inv', -1)])
def test_stairs(name, sign, difficulty, step):
    """8 m − 2 · 1 m − 3 m leave 1.5 m on each side: five steps of 0.3 m before the platform."""
    ground = build(name, difficulty, platform_width=3.0, border_width=1.0)
    up = [sign * step * k for k in range(7)]
    assert profile(ground) == pytest.approx(up + up[-2::-1])
    assert width_at(ground, up[-1]) == pytest.approx(3.0, abs=1e-3)
    assert width_at(ground, up[3]) == pytest.approx(2 * 0.3, abs=1e-3)
    assert width_at(ground, 0.0) == pytest.approx(2.0, abs=1e-3)


def test_a_platform_is_never_narrower_than_asked():
    ground = build('pyramid_stairs', 1.0, platform_width=1.1)
    assert width_at(ground, ground.heights.max()) == pytest.approx(8.0 - 2 * 11 * 0.3, abs=1e-3)


def test_stairs_with_holes_are_a_cross():
    ground = build('pyramid_stairs', 1.0, platform_width=1.0, border_width=1.0, holes=True)
    whole = build('pyramid_stairs', 1.0, platform_width=1.0, border_width=1.0)
    x, y = np.random.default_rng(0).uniform(0.0, 8.0, (2, 500))
    in_line = np.minimum(np.abs(x - 4.0), np.abs(y - 4.0)) < 0.5
    on_stairs = in_line & (np.maximum(np.abs(x - 4.0), np.abs(y - 4.0)) < 3.0)
    platform = np.maximum(np.abs(x - 4.0), np.abs(y - 4.0)) < 0.6
    expected = np.where(on_stairs | platform, whole.height_at(x, y), -10.0)
    assert ground.height_at(x, y) == pytest.approx(expected)


@pytest.mark.parametrize(('difficulty', 'height'), [(0.0, 0.05), (1.0, 0.2)])
def test_random_grid(difficulty, height):
    """17 cells of 0.45 m in 8 m leave 0.175 m of rim on each side."""
    ground = build('random_grid', difficulty, platform_width=2.0)
    assert np.abs(ground.heights).max() == height == ground.height_at(4.0, 4.0)
    assert width_at(ground, height) == pytest.approx(2.0, abs=1e-3)
    edge = [0.175 / 2, 8.0 - 0.175 / 2]
    assert ground.height_at(edge, [4.0, 4.0]).tolist() == [0.0, 0.0]
    cells = 0.175 + 0.45 * (np.arange(17) + 0.5)
    z = ground.height_at(cells[:, None], cells)
    outer = np.maximum(np.abs(cells[:, None] - 4.0), np.abs(cells - 4.0)) > 1.3
    assert len(np.unique(z[outer])) == outer.sum()
    assert z[outer].min() < -0.9 * height
    assert (ground.height_at(cells[:, None] + 0.2, cells - 0.2) == z)[outer].all()


def test_random_grid_with_holes_is_a_cross():
    ground = build('random_grid', platform_width=2.0, holes=True)
    assert ground.height_at([0.5, 0.05, 4.0], [0.5, 4.0, 1.0])[:2].tolist() == [-10.0, -10.0]
    assert ground.height_at(4.0, 1.0) > -1.0


@pytest.mark.parametrize(('difficulty', 'height'), [(0.0, 0.05), (1.0, 0.1)])
def test_rails(difficulty, height):
    """Platform 1 m, rail 0.1 m; the second ring at 1 + 0.6 · 7 = 5.2 m, rail 0.2 m."""
    ground = build('rails', difficulty)
    assert profile(ground) == pytest.approx([0, height, 0, height, 0, height, 0, height, 0])
    x = [4.0, 4.55, 4.7, 4.0 + 2.7, 4.0 + 2.9]
    assert ground.height_at(x, np.full(5, 4.0)).tolist() == [0.0, height, 0.0, height, 0.0]
    assert width_at(ground, height) == pytest.approx(2 * (0.1 + 0.2), abs=1e-3)


@pytest.mark.parametrize(
    ('name', 'double', 'sign'), [('pit', 'double_pit', -1), ('boxes', 'double_box', 1)]
)
@pytest.mark.parametrize(('difficulty', 'step'), [(0.0, 0.1), (1.0, 0.5)])
def test_pit_and_boxes(name, double, sign, difficulty, step):
    one = build(name, difficulty, platform_width=2.0)
    assert profile(one).tolist() == [0.0, sign * step, 0.0]
    assert width_at(one, sign * step) == pytest.approx(2.0, abs=1e-3)
    two = build(name, difficulty, platform_width=2.0, **{double: True})
    assert profile(two) == pytest.approx([0, sign * step, 2 * sign * step, sign * step, 0])
    assert width_at(two, 2 * sign * step) == pytest.approx(2.0, abs=1e-3)
    assert width_at(two, sign * step) == pytest.approx(0.6 * 6.0, abs=1e-3)


@pytest.mark.parametrize(('difficulty', 'width'), [(0.0, 0.1), (1.0, 0.6)])
def test_gap(difficulty, width):
    ground = build('gap', difficulty, platform_width=2.0)
    assert profile(ground).tolist() == [0.0, -10.0, 0.0, -10.0, 0.0]
    assert width_at(ground, -10.0) == pytest.approx(2 * width, abs=1e-3)
    assert ground.height_at([3.01, 4.99], [3.01, 4.99]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(('difficulty', 'slope'), [(0.0, 0.1), (1.0, 0.4)])
@pytest.mark.parametrize(('name', 'sign'), [('pyramid_slope', 1), ('pyramid_slope_inv', -1)])
def test_slopes_are_planes_up_to_the_platform(name, sign, difficulty, slope):
    ground = build(name, difficulty, platform_width=2.0, vertical_scale=0.001)
    i = np.arange(81)
    expected = sign * slope * 0.1 * np.minimum(np.minimum(i, 80 - i), 30)
    assert ground.heights[:, 40] == pytest.approx(expected)
    assert ground.heights[40, :] == pytest.approx(expected)
    assert ground.heights[30:51, 30:51] == pytest.approx(sign * slope * 3.0)
    assert ground.heights[i, i] == pytest.approx(expected)  # the edge between two planes


def test_random_uniform_takes_each_level_of_its_range():
    ground = build('random_uniform')
    inner = ground.heights[1:-1, 1:-1]
    assert np.unique(np.rint(inner / 0.005)).tolist() == [-4, 0, 4, 8, 12, 16, 20]
    assert (build('random_uniform', difficulty=1.0).heights == ground.heights).all()


def test_random_uniform_is_straight_between_random_heights():
    fine = build('random_uniform', downsampled_scale=0.5, vertical_scale=1e-6)
    assert fine.heights.min() >= -0.02
    assert fine.heights.max() <= 0.1
    along = fine.heights[1:-1, 20]  # in a line of nodes; bilinear, so straight in between
    kinks = np.abs(np.diff(along, 2)) > 1e-5
    assert set(np.flatnonzero(kinks) + 2) <= set(range(5, 80, 5))
    assert kinks.sum() > 8


@pytest.mark.parametrize(('difficulty', 'height'), [(0.0, 0.05), (1.0, 0.2)])
def test_discrete_obstacles(difficulty, height):
    ground = build('discrete_obstacles', difficulty, platform_width=2.0, vertical_scale=0.001)
    levels = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * height
    assert np.unique(np.round(ground.heights, 9)) == pytest.approx(levels, abs=6e-4)
    assert not ground.heights[30:51, 30:51].any()
    fixed = build('discrete_obstacles', difficulty, obstacle_height_mode='fixed')
    assert np.unique(np.round(fixed.heights, 9)) == pytest.approx([0.0, height])
    one = build(
        'discrete_obstacles', difficulty, num_obstacles=1, obstacle_width_range=(0.5, 0.5),
        obstacle_height_mode='fixed', platform_width=0.0, seed=3,
    )  # fmt: skip
    assert (one.heights != 0.0).sum() == 6 * 6  # a top of 5 x 5 cells


@pytest.mark.parametrize(('difficulty', 'amplitude'), [(0.0, 0.1), (1.0, 0.4)])
def test_wave(difficulty, amplitude):
    ground = build('wave', difficulty, vertical_scale=1e-9)
    p = 2.0 * np.pi * 4 * 0.1 * np.arange(81) / 8.0
    expected = 0.5 * amplitude * (np.sin(p)[:, None] + np.cos(p))
    assert ground.heights[1:-1, 1:-1] == pytest.approx(expected[1:-1, 1:-1], abs=1e-8)


@pytest.mark.parametrize(('difficulty', 'width', 'gap'), [(0.0, 10, 2), (0.5, 6, 3), (1.0, 3, 4)])
@pytest.mark.parametrize('size', [(8.0, 8.0), (6.0, 8.0), (8.0, 6.0)])
def test_stepping_stones(difficulty, width, gap, size):
    """Widths and gaps in cells, as they are once steep steps are walls."""
    ground = build('stepping_stones', difficulty, size=size, platform_width=1.0)
    stone = ground.heights > -1.0
    assert np.abs(ground.heights[stone]).max() <= 0.05 + 1e-12
    assert np.unique(ground.heights[~stone]) == pytest.approx([-10.0])
    middle = [slice((n - 1) // 2 - 5, (n - 1) // 2 + 6) for n in stone.shape]
    assert not ground.heights[middle[0], middle[1]].any()
    rows = stone if size[0] > size[1] else stone.T  # a row of stones runs along the shorter side
    first = rows[1 : width + 1, 1:-1]
    assert (first == first[0]).all()
    assert not rows[width + 1 : width + gap, 1:-1].any()
    edges = np.flatnonzero(np.diff(first[0].astype(int)))
    runs = np.diff(edges)
    holes = runs[0 if first[0, edges[0]] else 1 :: 2]
    tops = runs[1 if first[0, edges[0]] else 0 :: 2]
    assert set(holes) == {gap - 1}
    assert set(tops) == {width + 1}


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(EXAMPLES)),
    st.floats(0.0, 1.0),
    st.integers(0, 2**31),
    st.sampled_from([(8.0, 8.0), (5.0, 9.0), (12.0, 6.4)]),
)
def test_all_kinds_fill_any_size_and_end_at_height_0(name, difficulty, seed, size):
    ground = build(name, difficulty, seed, size)
    if isinstance(ground, HeightField):
        assert ground.size == pytest.approx(size)
        rim = [ground.heights[k] for k in (0, -1)] + [ground.heights[:, k] for k in (0, -1)]
        assert not np.concatenate(rim).any()
    else:
        assert (ground.x_cuts[-1], ground.y_cuts[-1]) == size
        mesh = ground.as_mesh()
        assert_walkable(mesh)


@pytest.mark.parametrize('name', EXAMPLES)
@pytest.mark.parametrize(
    ('size', 'difficulty', 'message'),
    [
        ((0.0, 8.0), 0.5, 'size'),
        ((8.0, np.nan), 0.5, 'size'),
        ((8.0,), 0.5, 'size'),
        (SIZE, -0.1, 'difficulty = -0.1'),
        (SIZE, 1.1, 'difficulty'),
        (SIZE, np.nan, 'difficulty'),
    ],
)
def test_bad_sizes_and_difficulties_are_refused(name, size, difficulty, message):
    with pytest.raises(InvalidInput, match=message):
        build(name, difficulty, size=size)


@pytest.mark.parametrize(
    ('name', 'changes', 'message'),
    [
        ('pyramid_stairs', {'platform_width': 9.0}, 'PyramidStairs: needs 9 m, but size'),
        ('pyramid_stairs', {'border_width': 4.0}, 'PyramidStairs: needs 9 m'),
        ('pyramid_stairs', {'step_width': 0.0}, r'step_width = 0.0 m: expected .* \(0, inf\)'),
        ('pyramid_stairs', {'step_height_range': (-0.1, 0.2)}, 'step_height_range'),
        ('pyramid_stairs', {'step_height_range': (0.1, 0.2, 0.3)}, 'expected 2 values, got 3'),
        ('pyramid_stairs', {'step_height_range': 0.1}, 'expected a list'),
        ('pyramid_stairs', {'step_height_range': (0.1, np.nan)}, 'step_height_range'),
        ('random_grid', {'grid_width': 9.0}, 'RandomGrid: needs 9 m'),
        ('rails', {'platform_width': 7.9}, 'Rails: '),
        ('rails', {'rail_thickness_range': (3.0, 0.1)}, 'inner rail of 3 m reaches the outer'),
        ('rails', {'rail_thickness_range': (0.1, 2.0)}, 'Rails: needs 9.2 m'),
        ('gap', {'platform_width': 7.5}, 'Gap: needs 8.7 m'),
        ('pit', {'platform_width': 8.5}, 'Pit: needs 8.5 m'),
        ('boxes', {'double_box': 'yes'}, 'expected bool, got str'),
        ('random_uniform', {'noise_range': (0.1, 0.0)}, 'not in order'),
        ('random_uniform', {'downsampled_scale': 0.05}, 'at least horizontal_scale = 0.1 m'),
        ('random_uniform', {'horizontal_scale': 0.3}, 'multiples of horizontal_scale = 0.3 m'),
        ('random_uniform', {'border_width': 4.0}, 'RandomUniform: needs 8.2 m'),
        ('pyramid_slope', {'border_width': 3.6}, 'PyramidSlope: needs 1 m'),
        ('discrete_obstacles', {'obstacle_height_mode': 'often'}, 'one of choice, fixed'),
        ('discrete_obstacles', {'obstacle_width_range': (1.0, 0.3)}, 'a smaller, then a larger'),
        ('discrete_obstacles', {'obstacle_width_range': (1.0, 9.0)}, 'at most 80 cells'),
        ('discrete_obstacles', {'num_obstacles': 2.5}, 'expected int, got float'),
        ('wave', {'num_waves': 0}, 'num_waves = 0'),
        ('stepping_stones', {'stone_width_range': (0.0, 1.0)}, 'stone_width_range'),
        ('plane', {'proportion': -1.0}, 'proportion'),
        ('plane', {'restitution': 1.5}, 'restitution'),
    ],
)
def test_what_cannot_be_built_is_refused(name, changes, message):
    with pytest.raises(InvalidInput, match=message):
        build(name, 1.0, **changes)


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"unknown sub-terrain 'pyramid_stair'.*'pyramid_stairs'"
    ):
        sub_terrain('pyramid_stair', {})
    with pytest.raises(UnknownName, match=r"PyramidStairs 'step_with'.*did you mean 'step_wid"):
        sub_terrain('pyramid_stairs', {'step_with': 0.3})
    with pytest.raises(InvalidInput, match=r'PyramidStairs.step_width \[m\] is missing'):
        sub_terrain('pyramid_stairs', {'step_height_range': [0.1, 0.2]})
    with pytest.raises(InvalidInput, match='expected parameters by name'):
        sub_terrain('plane', 3)


def test_a_type_lets_one_kind_stand_twice_under_any_name():
    kind = sub_terrain('low', {'type': 'pit', 'pit_depth_range': [0.1, 0.2]})
    assert type(kind) is SUB_TERRAINS['pit']
    assert kind.pit_depth_range == (0.1, 0.2)
    assert sub_terrain('anything', kind) is kind


def test_other_names_of_users_are_known():
    assert set(ALIASES) == {
        'flat',
        'random_rough',
        'hf_pyramid_slope',
        'hf_pyramid_slope_inv',
    }
    assert set(ALIASES.values()) <= set(SUB_TERRAINS)
    assert type(sub_terrain('flat')) is SUB_TERRAINS['plane']
