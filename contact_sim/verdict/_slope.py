"""The smallest disturbance that fails, by steps along the slope of the margin.

On the plane on which the linearised margin vanishes, the point nearest to the nominal case lies
along minus the slope: in this direction a smaller disturbance fails [Hasofer and Lind 1974;
Rackwitz and Fiessler 1978]. Runs decide whether it does, and how small it may get. Disturbances
have one sign, so factors that help are left at their nominal values.

The slope is taken over a part of the reach, not in the limit: of robots in closed loop the margin
is rough, and its derivative holds over 1e-5 of the reach or less (docs/verdict.md).

[Hasofer, Lind 1974] Exact and invariant second-moment code format.
[Rackwitz, Fiessler 1978] Structural reliability under combined random load sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from contact_sim._types import Array

Margins = Callable[[Sequence[Array]], Array]
"""Returns the margins at points [-], negative where it fails; NaN where time is up."""

WIDTHS = (0.02, 0.06)
"""Changes of a coordinate over which the slope is taken, one after the other where it misleads."""
SHARES = (1.0, 0.5, 0.25)
"""Of minus the slope in the direction that is tried, beside that of the smallest failure."""
SHORTER = 0.98
"""Size that is tried, over that of the smallest failure."""
SMALLEST = 0.5
"""Size to which a direction is followed, over the one that was tried."""
HALVINGS = 4
ROUNDS = 6
"""Largest number of slopes."""


def slope_at(margins: Margins, point: Array, width: float) -> Array:
    """Return the change of the margin with each coordinate, over `width`, shape (n,)."""
    changes = np.where(point + width <= 1.0, width, -width)
    values = margins([point, *(point + np.diag(changes))])
    return np.asarray((values[1:] - values[0]) / changes)


def smaller_failure(
    margins: Margins, start: Array, slopes: Callable[[Margins, Array, float], Array] = slope_at
) -> Array:
    """Return a point that fails and is no larger than `start`, which fails; shape (n,).

    Args:
        margins: runs points whose coordinates lie in [0, 1].
        start: shape (n,).
        slopes: returns the slope of the margin at a point, (n,), over one of `WIDTHS`.
    """
    best, width = start, 0
    for _ in range(ROUNDS):
        slope = slopes(margins, best, WIDTHS[width])
        if not np.isfinite(slope).all():
            return best  # time is up
        shorter = first_failure(margins, directions(best, slope), SHORTER * size_of(best))
        if shorter is not None:
            best = shortened(margins, shorter)
        elif width + 1 < len(WIDTHS):
            width += 1
        else:
            return best
    return best


def size_of(point: Array) -> float:
    """Return the size of a disturbance."""
    return float(np.linalg.norm(point))


def directions(point: Array, slope: Array) -> list[Array]:
    """Return unit vectors between minus the slope, without negative parts, and the point."""
    down, along = np.maximum(-slope, 0.0), point / size_of(point)
    if not down.any():
        return []
    mixed = [share * down / np.linalg.norm(down) + (1.0 - share) * along for share in SHARES]
    return [vector / np.linalg.norm(vector) for vector in mixed]


def first_failure(margins: Margins, rays: Sequence[Array], size: float) -> Array | None:
    """Return the first point of this size along rays that fails, None if none does."""
    points = [np.minimum(size * ray, 1.0) for ray in rays]
    values = margins(points)
    return next((point for point, value in zip(points, values, strict=True) if value < 0.0), None)


def shortened(margins: Margins, point: Array) -> Array:
    """Return the smallest multiple of a point, which fails, that is found to fail by halving."""
    low, high = SMALLEST, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if margins([middle * point])[0] < 0.0 else (middle, high)
    return high * point
