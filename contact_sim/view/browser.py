"""A headless Chromium that looks at a page of this process."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from signal import SIGKILL, SIGTERM

import viser

from contact_sim.errors import InvalidInput

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
ARGUMENTS = (
    '--headless', '--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader',
    '--use-angle=swiftshader', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update', '--mute-audio',
    '--hide-scrollbars',
)  # fmt: skip
LONGEST_START = 60.0
"""Time that a browser has to open the page [s]."""


@contextlib.contextmanager
def headless_chromium(port: int, size: tuple[int, int]) -> Iterator[None]:
    """Have a Chromium look at the page on a port of this machine.

    Args:
        port: of the page.
        size: width and height of its window in pixels.

    Raises:
        InvalidInput: there is no Chromium.
    """
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise InvalidInput(
            f'no browser: {", ".join(NAMES)} are not on PATH; install Chromium '
            '(apt-get install chromium), or save an .html page, which needs none'
        )
    with tempfile.TemporaryDirectory(
        prefix='contact_sim-chromium-', ignore_cleanup_errors=True
    ) as profile:
        width, height = size
        command = [
            program, *ARGUMENTS, f'--user-data-dir={profile}', f'--window-size={width},{height}',
            f'http://127.0.0.1:{port}',
        ]  # fmt: skip
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a browser with the processes that it started: they are a group of their own."""
    for signal in (SIGTERM, SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5.0)


def client_of(server: viser.ViserServer) -> viser.ClientHandle:
    """Return the browser that looks at a server, as soon as it does.

    Raises:
        InvalidInput: none came.
    """
    deadline = time.monotonic() + LONGEST_START
    while time.monotonic() < deadline:
        clients = list(server.get_clients().values())
        if clients:
            return clients[0]
        time.sleep(0.05)
    raise InvalidInput(f'Chromium did not open the page within {LONGEST_START:.0f} s')
