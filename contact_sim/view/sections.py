"""The parts of the panel: time, laws, control and pushes. Each follows the settings in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import viser

from contact_sim.view.asking import Asking
from contact_sim.view.handle import DragHandle
from contact_sim.view.session import AMPLITUDE, FREQUENCY, Chosen, Session

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
