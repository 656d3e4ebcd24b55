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
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.dynamics._integration import integrator_code
from contact_sim.errors import ContactSimError
from contact_sim.replay._header import contact_model_of, ground_of, robot_of
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._shadow import Shadows, ShadowSolve, StepStart
from contact_sim.step._workspace import Workspace
from contact_sim.view._page import Page
from contact_sim.view._process import PageState, SharedRecord, received
from contact_sim.view._server import address_of, page_server
from contact_sim.view._session import Capabilities, DisplayedStep, Session, Settings

NICE = 5
"""Increment of the niceness of the viewer: the simulation goes first."""
PATIENCE = 120.0
"""Wall seconds in which the simulation answers: a model may have to be compiled first."""
LOOK = 0.02
"""Wall seconds between two looks for the first step."""


def main(arguments: list[str] | None = None) -> int:
    """Serve the page; tell the other process why if that is not possible."""
    options = parser().parse_args(arguments)
    os.nice(NICE)
    connection = Connection(options.connection)
    try:
        serve(connection, options.memory, options.host, options.port)
    except Exception as error:  # nobody reads a traceback here
        connection.send(('failed', str(error) or repr(error)))
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line, which `ViewerProcess` writes."""
    result = argparse.ArgumentParser(
        prog='python -m contact_sim.view.viewer_main',
        description='The page of a node, which starts this itself; for people: contact_sim.view.',
    )
    result.add_argument('memory', type=int, help='descriptor of the memory with the newest step')
    result.add_argument('connection', type=int, help='descriptor of a pipe to the node')
    result.add_argument('host', help='name or address at which the page can be reached')
    result.add_argument('port', type=int, help='of the page')
    return result


def serve(connection: Connection, descriptor: int, host: str, port: int) -> None:
    """Serve the page until the process at the other end of the connection has ended."""
    session = RemoteSession(connection, descriptor, on_end=lambda: os._exit(0))
    server = page_server(host, port, 'contact_sim')
    session.wait()
    connection.send(('serving', address_of(host, port)))
    Page(server, session).run(lambda: True)


# ------------------------------------------------ the session


class Refused(ContactSimError):
    """A command that the simulation refuses, with its reason."""


class RemoteSession(Session):
    """A `Session` of the simulation at the other end of a connection.

    `world` is that of the step that `latest` has returned. A thread calls `on_end` when the other
    process has ended.
    """

    world: RemoteWorld

    def __init__(
        self, connection: Connection, descriptor: int, on_end: Callable[[], None]
    ) -> None:
        self._connection, self._descriptor, self._on_end = connection, descriptor, on_end
        self._sending, self._numbers = threading.Lock(), itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue[str]] = {}
        self._capabilities = Capabilities()
        self._described: RemoteWorld | None = None
        self._current: RemoteWorld | None = None
        self._memory: SharedRecord | None = None
        self._state: PageState | None = None
        self._displayed: DisplayedStep | None = None
        self._error: ContactSimError | None = None
        self._last_read = 0
        self._messages: list[str] = []
        threading.Thread(target=self._listen, name='viewer: listen', daemon=True).start()

    def wait(self) -> None:
        """Return once there is a step to show; raise why its world cannot be built here."""
        while self._state is None or self._displayed is None:
            time.sleep(LOOK)
            self._read_step()
            if self._error is not None:
                raise self._error

    @property
    def robot(self) -> RobotModel:
        """The simulated robot."""
        return self.world.robot

    @property
    def ground(self) -> Terrain:
        """The terrain."""
        return self.world.ground

    @property
    def capabilities(self) -> Capabilities:
        """The contact models, poses and frames to choose from."""
        return self._capabilities

    def settings(self) -> Settings:
        """Return the settings in force."""
        assert self._state is not None, 'wait() comes first'
        return self._state.settings

    def latest(self) -> DisplayedStep:
        """Return the newest step; the same object as long as there is none."""
        self._read_step()
        assert self._displayed is not None, 'wait() comes first'
        return self._displayed

    def take_messages(self) -> list[str]:
        """Return the messages of the session to the user since the last call."""
        messages, self._messages = self._messages, []
        return messages

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
                (self._capabilities,) = values
            elif kind == 'world':
                number, length, header, shadows = values
                try:
                    self._described = world_of(
                        number, length, header, shadows, before=self._described
                    )
                except ContactSimError as error:
                    self._error = error
                    self._messages.append(
                        f'what the simulation has changed to cannot be shown: {error}'
                    )
        self._on_end()

    def _read_step(self) -> None:
        """Take the newest step out of the memory, and make its world the current one."""
        described, current, displayed = self._described, self._current, self._displayed
        if described is None:
            return
        failure = '' if self._state is None else self._state.failure
        record = self._memory_for(described).read(self._last_read)
        worlds = {world.number: world for world in (current, described) if world is not None}
        if record is not None and record.world in worlds:  # else its description is under way
            self.world = self._current = worlds[record.world]
            self._last_read = record.number
            report = self.world.report(record.numbers, record.model)
            solved = report.shadows.items()
            shadows = {name: shadow.step for name, shadow in solved if shadow.finite}
            self._displayed = DisplayedStep(
                report, record.wrenches, shadows, record.step_seconds,
                record.real_time_factor, failure,
            )  # fmt: skip
        elif displayed is not None and failure != displayed.failure:
            self._displayed = dataclasses.replace(displayed, failure=failure)

    def _memory_for(self, world: RemoteWorld) -> SharedRecord:
        """Return the memory, with room for the records of this world and of all before."""
        if self._memory is None:
            frames = self._capabilities.frames
            self._memory = SharedRecord(frames, world.length, self._descriptor)
        elif self._memory.length < world.length:
            self._memory.resize(world.length)
        return self._memory


# ------------------------------------------------ its world


@dataclass(frozen=True, eq=False)
class RemoteWorld:
    """Robot, ground and constraints of a simulation, built again from their description."""

    number: int
    """As in a `SharedWorld`."""
    length: int
    """Numbers of a record after its front."""
    robot: RobotModel
    ground: Terrain
    workspace: Workspace
    context: StepContext
    shadows: Shadows | None
    """Solve steps here, in this process."""
    header: Mapping[str, Any]

    def report(self, numbers: Array, model: str = '') -> StepReport:
        """Return the report of a step of that simulation."""
        length, solve = self.context.sizes.length, None
        if model and self.shadows is not None:
            start = StepStart.of(model, numbers[length:], self.workspace)
            solve = ShadowSolve(self.shadows, start)
        return StepReport(numbers[:length], self.context, solve)


def world_of(
    number: int,
    length: int,
    header: Mapping[str, Any],
    shadows: Sequence[Mapping[str, Any]] = (),
    before: RemoteWorld | None = None,
) -> RemoteWorld:
    """Return the world of a header as in a recording; keep robot and ground of the one before."""
    if before is not None and before.header['robot'] == header['robot']:
        robot = before.robot
    else:
        robot = robot_of(header['robot'], numbers_must_match=True)
    same_ground = before is not None and before.header['ground'] == header['ground']
    ground = before.ground if before is not None and same_ground else ground_of(header)
    constraints = [constraint_from_dict(words) for words in header['constraints']]
    work = Workspace(robot, ground, header['time_step'], constraints)
    work.data.q[:] = robot.reference_configuration()
    work.integrator[0] = integrator_code(header['integrator'])
    context, models = StepContext(work), [contact_model_of(words) for words in shadows]
    solver = Shadows(work, context, models) if models else None
    return RemoteWorld(number, length, robot, ground, work, context, solver, header)


if __name__ == '__main__':
    sys.exit(main())
