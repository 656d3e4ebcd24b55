"""Docstrings as they are written here: sentences with code in backticks, no other markup.

Code in backticks that names something documented links it. Types are linked under their public
names: contact_sim.Simulator for contact_sim.simulation._simulator.Simulator.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, GoogleDocstring

CODE = re.compile(r'(`+)(.+?)\1', re.DOTALL)
NAME = re.compile(r'([A-Za-z_][\w.]*)(\(\))?')
MARKUP = re.compile(r'[*|\\]|_(?!\w)')


def as_rst(text: str) -> str:
    """Return reStructuredText that shows `text` as it is, with its code as code."""
    parts, end = [], 0
    for found in CODE.finditer(text):
        parts += [MARKUP.sub(r'\\\g<0>', text[end : found.start()]), code(found[2])]
        end = found.end()
        if end < len(text) and (text[end].isalnum() or text[end] == '_'):
            parts.append('\\ ')  # a plural: `Region`s
    return ''.join([*parts, MARKUP.sub(r'\\\g<0>', text[end:])])


def code(text: str) -> str:
    """Return what stood in backticks as reStructuredText: a link where it is a name."""
    name = NAME.fullmatch(text)
    return f':py:obj:`{text} <{name[1]}>`' if name else f'``{" ".join(text.split())}``'


def convert(app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of a docstring, its sections read by napoleon.

    Of a property napoleon would take all words before a colon for its type.
    """
    kind = 'object' if kind in ('attribute', 'data', 'property') else kind
    text = as_rst('\n'.join(lines))
    lines[:] = GoogleDocstring(text, Config(), app, kind, name, value, options).lines()


def public_names(env: BuildEnvironment) -> dict[str, str]:
    """Return {full name, and short name where it is unique: name in the API reference}."""
    found: dict[str, str] = {}
    short: dict[str, set[str]] = {}
    for public, entry in sorted(env.domains['py'].objects.items(), key=lambda item: item[0]):  # type: ignore[attr-defined]
        if entry.objtype not in ('class', 'exception', 'function'):
            continue
        module, _, name = public.rpartition('.')
        value = getattr(importlib.import_module(module), name, None)
        full = f'{getattr(value, "__module__", module)}.{name}'
        found.setdefault(full, public)
        short.setdefault(name, set()).add(full)
    unique = {name: found[next(iter(full))] for name, full in short.items() if len(full) == 1}
    return unique | found


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, label: nodes.TextElement
) -> nodes.Node | None:
    """Link a name that is documented under another; show one of another package as text."""
    if node.get('refdomain') != 'py':
        return None
    if not hasattr(env, 'public_names'):
        env.public_names = public_names(env)
    target = node['reftarget']
    public = env.public_names.get(target)
    if public is not None:
        domain = env.domains['py']
        return domain.resolve_xref(env, node['refdoc'], app.builder, 'obj', public, node, label)
    ours = target.startswith('contact_sim.')
    return None if ours and node['reftype'] != 'obj' else label


def setup(app: Sphinx) -> dict[str, Any]:
    """Convert docstrings and resolve names."""
    app.connect('autodoc-process-docstring', convert)
    app.connect('missing-reference', resolve)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
