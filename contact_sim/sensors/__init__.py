"""Sensors of a robot: measured and true values of a step."""

from contact_sim.sensors._encoders import Encoders, EncoderSensing, JointValues
from contact_sim.sensors._foot_sensors import (
    ContactFlags,
    ContactSensing,
    ContactValues,
    FootForces,
    ForceSensing,
    ForceValues,
    Switched,
)
from contact_sim.sensors._imu import Imu, ImuSensing, ImuValues
from contact_sim.sensors._robot_view import PartContacts, PartPairs, PartRecord, PartReport
from contact_sim.sensors._sensor import Line, Memory, NoiseParameters, Reading, Sample, Sensor

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
    'PartContacts',
    'PartPairs',
    'PartRecord',
    'PartReport',
    'Reading',
    'Sample',
    'Sensor',
    'Switched',
]
