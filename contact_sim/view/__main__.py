"""Show a simulation or a recording in the browser: python -m contact_sim.view go1."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contact_sim._command_line import one_of, parser_with_examples
from contact_sim._validation import finite, positive
from contact_sim.collision._terrain import TerrainLike, terrains
from contact_sim.contact_models import model_names
from contact_sim.errors import ContactSimError, InvalidInput, folded, shown
from contact_sim.inspect._inspection import Source, inspect_robot
from contact_sim.precompile import compiling_meanwhile
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Timeline
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import xacro_arguments
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.terrain._generator import READY_MADE, ready_made
from contact_sim.view._process import (
    NOT_INSTALLED,
    NotServed,
    address_of,
    is_installed,
    page_server,
    warning_about,
)
from contact_sim.view._saved import quiet_server, save_clip, save_page, write_clip, write_page
from contact_sim.view._session import HOLD, LiveSession, Motions, own_controller

if TYPE_CHECKING:
    from contact_sim.view._page import Page
    from contact_sim.view._playback import RecordingPage

PORT = 8080
FPS = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a page until Ctrl-C, or save a moving scene.

    Returns:
        0; 1 with one line of reason where it cannot be served or saved.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(format='%(message)s')
    # a recording is shown where the command line names one, but not to write it
    paths = [b for a, b in pairwise(['', *words]) if a != '--record' and not b.startswith('-')]
    try:
        if any(path.endswith('.npz') for path in paths):
            show_recording(recording_parser().parse_args(words))
        else:
            show_simulation(parser().parse_args(words))
    except ContactSimError as error:
        print(f'{parser().prog}: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def base_parser() -> argparse.ArgumentParser:
    """Return the options of both command lines."""
    result = parser_with_examples(
        'python -m contact_sim.view', 'Show a simulation or a recording in the browser.',
        (
            'go1                                    # press Ctrl-C to end',
            'go1 --controller trot --velocity 0.3 0 0 --terrain stairs --difficulty 0.2',
            'my_robot.urdf --model sap --friction 0.5',
            'go1 --controller my_package.walk:Walk --record run.npz',
            'run.npz --model sap                    # a recording, and the run under sap',
            'go1 --save clip.gif --duration 3       # a file, no page',
        ),
    )  # fmt: skip
    add = result.add_argument
    add('--port', type=int, default=PORT, help=f'of the page, default {PORT}')
    add('--host', default='localhost', help='name or address at which the page can be reached')
    add('--open', action='store_true', help='open the page in the browser')
    add('--save', metavar='FILE',
        help='write a moving scene (.html, .mp4, .gif, .webp), serve none')  # fmt: skip
    return result


def run_page(page: Page | RecordingPage, title: str, options: argparse.Namespace) -> None:
    """Print the address of a page, and draw it until Ctrl-C."""
    address = address_of(options.host, options.port)
    print(f'{title}: {address} (Ctrl-C ends)', flush=True)
    if options.open and not webbrowser.open(address):
        print('no browser to open; go to the address in one', file=sys.stderr)
    # an exception of the handler may end in a callback of the compiler, which loses it
    ended = threading.Event()

    def end(number: int, frame: Any) -> None:
        if ended.is_set():  # asked again
            raise KeyboardInterrupt
        ended.set()

    before = signal.signal(signal.SIGINT, end)
    try:
        page.run(lambda: not ended.is_set())
    finally:
        signal.signal(signal.SIGINT, before)


def warn(text: str) -> None:
    """Print a warning, if there is one."""
    if text:
        print(f'warning: {text}', file=sys.stderr)


# ------------------------------------------------ a simulation


def parser() -> argparse.ArgumentParser:
    """Return the command line of a simulation."""
    grounds = ', '.join(terrains())
    result = base_parser()
    add = result.add_argument
    add('robot', nargs='?', default=default_robot(),
        help='robot of the catalogue, URDF or xacro file, or a recording (.npz)')  # fmt: skip
    add('--model', type=one_of('contact model', model_names()), metavar='MODEL',
        help='contact model, one of ' + ' '.join(model_names()))  # fmt: skip
    add('--terrain', default='plane', help=f'ground: {grounds}, or a file')
    add('--difficulty', type=float, default=0.5, help='of a ready-made ground, 0 to 1')
    add('--seed', type=int, default=0, help='of a ready-made ground')
    add('--friction', type=float, default=0.8, metavar='MU', help='Coulomb coefficient')
    add('--time-step', type=float, default=1e-3, metavar='S', help='h [s]')
    add('--speed', type=float, default=1.0, help='simulated over wall time, 0: as fast as it can')
    add('--paused', action='store_true', help='begin with time standing still')
    add('--keep-running', action='store_true',
        help='go on while no browser has the page open; else time stands still')  # fmt: skip
    add('--controller', default=HOLD, metavar='NAME',
        help='hold, stand, squat, sway, trot, or module:name of your own')  # fmt: skip
    add('--velocity', type=float, nargs=3, default=(0.0, 0.0, 0.0), metavar=('X', 'Y', 'TURN'),
        help='of a trot, forwards and sideways [m/s], turn [rad/s]')  # fmt: skip
    add('--record', metavar='FILE', help='record the session (.npz)')
    add('--duration', type=float, default=5.0, metavar='S', help='simulated time of --save [s]')
    add('--feet', nargs='*', metavar='LINK', help='links of the feet')
    add('--srdf', metavar='FILE', help='SRDF with poses and end effectors')
    add('--fixed-base', action='store_true', help='without a floating base')
    add('--xacro-arguments', nargs='*', metavar='NAME:=VALUE', help='arguments of a xacro')
    return result


def show_simulation(options: argparse.Namespace) -> None:
    """Serve the page of a simulation, or save what happens in it."""
    own = own_controller(options.controller) if ':' in options.controller else None
    sim = simulator(options)
    recorder = Recorder(sim, options.record) if options.record else nullcontext()
    motions, paused = Motions(sim.robot, own), options.paused or bool(options.save)
    session = LiveSession(sim, motions, options.speed, paused, not options.keep_running)
    with recorder, closing(session):
        session.set_velocity(*options.velocity)
        session.set_controller(own[0] if own else options.controller)
        if options.save:
            print(save_session(session, options.save, options.duration))
            return
        server = page_server(options.host, options.port, 'contact_sim')
        from contact_sim.view._page import Page  # imports viser, which `page_server` has found

        page = Page(server, session)
        warn(warning_about(options.host, options.port))
        try:
            with compiling_meanwhile():
                run_page(page, session.robot.name, options)
        finally:
            server.stop()


def save_session(session: LiveSession, path: str, duration: float) -> Path:
    """Write the first `duration` [s] of a session as a page or a clip; return its path."""
    if not is_installed():
        raise NotServed(NOT_INSTALLED)
    steps = max(1, round(1.0 / FPS / session.settings().time_step))

    def reports() -> Iterator[StepReport]:
        for _ in range(max(1, round(duration / (1.0 / FPS)))):
            session.step(steps)
            yield session.latest().report

    write = save_page if path.endswith('.html') else save_clip
    return write(path, session.robot, session.ground, reports(), fps=FPS)


def simulator(options: argparse.Namespace) -> Simulator:
    """Return the simulator that the command line describes."""
    words = options.xacro_arguments
    arguments = None if words is None else xacro_arguments(words) or {}
    feet = None if options.feet is None else tuple(options.feet)
    result = inspect_robot(
        Source(options.robot, feet, options.srdf, not options.fixed_base, arguments)
    )
    for warning in result.warnings:
        warn(warning)
    if result.proposed:
        print(f'feet: {result.why_feet}', file=sys.stderr)
    ground: TerrainLike = options.terrain
    if folded(options.terrain) in READY_MADE:
        ground = ready_made(options.terrain, options.difficulty, options.seed)
    return Simulator(
        result.robot, options.model or 'ncp', ground, options.friction,
        time_step=options.time_step,
    )  # fmt: skip


# ------------------------------------------------ a recording


def recording_parser() -> argparse.ArgumentParser:
    """Return the command line of a recording."""
    result = base_parser()
    result.description = 'Show a recording in the browser.'
    add = result.add_argument
    add('recording', type=Path, help='file written with record:=FILE, or by a Recorder')
    names = ' '.join(model_names())
    add('--model', type=one_of('contact model', model_names()), metavar='MODEL',
        help=f'the run under another contact model as well, one of {names}')  # fmt: skip
    add('--side-by-side', action='store_true', help='robots beside each other, not superimposed')
    add('--speed', type=float, default=1.0, help='simulated over wall time, default 1')
    add('--at', type=float, default=0.0, metavar='S', help='time in the run to open at [s]')
    add('--begin', type=float, default=0.0, metavar='S', help='where --save begins in the run [s]')
    add('--duration', type=float, metavar='S', help='simulated time of --save [s]; default: all')
    return result


def show_recording(options: argparse.Namespace) -> None:
    """Serve the page of a recording, or save what happens in it."""
    positive('--speed', options.speed, '')
    if not is_installed():
        raise NotServed(NOT_INSTALLED)
    from contact_sim.view._playback import Playback, RecordingPage  # imports viser

    recording = Recording(options.recording)
    for version in recording.other_versions:
        warn(f'recorded with {version}: last bits may differ')
    if options.save:
        print(save_recording(recording, options))
        return
    server = page_server(options.host, options.port, recording.path.name)
    try:
        playback = Playback(recording, options.model)
        playback.speed = options.speed
        playback.seek(step_at('--at', options.at, playback.timeline))
        warn(playback.timeline.damage)
        warn(warning_about(options.host, options.port))
        with closing(playback):
            page = RecordingPage(server, playback, options.side_by_side)
            run_page(page, str(recording.path), options)
    finally:
        server.stop()


def step_at(name: str, time: float, recorded: Timeline) -> int:
    """Return the number of the step at a time since the beginning of a recording [s].

    Raises:
        InvalidInput: a time that is not inside the recording.
    """
    h, end = recorded.time_step, recorded.steps
    step = round(finite(name, time) / h)
    if not 0 <= step < end:
        raise InvalidInput(
            f'{name} = {shown(time)} s: expected one of 0 to less than {end * h:g} s, '
            f'which {shown(str(recorded.recording.path))} lasts'
        )
    return step


def save_recording(recording: Recording, options: argparse.Namespace) -> Path:
    """Write a recording as a page or a clip; return its path."""
    from contact_sim.view._playback import PlaybackFrame, RecordingScenes, timeline_with_steps

    recorded, other = timeline_with_steps(recording), None
    warn(recorded.damage)
    if options.model:
        other = Timeline(recording, options.model)
    h, end = recorded.time_step, recorded.steps
    begin = step_at('--begin', options.begin, recorded)
    if options.duration is not None:
        end = min(end, begin + round(positive('--duration', options.duration, 's') / h))
    steps = range(begin, end + 1, max(1, round(options.speed / (FPS * h))))
    frames = (
        PlaybackFrame(recorded.at(step), other.at(step) if other is not None else None)
        for step in steps
    )
    first = next(frames)
    with quiet_server() as server:
        scenes = RecordingScenes(server, recorded.robot)
        scenes.show(first, options.side_by_side)
        camera = scenes.look(first)

        def pictures() -> Iterator[object]:
            yield first
            for frame in frames:
                yield scenes.show(frame, options.side_by_side)

        if options.save.endswith('.html'):
            return write_page(options.save, server, pictures(), FPS)
        return write_clip(options.save, server, pictures(), FPS, camera)


if __name__ == '__main__':
    sys.exit(main())
