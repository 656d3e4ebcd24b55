"""The notebook of the quick start runs, cell by cell, and what it shows is there."""

import ast
import contextlib
import io
import json

import pytest
from markdown_pages import ROOT

NOTEBOOK = ROOT / 'docs' / 'quick_start.ipynb'


def run(text, names):
    """Run a cell; return what it prints, and the value of the expression at its end."""
    tree, printed, value = ast.parse(text), io.StringIO(), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, str(NOTEBOOK), 'exec'), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), 'eval'), names)
    return printed.getvalue(), value


def test_every_cell_of_the_notebook_runs():
    pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
    notebook = json.loads(NOTEBOOK.read_text(encoding='utf-8'))
    assert notebook['nbformat'] == 4
    assert not any(cell.get('outputs') for cell in notebook['cells'])
    names, printed, scenes = {'__name__': 'notebook'}, '', []
    for cell in notebook['cells']:
        if cell['cell_type'] != 'code':
            continue
        text, value = run(''.join(cell['source']), names)
        printed += text
        if hasattr(value, '_repr_html_'):
            scenes.append(value._repr_html_())
    assert len(scenes) == 1
    assert 'iframe' in scenes[0]
    assert len(scenes[0]) > 100_000
    for name in names['contact_sim'].contact_models():
        assert f'\n{name} ' in printed
    heights = [line for line in printed.splitlines() if ' base ' in line]
    assert len(heights) == 8
