"""Timing of the feet of a trot, and the path of a foot in the air."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.errors import InvalidInput, shown
from contact_sim.solvers.jit import kernel


@dataclass(frozen=True)
class Gait:
    """A trot: diagonal pairs of feet take turns, half a period apart.

    Raises:
        InvalidInput: a period that is not positive, a duty outside [0.5, 1).
    """

    period: float
    """From lift-off to lift-off of one foot [s]."""
    duty: float = 0.55
    """Share of the period in which a foot stands [-]; above 0.5 all four stand in between."""

    def __post_init__(self) -> None:
        if not 0.0 < self.period < np.inf:
            raise InvalidInput(f'gait period = {shown(self.period)} s: expected a positive number')
        if not 0.5 <= self.duty < 1.0:
            raise InvalidInput(f'gait duty = {shown(self.duty)}: expected a value in [0.5, 1)')

    @property
    def stance_time(self) -> float:
        """Duration of a stance [s]."""
        return self.duty * self.period

    @property
    def swing_time(self) -> float:
        """Duration of a swing [s]."""
        return (1.0 - self.duty) * self.period

    def swing(self, time: float, offset: float) -> float | None:
        """Return the share of its swing that a foot has done at `time` [s], None if it stands.

        Args:
            time: since the gait began; every foot begins with a stance.
            offset: of the foot in shares of the period, 0 or 0.5 for the pairs of a trot.
        """
        cycle = time / self.period - offset
        phase = cycle - floor(cycle)
        if cycle < 0.0 or phase < self.duty:
            return None
        return (phase - self.duty) / (1.0 - self.duty)


def diagonal_pairs(feet: ArrayLike) -> NDArray[np.int64]:
    """Return 0 or 1 per foot, equal for feet that stand diagonally from each other.

    Args:
        feet: positions seen from above, shape (4, 2).

    Raises:
        InvalidInput: not four feet.
    """
    points = np.asarray(feet, dtype=float)
    if points.shape != (4, 2):
        raise InvalidInput(f'feet of a trot: shape {points.shape}, expected (4, 2): four feet')
    x, y = (points - points.mean(axis=0)).T
    around = np.argsort(np.arctan2(y, x))  # of the corners in turn, every other one
    pair = np.empty(4, dtype=np.int64)
    pair[around] = (0, 1, 0, 1)
    return pair


@kernel
def swing_motion(start, end, height, share, duration):
    """Return position, velocity and acceleration of a foot in the air, each of shape (3,).

    Least jerk from `start` to `end` (3,) [m], and a hump of 64 s³ (1 − s)³ on top: at both ends
    velocity and acceleration are zero.

    Args:
        start: where it left the ground.
        end: where it lands.
        height: of the hump [m].
        share: s, in [0, 1].
        duration: of the swing [s].
    """
    s, r = share, 1.0 - share
    hump = 64.0 * height
    # shares of the way and of the hump, in place, velocity and acceleration
    along = (s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 30.0 * (s * r) ** 2, 60.0 * s * r * (r - s))
    over = ((s * r) ** 3, 3.0 * (s * r) ** 2 * (r - s), 6.0 * s * r * ((r - s) ** 2 - s * r))
    position, velocity, acceleration = np.empty(3), np.empty(3), np.empty(3)
    for k in range(3):
        way, up = end[k] - start[k], hump if k == 2 else 0.0
        position[k] = start[k] + along[0] * way + over[0] * up
        velocity[k] = (along[1] * way + over[1] * up) / duration
        acceleration[k] = (along[2] * way + over[2] * up) / duration**2
    return position, velocity, acceleration
