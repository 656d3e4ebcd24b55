"""Joint commands: what a motor controller with PD gains and feed-forward effort applies.

    τ = τ_ff + k_p (q* − q) + k_d (q̇* − q̇)

evaluated every physics step, not when a message arrives. Saturation is the simulator's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointCommand:
    """Targets and gains of all actuated joints, each of shape (n_joints,).

    Raises:
        InvalidInput: arrays of different lengths, or values that are not finite.
    """

    position: Array
    """q* [rad] or [m]."""
    velocity: Array
    """q̇* [rad/s] or [m/s]."""
    effort: Array
    """Feed-forward τ_ff [N m] or [N]."""
    stiffness: Array
    """k_p [N m/rad]; 0 where no position is commanded."""
    damping: Array
    """k_d [N m s/rad]; 0 where neither position nor velocity is commanded."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if np.shape(value) != np.shape(self.position):
                raise InvalidInput(
                    f'JointCommand.{field.name}: shape {np.shape(value)}, expected '
                    f'{np.shape(self.position)} as for position'
                )
            if not np.isfinite(value).all():
                raise InvalidInput(f'JointCommand.{field.name} = {value}: must be finite')

    def effort_at(self, position: Array, velocity: Array) -> Array:
        """Return the effort at the joint positions and velocities (n_joints,), unsaturated."""
        towards = self.stiffness * (self.position - position)
        return self.effort + towards + self.damping * (self.velocity - velocity)


def holding(position: Array, stiffness: Array, damping: Array) -> JointCommand:
    """Return the command that holds `position` (n_joints,) at rest."""
    zero = np.zeros_like(position)
    return JointCommand(position.copy(), zero, zero, stiffness.copy(), damping.copy())
