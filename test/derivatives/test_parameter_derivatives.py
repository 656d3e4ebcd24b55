"""Derivatives to parameters against central differences of whole steps."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from step_differences import outcome, subtract

import contact_sim

TIGHT = 1e-14
LAWS = {
    'ncp': contact_sim.Ncp(tolerance=1e-13),
    'anitescu': contact_sim.Anitescu(tolerance=1e-13),
    'lcp': contact_sim.Lcp(),
    'todorov': contact_sim.Todorov(tolerance=TIGHT),
    'todorov 2014': contact_sim.Todorov(tolerance=TIGHT, form='2014'),
    'sap': contact_sim.Sap(tolerance=TIGHT),
    'compliant': contact_sim.Compliant(tolerance=TIGHT, stiffness=4e4, tangential_stiffness=3e4),
}
RESULTS = ('configuration', 'velocity', 'impulse', 'force')
ACCURACY = 1e-6
"""Largest error beside the largest number of a column: that of differences of two sizes."""


@cache
def go1() -> contact_sim.RobotModel:
    """Return the robot of most tests, loaded once: a difference takes 14 simulations."""
    return contact_sim.load_robot('go1')


def simulator(law: str, **settings: Any) -> contact_sim.Simulator:
    """Return a simulation of a standing robot on the way."""
    robot = settings.pop('robot', None) or go1()
    sim = contact_sim.Simulator(robot, contact_model=settings.pop('model', LAWS[law]), **settings)
    rng = np.random.default_rng(7)
    q = sim.q.copy()
    q[2] -= 1e-3
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.002, 0.001, 0.0)).coeffs()
    v = 0.05 * rng.normal(size=18)
    v[2] -= 0.3
    sim.reset(q, v)
    return sim


EFFORT = np.random.default_rng(8).normal(size=12)


def assert_column(law: str, derivatives: Any, column: int, changed: Any, size: float) -> None:
    """Assert that a column is the difference of the steps of `changed(s)`, a Simulator each."""
    model = changed(0.0).robot.pinocchio_model

    def run(s: float) -> Any:
        sim = changed(s)
        return outcome(sim, sim.snapshot(), EFFORT, {})

    base = run(0.0)['configuration']
    best = {result: np.inf for result in RESULTS}
    for share in (1.0, 0.1, 0.01):
        s = share * size
        near, far = (subtract(model, base, run(k * s), run(-k * s)) for k in (1, 2))
        for result in RESULTS:
            found = (8.0 * near[result] - far[result]) / (12.0 * s)
            own = getattr(derivatives, result)
            own = own.reshape(-1, own.shape[-1])[:, column]
            scale = max(np.abs(own).max(initial=0.0), np.abs(found).max(initial=0.0), 1e-4)
            if result == 'force':  # that of the impulses, for (dλ − f dh)/h may be zero
                scale = max(scale, np.abs(derivatives.impulse[:, column]).max() / 1e-3)
            best[result] = min(best[result], np.abs(own - found).max(initial=0.0) / scale)
    assert max(best.values()) < ACCURACY, best


@pytest.mark.parametrize('law', LAWS)
def test_derivatives_to_friction_time_step_and_gravity(law: str) -> None:
    derivatives = simulator(law).derivatives(EFFORT)
    friction = np.full(4, 0.8)

    def with_friction(s: float) -> contact_sim.Simulator:
        return simulator(law, friction=friction + s * np.eye(4)[1])

    assert_column(law, derivatives.with_respect_to('friction'), 1, with_friction, 1e-3)
    assert_column(
        law, derivatives.with_respect_to('time_step'), 0,
        lambda s: simulator(law, time_step=1e-3 + s), 1e-6,
    )  # fmt: skip
    if law != 'compliant':  # sized by weight
        assert_column(
            law, derivatives.with_respect_to('gravity'), 2,
            lambda s: simulator(law, gravity=(0.0, 0.0, -9.81 + s)), 1e-2,
        )  # fmt: skip


@pytest.mark.parametrize(
    ('law', 'name'),
    [
        ('todorov', 'time_constant'), ('todorov', 'impedance_start'), ('todorov', 'damping_ratio'),
        ('todorov 2014', 'regularisation'), ('todorov 2014', 'error_reduction_time'),
        ('sap', 'stiffness'), ('sap', 'dissipation'), ('sap', 'stiction_tolerance'),
        ('sap', 'sigma'), ('compliant', 'stiffness'), ('compliant', 'dissipation'),
        ('compliant', 'tangential_stiffness'),
    ],
)  # fmt: skip
def test_derivatives_to_numbers_of_the_law(law: str, name: str) -> None:
    model: Any = LAWS[law]
    value = getattr(model.parameters, name)
    derivatives = simulator(law).derivatives(EFFORT).with_respect_to(name)

    def changed(s: float) -> contact_sim.Simulator:
        other = type(model)(**{**vars(model.parameters), name: value + s})
        return simulator(law, model=other)

    assert_column(law, derivatives, 0, changed, 1e-3 * value)


def test_derivatives_to_restitution_and_baumgarte() -> None:
    sim = simulator('ncp', restitution=0.2)
    assert (sim.q[2]) > 0.0
    derivatives = sim.derivatives(EFFORT)
    assert_column(
        'ncp', derivatives.with_respect_to('restitution'), 0,
        lambda s: simulator('ncp', restitution=[0.2 + s, 0.2, 0.2, 0.2]), 1e-3,
    )  # fmt: skip

    def with_baumgarte(s: float) -> contact_sim.Simulator:
        own = simulator('ncp', restitution=0.2)
        own.baumgarte = 0.2 + s
        return own

    assert_column('ncp', derivatives.with_respect_to('baumgarte'), 0, with_baumgarte, 1e-3)


def test_derivatives_to_inertial_parameters() -> None:
    """Masses and centres of mass of two bodies; soft laws weigh contacts with them."""
    law = 'ncp'
    robot = contact_sim.load_robot('go1')
    derivatives = simulator(law).derivatives(EFFORT).with_respect_to('inertial')
    for joint, number in ((1, 0), (1, 1), (4, 0), (4, 6)):

        def changed(s: float, joint: int = joint, number: int = number) -> contact_sim.Simulator:
            own = simulator(law)
            model = own.robot.pinocchio_model
            before = model.inertias[joint].toDynamicParameters()
            after = before.copy()
            after[number] += s
            work = own._workspace
            work.body[:] = body_rows(robot, joint, after)
            own._resume()
            return own

        assert_column(law, derivatives, 10 * (joint - 1) + number, changed, 1e-4)


def body_rows(robot: Any, joint: int, parameters: Any) -> Any:
    """Return the bodies of the kernels with other dynamic parameters of one joint."""
    from contact_sim.dynamics._tree import tree_of

    model = robot.pinocchio_model.copy()
    model.inertias[joint] = pin.Inertia.FromDynamicParameters(parameters)
    return tree_of(model).body


@pytest.mark.parametrize('name', ['damping', 'armature', 'joint_friction'])
def test_derivatives_to_joint_parameters(name: str) -> None:
    derivatives = simulator('ncp').derivatives(EFFORT).with_respect_to(name)
    for dof in (7, 11, 14):

        def changed(s: float, dof: int = dof) -> contact_sim.Simulator:
            own = simulator('ncp')
            work = own._workspace
            if name == 'joint_friction':
                row = work.interval_dof.tolist().index(dof)
                work.interval_upper[row] += s
                work.interval_lower[row] -= s
                work.set_time_step(1e-3)
            else:
                getattr(work, name)[dof] += s
                own._resume()
            return own

        assert_column('ncp', derivatives, dof, changed, 1e-4)


def test_saturated_actuators_pass_nothing_on() -> None:
    sim = simulator('ncp')
    effort = EFFORT.copy()
    effort[2] = 2.0 * sim.robot.effort_limit[2]
    derivatives = sim.derivatives(effort)
    assert not derivatives.velocity.effort[:, 2].any()
    assert derivatives.velocity.effort[:, 3].any()
