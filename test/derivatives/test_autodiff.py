"""Runs as functions of arrays: their gradients equal differences of whole runs."""

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import InvalidInput, Simulator, load_robot
from contact_sim.derivatives._autodiff import (
    StateGradients,
    checked_arguments,
    linearised_from,
    tangent_map,
)
from contact_sim.errors import ContactSimError

STEPS = 6


@pytest.fixture(scope='module')
def sim():
    """A quadruped that slides on its feet under a smooth law."""
    return Simulator(load_robot('quadruped'), contact_model='sap', friction=0.3)


def start(sim):
    rng = np.random.default_rng(3)
    v = np.zeros(sim.robot.nv)
    v[:2] = 0.8, 0.3
    efforts = rng.normal(scale=2.0, size=(STEPS, sim.robot.n_joints))
    q = sim.standing_configuration()
    q[2] -= 2e-4  # at a gap of 0 the force has a kink
    return q, v, efforts


def costs(sim):
    """Return weights of a cost that is linear in all states."""
    rng = np.random.default_rng(4)
    return rng.normal(size=(STEPS + 1, sim.robot.nq)), rng.normal(size=(STEPS + 1, sim.robot.nv))


def cost(sim, q, v, efforts, parameters):
    of_q, of_v = costs(sim)
    run = linearised_from(sim, q, v, efforts, parameters)
    return float(np.sum(of_q * run.q) + np.sum(of_v * run.v))


def difference(function, x, step=1e-7):
    return (function(x + step) - function(x - step)) / (2.0 * step)


def gradients(sim, parameters):
    run = linearised_from(sim, *start(sim), parameters)
    return StateGradients(sim, run, parameters).of(*costs(sim))


def test_gradients_of_state_and_efforts_equal_differences(sim):
    q, v, efforts = start(sim)
    of_q, of_v, of_efforts, none = gradients(sim, {})
    assert none == {}
    rng, model = np.random.default_rng(5), sim.robot.pinocchio_model
    way_q, way_v = rng.normal(size=sim.robot.nv), rng.normal(size=sim.robot.nv)
    way = rng.normal(size=efforts.shape)
    along = tangent_map(model, q) @ way_q
    scale = abs(of_q @ along)
    found = difference(
        lambda x: cost(sim, pin.integrate(model, q, x * way_q), v, efforts, {}), 0.0
    )
    assert of_q @ along == pytest.approx(found, abs=2e-6 * scale)
    found = difference(lambda x: cost(sim, q, v + x * way_v, efforts, {}), 0.0)
    assert of_v @ way_v == pytest.approx(found, rel=1e-6)
    found = difference(lambda x: cost(sim, q, v, efforts + x * way, {}), 0.0)
    assert np.sum(of_efforts * way) == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize('name', ['friction', 'time_step'])
def test_gradients_of_one_number_equal_differences(sim, name):
    value = float(np.max(getattr(sim, name)))
    _, _, _, found = gradients(sim, {name: value})
    expected = difference(lambda x: cost(sim, *start(sim), {name: value + x}), 0.0, 1e-6)
    assert found[name] == pytest.approx(expected, rel=1e-5)


def test_friction_of_each_foot_has_a_gradient(sim):
    mu = np.array([0.3, 0.25, 0.35, 0.28])
    _, _, _, found = gradients(sim, {'friction': mu})
    way = np.array([1.0, -0.5, 0.2, 0.7])
    expected = difference(lambda x: cost(sim, *start(sim), {'friction': mu + x * way}), 0.0)
    assert found['friction'].shape == (4,)
    assert found['friction'] @ way == pytest.approx(expected, rel=1e-5)


def test_the_simulation_is_afterwards_as_before(sim):
    sim.reset()
    before = sim.snapshot()
    linearised_from(sim, *start(sim), {'friction': 0.7, 'time_step': 2e-3})
    after = sim.snapshot()
    assert np.array_equal(before.buffer, after.buffer)
    assert np.array_equal(before.friction, after.friction)
    with pytest.raises(InvalidInput, match='friction'):
        linearised_from(sim, *start(sim), {'time_step': 2e-3, 'friction': -1.0})
    assert np.array_equal(before.friction, sim.snapshot().friction)


@pytest.mark.parametrize(
    ('changed', 'reason'),
    [
        ({'sim': 'go1'}, "sim = 'go1': expected a Simulator"),
        ({'q': 'home'}, "q = 'home': expected an array"),
        ({'q': np.zeros(3)}, r'q: shape \(3,\), expected \(19,\)'),
        ({'v': np.zeros((18, 1))}, r'v: shape \(18, 1\), expected \(18,\)'),
        ({'efforts': np.zeros(12)}, r'efforts: shape \(12,\), expected \(T, 12\)'),
        ({'parameters': 5}, 'parameters = 5: expected values by name'),
        ({'parameters': {'gravity': 9.81}}, "unknown parameter 'gravity'"),
        ({'parameters': {'friction': 'a'}}, "friction = 'a': expected an array"),
        ({'parameters': {'friction': np.zeros((2, 2))}}, 'friction: shape'),
        ({'parameters': {'time_step': np.zeros(1)}}, 'time_step: shape'),
    ],
    ids=str,
)
def test_odd_arguments_are_refused(sim, changed, reason):
    q, v, efforts = start(sim)
    given = {'sim': sim, 'q': q, 'v': v, 'efforts': efforts, 'parameters': None} | changed
    state = given['q'], given['v'], given['efforts']
    with pytest.raises(ContactSimError, match=reason):
        checked_arguments(
            given['sim'], state, given['parameters'], lambda x: np.asarray(x, dtype=float)
        )


@pytest.mark.parametrize(
    'joint',
    [
        pin.JointModelFreeFlyer(), pin.JointModelSpherical(), pin.JointModelPlanar(),
        pin.JointModelRUBY(), pin.JointModelRX(), pin.JointModelPZ(), pin.JointModelTranslation(),
    ],
    ids=lambda joint: joint.shortname(),
)  # fmt: skip
def test_tangents_of_every_joint_equal_those_of_pinocchio(joint):
    model = pin.Model()
    model.addJoint(0, joint, pin.SE3.Identity(), 'joint')
    high = np.ones(model.nq)
    q = pin.randomConfiguration(model, -high, high)
    h, columns = 1e-5, []
    for way in np.eye(model.nv):
        ends = [pin.integrate(model, q, side * h * way) for side in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2.0 * h))
    assert tangent_map(model, q) == pytest.approx(np.array(columns).T, abs=1e-9)
