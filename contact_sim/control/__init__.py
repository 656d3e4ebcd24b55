"""Whole-body controllers: pure functions of time and state, to step in process or from a node."""

from contact_sim.control._stance import Stance
from contact_sim.control._trot import Trot

__all__ = ['Stance', 'Trot']
