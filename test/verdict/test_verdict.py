"""Controllers with a known answer: the verdict names the right cause, and what it rests on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from contact_sim import InvalidInput, UnknownName, load_robot
from contact_sim.campaign import Trial, run_trial
from contact_sim.campaign._trial import Prepared
from contact_sim.compare._runs import KEPT
from contact_sim.replay import Recording, repeat
from contact_sim.verdict import parting, verdict
from contact_sim.verdict.__main__ import main
from contact_sim.verdict._investigation import notes_on, seconds_of
from contact_sim.verdict._plan import factors_of
from contact_sim.verdict._search import disturbed, limit_along, smallest_failure
from contact_sim.verdict.variants import Held, Prompt, copied, own_delay, written

pytest.importorskip('matplotlib', reason="no matplotlib: pip install 'contact_sim[verdict]'")

CONTROLLERS = Path(__file__).with_name('controllers.py')
ROOT = CONTROLLERS.parents[2]


def of(name):
    return f'{CONTROLLERS}:{name}'


def asked(name, seconds=1.0, laws=('ncp', 'todorov'), **more):
    options = {'budget': '120s', 'seeds': 4, 'jobs': 1, **more}
    return verdict(of(name), seconds=seconds, laws=laws, **options)


def rates(found):
    return {evidence.text: evidence.rate for evidence in found.evidence}


# --- The known answers


def test_a_gain_of_wrong_sign_is_the_controller():
    found = asked('WrongSign', laws=('ncp', 'todorov', 'sap'))
    assert (found.cause, found.factor) == ('controller', '')
    assert found.quantity == 'support'
    assert 'the support polygon' in found.statement
    assert rates(found)['all runs'].successes == 0
    assert {row['factor'] for row in found.rows} >= {'', 'time_step', 'friction', 'mass_scale'}


@pytest.mark.parametrize('name', ['Late', 'DeclaredLate'])
def test_commands_that_come_20_ms_late_are_the_latency(name):
    found = asked(name)
    assert (found.cause, found.factor) == ('latency', 'delay')
    assert '20 ms after the state' in found.statement
    assert rates(found)['the stated case under ncp'].fails
    assert rates(found)['without its own delay of 20 ms'].works


def test_a_sound_controller_that_gets_late_commands_has_a_limit_of_delay():
    found = asked('Hold', factors=('delay', 'time_step', 'friction'))
    assert (found.cause, found.factor) == ('latency', 'delay')
    at_limit = Trial(of('Hold'), seconds=1.0, delay=found.limit)
    assert run_trial(at_limit)['success']
    margin = next(margin for margin in found.margins if margin.factor == 'delay')
    assert 0.005 <= margin.bears < margin.fails <= 0.01
    assert found.parting is not None
    assert found.parting.names[0] == 'as stated'


def test_one_that_leans_on_creep_works_only_because_of_an_artefact():
    found = asked('Spreads', 1.5, ('ncp', 'todorov', 'compliant'), factors=(), seeds=6)
    assert (found.cause, found.residual, found.artefact) == ('contact_law', 'slip', True)
    assert found.headline == 'THE CONTACT LAW: it works only because of an artefact'
    counted = rates(found)
    assert counted['the stated case under todorov'].works
    assert counted['the stated case under compliant'].fails
    assert counted['todorov without creep'].fails  # the same law, its creep taken out
    assert found.parting is not None
    assert found.parting.names == ('todorov', 'ncp')
    assert found.parting.residuals[0]['slip'] > 1e3 * KEPT['slip']
    assert found.parting.residuals[1]['slip'] <= KEPT['slip']


def test_one_that_fails_only_where_feet_creep():
    """On 15° go1 creeps down by 19 mm/s under todorov (docs/which_model.md)."""
    found = asked('Hold', 3.5, ('ncp', 'todorov', 'sap'), scenario='slope', seeds=6, factors=())
    assert (found.cause, found.residual, found.artefact) == ('contact_law', 'slip', False)
    assert found.quantity == 'goal'
    assert 'only under todorov' in found.statement
    assert rates(found)['todorov without creep'].works


def test_one_that_fails_only_at_5_ms_is_the_integration():
    found = asked('MotorModel', laws=('ncp',), factors=('time_step', 'delay', 'friction'))
    assert (found.cause, found.factor) == ('integration', 'time_step')
    assert 2e-3 <= found.limit < 4.4e-3 + 5e-4
    assert 'held too long' in found.statement  # its explicit steps are those of the loop
    assert all(np.isnan(m.fails) for m in found.margins if m.factor != 'time_step')


def test_a_good_one_has_no_failure_and_margins():
    found = asked('Good', factors=('time_step', 'delay', 'friction', 'push'))
    assert (found.cause, found.factor) == ('none', '')
    assert len(found.margins) == 4
    assert all(np.isnan(margin.fails) for margin in found.margins)
    assert rates(found)['all runs'].low > 0.9


def test_a_good_one_that_fails_only_where_feet_are_held():
    """Under null_space the feet of a trot that is pushed are held as no ground can."""
    found = verdict('trot', scenario='push', budget='120s', laws=('ncp', 'null_space'), factors=(),
                    seeds=4, seconds=2.0, jobs=1)  # fmt: skip
    assert (found.cause, found.set_aside) == ('none', 'null_space')
    assert 'No ground does this' in found.statement
    assert rates(found)['the stated case under null_space, set aside'].fails
    assert rates(found)['all runs'].low > 0.5
    assert found.parting is not None
    assert found.parting.names == ('ncp', 'null_space')


def test_a_coin_cannot_be_told():
    found = asked('Coin', 0.8, factors=('delay',))
    assert found.cause == 'cannot_tell'
    assert 'mixed evidence' in found.why
    assert found.confidence == 0.0


# --- The controller's own errors, and other bad input


@pytest.mark.parametrize(
    ('name', 'reason'),
    [
        ('Raises', 'ZeroDivisionError: no foot on the ground'),
        ('NotANumber', 'returned nan N m'),
    ],
)
def test_a_controller_that_raises_or_returns_nan(name, reason):
    found = asked(name)
    assert (found.cause, found.quantity) == ('controller', 'controller')
    assert reason in found.statement


@pytest.mark.parametrize('jobs', [1, 2])
def test_a_controller_that_hangs(jobs):
    begin = time.monotonic()
    found = asked('Hangs', 0.2, budget='12s', jobs=jobs)
    assert found.cause == 'controller'
    assert 'hangs' in found.statement
    assert time.monotonic() - begin < 60.0


def test_a_controller_that_ends_its_process():
    found = asked('Dies', 0.2, budget='30s', jobs=2)
    assert found.cause == 'controller'
    assert 'ends its process' in found.statement


@pytest.mark.parametrize(
    ('words', 'reason'),
    [
        (['stance', '--laws', 'npc'], "unknown contact model 'npc'.*did you mean 'ncp'"),
        (['stance', '--budget', 'soon'], "budget = 'soon': expected a time such as 5min"),
        (['stance', '--budget', '0s'], 'budget'),
        (['stance', '--scenario', 'stant'], "did you mean 'stand'"),
        (['stance', '--robot', 'go7'], 'go7'),
        (['stanse', '--budget', '20s', '--jobs', '1'], "controller = 'stanse': expected"),
        ([f'{CONTROLLERS}:Nobody', '--budget', '20s', '--jobs', '1'], "'Nobody'"),
        (['stance', '--laws', 'ncp', 'ncp'], "'ncp' is listed more than once"),
        (['stance', '--factors', 'frictoin'], "did you mean 'friction'"),
        (['stance', '--jobs', '0'], 'jobs'),
        (['stance', '--seeds', '0'], 'seeds'),
    ],
)
def test_bad_input_is_one_clear_line(words, reason, capsys, tmp_path):
    assert main([*words, '--output', str(tmp_path)]) == 1
    error = capsys.readouterr().err.strip()
    assert error.startswith('contact_sim.verdict: ')
    assert len(error.splitlines()) == 1
    assert re.search(reason, error), error


def test_a_robot_whose_mesh_is_missing(tmp_path, capsys):
    robot, path = load_robot('quadruped'), tmp_path / 'mine.urdf'
    mesh = '<visual><geometry><mesh filename="no.stl"/></geometry></visual>'
    path.write_text(robot.description.replace('<visual>', f'{mesh}<visual>', 1))
    words = ['hold', '--robot', str(path), '--feet', *(foot.frame for foot in robot.feet),
             '--seconds', '0.1', '--laws', 'ncp', '--factors', '--seeds', '4', '--jobs', '1',
             '--output', str(tmp_path / 'out')]  # fmt: skip
    assert main(words) == 1
    assert "visual mesh 'no.stl' not found" in capsys.readouterr().err
    assert main([*words, '--no-check-meshes']) == 0
    assert 'No failure found' in capsys.readouterr().out
    assert '--no-check-meshes' in (tmp_path / 'out' / 'verdict.html').read_text('utf-8')


def test_feet_of_a_biped_that_are_points_are_noted():
    def stands_on(points):
        feet = [SimpleNamespace(name=f'foot_{k}', points=range(n)) for k, n in enumerate(points)]
        return notes_on(SimpleNamespace(feet=feet, notes=('it has no arms',)))

    assert stands_on([4, 4]) == stands_on([1, 1, 1, 1]) == ('Robot: it has no arms.',)
    assert 'foot_0 and foot_1 touch the ground in one point' in stands_on([1, 1])[1]
    assert 'and foot_1 touches the ground in one point' in stands_on([4, 1])[1]


def test_a_scenario_with_a_wrong_key(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text('seconds: 1.0\nfrichtion: 0.5\n')
    with pytest.raises(UnknownName, match="did you mean 'friction'"):
        verdict('stance', scenario=str(path))


@pytest.mark.parametrize(
    ('text', 'seconds'), [('5min', 300), ('90s', 90), ('1.5 h', 5400), (12.5, 12.5), ('7', 7)]
)
def test_budgets(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize('text', ['', 'min', '-3s', '1e3s', '5 days', 'nan', 'inf', '1.2.3s'])
def test_budgets_that_are_no_time(text):
    with pytest.raises(InvalidInput, match='expected a time'):
        seconds_of(text)


# --- Variants of a controller


@pytest.mark.parametrize(
    ('name', 'delay'), [('Late', 0.02), ('DeclaredLate', 0.02), ('Hold', 0.0), ('Raises', 0.0)]
)
def test_the_delay_of_its_own_is_measured(name, delay):
    assert own_delay(Trial(of(name))) == pytest.approx(delay)


@pytest.mark.parametrize('name', ['stance', 'trot', 'balance', of('Late')])
def test_a_copy_of_a_controller_answers_as_it_does(name):
    prepared = Prepared(Trial(name))
    controller, sim = prepared.controller, prepared.simulator()
    controller.reset(sim)
    for k in range(20):
        if k == 5:
            other = copied(controller, prepared.nominal, sim)
        command = controller.effort(sim.time, sim.q, sim.v)
        if k >= 5:
            assert np.array_equal(other.effort(sim.time, sim.q, sim.v), command)
        sim.step(command)


def test_without_its_delay_a_late_controller_is_the_one_that_it_delays(tmp_path):
    prompt = written(tmp_path, Prompt, of('Late'), 0.02, 1e-3)
    rows = [run_trial(Trial(text, seconds=0.5)) for text in (prompt, of('Hold'))]
    assert rows[0]['hash'] == rows[1]['hash'] != ''


def test_held_commands_change_once_in_a_period():
    robot = load_robot('go1')
    held, q = Held(of('Hold'), robot, 5e-3), robot.reference_configuration()
    answers = [held.effort(k * 1e-3, q, np.full(robot.nv, float(k))) for k in range(12)]
    changes = [k for k in range(1, 12) if not np.array_equal(answers[k], answers[k - 1])]
    assert changes == [5, 10]


# --- Where runs part


def test_runs_part_where_they_were_made_to(tmp_path):
    """A push between two steps: the first step that differs is the one after it."""
    paths = [tmp_path / f'{k}.npz' for k in (0, 1)]
    trials = [Trial(of('Hold'), seconds=1.0, push=push, seed=3) for push in (1e-300, 12.0)]
    for trial, path in zip(trials, paths, strict=True):
        run_trial(trial, path)
    pushed = next(
        event['step'] for chunk in Recording(paths[1]).chunks() for k in chunk.events
        for event in chunk.events[k] if event['kind'] == 'wrenches'
    )  # fmt: skip
    found = parting(paths[0], paths[1], ('as stated', 'pushed'))
    assert found.time == pytest.approx((pushed + 1) * 1e-3)
    assert found.time <= found.matters_time
    same = parting(paths[0], paths[0], ('one', 'itself'))
    assert np.isnan(same.time)
    assert same.statement == 'one and itself never differ.'


def test_runs_with_other_time_steps_cannot_be_compared(tmp_path):
    paths = [tmp_path / f'{h}.npz' for h in (1, 2)]
    for h, path in zip((1e-3, 2e-3), paths, strict=True):
        run_trial(Trial(of('Hold'), seconds=0.1, time_step=h), path)
    with pytest.raises(InvalidInput, match='one time step'):
        parting(*paths, ('a', 'b'))


# --- The search, on a failure that is known in closed form

NOMINAL = Trial('stance')
SEARCHED = tuple(f for f in factors_of(NOMINAL, 13.0, 0.8) if f.name in ('push', 'delay'))


def answer(trial):
    """Fail outside the ellipse (x / 0.5)² + (y / 0.3)² = 1 of push and delay."""
    by_name = {factor.name: factor for factor in SEARCHED}
    x, y = (by_name[name].distance(getattr(trial, name)) for name in ('push', 'delay'))
    bad = (x / 0.5) ** 2 + (y / 0.3) ** 2 > 1.0
    return {'success': not bad, 'outcome': 'fell' if bad else 'ok', 'reason': 'it fell',
            'hash': f'{x}-{y}'}  # fmt: skip


def answers(trials):
    return [answer(trial) for trial in trials]


def test_the_limit_along_each_factor_is_found_by_bisection():
    ends = limit_along(answers, NOMINAL, SEARCHED)
    for name, limit in (('push', 0.5), ('delay', 0.3)):
        factor = next(factor for factor in SEARCHED if factor.name == name)
        fails = min(factor.distance(x) for x, works in ends[name] if not works)
        works = max(factor.distance(x) for x, works in ends[name] if works)
        assert works <= limit < fails
        assert fails - works <= 1 / 32 + 0.011  # delays are whole steps


def test_the_joint_search_finds_the_near_side():
    limits = {'push': 0.51, 'delay': 0.31}
    worst = smallest_failure(answers, NOMINAL, SEARCHED, limits, lambda t: (answer(t), None))
    assert 0.3 <= worst.size <= 0.32
    assert worst.repeats
    assert not answer(worst.trial)['success']
    assert worst.trial == disturbed(
        NOMINAL, SEARCHED,
        [f.distance(dict(worst.parts).get(f.name, f.nominal)) for f in SEARCHED],
    )  # fmt: skip


def test_where_nothing_fails_nothing_is_found():
    def fine(trials):
        return [{'success': True, 'outcome': 'ok', 'reason': '', 'hash': 'x'} for _ in trials]

    assert (
        smallest_failure(fine, NOMINAL, SEARCHED, {}, lambda trial: (fine([0])[0], None)) is None
    )


# --- Page, recordings and the command


class Sources(HTMLParser):
    """Collects what a page would load."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [
            value for name, value in attributes
            if name in ('src', 'href') and not value.startswith('data:')
        ]  # fmt: skip
        assert tag not in ('script', 'link')


def test_the_page_stands_alone_and_its_recordings_repeat(tmp_path):
    lines = []
    found = asked('Hold', output=tmp_path, search=True, budget='25s', laws=('ncp',),
                  progress=lines.append)  # fmt: skip
    assert found.page == tmp_path / 'verdict.html'
    page = found.page.read_text('utf-8')
    sources = Sources()
    sources.feed(page)
    assert sources.found == []
    assert 'url(' not in page
    assert found.headline in page
    assert 'Finished after' in page
    assert (tmp_path / 'verdict.png').stat().st_size > 1e4
    commands = re.findall(r'python -m contact_sim.view (\S+) --at ([0-9.]+)', page)
    assert commands
    for path, at in commands:
        recording = Recording(path)
        assert 0.0 <= float(at) < recording.steps * 1e-3
    assert repeat(Recording(commands[0][0])).equal
    assert len((tmp_path / 'rows.jsonl').read_text().splitlines()) == len(found.rows)
    assert lines
    worst = found.counterexamples[0]
    assert worst.repeats
    again = run_trial(worst.trial)
    assert (again['hash'], again['success']) == (worst.row_hash, False)


@pytest.mark.skipif(sys.platform == 'win32', reason='no SIGINT to a process')
def test_ctrl_c_leaves_the_page_with_what_is_there(tmp_path):
    command = [sys.executable, '-m', 'contact_sim.verdict', of('Hold'), '--budget', '300s',
               '--jobs', '2', '--output', str(tmp_path)]  # fmt: skip
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        page, end = tmp_path / 'verdict.html', time.monotonic() + 90.0
        while not page.exists():
            assert time.monotonic() < end
            time.sleep(0.2)
        assert 'Still running' in page.read_text('utf-8')
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60.0)
    assert 'stopped by Ctrl-C' in page.read_text('utf-8')
    assert 'wrote' in output
    rows = (tmp_path / 'rows.jsonl').read_text().splitlines()
    assert 0 < len(rows) < 200
