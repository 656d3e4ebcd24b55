"""Trajectories of other engines, scored by the residuals of the laws of contact."""

from contact_sim.judge._score import Score, judge
from contact_sim.judge._sources import (
    from_recording,
    from_reports,
)
from contact_sim.judge._steps import Steps

__all__ = [
    'Score',
    'Steps',
    'from_recording',
    'from_reports',
    'judge',
]
