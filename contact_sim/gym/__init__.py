"""Gymnasium environments: velocity tracking over compiled worlds (docs/gym.md).

Importing this package registers 'contact_sim/Velocity-v0'.
"""

try:
    import gymnasium as _gymnasium
except ImportError as error:  # an extra
    raise ImportError("contact_sim.gym needs gymnasium: pip install 'contact_sim[gym]'") from error

from contact_sim.gym._environments import Env, VectorEnv
from contact_sim.gym._velocity import USUAL, Commands, Randomisation, Rewards, VelocityWorlds

_gymnasium.register(
    'contact_sim/Velocity-v0',
    entry_point='contact_sim.gym:Env',
    vector_entry_point='contact_sim.gym:VectorEnv',
)

__all__ = [
    'USUAL',
    'Commands',
    'Env',
    'Randomisation',
    'Rewards',
    'VectorEnv',
    'VelocityWorlds',
]
