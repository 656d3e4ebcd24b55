"""Write the systems into docs/textbook.md, from their docstrings and their values.

`python -m textbook.reference` rewrites them in the source tree; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from textbook.quantity import in_words
from textbook.system import System, systems

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'textbook.md'
BEGIN = '<!-- written by `make generate` from here -->'
END = '<!-- to here -->'


def page(text: str, found: dict[str, System]) -> str:
    """Return the text of the page with the systems written anew."""
    head, rest = text.split(BEGIN)
    written = '\n'.join(line for system in found.values() for line in section(system))
    return f'{head}{BEGIN}\n\n{written}\n{END}{rest.split(END)[1]}'


def section(system: System) -> Iterator[str]:
    """Yield the lines about a system."""
    title, _, *text = system.text.split('\n')
    yield from (f'## {title.rstrip(".")}', '', f'*{system.source}.*')
    yield from (f'`{system.name}`, `robot:={system.robot}`', '', *text, '')
    yield from ('| | | |', '| --- | --- | --- |')
    for one in system.quantities:
        name = one.name.replace('|', r'\|')
        yield f'| {one.tag} | {name} | {in_words(one.expected)} |'
    yield ''


if __name__ == '__main__':
    PAGE.write_text(page(PAGE.read_text(encoding='utf-8'), systems()), encoding='utf-8')
