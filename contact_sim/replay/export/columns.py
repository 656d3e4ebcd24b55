"""The numbers of a step as columns of a table, with their units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.contact.workspace import contact_names
from contact_sim.messages.labels import coordinate_units, joint_units, velocity_units
from contact_sim.replay.archive import understood
from contact_sim.replay.header import FORMAT, ground_of
from contact_sim.replay.recording import Recording
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import parts_of
from contact_sim.simulation.contact_report import ContactReport
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
AXES = 'xyz'
RESIDUALS = {
    'signorini': 'J', 'cone': 'N s', 'dissipation': 'J', 'ncp': 'N s', 'dual': 'm/s',
    'interval': 'N s', 'dissipated': 'J', 'bias_work': 'J', 'penetration': 'm',
    'force_at_distance': 'N s', 'slip': 'm/s', 'momentum': 'N s', 'energy_change': 'J',
    'energy_actuation': 'J', 'energy_damping': 'J', 'energy_contact': 'J',
    'energy_joint_friction': 'J', 'energy_correction': 'J', 'energy_constraints': 'J',
}  # fmt: skip
"""Units of the residuals, in the order of `contact.residuals.Residuals`."""
PER_CONTACT: dict[str, tuple[str, int]] = {
    'force': ('N', 3), 'normal_force': ('N', 1), 'gap': ('m', 1), 'velocity': ('m/s', 3),
    'slip_speed': ('m/s', 1), 'mode': ('-', 1),
}  # fmt: skip
"""Fields of a ContactReport: unit, and how many numbers each contact has."""


def grounds_of(recording: Recording) -> list[Terrain]:
    """Return all grounds of a recording in the order in which they were stood on.

    Raises:
        RecordingError: a ground that is none.
    """
    with understood(f'{recording.path}: the ground'):
        said = [event['ground'] for event in recording.events if event['kind'] == 'terrain']
        return [
            ground_of(recording.header),
            *(ground_of({'format': FORMAT, 'ground': ground}) for ground in said),
        ]


class Columns:
    """Names of columns, each `name [unit]`, and the numbers of a step.

    Time, q, v, joint efforts after saturation, every contact with the ground, energy, solver and
    residuals. Of several robots each name begins with that of its robot. Contacts that the ground
    of a step does not have are NaN.

    Args:
        robot: whose run it is.
        grounds: all that it stands on in the run.
    """

    def __init__(self, robot: RobotModel, grounds: list[Terrain]) -> None:
        names = [name for ground in grounds for name in contact_names(robot, ground)]
        self._contacts = {name: row for row, name in enumerate(dict.fromkeys(names))}
        self._parts: list[tuple[list[str], Callable[[StepReport], Array]]] = [
            (['time [s]'], lambda report: np.array([report.time])),
            *_state(robot),
            (self._contact_names(), self._of_contacts),
            (['energy.kinetic [J]', 'energy.potential [J]'], _energies),
            (['solver.status [-]', 'solver.iterations [-]', 'solver.residual [-]'],
             lambda report: report.record.solver),
            ([f'residual.{name} [{unit}]' for name, unit in RESIDUALS.items()],
             lambda report: np.array(report.residuals)),
        ]  # fmt: skip
        self.names = [name for names, _ in self._parts for name in names]
        """In the order of the numbers."""

    def of(self, report: StepReport) -> Array:
        """Return the numbers of a step, shape (len(names),)."""
        return np.concatenate([numbers(report) for _, numbers in self._parts])

    def _contact_names(self) -> list[str]:
        return [
            f'contact.{contact}.{name}{suffix} [{unit}]'
            for contact in self._contacts
            for name, (unit, count) in PER_CONTACT.items()
            for suffix in (('.x', '.y', '.z') if count == 3 else ('',))
        ]

    def _of_contacts(self, report: StepReport) -> Array:
        here = report.contacts
        table = _contact_table(here)
        if here.names == tuple(self._contacts):
            return table.ravel()
        filled = np.full((len(self._contacts), table.shape[1]), np.nan)
        filled[[self._contacts[name] for name in here.names]] = table
        return filled.ravel()


def _contact_table(contacts: ContactReport) -> Array:
    """Return one row for each contact with all numbers of PER_CONTACT."""
    count = len(contacts.names)
    return np.hstack([
        np.asarray(getattr(contacts, name), dtype=float).reshape(count, size)
        for name, (_, size) in PER_CONTACT.items()
    ])  # fmt: skip


def _state(robot: RobotModel) -> list[tuple[list[str], Callable[[StepReport], Array]]]:
    """Return the columns of q, v and efforts."""
    q, v, effort = [], [], []
    for part in parts_of(robot):
        q += [f'q.{part.called(name)} [{unit}]' for name, unit in coordinate_units(part.robot)]
        v += [f'v.{part.called(name)} [{unit}]' for name, unit in velocity_units(part.robot)]
        units = ['N' if unit == 'm' else 'N m' for unit in joint_units(part.robot)]
        joints = zip(part.robot.joint_names, units, strict=True)
        effort += [f'effort.{part.called(name)} [{unit}]' for name, unit in joints]
    return [
        (q, lambda report: report.q), (v, lambda report: report.v),
        (effort, lambda report: report.effort),
    ]  # fmt: skip


def _energies(report: StepReport) -> Array:
    """Return kinetic and potential energy [J], U = −g · Σ m c."""
    kinetic, *moment = report.record.energy
    return np.array([kinetic, -report.record.gravity @ moment])
