"""Recording a run of the node; imports no ROS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from contact_sim.replay.recorder import Recorder
from contact_sim.ros.setup import Settings
from contact_sim.simulation.simulator import Simulator


def recorder_of(
    sim: Simulator, settings: Settings, report_failure: Callable[[str], None]
) -> Recorder | None:
    """Return a recorder where the parameter `record` names a file.

    Raises:
        InvalidInput: a file that cannot be written.
    """
    name = settings[''].record
    if not name:
        return None
    parameters = {prefix or 'node': dict(vars(group)) for prefix, group in settings.items()}
    return Recorder(sim, Path(name).expanduser(), parameters=parameters, on_error=report_failure)
