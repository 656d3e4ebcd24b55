"""The page of a simulation in another process, which starts this one and ends it."""

from __future__ import annotations

import argparse
import os
import socket
import sys

from contact_sim.view.channel import Channel
from contact_sim.view.page import Page
from contact_sim.view.remote import RemoteSession
from contact_sim.view.server import address_of, page_server

NICE = 5
"""By how much the viewer stands back behind the simulation."""


def serve(channel: Channel, descriptor: int, host: str, port: int) -> None:
    """Serve the page until the process at the other end of the channel is gone.

    Args:
        channel: to the process that simulates.
        descriptor: of the file behind the memory of its feed.
        host: name or address of this machine.
        port: of the page.

    Raises:
        ContactSimError: the page cannot be served, or the robot not be built here.
    """
    session = RemoteSession(channel, descriptor, on_end=lambda: os._exit(0))
    server = page_server(host, port, 'contact_sim')
    session.wait()
    channel.send('serving', address=address_of(host, port))
    Page(server, session).run(lambda: True)


def parser() -> argparse.ArgumentParser:
    """Return the command line, which `Child` writes."""
    result = argparse.ArgumentParser(
        prog='python -m contact_sim.view.served',
        description='The page of a node, which starts this itself; for people: contact_sim.view.',
    )
    result.add_argument('memory', type=int, help='descriptor of the memory with the newest step')
    result.add_argument('channel', type=int, help='descriptor of a socket to the node')
    result.add_argument('host', help='name or address at which the page can be reached')
    result.add_argument('port', type=int, help='of the page')
    return result


def main(arguments: list[str] | None = None) -> int:
    """Serve the page; tell the other process why where that cannot be."""
    given = parser().parse_args(arguments)
    os.nice(NICE)
    channel = Channel(socket.socket(fileno=given.channel))
    try:
        serve(channel, given.memory, given.host, given.port)
    except Exception as error:  # nobody reads a traceback here
        channel.send('failed', reason=str(error) or repr(error))
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
