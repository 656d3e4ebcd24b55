"""How far bodies turn in a step: the limit of velocity products that are taken at its start."""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import matrix, vector
from contact_sim.numbers import LARGEST
from contact_sim.solvers.jit import kernel

FASTEST = 1.0
"""Largest turn per step [rad] that is not noted. h (∂C v/∂v) M⁻¹ grows with it: beyond about one
radian a step makes faster what it should turn (theory 2.0)."""


@kernel
def note_turning(data):
    """Note since when dofs turn by more than FASTEST per step; return False if v is not finite."""
    v, columns = vector(data, f.V), matrix(data, f.COLUMNS)
    clock, fast = vector(data, f.CLOCK), vector(data, f.FAST)
    size = largest = 0.0
    for k in range(v.shape[0]):
        x, y, z = columns[k, 3], columns[k, 4], columns[k, 5]
        size += abs(v[k])
        largest = max(largest, v[k] * v[k] * (x * x + y * y + z * z))
    turn = vector(data, f.TIME_STEP)[0] * np.sqrt(largest)
    if not turn > FASTEST:
        fast[1] = 0.0
    elif fast[1] == 0.0:
        fast[0], fast[1] = clock[0], turn
    return size <= LARGEST
