"""What the README promises in code must be what happens."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / 'README.md').read_text(encoding='utf-8')


def block(language, after):
    """Return the first fenced block of `language` behind the text `after`."""
    tail = README[README.index(after) :]
    return re.search(rf'```{language}\n(.*?)```', tail, re.DOTALL).group(1)


def test_the_test_in_the_readme_passes(trial):
    names = {}
    exec(compile(block('python', 'A test of your controller'), 'README.md', 'exec'), names)
    names['test_it_stands_up_to_a_push'](trial)


def test_python_example_prints_what_the_readme_says():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block('python', 'In Python'), 'README.md', 'exec'), {})
    expected = block('text', 'report.solver.message')
    assert printed.getvalue() == expected
