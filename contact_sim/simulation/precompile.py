"""Compile every contact model before it is needed, so that a live switch never waits.

`python -m contact_sim.simulation.precompile` does it now; the node does it in the background.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from contact_sim.contact_models import contact_models
from contact_sim.robot.urdf import load_robot
from contact_sim.simulation.simulator import Simulator
from contact_sim.solvers.jit import cache_folder

DONE = Path(cache_folder('simulation.simulator')) / 'every-model-is-compiled'
"""Exists once all models were compiled from the sources as they are now."""
DELAY = 60.0
"""Wall seconds that the process leaves to the start of the simulation and of its controllers."""
ROBOT = 'quadruped'
"""Kernels are the same for all robots."""


@contextmanager
def compiling_meanwhile() -> Iterator[None]:
    """Compile in a process of its own, at low priority, while the block runs; nothing if done."""
    if DONE.exists():
        yield
        return
    process = subprocess.Popen(
        [sys.executable, '-m', __name__, str(DELAY)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for who started it
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def give_way() -> None:
    """Use only what nobody else wants of the processor."""
    os.nice(19)
    if hasattr(os, 'SCHED_IDLE'):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):  # a session of its own gets a fair share otherwise, idle or not
        Path('/proc/self/autogroup').write_text('19', encoding='ascii')


def main(arguments: Sequence[str] = ()) -> None:
    """Take one step with every contact model, and remember that it was done.

    Args:
        arguments: seconds to wait first; none: 0.
    """
    give_way()
    time.sleep(float(arguments[0]) if arguments else 0.0)
    sim = Simulator(load_robot(ROBOT))
    for model in contact_models():
        sim.contact_model = model
        print(f'{model}: compiled')
    DONE.parent.mkdir(parents=True, exist_ok=True)
    DONE.touch()


if __name__ == '__main__':
    main(sys.argv[1:])
