"""Export a recording to MCAP, CSV and Parquet: its steps are replayed and written."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from tqdm import tqdm

from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import InvalidInput, shown
from contact_sim.parameters import declared_parameters
from contact_sim.replay._archive import StateHash, understood
from contact_sim.replay._header import FORMAT, ground_of
from contact_sim.replay._mcap import McapOutput
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import ReplayedStep, Replayer
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import parts_of
from contact_sim.simulation._report import ContactReport, StepReport
from contact_sim.step._workspace import contact_names
from contact_sim.topics._table import (
    PublishRateParameters,
    coordinate_units,
    joint_units,
    steps_between,
    velocity_units,
)

# --- Columns of a table: the numbers of a step, with their units.

AXES = 'xyz'
RESIDUALS = {
    'signorini': 'J', 'cone': 'N s', 'dissipation': 'J', 'ncp': 'N s', 'dual': 'm/s',
    'interval': 'N s', 'dissipated': 'J', 'bias_work': 'J', 'penetration': 'm',
    'force_at_distance': 'N s', 'slip': 'm/s', 'momentum': 'N s', 'energy_change': 'J',
    'energy_actuation': 'J', 'energy_damping': 'J', 'energy_contact': 'J',
    'energy_joint_friction': 'J', 'energy_correction': 'J', 'energy_constraints': 'J',
}  # fmt: skip
"""Units of the residuals, in the order of `Residuals`."""
PER_CONTACT: dict[str, tuple[str, int]] = {
    'force': ('N', 3), 'normal_force': ('N', 1), 'gap': ('m', 1), 'velocity': ('m/s', 3),
    'slip_speed': ('m/s', 1), 'mode': ('-', 1),
}  # fmt: skip
"""Fields of a ContactReport: unit, and numbers per contact."""


def grounds_of(recording: Recording) -> list[Terrain]:
    """Return all terrains of a recording in order.

    Raises:
        RecordingError: an invalid terrain.
    """
    with understood(f'{recording.path}: the ground'):
        changes = [event['ground'] for event in recording.events if event['kind'] == 'terrain']
        return [
            ground_of(recording.header),
            *(ground_of({'format': FORMAT, 'ground': ground}) for ground in changes),
        ]


class Columns:
    """Names of columns, each `name [unit]`, and the numbers of a step.

    Time, q, v, joint efforts after saturation, every contact with the ground, energy, solver and
    residuals. Of several robots each name begins with that of its robot. Contacts that the terrain
    of a step does not have are NaN.

    Args:
        robot: robot of the run.
        grounds: all terrains of the run.
    """

    def __init__(self, robot: RobotModel, grounds: list[Terrain]) -> None:
        names = [name for ground in grounds for name in contact_names(robot, ground)]
        self._contacts = {name: row for row, name in enumerate(dict.fromkeys(names))}
        self._parts: list[tuple[list[str], Callable[[StepReport], Array]]] = [
            (['time [s]'], lambda report: np.array([report.time])),
            *_state(robot),
            (self._contact_names(), self._of_contacts),
            (['energy.kinetic [J]', 'energy.potential [J]'], _energies),
            (['solver.status [-]', 'solver.iterations [-]', 'solver.residual [-]'],
             lambda report: report.record.solver),
            ([f'residual.{name} [{unit}]' for name, unit in RESIDUALS.items()],
             lambda report: np.array(report.residuals)),
        ]  # fmt: skip
        self.names = [name for names, _ in self._parts for name in names]
        """In the order of the numbers."""

    def of(self, report: StepReport) -> Array:
        """Return the numbers of a step, shape (len(names),)."""
        return np.concatenate([numbers(report) for _, numbers in self._parts])

    def _contact_names(self) -> list[str]:
        return [
            f'contact.{contact}.{name}{suffix} [{unit}]'
            for contact in self._contacts
            for name, (unit, count) in PER_CONTACT.items()
            for suffix in (('.x', '.y', '.z') if count == 3 else ('',))
        ]

    def _of_contacts(self, report: StepReport) -> Array:
        here = report.contacts
        table = _contact_table(here)
        if here.names == tuple(self._contacts):
            return table.ravel()
        filled = np.full((len(self._contacts), table.shape[1]), np.nan)
        filled[[self._contacts[name] for name in here.names]] = table
        return filled.ravel()


def _contact_table(contacts: ContactReport) -> Array:
    """Return the numbers of PER_CONTACT, one row for each contact."""
    count = len(contacts.names)
    return np.hstack([
        np.asarray(getattr(contacts, name), dtype=float).reshape(count, size)
        for name, (_, size) in PER_CONTACT.items()
    ])  # fmt: skip


def _state(robot: RobotModel) -> list[tuple[list[str], Callable[[StepReport], Array]]]:
    """Return the columns of q, v and efforts."""
    q, v, effort = [], [], []
    for part in parts_of(robot):
        q += [
            f'q.{part.qualified_name(name)} [{unit}]'
            for name, unit in coordinate_units(part.robot)
        ]
        v += [
            f'v.{part.qualified_name(name)} [{unit}]' for name, unit in velocity_units(part.robot)
        ]
        units = ['N' if unit == 'm' else 'N m' for unit in joint_units(part.robot)]
        joints = zip(part.robot.joint_names, units, strict=True)
        effort += [f'effort.{part.qualified_name(name)} [{unit}]' for name, unit in joints]
    return [
        (q, lambda report: report.q), (v, lambda report: report.v),
        (effort, lambda report: report.effort),
    ]  # fmt: skip


def _energies(report: StepReport) -> Array:
    """Return kinetic and potential energy [J], U = −g · Σ m c."""
    kinetic, *moment = report.record.energy
    return np.array([kinetic, -report.record.gravity @ moment])


# --- Tables.

try:
    import pyarrow as arrow
    from pyarrow import parquet
except ImportError:  # an extra
    arrow = None

ROWS = 4096
"""Rows that Parquet writes at once."""


class TableOutput(ABC):
    """Writes the numbers of every so many steps as rows of a table.

    Args:
        columns: names and numbers.
        period: steps between two rows.
        time_step: [s].
    """

    def __init__(self, columns: Columns, period: int, time_step: float) -> None:
        self._columns, self._period, self._time_step = columns, period, time_step

    def add(self, report: StepReport) -> None:
        """Write a row if it is due."""
        if round(report.time / self._time_step) % self._period == 0:
            self.add_row(self._columns.of(report))

    @abstractmethod
    def add_row(self, row: Array) -> None:
        """Write the numbers of a row, shape (columns,)."""

    @abstractmethod
    def finish(self) -> None:
        """Write the rest of the table."""


class CsvTable(TableOutput):
    """Comma-separated values, RFC 4180, numbers with all their digits."""

    def __init__(self, file: BinaryIO, columns: Columns, period: int, time_step: float) -> None:
        super().__init__(columns, period, time_step)
        self._text = io.TextIOWrapper(file, 'utf-8', newline='', write_through=True)
        self._writer = csv.writer(self._text)
        self._writer.writerow(columns.names)

    def add_row(self, row: Array) -> None:
        """Write the numbers of a row, shape (columns,)."""
        self._writer.writerow(row.tolist())

    def finish(self) -> None:
        """Write the rest of the table."""
        self._text.detach()


class ParquetTable(TableOutput):
    """Parquet, columns of float64.

    Raises:
        InvalidInput: the package pyarrow is missing.
    """

    def __init__(self, file: BinaryIO, columns: Columns, period: int, time_step: float) -> None:
        super().__init__(columns, period, time_step)
        if arrow is None:
            raise InvalidInput(
                "Parquet needs the package pyarrow: pip install 'contact_sim[export]'"
            )
        self._schema = arrow.schema([(name, arrow.float64()) for name in columns.names])
        self._writer = parquet.ParquetWriter(file, self._schema)
        self._rows = np.zeros((ROWS, len(columns.names)))
        self._count = 0

    def add_row(self, row: Array) -> None:
        """Write the numbers of a row, shape (columns,)."""
        self._rows[self._count] = row
        self._count += 1
        if self._count == ROWS:
            self._flush()

    def finish(self) -> None:
        """Write the rest of the table."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Write no more; otherwise the writer would end its file when it is deleted."""
        self._writer.is_open = False

    def _flush(self) -> None:
        columns = [arrow.array(column) for column in self._rows[: self._count].T]
        self._writer.write_table(arrow.Table.from_arrays(columns, schema=self._schema))
        self._count = 0


# --- Files that appear only when they are complete.


@contextlib.contextmanager
def new_file(path: Path, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file that is moved to `path` at the end, or deleted on an error.

    Args:
        path: of the complete file.
        overwrite: replace an existing file.

    Raises:
        InvalidInput: it cannot be written, the disk is full, or it exists.
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
    """Turn an error of the system into one that names the file.

    Raises:
        InvalidInput: the file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise InvalidInput(f'cannot write {path}: {error.strerror or error}') from error


def check_target(path: Path, overwrite: bool) -> None:
    """Raise InvalidInput if a file must not be written at `path`."""
    if not os.path.lexists(path):
        return
    if not path.is_file():
        raise InvalidInput(f'cannot write {path}: it is there, and no regular file')
    if not overwrite:
        raise InvalidInput(f'{path} is there already: give another name, or --overwrite')


# --- The export.

NOT_RECORDED = ('shadow',)
"""Fields of `publish_rate` whose topics a recording does not determine."""
RATES: tuple[str, ...] = tuple(
    one.name
    for one in declared_parameters(PublishRateParameters)  # type: ignore[arg-type]
    if one.name not in NOT_RECORDED
)
"""Fields of `publish_rate` with a rate of their own in an MCAP file."""
FORMATS = 'mcap', 'csv', 'parquet'
PATIENCE = 2.0
"""Wall time after which a progress bar appears on a terminal [s]."""


@checked_fields
@dataclass(frozen=True)
class Targets:
    """Files to write, and how often."""

    mcap: Path | None = None
    csv: Path | None = None
    parquet: Path | None = None
    rate: float | None = None
    """Of everything [Hz]; None: every step."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Of some of RATES [Hz]; 0: not at all."""
    ground_truth: bool = False
    """Write ~/ground_truth to MCAP, too."""
    overwrite: bool = False
    """Replace existing files."""

    @property
    def paths(self) -> dict[str, Path]:
        """The files by format."""
        named = ((name, getattr(self, name)) for name in FORMATS)
        return {name: Path(path) for name, path in named if path is not None}


@dataclass(frozen=True)
class Exported:
    """Result of an export."""

    steps: int
    """Number of finite steps."""
    first_difference: int | None
    """First step whose state is not the recorded one; None if none is, or under another model."""
    damage: str
    """Reason why the recording could not be read to its end, '' if it could."""


@checked
def export(
    recording: Recording, targets: Targets, contact_model: str | ContactModel | None = None
) -> Exported:
    """Replay a recording and write its steps into files.

    Steps that were not finite are left out. Files appear when all of them are complete.

    Args:
        recording: the recording.
        targets: files and rates.
        contact_model: another contact model, under which the same efforts act; None: as recorded.

    Raises:
        InvalidInput: a file that cannot be written or exists, a rate that does not divide the step
            rate, a package that is missing.
        RecordingError: a recording that cannot be repeated.
    """
    for path in targets.paths.values():
        _check(path, targets, recording)
    replayer = Replayer(recording, contact_model)
    periods = periods_of(targets, replayer.sim.time_step)
    with contextlib.ExitStack() as files:
        outputs = {
            path: _output(name, files.enter_context(new_file(path, targets.overwrite)), targets,
                          replayer, recording, periods)
            for name, path in targets.paths.items()
        }  # fmt: skip
        for output in outputs.values():
            if isinstance(output, ParquetTable):
                files.callback(output.abandon)
        steps, first_difference = 0, None
        compare = contact_model is None
        steps_with_bar = tqdm(
            replayer.steps(), total=recording.steps, unit=' steps', leave=False, disable=None,
            delay=PATIENCE,
        )  # fmt: skip
        for step in steps_with_bar:
            if first_difference is None and compare and _differs(step, replayer):
                first_difference = step.number
            if step.report is not None:
                steps += 1
                _write(outputs, step.report)
        _write(outputs, None)
    return Exported(steps, first_difference, recording.damage)


def _check(path: Path, targets: Targets, recording: Recording) -> None:
    check_target(path, targets.overwrite)
    if os.path.exists(path) and path.samefile(recording.path):
        raise InvalidInput(f'cannot write {path}: it is the recording itself')
    if list(targets.paths.values()).count(path) > 1:
        raise InvalidInput(f'cannot write {path}: it is named for two formats')


def _output(
    name: str, file: Any, targets: Targets, replayer: Replayer, recording: Recording,
    periods: Mapping[str, int],
) -> McapOutput | TableOutput:  # fmt: skip
    if name == 'mcap':
        own = {kind: periods[kind] for kind in RATES}
        return McapOutput(file, recording, replayer, own, targets.ground_truth)
    columns = Columns(replayer.sim.robot, grounds_of(recording))
    table = CsvTable if name == 'csv' else ParquetTable
    return table(file, columns, periods[''], replayer.sim.time_step)


def _write(outputs: Mapping[Path, McapOutput | TableOutput], report: StepReport | None) -> None:
    """Write a step into all files, or their end (None).

    Raises:
        InvalidInput: one of them cannot be written.
    """
    for path, output in outputs.items():
        with writing(path):
            if report is None:
                output.finish()
            else:
                output.add(report)


def periods_of(targets: Targets, time_step: float) -> dict[str, int]:
    """Return the steps between two messages of each of RATES, and between two rows ('').

    Raises:
        InvalidInput: a rate that does not divide the step rate, or of something unknown.
    """
    for name in targets.rates:
        if name not in RATES:
            known = ', '.join(RATES)
            raise InvalidInput(f'rate of {shown(name)}: expected one of {known}')
    common = 1 if targets.rate is None else steps_between('rate', targets.rate, time_step)
    if common == 0:
        raise InvalidInput('rate = 0 Hz: expected more; 0 is for single topics, as markers=0')
    own = {
        name: steps_between(f'rate of {name}', rate, time_step)
        for name, rate in targets.rates.items()
    }
    return {'': common, **dict.fromkeys(RATES, common), **own}


def _differs(step: ReplayedStep, replayer: Replayer) -> bool:
    """Return whether a step did not reach the recorded state."""
    if (step.report is None) != step.failed_then:
        return True
    if step.recorded_hash is None:
        return False
    return StateHash(replayer.sim.sizes)(replayer.sim.snapshot().buffer) != step.recorded_hash


def parsed_rates(texts: Iterable[str]) -> tuple[float | None, dict[str, float]]:
    """Return the rate of everything and those of single topics, from texts like markers=25.

    Raises:
        InvalidInput: a text of another form.
    """
    common, rates = None, {}
    for text in texts:
        name, equals, number = text.rpartition('=')
        try:
            rate = float(number)
        except ValueError:
            rate = np.nan
        if not (np.isfinite(rate) and rate >= 0.0 and bool(name) == bool(equals)):
            raise InvalidInput(
                f'rate {shown(text)}: expected a number of Hz, or name=number, as markers=25'
            )
        if name:
            rates[name] = rate
        else:
            common = rate
    return common, rates
