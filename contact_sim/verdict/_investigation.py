"""Runs a controller until it is known what decides its outcome, or until time is up."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from contact_sim._validation import check_unique, checked, count
from contact_sim.campaign import Trial, scenario_of
from contact_sim.campaign._isolation import run_isolated
from contact_sim.campaign._trial import robot_of
from contact_sim.contact_models import as_contact_model
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName, shown
from contact_sim.precompile import DONE
from contact_sim.robot._model import RobotModel
from contact_sim.verdict import _page
from contact_sim.verdict._decision import (
    Verdict,
    decide,
)
from contact_sim.verdict._parting import Parting, parting
from contact_sim.verdict._plan import (
    LOOP,
    MOST_SEEDS,
    OWN_DELAY,
    SEEDS,
    Factor,
    Row,
    Run,
    Settings,
    factors_of,
    key_of,
    laws_in_order,
    next_run,
)
from contact_sim.verdict._rates import OF_ITSELF, Margin, Table, is_exact, margin_of
from contact_sim.verdict._runner import Runner
from contact_sim.verdict._search import (
    DISTURBANCES,
    Counterexample,
    limit_along,
    smallest_failure,
)
from contact_sim.verdict.variants import Held, Prompt, own_delay, written

FIRST_PAGE, PAGE_EVERY = 10.0, 20.0
"""Wall time until the first page, and between two [s]."""
LINE_EVERY = 5.0
"""Wall time between two lines of progress [s]."""
SLOWEST = 15.0
"""Wall time per simulated second after which a trial counts as hung [-]."""
COMPILING = 900.0
"""Wall time that compiling may take besides [s]."""
SEARCH_SHARE = 0.5
"""Of the budget, for the search, where one is wanted."""
UNITS = {'s': 1.0, 'sec': 1.0, 'm': 60.0, 'min': 60.0, 'h': 3600.0}


def reserve_of(budget: float, walls: Sequence[float]) -> float:
    """Return the part of a budget that is kept for the parting and the page [s].

    The parting takes some eight times as long as a run; `walls` are those of runs [s].
    """
    return min(max(0.04 * budget, 3.0 + 8.0 * max(walls, default=0.0)), 0.3 * budget)


def seconds_of(budget: str | float) -> float:
    """Return a budget such as '5min', '90s' or 300 in seconds.

    Raises:
        InvalidInput: a text that is no time, or none above zero.
    """
    match = re.fullmatch(r'\s*([0-9.]+)\s*([a-z]*)\s*', str(budget))
    try:
        number = float(match[1]) if match else math.nan
        value = number * UNITS[match[2] or 's'] if match else math.nan
    except (KeyError, ValueError):
        value = math.nan
    if not 0.0 < value < math.inf:
        raise InvalidInput(
            f'budget = {shown(budget)}: expected a time such as 5min, 90s, 1h or a number of '
            'seconds'
        )
    return value


@checked
def verdict(
    controller: str,
    robot: str = 'go1',
    scenario: str = 'stand',
    budget: str | float = '5min',
    output: str | Path | None = None,
    laws: Sequence[str] | None = None,
    factors: Sequence[str] | None = None,
    seeds: int = MOST_SEEDS,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    search: bool = False,
    progress: Callable[[str], None] | None = None,
    feet: Sequence[str] | None = None,
    check_meshes: bool = True,
) -> Verdict:
    """Return what decides the outcome of a controller: itself, the contact law, or what else.

    Args:
        controller: see `campaign.load_controller`.
        robot: name in the catalogue, or path of a URDF or xacro file.
        scenario: name of a scenario, or path of a YAML file.
        budget: wall time, as text with a unit or in seconds.
        output: folder for page, figure, rows and recordings; None: a temporary one, without page.
        laws: names of contact models; None: all.
        factors: what is varied besides: time_step, delay, noise, friction, mass_scale, push,
            roughness, start; None: all.
        seeds: largest number of runs of a case.
        seconds: simulated time of a run [s]; None: that of the scenario.
        seed: of everything random.
        jobs: processes; None: one per core.
        search: whether to look for the smallest disturbance under which it fails.
        progress: called with a line of text every few seconds.
        feet: links that are the feet of the robot; None: those of the catalogue or of its SRDF.
        check_meshes: whether a robot is refused whose meshes are not on this machine.

    Raises:
        UnknownName: a contact model, robot or scenario that does not exist.
        InvalidInput: a controller that cannot be loaded, a budget that is no time, or other
            values that are not allowed.
    """
    return Investigator(
        controller, robot, scenario, seconds_of(budget), output, laws, factors, seeds, seconds,
        seed, jobs, search, progress, feet, check_meshes,
    ).result()  # fmt: skip


def chosen_factors(known: Sequence[Factor], names: Sequence[str] | None) -> tuple[Factor, ...]:
    """Return the factors with these names, all for None.

    Raises:
        UnknownName: a factor that does not exist.
    """
    for name in names or ():
        if name not in (factor.name for factor in known):
            raise UnknownName('factor', name, [factor.name for factor in known])
    return tuple(factor for factor in known if names is None or factor.name in names)


def command_line(
    controller: str, robot: str, scenario: str, budget: float, laws: Sequence[str] | None,
    factors: Sequence[str] | None, seconds: float | None, seeds: int, seed: int, search: bool,
    feet: Sequence[str] | None, check_meshes: bool,
) -> str:  # fmt: skip
    """Return the command that repeats an investigation."""
    command = ['python', '-m', 'contact_sim.verdict', controller, '--robot', robot,
               '--scenario', scenario, '--budget', f'{budget:g}s']  # fmt: skip
    command += ['--feet', *feet] if feet else []
    command += [] if check_meshes else ['--no-check-meshes']
    command += ['--laws', *laws] if laws is not None else []
    command += ['--factors', *factors] if factors is not None else []
    command += ['--seconds', f'{seconds:g}'] if seconds is not None else []
    command += ['--seeds', str(seeds)] if seeds != MOST_SEEDS else []
    command += ['--search'] if search else []
    command += ['--seed', str(seed)] if seed else []
    return shlex.join(command)


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Return a list that has the signals of Ctrl-C, also where their KeyboardInterrupt got lost.

    It does where it is raised while an object is collected.
    """
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return

    def note(number: int, frame: Any) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def checked_laws(laws: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of laws in the order in which they run, or raise InvalidInput."""
    names = laws_in_order(laws)
    if not names:
        raise InvalidInput('laws = []: expected the name of a contact model')
    check_unique('contact model', names)
    for name in names:
        as_contact_model(name)
    return names


def check_installed(needed: Sequence[tuple[str, str]]) -> None:
    """Raise InvalidInput for (what, module) without the module: now, not after minutes."""
    for what, module in needed:
        if find_spec(module) is None:
            raise InvalidInput(f"{what} needs {module}: pip install 'contact_sim[verdict]'")


def longest_trial(duration: float, budget: float) -> float:
    """Return the wall time that a trial of this duration may take [s]."""
    limit = max(min(SLOWEST * duration, 0.25 * budget), 2.0)
    return limit if DONE.exists() else limit + COMPILING


class Investigator:
    """One investigation; see `verdict`."""

    def __init__(
        self,
        controller: str,
        robot: str,
        scenario: str,
        budget: float,
        output: str | Path | None,
        laws: Sequence[str] | None,
        factors: Sequence[str] | None,
        seeds: int,
        seconds: float | None,
        seed: int,
        jobs: int | None,
        search: bool,
        progress: Callable[[str], None] | None,
        feet: Sequence[str] | None,
        check_meshes: bool,
    ) -> None:
        self._begin, self._budget = time.monotonic(), budget
        names = checked_laws(laws)
        chosen = scenario_of(scenario)
        links = ','.join(feet or ())
        model = robot_of(robot, links, check_meshes)
        duration = chosen.seconds if seconds is None else seconds
        jobs = os.cpu_count() or 1 if jobs is None else count('jobs', jobs)
        self._runner = Runner(jobs, longest_trial(duration, budget))
        self._pages = output is not None
        check_installed(
            [('the page', 'matplotlib')] * self._pages + [('--search', 'cma')] * search
        )
        self._folder = Path(tempfile.mkdtemp(prefix='verdict-') if output is None else output)
        self._make_folder()
        nominal = Trial(controller, robot, scenario, seconds=seconds, seed=seed, feet=links)
        varied = factors_of(nominal, model.total_mass, chosen.friction)
        varied = chosen_factors(varied, factors)
        variants = self._held_controllers(nominal, varied)
        most = count('seeds', seeds, 1000)
        self._settings = Settings(
            nominal, names, varied, chosen.friction, variants, min(SEEDS, most), most
        )
        self._notes = notes_on(model)
        self._search, self._progress = search, progress
        self._rows: list[Row] = []
        self._pending: set[Any] = set()
        self._parting: Parting | None = None
        self._margins: tuple[Margin, ...] = ()
        self._counterexamples: tuple[Counterexample, ...] = ()
        self._last_page = self._last_line = self._begin
        self._page: Path | None = None
        self._asked_delay = False
        command = command_line(
            controller, robot, scenario, budget, laws, factors, seconds, seeds, seed, search, feet,
            check_meshes,
        )  # fmt: skip
        self._about = _page.Investigation(
            controller, model.name, chosen.name, f'{chosen.meaning}; goal: {chosen.goal}',
            command, 0.0, budget, '',
        )  # fmt: skip

    def _held_controllers(
        self, nominal: Trial, varied: Sequence[Factor]
    ) -> dict[tuple[str, float], str]:
        """Return the controller with efforts held for each level of the time step."""
        folder, controller = self._folder / 'controllers', nominal.controller
        source, feet = nominal.robot, nominal.feet
        return {
            (LOOP, level): written(folder, Held, controller, level, source=source, feet=feet)
            for factor in varied if factor.name == 'time_step'
            for level in factor.levels
        }  # fmt: skip

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f'output = {self._folder}: {error.strerror}') from error

    # ---------------------------------------------------------------- the course of it

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._begin

    @property
    def _end(self) -> float:
        """When no more runs are begun, monotonic [s]."""
        law = self._settings.reference
        walls = [row['wall'] for row in self._rows if row['contact_model'] == law]
        return self._begin + self._budget - reserve_of(self._budget, walls)

    def result(self) -> Verdict:
        """Run until all is known, time is up or Ctrl-C; return the verdict."""
        rows_file = (self._folder / 'rows.jsonl').open('w', encoding='utf-8')
        finished = 'everything that was wanted has been run'
        with self._runner, rows_file, noted_interrupts() as interrupted:
            try:
                share = SEARCH_SHARE * self._budget if self._search else 0.0
                for row in self._runner.rows(lambda: self._next(self._end - share)):
                    if interrupted:
                        raise KeyboardInterrupt
                    self._rows.append(row)
                    rows_file.write(json.dumps(as_json(row)) + '\n')
                    rows_file.flush()
                    self._check_first()
                    self._own_delay()
                    self._tell(row)
                if time.monotonic() >= self._end - share:
                    finished = 'the budget is used up'
                if self._search:
                    self._find_worst_cases()
                self._find_parting()
            except KeyboardInterrupt:
                finished = 'stopped by Ctrl-C; this is what was there'
        return self._finish(finished)

    def _next(self, until: float) -> tuple[Run, Path | None] | None:
        """Return the next run and where to record it."""
        if time.monotonic() >= until or self._hopeless():
            return None
        run = next_run(self._settings, self._rows, self._pending)
        if run is None:
            return None
        trial = run.trial
        level = str(run.level)
        self._pending.add((run.factor, level, trial.contact_model, trial.seed))
        if trial.seed != self._settings.nominal.seed:
            return run, None
        parts = [run.factor or 'stated', level, trial.contact_model]
        return run, self._folder / 'runs' / ('-'.join(filter(None, parts)) + '.npz')

    def _hopeless(self) -> bool:
        """Whether the controller hangs, dies or raises whatever is run."""
        ends = [row['outcome'] for row in self._rows]
        enough = 2 if {'hung', 'crashed'}.intersection(ends) else 4
        return len(ends) >= enough and set(ends) <= set(OF_ITSELF)

    def _check_first(self) -> None:
        """Raise where nothing can be run at all."""
        refused = [row for row in self._rows if row['outcome'] == 'refused']
        wanted = min(2, len(self._settings.laws))
        if len(refused) == len(self._rows) >= wanted:
            raise InvalidInput(refused[0]['reason'])

    def _own_delay(self) -> None:
        """Ask for the delay of the controller itself once it fails under an exact law."""
        failed = any(
            not row['success'] and not row['factor'] and is_exact(row['contact_model'])
            and row['outcome'] not in OF_ITSELF
            for row in self._rows
        )  # fmt: skip
        if self._asked_delay or not failed:
            return
        self._asked_delay = True
        s = self._settings
        function = f'{own_delay.__module__}:{own_delay.__name__}'
        delay = float(self._runner.call(function, s.nominal, otherwise=0.0))
        if delay < s.nominal.time_step:
            return
        folder, text = self._folder / 'controllers', s.nominal.controller
        variant = written(
            folder, Prompt, text, delay, s.nominal.time_step, source=s.nominal.robot,
            feet=s.nominal.feet,
        )  # fmt: skip
        self._settings = replace(s, variants={**s.variants, (OWN_DELAY, delay): variant})

    # ---------------------------------------------------------------- what is told

    def _tell(self, row: Row) -> None:
        """Print a line, and write the page, if it is time."""
        now = time.monotonic()
        if self._progress is not None and now - self._last_line >= LINE_EVERY:
            self._last_line = now
            left = max(self._budget - self._elapsed, 0.0)
            case = f'{row["factor"] or "as stated"} {row["level_text"]}'.strip()
            so_far = self._verdict(complete=False)
            why = f' ({so_far.why})' if so_far.cause == 'cannot_tell' else ''
            self._progress(
                f'{self._elapsed:4.0f} s, at most {left:.0f} s left, {len(self._rows)} runs; '
                f'last: {case} under {row["contact_model"]}; so far: {so_far.headline}{why}'
            )
        wait = FIRST_PAGE if self._page is None else PAGE_EVERY
        if self._pages and now - self._last_page >= wait:
            self._last_page = now
            first = self._page is None
            self._write(self._verdict(complete=False), '')
            if first and self._progress is not None:
                self._progress(f'first figure after {self._elapsed:.0f} s: {self._page}')

    def _verdict(self, complete: bool) -> Verdict:
        found = decide(self._rows, self._settings.factors, complete)
        return replace(
            found, parting=self._parting, margins=(*found.margins, *self._margins),
            counterexamples=self._counterexamples, notes=(*found.notes, *self._notes),
        )  # fmt: skip

    def _write(self, found: Verdict, finished: str) -> None:
        about = replace(self._about, elapsed=self._elapsed, finished=finished)
        self._page = _page.write(found, self._settings.factors, about, self._folder)

    def _finish(self, finished: str) -> Verdict:
        found = self._verdict(complete=finished.startswith('everything'))
        if self._pages:
            self._write(found, finished)
        return replace(found, page=self._page)

    # ---------------------------------------------------------------- parting, worst case

    def _find_parting(self) -> None:
        """Take the first pair of runs of one seed that end differently, and find where they part.

        Under two laws as stated, else the stated case and a factor other than the time step.
        """
        pair = self._pair()
        if pair is None:
            return
        runs, names = pair
        paths = [self._folder / 'runs' / f'parting-{k}.npz' for k in (0, 1)]
        paths[0].parent.mkdir(exist_ok=True)
        for run, path in zip(runs, paths, strict=True):
            run_isolated([run.trial.as_row()], self._runner.limits, path)
        try:
            self._parting = parting(paths[0], paths[1], names)
        except ContactSimError as error:
            if self._progress is not None:
                self._progress(f'where runs part is not known: {error}')

    def _pair(self) -> tuple[tuple[Run, Run], tuple[str, str]] | None:
        s, table, found = self._settings, Table(self._rows), self._verdict(complete=False)
        if found.set_aside and found.factor:  # the factor is what matters
            table = table.without(found.set_aside)
        stated = [row for row in table.stated if row['seed'] == s.nominal.seed]
        right = [row['contact_model'] for row in stated if row['success']]
        wrong = [row['contact_model'] for row in stated if not row['success']]
        if right and wrong:
            one = next((law for law in right if is_exact(law)), right[0])
            other = next((law for law in wrong if is_exact(law)), wrong[0])
            return (s.run(one), s.run(other)), (one, other)
        law = s.reference
        if found.cause == 'contact_law':
            return self._pair_with_factor(table)
        factor = s.factor(found.factor)
        if factor is not None and factor.name != 'time_step':
            for level in sorted(table.levels(factor.name, law), key=factor.distance):
                case = table.case(law, factor.name, level)
                first = [row for row in case if row['seed'] == s.nominal.seed]
                if first and right and not first[0]['success']:
                    name = f'{factor.label} {factor.text(level)}'
                    return (s.run(law), s.run(law, 0, factor.name, level)), ('as stated', name)
        return None

    def _pair_with_factor(self, table: Table) -> tuple[tuple[Run, Run], tuple[str, str]] | None:
        """Return runs under two laws with one factor besides, of which the second fails."""
        s, law = self._settings, self._settings.reference
        for row in table.rows:
            name, level, other = row['factor'], row['level'], row['contact_model']
            if row['success'] or row['seed'] != s.nominal.seed or s.factor(name) is None:
                continue
            case = table.case(law, name, level)
            if any(own['success'] for own in case if own['seed'] == s.nominal.seed):
                return (s.run(law, 0, name, level), s.run(other, 0, name, level)), (law, other)
        return None

    def _find_worst_cases(self) -> None:
        """Search the smallest disturbance under every law under which the stated case works."""
        s, table = self._settings, Table(self._rows)
        works = [law for law in s.laws if 2 * (r := table.rate(law)).successes > r.runs]
        factors = [factor for factor in s.factors if factor.name in DISTURBANCES]
        for place, law in enumerate(works):
            left = self._end - time.monotonic()
            if left <= 0.0:
                return
            until = time.monotonic() + left / (len(works) - place)
            self._search_law(law, factors, until)

    def _search_law(self, law: str, factors: Sequence[Factor], until: float) -> None:
        nominal = self._settings.run(law).trial
        if self._progress is not None:
            self._progress(f'{self._elapsed:4.0f} s, search under {law}')

        def evaluate(trials: Sequence[Trial]) -> Sequence[Row]:
            return self._runner.all(trials, lambda trial: None, until)

        def record(trial: Trial) -> tuple[Row, Path | None]:
            path = self._folder / 'runs' / f'worst-{law}.npz'
            path.parent.mkdir(exist_ok=True)
            (row,) = run_isolated([trial.as_row()], self._runner.limits, path)
            return row, path

        ends = limit_along(evaluate, nominal, factors)
        limits = {}
        for factor in factors:
            values = ends[factor.name]
            if not values:
                continue
            margin = margin_of(factor, law, [(factor.nominal, True), *values])
            self._margins += (replace(margin, label=f'{factor.label} (search)'),)
            if not math.isnan(margin.fails):
                limits[factor.name] = factor.distance(margin.fails)
        worst = smallest_failure(evaluate, nominal, factors, limits, record)
        if worst is not None:
            self._counterexamples += (worst,)
        if self._pages:
            self._write(self._verdict(complete=False), '')


def notes_on(robot: RobotModel) -> tuple[str, ...]:
    """Return what is to know about a robot before its controller is blamed."""
    notes = [f'Robot: {note}.' for note in robot.notes]
    points = [foot.name for foot in robot.feet if len(foot.points) == 1]
    if len(robot.feet) < 3 and points:
        notes.append(
            f'Robot: it has {len(robot.feet)} feet, and {" and ".join(points)} '
            f'{"touches" if len(points) == 1 else "touch"} the ground in one point, which bears '
            'no torque: if it has a sole, its URDF needs the collision geometry of it.'
        )
    return tuple(notes)


def as_json(row: Row) -> dict[str, Any]:
    """Return a row for JSON, which has no NaN and no infinity."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }  # fmt: skip


__all__ = ['Investigator', 'key_of', 'seconds_of', 'verdict']
