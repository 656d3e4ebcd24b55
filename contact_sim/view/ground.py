"""The ground in a scene, in its real shape."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.cones import turned_to
from contact_sim.drawing.ground import border_lines, ground_surface, one_plane
from contact_sim.drawing.style import BORDER_WIDTH, COLOURS, Colour
from contact_sim.view.layers import LineLayer, rgb

Array = NDArray[np.float64]
PAPER: Colour = (0.90, 0.90, 0.88, 1.0)
"""Of a plane: lighter than robots, which are grey, too."""
SHADED: Colour = (0.66, 0.66, 0.64, 1.0)
"""Of other ground, which light makes brighter here and darker there."""
PLANE_SIZE, CELL = 40.0, 0.25
"""Side of what is drawn of a plane, and of its cells [m]."""


class GroundShape:
    """The ground and the borders of its regions; it stays as it is.

    Args:
        scene: in which it is drawn.
        above: name of the node above it.
        ground: what is drawn.
    """

    def __init__(self, scene: viser.SceneApi, above: str, ground: Terrain) -> None:
        plane = one_plane(ground)
        if plane is not None:
            normal, offset = plane
            xyzw = turned_to(normal[None])[0]
            scene.add_grid(
                f'{above}/plane', PLANE_SIZE, PLANE_SIZE, plane='xy', cell_size=CELL,
                section_size=4.0 * CELL, cell_color=(214, 214, 210), section_color=(186, 186, 182),
                plane_color=rgb(PAPER), plane_opacity=1.0, fade_distance=PLANE_SIZE,
                shadow_opacity=0.3,
                wxyz=xyzw[[3, 0, 1, 2]], position=offset * normal,
            )  # fmt: skip
        else:
            shape = ground_surface(ground)
            scene.add_mesh_simple(
                f'{above}/surface', shape.vertices, shape.triangles, color=rgb(SHADED),
                flat_shading=True, side='double',
            )  # fmt: skip
        for k, region in enumerate(ground.regions):
            border = LineLayer(scene, f'{above}/region {k}', COLOURS['region'], BORDER_WIDTH)
            border.show(border_lines(ground, region).reshape(-1, 2, 3))
