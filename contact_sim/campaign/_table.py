"""Rows of trials in a folder of Parquet files.

    folder/part-000000.parquet, part-000001.parquet, ...   PART rows each, the last one fewer

A part is written anew, as a whole, whenever rows are added to it, and takes its name when it is
complete: a reader sees whole files only, and a killed process loses no row that was added. Every
Parquet reader takes the folder as one table. Of rows of the same trial the last one counts.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from contact_sim import _reading
from contact_sim._validation import checked
from contact_sim.campaign._measures import RESULTS
from contact_sim.campaign._trial import Trial
from contact_sim.errors import InvalidInput, UnknownName

PART = 256
"""Rows of one part: it is written anew for every row, which takes some milliseconds."""
MARK, VERSION = b'contact_sim.campaign', b'2'
"""Key of the format in the metadata of a file, and its value."""
ORIGIN = ('trial', 'source', 'versions')
COLUMNS: dict[str, type] = {
    'trial': str,
    **{name: type(value) for name, value in {**Trial('hold').as_row(), **RESULTS}.items()},
}
"""Name and type of every column."""


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InvalidInput(
            'a campaign needs pyarrow and joblib: pip install contact_sim[verdict]'
        ) from error
    pyarrow.allocate_buffer(1)  # the first one reserves 1 GiB: before memory is limited
    return pyarrow


def _schema() -> Any:
    pa = _pyarrow()
    kinds = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    return pa.schema(
        [(name, kinds[kind]) for name, kind in COLUMNS.items()], metadata={MARK: VERSION}
    )


def parts_of(folder: Path) -> list[Path]:
    """Return the files of a table in order.

    Raises:
        InvalidInput: a file in the place of the folder.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(
            f'{folder}: this is a file, expected a folder of Parquet files of a campaign'
        )
    return sorted(folder.glob('*.parquet'))


def checked_part(path: Path, columns: Sequence[str] | None = None) -> Any:
    """Return a file as a pyarrow table.

    Raises:
        InvalidInput: no Parquet, not of a campaign, of another version, or with other columns.
    """
    pa, names = _pyarrow(), list(columns or COLUMNS)
    _reading.regular_file(path)
    try:
        with _reading.reading(path):
            return _checked_part(path, names)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f'{path}: cannot be read as Parquet: {error}') from error


def _checked_part(path: Path, names: list[str]) -> Any:
    pa, most = _pyarrow(), _reading.limits()
    with pa.parquet.ParquetFile(path) as file:
        metadata = file.metadata
        if metadata.num_rows > most.entries:
            raise _reading.beyond(path, f'{metadata.num_rows} rows', 'entries')
        groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
        packed, full = path.stat().st_size, sum(group.total_byte_size for group in groups)
        _reading.check_unpacked(str(path), packed, full)
        # equal values take no room in the file; what Arrow has reserved is under no limit
        if 8.0 * metadata.num_rows * len(names) > most.bytes:
            what = f'{metadata.num_rows} rows of {len(names)} columns'
            raise _reading.beyond(path, what, 'bytes')
        schema = file.schema_arrow
        version = (schema.metadata or {}).get(MARK)
        if version is None:
            raise InvalidInput(f'{path}: this Parquet file is not of a campaign')
        if version != VERSION:
            raise InvalidInput(
                f'{path}: rows of format {version.decode(errors="replace")}, this version reads '
                f'{VERSION.decode()}: run the campaign into a new folder'
            )
        for field in _schema():
            if field.name not in schema.names or schema.field(field.name) != field:
                raise InvalidInput(f'{path}: column {field.name!r} is missing or of another type')
        return file.read(columns=names, use_threads=False)


@checked
def read_table(folder: str | Path, columns: Sequence[str] | None = None) -> Any:
    """Return all rows as a pyarrow table, sorted by trial; a campaign may still be running.

    Args:
        folder: of a campaign.
        columns: names of some columns besides `trial`; None: all.

    Raises:
        InvalidInput: no such folder, or files that are not of a campaign.
        UnknownName: a column that does not exist.
    """
    chosen = list(COLUMNS if columns is None else dict.fromkeys(['trial', *columns]))
    for name in chosen:
        if name not in COLUMNS:
            raise UnknownName('column', name, COLUMNS)
    pa, place = _pyarrow(), Path(folder)
    parts = parts_of(place)
    if not place.exists():
        raise InvalidInput(f'{folder}: no such folder')
    with _reading.reading(folder):
        tables, rows = [], 0
        for path in parts:
            tables.append(checked_part(path, chosen).select(chosen))
            rows += tables[-1].num_rows
            if rows > _reading.limits().entries:
                raise _reading.beyond(folder, f'{rows} rows', 'entries')
    table = pa.concat_tables([_schema().empty_table().select(chosen), *tables])
    last = {trial: row for row, trial in enumerate(table['trial'].to_pylist())}
    return table.take(pa.array([last[trial] for trial in sorted(last)], pa.int64()))


@checked
def read_rows(folder: str | Path, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return all rows as dictionaries, sorted by trial; see `read_table`."""
    table = read_table(folder, columns)
    with _reading.reading(folder):
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows


class TableWriter:
    """Adds rows to a folder, which it locks; close it, or use it as a context manager.

    Attributes:
        done: trials that have a row, with its source and versions.

    Raises:
        InvalidInput: a folder that cannot be written, that another process writes, or whose files
            are not of a campaign.
    """

    def __init__(self, folder: Path) -> None:
        parts = parts_of(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / '.lock').open('w')
        except OSError as error:
            raise InvalidInput(f'cannot write {folder}: {error.strerror}') from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise InvalidInput(f'{folder}: another campaign is writing there now') from error
        try:
            self.done: dict[str, tuple[str, str]] = {}
            for path in parts:
                columns = checked_part(path, ORIGIN).to_pydict()
                trials, *origins = (columns[name] for name in ORIGIN)
                self.done |= dict(zip(trials, zip(*origins, strict=True), strict=True))
        except InvalidInput:
            self._lock.close()
            raise
        self._folder, self._open = folder, list[dict[str, Any]]()
        self._number = 1 + max((_number(path) for path in parts), default=-1)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows with their column `trial`; when this returns they are in the folder."""
        pa = _pyarrow()
        new = [{name: row[name] for name in COLUMNS} for row in rows]
        self._open += new
        self.done |= {row['trial']: (row['source'], row['versions']) for row in new}
        name = f'part-{self._number:06d}.parquet'
        hidden = self._folder / f'.{name}.writing'
        table = pa.Table.from_pylist(self._open, schema=_schema())
        try:
            pa.parquet.write_table(table, hidden)
            os.replace(hidden, self._folder / name)
        except OSError as error:
            raise InvalidInput(f'cannot write {self._folder}: {error}') from error
        if len(self._open) >= PART:
            self._open, self._number = [], self._number + 1

    def close(self) -> None:
        """Let other processes write."""
        self._lock.close()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _number(path: Path) -> int:
    with suppress(ValueError):
        return int(path.stem.rpartition('-')[2])
    return -1


def without_wall(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without wall times, NaN as text: equal runs have equal ones."""
    return [{name: repr(value) for name, value in row.items() if name != 'wall'} for row in rows]
