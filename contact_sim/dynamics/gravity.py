"""Gravity as users give it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import real_array


def gravity_vector(gravity: float | ArrayLike) -> NDArray[np.float64]:
    """Return gravity as a vector in world [m/s²], shape (3,); a number g means (0, 0, −g).

    Raises:
        InvalidInput: not a finite number or three finite numbers.
    """
    value = real_array('gravity', gravity)
    if value.shape == ():
        value = np.array([0.0, 0.0, -float(value)])
    if value.shape != (3,) or not np.isfinite(value).all():
        raise InvalidInput(
            f'gravity = {shown(gravity)} m/s²: expected a finite number or 3 of them'
        )
    return value
