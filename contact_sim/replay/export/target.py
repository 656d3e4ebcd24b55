"""A file that appears where it belongs only when it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from contact_sim.errors import InvalidInput


@contextlib.contextmanager
def new_file(path: Path, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place at the end; on an error it goes away.

    Args:
        path: where the file shall be.
        overwrite: replace one that is there.

    Raises:
        InvalidInput: it cannot be written, the disk is full, or it is there already.
    """
    check_target(path, overwrite)
    beside = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        with writing(path):
            with beside.open('xb') as file:
                yield file
            os.replace(beside, path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of which file it is that writing fails.

    Raises:
        InvalidInput: instead of what the system raises.
    """
    try:
        yield
    except OSError as error:
        raise InvalidInput(f'cannot write {path}: {error.strerror or error}') from error


def check_target(path: Path, overwrite: bool) -> None:
    """Raise InvalidInput where a file must not take the place of what is there."""
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise InvalidInput(f'cannot write {path}: it is there, and no regular file')
    if not overwrite:
        raise InvalidInput(f'{path} is there already: give another name, or --overwrite')
