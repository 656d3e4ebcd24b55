"""Joint limits and joints that follow others, under every model: rows of the contact problem."""

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import ONE_LEG, joint, link, robot

from contact_sim import InvalidInput, RobotModel, Simulator, UnknownName, Worlds, load_robot
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.robot._coordinates import PositionLimit

H, LOWER, UPPER = 1e-3, -0.7, 0.9
RIGID = ('ncp', 'anitescu', 'lcp', 'null_space', 'hybrid')
MODELS = tuple(CONTACT_MODELS)
INERTIA = 0.02 + 0.1**2  # of a link about its joint [kg m²]
WEIGHT = 9.81 * 0.1  # largest torque of gravity about it [N m]
DEPTH = {'sap': 1e-3, 'todorov': 4e-3, 'compliant': 2e-2}
"""Angle by which a soft model lets a limit of 4 N m be passed at its defaults [rad]."""


def arm(axis='0 1 0', lower=LOWER, upper=UPPER):
    """Return a link of 1 kg on a hinge with limits; about a vertical axis nothing pulls it."""
    limit = f'<limit lower="{lower}" upper="{upper}" effort="50" velocity="50"/>'
    return load_robot(
        robot(link('base'), link('arm'), joint('hinge', 'base', 'arm', axis=axis, limit=limit)),
        floating_base=False,
    )


def torque(report):
    """Return the torque of the last interval row [N m]."""
    return report.record.impulse[-1] / H


@pytest.mark.parametrize('end', [LOWER, UPPER])
@pytest.mark.parametrize('name', MODELS)
def test_a_limit_carries_exactly_its_load(name, end):
    side = np.sign(end)
    sim = Simulator(arm(), name, time_step=H)
    sim.reset(q=[end - 0.05 * side])
    for _ in range(3000 if name in DEPTH else 500):
        report = sim.step([5.0 * side])
    load = 5.0 * side - WEIGHT * np.sin(report.q[0])
    assert torque(report) == pytest.approx(-load, rel=1e-5)
    assert abs(report.v[0]) <= 1e-6
    passed = side * (report.q[0] - end)
    assert passed <= DEPTH.get(name, 1e-9)
    assert passed >= -1e-9


@pytest.mark.parametrize('name', RIGID)
def test_a_limit_only_pushes(name):
    sim = Simulator(arm(), name, time_step=H)
    sim.reset(q=[UPPER])
    report = sim.step([0.0])  # gravity leads away from it
    assert torque(report) == 0.0
    expected = -WEIGHT * np.sin(UPPER) / INERTIA
    assert report.acceleration[0] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize('name', [*RIGID, 'sap', 'todorov', 'compliant'])
def test_far_from_its_limits_a_joint_moves_as_without(name):
    limited, free = arm(), arm().with_position_limits(())
    a, b = Simulator(limited, name), Simulator(free, name)
    for k in range(100):
        effort = [0.3 * np.sin(0.05 * k)]
        a.step(effort)
        b.step(effort)
    assert a.q == pytest.approx(b.q, rel=1e-14)
    assert abs(a.q[0]) > 1e-2


@pytest.mark.parametrize('restitution', [0.0, 0.5, 1.0])
@pytest.mark.parametrize('name', ['ncp', 'anitescu', 'lcp', 'hybrid'])
def test_a_joint_rebounds_with_its_restitution(name, restitution):
    model = arm(axis='0 0 1')
    limits = [PositionLimit(('hinge',), LOWER, UPPER, restitution=restitution)]
    sim = Simulator(model.with_position_limits(limits), name, time_step=H)
    sim.reset(q=[UPPER - 0.1], v=[2.0])
    for _ in range(60):
        sim.step([0.0])
    assert sim.v[0] == pytest.approx(-2.0 * restitution, abs=1e-9)
    assert sim.q[0] <= UPPER + 1e-9


def test_hybrid_hits_a_limit_at_the_exact_instant():
    model = arm(axis='0 0 1')
    limits = [PositionLimit(('hinge',), LOWER, UPPER, restitution=1.0)]
    sim = Simulator(model.with_position_limits(limits), 'hybrid', time_step=7e-3)
    sim.reset(q=[0.2], v=[3.0])
    for _ in range(200):
        sim.step([0.0])
    # straight on, folded back at the limits
    way, span = 0.2 - LOWER + 3.0 * sim.time, UPPER - LOWER
    folded = way % (2.0 * span)
    assert sim.q[0] == pytest.approx(LOWER + min(folded, 2.0 * span - folded), abs=1e-8)


@pytest.mark.parametrize('name', RIGID)
def test_the_knee_of_go1_carries_what_pinocchio_says(name):
    m = load_robot('go1', floating_base=False).pinocchio_model.copy()
    m.friction[:], m.damping[:] = 0.0, 0.0
    model = RobotModel.from_pinocchio(m)
    q, k = model.reference_configuration(), model.joint_names.index('FL_calf_joint')
    q[k], effort = model.lower_position_limit[k], np.zeros(12)
    effort[k] = -23.0
    sim = Simulator(model, name, time_step=1e-5)
    sim.reset(q)
    report, data = sim.step(effort), m.createData()
    # q̈_k = 0: the force is the free acceleration over the entry of M⁻¹
    free = pin.aba(m, data, q, np.zeros(12), effort)
    inverse = pin.computeMinverse(m, data, q)
    expected = -free[k] / inverse[k, k]
    assert report.record.impulse[k] / 1e-5 == pytest.approx(expected, rel=1e-9)
    assert expected == pytest.approx(23.0, abs=0.5)
    assert abs(report.v[k]) <= 1e-12


def chain(*limits, more=''):
    """Return a chain of links on hinges with limits (lower, upper)."""
    parts = [link('l0')]
    for k, (lower, upper) in enumerate(limits):
        limit = f'<limit lower="{lower}" upper="{upper}" effort="50" velocity="50"/>'
        parts += [link(f'l{k + 1}'), joint(f'j{k}', f'l{k}', f'l{k + 1}', limit=limit, more=more)]
    return load_robot(robot(*parts), floating_base=False)


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('name', RIGID)
def test_limits_create_no_energy_and_are_not_passed(name, seed):
    rng = np.random.default_rng(seed)
    model = chain((-0.5, 0.6), (-1.0, 0.0), (0.0, 0.8))
    m, data = model.pinocchio_model, model.pinocchio_model.createData()
    sim = Simulator(model, name, time_step=2.5e-4)
    q = np.array([0.0, -0.3, 0.3]) + 0.2 * rng.uniform(-1.0, 1.0, 3)
    sim.reset(q, v=rng.uniform(-4.0, 4.0, 3))
    energies, touched = [], set()
    for _ in range(2000):
        report = sim.step(np.zeros(3))
        energies.append(pin.computeMechanicalEnergy(m, data, sim.q, sim.v))
        touched |= set(np.flatnonzero(report.record.impulse[-3:]).tolist())
        assert report.solver.converged
        below = model.lower_position_limit - sim.q
        above = sim.q - model.upper_position_limit
        assert max(below.max(), above.max()) <= 1e-6
    assert len(touched) >= 2
    assert np.diff(energies).max() <= 2e-3 * np.ptp(energies)


def test_hybrid_and_ncp_agree_on_a_chain_that_hits_its_limits():
    ends = []
    for name, h in (('ncp', 1e-5), ('hybrid', 1e-3)):
        sim = Simulator(chain((-0.5, 0.6), (-1.0, 0.0), (0.0, 0.8)), name, time_step=h)
        sim.reset([0.3, -0.4, 0.5], v=[3.0, 2.0, -2.0])
        for _ in range(round(0.4 / h)):
            sim.step(np.zeros(3))
        ends.append(np.concatenate([sim.q, 0.1 * sim.v]))
    assert ends[0] == pytest.approx(ends[1], abs=2e-3)


@pytest.mark.parametrize('name', ['ncp', 'todorov', 'sap', 'hybrid'])
def test_a_leg_that_lands_with_a_straight_knee_obeys_ground_and_limit(name):
    model = load_robot(ONE_LEG, feet=['foot'])
    sim = Simulator(model, name, time_step=H)
    q = sim.standing_configuration()
    q[2] += 0.05
    q[7:] = 0.2, model.upper_position_limit[1] - 1e-3
    sim.reset(q)
    for _ in range(300):
        report = sim.step([0.0, 3.0])
        assert report.solver.converged
    assert np.isfinite(report.q).all()
    softness = 0.05 if name == 'todorov' else DEPTH.get(name, 1e-6)  # MuJoCo's, see below
    assert sim.q[8] <= model.upper_position_limit[1] + softness


def test_todorov_has_mujocos_limits():
    mujoco = pytest.importorskip('mujoco', reason='the peer MuJoCo is not installed')
    model = chain((-0.5, 0.6), (-1.0, 0.0), (0.0, 0.8))
    inertia = 'pos="0 0 -0.1" mass="1" diaginertia="0.02 0.02 0.02"'
    bodies, ends = '', ''
    for k in range(3):
        lower, upper = model.lower_position_limit[k], model.upper_position_limit[k]
        bodies += (
            f'<body pos="0 0 -0.2"><inertial {inertia}/>'
            f'<joint axis="0 1 0" limited="true" range="{lower} {upper}"/>'
        )
        ends += '</body>'
    peer = mujoco.MjModel.from_xml_string(
        '<mujoco><compiler angle="radian"/><option timestep="0.001" tolerance="0" '
        f'iterations="100" ls_tolerance="1e-14"/><worldbody>{bodies}{ends}</worldbody></mujoco>'
    )
    data, sim, limited = mujoco.MjData(peer), Simulator(model, 'todorov', time_step=H), 0
    data.qpos[:], data.qvel[:] = [0.3, -0.4, 0.5], [3.0, 2.0, -2.0]
    for _ in range(500):
        sim.reset(data.qpos.copy(), v=data.qvel.copy())
        sim.step(np.zeros(3))
        mujoco.mj_step(peer, data)
        limited += data.nefc > 0
        assert sim.v == pytest.approx(data.qvel, abs=1e-9)
    assert limited > 100


def test_a_joint_whose_limits_are_equal_is_locked():
    sim = Simulator(arm(lower=0.3, upper=0.3), 'ncp', time_step=H)
    assert sim.q[0] == pytest.approx(0.3)
    for effort in (10.0, -10.0):
        report = sim.step([effort])
        assert sim.v[0] == pytest.approx(0.0, abs=1e-14)
        assert torque(report) == pytest.approx(WEIGHT * np.sin(0.3) - effort, rel=1e-9)


def test_a_urdf_that_is_silent_has_no_limits():
    hinge = joint('hinge', 'base', 'arm', limit='<limit effort="50" velocity="50"/>')
    model = load_robot(robot(link('base'), link('arm'), hinge), floating_base=False)
    assert model.position_limits == ()


def test_worlds_have_the_limits_of_the_simulator():
    model = chain((-0.5, 0.6), (-1.0, 0.0), (0.0, 0.8))
    worlds, sim = Worlds(model, 2, 'ncp'), Simulator(model, 'ncp')
    start = np.array([[0.3, -0.4, 0.5], [0.1, -0.9, 0.1]])
    worlds.reset(q=start)
    worlds.step(np.zeros(3), 300)
    for world in range(2):
        sim.reset(start[world])
        touched = 0
        for _ in range(300):
            touched += np.abs(sim.step(np.zeros(3)).record.impulse[-3:]).max() > 0.0
        assert touched > 0
        assert (worlds.q[world] == sim.q).all()


@pytest.mark.parametrize(
    ('changes', 'match'),
    [
        ({'lower': 1.0, 'upper': 0.0}, 'lower <= upper'),
        ({'lower': np.nan}, 'lower <= upper'),
        ({'restitution': 1.5}, 'restitution = 1.5'),
        ({'joints': ()}, 'one joint'),
        ({'joints': ('hinge', 'hinge'), 'shares': (1.0, 1.0)}, 'two different'),
        ({'shares': (1.0, 2.0)}, '2 shares for 1 joints'),
        ({'shares': (0.0,)}, 'not 0'),
        ({'joints': ('a', 'b'), 'shares': (1.0, 2.0), 'lower': 1.0}, 'JointCoupling'),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(changes, match):
    with pytest.raises(InvalidInput, match=match):
        PositionLimit(**{'joints': ('hinge',), 'lower': -1.0, 'upper': 1.0, **changes})


def test_a_limit_of_a_joint_that_is_not_there_is_refused():
    with pytest.raises(UnknownName, match='elbow'):
        arm().with_position_limits([PositionLimit(('elbow',), 0.0, 1.0)])
    with pytest.raises(InvalidInput, match=r'root_joint.*7 coordinates'):
        load_robot('go1').with_position_limits([PositionLimit(('root_joint',), 0.0, 1.0)])
