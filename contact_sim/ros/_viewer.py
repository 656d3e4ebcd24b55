"""Viewer page of a node: its commands become service calls and parameter changes."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node

from contact_sim._validation import count
from contact_sim.contact_models import contact_models
from contact_sim.errors import ContactSimError, InvalidInput, shortened
from contact_sim.ros._inputs import Services, StateControl
from contact_sim.view._process import Feed, PageState, ViewerProcess
from contact_sim.view._session import OPTIONS, Capabilities, Settings, option_values

PARAMETERS = {name: option.parameter for name, option in OPTIONS.items() if option.parameter}
"""Parameter of the node for each setting that it can change."""
FIXED = frozenset({'controller', 'velocity', *(OPTIONS.keys() - PARAMETERS.keys())})
"""Settings that cannot change: messages have their rhythm from h, and controllers are nodes."""


class ServedPage:
    """The page of the simulation in a browser, served by a process of its own."""

    def __init__(self, node: Node, control: StateControl, services: Services) -> None:
        self._node, self._control, self._services = node, control, services
        self._sim, self._loop, self._parameters = control.sim, control.loop, control.parameters
        self._pushes = self._loop.pushes
        self._viewer: ViewerProcess | None = None
        self._commands: dict[str, Callable[..., Any]] = {
            'pause': lambda: self._set_paused(True),
            'resume': lambda: self._set_paused(False),
            'step': self._step,
            'set_speed': lambda speed: self._parameters.change({'real_time_factor': speed}),
            'reset': control.reset,
            'drop': lambda height: control.reset(height=height),
            'set_pose': self._set_pose,
            'push': self._pushes.push,
            'drag': lambda frame, target: self._loop.between_steps(
                lambda: self._pushes.drag(frame, target)
            ),
            'set': self._set,
            'set_controller': self._refuse_controller,
            'set_velocity': self._refuse_velocity,
        }
        where = self._parameters.settings['viewer']
        if where.port:
            self._start(where.host, where.port)

    @property
    def address(self) -> str:
        """Where the page is served; '' while it is not."""
        return self._viewer.address if self._viewer is not None else ''

    @property
    def error(self) -> str:
        """Why a page with a port is not served; '' where it is, or where there is no port."""
        return self._viewer.error if self._viewer is not None else ''

    def close(self) -> None:
        """End the page."""
        if self._viewer is not None:
            self._viewer.close()

    def _start(self, host: str, port: int) -> None:
        loop, logger = self._loop, self._node.get_logger()

        def log(line: str, level: int) -> None:
            if level >= logging.ERROR:  # a call each: rclpy wants one severity of each
                logger.error(line)
            elif level >= logging.WARNING:
                logger.warning(line)
            else:
                logger.info(line)

        feed = Feed(self._sim, self._pushes.links, loop.pace)
        poses = tuple(self._sim.robot.references)
        capabilities = Capabilities(contact_models(), poses, (), self._pushes.links, fixed=FIXED)
        self._viewer = ViewerProcess(
            self._sim, feed, capabilities, self._state, self._execute, log
        )
        self._viewer.start(host, port)
        if not self._viewer.error:
            loop.feed = feed

    def _state(self) -> PageState:
        """Return what the page shows besides the step."""
        values = option_values(self._sim)
        values |= {name: self._parameter(parameter) for name, parameter in PARAMETERS.items()}
        settings = Settings(
            **values,
            speed=self._parameter('real_time_factor'),
            pose=self._parameter('reference_pose'),
            paused=self._loop.paused,
        )
        return PageState(settings, self._loop.tally.failure)

    def _parameter(self, name: str) -> Any:
        group, _, field = name.rpartition('.')
        return getattr(self._parameters.settings[group], field)

    def _execute(self, number: int, name: str, arguments: Mapping[str, Any]) -> None:
        """Have the executor run a command, between other callbacks."""
        assert self._viewer is not None
        executor = self._node.executor
        if executor is None:
            self._viewer.answer(number, 'the node does not listen yet')
        else:
            executor.create_task(self._run, number, name, arguments)

    async def _run(self, number: int, name: str, arguments: Mapping[str, Any]) -> None:
        assert self._viewer is not None
        refusal = ''
        try:
            returned = self._commands[name](**arguments)
            if inspect.isawaitable(returned):
                await returned
        except ContactSimError as error:
            refusal = str(error)
        except Exception as error:  # an answer is due, whatever went wrong
            refusal = shortened(f'{name}: {error!r}')
            self._node.get_logger().error(f'the page asked for {refusal}')
        self._viewer.answer(number, refusal)

    def _set_paused(self, paused: bool) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(paused))

    async def _step(self, steps: int) -> None:
        number = count('number of steps', steps)
        self._set_paused(True)
        reason = await self._services.take_steps(number)
        if reason:
            raise InvalidInput(reason)

    def _set(self, name: str, value: Any) -> None:
        if name not in PARAMETERS:
            raise InvalidInput(
                f'{name} of the node cannot change while it runs: start it with another'
            )
        self._parameters.change({PARAMETERS[name]: value})

    def _set_pose(self, pose: str) -> None:
        self._parameters.change({'reference_pose': pose})
        self._control.reset()

    def _refuse_controller(self, **arguments: Any) -> None:
        raise InvalidInput('controllers are nodes of their own: start and end them with ROS')

    def _refuse_velocity(self, **arguments: Any) -> None:
        raise InvalidInput('publish the velocity on cmd_vel of the controller')
