"""Go on from a snapshot under the settings now in force."""

from __future__ import annotations

from dataclasses import replace

from contact_sim.errors import ContactSimError
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import Snapshot
from contact_sim.simulation._user_values import MOMENT_COEFFICIENTS

SETTINGS = ('gravity', 'time_step', 'springs', *MOMENT_COEFFICIENTS)
"""Fields of the step data that are settings, not state."""


def resume(sim: Simulator, snapshot: Snapshot, time: float) -> None:
    """Continue at `time` [s] from the state of a snapshot, under the settings now in force.

    The steps that follow are bit-identical to those that followed the snapshot, but for their
    time, if neither settings nor the contact model have changed. Constraints are settings, but
    for the places that they found for themselves: these are as they were, or in the state.
    """
    now = sim.snapshot()
    if snapshot.constraints != now.constraints:
        declared = sim.given_constraints
        sim.restore(snapshot)
        try:
            sim.constraints = declared
        except ContactSimError:
            sim.restore(now)
            sim.constraints = declared
            raise
        snapshot = sim.snapshot()
        now = replace(now, constraints=snapshot.constraints)
    if snapshot.moments != now.moments:
        torsional, rolling = sim.torsional_friction, sim.rolling_friction
        sim.restore(snapshot)
        sim.torsional_friction, sim.rolling_friction = torsional, rolling
        snapshot = sim.snapshot()
    if snapshot.robot != now.robot or snapshot.buffer.shape != now.buffer.shape:
        sim.restore(snapshot)  # raises an error that says what is wrong
    buffer = snapshot.buffer.copy()
    layout = sim.sizes.layout
    for field in SETTINGS:
        start, stop, _ = layout[field]
        buffer[start:stop] = now.buffer[start:stop]
    if snapshot.contact_model.name != now.contact_model.name:  # another model's warm start
        for field in ('memory', 'memory_start'):
            start, stop, _ = layout[field]
            buffer[start:stop] = 0.0
    clock = layout['clock'][0]
    buffer[clock : clock + 3] = time, time, 0.0
    sim.restore(replace(now, buffer=buffer))
