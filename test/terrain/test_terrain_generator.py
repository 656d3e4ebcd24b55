"""The generator: rows and columns, proportions, curriculum, one seamless ground."""

import numpy as np
import pytest
import yaml
from ground_checks import areas, assert_walkable, border_ends, heights_under, level
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.terrain import Region, Terraces, TerrainGenerator, sub_terrain

STAIRS = {'step_height_range': [0.05, 0.2], 'step_width': 0.3, 'platform_width': 1.0}
PIT = {'pit_depth_range': [0.1, 0.5], 'platform_width': 1.5}
GRID = {'grid_width': 0.45, 'grid_height_range': [0.05, 0.2], 'platform_width': 1.0}
ROUGH = {'noise_range': [0.02, 0.1], 'noise_step': 0.02, 'border_width': 0.2}
SLOPE = {'slope_range': [0.0, 0.4], 'platform_width': 1.0}


def generator(**changes):
    given = {'size': (4.0, 4.0), 'sub_terrains': {'pyramid_stairs': STAIRS}} | changes
    return TerrainGenerator(**given)


def bits(ground):
    """Return all numbers of a generated ground."""
    parts = [ground.origins, ground.difficulty, *(field.heights for field in ground.fields)]
    if ground.mesh is not None:
        parts += [ground.mesh.vertices, ground.mesh.triangles]
    return ground.names, [part.tobytes() for part in parts]


MIXTURE = {
    'pyramid_stairs': STAIRS,
    'random_grid': GRID,
    'random_uniform': ROUGH,
    'pyramid_slope': SLOPE,
}


@pytest.mark.parametrize('curriculum', [False, True])
def test_the_same_seed_gives_the_same_ground_to_the_bit(curriculum):
    def made(seed):
        return bits(
            generator(
                sub_terrains=MIXTURE, num_rows=3, num_cols=4, curriculum=curriculum, seed=seed
            ).generate()
        )

    assert made(5) == made(5)
    assert made(5) != made(6)


def test_a_curriculum_has_rows_of_difficulty_and_columns_of_kinds_by_proportion():
    kinds = {
        'pyramid_stairs': STAIRS | {'proportion': 0.2},
        'pit': PIT | {'proportion': 0.5},
        'none': {'type': 'plane', 'proportion': 0.0},
        'boxes': {'box_height_range': [0.1, 0.2], 'proportion': 0.3},
    }
    ground = generator(
        sub_terrains=kinds, num_rows=5, num_cols=10, curriculum=True, difficulty_range=(0.2, 0.8)
    ).generate()
    row = 2 * ('pyramid_stairs',) + 5 * ('pit',) + 3 * ('boxes',)
    assert ground.names == 5 * (row,)
    grade = (ground.difficulty - 0.2) / 0.6
    low = np.arange(5)[:, None] / 5
    assert ((low <= grade) & (grade <= low + 0.2)).all()
    assert len(np.unique(ground.difficulty)) == 50


def test_a_column_belongs_to_the_kind_in_whose_share_it_begins():
    kinds = {'plane': {'proportion': 1.0}, 'pit': PIT | {'proportion': 3.0}}
    ground = generator(sub_terrains=kinds, num_cols=10, curriculum=True).generate()
    assert ground.names == (3 * ('plane',) + 7 * ('pit',),)  # 0.2 is within 0.25, 0.3 is not


def test_without_curriculum_kinds_and_difficulty_are_random_by_proportion():
    kinds = {'plane': {'proportion': 3.0}, 'pit': PIT | {'proportion': 1.0}}
    ground = generator(
        sub_terrains=kinds, num_rows=20, num_cols=20, difficulty_range=(0.5, 0.6)
    ).generate()
    planes = np.mean(np.array(ground.names) == 'plane')
    assert planes == pytest.approx(0.75, abs=3.0 * np.sqrt(0.75 * 0.25 / 400))
    assert ground.difficulty.min() >= 0.5
    assert ground.difficulty.max() <= 0.6
    assert ground.difficulty.mean() == pytest.approx(0.55, abs=0.01)


@pytest.mark.parametrize('difficulty', [0.0, 0.3, 1.0])
def test_a_fixed_difficulty_is_met_exactly(difficulty):
    ground = generator(difficulty_range=(difficulty, difficulty), num_rows=3).generate()
    assert (ground.difficulty == difficulty).all()


def test_sub_terrains_stand_where_their_origins_are():
    """Rows along x, columns along y, centred; a robot stands on the platform."""
    ground = generator(
        sub_terrains={'pit': PIT | {'double_pit': True}},
        num_rows=2,
        num_cols=3,
        difficulty_range=(1.0, 1.0),
    ).generate()
    assert ground.origins.shape == (2, 3, 3)
    assert ground.origins[:, 0, 0].tolist() == [-2.0, 2.0]
    assert ground.origins[0, :, 1].tolist() == [-4.0, 0.0, 4.0]
    assert (ground.origins[..., 2] == -1.0).all()
    x, y, z = ground.origins.reshape(-1, 3).T
    for found, expected in zip(heights_under(ground.mesh, x + 0.01, y - 0.02), z, strict=True):
        assert found == pytest.approx(expected)


def test_tiles_of_steps_become_one_mesh_with_their_border():
    ground = generator(
        sub_terrains={'pyramid_stairs': STAIRS, 'pyramid_stairs_inv': STAIRS, 'random_grid': GRID},
        num_rows=3,
        num_cols=3,
        border_width=2.0,
    ).generate()
    assert ground.fields == ()
    assert_walkable(ground.mesh)
    assert areas(ground.mesh)[level(ground.mesh)].sum() == pytest.approx(16.0**2)
    rim = border_ends(ground.mesh)[..., :2]
    assert (np.abs(rim).max(axis=2) == 8.0).all()  # nothing is open inside


@settings(max_examples=10)
@given(st.integers(0, 2**31))
def test_each_tile_of_the_mesh_is_the_ground_that_its_kind_builds(seed):
    kinds = {'pyramid_stairs': STAIRS, 'pyramid_stairs_inv': STAIRS, 'pit': PIT}
    ground = generator(sub_terrains=kinds, num_rows=2, num_cols=2, seed=seed).generate()
    u, v = np.random.default_rng(seed).uniform(-2.0, 2.0, (2, 10))
    for i, j in np.ndindex(2, 2):
        kind = sub_terrain(ground.names[i][j], kinds[ground.names[i][j]])
        tile = kind.build((4.0, 4.0), ground.difficulty[i, j], np.random.default_rng(0))
        middle = ground.origins[i, j]
        under = heights_under(ground.mesh, middle[0] + u, middle[1] + v)
        for found, expected in zip(under, tile.height_at(2.0 + u, 2.0 + v), strict=True):
            assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(('height', 'top'), [(1.0, 0.0), (-0.5, 0.5)])
def test_a_border_reaches_down_or_stands_high(height, top):
    ground = generator(border_width=1.0, border_height=height).generate()
    under = heights_under(ground.mesh, [2.5, -2.5, 0.1], [0.3, -2.7, 2.9])
    assert [found.tolist() for found in under] == 3 * [[top]]
    assert_walkable(ground.mesh)


def test_grids_alone_become_one_height_field_with_its_border():
    ground = generator(
        sub_terrains={'random_uniform': ROUGH, 'plane': {}, 'pyramid_slope': SLOPE},
        num_rows=3,
        num_cols=2,
        border_width=0.5,
        slope_threshold=0.6,
    ).generate()
    assert ground.mesh is None
    (field,) = ground.fields
    assert field.heights.shape == (131, 91)
    assert field.origin == (-6.5, -4.5)
    assert field.slope_threshold == 0.6
    seeds = np.random.SeedSequence(0).spawn(7)
    for k, (i, j) in enumerate(np.ndindex(3, 2)):
        name = ground.names[i][j]
        given = {'random_uniform': ROUGH, 'plane': {}, 'pyramid_slope': SLOPE}[name]
        tile = sub_terrain(name, given).build(
            (4.0, 4.0), ground.difficulty[i, j], np.random.default_rng(seeds[1 + k])
        )
        part = field.heights[5 + 40 * i : 46 + 40 * i, 5 + 40 * j : 46 + 40 * j]
        assert (part == (0.0 if isinstance(tile, Terraces) else tile.heights)).all()
    assert not field.heights[:6].any()
    assert not field.heights[:, -6:].any()


def test_a_mixture_is_fields_beside_a_mesh():
    ground = generator(
        sub_terrains={'pit': PIT, 'random_uniform': ROUGH},
        num_rows=2,
        num_cols=2,
        curriculum=True,
        border_width=1.0,
    ).generate()
    assert [field.origin for field in ground.fields] == [(-4.0, 0.0), (0.0, 0.0)]
    assert_walkable(ground.mesh)
    assert areas(ground.mesh)[level(ground.mesh)].sum() == pytest.approx(100.0 - 2 * 16.0)
    under = heights_under(ground.mesh, [-2.0, 2.0, -2.0, 4.5], [2.1, 2.1, -2.1, 0.1])
    assert [len(found) for found in under] == [0, 0, 1, 1]


def test_scales_of_the_generator_hold_for_all_grids():
    ground = generator(
        sub_terrains={'random_uniform': ROUGH | {'horizontal_scale': 0.1}},
        horizontal_scale=0.2,
        vertical_scale=0.02,
        slope_threshold=None,
    ).generate()
    (field,) = ground.fields
    assert (field.horizontal_scale, field.heights.shape) == (0.2, (21, 21))
    assert field.slope_threshold is None
    assert field.heights / 0.02 == pytest.approx(np.rint(field.heights / 0.02))


def test_a_robot_is_put_above_the_highest_ground_near_the_middle():
    fine = ROUGH | {'noise_step': 1e-5}
    for seed in range(10):
        ground = generator(
            sub_terrains={'random_uniform': fine}, size=(8.0, 6.0), vertical_scale=1e-5, seed=seed
        ).generate()
        near = ground.fields[0].heights[30:51, 20:41]
        assert ground.origins[0, 0, 2] == near.max() > 0.0


def test_friction_and_restitution_hold_per_sub_terrain():
    kinds = {'plane': {'friction': 0.3}, 'pit': PIT, 'ice': {'type': 'plane', 'restitution': 0.1}}
    ground = generator(sub_terrains=kinds, num_cols=3, curriculum=True).generate()
    assert ground.regions == (
        Region((-2.0, 2.0), (-6.0, -2.0), friction=0.3),
        Region((-2.0, 2.0), (2.0, 6.0), restitution=0.1),
    )


def test_regions_contain_their_low_sides():
    region = Region((0.0, 1.0), (2.0, 3.0), friction=0.0)
    inside = [(0.0, 2.0), (0.5, 2.5), (1.0, 2.5), (0.5, 3.0), (-0.1, 2.5)]
    assert [region.contains(x, y) for x, y in inside] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'x_range': (1.0, 1.0)}, r'Region.x_range = \(1, 1\) m: expected a smaller'),
        ({'y_range': (0.0, np.inf)}, 'y_range'),
        ({'y_range': (0.0, 1.0, 2.0)}, 'expected 2 values'),
        ({'friction': -0.1}, 'friction'),
        ({'friction': np.nan}, 'friction'),
        ({'restitution': 1.1}, 'restitution'),
        ({'restitution': 'high'}, 'restitution'),
    ],
)
def test_bad_regions_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        Region(**changes)


@pytest.mark.parametrize(
    ('changes', 'error', 'message'),
    [
        ({'size': (4.0,)}, InvalidInput, 'size .*expected 2 values'),
        ({'size': (4.0, 0.0)}, InvalidInput, 'size'),
        ({'num_rows': 0}, InvalidInput, 'num_rows'),
        ({'num_cols': 2.5}, InvalidInput, 'num_cols'),
        ({'border_width': -1.0}, InvalidInput, 'border_width'),
        ({'difficulty_range': (0.0, 1.1)}, InvalidInput, 'difficulty_range'),
        ({'seed': -1}, InvalidInput, 'seed'),
        ({'seed': None}, InvalidInput, 'seed'),
        ({'slope_threshold': 0.0}, InvalidInput, 'slope_threshold'),
        ({'sub_terrains': {}}, InvalidInput, 'at least one with a proportion > 0'),
        ({'sub_terrains': {'plane': {'proportion': 0.0}}}, InvalidInput, 'proportion > 0'),
        ({'sub_terrains': ['plane']}, InvalidInput, 'sub_terrains'),
        ({'sub_terrains': {'pits': PIT}}, UnknownName, "did you mean 'pit'"),
        ({'sub_terrains': {'plane': [1]}}, InvalidInput, 'expected parameters by name'),
    ],
)
def test_bad_parameters_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        generator(**changes)


def test_what_does_not_fit_a_grid_is_refused():
    with pytest.raises(InvalidInput, match=r'border_width = 0\.55 m: expected a multiple'):
        generator(sub_terrains={'random_uniform': ROUGH}, border_width=0.55).generate()
    with pytest.raises(InvalidInput, match='multiples of horizontal_scale'):
        generator(sub_terrains={'random_uniform': ROUGH}, size=(4.05, 4.0)).generate()


TEXT = """
size: [4.0, 4.0]
num_cols: 2
curriculum: true
seed: 3
sub_terrains:
  pyramid_stairs: {proportion: 0.5, step_height_range: [0.05, 0.2], step_width: 0.3}
  rough: {type: random_uniform, proportion: 0.5, noise_range: [0, 0.1], noise_step: 0.02}
"""


def test_a_yaml_file_and_a_dict_describe_the_same_ground(tmp_path):
    (tmp_path / 'ground.yaml').write_text(TEXT)
    read = TerrainGenerator.from_file(tmp_path / 'ground.yaml')
    assert read == TerrainGenerator.from_dict(yaml.safe_load(TEXT))
    assert (read.num_cols, read.seed) == (2, 3)
    assert read.generate().names == (('pyramid_stairs', 'rough'),)


@pytest.mark.parametrize(
    ('text', 'error', 'message'),
    [
        ('num_rows: 2', InvalidInput, r'TerrainGenerator.size \[m\] is missing'),
        ('size: [4, 4]', InvalidInput, 'sub_terrains is missing'),
        (TEXT + 'nun_rows: 3', UnknownName, "'nun_rows'.*did you mean 'num_rows'"),
        ('- 1', InvalidInput, 'expected parameters by name'),
        ('a: [', InvalidInput, 'while parsing'),
    ],
)
def test_bad_yaml_is_refused(tmp_path, text, error, message):
    (tmp_path / 'ground.yaml').write_text(text)
    with pytest.raises(error, match=message):
        TerrainGenerator.from_file(tmp_path / 'ground.yaml')


def test_a_missing_yaml_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match='No such file'):
        TerrainGenerator.from_file(tmp_path / 'none.yaml')
