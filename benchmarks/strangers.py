"""What becomes of other people's robots: a table of every description below a folder.

python benchmarks/strangers.py FOLDER [FOLDER or file ...] [--out table.md] [--limit 120]

Each description is loaded, understood and tried (contact_sim.inspect) in a process of its own with
a time limit. A file called COMMIT in a folder above it says which version it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HEADINGS = 'description', 'links', 'joints', 'mass kg', 'feet', "pose 'standing'", 'stands 2 s'
ENDINGS = '.urdf', '.xacro'
BRIEF = {
    'legs bent to ': 'bent to ', ' of their length by a search': '',
    'the neutral pose stands on bent legs': 'neutral, bent',
    'stands 2 s: ': '', 'falls: at': 'falls at',
    'no bent legs within the position limits carry the centre of mass': 'no bent legs found',
}  # fmt: skip
"""Words of contact_sim.inspect, and those of a cell."""
LONGEST = 160
"""Characters of a reason in the table."""


def descriptions(places: Sequence[Path]) -> Iterator[Path]:
    """Yield every URDF and xacro of folders, and the files that are named, each once."""
    seen: set[Path] = set()
    for place in places:
        files = sorted(files_below(place)) if place.is_dir() else [place]
        for file in files:
            if file.is_file() and file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the URDFs and xacros of a folder, through symbolic links but no folder twice."""
    visited: set[Path] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        if Path(here).resolve() in visited:
            folders.clear()
            continue
        visited.add(Path(here).resolve())
        yield from (Path(here, file) for file in files if file.endswith(ENDINGS))


def judged(file: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Return what is known of a description; in the process that is to judge it."""
    import warnings

    warnings.simplefilter('ignore')
    from contact_sim.errors import ContactSimError
    from contact_sim.inspect._inspection import Source, inspect_robot, standing_trial
    from contact_sim.robot._files import xacro_arguments

    try:
        said = xacro_arguments(arguments) if file.suffix == '.xacro' else None
        found = inspect_robot(Source(str(file), xacro_arguments=said))
    except ContactSimError as error:
        return {'refused': str(error).removeprefix(f'{file}: ')}
    robot = found.robot
    trial = standing_trial(robot)
    pose = [note for note in robot.notes if note.startswith("pose 'standing'")]
    return {
        'links': len(found.root.findall('link')),
        'joints': robot.n_joints,
        'mass': robot.total_mass,
        'feet': ' '.join(f'{foot.frame} ({len(foot.points)})' for foot in robot.feet),
        'pose': pose[0].partition(': ')[2] if pose else 'described' if robot.feet else 'neutral',
        'stands': trial.stands,
        'why': trial.why,
    }


def judged_apart(file: Path, arguments: Sequence[str], limit: float) -> dict[str, Any]:
    """Return what a process of its own makes of a description, or how that process ended."""
    command = [sys.executable, os.path.abspath(__file__), '--judge', str(file)]
    command += ['--xacro-arguments', *arguments]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {'refused': f'no answer within {limit:g} s'}
    try:
        return dict(json.loads(ended.stdout.strip().splitlines()[-1]))
    except (IndexError, ValueError):
        last = ended.stderr.strip().splitlines()[-1:] or ['']
        return {'refused': f'the process ended with {ended.returncode}: {last[0]}'}


def row(name: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    if 'refused' in found:
        return f'| {name} | | | | | | refused: {short(found["refused"])} |'
    feet = found['feet'].split(' ')
    listed = f'{len(feet) // 2}: {feet[0]} {feet[1]}' if found['feet'] else 'none'
    cells = (
        name, str(found['links']), str(found['joints']), f'{found["mass"]:.4g}', listed,
        short(found['pose']), ('yes, ' if found['stands'] else 'no, ') + short(found['why']),
    )  # fmt: skip
    return '| ' + ' | '.join(cells) + ' |'


def short(text: str) -> str:
    """Return a reason as it fits into a cell."""
    text = ' '.join(text.replace('|', '/').split())
    for long, brief in BRIEF.items():
        text = text.replace(long, brief)
    return text if len(text) <= LONGEST else text[:LONGEST] + '...'


def name_of(file: Path, places: Sequence[Path]) -> str:
    """Return the path of a description from its repository, or the folder asked for, and version.

    A repository is a folder with a file COMMIT, of a hash and a date.
    """
    for folder in file.absolute().parents:
        if (folder / 'COMMIT').is_file():
            version = (folder / 'COMMIT').read_text().split()
            said = f'{version[0][:7]}, {version[-1]}' if version else 'no version'
            return f'{file.absolute().relative_to(folder.parent)} ({said})'
    above = (place for place in places if place.is_dir() and file.is_relative_to(place))
    return str(file.relative_to(next(above, file.parent)))


def main() -> None:
    """Print the table, line by line as it is made, and how many stand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('places', nargs='*', type=Path, metavar='FOLDER')
    parser.add_argument('--out', type=Path, help='file to write the table to, besides')
    parser.add_argument('--limit', type=float, default=300.0, help='of one description [s]')
    parser.add_argument(
        '--xacro-arguments', nargs='*', default=[], metavar='NAME:=VALUE', help='for every xacro'
    )
    parser.add_argument('--parts', action='store_true', help='show files without a robot, too')
    parser.add_argument('--judge', type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.judge is not None:
        print(json.dumps(judged(given.judge, given.xacro_arguments)))
        return
    written = [f'| {" | ".join(HEADINGS)} |', '|---|---:|---:|---:|---|---|---|']
    print('\n'.join(written), flush=True)
    counts = {'stands': 0, 'falls': 0, 'refused': 0}
    for file in descriptions(given.places):
        found = judged_apart(file, given.xacro_arguments, given.limit)
        if 'no <link> in <robot>' in found.get('refused', '') and not given.parts:
            continue
        counts['refused' if 'refused' in found else 'stands' if found['stands'] else 'falls'] += 1
        written.append(row(name_of(file, given.places), found))
        print(written[-1], flush=True)
    total = ', '.join(f'{number} {what}' for what, number in counts.items())
    written += ['', total]
    print(f'\n{total}')
    if given.out is not None:
        given.out.write_text('\n'.join(written) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
