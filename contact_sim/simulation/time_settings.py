"""Time, time step and what else a step is taken with, besides the laws of contact."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import Terrain
from contact_sim.contact.workspace import Workspace
from contact_sim.dynamics.integrators import INTEGRATORS
from contact_sim.numbers import positive
from contact_sim.robot.configuration import frozen

Array = NDArray[np.float64]


class TimeSettings(ABC):
    """Clock, time step, integrator and gravity of a simulation."""

    terrain: Terrain
    _workspace: Workspace

    @abstractmethod
    def _go_on_with(self, work: Workspace, ground: Terrain) -> None:
        """Step in other arrays from now on."""

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self._workspace.data.clock[0])

    @property
    def step_count(self) -> int:
        """Steps since the last reset."""
        return int(self._workspace.data.clock[2])

    @property
    def time_step(self) -> float:
        """Time step h [s]; assign another between steps: time and state go on from where they are.

        Of actuators with a delay, the efforts under way are those of the last command.

        Raises:
            InvalidInput: no number > 0, or one of which the delay of an actuator is no multiple.
        """
        return float(self._workspace.data.time_step[0])

    @time_step.setter
    def time_step(self, value: float) -> None:
        h = positive('time_step', value, 's')
        if h == self.time_step:
            return
        work = self._workspace.with_time_step(h, self.terrain)
        clock = work.data.clock
        clock[1] = clock[0] - clock[2] * h
        self._go_on_with(work, self.terrain)

    @property
    def integrator(self) -> str:
        """How time-stepping models move the robot; `hybrid` has Runge-Kutta's arcs."""
        return INTEGRATORS[self._workspace.integrator[0]]

    @property
    def gravity(self) -> Array:
        """Gravity in world [m/s²], shape (3,)."""
        return frozen(self._workspace.data.gravity)
