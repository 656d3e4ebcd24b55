"""Layers of a scene: nodes that are made once and then moved, each with a switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from contact_sim.drawing.arrows import Arrows
from contact_sim.drawing.style import COLOURS, HEAD_LENGTH, HEAD_WIDTH, SHAFT_WIDTH, Colour
from contact_sim.errors import UnknownName

Array = NDArray[np.float64]
RGB = tuple[int, int, int]
NO_LINES = np.zeros((0, 2, 3))


def rgb(colour: Colour) -> RGB:
    """Return a colour as three numbers up to 255."""
    r, g, b = (round(255.0 * part) for part in colour[:3])
    return r, g, b


def linear_rgb(colour: Colour) -> RGB:
    """Return a colour for viser's arrows and batched meshes, which take it as amounts of light."""
    r, g, b, a = colour
    return rgb((_light(r), _light(g), _light(b), a))


def _light(part: float) -> float:
    """Return the amount of light of a part of an sRGB colour (IEC 61966-2-1)."""
    return float(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)


def opacity(colour: Colour) -> float | None:
    """Return the opacity of a colour as viser wants it: None where nothing shows through."""
    return colour[3] if colour[3] < 1.0 else None


class Switches(MutableMapping[str, bool]):
    """Which layers are to be seen, by name; setting one acts at once.

    Args:
        nodes: the node of each layer.
        seen: called with the name of a layer that comes into sight.
    """

    def __init__(self, nodes: Mapping[str, Any], seen: Callable[[str], None]) -> None:
        self._nodes, self._seen = nodes, seen

    def __getitem__(self, name: str) -> bool:
        """Return whether a layer is to be seen."""
        return bool(self._node(name).visible)

    def __setitem__(self, name: str, visible: bool) -> None:
        """Show or hide a layer."""
        node = self._node(name)
        if visible and not node.visible:
            self._seen(name)
        node.visible = bool(visible)

    def __delitem__(self, name: str) -> None:
        """Refuse: layers stay."""
        raise TypeError(f'layer {name!r} cannot be removed, only hidden')

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._nodes)

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self._nodes)

    def _node(self, name: str) -> Any:
        if name not in self._nodes:
            raise UnknownName('layer', name, self._nodes)
        return self._nodes[name]


class ArrowLayer:
    """Arrows of one kind.

    Args:
        scene: in which they are drawn.
        above: name of the node above them.
        kind: name of the colour, and of the node.
        tint: a colour in its place.
    """

    def __init__(
        self, scene: viser.SceneApi, above: str, kind: str, tint: Colour | None = None
    ) -> None:
        self._node = scene.add_arrows(
            f'{above}/{kind}', NO_LINES, linear_rgb(tint or COLOURS[kind]),
            shaft_radius=0.5 * SHAFT_WIDTH, head_radius=0.5 * HEAD_WIDTH, head_length=HEAD_LENGTH,
        )  # fmt: skip

    def show(self, arrows: Arrows) -> None:
        """Draw these."""
        self._node.points = arrows.ends.astype(np.float32)


class LineLayer:
    """Lines of one colour.

    Args:
        scene: in which they are drawn.
        name: of the node.
        colour: of the lines.
        width: [m].
    """

    def __init__(self, scene: viser.SceneApi, name: str, colour: Colour, width: float) -> None:
        self._node = scene.add_line_segments(name, NO_LINES, rgb(colour), thickness=width)

    def show(self, ends: Array) -> None:
        """Draw lines between ends (n, 2, 3) [m]."""
        self._node.points = ends.astype(np.float32)

    def paint(self, colour: Colour) -> None:
        """Draw them in another colour."""
        self._node.colors = np.array(rgb(colour), dtype=np.uint8)
