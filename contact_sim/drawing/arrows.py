"""Arrows for what acts in a step: forces, slip, normals, pushes, constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contact_sim.drawing.style import (
    METRES_PER_METRE_PER_SECOND,
    METRES_PER_NEWTON,
    METRES_PER_NEWTON_METRE,
    NORMAL_LENGTH,
)
from contact_sim.robot.constraints import (
    ORIGIN,
    Constraint,
    FrameAnchor,
    LoopClosure,
    PointAnchor,
)
from contact_sim.robot.model import RobotModel
from contact_sim.sensors.frames import Frames, frame_called
from contact_sim.simulation.contact_report import ContactReport
from contact_sim.simulation.pair_report import PairReport
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
SHORTEST = 1e-6
"""An arrow is drawn where a component of it is longer than this [m]."""


@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrows, one row each; those without length are there, too, and are not to be seen."""

    start: Array
    """Where they begin [m], world, shape (n, 3)."""
    along: Array
    """From there to the tip [m], world, shape (n, 3)."""

    def __len__(self) -> int:
        """Return the number of arrows."""
        return len(self.start)

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Whether each has a length that can be seen, shape (n,)."""
        return np.asarray(np.abs(self.along).max(axis=1, initial=0.0) > SHORTEST)

    @property
    def ends(self) -> Array:
        """Return start and tip of those that can be seen [m], shape (m, 2, 3)."""
        seen = self.visible
        start = self.start[seen]
        return np.stack([start, start + self.along[seen]], axis=1)


def contact_arrows(contacts: ContactReport) -> dict[str, Arrows]:
    """Return force, slip and normal of every contact with the ground, by name of their colour.

    Slip has a length only where the contact slips.
    """
    start, slips = contacts.position, contacts.mode == 2
    slip = METRES_PER_METRE_PER_SECOND * contacts.velocity * slips[:, None]
    return {
        'force': Arrows(start, METRES_PER_NEWTON * contacts.force),
        'slip': Arrows(start, slip),
        'normal': Arrows(start, NORMAL_LENGTH * contacts.normal),
    }


def pair_arrows(pairs: PairReport) -> Arrows:
    """Return the force of every contact between bodies on the first of them."""
    return Arrows(pairs.position, METRES_PER_NEWTON * pairs.force)


def push_arrows(wrenches: Mapping[str, Array], origins: Mapping[str, Array]) -> dict[str, Arrows]:
    """Return force and torque from outside, by name of their colour; a force ends where it acts.

    Args:
        wrenches: frame to force [N] and torque [N m], world axes, (6,).
        origins: frame to its origin in the world [m], (3,).
    """
    wrench = np.array([*wrenches.values()], dtype=float).reshape(-1, 6)
    origin = np.array([origins[frame] for frame in wrenches], dtype=float).reshape(-1, 3)
    force = METRES_PER_NEWTON * wrench[:, :3]
    return {
        'push': Arrows(origin - force, force),
        'push_torque': Arrows(origin, METRES_PER_NEWTON_METRE * wrench[:, 3:]),
    }


class HeldPoint:
    """Where a constraint holds a frame, and with what.

    Args:
        robot: whose frame.
        constraint: an anchor or a loop, see `holds_frame`.
    """

    def __init__(self, robot: RobotModel, constraint: Constraint) -> None:
        self.frame = constraint.holds[0]
        """Name of the frame."""
        self._frames = Frames(robot, [frame_called(robot, self.frame)])

    def acting(
        self, report: StepReport, constraint: Constraint | None
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return rotation and origin of the frame, the point in its axes, force and torque there.

        Arrays of shape (3, 3), and (3,) [m], [m], [N], [N m], world axes; None: the constraint
        does not hold, and nothing acts.
        """
        rows, point = np.zeros(6), np.zeros(3)
        if constraint is not None:
            force = report.constraints[constraint.name].force
            rows[: len(force)] = force
            point[:] = getattr(constraint, 'point', ORIGIN)
        placement = self._frames.placements(report.q)[0]
        rotation, origin = np.array(placement.rotation), np.array(placement.translation)
        return rotation, origin, point, rows[:3], rows[3:]

    def arrow(self, report: StepReport, constraint: Constraint | None) -> Arrows:
        """Return the force at the point that is held, one arrow."""
        rotation, origin, point, force, _ = self.acting(report, constraint)
        return Arrows((origin + rotation @ point)[None], METRES_PER_NEWTON * force[None])


def holds_frame(constraint: Constraint) -> bool:
    """Return whether a constraint holds a frame, so that its force has a place."""
    return isinstance(constraint, PointAnchor | FrameAnchor | LoopClosure)
