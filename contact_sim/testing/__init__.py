"""A test kit for controllers: a pytest plugin with fixtures, trajectories and assertions.

pytest finds it by itself where contact_sim is installed. Needs no ROS until a fixture does.
"""

from contact_sim.control._inverse_dynamics import Controller
from contact_sim.simulation._trajectory import Trajectory as Trajectory  # its place before
from contact_sim.simulation._trajectory import TrajectoryFailure as TrajectoryFailure
from contact_sim.testing._plugin import (
    lockstep_trial,
    pytest_addoption,
    pytest_runtest_makereport,
    trial,
)
from contact_sim.testing._trial import Trial, recorded_trajectory

__all__ = [
    'Controller',
    'Trial',
    'lockstep_trial',
    'pytest_addoption',
    'pytest_runtest_makereport',
    'recorded_trajectory',
    'trial',
]
