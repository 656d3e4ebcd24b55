"""Settings of all tests."""

import os
from functools import cache
from pathlib import Path

import pinocchio as pin
import pytest
from hypothesis import settings
from interpreted import interpreted

# A first call may compile a kernel, and a shared machine may pause: time is no failure here.
# Every run tries the same examples; others with `pytest --hypothesis-profile explore`.
settings.register_profile('contact_sim', deadline=None, derandomize=True, database=None)
settings.register_profile('explore', deadline=None)
settings.load_profile('contact_sim')

pytest_plugins = ['contact_sim.testing']

PROCESSES = Path(__file__).resolve().parent / 'ros' / 'process'
"""Tests that start nodes as processes, or talk over DDS."""
EAGER = Path(__file__).resolve().parent / 'helpers' / 'eager_discovery.xml'
os.environ.setdefault('FASTDDS_DEFAULT_PROFILES_FILE', str(EAGER))  # and for all processes


@pytest.fixture(autouse=True)
def _same_random_bodies():
    """What is random in Pinocchio does not depend on which tests ran before."""
    pin.seed(0)


@pytest.fixture(scope='module')
def interpreted_kernels():
    """Kernels that the tests of a file call run as Python: compiling them takes longer."""
    with interpreted():
        yield


def taking_turns(items):
    """Return the tests with files that wait for processes spread among those that compute.

    Such files begin in the first three quarters: one that takes long is not left to the end.
    """
    files = {item.path: item.path.parent == PROCESSES for item in items}
    place = {}
    for waits, share in ((True, 0.75), (False, 1.0)):
        paths = [path for path in files if files[path] == waits]
        place |= {path: share * k / len(paths) for k, path in enumerate(paths)}
    return sorted(items, key=lambda item: place[item.path])


def pytest_collection_modifyitems(config, items):
    """Tests with real processes, real time or a browser get a second chance.

    A busy machine is no failure, nor is a tab that Chromium gives up for want of memory.

    What needed it is listed as R at the end. Without pytest-rerunfailures (it has no rosdep key)
    there is no second chance.
    """
    folder_of = cache(lambda path: path.parent)  # thousands of tests in a hundred files
    repeats = config.pluginmanager.hasplugin('rerunfailures')
    for item in items:
        folder = folder_of(item.path)
        if item.get_closest_marker('real_time') and folder != PROCESSES:
            raise pytest.UsageError(f'{item.nodeid}: make test looks for real_time elsewhere')
        if folder == PROCESSES:
            item.add_marker(pytest.mark.ros)
        if repeats and (folder == PROCESSES or 'browser_context' in item.fixturenames):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))
    if hasattr(config, 'workerinput'):  # one of several workers
        items[:] = taking_turns(items)
