"""The arrays of one simulated robot: named fields, and views of them."""

from contact_sim.arrays._fields import Sizes
from contact_sim.arrays._views import StepData

__all__ = [
    'Sizes',
    'StepData',
]
