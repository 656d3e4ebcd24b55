"""The examples of the gallery run, keep their own asserts, and draw something."""

import ast
import runpy
from pathlib import Path

import matplotlib
import pytest

FOLDER = Path(__file__).resolve().parents[2] / 'examples' / 'gallery'
SHOWN = {'print', 'plt.show', 'MovingScene', 'np.testing.assert_allclose', 'folder.cleanup'}
"""Calls at the end of a cell: the site shows what any other returns, a legend with its address."""
EXAMPLES = sorted(FOLDER.glob('plot_*.py'))


@pytest.fixture
def pyplot(monkeypatch, tmp_path):
    """An empty pyplot without a display, in an empty folder."""
    matplotlib.use('Agg')
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pyplot, 'show', lambda: None)
    pyplot.close('all')
    with matplotlib.rc_context():
        yield pyplot
    pyplot.close('all')


def test_there_are_enough():
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize('path', EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_it_runs_and_draws(path, pyplot):
    runpy.run_path(str(path), run_name='__main__')
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:
        for axes in figure.axes:
            assert axes.has_data()
            assert axes.get_xlabel() or axes.get_ylabel()


@pytest.mark.parametrize('path', EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_it_has_a_title_and_states_a_fact(path):
    tree = ast.parse(path.read_text(encoding='utf-8'))
    title, underline, *_ = ast.get_docstring(tree).split('\n')
    assert underline == '=' * len(title)
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


@pytest.mark.parametrize('path', EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_no_cell_ends_in_a_value_that_says_nothing(path):
    cells = path.read_text(encoding='utf-8').split('\n# %%\n')
    last = [ast.parse(cell).body[-1] for cell in cells]
    values = [node.value for node in last if isinstance(node, ast.Expr)]
    calls = [ast.unparse(value.func) for value in values if isinstance(value, ast.Call)]
    assert set(calls) <= SHOWN
