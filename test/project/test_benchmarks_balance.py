"""benchmarks/balance.py: trials of robots that are pushed, and rows of its table."""

import balance
import pytest
from legged import biped

from contact_sim import load_robot


@pytest.fixture(scope='module')
def trials():
    return balance.Trials(load_robot(biped(), feet=['sole_l', 'sole_r']))


def test_a_push_far_beyond_the_limit_fells_and_half_of_it_does_not(trials):
    push = trials.limit[0] * balance.WAYS[0]
    assert trials.stands([(0.0, 0.5 * push)], 1.0) == 1.0
    assert trials.stands([(0.0, 5.0 * push)], 1.0) < 1.0


def test_rows_have_all_columns():
    columns = len(balance.HEADINGS)
    found = {
        'joints': 12, 'mass': 33.0, 'held': True, 'z': 0.7, 'seconds': 4.0, 'alone': 10.0,
        'reach': [80.0] * 4, 'tick': 0.2, 'why': '', 'impulses': [10.0] * 4,
        'shares': [0.1] * 4, 'ratios': [1.0] * 4,
    }  # fmt: skip
    full = balance.row('r', found)
    assert '| 4 (10 without) |' in full
    assert '| 10, 10, 10, 10 | 0.10, 0.10, 0.10, 0.10 | 1.00, 1.00, 1.00, 1.00 |' in full
    cannot = balance.row('r', {'joints': 6, 'mass': 1.0, 'held': False, 'why': 'points'})
    assert cannot.endswith('| cannot: points |')
    refused = balance.row('r', {'refused': 'no mass'})
    assert refused.endswith('refused: no mass |')
    for line in (full, cannot, refused):
        assert line.count('|') == columns + 1
