"""Where two runs part that differ in one thing: the first step, what differs, residuals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.compare._runs import APART, WELL_INSIDE
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.errors import InvalidInput, one_line
from contact_sim.replay import Recording, Timeline
from contact_sim.simulation._report import StepReport

DIFFERS = 1e-9
"""Difference of a configuration that is more than rounding [m, rad]."""
MATTERS = {'base': 0.01, 'turn': 0.05, 'joints': 0.1}
"""Difference from which on two runs are not the same motion: base [m], its turn, joints [rad]."""
MODES = ('open', 'sticks', 'slips')


@dataclass(frozen=True)
class Parting:
    """Where two runs part."""

    names: tuple[str, str]
    """Of the runs: what differs between them, such as their contact models."""
    time: float
    """After the first step in which they differ [s]; NaN if they never do."""
    what: str
    """What differs then, in words."""
    foot: str
    """Foot whose mode differs first, '' if none ever does."""
    mode_time: float
    """After the first step in which the mode of a foot differs [s]; NaN if it never does."""
    mode_what: str
    """How, in words."""
    matters_time: float
    """After the step from which on the difference is larger than MATTERS [s]; NaN: it never is."""
    matters_what: str
    residuals: tuple[Mapping[str, float], Mapping[str, float]]
    """Of both runs in the step in which they part for good, or in the first that differs."""
    times: tuple[float, ...] = ()
    """Of `distances` [s]."""
    distances: tuple[float, ...] = ()
    """Between the bases [m]."""

    @property
    def statement(self) -> str:
        """Where they part, in words."""
        if np.isnan(self.time):
            return f'{self.names[0]} and {self.names[1]} never differ.'
        text = f'{self.names[0]} and {self.names[1]} differ from t = {self.time:.4f} s on'
        text += f' ({self.what})'
        if self.mode_what:
            text += f'; from t = {self.mode_time:.4f} s {self.mode_what}'
        if np.isnan(self.matters_time):
            return f'{text}; it never matters.'
        return f'{text}; it matters from t = {self.matters_time:.4f} s on ({self.matters_what}).'

    __repr__ = one_line


@checked
def parting(one: Path, other: Path, names: tuple[str, str]) -> Parting:
    """Return where two recorded runs part.

    Both are taken again step by step, beside each other.

    Args:
        one: recording of a run.
        other: recording of a run with the same robot and time step.
        names: what to call them.

    Raises:
        InvalidInput: recordings with other robots or time steps.
    """
    timelines = [Timeline(Recording(path)) for path in (one, other)]
    a, b = timelines
    if a.time_step != b.time_step or a.robot.nq != b.robot.nq:
        raise InvalidInput(f'{one}, {other}: expected runs of one robot with one time step')
    steps, changes, first, mode_step = _compared(a, b)
    h = a.time_step
    if first is None:
        nothing: Mapping[str, float] = dict.fromkeys(LAWS, 0.0)
        nan = float('nan')
        return Parting(names, nan, '', '', nan, '', nan, '', (nothing, nothing))
    table = np.array(changes)
    sizes = {
        'base': np.linalg.norm(table[:, :3], axis=1),
        'turn': np.linalg.norm(table[:, 3:6], axis=1),
        'joints': np.abs(table[:, 6:]).max(axis=1, initial=0.0),
    }
    after = {name: _for_good(values > MATTERS[name]) for name, values in sizes.items()}
    matters = {name: k for name, k in after.items() if k is not None}
    kind = min(matters, key=lambda name: matters[name], default='')
    place = matters[kind] if kind else first[0] - 1
    feet = timelines[0].at(steps[place]).report.feet.names
    pair = [residuals_of(timeline.at(steps[place]).report) for timeline in timelines]
    words = {'base': 'the bases are {:.1f} mm apart', 'turn': 'the bases are turned by {:.3f} rad',
             'joints': 'a joint differs by {:.3f} rad'}  # fmt: skip
    scale = {'base': 1e3, 'turn': 1.0, 'joints': 1.0}
    thinned = slice(None, None, max(len(steps) // 400, 1))
    return Parting(
        names,
        first[0] * h,
        f'configuration by {np.abs(first[1]).max():.1e}',
        feet[mode_step[1]] if mode_step else '',
        mode_step[0] * h if mode_step else float('nan'),
        f'{feet[mode_step[1]]} {MODES[mode_step[2]]} under {names[0]} and '
        f'{MODES[mode_step[3]]} under {names[1]}' if mode_step else '',
        steps[place] * h if kind else float('nan'),
        words[kind].format(scale[kind] * sizes[kind][place]) if kind else '',
        (pair[0], pair[1]),
        tuple((h * np.array(steps)[thinned]).tolist()),
        tuple(sizes['base'][thinned].tolist()),
    )  # fmt: skip


def _compared(
    a: Timeline, b: Timeline
) -> tuple[list[int], list[Array], tuple[int, Array] | None, tuple[int, int, int, int] | None]:
    """Take two runs step by step; return what differs.

    Returns:
        Numbers of the steps; changes of the configuration from one run to the other; the first
        step that differs, with its change; the first step in which a foot has another mode, that
        foot and its two modes.
    """
    first = mode_step = None
    changes, steps = [], []
    for (here, _), (there, _) in zip(a.walk(), b.walk(), strict=False):
        reports = here.report, there.report
        change = pin.difference(
            a.robot.pinocchio_model, np.array(reports[0].q), np.array(reports[1].q)
        )
        modes = [report.feet.mode for report in reports]
        foot = int(np.argmax(modes[0] != modes[1])) if np.any(modes[0] != modes[1]) else None
        if mode_step is None and foot is not None:
            mode_step = here.step, foot, int(modes[0][foot]), int(modes[1][foot])
        if first is None and (foot is not None or np.abs(change).max() > DIFFERS):
            first = here.step, change
        changes.append(change)
        steps.append(here.step)
    return steps, changes, first, mode_step


def _for_good(beyond: np.ndarray) -> int | None:
    """Return the first place from which on all are beyond, None if the last one is not."""
    if not len(beyond) or not beyond[-1]:
        return None
    inside = np.flatnonzero(~beyond)
    return int(inside[-1]) + 1 if len(inside) else 0


def residuals_of(report: StepReport) -> dict[str, float]:
    """Return the residual of each law in a step, as `contact_sim.compare` measures them."""
    values, contacts = report.residuals.as_dict(), report.contacts
    load, normal = contacts.normal_force, report.record.frame_start[: len(contacts.gap), 2]
    along = contacts.force - np.sum(contacts.force * normal, axis=1, keepdims=True) * normal
    inside = np.linalg.norm(along, axis=1) < WELL_INSIDE * contacts.friction * load
    values['slip'] = float(contacts.slip_speed[inside].max(initial=0.0))
    h = float(report.record.time_step[0])
    values['force_at_distance'] = h * float(load[contacts.gap > APART].sum())
    return {law: values[law] for law in LAWS}
