"""The web server of a page: where it may be reached, and why it cannot be served."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import socket
from typing import TYPE_CHECKING

from contact_sim.errors import ContactSimError

if TYPE_CHECKING:
    import viser

LOCAL = ('localhost', '127.0.0.1', '::1')
"""Hosts that only this machine reaches."""
NOT_INSTALLED = "the viewer needs viser: pip install 'contact_sim[view]'"


class NotServed(ContactSimError):
    """A page that cannot be served; says why, and what to do."""


def is_installed() -> bool:
    """Return whether viser is there."""
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
    with contextlib.redirect_stdout(io.StringIO()):  # what a page is called is said elsewhere
        server = viser.ViserServer(host, port, label=title, verbose=False)
    if server.get_port() != port:  # viser goes on to the next one that is free
        server.stop()
        raise NotServed(f'port {port} of {host} is taken; choose another port')
    return server


def address_of(host: str, port: int) -> str:
    """Return the address under which a browser on this machine finds the page."""
    name = 'localhost' if host in (*LOCAL, '0.0.0.0', '::', '') else host
    return f'http://{name}:{port}'


def warning_about(host: str, port: int) -> str:
    """Return what to warn about where others can reach the page; '' where they cannot."""
    if host in LOCAL:
        return ''
    return (
        f'the page at port {port} of {host} has no password: whoever reaches it sees the '
        'simulation and commands it'
    )
