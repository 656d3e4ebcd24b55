"""Tables of trials, campaigns that are interrupted, processes that end, and the command."""

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import controllers_of_tests
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contact_sim import InvalidInput, UnknownName, contact_models, load_robot
from contact_sim.campaign import (
    Campaign,
    Limits,
    Trial,
    product,
    read_rows,
    read_table,
    run_trial,
    sample,
    shares,
    sobol,
    summary,
    trial_of,
)
from contact_sim.campaign import _table as table_module
from contact_sim.campaign.__main__ import main, parser, trials_of
from contact_sim.campaign._table import TableWriter, without_wall
from contact_sim.campaign._trial import failed_row

HERE = str(Path(controllers_of_tests.__file__))


def own(name):
    return f'{HERE}:{name}'


def rows_of(trials, outcome='ok'):
    """Made-up rows."""
    return [
        {'trial': trial.key, **failed_row(trial, outcome, ''), 'success': outcome == 'ok'}
        for trial in trials
    ]


# --- Tables of trials


def test_a_product_has_every_combination():
    trials = product(controller=['hold', 'stance'], friction=[0.2, 0.4, 0.8], seed=range(4))
    assert len({trial.key for trial in trials}) == len(trials) == 24
    assert {trial.seed for trial in trials} == {0, 1, 2, 3}


@pytest.mark.parametrize('draw', [sample, sobol])
def test_draws_are_in_their_ranges_and_equal_for_all_of_a_list(draw):
    trials = draw(
        16, controller='hold', contact_model=['ncp', 'sap'], friction=(0.2, 0.8), push=(0.0, 10.0)
    )
    by_model = [[t for t in trials if t.contact_model == name] for name in ('ncp', 'sap')]
    drawn = [[(t.friction, t.push, t.seed) for t in part] for part in by_model]
    assert drawn[0] == drawn[1]
    friction, push, seeds = np.array(drawn[0]).T
    assert seeds.tolist() == list(range(16))
    assert 0.2 <= friction.min() < 0.3 < 0.7 < friction.max() <= 0.8
    assert 0.0 <= push.min() < 2.0 < 8.0 < push.max() <= 10.0
    again = draw(16, controller='hold', contact_model=['ncp', 'sap'], friction=(0.2, 0.8),
                 push=(0.0, 10.0))  # fmt: skip
    assert again == trials


def test_a_sobol_sequence_has_one_draw_in_every_sixteenth():
    trials = sobol(16, seed=3, controller='hold', friction=(0.0, 1.6))
    assert sorted(int(10 * trial.friction) for trial in trials) == list(range(16))


@pytest.mark.parametrize(
    ('call', 'error', 'words'),
    [
        (lambda: product(controler='hold'), UnknownName, "did you mean 'controller'"),
        (lambda: product(controller=[]), InvalidInput, 'at least one value'),
        (lambda: sample(4, controller='hold'), InvalidInput, 'at least one range'),
        (lambda: sample(0, controller='hold', push=(0.0, 1.0)), InvalidInput, 'n = 0'),
        (lambda: sobol(4, controller='hold', push=(1.0, 0.0)), InvalidInput, 'the smaller'),
        (lambda: product(controller='hold', friction=-1.0), InvalidInput, 'friction = -1'),
        (lambda: Campaign((), Path('x')), InvalidInput, 'at least one trial'),
        (lambda: Campaign((Trial('hold'),), Path('x'), 0), InvalidInput, 'workers = 0'),
        (lambda: Limits(wall=0.0), InvalidInput, 'wall = 0.0 s'),
    ],
)
def test_wrong_tables_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


# --- Parquet


def test_rows_are_there_as_soon_as_they_are_added_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(table_module, 'PART', 4)
    trials = product(controller='hold', seed=range(10))
    with TableWriter(tmp_path / 't') as table:
        for count, row in enumerate(rows_of(trials), 1):
            table.add([row])
            assert len(read_rows(tmp_path / 't')) == count
    names = sorted(path.name for path in (tmp_path / 't').glob('*.parquet'))
    assert names == [f'part-{k:06d}.parquet' for k in range(3)]
    whole = pq.read_table(tmp_path / 't')  # what any reader of Parquet sees
    assert sorted(whole['trial'].to_pylist()) == sorted(trial.key for trial in trials)
    assert [trial_of(row) for row in read_rows(tmp_path / 't')] == sorted(
        trials, key=lambda trial: trial.key
    )
    assert read_table(tmp_path / 't', ['seed']).column_names == ['trial', 'seed']


def test_of_two_rows_of_a_trial_the_last_counts(tmp_path):
    trials = [Trial('hold')]
    for outcome in ('hung', 'ok'):
        with TableWriter(tmp_path) as table:
            table.add(rows_of(trials, outcome))
    (row,) = read_rows(tmp_path)
    assert row['outcome'] == 'ok'


def test_only_one_campaign_writes_a_folder(tmp_path):
    with TableWriter(tmp_path), pytest.raises(InvalidInput, match='another campaign is writing'):
        TableWriter(tmp_path)


def foreign(path):
    pq.write_table(pa.table({'a': [1]}), path)


def older(path):
    pq.write_table(pa.table({'trial': ['x']}).replace_schema_metadata(
        {table_module.MARK: b'0'}), path)  # fmt: skip


def lacking(path):
    pq.write_table(pa.table({'trial': ['x']}).replace_schema_metadata(
        {table_module.MARK: table_module.VERSION}), path)  # fmt: skip


def cut(path):
    foreign(path)
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    ('write', 'words'),
    [
        (foreign, 'x.parquet: this Parquet file is not of a campaign'),
        (older, 'x.parquet: rows of format 0, this version reads 2'),
        (lacking, "column '.*' is missing"),
        (cut, 'x.parquet: cannot be read as Parquet'),
    ],
)
@pytest.mark.parametrize('use', [read_rows, TableWriter])
def test_other_parquet_files_are_refused(tmp_path, write, words, use):
    write(tmp_path / 'x.parquet')
    with pytest.raises(InvalidInput, match=words):
        use(tmp_path)


def test_a_file_or_nothing_in_the_place_of_the_folder(tmp_path):
    path = tmp_path / 'x.parquet'
    with pytest.raises(InvalidInput, match='no such folder'):
        read_rows(path)
    foreign(path)
    for use in (read_rows, TableWriter):
        with pytest.raises(InvalidInput, match='this is a file, expected a folder'):
            use(path)
    with pytest.raises(UnknownName, match="did you mean 'friction'"):
        read_rows(tmp_path, ['fricton'])


# --- Summary


def test_the_interval_is_that_of_wilson():
    trials = product(controller='hold', contact_model=['ncp', 'sap'], seed=range(10))
    rows = rows_of([t for t in trials if t.contact_model == 'ncp'])
    rows += rows_of([t for t in trials if t.contact_model == 'sap' and t.seed < 7])
    rows += rows_of([t for t in trials if t.contact_model == 'sap' and t.seed >= 7], 'fell')
    ncp, sap = shares(rows)
    z, n, p = 1.959963984540054, 10, 0.7
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert (sap.low, sap.high) == pytest.approx((centre - half, centre + half), rel=1e-9)
    assert (ncp.share, sap.share) == (1.0, 0.7)
    assert sap.outcomes == {'ok': 7, 'fell': 3}
    assert re.search(r'sap +10 +70.0% +39.7% to 89.2% +ok 7, fell 3', summary(rows))
    with pytest.raises(UnknownName, match="did you mean 'contact_model'"):
        shares(rows, 'contact_modell')


# --- Campaigns


@pytest.fixture(scope='module')
def trials():
    """Some that run in batches, some alone, one that falls."""
    batched = sample(
        4, controller='hold', contact_model=['ncp', 'sap'], friction=(0.2, 0.8), start=1.0,
        noise=0.5, seconds=0.1,
    )  # fmt: skip
    alone = product(controller='stance', seconds=0.1, seed=range(4), start=1.0)
    return [*batched, *alone, Trial('stance', 'go1', 'push', push=80.0, seconds=1.0)]


@pytest.fixture(scope='module')
def whole(trials, tmp_path_factory):
    """The rows of these trials, run without interruption."""
    campaign = Campaign(tuple(trials), tmp_path_factory.mktemp('whole'), workers=1, batch=4)
    campaign.run(progress=False)
    return campaign.rows()


def test_every_row_runs_again_to_the_bit(trials, whole):
    assert {row['trial'] for row in whole} == {trial.key for trial in trials}
    assert [row['outcome'] for row in whole].count('fell') == 1
    for row in [whole[0], whole[5], *(row for row in whole if row['outcome'] == 'fell')]:
        again = {'trial': row['trial'], **run_trial(trial_of(row))}
        assert without_wall([again]) == without_wall([row])


SCRIPT = """
import sys
from pathlib import Path
from contact_sim.campaign import Campaign, trial_of
import json
rows, folder = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]
Campaign(tuple(map(trial_of, rows)), folder, workers=1, batch=2).run(False)
"""


def test_after_sigkill_half_way_the_table_is_the_same(trials, whole, tmp_path):
    (tmp_path / 'trials.json').write_text(json.dumps([trial.as_row() for trial in trials]))
    folder = tmp_path / 'rows'
    command = [sys.executable, '-c', SCRIPT, str(tmp_path / 'trials.json'), str(folder)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline and not list(folder.glob('*.parquet')):
        time.sleep(0.02)
    children = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = read_rows(folder)
    assert 0 < len(done) < len(trials)
    assert without_wall(done) == without_wall(
        row for row in whole if row['trial'] in {one['trial'] for one in done}
    )
    campaign = Campaign(tuple(trials), folder, workers=1, batch=3)
    campaign.run(progress=False)
    assert without_wall(campaign.rows()) == without_wall(whole)
    kept = {row['trial']: row['wall'] for row in campaign.rows()}
    assert all(kept[row['trial']] == row['wall'] for row in done)  # none ran twice
    assert children
    assert not any(map(alive, children))


def test_a_dask_cluster_makes_the_same_table(trials, whole, tmp_path):
    distributed = pytest.importorskip('distributed', reason='no extra has Dask')
    chosen = trials[:4]
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as c,
        distributed.Client(c),
    ):
        campaign = Campaign(tuple(chosen), tmp_path, backend='dask', batch=2)
        campaign.run(progress=False)
    wanted = {trial.key for trial in chosen}
    assert without_wall(campaign.rows()) == without_wall(
        row for row in whole if row['trial'] in wanted
    )


@pytest.fixture
def jobs_of_slurm(tmp_path):
    """Settings of jobs on a Slurm that answers; yields the folder of their logs."""
    pytest.importorskip('dask_jobqueue', reason='no extra has dask-jobqueue')
    import dask

    if shutil.which('sbatch') is None:
        pytest.skip('no Slurm: sbatch is not on the path')
    answer = subprocess.run(['sinfo'], capture_output=True, text=True, check=False)
    if answer.returncode:
        pytest.skip(f'Slurm does not answer: {answer.stderr}')
    logs = tmp_path / 'logs'
    settings = {'cores': 1, 'memory': '1GB', 'walltime': '00:10:00', 'log-directory': str(logs)}
    with dask.config.set({f'jobqueue.slurm.{name}': value for name, value in settings.items()}):
        yield logs


def test_jobs_of_slurm_make_the_same_table(trials, whole, jobs_of_slurm, tmp_path):
    Campaign(tuple(trials[:6]), tmp_path / 'rows', backend='slurm', batch=2).run(progress=False)
    first = {row['trial']: row['wall'] for row in read_rows(tmp_path / 'rows')}
    assert len(first) == 6
    campaign = Campaign(tuple(trials), tmp_path / 'rows', workers=2, backend='slurm', batch=4)
    campaign.run(progress=False)  # goes on
    assert without_wall(campaign.rows()) == without_wall(whole)
    again = {row['trial']: row['wall'] for row in campaign.rows()}
    assert all(again[trial] == wall for trial, wall in first.items())
    logs = list(jobs_of_slurm.glob('*.err'))
    assert 2 <= len(logs) <= 3  # the last job may come when all is done
    numbers = ','.join(path.stem.rpartition('-')[2] for path in logs)
    states = subprocess.run(
        ['squeue', '-h', '-t', 'pending,running', '-j', numbers],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert states.stdout == ''


def test_slurm_without_settings_or_sbatch_is_refused(tmp_path, monkeypatch):
    pytest.importorskip('dask_jobqueue', reason='no extra has dask-jobqueue')
    import dask

    campaign = Campaign((Trial('hold'),), tmp_path / 'rows', backend='slurm')
    sizes = {'jobqueue.slurm.cores': None, 'jobqueue.slurm.memory': None}
    for name in [name for name in sys.modules if name.startswith('dask_jobqueue')]:
        monkeypatch.delitem(sys.modules, name)  # its import takes Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with dask.config.set(sizes), pytest.raises(InvalidInput, match=r'dask/jobqueue\.yaml'):
        campaign.run(progress=False)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.setenv('PATH', str(tmp_path))
    sizes = {'jobqueue.slurm.cores': 1, 'jobqueue.slurm.memory': '1GB'}
    with (
        dask.config.set(sizes),
        pytest.raises(InvalidInput, match=r"no job could be submitted: .*'sbatch'"),
    ):
        campaign.run(progress=False)


def test_trials_that_end_their_process_are_rows_and_the_others_go_on(tmp_path):
    names = ['pd', 'Exits', 'Hangs', 'Leaks', 'Faults']
    campaign = Campaign(
        tuple(product(controller=list(map(own, names)), seconds=0.1)), tmp_path, workers=1,
        limits=Limits(wall=4.0, memory=400.0),
    )  # fmt: skip
    campaign.run(progress=False)
    found = {row['controller'].rpartition(':')[2]: row for row in campaign.rows()}
    told = {name: (row['outcome'], row['reason']) for name, row in found.items()}
    assert told == {
        'Exits': ('crashed', 'its process ended with code 3'),
        'Faults': ('crashed', 'its process was ended by SIGSEGV'),
        'Hangs': ('hung', 'it ran for more than 4 s'),
        'Leaks': ('crashed', 'it took more than 400 MB of memory'),
        'pd': ('ok', ''),
    }


def test_a_controller_that_cannot_be_loaded_stops_a_campaign_before_it_starts(tmp_path):
    trials = product(controller=['hold', own('Rises')], seed=range(3))
    with pytest.raises(InvalidInput, match="did you mean 'Raises'"):
        Campaign(tuple(trials), tmp_path).run(progress=False)
    assert read_rows(tmp_path) == []


def test_changed_files_and_other_versions_need_another_folder(tmp_path):
    path = tmp_path / 'walk.py'
    path.write_text('def step(time, q, v):\n    return 12 * [0.0]\n')
    trial = Trial(f'{path}:step', seconds=0.05)
    row = {'trial': trial.key, **run_trial(trial)}
    assert row['source']
    for folder, change in (('a', {}), ('b', {'versions': 'contact_sim 0.0.1'})):
        with TableWriter(tmp_path / folder) as table:
            table.add([{**row, **change}])
    Campaign((trial,), tmp_path / 'a').run(progress=False)  # all done
    with pytest.raises(InvalidInput, match=r'made with contact_sim 0\.0\.1; here is'):
        Campaign((trial,), tmp_path / 'b').run(progress=False)
    path.write_text('def step(time, q, v):\n    return 12 * [1.0]\n')
    with pytest.raises(InvalidInput, match='has changed since its rows were made'):
        Campaign((trial,), tmp_path / 'a').run(progress=False)


def children_of(process):
    """Processes that the main thread of a process has started (Linux)."""
    text = Path(f'/proc/{process}/task/{process}/children').read_text()
    return [int(child) for child in text.split()]


def alive(process):
    try:
        state = Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()[0]
    except OSError:
        return False
    return state != 'Z'


@pytest.mark.parametrize('backend', ['slurm', 'ray', 'no_such_backend'])
def test_a_backend_that_is_not_there_is_named(backend, tmp_path, monkeypatch):
    for name in ('ray', 'dask_jobqueue'):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr('contact_sim.campaign._campaign.inspect_trial', lambda *_: False)
    with pytest.raises(InvalidInput, match=f"backend '{backend}'"):
        Campaign((Trial('hold'),), tmp_path, backend=backend).run(progress=False)


# --- The command


def test_the_command_describes_the_trials_it_names():
    command = 'stance --models all --friction 0.2 0.8 --push 3 --seeds 20'
    options = parser().parse_args(command.split())
    trials = trials_of(options)
    assert len(trials) == 20 * len(contact_models())
    assert {trial.push for trial in trials} == {3.0}
    assert len({trial.friction for trial in trials}) == 20
    command = 'hold --models sap --parameter stiction_tolerance=1e-3'
    several = parser().parse_args(command.split())
    assert trials_of(several)[0].parameters == (('stiction_tolerance', 1e-3),)


def test_the_command_runs_prints_and_goes_on(tmp_path, capsys):
    folder = str(tmp_path / 'x.parquet')
    command = ['hold', '--models', 'ncp', '--friction', '0.3', '0.9', '--seeds', '2', '--seconds',
               '0.05', '--out', folder, '--quiet']  # fmt: skip
    assert main(command) == 0
    first = capsys.readouterr().out
    assert re.search(r'ncp +2 +100.0%', first)
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert main(['--show', folder, '--by', 'controller']) == 0
    assert re.search(r'hold +2 +100.0%', capsys.readouterr().out)
    # in a process of its own, where Arrow has not reserved its memory yet
    show = [sys.executable, '-m', 'contact_sim.campaign', '--show', folder]
    assert re.search(r'ncp +2 +100.0%', subprocess.check_output(show, text=True))


@pytest.mark.parametrize(
    ('command', 'words'),
    [
        ([], 'no controller is given'),
        (['hold', '--models', 'npc'], "did you mean 'ncp'"),
        (['hold', '--friction', '1', '2', '3'], '--friction: expected one value or two'),
        (['hold', '--parameter', 'x'], '--parameter x: expected NAME=VALUE'),
        (['hold', '--time-step', '0'], 'time_step = 0.0 s'),
        (['--show', 'missing'], 'missing: no such folder'),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(command, words, capsys):
    assert main(command) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


@pytest.fixture
def without_mesh(tmp_path):
    """Return a robot with a mesh that is not there, and its feet."""
    robot, path = load_robot('quadruped'), tmp_path / 'mine.urdf'
    mesh = '<visual><geometry><mesh filename="no.stl"/></geometry></visual>'
    path.write_text(robot.description.replace('<visual>', f'{mesh}<visual>', 1))
    assert 'no.stl' in path.read_text()
    return str(path), [foot.frame for foot in robot.feet]


def test_a_robot_whose_mesh_is_missing_is_refused_unless_meshes_are_not_checked(
    without_mesh, tmp_path, capsys
):
    path, feet = without_mesh
    trial = Trial('hold', path, seconds=0.02, feet=','.join(feet))
    with pytest.raises(
        InvalidInput, match=r"mesh 'no.stl' not found.*where check_meshes is false"
    ):
        Campaign((trial,), tmp_path / 'a', workers=1).run(progress=False)
    campaign = Campaign((trial,), tmp_path / 'b', workers=1, check_meshes=False)
    campaign.run(progress=False)
    (row,) = campaign.rows()
    assert (row['outcome'], row['hash']) == ('ok', run_trial(trial)['hash'])
    plain = tmp_path / 'plain.urdf'
    plain.write_text(load_robot('quadruped').description)
    same = run_trial(replace(trial, robot=str(plain)))
    assert row['hash'] == same['hash']  # the mesh plays no part
    words = ['hold', '--robot', path, '--feet', *feet, '--models', 'ncp', '--seconds', '0.02',
             '--workers', '1', '--quiet', '--out']  # fmt: skip
    assert main([*words, str(tmp_path / 'c')]) == 1
    assert "'no.stl' not found" in capsys.readouterr().err
    assert main([*words, str(tmp_path / 'c'), '--no-check-meshes']) == 0


def test_the_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        main(['--help'])
    text = capsys.readouterr().out
    assert 'python -m contact_sim.campaign stance --models all' in text
    assert 'goal: stays up' in text
