"""Odd values: what programs hand over by mistake or malice, in place of a good one.

`odd(chance, good)` depends on the random numbers and the good value alone.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-310, 5e-324, 1e-12, 1e6, 1e12, 1e80, 1e200,
    1.7e308, -1e-310, -1e-9, -1.0, -1e6, -1e200, 0.5, 3.0, 1, 0, -1, 7, 1000, 2**31, 2**63,
    -(2**63), 10**400, 1 + 2j, True, False,
)  # fmt: skip
TEXTS = (
    '', ' ', 'x', '0.5', 'nan', 'false', 'é' * 3, '\0', 'a\nb', '../..', '~', '$(arg x)', '%s{}',
    'x' * 5000, '\ud800', '<robot/>', '[]',
)  # fmt: skip
DTYPES = ('f4', '>f8', 'f2', 'i8', 'u1', 'c16', 'O', 'U8', 'S8', 'M8[s]', 'm8[s]', '?', 'V8')


class Moody:
    """Raises at whatever it is asked."""

    def __init__(self, asked: str) -> None:
        self._asked = asked

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f'moody at {self._asked}')


def moody(asked: str) -> Any:
    """Return an object that raises at one special method, and is a list of two numbers else."""
    answers: dict[str, Callable[..., Any]] = {
        '__len__': lambda _: 2,
        '__iter__': lambda _: iter((0.5, 0.5)),
        '__getitem__': lambda _, k: (0.5, 0.5)[k],
    }
    kind = type('Moody', (Moody,), answers | {asked: Moody._raise})
    return kind(asked)


MOODS = ('__array__', '__len__', '__iter__', '__getitem__', '__eq__', '__float__', '__hash__',
         '__index__', '__bool__', '__fspath__')  # fmt: skip


def endless() -> Iterator[float]:
    """Yield numbers, but not for ever: a caller that trusts it takes a while."""
    yield from (0.5 for _ in range(10_000))


def nested(depth: int) -> list[Any]:
    """Return a list in a list in a list, ..."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def strange(chance: random.Random) -> Any:
    """Return a value that is nothing in particular."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: chance.choice(NUMBERS),
        lambda: chance.choice(TEXTS),
        lambda: chance.choice((None, (), [], {}, set(), b'', b'0.5', Ellipsis, object(), float)),
        lambda: chance.choice((np.ma.masked, np.datetime64('2020'), np.timedelta64(3, 's'))),
        lambda: chance.choice((Fraction(1, 2), Decimal('NaN'), datetime(2020, 1, 1), Path('/'))),
        lambda: chance.choice((range(3), range(10**9), slice(None), lambda *_: math.nan, len)),
        lambda: moody(chance.choice(MOODS)),
        endless,
        lambda: nested(chance.choice((3, 70, 5000))),
        lambda: [chance.choice(NUMBERS) for _ in range(chance.randrange(5))],
        lambda: {chance.choice(TEXTS): chance.choice(NUMBERS)},
        lambda: np.full(chance.choice(((), 0, 3, 4, 12, (3, 3), (0, 3), (2, 0))), np.nan),
        lambda: np.zeros(chance.choice(((1, 1, 1, 1), 100_000, (300, 300), (1,) * 32))),
        lambda: np.float32(chance.choice((0.3, math.nan))),
        lambda: [[1, 2], [3]],
        lambda: np.array([1.0, 'x', None], dtype=object),
    )
    return chance.choice(makers)()


def odd(chance: random.Random, good: Any, depth: int = 0) -> Any:
    """Return something in place of `good`: of another kind, or much like it but for one thing."""
    if chance.random() < 0.35:
        return strange(chance)
    if isinstance(good, np.ndarray):
        return odd_array(chance, good)
    if isinstance(good, bool) or good is None or depth > 4:
        return strange(chance)
    if isinstance(good, int | float | np.number):
        return odd_number(chance, good)
    if isinstance(good, str):
        return odd_text(chance, good)
    if isinstance(good, Mapping):
        return odd_mapping(chance, good, depth)
    if isinstance(good, list | tuple) and good:
        return odd_sequence(chance, good, depth)
    if dataclasses.is_dataclass(good) and not isinstance(good, type):
        return odd_fields(chance, good, depth)
    return strange(chance)


def odd_number(chance: random.Random, good: Any) -> Any:
    """Return a number far off, or one in another guise."""
    if chance.random() < 0.7:
        return chance.choice(NUMBERS)
    guises: tuple[Callable[[Any], Any], ...] = (
        np.float32, np.float64, np.array, str, lambda x: [x], lambda x: complex(x, 1.0),
        lambda x: -x, lambda x: x * 1e9, lambda x: np.array([x]), lambda x: np.ma.masked_array(x),
        lambda x: np.array(x, dtype=object), lambda x: np.array(x, dtype='c16'),
    )  # fmt: skip
    return chance.choice(guises)(good)


def odd_text(chance: random.Random, good: str) -> Any:
    """Return another text, or a part of this one."""
    if chance.random() < 0.5:
        return chance.choice(TEXTS)
    changes: tuple[Callable[[], Any], ...] = (
        good.upper, lambda: good + ' ', lambda: good[:-1], lambda: [good], lambda: good * 1000,
        good.encode, lambda: {good: good}, lambda: Path(good[:100].replace('\0', '')),
        lambda: np.str_(good), lambda: np.array(good),
    )  # fmt: skip
    return chance.choice(changes)()


def odd_array(chance: random.Random, good: np.ndarray) -> Any:
    """Return an array with odd entries, of another shape or another type."""
    changes = (_with_odd_entry, _with_odd_entry, _with_odd_shape, _with_odd_type, _scaled)
    return chance.choice(changes)(chance, good)


def _with_odd_entry(chance: random.Random, good: np.ndarray) -> Any:
    changed = np.array(good, dtype=float)
    numbers = [x for x in NUMBERS if isinstance(x, float)]
    for _ in range(chance.choice((1, 1, 3))):
        if changed.size:
            changed.flat[chance.randrange(changed.size)] = chance.choice(numbers)
    return changed.tolist() if chance.random() < 0.3 else changed


def _with_odd_shape(chance: random.Random, good: np.ndarray) -> Any:
    flat = good.ravel()
    changes: tuple[Callable[[], Any], ...] = (
        lambda: good[None], lambda: good[..., None], lambda: flat[:-1], lambda: good[:0],
        lambda: np.append(flat, 0.0), lambda: flat, lambda: flat[::-1],
        lambda: np.stack([good, good]), lambda: flat[0] if flat.size else good, lambda: good.T,
        lambda: [flat, flat[:-1]], lambda: iter(flat), lambda: dict(enumerate(flat.tolist())),
        lambda: np.broadcast_to(0.5, (2, *good.shape)), lambda: set(flat.tolist()),
    )  # fmt: skip
    return chance.choice(changes)()


def _with_odd_type(chance: random.Random, good: np.ndarray) -> Any:
    kind = chance.choice((*DTYPES, 'masked', 'matrix', 'readonly', 'memory'))
    if kind == 'masked':
        return np.ma.masked_array(good, mask=np.arange(good.size).reshape(good.shape) % 2)
    if kind == 'readonly':
        frozen = np.array(good)
        frozen.flags.writeable = False
        return frozen
    if kind == 'matrix':
        return np.asmatrix(good) if good.ndim <= 2 else good[None]
    if kind == 'memory':
        return memoryview(np.ascontiguousarray(good))
    if kind in ('M8[s]', 'm8[s]', 'V8'):
        return np.zeros(good.shape, dtype=kind)
    return good.astype(kind)


def _scaled(chance: random.Random, good: np.ndarray) -> Any:
    with np.errstate(all='ignore'):
        return good * chance.choice((1e4, 1e12, 1e80, 1e200, -1.0, 1e-200, math.nan, 0.0))


def odd_mapping(chance: random.Random, good: Mapping[Any, Any], depth: int) -> Any:
    """Return a mapping with one entry changed, added or missing."""
    changed = dict(good)
    key = chance.choice(list(changed)) if changed else 'x'
    what = chance.randrange(4)
    if what == 0:
        changed.pop(key, None)
    elif what == 1:
        changed[chance.choice((*TEXTS, 0, None, 1.5, ('a', 'b')))] = changed.get(key)
    elif what == 2:
        return list(changed.items())
    else:
        changed[key] = odd(chance, changed.get(key), depth + 1)
    return changed


def odd_sequence(chance: random.Random, good: list[Any] | tuple[Any, ...], depth: int) -> Any:
    """Return a sequence with one item changed, doubled or missing."""
    changed, place = list(good), chance.randrange(len(good))
    what = chance.randrange(6)
    if what == 0:
        del changed[place]
    elif what == 1:
        changed.insert(place, changed[place])
    elif what == 2:
        return iter(changed)
    elif what == 3 and len(changed) < 100:
        return changed * 100
    else:
        changed[place] = odd(chance, changed[place], depth + 1)
    return tuple(changed) if isinstance(good, tuple) and not hasattr(good, '_fields') else changed


def odd_fields(chance: random.Random, good: Any, depth: int) -> Any:
    """Return a dataclass with one field changed."""
    changeable = [item.name for item in dataclasses.fields(good) if item.init]
    if not changeable:
        return strange(chance)
    name = chance.choice(changeable)
    return dataclasses.replace(good, **{name: odd(chance, getattr(good, name), depth + 1)})


def shown(value: Any, longest: int = 200) -> str:
    """Return a value in at most so many characters."""
    try:
        text = repr(value)
    except Exception:  # a moody object, or a list five thousand deep
        text = f'<{type(value).__name__}>'
    text = ' '.join(text.split())
    return text if len(text) <= longest else text[:longest] + '...'
