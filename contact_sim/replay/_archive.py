"""A .npz file that grows while a simulation runs and stays readable if the process is killed.

Every entry is complete in itself. A killed process leaves no table of contents at the end: then
the entries are read one after the other, up to the first that is incomplete. Beside it, the hashes
of states: equal hashes mean equal bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays._fields import Sizes
from contact_sim.errors import ContactSimError, InvalidInput

HASHED = ('clock', 'now', 'impulse', 'effort', 'tau', 'friction', 'memory', 'delay_line',
          'lagged_effort')  # fmt: skip
"""Fields from which the next step starts, and the inputs of the last step."""


class StateHash:
    """Hashes the state in a buffer of step data to 64 bits."""

    def __init__(self, sizes: Sizes) -> None:
        self._slices = [slice(*sizes.layout[name][:2]) for name in HASHED]

    def __call__(self, buffer: NDArray[np.float64]) -> int:
        """Return the hash of the state in `buffer`."""
        digest = hashlib.blake2b(digest_size=8)
        for part in self._slices:
            digest.update(buffer[part].data)
        return int.from_bytes(digest.digest(), 'little')


class RunHash:
    """One hash of a whole run: the hash of the hashes of its states."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, hashes: Iterable[int]) -> None:
        """Add the hashes of more states."""
        self._digest.update(np.array(list(hashes), dtype='<u8').tobytes())

    @property
    def hex(self) -> str:
        """The hash of the states added so far."""
        return self._digest.hexdigest()


# --- The file.

LOCAL_HEADER = struct.Struct('<4s5H3L2H')
"""Signature, version, flags, method, time, date, checksum, packed and full size, two lengths."""
SIGNATURE = b'PK\x03\x04'
FAST = 1
"""Level of compression; more does not help, because the last digits of efforts are noise."""
OLDEST_DATE = (1980, 1, 1, 0, 0, 0)


class RecordingError(ContactSimError, ValueError):
    """A recording that cannot be read or repeated."""


@contextlib.contextmanager
def understood(what: str) -> Iterator[None]:
    """Turn any error inside the block into a RecordingError: a file may hold anything.

    Raises:
        RecordingError: instead of any error but those of contact_sim.
    """
    try:
        yield
    except ContactSimError:
        raise
    except Exception as error:
        raise RecordingError(f'{what} does not hold what it should: {error!r}') from error


class ArchiveWriter:
    """Writes arrays into a new .npz file, one by one.

    Raises:
        InvalidInput: a file that cannot be written.
    """

    def __init__(self, path: Path) -> None:
        if os.path.exists(path) and not os.path.isfile(path):  # a FIFO would wait for a reader
            raise InvalidInput(f'cannot write {path}: it is there, and no regular file')
        try:
            self._zip = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=FAST)
        except OSError as error:
            raise InvalidInput(f'cannot write {path}: {error.strerror}') from error
        except ValueError as error:  # such as a null character in its name
            raise InvalidInput(f'cannot write {str(path)!r}: {error}') from error

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Append one array; the same numbers always give the same bytes."""
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
        entry = zipfile.ZipInfo(f'{name}.npy', OLDEST_DATE)
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, content.getvalue(), compresslevel=FAST)

    def flush(self) -> None:
        """Hand everything to the operating system, so that a killed process loses nothing."""
        if self._zip.fp is not None:
            self._zip.fp.flush()

    def close(self) -> None:
        """Write the table of contents."""
        self._zip.close()

    def abandon(self) -> None:
        """Close the file without a table of contents, after it could not be written."""
        file, self._zip.fp = self._zip.fp, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


class Archive:
    """The arrays of a .npz file, read one at a time.

    Attributes:
        names: of the arrays, in the order in which they were written.
        complete: False where the file ends before its table of contents.

    Raises:
        RecordingError: no such file, or no .npz file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        self._content: bytes | mmap.mmap = b''
        try:
            with path.open('rb') as file:
                if path.stat().st_size:
                    self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            raise RecordingError(f'cannot read {path}: {error.strerror}') from error
        except Exception:  # whatever zipfile raises at a damaged table of contents
            self._entries = _entries(self._content)
        self.complete = self._zip is not None
        entries = self._zip.namelist() if self._zip is not None else list(self._entries)
        self.names = [name.removesuffix('.npy') for name in entries]
        if not self.names:
            raise RecordingError(f'{path} is not a recording: it is no .npz file')

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array.

        Raises:
            RecordingError: it is missing or damaged.
        """
        try:
            content = self._read(f'{name}.npy')
            return np.asarray(np.lib.format.read_array(io.BytesIO(content), allow_pickle=False))
        except KeyError as error:
            raise RecordingError(f'{self._path}: {name!r} is missing') from error
        except Exception as error:  # whatever zipfile, zlib and NumPy raise at damaged entries
            raise RecordingError(f'{self._path}: {name!r} is damaged ({error!r})') from error

    def _read(self, entry: str) -> bytes:
        if self._zip is not None:
            return self._zip.read(entry)
        start, packed, checksum = self._entries[entry]
        content = zlib.decompress(self._content[start : start + packed], -zlib.MAX_WBITS)
        if zlib.crc32(content) != checksum:
            raise ValueError('wrong checksum')
        return content


def _entries(content: bytes | mmap.mmap) -> dict[str, tuple[int, int, int]]:
    """Return offset, packed size and checksum of every complete entry of a truncated file."""
    entries, place = {}, 0
    while place + LOCAL_HEADER.size <= len(content):
        fields = LOCAL_HEADER.unpack_from(content, place)
        checksum, packed, name_length, extra = fields[6], fields[7], fields[9], fields[10]
        start = place + LOCAL_HEADER.size
        data = start + name_length + extra
        if fields[0] != SIGNATURE or data + packed > len(content):
            break
        name = content[start : start + name_length].decode(errors='replace')
        entries[name] = (data, packed, checksum)
        place = data + packed
    return entries
