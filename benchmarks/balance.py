"""How long robots stand under the controller Balance, and which pushes they bear.

python benchmarks/balance.py FOLDER [FOLDER or file ...] [--out table.md] [--jobs 2]

Every description below a folder is loaded with the feet that contact_sim.inspect proposes, in a
process of its own. Under ncp on a plane (friction 0.8, time step 1 ms):

    held      2 s by the default gains, as contact_sim.inspect does
    10 s      seconds that it stands under Balance while it is pushed at 1, 3, 5 and 7 s forward,
              back, left and right, each by SHARE m √(g z) within 0.1 s
    largest   push in each direction after which it stands for 3 s more, by bisection

Pushes act at the centre of mass; z is its height. It falls where its centre of mass sinks below
70 % of that height, or its trunk tilts by 1 rad. m ω d with ω = √(g/z) and d the distance of the
edge of the soles is what a robot bears that neither steps nor swings its body. `reach` is how far
effort limits let the centre of pressure move from the middle of the soles. Directions are always
forward, back, left, right.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from strangers import descriptions, name_of

SHARE = 0.05
"""Of m √(g z), in the pushes of the trial of 10 s."""
PUSH_TIME = 0.1
WAYS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
TIME_STEP = 1e-3
FRICTION = 0.8
LOWEST = 0.7
"""Share of its height below which the centre of mass of a robot has fallen."""
LARGEST_TILT = 1.0
HALVINGS = 5
LARGEST = 2.0
"""Upper end of the bisection over m ω d."""
HEADINGS = (
    'description', 'joints', 'mass kg', 'z m', 'held 2 s', f'10 s, pushes of {SHARE} m √(g z)',
    'largest push N s', 'over m √(g z)', 'over m ω d', 'reach mm', 'tick ms', 'why it falls',
)  # fmt: skip


class Trials:
    """Trials of one robot under Balance."""

    def __init__(self, robot: Any) -> None:
        from contact_sim.control import Balance

        self.robot, self.controller = robot, Balance(robot)
        self.footing = self.controller.footing()
        self.start = robot.reference_configuration()
        self._model, self._data = robot.pinocchio_model, robot.pinocchio_model.createData()
        self.height = self._centre(self.start)[2]
        self._up = pin.Quaternion(self.start[3:7]).matrix()[2]
        self.limit = robot.total_mass * self.footing.omega * self.footing.edge

    def _centre(self, q: Any) -> Any:
        return pin.centerOfMass(self._model, self._data, q).copy()

    def fallen(self, q: Any) -> bool:
        """Return whether a robot lies, or is about to."""
        up = pin.Quaternion(q[3:7]).matrix()[2]
        tilt = np.arccos(np.clip(self._up @ up, -1.0, 1.0))
        return bool(self._centre(q)[2] < LOWEST * self.height or tilt > LARGEST_TILT)

    def stands(self, pushes: Sequence[tuple[float, Any]], seconds: float) -> float:
        """Return for how long it stands [s]; pushes are times [s] and impulses (2,) [N s]."""
        from contact_sim import Simulator
        from contact_sim.control import Balance
        from contact_sim.errors import ContactSimError

        sim = Simulator(self.robot, 'ncp', friction=FRICTION, time_step=TIME_STEP)
        controller, frame = Balance(self.robot), self.robot.base_frame
        for k in range(round(seconds / TIME_STEP)):
            time, wrench = k * TIME_STEP, None
            for at, impulse in pushes:
                if at <= time < at + PUSH_TIME:
                    force = np.array([*impulse, 0.0]) / PUSH_TIME
                    arm = self._centre(sim.q) - sim.q[:3]
                    wrench = {frame: [*force, *np.cross(arm, force)]}
            try:
                sim.step(controller.effort(sim.time, sim.q, sim.v), wrench)
            except ContactSimError:
                return time
            if k % 20 == 0 and self.fallen(sim.q):
                return time
        return seconds

    def largest(self, way: int) -> float:
        """Return the largest impulse along a way that it bears [N s]."""
        low, high = 0.0, LARGEST
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            push = 0.5, middle * self.limit[way] * WAYS[way]
            if self.stands([push], 3.6) < 3.6:
                high = middle
            else:
                low = middle
        return float(low * self.limit[way])

    def tick(self) -> float:
        """Return the time of an answer at rest [ms], the median of 200."""
        from time import perf_counter

        times, v = [], np.zeros(self.robot.nv)
        for _ in range(200):
            begin = perf_counter()
            self.controller.effort(0.0, self.start, v)
            times.append(perf_counter() - begin)
        return 1e3 * float(np.median(times))


def judged(file: Path, largest: bool) -> dict[str, Any]:
    """Return what is known of a description; in the process that is to judge it.

    With the `largest` pushes, or without.
    """
    import warnings

    warnings.simplefilter('ignore')
    from contact_sim.errors import ContactSimError
    from contact_sim.inspect._inspection import (
        Source,
        inspect_robot,
        pressure_words,
        standing_trial,
    )

    try:
        robot = inspect_robot(Source(str(file))).robot
    except ContactSimError as error:
        return {'refused': str(error).removeprefix(f'{file}: ')}
    found: dict[str, Any] = {
        'joints': robot.n_joints, 'mass': robot.total_mass, 'feet': len(robot.feet),
        'held': standing_trial(robot).stands,
    }  # fmt: skip
    try:
        trials = Trials(robot)
    except ContactSimError as error:
        return found | {'why': str(error).partition(': ')[2]}
    unit = robot.total_mass * np.sqrt(9.81 * trials.height)
    pushes = [(1.0 + 2.0 * k, SHARE * unit * way) for k, way in enumerate(WAYS)]
    found |= {'z': trials.height, 'seconds': trials.stands(pushes, 10.0), 'tick': trials.tick()}
    found['alone'] = 10.0 if found['seconds'] == 10.0 else trials.stands([], 10.0)
    found['reach'] = [1e3 * max(reach, 0.0) for reach in trials.footing.reach]
    if largest and found['alone'] == 10.0:
        impulses = [trials.largest(way) for way in range(4)]
        found['impulses'] = impulses
        found['shares'] = [impulse / unit for impulse in impulses]
        found['ratios'] = [j / most for j, most in zip(impulses, trials.limit, strict=True)]
    stands = found['alone'] == 10.0
    found['why'] = '' if stands else pressure_words(trials.footing)
    return found


def judged_apart(file: Path, largest: bool, limit: float) -> dict[str, Any]:
    """Return what a process of its own makes of a description, or how that process ended."""
    command = [sys.executable, os.path.abspath(__file__), '--judge', str(file)]
    command += [] if largest else ['--no-largest']
    try:
        # one thread: those of BLAS only wait for each other where processes share the cores
        environment = os.environ | {'OPENBLAS_NUM_THREADS': '1'}
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, env=environment
        )
        return dict(json.loads(ended.stdout.strip().splitlines()[-1]))
    except subprocess.TimeoutExpired:
        return {'refused': f'no answer within {limit:g} s'}
    except (IndexError, ValueError):
        last = ended.stderr.strip().splitlines()[-1:] or ['']
        return {'refused': f'the process ended with {ended.returncode}: {last[0]}'}


def row(name: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    if 'refused' in found:
        return f'| {name} |' + ' |' * (len(HEADINGS) - 2) + f' refused: {found["refused"][:120]} |'
    cells = [name, str(found['joints']), f'{found["mass"]:.4g}']
    held = 'yes' if found['held'] else 'no'
    if 'seconds' not in found:
        return '| ' + ' | '.join([*cells, '', held, *[''] * 6, f'cannot: {found["why"]}']) + ' |'
    seconds = f'{found["seconds"]:.3g}'
    if found['alone'] != found['seconds']:
        seconds += f' ({found["alone"]:.3g} without)'
    cells += [f'{found["z"]:.2f}', held, seconds]
    for key, digits in (
        ('impulses', '.3g'),
        ('shares', '.2f'),
        ('ratios', '.2f'),
        ('reach', '.0f'),
    ):
        cells.append(', '.join(f'{value:{digits}}' for value in found.get(key, [])))
    return '| ' + ' | '.join([*cells, f'{found["tick"]:.2f}', found['why']]) + ' |'


def main() -> None:
    """Print the table, and how many of the robots stand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('places', nargs='*', type=Path, metavar='FOLDER')
    parser.add_argument('--out', type=Path, help='file to write the table to, besides')
    parser.add_argument('--limit', type=float, default=1200.0, help='of one description [s]')
    parser.add_argument('--jobs', type=int, default=1, help='descriptions at once')
    parser.add_argument(
        '--no-largest', action='store_true', help='without the bisections, minutes per robot'
    )
    parser.add_argument('--judge', type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge is not None:
        print(json.dumps(judged(options.judge, not options.no_largest)))
        return
    lines = [f'| {" | ".join(HEADINGS)} |', '|---|' + '---:|' * 10 + '---|']
    print('\n'.join(lines), flush=True)
    files = list(descriptions(options.places))
    balanced = refused = alone = held = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(
            lambda file: judged_apart(file, not options.no_largest, options.limit), files
        )
        for file, found in zip(files, answers, strict=True):
            refused += 'refused' in found
            held += found.get('held', False)
            balanced += found.get('seconds') == 10.0
            alone += found.get('alone') == 10.0
            lines.append(row(name_of(file, options.places), found))
            print(lines[-1], flush=True)
    lines += ['', f'{len(files)} descriptions, {refused} refused; {held} stand held, {alone} '
              f'under Balance, {balanced} of them with the pushes']  # fmt: skip
    print('\n'.join(lines[-2:]))
    if options.out is not None:
        options.out.write_text('\n'.join(lines) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
