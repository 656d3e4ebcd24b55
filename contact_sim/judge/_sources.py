"""Collect `Steps` from our simulator and recordings, and from running MuJoCo and Drake.

A collector takes over from its engine what the engine says about contacts, and puts every other
force into `external`, so that the balance of momentum stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import as_tuple, checked, count
from contact_sim.collision._contact_slots import pair_of
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.judge._steps import Steps
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Replayer
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport

Control = Callable[[float, Array, Array], Any]
"""(time [s], q, v) -> joint efforts [N m], shape (n_joints,)."""


@dataclass
class Contact:
    """One contact of a step, in the terms of `Steps`."""

    body: str
    point: Array
    normal: Array
    gap: float
    force: Array | None
    friction: float
    next_gap: float = np.nan
    active: bool = True
    contact_velocity: Array | None = None


@dataclass
class Collector:
    """Steps that are being collected; a contact per slot is added as they come."""

    robot: RobotModel
    source: str
    states: list[tuple[float, Array, Array]] = field(default_factory=list)
    contacts: list[list[Contact]] = field(default_factory=list)
    effort: list[Array] = field(default_factory=list)
    external: list[Array] = field(default_factory=list)
    interval_impulse: list[Array] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    """Sentence: number of steps that it is about."""

    def note(self, text: str) -> None:
        """Count a step for a note."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def steps(self) -> Steps:
        """Return what was collected.

        Raises:
            InvalidInput: no step yet.
        """
        if len(self.states) < 2:
            raise InvalidInput('nothing to judge: no step was taken')
        bodies = list(dict.fromkeys(c.body for row in self.contacts for c in row))
        n, m = len(self.contacts), max(map(len, self.contacts))
        arrays: dict[str, Any] = {
            'body': np.full((n, m), -1), 'point': np.zeros((n, m, 3)),
            'normal': np.zeros((n, m, 3)), 'gap': np.zeros((n, m)),
            'next_gap': np.full((n, m), np.nan), 'force': np.zeros((n, m, 3)),
            'friction': np.zeros((n, m)), 'active': np.zeros((n, m), dtype=bool),
        }  # fmt: skip
        optional: dict[str, Any] = {
            name: np.array(getattr(self, name)) if getattr(self, name) else None
            for name in ('external', 'interval_impulse')
        }
        for k, row in enumerate(self.contacts):
            for i, contact in enumerate(row):
                for name, array in arrays.items():
                    value = getattr(contact, name)
                    array[k, i] = bodies.index(value) if name == 'body' else value
                if contact.contact_velocity is not None:
                    velocity = optional.setdefault('contact_velocity', np.zeros((n, m, 3)))
                    velocity[k, i] = contact.contact_velocity
        time, q, v = (np.array(column) for column in zip(*self.states, strict=True))
        return Steps(
            time, q, v, np.array(self.effort).reshape(n, self.robot.n_joints), tuple(bodies),
            **arrays, **optional, time_step=np.array(self.lengths) if self.lengths else None,
            robot=self.robot.name, source=self.source,
            notes=tuple(f'{text} ({steps} of {n} steps)' for text, steps in self.notes.items()),
        )  # fmt: skip


# --- Our own steps.


@checked
def from_reports(
    robot: RobotModel, reports: Iterable[StepReport], source: str = 'contact_sim'
) -> Steps:
    """Return the steps of our simulator as arrays, from their reports, in their order.

    Forces of contacts between bodies go into `external`.

    Raises:
        InvalidInput: no report, reports of another robot, a step that does not begin where the one
            before it ended, contacts with torsional or rolling friction.
    """
    collected = Collector(robot, source)
    for report in as_tuple('reports', reports, 'a list of StepReport'):
        if not isinstance(report, StepReport):
            raise InvalidInput(f'reports: {shown(report)}: expected StepReport')
        add_report(collected, report)
    return collected.steps()


def add_report(collected: Collector, report: StepReport) -> None:
    """Add a step of ours."""
    record, robot = report.record, collected.robot
    sizes = record.sizes
    if (sizes.nq, sizes.nv, sizes.n_joints) != (robot.nq, robot.nv, robot.n_joints):
        raise InvalidInput(f'a report of a robot of other sizes than {robot.name!r}')
    if sizes.n_moments:
        raise InvalidInput(
            'torsional and rolling friction have no forces in `Steps`: read report.residuals'
        )
    if sizes.nb:
        raise InvalidInput(f'robot {robot.name!r}: closed loops and couplings are not judged')
    h, time = float(record.time_step[0]), report.time
    start, after = (time - h, record.q_start, record.v_start), (time, record.q, record.v)
    if not collected.states:
        collected.states.append(_copied(start))
    elif not (
        np.array_equal(collected.states[-1][1], start[1])
        and np.array_equal(collected.states[-1][2], start[2])
    ):
        raise InvalidInput(
            f'the step to t = {time:.9g} s does not begin where the one before it ended (a reset, '
            'or a state that was set): judge the parts one by one'
        )
    collected.states.append(_copied(after))
    collected.lengths.append(h)
    external = record.tau.copy()
    external[robot.joint_velocity_index] -= record.effort
    row: list[Contact] = []
    for i in range(sizes.nc):
        if not (record.active[i] > 0.0 or record.gap[i] < 0.0):
            continue
        body = _body_of_slot(robot, sizes.features, sizes.n_ground, i, record.feature_start[i])
        if body is None:  # between two bodies of the robot
            rows = slice(3 * i, 3 * i + 3)
            external += record.jacobian_transposed[:, rows] @ record.impulse[rows] / h
            if record.impulse[3 * i + 2] > 0.0:
                collected.note('contacts between bodies of the robot are not judged')
            continue
        row.append(
            Contact(
                body, record.position_start[i].copy(), record.frame_start[i, 2].copy(),
                float(record.gap_start[i]), record.contact_force[i].copy(),
                float(record.friction[i]), float(record.gap[i]), bool(record.active[i] > 0.0),
                record.contact_velocity[i].copy(),
            )
        )  # fmt: skip
    collected.contacts.append(row)
    collected.effort.append(record.effort.copy())
    collected.external.append(external)
    collected.interval_impulse.append(record.impulse[3 * sizes.nc :].copy())


def _copied(state: tuple[float, Array, Array]) -> tuple[float, Array, Array]:
    time, q, v = state
    return time, q.copy(), v.copy()


def _body_of_slot(
    robot: RobotModel, features: int, n_ground: int, i: int, feature: float
) -> str | None:
    """Return the joint that moves the body of a contact with the ground; None between bodies."""
    if i < n_ground:
        return robot.contact_points[i // features].joint
    collisions, pair = robot.collisions, int(pair_of(feature)) - len(robot.collisions.pairs)
    return None if pair < 0 else collisions.solids[collisions.grounded_places[pair]].joint


@checked
def from_recording(
    recording: str | Path | Recording, contact_model: str | ContactModel | None = None
) -> tuple[RobotModel, Steps]:
    """Replay a recording; return its robot and its steps.

    Args:
        recording: of `Recorder`, or its file.
        contact_model: another contact model, under which the same efforts act.

    Raises:
        RecordingError: a file that is no recording, or cannot be repeated.
        InvalidInput: as `from_reports`; a recording in which the state was set.
    """
    source = recording if isinstance(recording, Recording) else Recording(recording)
    replayer = Replayer(source, contact_model)
    robot, name = replayer.sim.robot, replayer.sim.contact_model
    collected = Collector(robot, f'{source.path.name}, contact model {name}')
    for step in replayer.steps():
        if step.report is None:
            collected.note('the recording has steps that were not finite, left out')
            break
        add_report(collected, step.report)
    return robot, collected.steps()
