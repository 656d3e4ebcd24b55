"""Damaged recordings: the file, its header, its arrays.

What can be read is repeated: that ends in a word about what differs, or the run is equal.
"""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_bytes import as_npy, damaged, members, zipped
from fuzz_urdfs import small_robot
from fuzz_values import NUMBERS, TEXTS, shown
from fuzz_workers import Unlawful

from contact_sim import Plane, Simulator, load_robot
from contact_sim.replay import Recorder, Recording, repeat

ODD: tuple[Any, ...] = (
    None, True, [], {}, [[]], '', 'x', -1, 0, 1, 1e300, 2**70, [1, 2], {'a': 1}, [None], 1e-300,
    float('nan'), float('inf'), [0.0] * 100,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything in a JSON value."""
    items = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return [found for key, item in items for found in ((*path, key), *places(item, (*path, key)))]


def edit(header: Any, chance: random.Random) -> Any:
    """Change, drop or add something in a JSON value; return what was done, in words."""
    path = chance.choice(places(header))
    holder = header
    for key in path[:-1]:
        holder = holder[key]
    if chance.random() < 0.25:
        del holder[path[-1]]
        return path, 'left out'
    if chance.random() < 0.1 and isinstance(holder, dict):
        holder[chance.choice(TEXTS[:8])] = copy.deepcopy(chance.choice(ODD))
        return path[:-1], 'one more'
    old = holder[path[-1]]
    near = [old * 2, -old, old + 1] if isinstance(old, int | float) else [[old], str(old)]
    numbers = [x for x in NUMBERS if isinstance(x, int | float) and abs(x) < 2.0**64]
    odd = copy.deepcopy(chance.choice(ODD))  # what an input is given, the next one may not have
    holder[path[-1]] = chance.choice((odd, chance.choice(numbers), *near))
    return path, holder[path[-1]]


class Recordings:
    """Inputs of the kind `recordings`."""

    def __init__(self, folder: Path) -> None:
        self.said: str | Callable[[], str] = ''
        self.path = folder / 'odd.npz'
        self.whole = [self.recorded(folder / f'{k}.npz', random.Random(k)) for k in range(4)]

    def recorded(self, path: Path, chance: random.Random) -> bytes:
        """Return a recording of a small robot to which this and that happens."""
        robot = load_robot(small_robot(chance))
        sim = Simulator(robot)
        with Recorder(sim, path, chunk=8):
            for k in range(20):
                push = {robot.base_frame: [1.0, 0, 0, 0, 0, 0]} if 5 <= k < 8 else {}
                if k == 10:
                    sim.friction = 0.3
                if k == 12:
                    sim.contact_model = 'sap'
                if k == 14:
                    sim.reset(terrain=Plane(offset=-0.1))
                sim.step(np.zeros(robot.n_joints), push)
        repeat(Recording(path))
        return path.read_bytes()

    def file(self, chance: random.Random) -> bytes:
        """Return a damaged recording."""
        whole = chance.choice(self.whole)
        if chance.random() < 0.4:
            return damaged(whole, chance)
        content = members(whole)
        texts = [name for name in content if name in ('header.npy',) or 'events' in name]
        name = 'header.npy' if chance.random() < 0.7 else chance.choice(texts)
        array = np.lib.format.read_array(io.BytesIO(content[name]))
        value = json.loads(str(array[()]))
        done = [edit(value, chance) for _ in range(chance.choice((1, 1, 2))) if places(value)]
        self.said = partial(shown, (name, done), 600)
        content[name] = as_npy(np.array(json.dumps(value)))
        return zipped(content)

    def run(self, chance: random.Random) -> None:
        """Read one recording and repeat it."""
        self.said = 'damaged bytes'
        self.path.write_bytes(self.file(chance))
        recording = Recording(self.path)
        outcome = repeat(recording)
        if not np.isfinite(outcome.time):
            raise Unlawful('a repetition whose time is not finite')
        if outcome.steps > 0 and not np.isfinite(recording.effort).all() and outcome.equal:
            raise Unlawful('efforts that are not finite, and the run is called equal')
