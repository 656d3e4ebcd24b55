"""The announcement of a compilation, and its end before its time."""

import logging
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba import types

from contact_sim.contact_models import CONTACT_MODELS, contact_models
from contact_sim.contact_models._ncp import Ncp
from contact_sim.simulation import _running
from contact_sim.solvers._jit import ON_DEMAND, kernel, on_demand, progress


def test_progress_counts_the_kernels_that_an_entry_runs():
    @kernel
    def doubled(x):
        return 2.0 * x

    @kernel
    def tripled(x):
        return 3.0 * x

    namespace = {'doubled': doubled, 'tripled': tripled, '__name__': __name__}
    exec('def inner(x):\n    return doubled(x)\n', namespace)
    namespace['inner'] = kernel(namespace['inner'])
    exec('def outer(x):\n    return inner(x) + doubled(x)\n', namespace)
    exec('def calls(x):\n    return doubled(x)\n', namespace)
    outer = SimpleNamespace(py_func=namespace['outer'])
    assert progress([outer]) == (0, 2)
    calls = numba.njit(namespace['calls'])  # in this process alone: it has no place on disk
    assert calls(1.0) == 2.0
    assert progress([outer]) == (1, 2)
    assert progress([outer, SimpleNamespace(py_func=tripled.py_func)]) == (1, 2)


def test_every_contact_model_says_what_it_compiles():
    for name in contact_models():
        model = CONTACT_MODELS[name]()
        with _running.announced(model):
            assert progress(_running.entries_of(model))[1] > 100


COLD = """
import sys
from contact_sim import Simulator, load_robot
from contact_sim.solvers._jit import ON_DEMAND
sim = Simulator(load_robot('go1'))
for _ in range(60):
    sim.step([0.0] * 12)
    if sim.last_report.contacts.normal_force.any():
        break
else:
    raise SystemExit('no contact')
print(*sorted(one.name for one in ON_DEMAND if one.compiled))
for _ in range(400):
    sim.step([0.0] * 12)
print(*sorted(one.name for one in ON_DEMAND if one.compiled))
"""


def test_what_few_steps_need_is_compiled_when_one_does():
    """A robot that touches down needs neither the last solvers nor the search over its bodies."""
    done = subprocess.run([sys.executable, '-c', COLD], capture_output=True, text=True, check=True)
    first, last = done.stdout.splitlines()
    assert first == ''
    assert 'find_on_ground' in last.split()  # limp legs: its trunk is on the ground


def test_an_interruption_while_it_compiles_is_not_lost(monkeypatch):
    signature = types.void(types.CPointer(types.double), types.intp)

    def only_here(numbers, n):
        for i in range(n):
            numbers[i] = 7.0

    machine_code = numba.cfunc(signature)(only_here)  # without a place on disk
    only_here = on_demand(signature)(only_here)
    vars(only_here)['address'] = machine_code.address
    compile_, tries = only_here.compile, []

    def interrupted():
        tries.append(1)
        if len(tries) == 1:
            raise KeyboardInterrupt
        compile_()

    monkeypatch.setattr(only_here, 'compile', interrupted)
    numbers = np.zeros(3)
    # a shell that starts a program in the background lets it ignore Ctrl-C
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        only_here._compile_and_call(numbers.ctypes.data, 2)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert numbers.tolist() == [7.0, 7.0, 0.0]
    assert len(tries) == 2
    ON_DEMAND.remove(only_here)


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
    with _running.announced(Ncp()):
        (watch,) = set(threading.enumerate()) - before
        assert two.wait(60.0)
    watch.join(10.0)
    assert not watch.is_alive()
    assert all(' of ' in line for line in lines)


def test_a_fast_start_is_silent(caplog):
    with caplog.at_level(logging.WARNING), _running.announced(Ncp()):
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
