"""Is it the controller or the contact law? Runs that decide, and the answer in words."""

from contact_sim.verdict._decision import CAUSES, Evidence, Verdict
from contact_sim.verdict._investigation import verdict
from contact_sim.verdict._parting import Parting, parting
from contact_sim.verdict._rates import Margin
from contact_sim.verdict._search import Counterexample
from contact_sim.verdict._statistics import Effect, Rate

__all__ = [
    'CAUSES',
    'Counterexample',
    'Effect',
    'Evidence',
    'Margin',
    'Parting',
    'Rate',
    'Verdict',
    'parting',
    'verdict',
]
