"""States and commands of lockstep on a Unix socket, for controllers on the same machine.

The messages are those of the topics joint_states, joint_commands and ~/lockstep_ack, serialised as
on these. A packet goes from process to process without DDS, and the thread of the loop itself
takes the answer: no other thread is woken. Packets (SOCK_SEQPACKET):

1. a controller connects and sends `GREETING` and the name of its robot, '' for the only one;
2. the simulation sends each JointState of that robot, or `REFUSAL` with a reason, and hangs up;
3. the controller answers with `COMMAND` and a JointState, or `ACKNOWLEDGEMENT` and a Header.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from contact_sim.errors import InvalidInput, shortened

GREETING = b'contact_sim lockstep 1\n'
COMMAND, ACKNOWLEDGEMENT, REFUSAL = b'c', b'a', b'!'
LARGEST = 1 << 16
"""Bytes of a packet from a controller; a JointState of 500 joints is less."""
LONGEST_PATH = 107
"""Bytes of the path of a Unix socket."""

Take = Callable[[bytes], None]
"""Takes a serialised message; raises what it likes where that cannot be read."""


@dataclass(frozen=True)
class Robot:
    """What takes the answers of the controllers of a robot."""

    command: Take
    """Takes a JointState."""
    acknowledge: Take
    """Takes a Header."""


class LockstepSocket:
    """Serves controllers that connect to the socket `path`; only one thread may call it.

    Only `wake` may be called by other threads. `log` is called with a line about who comes, who
    goes, and who is refused. Raises InvalidInput where there cannot be a socket.
    """

    def __init__(self, path: str, robots: Mapping[str, Robot], log: Callable[[str], None]) -> None:
        self.path, self._robots, self._log = path, robots, log
        self._listener = listening(path)
        self._peers: dict[int, _Peer] = {}
        self._alarm = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        for number in (self._listener.fileno(), self._alarm):
            self._poll.register(number, select.POLLIN)

    def listens(self, robot: str) -> bool:
        """Return whether a controller of a robot wants its states."""
        return any(peer.robot == robot for peer in self._peers.values())

    def send(self, robot: str, state: bytes) -> None:
        """Send a serialised JointState to the controllers of a robot."""
        for peer in tuple(self._peers.values()):
            if peer.robot == robot:
                try:
                    peer.socket.send(state)
                except OSError as error:  # it has gone, or reads nothing
                    self._leave(peer, shortened(error))

    def serve(self, patience: float) -> bool:
        """Take what has come, wait for it at most `patience` [s] or until `wake` is called.

        Returns whether a controller has come, which knows no state yet.
        """
        new = False
        for number, _ in self._poll.poll(1e3 * patience):
            if number == self._alarm:
                os.eventfd_read(self._alarm)
            elif number == self._listener.fileno():
                self._accept()
            elif number in self._peers:
                new |= self._take(self._peers[number])
        return new

    def wake(self) -> None:
        """End a call of `serve` in another thread."""
        os.eventfd_write(self._alarm, 1)

    def close(self) -> None:
        """Hang up, and remove the socket."""
        for peer in tuple(self._peers.values()):
            peer.socket.close()
        self._peers.clear()
        self._listener.close()
        os.close(self._alarm)
        Path(self.path).unlink(missing_ok=True)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        self._peers[connection.fileno()] = _Peer(connection)
        self._poll.register(connection, select.POLLIN)

    def _take(self, peer: _Peer) -> bool:
        try:
            data = peer.socket.recv(LARGEST)
        except OSError as error:
            self._leave(peer, shortened(error))
            return False
        if not data:
            self._leave(peer, '')
        elif peer.robot is None:
            return self._greet(peer, data)
        else:
            self._answer(peer, self._robots[peer.robot], data)
        return False

    def _greet(self, peer: _Peer, data: bytes) -> bool:
        name = data.removeprefix(GREETING).decode(errors='replace')
        if not data.startswith(GREETING):
            self._refuse(peer, f'expected {GREETING!r} and the name of a robot, got {data[:40]!r}')
        elif name not in self._robots:
            known = ', '.join(map(repr, self._robots))
            self._refuse(peer, f'unknown robot {shortened(name, 100)!r}; known: {known}')
        else:
            peer.robot = name
            self._log(f'lockstep: a controller{f" of {name}" if name else ""} has connected')
            return True
        return False

    def _answer(self, peer: _Peer, robot: Robot, data: bytes) -> None:
        takers = {COMMAND: robot.command, ACKNOWLEDGEMENT: robot.acknowledge}
        take = takers.get(data[:1])
        if take is None:
            self._refuse(peer, f'a packet begins with {data[:1]!r}, expected one of {[*takers]}')
            return
        try:
            take(data[1:])
        except Exception as error:  # of whatever reads the bytes
            self._refuse(peer, f'a packet cannot be read: {shortened(error)}')

    def _refuse(self, peer: _Peer, reason: str) -> None:
        with suppress(OSError):
            peer.socket.send(REFUSAL + reason.encode())
        self._leave(peer, reason)

    def _leave(self, peer: _Peer, reason: str) -> None:
        self._poll.unregister(peer.socket)
        del self._peers[peer.socket.fileno()]
        peer.socket.close()
        self._log(f'lockstep: a controller has disconnected{f": {reason}" if reason else ""}')


class _Peer:
    """A connection; `robot` is None before the greeting."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.robot: str | None = None


def listening(path: str) -> socket.socket:
    """Return a socket that listens at `path`, which only this user may connect to."""
    place = f'lockstep.socket = {path!r}'
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise InvalidInput(f'{place}: a path of more than {LONGEST_PATH} bytes; choose another')
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        try:
            listener.connect(path)
        except ConnectionRefusedError:
            if Path(path).is_socket():  # of a process that was killed
                Path(path).unlink()
        except OSError:
            pass
        else:
            raise InvalidInput(f'{place}: another simulation listens there; choose another')
        listener.close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        Path(path).chmod(0o600)
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInput(f'{place}: {error.strerror}; choose a file that can be made') from error
    except InvalidInput:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
