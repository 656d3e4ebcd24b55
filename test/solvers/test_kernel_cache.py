"""Compiled kernels: their code; on disk, who compiles, who waits, what an interruption leaves."""

import fcntl
import gc
import re
import threading
import time
from contextlib import suppress

import numba
import numpy as np
import pytest
from numba.core import base, event, ir

from contact_sim.solvers import _jit
from contact_sim.solvers._dense import eliminate_right_sides


def doubled(x):
    return 2.0 * x


@pytest.fixture
def cached(monkeypatch, tmp_path):
    monkeypatch.setattr(_jit, 'cache_folder', lambda module: str(tmp_path / 'kernels'))
    return lambda: _jit._compiled(doubled, nogil=False)


def lock_file(tmp_path):
    (file,) = (tmp_path / 'kernels').glob('*.lock')
    return file


@pytest.mark.skipif(
    bool(numba.config.BOUNDSCHECK), reason='each index is checked: one number at a time'
)
def test_loops_take_several_numbers_at_once(cached):
    elimination = _jit._compiled(eliminate_right_sides.py_func, nogil=False)
    matrix, values = 4.0 * np.eye(5) + np.arange(25.0).reshape(5, 5), np.arange(35.0).reshape(5, 7)
    expected = np.linalg.solve(matrix, values)
    assert elimination(matrix, values) > 0.0
    assert values == pytest.approx(expected, abs=1e-9)
    code = ''.join(elimination.inspect_llvm().values())
    # both triangles, four rows at a time: 8 products, and those of single rows
    assert len(re.findall(r'fmul <\d+ x double>', code)) >= 8


def test_a_compiled_kernel_is_loaded_by_the_next_one(cached):
    first, second = cached(), cached()
    assert first(1.5) == second(1.5) == 3.0
    assert (sum(first.stats.cache_hits.values()), sum(second.stats.cache_hits.values())) == (0, 1)


def test_a_compilation_that_was_interrupted_does_not_hold_up_the_next_try(cached, monkeypatch):
    kernel = cached()
    compile_kernel = kernel._compiler.compile

    def interrupted(arguments, result):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel._compiler, 'compile', interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel(1.5)
    monkeypatch.setattr(kernel._compiler, 'compile', compile_kernel)
    began = time.monotonic()
    assert kernel(1.5) == 3.0
    assert time.monotonic() - began < 30.0


def test_who_finds_it_being_compiled_waits(cached, tmp_path):
    cached()(1.5)
    other = cached()
    with lock_file(tmp_path).open('w') as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = threading.Thread(target=other, args=(numba.float32(1.5),))
        done.start()  # of other types, so that it is not on disk
        done.join(0.5)
        assert done.is_alive()
    done.join(30.0)
    assert not done.is_alive()


def test_a_folder_that_cannot_be_written_is_said(cached, tmp_path):
    (tmp_path / 'kernels').write_text('no folder')
    with pytest.warns(RuntimeWarning, match='NUMBA_CACHE_DIR'):
        assert cached()(1.5) == 3.0


def polynomial(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * x[k] + 2 * x[k]
    return total


def wrong(x):
    return x.no_such_part


def test_the_answers_of_numba_are_asked_for_once(monkeypatch):
    asked, x = [], np.array([0.5, -1.5])
    assert numba.njit(polynomial)(x) == polynomial(x)

    def ask(function, context, args, kws):
        answer = get_call_type(function, context, args, kws)
        if answer is not None:
            asked.append((function, tuple(args)))
        return answer

    get_call_type = numba.types.BaseFunction.get_call_type
    monkeypatch.setattr(numba.types.BaseFunction, 'get_call_type', ask)
    compiled = numba.njit(pipeline_class=_jit.QuickCompiler)(polynomial)
    assert compiled(x) == polynomial(x) == 0.5
    assert asked
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize('collects', [True, False])
@pytest.mark.parametrize('function', [polynomial, wrong])
def test_a_compilation_leaves_numba_and_the_garbage_collector_alone(function, collects):
    replaced = [
        (numba.types.BaseFunction, 'get_call_type'), (base, '_has_loc'),
        (ir.Inst, '_rec_list_vars'), (event, 'start_event'), (event, 'end_event'),
    ]  # fmt: skip
    before = [getattr(*place) for place in replaced]
    compiled = numba.njit(pipeline_class=_jit.QuickCompiler)(function)
    enabled = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        with suppress(numba.TypingError):
            compiled(np.ones(2))
        assert gc.isenabled() == collects
    finally:
        (gc.enable if enabled else gc.disable)()
    assert [getattr(*place) for place in replaced] == before
    assert _jit.SHORTCUTS.depth == 0


@pytest.mark.parametrize(
    'value', [None, 2.0, 'x', ('x', 1), (1, ('a', [2, ('b',)])), {'p': ('a',), 'q': 3}, [], {}]
)
def test_variables_of_an_instruction_are_found_as_numba_finds_them(value):
    """Letters a to c stand for variables, as themselves and within instructions."""

    def built(part):
        if isinstance(part, dict):
            return {key: built(item) for key, item in part.items()}
        if isinstance(part, (list, tuple)):
            return type(part)(built(item) for item in part)
        scope = ir.Scope(None, ir.unknown_loc)
        variable = ir.Var(scope, str(part), ir.unknown_loc)
        inner = ir.Expr.getattr(variable, 'part', ir.unknown_loc)
        return {'a': variable, 'b': inner}.get(part, part)

    instruction, parts = ir.Del('x', ir.unknown_loc), built(value)
    assert _jit.variables_in(instruction, parts) == instruction._rec_list_vars(parts)
