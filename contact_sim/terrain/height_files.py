"""Heights from files: arrays of NumPy and grey images."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]

GREY_16_BIT = ('I;16', 'I;16B', 'I;16L', 'I;16N', 'I')
"""Pillow's names; older ones read 16 bits into 32."""


def heights_from_file(path: Path, vertical_scale: float | None, base: float) -> Array:
    """Return base + vertical_scale · value of a .npy file or an image [m], shape (nx, ny).

    Raises:
        InvalidInput: no such file, not readable, of the wrong kind, no vertical_scale where values
            are no metres.
    """
    if not path.is_file():
        raise InvalidInput(f'{path}: there is no such file')
    values = _array(path) if path.suffix == '.npy' else _image(path)
    if vertical_scale is None and values.dtype.kind != 'f':
        raise InvalidInput(
            f'{path}: vertical_scale is missing: metres per unit of values in {values.dtype}'
        )
    return base + (1.0 if vertical_scale is None else vertical_scale) * values.astype(float)


def _array(path: Path) -> NDArray:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(f'{path}: NumPy cannot read it: {error}') from error
    if values.dtype.kind not in 'fiu':
        raise InvalidInput(f'{path}: {values.dtype} values: expected numbers')
    return np.asarray(values)


def _image(path: Path) -> NDArray:
    """Return the pixels, x to the right and y up."""
    from PIL import Image, UnidentifiedImageError  # slow to import

    try:
        with Image.open(path) as image:
            mode, pixels = image.mode, np.asarray(image)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise InvalidInput(f'{path}: expected a .npy file or an image: {error}') from error
    if mode == 'L':
        warnings.warn(
            f'{path}: 8 bits per pixel: heights in steps of 1/255 of the range; 16 bits are '
            'smooth ground',
            stacklevel=4,
        )
    elif mode not in GREY_16_BIT:
        raise InvalidInput(f'{path}: an image of mode {mode}: expected grey, 16 bits per pixel')
    return pixels[::-1].T
