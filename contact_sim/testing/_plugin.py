"""Pytest plugin of the test kit: fixtures, an option, and files saved for failed tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from contact_sim.errors import ContactSimError
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._trajectory import Trajectory
from contact_sim.testing._trial import Trial

if TYPE_CHECKING:
    from contact_sim.testing._lockstep_trial import LockstepTrial

TRIALS = pytest.StashKey[list[Any]]()
"""The trials of a test."""
TITLE_LENGTH = 200


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --failures."""
    parser.getgroup('contact_sim').addoption(
        '--failures', default='out/failures', metavar='DIR',
        help='where failed trials leave their replay files and figures',
    )  # fmt: skip


@pytest.fixture
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    """Return a function that starts a trial in this process: no ROS, no other process.

    `trial(controller, robot='go1', contact_model='ncp', control_steps=1, **settings)` takes the
    settings of `contact_sim.Simulator` and a robot by name or as a RobotModel; or give `sim`.
    `end_on_contact=['trunk']` fails where one of these links touches the ground.
    """
    trials = request.node.stash.setdefault(TRIALS, [])

    def start(
        controller: Any,
        robot: str | RobotModel = 'go1',
        control_steps: int = 1,
        sim: Simulator | None = None,
        end_on_contact: Iterable[str] = (),
        **settings: Any,
    ) -> Trial:
        if sim is None:
            model = robot if isinstance(robot, RobotModel) else load_robot(robot)
            sim = Simulator(model, **settings)
        recording = tmp_path / f'trial_{len(trials)}.npz'
        run = Trial(sim, controller, recording, control_steps, end_on_contact)
        trials.append(run)
        return run

    yield start
    _end(trials)


@pytest.fixture
def lockstep_trial(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., LockstepTrial]]:
    """Return a function that starts the node and controllers as processes, in lockstep.

    `lockstep_trial(*controllers, **settings)`, of `contact_sim.testing._lockstep_trial`. A test
    without ROS is skipped.
    """
    pytest.importorskip('rclpy', reason='needs ROS')
    from contact_sim.testing._lockstep_trial import LockstepTrial

    trials = request.node.stash.setdefault(TRIALS, [])

    def start(*controllers: Any, **settings: Any) -> LockstepTrial:
        folder = tmp_path / f'trial_{len(trials)}'
        run = LockstepTrial(controllers, folder, **settings)
        trials.append(run)
        return run

    yield start
    _end(trials)


def _end(trials: list[Any]) -> None:
    """Close trials and forget them: pytest keeps its items, and what they hold, to the end."""
    while trials:
        trials.pop().close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    """Save the trials of a failed test, and report the path of the files."""
    outcome = yield
    report = outcome.get_result()
    trials = item.stash.get(TRIALS, [])
    if call.when != 'call' or not report.failed or call.excinfo is None or not trials:
        return
    folder = item.config.rootpath / item.config.getoption('failures')
    name = re.sub(r'[^\w.-]+', '_', item.name).strip('_')
    saved = [
        line
        for k, one in enumerate(trials)
        for line in save(one, folder, f'{name}_{k}' if k else name, call.excinfo.value)
    ]
    report.sections.append(('contact_sim', '\n'.join(saved)))


def save(trial: Trial | LockstepTrial, folder: Path, name: str, error: BaseException) -> list[str]:
    """Write replay file and figure of a trial; return what to say about them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.close()
        replay, picture = folder / f'{name}.npz', folder / f'{name}.png'
        shutil.copyfile(trial.recording, replay)
        said = [f'repeat it: python -m contact_sim.replay {replay}']
    except (OSError, ContactSimError) as trouble:
        return [f'the trial could not be saved: {trouble}']
    words = ' '.join(str(error).split())[:TITLE_LENGTH]
    try:
        draw(trial.trajectory, words, getattr(error, 'time', None), picture)
    except Exception as trouble:  # a picture that cannot be drawn must not hide the failure
        return [*said, f'no figure: {trouble!r}']
    return [*said, f'look at it: {picture}']


# --- Figure of a failed trial: what the robot did, and when an assertion was first broken

COLOURS = ('#0072B2', '#E69F00', '#009E73', '#CC79A7', '#D55E00', '#56B4E9')
INK, BROKEN = '#222222', '#c0392b'


def draw(trajectory: Trajectory, title: str, broken: float | None, path: Path) -> None:
    """Write the figure as PNG.

    Args:
        trajectory: the run.
        title: what is wrong, in one line.
        broken: time at which it goes wrong [s], None where that is not known.
        path: file to write.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    run = trajectory
    style = {'font.size': 9, 'axes.spines.top': False, 'axes.spines.right': False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(4, 1, sharex=True, figsize=(9.0, 8.0), layout='constrained')
        base, forces, slip, efforts = axes
        base.plot(run.time, run.height, color=INK, linewidth=1.4)
        base.set_ylabel('base height [m]')
        tilt = base.twinx()
        tilt.plot(run.time, run.tilt, color=COLOURS[1], linewidth=1.0)
        tilt.set_ylabel('tilt [rad]', color=COLOURS[1])
        for i, name in enumerate(run.names):
            of_contact = {'color': COLOURS[i % len(COLOURS)], 'linewidth': 1.0, 'label': name}
            forces.plot(run.time, run.force[:, i, 2], **of_contact)
            slip.plot(run.time, 1e3 * run.slip[:, i], **of_contact)
        forces.set_ylabel('normal force [N]')
        if run.names:
            forces.legend(loc='upper right', ncols=4, fontsize=8, frameon=False)
        slip.set_ylabel('slip since set-down [mm]')
        efforts.plot(run.time, abs(run.effort) / run.robot.effort_limit, linewidth=0.7, color=INK)
        efforts.axhline(1.0, color=BROKEN, linewidth=0.8)
        efforts.set_ylabel('effort / limit [-]')
        efforts.set_xlabel('simulated time [s]')
        for axis in axes if broken is not None else ():
            axis.axvline(broken, color=BROKEN, linewidth=1.2, linestyle=(0, (4, 2)))
        figure.suptitle(title, color=BROKEN, fontsize=10, wrap=True)
        figure.savefig(path, dpi=110, facecolor='white')
        plt.close(figure)
