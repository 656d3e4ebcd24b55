"""The page of a simulation beside it: pictures per second, real-time factor, shares of a core.

    python benchmarks/viewer.py [--robot go1] [--seconds 10] [--chromium]

Every row runs the same simulation at real-time factor 1, held by its joints, in one process with
the page; the shares of a core are those of its threads. A reader is another process that takes
what a browser is sent and draws nothing: there a graphics card would. --chromium adds a browser
that draws with the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec
import viser
import websockets
from websockets.typing import Subprotocol

from contact_sim import Simulator, load_robot
from contact_sim.view.browser import client_of, headless_chromium
from contact_sim.view.live import LiveSession
from contact_sim.view.page import Page
from contact_sim.view.saved import quiet_server

WARM_UP = 2.0
"""Wall seconds before the measurement [s]."""
LOOKING = {
    'type': 'ViewerCameraMessage', 'wxyz': (1.0, 0.0, 0.0, 0.0), 'position': (0.0, 0.0, 0.0),
    'fov': 1.0, 'near': 0.1, 'far': 100.0, 'image_height': 480, 'image_width': 640,
    'look_at': (0.0, 0.0, 1.0), 'up_direction': (0.0, 0.0, 1.0),
}  # fmt: skip
"""What a browser says first."""
Readers = Callable[[int], contextlib.AbstractContextManager[None]]


@dataclass(frozen=True)
class Load:
    """What a run cost."""

    pictures: float
    """Per second [1/s]."""
    real_time_factor: float
    """Simulated over wall time [-]."""
    simulation: float
    """Share of a core of the thread that steps [-]."""
    drawing: float
    """Share of a core of the thread that moves the scene [-]."""
    sending: float
    """Share of a core of all other threads: the server of the page [-]."""


def shares() -> dict[str, float]:
    """Return the processor time of this process by what its threads do [s]."""
    spent = {'simulation': 0.0, 'drawing': 0.0}
    names = {'simulation': 'simulation', threading.current_thread().name: 'drawing'}
    for thread in threading.enumerate():
        role = names.get(thread.name)
        if role is not None and thread.ident is not None:
            spent[role] += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return spent | {'sending': time.process_time() - sum(spent.values())}


def measured(robot: str, seconds: float, page: bool, readers: Readers) -> Load:
    """Run a simulation for some wall time, with a page or without; return what it cost."""
    with quiet_server() as server:
        session = LiveSession(Simulator(load_robot(robot)))
        try:
            if not page:
                return _run(session, None, False, seconds)
            shown = Page(server, session)
            with readers(server.get_port()):
                watched = readers is not nobody
                if watched:
                    client_of(server)
                return _run(session, shown, watched, seconds)
        finally:
            session.close()


def _run(session: LiveSession, page: Page | None, watched: bool, seconds: float) -> Load:
    pictures, begin = 0, time.perf_counter() + WARM_UP
    marks: list[tuple[float, float, int, dict[str, float]]] = []

    def wanted() -> bool:
        nonlocal pictures
        pictures += 1
        now = time.perf_counter()
        if now >= begin + seconds * len(marks):
            marks.append((now, session.latest().report.time, pictures, shares()))
        return len(marks) < 2

    if page is not None:
        page.run(wanted)
    else:
        while wanted():
            time.sleep(0.05)
    (wall, simulated, drawn, before), (end, later, last, after) = marks
    cost = {name: (after[name] - before[name]) / (end - wall) for name in after}
    rate = (last - drawn) / (end - wall) if watched else 0.0
    return Load(rate, (later - simulated) / (end - wall), **cost)


@contextlib.contextmanager
def nobody(port: int) -> Iterator[None]:
    """Have nobody look at the page."""
    yield


@contextlib.contextmanager
def reader(port: int) -> Iterator[None]:
    """Have a process take what the page is sent."""
    process = multiprocessing.get_context('spawn').Process(target=_read, args=(port,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


@contextlib.contextmanager
def chromium(port: int) -> Iterator[None]:
    """Have a Chromium draw the page with the processor."""
    with headless_chromium(port, (640, 480)):
        yield


def _read(port: int) -> None:
    async def take() -> None:
        protocol = Subprotocol(f'viser-v{viser.__version__}')
        address = f'ws://127.0.0.1:{port}'
        async with websockets.connect(address, subprotocols=[protocol], max_size=None) as socket:
            await socket.send(msgspec.msgpack.encode(LOOKING))
            async for _ in socket:
                pass

    with contextlib.suppress(websockets.ConnectionClosed):
        asyncio.run(take())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--seconds', type=float, default=10.0)
    parser.add_argument('--chromium', action='store_true', help='a row with one that draws')
    given = parser.parse_args()
    rows: list[tuple[str, bool, Readers]] = [
        ('no page', False, nobody), ('a page, nobody looks', True, nobody),
        ('a page, one reader', True, reader),
    ]  # fmt: skip
    if given.chromium:
        rows.append(('a page, Chromium draws', True, chromium))
    print(f'{given.robot}, {given.seconds:g} s each, {os.cpu_count()} cores, '
          f'load {os.getloadavg()[0]:.1f}')  # fmt: skip
    print(
        f'{"":24}{"pictures/s":>11}{"real time":>11}{"simulation":>12}{"drawing":>9}{"sending":>9}'
    )
    for name, page, readers in rows:
        load = measured(given.robot, given.seconds, page, readers)
        spent = ''.join(f'{x:12.1%}' for x in (load.simulation, load.drawing, load.sending))
        print(f'{name:24}{load.pictures:12.1f}{load.real_time_factor:12.3f}{spent}', flush=True)


if __name__ == '__main__':
    main()
