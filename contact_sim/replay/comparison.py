"""A recorded run under another contact model: how far apart do the two get?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.contact_models.protocol import ContactModel
from contact_sim.replay.player import Player
from contact_sim.replay.recording import Recording
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
APART = 1e-3
"""Distance of the two bases from which on the runs are said to be apart [m]."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs with the same efforts and changes, one sample per step."""

    recorded: str
    """Contact model at the beginning of the recording."""
    other: str
    time: Array
    """Time after each step in the recording [s], shape (n,)."""
    base: Array
    """Distance of the origins of the two bases [m], shape (n,); 0 for a fixed base."""
    turn: Array
    """Angle between the two bases [rad], shape (n,)."""
    joints: Array
    """Largest difference of a joint's position [rad or m], shape (n,)."""
    force: Array
    """Difference of the total contact force [N], shape (n,)."""
    end: str
    """Reason why one of the runs ended early, '' if none did."""

    def apart_from(self) -> float | None:
        """Return when the bases are more than a millimetre apart for the first time [s]."""
        apart = np.flatnonzero(self.base > APART)
        return float(self.time[apart[0]]) if len(apart) else None

    def lines(self, rows: int = 10) -> list[str]:
        """Return a table of the differences at some times, and what it means."""
        columns = ('t [s]', 'base [m]', 'turn [rad]', 'joint [rad]', 'force [N]')
        head = ''.join(f'{column:>12}' for column in columns)
        found = [f'{self.other} instead of {self.recorded}, with the same efforts:', head]
        count = len(self.time)
        for k in np.unique(np.linspace(0, count - 1, min(rows, count)).astype(int)):
            values = (self.base[k], self.turn[k], self.joints[k], self.force[k])
            found.append(f'{self.time[k]:12.4g}' + ''.join(f'{value:12.3g}' for value in values))
        apart = self.apart_from()
        found.append(
            f'the bases stay within {1e3 * APART:g} mm of each other'
            if apart is None
            else f'the bases are more than {1e3 * APART:g} mm apart from t = {apart:.6g} s on'
        )
        return [*found, *([self.end] if self.end else [])]


def compare(recording: Recording, contact_model: str | ContactModel) -> Comparison:
    """Repeat a recording beside itself under another contact model.

    The efforts are those that were recorded: nobody controls the second run.

    Raises:
        RecordingError: a recording that cannot be repeated.
        UnknownName: no such contact model.
    """
    reference, other = Player(recording), Player(recording, contact_model)
    robot, model = reference.sim.robot, reference.sim.contact_model
    rows, end = [], ''
    for ours, theirs in zip(reference.steps(), other.steps(), strict=False):
        if ours.report is None or theirs.report is None:
            which = model if ours.report is None else other.sim.contact_model
            end = f'step {ours.number} is not finite under {which}'
            break
        a, b = ours.report, theirs.report
        force = b.contacts.force.sum(axis=0) - a.contacts.force.sum(axis=0)
        rows.append((a.time, *difference(robot, a.q, b.q), float(np.linalg.norm(force))))
    time, base, turn, joints, forces = np.array(rows, dtype=float).reshape(-1, 5).T
    return Comparison(model, other.sim.contact_model, time, base, turn, joints, forces, end)


def difference(robot: RobotModel, first: Array, second: Array) -> tuple[float, float, float]:
    """Return how far apart two configurations (nq,) are.

    Returns:
        Distance [m] and angle [rad] between the bases, 0 for a fixed base, and the largest
        difference of a joint [rad or m].
    """
    change = pin.difference(robot.pinocchio_model, first, second)
    joints = float(np.abs(change[robot.joint_velocity_index]).max(initial=0.0))
    if not robot.floating_base:
        return 0.0, 0.0, joints
    distance = float(np.linalg.norm(second[:3] - first[:3]))
    return distance, float(np.linalg.norm(change[3:6])), joints
