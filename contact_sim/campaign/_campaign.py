"""Campaign: many trials on one machine or many, into one table that survives interruptions.

`joblib` distributes the work; which backend it uses is a name. On every worker the trials run in a
process of their own (_isolation.py), and this process alone writes the table (_table.py).
"""

from __future__ import annotations

import itertools
import math
import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from contact_sim._validation import as_tuple, checked, checked_fields, count, mapping, pair, text
from contact_sim.campaign._isolation import (
    Limits,
    end_children,
    inspect_trial,
    open_for_requests,
    run_isolated,
)
from contact_sim.campaign._measures import OUTCOMES
from contact_sim.campaign._table import TableWriter, read_rows
from contact_sim.campaign._trial import Trial, origin_of, trial_of
from contact_sim.compare._runs import aligned
from contact_sim.errors import InvalidInput, UnknownName, one_line

# --- Tables of trials

FIELDS = tuple(entry.name for entry in fields(Trial))


def _choices(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return a list of values for each field: one value is a list of itself."""
    choices = {}
    for name, value in values.items():
        if name not in FIELDS:
            raise UnknownName('field of a trial', name, FIELDS)
        several = isinstance(value, list | range | np.ndarray)
        choices[name] = list(value) if several else [value]
        if not choices[name]:
            raise InvalidInput(f'{name}: expected at least one value')
    return choices


@checked
def product(**values: Any) -> list[Trial]:
    """Return one trial for each combination of values.

    Args:
        values: by field of `Trial`, one value or a list of them.

    Raises:
        UnknownName: a field that does not exist.
        InvalidInput: a value that is not allowed.
    """
    choices = _choices({name: _plain(value) for name, value in values.items()})
    rows = itertools.product(*choices.values())
    return [Trial(**dict(zip(choices, map(_plain, row), strict=True))) for row in rows]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@checked
def sample(n: int, seed: int = 0, **values: Any) -> list[Trial]:
    """Return trials with n random draws from ranges, each with every combination of lists.

    Draw k has the seed k, unless `values` has seeds. Trials with the same draw differ in the
    lists only: contact models in a list are compared under equal circumstances.

    Args:
        n: number of draws.
        seed: of the draws.
        values: by field of `Trial`, one value, a list of values, or a range (low, high) of
            numbers.

    Raises:
        UnknownName: a field that does not exist.
        InvalidInput: no range, a value that is not allowed.
    """
    ranges = _ranges(values)
    numbers = np.random.default_rng(seed).random((count('n', n), len(ranges)))
    return _drawn(numbers, ranges, values)


@checked
def sobol(n: int, seed: int = 0, **values: Any) -> list[Trial]:
    """Return trials as `sample` does, but with the draws of a scrambled Sobol sequence.

    It fills the ranges evenly; n is best a power of two.
    """
    from scipy.stats import qmc

    ranges = _ranges(values)
    exponent = int(np.ceil(np.log2(count('n', n))))
    numbers = qmc.Sobol(len(ranges), seed=np.random.default_rng(seed)).random_base2(exponent)[:n]
    return _drawn(numbers, ranges, values)


def _ranges(values: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    ranges = {
        name: pair(name, value, '')
        for name, value in values.items()
        if isinstance(value, tuple) and name != 'parameters'
    }
    _choices(values)
    if not ranges:
        raise InvalidInput('sample: expected at least one range (low, high), such as friction')
    for name, (low, high) in ranges.items():
        if not low <= high:
            raise InvalidInput(f'{name} = ({low:g}, {high:g}): expected the smaller number first')
    return ranges


def _drawn(
    numbers: Any, ranges: Mapping[str, tuple[float, float]], values: Mapping[str, Any]
) -> list[Trial]:
    """Return the trials for draws in [0, 1), shape (n, ranges)."""
    rest = {name: value for name, value in values.items() if name not in ranges}
    trials = []
    for k, row in enumerate(numbers.tolist()):
        drawn = {
            name: low + (high - low) * share
            for (name, (low, high)), share in zip(ranges.items(), row, strict=True)
        }
        trials += product(**{'seed': k, **rest, **drawn})
    return trials


# --- The campaign

BACKENDS = ('threading', 'loky', 'dask', 'slurm', 'ray')
"""Backends by name; others that are registered with joblib work as well."""
AHEAD = 2
"""Batches per worker that are handed out in advance."""


@checked_fields
@dataclass(frozen=True)
class Campaign:
    """Trials and where their rows go.

    Raises:
        InvalidInput: no trials, workers or batch below 1.
    """

    trials: tuple[Trial, ...]
    """Equal ones count once."""
    file: Path
    """Folder of Parquet files, such as results.parquet: readers take it as one file."""
    workers: int | None = None
    """Trials at a time; None: one per core, or all workers of the cluster (Slurm: one job)."""
    backend: str = 'threading'
    """Of joblib: 'threading' and 'loky' are this machine, 'dask', 'slurm' (through dask-jobqueue)
    and 'ray' a cluster."""
    batch: int = 32
    """Trials that step together where their controller and contact model allow it."""
    limits: Limits = field(default_factory=Limits)
    """What a trial may take."""
    check_meshes: bool = True
    """Whether a robot is refused whose meshes are not on this machine."""

    def __post_init__(self) -> None:
        object.__setattr__(self, 'file', Path(self.file))
        object.__setattr__(
            self, 'trials', tuple({trial.key: trial for trial in self.trials}.values())
        )
        if not self.trials:
            raise InvalidInput('campaign: expected at least one trial')
        for name in ('workers', 'batch'):
            if getattr(self, name) is not None:
                count(f'Campaign.{name}', getattr(self, name))

    def run(self, progress: bool = True) -> None:
        """Run the trials that have no row yet.

        It may be interrupted at any time, and goes on in the next call. `rows` are there while it
        runs, too.

        Args:
            progress: show a bar with rate and time left.

        Raises:
            InvalidInput: a controller, robot, scenario or contact model that cannot be used, a
                folder that cannot be written, a backend that is not installed.
        """
        open_for_requests()
        with TableWriter(self.file) as table, ExitStack() as stack:
            stack.callback(end_children)
            pending = [trial for trial in self.trials if trial.key not in table.done]
            self._check_origin(table.done)
            tasks = batches(pending, self.batch, self.limits, self.check_meshes)
            bar = tqdm(
                total=len(self.trials), initial=len(self.trials) - len(pending), unit='trial',
                disable=not progress, smoothing=0.05,
            )  # fmt: skip
            failed = 0
            with bar:
                for rows in distributed(tasks, self.limits, self.backend, self.workers):
                    table.add({'trial': key_of(row), **row} for row in rows)
                    failed += sum(not row['success'] for row in rows)
                    bar.set_postfix(failed=failed, refresh=False)
                    bar.update(len(rows))

    def rows(self, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return the rows of these trials so far, sorted by trial; all columns, or some."""
        wanted = {trial.key for trial in self.trials}
        return [row for row in read_rows(self.file, columns) if row['trial'] in wanted]

    def _check_origin(self, done: Mapping[str, tuple[str, str]]) -> None:
        """Refuse to add to rows of other files or versions: they would not be of one campaign."""
        known: dict[Any, tuple[str, str]] = {}
        for trial in self.trials:
            if trial.key not in done:
                continue
            kind = trial.controller, trial.robot, trial.scenario
            now = known.setdefault(kind, tuple(origin_of(trial).values()))  # type: ignore
            source, versions = done[trial.key]
            if source != now[0]:
                raise InvalidInput(
                    f'{self.file}: a file of controller {trial.controller!r}, robot '
                    f'{trial.robot!r} or scenario {trial.scenario!r} has changed since its rows '
                    'were made: choose another folder'
                )
            if versions != now[1]:
                raise InvalidInput(
                    f'{self.file}: its rows were made with {versions}; here is {now[1]}: choose '
                    'another folder'
                )


def key_of(row: Mapping[str, Any]) -> str:
    """Return the key of the trial of a row."""
    return trial_of(row).key


def batches(
    trials: Sequence[Trial], size: int, limits: Limits, check_meshes: bool
) -> list[list[dict[str, Any]]]:
    """Return trials as inputs of rows, in batches of up to `size` where they can run together.

    Raises:
        InvalidInput: a controller, robot, scenario or contact model that cannot be used, or
            `check_meshes` and a mesh is missing.
    """
    together: dict[Any, list[Trial]] = {}
    known: dict[Any, bool] = {}
    for trial in trials:
        kind = (
            trial.controller, trial.robot, trial.feet, trial.scenario, trial.contact_model,
            trial.parameters, trial.roughness > 0.0,
        )  # fmt: skip
        if kind not in known:
            known[kind] = inspect_trial(trial, limits, check_meshes)
        shared = (*kind[:5], trial.time_step, trial.seconds) if known[kind] else trial.key
        together.setdefault(shared, []).append(trial)
    return [
        [trial.as_row() for trial in group[first : first + size]]
        for group in together.values()
        for first in range(0, len(group), size)
    ]


def distributed(
    tasks: Sequence[list[dict[str, Any]]], limits: Limits, backend: str, workers: int | None
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each task as they come, from the workers of a backend of joblib.

    Raises:
        InvalidInput: joblib or the backend is not installed.
    """
    if not tasks:
        return
    try:
        import joblib
    except ImportError as error:
        raise InvalidInput(
            'a campaign needs joblib and pyarrow: pip install contact_sim[verdict]'
        ) from error
    with ExitStack() as stack:
        name, jobs = _connected(backend, workers, stack)
        try:
            stack.enter_context(joblib.parallel_config(backend=name, n_jobs=jobs))
        except (ValueError, ImportError) as error:
            raise InvalidInput(
                f'backend {backend!r} cannot be used: {error}; known: {", ".join(BACKENDS)}'
            ) from error
        calls = (joblib.delayed(run_isolated)(task, limits) for task in tasks)
        try:
            # workers of a cluster come one after the other: n_jobs would be those of now
            ahead = AHEAD * workers if workers else f'{AHEAD}*n_jobs'
            parallel = joblib.Parallel(
                return_as='generator_unordered', pre_dispatch=ahead, batch_size=1
            )
        except ValueError:  # a backend that cannot: round by round
            width = AHEAD * joblib.effective_n_jobs(jobs)
            while chosen := list(itertools.islice(calls, width)):
                yield from joblib.Parallel(batch_size=1)(chosen)
        else:
            yield from parallel(calls)


def _connected(backend: str, workers: int | None, stack: ExitStack) -> tuple[str, int]:
    """Return name and number of jobs for joblib; connect to the cluster of the backend."""
    jobs = workers or -1
    try:
        if backend in ('dask', 'slurm'):
            from distributed import Client, LocalCluster, default_client

            try:
                default_client()  # of the caller, or of the environment
            except ValueError:
                if backend == 'slurm':
                    cluster = _slurm_jobs(workers, stack)
                else:
                    cores = workers or os.cpu_count() or 1
                    cluster = stack.enter_context(
                        LocalCluster(n_workers=cores, threads_per_worker=1, dashboard_address=None)
                    )
                client = stack.enter_context(Client(cluster))
                client.wait_for_workers(1)  # a queue may take hours, joblib waits for 10 s
            return 'dask', jobs
        if backend == 'ray':
            from ray.util.joblib import register_ray  # type: ignore

            register_ray()
    except ImportError as error:
        raise InvalidInput(
            f'backend {backend!r} needs a package that is not installed: {error}'
        ) from error
    return backend, jobs


def _slurm_jobs(workers: int | None, stack: ExitStack) -> Any:
    """Return a cluster of Slurm with the jobs submitted that run `workers` trials at a time.

    Raises:
        InvalidInput: dask_jobqueue is not installed, nothing says how large a job is, or Slurm
            does not take it.
    """
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        import dask
        from dask_jobqueue import SLURMCluster  # type: ignore
    except ImportError as error:
        raise InvalidInput(
            f"backend 'slurm' needs a package that is not installed: {error}"
        ) from error
    signal.signal(signal.SIGINT, interrupt)  # its import lets Ctrl-C end the whole process
    try:
        cluster = SLURMCluster()
    except ValueError as error:
        raise InvalidInput(
            "backend 'slurm': write cores and memory of a job into ~/.config/dask/jobqueue.yaml "
            f'(docs/campaigns.md): {error}'
        ) from error
    jobs = math.ceil((workers or 1) / dask.config.get('jobqueue.slurm.cores'))

    async def submit() -> None:
        cluster.scale(jobs=jobs)
        await cluster

    try:
        cluster.sync(submit)
    except (OSError, RuntimeError) as error:
        with suppress(AssertionError):  # jobs that have not started
            cluster.close()
        raise InvalidInput(f"backend 'slurm': no job could be submitted: {error}") from error
    return stack.enter_context(cluster)


# --- Summary


@dataclass(frozen=True)
class Share:
    """Share of successes in a group of trials with its 95 % confidence interval (Wilson)."""

    group: str
    trials: int
    successes: int
    low: float
    high: float
    outcomes: dict[str, int]
    """How often each outcome was met."""

    @property
    def share(self) -> float:
        """Successes over trials [-]."""
        return self.successes / self.trials

    __repr__ = one_line


def shares(rows: Iterable[Mapping[str, Any]], by: str = 'contact_model') -> list[Share]:
    """Return the share of successes for each value of a column, ordered by value.

    Raises:
        InvalidInput: rows that are no mappings.
        UnknownName: a column that the rows do not have.
    """
    from scipy.stats import binomtest

    groups: dict[str, list[Mapping[str, Any]]] = {}
    text('by', by)
    for row in as_tuple('rows', rows, 'a list of rows'):
        if by not in mapping('rows: a row', row):
            raise UnknownName('column', by, row)
        groups.setdefault(str(row[by]), []).append(row)
    result = []
    for name in sorted(groups):
        group = groups[name]
        wins = sum(bool(row['success']) for row in group)
        interval = binomtest(wins, len(group)).proportion_ci(method='wilson')
        counts = Counter(str(row['outcome']) for row in group)
        outcomes = {key: counts[key] for key in OUTCOMES if counts[key]}
        result.append(
            Share(name, len(group), wins, float(interval.low), float(interval.high), outcomes)
        )
    return result


def summary(rows: Sequence[Mapping[str, Any]], by: str = 'contact_model') -> str:
    """Return a table of `shares` as text.

    Raises:
        InvalidInput, UnknownName: as `shares`.
    """
    groups = shares(rows, by)
    cells = [[by.replace('_', ' '), 'trials', 'success', '95 % interval', 'outcomes']]
    for group in groups:
        others = ', '.join(f'{name} {number}' for name, number in group.outcomes.items())
        cells.append([
            group.group, str(group.trials), f'{group.share:.1%}',
            f'{group.low:.1%} to {group.high:.1%}', others,
        ])  # fmt: skip
    return aligned(cells)
