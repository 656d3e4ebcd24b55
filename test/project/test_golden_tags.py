"""Every tag of physics.md that holds numbers of a contact model names the tests that ask for them.

A test carries a tag in its name (`test_t18_…`, `test_2_4_…`), its docstring or a comment
(`# T18: …`, `# 2.4: …`, `physics.md 2.4`), so that a search for the tag finds it.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

TEST = Path(__file__).resolve().parents[1]
CONTACT_MODELS = (
    *(f'T{k}' for k in (8, *range(10, 23), 26)),
    *(f'X{k}' for k in (1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 14, 15, 16, 19, 23)),
    *(f'2.{k}' for k in range(1, 13)),
    'C8',
)
WRITTEN = re.compile(r'\b[CTX]\d+(?=[abc]?\b)|(?:^|physics\.md )(2\.\d+)\b')
IN_A_NAME = re.compile(r'(?<=_)(?:[ctx]\d+|2_\d+)(?=_)')


def comments(source):
    """Yield the text of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip('# ')


def tags_of(function, lines):
    """Return the tags that a test carries."""
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)]) - 1
    source = '\n'.join(lines[first : function.end_lineno])
    texts = [*comments(source), ast.get_docstring(function) or '']
    tags = {match[1] or match[0] for text in texts for match in WRITTEN.finditer(text)}
    named = IN_A_NAME.findall(f'{function.name}_')
    return tags | {tag.replace('_', '.').upper() for tag in named}


def tagged_tests():
    """Return {tag: names of the tests that carry it}, of tests that assert something."""
    found = {}
    for path in sorted(TEST.rglob('test_*.py')):
        text = path.read_text(encoding='utf-8')
        for function in ast.parse(text).body:
            if not (isinstance(function, ast.FunctionDef) and function.name.startswith('test_')):
                continue
            if not any(isinstance(node, ast.Assert) for node in ast.walk(function)):
                continue
            for tag in tags_of(function, text.splitlines()):
                found.setdefault(tag, []).append(f'{path.name}::{function.name}')
    return found


TESTS = tagged_tests()


@pytest.mark.parametrize('tag', CONTACT_MODELS)
def test_a_test_asks_for_the_numbers(tag):
    assert TESTS.get(tag), f'no test carries the tag {tag}'
