"""Read files that others wrote: one limit on what any of them may cost.

A small file can ask for much: an array whose header declares terabytes, a ground that unpacks to
a thousand times its size, YAML whose aliases unfold without end, a link to an endless device.
Every reader of the package goes through here. `Limits` says how much one file may cost; the
environment variable CONTACT_SIM_READING changes it.

Sizes are compared before anything is allocated wherever a file states them. Libraries that state
nothing (trimesh, coal, Pillow, pyarrow, rosbags, xacro) run inside `reading`, which bounds the
memory that the process may add and the time that the block may take.

Modules with kernels import this one as `from contact_sim import _reading`: its text is no part of
the text by which compiled kernels are known (solvers/_jit.py).
"""

from __future__ import annotations

import ctypes
import dataclasses
import io
import json
import math
import os
import re
import stat
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import ContactSimError, InvalidInput, shown

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

VARIABLE = 'CONTACT_SIM_READING'
"""Environment variable with other limits, such as `bytes=4e9,seconds=600`."""


@dataclass(frozen=True)
class Limits:
    """What reading one file may cost."""

    bytes: float = 2.0**30
    """Memory: size of a text, of an array, of everything that a block of `reading` adds."""
    entries: float = 1e6
    """Elements of XML, nodes of YAML with their aliases unfolded, values of JSON, members of an
    archive, rows of a table."""
    ratio: float = 250.0
    """Unpacked over packed size of what unpacks to more than a 16th of `bytes`."""
    depth: float = 100.0
    """Levels of nested XML, YAML and JSON."""
    seconds: float = 60.0
    """Wall time."""


def limits() -> Limits:
    """Return the limits in force.

    Raises:
        InvalidInput: CONTACT_SIM_READING is not of the form `name=number,name=number`.
    """
    text = os.environ.get(VARIABLE, '').strip()
    known = [field.name for field in dataclasses.fields(Limits)]
    chosen: dict[str, float] = {}
    for part in text.split(',') if text else ():
        name, _, number = (word.strip() for word in part.partition('='))
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if name not in known or not value > 0.0:
            raise InvalidInput(
                f'{VARIABLE} = {shown(text)}: {shown(part)}, expected one of {", ".join(known)} '
                'with a number > 0, such as bytes=4e9,seconds=600'
            )
        chosen[name] = value
    return Limits(**chosen)


class Unreadable(InvalidInput):
    """A file that is not read: it is missing, damaged, no file, or beyond a limit."""


def beyond(place: object, what: str, name: str) -> Unreadable:
    """Return the error for a file that is beyond the limit called `name`."""
    most = getattr(limits(), name)
    return Unreadable(
        f'{place}: {what}, more than the limit {name}={most:g} of what is read; {VARIABLE}='
        f'{name}=NUMBER in the environment sets another'
    )


# --- Blocks that may cost no more than the limits

RESERVE = 4 << 20
"""Memory that is kept in a block until it ends [bytes]."""
SPARE = 12 << 20
"""What a thread needs that starts inside a block [bytes]."""
_lock = threading.Lock()
_blocks = 0
_before: tuple[int, int] | None = None  # the limit of the process outside of all blocks
_here = threading.local()


class _TimeIsUp(BaseException):
    """Raised in the thread that reads for too long; no reader catches it."""


@contextmanager
def reading(place: object, kind: type[ContactSimError] = InvalidInput) -> Iterator[Limits]:
    """Bound memory and time of a block that reads `place`.

    The process may add `bytes` to its data until the block ends, and the thread is interrupted
    after `seconds`, which works between two instructions of Python. A block inside another one
    belongs to that. Where the system has no /proc, as on macOS, memory is bounded only where a
    file states its sizes.

    Args:
        place: name of what is read, for the message.
        kind: class of the errors for files that are not read.

    Raises:
        kind: the block needs more memory, time or nesting, or raises `Unreadable`.
    """
    try:
        if getattr(_here, 'inside', False):
            yield limits()
            return
        most = limits()
        _here.inside = True
        try:
            with _memory_limit(most.bytes), _time_limit(most.seconds):
                reserve = [bytearray(RESERVE)]
                try:
                    yield most
                finally:
                    reserve.clear()  # memory for what an error does on its way out
        finally:
            _here.inside = False
    except MemoryError:
        error = beyond(place, 'reading it takes more memory', 'bytes')
    except _TimeIsUp:
        error = beyond(place, 'reading it takes longer', 'seconds')
    except RecursionError:
        error = Unreadable(f'{place}: it is nested too deeply')
    except Unreadable as unreadable:
        if issubclass(type(unreadable), kind):
            raise
        text = str(unreadable)
        raise kind(text if str(place) in text else f'{place}: {text}') from unreadable
    else:
        return
    raise kind(str(error)) if not isinstance(error, kind) else error


@contextmanager
def _memory_limit(most: float) -> Iterator[None]:
    """Let the data of this process grow by `most` bytes [RLIMIT_DATA], in any of its threads."""
    global _blocks, _before
    with _lock:
        used = _data_in_use() if resource is not None else 0
        if used:
            soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            first = _before is None
            _before = _before or (soft, hard)
            start = used if first else soft  # blocks of other threads have theirs besides
            bounds = [x for x in _before if x != resource.RLIM_INFINITY]
            bound = min([int(min(start + SPARE + RESERVE + most, 2.0**62)), *bounds])
            resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
        _blocks += 1  # last: nothing that fails above leaves a block behind
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0 and _before is not None:
                resource.setrlimit(resource.RLIMIT_DATA, _before)
                _before = None


@contextmanager
def lifted() -> Iterator[None]:
    """Lift the memory limit of blocks in other threads while a process is started in the block.

    It would inherit the limit, and a browser crashes under it.
    """
    with _lock:
        if _before is None:
            yield
            return
        now = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, _before)
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, now)


def _data_in_use() -> int:
    """Return the private memory of this process [bytes], 0 where it is not known."""
    try:
        with open('/proc/self/statm', encoding='ascii') as file:
            return int(file.read().split()[5]) * os.sysconf('SC_PAGE_SIZE')
    except (OSError, ValueError, IndexError):
        return 0


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _TimeIsUp in this thread after some seconds."""
    if seconds > threading.TIMEOUT_MAX:
        yield
        return
    thread, ended = ctypes.c_ulong(threading.get_ident()), threading.Event()
    interrupted = threading.Event()
    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def stop() -> None:
        with _lock:
            if not ended.is_set():
                interrupted.set()
                interrupt(thread, ctypes.py_object(_TimeIsUp))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with _lock:
            ended.set()
        timer.cancel()
        if interrupted.is_set():
            # one that is due comes here; to withdraw it instead leaves a flag set in CPython 3.11,
            # with which all code is slow and profilers hang
            with suppress(_TimeIsUp):
                for _ in range(1000):
                    pass


# --- Files

KINDS = {
    stat.S_IFDIR: 'a folder', stat.S_IFCHR: 'a device', stat.S_IFBLK: 'a device',
    stat.S_IFIFO: 'a FIFO', stat.S_IFSOCK: 'a socket',
}  # fmt: skip


def regular_file(path: str | Path) -> Path:
    """Return the path of a regular file; links are followed, and nothing is opened.

    Raises:
        Unreadable: no such file, or a folder, device, FIFO or socket: those can wait or go on
            for ever.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError as error:
        raise Unreadable(f'cannot read {path}: No such file or directory') from error
    except (OSError, ValueError) as error:  # ValueError: a null character in its name
        reason = getattr(error, 'strerror', None) or str(error)
        raise Unreadable(f'cannot read {shown(str(path))}: {reason}') from error
    if kind != stat.S_IFREG:
        what = KINDS.get(kind, 'no file')
        raise Unreadable(f'cannot read {path}: it is {what}, expected a regular file')
    return Path(path)


def file_bytes(path: str | Path, share: float = 1.0) -> bytes:
    """Return the content of a regular file, at most this share of the limit of bytes.

    Raises:
        Unreadable: see `regular_file`; too large, or it cannot be read.
    """
    place, most = regular_file(path), int(min(share * limits().bytes, 2.0**62))
    try:
        if place.stat().st_size > most:
            raise beyond(path, f'{place.stat().st_size} bytes', 'bytes')
        with place.open('rb') as file:
            content = file.read(most + 1) if place.stat().st_size == 0 else file.read()
    except OSError as error:
        raise Unreadable(f'cannot read {path}: {error.strerror}') from error
    if len(content) > most:  # such as a file of the system, whose size is said to be 0
        raise beyond(path, 'its content', 'bytes')
    return content


def file_text(path: str | Path, share: float = 0.125) -> str:
    """Return the text of a regular file in UTF-8, a mark of the byte order left out.

    Raises:
        Unreadable: see `file_bytes`; not UTF-8.
    """
    try:
        return file_bytes(path, share).decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise Unreadable(f'cannot read {path}: it is not UTF-8 text') from error


# --- Texts with structure: XML, YAML, JSON


class BoundedTree(ElementTree.TreeBuilder):
    """Builds the tree of an XML text; counts its elements and levels."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place, self._most, self._count, self._depth = place, limits(), 0, 0

    def start(self, tag: Any, attrs: Any, /) -> Any:
        """Begin an element, or raise Unreadable."""
        self._count += 1 + len(attrs)
        self._depth += 1
        if self._count > self._most.entries:
            raise beyond(self.place, f'{self._count} elements and attributes', 'entries')
        if self._depth > self._most.depth:
            raise beyond(self.place, f'{self._depth} nested elements', 'depth')
        return super().start(tag, attrs)

    def end(self, tag: Any, /) -> Any:
        """End an element."""
        self._depth -= 1
        return super().end(tag)


def xml_root(text: bytes, tree: BoundedTree, place: str) -> ElementTree.Element:
    """Return the root element of an XML text.

    Raises:
        Unreadable: not well-formed, too many elements, too deep.
    """
    try:
        return ElementTree.fromstring(text, ElementTree.XMLParser(target=tree))
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        if isinstance(error, ContactSimError):
            raise
        raise Unreadable(f'{place} is not well-formed XML: {error}') from error


NODE = 1200
"""Bytes that a node of YAML takes while it is read."""
LONGEST_NUMBER = 400
"""Characters of a number in YAML or JSON: longer ones take long to convert."""


def yaml_value(path: str | Path) -> Any:
    """Return what a YAML file of plain values holds.

    Raises:
        Unreadable: see `file_text`, and `yaml_text_value`.
    """
    return yaml_text_value(file_text(path, 1.0 / 64.0), path)


def yaml_text_value(text: str, path: str | Path) -> Any:
    """Return what a YAML text of plain values holds; `path` says where it is from.

    Raises:
        Unreadable: no YAML, too many nodes with the aliases unfolded, too deep, or too long to
            read.
    """
    import yaml

    if len(text) > limits().bytes / 64.0:
        raise beyond(path, f'{len(text)} characters of YAML', 'bytes')
    loader = _yaml_loader(path)
    with reading(path):
        try:
            return yaml.load(text, loader)
        except Unreadable:
            raise
        except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError,
                AttributeError) as error:  # fmt: skip
            raise Unreadable(f'{path}: no YAML: {error}') from error


def _yaml_loader(path: str | Path) -> Any:
    """Return a class that loads a YAML text from now on, within the limits."""
    import yaml

    most = limits()
    end = time.monotonic() + most.seconds

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Counts the nodes that a value has once its aliases are unfolded."""

        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self.sizes: dict[str, float] = {}
            self.count, self.depth = 0.0, 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            """Compose one node, or raise Unreadable."""
            event = self.peek_event()
            if isinstance(event, yaml.AliasEvent):
                self.add(self.sizes.get(event.anchor, 1.0))
                return super().compose_node(parent, index)
            before = self.count
            self.depth += 1
            if self.depth > most.depth:
                raise beyond(path, f'{self.depth} nested levels of YAML', 'depth')
            if time.monotonic() > end:
                raise beyond(path, 'reading it takes longer', 'seconds')
            self.add(1.0)
            node = super().compose_node(parent, index)
            if event.anchor is not None:
                self.sizes[event.anchor] = self.count - before
            self.depth -= 1
            return node

        def add(self, nodes: float) -> None:
            """Count nodes."""
            self.count += nodes
            what = f'{self.count:g} nodes of YAML, aliases unfolded'
            if self.count > most.entries:
                raise beyond(path, what, 'entries')
            if self.count * NODE > most.bytes:
                raise beyond(path, f'{what}, of {NODE} bytes each', 'bytes')

        def construct_number(self, node: Any) -> Any:
            """Return a number of bounded length."""
            if len(node.value) > LONGEST_NUMBER:
                raise Unreadable(f'{path}: {shown(node.value)} is no number')
            whole = node.tag.endswith(':int')
            return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)

    for tag in ('int', 'float'):
        Loader.add_constructor(f'tag:yaml.org,2002:{tag}', Loader.construct_number)
    return Loader


_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def json_value(text: str, place: str) -> Any:
    """Return what a JSON text holds.

    Raises:
        Unreadable: no JSON, too long, too many values, too deep.
    """
    most = limits()
    if len(text) > most.bytes:
        raise beyond(place, f'{len(text)} characters', 'bytes')
    structure = _STRINGS.sub('', text)
    count = 1 + structure.count(',') + structure.count(':')
    if count > most.entries:
        raise beyond(place, f'{count} values', 'entries')
    marks = np.frombuffer(re.sub(r'[^\[\]{}]', '', structure).encode(), np.uint8)
    opened = np.where((marks == ord('[')) | (marks == ord('{')), 1, -1)
    if np.cumsum(opened).max(initial=0) > most.depth:
        raise beyond(place, f'{np.cumsum(opened).max()} nested levels', 'depth')
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f'{place} is damaged: no JSON: {error}') from error


# --- Arrays: .npy files, members of .npz archives, packed bytes

BLOCK = 1 << 20
"""Bytes that are read at once."""


def npy_file(path: str | Path) -> NDArray[Any]:
    """Return the array in a .npy file.

    Raises:
        Unreadable: see `regular_file`; no array of plain values, or another size than its header
            declares.
    """
    place = regular_file(path)
    try:
        with place.open('rb') as file:
            return npy_array(file, place.stat().st_size, str(path))
    except OSError as error:
        raise Unreadable(f'cannot read {path}: {error.strerror}') from error


def npy_array(stream: IO[bytes], size: int, place: str) -> NDArray[Any]:
    """Return the array in the bytes of a .npy file, `size` of them.

    Raises:
        Unreadable: no array of plain values, or another size than its header declares.
    """
    try:
        version = np.lib.format.read_magic(stream)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f'version {version} of .npy')
        shape, columns_first, dtype = readers[version](stream)
        if dtype.hasobject or any(length < 0 for length in shape):
            raise ValueError(f'{dtype} of shape {shown(shape)}')
        declared = math.prod(shape) * dtype.itemsize
        if declared > size:
            raise ValueError(f'{declared} bytes are declared, {size} are there')
        content = bytearray(declared)
        _fill(stream, content)
        array: NDArray[Any] = np.ndarray(math.prod(shape), dtype, content)
        return array.reshape(shape, order='F' if columns_first else 'C')
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # a damaged header raises anything, such as a TokenError
        raise Unreadable(f'{place}: NumPy cannot read it, it is damaged ({error!r})') from error


def _fill(stream: IO[bytes], content: bytearray) -> None:
    view, place = memoryview(content), 0
    while place < len(content):
        block = stream.read(min(BLOCK, len(content) - place))
        if not block:
            raise ValueError(f'it ends after {place} of {len(content)} bytes')
        view[place : place + len(block)] = block
        place += len(block)


def check_unpacked(place: str, packed: float, full: float) -> None:
    """Raise Unreadable where packed bytes unpack to more than the limits allow."""
    most = limits()
    if full > most.bytes:
        raise beyond(place, f'{full:g} bytes unpacked', 'bytes')
    if full > most.bytes / 16.0 and full > most.ratio * packed:
        raise beyond(place, f'unpacked it is {full / max(packed, 1.0):.0f} times larger', 'ratio')


def unpacked(place: str, packed: bytes, full: int | None = None, window: int = 15) -> bytes:
    """Return bytes packed by zlib.

    Args:
        place: for messages.
        packed: the bytes.
        full: size that is declared; None: none is.
        window: `wbits` of zlib.

    Raises:
        Unreadable: damaged, or more than the limits allow.
    """
    most, step = limits(), zlib.decompressobj(window)
    check_unpacked(place, len(packed), full or 0.0)
    largest = int(min(max(most.bytes / 16.0, most.ratio * len(packed)), most.bytes, 2.0**62))
    largest = largest if full is None else full
    try:
        content = step.decompress(packed, largest + 1)
    except zlib.error as error:
        raise Unreadable(f'{place} is damaged ({error})') from error
    if len(content) > largest:
        if full is None:
            check_unpacked(place, len(packed), len(content))
        raise Unreadable(f'{place} is damaged: more than the {full} bytes that are declared')
    if not step.eof:
        raise Unreadable(f'{place} is damaged: it ends in the middle')
    return content


def opened_zip(path: str | Path) -> zipfile.ZipFile:
    """Return an archive, opened, with a bounded number of members.

    Raises:
        Unreadable: see `regular_file`; too many members.
        zipfile.BadZipFile: no archive.
    """
    place, most = regular_file(path), limits()
    with reading(path):
        archive = zipfile.ZipFile(place)
    if len(archive.infolist()) > most.entries:
        archive.close()
        raise beyond(path, f'{len(archive.infolist())} members', 'entries')
    return archive


def zipped_array(archive: zipfile.ZipFile, name: str, place: str) -> NDArray[Any]:
    """Return the array in a member of a .npz archive.

    Raises:
        KeyError: no such member.
        Unreadable: damaged, packed in another way than NumPy does, or beyond a limit.
    """
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable(f'{place}: packed by method {member.compress_type}, expected DEFLATE')
    check_unpacked(place, member.compress_size, member.file_size)
    try:
        with archive.open(member) as stream:
            array = npy_array(stream, member.file_size, place)
            while stream.read(BLOCK):  # to its checksum
                pass
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # whatever zipfile and zlib raise at damaged members
        raise Unreadable(f'{place}: it is damaged ({error!r})') from error
    return array


def npz_file(path: str | Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of a .npz file by name, together at most the limit of bytes.

    Raises:
        Unreadable: see `zipped_array`; no .npz file.
    """
    try:
        archive = opened_zip(path)
    except Unreadable:
        raise
    except Exception as error:  # whatever zipfile raises at a damaged table of contents
        raise Unreadable(f'{path}: no .npz file of arrays ({error!r})') from error
    with archive:
        total = sum(member.file_size for member in archive.infolist())
        if total > limits().bytes:
            raise beyond(path, f'{total} bytes unpacked', 'bytes')
        return {
            name.removesuffix('.npy'): zipped_array(archive, name, f'{path}: {shown(name)}')
            for name in archive.namelist()
        }


# --- Images and meshes

IMAGES = ('PNG', 'JPEG', 'TIFF', 'BMP', 'GIF', 'PPM', 'TGA', 'WEBP')
"""Formats of images that are read, by their names in Pillow: others run programs."""
PIXEL = 16
"""Bytes that a pixel takes while an image is read."""


def image_file(path: str | Path) -> Any:
    """Return an image of Pillow, its pixels in memory.

    Raises:
        Unreadable: see `regular_file`; no image, or too many pixels.
    """
    from PIL import Image  # slow import

    with reading(path):
        try:
            with Image.open(regular_file(path), formats=IMAGES) as image:
                width, height = image.size
                if width * height * PIXEL > limits().bytes:
                    raise beyond(path, f'{width} x {height} pixels', 'bytes')
                image.load()
                return image.copy()
        except (Unreadable, MemoryError):
            raise
        except Exception as error:  # each format has its own errors
            raise Unreadable(f'{path}: expected an image: {error}') from error


MESH_SHARE = 0.125
"""Share of the limit of bytes that the file of a mesh may have: it takes more as triangles."""
MESHES = ('stl', 'obj', 'ply', 'gltf', 'glb', 'off', 'dae', '3mf')
"""Kinds of meshes that are read."""
_REFERENCES = {
    'obj': re.compile(rb'^[ \t]*mtllib[ \t]+([^\r\n]+)', re.MULTILINE),
    'gltf': re.compile(rb'"uri"\s*:\s*"([^"]{0,4096})"'),
}


def mesh_file(path: str | Path) -> Path:
    """Return the path of a mesh, whose file and those that it names are regular and not too large.

    Raises:
        Unreadable: they are not.
    """
    place = regular_file(path)
    size, most = place.stat().st_size, MESH_SHARE * limits().bytes
    if size > most:
        raise beyond(
            path, f'a mesh of {size} bytes takes {1.0 / MESH_SHARE:g} times as much', 'bytes'
        )
    pattern = _REFERENCES.get(place.suffix.lower().removeprefix('.'))
    for name in pattern.findall(file_bytes(place)) if pattern is not None else ():
        text = name.decode(errors='replace').strip()
        other = place.parent / text
        named = not text.startswith('data:') and _exists(other)
        if named and regular_file(other).stat().st_size > most:
            raise beyond(other, f'{other.stat().st_size} bytes', 'bytes')
    return place


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


class _Beside:
    """Finds the files that a mesh names, beside it, for trimesh."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> bytes:
        """Return the content of a file: materials and buffers, no images."""
        if not str(name).lower().endswith(('.mtl', '.bin')):
            raise FileNotFoundError(name)
        try:
            return file_bytes(self._folder / str(name).strip(), MESH_SHARE)
        except Unreadable as error:
            raise FileNotFoundError(str(error)) from error

    def keys(self) -> list[str]:
        """Return no names: none are listed."""
        return []

    def namespaced(self, namespace: str) -> _Beside:
        """Return itself: names are relative to the mesh."""
        return self

    def write(self, name: str, data: Any) -> None:
        """Write nothing."""


def mesh_scene(path: str | Path, **options: Any) -> Any:
    """Return a trimesh.Scene of the meshes in a file.

    Args:
        path: the file.
        options: of `trimesh.load_scene`.

    Raises:
        Unreadable: see `mesh_file`; a kind of file that is not read.
        ImportError: trimesh is missing.
        Exception: whatever trimesh raises.
    """
    try:
        import trimesh
    except ImportError as error:
        raise ImportError(f'{path}: reading a mesh needs trimesh: pip install trimesh') from error

    place = mesh_file(path)
    ending = place.suffix.lower().removeprefix('.')
    if ending not in MESHES:
        raise Unreadable(
            f'{path}: trimesh cannot read it: ending {place.suffix!r}, expected one of '
            f'{", ".join(MESHES)}'
        )
    with reading(path):
        content = io.BytesIO(file_bytes(place, MESH_SHARE))
        resolver: Any = _Beside(place.parent)
        return trimesh.load_scene(content, file_type=ending, resolver=resolver, **options)
