"""Playback: a recorded run that is played, stopped and jumped in; perhaps two models at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from contact_sim.errors import ContactSimError, InvalidInput, shown
from contact_sim.replay.recording import Recording
from contact_sim.replay.survey import KINDS, Event, Survey, survey
from contact_sim.replay.timeline import Moment, Timeline


class _Closed(Exception):
    """Nobody wants to know what is in the recording any more."""


class Reader:
    """Reads a timeline in the background, so that jumps in it become quick.

    Args:
        timeline: what is read.

    Attributes:
        found: what happens in it, once all of it has been read.
        failure: reason why it cannot be read to its end; '' while it can.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.found: Survey | None = None
        self.failure = ''
        self._closed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether it has been read as far as it can be."""
        return self.found is not None or bool(self.failure)

    @property
    def reach(self) -> int:
        """Last step to which one may jump: what comes after it has not been read, or cannot be."""
        return self.timeline.steps if self.found is not None else self.timeline.known

    def close(self) -> None:
        """Read no further."""
        self._closed = True
        self._thread.join()

    def _read(self) -> None:
        try:
            self.found = survey(self.timeline, self._go_on)
        except _Closed:
            pass
        except Exception as error:  # nobody reads a traceback of this thread
            self.failure = str(error) if isinstance(error, ContactSimError) else repr(error)

    def _go_on(self, step: int) -> None:
        if self._closed:
            raise _Closed


@dataclass(frozen=True, eq=False)
class Pair:
    """What is to be seen at a time."""

    moment: Moment
    """Of the recorded run."""
    other: Moment | None
    """Of the run under another contact model, if there is one."""


class Playback:
    """A recorded run, and where in it one is.

    Methods may be called from any thread; `shown` and `advance` are for the one that draws.

    Args:
        recording: what is played.
        contact_model: another model to be seen beside it.

    Attributes:
        speed: simulated over wall time.
        playing: whether time goes on.

    Raises:
        RecordingError: a recording that this version cannot repeat.
        InvalidInput: a recording without steps.
        UnknownName: no such contact model.
    """

    def __init__(self, recording: Recording, contact_model: str | None = None) -> None:
        self.recording = recording
        self.timeline = timeline_with_steps(recording)
        self.speed, self.playing = 1.0, False
        self._place, self._moving = 0.0, threading.Lock()
        other = None if contact_model is None else Timeline(recording, contact_model)
        self.reader = Reader(self.timeline)
        self.other: Reader | None = None if other is None else Reader(other)

    @property
    def steps(self) -> int:
        """Number of steps that can be shown."""
        return self.timeline.steps

    @property
    def step(self) -> int:
        """Number of the step that one is at."""
        return int(self._place)

    @property
    def reach(self) -> int:
        """Last step that can be shown by now."""
        other = self.other
        return min(self.reader.reach, self.steps if other is None else other.reach)

    def close(self) -> None:
        """Read no further."""
        self.reader.close()
        self.show_model(None)

    # ---------------------------------------------------------------- where one is

    def seek(self, step: int) -> None:
        """Go to a step; to the nearest one that there is."""
        with self._moving:
            self._place = float(min(max(step, 0), self.steps))

    def take(self, steps: int) -> None:
        """Stop, and go some steps on, or back."""
        self.playing = False
        self.seek(self.step + steps)

    def toggle(self) -> None:
        """Let time go on, or stand still; from the end it begins again."""
        if not self.playing and self.step == self.steps:
            self.seek(0)
        self.playing = not self.playing

    def advance(self, seconds: float) -> None:
        """Let wall time pass [s]."""
        if not self.playing:
            return
        h = float(self.shown().moment.report.record.time_step[0])
        with self._moving:
            self._place = min(self._place + self.speed * seconds / h, float(self.reach))
        self.playing = self.step < self.steps

    def next(self, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Stop at the next event of these kinds, if there is one, and return it."""
        found = self._found()
        return self._go_to(found.next(self.step, kinds))

    def previous(self, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Stop at the last event of these kinds before this step, and return it."""
        found = self._found()
        return self._go_to(found.previous(self.step, kinds))

    def _go_to(self, event: Event | None) -> Event | None:
        if event is not None:
            self.playing = False
            self.seek(event.step)
        return event

    def _found(self) -> Survey:
        if self.reader.found is None:
            raise InvalidInput(
                self.reader.failure or 'the recording is still being read: events come after that'
            )
        return self.reader.found

    # ---------------------------------------------------------------- what is seen there

    def show_model(self, contact_model: str | None) -> None:
        """Show the run under another contact model beside the recorded one; None: no more.

        Raises:
            ContactSimError: a model under which it cannot begin.
        """
        other = None if contact_model is None else Reader(Timeline(self.recording, contact_model))
        before, self.other = self.other, other
        if before is not None:
            before.close()

    def shown(self) -> Pair:
        """Return what is to be seen now."""
        step, other = min(self.step, self.reach), self.other
        beside = None if other is None else other.timeline.at(min(step, other.reach))
        return Pair(self.timeline.at(step), beside)


def timeline_with_steps(recording: Recording) -> Timeline:
    """Return the timeline of a recording.

    Raises:
        RecordingError: a recording that this version cannot repeat.
        InvalidInput: one without steps.
    """
    timeline = Timeline(recording)
    if not timeline.steps:
        why = f': {timeline.damage}' if timeline.damage else ''
        raise InvalidInput(f'{shown(str(recording.path))} has no step to show{why}')
    return timeline
