"""Every tag with golden numbers (docs/theory/golden.md) names the tests that ask for them.

A test carries a tag in its name (`test_t18_…`, `test_2_4_…`), its docstring or a comment
(`# T18: …`, `# 2.4: …`, `theory 2.4`), so that a search for the tag finds it.
"""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

TEST = Path(__file__).resolve().parents[1]
GOLDEN = TEST.parent / 'docs' / 'theory' / 'golden.md'
FEWEST = {'T': 15, 'X': 15, '2': 15, 'E': 10, 'C': 3}
"""Tags that the golden numbers have at least: what is asked for does not get less unnoticed."""
WRITTEN = re.compile(r'\b[CETX]\d+(?=[abc]?\b)|(?:^|(?:theory|physics\.md) )(2\.\d+)\b')
IN_A_NAME = re.compile(r'(?<=_)(?:[cetx]\d+|2_\d+)(?=_)')
ROW = re.compile(r'^\| ([CETX]\d+|2\.\d+) \| [^|]+ \| [^|]+', re.MULTILINE)


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


@cache
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


TAGS = sorted(set(ROW.findall(GOLDEN.read_text(encoding='utf-8'))))


@pytest.mark.parametrize('tag', TAGS)
def test_a_test_asks_for_the_numbers(tag):
    assert tagged_tests().get(tag), f'no test carries the tag {tag}'


@pytest.mark.parametrize('first', FEWEST)
def test_no_golden_number_is_lost(first):
    assert sum(tag.startswith(first) for tag in TAGS) >= FEWEST[first]


def test_what_a_test_asks_for_has_golden_numbers():
    tagged = {tag for tag in tagged_tests() if tag[0] in 'TX'}
    assert sorted(tagged - set(TAGS)) == []
