"""Did a change of the sources leave every result equal to the bit?

    python benchmarks/same_bits.py --against c45850b [--only PATTERN] [--jobs 2]
    python benchmarks/same_bits.py --write FILE.json [--only PATTERN] [--jobs 2]
    python benchmarks/same_bits.py --compare OLD.json NEW.json

Each case runs something through names that users import and digests the raw bytes of what comes
out: numbers, names and messages, never layouts. `--against` runs the cases in a commit and in this
checkout, one after the other, and compares them. `--write` runs those of the contact_sim that
Python finds: a folder in PYTHONPATH wins over an installation. A case that raises is written as
'error: ...' and makes the exit status 1, as any difference does.

The cases are those of same_bits_cases.py.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from same_bits_cases import cases

import contact_sim


def run_case(name: str) -> dict[str, str]:
    """Return the digests of a case by full name, or what it raised."""
    warnings.simplefilter('ignore')
    try:
        result = cases()[name]()
    except Exception as error:
        return {name: f'error: {type(error).__name__}: {error}'}
    if isinstance(result, str):
        return {name: result}
    return {f'{name}{behind}': digest for behind, digest in result.items()}


def end_with(parent: int) -> None:
    """End this process soon after its parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def check_root(root: str) -> None:
    """Refuse another contact_sim than the one below `root`."""
    here = Path(str(contact_sim.__file__)).resolve()
    if not here.is_relative_to(Path(root).resolve()):
        raise SystemExit(f'same_bits: contact_sim is {here.parent}, expected one below {root}')


def run_all(only: str, jobs: int) -> dict[str, str]:
    """Run all cases whose names match a pattern; return their digests in the order of cases."""
    chosen = [name for name in cases() if fnmatch.fnmatchcase(name, f'*{only}*')]
    if not chosen:
        raise SystemExit(f'same_bits: no case matches {only!r}')
    found: dict[str, dict[str, str]] = {}
    begin, shown = time.perf_counter(), sys.stderr.isatty()
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(jobs, context, end_with, (os.getpid(),)) as executor:
        waiting = {executor.submit(run_case, name): name for name in chosen}
        for done in as_completed(waiting):
            found[waiting[done]] = done.result()
            if shown:
                print(f'\r{len(found)} of {len(chosen)} cases', end='', file=sys.stderr)
    seconds = time.perf_counter() - begin
    print(f'{len(chosen)} cases of {contact_sim.__file__} in {seconds:.0f} s', file=sys.stderr)
    return {key: value for name in chosen for key, value in found[name].items()}


# ------------------------------------------------------------------------------- command line


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return what differs between two sets of digests, and what is no digest, in words."""
    said = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, 'missing'), new.get(name, 'missing')
        if before != after:
            said.append(f'{name}: {before[:100]} -> {after[:100]}')
        elif before.startswith('error'):
            said.append(f'{name}: {before[:200]}')
    return said


def compare(old: Mapping[str, str], new: Mapping[str, str]) -> int:
    """Print what differs; return 0 if nothing does."""
    said = differences(old, new)
    if said:
        groups = Counter(line.split(':')[0] for line in said)
        print('\n'.join(said))
        print(', '.join(f'{group} {count}' for group, count in groups.items()))
    print(f'{len(said)} of {len(old.keys() | new.keys())} digests differ')
    return 1 if said else 0


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out in a temporary folder while the block runs.

    The same folder every time, and files as old as the commit: kernels that were compiled for it
    are found again.
    """
    git = ['git', '-C', str(Path(__file__).resolve().parents[1])]
    told = partial(subprocess.run, check=True, capture_output=True, text=True)
    try:
        shown = told([*git, 'show', '--no-patch', '--format=%H %ct', f'{commit}^{{commit}}'])
    except subprocess.CalledProcessError as error:
        raise SystemExit(f'same_bits: {error.stderr.strip()}') from error
    name, age = shown.stdout.split()
    tree = Path(tempfile.gettempdir()) / f'same_bits_{os.getuid()}_{name[:12]}'
    remove = [*git, 'worktree', 'remove', '--force', str(tree)]
    subprocess.run(remove, check=False, capture_output=True)  # one that was left behind
    told([*git, 'worktree', 'add', '--detach', str(tree), name])
    try:
        for file in tree.rglob('*.py'):
            os.utime(file, (int(age), int(age)))
        yield tree
    finally:
        told(remove)


def digests_in(root: Path, options: Sequence[str]) -> dict[str, str]:
    """Return the digests of the package in a folder, from a process of its own."""
    paths = [str(root), *filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep))]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory(prefix='same_bits_') as folder:
        file = Path(folder) / 'digests.json'
        command = [sys.executable, str(Path(__file__).resolve()), '--write', str(file)]
        command += ['--root', str(root), *options]
        subprocess.run(command, env=environment, cwd=folder, check=False)
        if not file.exists():
            raise SystemExit(f'same_bits: the cases could not be run in {root}')
        return read(file)


def read(file: Path) -> dict[str, str]:
    """Return the digests in a file."""
    found: dict[str, str] = json.loads(file.read_text(encoding='utf-8'))
    return found


def default_root() -> str:
    """Return the first folder of PYTHONPATH, else this checkout."""
    first = os.environ.get('PYTHONPATH', '').split(os.pathsep)[0]
    return first or str(Path(__file__).resolve().parents[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write digests, or compare them; return 1 if any differ or could not be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--write', type=Path, metavar='FILE', help='run the cases, write digests')
    what.add_argument('--compare', type=Path, nargs=2, metavar='FILE', help='two written files')
    what.add_argument('--against', metavar='COMMIT', help='run the cases in it and here')
    what.add_argument('--list', action='store_true', help='names of the cases')
    parser.add_argument('--only', default='', metavar='PATTERN', help='part of names, * and ?')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--root', default=default_root(), help='where contact_sim must be')
    options = parser.parse_args(arguments)
    if options.compare:
        return compare(*map(read, options.compare))
    if options.against:
        chosen = ['--only', options.only, '--jobs', str(options.jobs)]
        with worktree(options.against) as tree:
            old = digests_in(tree, chosen)
        return compare(old, digests_in(Path(__file__).resolve().parents[1], chosen))
    check_root(options.root)
    if options.list:
        print('\n'.join(cases()))
        return 0
    found = run_all(options.only, options.jobs)
    options.write.write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')
    wrong = [f'{name}: {digest}' for name, digest in found.items() if digest.startswith('error')]
    print('\n'.join(wrong), end='\n' if wrong else '', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
