"""The announcement of a compilation, and its end before its time."""

import logging
import threading

import numba
import pytest

from contact_sim.contact_models._ncp import Ncp
from contact_sim.simulation import _running
from contact_sim.solvers._jit import progress


def test_progress_counts_kernels_that_a_module_reaches():
    done, existing = progress(['contact_sim.arrays._views'])
    assert existing == 2  # arrays_of, square
    assert 0 <= done <= existing
    assert progress(['contact_sim.arrays._views', 'someone.elses'])[1] == 2
    assert progress([Ncp.__module__])[1] > 100


def test_lines_appear_while_the_block_runs_and_end_with_it(monkeypatch):
    lines, two = [], threading.Event()

    def warning(message, *values):
        lines.append(message % values)
        if len(lines) == 2:
            two.set()

    monkeypatch.setattr(_running.logger, 'warning', warning)
    monkeypatch.setattr(_running, 'PATIENCE', 0.01)
    monkeypatch.setattr(_running, 'INTERVAL', 0.01)
    before = set(threading.enumerate())
    with _running.announced(Ncp.__module__):
        (watch,) = set(threading.enumerate()) - before
        assert two.wait(60.0)
    watch.join(10.0)
    assert not watch.is_alive()
    assert all(' of about ' in line for line in lines)


def test_a_fast_start_is_silent(caplog):
    with caplog.at_level(logging.WARNING), _running.announced(Ncp.__module__):
        pass
    assert not caplog.messages


def test_a_compilation_that_nobody_wants_any_more_is_given_up():
    @numba.njit
    def inner(x):
        return x + 1

    @numba.njit
    def outer(x):
        return inner(x)

    asked = []

    def wanted():
        asked.append(1)
        return len(asked) < 2

    with pytest.raises(KeyboardInterrupt), _running.compiling_while(wanted):
        outer(1)
    assert len(asked) == 2
    assert not inner.signatures
    assert outer(1) == 2
