"""What a report says of every contact: force, velocity, slip and mode, from λ and u⁺."""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import frames, matrix, vector
from contact_sim.solvers.jit import kernel

OPEN, STICK, SLIP = 0, 1, 2
STICTION_SPEED = 1e-9
"""Tangential speed below which a loaded contact counts as sticking [m/s]."""


@kernel
def describe_contacts(data):
    """Fill what the report says of the contacts; λ and u⁺ are in the frames of the start."""
    impulse, u, frame = (
        vector(data, f.IMPULSE),
        vector(data, f.U_NEXT),
        frames(data, f.FRAME_START),
    )
    force, velocity = matrix(data, f.CONTACT_FORCE), matrix(data, f.CONTACT_VELOCITY)
    normal_force, slip_speed = vector(data, f.NORMAL_FORCE), vector(data, f.SLIP_SPEED)
    mode, per_step = vector(data, f.CONTACT_MODE), 1.0 / vector(data, f.TIME_STEP)[0]
    for i in range(mode.shape[0]):
        r = 3 * i
        for k in range(3):
            force[i, k] = velocity[i, k] = 0.0
            for a in range(3):
                force[i, k] += per_step * impulse[r + a] * frame[i, a, k]
                velocity[i, k] += u[r + a] * frame[i, a, k]
        normal_force[i] = per_step * impulse[r + 2]
        slip_speed[i] = np.sqrt(u[r] * u[r] + u[r + 1] * u[r + 1])
        mode[i] = mode_of(impulse[r + 2], slip_speed[i])


@kernel
def mode_of(normal_impulse, slip_speed):
    """Return the mode of a contact; null_space may pull, so loaded means a force at all."""
    if normal_impulse == 0.0:
        return OPEN
    return SLIP if slip_speed > STICTION_SPEED else STICK
