"""Sensors of a robot: what they would say about a step, beside what is true."""

from contact_sim.sensors._encoders import Encoders, EncoderSensing, JointValues
from contact_sim.sensors._foot_sensors import (
    ContactFlags,
    ContactSensing,
    ContactValues,
    FootForces,
    ForceSensing,
    ForceValues,
)
from contact_sim.sensors._imu import Imu, ImuSensing, ImuValues
from contact_sim.sensors._robot_view import PartReport
from contact_sim.sensors._sensor import Line, Memory, NoiseParameters, Reading

__all__ = [
    'ContactFlags',
    'ContactSensing',
    'ContactValues',
    'EncoderSensing',
    'Encoders',
    'FootForces',
    'ForceSensing',
    'ForceValues',
    'Imu',
    'ImuSensing',
    'ImuValues',
    'JointValues',
    'Line',
    'Memory',
    'NoiseParameters',
    'PartReport',
    'Reading',
]
