"""Trajectories of other engines, scored by the residuals of the laws of contact."""

from contact_sim.judge._score import Score, judge
from contact_sim.judge._sources import (
    DrakeRecorder,
    MujocoRecorder,
    StepCollector,
    StepContact,
    from_drake,
    from_mcap,
    from_mujoco,
    from_recording,
    from_reports,
)
from contact_sim.judge._steps import Steps

__all__ = [
    'DrakeRecorder',
    'MujocoRecorder',
    'Score',
    'StepCollector',
    'StepContact',
    'Steps',
    'from_drake',
    'from_mcap',
    'from_mujoco',
    'from_recording',
    'from_reports',
    'judge',
]
