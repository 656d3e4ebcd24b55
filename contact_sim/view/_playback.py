"""Playback: a recorded run that is played, stopped and jumped in; perhaps two models at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from viser import uplot

from contact_sim._types import Array
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError, InvalidInput, shown
from contact_sim.replay._event_detection import (
    JUDGED,
    KINDS,
    Event,
    EventDetection,
    Series,
    detect_events,
)
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import difference
from contact_sim.replay._timeline import Timeline, TimelineStep
from contact_sim.robot._model import RobotModel
from contact_sim.step._workspace import OPEN, SLIP
from contact_sim.view._page import (
    FASTEST,
    HEIGHT,
    LEAST,
    SAMPLING,
    SLOWEST,
    Asking,
    LayerSwitches,
    keep_drawing,
)
from contact_sim.view._scene import Camera, Following, Scene

# --- Plots of a whole recorded run, with a line where one is in it.

COLOURS = ('#d9480f', '#1c7ed6', '#2f9e44', '#ae3ec9', '#e8a202', '#0c8599', '#862e9c', '#5c940d')
CURSOR = '#868e96'
MOST_LINES = 8
"""Lines of one plot; of more feet the first ones are shown."""


class RunPlot:
    """One plot of a run.

    Args:
        gui: of the page; the plot is made where the panel is at the time.
        title: above it.
        time: of each bin since the beginning [s], shape (bins,).
        series: numbers over the bins.
        logarithmic: whether powers of ten are drawn.
    """

    def __init__(
        self, gui: viser.GuiApi, title: str, time: Array, series: Series, logarithmic: bool = False
    ) -> None:
        names = list(series.units)[:MOST_LINES]
        lines = [np.nan_to_num(series.column(name)) for name in names]  # a NaN empties a plot
        if logarithmic:
            lines = [np.log10(np.maximum(line, LEAST)) for line in lines]
        self._data = (time, *lines)
        self._low, self._high = np.min(lines, initial=0.0), np.max(lines, initial=0.0)
        labels = [f'{name} [{series.units[name]}]' for name in names]
        styles = zip(labels, COLOURS, strict=False)
        self._handle = gui.add_uplot(
            self._with_cursor(0),
            (
                uplot.Series(label='t [s]'),
                *(uplot.Series(label=label, stroke=colour, width=1) for label, colour in styles),
                uplot.Series(label='here', stroke=CURSOR, width=2),
            ),
            title=title,
            scales={'x': uplot.Scale(time=False, auto=True)},
            legend=uplot.Legend(show=True),
            height=HEIGHT,
        )

    def show(self, place: int) -> None:
        """Draw the line at a bin."""
        self._handle.data = self._with_cursor(place)

    def _with_cursor(self, place: int) -> tuple[Array, ...]:
        """Return the data with one more line: along the bottom, and up to the top in one bin."""
        cursor = np.full(len(self._data[0]), self._low)
        cursor[place : place + 1] = self._high
        return (*self._data, cursor)


class RunPlots:
    """Forces on the feet, residuals and energies of a run, over the time that its steps took.

    Args:
        gui: of the page; the plots are made where the panel is at the time.
        found: what there is to see.
    """

    def __init__(self, gui: viser.GuiApi, found: EventDetection) -> None:
        time = found.elapsed.column('elapsed')
        self._steps, self._place = found.elapsed.steps, 0
        stride = found.elapsed.stride
        note = '' if stride == 1 else f', of {stride} steps each'
        self._plots = [
            RunPlot(gui, f'{title}{note}', time, series, logarithmic)
            for title, series, logarithmic in (
                ('force on the feet [N]', found.force, False),
                ('residuals, powers of ten', found.residuals, True),
                ('energy since the beginning [J]', found.work, False),
            )
            if series.units
        ]

    def show(self, step: int) -> None:
        """Draw the line at a step."""
        place = int(np.searchsorted(self._steps, step))
        if place != self._place:
            self._place = place
            for plot in self._plots:
                plot.show(place)


# --- Playback: a recorded run that is played, stopped and jumped in; perhaps two models at once.


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
        self.found: EventDetection | None = None
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
            self.found = detect_events(self.timeline, self._go_on)
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

    moment: TimelineStep
    """Of the recorded run."""
    other: TimelineStep | None
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

    def _found(self) -> EventDetection:
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


# --- The panel of a page that plays a recording: time line, events, numbers and plots.

ANY, NO_MODEL = 'any', 'none'
MODES = {OPEN: 'open', SLIP: 'slip'}


class RecordingPanel:
    """The panel of one page.

    Args:
        server: of the page.
        playback: what its switches act on.
        side_by_side: whether the robots are beside each other at the beginning.
    """

    def __init__(
        self, server: viser.ViserServer, playback: Playback, side_by_side: bool = False
    ) -> None:
        gui = server.gui
        self._playback, self._asking = playback, Asking(server)
        self._state = gui.add_markdown('')
        self.slider: Any = gui.add_slider('step', 0, playback.steps, 1, 0)
        self._asking.of_value(self.slider, self._scrub)
        tabs = gui.add_tab_group()
        with tabs.add_tab('run'):
            self._add_time(gui)
            with gui.add_folder('events'):
                self._add_events(gui)
            with gui.add_folder('another contact model'):
                self.side_by_side = self._add_model(gui, side_by_side)
        with tabs.add_tab('here'):
            self._numbers = gui.add_markdown('')
        self._plots_tab = tabs.add_tab('plots')
        with self._plots_tab:
            self._reading: Any = gui.add_progress_bar(0.0)
        with tabs.add_tab('show'):
            self._layers = LayerSwitches(gui)
        self._gui = gui
        self._plots: RunPlots | None = None
        self._next, self._failure, self._playing = 0.0, '', False

    def of_scenes(self, *visible: MutableMapping[str, bool]) -> None:
        """Let the switches of layers act on these scenes from now on."""
        self._layers.of(*visible)

    @property
    def follows(self) -> bool:
        """Whether the picture goes with the robot."""
        return self._layers.follow

    def update(self, pair: Pair) -> None:
        """Show where one is, and what there is to see; called by the thread that draws."""
        playback, now = self._playback, time.perf_counter()
        if now < self._next:
            return
        self._next = now + SAMPLING
        self._run.label = 'pause' if playback.playing else 'play'
        if self._playing or playback.playing:
            self.slider.value = playback.step
        self._playing = playback.playing
        self._state.content = state_text(playback, pair, self._asking.busy)
        self._numbers.content = numbers_text(pair)
        if playback.reader.found is not None:
            self._show_found(playback.reader.found, pair.moment.step)
        else:
            self._reading.value = 100.0 * playback.timeline.known / playback.steps
            self._tell(playback.reader.failure)

    # ---------------------------------------------------------------- inputs

    def _scrub(self, step: int) -> None:
        self._playback.playing = False
        self._playback.seek(step)

    def _go(self, steps: int) -> None:
        self._playback.take(steps)
        self.slider.value = self._playback.step

    def _add_time(self, gui: viser.GuiApi) -> None:
        playback, asking = self._playback, self._asking
        self._run = gui.add_button('play', icon=viser.Icon.PLAYER_PLAY)
        self.back = gui.add_button('step back', icon=viser.Icon.PLAYER_TRACK_PREV)
        self.forth = gui.add_button('step forth', icon=viser.Icon.PLAYER_TRACK_NEXT)
        speed = gui.add_slider(
            'speed', SLOWEST, FASTEST, 0.01, min(max(playback.speed, SLOWEST), FASTEST),
            hint='simulated over wall time',
        )  # fmt: skip

        def set_speed(value: float) -> None:
            playback.speed = value

        asking.of_click(self._run, playback.toggle)
        asking.of_click(self.back, lambda: self._go(-1))
        asking.of_click(self.forth, lambda: self._go(1))
        asking.of_value(speed, set_speed)
        asking.of_key('play or pause', 'space', playback.toggle)
        asking.of_key('step back', 'B', lambda: self._go(-1))
        asking.of_key('step forth', 'N', lambda: self._go(1))

    def _add_events(self, gui: viser.GuiApi) -> None:
        self._kind = gui.add_dropdown('kind', (ANY, *KINDS))
        self.previous = gui.add_button('previous event', icon=viser.Icon.CHEVRONS_LEFT)
        self.next = gui.add_button('next event', icon=viser.Icon.CHEVRONS_RIGHT)
        self.event = gui.add_markdown('')
        self._asking.of_click(self.previous, lambda: self._jump(forth=False))
        self._asking.of_click(self.next, lambda: self._jump(forth=True))
        self._asking.of_key('previous event', 'Q', lambda: self._jump(forth=False))
        self._asking.of_key('next event', 'E', lambda: self._jump(forth=True))

    def _jump(self, forth: bool) -> None:
        playback, kind = self._playback, self._kind.value
        kinds = KINDS if kind == ANY else (kind,)
        event = playback.next(kinds) if forth else playback.previous(kinds)
        if event is None:
            self.event.content = f'no {"later" if forth else "earlier"} event of this kind'
        else:
            self.event.content = f'step {event.step}: **{event.text}**'
            self.slider.value = event.step

    def _add_model(self, gui: viser.GuiApi, side_by_side: bool) -> viser.GuiCheckboxHandle:
        other = self._playback.other
        now = NO_MODEL if other is None else other.timeline.at(0).contact_model
        model = gui.add_dropdown('model', (NO_MODEL, *contact_models()), initial_value=now)
        self._asking.of_value(
            model, lambda name: self._playback.show_model(None if name == NO_MODEL else name)
        )
        return gui.add_checkbox('side by side', side_by_side)

    # ---------------------------------------------------------------- what is shown

    def _show_found(self, found: EventDetection, step: int) -> None:
        if self._plots is None:
            self._reading.remove()
            with self._plots_tab:
                self._plots = RunPlots(self._gui, found)
            there = {event.kind for event in found.events}
            self._kind.options = (ANY, *(kind for kind in KINDS if kind in there))
            if found.first_difference is not None:
                self._tell(
                    f'from step {found.first_difference} on these are not the recorded states: '
                    'repeated here, they come out otherwise'
                )
        self._plots.show(step)

    def _tell(self, failure: str) -> None:
        if failure and failure != self._failure:
            self._asking.tell(failure, 'the recording')
        self._failure = failure


def state_text(playback: Playback, pair: Pair, busy: bool) -> str:
    """Return the line above the time line: where one is, and what cannot be shown."""
    moment, other = pair.moment, pair.other
    words = [
        f'**t = {moment.report.time:.4f} s**',
        f'step {moment.step} of {playback.steps}',
        moment.contact_model if moment.finite else f'**not finite** under {moment.contact_model}',
    ]
    if other is not None:
        base, _, joints = difference(playback.timeline.robot, moment.report.q, other.report.q)
        apart = f'base {1e3 * base:.3g} mm, a joint {joints:.3g} rad or m apart'
        words.append(f'{other.contact_model}: {apart if other.finite else "**not finite**"}')
    if busy or playback.reach < playback.steps:
        words.append('reading ...')
    if playback.timeline.damage:
        words.append(playback.timeline.damage)
    return ' · '.join(words)


def numbers_text(pair: Pair) -> str:
    """Return the forces and residuals of a step, a column for each contact model."""
    moments = [pair.moment] if pair.other is None else [pair.moment, pair.other]
    columns = [_column(moment) for moment in moments]
    names = [moment.contact_model for moment in moments]
    lines = [f'| | {" | ".join(names)} |', '|---' * (len(names) + 1) + '|']
    for name in columns[0]:
        lines.append(f'| {name} | {" | ".join(column[name] for column in columns)} |')
    return '\n'.join(lines)


def _column(moment: TimelineStep) -> dict[str, str]:
    """Return what one model says of a step, by the names of the rows."""
    report = moment.report
    feet, residuals = report.feet, report.residuals.as_dict()
    force = np.linalg.norm(feet.force, axis=1)
    return {
        **{
            f'{name} [N]': f'{force[k]:.4g} {MODES.get(int(feet.mode[k]), "stick")}'
            for k, name in enumerate(feet.names)
        },
        **{f'{name} [{unit}]': f'{residuals[name]:.3g}' for name, unit in JUDGED.items()},
        'solver': f'{report.solver.status.name.lower()}, {report.solver.iterations} iterations',
    }


# --- The page of a recording: one robot or two, and the panel.

GHOST = (0.12, 0.56, 0.90, 0.45)
"""Colour of the robot under another contact model."""
BESIDE = 0.9
"""Distance of robots side by side, in distances from which the camera sees one."""


class Stage:
    """The recorded robot and, beside it or as a ghost in it, that under another model.

    Args:
        server: of the page.
        robot: what is shown.
    """

    def __init__(self, server: viser.ViserServer, robot: RobotModel) -> None:
        self._server, self._robot = server, robot
        self._scenes: dict[str, tuple[Scene, object]] = {}
        self._following: Following | None = None
        self._apart = 0.0

    def show(self, pair: Pair, side_by_side: bool, follow: bool = False) -> bool:
        """Show a moment of one run, or of two; return whether scenes were made for that."""
        q = pair.moment.report.q
        if self._following is None:
            self._following = Following(self._robot, q)
        if follow:
            self._following.look_after(q)
        moments = {'scene': pair.moment} | ({'other': pair.other} if pair.other else {})
        made = [self._show(name, moment) for name, moment in moments.items()]
        gone = self._scenes.keys() - moments.keys()
        for name in gone:
            self._scenes.pop(name)[0].close()
        self._place(pair.moment, side_by_side, self._following.offset)
        return any(made) or bool(gone)

    def look(self, pair: Pair) -> Camera:
        """Let browsers that open the page see all of the robots; return from where."""
        scenes = self.scenes()
        camera = scenes[0].framing(pair.moment.report)
        camera = camera.moved(0.5 * (scenes[-1].offset - scenes[0].offset))
        self._server.initial_camera.position = camera.position
        self._server.initial_camera.look_at = camera.look_at
        return camera

    def scenes(self) -> list[Scene]:
        """Return the scenes that there are: first that of the recorded run."""
        return [scene for scene, _ in self._scenes.values()]

    def _show(self, name: str, moment: TimelineStep) -> bool:
        there = self._scenes.get(name)
        new = there is None or there[1] is not moment.ground
        if new:
            if there is not None:
                there[0].close()
            tint = GHOST if name == 'other' else None
            scene = Scene(self._server, self._robot, moment.ground, prefix=name, tint=tint)
            self._scenes[name] = scene, moment.ground
        wrenches = {frame: np.array(wrench) for frame, wrench in moment.wrenches.items()}
        self._scenes[name][0].show(moment.report, wrenches)
        return new

    def _place(self, moment: TimelineStep, side_by_side: bool, offset: Array) -> None:
        """Put the robots where they belong."""
        first, *others = self.scenes()
        first.offset = offset
        for other in others:
            if side_by_side and not self._apart:
                camera = first.framing(moment.report)
                away = np.linalg.norm(np.subtract(camera.position, camera.look_at))
                self._apart = BESIDE * float(away)
            other.offset = offset + [0.0, self._apart if side_by_side else 0.0, 0.0]


class RecordingPage:
    """Scene and panel of a recording.

    Args:
        server: of the page.
        playback: what is shown.
        side_by_side: whether the robots are beside each other at the beginning.
    """

    def __init__(
        self, server: viser.ViserServer, playback: Playback, side_by_side: bool = False
    ) -> None:
        self._server, self._playback = server, playback
        server.scene.configure_default_lights(cast_shadow=False)
        self.panel = RecordingPanel(server, playback, side_by_side)
        self.stage = Stage(server, playback.timeline.robot)
        self._seen: tuple[object, ...] = ()

    def draw(self) -> Pair:
        """Show what there is to see now, and return it."""
        pair, beside = self._playback.shown(), self.panel.side_by_side.value
        follows = self.panel.follows
        seen = pair.moment, pair.other, beside, follows
        if seen != self._seen:
            if self.stage.show(pair, beside, follows):
                self.stage.look(pair)
                self.panel.of_scenes(*(scene.visible for scene in self.stage.scenes()))
            self._seen = seen
        self.panel.update(pair)
        return pair

    def run(self, wanted: Callable[[], bool]) -> None:
        """Draw as long as `wanted` says so; time goes on while somebody has the page open."""
        keep_drawing(self._server, self._draw_after, wanted)

    def _draw_after(self, seconds: float) -> None:
        self._playback.advance(seconds)
        self.draw()
