"""Derivatives of a step with respect to state, efforts and parameters, without relaxation.

`Simulator.derivatives` returns a `StepDerivatives`, `Worlds.derivatives` a `WorldDerivatives`;
`linearised_run` takes many steps, with gradients backwards along them.
"""

from contact_sim.derivatives._result import (
    Kink,
    ParameterSensitivity,
    Sensitivity,
    StepDerivatives,
)
from contact_sim.derivatives._runs import Gradient, LinearisedRun, WorldDerivatives, linearised_run

__all__ = [
    'Gradient',
    'Kink',
    'LinearisedRun',
    'ParameterSensitivity',
    'Sensitivity',
    'StepDerivatives',
    'WorldDerivatives',
    'linearised_run',
]
