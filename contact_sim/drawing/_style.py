"""Colours and scales of what is drawn, the same wherever it is seen."""

from __future__ import annotations

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in [0, 1]."""

METRES_PER_NEWTON = 0.01
METRES_PER_NEWTON_METRE = 0.05
METRES_PER_METRE_PER_SECOND = 1.0
NORMAL_LENGTH = 0.05
CONE_HEIGHT = 0.08
CONE_SIDES = 16
SHAFT_WIDTH, HEAD_WIDTH, HEAD_LENGTH = 0.01, 0.02, 0.02
"""Diameters of an arrow and length of its head [m]."""
POLYGON_WIDTH, PLUMB_WIDTH, BORDER_WIDTH = 0.006, 0.003, 0.02
"""Widths of lines [m]."""
CENTRE_SIZE = 0.03
"""Diameter of a centre of mass [m]."""

COLOURS: dict[str, Colour] = {
    'force': (0.95, 0.35, 0.10, 1.0),
    'pair_force': (0.75, 0.15, 0.10, 1.0),
    'constraint_force': (0.55, 0.25, 0.75, 1.0),
    'friction_cone': (0.20, 0.55, 0.95, 0.25),
    'normal': (0.20, 0.75, 0.30, 1.0),
    'slip': (0.85, 0.10, 0.60, 1.0),
    'push': (0.95, 0.80, 0.10, 1.0),
    'push_torque': (0.60, 0.45, 0.05, 1.0),
    'terrain': (0.75, 0.75, 0.75, 0.6),
    'region': (0.15, 0.35, 0.75, 1.0),
    'support_polygon': (0.15, 0.65, 0.65, 1.0),
    'centre_of_mass': (0.15, 0.65, 0.65, 1.0),
}
FALLING: Colour = (0.90, 0.10, 0.10, 1.0)
"""Of a centre of mass that is not over the support polygon."""
