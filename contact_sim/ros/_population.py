"""The robots of a node while it runs: who comes and who goes, between two steps.

A model has one set of joints, so other robots mean another model and another Simulator. They are
built in a thread of their own, while the loop goes on stepping and callbacks are served; topics
are made by the callback thread; between two steps the state moves over, and everything that knows
joints or links follows. Until then nothing has changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from rclpy.node import Node
from rclpy.task import Future

from contact_sim._types import Array, Mask
from contact_sim.collision._terrain import Terrain
from contact_sim.errors import ContactSimError, InvalidInput, shortened
from contact_sim.parameters import Settings
from contact_sim.robot._collision_pairs import LARGEST_MOST
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._factory import check_settings, joint_groups
from contact_sim.ros._inputs import StateControl, Subscriptions
from contact_sim.ros._lockstep import owned_joints
from contact_sim.ros._publishers import Outputs
from contact_sim.ros._robots import effort_order, joined_in_node, joint_gains
from contact_sim.simulation._report import TouchGuard
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import placed
from contact_sim.simulation._succession import adopt, carry_over, successor

Result = TypeVar('Result')
MOST_TRIES = 5
"""How often robots are built anew because the simulation has got another ground meanwhile."""
ROOM = 16
"""Contacts of bodies that a solid of a spawned entity may need at once."""


class Refused(ContactSimError):
    """A request that is refused with a code of the standard, the name of a constant."""

    def __init__(self, code: str, reason: object) -> None:
        super().__init__(str(reason))
        self.code = code


@dataclass(frozen=True, eq=False)
class Member:
    """A robot or loose body of the node."""

    name: str
    """Among all; '' of the one that had no other at the start."""
    robot: RobotModel
    """As it is alone, with its actuators."""
    place: tuple[float, ...] = (0.0, 0.0, 0.0)
    """Of its reference poses, as `joined` has it."""
    namespace: str = ''
    """Of its topics."""
    spawned: bool = False
    q: Array | None = None
    """Where it starts (nq,); None: in its reference pose."""

    @property
    def entity(self) -> str:
        """Name of its entity."""
        return self.name or self.robot.name


def members_of(robot: RobotModel) -> tuple[Member, ...]:
    """Return the robots that a node starts with."""
    places = {part.name: part.place for part in getattr(robot, 'parts', ())}
    return tuple(
        Member(part.name, part.robot, places.get(part.name, (0.0, 0.0, 0.0)), part.name)
        for part in parts_of(robot)
    )


def world_of(members: Sequence[Member], settings: Settings) -> RobotModel:
    """Return all members as one model; one without a name that is alone as it is."""
    if len(members) == 1 and not members[0].name:
        return members[0].robot
    most = settings[''].pair_contacts
    room = most + sum(
        min(most, ROOM * max(1, len(member.robot.collisions.solids)))
        for member in members
        if member.spawned
    )
    return joined_in_node(
        {member.name: member.robot for member in members},
        {member.name: member.place for member in members},
        settings[''].robots_touch,
        min(room, LARGEST_MOST),
        ' + '.join(member.entity for member in members),
    )


def above_ground(robot: RobotModel, terrain: Terrain, q: Array) -> Array:
    """Return q (nq,), with the base raised until nothing is in the ground."""
    if not robot.floating_base:
        return q
    try:
        touching = placed(robot, terrain, q, 0.0, None)
    except InvalidInput:  # no ground there
        return q
    return touching if touching[2] > q[2] else q


@dataclass(frozen=True, eq=False)
class _Built:
    """Everything that other robots need, and what it was made for."""

    members: tuple[Member, ...]
    sim: Simulator
    owned: Mapping[str, Mask]
    guard: TouchGuard
    settings: Settings
    made_for: tuple[Any, ...]


def _made_for(sim: Simulator) -> tuple[Any, ...]:
    """Return what a successor takes from a simulation and does not carry over later."""
    return sim.robot, sim.terrain, sim.model, sim.time_step, bool(sim.sizes.n_moments)


class Population:
    """Changes the robots of a node.

    Args:
        node: makes subscriptions.
        control: the simulation, its loop, commands and parameters.
        outputs: its topics.
        subscriptions: of each robot, by name; changed here.
        follow: called between two steps, with the robots that there are from then on.
        refusal: returns why robots may not change now, '' if they may.

    Attributes:
        at_start: who was there at the start.
        members: who is there.
        subscriptions: of each of them.
        changed: called after each change.
    """

    def __init__(
        self,
        node: Node,
        control: StateControl,
        outputs: Outputs,
        subscriptions: dict[str, Subscriptions],
        follow: Callable[[RobotModel], None],
        refusal: Callable[[], str],
    ) -> None:
        self._node, self._control, self._outputs = node, control, outputs
        self.subscriptions, self._follow, self._refusal = subscriptions, follow, refusal
        self.at_start = self.members = members_of(control.sim.robot)
        self.changed: list[Callable[[], None]] = []
        self._busy: Future | None = None
        control.at_start = self._start_states

    # ---------------------------------------------------------------- changes

    async def in_turn(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """Make one change after the other; other callbacks are served meanwhile."""
        while self._busy is not None:
            await self._busy
        self._busy = turn = Future()
        try:
            return await change()
        finally:
            self._busy = None
            turn.set_result(None)
            self._wake()

    async def apart(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, done in a thread of its own."""
        done: Any = Future()

        def run() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)
            self._wake()

        threading.Thread(target=run, name='robots', daemon=True).start()
        result: Result = await done
        return result

    def check_may_change(self) -> None:
        """Raise InvalidInput, or Refused without a world, where robots may not change."""
        if reason := self._control.loop.inactive:
            raise Refused('RESULT_INCORRECT_STATE', reason)
        if reason := self._refusal():
            raise InvalidInput(reason)

    def declare(self, name: str, robot: RobotModel) -> Settings:
        """Declare the parameters of the joints of a robot that comes; return all settings."""
        parameters = self._control.parameters
        names = [f'{name}/{joint}' for joint in robot.joint_names]
        parameters.declare(joint_groups(names))
        return parameters.settings

    async def add(self, arriving: Sequence[Member]) -> None:
        """Let robots come."""
        await self.become((*self.members, *arriving))

    async def remove(self, names: Iterable[str]) -> None:
        """Let entities go."""
        gone = set(names)
        await self.become([one for one in self.members if one.entity not in gone])

    async def remove_spawned(self) -> None:
        """Let everything go that has come, and the robots of the start stay that there are."""
        rest = [one for one in self.members if not one.spawned]
        await self.become(rest or self.at_start)

    async def restore(self) -> None:
        """Return to the robots of the start."""
        await self.become(self.at_start)

    async def become(self, members: Sequence[Member]) -> None:
        """Let these be all robots from the next step on; raise ContactSimError to refuse."""
        if tuple(members) == self.members:
            return
        self.check_may_change()
        if not members:
            raise InvalidInput('the last robot has to stay: a simulation without one has no step')
        for _ in range(MOST_TRIES):
            begin = time.perf_counter()
            built = await self.apart(lambda: self._built(tuple(members)))
            if built.made_for == _made_for(self._control.sim):
                break
        else:
            raise InvalidInput('the ground changed again and again; try again')
        self._swap(built, time.perf_counter() - begin)
        for changed in self.changed:
            changed()

    def _wake(self) -> None:
        if self._node.executor is not None:
            self._node.executor.wake()

    # ---------------------------------------------------------------- building, and the swap

    def _built(self, members: tuple[Member, ...]) -> _Built:
        sim, settings = self._control.sim, self._control.parameters.settings
        made_for = _made_for(sim)
        robot = world_of(members, settings)
        owned = owned_joints(settings, robot.joint_names)
        guard = TouchGuard(robot, settings[''].end_on_contact)
        for part in parts_of(robot):
            effort_order(part, settings)
        check_settings(robot, settings)
        new = successor(sim, robot)
        new.last_report.read()
        return _Built(members, new, owned, guard, settings, made_for)

    def _swap(self, built: _Built, seconds: float) -> None:
        """Make topics, and move the state over between two steps."""
        control, settings = self._control, self._control.parameters.settings
        loop, outputs, sim = control.loop, self._outputs, control.sim
        robot, stays = built.sim.robot, set(self.members)
        namespaces = {one.name: one.namespace for one in built.members}
        arriving = [one for one in built.members if one not in stays]
        parts = {part.name: part for part in parts_of(robot)}
        gains = joint_gains(robot, settings)
        following = outputs.topics_of(built.sim, settings, namespaces)
        subscriptions: dict[str, Subscriptions] = {}
        unneeded, waited = [following], 0.0

        def act() -> None:
            nonlocal waited
            begin = time.perf_counter()
            if built.made_for != _made_for(sim):
                raise InvalidInput('the simulation has got another ground meanwhile; try again')
            carry_over(sim, built.sim, {one.name: one.q for one in arriving if one.q is not None})
            adopt(sim, built.sim)
            pose = robot.joint_positions(sim.q)
            names = robot.joint_names
            loop.commands.replace_joints(names, pose, gains, robot.continuous_joints)
            loop.lockstep.replace_joints(names, built.owned)
            loop.pushes.follow_robots()
            loop.follow_robots(built.guard)
            for name, own in self.subscriptions.items():
                if name in parts:
                    own.follow(parts[name])
            control.forget_snapshot()
            self._follow(robot)
            unneeded[0] = outputs.follow_robots(following, settings, subscriptions)
            if loop.feed is not None:
                loop.feed.latest = sim.last_report, {}
            waited = time.perf_counter() - begin

        try:
            with control.parameters.declaring():  # of their quality of service
                for one in arriving:
                    subscriptions[one.name] = Subscriptions(
                        self._node, parts[one.name], control, one.namespace
                    )
            loop.between_steps(act)
        except BaseException:
            for own in subscriptions.values():
                own.end()
            raise
        finally:
            outputs.forget(unneeded[0])
        self.members = built.members
        for name in tuple(self.subscriptions):
            if name in subscriptions or name not in parts:
                self.subscriptions.pop(name).end()
        self.subscriptions.update(subscriptions)
        self._node.get_logger().info(
            f'robots from t = {sim.time:.9g} s on: {shortened(robot.name)}; built in '
            f'{1e3 * seconds:.0f} ms, the simulation waited {1e3 * waited:.1f} ms'
        )

    # ---------------------------------------------------------------- starts

    def _start_states(self, q: Array, ground: Terrain) -> Array:
        """Return the start (nq,) with everything that was spawned where it was spawned."""
        start = np.array(q)
        for part, member in zip(parts_of(self._control.sim.robot), self.members, strict=True):
            if member.q is not None:
                start[part.q] = above_ground(member.robot, ground, member.q)
        return start
