"""Links to files of the repository lead to pages that show these files.

A page of docs/ links `../contact_sim/x.py` as on a code host. Here the link leads to
`_source/contact_sim/x.py.html`, as does `[source]` beside an entry of the API reference.
"""

from __future__ import annotations

import html
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx

SCHEME = 'repository:'
FOLDER = '_source/'
HIDDEN = ('.', '__pycache__')


def linked_path(root: Path, docname: str, target: str) -> str | None:
    """Return the path in the repository that a page of docs/ links, None for a page or nothing.

    Args:
        root: of the repository; the pages themselves may be built from a copy of docs/.
        docname: name of the page, such as theory/judge.
        target: of its link, such as ../../contact_sim/x.py.
    """
    docs = root / 'docs'
    for name in (target.partition('#')[0], f'{target}.md'):  # which MyST takes off
        path = (docs / docname).parent.joinpath(name).resolve()
        outside = path.is_relative_to(root) and not path.is_relative_to(docs)
        if outside and path.exists():
            return path.relative_to(root).as_posix()
    return None


def mark_links(app: Sphinx, doctree: nodes.document) -> None:
    """Replace links that MyST takes for downloads or lost pages by links to the repository."""
    root = Path(app.config.repository_root)
    for kind in (addnodes.download_reference, addnodes.pending_xref):
        for node in list(doctree.findall(kind)):
            if node.get('reftype') != 'myst' or node['reftarget'] in app.env.found_docs:
                continue
            path = linked_path(root, app.env.docname, node['reftarget'])
            if path is not None:
                label = nodes.inline('', '', *node[0].children)
                node.replace_self(nodes.reference('', '', label, refuri=SCHEME + path))


def resolve_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn the references to the repository into relative addresses of their pages."""
    for node in doctree.findall(nodes.reference):
        if node.get('refuri', '').startswith(SCHEME):
            path, _, line = node['refuri'].removeprefix(SCHEME).partition('#')
            app.env.repository_pages.add(path)  # type: ignore[attr-defined]
            address = app.builder.get_relative_uri(docname, FOLDER + path)
            node['refuri'] = f'{address}#{line}' if line else address


def begin(app: Sphinx) -> None:
    """Begin with no page of the repository."""
    app.env.repository_pages = set()  # type: ignore[attr-defined]


def listing(folder: Path) -> tuple[str, list[str]]:
    """Return the text of a folder's page and the names in it."""
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(HIDDEN))
    links = (f'{html.escape(folder.name)}/{html.escape(name)}' for name in names)
    items = (f'<li><a href="{link}.html">{link}</a></li>' for link in links)
    return f'<ul>{"".join(items)}</ul>', names


def highlighted(app: Sphinx, path: Path) -> str:
    """Return a file as HTML, its lines with the anchors L-1, L-2, ..."""
    try:
        text = path.read_text(encoding='utf-8')
    except UnicodeDecodeError:
        return f'<p>{path.stat().st_size} bytes</p>'
    try:
        language = get_lexer_for_filename(path.name).aliases[0]
    except ClassNotFound:
        language = 'text'
    highlighter = app.builder.highlighter  # type: ignore[attr-defined]
    return str(highlighter.highlight_block(text, language, force=True, lineanchors='L'))


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for every file that is linked, and for all in a folder that is."""
    root = Path(app.config.repository_root)
    found = sorted(app.env.repository_pages)  # type: ignore[attr-defined]
    done = set()
    while found:
        name = found.pop()
        if name in done:
            continue
        done.add(name)
        path = root / name
        if path.is_dir():
            body, names = listing(path)
            found += [str(PurePosixPath(name) / child) for child in names]
        else:
            body = highlighted(app, path)
        title = html.escape(name)
        yield FOLDER + name, {'title': title, 'body': f'<h1>{title}</h1>{body}'}, 'page.html'


def place_of(domain: str, info: dict[str, str]) -> str | None:
    """Return file and line of an entry of the API reference: linkcode_resolve of Sphinx."""
    found: Any = sys.modules.get(info.get('module', ''))
    if domain != 'py' or found is None:
        return None
    for name in info['fullname'].split('.'):
        found = getattr(found, name, None)
    found = getattr(found, 'py_func', found)  # of a kernel
    found = found.fget if isinstance(found, property) else found
    try:
        file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (TypeError, OSError):
        return None
    path = Path(file or '')
    package = sys.modules['contact_sim'].__path__[0]
    if not path.is_relative_to(package):
        return None
    return f'{SCHEME}contact_sim/{path.relative_to(package).as_posix()}#L-{max(line, 1)}'


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the pages and what leads to them."""
    app.add_config_value('repository_root', '', 'env')
    app.connect('builder-inited', begin)
    app.connect('doctree-read', mark_links, priority=100)  # before Sphinx collects downloads
    app.connect('doctree-resolved', resolve_links)
    app.connect('html-collect-pages', pages)
    return {'parallel_read_safe': True, 'parallel_write_safe': False}
