"""Files of others cost no more than the limits, whatever is in them."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import zlib

import attacks
import numpy as np
import pytest

from contact_sim import InvalidInput, RobotDescriptionError, _reading, load_robot
from contact_sim.errors import ContactSimError

MEGABYTE = 1e6
LIMIT = 60 * MEGABYTE
PATIENCE = 20.0
SLOW = (
    'doubling.xacro', 'elements.urdf', 'attributes.urdf', 'many nodes', 'DAE folded',
    'steps: many', 'steps: array', 'problem: array', 'drawn: OBJ of many', 'socket: ', 'device: ',
)  # fmt: skip
"""Attacks that take seconds, or are said as another one is; the script tries them."""


@pytest.fixture
def limited(monkeypatch):
    def limit(**values):
        text = ','.join(f'{name}={value:g}' for name, value in values.items())
        monkeypatch.setenv(_reading.VARIABLE, text)

    return limit


# --- The limits themselves


def test_the_limits_are_those_of_the_documentation(monkeypatch):
    monkeypatch.delenv(_reading.VARIABLE, raising=False)
    assert vars(_reading.limits()) == {
        'bytes': 2**30, 'entries': 1e6, 'ratio': 250.0, 'depth': 100.0, 'seconds': 60.0,
    }  # fmt: skip


def test_the_environment_sets_them(monkeypatch):
    monkeypatch.setenv(_reading.VARIABLE, 'bytes=4e9, seconds=600')
    assert (_reading.limits().bytes, _reading.limits().seconds) == (4e9, 600.0)
    assert _reading.limits().depth == 100.0


@pytest.mark.parametrize('text', ['bytes', 'bytes=', 'bytes=-1', 'bytes=nan', 'size=3', 'bytes=0'])
def test_other_settings_are_refused(monkeypatch, text):
    monkeypatch.setenv(_reading.VARIABLE, text)
    with pytest.raises(InvalidInput, match=r'CONTACT_SIM_READING = .*such as bytes=4e9'):
        _reading.limits()


# --- Blocks


def test_a_block_adds_no_more_memory_than_the_limit(limited):
    limited(bytes=50e6)
    with _reading.reading('small'):
        assert len(bytearray(30_000_000)) == 30_000_000
    with (
        pytest.raises(
            _reading.Unreadable, match=r'big: reading it takes more memory.*bytes=5e\+07'
        ),
        _reading.reading('big'),
    ):
        bytearray(300_000_000)
    assert len(bytearray(300_000_000)) == 300_000_000  # nothing of it stays


def test_a_block_in_another_one_and_in_other_threads_leaves_no_limit(limited):
    import resource

    limited(bytes=50e6)
    before = resource.getrlimit(resource.RLIMIT_DATA)

    done = []

    def read():
        for _ in range(20):
            with _reading.reading('outer'), _reading.reading('inner'):
                done.append(len(bytearray(20_000_000)))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 80  # each thread has the limit to itself
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_blocks_that_fail_at_their_start_leave_no_limit(limited, monkeypatch):
    import resource

    limited(bytes=50e6)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    inside, goes_on = threading.Event(), threading.Event()
    in_use = _reading._data_in_use

    def read():
        with _reading.reading('one'):
            inside.set()
            goes_on.wait(60.0)

    def fails():
        raise MemoryError

    thread = threading.Thread(target=read)
    thread.start()
    assert inside.wait(60.0)
    assert resource.getrlimit(resource.RLIMIT_DATA) != before
    monkeypatch.setattr(_reading, '_data_in_use', fails)
    with pytest.raises(_reading.Unreadable), _reading.reading('another'):
        pass
    monkeypatch.setattr(_reading, '_data_in_use', lambda: 0)  # not known
    with _reading.reading('a third'):
        goes_on.set()
        thread.join()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    monkeypatch.setattr(_reading, '_data_in_use', in_use)
    with _reading.reading('a fourth'):
        assert resource.getrlimit(resource.RLIMIT_DATA) != before
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_program_that_is_started_meanwhile_has_no_limit(limited):
    import resource

    limited(bytes=50e6)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    ask = [sys.executable, '-c', 'import resource as r; print(*r.getrlimit(r.RLIMIT_DATA))']
    with _reading.reading('a file'):
        inside = resource.getrlimit(resource.RLIMIT_DATA)
        with _reading.lifted():
            said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        assert resource.getrlimit(resource.RLIMIT_DATA) == inside != before
    assert tuple(map(int, said.split())) == before


@pytest.mark.parametrize('thread', [False, True])
def test_a_block_takes_no_longer_than_the_limit(limited, thread):
    limited(seconds=0.2)
    said = []

    def read():
        try:
            with _reading.reading('endless', RobotDescriptionError):
                while True:
                    with contextlib.suppress(Exception):  # as readers do
                        sum(range(1000))
        except ContactSimError as error:
            said.append(error)

    start = time.perf_counter()
    if thread:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join()
    else:
        read()
    assert 0.2 <= time.perf_counter() - start < 5.0
    (error,) = said
    assert type(error) is RobotDescriptionError
    assert 'endless: reading it takes longer, more than the limit seconds=0.2' in str(error)


def test_a_block_that_is_in_time_is_never_interrupted(limited):
    limited(seconds=0.02)
    for _ in range(30):
        try:
            with _reading.reading('short'):
                time.sleep(0.0195)
        except _reading.Unreadable:
            continue
        for _ in range(1000):
            pass


def test_a_profiler_works_after_a_block():
    """CPython 3.11 went round for ever where an interruption had been withdrawn."""
    program = (
        'import sys\nfrom contact_sim import _reading\n'
        'with _reading.reading("x"): pass\n'
        'def f(): return 1\n'
        'sys.setprofile(lambda *a: None)\nf()\nsys.setprofile(None)\nprint("done")'
    )
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, timeout=60.0, check=True
    )
    assert done.stdout == 'done\n'


# --- Files


@pytest.mark.parametrize(
    ('kind', 'what'), [('FIFO', 'a FIFO'), ('device', 'a device'), ('socket', 'a socket')]
)
def test_what_is_no_file_is_not_opened(tmp_path, monkeypatch, kind, what):
    path = attacks.special(kind, 'x', tmp_path, LIMIT)
    monkeypatch.setattr(os, 'open', None)
    with pytest.raises(_reading.Unreadable, match=f'it is {what}, expected a regular file'):
        _reading.file_bytes(path)


def test_links_to_files_are_read(tmp_path):
    (tmp_path / 'file').write_text('text')
    (tmp_path / 'link').symlink_to('file')
    assert _reading.file_text(tmp_path / 'link') == 'text'
    with pytest.raises(_reading.Unreadable, match='it is a folder'):
        _reading.file_bytes(tmp_path)


def test_files_of_the_system_end(limited):
    """Their size is said to be 0."""
    limited(bytes=100.0)
    with pytest.raises(_reading.Unreadable, match='bytes=100'):
        _reading.file_bytes('/proc/self/maps')


# --- Arrays


@pytest.mark.parametrize('order', ['C', 'F'])
@pytest.mark.parametrize('dtype', ['f8', '<i2', '>u4', 'U5', '?'])
def test_arrays_are_as_numpy_reads_them(tmp_path, order, dtype):
    array = np.asarray(np.arange(24).reshape(2, 3, 4).astype(dtype), order=order)
    np.save(tmp_path / 'a.npy', array)
    read = _reading.npy_file(tmp_path / 'a.npy')
    assert (read.dtype, read.flags.writeable) == (array.dtype, True)
    np.testing.assert_array_equal(read, array)


def test_archives_are_as_numpy_reads_them(tmp_path):
    arrays = {'a': np.arange(5.0), 'b': np.array('text'), 'c': np.zeros((0, 3))}
    for name, save in (('packed', np.savez_compressed), ('plain', np.savez)):
        save(tmp_path / f'{name}.npz', **arrays)
        read = _reading.npz_file(tmp_path / f'{name}.npz')
        assert read.keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(read[key], array)


@pytest.mark.parametrize('full', [1000, None])
def test_packed_bytes(full):
    content = bytes(range(250)) * 4
    assert _reading.unpacked('x', zlib.compress(content), full) == content
    for damaged in (zlib.compress(content)[:-5], b'no', zlib.compress(content * 2)[:-9]):
        with pytest.raises(_reading.Unreadable, match='x is damaged'):
            _reading.unpacked('x', damaged, full)


def test_a_high_ratio_of_little_is_fine_and_of_much_is_not(limited):
    limited(bytes=16e6, ratio=100.0)
    packed = zlib.compress(bytes(900_000))
    assert len(packed) < 900_000 / 500
    assert len(_reading.unpacked('x', packed)) == 900_000
    with pytest.raises(_reading.Unreadable, match='ratio=100'):
        _reading.unpacked('x', zlib.compress(bytes(3_000_000)))


# --- Texts


def test_yaml_is_as_pyyaml_reads_it(tmp_path):
    text = 'a: &x [1, 2.5, .inf, 0x1F, 1e3, yes, null, 2001-02-03, "t"]\nb: *x\nc: {<<: {d: 1}}\n'
    (tmp_path / 'a.yaml').write_text(text)
    import yaml

    assert _reading.yaml_value(tmp_path / 'a.yaml') == yaml.safe_load(text)


def test_json_is_as_python_reads_it(limited):
    value = {'a': [1, 2.5, 'x[[[[{{{', {'b': None}], 'c\\"[': '"[['}
    limited(depth=3)
    assert _reading.json_value(json.dumps(value), 'x') == value
    with pytest.raises(_reading.Unreadable, match='4 nested levels, more than the limit depth=3'):
        _reading.json_value('[[[[]]]]', 'x')
    limited(entries=3)
    with pytest.raises(_reading.Unreadable, match='entries=3'):
        _reading.json_value('[1, 2, 3, 4]', 'x')


@pytest.mark.parametrize('attribute', ['damping', 'friction'])
def test_a_number_that_no_computation_survives_is_refused(attribute):
    robot = (
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia '
        'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="j" '
        'type="continuous"><parent link="a"/><child link="b"/>'
        f'<dynamics {attribute}="1e308"/></joint></robot>'
    )
    with pytest.raises(RobotDescriptionError, match=rf'{attribute} = .1e308., expected .* up to'):
        load_robot(robot, floating_base=False)


# --- Hostile files of every kind

ATTACKS = [one for one in attacks.attacks() if not any(word in one.name for word in SLOW)]


@pytest.fixture(scope='module')
def outcomes(tmp_path_factory):
    """Outcomes by name, of a process of its own: this one may have memory that is not in use."""
    path = tmp_path_factory.mktemp('attacks') / 'outcomes.json'
    command = [
        sys.executable, attacks.__file__, '--limit', f'{LIMIT}', '--patience', f'{PATIENCE}',
        '--json', path, '--skip', *SLOW,
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, timeout=300.0, check=False)
    return {one['name']: attacks.Outcome(**one) for one in json.loads(path.read_text())}


@pytest.mark.parametrize('name', [attack.name for attack in ATTACKS])
def test_a_hostile_file_costs_at_most_twice_the_limit(name, outcomes):
    outcome = outcomes[name]
    assert outcome.ours, outcome.said
    assert outcome.peak <= 2.0 * LIMIT
    assert outcome.cpu < 10.0


def test_aliases_that_unfold_are_seen_at_once(tmp_path):
    """383 bytes did not end in 200 s."""
    (tmp_path / 'a.yaml').write_text(attacks.ALIASES)
    start = time.perf_counter()
    with pytest.raises(_reading.Unreadable, match=r'nodes of YAML, aliases unfolded.*entries'):
        _reading.yaml_value(tmp_path / 'a.yaml')
    assert time.perf_counter() - start < 1.0
