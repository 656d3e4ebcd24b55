"""What the README promises in code must be what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from contact_sim import contact_models
from contact_sim.contact_models.guarantees import LIFTS_OFF

README = (Path(__file__).resolve().parents[2] / 'README.md').read_text(encoding='utf-8')


def block(language, after):
    """Return the first fenced block of `language` behind the text `after`."""
    tail = README[README.index(after) :]
    return re.search(rf'```{language}\n(.*?)```', tail, re.DOTALL).group(1)


@pytest.mark.parametrize('model', contact_models())
def test_the_table_of_models_says_where_a_sliding_foot_lifts_off(model):
    """As the measured table of guarantees.py does, with the options where it depends on them."""
    gives_up = re.search(rf'^  \| `{model}` \|[^|]*\|([^|]*)\|', README, re.MULTILINE).group(1)
    options = LIFTS_OFF.get(model, {})
    assert ('lifts off' in gives_up) == bool(options)
    for option in filter(None, options):
        assert f'`{option.split(": ")[1]}`' in gives_up.split('lifts off')[1]


def test_the_test_in_the_readme_passes(trial):
    names = {}
    exec(compile(block('python', 'A test of your controller'), 'README.md', 'exec'), names)
    names['test_it_stands_up_to_a_push'](trial)


def test_the_examples_run():
    section = re.search(r'^## Examples$(.*?)^## ', README, re.DOTALL | re.MULTILINE).group(1)
    blocks = re.findall(r'```python\n(.*?)```', section, re.DOTALL)
    assert len(blocks) >= 6
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for text in blocks:
            exec(compile(text, 'README.md', 'exec'), names)
    assert names['worlds'].running.all()
    weight = 9.81 * names['robot'].total_mass
    assert names['report'].contacts.force[:, 2].sum() > 0.2 * weight
    assert len(printed.getvalue().splitlines()) >= 5
    assert 'nan' not in printed.getvalue()


def test_python_example_prints_what_the_readme_says():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block('python', 'In Python'), 'README.md', 'exec'), {})
    expected = block('text', 'report.solver.message')
    assert printed.getvalue() == expected
