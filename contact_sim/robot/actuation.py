"""Joint commands: what a motor controller with PD gains and feed-forward effort applies.

    τ = τ_ff + k_p (q* − q) + k_d (q̇* − q̇)

evaluated every physics step, not when a message arrives. Saturation is the simulator's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import InvalidInput
from contact_sim.numbers import real_array
from contact_sim.robot.configuration import checked_vector

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointCommand:
    """Targets and gains of all actuated joints, each of shape (n_joints,), copied and read-only.

    Raises:
        InvalidInput: arrays of different lengths, values that are not finite, negative gains.
    """

    position: Array
    """q* [rad] or [m]."""
    velocity: Array
    """q̇* [rad/s] or [m/s]."""
    effort: Array
    """Feed-forward τ_ff [N m] or [N]."""
    stiffness: Array
    """k_p [N m/rad], at least 0; 0 where no position is commanded."""
    damping: Array
    """k_d [N m s/rad], at least 0; 0 where neither position nor velocity is commanded."""

    def __post_init__(self) -> None:
        length = real_array('JointCommand.position', self.position).size
        for field in fields(self):
            place = f'JointCommand.{field.name}'
            value = checked_vector(place, getattr(self, field.name), length)
            if field.name in ('stiffness', 'damping') and value.min(initial=0.0) < 0.0:
                raise InvalidInput(f'{place} = {value.tolist()}: expected gains of at least 0')
            value.setflags(write=False)
            object.__setattr__(self, field.name, value)

    def effort_at(
        self, position: Array, velocity: Array, continuous: NDArray[np.bool_] | None = None
    ) -> Array:
        """Return the effort at the joint positions and velocities (n_joints,), unsaturated.

        `continuous` (n_joints,) says which joints turn without end, robot.continuous_joints:
        they go to their target the short way round.
        """
        error = self.position - position
        if continuous is not None and continuous.any():
            error = np.where(continuous, np.mod(error + np.pi, 2 * np.pi) - np.pi, error)
        return self.effort + self.stiffness * error + self.damping * (self.velocity - velocity)


def holding(position: Array, stiffness: Array, damping: Array) -> JointCommand:
    """Return the command that holds `position` (n_joints,) at rest."""
    zero = np.zeros_like(real_array('position', position))
    return JointCommand(position, zero, zero, stiffness, damping)
