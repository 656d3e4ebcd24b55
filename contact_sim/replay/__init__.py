"""Recordings: record a run, repeat it to the bit, inspect any step, export it."""

from typing import TYPE_CHECKING, Any

from contact_sim._deprecated import renamed
from contact_sim.replay._event_detection import Event, EventDetection, Series, detect_events
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Chunk, Recording
from contact_sim.replay._replayer import Outcome, ReplayedStep, Timeline, TimelineStep, repeat

if TYPE_CHECKING:
    from contact_sim.replay._export import Exported, Targets, export

__all__ = [
    'Chunk',
    'Event',
    'EventDetection',
    'Exported',
    'Outcome',
    'Recorder',
    'Recording',
    'ReplayedStep',
    'Series',
    'Targets',
    'Timeline',
    'TimelineStep',
    'detect_events',
    'export',
    'repeat',
]


def __getattr__(name: str) -> Any:
    """Load the exports on first use: a simulation that records does not need them."""
    if name in ('Exported', 'Targets', 'export'):
        from contact_sim.replay import _export

        return getattr(_export, name)
    return renamed('replay')(name)
