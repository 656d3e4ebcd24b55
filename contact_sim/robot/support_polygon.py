"""The convex hull of points in the plane, and how deep inside it another point lies."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from contact_sim.robot.contact_point import Array


def margin(points: Array, place: Array) -> float:
    """Return the least distance of a place (2,) from the edges of the hull of points (n, 2) [m].

    Negative outside; -inf where the hull has no area.
    """
    if len(points) < 3:
        return -np.inf
    try:
        faces = ConvexHull(points).equations
    except (QhullError, ValueError):
        return -np.inf
    return float(-(faces[:, :2] @ place + faces[:, 2]).max())


def centre(points: Array) -> Array:
    """Return the centroid of the area of the hull of `points` [m], (n, 2); (2,).

    Raises:
        QhullError: the hull has no area.
    """
    corners = points[ConvexHull(points).vertices]
    x, y = (corners - corners[0]).T
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    weights = cross / (3.0 * cross.sum())
    return np.asarray(
        corners[0]
        + [(weights * (x + np.roll(x, -1))).sum(), (weights * (y + np.roll(y, -1))).sum()]
    )
