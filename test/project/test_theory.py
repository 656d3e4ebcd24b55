"""Every formula that the sources cite is in docs/theory or docs/errata.md: tags, pages, links.

A citation is `theory <tags>`, sections (2.11) or tags (T15), in lists (E4, E10), with `and`, or as
a range (2.6 to 2.8). It resolves to a heading that begins with the tag; one of an experiment (X2)
to a row of the golden numbers.
"""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest
from markdown_pages import headings, links, prose

ROOT = Path(__file__).resolve().parents[2]
THEORY = ROOT / 'docs' / 'theory'
PAGES = [*sorted(THEORY.glob('*.md')), ROOT / 'docs' / 'errata.md']
INDEX = THEORY / 'README.md'
SOURCES = sorted(
    path for room in ('contact_sim', 'test', 'benchmarks') for path in (ROOT / room).rglob('*.py')
)
TAG = r'(?:[TECRX]\d+|\d(?:\.\d+)?(?![\d.]*\d))'
CITATION = re.compile(rf'\btheory (?:section )?({TAG}[abc]?\b(?:(?:, | and | to ){TAG}[abc]?\b)*)')
RANGE = re.compile(rf'({TAG}) to ({TAG})')
BARE = re.compile(r'\b[TECX]\d{1,2}(?=[abc]?\b)')
HEADING = re.compile(rf'^#+ ({TAG}(?:, {TAG})*)(?: |$)')
ROW = re.compile(rf'^\| ({TAG}) \|')


@cache
def defined():
    """Return {tag: pages that state it in a heading, or list its numbers}."""
    found = {}
    for path in PAGES:
        for line in headings(path):
            match = HEADING.match(line)
            for tag in match[1].split(', ') if match else ():
                found.setdefault(tag, []).append(path.name)
    for line in prose(THEORY / 'golden.md').splitlines():
        match = ROW.match(line)
        if match and match[1].startswith('X') and match[1] not in found:
            found[match[1]] = ['golden.md']
    return found


def spread(first, last):
    """Return the tags from `first` to `last`: 2.6 to 2.8 are 2.6, 2.7 and 2.8."""
    head, begin = re.fullmatch(r'(.*?)(\d+)', first).groups()
    same, end = re.fullmatch(r'(.*?)(\d+)', last).groups()
    assert head == same, f'{first} to {last}: not a range'
    assert int(begin) < int(end), f'{first} to {last}: not a range'
    return [f'{head}{k}' for k in range(int(begin), int(end) + 1)]


def cited_in(text):
    """Yield the tags that `text` cites, those of ranges included."""
    text = re.sub(r'\s*\n\s*(?:#\s*)?', ' ', text)
    for match in CITATION.finditer(text):
        for first, last in RANGE.findall(match[1]):
            yield from spread(first, last)
        yield from re.findall(TAG, match[1])


def remarks(path):
    """Return the comments and docstrings of a source file."""
    text = path.read_text(encoding='utf-8')
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.append(str(node.value.value))
    return '\n'.join(found)


def test_citations_are_read_in_all_their_forms():
    forms = {
        '(theory 2.11)': {'2.11'},
        'theory 2.6 to 2.8, T8, T12 to T15.': {
            '2.6', '2.7', '2.8', 'T8', 'T12', 'T13', 'T14', 'T15',
        },
        'numbers of theory E5 and E7, bad input': {'E5', 'E7'},
        'law (theory\n2.11), κ = 1 (2.12)': {'2.11'},
        '# that of theory\n    # X11a: 38.66°': {'X11'},
        'theory 2)': {'2'},
        'a theory of friction': set(),
    }  # fmt: skip
    assert {text: set(cited_in(text)) for text in forms} == forms


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_file_cites_is_in_the_theory(path):
    if path == Path(__file__).resolve():
        return
    cited = set(cited_in(path.read_text(encoding='utf-8')))
    assert sorted(cited - defined().keys()) == []


def test_the_sources_cite_the_theory():
    cited = {tag for path in SOURCES for tag in cited_in(path.read_text(encoding='utf-8'))}
    assert len(cited) >= 40


def test_tags_in_comments_and_docstrings_are_in_the_theory():
    lost = [
        f'{path.relative_to(ROOT)}: {tag}'
        for path in SOURCES
        for tag in sorted(set(BARE.findall(remarks(path))) - defined().keys())
    ]
    assert lost == []


def test_a_tag_is_stated_once():
    assert {tag: pages for tag, pages in defined().items() if len(pages) > 1} == {}


def test_the_index_lists_every_page_and_every_tag():
    linked = {Path(target.partition('#')[0]).name for target in links(INDEX)}
    assert {path.name for path in PAGES} - {'README.md'} <= linked
    listed = {tag: target for tag, target in re.findall(rf'\[({TAG})\]\(([^)]+)\)', prose(INDEX))}
    assert sorted(listed) == sorted(defined())
    wrong = {
        tag: target
        for tag, target in listed.items()
        if Path(target.partition('#')[0]).name not in defined()[tag]
        or not (tag.startswith('X') or target.partition('#')[2].startswith(
            tag.lower().replace('.', '')
        ))
    }  # fmt: skip
    assert wrong == {}


def test_the_theory_is_linked_from_where_readers_begin():
    for path in (ROOT / 'README.md', ROOT / 'docs' / 'conventions.md', ROOT / 'docs/support.md'):
        targets = {(path.parent / target.partition('#')[0]).resolve() for target in links(path)}
        assert INDEX in targets or targets & set(PAGES), path


def test_authors_cited_are_in_the_references():
    known = (THEORY / 'references.md').read_text(encoding='utf-8')
    entries = [line[2:] for line in known.splitlines() if line.startswith('- ')]
    for path in [*PAGES, *SOURCES]:
        text = ' '.join(path.read_text(encoding='utf-8').split())
        for cited in re.findall(r'\[((?:[A-Z][^\]\[{}()\'"=]*? \d{4}(?:; )?)+)\]', text):
            for work in cited.split('; '):
                author, year = re.match(r"([\w'-]+(?: [A-Z][\w-]+)?).*?(\d{4})", work).groups()
                assert any(e.startswith(author) and f' {year}. ' in e for e in entries), (
                    f'{path.name}: [{work}]'
                )
