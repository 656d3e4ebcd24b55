"""Derivatives of whole steps against central differences of fourth order, away from kinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from step_differences import compare

import contact_sim
from contact_sim import constraints
from contact_sim.derivatives._fields import OPEN, SLIDE, STICK

TIGHT = 1e-14
LAWS = {
    'ncp': contact_sim.Ncp(tolerance=1e-13),
    'anitescu': contact_sim.Anitescu(tolerance=1e-13),
    'anitescu pyramid': contact_sim.Anitescu(tolerance=1e-13, sides=8),
    'lcp': contact_sim.Lcp(),
    'lcp box': contact_sim.Lcp(friction_law='box'),
    'null_space': contact_sim.NullSpace(),
    'todorov': contact_sim.Todorov(tolerance=TIGHT),
    'todorov elliptic': contact_sim.Todorov(tolerance=TIGHT, cone='elliptic'),
    'todorov exact': contact_sim.Todorov(tolerance=TIGHT, cone='elliptic', diagonal='exact'),
    'todorov 2014': contact_sim.Todorov(tolerance=TIGHT, form='2014'),
    'sap': contact_sim.Sap(tolerance=TIGHT),
    'sap similar': contact_sim.Sap(tolerance=TIGHT, approximation='similar'),
    'sap sap': contact_sim.Sap(tolerance=TIGHT, approximation='sap'),
    'compliant': contact_sim.Compliant(tolerance=TIGHT),
    'compliant tanh': contact_sim.Compliant(
        tolerance=TIGHT, normal_law='kelvin_voigt', friction_law='tanh'
    ),
    'compliant explicit': contact_sim.Compliant(
        tolerance=TIGHT, normal_law='linear', friction_law='stribeck', integration='explicit'
    ),
}
"""A law of every kind, as tight as its solver allows."""
ACCURACY = 1e-7
"""Largest error beside the largest derivative to the same input: the accuracy of the differences,
whose own errors are 1e-8 to 1e-10."""


DAMPED_ANCHOR = constraints.PointAnchor('FR_foot', stabilisation=constraints.Baumgarte(9.0))
MOSTLY = 0.6
"""Share of differences that must be good enough to compare; kinks and rounding spoil some."""


def assert_right(sim: contact_sim.Simulator, effort: Any, derivatives: Any, columns: int) -> None:
    """Assert that derivatives are those of the step, in most of some columns."""
    error, share = compare(sim, effort, derivatives, columns, ACCURACY)
    assert error < ACCURACY
    assert share > MOSTLY


def tilted(sim: contact_sim.Simulator, depth: float) -> Any:
    """Return the standing pose, tilted so that the feet have different gaps, `depth` lower."""
    q = sim.q.copy()
    q[2] -= depth
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.002, 0.001, 0.0)).coeffs()
    return q


def moving(sim: contact_sim.Simulator, seed: int, speed: float, steps: int = 2) -> Any:
    """Take some steps from a random state; return random efforts."""
    rng = np.random.default_rng(seed)
    effort = 2.0 * rng.normal(size=sim.robot.n_joints)
    sim.reset(tilted(sim, 1e-3), speed * rng.normal(size=sim.robot.nv))
    for _ in range(steps):
        sim.step(effort)
    return effort


@pytest.mark.parametrize('law', LAWS)
def test_derivatives_of_every_law_are_those_of_the_step(law: str) -> None:
    robot = contact_sim.load_robot('go1')
    sim, modes = contact_sim.Simulator(robot, contact_model=LAWS[law]), set()
    for seed, speed in ((1, 0.02), (2, 0.1), (3, 0.5), (4, 0.004)):
        sim.reset()
        effort = moving(sim, seed, speed)
        before = sim.snapshot().buffer.copy()
        derivatives = sim.derivatives(effort)
        assert np.array_equal(sim.snapshot().buffer, before), 'the simulation has moved'
        modes.update(derivatives.modes[:4].tolist())
        assert_right(sim, effort, derivatives, 5)
    assert len(modes) >= 2 or law == 'null_space'


def test_all_modes_occur_and_their_derivatives_are_those_of_the_step() -> None:
    robot, modes = contact_sim.load_robot('go1'), {STICK: 0, SLIDE: 0, OPEN: 0}
    sim = contact_sim.Simulator(robot, contact_model=LAWS['ncp'])
    for seed in range(12):
        sim.reset()
        effort = moving(sim, seed, 0.05 * (1 + seed % 4), seed % 3)
        derivatives = sim.derivatives(effort)
        for mode in derivatives.modes[:4].tolist():
            modes[mode] += 1
        assert_right(sim, effort, derivatives, 4)
    assert min(modes.values()) >= 3


@pytest.mark.parametrize('name', ['anymal_b', 'solo12', 'hyq'])
def test_derivatives_of_other_robots(name: str) -> None:
    sim = contact_sim.Simulator(contact_sim.load_robot(name), contact_model=LAWS['ncp'])
    rng = np.random.default_rng(5)
    for depth in (1e-3, 5e-4, 2e-4):
        sim.reset()
        effort = rng.normal(size=sim.robot.n_joints)
        q = sim.q.copy()
        q[2] -= depth
        sim.reset(q, 0.1 * rng.normal(size=sim.robot.nv))
        derivatives = sim.derivatives(effort)
        assert_right(sim, effort, derivatives, 5)


@pytest.mark.parametrize(
    ('setting', 'value'),
    [
        ('terrain', contact_sim.SphereGround(radius=3.0)),
        ('terrain', contact_sim.InclinedPlane(0.2)),
        ('terrain', 'wave'),
        ('integrator', 'momentum'),
        ('restitution', 0.3),
        ('constraints', [constraints.PointAnchor('FR_foot')]),
        ('constraints', [DAMPED_ANCHOR]),
        ('constraints', [constraints.JointLock('FR_calf_joint')]),
    ],
)  # fmt: skip
def test_derivatives_with_terrain_integrator_restitution_and_constraints(
    setting: str, value: Any
) -> None:
    robot = contact_sim.load_robot('go1')
    settings: Any = {setting: value}
    sim = contact_sim.Simulator(robot, contact_model=LAWS['ncp'], **settings)
    rng, closed = np.random.default_rng(3), 0
    for seed in range(3):
        sim.reset()
        effort, v = rng.normal(size=12), 0.03 * rng.normal(size=18)
        q = sim.q.copy()
        q[2] -= 1e-3 * (1 + 0.3 * seed)
        if setting == 'restitution':
            v[2] -= 1.0
        elif setting == 'terrain':
            v[2] -= 0.3
        sim.reset(q, v)
        if setting not in ('restitution', 'terrain'):
            sim.step(effort)
        derivatives = sim.derivatives(effort)
        closed += int((derivatives.modes != OPEN).sum())
        assert_right(sim, effort, derivatives, 4)
    assert closed


def test_derivatives_of_a_leg_at_its_limits() -> None:
    robot = contact_sim.load_robot('go1')
    for law in ('ncp', 'todorov', 'sap', 'compliant', 'lcp'):
        sim = contact_sim.Simulator(robot, contact_model=LAWS[law])
        q, rng = sim.q.copy(), np.random.default_rng(1)
        depth = 0.0 if law in ('ncp', 'lcp', 'compliant') else -2e-3
        q[2] += 0.3
        q[7 + 2] = robot.lower_position_limit[2] + 1e-3 + depth
        q[7 + 1] = robot.upper_position_limit[1] - 1e-3 - depth
        v = 0.2 * rng.normal(size=18)
        v[8], v[7] = -3.0, 4.0
        sim.reset(q, v)
        effort = rng.normal(size=12)
        derivatives = sim.derivatives(effort)
        limits = derivatives.step.impulse[-sim.sizes.n_limits :]
        assert np.count_nonzero(limits) == 2
        assert_right(sim, effort, derivatives, 6)


def test_derivatives_of_a_fallen_robot_on_its_body() -> None:
    robot = contact_sim.load_robot('go1')
    for seed in range(3):
        sim = contact_sim.Simulator(robot, contact_model=LAWS['ncp'])
        q, rng = sim.q.copy(), np.random.default_rng(seed)
        q[2] += 0.1
        q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(1.2 + seed, 0.2 * seed, 0.1)).coeffs()
        sim.reset(q, 0.3 * rng.normal(size=18))
        first, nc = 3 * sim.sizes.n_ground, sim.sizes.nc
        for k in range(600):
            sim.step(np.zeros(12))
            if k > 150 + 20 * seed and sim._data.impulse[first : 3 * nc].any():
                break
        effort = rng.normal(size=12)
        derivatives = sim.derivatives(effort)
        assert derivatives.modes[sim.sizes.n_ground :].any()
        assert_right(sim, effort, derivatives, 4)


def test_derivatives_of_a_box_at_rest_are_unique_though_its_forces_are_not() -> None:
    sim = contact_sim.Simulator(contact_sim.loose_box((0.2, 0.2, 0.2), 1.0))
    q = sim.q.copy()
    q[2] -= 1e-4
    sim.reset(q)
    sim.step([])
    derivatives = sim.derivatives([])
    assert derivatives.redundant
    assert (derivatives.modes == STICK).sum() == 4
    # four sticking corners hold the box: v⁺ does not depend on v
    assert np.abs(derivatives.velocity.v).max() < 1e-9
    # each corner is pushed out by 0.2 φ/h: v_z⁺ = −0.2 z/h
    assert np.isclose(derivatives.velocity.q[2, 2], -0.2 / 1e-3, rtol=1e-9)


def test_a_kink_is_named_with_its_side() -> None:
    robot = contact_sim.load_robot('go1')
    sim = contact_sim.Simulator(robot)
    sim.step(np.zeros(12))  # the feet stand at φ = 0, where the correction of gaps has a kink
    sim.step(np.zeros(12))
    kinks = sim.derivatives(np.zeros(12)).kinks_within(1e-3)
    assert any(kink.what == 'gap' for kink in kinks)
    assert all(kink.side for kink in kinks)


def test_derivatives_contain_external_wrenches() -> None:
    sim = contact_sim.Simulator(contact_sim.load_robot('go1'), contact_model=LAWS['ncp'])
    q = sim.q.copy()
    q[2] += 0.2
    sim.reset(q)
    wrenches = {
        'FR_foot': [20.0, 10.0, 5.0, 0.3, 0.2, 0.1],
        sim.robot.base_frame: [9.0, -7.0, 8.0, 2.0, 1.0, 3.0],
    }
    derivatives, snapshot = sim.derivatives(np.zeros(12), wrenches), sim.snapshot()

    def velocity(change):
        sim.restore(snapshot)
        sim.reset(pin.integrate(sim.robot.pinocchio_model, q, change))
        return sim.step(np.zeros(12), wrenches).v

    steps = 1e-4 * np.eye(18)
    columns = [(velocity(step) - velocity(-step)) / 2e-4 for step in steps]
    assert np.allclose(derivatives.velocity.q, np.transpose(columns), rtol=1e-5, atol=1e-7)


def test_what_has_no_derivatives_is_refused_with_a_reason() -> None:
    robot = contact_sim.load_robot('go1')
    for settings, reason in (
        ({'contact_model': 'hybrid'}, 'events'),
        ({'contact_model': contact_sim.Ncp(solver='raisim')}, 'raisim'),
        ({'contact_model': contact_sim.Ncp(multiple_impacts='sequential')}, 'sequential'),
        ({'torsional_friction': 0.01}, 'torsional'),
    ):
        sim = contact_sim.Simulator(robot, **settings)  # type: ignore[arg-type]
        with pytest.raises(contact_sim.InvalidInput, match=reason):
            sim.derivatives(np.zeros(12))
