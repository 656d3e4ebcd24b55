"""Contacts between bodies: stacks, collisions, self-collision; the same laws as on the ground."""

import numpy as np
import pinocchio as pin
import pytest
from robots import held

from contact_sim import (
    Compliant,
    InvalidInput,
    Simulator,
    UnknownName,
    Worlds,
    contact_models,
    joined,
    load_robot,
    loose_ball,
    loose_box,
)
from contact_sim.collision._contact_slots import CONTACTS
from contact_sim.replay._recorder import Recorder
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import repeat
from contact_sim.sensors._foot_sensors import ContactFlags, FootForces

G = 9.81
MODELS = contact_models()
RIGID = ['ncp', 'lcp', 'hybrid']
NOTHING = np.zeros(0)
STIFF = {'compliant': Compliant(stiffness=1e5)}  # without gravity it has no weight
FREE = (0.0, 0.0, 0.0)


def apart(parts, **simulation):
    """Return bodies that may touch each other, in a simulation that begins without a ground near.

    `parts`: (robot, position of its base, its velocity) by name.
    """
    both = joined({name: part[0] for name, part in parts.items()}, against_each_other=True)
    sim = Simulator(both, **simulation)
    q, v = pin.neutral(both.pinocchio_model), np.zeros(both.nv)
    for name, (_, position, velocity) in parts.items():
        own_q, own_v, _ = both.of(name)
        q[own_q][:3], v[own_v][:3] = position, velocity
    sim.reset(q, v)
    return sim


def stack(model, **simulation):
    low, top = loose_box((0.2, 0.2, 0.2), 2.0), loose_box((0.1, 0.12, 0.1), 1.0)
    return apart(
        {'low': (low, (0.0, 0.0, 0.1), FREE), 'top': (top, (0.02, 0.01, 0.25), FREE)},
        contact_model=model, friction=0.8, **simulation,
    )  # fmt: skip


@pytest.mark.parametrize('model', MODELS)
def test_a_box_rests_on_a_box(model):
    sim = stack(model)
    for _ in range(3000 if model == 'compliant' else 800):
        report = sim.step(NOTHING)
    pairs, soft = report.pairs, model in ('compliant', 'todorov', 'sap')
    met = ~pairs.on_ground
    assert report.solver.status.name == 'CONVERGED'
    assert {name for name, own in zip(pairs.names, met, strict=True) if own} == {
        ('low/box_0', 'top/box_0')
    }
    assert met.sum() == 4
    weight = [0.0, 0.0, -1.0 * G]  # on the first one
    np.testing.assert_allclose(pairs.force[met].sum(axis=0), weight, atol=1e-3 if soft else 1e-6)
    assert pairs.force[~met].sum(axis=0)[2] == pytest.approx(3.0 * G, rel=1e-4)
    moment = np.cross(pairs.position[met] - [0.02, 0.01, 0.0], pairs.force[met]).sum(axis=0)
    np.testing.assert_allclose(moment[:2], 0.0, atol=5e-3 if soft else 1e-7)
    assert np.abs(report.v).max() < (1e-5 if soft else 1e-9)
    depth = pairs.gap[met].min()
    assert -2e-3 < depth <= 0.0 if soft else abs(depth) < 1e-9
    # the force on each of them, of the ground and of the other one
    total = dict(zip(report.links.names, report.links.force, strict=True))
    for name, mass in (('low', 2.0), ('top', 1.0)):
        force = total[f'{name}/root_joint']
        np.testing.assert_allclose(force, [0.0, 0.0, mass * G], atol=1e-3 if soft else 1e-6)


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('restitution', [0.0, 0.6, 1.0])
def test_balls_collide_as_newton_says(model, restitution):
    masses, speeds = (1.0, 3.0), (2.0, -1.0)
    balls = [loose_ball(0.1, mass) for mass in masses]
    sim = apart(
        {'a': (balls[0], (-0.2, 0.0, 1.0), (speeds[0], 0.0, 0.0)),
         'b': (balls[1], (0.2, 0.0, 1.0), (speeds[1], 0.0, 0.0))},
        contact_model=model, gravity=0.0, restitution=restitution, friction=0.5,
    )  # fmt: skip
    for _ in range(200):
        report = sim.step(NOTHING)
    u, w = report.v[0], report.v[6]
    momentum = masses[0] * speeds[0] + masses[1] * speeds[1]
    assert masses[0] * u + masses[1] * w == pytest.approx(momentum, abs=1e-12)
    assert w - u == pytest.approx(-restitution * (speeds[1] - speeds[0]), abs=1e-9)


@pytest.mark.parametrize('model', MODELS)
def test_an_oblique_collision_keeps_momentum(model):
    """Linear and angular momentum about the origin, whatever the law and the friction."""
    sim = apart(
        {'box': (loose_box((0.2, 0.1, 0.3), 2.0), (0.0, 0.0, 1.0), (0.3, 0.0, 0.0)),
         'ball': (loose_ball(0.08, 0.5), (0.25, 0.03, 1.1), (-2.0, 0.1, -0.2))},
        contact_model=STIFF.get(model, model), gravity=0.0, friction=0.6, integrator='momentum',
    )  # fmt: skip
    model_, data = sim.robot.pinocchio_model, sim.robot.pinocchio_model.createData()

    def momentum():
        pin.computeCentroidalMomentum(model_, data, sim.q, sim.v)
        linear = data.hg.linear.copy()
        return np.concatenate([linear, data.hg.angular + np.cross(data.com[0], linear)])

    before, met = momentum(), 0.0
    for _ in range(250):
        met = max(met, sim.step(NOTHING).pairs.normal_force.max(initial=0.0))
    assert met > 1.0
    # contact acts where the bodies are at the start of the step: h u of the way from the end
    np.testing.assert_allclose(momentum()[:3], before[:3], atol=1e-11)
    np.testing.assert_allclose(momentum()[3:], before[3:], atol=1e-3)


@pytest.mark.parametrize('model', RIGID)
@pytest.mark.parametrize('pull', [5.0, 8.0, 30.0])
def test_a_box_is_carried_or_left_behind(model, pull):
    """Friction carries the upper box up to μ g; the lower one gets the rest of the force."""
    mu, h, steps, (m, M) = 0.4, 1e-3, 100, (1.0, 2.0)
    low, top = loose_box((0.4, 0.4, 0.2), M), loose_box((0.1, 0.1, 0.1), m)
    sim = apart(
        {'low': (low, (0.0, 0.0, 0.1), FREE), 'top': (top, (0.0, 0.0, 0.25), FREE)},
        contact_model=model, friction=mu, time_step=h,
    )  # fmt: skip
    force = pull + mu * (m + M) * G  # and the ground's friction against it
    for _ in range(steps):
        report = sim.step(NOTHING, {'low/box': [force, 0.0, 0.0, 0.0, 0.0, 0.0]})
    together = pull / (m + M)
    top_acceleration = min(together, mu * G)
    low_acceleration = together if together <= mu * G else (pull - m * mu * G) / M
    assert report.v[6] / (steps * h) == pytest.approx(top_acceleration, rel=1e-6)
    assert report.v[0] / (steps * h) == pytest.approx(low_acceleration, rel=1e-6)
    slips = together > mu * G
    assert (report.pairs.slip_speed[~report.pairs.on_ground].max() > 1e-3) == slips


@pytest.mark.parametrize('model', RIGID)
def test_a_ball_rolls_down_a_box(model):
    """a = 5/7 g sin α on a slope that is a body."""
    slope, r = 0.3, 0.1
    up = np.array([np.sin(slope), 0.0, np.cos(slope)])
    ramp = held('<box size="4 4 0.2"/>', '0 0 5', f'0 {slope} 0')
    bodies = {'ramp': ramp, 'ball': loose_ball(r, 2.0)}
    sim = Simulator(joined(bodies, against_each_other=True), model, friction=0.9)
    q = np.zeros(9)
    q[0], q[8] = 1.0, 1.0
    ball = slice(2, 5)
    q[ball] = (0.1 + r) * up + [0.0, 0.0, 5.0]
    sim.reset(q)
    for _ in range(500):
        report = sim.step(np.zeros(1))
        assert report.solver.status.name == 'CONVERGED'
    way = (report.q - q)[ball]
    speed = np.linalg.norm(report.v[1:4])
    assert speed == pytest.approx(5.0 / 7.0 * G * np.sin(slope) * 0.5, rel=1e-6)
    assert way @ up == pytest.approx(0.0, abs=1e-9 if model == 'hybrid' else 1e-6)


@pytest.mark.parametrize(('model', 'tolerance'), [('hybrid', 3e-4), ('ncp', 1e-3)])
def test_a_ball_leaves_another_one_where_it_has_to(model, tolerance):
    """It rolls without slip and comes off where cos θ = 10/17 cos θ₀; a step is 2e-4 of that."""
    R, r, start = 0.5, 0.1, 0.3
    bodies = {'dome': held(f'<sphere radius="{R}"/>', '0 0 5'), 'ball': loose_ball(r, 1.0)}
    sim = Simulator(joined(bodies, against_each_other=True), model, friction=1e3, time_step=1e-4)
    q = np.zeros(9)
    q[2], q[4] = (R + r) * np.sin(start), 5.0 + (R + r) * np.cos(start)
    q[0] = q[8] = 1.0
    sim.reset(q)
    last = np.nan
    for _ in range(10000):
        before = sim.q
        if sim.step(np.zeros(1)).pairs.normal_force.max(initial=0.0) <= 0.0:
            break
        last = before[4] - 5.0
    assert last / (R + r) == pytest.approx(10.0 / 17.0 * np.cos(start), abs=tolerance)


def test_a_robot_stands_on_a_loose_box():
    """Its feet carry it, and are told so; the box carries both."""
    go1, crate = load_robot('go1'), loose_box((0.8, 0.6, 0.1), 5.0)
    both = joined({'go1': go1, 'crate': crate}, against_each_other=True)
    q = both.reference_configuration()
    q[both.of('go1')[0]][2] += 0.1
    sim = Simulator(both, friction=0.8)
    sim.reset(q=q)
    kp, kd = go1.default_gains
    target = both.joint_positions(q)
    for _ in range(1500):
        angles, speeds = both.joint_positions(sim.q), both.joint_velocities(sim.v)
        report = sim.step(kp * (target - angles) - kd * speeds)
    weight = go1.total_mass * G
    assert report.contacts.normal_force[: len(go1.contact_points)].max() == 0.0  # in the air
    assert report.feet.force[:4].sum(axis=0)[2] == pytest.approx(weight, rel=3e-3)
    assert report.feet.loaded[:4].all()
    on_ground = report.pairs.force[report.pairs.on_ground]
    assert on_ground.sum(axis=0)[2] == pytest.approx(weight + 5.0 * G, rel=3e-3)
    flags, forces = ContactFlags(both), FootForces(both, axes='world')
    assert flags.truth(report).flag[:4].all()
    np.testing.assert_allclose(forces.truth(report).force[:4], report.feet.force[:4], atol=1e-9)
    assert np.abs(report.v).max() < 1e-2


def scissors():
    """Return a robot in flight with two legs that swing towards each other."""
    text = '<robot name="scissors"><link name="base">{0}</link>{1}</robot>'
    inertial = (
        '<inertial><mass value="{m}"/><inertia ixx="0.02" iyy="0.02" izz="0.02" '
        'ixy="0" ixz="0" iyz="0"/><origin xyz="{x}"/></inertial>'
    )
    leg = (
        '<link name="leg{i}">' + inertial.format(m=0.5, x='0 0 -0.15') +
        '<collision><origin xyz="0 0 -0.2"/><geometry>{shape}</geometry></collision></link>'
        '<joint name="hip{i}" type="revolute"><parent link="base"/><child link="leg{i}"/>'
        '<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/>'
        '<limit lower="-2" upper="2" effort="100" velocity="100"/></joint>'
    )  # fmt: skip
    shapes = '<cylinder radius="0.03" length="0.36"/>', '<box size="0.05 0.06 0.36"/>'
    legs = leg.format(i=0, x=-0.1, shape=shapes[0]) + leg.format(i=1, x=0.1, shape=shapes[1])
    return load_robot(text.format(inertial.format(m=2.0, x='0 0 0'), legs), floating_base=True)


@pytest.mark.parametrize('model', MODELS)
def test_legs_stop_at_each_other(model):
    """Forces inside of a robot move no centre of mass, and the legs do not pass each other."""
    robot = scissors().with_self_collision([('leg0', 'leg1')])
    sim = Simulator(robot, model, gravity=G, friction=0.5, integrator='momentum')
    q = pin.neutral(robot.pinocchio_model)
    q[2] = 10.0
    sim.reset(q=q)
    model_, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    deepest, pushed = 0.0, 0.0
    for _ in range(400):
        report = sim.step(np.array([-3.0, 3.0]))  # both inwards
        deepest = min(deepest, report.pairs.gap.min(initial=0.0))
        pushed = max(pushed, report.pairs.normal_force.max(initial=0.0))
    assert pushed > 5.0
    # they meet at 3 m/s; null_space holds contacts, so that others may sink in
    soft = {'compliant': 1e-2, 'sap': 1e-2, 'todorov': 4e-2, 'null_space': 2e-3}
    assert deepest > -soft.get(model, 1e-4)
    pin.computeCentroidalMomentum(model_, data, sim.q, sim.v)
    np.testing.assert_allclose(data.hg.linear, [0.0, 0.0, -3.0 * G * 0.4], atol=1e-9)
    np.testing.assert_allclose(data.hg.angular, 0.0, atol=1e-3)


def test_rows_are_the_rates_of_gaps():
    """u_n of every contact between links is the change of its gap; the trunk takes no part."""
    robot = load_robot('go1', body_contacts=False).with_self_collision(most=64)
    rng, seen = np.random.default_rng(5), 0
    sim = Simulator(robot, time_step=1e-7, gravity=0.0, friction=0.0)
    sim.baumgarte = 0.0
    found = robot.collisions
    kinds = np.array([[found.solids[i].kind for i in pair] for pair in found.ordered.tolist()])
    lower = np.maximum(robot.lower_position_limit, -3.0)
    upper = np.minimum(robot.upper_position_limit, 3.0)
    for _ in range(200):
        q = robot.reference_configuration()
        q[2] += 2.0
        q = robot.with_joint_positions(q, rng.uniform(lower, upper))
        sim.reset(q, rng.normal(size=robot.nv))
        before = sim.step(np.zeros(12)).record
        of_pairs = slice(3 * sim.sizes.n_ground, 3 * sim.sizes.nc)
        assert not sim._workspace.jacobian_transposed[:6, of_pairs].any()
        after = sim.step(np.zeros(12)).record
        n = slice(sim.sizes.n_ground, None)
        same = before.feature_start[n] == after.feature_start[n]
        key = before.feature_start[n]
        chosen = np.flatnonzero(same & (key >= 0) & np.isin(key % 32, (0, 1, 2, 3, 24)))
        rate = (after.gap_start[n] - before.gap_start[n])[chosen] / 1e-7
        u = before.u_next[: 3 * sim.sizes.nc].reshape(-1, 3)[n][chosen, 2]
        kind = kinds[(key[chosen] // CONTACTS).astype(int)]
        flat, round_one = (kind == 2).all(axis=1), (kind[:, 1] <= 2) | (kind[:, 0] == 0)
        keep = flat | (round_one & (key[chosen] % 32 == 0))  # the others slide along
        np.testing.assert_allclose(rate[keep], u[keep], atol=1e-3)
        seen += np.count_nonzero(keep)
    assert seen > 100


def test_snapshots_worlds_and_recordings_of_pairs(tmp_path):
    """All of them go on to the bit; a box slides off another one meanwhile."""
    sim, worlds = stack('ncp'), Worlds(stack('ncp').robot, 2, friction=0.8)
    v = sim.v.copy()
    v[6:9] = 0.8, 0.3, 0.0
    sim.reset(sim.q, v)
    worlds.reset(q=sim.q, v=v)
    recorder = Recorder(sim, tmp_path / 'run.npz')
    for _ in range(20):
        sim.step(NOTHING)
    taken = sim.snapshot()
    first = [sim.step(NOTHING).q.copy() for _ in range(200)]
    recorder.close()
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.steps == 220
    assert outcome.equal
    sim.restore(taken)
    np.testing.assert_array_equal([sim.step(NOTHING).q for _ in range(200)], first)
    worlds.run(lambda time, q, v: np.zeros((2, 0)), 220)
    np.testing.assert_array_equal(worlds.q, [first[-1]] * 2)


def test_those_that_are_apart_are_islands():
    """The contact problem of bodies that do not meet falls into parts again."""
    sim = stack('ncp')
    work = sim._workspace
    sim.step(NOTHING)
    assert set(work.contact_island[work.active > 0]) == {0}
    q = sim.q.copy()
    q[7] += 1.0
    q[9] = 0.05
    sim.reset(q)
    sim.step(NOTHING)
    assert set(work.contact_island[work.active > 0]) == {0, 1}


def test_contacts_without_room_are_counted():
    low, top = loose_box((0.2, 0.2, 0.2), 2.0), loose_box((0.1, 0.12, 0.1), 1.0)
    low, top = low.with_body_contacts([]), top.with_body_contacts([])
    tight = joined({'low': low, 'top': top}, against_each_other=True, most=3)
    sim = Simulator(tight)
    before = sim.pairs_left_out  # both are at the origin
    q = tight.reference_configuration()
    q[2], q[9] = 0.1, 0.25
    sim.reset(q)
    assert sim.pairs_left_out == before + 1
    assert len(sim.step(NOTHING).pairs.gap) == 3


def test_what_is_refused():
    go1, box = load_robot('go1'), loose_box((0.1, 0.1, 0.1), 1.0)
    with pytest.raises(UnknownName, match="'FL_kalf'"):
        go1.with_self_collision([('FL_kalf', 'FR_calf')])
    with pytest.raises(InvalidInput, match='expected two names'):
        go1.with_self_collision([('FL_calf',)])
    with pytest.raises(InvalidInput, match=r'overlap by .* m in the standing pose'):
        go1.with_self_collision([('FL_hip', 'FL_thigh')])
    with pytest.raises(InvalidInput, match='on one body'):
        go1.with_self_collision([('FL_calf', 'FL_foot')])
    with pytest.raises(InvalidInput, match='most = 0'):
        go1.with_self_collision(most=0)
    for size, mass in (((0.1, 0.1), 1.0), ((0.1, 0.1, -1.0), 1.0), ((0.1, 0.1, 0.1), np.nan)):
        with pytest.raises(InvalidInput, match='expected'):
            loose_box(size, mass)
    with pytest.raises(InvalidInput, match="radius = 'big'"):
        loose_ball('big', 1.0)
    assert not joined({'a': box, 'b': box}).collisions.pairs


def test_an_srdf_says_which_links_are_not_checked():
    go1 = load_robot('go1')
    every = go1.with_self_collision().collisions.pairs
    srdf = '<robot name="go1"><disable_collisions link1="FL_calf" link2="FR_calf"/></robot>'
    fewer = go1.with_self_collision(srdf=srdf).collisions.pairs
    assert set(every) - set(fewer) == {('FL_calf_0', 'FR_calf_0')}
    assert ('FL_thigh_0', 'FL_calf_0') not in every  # a joint and the next one
