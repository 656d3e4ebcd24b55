"""Compare all contact models on one scenario: table, CSV and figure."""

from contact_sim._deprecated import renamed
from contact_sim.compare._runs import (
    Measures,
    ModelRun,
    Trace,
    compare,
)
from contact_sim.compare._scenarios import Scenario, scenario_of

__all__ = [
    'Measures',
    'ModelRun',
    'Scenario',
    'Trace',
    'compare',
    'scenario_of',
]

__getattr__ = renamed('compare')
