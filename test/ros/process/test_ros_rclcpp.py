"""A controller in C++ does to the bit what the same one in Python does, where rclcpp is there."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from ament_index_python.packages import PackageNotFoundError, get_package_prefix

EXAMPLE = Path(__file__).resolve().parents[3] / 'examples' / 'lockstep_controller'
PYTHON = EXAMPLE / 'lockstep_controller.py'
BUILD_TIMEOUT = 240.0
"""Wall seconds; rclcpp's headers take a compiler some twenty."""


def finished(lockstep_trial, controller, lag=0.0):
    """Return the trial of a controller that commanded at 500 Hz for half a second.

    Every command comes up to `lag` wall seconds late.
    """
    trial = lockstep_trial(controller, control_steps=2, faults=lag > 0.0)
    if lag:
        trial.lag_commands(lag)
    trial.advance(0.5)
    return trial


@pytest.fixture(scope='module')
def rclcpp_controller(tmp_path_factory):
    """Return the command that runs the example, built as a user builds it."""
    for package in ('rclcpp', 'ament_cmake'):
        try:
            get_package_prefix(package)
        except (PackageNotFoundError, OSError):
            pytest.skip(f'{package} is not installed (rclcpp has no wheel); rclpy is tested')
    for tool in ('cmake', 'c++'):
        if shutil.which(tool) is None:
            pytest.skip(f'{tool} is not installed')
    folder = tmp_path_factory.mktemp('rclcpp')
    for command in (
        ['cmake', '-S', EXAMPLE, '-B', folder / 'build', '-DCMAKE_BUILD_TYPE=Release',
         f'-DCMAKE_INSTALL_PREFIX={folder / "install"}'],
        ['cmake', '--build', folder / 'build'],
        ['cmake', '--install', folder / 'build'],
    ):  # fmt: skip
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=BUILD_TIMEOUT
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return [str(folder / 'install/lib/lockstep_controller/lockstep_controller')]


def test_the_example_moves_every_joint(lockstep_trial):
    track = finished(lockstep_trial, PYTHON).trajectory
    assert len(track.time) == 500
    assert np.ptp(track.q[:, 7:], axis=0).min() > 0.05  # it asks for 0.1 sin(18 t) [rad]


def test_rclcpp_and_rclpy_give_the_same_bits_however_late(lockstep_trial, rclcpp_controller):
    """The same law, answered at once, and with a random delay of 0 to 50 ms at every step."""
    digests = [
        finished(lockstep_trial, controller, lag).digest
        for controller, lag in ((PYTHON, 0.0), (rclcpp_controller, 0.0), (rclcpp_controller, 0.05))
    ]
    assert digests[1:] == digests[:1] * 2
