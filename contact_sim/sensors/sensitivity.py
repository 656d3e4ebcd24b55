"""Errors of a triad of axes that a sensor keeps: scale errors, and axes that are turned.

    measured = S R(θ) true + bias + noise,   S = I + diag(scale),   R(θ) = exp [θ]×

θ is a rotation vector in the axes of the frame [rad]: the triad reads what an ideal one would of
values turned by θ, its own axes are those of the frame turned by −θ. S R is the sensitivity. It is
constant; what is drawn of it depends on the seed and the name of the sensor alone.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.parameters import parameter

Array = NDArray[np.float64]
Vector = tuple[float, float, float]
ZERO: Vector = (0.0, 0.0, 0.0)
IDEAL: Array = np.eye(3)
"""Sensitivity without errors; `sensed` knows it by identity."""
IDEAL.setflags(write=False)


def scales(what: str) -> Vector:
    """Return the declaration of the scale errors of a triad."""
    declared: Vector = parameter(
        ZERO, '-', f'scale errors of the axes of {what}: 0.01 reads 1 % more, -1 nothing',
        at_least=-1.0, at_most=1.0, live=True,
    )  # fmt: skip
    return declared


def spread_of_scales(what: str) -> float:
    """Return the declaration of how far the scale errors that are drawn spread."""
    declared: float = parameter(
        0.0, '-', f'standard deviation of constant scale errors of {what}, drawn per axis from '
        'the seed and added', at_least=0.0, at_most=1.0, live=True,
    )  # fmt: skip
    return declared


def turn(what: str) -> Vector:
    """Return the declaration of the rotation vector by which a triad reads values turned."""
    declared: Vector = parameter(
        ZERO, 'rad', f'rotation vector, in the axes of the frame, by which {what} reads values '
        'turned', at_least=-np.pi, at_most=np.pi, live=True,
    )  # fmt: skip
    return declared


def spread_of_turn(what: str) -> float:
    """Return the declaration of how far the misalignment that is drawn spreads."""
    declared: float = parameter(
        0.0, 'rad', f'standard deviation of a constant misalignment of {what}, drawn per axis '
        'from the seed and added to the rotation vector', at_least=0.0, at_most=1.0, live=True,
    )  # fmt: skip
    return declared


def sensitivity(scale: Array, misalignment: Array) -> Array:
    """Return S R(θ), shape (3, 3), of scale errors (3,) and a rotation vector (3,) [rad]."""
    if not (scale.any() or misalignment.any()):
        return IDEAL
    return np.asarray((1.0 + scale)[:, np.newaxis] * pin.exp3(misalignment))


def sensed(sensitivity: Array, true: Array) -> Array:
    """Return true values (3,) as a triad reads them; `true` itself under IDEAL."""
    return true if sensitivity is IDEAL else sensitivity @ true
