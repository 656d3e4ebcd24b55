"""Identify friction, contact, inertia and actuators of a robot from logs of its motion."""

from contact_sim.identify._fit import Estimate, Identification, identify
from contact_sim.identify._parameters import Setup

__all__ = ['Estimate', 'Identification', 'Setup', 'identify']
