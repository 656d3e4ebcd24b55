"""The page of a simulation in another process, which starts this one and ends it."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._table import constraint_from_dict
from contact_sim.dynamics._integration import integrator_code
from contact_sim.errors import ContactSimError
from contact_sim.replay._header import contact_model_of, ground_of, robot_of
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._shadow import Shadows, ShadowSolve, StepStart
from contact_sim.step._workspace import Workspace
from contact_sim.view._page import Page
from contact_sim.view._process import Channel, Message, SharedRecord
from contact_sim.view._server import address_of, page_server
from contact_sim.view._session import AMPLITUDE, FREQUENCY, Chosen, Offers, Shown

# --- The session of a simulation in another process: steps by the feed, all else in messages.

PATIENCE = 120.0
"""Wall seconds in which the simulation answers: a model may have to be compiled first."""
LOOK = 0.02
"""Wall seconds between two looks for the first step."""


class Refused(ContactSimError):
    """The simulation does not do what was asked for; its own words."""


@dataclass(frozen=True, eq=False)
class RemoteWorld:
    """Robot, ground and constraints of a simulation, built again from their description."""

    number: int
    robot: RobotModel
    ground: Terrain
    workspace: Workspace
    context: StepContext
    shadows: Shadows | None
    """Solve steps here, in their own time."""
    header: Mapping[str, Any]

    def report(self, numbers: Array, model: str = '') -> StepReport:
        """Return the report of a step of that simulation.

        Args:
            numbers: as in a `Record`.
            model: likewise.
        """
        length, solve = self.context.sizes.length, None
        if model and self.shadows is not None:
            start = StepStart.of(model, numbers[length:], self.workspace)
            solve = ShadowSolve(self.shadows, start)
        return StepReport(numbers[:length], self.context, solve)


@dataclass(frozen=True, eq=False)
class Coming:
    """A world and what comes with it."""

    world: RemoteWorld
    offers: Offers
    length: int
    """Numbers of a record, besides its front."""


def world_of(
    number: int,
    header: Mapping[str, Any],
    shadows: Sequence[Mapping[str, Any]] = (),
    before: RemoteWorld | None = None,
) -> RemoteWorld:
    """Return the world that the header of a recording describes.

    Args:
        number: of the world.
        header: as in a recording.
        shadows: contact models in the shadow, as in a header.
        before: the last one; what is the same in it is taken over.

    Raises:
        ContactSimError: something that cannot be built here.
    """
    if before is not None and before.header['robot'] == header['robot']:
        robot = before.robot
    else:
        robot = robot_of(header['robot'], numbers_must_match=True)
    same_ground = before is not None and before.header['ground'] == header['ground']
    ground = before.ground if before is not None and same_ground else ground_of(header)
    constraints = [constraint_from_dict(said) for said in header['constraints']]
    work = Workspace(robot, ground, header['time_step'], constraints)
    work.data.q[:] = robot.reference_configuration()
    work.integrator[0] = integrator_code(header['integrator'])
    context, models = StepContext(work), [contact_model_of(said) for said in shadows]
    solved = Shadows(work, context, models) if models else None
    return RemoteWorld(number, robot, ground, work, context, solved, header)


class RemoteSession:
    """A `Session` of the simulation at the other end of a channel.

    Args:
        channel: to the process that simulates.
        descriptor: of the file behind the memory of its feed.
        on_end: called by a thread of this object when that process is gone.

    Attributes:
        world: robot and ground of what `latest` has returned.
    """

    world: RemoteWorld

    def __init__(self, channel: Channel, descriptor: int, on_end: Callable[[], None]) -> None:
        self._channel, self._descriptor, self._on_end = channel, descriptor, on_end
        self._numbers = itertools.count(1)
        self._answers: dict[int, str] = {}
        self._changed = threading.Condition()
        self._coming: Coming | None = None
        self._here: Coming | None = None
        self._memory: SharedRecord | None = None
        self._chosen: Chosen | None = None
        self._shown: Shown | None = None
        self._trouble: ContactSimError | None = None
        self._failure, self._read = '', 0
        self._said: list[str] = []
        threading.Thread(target=self._listen, name='viewer: listen', daemon=True).start()

    def wait(self) -> None:
        """Return once there is something to show.

        Raises:
            ContactSimError: a robot that cannot be built here.
        """
        while self._chosen is None or self._shown is None:
            time.sleep(LOOK)
            self._look()
            if self._trouble is not None:
                raise self._trouble

    # ---------------------------------------------------------------- what there is

    @property
    def robot(self) -> RobotModel:
        """What moves."""
        return self.world.robot

    @property
    def ground(self) -> Terrain:
        """What it stands on."""
        return self.world.ground

    @property
    def offers(self) -> Offers:
        """What can be chosen."""
        assert self._here is not None, 'wait() comes first'
        return self._here.offers

    def latest(self) -> Shown:
        """Return the newest step; the same object as long as there is none."""
        self._look()
        assert self._shown is not None, 'wait() comes first'
        return self._shown

    def chosen(self) -> Chosen:
        """Return the settings in force."""
        assert self._chosen is not None, 'wait() comes first'
        return self._chosen

    def take_messages(self) -> list[str]:
        """Return what the session has to say by itself since the last call."""
        said, self._said = self._said, []
        return said

    def close(self) -> None:
        """End the session; the simulation goes on."""
        self._channel.close()

    def _look(self) -> None:
        """Take the newest step out of the memory, and go into its world with it."""
        coming, here, shown = self._coming, self._here, self._shown
        failure = self._failure
        if coming is None:
            return
        record = self._memory_for(coming).read(self._read)
        worlds = {one.world.number: one for one in (here, coming) if one is not None}
        if record is not None and record.world in worlds:  # else its description is under way
            self._here = here = worlds[record.world]
            self.world, self._read = here.world, record.number
            report = here.world.report(record.numbers, record.model)
            shadows = {name: one.step for name, one in report.shadows.items() if one.finite}
            self._shown = Shown(
                report, record.wrenches, shadows, record.step_seconds,
                record.real_time_factor, failure,
            )  # fmt: skip
        elif shown is not None and failure != shown.failure:
            self._shown = dataclasses.replace(shown, failure=failure)

    def _memory_for(self, coming: Coming) -> SharedRecord:
        """Return the memory, with room for the records of this world and of all before."""
        if self._memory is None:
            self._memory = SharedRecord(coming.offers.frames, coming.length, self._descriptor)
        elif self._memory.length < coming.length:
            self._memory.resize(coming.length)
        return self._memory

    # ---------------------------------------------------------------- what is asked for

    def pause(self) -> None:
        """Let time stand still."""
        self._ask('pause')

    def resume(self) -> None:
        """Let time go on."""
        self._ask('resume')

    def step(self, steps: int = 1) -> None:
        """Take steps and stand still after them."""
        self._ask('step', number=int(steps))

    def set_speed(self, speed: float) -> None:
        """Run at this simulated over wall time, 0 for as fast as possible."""
        self._ask('set_speed', speed=float(speed))

    def reset(self) -> None:
        """Put the robot at rest into the chosen pose, on the ground; time goes on."""
        self._ask('reset')

    def drop(self, height: float) -> None:
        """Reset, with the robot `height` [m] above the ground."""
        self._ask('drop', height=float(height))

    def set_pose(self, pose: str) -> None:
        """Choose a reference pose, and reset into it."""
        self._ask('set_pose', pose=pose)

    def push(
        self, frame: str, force: Sequence[float], torque: Sequence[float], duration: float
    ) -> None:
        """Push a frame at its origin from now on, see `Session.push`."""
        self._ask(
            'push', frame=frame, force=numbers(force), torque=numbers(torque),
            duration=float(duration),
        )  # fmt: skip

    def drag(self, frame: str, target: Sequence[float] | None) -> None:
        """Draw the origin of a frame with a spring to `target` [m], world, (3,); None: let go."""
        self._ask('drag', frame=frame, target=None if target is None else numbers(target))

    def set_contact_model(self, name: str) -> None:
        """Go on under another contact model."""
        self._ask('set_contact_model', name=name)

    def set_friction(self, friction: float) -> None:
        """Give all contacts this coefficient [-]."""
        self._ask('set_friction', friction=float(friction))

    def set_restitution(self, restitution: float) -> None:
        """Give all contacts this coefficient [-]."""
        self._ask('set_restitution', restitution=float(restitution))

    def set_time_step(self, time_step: float) -> None:
        """Refuse: the node's messages have their rhythm from it."""
        raise Refused('time_step of the node cannot change while it runs: start it with another')

    def set_shadows(self, names: Sequence[str]) -> None:
        """Let these models solve the same steps beside the one that moves the robot."""
        self._ask('set_shadows', names=list(names))

    def set_controller(
        self, name: str, amplitude: float = AMPLITUDE, frequency: float = FREQUENCY
    ) -> None:
        """Refuse: nodes of their own control the robot."""
        raise Refused('controllers are nodes of their own: start and end them with ROS')

    def set_velocity(self, forward: float, sideways: float, turn: float) -> None:
        """Refuse: cmd_vel of its controller says how fast the robot walks."""
        raise Refused('publish the velocity on cmd_vel of the controller')

    # ---------------------------------------------------------------- the other process

    def _ask(self, what: str, **how: Any) -> None:
        """Have something done in the simulation, and wait until it is."""
        number = next(self._numbers)
        try:
            self._channel.send('ask', number=number, what=what, how=how)
        except OSError as error:
            raise Refused(f'{what}: the simulation has ended') from error
        with self._changed:
            answered = self._changed.wait_for(lambda: number in self._answers, PATIENCE)
            refusal = self._answers.pop(number, '')
        if refusal or not answered:
            raise Refused(refusal or f'{what}: no answer in {PATIENCE:g} s')

    def _listen(self) -> None:
        for message in self._channel.messages():
            if message['kind'] == 'answer':
                with self._changed:
                    self._answers[message['number']] = message['refusal']
                    self._changed.notify_all()
            elif message['kind'] == 'told':
                self._failure, self._chosen = message['failure'], chosen_in(message['chosen'])
            else:
                self._enter_world(message)
        self._on_end()

    def _enter_world(self, message: Message) -> None:
        """Build a world that was described, for `latest` to go on in."""
        before = None if self._coming is None else self._coming.world
        try:
            world = world_of(message['number'], message['header'], message['shadows'], before)
        except ContactSimError as error:
            self._trouble = error
            self._said.append(f'what the simulation has changed to cannot be shown: {error}')
            return
        self._coming = Coming(world, offers_in(message['offers']), message['length'])


def chosen_in(said: Mapping[str, Any]) -> Chosen:
    """Return settings that went through JSON, which makes lists of tuples."""
    return Chosen(**with_tuples(said))


def offers_in(said: Mapping[str, Any]) -> Offers:
    """Return what can be chosen, from JSON."""
    offers = Offers(**with_tuples(said))
    return dataclasses.replace(offers, fixed=frozenset(offers.fixed))


def with_tuples(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return tuples for lists."""
    return {k: tuple(value) if isinstance(value, list) else value for k, value in said.items()}


def numbers(values: Sequence[float]) -> list[float]:
    """Return numbers in words that JSON has."""
    return [float(value) for value in values]


# --- The page of a simulation in another process, which starts this one and ends it.

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
        prog='python -m contact_sim.view.viewer_main',
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
