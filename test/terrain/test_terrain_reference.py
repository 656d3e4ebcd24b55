"""docs/terrain.md says what the code says."""

from contact_sim.terrain import SUB_TERRAINS
from contact_sim.terrain.reference import PAGE, page, tables


def test_the_page_is_up_to_date():
    text = PAGE.read_text(encoding='utf-8')
    assert page(text) == text, 'run `make generate`'


def test_every_kind_and_parameter_is_in_the_tables():
    text = tables()
    for name, cls in SUB_TERRAINS.items():
        assert f'### `{name}`' in text
        assert all(f'| `{field}` |' in text for field in cls.__dataclass_fields__)
