"""The numbers of a run as CSV and Parquet; files that cannot be written."""

import csv
import errno
import os
import resource
import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import InclinedPlane, Planes, Simulator, load_robot
from contact_sim.errors import InvalidInput
from contact_sim.replay import Recorder, Recording, _export
from contact_sim.replay.__main__ import main
from contact_sim.replay._export import Targets, export
from contact_sim.step._problem import Residuals

STEPS = 30
REPORTS = []
"""Of the run in `folder`."""
GROOVE = Planes((((0.6, 0.0, 0.8), 0.0), ((-0.6, 0.0, 0.8), 0.0)))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Return a folder with run.npz, some steps of go1 with a switch of the ground."""
    folder = tmp_path_factory.mktemp('tables')
    sim = Simulator(load_robot('go1'), terrain=InclinedPlane(0.1, 0.0))
    random = np.random.default_rng(3)
    with Recorder(sim, folder / 'run.npz'):
        for k in range(STEPS):
            if k == STEPS - 2:
                sim.reset(sim.q, terrain=GROOVE)
            REPORTS.append(sim.step(3.0 * random.normal(size=12)))
    return folder


def read_csv(path):
    """Return names and numbers of a CSV file."""
    with path.open(newline='') as file:
        names, *rows = csv.reader(file)
    return names, np.array(rows, dtype=float)


@pytest.fixture(scope='module')
def told(folder):
    """Return names and numbers of the run as CSV."""
    assert main([str(folder / 'run.npz'), '--csv', str(folder / 'run.csv')]) == 0
    return read_csv(folder / 'run.csv')


def test_columns_are_the_numbers_of_the_run(told):
    names, rows = told
    assert len(set(names)) == len(names)
    at = names.index
    assert rows.shape == (STEPS, len(names))
    robot = load_robot('go1')
    for row, report in zip(rows, REPORTS, strict=True):
        assert row[at('time [s]')] == report.time
        first = at('q.x [m]')
        assert row[first : first + robot.nq].tolist() == report.q.tolist()
        first = at('v.v_x [m/s]')
        assert row[first : first + robot.nv].tolist() == report.v.tolist()
        first = at(f'effort.{robot.joint_names[0]} [N m]')
        assert row[first : first + 12].tolist() == report.effort.tolist()
        assert row[at('solver.iterations [-]')] == report.solver.iterations
        assert row[at('residual.penetration [m]')] == report.residuals.penetration
        assert row[at('residual.energy_contact [J]')] == report.residuals.energy_contact
        for k, name in enumerate(report.contacts.names):
            place = at(f'contact.{name}.force.x [N]')
            assert row[place : place + 3].tolist() == report.contacts.force[k].tolist()
            assert row[at(f'contact.{name}.gap [m]')] == report.contacts.gap[k]
            place = at(f'contact.{name}.velocity.x [m/s]')
            assert row[place : place + 3].tolist() == report.contacts.velocity[k].tolist()
            assert row[at(f'contact.{name}.mode [-]')] == report.contacts.mode[k]


def test_contacts_that_a_ground_does_not_have_are_not_numbers(told):
    """On the plane a foot has one contact, in the groove two."""
    names, rows = told
    plane, groove = (
        names.index('contact.FL_foot.gap [m]'),
        names.index('contact.FL_foot/1.gap [m]'),
    )
    assert np.isnan(rows[:, plane]).tolist() == (STEPS - 2) * [False] + 2 * [True]
    assert np.isnan(rows[:, groove]).tolist() == (STEPS - 2) * [True] + 2 * [False]


def test_energy_is_that_of_the_state(told):
    """T and U against Pinocchio at the states of the run; U is 0 where the centre is at z = 0."""
    names, rows = told
    model = load_robot('go1').pinocchio_model
    data = model.createData()
    for row, report in zip(rows, REPORTS, strict=True):
        M = pin.crba(model, data, report.q)
        M = np.triu(M) + np.triu(M, 1).T
        kinetic = 0.5 * report.v @ M @ report.v
        potential = 9.81 * pin.computeTotalMass(model) * pin.centerOfMass(model, data, report.q)[2]
        assert row[names.index('energy.kinetic [J]')] == pytest.approx(
            kinetic, rel=1e-9, abs=1e-12
        )
        assert row[names.index('energy.potential [J]')] == pytest.approx(potential, rel=1e-12)


def test_every_residual_has_a_unit():
    assert tuple(_export.RESIDUALS) == Residuals._fields


def test_parquet_holds_the_same_numbers(folder, monkeypatch):
    parquet = pytest.importorskip('pyarrow.parquet', reason='needs pyarrow')
    monkeypatch.setattr(_export, 'ROWS', 7)
    paths = {'csv': folder / 'both.csv', 'parquet': folder / 'both.parquet'}
    done = export(Recording(folder / 'run.npz'), Targets(**paths, rate=500.0))
    assert done.steps == STEPS
    names, rows = read_csv(paths['csv'])
    table = parquet.read_table(paths['parquet'])
    assert table.column_names == names
    assert np.array_equal(np.column_stack(table.columns), rows, equal_nan=True)
    assert np.all(np.round(rows[:, 0] / 1e-3) % 2 == 0)
    assert len(rows) == STEPS // 2


def test_without_pyarrow_the_line_to_install_it_is_said(folder, monkeypatch):
    monkeypatch.setattr(_export, 'arrow', None)
    with pytest.raises(InvalidInput, match=r"pip install 'contact_sim\[export\]'"):
        export(Recording(folder / 'run.npz'), Targets(parquet=folder / 'no.parquet'))


# -------------------------------------------------------------------- targets


def one_line(capsys):
    error = capsys.readouterr().err
    assert error.count('\n') == 1, error
    return error


def test_a_file_that_is_there_stays_unless_it_may_go(folder, tmp_path, capsys):
    target = tmp_path / 'run.csv'
    target.write_text('mine')
    words = [str(folder / 'run.npz'), '--csv', str(target)]
    assert main(words) == 1
    assert f'{target} is there already: give another name, or --overwrite' in one_line(capsys)
    assert target.read_text() == 'mine'
    assert main([*words, '--overwrite']) == 0
    assert len(read_csv(target)[1]) == STEPS


@pytest.mark.parametrize(
    ('name', 'said'),
    [('no/run.csv', 'No such file or directory'), ('', 'and no regular file'),
     ('x' * 300, 'File name too long')],
)  # fmt: skip
def test_places_that_cannot_be_written_are_named(folder, tmp_path, capsys, name, said):
    assert main([str(folder / 'run.npz'), '--csv', str(tmp_path / name), '--overwrite']) == 1
    error = one_line(capsys)
    assert said in error
    assert str(tmp_path) in error
    assert list(tmp_path.iterdir()) == []


def test_the_recording_is_never_overwritten(folder, capsys):
    recorded = folder / 'run.npz'
    before = recorded.read_bytes()
    assert main([str(recorded), '--mcap', str(recorded), '--overwrite']) == 1
    assert 'is the recording itself' in one_line(capsys)
    assert recorded.read_bytes() == before


def test_one_file_for_two_formats_is_refused(folder, tmp_path, capsys):
    target = str(tmp_path / 'run')
    assert main([str(folder / 'run.npz'), '--csv', target, '--mcap', target]) == 1
    assert 'is named for two formats' in one_line(capsys)


@pytest.mark.parametrize('kind', ['mcap', 'csv', 'parquet'])
def test_a_full_disk_is_said_and_nothing_is_lost(folder, tmp_path, kind, capsys):
    """A limit on the size of files ends writing as a full disk does, with an error of its own."""
    target = tmp_path / 'run.out'
    target.write_text('mine')
    words = [str(folder / 'run.npz'), f'--{kind}', str(target), '--overwrite']
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        status = main(words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status == 1
    assert f'cannot write {target}: {os.strerror(errno.EFBIG)}' in one_line(capsys)
    assert target.read_text() == 'mine'
    assert [path.name for path in tmp_path.iterdir()] == ['run.out']


def test_of_several_files_the_one_that_fails_is_named(folder, tmp_path, monkeypatch, capsys):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_export.CsvTable, 'add', full)
    files = ['--csv', str(tmp_path / 'a.csv'), '--parquet', str(tmp_path / 'b.parquet')]
    assert main([str(folder / 'run.npz'), *files]) == 1
    assert f'cannot write {tmp_path / "a.csv"}: No space left on device' in one_line(capsys)
    assert list(tmp_path.iterdir()) == []


def test_what_can_be_read_of_a_cut_recording_is_written(folder, tmp_path, capsys):
    """Of a file that was cut after its first steps these are written; the message says so."""
    sim = Simulator(load_robot('go1'))
    with Recorder(sim, tmp_path / 'whole.npz', chunk=10):
        for _ in range(30):
            sim.step(np.zeros(12))
    whole = (tmp_path / 'whole.npz').read_bytes()
    cut = tmp_path / 'cut.npz'
    cut.write_bytes(whole[: whole.index(b'steps-0000000020/effort')])
    assert main([str(cut), '--csv', str(tmp_path / 'run.csv')]) == 1
    error = one_line(capsys)
    steps = len(read_csv(tmp_path / 'run.csv')[1])
    assert steps == 20
    assert 'after 20 whole steps' in error


def test_a_recording_that_gives_other_bits_is_written_and_said(folder, tmp_path, capsys):
    """The first effort is edited: from its step on the states are not the recorded ones."""
    edited = tmp_path / 'edited.npz'
    with np.load(folder / 'run.npz') as file:
        arrays = dict(file)
    arrays['steps-0000000000/effort'] = arrays['steps-0000000000/effort'] + 1e-9
    np.savez(edited, **arrays)
    assert main([str(edited), '--csv', str(tmp_path / 'run.csv')]) == 1
    assert 'from step 1 on they differ from the recording' in one_line(capsys)
    assert len(read_csv(tmp_path / 'run.csv')[1]) == STEPS


def test_the_help_has_a_line_for_every_option():
    command = [sys.executable, '-m', 'contact_sim.replay', '--help']
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    for option in ('--mcap', '--csv', '--parquet', '--rate', '--ground-truth', '--overwrite'):
        assert option in said
