"""A limited address space (`ulimit -v`) is named before anything large is loaded."""

import importlib.util
import subprocess
import sys

import pytest

from contact_sim._address_space import OF_LIBRARY, OF_NODE

LIMITED = ['bash', '-c', 'ulimit -v $0; exec "$@"']
STEP = """
import contact_sim, numpy
sim = contact_sim.Simulator(contact_sim.load_robot('go1'))
sim.step(numpy.zeros(12))
"""


def run(limit, *arguments):
    """Return the end of a Python program in an address space of `limit` bytes."""
    command = [*LIMITED, str(limit // 1024), sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120.0, check=False)


@pytest.mark.parametrize('share', [0.5, 0.8, 0.95])
def test_too_small_a_space_is_named_at_the_import(share):
    """Before, imports of other packages failed, or the compiler aborted the process."""
    ended = run(int(share * OF_LIBRARY), '-c', STEP)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith('MemoryError: the address space of this process is limited to')
    assert 'ulimit -v 800781 or more' in last


def test_a_space_that_is_large_enough_is():
    assert run(2 * OF_LIBRARY, '-c', STEP).returncode == 0


@pytest.mark.skipif(importlib.util.find_spec('rclpy') is None, reason='needs ROS')
@pytest.mark.parametrize('share', [0.6, 0.95])
def test_the_node_needs_more(share):
    ended = run(int(share * OF_NODE), '-m', 'contact_sim.ros.simulation_node')
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith('contact_sim: the address space of this process is limited to')
    assert 'the node needs 1.7 GB' in line
