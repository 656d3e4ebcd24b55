"""A short run of every kind of odd inputs; `make fuzz` is the long one."""

import pytest
from fuzz import maker_of
from fuzz_calls import calls
from fuzz_workers import Unlawful, hunt

COUNTS = {'calls': 250, 'urdfs': 250, 'recordings': 75, 'problems': 500, 'files': 150}
"""Some seconds of each kind."""


@pytest.mark.parametrize('kind', COUNTS)
def test_odd_inputs_are_refused_in_our_words(kind):
    tally = hunt(maker_of(kind), kind, seed=0, count=COUNTS[kind], patience=30.0)
    assert not tally.findings, str(tally)
    assert tally.inputs == COUNTS[kind]
    assert 0.2 * tally.inputs < tally.refused < tally.inputs  # some are good enough


def test_every_public_call_is_tried():
    names = {call.name for call in calls()}
    assert {'Simulator.reset', 'Simulator.friction', 'load_robot', 'Imu', 'holding'} <= names
    assert len(names) > 150


class Bad:
    """Inputs that go wrong in every way."""

    def __init__(self, folder):
        self.said = ''

    def run(self, chance):
        self.said = 'bad'
        what = chance.randrange(5)
        if what == 0:
            raise KeyError('raw')
        if what == 1:
            raise Unlawful('nan')
        if what == 2:
            import os

            os._exit(7)
        if what == 3:
            import time

            time.sleep(60.0)


def test_what_goes_wrong_is_found():
    tally = hunt(Bad, 'bad', seed=24, count=6, patience=0.5)
    assert tally.inputs == 6
    ways = {what.partition(' at ')[0] for what in tally.groups()}
    assert ways == {'KeyError', 'accepted: nan', 'the process ended with 7', 'hang'}
    assert all(f.command.endswith(f'bad --seed 24 --number {f.number}') for f in tally.findings)
