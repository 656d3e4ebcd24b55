"""Ready-made ground by name: one patch of a kind around the origin, or what a file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.terrain.generator import GeneratedTerrain, TerrainGenerator
from contact_sim.terrain.height_field import HeightField
from contact_sim.terrain.triangle_mesh import TriangleMesh

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
SIDE, BORDER = 10.0, 5.0
"""Side of a patch, and width of the level ground around it [m]."""
MESHES = '.stl', '.obj', '.ply', '.gltf', '.glb', '.off', '.dae'


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
    if name not in READY_MADE:
        raise UnknownName('ground', name, READY_MADE)
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
