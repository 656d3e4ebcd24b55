"""Kinks: where a step changes its mode, and its derivatives are those of one side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contact_sim._types import Array
from contact_sim.arrays._views import StepData
from contact_sim.derivatives import _fields as d

KINK_TOLERANCE = 1e-9
"""Distance from a kink, beside the scales of the step, within which it is reported [-]."""
SIDES = {d.OPEN: 'open', d.STICK: 'sticking', d.SLIDE: 'sliding'}


@dataclass(frozen=True)
class Kink:
    """A contact or row of a step on the boundary between two modes."""

    name: str
    """Name of the contact, or `interval k` of an interval row."""
    what: str
    """Which condition is just met: `mode`, or `gap` where φ = 0 changes how a gap is closed."""
    side: str
    """The side that was taken."""
    distance: float
    """Distance from the kink beside the scales of the step [-]: impulses over the largest impulse,
    velocities over the fastest contact or h g, gaps over h times that."""


def find_kinks(
    step: StepData,
    margin: Array,
    modes: Any,
    names: Any,
    tolerance: float,
    scales: Array,
) -> tuple[Kink, ...]:
    """Return the kinks of a step within a tolerance, contacts first."""
    found, nc, h = [], len(step.gap), float(step.time_step[0])
    length = h * float(scales[1])
    for i in np.flatnonzero(margin[:nc] <= tolerance):
        found.append(Kink(names[i], 'mode', SIDES[int(modes[i])], float(margin[i])))
    for i in np.flatnonzero(
        (modes[:nc] != d.OPEN) & (np.abs(step.gap_start) <= tolerance * length)
    ):
        side = 'above' if step.gap_start[i] > 0.0 else 'on the ground'
        found.append(Kink(names[i], 'gap', side, float(abs(step.gap_start[i]) / length)))
    limits = (
        (step.interval_active > 0.0) & (modes[nc:] == d.STICK) & np.isinf(step.upper - step.lower)
    )
    for k in np.flatnonzero(limits & (np.abs(step.interval_gap) <= tolerance * length)):
        distance = float(abs(step.interval_gap[k]) / length)
        found.append(Kink(f'interval {k}', 'gap', 'at the limit', distance))
    for k in np.flatnonzero(margin[nc:] <= tolerance):
        side = 'inside its bounds' if modes[nc + k] == d.STICK else 'at a bound'
        found.append(Kink(f'interval {k}', 'mode', side, float(margin[nc + k])))
    return tuple(found)
