"""The viewer as a process of its own, seen from the process that simulates; needs no viser.

The loop writes into the feed and never waits. Threads here talk to the viewer: one hears what its
page asks for, one tells it the world, the settings and the answers.
"""

from __future__ import annotations

import dataclasses
import logging
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import shortened
from contact_sim.replay.header import header_of, model_header
from contact_sim.simulation.simulator import Simulator
from contact_sim.view.channel import Channel, Message
from contact_sim.view.feed import Feed, World
from contact_sim.view.server import NOT_INSTALLED, is_installed, warning_about
from contact_sim.view.session import Chosen, Offers

PROGRAM = '-m', 'contact_sim.view.served'
"""Of the viewer, as Python's arguments."""
TELLING = 0.1
"""Wall seconds between two looks at what the viewer has to be told."""
GRACE = 3.0
"""Wall seconds in which a viewer ends that has nobody to show any more."""


@dataclasses.dataclass(frozen=True)
class Told:
    """What the page shows besides the step."""

    chosen: Chosen
    failure: str
    """Why time stands still until a reset; '' while it does not."""


class Child:
    """The viewer's process, from its start to its end; a failure of it is none of the simulation.

    Args:
        sim: what is shown.
        feed: of its steps.
        offers: what can be chosen in the page.
        told: returns what the page shows besides; called by a thread of this object.
        ask: called by a thread of this object with what the page asks for; has it answered with
            `answer`, and raises nothing.
        say: called with a line that people should know, and its level of `logging`.

    Attributes:
        address: of the page; '' before it is served.
        complaint: why it is not, or no longer; '' while all is well.
    """

    def __init__(
        self,
        sim: Simulator,
        feed: Feed,
        offers: Offers,
        told: Callable[[], Told],
        ask: Callable[[Message], None],
        say: Callable[[str, int], None],
    ) -> None:
        self._sim, self._feed, self._offers = sim, feed, offers
        self._told, self._ask, self._say = told, ask, say
        self._outgoing: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = False
        self.address = self.complaint = ''

    def start(self, host: str, port: int) -> None:
        """Serve the page at a port of a host name or address of this machine."""
        if not is_installed():
            self._complain(NOT_INSTALLED, logging.ERROR)
            return
        if warning := warning_about(host, port):
            self._say(warning, logging.WARNING)
        ours, theirs = socket.socketpair()
        memory = self._feed.memory.descriptor
        words = str(memory), str(theirs.fileno()), host, str(port)
        command = [sys.executable, *PROGRAM, *words]
        self._process = subprocess.Popen(
            command,
            pass_fds=(memory, theirs.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the simulation, and that the viewer
        )
        theirs.close()
        self._channel = Channel(ours)
        self._threads = [
            threading.Thread(target=run, name=f'viewer: {run.__name__}', daemon=True)
            for run in (self._hear, self._tell)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def process_id(self) -> int:
        """Of the viewer that was started."""
        assert self._process is not None, 'start() comes first'
        return self._process.pid

    def answer(self, number: int, refusal: str = '') -> None:
        """Tell the page that what it asked for is done, or why it is not."""
        self._outgoing.put({'kind': 'answer', 'number': number, 'refusal': refusal})

    def close(self) -> None:
        """End the viewer; twice does nothing."""
        process = self._process
        if process is None or self._ending:
            return
        self._ending = True
        self._outgoing.put(None)
        self._channel.close()
        process.terminate()  # it has nothing to lose
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(GRACE)

    # ---------------------------------------------------------------- the threads

    def _hear(self) -> None:
        for message in self._channel.messages():
            if message['kind'] == 'ask':
                self._ask(message)
            elif message['kind'] == 'serving':
                self.address = message['address']
                self._say(f'the viewer is at {self.address}', logging.INFO)
            elif message['kind'] == 'failed':
                reason = f'the viewer does not run: {shortened(message["reason"])}'
                self._complain(reason, logging.ERROR)
        self._outgoing.put(None)
        if not self._ending and not self.complaint:
            reason = 'the viewer has ended; the simulation goes on without it'
            self._complain(reason, logging.WARNING)

    def _tell(self) -> None:
        world: World | None = None
        before: Told | None = None
        try:
            while True:
                now = self._feed.world
                if now is not world and (header := self._header_of(now)):
                    self._channel.send(
                        'world',
                        number=now.number,
                        length=now.length,
                        header=header,
                        shadows=[model_header(one) for one in models_of(now)],
                        offers=vars(self._offers) | {'fixed': sorted(self._offers.fixed)},
                    )
                    world = now
                if (told := self._told()) != before:
                    self._channel.send('told', **dataclasses.asdict(told))
                    before = told
                try:
                    message = self._outgoing.get(timeout=TELLING)
                except queue.Empty:
                    continue
                if message is None:
                    return
                self._channel.send(**message)
        except OSError:
            return  # the viewer is gone, which the other thread says

    def _header_of(self, world: World) -> Message | None:
        """Return a world in words; None where the simulation is in another one by now."""
        sim = self._sim
        header = header_of(sim, 1, None)  # read while the loop goes on: compared afterwards
        same = sim.terrain is world.ground and sim.constraints is world.constraints
        return header if same else None

    def _complain(self, reason: str, level: int) -> None:
        self.address, self.complaint = '', reason
        self._say(reason, level)


def models_of(world: World) -> list[ContactModel]:
    """Return the contact models in the shadow."""
    return [] if world.shadows is None else world.shadows.models
