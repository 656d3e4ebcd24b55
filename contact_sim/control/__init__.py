"""Whole-body controllers: functions of time and state, for use in process or in a node."""

from contact_sim.control._balance import Balance, BalanceTuning, Footing, cannot_balance
from contact_sim.control._inverse_dynamics import Answer
from contact_sim.control._policy import (
    BatchPolicy,
    Policy,
    load_policy,
)
from contact_sim.control._policy_file import policy_layouts
from contact_sim.control._stance import BaseGains, BaseMotion, BaseReference, Stance
from contact_sim.control._trot import Trot, TrotTuning

__all__ = [
    'Answer',
    'Balance',
    'BalanceTuning',
    'BaseGains',
    'BaseMotion',
    'BaseReference',
    'BatchPolicy',
    'Footing',
    'Policy',
    'Stance',
    'Trot',
    'TrotTuning',
    'cannot_balance',
    'load_policy',
    'policy_layouts',
]
