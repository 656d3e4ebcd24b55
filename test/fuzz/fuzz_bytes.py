"""Damaged .npz files: bits, lengths, members, headers of arrays."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

PICKLE = (
    b'\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94\x8c\x05print\x94\x93\x94.'
)


def members(content: bytes) -> dict[str, bytes]:
    """Return the members of a .npz file by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(content: dict[str, bytes]) -> bytes:
    """Return a .npz file of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            file.writestr(name, data)
    return out.getvalue()


def as_npy(value: Any, shape: tuple[int, ...] | None = None) -> bytes:
    """Return an array as a .npy file, with another shape in its header where one is given."""
    array, out = np.asarray(value), io.BytesIO()
    if shape is None:
        np.lib.format.write_array(out, array, allow_pickle=True)
    else:
        header = {'descr': array.dtype.str, 'fortran_order': False, 'shape': shape}
        np.lib.format.write_array_header_1_0(out, header)
        out.write(array.tobytes())
    return out.getvalue()


def odd_member(chance: random.Random, whole: bytes) -> bytes:
    """Return another content of a member."""
    try:
        array = np.lib.format.read_array(io.BytesIO(whole))
    except ValueError:
        array = np.zeros(3)
    makes: tuple[Callable[[], bytes], ...] = (
        lambda: b'', lambda: whole[: chance.randrange(len(whole))], lambda: whole * 2,
        lambda: as_npy(np.array([{'a': 1}], dtype=object)), lambda: b'\x93NUMPY\x01\x00' + PICKLE,
        lambda: PICKLE, lambda: as_npy(np.zeros(1), (10**12,)), lambda: as_npy(np.zeros(1), (-1,)),
        lambda: as_npy(np.zeros(2), (2**31, 2**31)), lambda: as_npy(np.zeros(0)),
        lambda: as_npy(np.nan), lambda: as_npy('text'), lambda: as_npy(array[..., None]),
        lambda: as_npy(array.ravel()[:-1]), lambda: as_npy(np.zeros(array.shape, 'c16')),
        lambda: as_npy(np.zeros(array.shape, 'S4')),
        lambda: as_npy(np.zeros(array.shape, 'M8[s]')),
        lambda: as_npy(np.full(array.shape, chance.choice((np.nan, np.inf, 1e300, -1.0, 0.0)))),
        lambda: as_npy(_with_odd_entry(chance, array)), lambda: as_npy(np.zeros(1_000_000)),
    )  # fmt: skip
    return chance.choice(makes)()


def _with_odd_entry(chance: random.Random, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in 'fiu' or not array.size:
        return array
    changed = np.array(array)
    if array.dtype.kind == 'f':
        odd = chance.choice((np.nan, np.inf, -np.inf, 1e308, 1e100, -1.0, 1e-310, 1e6))
    else:
        odd = chance.choice((0, 1, 2**31, 2**62))
    changed.flat[chance.randrange(array.size)] = odd
    return changed


def cut(data: bytearray, chance: random.Random) -> None:
    """Cut a file off, in place."""
    del data[chance.randrange(len(data)) :]


def flip(data: bytearray, chance: random.Random) -> None:
    """Flip some bits of a file, in place."""
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return a file with one damage."""
    data = bytearray(whole)
    what = chance.randrange(8)
    if what == 0:
        cut(data, chance)
    elif what == 1:
        flip(data, chance)
    elif what == 2:
        place = chance.randrange(len(data))
        data[place : place + 40] = chance.randbytes(chance.randrange(80))
    elif what == 3 and chance.random() < 0.05:
        return zipped({'bomb.npy': bytes(50_000_000), **members(whole)})
    else:
        return with_odd_member(whole, chance)
    return bytes(data)


def with_odd_member(whole: bytes, chance: random.Random) -> bytes:
    """Return a file with a member missing, swapped, renamed or of another content."""
    content = members(whole)
    name = chance.choice(sorted(content))
    what = chance.randrange(6)
    if what == 0:
        del content[name]
    elif what == 1:
        other = chance.choice(sorted(content))
        content[name], content[other] = content[other], content[name]
    elif what == 2:
        odd_names = ('../../x.npy', 'a' * 3000, 'é.npy', 'steps-x/effort.npy')
        content[chance.choice(odd_names)] = content.pop(name)
    else:
        content[name] = odd_member(chance, content[name])
    return zipped(content)
