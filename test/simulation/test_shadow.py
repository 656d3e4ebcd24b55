"""Shadow solves: other models answer the same step, and the simulation keeps every bit."""

import numpy as np
import pytest
from robots import StandingController, ball, cube, pose, rigid_body

from contact_sim import (
    Compliant,
    Hybrid,
    InvalidInput,
    NonFiniteState,
    Sap,
    Simulator,
    UnknownName,
    contact_models,
    load_robot,
)

GRAVITY, NO_EFFORT = 9.81, np.zeros(0)
ALL = contact_models()


def landing(model, shadow, steps=120, read=True):
    """Return the buffers of a go1 that lands, sliding and pushed, with shadows read or not."""
    sim = Simulator(load_robot('go1'), model)
    controller = StandingController(sim)
    q, v = sim.q.copy(), np.zeros(sim.robot.nv)
    q[2] += 5e-3
    v[:2] = 0.6, 0.3
    sim.reset(q, v)
    sim.shadow = shadow
    buffers = []
    for k in range(steps):
        report = sim.step(controller(sim), {'trunk': [3.0, 0, 0, 0, 0, 1.0]} if k > 30 else None)
        if read and k % 5 == 0:
            assert tuple(report.shadows) == sim.shadow
            assert all(np.isfinite(shadow.force).all() for shadow in report.shadows.values())
        buffers.append(sim.snapshot().buffer.tobytes())
    return buffers


@pytest.mark.parametrize('model', ALL)
def test_shadows_change_no_bit_of_the_run(model):
    alone = landing(model, ())
    assert landing(model, ALL) == alone
    assert landing(model, ALL, read=False) == alone


@pytest.mark.parametrize('model', ALL)
def test_the_shadow_of_the_same_model_is_the_step_itself(model):
    sim = Simulator(load_robot('go1'), model)
    controller = StandingController(sim)
    sim.reset(v=[0.6, 0.3, *(0.0 for _ in range(sim.robot.nv - 2))])
    sim.shadow = (model,)
    for _ in range(60):
        report = sim.step(controller(sim), {'trunk': [3.0, 0, 0, 0, 0, 1.0]})
        shadow = report.shadows[model].step
        assert shadow.record.buffer.tobytes() == report.record.buffer.tobytes()


@pytest.mark.parametrize('model', ALL)
def test_a_shadow_answers_what_a_switched_simulation_would(model):
    """The reference is the live switch: snapshot, switch, step, and back."""
    sim = Simulator(load_robot('go1'), 'ncp')
    controller = StandingController(sim)
    sim.reset(v=[0.6, 0.3, *(0.0 for _ in range(sim.robot.nv - 2))])
    sim.shadow = (model,)
    for k in range(60):
        before, effort = sim.snapshot(), controller(sim)
        report = sim.step(effort)
        if k % 10:
            continue
        after = sim.snapshot()
        sim.restore(before)
        sim.contact_model = model
        switched = sim.step(effort)
        sim.restore(after)
        shadow = report.shadows[model]
        assert np.array_equal(shadow.force, switched.contacts.force)
        assert np.array_equal(shadow.velocity, switched.record.v_next)
        assert shadow.step.solver == switched.solver


def test_a_sliding_block_differs_as_the_laws_say():
    """Anitescu lifts off with u_n = μ |u_t| in the first sliding step (theory T20, 2.12).

    The force that lifts it: m (μ u_t + h g) / h on top of nothing, ncp holds m g.
    """
    mu, h = 0.4, 1e-3
    sim = Simulator(cube(), 'ncp', friction=mu, time_step=h)
    sim.reset(pose(z=0.1), np.array([1.0, 0, 0, 0, 0, 0]))
    sim.shadow = ('anitescu', 'lcp')
    report = sim.step(NO_EFFORT)
    lifted = report.shadows['anitescu']
    speed = lifted.velocity[0]
    assert lifted.velocity[2] == pytest.approx(mu * speed, rel=1e-6)
    lift = lifted.force_difference.sum(axis=0)
    assert lift[2] == pytest.approx((mu * speed) / h, rel=1e-6)
    assert lift[0] == pytest.approx(-mu * lift[2], rel=1e-6)
    assert lifted.velocity_difference[0] * 1.0 / h == pytest.approx(lift[0], rel=1e-6)
    exact = report.shadows['lcp']  # the slip lies along an edge of the pyramid
    assert exact.force_difference.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-6)
    assert exact.velocity_difference == pytest.approx(np.zeros(6), abs=1e-9)


def test_a_spring_ahead_of_the_ground_pushes_where_others_do_not():
    """SAP's original dissipation, asked to, acts at φ < −τ_d u_n (2.3): 5 mm above, at −1 m/s."""
    sap = Sap(approximation='sap', stiffness=1e4, relaxation_time=0.02, acts_ahead=True)
    sim = Simulator(ball(), 'ncp')
    sim.shadow = (sap, 'compliant')
    sim.reset(pose(z=0.1 + 5e-3), np.array([0, 0, -1.0, 0, 0, 0]))
    report = sim.step(NO_EFFORT)
    assert report.contacts.force[0, 2] == 0.0
    assert report.shadows['compliant'].force_difference[0, 2] == 0.0
    assert report.shadows['sap'].force[0, 2] > 1.0


def test_memory_belongs_to_the_model_that_takes_the_step():
    """Anchored springs remember their deflection; as a shadow they start without, every step."""
    anchored = Compliant(friction_law='anchored')
    sim = Simulator(cube(), anchored, friction=0.8, gravity=[2.0, 0, -GRAVITY])
    sim.reset(pose(z=0.1))
    sim.shadow = (anchored,)
    for _ in range(500):
        report = sim.step(NO_EFFORT)
    assert report.contacts.force.sum(axis=0)[0] == pytest.approx(-2.0, rel=1e-3)
    assert np.array_equal(report.shadows['compliant'].force, report.contacts.force)
    sim.contact_model = 'ncp'
    report = sim.step(NO_EFFORT)
    assert not sim.snapshot().buffer[slice(*sim.sizes.layout['memory'][:2])].any()
    assert np.isfinite(report.shadows['compliant'].velocity).all()
    assert report.shadows['compliant'].step.stiffness_ratio > 0.0
    assert report.stiffness_ratio == 0.0


def test_restitution_and_gravity_of_the_moment_hold_for_shadows():
    sim = Simulator(ball(), 'ncp', restitution=0.0)
    sim.shadow = ('ncp', 'hybrid')
    sim.restitution = 0.8
    sim.reset(pose(z=0.1), np.array([0, 0, -1.0, 0, 0, 0]))
    report = sim.step(NO_EFFORT)
    assert report.v[2] == pytest.approx(0.8, abs=0.02)
    assert report.shadows['ncp'].velocity[2] == report.record.v_next[2]
    assert report.shadows['hybrid'].velocity[2] == pytest.approx(0.8, abs=0.02)


def test_a_shadow_without_a_finite_answer_says_so():
    """Explicit springs on a stiff ground explode; the step that is taken does not care."""
    stiff = Compliant(integration='explicit', stiffness=1e308)
    sim = Simulator(cube(), 'ncp')
    sim.shadow = (stiff,)
    sim.reset(pose(z=0.1 - 1e-3), np.array([0, 0, -1e10, 0, 0, 0]))
    report = sim.step(NO_EFFORT)
    shadow = report.shadows['compliant']
    assert not shadow.finite
    assert np.isnan(shadow.force).all()
    assert np.isnan(shadow.velocity_difference).all()
    assert np.isfinite(report.v).all()


def test_shadows_can_be_taken_away():
    sim = Simulator(cube(), 'ncp')
    assert sim.shadow == ()
    sim.shadow = ['sap', Hybrid()]
    assert sim.shadow == ('sap', 'hybrid')
    report = sim.step(NO_EFFORT)
    sim.shadow = ()
    assert sim.step(NO_EFFORT).shadows == {}
    assert tuple(report.shadows) == ('sap', 'hybrid')  # a report stays valid


@pytest.mark.parametrize(
    ('models', 'error', 'words'),
    [
        (['nosuch'], UnknownName, "'nosuch'; known: null_space"),
        (['sap', Sap(stiffness=1e6)], InvalidInput, 'sap.*only once'),
        ('sap', InvalidInput, "'sap': expected a list"),
        (3, InvalidInput, 'expected a list'),
        ([3], InvalidInput, 'expected a name or an instance'),
    ],
)
def test_a_wrong_list_of_shadows_is_refused_and_changes_nothing(models, error, words):
    sim = Simulator(cube(), 'ncp')
    sim.shadow = ('lcp',)
    with pytest.raises(error, match=words):
        sim.shadow = models
    assert sim.shadow == ('lcp',)


def test_a_failed_step_leaves_shadows_in_order():
    sim = Simulator(rigid_body('top', 1.0, np.diag([1.0, 2.0, 2.5]), [([0.0] * 3, 0.1)]), 'ncp')
    sim.shadow = ('sap',)
    sim.reset(pose(z=0.1), np.array([0.0, 0.0, 0.0, 1e99, 1e99, 0.0]))
    with pytest.raises(NonFiniteState):
        sim.step(NO_EFFORT)
    sim.reset(pose(z=0.1))
    assert np.isfinite(sim.step(NO_EFFORT).shadows['sap'].force).all()
