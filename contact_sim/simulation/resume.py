"""Going back to a state without going back to its time or its settings."""

from __future__ import annotations

from dataclasses import replace

from contact_sim.errors import ContactSimError
from contact_sim.simulation.simulator import Simulator
from contact_sim.simulation.snapshot import Snapshot

SETTINGS = ('gravity', 'time_step', 'springs')
"""Fields of a snapshot that are no state."""


def resume(sim: Simulator, snapshot: Snapshot, time: float) -> None:
    """Continue at `time` [s] from the state of a snapshot, under the settings now in force.

    The steps that follow are bit-identical to those that followed the snapshot, but for their
    time, if neither settings nor the contact model have changed. Constraints are settings, but
    for the places that they found for themselves: these are as they were, or in the state.

    Raises:
        InvalidInput: a snapshot of another robot, or a state in which the constraints do not hold.
    """
    now = sim.snapshot()
    if snapshot.constraints != now.constraints:
        snapshot = _held_there(sim, snapshot, now)
        now = replace(now, constraints=snapshot.constraints)
    if snapshot.robot != now.robot or snapshot.buffer.shape != now.buffer.shape:
        sim.restore(snapshot)  # says what is wrong
    buffer = snapshot.buffer.copy()
    layout = sim.sizes.layout
    for field in SETTINGS:
        start, stop, _ = layout[field]
        buffer[start:stop] = now.buffer[start:stop]
    if snapshot.contact_model.name != now.contact_model.name:  # what it kept means nothing now
        for field in ('memory', 'memory_start'):
            start, stop, _ = layout[field]
            buffer[start:stop] = 0.0
    clock = layout['clock'][0]
    buffer[clock : clock + 3] = time, time, 0.0
    sim.restore(replace(now, buffer=buffer))


def _held_there(sim: Simulator, snapshot: Snapshot, now: Snapshot) -> Snapshot:
    """Return the state of a snapshot with the constraints that hold now, and let them."""
    given = sim.given_constraints
    sim.restore(snapshot)
    try:
        sim.constraints = given
    except ContactSimError:
        sim.restore(now)
        sim.constraints = given
        raise
    return sim.snapshot()
