"""Runs trials side by side, each in a process of its own: what hangs or dies is a row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from contact_sim.campaign import Limits, Trial
from contact_sim.campaign._isolation import (
    Ended,
    call_isolated,
    end_children,
    open_for_requests,
    run_isolated,
)
from contact_sim.verdict._plan import Run

NextRun = Callable[[], tuple[Run, Path | None] | None]
"""Names the next run and where to record it; None: nothing is wanted now."""


class Runner:
    """Runs trials in `jobs` processes (campaign/_isolation.py).

    Args:
        jobs: processes.
        limit: wall time of a trial [s].
    """

    def __init__(self, jobs: int, limit: float) -> None:
        self.jobs, self.limits = jobs, Limits(wall=limit)
        # as long as the runner: a process ends with the thread that has started it
        self._threads = ThreadPoolExecutor(jobs)

    def __enter__(self) -> Runner:
        open_for_requests()
        return self

    def __exit__(self, *error: object) -> None:
        end_children()
        self._threads.shutdown()

    def run(self, trial: Trial, recording: Path | None) -> dict[str, Any]:
        """Return the row of a trial; its recording is kept where it failed after some steps."""
        if recording is not None:
            recording.parent.mkdir(parents=True, exist_ok=True)
        (row,) = run_isolated([trial.as_row()], self.limits, recording)
        if recording is not None:
            usable = not row['success'] and row['steps'] > 0
            row['recording'] = str(recording) if usable else ''
            if not usable:
                with suppress(OSError):
                    recording.unlink()
        return row

    def call(self, function: str, trial: Trial, otherwise: Any) -> Any:
        """Return what 'module:function' says of a trial; `otherwise` where it hangs or dies."""
        try:
            return call_isolated(function, trial, self.limits)
        except Ended:
            return otherwise

    def rows(self, next_run: NextRun) -> Iterator[dict[str, Any]]:
        """Yield rows as their trials end; `next_run` is asked whenever there is room."""
        running: dict[Future[dict[str, Any]], Run] = {}
        try:
            while True:
                while len(running) < self.jobs and (chosen := next_run()) is not None:
                    run, path = chosen
                    running[self._threads.submit(self.run, run.trial, path)] = run
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    run = running.pop(future)
                    yield {**future.result(), **run.columns()}
        except BaseException:  # Ctrl-C: no thread waits for its trial
            end_children()
            raise

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
