"""Numbers that come from outside: real ones, or an error that names them.

NumPy makes floats of much that is no number to a reader: of text, of times, of the real part of
complex numbers and of what a mask covers.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import math
import operator
import os
import types
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim.errors import InvalidInput, shown

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


# --- Arguments are what their annotations say, or an error names them: one rule for every edge.

Function = TypeVar('Function', bound=Callable[..., Any])
Class = TypeVar('Class', bound=type)
Check = Callable[[str, Any], Any]
OF_ARRAYS = set(typing.get_args(ArrayLike))
LISTS = (collections.abc.Iterable, collections.abc.Sequence, tuple, list)


def checked(function: Function) -> Function:
    """Return a function whose arguments are checked by their annotations before it runs.

    Classes, texts, paths, flags, whole numbers, finite numbers and arrays of them,
    mappings, and lists of such things, which arrive as tuples; None where the annotation has it.
    What other annotations say is not looked at.

    Raises:
        InvalidInput: an argument of another kind; the message names it.
    """
    names = tuple(inspect.signature(function).parameters)

    @functools.cache
    def checks() -> dict[str, Check]:
        # when first called: annotations may name what the module imports later
        return _checks(typing.get_type_hints(function), names, within_reach=True)

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        if len(given) > len(names):
            return function(*given, **named)  # Python says what is wrong
        arguments = dict(zip(names, given, strict=False))
        for name, check in checks().items():
            if name in arguments:
                arguments[name] = check(name, arguments[name])
            elif name in named:
                named[name] = check(name, named[name])
        return function(*arguments.values(), **named)

    return typing.cast(Function, called)


def checked_fields(cls: Class) -> Class:
    """Return a dataclass whose fields are checked by their annotations before all else.

    As `checked`, but numbers may be infinite.
    """
    names = tuple(field.name for field in dataclasses.fields(cls))
    before = getattr(cls, '__post_init__', None)

    @functools.cache
    def checks() -> dict[str, Check]:
        return _checks(typing.get_type_hints(cls), names, within_reach=False)

    def __post_init__(self: Any) -> None:
        for name, check in checks().items():
            value = check(f'{cls.__name__}.{name}', getattr(self, name))
            object.__setattr__(self, name, value)
        if before is not None:
            before(self)

    if before is not None:
        cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
        return cls
    made = cls.__init__  # type: ignore[misc]

    @functools.wraps(made)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        __post_init__(self)

    cls.__init__ = __init__  # type: ignore[misc]
    return cls


def _checks(hints: dict[str, Any], names: tuple[str, ...], within_reach: bool) -> dict[str, Check]:
    found = {name: check_of(hints[name], within_reach) for name in names if name in hints}
    return {name: check for name, check in found.items() if check is not None}


def check_of(hint: Any, within_reach: bool) -> Check | None:
    """Return what checks a value with this annotation, None where nothing does."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint == ArrayLike or origin is np.ndarray:
        of_floats = hint == ArrayLike or not any(kind in str(hint) for kind in ('int', 'bool'))
        return (finite_array if within_reach else real_array) if of_floats else None
    if origin in (typing.Union, types.UnionType):
        return _check_of_union(parts, within_reach)
    plain: dict[Any, Check] = {
        float: finite if within_reach else real_number,
        int: whole, bool: flag, str: _text, Path: _path,
    }  # fmt: skip
    if hint in plain:
        return plain[hint]
    if origin is collections.abc.Mapping:
        return _mapping
    if origin is collections.abc.Callable:
        return _callable
    if origin in LISTS:
        return _check_of_list(origin, parts, within_reach)
    return _check_of_classes((hint,))


def _check_of_union(hints: tuple[Any, ...], within_reach: bool) -> Check | None:
    some = tuple(hint for hint in hints if hint is not type(None))
    if len(some) == 1:
        check = check_of(some[0], within_reach)
    elif set(some) - {float} == OF_ARRAYS - {float}:  # str and int are in it with NumPy 1.26
        check = finite_array if within_reach else real_array
    elif set(some) == {str, Path}:
        check = _path
    else:
        check = _check_of_classes(some)
    if check is None or len(some) == len(hints):
        return check
    return lambda name, value: None if value is None else check(name, value)


def _check_of_classes(kinds: tuple[Any, ...]) -> Check | None:
    """Return a check for classes; protocols, generics and what Python brings are none."""
    if not all(inspect.isclass(kind) and not getattr(kind, '_is_protocol', False)
               and kind is not Any and (kind is str or kind.__module__ != 'builtins')
               for kind in kinds):  # fmt: skip
        return None
    expected = ' or '.join(kind.__name__ for kind in kinds)

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise InvalidInput(f'{name} = {shown(value)}: expected {expected}')
        return value

    return check


def _check_of_list(origin: Any, parts: tuple[Any, ...], within_reach: bool) -> Check | None:
    """Return a check for a list or tuple of one kind of things, which makes a tuple of it."""
    kinds = tuple(part for part in parts if part is not Ellipsis)
    if len(set(kinds)) != 1:
        return listed
    item = check_of(kinds[0], within_reach)
    length = len(kinds) if origin is tuple and Ellipsis not in parts else None

    def check(name: str, value: Any) -> Any:
        values = listed(name, value)
        if length is not None and len(values) != length:
            raise InvalidInput(f'{name} = {shown(value)}: expected {length} values')
        if item is None:
            return values
        return tuple(item(f'{name}[{k}]', one) for k, one in enumerate(values))

    return check


MOST_ITEMS = 10_000_000
"""Most items of a list: whatever yields more is not meant."""


def listed(name: str, value: Any, expected: str = 'a list') -> tuple[Any, ...]:
    """Return a list of any kind as a tuple.

    Raises:
        InvalidInput: text, a mapping, or nothing that can be listed.
    """
    if isinstance(value, str | bytes | collections.abc.Mapping):
        raise InvalidInput(f'{name} = {shown(value)}: expected {expected}')
    try:
        many = len(value) > MOST_ITEMS if hasattr(value, '__len__') else False
        values = () if many else tuple(value)
    except Exception as error:  # whatever an object that poses as a list raises
        raise InvalidInput(f'{name} = {shown(value)}: expected {expected}') from error
    if many:
        raise InvalidInput(f'{name} = {shown(value)}: expected at most {MOST_ITEMS} items')
    return values


def _mapping(name: str, value: Any) -> Any:
    if not isinstance(value, collections.abc.Mapping):
        raise InvalidInput(f'{name} = {shown(value)}: expected values by name')
    for key in value:
        _text(f'a name in {name}', key)
    return value


def _callable(name: str, value: Any) -> Any:
    if not callable(value):
        raise InvalidInput(f'{name} = {shown(value)}: expected a function')
    return value


def _text(name: str, value: Any) -> str:
    try:
        usable = isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # half a character
        usable = False
    if not usable:
        raise InvalidInput(f'{name} = {shown(value)}: expected text')
    return str(value)


def _path(name: str, value: Any) -> Any:
    """Return a path or text; a path that no file can have is refused."""
    if not isinstance(value, str | Path):
        raise InvalidInput(f'{name} = {shown(value)}: expected a path')
    try:
        unusable = b'\0' in os.fsencode(value)
    except UnicodeEncodeError:
        unusable = True
    if unusable:
        raise InvalidInput(f'{name} = {shown(value)}: no file can be called so')
    return value


def as_tuple(what: str, values: Any, of: str) -> tuple[Any, ...]:
    """Return a list of things as a tuple.

    Raises:
        InvalidInput: one string, or nothing that can be listed.
    """
    return listed(what, values, f'a list of {of}')


def check_unique(kind: str, names: Sequence[str]) -> None:
    """Raise InvalidInput when a name appears twice in `names`."""
    listed = [name for name in names if isinstance(name, str)]  # the rest is refused by name
    twice = sorted(name for name, count in Counter(listed).items() if count > 1)
    if twice:
        raise InvalidInput(f'{kind} {", ".join(map(repr, twice))} is listed more than once')
