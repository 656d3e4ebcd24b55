"""The controllers that a page can start."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.control.controller import Controller, EffortFunction, effort_of
from contact_sim.control.legs import can_move_its_feet
from contact_sim.control.stance import BaseMotion, Stance
from contact_sim.control.trot import Trot
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot.actuation import holding
from contact_sim.robot.model import RobotModel
from contact_sim.view.session import HOLD

Array = NDArray[np.float64]
STANCES = {'stand': 'hold', 'squat': 'squat', 'sway': 'sway'}
"""Controllers on all feet, and what `Stance` calls their motions."""
TROT = 'trot'
TROTTERS = 4
"""Feet of a robot that trots."""


class JointHold:
    """Joint PD with the robot's default gains that holds one pose."""

    def __init__(self, robot: RobotModel, q: Array) -> None:
        self._robot = robot
        self._command = holding(robot.joint_positions(q), *robot.default_gains)

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return joint efforts [N m], shape (n_joints,)."""
        robot = self._robot
        position, velocity = robot.joint_positions(q), robot.joint_velocities(v)
        return self._command.effort_at(position, velocity, robot.continuous_joints)


class Running:
    """A controller that runs: its efforts, and the velocity that it follows if it does.

    Args:
        controller: with `effort`, and `velocity` where it can be told one.
    """

    def __init__(self, controller: Controller | EffortFunction) -> None:
        self._controller: Any = controller
        self._effort = effort_of(controller)

    def effort(self, time: float, q: Array, v: Array) -> ArrayLike:
        """Return joint efforts [N m], shape (n_joints,)."""
        return self._effort(time, q, v)

    def follow(self, velocity: tuple[float, float, float]) -> None:
        """Command forward and sideways velocity [m/s] and turn [rad/s]."""
        if hasattr(self._controller, 'velocity'):
            self._controller.velocity = velocity


class Motions:
    """What can be started on one robot.

    Args:
        robot: what is controlled.
        own: name and maker of a controller of the user's, see `own_controller`.
    """

    def __init__(
        self,
        robot: RobotModel,
        own: tuple[str, Callable[[RobotModel], Controller | EffortFunction]] | None = None,
    ) -> None:
        self._robot, self._own = robot, own
        legged = can_move_its_feet(robot)
        trots = legged and len(robot.contact_points) == TROTTERS
        self.names = (
            HOLD,
            *(STANCES if legged else ()),
            *((TROT,) if trots else ()),
            *((own[0],) if own else ()),
        )

    def start(self, name: str, pose: Array, amplitude: float, frequency: float) -> Running:
        """Return a controller that begins now.

        Args:
            name: one of `names`.
            pose: q (nq,) that `hold` holds.
            amplitude: of squat and sway [m].
            frequency: of squat and sway [Hz].

        Raises:
            UnknownName: none of `names`.
            InvalidInput: a controller that cannot be made for this robot.
        """
        if name not in self.names:
            raise UnknownName('controller', name, self.names)
        if self._own is not None and name == self._own[0]:
            return Running(_made(name, self._own[1], self._robot))
        if name == TROT:
            return Running(Trot(self._robot))
        if name in STANCES:
            return Running(Stance(self._robot, BaseMotion(STANCES[name], amplitude, frequency)))
        return Running(JointHold(self._robot, pose))


def own_controller(
    place: str,
) -> tuple[str, Callable[[RobotModel], Controller | EffortFunction]]:
    """Return name and maker of the controller at `place`, 'module:name'.

    It is an object with `effort(time, q, v)`, a function of these arguments, or a class of such
    objects, which is made of the robot whenever it is started.

    Raises:
        InvalidInput: nothing there, or no controller.
    """
    module, _, name = place.partition(':')
    if not (module and name):
        raise InvalidInput(f"controller = {shown(place)}: expected 'module:name'")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the user's module raises
        raise InvalidInput(
            f'controller = {shown(place)}: {type(error).__name__}: {error}'
        ) from error
    if isinstance(found, type):
        return name, found
    effort_of(found)
    return name, lambda robot: found


def _made(
    name: str, maker: Callable[[RobotModel], Controller | EffortFunction], robot: RobotModel
) -> Controller | EffortFunction:
    try:
        return maker(robot)
    except Exception as error:  # whatever the user's class raises
        raise InvalidInput(f'controller {name!r} cannot be made: {error!r}') from error
