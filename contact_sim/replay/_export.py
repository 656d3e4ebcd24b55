"""Export a recording to MCAP, CSV and Parquet: its steps are replayed and written."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from tqdm import tqdm

from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import InvalidInput, shown
from contact_sim.parameters import declared_parameters
from contact_sim.replay._format import FORMAT, ground_of, understood
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Replayer
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._trajectory import state_columns
from contact_sim.step._problem import STATUSES
from contact_sim.step._workspace import contact_names
from contact_sim.topics._messages import Channel, Step, diagnostics, schema_text
from contact_sim.topics._robot_topics import recorded_settings
from contact_sim.topics._table import (
    DIAGNOSTICS,
    GRID_MAP,
    NODE,
    PublishRateParameters,
    Topic,
    absolute,
    nanoseconds,
    steps_between,
)
from contact_sim.topics._world_topics import OK, WARN, SimulationTopics, status_counts, troubles

try:
    import pyarrow as arrow
    from pyarrow import parquet
except ImportError:  # an extra
    arrow = None
try:
    import mcap.writer as mcap_writer
except ImportError:  # an extra
    mcap_writer = None  # type: ignore[assignment]

# --- Columns of a table: the numbers of a step, with their units.

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


class Columns:
    """Names of columns, each `name [unit]`, and the numbers of a step, in the same order.

    Joint efforts are after saturation. Of several robots each name begins with that of its robot.
    Contacts that the terrain of a step does not have are NaN.
    """

    def __init__(self, robot: RobotModel, grounds: list[Terrain]) -> None:
        contacts = [name for ground in grounds for name in contact_names(robot, ground)]
        self._contacts = {name: row for row, name in enumerate(dict.fromkeys(contacts))}
        per_contact = [
            f'contact.{contact}.{name}{suffix} [{unit}]'
            for contact in self._contacts
            for name, (unit, count) in PER_CONTACT.items()
            for suffix in (('.x', '.y', '.z') if count == 3 else ('',))
        ]
        self._parts: list[tuple[list[str], Callable[[StepReport], Array]]] = [
            (['time [s]'], lambda report: np.array([report.time])),
            *_state(robot),
            (per_contact, self._of_contacts),
            (['energy.kinetic [J]', 'energy.potential [J]'],
             lambda report: _energies(report, robot)),
            (['solver.status [-]', 'solver.iterations [-]', 'solver.residual [-]'],
             lambda report: report.record.solver),
            ([f'residual.{name} [{unit}]' for name, unit in RESIDUALS.items()],
             lambda report: np.array(report.residuals)),
        ]  # fmt: skip
        self.names = [name for names, _ in self._parts for name in names]

    def of(self, report: StepReport) -> Array:
        """Return the numbers of a step, shape (len(names),)."""
        return np.concatenate([numbers(report) for _, numbers in self._parts])

    def _of_contacts(self, report: StepReport) -> Array:
        contacts = report.contacts
        table = np.hstack([
            np.asarray(getattr(contacts, name), dtype=float).reshape(len(contacts.names), size)
            for name, (_, size) in PER_CONTACT.items()
        ])  # fmt: skip
        if contacts.names == tuple(self._contacts):
            return table.ravel()
        filled = np.full((len(self._contacts), table.shape[1]), np.nan)
        filled[[self._contacts[name] for name in contacts.names]] = table
        return filled.ravel()


def _state(robot: RobotModel) -> list[tuple[list[str], Callable[[StepReport], Array]]]:
    """Return the columns of q, v and efforts."""
    q, v, effort = state_columns(robot)
    return [
        (q, lambda report: report.q), (v, lambda report: report.v),
        (effort, lambda report: report.effort),
    ]  # fmt: skip


def _energies(report: StepReport, robot: RobotModel) -> Array:
    """Return kinetic and potential energy [J], U = −g · Σ m c + ½ Σ k (q − q₀)²."""
    kinetic, *moment = report.record.energy
    return np.array(
        [kinetic, robot.spring_energy(report.record.q) - report.record.gravity @ moment]
    )


# --- Tables.

ROWS = 4096
"""Rows that Parquet writes at once."""


class TableOutput(ABC):
    """Writes the numbers of every so many steps as rows of a table."""

    def __init__(self, columns: Columns, period: int, time_step: float) -> None:
        self._columns, self._period, self._time_step = columns, period, time_step

    def add(self, report: StepReport) -> None:
        """Write a row if it is due."""
        if round(report.time / self._time_step) % self._period == 0:
            self._write(self._columns.of(report))

    @abstractmethod
    def _write(self, row: Array) -> None: ...

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

    def _write(self, row: Array) -> None:
        self._writer.writerow(row.tolist())

    def finish(self) -> None:
        """Write the rest of the table."""
        self._text.detach()


class ParquetTable(TableOutput):
    """Parquet, columns of float64."""

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

    def _write(self, row: Array) -> None:
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


# --- MCAP: the messages of the node, in the form of `ros2 bag`.

PROFILE, ENCODING, SCHEMA_ENCODING = 'ros2', 'cdr', 'ros2msg'
_FOREVER = '{sec: 9223372036, nsec: 854775807}'
_QUALITY = f"""\
- history: keep_last
  depth: %d
  reliability: reliable
  durability: %s
  deadline: {_FOREVER}
  lifespan: {_FOREVER}
  liveliness: automatic
  liveliness_lease_duration: {_FOREVER}
  avoid_ros_namespace_conventions: false
"""
VOLATILE, LATCHED = _QUALITY % (1000, 'volatile'), _QUALITY % (1, 'transient_local')
"""Quality of service as rosbag2 writes it."""
DIAGNOSTICS_PERIOD = 1.0
"""Simulated seconds between two /diagnostics messages."""


class McapChannel(Channel):
    """A topic of an MCAP file."""

    def __init__(self, file: McapOutput, topic: Topic) -> None:
        super().__init__(topic)
        self._file, self._topic = file, topic

    def send(self, data: bytes) -> None:
        """Write a serialised message, at the time of the last step."""
        self._file.write(self._topic, data)


class McapOutput:
    """Writes steps into an MCAP file; a sink of their messages.

    `periods` are steps between two messages, 0 for none, by the names of `publish_rate`.
    """

    def __init__(
        self, file: BinaryIO, recording: Recording, replayer: Replayer, periods: Mapping[str, int],
        ground_truth: bool,
    ) -> None:  # fmt: skip
        if mcap_writer is None:
            raise InvalidInput(
                "MCAP files need the package mcap: pip install 'contact_sim[export]'"
            )
        self._writer: Any = mcap_writer.Writer(file)
        self._writer.start(profile=PROFILE, library='contact_sim')
        self._schemas: dict[str, int] = {}
        self._channels: dict[Topic, int] = {}
        self._count = 0
        sim = replayer.sim
        self._recording, self._replayer, self._periods = recording, replayer, periods
        self._last = sim.last_report
        with understood(f'{recording.path}: parameters or constraints'):
            settings = recorded_settings(recording.header.get('parameters', {}))
            has_camera = float(periods.get('depth', 0) > 0)
            settings['publish_rate'] = PublishRateParameters(depth=has_camera)
            constraints = constraints_of(recording, replayer)
        self._topics = SimulationTopics(
            sim, settings, constraints, self, truth=ground_truth, links=True
        )
        self._diagnostics = McapChannel(self, DIAGNOSTICS)
        self._diagnosed = max(1, round(DIAGNOSTICS_PERIOD / sim.time_step))
        self._counts = [0] * len(STATUSES)
        self._reported = tuple(self._counts)
        self._model, self._switches, self._last_switch = sim.contact_model, 0, 'none'
        self._time = stamp_of(sim.last_report)
        self._topics.publish_static_transforms(self._time)
        self._topics.publish_descriptions()
        self._topics.publish_ground(self._time)

    def channel(self, topic: Topic) -> McapChannel | None:
        """Return a channel for a topic; ~/grid_map, which RViz draws, is left out."""
        return None if topic == GRID_MAP else McapChannel(self, topic)

    def write(self, topic: Topic, data: bytes) -> None:
        """Write a serialised message; a topic is in the file from its first message on."""
        writer, schemas = self._writer, self._schemas
        if topic.type not in schemas:
            text = schema_text(topic.type.replace('/msg/', '/')).encode()
            schemas[topic.type] = writer.register_schema(topic.type, SCHEMA_ENCODING, text)
        if topic not in self._channels:
            quality = {'offered_qos_profiles': LATCHED if topic.latched else VOLATILE}
            self._channels[topic] = writer.register_channel(
                absolute(topic.name), ENCODING, schemas[topic.type], quality
            )
        self._count += 1
        number, time = self._count % 2**32, self._time
        writer.add_message(self._channels[topic], time, data, time, number)

    def add(self, report: StepReport) -> None:
        """Write what is due after a step."""
        sim = self._replayer.sim
        time, tick = stamp_of(report), round(report.time / sim.time_step)
        self._time, self._last = time, report
        due = {name for name, steps in self._periods.items() if steps and tick % steps == 0}
        self._counts[int(report.record.solver[0])] += 1
        if sim.contact_model != self._model:
            start = report.time - sim.time_step
            self._last_switch = f'from {self._model} to {sim.contact_model} at t = {start:.9g} s'
            self._model, self._switches = sim.contact_model, self._switches + 1
        if sim.terrain is not self._topics.ground:
            self._topics.clear_markers(time)
            self._topics.publish_ground(time)
        if due:
            self._topics.publish_clock(time)
        recorded = self._replayer.wrenches.items()
        wrenches = {frame: np.asarray(wrench, dtype=float) for frame, wrench in recorded}
        self._topics.publish(Step(report, due, wrenches))
        if tick % self._diagnosed == 0:
            self._write_diagnostics(report)

    def finish(self) -> None:
        """Write the last diagnostics and complete the file."""
        self._time = stamp_of(self._last)
        self._write_diagnostics(self._last)
        header = self._recording.header
        self._writer.add_metadata('contact_sim', {
            'robot': header['robot']['name'],
            'contact_model': self._replayer.sim.contact_model,
            'time_step': repr(header['time_step']),
            'contact_sim': header['versions']['contact_sim'],
        })  # fmt: skip
        self._writer.finish()

    def _write_diagnostics(self, report: StepReport) -> None:
        """Write the part of /diagnostics that a recording determines."""
        sim = self._replayer.sim
        warnings = '; '.join(troubles(self._reported, self._counts, report))
        self._reported = tuple(self._counts)
        status = {
            'level': WARN if warnings else OK, 'name': f'{NODE}: simulation',
            'message': warnings or 'running', 'hardware_id': NODE,
        }  # fmt: skip
        values = {
            'contact_model': self._model,
            'contact_model_switches': self._switches,
            'last_contact_model_switch': self._last_switch,
            'constraints': ' '.join(constraint.name for constraint in sim.constraints),
            'steps_since_reset': sim.step_count,
            **status_counts(self._counts),
        }
        self._diagnostics.publish(diagnostics(stamp_of(report), status, values))


def stamp_of(report: StepReport) -> int:
    """Return the stamp of a step [ns]."""
    time = nanoseconds(report.time)
    if time < 0:
        raise InvalidInput(f'a step at t = {report.time:.9g} s: MCAP has no times below 0')
    return time


def constraints_of(recording: Recording, replayer: Replayer) -> Sequence[Constraint]:
    """Return all constraints that are ever in force in a recording, but those of the robot."""
    own = {constraint.name for constraint in replayer.sim.robot.constraints}
    lists = [e['constraints'] for e in recording.events if e['kind'] == 'constraints']
    changes = chain.from_iterable(lists)
    listed = [*replayer.sim.constraints, *map(constraint_from_dict, changes)]
    # of several with one name the first counts
    named = {one.name: one for one in reversed(listed) if one.name not in own}
    return list(reversed(named.values()))


# --- Files that appear only when they are complete.


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that is moved to `path` at the end, or deleted on an error."""
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
    """Turn an error of the system into one that names the file."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f'cannot write {path}: {error.strerror or error}') from error


# --- The export.

RATES: tuple[str, ...] = tuple(
    one.name
    for one in declared_parameters(PublishRateParameters)  # type: ignore[arg-type]
    if one.name != 'shadow'  # a recording does not determine what other models answer
)
"""Fields of `publish_rate` with a rate of their own in an MCAP file."""
SEEN = 'height_scan', 'lidar', 'depth'
"""Those among them that are written only where a rate is given: rays cost more than a step."""
PATIENCE = 2.0
"""Wall time after which a progress bar appears on a terminal [s]."""


@checked_fields
@dataclass(frozen=True)
class Targets:
    """Files of an export and their sampling rates."""

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
        named = ((name, getattr(self, name)) for name in ('mcap', 'csv', 'parquet'))
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
    _check_paths(targets, recording)
    replayer = Replayer(recording, contact_model)
    time_step = replayer.sim.time_step
    periods = periods_of(targets, time_step)
    outputs: dict[Path, McapOutput | TableOutput] = {}
    with contextlib.ExitStack() as files:
        for name, path in targets.paths.items():
            file = files.enter_context(new_file(path))
            if name == 'mcap':
                own = {kind: periods[kind] for kind in RATES}
                outputs[path] = McapOutput(file, recording, replayer, own, targets.ground_truth)
                continue
            with understood(f'{recording.path}: the ground'):
                changes = [event for event in recording.events if event['kind'] == 'terrain']
                headers = [recording.header, *({**change, 'format': FORMAT} for change in changes)]
                columns = Columns(replayer.sim.robot, list(map(ground_of, headers)))
            if name == 'csv':
                outputs[path] = CsvTable(file, columns, periods[''], time_step)
            else:
                table = ParquetTable(file, columns, periods[''], time_step)
                outputs[path] = table
                files.callback(table.abandon)
        steps, first_difference = 0, None
        compared = contact_model is None
        steps_with_bar = tqdm(
            replayer.steps(), total=recording.steps, unit=' steps', leave=False, disable=None,
            delay=PATIENCE,
        )  # fmt: skip
        for step in steps_with_bar:
            if compared and first_difference is None and step.differs(replayer.sim.last_report):
                first_difference = step.number
            if step.report is not None:
                steps += 1
                _write(outputs, step.report)
        _write(outputs, None)
    return Exported(steps, first_difference, recording.damage)


def _check_paths(targets: Targets, recording: Recording) -> None:
    """Raise InvalidInput for a path that cannot be written, or may not."""
    paths = list(targets.paths.values())
    for path in paths:
        if os.path.lexists(path):
            if not path.is_file():
                raise InvalidInput(f'cannot write {path}: it is there, and no regular file')
            if not targets.overwrite:
                raise InvalidInput(f'{path} is there already: give another name, or --overwrite')
        if os.path.exists(path) and path.samefile(recording.path):
            raise InvalidInput(f'cannot write {path}: it is the recording itself')
        if paths.count(path) > 1:
            raise InvalidInput(f'cannot write {path}: it is named for two formats')


def _write(outputs: Mapping[Path, McapOutput | TableOutput], report: StepReport | None) -> None:
    """Write a step into all files, or their end (None)."""
    for path, output in outputs.items():
        with writing(path):
            if report is None:
                output.finish()
            else:
                output.add(report)


def periods_of(targets: Targets, time_step: float) -> dict[str, int]:
    """Return the steps between two messages of each of RATES, and between two rows ('')."""
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
    return {'': common, **dict.fromkeys(RATES, common), **dict.fromkeys(SEEN, 0), **own}


def parsed_rates(texts: Iterable[str]) -> tuple[float | None, dict[str, float]]:
    """Return the rate of everything and those of single topics, from texts like markers=25."""
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
