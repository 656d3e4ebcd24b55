"""A trial by value, what disturbs it, its controllers, and its row."""

import json
import math
import pickle
import re
from dataclasses import replace
from pathlib import Path

import controllers_of_tests
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

import contact_sim
from contact_sim import ContactSimError, InvalidInput, UnknownName
from contact_sim.campaign import (
    SCENARIOS,
    Trial,
    load_controller,
    run_trial,
    run_trials,
    scenario_of,
    trial_of,
)
from contact_sim.campaign._measures import (
    CAUSES,
    OUTCOMES,
    RESULTS,
    first_lasting,
    limits_of,
    support_margin,
)
from contact_sim.campaign._scenarios import ground_of
from contact_sim.campaign._trial import Prepared, robot_of, start_of
from contact_sim.collision._terrain import as_terrain
from contact_sim.compare import compare
from contact_sim.compare import scenario_of as compared
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.verdict.variants import Held, written

HERE = str(Path(controllers_of_tests.__file__))
GO1 = robot_of('go1')
SHORT = 0.2


def own(name):
    return f'{HERE}:{name}'


def result(row):
    """The row without what is not of the run itself."""
    return {key: repr(value) for key, value in row.items() if key not in ('wall', 'controller')}


# --- By value

TRIALS = st.builds(
    Trial,
    controller=st.sampled_from(['hold', 'trot', 'a.b:c']),
    contact_model=st.sampled_from(contact_sim.contact_models()),
    parameters=st.sampled_from([(), (('tolerance', 1e-8),), (('stiffness', 3), ('law', 'x'))]),
    time_step=st.floats(1e-5, 1e-2),
    seconds=st.none() | st.floats(0.01, 100.0),
    friction=st.none() | st.floats(0.0, 2.0),
    seed=st.integers(0, 2**40),
)


@given(TRIALS)
def test_a_trial_is_the_same_after_a_row_json_and_pickle(trial):
    assert trial_of(json.loads(json.dumps(trial.as_row()))) == trial
    assert pickle.loads(pickle.dumps(trial)) == trial
    assert trial_of(trial.as_row()).key == trial.key


@given(TRIALS, TRIALS)
def test_other_trials_have_other_keys(one, other):
    assert (one.key == other.key) == (one == other)


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'time_step': 0.0}, 'time_step = 0.0 s: expected a finite number > 0'),
        ({'friction': -0.1}, 'friction = -0.1: expected finite values in'),
        ({'friction': 'high'}, "friction = 'high': expected"),
        ({'mass_scale': math.inf}, 'mass_scale = inf'),
        ({'seed': -1}, 'seed = -1'),
        ({'seed': 0.5}, 'seed = 0.5: expected a whole number'),
        ({'parameters': (('tolerance',),)}, 'expected pairs'),
        ({'parameters': (('tolerance', math.nan),)}, 'tolerance = nan: expected a finite number'),
    ],
)
def test_wrong_values_are_refused(change, words):
    with pytest.raises(InvalidInput, match=words):
        Trial('hold', **change)


def test_a_row_without_a_column_is_refused():
    row = Trial('hold').as_row()
    del row['seed'], row['noise']
    with pytest.raises(InvalidInput, match='columns noise, seed are missing'):
        trial_of(row)


# --- The row


def test_every_row_has_the_same_columns_of_the_same_types():
    rows = [
        run_trial(Trial('hold', seconds=0.05)),
        run_trial(Trial(own('Raises'), seconds=0.05)),
        run_trial(Trial('hold', scenario='missing.yaml')),
        run_trial(Trial('hold', contact_model='ncp', parameters=(('tol', 1.0),))),
    ]
    assert [row['outcome'] for row in rows] == ['ok', 'controller_error', 'refused', 'refused']
    expected = {**Trial('hold').as_row(), **RESULTS}
    for row in rows:
        assert {key: type(value) for key, value in row.items()} == {
            key: type(value) for key, value in expected.items()
        }
        assert row['outcome'] in OUTCOMES
        assert row['cause'] in CAUSES
        assert row['success'] == (row['outcome'] == 'ok')


def test_a_robot_without_driven_joints_has_a_row():
    row = run_trial(Trial('hold', robot='bouncing_ball', seconds=0.05))
    assert (row['outcome'], row['saturated_share']) == ('ok', 0.0)


@pytest.mark.parametrize('model', ['ncp', 'compliant', 'lcp'])
def test_residuals_are_those_of_the_comparison(model):
    """Another program measures the same run: laws, what is broken, and the energy."""
    (measured,) = compare(GO1, compared('stand', SHORT), [model])
    row = run_trial(Trial('hold', seconds=SHORT, contact_model=model))
    limits = limits_of(1.0)
    for law in LAWS:
        scale = GO1.total_mass if limits_of(2.0)[law] != limits[law] else 1.0
        assert row[f'{law}_max'] * scale == pytest.approx(measured.laws[law], rel=1e-12)
        assert row[f'{law}_p50'] <= row[f'{law}_p99'] <= row[f'{law}_max']
        assert row[f'{law}_broken'] == measured.broken[law]
    assert row['energy_error'] == pytest.approx(measured.measures.integration, rel=1e-9)
    assert (row['first_broken'] == '') == (not any(measured.broken.values()))
    if row['first_broken']:
        assert row[f'{row["first_broken"]}_broken']
        assert row['first_broken_foot'] in {point.name for point in GO1.contact_points}
        assert 0.0 < row['first_broken_time'] <= SHORT


def test_the_hash_is_that_of_the_end_state_and_rows_run_again_to_the_bit():
    trial = Trial(
        own('pd'), 'go1', 'push', 'sap', (('stiction_tolerance', 1e-3),), 2e-3, 0.3, 0.6, 1.1,
        0.004, 0.5, 3.0, 0.0, 1.0, 7,
    )  # fmt: skip
    row = run_trial(trial)
    assert result(run_trial(trial_of(row))) == result(row)
    assert row['steps'] == 150
    assert row['end_time'] == pytest.approx(0.3)
    others = [replace(trial, **change) for change in (
        {'seed': 8}, {'friction': 0.1}, {'noise': 0.4}, {'delay': 0.006},
        {'push': 4.0}, {'start': 0.9}, {'parameters': ()}, {'contact_model': 'ncp',
        'parameters': ()}, {'roughness': 0.005},
    )]  # fmt: skip
    hashes = {run_trial(other)['hash'] for other in others}
    assert len(hashes) == len(others)
    assert row['hash'] not in hashes


def test_a_scaled_robot_presses_that_much_harder_and_the_controller_does_not_know():
    scaled = Prepared(Trial(own('WithSensors'), mass_scale=1.5))
    sim, nominal = scaled.simulator(), scaled.nominal
    assert sim.robot.total_mass == pytest.approx(1.5 * nominal.total_mass, rel=1e-12)
    assert scaled.controller.target.inner.dynamics.robot is nominal
    row = run_trial(Trial('hold', seconds=0.5, mass_scale=1.5))
    assert row['success']


# --- What is random


def test_each_factor_has_random_numbers_of_its_own():
    base = Trial('hold', scenario='push', start=1.0, seed=3)
    ground, q = Prepared(base).ground, Prepared(base).q
    noisy = replace(base, noise=1.0, push=5.0)
    assert np.array_equal(start_of(noisy, scenario_of('push'), GO1, ground)[0], q)
    calm, pushed = Prepared(base).disturbances, Prepared(noisy).disturbances
    assert calm.pushed == pushed.pushed
    direction = pushed.wrench / np.linalg.norm(pushed.wrench)
    assert np.allclose(calm.wrench / np.linalg.norm(calm.wrench), direction, atol=1e-15)
    assert np.linalg.norm(pushed.wrench) * 0.1 == pytest.approx(5.0)
    assert Prepared(replace(base, seed=4)).disturbances.pushed != calm.pushed


def test_a_changed_start_stands_on_the_ground():
    for roughness in (0.0, 0.02):
        sim = Prepared(Trial('hold', start=1.0, roughness=roughness, seed=5)).simulator()
        assert sim.last_report.contacts.gap.min() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize('scenario', ['stand', 'slope'])
@pytest.mark.parametrize('start', [0.0, 1.0])
def test_a_trial_starts_in_the_pose_of_its_controller(scenario, start):
    trial = Trial(own('Crouches'), scenario=scenario, start=start, seed=5, seconds=0.05)
    prepared = Prepared(trial)
    pose = prepared.controller.start_pose
    standing = Prepared(replace(trial, controller='hold'))
    moved = standing.q[7:] - GO1.reference_configuration()[7:]  # by the seed, the same
    assert prepared.q[7:] == pytest.approx(pose + moved)
    sim = prepared.simulator()
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.0, abs=1e-4)
    assert sim.q[2] < standing.q[2] - 0.02
    row = run_trial(trial)
    assert row['outcome'] == 'ok', row['reason']


def test_a_controller_in_a_slower_loop_starts_in_the_same_pose(tmp_path):
    held = written(tmp_path, Held, own('Crouches'), 2e-3, source='go1')
    prepared = [Prepared(Trial(text)) for text in (held, own('Crouches'))]
    _ = [each.controller for each in prepared]
    assert np.array_equal(prepared[0].q, prepared[1].q)


def test_a_start_pose_of_another_length_is_refused():
    row = run_trial(Trial(own('StartsNowhere'), seconds=SHORT))
    assert row['outcome'] == 'refused'
    assert 'start_pose of controller' in row['reason']
    assert '11' in row['reason']


def test_a_push_moves_the_robot_by_its_impulse():
    """Without friction nothing but the push acts along the ground: Δv = impulse / mass."""
    trial = Trial(own('pd'), scenario='stand', seconds=0.2, friction=0.0, push=2.0, seed=1)
    sim = Prepared(trial).simulator()
    row = run_trial(trial)
    pushed = Prepared(trial).disturbances.pushed
    share = (min(pushed.stop, row['steps']) - pushed.start) / len(pushed)
    speed = row['distance'] / (0.5 * 0.1 + 1e-3 * max(row['steps'] - pushed.stop, 0))
    angle = np.arctan2(*Prepared(trial).disturbances.wrench[1::-1])
    assert share == 1.0
    assert speed == pytest.approx(np.cos(angle) * 2.0 / sim.robot.total_mass, rel=0.1)


def test_rough_ground_has_the_height_that_is_asked_for():
    ground = Prepared(Trial('hold', roughness=0.02, seed=2)).ground
    x, y = np.meshgrid(np.arange(-1.5, 7.5, 0.21), np.arange(-3.5, 3.5, 0.21))
    heights = [ground.height(*point) for point in zip(x.ravel(), y.ravel(), strict=True)]
    assert np.std(heights) == pytest.approx(0.02, rel=0.15)


def test_a_delay_of_d_steps_delivers_the_command_of_d_steps_before():
    disturbances = Prepared(Trial('hold', delay=0.003)).disturbances
    assert [disturbances.acting(k) for k in range(6)] == [0, 0, 0, 0, 1, 2]


# --- Controllers


def test_a_function_a_batch_and_targets_are_the_built_in_hold():
    rows = [run_trial(Trial(text, seconds=SHORT)) for text in ('hold', own('pd'), own('many'))]
    assert len({row['hash'] for row in rows}) == 1
    targets = run_trial(Trial(own('targets'), seconds=SHORT))
    assert targets['distance'] == pytest.approx(rows[0]['distance'], rel=1e-9)


def test_a_class_gets_robot_reset_and_reports():
    trial = Trial(own('WithSensors'), seconds=SHORT)
    prepared = Prepared(trial)
    controller = prepared.controller
    row = run_trial(trial)
    assert row['success']
    sim = prepared.simulator()
    controller.reset(sim)
    for _ in range(100):
        sim.step(controller.effort(sim.time, sim.q, sim.v))
    weight = sim.robot.total_mass * 9.81
    assert controller.target.loads[-1] == pytest.approx(weight, rel=1e-3)


def test_the_recording_of_a_trial_played_back_is_the_trial(tmp_path):
    path = tmp_path / 'run.npz'
    row = run_trial(Trial('stance', seconds=SHORT, push=2.0), path)
    again = run_trial(Trial(str(path), seconds=SHORT, push=2.0))
    assert again['hash'] == row['hash']
    longer = run_trial(Trial(str(path), seconds=2 * SHORT, push=2.0))
    assert longer['outcome'] == 'controller_error'
    assert longer['reason'].endswith('ends at t = 0.2 s: choose fewer seconds')


@pytest.mark.parametrize(
    ('text', 'error', 'words'),
    [
        ('walk', InvalidInput, "controller = 'walk': expected 'stance', 'trot'"),
        ('no_such_module:f', InvalidInput, "module 'no_such_module' cannot be imported"),
        (own('Rises'), UnknownName, "'Rises'; .* did you mean 'Raises'"),
        ('missing.py:f', InvalidInput, 'cannot read missing.py: No such file'),
        ('missing.npz', ContactSimError, 'cannot read missing.npz'),
        ('missing.yaml', InvalidInput, 'missing.yaml'),
        ('ros:my_package.walk', InvalidInput, 'needs the name or path of the robot'),
        (own('KP'), InvalidInput, 'has no effort'),
    ],
)
def test_a_controller_that_cannot_be_loaded_is_named(text, error, words):
    with pytest.raises(error, match=words):
        load_controller(text, GO1)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('Raises', "KeyError: 'no plan'"),
        ('NotANumber', 'the controller returned nan N m for joint FL_hip_joint'),
        ('WrongShape', r'efforts of shape \(3,\), expected \(12,\)'),
        ('Quits', 'SystemExit: 2'),
    ],
)
def test_what_a_controller_does_wrong_is_a_row(name, words):
    row = run_trial(Trial(own(name), seconds=SHORT))
    assert (row['outcome'], row['cause']) == ('controller_error', 'controller')
    assert row['end_time'] == pytest.approx(0.02)
    assert row['steps'] == 20
    assert re.search(words, row['reason'])


def test_the_first_quantity_that_leaves_its_band_is_the_reason():
    row = run_trial(Trial(own('Pushes'), seconds=1.0))
    assert (row['outcome'], row['cause']) == ('missed', 'torque_limit')
    limit = GO1.effort_limit[2]
    assert row['reason'].startswith(f'effort of FL_calf_joint {limit:.3g} N m, band below')
    assert 'at t = 0.021 s; ended 0.' in row['reason']
    assert row['torque_share_max'] == pytest.approx(1.0)
    assert row['saturated_share'] > 0.2


def test_a_robot_whose_feet_are_named(tmp_path):
    path = tmp_path / 'mine.urdf'
    path.write_text(robot_of('quadruped').description)
    refused = run_trial(Trial('hold', robot=str(path), seconds=SHORT))
    assert refused['outcome'] == 'refused'
    assert 'name the links that are its feet (--feet' in refused['reason']
    feet = ', '.join(foot.name for foot in robot_of('quadruped').feet)
    mine = run_trial(Trial('hold', robot=str(path), seconds=SHORT, feet=feet))
    assert mine['success'], mine['reason']
    found = [(foot.name, foot.frame) for foot in robot_of(str(path), feet).feet]
    assert found == [(foot.name, foot.frame) for foot in robot_of('quadruped').feet]


@pytest.mark.parametrize('delay', [0.0, 0.02])
def test_commands_that_stay_the_same_are_old(delay):
    # it freezes at 20 ms; with a delay that acts later, and the commands are older by as much
    row = run_trial(Trial(own('Freezes'), seconds=1.0, delay=delay))
    assert (row['outcome'], row['cause']) == ('fell', 'command_age')
    assert 'commands 0.051 s old, band up to 0.05 s, at t = 0.072 s' in row['reason']


# --- Scenarios


@pytest.mark.parametrize(
    ('controller', 'scenario'),
    [('stance', 'stand'), ('balance', 'push'), ('trot', 'trot'), ('stance', 'push'),
     ('stance', 'drop'), ('stance', 'slope'), ('trot', 'stairs'), ('trot', 'slip')],
)  # fmt: skip
def test_the_built_in_controllers_reach_the_goals(controller, scenario):
    row = run_trial(Trial(controller, scenario=scenario, time_step=2e-3))
    assert row['success'], row['reason']
    goal = SCENARIOS[scenario]
    if goal.speed:
        assert row['speed_mean'] > goal.least_speed
        assert row['clearance_min'] > 0.0
    if scenario == 'stairs':
        sim = Prepared(Trial(controller, scenario=scenario)).simulator()
        assert sim.terrain.height(row['distance'], 0.0) >= 0.04


def test_goals_can_be_missed_and_robots_can_fall():
    slow = run_trial(Trial('stance', scenario='trot', seconds=SHORT))
    assert (slow['outcome'], slow['cause']) == ('missed', 'goal')
    assert slow['reason'].endswith('m/s in the second half, goal 0.15 m/s or more')
    down = run_trial(Trial('hold', scenario='slope', friction=0.05))
    assert down['outcome'] == 'missed'
    assert down['slipped'] > 0.3
    shoved = run_trial(Trial('stance', scenario='push', push=60.0))
    assert shoved['outcome'] == 'fell'
    assert shoved['end_time'] < 3.0
    assert shoved['cause'] in ('support', 'torque_limit', 'velocity')


def test_a_patch_of_low_friction_acts_where_it_is():
    ground = Prepared(Trial('trot', scenario='slip')).ground
    (region,) = ground.regions
    assert region.friction == SCENARIOS['slip'].patch_friction
    assert [region.contains(x, 0.0) for x in (0.3, 0.5, 1.1)] == [False, True, False]


def test_a_scenario_on_a_ground_by_its_name(tmp_path):
    path = tmp_path / 'steps.yaml'
    path.write_text('seconds: 0.01\nterrain: Stairs\n', encoding='utf-8')
    scenario = scenario_of(str(path))
    ground = ground_of(scenario, 0.0, np.random.default_rng(0))
    assert ground.height(0.0, 0.0) == pytest.approx(as_terrain('stairs').height(0.0, 0.0))
    assert ground.height(0.0, 0.0) > 0.5
    assert ground_of(scenario, 0.0, np.random.default_rng(1)) is ground
    with pytest.raises(InvalidInput, match="terrain 'Stairs' is as it is"):
        ground_of(scenario, 0.01, np.random.default_rng(0))
    path.write_text('seconds: 0.01\nterrain: stars\n', encoding='utf-8')
    with pytest.raises(UnknownName, match="did you mean 'stairs'"):
        ground_of(scenario_of(str(path)), 0.0, np.random.default_rng(0))
    path.write_text('seconds: 0.01\nterrain: stairs\nslope: 0.1\n', encoding='utf-8')
    with pytest.raises(InvalidInput, match='not together with slope'):
        scenario_of(str(path))
    assert scenario_of('STAND').name == 'stand'


def test_a_scenario_from_yaml(tmp_path):
    path = tmp_path / 'icy.yaml'
    path.write_text('seconds: 0.1\nfriction: 0.05\npatch: [0.5, 1.0]\nlargest_drift: 0.2\n')
    scenario = scenario_of(str(path))
    assert (scenario.name, scenario.friction, scenario.patch) == ('icy', 0.05, (0.5, 1.0))
    assert scenario.goal == 'stays up, ends within 0.2 m of its start'
    row = run_trial(Trial('hold', scenario=str(path)))
    assert row['steps'] == 100


@pytest.mark.parametrize(
    ('text', 'error', 'words'),
    [
        ('seconds: 1\nfrictoin: 0.5', UnknownName, "'frictoin'.*did you mean 'friction'"),
        ('friction: 0.5', InvalidInput, 'seconds is missing'),
        ('seconds: 1\nfriction: high', InvalidInput, "friction = 'high'"),
        ('seconds: 0', InvalidInput, 'seconds = 0.0 s: expected a finite number > 0'),
        ('seconds: 1\npatch: [2, 1]', InvalidInput, 'patch'),
        ('seconds: 1\nslope: 2', InvalidInput, 'slope = 2.0 rad'),
        ('- 1', InvalidInput, 'expected keys and values'),
        ('seconds: [1', InvalidInput, 'cannot be read'),
    ],
)
def test_a_wrong_scenario_file_is_refused(tmp_path, text, error, words):
    path = tmp_path / 'wrong.yaml'
    path.write_text(text)
    with pytest.raises(error, match=words):
        scenario_of(str(path))


def test_an_unknown_scenario_is_named():
    with pytest.raises(UnknownName, match="did you mean 'stairs'"):
        scenario_of('stair')


# --- Batches


@pytest.mark.parametrize(
    ('controller', 'model', 'scenario'),
    [
        ('hold', 'ncp', 'push'), (own('many'), 'compliant', 'push'), ('trot', 'sap', 'push'),
        ('trot', 'hybrid', 'push'), ('hold', 'hybrid', 'push'), ('trot', 'ncp', 'stairs'),
    ],
)  # fmt: skip
def test_trials_in_a_batch_have_the_rows_that_they_have_alone(model, controller, scenario):
    """Different in everything that may differ in a batch; one of them falls."""
    trials = [
        Trial(
            controller, scenario=scenario, contact_model=model, seconds=0.25,
            friction=0.2 + 0.2 * k, mass_scale=1.0 + 0.1 * k, noise=0.5 * (k % 2),
            delay=0.002 * (k % 2), push=[0.0, 40.0, 3.0][k], start=1.0, seed=k,
        )
        for k in range(3)
    ]  # fmt: skip
    together, alone = run_trials(trials), [run_trial(trial) for trial in trials]
    assert list(map(result, together)) == list(map(result, alone))
    assert len({row['hash'] for row in together}) == 3


def test_a_controller_that_differs_in_batches_runs_alone():
    trials = [Trial(own('differs_in_batches'), seconds=0.05, friction=mu) for mu in (0.4, 0.8)]
    alone = [run_trial(trial) for trial in trials]
    assert list(map(result, run_trials(trials))) == list(map(result, alone))


def test_trials_that_cannot_run_together_are_refused():
    with pytest.raises(InvalidInput, match='run together'):
        run_trials([Trial('hold'), Trial('hold', contact_model='sap')])
    with pytest.raises(InvalidInput, match='run together'):
        run_trials([Trial('stance'), Trial('stance')])


# --- Support and bands


@given(st.integers(3, 8), st.integers(0, 10**6))
def test_the_margin_is_the_distance_from_the_edges_of_the_hull(n, seed):
    rng = np.random.default_rng(seed)
    points, centre = rng.uniform(-1.0, 1.0, (n, 2)), rng.uniform(-0.5, 0.5, 2)
    loaded = np.ones((1, n), dtype=bool)
    (margin,) = support_margin(points[None], centre[None], loaded)
    hull = ConvexHull(points)
    inside = -float((hull.equations[:, :2] @ centre + hull.equations[:, 2]).max())
    if inside >= 0.0:
        assert margin == pytest.approx(inside, abs=1e-12)
        return
    ends = points[hull.simplices]
    along = ends[:, 1] - ends[:, 0]
    share = np.clip(np.sum((centre - ends[:, 0]) * along, 1) / np.sum(along**2, 1), 0.0, 1.0)
    nearest = ends[:, 0] + share[:, None] * along
    assert margin == pytest.approx(-np.linalg.norm(nearest - centre, axis=1).min(), abs=1e-12)


def test_the_margin_of_two_one_and_no_feet():
    points = np.array([[[-1.0, 0.0], [1.0, 0.0]]])
    for centre, loaded, expected in (
        ((0.0, 0.0), (True, True), 0.0), ((0.0, 0.3), (True, True), -0.3),
        ((1.3, 0.4), (True, True), -0.5), ((0.0, 0.0), (True, False), -1.0),
    ):  # fmt: skip
        margin = support_margin(points, np.array([centre]), np.array([loaded]))
        assert margin[0] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(support_margin(points, np.zeros((1, 2)), np.array([[False, False]]))[0])


def test_a_band_counts_as_left_after_some_steps_that_reach_the_end():
    out = np.array([0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1], dtype=bool)
    assert first_lasting(out, 3, 0) == 1
    assert first_lasting(out, 3, 5) == 7
    assert first_lasting(out, 5, 0) is None
    assert first_lasting(out, 1, 4) == 5
