"""What the page of a simulation costs: pictures per second, real-time factor, shares of a core.

    python benchmarks/viewer.py [--robot go1] [--seconds 10] [--chromium]

The robot trots if it can, in one process with the page; the shares of a core are those of the
threads of this process. Whoever has the page open is a process of its own that decodes what it is
sent and draws nothing: there a graphics card would. --chromium opens the page in a headless
Chromium besides, which draws with the processor.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import viser
import zstandard
from viser import _messages
from websockets.sync.client import connect

from contact_sim import Simulator, load_robot
from contact_sim.view._page import Page
from contact_sim.view._process import address_of
from contact_sim.view._saved import client_of, headless_chromium, quiet_server
from contact_sim.view._session import LiveSession

CAMERA = _messages.ViewerCameraMessage(
    (1.0, 0.0, 0.0, 0.0), (2.0, 2.0, 2.0), 1.0, 0.01, 1000.0, 600, 800, (0.0, 0.0, 0.0),
    (0.0, 0.0, 1.0),
)  # fmt: skip
"""What a browser sends first."""
WARM_UP = 1.0
"""Wall seconds of meshes and all else that is sent once."""
ROLES = {'simulation': 'simulation', 'page': 'drawing'}
"""What the threads of these names do; all else is sending."""


@dataclass(frozen=True)
class Case:
    """One row."""

    name: str
    speed: float
    """Simulated over wall time that is asked for, 0: as fast as possible."""
    seen: bool
    """Whether somebody has the page open."""
    chromium: bool = False
    """Whether a Chromium has, too."""


CASES = (
    Case('real time, nobody looks', 1.0, False), Case('real time, page open', 1.0, True),
    Case('fastest, nobody looks', 0.0, False), Case('fastest, page open', 0.0, True),
)  # fmt: skip
DRAWN = Case('real time, Chromium draws', 1.0, True, chromium=True)
HEADS = 'factor', 'pictures/s', 'MB/s', 'simulation', 'drawing', 'sending'


def shares() -> list[float]:
    """Return the processor time of this process: simulation, drawing, sending [s]."""
    spent = dict.fromkeys(ROLES.values(), 0.0)
    for thread in threading.enumerate():
        if thread.name in ROLES and thread.ident is not None:
            clock = time.pthread_getcpuclockid(thread.ident)
            spent[ROLES[thread.name]] += time.clock_gettime(clock)
    return [*spent.values(), time.process_time() - sum(spent.values())]


def measured(robot: str, case: Case, seconds: float) -> list[float]:
    """Return the figures of a row, in the order of HEADS."""
    sim = Simulator(load_robot(robot))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(quiet_server())
        session = LiveSession(sim, speed=case.speed, waits=False)
        stack.callback(session.close)
        if 'trot' in session.offers.controllers:
            session.set_controller('trot')
        ended, page = threading.Event(), Page(server, session)
        drawing = threading.Thread(
            target=page.run, args=(lambda: not ended.is_set(),), name='page'
        )
        stack.callback(drawing.join)
        stack.callback(ended.set)
        drawing.start()
        if case.chromium:
            stack.enter_context(headless_chromium(server.get_port(), (800, 600)))
            client_of(server)
            time.sleep(5.0)  # until it has what it draws
        client = _reader(server.get_port(), seconds) if case.seen else None
        while client is not None and len(server.get_clients()) < 1 + case.chromium:
            time.sleep(0.01)
        time.sleep(WARM_UP)
        begin = [time.perf_counter(), sim.time, *shares()]
        time.sleep(seconds)
        now = [time.perf_counter(), sim.time, *shares()]
        pictures, size = map(float, client.communicate()[0].split() if client else ('0', '0'))
        wall, simulated, *spent = (b - a for a, b in zip(begin, now, strict=True))
    return [simulated / wall, pictures, 1e-6 * size, *(share / wall for share in spent)]


def _reader(port: int, seconds: float) -> subprocess.Popen[str]:
    """Return a process that has the page open and prints what it was sent."""
    address = address_of('localhost', port)
    command = [sys.executable, __file__, '--read', address, '--seconds', str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read(address: str, seconds: float) -> None:
    """Decode what a page sends, as a browser does; print pictures and bytes per second."""
    protocol: Any = f'viser-v{viser.__version__}'
    decompress, sizes = zstandard.ZstdDecompressor().decompress, []
    page: Any = 'http://' + address.removeprefix('http://').partition('/')[0]
    with connect(
        address.replace('http', 'ws', 1), origin=page, subprotocols=[protocol], max_size=None
    ) as socket:
        socket.send(msgspec.msgpack.encode(CAMERA.as_serializable_dict()))
        begin = time.perf_counter() + WARM_UP
        while (left := begin + seconds - time.perf_counter()) > 0.0:
            with contextlib.suppress(TimeoutError):
                data = socket.recv(left)
                assert isinstance(data, bytes)
                length, packed = struct.unpack('<QQ', data[:16])
                msgspec.msgpack.decode(decompress(data[16 : 16 + packed], length))
                if time.perf_counter() > begin:
                    sizes.append(len(data))
    print(f'{len(sizes) / seconds:.1f} {sum(sizes) / seconds:.0f}')


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--seconds', type=float, default=10.0, help='of each row')
    parser.add_argument('--chromium', action='store_true', help='a row with one that draws')
    parser.add_argument('--read', metavar='ADDRESS', help='look at the page of another')
    given = parser.parse_args()
    if given.read is not None:
        read(given.read, given.seconds)
        return
    print(f'{given.robot}, {os.cpu_count()} cores, load of the machine {os.getloadavg()[0]:.1f}')
    print(' ' * 26 + ''.join(f'{head:>11}' for head in HEADS))
    for case in (*CASES, DRAWN) if given.chromium else CASES:
        figures = measured(given.robot, case, given.seconds)
        print(f'{case.name:26}' + ''.join(f'{figure:11.3f}' for figure in figures), flush=True)


if __name__ == '__main__':
    main()
