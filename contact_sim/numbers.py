"""Numbers that come from outside: real ones, or an error that names them.

NumPy makes floats of much that is no number to a reader: of text, of times, of the real part of
complex numbers and of what a mask covers.
"""

from __future__ import annotations

import math
import operator

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput, shown

Array = NDArray[np.float64]
LARGEST = 1e100
"""Bound of numbers that are multiplied with each other: three of them stay finite."""
MOST = 2**63 - 1
"""Bound of whole numbers: those of NumPy have 64 bits."""
MOST_NUMBERS = 100_000_000
"""Bound of what is taken for a list of numbers: range(10**9) is not meant."""
MOST_STEPS = 10_000_000
"""Steps of one call: hours on a wall clock."""
REAL = 'fiub'
"""Kinds of NumPy types that are real numbers."""


def real_array(name: str, value: object) -> Array:
    """Return `value` as an array of floats; one that is so already as it is.

    Raises:
        InvalidInput: no numbers, a ragged list, complex or masked numbers, text, times.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        if hasattr(value, '__len__') and len(value) > MOST_NUMBERS:
            raise InvalidInput('too many')
        array = np.asarray(value)
    except Exception as error:  # whatever an object that poses as an array raises
        raise InvalidInput(f'{name} = {shown(value)}: expected real numbers') from error
    if isinstance(value, np.ma.MaskedArray) or array.dtype.kind not in REAL:
        raise InvalidInput(f'{name} = {shown(value)}: expected real numbers')
    return array.astype(np.float64)


def real_number(name: str, value: object) -> float:
    """Return `value` as a float.

    Raises:
        InvalidInput: not one real number.
    """
    array = real_array(name, value)
    if array.shape != ():
        raise InvalidInput(f'{name} = {shown(value)}: expected one number')
    return float(array)


def positive(name: str, value: object, unit: str) -> float:
    """Return a finite number > 0.

    Raises:
        InvalidInput: anything else.
    """
    try:
        number = real_number(name, value)
    except InvalidInput:
        number = math.nan
    if not 1.0 / LARGEST <= number <= LARGEST:
        raise InvalidInput(f'{name} = {shown(value)} {unit}: expected a finite number > 0')
    return number


def flag(name: str, value: object) -> bool:
    """Return `value` as a bool.

    Raises:
        InvalidInput: anything but True and False: the text 'false' is true to Python.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f'{name} = {shown(value)}: expected True or False')
    return bool(value)


def within(name: str, value: object, largest: float) -> Array:
    """Return an array of finite numbers in [0, largest], at most `LARGEST`.

    Raises:
        InvalidInput: anything else.
    """
    array, largest = real_array(name, value), min(largest, LARGEST)
    if not ((array >= 0.0) & (array <= largest)).all():  # NaN is not
        raise InvalidInput(f'{name} = {shown(value)}: expected finite values in [0, {largest:g}]')
    return array


def number_within(name: str, value: object, largest: float) -> float:
    """Return one finite number in [0, largest].

    Raises:
        InvalidInput: anything else.
    """
    return float(within(name, real_number(name, value), largest))


def finite(name: str, value: object) -> float:
    """Return one finite number.

    Raises:
        InvalidInput: anything else.
    """
    number = real_number(name, value)
    if not abs(number) <= LARGEST:
        raise InvalidInput(
            f'{name} = {shown(value)}: expected a finite number, at most {LARGEST:g}'
        )
    return number


def finite_array(name: str, value: object) -> Array:
    """Return an array of finite numbers.

    Raises:
        InvalidInput: anything else.
    """
    array = real_array(name, value)
    if not is_finite(array):
        raise InvalidInput(
            f'{name} = {shown(value)}: not finite, expected numbers up to {LARGEST:g}'
        )
    return array


def is_finite(array: Array) -> bool:
    """Return whether all numbers may be reckoned with, see LARGEST."""
    if array.ndim == 1 and array.dot(array) <= LARGEST:  # the usual case, fast; NaN is no less
        return True
    return bool((np.abs(array) <= LARGEST).all())


def shaped(name: str, value: object, *shape: int) -> Array:
    """Return an array of finite numbers of this shape.

    Raises:
        InvalidInput: anything else.
    """
    array = finite_array(name, value)
    if array.shape != shape:
        raise InvalidInput(f'{name}: shape {array.shape}, expected {shape}')
    return array


def coordinates(x: object, y: object) -> tuple[Array, Array]:
    """Return x and y of points, of shapes that NumPy broadcasts.

    Raises:
        InvalidInput: anything else.
    """
    places = finite_array('x', x), finite_array('y', y)
    try:
        np.broadcast_shapes(*(place.shape for place in places))
    except ValueError as error:
        raise InvalidInput(
            f'x, y: shapes {places[0].shape}, {places[1].shape}: {error}'
        ) from error
    return places


def cholesky_factor(name: str, value: Array) -> Array:
    """Return L of a positive definite matrix L Lᵀ, lower triangle.

    Raises:
        InvalidInput: it is not positive definite.
    """
    try:
        return np.asarray(np.linalg.cholesky(value), dtype=float)
    except np.linalg.LinAlgError as error:
        raise InvalidInput(f'{name}: expected a positive definite matrix') from error


def indices(name: str, value: object, count: int) -> NDArray[np.intp]:
    """Return whole numbers in [0, count), shape (any,).

    Raises:
        InvalidInput: anything else.
    """
    array = np.asarray(real_array(name, value))
    whole = array.astype(np.intp) if np.isfinite(array).all() else array
    if array.ndim != 1 or not ((whole == array) & (array >= 0.0) & (array < count)).all():
        raise InvalidInput(f'{name} = {shown(value)}: expected whole numbers in [0, {count})')
    return whole.astype(np.intp)


def whole(name: str, value: object) -> int:
    """Return a whole number.

    Raises:
        InvalidInput: anything else; True is none.
    """
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except Exception:  # whatever an object that poses as a number raises
        number = None
    if number is None:
        raise InvalidInput(f'{name} = {shown(value)}: expected a whole number')
    if abs(number) > MOST:
        raise InvalidInput(f'{name} = {shown(value)}: expected at most {MOST}')
    return number


def count(name: str, value: object, most: int = MOST_STEPS) -> int:
    """Return a whole number from 1 to `most`.

    Raises:
        InvalidInput: anything else.
    """
    number = whole(name, value)
    if not 1 <= number <= most:
        raise InvalidInput(f'{name} = {number}: expected a whole number from 1 to {most}')
    return number


def pair(name: str, value: object, unit: str) -> tuple[float, float]:
    """Return two finite numbers.

    Raises:
        InvalidInput: anything else.
    """
    array = real_array(name, value)
    if array.shape != (2,) or not np.isfinite(array).all():
        raise InvalidInput(f'{name} = {shown(value)} {unit}: expected two finite numbers')
    return float(array[0]), float(array[1])
