"""Contact laws against measured motions: data sets, experiments, fits, rankings."""

from contact_sim.reality._benchmark import (
    Effort,
    Mean,
    Outcome,
    Ranking,
    fit,
    mean_of,
    outcomes_of,
    split,
)
from contact_sim.reality._cassie import LandingExperiment, cassie
from contact_sim.reality._data_sets import (
    SOURCES,
    Landing,
    PlanarImpacts,
    Source,
    Toss,
    fetch,
    read_landings,
    read_planar_impacts,
    read_tosses,
)
from contact_sim.reality._experiments import (
    Experiment,
    ImpactExperiment,
    Measure,
    TossExperiment,
)
from contact_sim.reality._laws import Candidate, Free, Law, laws
from contact_sim.reality._peers import peer_outcome

__all__ = [
    'SOURCES',
    'Candidate',
    'Effort',
    'Experiment',
    'Free',
    'ImpactExperiment',
    'Landing',
    'LandingExperiment',
    'Law',
    'Mean',
    'Measure',
    'Outcome',
    'PlanarImpacts',
    'Ranking',
    'Source',
    'Toss',
    'TossExperiment',
    'cassie',
    'fetch',
    'fit',
    'laws',
    'mean_of',
    'outcomes_of',
    'peer_outcome',
    'read_landings',
    'read_planar_impacts',
    'read_tosses',
    'split',
]
