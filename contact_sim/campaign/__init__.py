"""Tables of trials: one controller under many laws, time steps, disturbances and seeds."""

from contact_sim.campaign._controllers import (
    Controller,
    ControllerError,
    load_controller,
)
from contact_sim.campaign._scenarios import SCENARIOS, Scenario, scenario_of
from contact_sim.campaign._trial import Trial, run_trial, run_trials, trial_of

__all__ = [
    'SCENARIOS',
    'Controller',
    'ControllerError',
    'Scenario',
    'Trial',
    'load_controller',
    'run_trial',
    'run_trials',
    'scenario_of',
    'trial_of',
]
