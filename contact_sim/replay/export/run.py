"""Export: the steps of a recording, taken again, into files of other tools."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from contact_sim.arguments import checked, checked_fields
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import InvalidInput, shown
from contact_sim.messages.rates import PublishRateParameters, steps_between
from contact_sim.parameters import declared_parameters
from contact_sim.replay.export.columns import Columns, grounds_of
from contact_sim.replay.export.mcap_output import McapOutput
from contact_sim.replay.export.tables import CsvTable, ParquetTable, Table
from contact_sim.replay.export.target import check_target, new_file, writing
from contact_sim.replay.hashing import StateHash
from contact_sim.replay.player import PlayedStep, Player
from contact_sim.replay.recording import Recording
from contact_sim.simulation.report import StepReport

NOT_RECORDED = ('shadow',)
"""Fields of `publish_rate` of which a recording knows nothing."""
RATES: tuple[str, ...] = tuple(
    one.name
    for one in declared_parameters(PublishRateParameters)  # type: ignore[arg-type]
    if one.name not in NOT_RECORDED
)
"""What has a rate of its own in an MCAP file."""
FORMATS = 'mcap', 'csv', 'parquet'
PATIENCE = 2.0
"""Wall seconds after which a progress bar appears, on a terminal."""


@checked_fields
@dataclass(frozen=True)
class Targets:
    """What is written where, and how often."""

    mcap: Path | None = None
    csv: Path | None = None
    parquet: Path | None = None
    rate: float | None = None
    """Of everything [Hz]; None: every step."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Of some of RATES [Hz]; 0: not at all."""
    ground_truth: bool = False
    """Whether MCAP has ~/ground_truth, too."""
    overwrite: bool = False
    """Whether files that are there are replaced."""

    @property
    def paths(self) -> dict[str, Path]:
        """The files by their format."""
        named = ((name, getattr(self, name)) for name in FORMATS)
        return {name: Path(path) for name, path in named if path is not None}


@dataclass(frozen=True)
class Exported:
    """What was written."""

    steps: int
    """Steps that were finite."""
    first_difference: int | None
    """First step whose state is not the recorded one; None if none is, or under another model."""
    damage: str
    """Reason why the recording could not be read to its end, '' if it could."""


class TableOutput:
    """Rows of a table, every so many steps."""

    def __init__(self, table: Table, columns: Columns, period: int, time_step: float) -> None:
        self._table, self._columns = table, columns
        self._period, self._time_step = period, time_step

    def add(self, report: StepReport) -> None:
        """Write a row where it is due."""
        if round(report.time / self._time_step) % self._period == 0:
            self._table.add(self._columns.of(report))

    def finish(self) -> None:
        """Write what is left."""
        self._table.finish()

    def abandon(self) -> None:
        """Write no more, whatever is missing."""
        self._table.abandon()


@checked
def export(
    recording: Recording, targets: Targets, contact_model: str | ContactModel | None = None
) -> Exported:
    """Take the steps of a recording again and write them into files.

    Steps that were not finite are left out. Files appear when all of them are complete.

    Args:
        recording: what is written.
        targets: files and rates.
        contact_model: another one than recorded, under which the same efforts act.

    Raises:
        InvalidInput: a file that cannot be written or is there, a rate that does not divide that
            of the steps, a package that is missing.
        RecordingError: a recording that cannot be repeated.
    """
    for path in targets.paths.values():
        _check(path, targets, recording)
    player = Player(recording, contact_model)
    periods = periods_of(targets, player.sim.time_step)
    with contextlib.ExitStack() as files:
        outputs = {
            path: _output(name, files.enter_context(new_file(path, targets.overwrite)), targets,
                          player, recording, periods)
            for name, path in targets.paths.items()
        }  # fmt: skip
        for output in outputs.values():
            files.callback(output.abandon)
        steps, first_difference = 0, None
        compare = contact_model is None
        for step in _with_progress(player, recording):
            if first_difference is None and compare and _differs(step, player):
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
    name: str, file: Any, targets: Targets, player: Player, recording: Recording,
    periods: Mapping[str, int],
) -> McapOutput | TableOutput:  # fmt: skip
    if name == 'mcap':
        own = {kind: periods[kind] for kind in RATES}
        return McapOutput(file, recording, player, own, targets.ground_truth)
    columns = Columns(player.sim.robot, grounds_of(recording))
    table = (CsvTable if name == 'csv' else ParquetTable)(file, columns.names)
    return TableOutput(table, columns, periods[''], player.sim.time_step)


def _write(outputs: Mapping[Path, McapOutput | TableOutput], report: StepReport | None) -> None:
    """Write a step into all files, or the end of them (None).

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
    """Return the steps between two messages of each of RATES, and between two rows, ''.

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


def _with_progress(player: Player, recording: Recording) -> Iterator[PlayedStep]:
    """Yield the steps, and show how far they are where somebody sees it."""
    yield from tqdm(
        player.steps(), total=recording.steps, unit=' steps', leave=False, disable=None,
        delay=PATIENCE,
    )  # fmt: skip


def _differs(step: PlayedStep, player: Player) -> bool:
    """Return whether a step did not lead to the recorded state."""
    if (step.report is None) != step.failed_then:
        return True
    if step.recorded_hash is None:
        return False
    return StateHash(player.sim.sizes)(player.sim.snapshot().buffer) != step.recorded_hash


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
