"""The feed: what one process writes another reads whole, nobody waits, worlds are told apart."""

import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from robots import ball

from contact_sim import Simulator, load_robot
from contact_sim.collision._terrain import as_terrain
from contact_sim.constraints import FrameAnchor
from contact_sim.replay._format import header_of, model_header
from contact_sim.terrain._generator import ready_made
from contact_sim.view import _process as feeds
from contact_sim.view._process import MAX_PUSHES, Feed, SharedRecord
from contact_sim.view.viewer_main import RemoteWorld

LENGTH = 3000
WRITER = f"""\
import sys, time, numpy as np
from types import SimpleNamespace
from contact_sim.view._process import SharedRecord
memory = SharedRecord(('base',), {LENGTH}, int(sys.argv[1]))
print(flush=True)
count = written = 0
while True:
    count += 1
    values = np.full({LENGTH}, written + 1.0)
    report = SimpleNamespace(record=SimpleNamespace(buffer=values), solve_shadows=None)
    written += memory.write(written + 1, written + 1.0, 0.0, {{'base': values[:6]}}, report)
    time.sleep(1e-5)  # lets the reader in
"""
HOLDER = """\
import fcntl, sys, time
fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX)
print(flush=True)
time.sleep(60.0)
"""


@pytest.fixture
def memory():
    memory = SharedRecord(('base', 'foot'), LENGTH)
    yield memory
    memory.close()


@pytest.fixture
def other_process(memory):
    """Return what starts a program with the memory, and waits for its first line."""
    started = []

    def start(program):
        descriptor = memory.descriptor
        process = subprocess.Popen(
            [sys.executable, '-c', program, str(descriptor)],
            pass_fds=(descriptor,), stdout=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        assert process.stdout.readline() == b'\n'
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def step_of(buffer):
    """Return what stands for a report with these step data."""
    return SimpleNamespace(record=SimpleNamespace(buffer=buffer), solve_shadows=None)


def test_what_is_written_is_read(memory):
    buffer, push = np.arange(LENGTH, dtype=float), np.arange(6.0)
    assert memory.read() is None
    assert memory.write(3, 2e-5, 0.9, {'foot': push}, step_of(buffer))
    record = memory.read()
    assert (record.number, record.world) == (1, 3)
    assert (record.step_seconds, record.real_time_factor) == (2e-5, 0.9)
    assert record.numbers.tobytes() == buffer.tobytes()
    assert {frame: wrench.tolist() for frame, wrench in record.wrenches.items()} == {
        'foot': push.tolist()
    }
    assert memory.read(newer_than=1) is None
    memory.write(3, 2e-5, 0.9, {}, step_of(buffer))
    assert memory.read(newer_than=1).wrenches == {}
    assert record.numbers.tobytes() == buffer.tobytes()  # a copy


def test_of_many_pushes_the_first_are_shown():
    frames = [f'link_{k}' for k in range(MAX_PUSHES + 5)]
    memory = SharedRecord(frames, 1)
    memory.write(1, 0.0, 0.0, dict.fromkeys(frames, np.ones(6)), step_of(np.zeros(1)))
    assert list(memory.read().wrenches) == frames[:MAX_PUSHES]
    memory.close()


def test_no_record_is_half_old_and_half_new(memory, other_process):
    other_process(WRITER)
    last, end, read = 0, time.perf_counter() + 30.0, 0
    while read < 200 and time.perf_counter() < end:
        record = memory.read(last)
        if record is None:
            continue
        read, last = read + 1, record.number
        values = {*record.numbers, *record.wrenches['base'], record.step_seconds}
        assert values == {record.number} == {record.world}
    assert read == 200


@pytest.mark.parametrize('end', [signal.SIGKILL, signal.SIGSTOP])
def test_who_writes_never_waits(memory, other_process, end):
    """A reader that stops in the memory, for as long as it likes, or dies in it."""
    holder = other_process(HOLDER)
    buffer = np.ones(LENGTH)
    begin = time.perf_counter()
    assert not any(memory.write(1, 0.0, 0.0, {}, step_of(buffer)) for _ in range(100))
    assert memory.read() is None
    holder.send_signal(end)
    if end == signal.SIGKILL:
        holder.wait()
        assert memory.write(1, 0.0, 0.0, {}, step_of(buffer))  # the system took the lock away
    else:
        assert not memory.write(1, 0.0, 0.0, {}, step_of(buffer))
    assert time.perf_counter() - begin < 1.0  # not the minute of the other process


# -------------------------------------------------------------------- the end of the loop


@pytest.fixture
def clock(monkeypatch):
    """A wall clock that stands still until it is moved, [s]."""
    now = [100.0]
    monkeypatch.setattr(feeds.time, 'perf_counter', lambda: now[0])
    return now


@pytest.fixture
def fed(clock):
    """Return a ball in the air and its feed."""
    sim = Simulator(ball(), terrain='plane')
    sim.reset([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    feed = Feed(sim, ('body',), lambda: (1e-5, 0.5))
    yield sim, feed
    feed.memory.close()


def test_sixty_records_are_written_in_a_second_whatever_the_step_rate(fed, clock):
    sim, feed = fed
    for _ in range(2000):
        clock[0] += 0.5e-3
        feed.latest = sim.step([]), {}
        feed.write_if_due()
    assert 57 <= feed.memory.read().number <= 61


def test_the_last_step_is_shown_even_if_no_other_follows(fed, clock):
    sim, feed = fed
    feed.write_if_due()
    feed.latest = report, _ = sim.step([]), {}
    feed.write_if_due()
    assert feed.memory.read().number == 1  # too early for another one
    clock[0] += feeds.PERIOD
    for _ in range(3):
        feed.write_if_due()
        clock[0] += feeds.PERIOD
    record = feed.memory.read()
    assert record.number == 2
    assert record.numbers.tobytes() == report.record.buffer.tobytes()
    assert (record.step_seconds, record.real_time_factor) == (1e-5, 0.5)


def test_other_ground_and_other_constraints_are_other_worlds(fed, clock):
    sim, feed = fed
    feed.latest = before, _ = sim.step([]), {}
    groove = as_terrain(ready_made('rough', 0.5, 0))
    sim.reset(sim.q, terrain=groove)
    feed.write_if_due()  # the step is one of the world before: the state of the new one is shown
    assert (feed.world.number, feed.world.ground) == (2, groove)
    record = feed.memory.read()
    assert record.world == 2
    assert record.numbers.tobytes() == sim.last_report.record.buffer.tobytes()
    assert len(record.numbers) == feed.world.length != len(before.record.buffer)
    sim.constraints = [FrameAnchor('body', name='held')]
    feed.latest = sim.step([]), {}
    clock[0] += 1.0
    feed.write_if_due()
    assert (feed.world.number, len(feed.world.constraints)) == (3, 1)
    assert feed.memory.read(record.number).world == 3


def test_a_step_costs_nothing_while_the_other_process_reads(fed, clock):
    """The record is left out, the next turn has it."""
    sim, feed = fed
    holder = subprocess.Popen(
        [sys.executable, '-c', HOLDER, str(feed.memory.descriptor)],
        pass_fds=(feed.memory.descriptor,), stdout=subprocess.PIPE,
    )  # fmt: skip
    holder.stdout.readline()
    feed.write_if_due()
    clock[0] += feeds.PERIOD
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert feed.memory.read() is None
    feed.write_if_due()
    assert feed.memory.read().numbers.tobytes() == sim.last_report.record.buffer.tobytes()


# -------------------------------------------------------------------- the other end


def moved(name):
    """Return a simulation in motion: what is read from its reports is not zero."""
    robot = load_robot('go1')
    if name == 'anchored':
        sim = Simulator(robot, constraints=[FrameAnchor('trunk', name='stand')])
    elif name == 'stairs':
        sim = Simulator(robot, terrain=as_terrain(ready_made('rough', 0.5, 0)))
    else:
        sim = Simulator(robot, contact_model=name, friction=0.3)
    for _ in range(30):
        report = sim.step(np.full(robot.n_joints, 0.5), {'trunk': [30.0, 5.0, 0.0, 1.0, 0.0, 0.0]})
    return sim, report


@pytest.mark.parametrize('name', ['ncp', 'sap', 'anchored', 'stairs'])
def test_a_report_of_the_world_that_was_described_is_that_of_the_simulation(name):
    sim, report = moved(name)
    header = json.loads(json.dumps(header_of(sim, 1, None)))
    world = RemoteWorld(None, 1, sim.sizes.length, header)
    again = world.report(report.record.buffer.copy())
    assert np.abs(report.contacts.force).max() > 1.0
    assert again.residuals == report.residuals
    assert again.feet.force.tobytes() == report.feet.force.tobytes()
    assert again.contacts.names == report.contacts.names
    assert again.problem.delassus.tobytes() == report.problem.delassus.tobytes()
    assert again.constraints.keys() == report.constraints.keys()
    for held, expected in report.constraints.items():
        assert again.constraints[held].force.tobytes() == expected.force.tobytes()
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 3))
    assert (
        world.ground.signed_distance(points).tolist()
        == sim.terrain.signed_distance(points).tolist()
    )
    after = RemoteWorld(world, 2, sim.sizes.length, header)
    assert after.robot is world.robot
    assert after.ground is world.ground


def test_other_models_solve_the_same_step_at_the_other_end():
    """To the bit, beside the loop: what they start from is behind the step data."""
    sim = Simulator(load_robot('go1'), friction=0.3)
    sim.shadow = ['sap', 'lcp']
    feed = Feed(sim, ('trunk',), lambda: (0.0, 1.0))
    try:
        for _ in range(20):
            report = sim.step(np.full(12, 0.5), {'trunk': [30.0, 5.0, 0.0, 1.0, 0.0, 0.0]})
        feed.latest = report, {}
        feed.write_if_due()
        record = feed.memory.read()
        assert (record.world, record.model) == (feed.world.number, 'ncp') == (2, 'ncp')
        shadows = [model_header(model) for model in feed.world.shadows.models]
        header = json.loads(json.dumps(header_of(sim, 1, None)))
        world = RemoteWorld(None, 2, feed.world.length, header, shadows)
        again = world.report(record.numbers, record.model)
        assert again.residuals == report.residuals
        assert list(again.shadows) == list(report.shadows) == ['sap', 'lcp']
        assert np.abs(report.shadows['lcp'].force).max() > 1.0
        for name, answer in report.shadows.items():
            assert again.shadows[name].force.tobytes() == answer.force.tobytes()
        feed.latest, feed.due = (sim.last_report, {}), 0.0
        feed.write_if_due()  # of a state that no step has led to, models have nothing to say
        record = feed.memory.read(record.number)
        assert (record.world, record.model) == (2, '')
        assert world.report(record.numbers, record.model).shadows == {}
    finally:
        feed.memory.close()
