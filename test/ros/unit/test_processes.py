"""Processes of programs: they end where the process that started them is killed."""

import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from os import kill

import pytest

from contact_sim.ros._processes import bound_to_this_process

PARENT = """
import sys, time
from contact_sim.ros._processes import Process

process = Process([sys.executable, '-c', 'import time; time.sleep(120)'], own_group=True)
print(process.handle.pid, flush=True)
time.sleep(120)
"""
PATIENCE = 20.0


def runs(pid):
    """Return whether a process that is not our child still runs."""
    with suppress(ProcessLookupError):
        kill(pid, 0)
        with suppress(FileNotFoundError), open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rpartition(')')[2].split()[0] != 'Z'
    return False


@pytest.mark.skipif(
    shutil.which('setpriv') is None, reason='no setpriv: apt-get install util-linux'
)
def test_a_program_ends_where_its_parent_is_killed():
    with subprocess.Popen([sys.executable, '-c', PARENT], stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        assert runs(pid)
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not runs(pid)


@pytest.mark.skipif(
    shutil.which('setpriv') is None, reason='no setpriv: apt-get install util-linux'
)
def test_a_program_does_not_start_where_its_parent_has_ended(tmp_path):
    # The program between stands for the one that inherits orphans.
    between = 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))'
    begun = tmp_path / 'begun'
    command = [*bound_to_this_process(), 'touch', str(begun)]
    assert subprocess.call([sys.executable, '-c', between, *command]) == 1
    assert not begun.exists()
    assert subprocess.call(command) == 0
    assert begun.exists()
