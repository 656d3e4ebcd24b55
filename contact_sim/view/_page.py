"""One page: the scene and the panel of a session, drawn again and again."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import viser
from viser import uplot

from contact_sim._types import Array
from contact_sim.contact_models import contact_models
from contact_sim.drawing._body_meshes import Colour
from contact_sim.drawing._step_shapes import contact_arrows
from contact_sim.errors import ContactSimError
from contact_sim.simulation._report import StepReport
from contact_sim.view._process import PERIOD
from contact_sim.view._scene import LAYERS, ArrowLayer, DragHandle, Following, Scene
from contact_sim.view._session import AMPLITUDE, FREQUENCY, Chosen, Session, Shown

# --- Running plots: what the judge says of the steps that are shown, and what they cost.

KEPT, SAMPLING = 300, 0.1
"""Points of a plot, and wall seconds between two of them."""
SPAN = KEPT * SAMPLING
"""Of the time axis, which stays: viser loses one that moves while the browser is slow [s]."""
LEAST = 1e-18
"""What is shown in place of zero where powers of ten are."""
COLOURS = ('#d9480f', '#1c7ed6', '#2f9e44', '#ae3ec9')
HEIGHT = 150
"""Of a plot [pixels]."""


@dataclass(frozen=True)
class Plot:
    """One plot over the last wall seconds."""

    title: str
    series: tuple[str, ...]
    """Names of numbers, with their units."""
    powers: bool = False
    """Whether the decimal logarithm is shown."""


PLOTS = (
    Plot('residuals, powers of 10', ('ncp [N s]', 'momentum [N s]', 'penetration [m]'), True),
    Plot('energy of a step [J]', ('change', 'actuation', 'contact', 'integration')),
    Plot('time of a step [µs]', ('step',)),
    Plot('simulated over wall time', ('real-time factor',)),
)


def judged(report: StepReport) -> dict[str, float]:
    """Return what the judge says of a step, by the names of PLOTS."""
    residuals = report.residuals
    energy = residuals.energy_balance
    return {
        'ncp [N s]': residuals.ncp,
        'momentum [N s]': residuals.momentum,
        'penetration [m]': residuals.penetration,
        'change': energy.change,
        'actuation': energy.actuation,
        'contact': energy.contact,
        'integration': energy.integration,
    }


class Plots:
    """Plots in the panel of a page, made where the panel is at the time.

    Args:
        gui: of the page.
        plots: which.
    """

    def __init__(self, gui: viser.GuiApi, plots: tuple[Plot, ...] = PLOTS) -> None:
        self._plots = plots
        names = [name for plot in plots for name in plot.series]
        self._values: dict[str, deque[float]] = {name: deque(maxlen=KEPT) for name in names}
        self._handles = [self._made(gui, plot) for plot in plots]

    def add(self, numbers: Mapping[str, float]) -> None:
        """Add a point, by the names of the series; all others are a little older from then on."""
        for name, kept in self._values.items():
            kept.append(numbers[name])

    def draw(self) -> None:
        """Show all points."""
        for plot, handle in zip(self._plots, self._handles, strict=True):
            handle.data = self._data(plot)

    def _data(self, plot: Plot) -> tuple[np.ndarray, ...]:
        values = [np.nan_to_num(self._values[name]) for name in plot.series]  # a NaN empties it
        if plot.powers:
            values = [np.log10(np.maximum(value, LEAST)) for value in values]
        return SAMPLING * np.arange(1.0 - len(values[0]), 1.0), *values

    def _made(self, gui: viser.GuiApi, plot: Plot) -> viser.GuiUplotHandle:
        lines = zip(plot.series, COLOURS, strict=False)
        series = [uplot.Series(label=name, stroke=colour, width=1) for name, colour in lines]
        return gui.add_uplot(
            self._data(plot),
            (uplot.Series(label='wall time [s]'), *series),
            title=plot.title,
            scales={'x': uplot.Scale(time=False, range=(-SPAN, 0.0))},
            legend=uplot.Legend(show=True),
            height=HEIGHT,
        )


# --- From the switches of a page to its session, and its errors back to whoever looks at the page.

READ = 8.0
"""Wall seconds for which a notification stays."""
Action = Callable[[], None]


class Asking:
    """Does what the page asks for, one thing after the other, in the order in which it asks.

    Values are taken when the browser sends them, and done later: until then the page may have
    shown an older setting in the same input.

    Args:
        server: of the page.

    Attributes:
        answered: how often something was done or refused; inputs may show something else since.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server, self._lock = server, threading.Lock()
        self._worker = ThreadPoolExecutor(1, 'asking')
        self._waiting: deque[object] = deque()
        self.answered = 0

    @property
    def busy(self) -> bool:
        """Whether something is being done just now, or waits for it."""
        return bool(self._waiting) or self._lock.locked()

    def of_value(self, handle: Any, act: Callable[[Any], None]) -> None:
        """Call `act` with the value of an input whenever somebody in a browser changes it."""

        async def on_update(event: viser.GuiEvent[Any]) -> None:
            if event.client_id is not None:  # not where the page follows the session
                self._later(partial(act, handle.value), handle)

        handle.on_update(on_update)

    def of_click(self, button: Any, act: Action) -> None:
        """Call `act` whenever somebody clicks."""

        async def on_click(event: viser.GuiEvent[Any]) -> None:
            self._later(act, button)

        button.on_click(on_click)

    def of_key(self, label: str, key: Any, act: Action) -> None:
        """Call `act` whenever somebody presses a key, or chooses the command of this label."""
        command = self._server.gui.add_command(label, hotkey=key)

        async def on_trigger(event: object) -> None:
            self._later(act, command)

        command.on_trigger(on_trigger)

    def waits(self, handle: object) -> bool:
        """Whether somebody has used this input, and what it asks for is not done yet."""
        return any(one is handle for one in list(self._waiting))

    def in_between(self, act: Action) -> None:
        """Do something for the page itself, if nothing is being done just now."""
        if self._lock.acquire(blocking=False):
            try:
                act()
            finally:
                self._lock.release()

    def _later(self, act: Action, handle: object) -> None:
        """Have something done after all that was asked for before; called by the server's loop."""
        self._waiting.append(handle)
        self._worker.submit(self._do_next, act)

    def _do_next(self, act: Action) -> None:
        try:
            self.do(act)
        finally:
            self._waiting.popleft()

    def do(self, act: Action) -> None:
        """Do something; show in the page why it cannot be done."""
        with self._lock:
            try:
                act()
            except Exception as error:  # nothing that a page asks for ends it
                known = isinstance(error, ContactSimError)
                self.tell(str(error) if known else f'{type(error).__name__}: {error}', 'refused')
            finally:
                self.answered += 1

    def tell(self, text: str, title: str) -> None:
        """Show a text in all browsers that have the page open."""
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=READ, color='red')


# --- The parts of the panel: time, laws, control and pushes. Each follows the settings in force.

MS = 1e3
"""Milliseconds per second."""
SLOWEST, FASTEST = 0.01, 2.0
"""Ends of the slider of speed [-]."""
KEY_STEP = 0.1
"""By how much a key changes a velocity [m/s, rad/s]."""
SPEEDS = (('forward', 1.0, 'I', 'K'), ('sideways', 0.5, 'U', 'O'), ('turn', 1.0, 'J', 'L'))
"""Components of a velocity, bound of the slider [m/s, rad/s], keys for more and less."""


class Follower:
    """Inputs of a page that show settings, whoever changed these.

    Args:
        fixed: settings that cannot be changed.
    """

    def __init__(self, fixed: frozenset[str]) -> None:
        self._fixed = fixed
        self._shown: list[tuple[str, Any, Callable[[Any], Any]]] = []

    def add(self, field: str, handle: Any, as_shown: Callable[[Any], Any] = lambda x: x) -> None:
        """Let an input show a field of `Chosen`, in the words that `as_shown` returns."""
        handle.disabled = field in self._fixed
        self._shown.append((field, handle, as_shown))

    def follow(self, chosen: Chosen, asking: Asking) -> bool:
        """Show these settings; not in inputs that somebody has just used: then return False."""
        used = 0
        for field, handle, as_shown in self._shown:
            if asking.waits(handle):
                used += 1
            else:
                handle.value = as_shown(getattr(chosen, field))
        return not used


def time_section(
    gui: viser.GuiApi, session: Session, asking: Asking, follower: Follower
) -> Callable[[Chosen], None]:
    """Add what concerns time and state; return what shows whether time stands still."""
    run = gui.add_button('pause', icon=viser.Icon.PLAYER_PAUSE)
    step = gui.add_button('step', icon=viser.Icon.PLAYER_TRACK_NEXT)
    speed = gui.add_slider('speed', SLOWEST, FASTEST, 0.01, 1.0, hint='simulated over wall time')
    fast = gui.add_checkbox('as fast as possible', False)
    reset = gui.add_button('reset', icon=viser.Icon.PLAYER_SKIP_BACK)
    height = gui.add_slider('height [m]', 0.0, 2.0, 0.05, 0.3)
    drop = gui.add_button('drop', icon=viser.Icon.ARROW_BAR_DOWN)

    def toggle() -> None:
        (session.resume if session.chosen().paused else session.pause)()

    def show_pause(chosen: Chosen) -> None:
        run.label = 'resume' if chosen.paused else 'pause'
        run.icon = viser.Icon.PLAYER_PLAY if chosen.paused else viser.Icon.PLAYER_PAUSE

    asking.of_click(run, toggle)
    asking.of_click(step, session.step)
    asking.of_click(reset, session.reset)
    asking.of_click(drop, lambda: session.drop(height.value))
    asking.of_value(speed, lambda value: session.set_speed(value))
    asking.of_value(fast, lambda value: session.set_speed(0.0 if value else speed.value))
    asking.of_key('pause or resume', 'space', toggle)
    asking.of_key('step', 'N', session.step)
    asking.of_key('reset', 'R', session.reset)
    asking.of_key('drop', 'B', lambda: session.drop(height.value))
    follower.add(
        'speed', speed, lambda value: min(max(value, SLOWEST), FASTEST) if value else speed.value
    )
    follower.add('speed', fast, lambda value: value == 0.0)
    if session.offers.poses:
        pose = gui.add_dropdown('pose', session.offers.poses)
        asking.of_value(pose, session.set_pose)
        follower.add('pose', pose)
    return show_pause


def law_section(gui: viser.GuiApi, session: Session, asking: Asking, follower: Follower) -> None:
    """Add what concerns the laws of contact."""
    models = session.offers.contact_models
    model = gui.add_dropdown('contact model', models)
    friction = gui.add_slider('friction [-]', 0.0, 1.5, 0.01, 0.8)
    restitution = gui.add_slider('restitution [-]', 0.0, 1.0, 0.01, 0.0)
    time_step = gui.add_number('time step [ms]', 1.0, min=0.01, max=50.0, step=0.01)
    asking.of_value(model, session.set_contact_model)
    asking.of_value(friction, session.set_friction)
    asking.of_value(restitution, session.set_restitution)
    asking.of_value(time_step, lambda value: session.set_time_step(value / MS))
    follower.add('contact_model', model)
    follower.add('friction', friction)
    follower.add('restitution', restitution)
    follower.add('time_step', time_step, lambda value: round(MS * value, 9))
    with gui.add_folder('shadow models', expand_by_default=False):
        for name in models:
            shadow_switch(gui, name, session, asking, follower)


def shadow_switch(
    gui: viser.GuiApi, name: str, session: Session, asking: Asking, follower: Follower
) -> None:
    """Add the check box of one shadow model."""
    box = gui.add_checkbox(name, False)

    def turn(on: bool) -> None:
        others = [one for one in session.chosen().shadows if one != name]
        session.set_shadows([*others, name] if on else others)

    asking.of_value(box, turn)
    follower.add('shadows', box, lambda shadows: name in shadows)


def control_section(
    gui: viser.GuiApi, session: Session, asking: Asking, follower: Follower
) -> None:
    """Add controllers, and the velocity that one may follow."""
    controller = gui.add_dropdown('controller', session.offers.controllers)
    amplitude = gui.add_slider('amplitude [m]', 0.0, 0.1, 0.005, AMPLITUDE)
    frequency = gui.add_slider('frequency [Hz]', 0.1, 2.0, 0.05, FREQUENCY)

    def start() -> None:
        session.set_controller(controller.value, amplitude.value, frequency.value)

    for handle in (controller, amplitude, frequency):
        asking.of_value(handle, lambda value: start())
    follower.add('controller', controller)
    sliders = [gui.add_slider(name, -most, most, 0.01, 0.0) for name, most, _, _ in SPEEDS]

    def command(k: int, value: float) -> None:
        velocity = list(session.chosen().velocity)
        velocity[k] = min(max(float(value), -SPEEDS[k][1]), SPEEDS[k][1])
        session.set_velocity(*velocity)

    def change(k: int, by: float) -> None:
        command(k, session.chosen().velocity[k] + by)

    for k, (name, most, more, less) in enumerate(SPEEDS):
        asking.of_value(sliders[k], partial(command, k))
        asking.of_key(f'{name}: more', more, partial(change, k, KEY_STEP))
        asking.of_key(f'{name}: less', less, partial(change, k, -KEY_STEP))
        follower.add('velocity', sliders[k], partial(_component, k, most))
    asking.of_key('stop', 'X', lambda: session.set_velocity(0.0, 0.0, 0.0))


def force_step(mass: float) -> float:
    """Return the step of a slider of forces for a mass [kg]: near 1 % of its weight [N]."""
    power = 10.0 ** np.floor(np.log10(max(0.1 * mass, 1e-3)))
    return float(power * max(1.0, np.floor(0.1 * mass / power)))


def _component(k: int, most: float, velocity: Sequence[float]) -> float:
    """Return a component of a velocity within the ends of its slider."""
    return min(max(velocity[k], -most), most)


def push_section(gui: viser.GuiApi, session: Session, asking: Asking, handle: DragHandle) -> None:
    """Add pushes, by sliders and by the handle."""
    frame = gui.add_dropdown('frame', session.offers.frames, initial_value=handle.frame)
    drag = gui.add_checkbox('handle to drag it with', False)
    step = force_step(session.robot.total_mass)
    most, begin = 200.0 * step, {'y': 50.0 * step}
    sliders = [
        gui.add_slider(f'force {axis} [N]', -most, most, step, begin.get(axis, 0.0))
        for axis in 'xyz'
    ]
    duration = gui.add_slider('duration [s]', 0.01, 2.0, 0.01, 0.1)
    button = gui.add_button('push', icon=viser.Icon.ARROW_BIG_RIGHT)

    def push() -> None:
        force = [float(slider.value) for slider in sliders]
        session.push(frame.value, force, (0.0, 0.0, 0.0), duration.value)

    def seize(name: str) -> None:
        handle.frame = name

    def show(visible: bool) -> None:
        handle.visible = visible

    asking.of_value(frame, seize)
    asking.of_value(drag, show)
    asking.of_click(button, push)
    asking.of_key('push', 'P', push)


# --- The panel of the page: switches, sliders and plots of any Session.

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


# --- One page: the scene and the panel of a session, drawn again and again.

GLIDE = 0.2
"""Share of the way to the robot that the picture goes at a time."""
NOBODY = 0.1
"""Wall seconds between two looks whether somebody has opened the page."""
SHADOW_COLOURS: tuple[Colour, ...] = (
    (0.12, 0.56, 0.90, 1.0), (0.18, 0.62, 0.27, 1.0), (0.68, 0.24, 0.79, 1.0),
    (0.09, 0.67, 0.67, 1.0), (0.90, 0.60, 0.02, 1.0), (0.38, 0.30, 0.86, 1.0),
    (0.55, 0.37, 0.24, 1.0), (0.90, 0.28, 0.50, 1.0),
)  # fmt: skip
"""Of the forces under each contact model, in the order of `contact_models`."""


class Page:
    """Scene and panel of a session.

    Args:
        server: of the page.
        session: what is shown, and what the panel acts on.
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._server, self._session = server, session
        server.scene.configure_default_lights(cast_shadow=False)
        self._panel = Panel(server, session)
        self._shadows: dict[str, ShadowForces] = {}
        self._world: tuple[object, object] = session.robot, session.ground
        self._drawn: StepReport | None = None
        self._scene = self._made_scene(session.latest())

    def draw(self) -> None:
        """Show the newest step."""
        shown, session = self._session.latest(), self._session
        if self._world[0] is not session.robot or self._world[1] is not session.ground:
            self._world = session.robot, session.ground
            self._scene.close()
            self._scene = self._made_scene(shown)
        self._follow(shown)
        if shown.report is not self._drawn:
            self._drawn = shown.report
            with np.errstate(over='ignore'):  # a robot that has blown up has no place in float32
                self._scene.show(shown.report, shown.wrenches)
                self._show_shadows(shown)
        self._panel.update(shown)

    def _made_scene(self, shown: Shown) -> Scene:
        """Return a scene of the robot and the ground of now, and look at it."""
        scene = Scene(self._server, self._session.robot, self._session.ground)
        self._following = Following(self._session.robot, shown.report.q)
        camera = scene.framing(shown.report)
        self._server.initial_camera.position = camera.position
        self._server.initial_camera.look_at = camera.look_at
        self._server.initial_camera.fov = camera.field_of_view
        self._panel.of_scene(scene)
        return scene

    def _follow(self, shown: Shown) -> None:
        """Move what is in the picture with the robot, but not under a hand that draws at it."""
        if self._panel.follows:
            self._following.look_after(shown.report.q, GLIDE)
        offset = self._following.offset
        self._scene.offset = self._panel.handle.offset = offset
        for shadow in self._shadows.values():
            shadow.offset = offset

    def run(self, wanted: Callable[[], bool]) -> None:
        """Draw as long as `wanted` says so, while somebody has the page open."""
        keep_drawing(self._server, lambda seconds: self.draw(), wanted)

    def _show_shadows(self, shown: Shown) -> None:
        """Draw the forces under other models, each in a colour of its own."""
        for name, report in shown.shadows.items():
            if name not in self._shadows:
                self._shadows[name] = ShadowForces(self._server.scene, name)
            self._shadows[name].show(report)
        for name in self._shadows.keys() - shown.shadows.keys():
            self._shadows.pop(name).close()


def keep_drawing(
    server: viser.ViserServer, draw: Callable[[float], object], wanted: Callable[[], bool]
) -> None:
    """Draw once, and then as long as `wanted` says so, while somebody has the page open.

    Args:
        server: of the page.
        draw: called with the wall time since it was called before [s]; 0 after a time without
            anybody.
        wanted: whether to go on.
    """
    draw(0.0)
    last = None
    while wanted():
        begin = time.perf_counter()
        if server.get_clients():
            draw(0.0 if last is None else begin - last)
            last = begin
            time.sleep(max(0.0, begin + PERIOD - time.perf_counter()))
        else:
            last = None
            time.sleep(NOBODY)


class ShadowForces:
    """The forces in the same step under another contact model, in a colour of their own."""

    def __init__(self, scene: viser.SceneApi, model: str) -> None:
        self._frame = scene.add_frame(f'/shadow_forces/{model}', show_axes=False)
        self._arrows = ArrowLayer(scene, f'/shadow_forces/{model}', 'force', colour_of(model))

    def show(self, report: StepReport) -> None:
        """Draw those of the step under this model."""
        self._arrows.show(contact_arrows(report.contacts)['force'])

    @property
    def offset(self) -> Array:
        """Where the origin of their world is in the page [m], (3,); can be set."""
        return np.array(self._frame.position)

    @offset.setter
    def offset(self, offset: Array) -> None:
        self._frame.position = offset

    def close(self) -> None:
        """Take them off the page."""
        self._frame.remove()


def colour_of(model: str) -> Colour:
    """Return the colour of the forces under a contact model."""
    names = contact_models()
    place = names.index(model) if model in names else 0
    return SHADOW_COLOURS[place % len(SHADOW_COLOURS)]
