"""The page of the viewer: what people ask for there takes the way of services and parameters."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node

from contact_sim._validation import count
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError, InvalidInput, shortened
from contact_sim.ros._loop import Loop
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._pushes import Pushes
from contact_sim.ros._services import Services, StateControl
from contact_sim.simulation._simulator import Simulator
from contact_sim.view._process import Child, Feed, Message, Told
from contact_sim.view._session import Chosen, Offers

FIXED = frozenset({'time_step', 'controller', 'velocity'})
"""What cannot be changed here: messages have their rhythm from h, and controllers are nodes."""


class ServedPage:
    """The page of the simulation in a browser, served by a process of its own.

    Args:
        node: whose executor does what is asked for, and whose log hears of it.
        sim: what is shown.
        loop: who steps it, and feeds the page.
        services: who takes steps.
        control: who sets the state anew.
        pushes: who pushes.
        parameters: who has the settings; `viewer` says where the page is.
    """

    def __init__(
        self,
        node: Node,
        sim: Simulator,
        loop: Loop,
        services: Services,
        control: StateControl,
        pushes: Pushes,
        parameters: ParameterServer,
    ) -> None:
        self._node, self._sim, self._loop, self._services = node, sim, loop, services
        self._control, self._pushes, self._parameters = control, pushes, parameters
        self._child: Child | None = None
        self._actions: dict[str, Callable[..., Any]] = {
            'pause': lambda: self._set_paused(True),
            'resume': lambda: self._set_paused(False),
            'step': self._step,
            'set_speed': lambda speed: self._change(real_time_factor=speed),
            'reset': control.reset,
            'drop': lambda height: control.reset(height=height),
            'set_pose': self._set_pose,
            'push': pushes.push,
            'drag': self._drag,
            'set_contact_model': lambda name: self._change({'contact.model': name}),
            'set_friction': lambda friction: self._change({'friction.mu': friction}),
            'set_restitution': lambda restitution: self._change(restitution=restitution),
            'set_shadows': lambda names: self._change({'contact.shadow': names}),
        }
        where = parameters.settings['viewer']
        if where.port:
            self._start(where.host, where.port)

    @property
    def address(self) -> str:
        """Where the page is served; '' while it is not."""
        return self._child.address if self._child is not None else ''

    @property
    def complaint(self) -> str:
        """Why a page that was asked for is not served; '' where none was, or it is."""
        return self._child.complaint if self._child is not None else ''

    def close(self) -> None:
        """End the page."""
        if self._child is not None:
            self._child.close()

    def _start(self, host: str, port: int) -> None:
        loop, log = self._loop, self._node.get_logger()

        def say(line: str, level: int) -> None:
            if level >= logging.ERROR:  # a call each: rclpy wants one severity of each
                log.error(line)
            elif level >= logging.WARNING:
                log.warning(line)
            else:
                log.info(line)

        feed = Feed(self._sim, self._pushes.links, loop.pace)
        self._child = Child(self._sim, feed, self._offers(), self._told, self._ask, say)
        self._child.start(host, port)
        if not self._child.complaint:
            loop.feed = feed

    # ---------------------------------------------------------------- what the page shows

    def _offers(self) -> Offers:
        poses = tuple(self._sim.robot.references)
        return Offers(contact_models(), poses, (), self._pushes.links, FIXED)

    def _told(self) -> Told:
        settings, sim = self._parameters.settings, self._sim
        common = settings['']
        chosen = Chosen(
            contact_model=settings['contact'].model,
            friction=settings['friction'].mu,
            restitution=common.restitution,
            time_step=sim.time_step,
            speed=common.real_time_factor,
            pose=common.reference_pose,
            shadows=settings['contact'].shadow,
            paused=self._loop.paused,
        )
        return Told(chosen, self._loop.tally.failure)

    # ---------------------------------------------------------------- what the page asks for

    def _ask(self, message: Message) -> None:
        """Have the executor do something, between other callbacks."""
        assert self._child is not None
        executor = self._node.executor
        if executor is None:
            self._child.answer(message['number'], 'the node does not listen yet')
        else:
            executor.create_task(self._serve, message)

    async def _serve(self, message: Message) -> None:
        assert self._child is not None
        what, refusal = message['what'], ''
        try:
            returned = self._actions[what](**message['how'])
            if inspect.isawaitable(returned):
                await returned
        except ContactSimError as error:
            refusal = str(error)
        except Exception as error:  # an answer is due, whatever went wrong
            refusal = shortened(f'{what}: {error!r}')
            self._node.get_logger().error(f'the page asked for {refusal}')
        self._child.answer(message['number'], refusal)

    def _set_paused(self, paused: bool) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(paused))

    async def _step(self, number: int) -> None:
        steps = count('number of steps', number)
        self._set_paused(True)
        reason = await self._services.take_steps(steps)
        if reason:
            raise InvalidInput(reason)

    def _change(self, values: dict[str, Any] | None = None, **more: Any) -> None:
        self._parameters.change({**(values or {}), **more})

    def _set_pose(self, pose: str) -> None:
        self._change(reference_pose=pose)
        self._control.reset()

    def _drag(self, frame: str, target: Sequence[float] | None) -> None:
        self._loop.between_steps(lambda: self._pushes.drag(frame, target))
