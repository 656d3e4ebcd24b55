"""Sensors without errors: what they measure is what is true, computed and encoded once."""

import numpy as np
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.robot._several_robots import parts_of
from contact_sim.sensors import ContactSensing
from contact_sim.topics._robot_topics import RobotSensors, SensorSet, recorded_settings


@pytest.fixture(scope='module')
def standing():
    sim = Simulator(load_robot('quadruped'))
    for _ in range(5):
        report = sim.step(np.zeros(12))
    return sim, report


@pytest.mark.parametrize('kind', RobotSensors._fields)
def test_a_sensor_without_errors_measures_the_exact_values(standing, kind):
    sim, report = standing
    sensors = SensorSet(parts_of(sim.robot)[0], recorded_settings({}))
    sensors.observe(report)
    assert sensors.is_exact(kind)
    assert sensors.measured(kind, report) is sensors.true(kind, report)
    measured = getattr(sensors.sensors, kind)
    again = measured.measure(measured.sample(report, None))
    for name, value in vars(sensors.true(kind, report)).items():
        assert getattr(again, name).tobytes() == value.tobytes(), name


def test_a_switch_with_a_threshold_measures_something_else(standing):
    sim, report = standing
    settings = recorded_settings({}) | {'sensors.contacts': ContactSensing(on_threshold=1e3)}
    sensors = SensorSet(parts_of(sim.robot)[0], settings)
    sensors.observe(report)
    assert not sensors.is_exact('contacts')
    assert sensors.true('contacts', report).flag.any()
    assert not sensors.measured('contacts', report).flag.any()
