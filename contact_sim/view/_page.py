"""The page of a session: scene and panel, redrawn up to 60 times per second.

From the top: the page, its panel and the sections of the panel, running plots, and the worker
that runs the callbacks of the inputs. The panel has an input for every `Option` of the session.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import viser
from numpy.typing import ArrayLike
from viser import uplot

from contact_sim._types import Array
from contact_sim.contact_models import contact_models
from contact_sim.drawing._body_meshes import Colour
from contact_sim.drawing._step_shapes import contact_arrows
from contact_sim.errors import ContactSimError, summary
from contact_sim.simulation._report import StepReport
from contact_sim.view._process import PERIOD
from contact_sim.view._scene import HIDDEN, LAYERS, ArrowLayer, DragHandle, Scene, SceneOffset
from contact_sim.view._session import (
    AMPLITUDE,
    DIFFICULTY,
    FREQUENCY,
    OPTIONS,
    DisplayedStep,
    Option,
    Session,
    Settings,
)

FOLLOW_SHARE = 0.2
"""Share of the way to the robot that the scene moves in one picture."""
IDLE_PERIOD = 0.1
"""Wall seconds between two looks whether a browser has opened the page."""
SHADOW_COLOURS: tuple[Colour, ...] = (
    (0.12, 0.56, 0.90, 1.0), (0.18, 0.62, 0.27, 1.0), (0.68, 0.24, 0.79, 1.0),
    (0.09, 0.67, 0.67, 1.0), (0.90, 0.60, 0.02, 1.0), (0.38, 0.30, 0.86, 1.0),
    (0.55, 0.37, 0.24, 1.0), (0.90, 0.28, 0.50, 1.0),
)  # fmt: skip
"""Of the forces under each contact model, in the order of `contact_models`."""

# ------------------------------------------------ the page


class Page:
    """Scene and panel of a session.

    Args:
        server: of the page.
        session: what is shown, and what the panel acts on.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._server, self._session = server, session
        self._panel = Panel(server, session)
        self._shadows: dict[str, ArrowLayer] = {}
        self._drawn: StepReport | None = None
        self._scene = self._new_scene(session.latest())

    def run(self, wanted: Callable[[], bool]) -> None:
        """Draw as long as `wanted()` is true, while a browser has the page open."""
        try:
            keep_drawing(self._server, lambda seconds: self.draw(), wanted, self._session.watch)
        finally:
            self._session.watch(True)

    def draw(self) -> None:
        """Show the newest step."""
        displayed, session = self._session.latest(), self._session
        if self._world[0] is not session.robot or self._world[1] is not session.ground:
            self._scene.close()
            self._shadows.clear()
            self._scene = self._new_scene(displayed)
        handle = self._panel.handle
        if self._panel.layers.follow.value and not handle.dragged:
            self._offset.follow(displayed.report.q, FOLLOW_SHARE)
        self._scene.offset = handle.offset = self._offset.offset
        if displayed.report is not self._drawn:
            self._drawn = displayed.report
            with np.errstate(over='ignore'):  # a robot that has blown up has no place in float32
                self._scene.show(displayed.report, displayed.wrenches)
                self._show_shadows(displayed)
        self._panel.update(displayed)

    def _new_scene(self, displayed: DisplayedStep) -> Scene:
        """Return a scene of the robot and ground, with the camera at the robot."""
        self._world = robot, ground = self._session.robot, self._session.ground
        scene = Scene(self._server, robot, ground)
        self._offset = SceneOffset(robot, displayed.report.q)
        camera = scene.framing(displayed.report)
        camera.aim(self._server)
        self._server.initial_camera.fov = camera.field_of_view
        self._panel.layers.act_on(scene)
        return scene

    def _show_shadows(self, displayed: DisplayedStep) -> None:
        """Draw the contact forces under each shadow model in a colour of its own."""
        models = contact_models()
        for name, report in displayed.shadows.items():
            if name not in self._shadows:
                place = models.index(name) if name in models else 0
                colour = SHADOW_COLOURS[place % len(SHADOW_COLOURS)]
                path = f'{self._scene.path}/shadow_forces/{name}'
                self._shadows[name] = ArrowLayer(self._server.scene, path, 'force', colour)
            self._shadows[name].show(contact_arrows(report.contacts)['force'])
        for name in self._shadows.keys() - displayed.shadows.keys():
            self._shadows.pop(name).remove()

    def __repr__(self) -> str:
        return summary(self, robot=self._session.robot.name)


def keep_drawing(
    server: viser.ViserServer,
    draw: Callable[[float], object],
    wanted: Callable[[], bool],
    watch: Callable[[bool], object] = bool,
) -> None:
    """Draw once, and then as long as `wanted()` is true, while a browser has the page open.

    `draw` is called with the wall time since its last call [s]; 0 after a time without a browser.
    It takes at most half of the time: on a slow machine there are fewer pictures. `watch` is
    called with whether a browser has the page open.
    """
    draw(0.0)
    last = None
    while wanted():
        begin = time.perf_counter()
        watched = bool(server.get_clients())
        watch(watched)
        if watched:
            draw(0.0 if last is None else begin - last)
            last = begin
            spent = time.perf_counter() - begin
            time.sleep(max(PERIOD - spent, spent))
        else:
            last = None
            time.sleep(IDLE_PERIOD)


# ------------------------------------------------ the panel


class Panel:
    """The panel of one page."""

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        gui, capabilities = server.gui, session.capabilities
        self._session, self._worker = session, CallbackWorker(server)
        self._inputs = Inputs(gui, session, self._worker)
        self.handle = DragHandle(server, session)
        self._state = gui.add_markdown('')
        tabs = gui.add_tab_group()
        with tabs.add_tab('run'):
            self._show_pause = add_time_section(self._inputs)
            with gui.add_folder('contact'):
                for name, option in OPTIONS.items():
                    add_option(self._inputs, name, option)
            if capabilities.terrains:
                with gui.add_folder('terrain'):
                    add_terrain_section(self._inputs)
        if len(capabilities.controllers) > 1:
            with tabs.add_tab('control'):
                add_control_section(self._inputs)
        if capabilities.frames:
            with tabs.add_tab('push'):
                add_push_section(self._inputs, self.handle)
        with tabs.add_tab('plots'):
            self._plots = Plots(gui)
        with tabs.add_tab('layers'):
            self.layers = LayerSwitches(server)
        self._synchronised: tuple[Settings, int] | None = None
        self._next, self._failure = 0.0, ''
        self._report: StepReport | None = None

    def update(self, displayed: DisplayedStep) -> None:
        """Show the newest numbers and settings; called by the thread that draws."""
        if self.handle.acts:
            self._worker.run(self.handle.act)
        self.handle.follow(self._session.robot, displayed.report.q)
        for message in self._session.take_messages():
            self._worker.notify(message, 'the simulation')
        if displayed.failure and displayed.failure != self._failure:
            self._worker.notify(f'{displayed.failure}; reset to go on', 'time stands still')
        self._failure = displayed.failure
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + SAMPLING
        self._worker.run_if_idle(self._synchronise)
        self._state.content = self._state_text(displayed)
        if displayed.report is not self._report:
            self._report = displayed.report
            self._plots.add(plotted_numbers(displayed))

    def _synchronise(self) -> None:
        """Show the settings in force, if they or the values of inputs may have changed."""
        now = self._session.settings(), self._worker.finished
        if now != self._synchronised:
            self._synchronised = now if self._inputs.show(now[0]) else None
            self._show_pause(now[0])

    def _state_text(self, displayed: DisplayedStep) -> str:
        """Return the line above the inputs: time, pace and solver, or why time is stopped."""
        report, solver = displayed.report, displayed.report.solver
        words = [
            f'**t = {report.time:.3f} s**',
            f'{displayed.real_time_factor:.2f} × real time',
            f'{1e6 * displayed.step_seconds:.0f} µs per step',
            f'{solver.status.name.lower()}, {solver.iterations} iterations',
        ]
        if self._worker.busy:
            words.append('working ...')
        if displayed.failure:
            words.append(f'**{displayed.failure}; reset to go on**')
        return ' · '.join(words)


class LayerSwitches:
    """A check box for each layer of a scene, and those for its shadow and for following it."""

    def __init__(self, server: viser.ViserServer) -> None:
        gui, self._lights = server.gui, server.scene.configure_default_lights
        self.follow = gui.add_checkbox('follow the robot', True)
        shadow = gui.add_checkbox('shadow', True, hint='off: more pictures on a slow machine')
        shadow.on_update(lambda event: self._lights(cast_shadow=shadow.value))
        self._boxes: dict[str, Any] = {
            name: gui.add_checkbox(
                name.replace('_', ' '), name not in HIDDEN, hint=HINTS.get(name)
            )
            for name in LAYERS
        }
        self._scenes: tuple[Scene, ...] = ()
        for name, box in self._boxes.items():
            box.on_update(partial(self._turn, name))
        server.scene.on_click()(self._on_click)

    def act_on(self, *scenes: Scene) -> None:
        """Turn the layers of these scenes on and off from now on."""
        self._scenes = scenes
        for name in self._boxes:
            self._turn(name)

    def _turn(self, layer: str, event: object = None) -> None:
        for scene in self._scenes:
            scene.visible[layer] = self._boxes[layer].value

    def _on_click(self, event: viser.SceneClickEvent) -> None:
        ray = event.ray_origin, event.ray_direction
        if any(scene.is_at_arrow(*ray) for scene in self._scenes):
            self._boxes['numbers'].value = not self._boxes['numbers'].value


# ------------------------------------------------ sections of the panel

HINTS = {'numbers': 'of the arrows; a click at an arrow turns them on and off'}
"""Of the check boxes of layers."""
SECONDARY: Final = 'gray'
"""Colour of all buttons but the one that starts and stops time."""
MIN_SPEED, MAX_SPEED = 0.01, 2.0
"""Ends of the slider of speed [-]."""
KEY_STEP = 0.1
"""By how much a key changes a velocity [m/s, rad/s]."""
VELOCITIES = (('forward', 1.0, 'I', 'K'), ('sideways', 0.5, 'U', 'O'), ('turn', 1.0, 'J', 'L'))
"""Components of a velocity, bound of the slider [m/s, rad/s], keys for more and less."""


class Inputs:
    """The inputs of a panel, which show the settings in force."""

    def __init__(self, gui: viser.GuiApi, session: Session, worker: CallbackWorker) -> None:
        self.gui, self.session, self.worker = gui, session, worker
        self._fixed = session.capabilities.fixed
        self._shown: list[tuple[str, Any, Callable[[Any], Any]]] = []

    def bind(self, name: str, handle: Any, as_shown: Callable[[Any], Any] = lambda x: x) -> None:
        """Let an input show a field of `Settings`, as `as_shown` converts it."""
        handle.disabled = name in self._fixed
        self._shown.append((name, handle, as_shown))

    def show(self, settings: Settings) -> bool:
        """Show settings, except in inputs with a pending callback; return whether in all."""
        pending = 0
        for name, handle, as_shown in self._shown:
            if self.worker.is_pending(handle):
                pending += 1
            else:
                handle.value = as_shown(getattr(settings, name))
        return not pending


def add_time_section(inputs: Inputs) -> Callable[[Settings], None]:
    """Add the inputs of time and state; return what shows whether time is stopped."""
    gui, session, worker = inputs.gui, inputs.session, inputs.worker
    run = gui.add_button('pause', icon=viser.Icon.PLAYER_PAUSE)
    step = gui.add_button('step', icon=viser.Icon.PLAYER_TRACK_NEXT, color=SECONDARY)
    speed = gui.add_slider(
        'speed', MIN_SPEED, MAX_SPEED, 0.01, 1.0, hint='simulated over wall time'
    )
    fast = gui.add_checkbox('as fast as possible', False)
    reset = gui.add_button('reset', icon=viser.Icon.PLAYER_SKIP_BACK, color=SECONDARY)
    height = gui.add_slider('height [m]', 0.0, 2.0, 0.05, 0.3)
    drop = gui.add_button('drop', icon=viser.Icon.ARROW_BAR_DOWN, color=SECONDARY)

    def toggle() -> None:
        (session.resume if session.settings().paused else session.pause)()

    def show_pause(settings: Settings) -> None:
        run.label = 'resume' if settings.paused else 'pause'
        run.icon = viser.Icon.PLAYER_PLAY if settings.paused else viser.Icon.PLAYER_PAUSE

    worker.on_click(run, toggle, 'pause or resume', 'space')
    worker.on_click(step, session.step, 'step', 'N')
    worker.on_click(reset, session.reset, 'reset', 'R')
    worker.on_click(drop, lambda: session.drop(height.value), 'drop', 'B')
    worker.on_value(speed, session.set_speed)
    worker.on_value(fast, lambda value: session.set_speed(0.0 if value else speed.value))
    inputs.bind('speed', speed, lambda x: clamped(x, MIN_SPEED, MAX_SPEED) if x else speed.value)
    inputs.bind('speed', fast, lambda value: value == 0.0)
    if session.capabilities.poses:
        pose = gui.add_dropdown('pose', session.capabilities.poses)
        worker.on_value(pose, session.set_pose)
        inputs.bind('pose', pose)
    if session.capabilities.waits:
        wait = gui.add_checkbox('wait without a browser', session.settings().waits)
        worker.on_value(wait, session.set_waiting)
        inputs.bind('waits', wait)
    return show_pause


def add_terrain_section(inputs: Inputs) -> None:
    """Add the inputs that put the robot on another ground."""
    gui, session, worker = inputs.gui, inputs.session, inputs.worker
    terrain = gui.add_dropdown('terrain', session.capabilities.terrains)
    difficulty = gui.add_slider('difficulty [-]', 0.0, 1.0, 0.05, DIFFICULTY)
    change = gui.add_button('change terrain', icon=viser.Icon.MOUNTAIN, color=SECONDARY)
    worker.on_click(
        change, lambda: session.set_terrain(terrain.value, difficulty.value), 'change terrain', 'G'
    )


def add_option(inputs: Inputs, name: str, option: Option) -> None:
    """Add the input of a setting of `OPTIONS`, or a check box for each of its choices."""
    gui, session, worker = inputs.gui, inputs.session, inputs.worker
    value, models = getattr(session.settings(), name), session.capabilities.contact_models
    low, high, step = option.bounds

    def choose(model: str, on: bool) -> None:
        others = [other for other in getattr(session.settings(), name) if other != model]
        session.set(name, [*others, model] if on else others)

    def is_chosen(model: str, chosen: tuple[str, ...]) -> bool:
        return model in chosen

    if option.kind == 'checkboxes':
        with gui.add_folder(option.label, expand_by_default=False):
            for model in models:
                box = gui.add_checkbox(model, False)
                worker.on_value(box, partial(choose, model))
                inputs.bind(name, box, partial(is_chosen, model))
    elif option.kind == 'choice':
        choice = gui.add_dropdown(option.label, models, initial_value=value)
        worker.on_value(choice, partial(session.set, name))
        inputs.bind(name, choice)
    else:
        first = clamped(option.scale * value, low, high)
        handle: Any
        if option.kind == 'slider':
            handle = gui.add_slider(option.label, low, high, step, first)
        else:
            handle = gui.add_number(option.label, first, min=low, max=high, step=step)
        worker.on_value(handle, lambda shown: session.set(name, shown / option.scale))
        inputs.bind(name, handle, lambda value: round(option.scale * value, 9))


def add_control_section(inputs: Inputs) -> None:
    """Add the controllers, and the velocity that one may follow."""
    gui, session, worker = inputs.gui, inputs.session, inputs.worker
    controller = gui.add_dropdown('controller', session.capabilities.controllers)
    amplitude = gui.add_slider('amplitude [m]', 0.0, 0.1, 0.005, AMPLITUDE)
    frequency = gui.add_slider('frequency [Hz]', 0.1, 2.0, 0.05, FREQUENCY)

    def start(value: object) -> None:
        session.set_controller(controller.value, amplitude.value, frequency.value)

    for handle in (controller, amplitude, frequency):
        worker.on_value(handle, start)
    inputs.bind('controller', controller)

    def command(k: int, value: float) -> None:
        velocity = list(session.settings().velocity)
        velocity[k] = clamped(float(value), -VELOCITIES[k][1], VELOCITIES[k][1])
        session.set_velocity(*velocity)

    def change(k: int, by: float) -> None:
        command(k, session.settings().velocity[k] + by)

    def component(k: int, bound: float, velocity: tuple[float, ...]) -> float:
        return clamped(velocity[k], -bound, bound)

    sliders = [gui.add_slider(name, -bound, bound, 0.01, 0.0) for name, bound, _, _ in VELOCITIES]
    for k, (name, bound, more, less) in enumerate(VELOCITIES):
        worker.on_value(sliders[k], partial(command, k))
        worker.on_key(f'{name}: more', more, partial(change, k, KEY_STEP))
        worker.on_key(f'{name}: less', less, partial(change, k, -KEY_STEP))
        inputs.bind('velocity', sliders[k], partial(component, k, bound))
    worker.on_key('stop', 'X', lambda: session.set_velocity(0.0, 0.0, 0.0))


def add_push_section(inputs: Inputs, handle: DragHandle) -> None:
    """Add the inputs of pushes, and the handle that drags a frame."""
    gui, session, worker = inputs.gui, inputs.session, inputs.worker
    frame = gui.add_dropdown('frame', session.capabilities.frames, initial_value=handle.frame)
    drag = gui.add_checkbox('handle to drag it with', False)
    hundredth = 0.1 * session.robot.total_mass  # of its weight [N], rounded: a step of the sliders
    power = 10.0 ** np.floor(np.log10(max(hundredth, 1e-3)))
    step = float(power * max(1.0, np.floor(hundredth / power)))
    bound, first = 200.0 * step, {'x': 0.0, 'y': 50.0 * step, 'z': 0.0}
    sliders = [
        gui.add_slider(f'force {axis} [N]', -bound, bound, step, first[axis]) for axis in 'xyz'
    ]
    duration = gui.add_slider('duration [s]', 0.01, 2.0, 0.01, 0.1)
    button = gui.add_button('push', icon=viser.Icon.ARROW_BIG_RIGHT, color=SECONDARY)

    def push() -> None:
        force = [float(slider.value) for slider in sliders]
        session.push(frame.value, force, (0.0, 0.0, 0.0), duration.value)

    worker.on_value(frame, lambda name: setattr(handle, 'frame', name))
    worker.on_value(drag, handle.show)
    worker.on_click(button, push, 'push', 'P')


def clamped(value: float, low: float, high: float) -> float:
    """Return the value of [low, high] next to a value."""
    return min(max(value, low), high)


# ------------------------------------------------ running plots

POINTS, SAMPLING = 300, 0.1
"""Points of a plot, and wall seconds between two of them."""
SPAN = POINTS * SAMPLING
"""Of the time axis, which stays: viser loses one that moves while the browser is slow [s]."""
LOG_FLOOR = 1e-18
"""Shown in place of smaller numbers on a logarithmic axis."""
COLOURS = ('#d9480f', '#1c7ed6', '#2f9e44', '#ae3ec9', '#e8a202', '#0c8599', '#862e9c', '#5c940d')
HEIGHT = 150
"""Of a plot [pixels]."""
PREFIXES = {-9: 'n', -6: 'µ', -3: 'm', 0: '', 3: 'k', 6: 'M', 9: 'G'}
"""Of units, by the power of ten."""
INCREMENTS = tuple(float(n) * 10.0**k for k in range(7) for n in (1, 2, 5))
"""Of the numbers at an axis: whole ones."""


@dataclass(frozen=True)
class Plot:
    """One plot over the last wall seconds."""

    title: str
    """Without the unit."""
    unit: str
    """Of all series; '' if they are logarithmic."""
    series: tuple[str, ...]
    logarithmic: bool = False


PLOTS = (
    Plot('residuals, powers of 10', '', ('ncp [N s]', 'momentum [N s]', 'penetration [m]'), True),
    Plot('energy of a step', 'J', ('change', 'actuation', 'contact', 'integration')),
    Plot('time of a step', 's', ('step',)),
    Plot('simulated over wall time', '%', ('real-time factor',)),
)


def plotted_numbers(displayed: DisplayedStep) -> dict[str, float]:
    """Return the numbers of a step by the names of PLOTS."""
    residuals = displayed.report.residuals
    energy = residuals.energy_balance
    return {
        'ncp [N s]': residuals.ncp,
        'momentum [N s]': residuals.momentum,
        'penetration [m]': residuals.penetration,
        'change': energy.change,
        'actuation': energy.actuation,
        'contact': energy.contact,
        'integration': energy.integration,
        'step': displayed.step_seconds,
        'real-time factor': 100.0 * displayed.real_time_factor,
    }


def shown_line(values: ArrayLike, logarithmic: bool) -> Array:
    """Return what a plot shows of numbers: perhaps logarithms, and no NaN, which empties it."""
    line = np.nan_to_num(values)
    return np.asarray(np.log10(np.maximum(line, LOG_FLOOR)) if logarithmic else line)


def fitting_power(lines: Iterable[Array], before: int | None = None) -> int:
    """Return the power of ten of PREFIXES with which whole numbers divide an axis well.

    The largest number is then from 10 to 10 000; it may be from 5 to 20 000 if the power is that
    from before, so that the unit does not change all the time.
    """
    largest = max((float(np.abs(line).max(initial=0.0)) for line in lines), default=0.0)
    if largest == 0.0 or (before is not None and 5.0 <= largest / 10.0**before < 2e4):
        return before or 0
    power = 3 * math.floor((math.log10(largest) - 1.0) / 3.0)
    return int(clamped(power, min(PREFIXES), max(PREFIXES)))


class Plots:
    """Plots in the open tab of a panel."""

    def __init__(self, gui: viser.GuiApi) -> None:
        names = [name for plot in PLOTS for name in plot.series]
        self._values: dict[str, deque[float]] = {name: deque(maxlen=POINTS) for name in names}
        scale = uplot.Scale(time=False, range=(-SPAN, 0.0))
        self._handles, self._powers = [], [0] * len(PLOTS)
        for plot in PLOTS:
            lines = [(name, colour, 1) for name, colour in zip(plot.series, COLOURS, strict=False)]
            title, data = with_unit(plot.title, plot.unit, 0), self._data(plot)
            self._handles.append(add_plot(gui, title, data, 'wall time [s]', lines, scale))

    def add(self, numbers: Mapping[str, float]) -> None:
        """Add a point, by the names of the series, and show it."""
        for name, values in self._values.items():
            values.append(numbers[name])
        for k, (plot, handle) in enumerate(zip(PLOTS, self._handles, strict=True)):
            time, *lines = self._data(plot)
            before = self._powers[k]
            if plot.unit not in ('', '%'):
                self._powers[k] = fitting_power(lines, before)
            if self._powers[k] != before:
                handle.title = with_unit(plot.title, plot.unit, self._powers[k])
            handle.data = time, *(line / 10.0 ** self._powers[k] for line in lines)

    def _data(self, plot: Plot) -> tuple[Array, ...]:
        lines = [shown_line(self._values[name], plot.logarithmic) for name in plot.series]
        return SAMPLING * np.arange(1.0 - len(lines[0]), 1.0), *lines


def with_unit(title: str, unit: str, power: int) -> str:
    """Return a title with the unit of its plot."""
    return f'{title} [{PREFIXES[power]}{unit}]' if unit else title


def add_plot(
    gui: viser.GuiApi,
    title: str,
    data: tuple[Array, ...],
    x_label: str,
    lines: Iterable[tuple[str, str, float]],
    x_scale: uplot.Scale,
) -> viser.GuiUplotHandle:
    """Add a plot of data (x, line, line, ...); of each line label, colour and width.

    Dragging along x zooms, a double click shows all again. The legend has no values: uPlot fills
    it with dashes wherever the pointer is not.
    """
    series = [uplot.Series(label=name, stroke=colour, width=w) for name, colour, w in lines]
    return gui.add_uplot(
        data, (uplot.Series(label=x_label), *series), title=title, scales={'x': x_scale},
        axes=(uplot.Axis(label=x_label, labelSize=20, size=32), uplot.Axis(incrs=INCREMENTS)),
        legend=uplot.Legend(show=True, live=False), height=HEIGHT,
    )  # fmt: skip


# ------------------------------------------------ callbacks of the inputs

NOTIFICATION_SECONDS = 8.0
Action = Callable[[], None]


class CallbackWorker:
    """Runs GUI callbacks one after the other, and shows their errors in the page."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server, self._lock = server, threading.Lock()
        self._executor = ThreadPoolExecutor(1, 'callbacks')
        self._pending: deque[object] = deque()
        self.finished = 0  # callbacks that were run; inputs may show something else since

    @property
    def busy(self) -> bool:
        """Whether a callback is running or pending."""
        return bool(self._pending) or self._lock.locked()

    def is_pending(self, handle: object) -> bool:
        """Whether a callback of this input has not finished."""
        return any(pending is handle for pending in list(self._pending))

    def on_value(self, handle: Any, act: Callable[[Any], object]) -> None:
        """Call `act` with the value of an input whenever it is changed in a browser."""

        async def on_update(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:  # not where the page shows the settings
                # taken now: until it is used, the page may show an older setting in the input
                self._submit(partial(act, handle.value), handle)

        handle.on_update(on_update)

    def on_click(self, button: Any, act: Action, label: str, key: Any) -> None:
        """Call `act` at each click, and as `on_key`."""
        button.on_click(self._callback(act, button))
        self.on_key(label, key, act)

    def on_key(self, label: str, key: Any, act: Action) -> None:
        """Call `act` when a key is pressed, or the command of this label is chosen."""
        command = self._server.gui.add_command(label, hotkey=key)
        command.on_trigger(self._callback(act, command))

    def _callback(self, act: Action, handle: object) -> Callable[[Any], Any]:
        async def callback(event: object) -> None:
            self._submit(act, handle)

        return callback

    def run(self, act: Callable[[], object]) -> None:
        """Run a callback now; show in the page why it fails."""
        with self._lock:
            try:
                act()
            except Exception as error:  # no callback ends the page
                known = isinstance(error, ContactSimError)
                text = str(error) if known else f'{type(error).__name__}: {error}'
                self.notify(text, 'refused')
            finally:
                self.finished += 1

    def run_if_idle(self, act: Action) -> None:
        """Run something for the page itself, if no callback is running."""
        if self._lock.acquire(blocking=False):
            try:
                act()
            finally:
                self._lock.release()

    def notify(self, text: str, title: str) -> None:
        """Show a text in all browsers that have the page open."""
        seconds = NOTIFICATION_SECONDS
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=seconds, color='red')

    def _submit(self, act: Callable[[], object], handle: object) -> None:
        """Run a callback after all that are pending; called by the event loop of the server."""

        def run_pending() -> None:
            try:
                self.run(act)
            finally:
                self._pending.popleft()

        self._pending.append(handle)
        self._executor.submit(run_pending)
