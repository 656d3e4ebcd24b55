"""The program of the viewer process: it serves the page of a simulation in another process.

That process starts this one and ends it, see `_process`. Here its robot and ground are built again
from their description, and its steps are read from the shared memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.dynamics._integration import integrator_code
from contact_sim.errors import ContactSimError
from contact_sim.replay._format import contact_model_of, ground_of, robot_of
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._shadow import Shadows, ShadowSolve, StepStart
from contact_sim.step._workspace import Workspace
from contact_sim.view._page import Page
from contact_sim.view._process import PageState, SharedRecord, address_of, page_server, received
from contact_sim.view._session import Capabilities, DisplayedStep, Session, Settings

NICE = 5
"""Increment of the niceness of the viewer: the simulation goes first."""
PATIENCE = 120.0
"""Wall seconds in which the simulation answers: a model may have to be compiled first."""
LOOK = 0.02
"""Wall seconds between two looks for the first step."""


def main(arguments: list[str] | None = None) -> int:
    """Serve the page until the other process has ended; tell it why if that is not possible."""
    parser = argparse.ArgumentParser(
        prog='python -m contact_sim.view.viewer_main',
        description='The page of a node, which starts this itself; for people: contact_sim.view.',
    )
    parser.add_argument('memory', type=int, help='descriptor of the memory with the newest step')
    parser.add_argument('connection', type=int, help='descriptor of a pipe to the node')
    parser.add_argument('host', help='name or address at which the page can be reached')
    parser.add_argument('port', type=int, help='of the page')
    options = parser.parse_args(arguments)
    os.nice(NICE)
    connection = Connection(options.connection)
    try:
        session = RemoteSession(connection, options.memory, on_end=lambda: os._exit(0))
        server = page_server(options.host, options.port, 'contact_sim')
        session.wait()
        connection.send(('serving', address_of(options.host, options.port)))
        Page(server, session).run(lambda: True)
    except Exception as error:  # nobody reads a traceback here
        connection.send(('failed', str(error) or repr(error)))
        return 1
    return 0


# ------------------------------------------------ the session


class Refused(ContactSimError):
    """A command that the simulation refuses, with its reason."""


class RemoteSession(Session):
    """A `Session` of the simulation at the other end of a connection.

    `robot` and `ground` are those of the step that `latest` has returned. A thread calls `on_end`
    when the other process has ended.
    """

    def __init__(
        self, connection: Connection, descriptor: int, on_end: Callable[[], None]
    ) -> None:
        super().__init__()
        self._connection, self._descriptor, self._on_end = connection, descriptor, on_end
        self._sending, self._numbers = threading.Lock(), itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[str]] = {}
        self.capabilities = Capabilities()
        self._described: RemoteWorld | None = None
        self._current: RemoteWorld | None = None
        self._memory: SharedRecord | None = None
        self._state: PageState | None = None
        self._displayed: DisplayedStep | None = None
        self._error: ContactSimError | None = None
        self._last_read = 0
        threading.Thread(target=self._listen, name='viewer: listen', daemon=True).start()

    def wait(self) -> None:
        """Return once there is a step to show; raise why its world cannot be built here."""
        while self._state is None or self._displayed is None:
            time.sleep(LOOK)
            self._read_step()
            if self._error is not None:
                raise self._error

    def settings(self) -> Settings:
        """Return the settings in force."""
        assert self._state is not None, 'wait() comes first'
        return self._state.settings

    def latest(self) -> DisplayedStep:
        """Return the newest step; the same object as long as there is none."""
        self._read_step()
        assert self._displayed is not None, 'wait() comes first'
        return self._displayed

    def close(self) -> None:
        """End the session; the simulation goes on."""
        with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)  # wakes the thread that listens

    def execute(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Have a command run in the simulation and wait until it is done."""
        number = next(self._numbers)
        answer = self._answers[number] = queue.SimpleQueue()
        try:
            with self._sending:
                self._connection.send(('command', number, name, arguments))
            refusal = answer.get(timeout=PATIENCE)
        except OSError as error:
            raise Refused(f'{name}: the simulation has ended') from error
        except queue.Empty:
            refusal = f'{name}: no answer in {PATIENCE:g} s'
        finally:
            del self._answers[number]
        if refusal:
            raise Refused(refusal)

    def _listen(self) -> None:
        for kind, *values in received(self._connection):
            if kind == 'answer':
                number, refusal = values
                if number in self._answers:
                    self._answers[number].put(refusal)
            elif kind == 'state':
                (self._state,) = values
            elif kind == 'capabilities':
                (self.capabilities,) = values
            elif kind == 'world':
                try:
                    self._described = RemoteWorld(self._described, *values)
                except ContactSimError as error:
                    self._error = error
                    text = f'what the simulation has changed to cannot be shown: {error}'
                    self._messages.put(text)
        self._on_end()

    def _read_step(self) -> None:
        """Take the newest step out of the memory, and make its world the current one."""
        described, current, displayed = self._described, self._current, self._displayed
        if described is None:
            return
        if self._memory is None:
            frames = self.capabilities.frames
            self._memory = SharedRecord(frames, described.length, self._descriptor)
        elif self._memory.length < described.length:  # room for these and all records before
            self._memory.resize(described.length)
        failure = '' if self._state is None else self._state.failure
        record = self._memory.read(self._last_read)
        worlds = {world.number: world for world in (current, described) if world is not None}
        if record is not None and record.world in worlds:  # else its description is under way
            self._current = world = worlds[record.world]
            self.robot, self.ground = world.robot, world.ground
            self._last_read = record.number
            report = world.report(record.numbers, record.model)
            solved = report.shadows.items()
            shadows = {name: shadow.step for name, shadow in solved if shadow.finite}
            self._displayed = DisplayedStep(
                report, record.wrenches, shadows, record.step_seconds,
                record.real_time_factor, failure,
            )  # fmt: skip
        elif displayed is not None and failure != displayed.failure:
            self._displayed = dataclasses.replace(displayed, failure=failure)


# ------------------------------------------------ its world


class RemoteWorld:
    """A `SharedWorld`, built again from a header as in a recording, and those of its shadows.

    Robot and ground are those of the world before, if they are the same.
    """

    def __init__(
        self,
        before: RemoteWorld | None,
        number: int,
        length: int,
        header: Mapping[str, Any],
        shadows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.number, self.length, self.header = number, length, header
        if before is not None and before.header['robot'] == header['robot']:
            self.robot: RobotModel = before.robot
        else:
            self.robot = robot_of(header['robot'], numbers_must_match=True)
        if before is not None and before.header['ground'] == header['ground']:
            self.ground: Terrain = before.ground
        else:
            self.ground = ground_of(header)
        constraints = [constraint_from_dict(words) for words in header['constraints']]
        self._work = work = Workspace(
            self.robot, self.ground, header['time_step'], constraints, bool(header.get('moments'))
        )
        work.data.q[:] = self.robot.reference_configuration()
        work.integrator[0] = integrator_code(header['integrator'])
        self._context, models = StepContext(work), [contact_model_of(words) for words in shadows]
        self._shadows = Shadows(work, self._context, models) if models else None

    def report(self, numbers: Array, model: str = '') -> StepReport:
        """Return the report of a step of that simulation."""
        length, solve = self._context.sizes.length, None
        if model and self._shadows is not None:
            start = StepStart.of(model, numbers[length:], self._work)
            solve = ShadowSolve(self._shadows, start)
        return StepReport(numbers[:length], self._context, solve)


if __name__ == '__main__':
    sys.exit(main())
