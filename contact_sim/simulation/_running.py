"""Tools for a running simulation: observers, announced compilation, pacing, pushes, requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numba.core import event
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim.contact_models._base import ContactModel, TimeSteppingModel
from contact_sim.solvers._jit import entries_in, progress

# --- What a simulation calls in its steps

RunController = Any
"""Object with `effort(time, q, v)`, or a function of these; see `Simulator.run`."""


class StepObserver(Protocol):
    """Observer that `Simulator.step` calls; it must not change the simulator."""

    def before_step(self, external_wrenches: Mapping[str, ArrayLike]) -> None:
        """Observe the start of a step, after its efforts have been checked and applied."""
        ...

    def after_step(self) -> None:
        """Observe the state after a step; after a failed step it is the state before it."""
        ...


# --- Compilation of the numerical kernels at the first start

logger = logging.getLogger('contact_sim')
PATIENCE = 1.5
"""Seconds before the announcement; a start from the cache takes less."""
INTERVAL = 5.0
"""Seconds between two lines on the progress."""


@contextmanager
def announced(*models: ContactModel) -> Iterator[None]:
    """Log the progress of a compilation while the block runs, if it takes long.

    Args:
        models: contact models whose kernels the block needs.
    """
    ended = threading.Event()
    entries = [entry for model in models for entry in entries_of(model)]

    def announce() -> None:
        pause = PATIENCE
        while not ended.wait(pause):
            done, existing = progress(entries)
            logger.warning(
                'compiling the numerical kernels: %d of %d (first start only)', done, existing
            )
            pause = INTERVAL

    threading.Thread(target=announce, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def entries_of(model: ContactModel) -> list[Any]:
    """Return the entries that a contact model runs in every step."""
    if isinstance(model, TimeSteppingModel):
        return [model.compiled.advance]
    return entries_in(type(model).__module__.rpartition('.')[0])


class _Interrupter(event.Listener):  # type: ignore[misc]
    def __init__(self, go_on: Callable[[], bool]) -> None:
        self.go_on = go_on

    def on_start(self, event: Any) -> None:
        if not self.go_on():
            raise KeyboardInterrupt

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def compiling_while(go_on: Callable[[], bool]) -> Iterator[None]:
    """Give up a compilation in the block at its next kernel when `go_on()` has become False.

    An exception in a signal handler would not do: it may end in a callback of the compiler, which
    prints it and goes on.

    Raises:
        KeyboardInterrupt: the compilation was given up.
    """
    with event.install_listener('numba:compile', _Interrupter(go_on)):
        yield


# --- Pacing

LARGEST_LAG = 0.1
"""Wall seconds behind schedule at which the schedule is given up and starts anew."""
WINDOW = 1.0
"""Wall seconds over which the real-time factor is measured."""


class Pacer:
    """Holds simulated time to a schedule: wall = anchor + (t − t_anchor) / factor.

    The schedule is absolute, so errors of single sleeps do not add up. When the simulation cannot
    keep up, time slows down: the schedule starts anew and no step is skipped.

    Attributes:
        factor: simulated over wall time that is asked for, 0: as fast as possible.
        overruns: how often the schedule was given up.
        measured: real-time factor over the last second or so; 0 in the first one.
    """

    def __init__(self, factor: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.factor = factor
        self.overruns = 0
        self.restart(0.0)

    def restart(self, simulated: float, factor: float | None = None) -> None:
        """Start a new schedule at simulated time [s], with a new factor if given."""
        if factor is not None:
            self.factor = factor
        self._wall = self._window_wall = self._clock()
        self._simulated = self._window_simulated = simulated
        self.measured = 0.0

    def wait(self, simulated: float) -> float:
        """Return how long to sleep [s] before simulated time may be reached; 0 if it is due."""
        now = self._clock()
        if now - self._window_wall >= WINDOW:
            elapsed = simulated - self._window_simulated
            self.measured = elapsed / (now - self._window_wall)
            self._window_wall, self._window_simulated = now, simulated
        if self.factor == 0.0:
            return 0.0
        ahead = self._wall + (simulated - self._simulated) / self.factor - now
        if ahead < -LARGEST_LAG:
            self.overruns += 1
            self._wall, self._simulated = now, simulated
        return max(ahead, 0.0)


# --- Pushes


class PushSchedule:
    """Wrenches that act on links, each until the step before which it ends; they add up."""

    def __init__(self) -> None:
        self._pushes: list[tuple[int, str, Array]] = []

    def add(self, link: str, wrench: Array, end: int) -> None:
        """Let `wrench` [N, N m], world axes, (6,), act on `link` in all steps before `end`."""
        self._pushes.append((end, link, wrench))

    def acting(self, step: int) -> dict[str, Array]:
        """Return the sum of the wrenches on every link pushed in `step`, each (6,)."""
        self._pushes = [push for push in self._pushes if push[0] > step]
        total: dict[str, Array] = {}
        for _, link, wrench in self._pushes:
            total[link] = total.get(link, np.zeros(6)) + wrench
        return total

    def constant_until(self, step: int, link: str) -> int:
        """Return the step at which the sum on `link`, pushed in `step`, changes next."""
        return min(end for end, pushed, _ in self._pushes if pushed == link and end > step)

    def clear(self) -> None:
        """End all pushes."""
        self._pushes.clear()


# --- Requests of other threads


class Request:
    """An action of another thread, done between two steps unless it is withdrawn before."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._begun = threading.Lock()
        self.done = threading.Event()
        self.error: Exception | None = None

    def serve(self) -> None:
        """Run the action once and keep its error."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._action()
        except Exception as error:
            self.error = error
        finally:
            self.done.set()

    def withdraw(self) -> bool:
        """Return whether the action has not begun; then it never will."""
        return self._begun.acquire(blocking=False)
