"""Maximal coordinates: free bodies, joints as constraints, one sparse system (theory 2.14).

For teaching, and to compare with the reduced coordinates of `Simulator`.
"""

from contact_sim.maximal._maximal_simulator import ContactForces, MaximalReport, MaximalSimulator
from contact_sim.maximal._mechanism import BodyState, JointRows, Mechanism, PlacedRows

__all__ = [
    'BodyState',
    'ContactForces',
    'JointRows',
    'MaximalReport',
    'MaximalSimulator',
    'Mechanism',
    'PlacedRows',
]
