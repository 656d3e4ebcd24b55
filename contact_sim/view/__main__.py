"""A simulation or a recording in the browser: python -m contact_sim.view go1."""

from __future__ import annotations

import argparse
import logging
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import pairwise

from contact_sim.collision._terrain import TerrainLike
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError
from contact_sim.inspect._report import Source, understood
from contact_sim.precompile import compiling_meanwhile
from contact_sim.replay._recorder import Recorder
from contact_sim.robot._catalogue import default_robot
from contact_sim.robot._files import xacro_arguments
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.terrain._generator import READY_MADE, ground_from_file, ready_made
from contact_sim.view._live import LiveSession
from contact_sim.view._server import (
    NOT_INSTALLED,
    NotServed,
    address_of,
    is_installed,
    page_server,
    warning_about,
)
from contact_sim.view._session import HOLD, Motions, own_controller

PORT = 8080
PICTURE = 1.0 / 30.0
"""Seconds between two pictures of what is saved."""
NAMED = ('plane', 'inclined_plane')
"""Grounds that `Simulator` knows by name."""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    grounds = ', '.join((*NAMED, *READY_MADE))
    result = argparse.ArgumentParser(prog='python -m contact_sim.view', description=__doc__)
    add = result.add_argument
    add('robot', nargs='?', default=default_robot(),
        help='robot of the catalogue, URDF or xacro file, or a recording (.npz)')  # fmt: skip
    add('--port', type=int, default=PORT, help=f'of the page, default {PORT}')
    add('--host', default='localhost', help='name or address at which the page can be reached')
    add('--open', action='store_true', help='open the page in the browser')
    add('--model', choices=contact_models(), metavar='MODEL',
        help='contact model, one of ' + ' '.join(contact_models()))  # fmt: skip
    add('--terrain', default='plane', help=f'ground: {grounds}, or a file')
    add('--difficulty', type=float, default=0.5, help='of a ready-made ground, 0 to 1')
    add('--seed', type=int, default=0, help='of a ready-made ground')
    add('--friction', type=float, default=0.8, metavar='MU', help='Coulomb coefficient')
    add('--time-step', type=float, default=1e-3, metavar='S', help='h [s]')
    add('--speed', type=float, default=1.0, help='simulated over wall time, 0: as fast as it can')
    add('--paused', action='store_true', help='begin with time standing still')
    add('--controller', default=HOLD, metavar='NAME',
        help='hold, stand, squat, sway, trot, or module:name of your own')  # fmt: skip
    add('--velocity', type=float, nargs=3, default=(0.0, 0.0, 0.0), metavar=('X', 'Y', 'TURN'),
        help='of a trot, forwards and sideways [m/s], turn [rad/s]')  # fmt: skip
    add('--record', metavar='FILE', help='record the session (.npz)')
    add('--save', metavar='FILE',
        help='write a moving scene (.html, .mp4, .gif, .webp), serve none')  # fmt: skip
    add('--duration', type=float, default=5.0, metavar='S', help='simulated time of --save [s]')
    add('--feet', nargs='*', metavar='LINK', help='links of the feet')
    add('--srdf', metavar='FILE', help='SRDF with poses and end effectors')
    add('--fixed-base', action='store_true', help='without a floating base')
    add('--xacro-arguments', nargs='*', metavar='NAME:=VALUE', help='arguments of a xacro')
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve a page until Ctrl-C.

    Returns:
        0; 1 with one line of reason where it cannot be served, or not with what it should show.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(format='%(message)s')
    try:
        if names_recording(words):
            from contact_sim.view.player import main as play

            return play(words)
        return live(parser().parse_args(words))
    except ContactSimError as error:
        print(f'{parser().prog}: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def names_recording(words: Sequence[str]) -> bool:
    """Return whether a recording is to be shown; one that is to be written is none."""
    places = [b for a, b in pairwise(['', *words]) if a != '--record' and not b.startswith('-')]
    return any(place.endswith('.npz') for place in places)


def live(given: argparse.Namespace) -> int:
    """Serve the page of a simulation, or save what happens in it.

    Raises:
        ContactSimError: a simulation that cannot be, a page that cannot be served or saved.
    """
    own = own_controller(given.controller) if ':' in given.controller else None
    sim = simulator(given)
    recorder = Recorder(sim, given.record) if given.record else nullcontext()
    motions, paused = Motions(sim.robot, own), given.paused or bool(given.save)
    with recorder, closing(LiveSession(sim, motions, given.speed, paused)) as session:
        session.set_velocity(*given.velocity)
        session.set_controller(own[0] if own else given.controller)
        if given.save:
            save(session, given.save, given.duration)
        else:
            serve(session, given)
    return 0


def serve(session: LiveSession, given: argparse.Namespace) -> None:
    """Serve the page of a session for ever."""
    server = page_server(given.host, given.port, 'contact_sim')
    from contact_sim.view._page import Page  # imports viser, which `page_server` has found

    page, address = Page(server, session), address_of(given.host, given.port)
    if warning := warning_about(given.host, given.port):
        print(f'warning: {warning}', file=sys.stderr)
    print(f'{session.robot.name}: {address} (Ctrl-C ends)', flush=True)
    if given.open and not webbrowser.open(address):
        print('no browser to open; go to the address in one', file=sys.stderr)
    try:
        with compiling_meanwhile():
            page.run(lambda: True)
    finally:
        server.stop()


def save(session: LiveSession, path: str, duration: float) -> None:
    """Write what happens in the first `duration` [s] of a session as a page or a clip.

    Raises:
        ContactSimError: a file that cannot be written.
    """
    if not is_installed():
        raise NotServed(NOT_INSTALLED)
    steps = max(1, round(PICTURE / session.chosen().time_step))

    def reports() -> Iterator[StepReport]:
        for _ in range(max(1, round(duration / PICTURE))):
            session.step(steps)
            yield session.latest().report

    from contact_sim.view._saved import save_clip, save_page

    write = save_page if path.endswith('.html') else save_clip
    print(write(path, session.robot, session.ground, reports(), fps=1.0 / PICTURE))


def simulator(given: argparse.Namespace) -> Simulator:
    """Return the simulator that the command line describes.

    Raises:
        ContactSimError: a robot, ground or number that cannot be.
    """
    said = None if given.xacro_arguments is None else xacro_arguments(given.xacro_arguments) or {}
    feet = None if given.feet is None else tuple(given.feet)
    found = understood(Source(given.robot, feet, given.srdf, not given.fixed_base, said))
    for warning in found.warnings:
        print(f'warning: {warning}', file=sys.stderr)
    if found.proposed:
        print(f'feet: {found.why_feet}', file=sys.stderr)
    terrain = ground(given)
    return Simulator(
        found.robot, given.model or 'ncp', terrain, given.friction, time_step=given.time_step
    )


def ground(given: argparse.Namespace) -> TerrainLike:
    """Return the ground of a name or a file.

    Raises:
        InvalidInput: there is none.
    """
    if given.terrain in NAMED:
        return str(given.terrain)
    if given.terrain in READY_MADE:
        return ready_made(given.terrain, given.difficulty, given.seed)
    return ground_from_file(given.terrain)


if __name__ == '__main__':
    sys.exit(main())
