"""A number that a text derives, beside ours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Quantity:
    """A line of the table of the textbook.

    Attributes:
        tag: section of docs/theory/golden.md, for instance T4.
        name: what it is, with its unit.
        expected: value in the text, or of a derivation that is not ours.
        value: ours, of the same shape.
        tolerance: largest |value - expected| over the largest |expected|, or over 1 if that is 0.
    """

    tag: str
    name: str
    expected: ArrayLike
    value: ArrayLike
    tolerance: float

    @property
    def error(self) -> float:
        """Return the relative error, see `tolerance`."""
        expected = np.asarray(self.expected, dtype=float)
        scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
        return float(np.max(np.abs(np.asarray(self.value) - expected), initial=0.0)) / scale

    @property
    def passed(self) -> bool:
        """Return whether the error is within the tolerance; NaN is not."""
        return self.error <= self.tolerance


def in_words(value: ArrayLike) -> str:
    """Return numbers with nine digits, as the texts have them."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        return f'{array.item():.9g}'
    return '(' + ', '.join(map(in_words, array)) + ')'
