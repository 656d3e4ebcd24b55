"""The panel of the page: switches, sliders and plots of any Session."""

from __future__ import annotations

import time
from collections.abc import Iterable, MutableMapping
from functools import partial

import viser

from contact_sim.simulation.report import StepReport
from contact_sim.view.asking import Asking
from contact_sim.view.handle import DragHandle
from contact_sim.view.plots import SAMPLING, Plots, judged
from contact_sim.view.scene import LAYERS, Scene
from contact_sim.view.sections import (
    Follower,
    control_section,
    law_section,
    push_section,
    time_section,
)
from contact_sim.view.session import Chosen, Session, Shown

MICROSECONDS = 1e6


class Panel:
    """The panel of one page.

    Args:
        server: of the page.
        session: what its switches act on.

    Attributes:
        handle: with which the robot is drawn.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        gui, offers = server.gui, session.offers
        self._session, self._asking = session, Asking(server)
        self._follower, self.handle = Follower(offers.fixed), DragHandle(server, session)
        self._state = gui.add_markdown('')
        tabs = gui.add_tab_group()
        with tabs.add_tab('run'):
            self._show_pause = time_section(gui, session, self._asking, self._follower)
            with gui.add_folder('laws of contact'):
                law_section(gui, session, self._asking, self._follower)
        if len(offers.controllers) > 1:
            with tabs.add_tab('control'):
                control_section(gui, session, self._asking, self._follower)
        if offers.frames:
            with tabs.add_tab('push'):
                push_section(gui, session, self._asking, self.handle)
        with tabs.add_tab('judge'):
            self._plots = Plots(gui)
        with tabs.add_tab('show'):
            self._layers = LayerSwitches(gui)
        self._followed: tuple[Chosen, int] | None = None
        self._next, self._failure = 0.0, ''
        self._report: StepReport | None = None

    def of_scene(self, scene: Scene) -> None:
        """Let the switches of layers act on this scene from now on."""
        self._layers.of(scene.visible)

    @property
    def follows(self) -> bool:
        """Whether the picture goes with the robot now."""
        return self._layers.follow and not self.handle.held

    def update(self, shown: Shown) -> None:
        """Show the newest numbers and settings; called by the thread that draws."""
        if self.handle.acts:
            self._asking.do(self.handle.act)
        self.handle.follow(self._session.robot, shown.report.q)
        self._tell(shown)
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + SAMPLING
        self._asking.in_between(self._follow)
        self._state.content = state_text(shown, self._asking.busy)
        if shown.report is not self._report:
            self._report = shown.report
            self._plots.add(numbers_of(shown))
            self._plots.draw()

    def _tell(self, shown: Shown) -> None:
        for message in self._session.take_messages():
            self._asking.tell(message, 'the simulation')
        if shown.failure and shown.failure != self._failure:
            self._asking.tell(f'{shown.failure}; reset to go on', 'time stands still')
        self._failure = shown.failure

    def _follow(self) -> None:
        """Show the settings in force, where they or what the page claims may have changed."""
        now = self._session.chosen(), self._asking.answered
        if now != self._followed:
            self._followed = now if self._follower.follow(now[0], self._asking) else None
            self._show_pause(now[0])


class LayerSwitches:
    """A check box for each layer of a scene, and one for whether the picture goes with it."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self._follow = gui.add_checkbox('follow the robot', True)
        self._boxes = {name: gui.add_checkbox(name.replace('_', ' '), True) for name in LAYERS}

    @property
    def follow(self) -> bool:
        """Whether the picture goes with the robot."""
        return bool(self._follow.value)

    def of(self, *visible: MutableMapping[str, bool]) -> None:
        """Turn the layers of these scenes on and off from now on."""
        for name, box in self._boxes.items():
            _turn(visible, name, box.value)
            box.remove_update_callback('all')
            box.on_update(partial(_follow_box, visible, name))


def _follow_box(
    visible: Iterable[MutableMapping[str, bool]],
    layer: str,
    event: viser.GuiEvent[viser.GuiCheckboxHandle],
) -> None:
    _turn(visible, layer, event.target.value)


def _turn(visible: Iterable[MutableMapping[str, bool]], layer: str, on: bool) -> None:
    for layers in visible:
        layers[layer] = on


def numbers_of(shown: Shown) -> dict[str, float]:
    """Return what is plotted of a step."""
    return {
        **judged(shown.report),
        'step': MICROSECONDS * shown.step_seconds,
        'real-time factor': shown.real_time_factor,
    }


def state_text(shown: Shown, busy: bool) -> str:
    """Return the line above the switches: time, pace and solver, or why time stands still."""
    report, solver = shown.report, shown.report.solver
    words = [
        f'**t = {report.time:.3f} s**',
        f'{shown.real_time_factor:.2f} × real time',
        f'{MICROSECONDS * shown.step_seconds:.0f} µs per step',
        f'{solver.status.name.lower()}, {solver.iterations} iterations',
    ]
    if busy:
        words.append('working ...')
    if shown.failure:
        words.append(f'**{shown.failure}; reset to go on**')
    return ' · '.join(words)
