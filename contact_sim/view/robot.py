"""The bodies of a robot in a scene: one node for all that share a surface and a colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.drawing.bodies import Body, compose
from contact_sim.view.layers import linear_rgb, opacity

Array = NDArray[np.float64]


class RobotMeshes:
    """All bodies of a robot.

    Args:
        scene: in which they are drawn.
        name: of the node above them.
        bodies: what is drawn.
    """

    def __init__(self, scene: viser.SceneApi, name: str, bodies: Sequence[Body]) -> None:
        groups: dict[Any, list[Body]] = {}
        for body in bodies:
            groups.setdefault((id(body.surface), body.colour), []).append(body)
        self.bodies = tuple(body for group in groups.values() for body in group)
        """In the order in which they are drawn."""
        self._joints = [body.joint for body in self.bodies]
        self._own = np.array([body.placement for body in self.bodies]).reshape(-1, 7)
        self._nodes: list[tuple[Any, slice]] = []
        last = 0
        for number, group in enumerate(groups.values()):
            first, last = last, last + len(group)
            surface, colour = group[0].surface, group[0].colour
            node = scene.add_batched_meshes_simple(
                f'{name}/{number}', surface.vertices, surface.triangles,
                batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(group), 1)),
                batched_positions=np.zeros((len(group), 3)),
                batched_colors=linear_rgb(colour), opacity=opacity(colour),
                flat_shading=True, side='double', lod='off',
            )  # fmt: skip
            self._nodes.append((node, slice(first, last)))

    def show(self, joints: Array) -> None:
        """Move the bodies with the joints (njoints, 7)."""
        position, wxyz = compose(joints[self._joints], self._own)
        for node, places in self._nodes:
            node.batched_positions = position[places].astype(np.float32)
            node.batched_wxyzs = wxyz[places].astype(np.float32)
