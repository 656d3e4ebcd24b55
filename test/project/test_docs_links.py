"""No link of a page is dead: files, pages, anchors, and every page is on the site."""

import re

import markdown_pages as pages
import pytest

ROOT, DOCS = pages.ROOT, pages.DOCS
READ = [
    *pages.pages(),
    *(ROOT / name for name in ('README.md', 'CONTRIBUTING.md')),
    *sorted((ROOT / 'examples').rglob('*.md')),
]
MADE = {'generated', 'gallery', 'templates'}
"""Folders whose pages Sphinx writes, or writes from."""
INDEXES = [path for path in sorted(DOCS.rglob('*.rst')) if not MADE & set(path.parts)]


def dead(page):
    """Return the links of a page that lead nowhere."""
    found = []
    for target in pages.links(page):
        if re.match('[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        path = (page.parent / name).resolve() if name else page
        if (
            not path.exists()
            or not path.is_relative_to(ROOT)
            or (anchor and path.suffix == '.md' and anchor not in pages.anchors(path))
        ):
            found.append(target)
    return found


def tocs():
    """Return {page: pages its toctrees name}, both as paths below docs/ without a suffix."""
    found = {}
    for index in INDEXES:
        name = index.relative_to(DOCS).with_suffix('').as_posix()
        tree = re.findall(
            r'\.\. toctree::\n((?:   \S.*\n|\n)*)', index.read_text(encoding='utf-8')
        )
        entries = [
            re.sub(r'.* <(.*)>', r'\1', line.strip())
            for part in tree
            for line in part.splitlines()
        ]
        found[name] = [
            (index.parent / entry).resolve().relative_to(DOCS).as_posix()
            for entry in entries
            if entry and not entry.startswith(':')
        ]
    return found


@pytest.mark.parametrize('page', READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_link_is_dead(page):
    assert dead(page) == []


def test_dead_links_are_seen(tmp_path, monkeypatch):
    monkeypatch.setattr('test_docs_links.ROOT', tmp_path)
    page = tmp_path / 'page.md'
    page.write_text(
        '# A `code` heading, twice\n## Twice\n## Twice\n[a](#twice-1) [b](#a-code-heading-twice) '
        '`[no](link)` [gone](x.md) [no anchor](#thrice)\n![picture](x.png) [`up`](../) '
        '[a link\nover two lines](y.md)\n```text\n[in](code)\n```\n',
        encoding='utf-8',
    )
    assert dead(page) == ['x.md', '#thrice', 'x.png', '../', 'y.md']


def test_every_page_is_on_the_site_once():
    trees = tocs()
    listed = sorted(entry for entries in trees.values() for entry in entries)
    there = {
        path.relative_to(DOCS).with_suffix('').as_posix() for path in [*pages.pages(), *INDEXES]
    }
    assert listed == sorted(set(listed)), 'a page in two toctrees'
    assert set(listed) - {'gallery/index'} == there - {'index'}


def test_pages_are_linked_by_paths_and_not_by_the_addresses_of_a_host():
    """Nobody knows where the repository will be: links work in a clone and on the site."""
    for page in READ:
        assert not re.search(r'https?://[^)\s]*contact_sim', pages.prose(page)), page
