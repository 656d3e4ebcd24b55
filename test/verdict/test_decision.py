"""The verdict from made-up rows: the right cause for each, and none where none can be told."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contact_sim.campaign import Trial
from contact_sim.campaign._trial import failed_row
from contact_sim.contact_models import contact_models
from contact_sim.verdict import _page
from contact_sim.verdict._decision import breaks, decide
from contact_sim.verdict._plan import (
    LOOP,
    OWN_DELAY,
    SOLVER,
    WITHOUT,
    Settings,
    factors_of,
    laws_in_order,
    next_run,
)
from contact_sim.verdict._rates import Table, margin_of

NOMINAL = Trial('stance')
FACTORS = factors_of(NOMINAL, 13.0, 0.8)
LAWS = laws_in_order(contact_models())
EXACT = ('ncp', 'hybrid')
SETTINGS = Settings(NOMINAL, LAWS, FACTORS, 0.8, {}, 4, 8)
BROKEN = {
    'todorov': ('slip', 'penetration', 'force_at_distance'),
    'sap': ('slip', 'penetration'),
    'compliant': ('slip', 'penetration'),
    'anitescu': ('force_at_distance',),
    'null_space': ('cone',),
}
CREEP = {'todorov': 2e-2, 'sap': 1e-4, 'compliant': 1e-5}


def row(run, success=True, cause='support', unsolved=0, **columns):
    """Return the row of a run."""
    law = run.trial.contact_model
    residuals = BROKEN.get(law, ())
    if run.factor == WITHOUT:
        residuals = tuple(x for x in residuals if x != run.level)
    result = {
        **failed_row(run.trial, 'ok' if success else 'fell', '' if success else 'it fell'),
        **run.columns(),
        'success': success, 'cause': '' if success else cause, 'unsolved': unsolved,
        'hash': f'{law}-{run.factor}-{run.level}-{run.trial.seed}-{success}',
        'end_time': 2.0 if success else 0.5,
        'creep_mean': CREEP.get(law, 0.0) if 'slip' in residuals else 0.0,
    }  # fmt: skip
    for residual in residuals:
        result |= {f'{residual}_broken': True, f'{residual}_max': 1e-2, f'{residual}_p99': 1e-3}
    if residuals:
        result |= {'first_broken': residuals[0], 'first_broken_time': 0.25,
                   'first_broken_foot': 'RL_foot'}  # fmt: skip
    return {**result, **columns}


def world(works, settings=SETTINGS, most=400, **columns):
    """Return the rows of all runs that the plan asks for where `works(run)` says how they end."""
    rows, pending = [], set()
    while len(rows) < most and (run := next_run(settings, rows, pending)) is not None:
        trial = run.trial
        pending.add((run.factor, str(run.level), trial.contact_model, trial.seed))
        rows.append(row(run, works(run), **columns))
    return rows


def found(works, **options):
    return decide(world(works, **options), FACTORS)


def law(run):
    return run.trial.contact_model


# --- The causes


def test_it_fails_everywhere():
    verdict = found(lambda run: False, cause='torque_limit')
    assert (verdict.cause, verdict.quantity) == ('controller', 'torque_limit')
    assert 'the torque limit' in verdict.statement
    assert verdict.confidence > 0.999
    assert all(evidence.rate.fails for evidence in verdict.evidence)


def test_quantity_and_reason_are_of_one_run():
    """The most common quantity, and a run that left it first: of the reference law if there is."""
    first = {'ncp': 'height', 'hybrid': 'tilt', 'lcp': 'support', 'anitescu': 'support'}
    rows = [
        {**each, 'cause': (cause := first.get(each['contact_model'], 'tilt')),
         'reason': f'{cause} under {each["contact_model"]}, seed {each["seed"]}',
         'end_time': 0.1 if cause == 'support' else 0.5}
        for each in world(lambda run: False)
    ]  # fmt: skip
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.quantity) == ('controller', 'tilt')
    words = 'First leaves its band: the tilt of the base, so under hybrid: tilt under hybrid, seed'
    assert f'{words} 0' in verdict.statement
    rows = [{**each, 'cause': 'tilt', 'reason': each['reason'].replace('height', 'tilt')}
            if each['contact_model'] == 'ncp' else each for each in rows]  # fmt: skip
    assert 'so under ncp: tilt under ncp, seed 0' in decide(rows, FACTORS).statement


@pytest.mark.parametrize('bad', [('todorov',), ('todorov', 'sap')])
def test_it_fails_only_where_feet_creep(bad):
    verdict = found(lambda run: law(run) not in bad or (run.factor == WITHOUT
                    and run.level == 'slip'))  # fmt: skip
    assert (verdict.cause, verdict.residual, verdict.artefact) == ('contact_law', 'slip', False)
    assert verdict.factor == 'contact_model'
    assert 'RL_foot' in verdict.statement
    assert '0.250 s' in verdict.statement
    assert 'reality does not creep' in verdict.statement
    assert any('without creep' in str(e) and e.rate.works for e in verdict.evidence)
    assert verdict.confidence > 0.95


def test_it_works_only_because_feet_creep():
    verdict = found(lambda run: law(run) in ('todorov', 'sap') and run.level != 'slip')
    assert (verdict.cause, verdict.residual, verdict.artefact) == ('contact_law', 'slip', True)
    assert 'ONLY BECAUSE OF AN ARTEFACT' in verdict.statement
    assert 'because of an artefact' in verdict.headline
    assert verdict.headline.startswith('THE CONTACT LAW')


@pytest.mark.parametrize(
    ('bad', 'residual'),
    [
        (('anitescu',), 'force_at_distance'),
        (('compliant', 'sap', 'todorov'), 'penetration'),
    ],
)
def test_the_residual_is_the_one_that_sets_the_laws_apart(bad, residual):
    verdict = found(lambda run: law(run) not in bad or run.level == residual)
    assert (verdict.cause, verdict.residual) == ('contact_law', residual)


# --- A law that alone fails, and holds feet as no ground can


def beyond(rows, name, excess):
    """Return rows in which a law holds feet beyond friction by `excess` times the weight."""
    return [
        {**each, 'cone_broken': True, 'cone_max': 1.0,
         'cone_p50': excess * 9.81 * each['time_step']}
        if each['contact_model'] == name else each for each in rows
    ]  # fmt: skip


@pytest.mark.parametrize('name', ['null_space', 'sap', 'mujoco_elliptic'])
def test_the_only_law_that_fails_is_set_aside_where_it_holds_feet(name):
    settings = Settings(NOMINAL, (*LAWS, 'mujoco_elliptic'), FACTORS, 0.8, {}, 4, 8)
    rows = beyond(world(lambda run: law(run) != name, settings), name, 0.7)
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.headline) == ('none', 'No failure found')
    assert (verdict.set_aside, verdict.factor, verdict.residual) == (name, '', '')
    assert f'under {len(LAWS)} contact laws' in verdict.statement  # all but that one
    assert f'Under {name} it fails, which does not count' in verdict.statement
    assert '0.7 times the weight' in verdict.statement
    assert f'It fails under {name}: it fell' in verdict.notes
    shown = {evidence.text: evidence.rate for evidence in verdict.evidence}
    assert shown[f'the stated case under {name}, set aside'].successes == 0
    assert shown['all runs'].low > 0.9
    assert all(effect.p > 0.05 for effect in verdict.effects)
    about = _page.Investigation('stance', 'go1', 'stand', '', '', 1.0, 1.0, 'done')
    page = _page.page_text(verdict, FACTORS, about, b'')
    assert page.count(_page.SET_ASIDE) == 1
    assert 'which does not count' in page


@pytest.mark.parametrize('excess', [0.03, np.nan])
def test_a_law_that_fails_without_holding_feet_is_not_set_aside(excess):
    rows = beyond(world(lambda run: law(run) != 'null_space'), 'null_space', excess)
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.residual, verdict.set_aside) == ('contact_law', 'cone', '')


def test_a_law_is_not_set_aside_where_another_one_fails_too():
    rows = beyond(world(lambda run: law(run) not in ('null_space', 'lcp')), 'null_space', 0.7)
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.set_aside) == ('contact_law', '')
    assert 'only under lcp and null_space' in verdict.statement


def test_a_law_is_not_set_aside_where_one_of_its_failures_has_another_reason():
    rows = beyond(world(lambda run: law(run) != 'null_space'), 'null_space', 0.7)
    last = max(k for k, each in enumerate(rows) if each['contact_model'] == 'null_space')
    rows[last] = {**rows[last], 'cone_p50': 0.0}
    assert decide(rows, FACTORS).cause == 'contact_law'


def test_a_law_is_not_set_aside_before_all_others_are_known_to_work():
    rows = beyond(world(lambda run: law(run) != 'null_space'), 'null_space', 0.7)
    rows = [each for each in rows if each['contact_model'] != 'lcp' or each['seed'] < 2]
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.set_aside) == ('cannot_tell', 'null_space')
    assert 'too few runs: 2 of 2' in verdict.why
    assert 'under lcp' in verdict.why


def test_what_else_makes_it_fail_is_told_where_a_law_is_set_aside():
    def works(run):
        return law(run) != 'null_space' and run.trial.delay < 8e-3

    verdict = decide(beyond(world(works), 'null_space', 0.7), FACTORS)
    assert (verdict.cause, verdict.factor) == ('latency', 'delay')
    assert verdict.set_aside == 'null_space'
    assert 'in the stated case under every law but null_space' in verdict.statement
    assert verdict.effects[0].factor == 'delay'


def test_one_that_works_only_where_feet_are_held_is_blamed():
    rows = beyond(world(lambda run: law(run) == 'null_space'), 'null_space', 0.7)
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.residual, verdict.artefact) == ('contact_law', 'cone', True)
    assert verdict.set_aside == ''
    assert 'It would fail on a robot' in verdict.statement


def test_a_law_that_holds_feet_with_another_factor_only_is_set_aside_there():
    rows = world(lambda run: True)
    runs = [SETTINGS.run(name, seed, 'delay', 0.02)
            for name in ('ncp', 'null_space') for seed in range(8)]  # fmt: skip
    rows += beyond([row(run, law(run) == 'ncp') for run in runs], 'null_space', 0.7)
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.set_aside) == ('none', 'null_space')
    assert 'Under null_space with delay of commands 20 ms it fails' in verdict.statement


# --- Other laws


def test_a_law_that_breaks_nothing_else_is_named_without_a_residual():
    verdict = found(lambda run: law(run) != 'lcp')
    assert (verdict.cause, verdict.residual) == ('contact_law', '')
    assert 'only under lcp' in verdict.statement


def test_it_fails_only_at_large_steps():
    verdict = found(lambda run: run.trial.time_step < 4e-3)
    assert (verdict.cause, verdict.factor) == ('integration', 'time_step')
    assert 2e-3 <= verdict.limit < 4e-3


@pytest.mark.parametrize(('held', 'word'), [(False, 'held too long'), (True, 'error of the int')])
def test_a_slow_loop_is_told_from_the_integration(held, word):
    rows = world(lambda run: run.trial.time_step < 4e-3)
    level = min(r['level'] for r in rows if r['factor'] == 'time_step' and not r['success'])
    rows += [row(SETTINGS.run('ncp', seed, LOOP, level), held) for seed in range(4)]
    verdict = decide(rows, FACTORS)
    assert verdict.cause == 'integration'
    assert word in verdict.statement


@pytest.mark.parametrize(
    ('name', 'limit', 'cause'),
    [
        ('delay', 0.008, 'latency'), ('noise', 1.5, 'sensing'), ('friction', 0.5, 'conditions'),
        ('mass_scale', 1.15, 'conditions'), ('push', 2.0, 'conditions'),
        ('roughness', 0.003, 'conditions'), ('start', 0.7, 'conditions'),
    ],
)  # fmt: skip
def test_one_factor_decides_and_its_limit_is_found(name, limit, cause):
    factor = next(factor for factor in FACTORS if factor.name == name)

    def works(run):
        value = run.level if run.factor == name else factor.nominal  # the spread aside
        return factor.distance(value) < factor.distance(limit)

    verdict = found(works)
    assert (verdict.cause, verdict.factor) == (cause, name)
    assert factor.distance(verdict.limit) < factor.distance(limit)
    margin = next(margin for margin in verdict.margins if margin.factor == name)
    assert factor.distance(margin.bears) < factor.distance(limit) <= factor.distance(margin.fails)
    gap = abs(factor.levels[-1] - factor.levels[0])
    assert abs(margin.fails - margin.bears) <= 0.26 * max(gap, abs(factor.levels[0]))
    assert verdict.effects[0].factor == name
    assert verdict.effects[0].p < 0.05


def test_its_own_delay_is_the_cause():
    variants = {(OWN_DELAY, 0.02): 'prompt.py:controller'}
    settings = Settings(NOMINAL, LAWS, FACTORS, 0.8, variants, 4, 8)
    rows = world(lambda run: run.factor == OWN_DELAY, settings)
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.factor) == ('latency', 'delay')
    assert '20 ms after the state' in verdict.statement


def test_a_smaller_step_helps():
    verdict = found(lambda run: run.trial.time_step < 0.8e-3)
    assert (verdict.cause, verdict.factor, verdict.limit) == ('integration', 'time_step', 5e-4)


def test_more_friction_helps():
    verdict = found(lambda run: (run.trial.friction or 0.8) > 1.2)
    assert (verdict.cause, verdict.factor) == ('conditions', 'friction')
    assert verdict.limit == pytest.approx(1.4)


def test_it_fails_exactly_where_a_solve_did_not_converge():
    random = np.random.default_rng(0)
    rows = []
    for each in world(lambda run: True):
        bad = bool(random.random() < 0.3)
        rows.append(
            {
                **each,
                'success': not bad,
                'unsolved': 3 if bad else 0,
                'outcome': 'fell' if bad else 'ok',
                'cause': 'height' if bad else '',
            }
        )
    verdict = decide(rows, FACTORS)
    assert verdict.cause == 'solver'
    # one failure in which every solve converged speaks against it
    good = next(k for k, each in enumerate(rows) if not each['success'])
    rows[good] = {**rows[good], 'unsolved': 0}
    assert decide(rows, FACTORS).cause != 'solver'


def test_more_iterations_help():
    rows = world(lambda run: run.factor == SOLVER, unsolved=5)
    rows = [{**each, 'unsolved': 0} if each['success'] else each for each in rows]
    assert any(each['factor'] == SOLVER for each in rows)
    verdict = decide(rows, FACTORS)
    assert verdict.cause == 'solver'


def test_nothing_fails():
    verdict = found(lambda run: True)
    assert (verdict.cause, verdict.factor) == ('none', '')
    assert len(verdict.margins) == len(FACTORS)
    assert all(math.isnan(margin.fails) for margin in verdict.margins)
    assert verdict.evidence[-1].rate.low > 0.9


def test_a_law_that_fails_with_another_factor_only():
    verdict = found(lambda run: not (law(run) == 'sap' and run.trial.delay > 0.015))
    assert (verdict.cause, verdict.residual) == ('contact_law', 'slip')
    assert 'works in the stated case under every law' in verdict.statement
    assert 'With delay of commands 20 ms it fails only under sap' in verdict.statement
    assert verdict.confidence > 0.95


# --- Cannot tell, with the reason


def test_failures_under_another_law_and_factor_at_once_are_not_passed_over():
    # the first run fails, its repetitions do not: no law can be blamed
    verdict = found(lambda run: not (law(run) == 'sap' and run.trial.delay > 0.015
                                     and run.trial.seed == 0))  # fmt: skip
    assert verdict.cause == 'cannot_tell'
    assert 'sap with delay of commands 20 ms in 1 of' in verdict.statement
    assert 'too few runs' in verdict.why


def test_no_runs():
    assert decide([], FACTORS).cause == 'cannot_tell'


@pytest.mark.parametrize('count', [1, 5, 9, 14])
def test_too_few_runs(count):
    verdict = decide(world(lambda run: True, most=count), FACTORS)
    assert verdict.cause == 'cannot_tell'
    assert 'too few runs' in verdict.why


def test_mixed_evidence():
    verdict = found(lambda run: run.trial.seed % 2 == 0)
    assert verdict.cause == 'cannot_tell'
    assert 'mixed evidence' in verdict.why


def test_overlapping_intervals():
    verdict = found(lambda run: law(run) != 'todorov' or run.trial.seed != 2)
    assert verdict.cause == 'cannot_tell'
    assert 'intervals overlap' in verdict.why


@pytest.mark.parametrize('seed', range(20))
def test_coins_convict_nobody(seed):
    """Whatever decides by chance is no cause: p < 0.05 of a single test would convict some."""
    random = np.random.default_rng(seed)
    verdict = found(lambda run: bool(random.random() < 0.5), most=150)
    assert verdict.cause == 'cannot_tell'


# --- Which runs count


def test_a_run_that_repeats_another_to_the_bit_counts_once():
    rows = [row(SETTINGS.run('ncp', seed), hash='same') for seed in range(8)]
    assert Table(rows).rate('ncp').runs == 1
    assert decide(rows, FACTORS).cause == 'cannot_tell'


def test_refused_runs_are_noted_and_do_not_count():
    rows = world(lambda run: True)
    rows = [{**each, 'outcome': 'refused', 'success': False, 'reason': 'no feet'}
            if each['contact_model'] == 'sap' else each for each in rows]  # fmt: skip
    verdict = decide(rows, FACTORS)
    assert verdict.cause == 'none'
    assert any('sap refused: no feet' in note for note in verdict.notes)


def test_null_space_does_not_count_beyond_what_it_holds_for():
    rows = world(lambda run: law(run) != 'null_space')
    rows = [{**each, 'unsolved': 0 if each['success'] else 9} for each in rows]
    assert decide(rows, FACTORS).cause == 'none'


def test_a_case_does_not_count_where_most_of_its_runs_do_not():
    rows = world(lambda run: law(run) != 'null_space')
    failed = [each for each in rows if not each['success']]
    assert len(failed) >= 3
    for each in failed[1:]:
        each['unsolved'] = 9
    verdict = decide(rows, FACTORS)
    assert verdict.cause == 'none'
    assert any(f'({len(failed)} runs)' in note for note in verdict.notes)


@pytest.mark.parametrize('outcome', ['controller_error', 'crashed', 'hung'])
def test_a_controller_that_raises_hangs_or_dies(outcome):
    rows = world(lambda run: False, cause='controller', outcome=outcome, reason='KeyError: 3')
    verdict = decide(rows, FACTORS)
    assert verdict.cause == 'controller'
    assert 'KeyError: 3' in verdict.statement


# --- The plan


def test_every_law_comes_first_then_what_may_decide():
    rows = world(lambda run: True)
    first = [each['contact_model'] for each in rows[: len(LAWS)]]
    assert set(first) == set(contact_models())
    assert all(each['factor'] == '' for each in rows[: len(LAWS) + 3])
    order = list(dict.fromkeys(each['factor'] for each in rows if each['factor']))
    assert order[:3] == ['time_step', 'delay', 'noise']
    keys = [(e['factor'], e['level_text'], e['contact_model'], e['seed']) for e in rows]
    assert len(keys) == len(set(keys))


def test_seeds_draw_the_same_spread_for_every_law_and_none_for_the_first():
    for seed in (1, 2, 3):
        drawn = {
            (run.trial.friction, run.trial.mass_scale, run.trial.start)
            for run in (SETTINGS.run(name, seed) for name in LAWS)
        }
        assert len(drawn) == 1
        friction, mass, start = drawn.pop()
        assert 0 < abs(friction / 0.8 - 1) <= 0.05
        assert 0 < abs(mass - 1) <= 0.02
        assert start > 0
    assert SETTINGS.run('ncp').trial == NOMINAL


def test_laws_that_differ_get_more_seeds_before_other_factors():
    rows = world(lambda run: law(run) != 'todorov', most=45)
    stated = [each['contact_model'] for each in rows if not each['factor']]
    assert min(stated.count(name) for name in LAWS) == 4
    assert stated.count('todorov') > 4
    assert not any(each['factor'] in ('time_step', 'delay') for each in rows)
    assert any(each['factor'] == WITHOUT for each in rows)


def test_a_preset_is_run_and_breaks_what_its_law_breaks():
    # those that differ from every model at its defaults
    names = ('mujoco_elliptic', 'raisim', 'bullet', 'ode', 'gazebo', 'dart')
    assert laws_in_order() == (*LAWS, *names)
    mine = 'mujoco_elliptic'
    assert breaks(mine) == breaks('todorov') != ()
    assert breaks('bullet') == breaks('ncp') == ()
    rows = world(lambda run: law(run) != mine or run.level == 'slip',
                 Settings(NOMINAL, (*LAWS, mine), FACTORS, 0.8, {}, 4, 8))  # fmt: skip
    rows = [{**each, 'slip_broken': True, 'creep_mean': 0.05} if each['contact_model'] == mine
            else each for each in rows]  # fmt: skip
    verdict = decide(rows, FACTORS)
    assert (verdict.cause, verdict.residual) == ('contact_law', 'slip')
    assert f'only under {mine}' in verdict.statement


def test_margins_end_at_the_first_failure():
    delay = next(factor for factor in FACTORS if factor.name == 'delay')
    margin = margin_of(delay, 'ncp', [(0.0, True), (0.005, True), (0.01, False), (0.02, True)])
    assert (margin.bears, margin.fails) == (0.005, 0.01)
    assert margin.text == 'works at 5 ms, fails at 10 ms'
    assert math.isnan(margin_of(delay, 'ncp', [(0.0, False)]).bears)


@pytest.mark.parametrize('factor', FACTORS, ids=lambda factor: factor.name)
def test_distances_and_values(factor):
    assert factor.distance(factor.nominal) == 0.0
    assert factor.distance(factor.reach) == pytest.approx(1.0)
    assert factor.at(0.0) == pytest.approx(factor.nominal)
    distances = [factor.distance(level) for level in factor.levels]
    assert distances == sorted(distances)
    assert 0 < distances[0] < distances[-1] <= 1
    assert all(factor.distance(level) < 0 for level in factor.better)


@pytest.mark.parametrize(
    ('controller', 'levels'),
    [('hold', (0.002, 0.005)), ('ros@250:module', (0.002,)), ('ros@200:module', (0.005,))],
)
def test_time_steps_are_those_that_the_rate_of_a_ros_program_allows(controller, levels):
    nominal = Trial(controller)
    steps = next(x for x in factors_of(nominal, 13.0, 0.8) if x.name == 'time_step')
    assert steps.levels == levels
