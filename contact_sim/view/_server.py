"""The web server of a page, and a headless Chromium that looks at one; no viser at import."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING

from contact_sim.errors import ContactSimError, InvalidInput

if TYPE_CHECKING:
    import viser

LOCAL = ('localhost', '127.0.0.1', '::1')
"""Hosts that only this machine reaches."""
NOT_INSTALLED = "the viewer needs viser: pip install 'contact_sim[view]'"


class NotServed(ContactSimError):
    """A page cannot be served; the message has the reason and what to do."""


def is_installed() -> bool:
    """Return whether viser is installed."""
    return importlib.util.find_spec('viser') is not None


def page_server(host: str, port: int, title: str) -> viser.ViserServer:
    """Return the server of a page at a port of a name or address of this machine.

    Raises:
        NotServed: viser is not installed, or the port cannot be had.
    """
    if not is_installed():
        raise NotServed(NOT_INSTALLED)
    import viser

    try:
        socket.create_server((host, port)).close()
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise NotServed(f'port {port} of {host}: {reason}; choose another port') from error
    with contextlib.redirect_stdout(io.StringIO()):  # the caller prints the address
        server = viser.ViserServer(host, port, label=title, verbose=False)
    if server.get_port() != port:  # viser goes on to the next one that is free
        server.stop()
        raise NotServed(f'port {port} of {host} is taken; choose another port')
    return server


@contextlib.contextmanager
def quiet_server() -> Iterator[viser.ViserServer]:
    """A server for this process alone, on a free port, that prints nothing."""
    import viser

    logging.getLogger('websockets.server').setLevel(logging.CRITICAL)  # a browser may just leave
    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host='127.0.0.1', port=0, verbose=False)
    server.scene.configure_default_lights(cast_shadow=False)
    try:
        yield server
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            server.stop()


def address_of(host: str, port: int) -> str:
    """Return the address under which a browser on this machine finds the page."""
    name = 'localhost' if host in (*LOCAL, '0.0.0.0', '::', '') else host
    return f'http://{name}:{port}'


def warning_about(host: str, port: int) -> str:
    """Return a warning if other machines can reach the page, else ''."""
    if host in LOCAL:
        return ''
    return (
        f'the page at port {port} of {host} has no password: whoever reaches it sees the '
        'simulation and commands it'
    )


# ------------------------------------------------ a headless Chromium

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
ARGUMENTS = (
    '--headless', '--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader',
    '--use-angle=swiftshader', '--disable-quic', '--no-first-run', '--disable-sync',
    '--disable-background-networking', '--disable-component-update', '--mute-audio',
    '--hide-scrollbars',
)  # fmt: skip
START_TIMEOUT = 60.0
"""Time that a browser has to open the page [s]."""


@contextlib.contextmanager
def headless_chromium(port: int, size: tuple[int, int]) -> Iterator[None]:
    """Open the page on a port of this machine in a Chromium.

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
            for signal in (SIGTERM, SIGKILL):  # to the group of its processes
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5.0)


def client_of(server: viser.ViserServer) -> viser.ClientHandle:
    """Return the browser that has the page of a server open; wait for it.

    Raises:
        InvalidInput: none came.
    """
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        clients = list(server.get_clients().values())
        if clients:
            return clients[0]
        time.sleep(0.05)
    raise InvalidInput(f'Chromium did not open the page within {START_TIMEOUT:.0f} s')
