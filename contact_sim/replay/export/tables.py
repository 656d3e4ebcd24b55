"""Tables of numbers: CSV and Parquet, written row by row."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput

try:
    import pyarrow as arrow
    from pyarrow import parquet
except ImportError:  # an extra
    arrow = None

Array = NDArray[np.float64]
ROWS = 4096
"""Rows that are written at once."""


class Table(Protocol):
    """A table that takes rows."""

    def add(self, row: Array) -> None:
        """Take the numbers of a row, shape (columns,)."""

    def finish(self) -> None:
        """Write what is left."""

    def abandon(self) -> None:
        """Write no more, whatever is missing."""


class CsvTable:
    """Comma-separated values, RFC 4180, numbers with all their digits.

    Args:
        file: opened for writing.
        names: of the columns.
    """

    def __init__(self, file: BinaryIO, names: list[str]) -> None:
        self._text = io.TextIOWrapper(file, 'utf-8', newline='', write_through=True)
        self._writer = csv.writer(self._text)
        self._writer.writerow(names)

    def add(self, row: Array) -> None:
        """Take the numbers of a row, shape (columns,)."""
        self._writer.writerow(row.tolist())

    def finish(self) -> None:
        """Write what is left."""
        self._text.detach()

    def abandon(self) -> None:
        """Write no more, whatever is missing."""


class ParquetTable:
    """Parquet, columns of float64.

    Args:
        file: opened for writing.
        names: of the columns.

    Raises:
        InvalidInput: the package pyarrow is missing.
    """

    def __init__(self, file: BinaryIO, names: list[str]) -> None:
        if arrow is None:
            raise InvalidInput(
                "Parquet needs the package pyarrow: pip install 'contact_sim[export]'"
            )
        self._schema = arrow.schema([(name, arrow.float64()) for name in names])
        self._writer = parquet.ParquetWriter(file, self._schema)
        self._rows = np.zeros((ROWS, len(names)))
        self._count = 0

    def add(self, row: Array) -> None:
        """Take the numbers of a row, shape (columns,)."""
        self._rows[self._count] = row
        self._count += 1
        if self._count == ROWS:
            self._flush()

    def finish(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Write no more, whatever is missing; without it the writer ends its file when it goes."""
        self._writer.is_open = False

    def _flush(self) -> None:
        columns = [arrow.array(column) for column in self._rows[: self._count].T]
        self._writer.write_table(arrow.Table.from_arrays(columns, schema=self._schema))
        self._count = 0
