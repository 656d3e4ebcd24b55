"""Numbers that come from outside: real ones, or an error that names them.

NumPy makes floats of much that is no number to a reader: of text, of times, of the real part of
complex numbers and of what a mask covers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]
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
        array = np.asarray(value)
    except Exception as error:  # whatever an object that poses as an array raises
        raise InvalidInput(f'{name} = {_short(value)}: expected real numbers') from error
    if isinstance(value, np.ma.MaskedArray) or array.dtype.kind not in REAL:
        raise InvalidInput(f'{name} = {_short(value)}: expected real numbers')
    return array.astype(np.float64)


def real_number(name: str, value: object) -> float:
    """Return `value` as a float.

    Raises:
        InvalidInput: not one real number.
    """
    array = real_array(name, value)
    if array.shape != ():
        raise InvalidInput(f'{name} = {_short(value)}: expected one number')
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
    if not (math.isfinite(number) and number > 0.0):
        raise InvalidInput(f'{name} = {_short(value)} {unit}: expected a finite number > 0')
    return number


def flag(name: str, value: object) -> bool:
    """Return `value` as a bool.

    Raises:
        InvalidInput: anything but True and False: the text 'false' is true to Python.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f'{name} = {_short(value)}: expected True or False')
    return bool(value)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # an object whose repr fails is as wrong as any other
        text = f'an object of type {type(value).__name__}'
    return text if len(text) <= 200 else f'{text[:200]}...'


def within(name: str, value: object, largest: float) -> Array:
    """Return an array of finite numbers in [0, largest].

    Raises:
        InvalidInput: anything else.
    """
    array = real_array(name, value)
    if not (np.isfinite(array).all() and (array >= 0.0).all() and (array <= largest).all()):
        raise InvalidInput(f'{name} = {_short(value)}: expected finite values in [0, {largest:g}]')
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
    if not math.isfinite(number):
        raise InvalidInput(f'{name} = {_short(value)}: expected a finite number')
    return number
