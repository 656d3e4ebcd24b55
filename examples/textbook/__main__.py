"""Compare the systems of the textbook with the texts, and draw them.

python -m textbook [system ...] [--figures out/textbook]
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from textbook.quantity import in_words
from textbook.system import System, systems

HEADER = 'system', 'source', 'quantity', 'in the text', 'here', 'error', ''


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one table, draw the figures; return 1 if a value differs from the text."""
    known = systems()
    parser = argparse.ArgumentParser(prog='python -m textbook', description=__doc__.split('\n')[0])
    parser.add_argument('systems', nargs='*', metavar='system', help=', '.join(known))
    parser.add_argument('--figures', type=Path, default=Path('out/textbook'), metavar='FOLDER')
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.systems if name not in known]
    if unknown:
        parser.error(f'unknown: {", ".join(unknown)}; there are {", ".join(known)}')
    chosen = [known[name] for name in asked.systems or known]
    print(table(chosen))
    draw(chosen, asked.figures)
    return int(not all(one.passed for system in chosen for one in system.quantities))


def table(chosen: Sequence[System]) -> str:
    """Return a line per quantity, in columns."""
    lines = [
        (
            system.name,
            system.source,
            f'{one.tag} {one.name}',
            in_words(one.expected),
            in_words(one.value),
            f'{one.error:.1e}',
            'pass' if one.passed else 'FAIL',
        )
        for system in chosen
        for one in system.quantities
    ]
    lines = [HEADER, *lines]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    rows = (
        [word + ' ' * (wide - width(word)) for word, wide in zip(line, widths, strict=True)]
        for line in lines
    )
    return '\n'.join('  '.join(row).rstrip() for row in rows)


def width(text: str) -> int:
    """Return the columns that a text takes: the dots above a q take none."""
    return sum(not unicodedata.combining(letter) for letter in text)


def draw(chosen: Sequence[System], folder: Path) -> None:
    """Write the figure of every system to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for system in chosen:
        figure = Figure(figsize=(8.0, 5.0), layout='constrained')
        system.draw(figure)
        figure.savefig(folder / f'{system.name}.png', dpi=120)
        print(folder / f'{system.name}.png')


if __name__ == '__main__':
    sys.exit(main())
