"""Recordings: record a run, repeat it to the bit, inspect any step, export it."""

from typing import TYPE_CHECKING, Any

from contact_sim.replay._event_detection import Event, Series, Survey, survey
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Chunk, Recording
from contact_sim.replay._replayer import Outcome, PlayedStep, repeat
from contact_sim.replay._timeline import Moment, Timeline

if TYPE_CHECKING:
    from contact_sim.replay._export import Exported, Targets, export

__all__ = [
    'Chunk',
    'Event',
    'Exported',
    'Moment',
    'Outcome',
    'PlayedStep',
    'Recorder',
    'Recording',
    'Series',
    'Survey',
    'Targets',
    'Timeline',
    'export',
    'repeat',
    'survey',
]


def __getattr__(name: str) -> Any:
    """Load the exports on first use: a simulation that records does not need them."""
    if name in ('Exported', 'Targets', 'export'):
        from contact_sim.replay import _export

        return getattr(_export, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
