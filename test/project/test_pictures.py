"""Pictures of the docs carry their numbers, and the page beside each tells the same.

The commands `compare`, `verdict` and `reality` and benchmarks/judge_engines.py write them into
the text `Description` of the PNG. docs/compare.png: test_which_model.py; docs/artefacts:
test_artefacts.py.
"""

import json
import re

import pytest
from markdown_pages import ROOT

DOCS = ROOT / 'docs'
TITLES = {'stand': '**Standing**', 'trot': '**Trotting**'}
"""Of the tables of docs/judge_other_engines.md."""


def description(name):
    """Return the text that a picture carries."""
    image = pytest.importorskip('PIL.Image', reason='needs Pillow')
    with image.open(DOCS / name) as picture:
        return picture.text['Description']


def cells(line):
    return [cell.strip().strip('*') for cell in line.strip('|').split('|')]


@pytest.mark.parametrize('motion', TITLES)
def test_the_tables_of_engines_are_of_the_run_of_their_figure(motion):
    page = (DOCS / 'judge_other_engines.md').read_text(encoding='utf-8')
    table = re.search(
        re.escape(TITLES[motion]) + r'.*?^(\| 99 %.*?)\n\n', page, re.DOTALL | re.MULTILINE
    ).group(1)
    head, _, _, *rows = map(cells, table.splitlines())
    told = {name: dict(zip(head[1:], values, strict=True)) for name, *values in rows}
    assert told == json.loads(description('judge.png'))[motion]
    assert len(told) == 9


def test_the_page_of_the_verdict_tells_what_its_figure_shows():
    page = (DOCS / 'verdict.md').read_text(encoding='utf-8')
    statement, *evidence = description('verdict.png').splitlines()
    assert statement.startswith('It works ONLY BECAUSE OF AN ARTEFACT')
    assert 'it works only because of an\nartefact' in page
    rates = dict(line.split(': ', 1) for line in evidence)
    exact = rates.pop('the stated case under ncp and hybrid')
    assert f'\n{exact.split(" (")[0]} runs work under the exact laws' in page
    works = [
        (name.split()[-1], *map(int, re.match(r'(\d+) of (\d+)', rate).groups()))
        for name, rate in rates.items()
        if name.startswith('the stated case') and not rate.startswith('0 of')
    ]
    laws = ' and '.join(f'`{name}`' for name, *_ in works)
    runs = f'{sum(row[1] for row in works)} of {sum(row[2] for row in works)} runs'
    assert f'Under {laws} the feet creep apart and it works, in {runs}.' in page


@pytest.mark.parametrize('name', ['cube_tosses', 'cassie_landings', 'planar_impacts'])
def test_the_tables_of_measured_motions_are_of_the_run_of_their_figure(name):
    page = (DOCS / 'reality.md').read_text(encoding='utf-8')
    table = description(f'reality_{name}.png')
    assert len(table.splitlines()) > 9
    assert f'](reality_{name}.png)\n\n{table}\n' in page


def test_every_picture_has_numbers_of_its_own_or_shows_a_scene():
    image = pytest.importorskip('PIL.Image', reason='needs Pillow')
    scenes = {'demo.png', 'worlds.png'}
    for path in sorted(DOCS.glob('*.png')):
        with image.open(path) as picture:
            assert ('Description' in picture.text) == (path.name not in scenes), path.name
            assert picture.size[0] >= 1400, path.name  # legible on screens with many pixels
