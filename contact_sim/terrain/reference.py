"""Write the tables of docs/terrain.md from the declared parameters.

`python -m contact_sim.terrain.reference` rewrites them in the source tree; a test compares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contact_sim.parameters import ParameterField, Parameters, declared_parameters
from contact_sim.terrain.generator import TerrainGenerator
from contact_sim.terrain.sub_terrain import SubTerrain
from contact_sim.terrain.sub_terrains import SUB_TERRAINS
from contact_sim.terrain.sub_terrains_height_field import HeightFieldTerrain

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'terrain.md'
BEGIN = '<!-- written by `make generate` from here -->'
END = '<!-- to here -->'


def tables() -> str:
    """Return the tables: parameters of the generator, of all kinds, of grids, of each kind."""
    common = _names(SubTerrain)
    parts = [
        _section('The generator', 'TerrainGenerator', TerrainGenerator, set()),
        _section('All kinds', 'Every sub-terrain', SubTerrain, set()),
        _section('Kinds on a grid', 'Those marked *grid*', HeightFieldTerrain, common),
    ]
    for name, cls in SUB_TERRAINS.items():
        grid = issubclass(cls, HeightFieldTerrain)
        shared = _names(HeightFieldTerrain) if grid else common
        about = str(cls.__doc__).strip() + (' *Grid.*' if grid else '')
        parts.append(_section(f'`{name}`', about, cls, shared))
    return '\n'.join(parts)


def page(text: str) -> str:
    """Return the text of the page with its tables written anew."""
    head, rest = text.split(BEGIN)
    return f'{head}{BEGIN}\n\n{tables()}\n{END}{rest.split(END)[1]}'


def _names(cls: type[Parameters]) -> set[str]:
    return {field.name for field in _declared(cls)}


def _declared(cls: type[Parameters]) -> tuple[ParameterField, ...]:
    return declared_parameters(cls)  # type: ignore[arg-type]


def _section(title: str, about: str, cls: type[Parameters], known: set[str]) -> str:
    fields = [field for field in _declared(cls) if field.name not in known]
    return '\n'.join([f'### {title}', '', about, '', *(_table(fields) if fields else ())])


def _table(fields: list[ParameterField]) -> Iterator[str]:
    yield '| parameter | default | unit | meaning |'
    yield '| --- | --- | --- | --- |'
    for field in fields:
        unit = '' if field.info.unit == '-' else field.info.unit
        yield f'| `{field.name}` | {_default(field.default)} | {unit} | {field.info.meaning} |'
    yield ''


def _default(value: Any) -> str:
    return '' if value is dataclasses.MISSING else f'`{value}`'


if __name__ == '__main__':
    PAGE.write_text(page(PAGE.read_text(encoding='utf-8')), encoding='utf-8')
