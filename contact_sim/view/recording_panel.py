"""The panel of a page that plays a recording: time line, events, numbers and plots."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from typing import Any

import numpy as np
import viser

from contact_sim.contact.contact_values import OPEN, SLIP
from contact_sim.contact_models import contact_models
from contact_sim.replay.comparison import difference
from contact_sim.replay.survey import JUDGED, KINDS, Survey
from contact_sim.replay.timeline import Moment
from contact_sim.view.asking import Asking
from contact_sim.view.panel import LayerSwitches
from contact_sim.view.playback import Pair, Playback
from contact_sim.view.plots import SAMPLING
from contact_sim.view.run_plots import RunPlots
from contact_sim.view.sections import FASTEST, SLOWEST

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

    def _show_found(self, found: Survey, step: int) -> None:
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


def _column(moment: Moment) -> dict[str, str]:
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
