"""Write config/contact_sim.yaml, docs/parameters.md and the tables of docs/terrain.md.

`python -m contact_sim.ros.generate` writes them into the source tree from the declarations of the
parameters; a test compares them with the code. Imports no ROS.
"""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import yaml

from contact_sim.parameters import ParameterField, Parameters, declared_parameters
from contact_sim.ros._parameters import (
    PARAMETER_GROUPS,
    ActuatorParameters,
    ConstraintParameters,
    ControllerParameters,
    JointGainParameters,
)
from contact_sim.terrain._generator import TerrainGenerator
from contact_sim.terrain._sub_terrains import SUB_TERRAINS, HeightFieldTerrain, SubTerrain

SOURCE_TREE = Path(__file__).resolve().parents[2]
TERRAIN_PAGE = Path('docs/terrain.md')
BEGIN = '<!-- written by `make generate` from here -->'
END = '<!-- to here -->'
COLUMNS = 99
UNITLESS = ('', '-')

YAML_HEADER = """\
# Every parameter of the node contact_sim at its default value: copy what you want to change.
# Written by `make generate` from the declarations in the code.
#
# [unit] meaning; what is allowed. 'live' parameters can be changed while the simulation runs:
#     ros2 param set /contact_sim friction.mu 0.4
# '/**' matches the node in every namespace. A list that is empty by default is shown as a comment,
# because ROS cannot tell the type of an empty list. gains.<joint>.p, gains.<joint>.d and all of
# actuators.<joint>.* exist for every joint of the robot, lockstep.<controller>.joints for each of
# lockstep.controllers, constraints.<name>.* for each of constraints.names. With several robots a
# joint is called robot/joint: gains.a/FL_hip_joint.p.

/**:
  ros__parameters:
"""
MARKDOWN_HEADER = """\
# Parameters of the node

Written by `make generate` from the declarations in the code. Give them with a YAML file like
[`config/contact_sim.yaml`](../config/contact_sim.yaml) (`params_file:=` of the launch file),
or singly: `ros2 run contact_sim simulation --ros-args -p friction.mu:=0.4`. Parameters marked
*live* can be changed while the simulation runs: `ros2 param set /contact_sim friction.mu 0.4`.
A value that is not allowed is refused with the reason, and the old one stays in force.
"""


def generated_files() -> dict[Path, str]:
    """Return every generated file: path relative to the source tree, and its text."""
    head, rest = (SOURCE_TREE / TERRAIN_PAGE).read_text(encoding='utf-8').split(BEGIN)
    by_name = {
        'gains.<joint>': JointGainParameters,
        'actuators.<joint>': ActuatorParameters,
        'constraints.<name>': ConstraintParameters,
        'lockstep.<controller>': ControllerParameters,
    }
    return {
        Path('config/contact_sim.yaml'): yaml_text(PARAMETER_GROUPS),
        Path('docs/parameters.md'): markdown_text(PARAMETER_GROUPS | by_name),
        TERRAIN_PAGE: f'{head}{BEGIN}\n\n{terrain_tables()}\n{END}{rest.split(END)[1]}',
    }


def main() -> None:
    """Write the generated files into the source tree."""
    for path, text in generated_files().items():
        (SOURCE_TREE / path).write_text(text, encoding='utf-8')
        print(f'wrote {path}')


def yaml_scalar(value: Any) -> str:
    """Return a parameter value as one YAML token, read alike by YAML 1.1, YAML 1.2 and ROS."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple):
        return '[' + ', '.join(yaml_scalar(item) for item in value) + ']'
    return str(yaml.safe_dump(value)).splitlines()[0]


def limits(field: ParameterField) -> str:
    """Return the allowed values of a parameter in words, '' where any value of its type goes."""
    info = field.info
    bounded = any(
        bound is not None
        for bound in (info.above, info.at_least, info.below, info.at_most, info.choices)
    )
    return info.allowed() if bounded else ''


def yaml_text(groups: dict[str, type[Parameters]]) -> str:
    """Return the parameter file for `groups`: dotted prefix ('' for none) to dataclass."""
    lines: list[str] = []
    opened: tuple[str, ...] = ()
    for prefix, cls in _in_tree_order(groups):
        path = tuple(prefix.split('.')) if prefix else ()
        fields = _fields(cls)
        if all(field.default == () for field in fields):  # a key without values is no mapping
            lines += [f'{" " * (2 + 2 * len(path))}# {path[-1]}:']
        else:
            for depth, name in enumerate(path):
                if opened[: depth + 1] != path[: depth + 1]:
                    lines += [' ' * (4 + 2 * depth) + f'{name}:']
            opened = path
        for field in fields:
            lines += _yaml_entry(field, ' ' * (4 + 2 * len(path)))
    return YAML_HEADER + '\n'.join(lines) + '\n'


def markdown_text(groups: dict[str, type[Parameters]]) -> str:
    """Return the reference page for `groups`, one table per group."""
    parts = [MARKDOWN_HEADER]
    for prefix, cls in _in_tree_order(groups):
        parts.append(f'## {prefix or "General"}\n')
        parts.append('| parameter | type | default | unit | allowed | live | meaning |')
        parts.append('| --- | --- | --- | --- | --- | --- | --- |')
        fields = _fields(cls)
        parts += [_markdown_row(prefix, field) for field in fields]
        parts.append('')
    return '\n'.join(parts)


def _fields(cls: type[Parameters]) -> tuple[ParameterField, ...]:
    return declared_parameters(cls)  # type: ignore[arg-type]


def _in_tree_order(groups: dict[str, type[Parameters]]) -> list[tuple[str, type[Parameters]]]:
    """Return the groups so that those with the same first names stand together."""
    order: dict[str, int] = {}
    for prefix in groups:
        order.setdefault(prefix.partition('.')[0], len(order))
    return sorted(
        groups.items(), key=lambda item: (order[item[0].partition('.')[0]], item[0].split('.'))
    )


def _yaml_entry(field: ParameterField, indent: str) -> Iterable[str]:
    prefix = f'{indent}# '
    unit = '' if field.info.unit in UNITLESS else f'[{field.info.unit}] '
    remarks = [text for text in (limits(field), 'live' if field.info.live else '') if text]
    text = '; '.join([unit + field.info.meaning.rstrip('.'), *remarks])
    yield from textwrap.wrap(text, COLUMNS, initial_indent=prefix, subsequent_indent=prefix)
    value = yaml_scalar(field.default)
    yield f'{prefix if field.default == () else indent}{field.name}: {value}'


def _markdown_row(prefix: str, field: ParameterField) -> str:
    name = f'{prefix}.{field.name}' if prefix else field.name
    listed = get_args(field.type)
    cells = (
        f'`{name}`',
        f'list of {listed[0].__name__}' if listed else str(field.type.__name__),
        f'`{yaml_scalar(field.default)}`',
        '' if field.info.unit in UNITLESS else field.info.unit,
        limits(field),
        'live' if field.info.live else '',
        field.info.meaning,
    )
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


# -------------------------------------------------------------------- docs/terrain.md


def terrain_tables() -> str:
    """Return the tables: parameters of the generator, of all kinds, of grids, of each kind."""
    common, of_grids = (
        {field.name for field in _fields(cls)} for cls in (SubTerrain, HeightFieldTerrain)
    )
    parts = [
        _section('The generator', 'TerrainGenerator', TerrainGenerator, set()),
        _section('All kinds', 'Every sub-terrain', SubTerrain, set()),
        _section('Kinds on a grid', 'Those marked *grid*', HeightFieldTerrain, common),
    ]
    for name, cls in SUB_TERRAINS.items():
        grid = issubclass(cls, HeightFieldTerrain)
        about = str(cls.__doc__).strip() + (' *Grid.*' if grid else '')
        parts.append(_section(f'`{name}`', about, cls, of_grids if grid else common))
    return '\n'.join(parts)


def _section(title: str, about: str, cls: type[Parameters], described: set[str]) -> str:
    """Return the table of the parameters of a class that are not described already."""
    lines = [f'### {title}', '', about, '']
    if fields := [field for field in _fields(cls) if field.name not in described]:
        lines += ['| parameter | default | unit | meaning |', '| --- | --- | --- | --- |']
        for field in fields:
            unit = '' if field.info.unit == '-' else field.info.unit
            default = '' if field.default is dataclasses.MISSING else f'`{field.default}`'
            lines.append(f'| `{field.name}` | {default} | {unit} | {field.info.meaning} |')
        lines.append('')
    return '\n'.join(lines)


if __name__ == '__main__':
    main()
