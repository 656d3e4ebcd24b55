"""Derivatives along runs in closed loop, with feet that lift and land, against other runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from verdict_search import SMOOTH, Counted, tangents

from contact_sim.campaign import Trial, scenario_of
from contact_sim.campaign._trial import Prepared, robot_of
from contact_sim.verdict._plan import factors_of
from contact_sim.verdict._search import disturbed

CHANGE = 1e-6
"""Of a factor, over its reach, in the differences: the trot is rough beyond 1e-5."""


def last_state(trial: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v at the end of a trial."""
    prepared = Prepared(trial)
    controller, sim = prepared.controller, prepared.simulator()
    push = {prepared.nominal.base_frame: prepared.disturbances.wrench}
    controller.command(prepared.scenario.speed)
    controller.reset(sim)
    for step in range(prepared.steps):
        effort = controller.effort(sim.time, sim.q, sim.v)
        sim.step(effort, push if step in prepared.disturbances.pushed else None)
    return sim.q, sim.v


@pytest.mark.parametrize(('controller', 'scenario'), [('stance', 'stand'), ('trot', 'trot')])
def test_tangents_of_a_run_are_those_of_its_differences(controller: str, scenario: str) -> None:
    nominal = Trial(controller, scenario=scenario, seconds=0.75)
    robot, friction = robot_of('go1'), scenario_of(scenario).friction
    factors = [f for f in factors_of(nominal, robot.total_mass, friction) if f.name in SMOOTH]
    point = np.full(len(factors), 0.1)
    places, found, prepared, fell = tangents(Counted(nominal, factors), point)
    assert not fell
    trial, model = disturbed(nominal, factors, point), prepared.robot.pinocchio_model
    np.testing.assert_array_equal(places[-1], last_state(trial)[0])
    for k, factor in enumerate(factors):
        change = CHANGE * (factor.reach - factor.nominal)
        value = getattr(trial, factor.name)
        (q0, v0), (q1, v1) = (
            last_state(replace(trial, **{factor.name: value + sign * change}))
            for sign in (-1.0, 1.0)
        )
        seen = np.concatenate([pin.difference(model, q0, q1), v1 - v0]) / (2.0 * CHANGE)
        if np.linalg.norm(seen) < 1e-3:  # friction, where nothing slides
            assert np.linalg.norm(found[:, k]) < 2e-3
            continue
        # the smallest, of friction, is a rest of larger ones: 2 % off
        assert np.linalg.norm(found[:, k] - seen) < 0.03 * np.linalg.norm(seen), factor.name
