"""Sine and cosine against numpy, and against each other where numpy has no better digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contact_sim.dynamics.angles import MOST, sine_cosine


@pytest.mark.parametrize('size', [1e-9, 1e-3, 1.0, 10.0, 1e4, 0.999 * MOST, 10 * MOST])
def test_sine_and_cosine_equal_numpy_to_two_units_in_the_last_place(size):
    angles = np.random.default_rng(0).uniform(-size, size, 20_000)
    found = np.array([sine_cosine(angle) for angle in angles.tolist()])
    for values, exact in zip(found.T, (np.sin(angles), np.cos(angles)), strict=True):
        assert (np.abs(values - exact) <= 2.0 * np.spacing(np.abs(exact))).all()


@given(st.integers(-60_000, 60_000), st.sampled_from([-1e-12, 0.0, 1e-12, 0.25, -0.7]))
def test_quarter_turns_are_reduced_without_loss(quarters, rest):
    angle = quarters * (np.pi / 2) + rest
    sine, cosine = sine_cosine(angle)
    for value, exact in ((sine, np.sin(angle)), (cosine, np.cos(angle))):
        assert abs(value - exact) <= 2.0 * np.spacing(abs(exact))


def test_what_is_no_number_stays_none():
    for angle in (np.nan, np.inf, -np.inf):
        assert np.isnan(sine_cosine(angle)).all()
