"""Seconds of a first start, which compiles, and of every later one.

    python benchmarks/start_time.py [--robot go1] [--models ncp sap] [--repeats 3] [--json FILE]

Each start is a process of its own that imports the package, loads the robot and makes a
`Simulator`. The first start of a model has an empty folder for compiled kernels; the later ones
have what it left there, and the figures are medians over `--repeats` of them. `cpu` counts all
threads of the process, `wall` is what a person waits.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from engines import write_json

import contact_sim

START = """
import json, sys, time
begin = time.perf_counter(), time.process_time()
import contact_sim
imported = time.perf_counter(), time.process_time()
robot = contact_sim.load_robot(sys.argv[1])
sim = contact_sim.Simulator(robot, sys.argv[2])
end = time.perf_counter(), time.process_time()
sim.step(robot.n_joints * [0.0])
print(json.dumps({
    'import_wall': imported[0] - begin[0], 'import_cpu': imported[1] - begin[1],
    'simulator_wall': end[0] - imported[0], 'simulator_cpu': end[1] - imported[1],
    'height_m': float(sim.q[2]),
}))
"""
"""What each process does; the step shows that it got a simulator that works."""


def start(robot: str, model: str, kernels: str) -> dict[str, float]:
    """Return the figures of one start in a process of its own [s]."""
    environment = os.environ | {'NUMBA_CACHE_DIR': kernels}
    command = [sys.executable, '-c', START, robot, model]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'{model}: the start failed: {done.stderr.strip()[-2000:]}')
    return {name: float(value) for name, value in json.loads(done.stdout).items()}


def measure(robot: str, model: str, repeats: int) -> dict[str, Any]:
    """Return the figures of a first start, and of later ones."""
    with tempfile.TemporaryDirectory(prefix='contact_sim_start_') as kernels:
        cold = start(robot, model, kernels)
        starts = [start(robot, model, kernels) for _ in range(repeats)]
        size = sum(file.stat().st_size for file in Path(kernels).rglob('*') if file.is_file())
    warm = {name: statistics.median(one[name] for one in starts) for name in cold}
    return {'robot': robot, 'model': model, 'cold': cold, 'warm': warm, 'kernels_mb': size / 1e6}


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    models = contact_sim.contact_models()
    parser.add_argument('--models', nargs='+', choices=models, default=['ncp'])
    parser.add_argument('--repeats', type=int, default=3, help='later starts')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    print(f'seconds, {options.robot}')
    print(f'{"":12}{"first start":^18}{"later":^18}{"of which import":>16}{"kernels MB":>12}')
    print(f'{"model":12}{"cpu":>9}{"wall":>9}{"cpu":>9}{"wall":>9}{"wall":>16}')
    rows = []
    for model in options.models:
        rows.append(measure(options.robot, model, options.repeats))
        cells = ''
        for when in ('cold', 'warm'):
            for clock in ('cpu', 'wall'):
                one = rows[-1][when]
                cells += f'{one[f"import_{clock}"] + one[f"simulator_{clock}"]:9.2f}'
        cells += f'{rows[-1]["warm"]["import_wall"]:16.2f}{rows[-1]["kernels_mb"]:12.1f}'
        print(f'{model:12}{cells}', flush=True)
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
