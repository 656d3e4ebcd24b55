"""Sensors of one of several robots say what they would if it were alone."""

import numpy as np
import pytest

from contact_sim import Planes, Simulator, joined, load_robot
from contact_sim.robot._several_robots import parts_of
from contact_sim.sensors import (
    ContactFlags,
    ContactSensing,
    DelayedSensor,
    Encoders,
    FootForces,
    Imu,
    NoiseParameters,
    RobotView,
)

GROOVE = Planes((((0.0, 0.1, 1.0), 0.0), ((0.0, -0.1, 1.0), 0.0)))
NOISE = NoiseParameters(joint_position=0.01, imu_gyro=0.01, imu_accel=0.1, foot_force=1.0)


def test_every_sensor_and_the_truth_are_those_of_the_robot_alone():
    """On a ground of two features, with a body that touches, falling and landing."""
    robots = {
        'a': load_robot('go1').with_body_contacts(['trunk'], most=8),
        'b': load_robot('solo12'),
    }
    world = joined(robots)
    together = Simulator(world, terrain=GROOVE)
    alone = {name: Simulator(robot, terrain=GROOVE) for name, robot in robots.items()}
    q = together.q.copy()
    for part in parts_of(world):
        q[part.q][2] += 0.01
        alone[part.name].reset(q[part.q])
    together.reset(q)
    lines = {
        part.name: [
            [
                DelayedSensor(sensor)
                for sensor in (
                    Encoders(part.robot, noise=NOISE),
                    Imu(part.robot, noise=NOISE, seed=3),
                    FootForces(part.robot, noise=NOISE),
                    FootForces(part.robot, 'world'),
                    ContactFlags(
                        part.robot, ContactSensing(on_threshold=4.0, off_threshold=1.0, latency=2)
                    ),
                )
            ]
            for _ in range(2)
        ]
        for part in parts_of(world)
    }
    touched = 0
    for _ in range(120):
        whole = together.step(np.zeros(24))
        for part in parts_of(world):
            own, lone = RobotView(whole, part), alone[part.name].step(np.zeros(12))
            assert own.contacts.gap == pytest.approx(lone.contacts.gap, abs=1e-9)
            assert own.contacts.slip_speed == pytest.approx(lone.contacts.slip_speed, abs=1e-6)
            assert own.contacts.normal == pytest.approx(lone.contacts.normal)
            assert np.array_equal(own.contacts.mode > 0, lone.contacts.mode > 0)
            touched += int((lone.contacts.mode > 0).any())
            for mine, its in zip(*lines[part.name], strict=True):
                told, expected = mine.read(own), its.read(lone)
                for of in ('measured', 'truth'):
                    for name, value in vars(getattr(expected, of)).items():
                        assert vars(getattr(told, of))[name] == pytest.approx(value, abs=1e-4)
    assert touched > 100
