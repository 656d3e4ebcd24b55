"""Runs trials in processes: one that hangs or dies is a row that says so."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from contact_sim.campaign import Trial, run_trial
from contact_sim.campaign._trial import failed_row
from contact_sim.errors import InvalidInput
from contact_sim.verdict._plan import Run

GRACE = 5.0
"""Wall time after its limit in which a worker may end a trial itself [s]."""


class _TimeIsUp(BaseException):
    """No `Exception`: code of a controller that catches those does not catch it."""


def run_limited(trial: Trial, recording: Path | None, limit: float) -> dict[str, Any]:
    """Return the row of a trial; 'hung' where it takes longer than `limit` [s] of wall time.

    The recording is deleted where the trial succeeds.
    """
    alarm = threading.current_thread() is threading.main_thread() and hasattr(signal, 'setitimer')

    def end(number: int, frame: FrameType | None) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, end) if alarm else None
    try:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, limit)
        if recording is not None:
            recording.parent.mkdir(parents=True, exist_ok=True)
        row = run_trial(trial, recording)
    except _TimeIsUp:
        row = hung(trial, limit)
    finally:
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
    if recording is not None:
        usable = not row['success'] and row['steps'] > 0
        row['recording'] = str(recording) if usable else ''
        if not usable:
            with suppress(OSError):
                recording.unlink()
    return row


def hung(trial: Trial, limit: float) -> dict[str, Any]:
    """Return the row of a trial that did not end."""
    why = f'the controller did not answer: the trial had not ended after {limit:.3g} s'
    return failed_row(trial, 'hung', why, 'controller', limit)


def ready(seconds: float) -> None:
    """Do nothing for a moment, in a process that has loaded everything."""
    time.sleep(seconds)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that has started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Runner:
    """Runs trials, side by side in `jobs` processes, or in this one if `jobs` is 1.

    Args:
        jobs: processes.
        limit: wall time of a trial [s].
    """

    def __init__(self, jobs: int, limit: float) -> None:
        self.jobs, self.limit = jobs, limit
        self._pool: Any = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, kill_workers=True)
            self._pool = None

    def rows(
        self, next_run: Callable[[], tuple[Run, Path | None] | None]
    ) -> Iterator[dict[str, Any]]:
        """Yield rows as their trials end; `next_run` names the next one whenever there is room."""
        if self.jobs == 1:
            while (chosen := next_run()) is not None:
                run, path = chosen
                yield {**run_limited(run.trial, path, self.limit), **run.columns()}
            return
        yield from self._side_by_side(next_run)

    def _side_by_side(
        self, next_run: Callable[[], tuple[Run, Path | None] | None]
    ) -> Iterator[dict[str, Any]]:
        from concurrent.futures import FIRST_COMPLETED, wait

        running: dict[Any, tuple[Run, float]] = {}
        more = True
        while True:
            while more and len(running) < self.jobs:
                chosen = next_run()
                if chosen is None:
                    more = False
                    break
                run, path = chosen
                pool = self._executor()
                future = pool.submit(run_limited, run.trial, path, self.limit)
                running[future] = run, time.monotonic()
            if not running:
                return
            done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
            now = time.monotonic()
            late = [future for future, (_, begin) in running.items()
                    if now - begin > self.limit + GRACE and future not in done]  # fmt: skip
            if late:  # code that no signal ends: with it end all processes
                self.close()
                for future in late:
                    run, _ = running.pop(future)
                    yield {**hung(run.trial, self.limit), **run.columns()}
                yield from self._again(running)
                continue
            broken = False
            for future in done:
                run, _ = running[future]
                try:
                    row = future.result()
                except Exception:
                    broken = True
                    continue
                del running[future]
                more = True
                yield {**row, **run.columns()}
            if broken:
                self.close()
                yield from self._again(running)

    def _again(self, running: dict[Any, tuple[Run, float]]) -> Iterator[dict[str, Any]]:
        """Run what was under way one by one, to find the trial that ends its process."""
        for run, _ in list(running.values()):
            try:
                future = self._executor().submit(run_limited, run.trial, None, self.limit)
                row = future.result(timeout=self.limit + GRACE)
            except Exception as error:
                self.close()
                why = f'the process of the trial ended: {type(error).__name__}'
                row = failed_row(run.trial, 'crashed', why, 'controller')
            yield {**row, **run.columns()}
        running.clear()

    def _executor(self) -> Any:
        if self._pool is None:
            # loky starts its processes from nothing: no copies of threads, no __main__ guard
            try:
                from joblib.externals.loky import ProcessPoolExecutor
            except ImportError as error:
                raise InvalidInput(
                    "runs in several processes need joblib: pip install 'contact_sim[verdict]', "
                    'or --jobs 1'
                ) from error
            self._pool = ProcessPoolExecutor(self.jobs, initializer=ignore_interrupts)
            # the limit of a trial does not count the start of its process
            list(self._pool.map(ready, [0.1] * self.jobs))
        return self._pool

    def call(self, function: Callable[..., Any], *arguments: Any, otherwise: Any) -> Any:
        """Return what a function returns in a process; `otherwise` where it hangs or fails."""
        if self.jobs == 1:
            return function(*arguments)
        try:
            return self._executor().submit(function, *arguments).result(self.limit + GRACE)
        except Exception:
            self.close()
            return otherwise

    def all(
        self, trials: Sequence[Trial], path: Callable[[Trial], Path | None], until: float
    ) -> list[dict[str, Any]]:
        """Return the rows of trials in order; those that begin before `until`, monotonic [s]."""
        waiting = list(enumerate(trials))

        def next_run() -> tuple[Run, Path | None] | None:
            if not waiting or time.monotonic() > until:
                return None
            k, trial = waiting.pop(0)
            return Run(trial, 'search', k), path(trial)

        found = {int(row['level']): row for row in self.rows(next_run)}
        count = next((k for k in range(len(trials)) if k not in found), len(trials))
        return [found[k] for k in range(count)]
