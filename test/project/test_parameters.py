"""Declared parameters: without a default, without a value, in pairs, from plain values."""

from dataclasses import dataclass

import numpy as np
import pytest

from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.parameters import Parameters, from_mapping, parameter, required


@dataclass(frozen=True, kw_only=True)
class Step(Parameters):
    height: float = required('m', 'height of a step', above=0.0)
    range: tuple[float, float] = parameter((0.0, 1.0), 'm', 'two ends', at_least=0.0)
    limit: float | None = parameter(None, 'm', 'a limit, or none', above=0.0)


def test_plain_values_become_the_declared_types():
    step = from_mapping(Step, {'height': 1, 'range': [0, 2], 'limit': np.float64(3.0)})
    assert step == Step(height=1.0, range=(0.0, 2.0), limit=3.0)
    assert [type(value) for value in (step.height, step.range[1], step.limit)] == 3 * [float]
    assert from_mapping(Step, {'height': 1.0, 'limit': None}).limit is None


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ({}, r'Step.height \[m\] is missing: height of a step'),
        ({'height': None}, 'Step.height = None m: expected float, got NoneType'),
        ({'height': 1.0, 'range': [1.0]}, 'expected 2 values, got 1'),
        ({'height': 1.0, 'range': None}, 'expected a list'),
        ({'height': 1.0, 'range': [0.0, -1.0]}, r'expected a finite value in \[0, inf\)'),
        ({'height': 1.0, 'limit': 0.0}, r'expected a finite value in \(0, inf\)'),
        ({'height': 1.0, 'limit': 'none'}, 'expected float, got str'),
    ],
)
def test_values_that_are_missing_or_wrong_are_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        from_mapping(Step, values)


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        from_mapping(Step, {'hight': 1.0})
    assert str(caught.value) == (
        "unknown parameter of Step 'hight'; known: height, range, limit; did you mean 'height'?"
    )
    assert 'mean' not in str(UnknownName('step', 'xyz', ['height']))
