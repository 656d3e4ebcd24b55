"""The picture of a failed trial: what the robot did, and when an assertion was first broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from contact_sim.testing.trajectory import Trajectory

COLOURS = ('#0072B2', '#E69F00', '#009E73', '#CC79A7', '#D55E00', '#56B4E9')
INK, BROKEN = '#222222', '#c0392b'


def draw(trajectory: Trajectory, title: str, broken: float | None, path: Path) -> None:
    """Write the figure as PNG.

    Args:
        trajectory: the run.
        title: what is wrong, in one line.
        broken: time at which it goes wrong [s], None where that is not known.
        path: file to write.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    rows: tuple[Callable[[Any, Trajectory], None], ...] = (_base, _forces, _slip, _efforts)
    style = {'font.size': 9, 'axes.spines.top': False, 'axes.spines.right': False}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            len(rows), 1, sharex=True, figsize=(9.0, 8.0), layout='constrained'
        )
        for axis, row in zip(axes, rows, strict=True):
            row(axis, trajectory)
            if broken is not None:
                axis.axvline(broken, color=BROKEN, linewidth=1.2, linestyle=(0, (4, 2)))
        figure.suptitle(title, color=BROKEN, fontsize=10, wrap=True)
        axes[-1].set_xlabel('simulated time [s]')
        figure.savefig(path, dpi=110, facecolor='white')
        plt.close(figure)


def _base(axis: Any, run: Trajectory) -> None:
    axis.plot(run.time, run.height, color=INK, linewidth=1.4)
    axis.set_ylabel('base height [m]')
    tilt = axis.twinx()
    tilt.plot(run.time, run.tilt, color=COLOURS[1], linewidth=1.0)
    tilt.set_ylabel('tilt [rad]', color=COLOURS[1])


def _forces(axis: Any, run: Trajectory) -> None:
    _per_contact(axis, run, run.force[:, :, 2])
    axis.set_ylabel('normal force [N]')
    if run.names:
        axis.legend(loc='upper right', ncols=4, fontsize=8, frameon=False)


def _slip(axis: Any, run: Trajectory) -> None:
    _per_contact(axis, run, 1e3 * run.slip)
    axis.set_ylabel('slip since set-down [mm]')


def _per_contact(axis: Any, run: Trajectory, values: Any) -> None:
    for i, name in enumerate(run.names):
        colour = COLOURS[i % len(COLOURS)]
        axis.plot(run.time, values[:, i], color=colour, linewidth=1.0, label=name)


def _efforts(axis: Any, run: Trajectory) -> None:
    axis.plot(run.time, abs(run.effort) / run.robot.effort_limit, linewidth=0.7, color=INK)
    axis.axhline(1.0, color=BROKEN, linewidth=0.8)
    axis.set_ylabel('effort / limit [-]')
