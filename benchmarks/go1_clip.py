"""Let go1 trot, push it, and film it with headless Chromium: docs/go1.webp.

    python benchmarks/go1_clip.py [docs/go1.webp]

The camera goes along with the robot, whose sway stays to be seen. It takes two minutes, ten on
a machine that is busy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from contact_sim import Simulator, load_robot
from contact_sim.control import Trot
from contact_sim.simulation._report import StepReport
from contact_sim.view._saved import quiet_server, write_clip
from contact_sim.view._scene import Camera, Scene

Array = NDArray[np.float64]
SPEED, PUSH, BEGIN, END = 0.5, 60.0, 2.0, 2.2
"""Forwards [m/s]; to the side [N], from and until [s]."""
START, STOP, FPS = 0.8, 5.2, 25
"""The part of the run that is filmed [s], and pictures per second."""
SIZE = 600, 360
HIDDEN = 'normals', 'slip', 'slip_trails'


def run() -> Iterator[tuple[StepReport, dict[str, Array]]]:
    """Yield each step with what pushed in it."""
    robot = load_robot('go1')
    sim, trot = Simulator(robot, 'ncp'), Trot(robot)
    trot.velocity = (SPEED, 0.0, 0.0)
    while sim.time < STOP - 1e-9:
        pushed = BEGIN <= sim.time + 1e-9 < END
        wrench = {'trunk': np.array([0.0, PUSH, 0.0, 0.0, 0.0, 0.0])} if pushed else {}
        yield sim.step(trot.effort(sim.time, sim.q, sim.v), wrench), wrench


def smooth(places: Array, steps: int) -> Array:
    """Return the mean of places (n, 2) over so many steps around each."""
    padded = np.pad(places, ((steps // 2, steps - steps // 2 - 1), (0, 0)), mode='edge')
    window = np.full(steps, 1.0 / steps)
    return np.stack([np.convolve(column, window, 'valid') for column in padded.T], axis=1)


def main() -> None:
    """Film it."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else 'docs/go1.webp')
    robot, taken = load_robot('go1'), list(run())
    along = smooth(np.array([report.q[:2] for report, _ in taken]), 400)
    ground = Simulator(robot).terrain
    with quiet_server() as server:
        scene = Scene(server, robot, ground)
        for name in HIDDEN:
            scene.visible[name] = False

        def pictures() -> Iterator[None]:
            for k in range(round(1e3 * START), len(taken), round(1e3 / FPS)):
                scene.offset = np.array([*-along[k], 0.0])
                scene.show(*taken[k])
                yield

        write_clip(
            path, server, pictures(), FPS, Camera((0.53, -0.66, 0.5), (0.0, 0.0, 0.21)), SIZE
        )
    print(f'{path}: {path.stat().st_size / 1e6:.2f} MB')


if __name__ == '__main__':
    main()
