"""docs/contact_models.md tells of the models what theory says and runs measure."""

import re
from pathlib import Path

import pytest

from contact_sim import contact_models
from contact_sim.contact_models.guarantees import LAWS, MAY_BREAK

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs' / 'contact_models.md'
LARGEST = 60_000
"""Bytes of a picture."""
COLUMNS = (
    'penetration', 'signorini', 'force_at_distance', 'cone', 'dissipation', 'ncp', 'slip',
)  # fmt: skip
"""Of the table of guarantees, as `guarantees.LAWS` names them; momentum is said in a sentence."""


@pytest.fixture(scope='module')
def sections():
    """Text under every heading of the page."""
    parts = re.split(r'^## (\w+)$', PAGE.read_text(encoding='utf-8'), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize('model', contact_models())
def test_artefacts_are_those_of_theory_and_of_the_page(model, sections, monkeypatch):
    """Measured, predicted and printed numbers agree; a picture is there, and small."""
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    from artefacts import ARTEFACTS

    assert tuple(ARTEFACTS) == contact_models()
    section, numbers = sections[model], ARTEFACTS[model]().numbers
    for number in numbers:
        assert number.value == pytest.approx(number.expected, rel=0.0, abs=number.tolerance)
        quoted = number.text.replace('-', '−')
        assert quoted in section, f'{quoted} of {model} is not in its section'
        assert number.tag in section
    picture = PAGE.parent / f'artefacts/{model}.png'
    assert f'](artefacts/{model}.png)' in section
    assert picture.stat().st_size < LARGEST
    image = pytest.importorskip('PIL.Image', reason='needs Pillow')
    with image.open(picture) as drawn:
        assert drawn.text['Description'].splitlines() == [number.text for number in numbers]


def test_the_table_of_guarantees_is_that_of_the_tests():
    rows = re.findall(
        r'^\| (\w+) \|((?: (?:yes|no) \|)+)$', PAGE.read_text(encoding='utf-8'), re.M
    )
    told = {name: tuple(cells.replace('|', ' ').split()) for name, cells in rows}
    assert set(COLUMNS) == set(LAWS) - {'momentum'}
    expected = {
        name: tuple('no' if law in MAY_BREAK[name] else 'yes' for law in COLUMNS)
        for name in contact_models()
    }
    assert told == expected
    assert not any('momentum' in laws for laws in MAY_BREAK.values())
