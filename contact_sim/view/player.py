"""A recording in the browser: python -m contact_sim.view run.npz."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contact_sim._validation import finite, positive
from contact_sim.contact_models import contact_models
from contact_sim.errors import InvalidInput, shown
from contact_sim.replay._recording import Recording
from contact_sim.replay._timeline import Timeline
from contact_sim.view._playback import Pair, Playback, timeline_with_steps
from contact_sim.view._server import (
    NOT_INSTALLED,
    NotServed,
    address_of,
    is_installed,
    page_server,
    warning_about,
)

if TYPE_CHECKING:
    import viser

PORT = 8080
FPS = 30.0
"""Pictures per second of what is saved."""


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    result = argparse.ArgumentParser(prog='python -m contact_sim.view', description=__doc__)
    add = result.add_argument
    add('recording', type=Path, help='file written with record:=FILE, or by a Recorder')
    names = ' '.join(contact_models())
    add('--model', choices=contact_models(), metavar='MODEL',
        help=f'the run under another contact model as well, one of {names}')  # fmt: skip
    add('--side-by-side', action='store_true', help='robots beside each other, not superimposed')
    add('--port', type=int, default=PORT, help=f'of the page, default {PORT}')
    add('--host', default='localhost', help='name or address at which the page can be reached')
    add('--open', action='store_true', help='open the page in the browser')
    add('--speed', type=float, default=1.0, help='simulated over wall time, default 1')
    add('--save', metavar='FILE',
        help='write a moving scene (.html, .mp4, .gif, .webp), serve none')  # fmt: skip
    add('--begin', type=float, default=0.0, metavar='S', help='where --save begins in the run [s]')
    add('--duration', type=float, metavar='S', help='simulated time of --save [s]; default: all')
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the page of a recording until Ctrl-C, or save what happens in it; return 0.

    Raises:
        ContactSimError: a recording that cannot be shown, a page that cannot be served or saved.
    """
    given = parser().parse_args(arguments)
    positive('--speed', given.speed, '')
    if not is_installed():
        raise NotServed(NOT_INSTALLED)
    recording = Recording(given.recording)
    for version in recording.other_versions:
        warn(f'recorded with {version}: last bits may differ')
    if given.save:
        print(save(recording, given))
    else:
        serve(recording, given)
    return 0


def warn(text: str) -> None:
    """Say a warning, if there is one."""
    if text:
        print(f'warning: {text}', file=sys.stderr)


def serve(recording: Recording, given: argparse.Namespace) -> None:
    """Serve the page of a recording for ever."""
    server = page_server(given.host, given.port, recording.path.name)
    try:
        playback = Playback(recording, given.model)
        playback.speed = given.speed
        warn(playback.timeline.damage)
        warn(warning_about(given.host, given.port))
        play(server, playback, given)
    finally:
        server.stop()


def play(server: viser.ViserServer, playback: Playback, given: argparse.Namespace) -> None:
    """Show a recording on the page of a server for ever."""
    from contact_sim.view._playback import RecordingPage  # imports viser

    page = RecordingPage(server, playback, given.side_by_side)
    address = address_of(given.host, given.port)
    print(f'{playback.recording.path}: {address} (Ctrl-C ends)', flush=True)
    if given.open and not webbrowser.open(address):
        print('no browser to open; go to the address in one', file=sys.stderr)
    try:
        page.run(lambda: True)
    finally:
        playback.close()


def save(recording: Recording, given: argparse.Namespace) -> Path:
    """Write what happens in a recording as a page or a clip; return its path.

    Raises:
        ContactSimError: a recording that cannot be shown, a file that cannot be written.
    """
    from contact_sim.view._playback import Stage
    from contact_sim.view._saved import quiet_server, write_clip, write_page

    runs = [timeline_with_steps(recording)]
    warn(runs[0].damage)
    if given.model:
        runs.append(Timeline(recording, given.model))
    steps = steps_of(runs[0], given)
    pictures = pairs(runs, steps)
    first = next(pictures)
    with quiet_server() as server:
        stage = Stage(server, runs[0].robot)
        stage.show(first, given.side_by_side)
        camera = stage.look(first)

        def shows() -> Iterator[object]:
            yield first
            for pair in pictures:
                yield stage.show(pair, given.side_by_side)

        if given.save.endswith('.html'):
            return write_page(given.save, server, shows(), FPS)
        return write_clip(given.save, server, shows(), FPS, camera)


def steps_of(timeline: Timeline, given: argparse.Namespace) -> range:
    """Return the steps of which pictures are taken.

    Raises:
        InvalidInput: a part that the recording does not have.
    """
    h, end = timeline.time_step, timeline.steps
    begin = round(finite('--begin', given.begin) / h)
    if not 0 <= begin < end:
        raise InvalidInput(
            f'--begin = {shown(given.begin)} s: expected one of 0 to less than {end * h:g} s, '
            f'which {shown(str(timeline.recording.path))} lasts'
        )
    if given.duration is not None:
        end = min(end, begin + round(positive('--duration', given.duration, 's') / h))
    return range(begin, end + 1, max(1, round(given.speed / (FPS * h))))


def pairs(runs: Sequence[Timeline], steps: Sequence[int]) -> Iterator[Pair]:
    """Yield what is to be seen at some steps of one run, or of two."""
    for step in steps:
        moments = [run.at(step) for run in runs]
        yield Pair(moments[0], moments[1] if len(moments) > 1 else None)
