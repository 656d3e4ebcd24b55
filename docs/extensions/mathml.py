"""Formulas as MathML, made when the pages are built: nothing is loaded to read them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def translated(node: nodes.Element, *, block: bool) -> str:
    """Return a formula as MathML, as TeX with a warning where docutils cannot read it."""
    try:
        return str(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        LOGGER.warning('formula %r: %s', node.astext(), error, location=node)
        return f'<code>{node.astext()}</code>'


def visit_math(writer: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    writer.body.append(translated(node, block=False))
    raise nodes.SkipNode


def visit_math_block(writer: Any, node: nodes.Element) -> None:
    """Write a displayed formula."""
    writer.body.append(f'<div class="formula">{translated(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the renderer `mathml` for html_math_renderer."""
    app.add_html_math_renderer('mathml', (visit_math, None), (visit_math_block, None))
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
