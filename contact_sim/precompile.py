"""Compile all contact models and controllers in advance, so that switching does not wait.

`python -m contact_sim.precompile` does it now; the node does it in the background.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from contact_sim._command_line import parser_with_examples
from contact_sim.contact_models import CONTACT_MODELS, contact_models
from contact_sim.contact_models._base import ContactModel, TimeSteppingModel
from contact_sim.control import Balance, Stance, Trot
from contact_sim.parameters import declared_parameters
from contact_sim.robot._loading import load_robot
from contact_sim.simulation._simulator import Simulator
from contact_sim.solvers._jit import cache_folder, compile_what_is_rare

DONE = Path(cache_folder('simulation._simulator')) / 'every-model-is-compiled'
"""Exists once all models were compiled from the sources as they are now."""
DELAY = 60.0
"""Wall seconds that the process leaves to the start of the simulation and of its controllers."""
ROBOT = 'quadruped'
"""Kernels are the same for all robots."""
LONGEST = 'hybrid'
"""The model that takes longest to compile is begun first."""
CONTROLLERS = 'controllers'


@contextmanager
def compiling_meanwhile() -> Iterator[None]:
    """Compile in a process of its own, at low priority, while the block runs; nothing if done."""
    if DONE.exists():
        yield
        return
    process = subprocess.Popen(
        [sys.executable, '-m', __name__, '--delay', str(DELAY), '--end-with-input'],
        stdin=subprocess.PIPE,  # it ends where this process is killed
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,  # it must not keep our pipes open
        start_new_session=True,  # no Ctrl-C of our terminal
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):  # at idle priority it may end late
            process.communicate(timeout=1.0)


def end_with_input() -> None:
    """End this process when its standard input is closed: its parent has ended."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def run_idle() -> None:
    """Run at idle priority."""
    os.nice(19)
    if hasattr(os, 'SCHED_IDLE'):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():  # a session of its own gets a fair share in spite of that
        with suppress(OSError):
            Path('/proc/self/autogroup').write_text('19', encoding='ascii')


def compile_named(name: str) -> str:
    """Compile a contact model, or all controllers under their common name; return the name."""
    if name == CONTROLLERS:
        robot = load_robot(ROBOT)
        q, v = robot.reference_configuration(), np.zeros(robot.nv)
        for controller in (Stance(robot), Trot(robot), Balance(robot)):
            controller.effort(0.0, q, v)
        Trot(robot).efforts(np.zeros(1), q[None], v[None])
    else:
        compile_model(name)
    return name


def compile_model(model: str) -> None:
    """Compile the kernels of a contact model: its step, its shadow and `solve`."""
    sim = Simulator(load_robot(ROBOT), model)
    sim.shadow = [model]
    effort = np.zeros(sim.robot.n_joints)
    report = sim.step(effort)
    report.read()
    compile_what_is_rare()
    problem = report.problem
    for variant in variants(CONTACT_MODELS[model]):
        sim.contact_model = variant
        sim.step(effort)
        if isinstance(variant, TimeSteppingModel):
            TimeSteppingModel.solve(variant, problem)  # of compliant too, without a stiffness


def variants(model: type[ContactModel]) -> Iterator[ContactModel]:
    """Yield the model as it is, and with every value of each parameter that is a choice."""
    yield model()
    for field in declared_parameters(model.parameter_class):  # type: ignore[arg-type]
        for choice in field.info.choices or ():
            yield model(**{field.name: choice})  # type: ignore[call-arg]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile every contact model and controller, and remember that it was done."""
    parser = parser_with_examples(
        'python -m contact_sim.precompile', str(main.__doc__), ('', '--jobs 2')
    )
    parser.add_argument('--delay', type=float, default=0.0, help='seconds to wait first')
    parser.add_argument('--jobs', type=int, default=1, help='how many are compiled at once')
    parser.add_argument('--end-with-input', action='store_true', help='end where it ends')
    options = parser.parse_args(arguments)
    if options.end_with_input:
        end_with_input()
        run_idle()
    time.sleep(options.delay)
    names = [*sorted(contact_models(), key=lambda model: model != LONGEST), CONTROLLERS]
    if options.jobs > 1:
        spawn = multiprocessing.get_context('spawn')
        with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
            report(pool.map(compile_named, names))
    else:
        report(map(compile_named, names))
    with suppress(OSError):  # a folder that cannot be written: said when the kernels were saved
        DONE.parent.mkdir(parents=True, exist_ok=True)
        DONE.touch()


def report(compiled: Iterable[str]) -> None:
    """Print the name of each model when it is compiled."""
    for name in compiled:
        print(f'{name}: compiled', flush=True)


if __name__ == '__main__':
    main()
