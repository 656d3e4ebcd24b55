"""The contacts of a step: forces, positions, gaps, velocities and modes, per contact."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays.step_data import StepData
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]
OPEN, STICK, SLIP = 0, 1, 2
STICTION_SPEED = 1e-9
"""Tangential speed below which a loaded contact counts as sticking [m/s]."""


class ContactReport:
    """Contacts at the end of a step, one row per contact, open ones included."""

    def __init__(self, data: StepData, names: tuple[str, ...]) -> None:
        self._data = data
        self.names = names
        """Names of the contacts: of the contact points, in the order of `robot.contact_points`;
        where the terrain has several features, with the feature."""

    @cached_property
    def force(self) -> Array:
        """Force on the robot [N], world, impulse / h, shape (nc, 3)."""
        data = self._data
        return np.asarray(in_world(data.frame_start, data.impulse, 1.0 / data.time_step[0]))

    @cached_property
    def velocity(self) -> Array:
        """Velocity of the robot's contact points after the step [m/s], world, shape (nc, 3)."""
        return np.asarray(in_world(self._data.frame_start, self._data.u_next, 1.0))

    @property
    def position(self) -> Array:
        """Contact points after the step [m], world, shape (nc, 3)."""
        return self._data.position

    @property
    def normal(self) -> Array:
        """Normals out of the ground after the step, world, shape (nc, 3)."""
        return self._data.frame[:, 2]

    @property
    def gap(self) -> Array:
        """Signed distance after the step [m], negative when penetrating, shape (nc,)."""
        return self._data.gap

    @property
    def friction(self) -> Array:
        """Friction coefficients [-], shape (nc,)."""
        return self._data.friction

    @cached_property
    def normal_force(self) -> Array:
        """Normal forces on the robot [N], shape (nc,)."""
        data = self._data
        return np.asarray(normal_forces(data.impulse, data.gap, data.time_step[0]))

    @cached_property
    def slip_speed(self) -> Array:
        """Tangential speed after the step [m/s], shape (nc,)."""
        return np.asarray(slip_speeds(self._data.u_next, self._data.gap))

    @cached_property
    def mode(self) -> NDArray[np.int64]:
        """0 open, 1 stick, 2 slip, shape (nc,)."""
        return np.asarray(modes(self._data.impulse, self._data.u_next, self._data.gap))


@kernel
def in_world(frame, u, scale):
    """Return contact-frame rows times `scale` in world axes, shape (nc, 3)."""
    out = np.empty((frame.shape[0], 3))
    for i in range(frame.shape[0]):
        for k in range(3):
            total = 0.0
            for row in range(3):
                total += frame[i, row, k] * u[3 * i + row]
            out[i, k] = scale * total
    return out


@kernel
def normal_forces(impulse, gap, h):
    """Return λ_n / h of every contact [N], shape (nc,)."""
    out = np.empty(gap.shape[0])
    for i in range(gap.shape[0]):
        out[i] = impulse[3 * i + 2] / h
    return out


@kernel
def slip_speeds(u, gap):
    """Return |u_t| of every contact [m/s], shape (nc,)."""
    out = np.empty(gap.shape[0])
    for i in range(gap.shape[0]):
        out[i] = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
    return out


@kernel
def modes(impulse, u, gap):
    """Return the mode of every contact."""
    out = np.empty(gap.shape[0], np.int64)
    for i in range(gap.shape[0]):
        slip = np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
        out[i] = mode_of(impulse[3 * i + 2], slip)
    return out


@kernel
def mode_of(normal_impulse, slip_speed):
    """Return the mode of a contact; null_space may pull, so loaded means a force at all."""
    if normal_impulse == 0.0:
        return OPEN
    return SLIP if slip_speed > STICTION_SPEED else STICK
