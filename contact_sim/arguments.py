"""Arguments are what their annotations say, or an error names them: one rule for every edge."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import os
import types
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import finite, finite_array, flag, real_array, real_number, whole

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
