"""Tables of trials: one controller under many laws, time steps, disturbances and seeds."""

from contact_sim.campaign._campaign import (
    Campaign,
    Share,
    product,
    sample,
    shares,
    sobol,
    summary,
)
from contact_sim.campaign._controllers import (
    Adapted,
    Controller,
    ControllerError,
    load_controller,
)
from contact_sim.campaign._isolation import Limits
from contact_sim.campaign._scenarios import SCENARIOS, Scenario, scenario_of
from contact_sim.campaign._table import read_rows, read_table
from contact_sim.campaign._trial import Trial, run_trial, run_trials, trial_of

__all__ = [
    'SCENARIOS',
    'Adapted',
    'Campaign',
    'Controller',
    'ControllerError',
    'Limits',
    'Scenario',
    'Share',
    'Trial',
    'load_controller',
    'product',
    'read_rows',
    'read_table',
    'run_trial',
    'run_trials',
    'sample',
    'scenario_of',
    'shares',
    'sobol',
    'summary',
    'trial_of',
]
