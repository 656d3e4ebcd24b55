"""Odd inputs in great numbers: none of them may crash, hang, or pass without a word.

    python test/fuzz/fuzz.py calls [--count 100000] [--seed 0] [--number N]

Each input depends on kind, seed and number alone: with --number one is tried again, as every
finding says. Kinds: calls, urdfs, recordings, problems (files and arrays), files (heights, images,
YAML, meshes, bags, tables, policies, scenarios, steps, SRDF), and, with a ROS node, starts
(parameters at its start), messages (--count for each topic) and parameters (at run time).
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

MAKERS = {
    'calls': 'Calls', 'urdfs': 'Urdfs', 'recordings': 'Recordings', 'problems': 'Problems',
    'files': 'Files', 'starts': 'Starts',
}  # fmt: skip
"""Kinds that are tried in a process of workers, with the class that makes their inputs."""
OF_NODE = ('messages', 'parameters')
"""Kinds that are sent to a node."""


def maker_of(kind: str) -> Any:
    """Return the class of a kind of inputs."""
    return getattr(importlib.import_module(f'fuzz_{kind}'), MAKERS[kind])


def hunt_node(kind: str, seed: int, count: int, first: int = 0) -> Any:
    """Return the tally of odd messages or parameters for a node of its own."""
    import fuzz_node

    with tempfile.TemporaryDirectory(prefix='contact_sim_fuzz_') as folder:
        node = fuzz_node.Node(Path(folder))
        try:
            return getattr(fuzz_node, f'hunt_{kind}')(node, seed, count, first)
        finally:
            node.close()


def said(finding: object) -> None:
    """Print a finding as soon as it is made: a long run may be interrupted."""
    print(finding, flush=True)


def main() -> int:
    """Print the findings; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('kind', choices=(*MAKERS, *OF_NODE))
    parser.add_argument('--count', type=int, default=100_000)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--first', type=int, default=0, help='number of the first input')
    parser.add_argument('--number', type=int, help='try this input only, of a node its batch')
    options = parser.parse_args()
    from fuzz_workers import hunt, try_one

    kind, seed, number = options.kind, options.seed, options.number
    if kind in OF_NODE:
        first, count = (options.first, options.count) if number is None else (number, 50)
        tally = hunt_node(kind, seed, count, first)
    elif number is not None:
        return 1 if try_one(maker_of(kind), kind, seed, number) else 0
    else:
        tally = hunt(maker_of(kind), kind, seed, options.count, first=options.first, say=said)
    print(f'{kind}: {tally}')
    return 1 if tally.findings else 0


if __name__ == '__main__':
    sys.exit(main())
