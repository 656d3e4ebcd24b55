"""docs/which_model.md and docs/compare.png tell what benchmarks/model_prices.py measures."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import contact_sim
from contact_sim import contact_models
from contact_sim.compare import compare, scenario_of
from contact_sim.contact_models.guarantees import LIFTS_OFF, MAY_BREAK

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / 'docs' / 'which_model.md').read_text(encoding='utf-8')
COLUMNS = ('depth', 'creep', 'way', 'rises', 'rebound', 'energy')
"""Behind the two columns of times, as `model_prices.Prices` names them."""
SMALLEST = {
    'depth': 0.1,
    'creep': 1e-3,
    'way': 1e-4,
    'rises': 0.1,
    'rebound': 1e-3,
    'energy': 1e-4,
}
"""What the page rounds to 0, in its units."""
SOFT = ('compliant', 'todorov', 'sap')


@pytest.fixture(scope='module')
def told():
    """Numbers of the page: {model: {column: value, None for a dash}}."""
    rows = re.findall(r'^\| `(\w+)` \|((?:[^|\n]*\|){8})$', PAGE, re.MULTILINE)
    return {
        name: dict(zip(COLUMNS, map(number, cells.split('|')[2:8]), strict=True))
        for name, cells in rows
    }


def number(cell):
    text = cell.strip().replace('−', '-').replace(' ', '')
    if text == '—':
        return None
    return float(text[:-1]) / 100.0 if text.endswith('%') else float(text)


def test_every_model_has_a_row(told):
    assert tuple(told) == contact_models()


@pytest.mark.parametrize('model', contact_models())
def test_the_page_says_what_is_measured(model, told, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    from model_prices import prices

    found = prices(contact_sim.load_robot('go1'), model)
    for column, value in told[model].items():
        if value is not None:
            allowed = max(0.02 * abs(value), SMALLEST[column])
            assert getattr(found, column) == pytest.approx(value, rel=0.0, abs=allowed), column


@pytest.mark.parametrize('model', contact_models())
def test_the_prices_are_those_of_broken_laws(model, told):
    """A model pays in a column exactly where guarantees.py lets it break that law."""
    row = told[model]
    assert (row['depth'] > 0.0) == ('penetration' in MAY_BREAK[model])
    assert (row['creep'] > 0.0) == ('slip' in MAY_BREAK[model] and model != 'compliant')
    assert (row['rises'] > 0.0) == ('' in LIFTS_OFF.get(model, {}))
    assert (row['energy'] is None) == (model in (*SOFT, 'null_space'))
    assert np.isfinite(row['way'])


# -------------------------------------------------------------------- the figure


@pytest.fixture(scope='module')
def drawn():
    """Numbers of docs/compare.png by model, which the picture carries as its description."""
    image = pytest.importorskip('PIL.Image', reason='needs Pillow')
    with image.open(ROOT / 'docs' / 'compare.png') as picture:
        document = json.loads(picture.text['Description'])
    assert (document['robot'], document['scenario']['name']) == ('go1', 'slide')
    return {row['model']: row for row in document['runs']}


def test_the_figure_and_the_table_are_of_one_run(drawn, told):
    """Stopping distances and times, as the page prints them; both are written by one command."""
    assert tuple(drawn) == contact_models()
    steps = dict(re.findall(r'^\| `(\w+)` \| ([\d.]+) \| [\d.]+ \|', PAGE, re.MULTILINE))
    for model, row in drawn.items():
        way = row['headline'] / row['expected'] - 1.0
        assert way == pytest.approx(told[model]['way'], abs=5.1e-5), model
        ratio = row['step_time'] / drawn['ncp']['step_time']
        printed = round(ratio, 2 if ratio < 9.995 else 1)
        assert printed == pytest.approx(float(steps[model])), model


def test_the_figure_shows_what_a_run_finds_today(drawn):
    scenario = scenario_of('slide')
    for run in compare(contact_sim.load_robot('go1'), scenario):
        row = drawn[run.model]
        assert row['headline'] == pytest.approx(run.headline(scenario), rel=1e-3, abs=1e-6)
        assert row['broken'].split() == [law for law, broken in run.broken.items() if broken]
        for law in row['broken'].split():
            assert row[law] == pytest.approx(run.laws[law], rel=0.05), (run.model, law)


# -------------------------------------------------------------------- impacts

IMPACTS = re.findall(
    r'^\| `(ncp|sap: [\w, ]+)` \| ([\d.]+) \| ([\d.]+) to ([\d.]+) \| ([\d.]+) \|$',
    PAGE,
    re.MULTILINE,
)
"""Rows of the table of impacts: law, time step [ms], friction least and most, go1 off [mm]."""


@pytest.mark.parametrize('row', IMPACTS, ids=lambda row: f'{row[0]} {row[1]} ms')
def test_the_page_says_what_impacts_do_to_friction(row, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    from impact_friction import PHASES, drop_error, friction_ratio

    law, h, least, most, off = row[0], 1e-3 * float(row[1]), *map(float, row[2:])
    ratios = [friction_ratio(law, h, phase) for phase in PHASES]
    assert [min(ratios), max(ratios)] == pytest.approx([least, most], abs=0.01)
    if h == 1e-3 and law in ('ncp', 'sap: lagged'):  # the others take as long again
        found = 1e3 * drop_error(law, h, contact_sim.load_robot('go1'))
        assert found == pytest.approx(off, rel=0.05)


def test_only_lagged_takes_more_friction_than_there_is():
    from_table = {(law, h): float(most) for law, h, _, most, _ in IMPACTS}
    assert len(IMPACTS) == 10
    for (law, _), most in from_table.items():
        assert (most > 1.005) == (law == 'sap: lagged')


def test_measured_tosses_tell_lagged_from_the_other_forms(monkeypatch):
    """The page has the figures of all tosses; here are six of them, which are in the tests."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    from impact_friction import LAWS, toss_errors

    row = re.search(r'\| `ncp` \| (`sap: .*) \|\n  \|[-:|]+\n  \| ([\d. |]+) \|\n', PAGE)
    names = ['ncp', *(name.strip('` ') for name in row.group(1).split('|'))]
    told = dict(zip(names, map(float, row.group(2).split('|')), strict=True))
    assert tuple(told) == LAWS
    reality = (ROOT / 'docs' / 'reality.md').read_text(encoding='utf-8')
    drake = re.search(r'^\| \*Drake\* as `drake`, its defaults \|.*$', reality, re.M).group(0)
    assert told['sap: lagged'] == float(drake.split('|')[5])
    found = toss_errors(ROOT / 'test' / 'reality' / 'data' / 'contact_nets')
    for errors in (told, found):
        others = [errors[name] for name in ('ncp', 'sap: similar', 'sap: sap')]
        assert errors['sap: lagged'] > 3.0 * max(others)
