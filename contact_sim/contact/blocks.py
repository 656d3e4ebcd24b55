"""Blocks: the parts that a contact problem consists of, each with its set and its rows.

Cone       λ ∈ K_μ = {|λ_t| ≤ μ λ_n}, rows t1, t2, n        a contact
Interval   λ ∈ [lower, upper], one row                      dry friction [−h τ, h τ],
           a limit [0, ∞), a bilateral row (−∞, ∞)          (theory 4.3)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked_fields
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import real_array

Array = NDArray[np.float64]


@checked_fields
@dataclass(frozen=True, eq=False)
class Cone:
    """A contact with a circular friction cone.

    Raises:
        InvalidInput: a Jacobian or bias of another shape, values that are not finite, μ < 0.
    """

    jacobian: Array
    """Rows t1, t2, n: u = J v [m/s], shape (3, nv)."""
    friction: float
    """μ [-]."""
    gap: float = 0.0
    """Signed distance [m], negative when penetrating."""
    bias: ArrayLike = (0.0, 0.0, 0.0)
    """b [m/s], shape (3,)."""

    def __post_init__(self) -> None:
        _store(self, 'jacobian', 3, np.ndim(self.jacobian) == 2)
        _store(self, 'bias', 3, np.ndim(self.bias) == 1)
        if not (np.isfinite(self.friction) and self.friction >= 0.0):
            raise InvalidInput(
                f'Cone.friction = {shown(self.friction)}: expected a finite value >= 0'
            )
        _check_gap('Cone', self.gap)


@checked_fields
@dataclass(frozen=True, eq=False)
class Interval:
    """One row whose impulse lies in an interval; bounds may be infinite.

    Raises:
        InvalidInput: a Jacobian of another shape, lower > upper, bounds that are not numbers, an
            interval without a finite impulse, other values that are not finite.
    """

    jacobian: Array
    """u = J v [m/s, rad/s], shape (1, nv)."""
    lower: float
    """Least impulse [N s, N m s]; −inf for none."""
    upper: float
    """Largest impulse [N s, N m s]; inf for none."""
    gap: float = 0.0
    """Position error of the row [m, rad]; 0 for friction."""
    bias: ArrayLike = (0.0,)
    """b [m/s, rad/s], shape (1,)."""

    def __post_init__(self) -> None:
        _store(self, 'jacobian', 1, np.ndim(self.jacobian) == 2)
        _store(self, 'bias', 1, np.ndim(self.bias) == 1)
        if not self.lower <= self.upper:  # so NaN is refused
            raise InvalidInput(
                f'Interval: lower = {shown(self.lower)}, upper = {shown(self.upper)}: '
                'expected lower <= upper'
            )
        if self.lower == np.inf or self.upper == -np.inf:
            raise InvalidInput(f'Interval: [{self.lower}, {self.upper}] holds no finite impulse')
        _check_gap('Interval', self.gap)


Block = Cone | Interval


def _store(block: Block, name: str, rows: int, right_rank: bool) -> None:
    place = f'{type(block).__name__}.{name}'
    value = np.array(real_array(place, getattr(block, name)))
    if not right_rank or value.shape[0] != rows:
        raise InvalidInput(f'{place}: shape {value.shape}, expected {rows} rows')
    if not np.isfinite(value).all():
        raise InvalidInput(f'{place}: all entries must be finite')
    value.setflags(write=False)
    object.__setattr__(block, name, value)


def _check_gap(kind: str, gap: float) -> None:
    if not np.isfinite(gap):
        raise InvalidInput(f'{kind}.gap = {shown(gap)}: expected a finite number')
