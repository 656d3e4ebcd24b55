"""Every tag with golden numbers (docs/theory/golden.md) names the tests that ask for them.

A test carries a tag in its name (`test_t18_…`, `test_2_4_…`), its docstring or a comment
(`# T18: …`, `# 2.4: …`, `theory 2.4`), so that a search for the tag finds it. The last table of
the golden numbers, and the errata, name tests by file and function; both are checked here.
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
ERRATA = TEST.parent / 'docs' / 'errata.md'
COURSE = {'T': 26, 'E': 14, 'C': 8, 'R': 2}
"""Tags of the source texts, T1 to T26 and so on: every one has numbers and a test."""
FEWEST = {'X': 17, '2': 15}
"""Experiments and models with golden numbers: what is asked for does not get less unnoticed."""
WRITTEN = re.compile(r'\b[CERTX]\d+(?=[abc]?\b)|(?:^|theory )(2\.\d+)\b')
LIKE_A_TAG = re.compile(r'[CERTX]\d|2\.\d|_[certx2]\d*_')
IN_A_NAME = re.compile(r'(?<=_)(?:[certx]\d+|2_\d+)(?=_)')
TAG = r'[CERTX]\d+|2\.\d+'
ROW = re.compile(rf'^\| ({TAG}) \| [^|]+ \| [^|]+', re.MULTILINE)
SHOWN_BY = re.compile(rf'^\| ({TAG}) \|(?:.*\|)? (`test_[^|]+`) \|$', re.MULTILINE)
"""A row whose last column names tests."""


def comments(source):
    """Yield the text of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip('# ')


def tags_of(function, lines):
    """Return the tags that a test carries."""
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)]) - 1
    source = '\n'.join(lines[first : function.end_lineno])
    if not LIKE_A_TAG.search(source):  # most: reading comments takes its time
        return set()
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
        lines = text.splitlines()
        for function in ast.parse(text).body:
            if not (isinstance(function, ast.FunctionDef) and function.name.startswith('test_')):
                continue
            tags = tags_of(function, lines)
            if tags and any(isinstance(node, ast.Assert) for node in ast.walk(function)):
                for tag in tags:
                    found.setdefault(tag, []).append(f'{path.name}::{function.name}')
    return found


def named_tests(page):
    """Yield (tag, name of a test) for every test in the last column of a table of a page."""
    for tag, tests in SHOWN_BY.findall(page.read_text(encoding='utf-8')):
        for test in re.findall('`([^`]+)`', tests):
            yield tag, test


TAGS = sorted(set(ROW.findall(GOLDEN.read_text(encoding='utf-8'))))
OF_THE_COURSE = [f'{first}{k}' for first, last in COURSE.items() for k in range(1, last + 1)]


def test_every_tag_of_the_course_has_golden_numbers():
    assert [tag for tag in OF_THE_COURSE if tag not in TAGS] == []


@pytest.mark.parametrize('tag', TAGS)
def test_a_test_asks_for_the_numbers(tag):
    assert tagged_tests().get(tag), f'no test carries the tag {tag}'


@pytest.mark.parametrize('tag', [tag for tag in TAGS if not tag.startswith('2.')])
def test_the_table_names_a_test_of_every_tag(tag):
    named = {tag for tag, _ in named_tests(GOLDEN)}
    assert tag in named, f'no row for {tag} in the table of tests of {GOLDEN.name}'


@pytest.mark.parametrize('page', [GOLDEN, ERRATA], ids=lambda page: page.name)
def test_tests_that_are_named_exist_and_carry_the_tags(page):
    wrong = [
        f'{test}: {tag}'
        for tag, test in named_tests(page)
        if test not in tagged_tests().get(tag, ())
    ]
    assert wrong == []


def test_every_erratum_names_the_test_that_shows_it():
    rows = re.findall(rf'^\| (?:{TAG}).*', ERRATA.read_text(encoding='utf-8'), re.MULTILINE)
    assert len(rows) >= 15
    assert [row for row in rows if not SHOWN_BY.match(row)] == []


@pytest.mark.parametrize('first', FEWEST)
def test_no_golden_number_is_lost(first):
    assert sum(tag.startswith(first) for tag in TAGS) >= FEWEST[first]


def test_what_a_test_asks_for_has_golden_numbers():
    tagged = {tag for tag in tagged_tests() if tag[0] in 'TX'}
    assert sorted(tagged - set(TAGS)) == []
