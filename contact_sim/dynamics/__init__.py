"""Rigid-body dynamics of a kinematic tree, and its integration in time."""

from contact_sim.dynamics._rigid_body import mechanical_energy

__all__ = [
    'mechanical_energy',
]
