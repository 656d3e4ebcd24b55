"""Steps as arrays score what reports say; what is wrong with them shows in its own residual."""

from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim import (
    InclinedPlane,
    InvalidInput,
    Plane,
    RobotModel,
    Simulator,
    UnknownName,
    contact_models,
    load_robot,
)
from contact_sim.compare._runs import KEPT, Log
from contact_sim.compare._scenarios import hold, scenario_of, start
from contact_sim.judge import Score, StepCollector, StepContact, Steps, from_reports, judge
from contact_sim.step import Residuals

EXACT = 1e-12
GROUNDS = {'plane': Plane(), 'slope': InclinedPlane(0.25, 0.4)}
STEPS, BROKEN = 60, 40


@cache
def go1():
    return load_robot('go1', body_contacts=False)


def reports_of(model, terrain, robot=None, steps=STEPS):
    """A robot that lands, slides a little and stands."""
    robot = go1() if robot is None else robot
    sim = Simulator(robot, model, terrain, friction=0.6)
    q, v = sim.standing_configuration().copy(), np.zeros(robot.nv)
    q[2] += 2e-3
    v[:2], v[5] = (0.3, -0.1), 0.5
    control = hold(robot, q)
    sim.reset(q, v, time=0.5)
    return [sim.step(control(0.0, sim.q, sim.v)) for _ in range(steps)]


def differences(score, reports):
    """Return the largest difference of each residual from those of the reports."""
    ours = {name: [] for name in (*Residuals._fields, 'energy')}
    for report in reports:
        for name, value in report.residuals.as_dict().items():
            ours[name].append(value)
    return {name: np.abs(score[name] - values).max() for name, values in ours.items()}


@pytest.mark.parametrize('ground', GROUNDS)
@pytest.mark.parametrize('model', contact_models())
def test_our_steps_as_arrays_score_what_their_reports_say(model, ground):
    reports = reports_of(model, GROUNDS[ground])
    steps = from_reports(go1(), reports)
    found = differences(judge(go1(), steps, velocity='impulses'), reports)
    assert max(found.values()) <= EXACT, found
    if model != 'hybrid':  # whose impulses are means over a step with frozen J
        assert max(differences(judge(go1(), steps), reports).values()) <= EXACT


def test_bodies_on_the_ground_count_as_well():
    """A robot that lies on its trunk: contacts in the pool of slots, moving between them."""
    robot = load_robot('go1')
    sim = Simulator(robot, friction=0.6)
    q = sim.standing_configuration().copy()
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(1.4, 0.2, 0.0)).coeffs()
    sim.reset(q)
    reports = [sim.step(np.zeros(12)) for _ in range(400)][-80:]
    steps = from_reports(robot, reports)
    slots = np.flatnonzero(reports[-1].record.impulse[2 : 3 * sim.sizes.nc : 3])
    assert (slots >= sim.sizes.n_ground).any()
    assert 'FR_hip_joint' in steps.bodies  # which has no contact point
    found = differences(judge(robot, steps, velocity='impulses'), reports)
    assert max(found.values()) <= EXACT, found


def test_creep_and_force_apart_are_those_of_the_comparison():
    robot, scenario = go1(), scenario_of('slope', 0.05)
    begin = start(scenario, robot, 'todorov', 1e-3)
    log, reports = Log(begin.sim, scenario), []
    for _ in range(50):
        report = begin.sim.step(begin.controller(begin.sim.time, begin.sim.q, begin.sim.v))
        log.note(report, 0.0)
        reports.append(report)
    run, score = log.result('todorov'), judge(robot, from_reports(robot, reports))
    for law, name in (*((law, law) for law in KEPT if law not in ('slip', 'force_at_distance')),
                      ('slip', 'creep'), ('force_at_distance', 'force_apart')):  # fmt: skip
        assert score.maximum(name) == pytest.approx(run.laws[law], abs=EXACT), law
        assert (name in score.broken) == run.broken[law], law


# --- Deliberately broken steps


@cache
def standing():
    """Steps of ncp at rest on a plane, and the score."""
    sim = Simulator(go1(), 'ncp', friction=0.6)
    control = hold(go1(), sim.q)
    for _ in range(400):
        sim.step(control(0.0, sim.q, sim.v))
    reports = [sim.step(control(0.0, sim.q, sim.v)) for _ in range(STEPS)]
    steps = from_reports(go1(), reports)
    score = judge(go1(), steps)
    assert score.broken == {}
    return steps, score


def jacobian_at(robot, q, joint, point):
    """Return J of a point in the world on the body of a joint, by Pinocchio."""
    model = robot.pinocchio_model
    data, k = model.createData(), model.getJointId(joint)
    pin.computeJointJacobians(model, data, q)
    J = pin.getJointJacobian(model, data, k, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    return J[:3] - pin.skew(point - data.oMi[k].translation) @ J[3:]


def changed(steps, name, value, foot=0):
    """Return steps with another value of one contact in the step BROKEN."""
    array = getattr(steps, name).copy()
    array[BROKEN, foot] = value
    return replace(steps, **{name: array})


def only_broken_there(steps, names):
    """Assert that just these limits are exceeded, in the step BROKEN alone; return the score."""
    score, before = judge(go1(), steps), standing()[1]
    assert set(score.broken) == names
    assert set(score.broken.values()) == {score.time[BROKEN]}
    others = np.arange(STEPS) != BROKEN
    for name in score.residuals:
        assert score[name][others] == pytest.approx(before[name][others], abs=1e-13), name
    return score


def test_a_force_outside_the_cone_shows_in_the_cone():
    """Its push is taken back by an external force: the motion stays explained."""
    steps, _ = standing()
    push = np.array([50.0, -20.0, 0.0])
    body = steps.bodies[steps.body[BROKEN, 0]]
    J = jacobian_at(go1(), steps.q[BROKEN], body, steps.point[BROKEN, 0])
    external = steps.external.copy()
    external[BROKEN] -= J.T @ push
    broken = changed(steps, 'force', steps.force[BROKEN, 0] + push)
    score = only_broken_there(replace(broken, external=external), {'cone', 'ncp'})
    x, y, normal = broken.force[BROKEN, 0]
    assert score['cone'][BROKEN] == pytest.approx(1e-3 * (np.hypot(x, y) - 0.6 * normal))


def test_a_force_at_a_distance_shows_there():
    steps, _ = standing()
    score = only_broken_there(changed(steps, 'next_gap', 1e-3), {'force_apart'})
    expected = 1e-3 * steps.force[BROKEN, 0, 2]
    assert score['force_apart'][BROKEN] == pytest.approx(expected, rel=1e-9)
    assert score['force_at_distance'][BROKEN] == pytest.approx(expected, rel=1e-9)


def test_a_penetration_shows_there():
    score = only_broken_there(changed(standing()[0], 'next_gap', -2e-3), {'penetration'})
    assert score['penetration'][BROKEN] == pytest.approx(2e-3)


def test_a_missing_impulse_shows_in_the_momentum():
    steps, _ = standing()
    J = jacobian_at(
        go1(), steps.q[BROKEN], steps.bodies[steps.body[BROKEN, 0]], steps.point[BROKEN, 0]
    )
    score = only_broken_there(changed(steps, 'force', 0.0), {'momentum'})
    lost = np.abs(1e-3 * J.T @ steps.force[BROKEN, 0]).max()
    assert score['momentum'][BROKEN] == pytest.approx(lost, rel=1e-6)


def test_a_wrong_effort_shows_in_the_momentum():
    steps, _ = standing()
    effort = steps.effort.copy()
    effort[BROKEN, 4] += 3.0
    score = only_broken_there(replace(steps, effort=effort), {'momentum'})
    assert score['momentum'][BROKEN] == pytest.approx(3e-3, rel=1e-6)


def test_a_creeping_foot_shows_in_creep_and_in_what_friction_owes():
    steps, _ = standing()
    broken = changed(steps, 'contact_velocity', [2e-3, 0.0, 0.0])
    score = only_broken_there(broken, {'creep', 'dissipation', 'ncp'})
    assert score['creep'][BROKEN] == pytest.approx(2e-3)
    assert score['slip'][BROKEN] == pytest.approx(2e-3)


def test_a_force_over_a_gap_at_the_start_breaks_signorini():
    steps, _ = standing()
    score = only_broken_there(changed(steps, 'gap', 1e-3), {'signorini', 'ncp'})
    force = steps.force[BROKEN, 0, 2]
    assert score['signorini'][BROKEN] == pytest.approx(1e-3 * force * 1.0, rel=1e-6)  # λ φ/h


# --- What may not matter


@settings(max_examples=12)
@given(
    yaw=st.floats(-3.0, 3.0), x=st.floats(-5.0, 5.0), y=st.floats(-5.0, 5.0),
    order=st.permutations(range(4)),
)  # fmt: skip
def test_neither_place_and_heading_nor_the_order_of_contacts_matter(yaw, x, y, order):
    steps, _ = moving()
    turn, shift = pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.array([x, y, 0.0])
    q = steps.q.copy()
    for row in q:
        row[:3] = turn @ row[:3] + shift
        row[3:7] = pin.Quaternion(turn @ pin.Quaternion(row[3:7]).toRotationMatrix()).coeffs()
    order = list(order)
    vectors = {
        name: (getattr(steps, name) @ turn.T)[:, order]
        for name in ('normal', 'force', 'contact_velocity')
    }
    numbers = {
        name: getattr(steps, name)[:, order]
        for name in ('body', 'gap', 'next_gap', 'friction', 'active')
    }
    point = (steps.point @ turn.T + shift)[:, order]
    score = judge(go1(), replace(steps, q=q, point=point, **vectors, **numbers))
    for name, value in moving()[1].residuals.items():
        assert score[name] == pytest.approx(value, rel=1e-7, abs=1e-10), name


@cache
def moving():
    """Steps of todorov on feet that creep and slide, and the score; four slots."""
    steps = from_reports(go1(), reports_of('todorov', Plane()))
    assert steps.body.shape[1] == 4
    return steps, judge(go1(), steps)


# --- What is missing


def test_without_forces_the_rest_is_judged():
    steps, whole = standing()
    score = judge(go1(), replace(steps, force=None, interval_impulse=None))
    for name in ('penetration', 'slip', 'creep', 'energy', 'energy_contact'):
        if name == 'energy_contact':  # the work of all impulses, dry friction of joints included
            expected = whole[name] + whole['energy_joint_friction']
        else:
            expected = whole[name]
        assert score[name] == pytest.approx(expected, abs=1e-10), name
    for name in ('signorini', 'cone', 'dissipation', 'ncp', 'force_apart', 'momentum'):
        assert np.isnan(score[name]).all()
        assert score.missing[name] == 'no contact forces are given'
        assert np.isnan(score.maximum(name))
    assert 'not judged: force_apart, signorini, cone' in score.table()


@pytest.mark.parametrize(
    ('field', 'missing', 'kept'),
    [
        ('friction', {'cone', 'dissipation', 'ncp', 'dual'}, {'signorini', 'momentum', 'creep'}),
        ('effort', {'momentum', 'energy', 'energy_actuation'}, {'cone', 'ncp', 'signorini'}),
        ('interval_impulse', {'interval', 'energy_joint_friction'}, {'cone', 'ncp'}),
    ],
)
def test_what_needs_a_missing_array_is_not_a_number(field, missing, kept):
    steps, whole = standing()
    score = judge(go1(), replace(steps, **{field: None}))
    assert set(score.missing) == missing
    assert all(np.isnan(score[name]).all() for name in missing)
    assert all(score[name] == pytest.approx(whole[name], abs=1e-9) for name in kept - {'ncp'})
    assert np.isfinite([score[name] for name in score.residuals if name not in missing]).all()


def test_states_alone_leave_the_energy():
    steps, whole = standing()
    alone = Steps(steps.time, steps.q, steps.v, steps.effort)
    score = judge(go1(), alone)
    assert score['energy'] == pytest.approx(whole['energy'], abs=1e-10)
    assert score.missing['penetration'] == 'no contacts are given'
    assert 'within the limits' not in score.verdict
    assert score.verdict == 'nothing was judged'


def test_a_gap_that_is_not_given_follows_the_point():
    steps, whole = standing()
    score = judge(go1(), replace(steps, next_gap=None))
    assert score['penetration'] == pytest.approx(whole['penetration'], abs=1e-9)
    assert any('gap + h u_n' in note for note in score.notes)


def test_flight_has_no_contacts():
    sim = Simulator(go1())
    q = sim.standing_configuration().copy()
    q[2] += 1.0
    v = np.arange(go1().nv) / 10.0
    sim.reset(q, v)
    reports = [sim.step(np.ones(12)) for _ in range(20)]
    score = judge(go1(), from_reports(go1(), reports))
    assert max(differences(score, reports).values()) <= EXACT
    assert score.broken == {}


def test_time_steps_may_differ():
    """Each step has a length of its own, as a log of an engine with substeps may have."""
    sim, robot = Simulator(go1()), go1()
    control, reports = hold(robot, sim.q), []
    for h in (1e-3, 1e-3, 2e-3, 5e-4):
        sim.time_step = h
        reports.append(sim.step(control(0.0, sim.q, sim.v)))
    score = judge(robot, from_reports(robot, reports))
    assert max(differences(score, reports).values()) <= EXACT


def test_a_fixed_base_is_judged():
    robot = fixed_arm()
    sim = Simulator(robot)
    reports = [sim.step(np.full(robot.n_joints, 0.1)) for _ in range(10)]
    assert max(differences(judge(robot, from_reports(robot, reports)), reports).values()) <= EXACT


def fixed_arm():
    return RobotModel.from_pinocchio(pin.buildSampleModelManipulator())


# --- Score


def test_percentiles_limits_and_words():
    time, mass = 0.1 * np.arange(1, 6), 10.0
    residuals = dict.fromkeys(
        ('penetration', 'force_apart', 'signorini', 'cone', 'dissipation', 'ncp', 'creep', 'slip',
         'momentum', 'energy'), np.zeros(5),
    )  # fmt: skip
    residuals['cone'] = np.array([0.0, 0.0, 2e-7, 5e-8, 0.0])  # the limit is 1e-8 for 1 kg
    residuals['energy'] = np.array([-4.0, 1.0, 2.0, 3.0, 0.0])
    score = Score('go1', 'an engine', mass, time, residuals, {})
    assert score.maximum('energy') == 4.0
    assert score.percentile('energy', 50.0) == 2.0
    assert score.limit('cone') == pytest.approx(1e-7)
    assert score.limit('penetration') == 1e-5
    assert np.isnan(score.limit('energy'))
    assert score.first_beyond('cone') == pytest.approx(0.3)
    assert np.isnan(score.first_beyond('momentum'))
    assert score.broken == {'cone': pytest.approx(0.3)}
    assert 'beyond the limits: cone; first cone at t = 0.3 s' in score.table()
    assert score.as_dict()['residuals']['cone']['first_beyond'] == pytest.approx(0.3)
    assert score.as_dict()['residuals']['energy']['limit'] is None
    with pytest.raises(UnknownName, match=r"unknown residual 'kone'.*did you mean 'cone'"):
        score['kone']
    with pytest.raises(InvalidInput, match='percentage'):
        score.percentile('cone', 101.0)


# --- Bad input


def arrays():
    steps = standing()[0]
    names = ('time', 'q', 'v', 'effort', 'bodies', 'body', 'point', 'normal', 'gap', 'next_gap',
             'force', 'friction')  # fmt: skip
    return {name: np.array(getattr(steps, name)) for name in names}


def with_entry(name, place, value):
    def change(values):
        values[name] = values[name].astype(type(value)) if name == 'body' else values[name]
        values[name][place] = value

    return change


BAD = {
    'time does not increase': (with_entry('time', 3, 0.0), r'Steps.time: time\[3\].*increase'),
    'NaN in q': (with_entry('q', (2, 8), np.nan), r'Steps.q\[2, 8\] = nan: expected finite'),
    'infinite velocity': (with_entry('v', (5, 0), np.inf), r'Steps.v\[5, 0\] = inf'),
    'NaN in a force': (with_entry('force', (1, 2, 0), np.nan), r'Steps.force\[1, 2, 0\] = nan'),
    'a long normal': (with_entry('normal', (4, 1, 2), 1.5), r'Steps.normal\[4, 1\].*length 1.5'),
    'negative friction': (with_entry('friction', (0, 0), -0.1), r'Steps.friction\[0, 0\] = -0.1'),
    'a body not listed': (with_entry('body', (0, 0), 9), 'Steps.body: .*places in bodies'),
    'part of a body': (with_entry('body', (0, 0), 0.5), 'Steps.body: expected whole numbers'),
    'fewer states': (lambda v: v.update(q=v['q'][:-1]), 'Steps.q: 60 rows, expected 61'),
    'fewer efforts': (lambda v: v.update(effort=v['effort'][:-1]), r'Steps.effort: shape'),
    'flat forces': (lambda v: v.update(force=v['force'][..., 0]), r'Steps.force: shape.*expected'),
    'no gaps': (lambda v: v.pop('gap'), 'Steps.gap is missing'),
    'no bodies': (lambda v: v.pop('body'), 'Steps.body is missing: it is needed with point'),
    'one state': (
        lambda v: v.update(time=v['time'][:1], q=v['q'][:1], v=v['v'][:1]),
        'Steps.time: 1 times',
    ),
    'another time step': (
        lambda v: v.update(time_step=np.full(STEPS, 2e-3)),
        r'Steps.time_step\[0\] = 0.002 s: the times of the states are 0.001 s apart',
    ),
    'text': (lambda v: v.update(q='here'), 'Steps.q.*real numbers'),
}


@pytest.mark.parametrize('case', BAD)
def test_bad_arrays_are_refused(case):
    change, message = BAD[case]
    values = arrays()
    Steps(**values)
    change(values)
    with pytest.raises(InvalidInput, match=message):
        Steps(**values)


def test_bad_steps_for_a_robot_are_refused():
    steps, _ = standing()
    q = steps.q.copy()
    q[7, 3:7] *= 1.1
    with pytest.raises(InvalidInput, match=r'Steps.q\[7\].*norm 1.1, expected 1'):
        judge(go1(), replace(steps, q=q))
    with pytest.raises(InvalidInput, match="those of robot 'go1', not of 'anymal_b'"):
        judge(load_robot('anymal_b'), steps)
    with pytest.raises(InvalidInput, match=r'Steps.q: 19 columns, but robot .* has'):
        judge(fixed_arm(), replace(steps, robot=''))
    bodies = ('FL_fot', *steps.bodies[1:])
    with pytest.raises(UnknownName, match=r"unknown body 'FL_fot'.*did you mean 'FL_foot'"):
        judge(go1(), replace(steps, bodies=bodies))
    with pytest.raises(InvalidInput, match='does not move'):
        judge(go1(), replace(steps, bodies=('universe', *steps.bodies[1:])))
    with pytest.raises(InvalidInput, match=r'Steps.external: 3 columns, expected 18'):
        judge(go1(), replace(steps, external=np.zeros((STEPS, 3))))
    with pytest.raises(UnknownName, match='unknown velocity'):
        judge(go1(), steps, velocity='forces')
    with pytest.raises(InvalidInput, match='needs contact forces'):
        judge(go1(), replace(steps, force=None), velocity='impulses')


def test_reports_that_do_not_follow_each_other_are_refused():
    reports = reports_of('ncp', Plane(), steps=4)
    with pytest.raises(InvalidInput, match='does not begin where the one before it ended'):
        from_reports(go1(), [reports[0], reports[2]])
    with pytest.raises(InvalidInput, match='none, expected at least one'):
        from_reports(go1(), [])
    with pytest.raises(InvalidInput, match='expected StepReport'):
        from_reports(go1(), [1])
    with pytest.raises(InvalidInput, match='other sizes'):
        from_reports(fixed_arm(), reports)


def test_moments_and_loops_are_refused():
    sim = Simulator(go1(), torsional_friction=0.01)
    with pytest.raises(InvalidInput, match='torsional and rolling friction'):
        from_reports(go1(), [sim.step(np.zeros(12))])


def test_steps_go_through_a_file(tmp_path):
    steps, whole = standing()
    steps.save(tmp_path / 'steps.npz')
    again = Steps.load(tmp_path / 'steps.npz')
    score = judge(go1(), again)
    assert all(np.array_equal(score[name], whole[name]) for name in whole.residuals)
    assert (again.robot, again.source) == (steps.robot, steps.source)
    np.savez(tmp_path / 'few.npz', time=steps.time, q=steps.q)
    with pytest.raises(InvalidInput, match='no entry v'):
        Steps.load(tmp_path / 'few.npz')
    np.savez(tmp_path / 'odd.npz', time=steps.time, q=steps.q, v=steps.v, forces=steps.force)
    with pytest.raises(InvalidInput, match="unknown entry 'forces'"):
        Steps.load(tmp_path / 'odd.npz')
    (tmp_path / 'text.npz').write_text('no archive')
    with pytest.raises(InvalidInput, match=r'no \.npz file'):
        Steps.load(tmp_path / 'text.npz')


def test_any_engine_can_collect_its_steps():
    """The collector makes the arrays; a contact in each of two slots, then none."""
    steps, _ = standing()
    collector = StepCollector(go1(), 'by hand', steps.time[0], steps.q[0], steps.v[0])
    with pytest.raises(InvalidInput, match='no step was taken'):
        collector.steps()
    for k in range(STEPS):
        contacts = [
            StepContact(
                steps.bodies[steps.body[k, i]], steps.point[k, i], steps.normal[k, i],
                steps.gap[k, i], steps.force[k, i], 0.6, steps.next_gap[k, i],
            )
            for i in range(4)
        ]  # fmt: skip
        collector.add(
            steps.q[k + 1], steps.v[k + 1], steps.effort[k], contacts[:: 1 if k % 2 else -1], 1e-3,
            steps.external[k], steps.interval_impulse[k],
        )  # fmt: skip
    score = judge(go1(), collector.steps())
    assert score.source == 'by hand'
    for name, value in standing()[1].residuals.items():
        assert score[name] == pytest.approx(value, abs=1e-12), name
