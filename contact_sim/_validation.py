"""Validate input: numbers, arrays, and arguments against their type annotations.

The functions take the name of a value and the value, and return it in the type that they promise;
for anything else they raise InvalidInput with the name, the value and what is expected. They
refuse what NumPy silently turns into floats: text, times, complex and masked numbers.

`checked` applies them to the arguments of a function, `checked_fields` to the fields of a
dataclass, and `contact_sim.parameters` to declared parameters.
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim.errors import (
    InvalidInput,
    ReadOnlyAttribute,
    UnknownAttribute,
    UnknownKeyword,
    one_line,
    shown,
)

LARGEST = 1e100
"""Bound of numbers that are multiplied with each other: three of them stay finite."""
LARGEST_INTEGER = 2**63 - 1
"""Bound of whole numbers: those of NumPy have 64 bits."""
LARGEST_ARRAY = 100_000_000
"""Most numbers of an array: range(10**9) is a mistake."""
LARGEST_TUPLE = 10_000_000
"""Most items of a list."""
LARGEST_COUNT = 10_000_000
"""Most steps of one call: hours on a wall clock."""
FLOAT64 = np.dtype(np.float64)
REAL = 'fiub'
"""Kinds of NumPy types that are real numbers."""


def refused(name: str, value: object, reason: str) -> InvalidInput:
    """Return the error for a value that is not as `reason` says; it keeps the reason."""
    error = InvalidInput(f'{name} = {shown(value)}: {reason}')
    error.reason = reason
    return error


# --- Numbers


def real_array(name: str, value: object) -> Array:
    """Return an array of floats, the same object if `value` is one already."""
    # arrays that numba returns have an equal type of their own
    if type(value) is np.ndarray and (value.dtype is FLOAT64 or value.dtype == FLOAT64):
        return value
    try:
        if hasattr(value, '__len__') and len(value) > LARGEST_ARRAY:
            raise InvalidInput('too many')
        array = np.asarray(value)
    except Exception as error:  # an object that poses as an array may raise anything
        raise refused(name, value, 'expected real numbers') from error
    if isinstance(value, np.ma.MaskedArray) or array.dtype.kind not in REAL:
        raise refused(name, value, 'expected real numbers')
    return array.astype(np.float64)


def real_number(name: str, value: object) -> float:
    """Return one number as a float."""
    array = real_array(name, value)
    if array.shape != ():
        raise refused(name, value, 'expected one number')
    return float(array)


def finite_array(name: str, value: object) -> Array:
    """Return an array of numbers up to LARGEST."""
    array = real_array(name, value)
    if not is_finite(array):
        raise refused(name, value, f'not finite, expected numbers up to {LARGEST:g}')
    return array


def finite(name: str, value: object) -> float:
    """Return one number up to LARGEST."""
    number = real_number(name, value)
    if not abs(number) <= LARGEST:
        raise refused(name, value, f'expected a finite number, at most {LARGEST:g}')
    return number


def is_finite(array: Array) -> bool:
    """Return whether no number is NaN or larger than LARGEST."""
    if array.ndim == 1 and array.dot(array) <= LARGEST:  # the usual case, fast; False for NaN
        return True
    return bool((np.abs(array) <= LARGEST).all())


def within(name: str, value: object, largest: float) -> Array:
    """Return an array of numbers in [0, largest], at most LARGEST."""
    array, largest = real_array(name, value), min(largest, LARGEST)
    if not ((array >= 0.0) & (array <= largest)).all():  # refuses NaN too
        raise refused(name, value, f'expected finite values in [0, {largest:g}]')
    return array


def number_within(name: str, value: object, largest: float) -> float:
    """Return one number in [0, largest], at most LARGEST."""
    return float(within(name, real_number(name, value), largest))


def positive(name: str, value: object, unit: str) -> float:
    """Return one finite number > 0."""
    try:
        number = real_number(name, value)
    except InvalidInput:
        number = math.nan
    if not 1.0 / LARGEST <= number <= LARGEST:
        raise InvalidInput(f'{name} = {shown(value)} {unit}: expected a finite number > 0')
    return number


def pair(name: str, value: object, unit: str) -> tuple[float, float]:
    """Return two finite numbers."""
    array = real_array(name, value)
    if array.shape != (2,) or not np.isfinite(array).all():
        raise InvalidInput(f'{name} = {shown(value)} {unit}: expected two finite numbers')
    return float(array[0]), float(array[1])


def shaped(name: str, value: object, *shape: int) -> Array:
    """Return an array of finite numbers of this shape."""
    array = finite_array(name, value)
    if array.shape != shape:
        raise InvalidInput(f'{name}: shape {array.shape}, expected {shape}')
    return array


def coordinates(x: object, y: object) -> tuple[Array, Array]:
    """Return finite x and y of points, in shapes that NumPy broadcasts."""
    arrays = finite_array('x', x), finite_array('y', y)
    shapes = arrays[0].shape, arrays[1].shape
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise InvalidInput(f'x, y: shapes {shapes[0]}, {shapes[1]}: {error}') from error
    return arrays


def cholesky_factor(name: str, value: Array) -> Array:
    """Return the lower triangle L of a positive definite matrix L Lᵀ."""
    try:
        return np.asarray(np.linalg.cholesky(value), dtype=float)
    except np.linalg.LinAlgError as error:
        raise InvalidInput(f'{name}: expected a positive definite matrix') from error


def whole(name: str, value: object) -> int:
    """Return a whole number of at most 64 bits; True and False are refused."""
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except Exception:  # an object that poses as a number may raise anything
        number = None
    if number is None:
        raise refused(name, value, 'expected a whole number')
    if abs(number) > LARGEST_INTEGER:
        raise refused(name, value, f'expected at most {LARGEST_INTEGER}')
    return number


def count(name: str, value: object, largest: int = LARGEST_COUNT) -> int:
    """Return a whole number from 1 to `largest`."""
    number = whole(name, value)
    if not 1 <= number <= largest:
        raise InvalidInput(f'{name} = {number}: expected a whole number from 1 to {largest}')
    return number


def indices(name: str, value: object, count: int) -> NDArray[np.intp]:
    """Return whole numbers in [0, count), shape (any,)."""
    array = np.asarray(real_array(name, value))
    whole = array.astype(np.intp) if np.isfinite(array).all() else array
    if array.ndim != 1 or not ((whole == array) & (array >= 0.0) & (array < count)).all():
        raise refused(name, value, f'expected whole numbers in [0, {count})')
    return whole.astype(np.intp)


# --- Other values


def flag(name: str, value: object) -> bool:
    """Return a bool; other truthy values are refused, such as the text 'false'."""
    if not isinstance(value, bool | np.bool_):
        raise refused(name, value, 'expected True or False')
    return bool(value)


def text(name: str, value: object) -> str:
    """Return a text that can be encoded."""
    try:
        encodable = isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:  # a lone surrogate
        encodable = False
    if not encodable:
        raise refused(name, value, 'expected text')
    return str(value)


def path(name: str, value: Any) -> Any:
    """Return a path or text that a file may have as its name."""
    if not isinstance(value, str | Path):
        raise refused(name, value, 'expected a path')
    try:
        usable = b'\0' not in os.fsencode(value)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise refused(name, value, 'no file can be called so')
    return value


def as_tuple(name: str, value: Any, expected: str = 'a list') -> tuple[Any, ...]:
    """Return the items of any iterable but text and mappings as a tuple."""
    if isinstance(value, str | bytes | Mapping):
        raise refused(name, value, f'expected {expected}')
    try:
        too_long = hasattr(value, '__len__') and len(value) > LARGEST_TUPLE
        items = () if too_long else tuple(value)
    except Exception as error:  # an object that poses as a list may raise anything
        raise refused(name, value, f'expected {expected}') from error
    if too_long:
        raise refused(name, value, f'expected at most {LARGEST_TUPLE} items')
    return items


def mapping(name: str, value: Any) -> Any:
    """Return a mapping whose keys are text."""
    if not isinstance(value, Mapping):
        raise refused(name, value, 'expected values by name')
    for key in value:
        text(f'a name in {name}', key)
    return value


def function(name: str, value: Any) -> Any:
    """Return what can be called."""
    if not callable(value):
        raise refused(name, value, 'expected a function')
    return value


def check_unique(kind: str, names: Sequence[str]) -> None:
    """Raise InvalidInput if a name appears twice; values that are no text are ignored."""
    counts = Counter(name for name in names if isinstance(name, str))
    twice = sorted(name for name, number in counts.items() if number > 1)
    if twice:
        raise InvalidInput(f'{kind} {", ".join(map(repr, twice))} is listed more than once')


# --- Checks by type annotation

Check = Callable[[str, Any], Any]
"""Takes name and value, returns the value in the annotated type or raises InvalidInput."""
ARRAY_UNION = set(typing.get_args(ArrayLike)) - {float}
ITERABLES = (collections.abc.Iterable, collections.abc.Sequence, tuple, list)


@dataclasses.dataclass(frozen=True)
class Rules:
    """Checks of the annotations that name a plain type: one set per kind of declaration."""

    of_array: Check
    of_float: Check
    of_int: Check = whole
    of_bool: Check = flag
    of_str: Check = text


FINITE = Rules(finite_array, finite)
"""Arguments of functions."""
REAL_NUMBERS = Rules(real_array, real_number)
"""Fields of dataclasses, which may be infinite."""


def check_of(hint: Any, rules: Rules = FINITE) -> Check | None:
    """Return the check of an annotation, None where its values are not checked."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint == ArrayLike:
        return rules.of_array
    if origin is np.ndarray:
        return None if any(kind in str(hint) for kind in ('int', 'bool')) else rules.of_array
    if origin in (typing.Union, types.UnionType):
        return _check_of_union(parts, rules)
    plain: dict[Any, Check] = {
        float: rules.of_float, int: rules.of_int, bool: rules.of_bool, str: rules.of_str,
        Path: path,
    }  # fmt: skip
    if hint in plain:
        return plain[hint]
    if origin is collections.abc.Mapping:
        return mapping
    if origin is collections.abc.Callable:
        return function
    if origin in ITERABLES:
        return _check_of_items(origin, parts, rules)
    return _check_of_classes((hint,))


def _check_of_union(hints: tuple[Any, ...], rules: Rules) -> Check | None:
    some = tuple(hint for hint in hints if hint is not type(None))
    if len(some) == 1:
        check = check_of(some[0], rules)
    elif set(some) - {float} == ARRAY_UNION:  # str and int are in it with NumPy 1.26
        check = rules.of_array
    elif set(some) == {str, Path}:
        check = path
    else:
        check = _check_of_classes(some)
    if check is None or len(some) == len(hints):
        return check
    return lambda name, value: None if value is None else check(name, value)


def _check_of_classes(kinds: tuple[Any, ...]) -> Check | None:
    """Return a check for classes; None for protocols, generics and built-in types."""
    for kind in kinds:
        if not inspect.isclass(kind) or getattr(kind, '_is_protocol', False) or kind is Any:
            return None
        if kind.__module__ == 'builtins' and kind is not str:
            return None
    expected = ' or '.join(kind.__name__ for kind in kinds)

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise refused(name, value, f'expected {expected}')
        return value

    return check


def _check_of_items(origin: Any, parts: tuple[Any, ...], rules: Rules) -> Check:
    """Return a check for lists and tuples of one kind of items, which returns a tuple."""
    kinds = tuple(part for part in parts if part is not Ellipsis)
    if len(set(kinds)) != 1:
        return as_tuple
    item_check = check_of(kinds[0], rules)
    length = len(kinds) if origin is tuple and Ellipsis not in parts else None

    def check(name: str, value: Any) -> Any:
        items = as_tuple(name, value)
        if length is not None and len(items) != length:
            raise refused(name, value, f'expected {length} values, got {len(items)}')
        if item_check is None:
            return items
        return tuple(item_check(f'{name}[{k}]', item) for k, item in enumerate(items))

    return check


Function = TypeVar('Function', bound=Callable[..., Any])
Class = TypeVar('Class', bound=type)


def checked(function: Function) -> Function:
    """Return a function that checks its arguments against their annotations before it runs.

    Classes, text, paths, flags, whole numbers, finite numbers and arrays of them, mappings, and
    lists of such values, which are passed on as tuples. Other annotations are not checked.
    """
    names = tuple(inspect.signature(function).parameters)
    checks = functools.cache(lambda: _checks(function, names, FINITE))
    keywords = keywords_of(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names):
            return function(*args, **kwargs)  # raises Python's TypeError
        if kwargs:
            check_keywords(function, kwargs, keywords)
        positional = dict(zip(names, args, strict=False))
        for name, check in checks().items():
            for arguments in (positional, kwargs):
                if name in arguments:
                    arguments[name] = check(name, arguments[name])
        return function(*positional.values(), **kwargs)

    return typing.cast(Function, wrapper)


def named_keywords(function: Function) -> Function:
    """Return a function whose error for an unknown keyword names the nearest one."""
    keywords = keywords_of(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            check_keywords(function, kwargs, keywords)
        return function(*args, **kwargs)

    return typing.cast(Function, wrapper)


def keywords_of(function: Callable[..., Any]) -> frozenset[str] | None:
    """Return the keywords that a function takes; None: any."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)


def check_keywords(
    function: Callable[..., Any], given: Mapping[str, Any], keywords: frozenset[str] | None
) -> None:
    """Raise UnknownKeyword for an argument that a function does not take."""
    if keywords is None or keywords.issuperset(given):
        return
    unknown = next(name for name in given if name not in keywords)
    called = function.__qualname__.removesuffix('.__init__')
    known = [name for name in inspect.signature(function).parameters if name != 'self']
    raise UnknownKeyword(f'argument of {called}', unknown, known)


def closed_attributes(**instead: str) -> Callable[[Class], Class]:
    """Return a decorator of a class whose objects refuse attributes that it does not have.

    It has the attributes of its body, properties among them, and those that its body annotates.
    Subclasses may have others.

    Args:
        instead: attributes that cannot be assigned, and what to do instead.
    """

    def decorate(cls: Class) -> Class:
        annotated = frozenset(inspect.get_annotations(cls))

        def __setattr__(self: Any, name: str, value: Any) -> None:
            if name[:1] != '_':
                if name in instead:
                    raise ReadOnlyAttribute(
                        f'{cls.__name__}.{name} cannot be assigned: {instead[name]}'
                    )
                if type(self) is cls and name not in annotated and not hasattr(cls, name):
                    known = [key for key, part in vars(cls).items() if _assignable(part)]
                    raise UnknownAttribute(
                        f'attribute of {cls.__name__} to set', name, (*annotated, *known)
                    )
            object.__setattr__(self, name, value)

        cls.__setattr__ = __setattr__  # type: ignore[assignment,method-assign]
        return cls

    return decorate


def _assignable(part: object) -> bool:
    return isinstance(part, property) and part.fset is not None


def checked_fields(cls: Class) -> Class:
    """Return a dataclass that checks its fields against their annotations, before __post_init__.

    As `checked`, but numbers may be infinite. Its `repr` is one line.
    """
    if hasattr(cls.__dict__.get('__repr__'), '__wrapped__'):  # the one that dataclass has made
        cls.__repr__ = one_line  # type: ignore[assignment,method-assign]
    named_fields(cls)
    names = tuple(field.name for field in dataclasses.fields(cls))
    post_init = getattr(cls, '__post_init__', None)
    checks = functools.cache(lambda: _checks(cls, names, REAL_NUMBERS))

    def __post_init__(self: Any) -> None:
        for name, check in checks().items():
            value = check(f'{cls.__name__}.{name}', getattr(self, name))
            object.__setattr__(self, name, value)
        if post_init is not None:
            post_init(self)

    if post_init is not None:
        cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
        return cls
    init = cls.__init__  # type: ignore[misc]

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        __post_init__(self)

    cls.__init__ = __init__  # type: ignore[misc]
    return cls


def named_fields(cls: Class) -> Class:
    """Return a dataclass whose error for an unknown field names the nearest one."""
    init = cls.__init__  # type: ignore[misc]
    keywords = keywords_of(init)

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except TypeError:
            check_keywords(init, kwargs, keywords)
            raise

    cls.__init__ = __init__  # type: ignore[misc]
    return cls


def _checks(annotated: Any, names: tuple[str, ...], rules: Rules) -> dict[str, Check]:
    """Return checks by name. Called late: annotations may name what a module imports later."""
    hints = typing.get_type_hints(annotated)
    checks = {name: check_of(hints[name], rules) for name in names if name in hints}
    return {name: check for name, check in checks.items() if check is not None}
