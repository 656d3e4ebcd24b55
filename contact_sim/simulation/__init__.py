"""Simulator, many worlds at once, and the reports of their steps."""

from contact_sim.simulation._report import (
    ConstraintReport,
    ContactGroups,
    ContactReport,
    FootReport,
    PairReport,
    StepContext,
    StepReport,
)
from contact_sim.simulation._running import StepObserver
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot
from contact_sim.simulation._succession import with_robots
from contact_sim.simulation._trajectory import Trajectory, TrajectoryFailure
from contact_sim.simulation._worlds import Rollout, Worlds

__all__ = [
    'ConstraintReport',
    'ContactGroups',
    'ContactReport',
    'FootReport',
    'PairReport',
    'Rollout',
    'Simulator',
    'Snapshot',
    'StepContext',
    'StepObserver',
    'StepReport',
    'Trajectory',
    'TrajectoryFailure',
    'Worlds',
    'with_robots',
]
