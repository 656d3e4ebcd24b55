"""Rigid-body dynamics of a kinematic tree, and its integration in time."""

from contact_sim.dynamics._energy import mechanical_energy

__all__ = [
    'mechanical_energy',
]
