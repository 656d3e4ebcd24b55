"""Generated ground: rows by difficulty, columns by kind, or random."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.errors import InvalidInput, known_name, one_line
from contact_sim.parameters import Parameters, from_mapping, parameter, required
from contact_sim.terrain._height_field import MAX_CELLS, HeightField
from contact_sim.terrain._sub_terrains import (
    GroundPatch,
    HeightFieldTerrain,
    Pair,
    SubTerrain,
    between,
    sub_terrain,
)
from contact_sim.terrain._terraces import rectangles_mesh
from contact_sim.terrain._triangle_mesh import TriangleMesh

STANDING_ROOM = 1.0  # radius within which a robot on a grid is placed above the highest ground [m]


@dataclass(frozen=True)
class Region(Parameters):
    """A rectangle, along the axes, in which the ground has its own friction or restitution.

    Raises:
        InvalidInput: a range that is empty or not finite, negative friction, restitution outside
            [0, 1].
    """

    x_range: tuple[float, float] = parameter((-1.0, 1.0), 'm', 'extent along x')
    y_range: tuple[float, float] = parameter((-1.0, 1.0), 'm', 'extent along y')
    friction: float | None = parameter(
        None, '-', 'Coulomb friction coefficient; none: as everywhere', at_least=0.0
    )
    restitution: float | None = parameter(
        None, '-', 'coefficient of restitution; none: as everywhere', at_least=0.0, at_most=1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('x_range', 'y_range'):
            low, high = getattr(self, name)
            if not low < high:
                raise InvalidInput(
                    f'Region.{name} = ({low:g}, {high:g}) m: expected a smaller, then a larger one'
                )

    @checked
    def contains(self, x: float, y: float) -> bool:
        """Return whether a point [m] lies in the region, its low sides included."""
        (x_low, x_high), (y_low, y_high) = self.x_range, self.y_range
        return x_low <= x < x_high and y_low <= y < y_high


@dataclass(frozen=True, eq=False)
class GeneratedTerrain:
    """Ground around the world origin: height fields and a mesh that do not overlap."""

    fields: tuple[HeightField, ...]
    """Parts given by heights, each at its place."""
    mesh: TriangleMesh | None
    """All parts made of steps and walls, and the border."""
    origins: Array
    """Where a robot is put on each sub-terrain: the ground there [m], shape (rows, cols, 3)."""
    regions: tuple[Region, ...]
    """Sub-terrains with a friction or restitution of their own."""
    names: tuple[tuple[str, ...], ...]
    """Name of each sub-terrain, by row and column."""
    difficulty: Array
    """Difficulty of each sub-terrain, from 0 to 1, shape (rows, cols)."""

    __repr__ = one_line


@dataclass(frozen=True, kw_only=True)
class TerrainGenerator(Parameters):
    """Sub-terrains in rows along x and columns along y, centred at the origin, in a level border.

    Raises:
        InvalidInput: a parameter that is missing or not allowed, no sub-terrain.
        UnknownName: a kind of sub-terrain or a parameter that does not exist.
    """

    size: Pair = required('m', 'extent of a sub-terrain along x and y', above=0.0)
    sub_terrains: dict = required('', 'sub-terrains by name, objects or plain values')
    border_width: float = parameter(0.0, 'm', 'level border around all', at_least=0.0)
    border_height: float = parameter(
        1.0, 'm', 'the border reaches down so far; negative: it stands so high'
    )
    num_rows: int = parameter(1, '', 'sub-terrains along x', at_least=1, at_most=100)
    num_cols: int = parameter(1, '', 'sub-terrains along y', at_least=1, at_most=100)
    horizontal_scale: float = parameter(0.1, 'm', 'distance between heights of grids', above=0.0)
    vertical_scale: float = parameter(
        0.005, 'm', 'steps in which heights of grids differ', above=0.0
    )
    slope_threshold: float | None = parameter(
        0.75, '-', 'slope above which a step of a grid becomes a wall; none: never', above=0.0
    )
    difficulty_range: Pair = parameter(
        (0.0, 1.0), '-', 'smallest and largest difficulty', at_least=0.0, at_most=1.0
    )
    curriculum: bool = parameter(
        False, '', 'rows of growing difficulty, columns of kinds by proportion; else at random'
    )
    seed: int = parameter(0, '', 'the same seed gives the same ground to the bit', at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        built = {name: sub_terrain(name, values) for name, values in self.sub_terrains.items()}
        if not sum(kind.proportion for kind in built.values()) > 0.0:
            raise InvalidInput(
                'TerrainGenerator.sub_terrains: expected at least one with a proportion > 0'
            )
        for name, kind in built.items():
            if isinstance(kind, HeightFieldTerrain):
                built[name] = replace(
                    kind,
                    horizontal_scale=self.horizontal_scale,
                    vertical_scale=self.vertical_scale,
                    slope_threshold=self.slope_threshold,
                )
        object.__setattr__(self, 'sub_terrains', built)

    @classmethod
    @checked
    def from_dict(cls, values: Mapping[str, Any]) -> TerrainGenerator:
        """Return the generator with these parameters, `sub_terrains` as in `sub_terrain`."""
        return from_mapping(cls, values)

    @classmethod
    @checked
    def from_file(cls, path: str | Path) -> TerrainGenerator:
        """Return the generator that a YAML file describes.

        Raises:
            InvalidInput: no such file, not YAML, parameters that are missing or not allowed.
            UnknownName: a kind of sub-terrain or a parameter that does not exist.
        """
        values = _reading.yaml_value(path)
        if not isinstance(values, Mapping):
            raise InvalidInput(f'{path}: expected parameters by name')
        return cls.from_dict(values)

    def generate(self) -> GeneratedTerrain:
        """Return the ground.

        Raises:
            InvalidInput: no room for what a sub-terrain needs, too many heights or blocks.
        """
        rows, cols = self.num_rows, self.num_cols
        self._check_number_of_heights()
        choice, *seeds = np.random.SeedSequence(self.seed).spawn(1 + rows * cols)
        names, difficulty = self._plan(np.random.default_rng(choice))
        grounds: list[GroundPatch] = []
        regions: list[Region] = []
        origins = np.empty((rows, cols, 3))
        for k, (i, j) in enumerate(np.ndindex(rows, cols)):
            kind: SubTerrain = self.sub_terrains[names[i][j]]
            rng = np.random.default_rng(seeds[k])
            corner = (self.size[0] * (i - 0.5 * rows), self.size[1] * (j - 0.5 * cols))
            middle = (corner[0] + 0.5 * self.size[0], corner[1] + 0.5 * self.size[1])
            ground = kind.build(self.size, float(difficulty[i, j]), rng).moved(*corner)
            grounds.append(ground)
            origins[i, j] = (*middle, _standing_height(ground, *middle))
            regions += self._region(kind, middle)
        fields, mesh = self._joined(grounds)
        return GeneratedTerrain(fields, mesh, origins, tuple(regions), names, difficulty)

    def _check_number_of_heights(self) -> None:
        number = (
            np.prod(self.size) / self.horizontal_scale**2 * self.num_rows * self.num_cols
            if any(isinstance(kind, HeightFieldTerrain) for kind in self.sub_terrains.values())
            else 0.0
        )
        if number > MAX_CELLS:
            raise InvalidInput(
                f'TerrainGenerator: {number:g} cells of horizontal_scale = '
                f'{self.horizontal_scale:g} m, expected at most {MAX_CELLS}'
            )

    def _plan(self, rng: np.random.Generator) -> tuple[tuple[tuple[str, ...], ...], Array]:
        """Return name and difficulty of each sub-terrain."""
        rows, cols = self.num_rows, self.num_cols
        kinds = list(self.sub_terrains)
        share = np.array([kind.proportion for kind in self.sub_terrains.values()])
        share /= share.sum()
        if self.curriculum:
            # a column that begins where a kind ends belongs to the next, whatever the rounding
            column = np.searchsorted(np.cumsum(share), np.arange(cols) / cols + 1e-3, side='right')
            index = np.tile(np.minimum(column, np.flatnonzero(share)[-1]), (rows, 1))
            grade = (np.arange(rows)[:, None] + rng.uniform(size=(rows, cols))) / rows
        else:
            index = rng.choice(len(kinds), (rows, cols), p=share)
            grade = rng.uniform(size=(rows, cols))
        difficulty = between(self.difficulty_range, 1.0) * grade  # ends met without rounding
        difficulty = difficulty + self.difficulty_range[0] * (1.0 - grade)
        return tuple(tuple(kinds[k] for k in row) for row in index), difficulty

    def _region(self, kind: SubTerrain, middle: Pair) -> Iterable[Region]:
        if kind.friction is not None or kind.restitution is not None:
            x_range, y_range = (
                (m - 0.5 * side, m + 0.5 * side) for m, side in zip(middle, self.size, strict=True)
            )
            yield Region(x_range, y_range, kind.friction, kind.restitution)

    def _joined(
        self, grounds: list[GroundPatch]
    ) -> tuple[tuple[HeightField, ...], TriangleMesh | None]:
        """Return one height field if it can hold all; else the fields and a mesh of the rest."""
        fields = tuple(ground for ground in grounds if isinstance(ground, HeightField))
        terraces = [ground for ground in grounds if not isinstance(ground, HeightField)]
        border_top = max(0.0, -self.border_height) if self.border_width > 0.0 else 0.0
        level = border_top == 0.0 and all(ground.is_ground_level for ground in terraces)
        if fields and level:
            return (self._one_field(fields),), None
        rectangles = [ground.rectangles() for ground in terraces]
        if self.border_width > 0.0:
            rectangles.append(self._border(border_top))
        return fields, rectangles_mesh(np.concatenate(rectangles)) if rectangles else None

    def _one_field(self, fields: tuple[HeightField, ...]) -> HeightField:
        """Return a field at height 0 with the border around it, and the fields in it."""
        scale = self.horizontal_scale
        border = round(self.border_width / scale)
        if abs(border * scale - self.border_width) > 1e-6 * scale:
            raise InvalidInput(
                f'TerrainGenerator.border_width = {self.border_width:g} m: expected a multiple of '
                f'horizontal_scale = {scale:g} m'
            )
        counts = (self.num_rows, self.num_cols)
        cells = [
            2 * border + count * round(side / scale)
            for count, side in zip(counts, self.size, strict=True)
        ]
        corner = [
            -0.5 * count * side - border * scale
            for count, side in zip(counts, self.size, strict=True)
        ]
        heights = np.zeros((cells[0] + 1, cells[1] + 1))
        for field in fields:
            i, j = (round((o - c) / scale) for o, c in zip(field.origin, corner, strict=True))
            nx, ny = field.heights.shape
            heights[i : i + nx, j : j + ny] = field.heights
        return HeightField(heights, scale, (corner[0], corner[1]), self.slope_threshold)

    def _border(self, z: float) -> Array:
        """Return the four rectangles of the border, see `rectangles_mesh`."""
        x, y = 0.5 * self.num_rows * self.size[0], 0.5 * self.num_cols * self.size[1]
        far_x, far_y = x + self.border_width, y + self.border_width
        return np.array(
            [
                (-far_x, -x, -far_y, far_y, z),
                (x, far_x, -far_y, far_y, z),
                (-x, x, -far_y, -y, z),
                (-x, x, y, far_y, z),
            ]
        )

    __repr__ = one_line


def _standing_height(ground: GroundPatch, x: float, y: float) -> float:
    """Return the height of the ground under a robot in the middle of a sub-terrain [m]."""
    if not isinstance(ground, HeightField):
        return float(ground.height_at(x, y))
    near = [
        slice(
            max(0, int((p - start - STANDING_ROOM) / ground.horizontal_scale)),
            int((p - start + STANDING_ROOM) / ground.horizontal_scale) + 1,
        )
        for p, start in zip((x, y), ground.origin, strict=True)
    ]
    return float(ground.heights[near[0], near[1]].max())


# Ready-made ground by name, and ground from files.

READY_MADE: dict[str, dict[str, Any]] = {
    'stairs': {'type': 'pyramid_stairs', 'step_height_range': (0.02, 0.2), 'step_width': 0.3,
               'platform_width': 2.0, 'border_width': 1.0},
    'stairs_inv': {'type': 'pyramid_stairs_inv', 'step_height_range': (0.02, 0.2),
                   'step_width': 0.3, 'platform_width': 2.0, 'border_width': 1.0},
    'pyramid': {'type': 'pyramid_slope', 'slope_range': (0.0, 0.5), 'platform_width': 2.0},
    'rough': {'type': 'random_uniform', 'noise_range': (0.0, 0.06), 'noise_step': 0.005},
    'grid': {'type': 'random_grid', 'grid_width': 0.45, 'grid_height_range': (0.01, 0.15),
             'platform_width': 2.0},
    'stepping_stones': {'type': 'stepping_stones', 'stone_height_max': 0.05,
                        'stone_width_range': (0.3, 1.0), 'stone_distance_range': (0.2, 0.4),
                        'holes_depth': -1.0, 'platform_width': 2.0},
    'obstacles': {'type': 'discrete_obstacles', 'obstacle_width_range': (0.3, 1.5),
                  'obstacle_height_range': (0.02, 0.2), 'num_obstacles': 30,
                  'platform_width': 2.0},
    'wave': {'type': 'wave', 'amplitude_range': (0.02, 0.4), 'num_waves': 4},
    'gap': {'type': 'gap', 'gap_width_range': (0.05, 0.6), 'platform_width': 2.0},
    'pit': {'type': 'pit', 'pit_depth_range': (0.02, 0.4), 'platform_width': 2.0},
    'rails': {'type': 'rails', 'rail_thickness_range': (0.05, 0.1),
              'rail_height_range': (0.02, 0.2), 'platform_width': 2.0},
    'boxes': {'type': 'boxes', 'box_height_range': (0.02, 0.4), 'platform_width': 2.0},
}  # fmt: skip
"""Parameters of the kinds by the name of the ground."""
SIDE, BORDER = 10.0, 5.0  # side of a patch, and width of the level ground around it [m]
MESHES = '.stl', '.obj', '.ply', '.gltf', '.glb', '.off', '.dae'
GROUND_FILES = '.yaml', '.yml', '.npy', '.png', *MESHES
"""Endings that `ground_from_file` reads."""


def ready_made(name: str, difficulty: float = 0.5, seed: int = 0) -> GeneratedTerrain:
    """Return a patch of ground around the origin.

    Args:
        name: one of READY_MADE.
        difficulty: from 0 to 1.
        seed: the same seed gives the same ground.

    Raises:
        UnknownName: a name that is not in READY_MADE.
        InvalidInput: a difficulty outside [0, 1], a negative seed.
    """
    name = known_name('ground', name, READY_MADE)
    return TerrainGenerator(
        size=(SIDE, SIDE), border_width=BORDER, difficulty_range=(difficulty, difficulty),
        seed=seed, sub_terrains={name: READY_MADE[name]},
    ).generate()  # fmt: skip


def ground_from_file(
    path: str | Path, horizontal_scale: float = 0.1, vertical_scale: float | None = None
) -> GeneratedTerrain | HeightField | TriangleMesh:
    """Return the ground that a file describes.

    Args:
        path: YAML of a `TerrainGenerator`; heights, .npy or .png, centred at the origin; or a
            mesh, in metres.
        horizontal_scale: distance between heights [m].
        vertical_scale: metres per unit of an image or of integers.

    Raises:
        InvalidInput: no such file, an ending that is not known, contents that do not fit.
    """
    ending = Path(path).suffix.lower()
    if ending in ('.yaml', '.yml'):
        return TerrainGenerator.from_file(path).generate()
    if ending in ('.npy', '.png'):
        field = HeightField.from_file(path, horizontal_scale, vertical_scale)
        corner = [-0.5 * horizontal_scale * (count - 1) for count in field.heights.shape]
        return field.moved(*corner)
    if ending in MESHES:
        return TriangleMesh.from_file(path)
    raise InvalidInput(
        f'{path}: ending {ending!r}, expected .yaml, .npy, .png or a mesh {", ".join(MESHES)}'
    )
