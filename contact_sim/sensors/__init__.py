"""Sensors of a robot: what they would say about a step, beside what is true."""

from contact_sim.sensors.contact_flags import ContactFlags, ContactSensing, ContactValues
from contact_sim.sensors.encoders import Encoders, EncoderSensing, JointValues
from contact_sim.sensors.foot_forces import FootForces, ForceSensing, ForceValues
from contact_sim.sensors.imu import Imu, ImuSensing, ImuValues
from contact_sim.sensors.line import Line, Memory, Reading
from contact_sim.sensors.noise import NoiseParameters
from contact_sim.sensors.part_report import PartReport

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
