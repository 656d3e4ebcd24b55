"""Gymnasium environments: velocity tracking over compiled worlds (docs/gym.md).

Importing this package registers 'contact_sim/Velocity-v0'.
"""

from contact_sim.gym._environments import Env, VectorEnv
from contact_sim.gym._velocity import USUAL, Commands, Randomisation, Rewards, VelocityWorlds

__all__ = [
    'USUAL',
    'Commands',
    'Env',
    'Randomisation',
    'Rewards',
    'VectorEnv',
    'VelocityWorlds',
]
