"""The Markdown pages of the repository: prose, anchors, links and code blocks."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'
FENCE = re.compile(r'^( *)(`{3,})(\w*)[^\n]*\n(.*?)^\1\2 *$', re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r'<!--\s*(given|not run):?\s*((?:(?!-->).)*)-->\s*\Z', re.DOTALL)
LINK = re.compile(r'\[[^\]]+\]\(([^)\s]+)\)')


class Block(NamedTuple):
    """A fenced block of a page; `given` or `skipped` is what a comment before it says."""

    page: Path
    line: int
    language: str
    text: str
    given: str
    skipped: str

    @property
    def place(self):
        return f'{self.page.relative_to(ROOT)}:{self.line}'


def pages():
    """Return the pages of docs/, but for those that Sphinx writes there."""
    made = (DOCS / 'gallery', DOCS / 'api' / 'generated')
    return [path for path in sorted(DOCS.rglob('*.md')) if not set(made) & set(path.parents)]


@cache
def blocks(page):
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding='utf-8')
    found = []
    for match in FENCE.finditer(text):
        comment = COMMENT.search(text[: match.start()])
        said = {comment[1]: comment[2].strip()} if comment else {}
        line = text.count('\n', 0, match.start()) + 1
        found.append(
            Block(page, line, match[3], match[4], said.get('given', ''), said.get('not run', ''))
        )
    return tuple(found)


@cache
def prose(page):
    """Return a page without its fenced blocks and comments."""
    text = FENCE.sub('', page.read_text(encoding='utf-8'))
    return re.sub(r'<!--.*?-->', '', text, flags=re.DOTALL)


def headings(page):
    return [line for line in prose(page).splitlines() if re.match('#+ ', line)]


@cache
def anchors(page):
    """Return the anchors of a page, as code hosts and MyST make them from its headings."""
    found = set()
    for line in headings(page):
        text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', line.lstrip('#').strip().lower())
        anchor = re.sub(r'[^\w\- ]', '', text).replace(' ', '-')
        repeated = (f'{anchor}-{k}' for k in range(1, 100))
        found.add(anchor if anchor not in found else next(a for a in repeated if a not in found))
    return frozenset(found)


def links(page):
    """Return the targets of the links and pictures of a page."""
    return LINK.findall(re.sub(r'(`+).+?\1', '_', prose(page)))
