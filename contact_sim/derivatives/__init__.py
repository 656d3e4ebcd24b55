"""Derivatives of a step with respect to state, efforts and parameters, without relaxation.

`Simulator.derivatives` returns a `StepDerivatives`.
"""

from contact_sim.derivatives._kinks import Kink
from contact_sim.derivatives._linearisation import Linearisation
from contact_sim.derivatives._result import ParameterSensitivity, Sensitivity, StepDerivatives

__all__ = ['Kink', 'Linearisation', 'ParameterSensitivity', 'Sensitivity', 'StepDerivatives']
