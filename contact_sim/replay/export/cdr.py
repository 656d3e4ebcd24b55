"""Bytes of ROS 2 messages: CDR, little endian, as DDS sends them and MCAP keeps them.

A message is a mapping of its fields; what is left out is 0, empty or false. Shorter are:

    a message whose fields are all numbers of one type    these numbers, array-like:
                                                           a Pose is x, y, z, then qx, qy, qz, qw
    a sequence of such messages                            an array, one row for each
    builtin_interfaces/Time and Duration                   nanoseconds
    what is the same in many messages                      a Constant of it
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from contact_sim.replay.export.definitions import DEFINITIONS, Field, fields_of

Writer = Callable[[bytearray, Any], None]
BEGINNING = b'\x00\x01\x00\x00'
"""Says that what follows is CDR, little endian; places count from behind it."""
PADDING = [bytes(n) for n in range(8)]
TIMES = 'builtin_interfaces/Time', 'builtin_interfaces/Duration'
SECOND = 1_000_000_000
NUMBERS = {
    'bool': '?', 'byte': 'B', 'uint8': 'B', 'int16': 'h', 'int32': 'i', 'uint32': 'I',
    'float32': 'f', 'float64': 'd',
}  # fmt: skip
"""Format of `struct` and NumPy of every primitive that is a number."""
_LENGTH = struct.Struct('<I')
_TIME = struct.Struct('<iI')


class Constant:
    """A value whose bytes are kept, those for each of the 8 places where they may begin."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.pieces: dict[int, bytes] = {}


@cache
def encoder(name: str) -> Callable[[Any], bytes]:
    """Return the function that makes bytes of a message of `package/Name`."""
    write = _writer(name)

    def encode(message: Any) -> bytes:
        out = bytearray(BEGINNING)
        write(out, message)
        return bytes(out)

    return encode


@cache
def uniform(name: str) -> tuple[str, int] | None:
    """Return type and count of the numbers in a message that consists of nothing else."""
    kinds, count = set(), 0
    for field in fields_of(name):
        if field.size == 0 or (field.type not in NUMBERS and field.type not in DEFINITIONS):
            return None
        inner = (field.type, 1) if field.type in NUMBERS else uniform(field.type)
        if inner is None:
            return None
        kinds.add(inner[0])
        count += inner[1] * (1 if field.size is None else field.size)
    return (kinds.pop(), count) if len(kinds) == 1 else None


def _align(out: bytearray, size: int) -> None:
    out += PADDING[(len(BEGINNING) - len(out)) % size]


@cache
def _writer(name: str) -> Writer:
    """Return what appends a value of a type, primitive or `package/Name`."""
    if name in NUMBERS:
        return _number(name)
    if name == 'string':
        return _write_string
    if name in TIMES:
        return _write_time
    numbers = uniform(name)
    if numbers is not None:
        return _array(*numbers)
    parts = [
        (field.name, _field_writer(field), Constant(_nothing(field))) for field in fields_of(name)
    ]

    def write(out: bytearray, message: Mapping[str, Any]) -> None:
        for key, write_field, nothing in parts:
            value = message.get(key, nothing)
            if type(value) is Constant:
                _write_constant(out, value, write_field)
            else:
                write_field(out, value)

    return write


def _write_constant(out: bytearray, constant: Constant, write: Writer) -> None:
    """Append a constant; its bytes depend on its place modulo the largest alignment."""
    start = len(out)
    piece = constant.pieces.get(start % 8)
    if piece is not None:
        out += piece
    else:
        write(out, constant.value)
        constant.pieces[start % 8] = bytes(out[start:])


def _number(kind: str) -> Writer:
    packed = struct.Struct(f'<{NUMBERS[kind]}')
    size = packed.size

    def write(out: bytearray, value: Any) -> None:
        _align(out, size)
        out += packed.pack(value)

    return write


def _array(kind: str, count: int) -> Writer:
    """Return what appends `count` numbers."""
    dtype = np.dtype(f'<{NUMBERS[kind]}')

    def write(out: bytearray, value: Any) -> None:
        numbers = np.asarray(value, dtype)
        if numbers.size != count:
            raise ValueError(f'{numbers.size} numbers, expected {count}')
        _align(out, dtype.itemsize)
        out += numbers.tobytes()

    return write


def _field_writer(field: Field) -> Writer:
    if field.size is None:
        return _writer(field.type)
    if field.size:
        return _array(field.type, field.size)
    numbers = (field.type, 1) if field.type in NUMBERS else None
    if numbers is None and field.type in DEFINITIONS:
        numbers = uniform(field.type)
    return _sequence(_writer(field.type)) if numbers is None else _number_sequence(*numbers)


def _sequence(write_one: Writer) -> Writer:
    def write(out: bytearray, values: Any) -> None:
        _write_length(out, len(values))
        for value in values:
            write_one(out, value)

    return write


def _number_sequence(kind: str, count: int) -> Writer:
    """Return what appends a sequence of messages of `count` numbers each."""
    dtype = np.dtype(f'<{NUMBERS[kind]}')

    def write(out: bytearray, values: Any) -> None:
        numbers = np.asarray(values, dtype)
        _write_length(out, numbers.size // count)
        if numbers.size:  # an empty sequence has no alignment
            _align(out, dtype.itemsize)
            out += numbers.tobytes()

    return write


def _nothing(field: Field) -> Any:
    """Return what a field is that is left out."""
    if field.size is not None:
        return np.zeros(field.size)
    if field.type in NUMBERS or field.type in TIMES:
        return 0
    if field.type == 'string':
        return ''
    numbers = uniform(field.type)
    return {} if numbers is None else np.zeros(numbers[1])


def _write_length(out: bytearray, length: int) -> None:
    _align(out, 4)
    out += _LENGTH.pack(length)


def _write_string(out: bytearray, text: str) -> None:
    encoded = text.encode()
    _write_length(out, len(encoded) + 1)
    out += encoded
    out.append(0)


def _write_time(out: bytearray, time: int) -> None:
    _align(out, 4)
    out += _TIME.pack(*divmod(time, SECOND))
