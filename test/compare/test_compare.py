"""Comparing contact models: numbers against analytic values, honest rows, readable files."""

import csv
import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from robots import ball

from contact_sim import (
    Compliant,
    InvalidInput,
    Planes,
    Simulator,
    UnknownName,
    contact_models,
    load_robot,
)
from contact_sim.compare.__main__ import main
from contact_sim.compare._runs import Log, aligned, compare, text
from contact_sim.compare._scenarios import locked, scenario_of, start
from contact_sim.contact_models.guarantees import LAWS, MAY_BREAK

GRAVITY = 9.81
ALL = contact_models()
RIGID = ('hybrid', 'lcp', 'anitescu', 'ncp')


@cache
def runs(name, duration=None):
    """Return the runs of go1 under every model."""
    scenario = scenario_of(name, duration)
    found = compare(load_robot('go1'), scenario)
    assert [run.model for run in found] == list(ALL)
    return {run.model: run for run in found}


def test_the_robot_with_locked_joints_is_the_same_body():
    robot = load_robot('go1')
    begin = start(scenario_of('slide'), robot, 'ncp', 1e-3)
    body = begin.sim.robot
    assert (body.nv, body.n_joints) == (6, 0)
    assert body.total_mass == pytest.approx(robot.total_mass, rel=1e-12)
    assert begin.sim.last_report.contacts.gap == pytest.approx(np.zeros(4), abs=1e-9)
    turned = robot.reference_configuration().copy()
    turned[3:7] = 0.0, 0.0, np.sin(0.4), np.cos(0.4)  # where the base was has no say
    for one, other in zip(body.contact_points, locked(robot, turned).contact_points, strict=True):
        assert one.offset == pytest.approx(other.offset, abs=1e-12)


@pytest.mark.parametrize('model', [model for model in ALL if model != 'null_space'])
def test_a_sliding_robot_stops_where_friction_says(model):
    """v0² / (2 μ g), 127.42 mm (theory X2); springs let it rock by a little."""
    run = runs('slide')[model]
    assert run.outcome == ''
    assert run.measures.distance == pytest.approx(1e3 / (2 * 0.4 * GRAVITY), rel=0.01)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'anitescu'])
def test_semi_implicit_steps_stop_half_a_step_early(model):
    """The sum h Σ v of theory X2: 126.92126 mm for h = 1 ms."""
    assert runs('slide')[model].measures.distance == pytest.approx(126.92126, abs=2e-3)


def test_feet_that_are_held_do_not_slide_at_all():
    assert runs('slide')['null_space'].measures.distance == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize('model', ALL)
def test_force_at_a_distance_shows_where_it_may(model):
    broken = runs('slide')[model].broken['force_at_distance']
    assert broken == ('force_at_distance' in MAY_BREAK[model])


@pytest.mark.parametrize('model', ALL)
def test_laws_that_must_hold_do(model):
    run = runs('slide')[model]
    broken = {law for law in LAWS if run.broken[law]}
    assert broken <= MAY_BREAK[model].keys()
    assert ('ncp' in broken) == (model not in ('ncp', 'hybrid', 'lcp'))  # slip along an edge


@pytest.mark.parametrize('model', ALL)
def test_all_kinetic_energy_goes_into_the_ground(model):
    """½ m v0², and what springs keep: m g times the depth."""
    measures = runs('slide')[model].measures
    kinetic = 0.5 * load_robot('go1').total_mass
    assert measures.energy_change == pytest.approx(-kinetic, rel=0.03)
    assert measures.actuation == 0.0
    assert measures.contact_work + measures.integration == pytest.approx(
        measures.energy_change, rel=1e-9
    )


@pytest.mark.parametrize('model', ALL)
def test_the_ground_carries_the_weight(model):
    # the last quarter of a second, in which springs still swing a little
    assert runs('stand', 1.0)[model].measures.weight == pytest.approx(1.0, abs=5e-3)


@pytest.mark.parametrize('model', RIGID)
def test_rigid_laws_do_not_creep(model):
    assert runs('stand', 1.0)[model].headline(scenario_of('stand')) <= 1e-6


@pytest.mark.parametrize('model', ['todorov', 'sap'])
def test_regularised_laws_creep_and_it_shows(model):
    assert runs('stand', 1.0)[model].measures.creep >= 1e-3


def test_springs_creep_unless_they_are_anchored():
    scenario = scenario_of('stand', 1.0)
    (tanh,) = compare(load_robot('go1'), scenario, [Compliant(friction_law='tanh')])
    assert tanh.measures.creep >= 1e-3
    assert (
        runs('stand', 1.0)['compliant'].measures.creep <= 0.3 * tanh.measures.creep
    )  # it settles


@pytest.mark.parametrize('model', ALL)
def test_a_drop_lands_when_it_must(model):
    """√(2 H / g) = 142.8 ms, within a step of 1 ms."""
    landing = runs('drop', 0.2)[model].measures.landing
    assert 1e3 * np.sqrt(0.2 / GRAVITY) - 1.0 <= landing
    assert landing <= 1e3 * np.sqrt(0.2 / GRAVITY) + 1.5


def test_a_log_takes_a_ground_of_several_features():
    """Without friction a ball at rest in a groove presses on it with m g / cos α in sum."""
    angle = 0.5
    s, c = np.sin(angle), np.cos(angle)
    groove = Planes((((s, 0, c), 0.0), ((-s, 0, c), 0.0)))
    sim, stand = Simulator(ball(1.5), terrain=groove, friction=0.0), scenario_of('stand')
    log = Log(sim, stand)
    for _ in range(100):
        log.note(sim.step([]), 1e-5)
    measures = log.result('ncp').measures
    assert measures.weight == pytest.approx(1.0 / c, rel=1e-6)
    assert measures.creep == pytest.approx(0.0, abs=1e-3)


def test_a_failure_is_a_row():
    """Explicit springs far too stiff explode; what is known until then is in the table."""
    bad = Compliant(integration='explicit', stiffness=1e13)
    scenario = scenario_of('drop', 0.3)
    failed, good = compare(load_robot('go1'), scenario, [bad, 'ncp'])
    assert failed.outcome
    assert np.isnan(failed.measures.weight)
    assert good.outcome == ''
    table = text(scenario, [failed, good])
    assert failed.outcome in table
    assert 'nan' not in table


def test_a_robot_that_falls_is_a_row():
    """From 5 m its motors cannot stop it: at 9.9 m/s the trunk passes half its height."""
    scenario = replace(scenario_of('drop', 1.3), height=5.0)
    (run,) = compare(load_robot('go1'), scenario, ['ncp'])
    assert run.outcome.startswith('fell at t = 1.0')
    assert np.isnan(run.measures.weight)
    assert run.measures.landing == pytest.approx(1e3 * np.sqrt(10.0 / GRAVITY), abs=1.5)


def test_a_trotting_robot_moves_at_its_speed():
    scenario = scenario_of('trot', 2.0)
    (run,) = compare(load_robot('go1'), scenario, ['ncp'])
    assert run.outcome == ''
    assert run.headline(scenario) == pytest.approx(0.3, abs=0.1)


def test_the_command_writes_table_files_and_figure(tmp_path, capsys):
    arguments = ['--scenario', 'slide', '--models', 'ncp', 'anitescu', '--duration', '0.3']
    assert main([*arguments, '--out', str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert 'analytic 127.42' in printed
    path = tmp_path / 'compare-go1-slide'
    with path.with_suffix('.csv').open(encoding='utf-8') as file:
        rows = {row['model']: row for row in csv.DictReader(file)}
    assert float(rows['ncp']['distance']) == pytest.approx(126.92126, abs=2e-3)
    assert rows['ncp']['broken'] == ''
    assert 'force_at_distance' in rows['anitescu']['broken']
    document = json.loads(path.with_suffix('.json').read_text(encoding='utf-8'))
    assert [run['model'] for run in document['runs']] == ['ncp', 'anitescu']
    assert document['time_step'] == 1e-3
    assert path.with_suffix('.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['--robot', 'nosuch'], 'nosuch'),
        (['--time-step', '-1'], 'time_step = -1'),
        (['--duration', '0'], 'duration = 0'),
    ],
)
def test_what_cannot_be_run_ends_in_one_line(tmp_path, capsys, arguments, reason):
    assert main([*arguments, '--out', str(tmp_path)]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert reason in said
    assert list(tmp_path.iterdir()) == []


def test_bad_names_and_robots_are_refused():
    with pytest.raises(UnknownName, match="'dance'; known: drop"):
        scenario_of('dance')
    with pytest.raises(InvalidInput, match='floating base and feet'):
        compare(load_robot('go1', feet=[]), scenario_of('stand'))


def test_columns_are_aligned():
    lines = aligned([['model', 'x'], ['ncp', '1.5'], ['anitescu', '12.5']]).splitlines()
    assert lines[2].index('.') == lines[3].index('.')
