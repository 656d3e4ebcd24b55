"""Derivatives along runs and in many worlds."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import contact_sim
from contact_sim.derivatives import linearised_run

LAW = contact_sim.Sap(tolerance=1e-13)
"""A law that is smooth where a robot stands, so that differences along a run are good."""


def start() -> contact_sim.Simulator:
    """Return a robot that sinks into soft ground."""
    sim = contact_sim.Simulator(contact_sim.load_robot('go1'), contact_model=LAW)
    q = sim.q.copy()
    q[2] -= 2e-3
    sim.reset(q, 0.02 * np.random.default_rng(2).normal(size=18))
    return sim


def test_gradient_of_a_run_is_that_of_its_differences() -> None:
    rng, steps = np.random.default_rng(3), 20
    efforts = rng.normal(size=(steps, 12))
    run = linearised_run(start(), efforts, ('inertial',))
    weights = rng.normal(size=(steps + 1, 36))
    gradient = run.adjoint(weights)
    model = start().robot.pinocchio_model

    def cost(changed: np.ndarray) -> float:
        sim, total = start(), 0.0
        for t, effort in enumerate(changed):
            sim.step(effort)
            x = np.concatenate([pin.difference(model, run.q[t + 1], sim.q), sim.v - run.v[t + 1]])
            total += weights[t + 1] @ x
        return total

    for t, k in ((0, 1), (5, 7), (19, 11)):
        unit = np.zeros_like(efforts)
        unit[t, k] = 1e-3
        near = (cost(efforts + unit) - cost(efforts - unit)) / 2e-3
        assert np.isclose(gradient.effort[t, k], near, rtol=1e-5, atol=1e-8)


def test_tangent_and_adjoint_are_transposes() -> None:
    rng = np.random.default_rng(4)
    run = linearised_run(start(), rng.normal(size=(15, 12)))
    weights, dx, du = rng.normal(size=(16, 36)), rng.normal(size=36), rng.normal(size=(15, 12))
    gradient = run.adjoint(weights)
    forwards = (weights * run.tangent(dx, du)).sum()
    backwards = gradient.start @ dx + (gradient.effort * du).sum()
    assert np.isclose(forwards, backwards, rtol=1e-10)


def test_runs_with_memory_are_refused() -> None:
    sim = contact_sim.Simulator(contact_sim.load_robot('go1'), contact_model='compliant')
    with pytest.raises(contact_sim.InvalidInput, match='anchors'):
        linearised_run(sim, np.zeros((2, 12)))


def test_derivatives_of_many_worlds_are_those_of_each() -> None:
    robot, n = contact_sim.load_robot('go1'), 5
    friction = np.linspace(0.3, 0.9, n)[:, None]
    worlds = contact_sim.Worlds(robot, n, friction=friction, threads=2)
    rng = np.random.default_rng(5)
    q = np.repeat(worlds.q[:1], n, axis=0)
    q[:, 2] -= 1e-4 * np.arange(1, n + 1)
    v, efforts = 0.05 * rng.normal(size=(n, 18)), rng.normal(size=(n, 12))
    worlds.reset(q, v)
    found = worlds.derivatives(efforts)
    assert np.array_equal(worlds.q, q)
    for i in range(n):
        sim = contact_sim.Simulator(robot, friction=float(friction[i, 0]))
        sim.reset(q[i], v[i])
        own = sim.derivatives(efforts[i])
        assert np.array_equal(found.state[i], own.state_matrix)
        assert np.array_equal(found.input[i], own.input_matrix)


def test_a_run_of_a_body_without_motors_is_linearised() -> None:
    robot = contact_sim.load_robot('sliding_brick')
    sim = contact_sim.Simulator(robot, contact_model='ncp')
    run = linearised_run(sim, np.zeros((3, 0)))
    assert run.input.shape == (3, 2 * robot.nv, 0)
    assert run.adjoint(np.zeros((4, 2 * robot.nv))).effort.shape == (3, 0)
