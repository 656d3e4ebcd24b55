"""The page of a recording: play, pause, single steps and jumps, with one or two contact models.

From the top: the playback (where in the run one is), the page with its scenes, the panel, and the
plots of the whole run. Every displayed step is taken again from the recording.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from viser import uplot

from contact_sim._types import Array
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError, InvalidInput, shown
from contact_sim.replay._event_detection import JUDGED, KINDS, Event, EventDetection, detect_events
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Timeline, TimelineStep, difference
from contact_sim.robot._model import RobotModel
from contact_sim.step._workspace import OPEN, SLIP
from contact_sim.view._page import (
    COLOURS,
    MAX_SPEED,
    MIN_SPEED,
    SAMPLING,
    SECONDARY,
    CallbackWorker,
    LayerSwitches,
    add_plot,
    clamped,
    fitting_power,
    keep_drawing,
    shown_line,
    with_unit,
)
from contact_sim.view._scene import Camera, Scene, SceneOffset

# ------------------------------------------------ playback


@dataclass(frozen=True, eq=False)
class PlaybackFrame:
    """A step of the recorded run, and that under another contact model, if there is one."""

    recorded: TimelineStep
    other: TimelineStep | None


class Playback:
    """A place in a recorded run; only the thread that draws calls `frame` and `advance`."""

    def __init__(self, recording: Recording, contact_model: str | None = None) -> None:
        self.recording = recording
        self.timeline = timeline_with_steps(recording)
        self.steps = self.timeline.steps
        self.speed, self.playing = 1.0, False  # speed: simulated over wall time
        self._place, self._moving = 0.0, threading.Lock()
        other = None if contact_model is None else Timeline(recording, contact_model)
        self.reader = TimelineReader(self.timeline)
        self.other = None if other is None else TimelineReader(other)

    @property
    def step(self) -> int:
        """Number of the current step."""
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

    def seek(self, step: int) -> None:
        """Go to a step, or to the nearest one."""
        with self._moving:
            self._place = float(min(max(step, 0), self.steps))

    def take(self, steps: int) -> None:
        """Pause, and go some steps forth, or back."""
        self.playing = False
        self.seek(self.step + steps)

    def toggle(self) -> None:
        """Play or pause; from the end it begins again."""
        if not self.playing and self.step == self.steps:
            self.seek(0)
        self.playing = not self.playing

    def advance(self, seconds: float) -> None:
        """Let wall time pass [s]."""
        if not self.playing:
            return
        h = float(self.frame().recorded.report.record.time_step[0])
        with self._moving:
            self._place = min(self._place + self.speed * seconds / h, float(self.reach))
        self.playing = self.step < self.steps

    def next(self, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Stop at the next event of these kinds, if there is one, and return it."""
        return self._go_to(self._survey().next(self.step, kinds))

    def previous(self, kinds: tuple[str, ...] = KINDS) -> Event | None:
        """Stop at the last event of these kinds before this step, and return it."""
        return self._go_to(self._survey().previous(self.step, kinds))

    def _go_to(self, event: Event | None) -> Event | None:
        if event is not None:
            self.playing = False
            self.seek(event.step)
        return event

    def _survey(self) -> EventDetection:
        if self.reader.survey is None:
            raise InvalidInput(
                self.reader.failure or 'the recording is still being read: events come after that'
            )
        return self.reader.survey

    def show_model(self, contact_model: str | None) -> None:
        """Show the run under another contact model beside the recorded one; None: no more."""
        other = None
        if contact_model is not None:
            other = TimelineReader(Timeline(self.recording, contact_model))
        before, self.other = self.other, other
        if before is not None:
            before.close()

    def frame(self) -> PlaybackFrame:
        """Return the steps to be shown now."""
        step, other = min(self.step, self.reach), self.other
        beside = None if other is None else other.timeline.at(min(step, other.reach))
        return PlaybackFrame(self.timeline.at(step), beside)


def timeline_with_steps(recording: Recording) -> Timeline:
    """Return the timeline of a recording."""
    timeline = Timeline(recording)
    if not timeline.steps:
        why = f': {timeline.damage}' if timeline.damage else ''
        raise InvalidInput(f'{shown(str(recording.path))} has no step to show{why}')
    return timeline


class TimelineReader:
    """Reads a timeline in a thread, so that jumps in it become quick."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.survey: EventDetection | None = None  # once all of it has been read
        self.failure = ''  # why it cannot be read to its end
        self._closed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def reach(self) -> int:
        """Last step to which one may jump: later ones have not been read, or cannot be."""
        return self.timeline.steps if self.survey is not None else self.timeline.known

    def close(self) -> None:
        """Read no further."""
        self._closed = True
        self._thread.join()

    def _read(self) -> None:
        try:
            self.survey = detect_events(self.timeline, self._check_open)
        except Exception as error:  # nobody reads a traceback of this thread
            self.failure = str(error) if isinstance(error, ContactSimError) else repr(error)

    def _check_open(self, step: int) -> None:
        if self._closed:
            raise InvalidInput('the reader was closed')


# ------------------------------------------------ the page

GHOST = (0.12, 0.56, 0.90, 0.45)
"""Colour of the robot under another contact model."""
SIDE_DISTANCE = 0.9
"""Distance of robots side by side, in distances of the camera from one."""


class RecordingScenes:
    """The recorded robot and, beside it or as a ghost in it, that under another model."""

    def __init__(self, server: viser.ViserServer, robot: RobotModel) -> None:
        self._server, self._robot = server, robot
        self._scenes: dict[str, tuple[Scene, object]] = {}
        self._offset: SceneOffset | None = None
        self._distance = 0.0

    def show(self, frame: PlaybackFrame, side_by_side: bool, follow: bool = False) -> bool:
        """Show a step of one run, or of two; return whether scenes were made or closed."""
        q = frame.recorded.report.q
        if self._offset is None:
            self._offset = SceneOffset(self._robot, q)
        if follow:
            self._offset.follow(q)
        steps = {'scene': frame.recorded} | ({'other': frame.other} if frame.other else {})
        made = [self._show(name, step) for name, step in steps.items()]
        gone = self._scenes.keys() - steps.keys()
        for name in gone:
            self._scenes.pop(name)[0].close()
        first, *others = self.scenes()
        first.offset = offset = self._offset.offset
        for other in others:
            if side_by_side and not self._distance:
                camera = first.framing(frame.recorded.report)
                away = np.linalg.norm(np.subtract(camera.position, camera.look_at))
                self._distance = SIDE_DISTANCE * float(away)
            other.offset = offset + [0.0, self._distance if side_by_side else 0.0, 0.0]
        return any(made) or bool(gone)

    def look(self, frame: PlaybackFrame) -> Camera:
        """Aim the camera at all of the robots, and return it."""
        scenes = self.scenes()
        camera = scenes[0].framing(frame.recorded.report)
        camera = camera.moved(0.5 * (scenes[-1].offset - scenes[0].offset))
        camera.aim(self._server)
        return camera

    def scenes(self) -> list[Scene]:
        """Return the scenes, first that of the recorded run."""
        return [scene for scene, _ in self._scenes.values()]

    def _show(self, name: str, step: TimelineStep) -> bool:
        there = self._scenes.get(name)
        new = there is None or there[1] is not step.ground
        if new:
            if there is not None:
                there[0].close()
            tint = GHOST if name == 'other' else None
            scene = Scene(self._server, self._robot, step.ground, prefix=name, tint=tint)
            self._scenes[name] = scene, step.ground
        wrenches = {frame: np.array(wrench) for frame, wrench in step.wrenches.items()}
        self._scenes[name][0].show(step.report, wrenches)
        return new


class RecordingPage:
    """Scene and panel of a recording."""

    def __init__(
        self, server: viser.ViserServer, playback: Playback, side_by_side: bool = False
    ) -> None:
        self._server, self._playback = server, playback
        self.panel = RecordingPanel(server, playback, side_by_side)
        self.scenes = RecordingScenes(server, playback.timeline.robot)
        self._drawn: tuple[object, ...] = ()

    def draw(self) -> PlaybackFrame:
        """Show the current step, and return it."""
        frame, beside = self._playback.frame(), self.panel.side_by_side.value
        follow = self.panel.layers.follow.value
        drawn = frame.recorded, frame.other, beside, follow
        if drawn != self._drawn:
            if self.scenes.show(frame, beside, follow):
                self.scenes.look(frame)
                self.panel.layers.act_on(*self.scenes.scenes())
            self._drawn = drawn
        self.panel.update(frame)
        return frame

    def run(self, wanted: Callable[[], bool]) -> None:
        """Draw as long as `wanted()` is true; time goes on while a browser has the page open."""

        def draw(seconds: float) -> None:
            self._playback.advance(seconds)
            self.draw()

        keep_drawing(self._server, draw, wanted)


# ------------------------------------------------ the panel

ANY, NO_MODEL = 'any', 'none'
MODES = {OPEN: 'open', SLIP: 'slip'}


class RecordingPanel:
    """Time line, events, numbers and plots of a recording."""

    def __init__(
        self, server: viser.ViserServer, playback: Playback, side_by_side: bool = False
    ) -> None:
        self._gui, self._playback = server.gui, playback
        self._worker = CallbackWorker(server)
        gui, worker = self._gui, self._worker
        self._state = gui.add_markdown('')
        self.slider: Any = gui.add_slider('step', 0, playback.steps, 1, playback.step)
        worker.on_value(self.slider, self._scrub)
        tabs = gui.add_tab_group()
        with tabs.add_tab('run'):
            self._run = gui.add_button('play', icon=viser.Icon.PLAYER_PLAY)
            back, forth = (
                gui.add_button(label, icon=icon, color=SECONDARY)
                for label, icon in (
                    ('step back', viser.Icon.PLAYER_TRACK_PREV),
                    ('step forward', viser.Icon.PLAYER_TRACK_NEXT),
                )
            )
            speed = gui.add_slider(
                'speed', MIN_SPEED, MAX_SPEED, 0.01, clamped(playback.speed, MIN_SPEED, MAX_SPEED),
                hint='simulated over wall time',
            )  # fmt: skip
            with gui.add_folder('events'):
                self._kind = gui.add_dropdown('kind', (ANY, *KINDS))
                previous, later = (
                    gui.add_button(label, icon=icon, color=SECONDARY)
                    for label, icon in (
                        ('previous event', viser.Icon.CHEVRONS_LEFT),
                        ('next event', viser.Icon.CHEVRONS_RIGHT),
                    )
                )
                self._event = gui.add_markdown('')
            with gui.add_folder('another contact model'):
                other = playback.other
                now = NO_MODEL if other is None else other.timeline.at(0).contact_model
                models = (NO_MODEL, *contact_models())
                model = gui.add_dropdown('model', models, initial_value=now)
                self.side_by_side = gui.add_checkbox('side by side', side_by_side)
        with tabs.add_tab('numbers'):
            self._numbers = gui.add_markdown('')
        self._plots_tab = tabs.add_tab('plots')
        with self._plots_tab:
            self._reading: Any = gui.add_progress_bar(0.0)
        with tabs.add_tab('layers'):
            self.layers = LayerSwitches(server)
        worker.on_click(self._run, playback.toggle, 'play or pause', 'space')
        worker.on_click(back, lambda: self._go(-1), 'step back', 'B')
        worker.on_click(forth, lambda: self._go(1), 'step forward', 'N')
        worker.on_click(previous, lambda: self._jump(forth=False), 'previous event', 'Q')
        worker.on_click(later, lambda: self._jump(forth=True), 'next event', 'E')
        worker.on_value(speed, lambda value: setattr(playback, 'speed', value))
        worker.on_value(model, lambda x: playback.show_model(None if x == NO_MODEL else x))
        self._plots: RunPlots | None = None
        self._next, self._failure, self._playing = 0.0, '', False

    def update(self, frame: PlaybackFrame) -> None:
        """Show place, numbers and plots of the current step; called by the thread that draws."""
        playback, now = self._playback, time.perf_counter()
        if now < self._next:
            return
        self._next = now + SAMPLING
        self._run.label = 'pause' if playback.playing else 'play'
        if self._playing or playback.playing:
            self.slider.value = playback.step
        self._playing = playback.playing
        self._state.content = self._state_text(frame)
        self._numbers.content = numbers_text(frame)
        if playback.reader.survey is not None:
            self._show_survey(playback.reader.survey, frame.recorded.step)
        else:
            self._reading.value = 100.0 * playback.timeline.known / playback.steps
            self._notify(playback.reader.failure)

    def _scrub(self, step: int) -> None:
        self._playback.playing = False
        self._playback.seek(step)

    def _go(self, steps: int) -> None:
        self._playback.take(steps)
        self.slider.value = self._playback.step

    def _jump(self, forth: bool) -> None:
        playback, kind = self._playback, self._kind.value
        kinds = KINDS if kind == ANY else (kind,)
        event = playback.next(kinds) if forth else playback.previous(kinds)
        if event is None:
            self._event.content = f'no {"later" if forth else "earlier"} event of this kind'
        else:
            self._event.content = f'step {event.step}: **{event.text}**'
            self.slider.value = event.step

    def _show_survey(self, survey: EventDetection, step: int) -> None:
        if self._plots is None:
            self._reading.remove()
            with self._plots_tab:
                self._plots = RunPlots(self._gui, survey)
            kinds = {event.kind for event in survey.events}
            self._kind.options = (ANY, *(kind for kind in KINDS if kind in kinds))
            if survey.first_difference is not None:
                self._notify(
                    f'from step {survey.first_difference} on these are not the recorded states: '
                    'repeated here, they come out otherwise'
                )
        self._plots.show(step)

    def _state_text(self, frame: PlaybackFrame) -> str:
        """Return the line above the time line: time, step, model and distance of the two runs."""
        playback, recorded, other = self._playback, frame.recorded, frame.other
        model = recorded.contact_model
        words = [
            f'**t = {recorded.report.time:.4f} s**',
            f'step {recorded.step} of {playback.steps}',
            model if recorded.finite else f'**not finite** under {model}',
        ]
        if other is not None:
            robot, q = playback.timeline.robot, recorded.report.q
            base, _, joints = difference(robot, q, other.report.q)
            apart = f'base {1e3 * base:.3g} mm, a joint {joints:.3g} rad or m apart'
            words.append(f'{other.contact_model}: {apart if other.finite else "**not finite**"}')
        if self._worker.busy or playback.reach < playback.steps:
            words.append('reading ...')
        return ' · '.join([*words, *filter(None, [playback.timeline.damage])])

    def _notify(self, failure: str) -> None:
        if failure and failure != self._failure:
            self._worker.notify(failure, 'the recording')
        self._failure = failure


def numbers_text(frame: PlaybackFrame) -> str:
    """Return the forces and residuals of a step, a column for each contact model."""
    steps = [frame.recorded] if frame.other is None else [frame.recorded, frame.other]
    rows: dict[str, list[str]] = {'': [], '---': ['---'] * len(steps)}
    for step in steps:
        report, feet = step.report, step.report.feet
        force, residuals = np.linalg.norm(feet.force, axis=1), report.residuals.as_dict()
        column = {'': step.contact_model}
        for k, name in enumerate(feet.names):
            mode = MODES.get(int(feet.mode[k]), 'stick')
            column[f'{name} [N]'] = f'{force[k]:.4g} {mode}'
        for name, unit in JUDGED.items():
            column[f'{name} [{unit}]'] = f'{residuals[name]:.3g}'
        solver = report.solver
        column['solver'] = f'{solver.status.name.lower()}, {solver.iterations} iterations'
        for name, text in column.items():
            rows.setdefault(name, []).append(text)
    return '\n'.join(f'| {name} | {" | ".join(texts)} |' for name, texts in rows.items())


# ------------------------------------------------ plots of the whole run

CURSOR = '#868e96'
MAX_LINES = 8
"""Lines of one plot; of more feet the first ones are shown."""


class RunPlots:
    """Forces on the feet, residuals and energies of a run, over the time that its steps took."""

    def __init__(self, gui: viser.GuiApi, survey: EventDetection) -> None:
        time, stride = survey.elapsed.column('elapsed'), survey.elapsed.stride
        self._steps, self._place = survey.elapsed.steps, 0
        note = '' if stride == 1 else f', of {stride} steps each'
        scale = uplot.Scale(time=False, auto=True)
        self._plots: list[tuple[viser.GuiUplotHandle, tuple[Array, ...]]] = []
        for title, unit, series in (
            ('force on the feet', 'N', survey.force),
            ('residuals, powers of 10', '', survey.residuals),
            ('energy since the beginning', 'J', survey.work),
        ):
            names = list(series.units)[:MAX_LINES]
            if not names:
                continue
            shown_lines = [shown_line(series.column(name), not unit) for name in names]
            power = fitting_power(shown_lines) if unit else 0
            data = time, *(line / 10.0**power for line in shown_lines)
            labels = names if unit else [f'{name} [{series.units[name]}]' for name in names]
            lines = [(label, colour, 1) for label, colour in zip(labels, COLOURS, strict=False)]
            lines.append(('displayed step', CURSOR, 2))
            handle = add_plot(
                gui,
                with_unit(title, unit, power) + note,
                with_cursor(data, 0),
                't [s]',
                lines,
                scale,
            )
            self._plots.append((handle, data))

    def show(self, step: int) -> None:
        """Move the cursor to a step."""
        place = int(np.searchsorted(self._steps, step))
        if place != self._place:
            self._place = place
            for handle, data in self._plots:
                handle.data = with_cursor(data, place)


def with_cursor(data: tuple[Array, ...], place: int) -> tuple[Array, ...]:
    """Return time and lines with that of the cursor: at the bottom except in one bin."""
    cursor = np.full(len(data[0]), np.min(data[1:], initial=0.0))
    cursor[place : place + 1] = np.max(data[1:], initial=0.0)
    return (*data, cursor)
