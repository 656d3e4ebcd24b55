"""Same seed, parameters and commands: same bits, under every model; recordings prove it."""

import errno
import json
import resource
import signal
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from robots import ball, pose

import contact_sim
from contact_sim import InclinedPlane, InvalidInput, Ncp, NonFiniteState, Simulator, load_robot
from contact_sim.collision._terrain import Planes, SphereGround
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.replay.__main__ import main
from contact_sim.replay._format import (
    ArchiveWriter,
    CannotRecord,
    RecordingError,
    robot_header,
    robot_of,
)
from contact_sim.replay._replayer import compare
from contact_sim.simulation._worlds import with_masses

MODELS = contact_sim.contact_models()
CHUNK = 500
"""Steps per chunk of the long recordings here."""


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def drive(sim, steps, seed=0, push=None):
    """Step under PD towards targets that wander; the same seed gives the same targets."""
    robot, noise = sim.robot, np.random.default_rng(seed)
    kp, kd = robot.default_gains
    target = robot.joint_positions(sim.standing_configuration())
    reports = []
    for _ in range(steps):
        target = target + 0.002 * noise.standard_normal(robot.n_joints)
        error = target - robot.joint_positions(sim.q)
        effort = kp * error - kd * robot.joint_velocities(sim.v)
        reports.append(sim.step(effort, push))
    return reports


def recorded_run(sim, path, **settings):
    """Record a run in which everything happens that can happen; return the report bytes."""
    robot = sim.robot
    with Recorder(sim, path, **settings):
        reports = drive(sim, 150)
        sim.friction = 0.3
        sim.restitution = 0.4
        reports += drive(sim, 60, 1, {'trunk': [30.0, -5.0, 0.0, 0.0, 1.0, 0.0]})
        snapshot = sim.snapshot()
        sim.baumgarte = 0.1
        reports += drive(sim, 40, 2)
        sim.restore(snapshot)
        sim.contact_model = 'lcp' if sim.contact_model != 'lcp' else 'ncp'
        reports += drive(sim, 40, 3)
        q = sim.standing_configuration()
        q[2] += 0.02
        sim.reset(q, time=sim.time)
        sim.friction = np.linspace(0.2, 0.8, len(robot.contact_points))
        reports += drive(sim, 60, 4)
    return [report.record.buffer.tobytes() for report in reports]


@pytest.mark.parametrize('model', MODELS)
def test_every_model_repeats_a_recorded_run_to_the_bit(go1, model, tmp_path):
    """Twice in process, then from the file: three runs, one trajectory."""
    first = recorded_run(Simulator(go1, model), tmp_path / 'first.npz')
    second = recorded_run(Simulator(go1, model), tmp_path / 'second.npz')
    assert first == second
    assert (tmp_path / 'first.npz').read_bytes() == (tmp_path / 'second.npz').read_bytes()
    played = []
    outcome = repeat(
        Recording(tmp_path / 'first.npz'),
        lambda step: played.append(step.report.record.buffer.tobytes()),
    )
    assert outcome.equal
    assert outcome.steps == 350
    assert played == first


@pytest.fixture(scope='module')
def elsewhere(tmp_path_factory):
    """Return a folder with recordings of all models that another process made."""
    script = (
        'import sys, numpy as np, contact_sim\n'
        'from contact_sim.replay import Recorder\n'
        "robot, (folder, *models) = contact_sim.load_robot('solo12'), sys.argv[1:]\n"
        'for model in models:\n'
        '    sim, noise = contact_sim.Simulator(robot, model), np.random.default_rng(3)\n'
        "    with Recorder(sim, f'{folder}/{model}.npz'):\n"
        '        for _ in range(150): sim.step(noise.normal(0.0, 1.0, 12))\n'
    )
    folder = tmp_path_factory.mktemp('elsewhere')
    command = [sys.executable, '-c', script, str(folder), *MODELS]
    subprocess.run(command, check=True, timeout=600)
    return folder


@pytest.mark.parametrize('model', MODELS)
def test_another_process_gets_the_same_bits(model, elsewhere):
    """Nothing depends on the hash seed, on addresses or on what ran before."""
    outcome = repeat(Recording(elsewhere / f'{model}.npz'))
    assert outcome.equal, outcome.difference
    assert outcome.steps == 150


def only_bounds_are_infinite(sim, file):
    """Check the numbers of a file: a limit pushes in one direction without bound, no more."""
    numbers = {name: file[name] for name in file.files if file[name].dtype == float}
    assert not any(np.isnan(array).any() for array in numbers.values())
    for name, array in numbers.items():
        allowed = sim.sizes.n_limits if name.endswith('buffer') or 'state' in name else 0
        assert np.isinf(array).sum() <= allowed, name


def test_a_robot_with_other_masses_repeats(go1, tmp_path):
    masses = [1.05 * body.mass for body in list(go1.pinocchio_model.inertias)[1:]]
    sim = Simulator(with_masses(go1, masses), time_step=2e-3)
    with Recorder(sim, tmp_path / 'heavy.npz'):
        drive(sim, 60)
    found = Recording(tmp_path / 'heavy.npz')
    assert found.robot().total_mass == pytest.approx(1.05 * go1.total_mass, rel=1e-12)
    assert repeat(found).equal


@pytest.mark.parametrize('inertias', [[[1.0] * 13], [[-1.0] * 13] * 13, 'x', None])
def test_wrong_inertias_of_a_recording_are_refused(go1, inertias):
    header = robot_header(go1) | {'inertias': inertias}
    with pytest.raises(RecordingError, match=r"robot 'go1': .*inerti"):
        robot_of(header, True)


def test_a_recording_is_exact_and_says_what_was_run(go1, tmp_path):
    sim = Simulator(go1, Ncp(tolerance=1e-9), InclinedPlane(0.1, 0.2), friction=0.7)
    drive(sim, 30)
    start = sim.snapshot().buffer
    with Recorder(sim, tmp_path / 'run.npz', parameters={'why': 'a test'}) as recorder:
        reports = drive(sim, 20)
        assert recorder.steps == 20
    recording = Recording(tmp_path / 'run.npz')
    header = recording.header
    assert header['robot']['name'] == 'go1'
    assert header['contact_model'] == {
        'name': 'ncp', 'parameters': vars(Ncp(tolerance=1e-9).parameters),
    }  # fmt: skip
    assert header['parameters'] == {'why': 'a test'}
    assert header['versions']['contact_sim'] == contact_sim.__version__
    assert recording.other_versions == []
    assert recording.effort.tobytes() == np.array([r.effort for r in reports]).tobytes()
    again = recording.simulator()
    assert again.snapshot().buffer.tobytes() == start.tobytes()
    assert again.terrain.data.tobytes() == sim.terrain.data.tobytes()
    assert (again.terrain.kind, again.terrain.features) == (sim.terrain.kind, 1)
    with np.load(tmp_path / 'run.npz') as file:  # an ordinary .npz
        only_bounds_are_infinite(sim, file)


def test_robots_without_a_description_are_recorded_in_numbers(tmp_path):
    sim = Simulator(ball())
    sim.reset(pose(z=0.3), np.array([0.5, 0, 0, 0, 1, 0]))
    with Recorder(sim, tmp_path / 'ball.npz'):
        for _ in range(300):
            sim.step(np.zeros(0))
    outcome = repeat(Recording(tmp_path / 'ball.npz'))
    assert outcome.equal
    assert outcome.steps == 300


def test_a_step_that_was_not_finite_is_not_finite_again(go1, tmp_path):
    sim = Simulator(go1)
    with Recorder(sim, tmp_path / 'run.npz'):
        drive(sim, 5)
        v = np.zeros(18)
        v[8] = 1e99
        sim.reset(v=v)
        with pytest.raises(NonFiniteState):
            sim.step(np.zeros(12))
        with pytest.raises(NonFiniteState):
            sim.step(np.zeros(12))  # takes no step
        sim.reset()
        drive(sim, 5)
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert outcome.equal
    assert outcome.steps == 11
    with np.load(tmp_path / 'run.npz') as file:
        only_bounds_are_infinite(sim, file)


def test_refused_steps_leave_no_trace(go1, tmp_path):
    sim = Simulator(go1)
    with Recorder(sim, tmp_path / 'run.npz'):
        drive(sim, 5)
        with pytest.raises(InvalidInput):
            sim.step(np.full(12, np.nan))
        with pytest.raises(contact_sim.UnknownName):
            sim.step(np.ones(12), {'nose': np.zeros(6)})
        drive(sim, 5)
    recording = Recording(tmp_path / 'run.npz')
    assert recording.events == []
    assert repeat(recording).steps == 10


def test_recording_does_not_change_the_run_and_ends_when_closed(go1, tmp_path):
    plain, watched = Simulator(go1), Simulator(go1)
    expected = drive(plain, 50)[-1]
    with Recorder(watched, tmp_path / 'a.npz'), Recorder(watched, tmp_path / 'b.npz'):
        assert drive(watched, 50)[-1].record.buffer.tobytes() == expected.record.buffer.tobytes()
    drive(watched, 10)
    assert (tmp_path / 'a.npz').read_bytes() == (tmp_path / 'b.npz').read_bytes()
    assert repeat(Recording(tmp_path / 'a.npz')).steps == 50


def test_memory_does_not_grow_with_the_run(tmp_path):
    sim = Simulator(ball())
    sim.reset(pose(z=0.3))
    effort = np.zeros(0)
    with Recorder(sim, tmp_path / 'long.npz', chunk=CHUNK):
        for _ in range(CHUNK + 10):
            sim.step(effort)
        tracemalloc.start()
        for _ in range(9 * CHUNK):
            sim.step(effort)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert grown < 50_000  # 16 kB are the hashes of a chunk, the rest names of entries
    assert repeat(Recording(tmp_path / 'long.npz')).steps == 10 * CHUNK + 10


def test_fewer_hashes_name_a_range_of_steps(go1, tmp_path):
    path = tmp_path / 'run.npz'
    recorded_run(Simulator(go1), path, hash_every=20)
    assert repeat(Recording(path)).equal
    edit(path, 'steps-0000000000/effort', lambda effort: effort[46].__setitem__(3, 1.25))
    outcome = repeat(Recording(path))
    assert outcome.first_difference == 60
    assert 'a step after 40, up to 60' in outcome.difference


# ------------------------------------------------------------- files that were tampered with


@pytest.fixture(scope='module')
def long_run(go1, tmp_path_factory):
    """Return the file of a run of three chunks, with a change in the last."""
    path = tmp_path_factory.mktemp('recording') / 'long.npz'
    sim = Simulator(go1)
    with Recorder(sim, path, chunk=CHUNK):
        drive(sim, 2 * CHUNK + 50)
        sim.friction = 0.5
        drive(sim, 50)
    return path


@pytest.fixture
def copy(long_run, tmp_path):
    path = tmp_path / 'copy.npz'
    path.write_bytes(long_run.read_bytes())
    return path


def arrays_of(path):
    with np.load(path) as file:
        return {name: file[name].tobytes() for name in file.files}


def edit(path, name, change):
    """Change one array of a .npz file."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    changed = change(arrays[name])
    arrays[name] = arrays[name] if changed is None else changed
    np.savez(path, **arrays)


@pytest.mark.parametrize('step', [1, 333, CHUNK, CHUNK + 1, 2 * CHUNK + 100])
def test_an_edited_command_is_named(copy, step):
    first = (step - 1) // CHUNK * CHUNK

    def change(effort):
        effort[step - 1 - first, 5] = np.nextafter(effort[step - 1 - first, 5], np.inf)

    edit(copy, f'steps-{first:010d}/effort', change)
    outcome = repeat(Recording(copy))
    assert (outcome.first_difference, outcome.steps) == (step, step - 1)
    assert f'step {step} (t = {step * 1e-3:.9g} s) differs' in outcome.difference


def test_an_edited_change_is_named(copy):
    def change(events):
        (event,) = json.loads(str(events))
        return np.array(json.dumps([event | {'value': [0.5, 0.5, 0.5, 0.6]}]))

    edit(copy, f'steps-{2 * CHUNK:010d}/events', change)
    assert repeat(Recording(copy)).first_difference == 2 * CHUNK + 51


@pytest.mark.parametrize('event', [{'step': 2 * CHUNK + 3, 'kind': 'magic', 'value': 1}, {}])
def test_a_senseless_change_is_named(copy, event):
    edit(copy, f'steps-{2 * CHUNK:010d}/events', lambda _: np.array(json.dumps([event])))
    outcome = repeat(Recording(copy))
    assert not outcome.equal
    assert '1004' in outcome.difference or 'no step after 1000' in outcome.damage


def test_an_edited_number_that_is_not_finite_is_named(copy):
    edit(copy, f'steps-{CHUNK:010d}/effort', lambda effort: effort[9].fill(np.nan))
    outcome = repeat(Recording(copy))
    assert outcome.first_difference == CHUNK + 10
    assert 'must be finite' in outcome.difference


@pytest.mark.parametrize(
    ('entry', 'steps'),
    [
        (None, 2 * CHUNK + 100),
        (f'steps-{2 * CHUNK:010d}/events', 2 * CHUNK),
        (f'steps-{CHUNK:010d}/hash', CHUNK),
        (f'steps-{CHUNK:010d}/effort', CHUNK),
        ('steps-0000000000/effort', 0),
    ],
)
def test_a_cut_file_is_repeated_as_far_as_it_goes(copy, entry, steps):
    """The file ends within an entry, or within the table of contents behind all entries."""
    content = copy.read_bytes()
    with zipfile.ZipFile(copy) as file:
        end = file.getinfo(f'{entry}.npy').header_offset + 60 if entry else file.start_dir + 60
    copy.write_bytes(content[:end])
    outcome = repeat(Recording(copy))
    assert not outcome.equal
    assert (outcome.steps, outcome.difference) == (steps, '')
    assert 'ends in the middle' in outcome.damage or 'is missing' in outcome.damage
    assert str(steps) in outcome.damage


@pytest.mark.parametrize('size', [0, 10, 100, 3000])
def test_a_file_cut_to_nothing_is_no_recording(copy, size):
    copy.write_bytes(copy.read_bytes()[:size])
    with pytest.raises(RecordingError, match=str(copy)):
        Recording(copy).simulator()


@pytest.mark.parametrize('share', np.linspace(0.05, 0.95, 10).round(2))
def test_a_flipped_byte_is_found(copy, long_run, share):
    """Wherever it is: in a number, in a header, in the table of contents.

    But for a byte that says the same in another way: packed text may be copied from here or there.
    """
    content = bytearray(long_run.read_bytes())
    content[int(share * len(content))] ^= 0x20
    copy.write_bytes(content)
    try:
        outcome = repeat(Recording(copy))
    except RecordingError as error:
        found = str(error)
    else:
        found = outcome.damage
        if outcome.equal:
            assert arrays_of(copy) == arrays_of(long_run)
            return
        assert outcome.steps % CHUNK == 0
    assert 'damaged' in found or 'is missing' in found


def test_missing_steps_are_named(copy, long_run):
    with zipfile.ZipFile(long_run) as old, zipfile.ZipFile(copy, 'w') as new:
        for name in old.namelist():
            if not name.startswith(f'steps-{CHUNK:010d}'):
                new.writestr(name, old.read(name))
    outcome = repeat(Recording(copy))
    assert outcome.steps == CHUNK
    assert f'steps from {CHUNK} on are missing' in outcome.damage


def test_a_killed_process_leaves_its_steps(tmp_path):
    """SIGKILL: everything up to the last chunk or flush is there."""
    path = tmp_path / 'killed.npz'
    script = (
        'import sys, numpy as np, contact_sim\n'
        'from contact_sim.replay import Recorder\n'
        "sim = contact_sim.Simulator(contact_sim.load_robot('solo12'))\n"
        f'recorder = Recorder(sim, sys.argv[1], chunk={CHUNK})\n'
        f'for _ in range({CHUNK} + 100): sim.step(np.zeros(12))\n'
        'recorder.flush()\n'
        'for _ in range(50): sim.step(np.zeros(12))\n'
        "print('now', flush=True)\n"
        'while True: pass\n'
    )
    process = subprocess.Popen(
        [sys.executable, '-c', script, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == 'now\n'
    process.send_signal(signal.SIGKILL)
    process.wait()
    outcome = repeat(Recording(path))
    assert outcome.difference == ''
    assert outcome.steps == CHUNK + 100
    assert 'ends in the middle' in outcome.damage


ENDLESS = """
import sys, numpy as np, contact_sim
from contact_sim.replay import Recorder
sim = contact_sim.Simulator(contact_sim.load_robot('solo12'), time_step=float(sys.argv[2]))
recorder = Recorder(sim, sys.argv[1])
while True:
    sim.step(np.zeros(12))
    if sim.step_count in (int(sys.argv[3]), int(sys.argv[3]) + 1):
        print(sim.step_count, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize(
    ('h', 'steps', 'kept'), [(1e-3, 700, 0), (1e-3, 2999, 2000), (4e-3, 1330, 1250)]
)
def test_a_killed_process_loses_at_most_a_second(tmp_path, h, steps, kept):
    """SIGKILL at any step, also in the first second, with the settings that everybody has."""
    path = tmp_path / 'killed.npz'
    process = subprocess.Popen(
        [sys.executable, '-c', ENDLESS, str(path), str(h), str(steps)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == f'{steps}\n'
    process.send_signal(signal.SIGKILL)
    process.communicate()
    outcome = repeat(Recording(path))
    assert outcome.difference == ''
    assert outcome.steps == kept
    assert h * (steps - outcome.steps) < 1.0


def test_a_change_of_the_time_step_ends_a_chunk(go1, tmp_path):
    """Each chunk has at most a second of its own time step."""
    sim, path = Simulator(go1), tmp_path / 'run.npz'
    with Recorder(sim, path):
        drive(sim, 1100)
        sim.time_step = 5e-3
        drive(sim, 450)
    chunks = list(Recording(path).chunks())
    assert [len(chunk.effort) for chunk in chunks] == [1000, 100, 200, 200, 50]
    assert repeat(Recording(path)).equal


def test_a_full_file_is_said_within_a_second_and_keeps_what_is_there(go1, tmp_path):
    """The system refuses to write on: a limit of the size of a file stands for a full disk."""
    path, said, sim = tmp_path / 'run.npz', [], Simulator(go1)
    recorder = Recorder(sim, path, on_error=lambda reason: said.append((sim.step_count, reason)))
    rng = np.random.default_rng(0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 250_000, hard))
    try:
        for _ in range(4500):
            sim.step(rng.normal(size=go1.n_joints))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
        recorder.close()
    assert sim.step_count == 4500
    ((step, reason),) = said
    kept = repeat(Recording(path))
    assert (kept.difference, kept.steps % 1000) == ('', 0)
    assert 1000 <= kept.steps <= step - 1 <= kept.steps + 1000
    assert f'holds no more steps from {kept.steps} on: File too large' in reason


# ------------------------------------------------------------- robots and versions


def change_header(path, change):
    def edited(header):
        content = json.loads(str(header))
        change(content)
        return np.array(json.dumps(content))

    edit(path, 'header', edited)


def test_a_changed_description_is_refused(copy):
    def heavier(header):
        text = header['robot']['description']
        assert '<mass value="' in text
        header['robot']['description'] = text.replace('<mass value="', '<mass value="1', 1)

    change_header(copy, heavier)
    with pytest.raises(RecordingError, match=r"description of robot 'go1' .* was changed"):
        repeat(Recording(copy))


def test_another_robot_is_refused(copy, capsys):
    with pytest.raises(RecordingError, match="robot 'a1' has changed since the recording"):
        Recording(copy).check_robot(load_robot('a1'))
    Recording(copy).check_robot(load_robot('go1'))
    assert main([str(copy), '--robot', 'a1']) == 1
    assert "robot 'a1' has changed" in capsys.readouterr().err


def test_other_versions_are_a_warning(copy, capsys):
    change_header(copy, lambda header: header['versions'].update(numba='0.1'))
    assert Recording(copy).other_versions[0].startswith('numba 0.1, here ')
    assert main([str(copy)]) == 0
    assert 'recorded with numba 0.1' in capsys.readouterr().err


def test_recordings_of_a_plane_by_itself_are_repeated(copy):
    """Those of format 1."""

    def as_before(header):
        header.update(format=1, plane=header.pop('ground')['data'][:4])

    before = Recording(copy).simulator().terrain
    change_header(copy, as_before)
    after = Recording(copy).simulator().terrain
    assert after.data.tobytes() == before.data.tobytes()
    assert (after.kind, after.features) == (before.kind, before.features)
    assert main([str(copy)]) == 0


@pytest.mark.parametrize('terrain', [SphereGround((0, 0, 1), 1.0, hollow=True), Planes()])
def test_grounds_of_all_kinds_are_recorded(terrain, tmp_path):
    sim = Simulator(ball(), terrain=terrain)
    sim.reset(pose(x=0.1, z=0.3))
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(50):
            sim.step([])
    again = Recording(tmp_path / 'run.npz').simulator().terrain
    assert again.data.tobytes() == terrain.data.tobytes()
    assert (again.kind, again.features) == (terrain.kind, terrain.features)
    assert main([str(tmp_path / 'run.npz')]) == 0


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda header: header.update(format=99), 'format 1 or 2'),
        (lambda header: header['state'].update(memory=[4, 9]), 'other fields'),
        (lambda header: header['contact_model'].update(name='magic'), "'magic'"),
    ],
)
def test_headers_that_do_not_fit_are_refused(copy, change, message):
    change_header(copy, change)
    with pytest.raises(contact_sim.ContactSimError, match=message):
        repeat(Recording(copy))


@pytest.mark.parametrize('path', ['/nowhere/run.npz', '/proc/version'])
def test_files_that_are_no_recordings(path):
    with pytest.raises(RecordingError, match=path):
        Recording(path)


def test_bad_settings_of_a_recorder(go1, tmp_path):
    with pytest.raises(InvalidInput, match='hash_every'):
        Recorder(Simulator(go1), tmp_path / 'run.npz', hash_every=0)
    for path in (tmp_path / 'no' / 'run.npz', '/dev/full'):
        with pytest.raises(InvalidInput, match=f'cannot write {path}'):
            Recorder(Simulator(go1), path)


def test_a_full_disk_ends_the_recording_not_the_run(go1, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, 'No space left on device')

    said, sim = [], Simulator(go1)
    recorder = Recorder(sim, tmp_path / 'run.npz', on_error=said.append)
    drive(sim, 10)
    recorder.flush()
    monkeypatch.setattr(ArchiveWriter, 'add', full)
    drive(sim, 10)
    recorder.flush()
    drive(sim, 10)
    recorder.close()
    assert said == [f'{tmp_path}/run.npz holds no more steps from 10 on: No space left on device']
    assert sim.step_count == 30
    monkeypatch.undo()
    assert repeat(Recording(tmp_path / 'run.npz')).steps == 10
    Recorder(sim, tmp_path / 'other.npz', chunk=CHUNK)
    drive(sim, 5)
    monkeypatch.setattr(ArchiveWriter, 'add', full)
    with pytest.raises(CannotRecord, match=r'other\.npz holds no more steps .*No space'):
        drive(sim, CHUNK)


# ------------------------------------------------------------- command line and comparison


def test_the_command_line_says_what_happened(copy, capsys):
    assert main([str(copy)]) == 0
    said = capsys.readouterr().out
    assert 'go1, ncp, 1100 steps of 0.001 s' in said
    assert 'before step 1051: friction 0.5\n' in said
    assert '1100 steps repeated, every state equal to the bit' in said
    edit(copy, 'steps-0000000000/effort', lambda effort: effort[99].fill(0.0))
    assert main([str(copy), '--json']) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result['equal'], result['first_difference'], result['steps']) == (False, 100, 99)


def test_the_command_line_without_a_recording():
    result = subprocess.run(
        [sys.executable, '-m', 'contact_sim.replay', '/nowhere.npz'],
        capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 1
    assert 'cannot read /nowhere.npz' in result.stderr
    assert 'Traceback' not in result.stderr


def test_another_model_on_the_same_efforts(tmp_path, capsys):
    """A ball thrown onto soft ground: the same flight to the bit, then apart."""
    path = tmp_path / 'throw.npz'
    sim = Simulator(ball(), friction=0.3)
    sim.reset(pose(z=0.15), np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    landing = np.sqrt(2 * 0.05 / 9.81)
    with Recorder(sim, path):
        for _ in range(400):
            sim.step(np.zeros(0))
    comparison = compare(Recording(path), 'sap')
    flying = comparison.time < 0.5 * landing
    assert comparison.base[flying].max() == comparison.turn[flying].max() == 0.0
    assert comparison.base[-1] > 1e-3
    assert 0.5 * landing < comparison.apart_from() < 1.5 * landing
    same = compare(Recording(path), 'ncp')
    assert same.base.max() == same.joints.max() == same.turn.max() == 0.0
    assert main([str(path), '--model', 'sap']) == 0
    said = capsys.readouterr().out
    assert 'sap instead of ncp, with the same efforts' in said
    assert f'apart from t = {comparison.apart_from():.6g} s on' in said
