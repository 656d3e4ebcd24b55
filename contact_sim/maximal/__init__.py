"""Maximal coordinates: every body free, joints as constraints, one sparse system (theory 2.14).

For teaching, and to compare with the reduced coordinates of `Simulator`.
"""

from contact_sim.maximal._simulator import MaximalSimulator

__all__ = ['MaximalSimulator']
