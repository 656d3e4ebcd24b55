"""Sensors of a robot: measured and true values of a step."""

from contact_sim._deprecated import renamed
from contact_sim.sensors._foot_sensors import (
    ContactFlags,
    ContactSensing,
    ContactValues,
    FootForces,
    ForceSensing,
    ForceValues,
    Switched,
)
from contact_sim.sensors._motion_sensors import (
    Encoders,
    EncoderSensing,
    Imu,
    ImuSensing,
    ImuValues,
    JointValues,
)
from contact_sim.sensors._robot_view import ContactsView, PairsView, RecordView, RobotView
from contact_sim.sensors._sensor import (
    DelayedSensor,
    Memory,
    NoiseParameters,
    Reading,
    Sample,
    Sensor,
)

__all__ = [
    'ContactFlags',
    'ContactSensing',
    'ContactValues',
    'ContactsView',
    'DelayedSensor',
    'EncoderSensing',
    'Encoders',
    'FootForces',
    'ForceSensing',
    'ForceValues',
    'Imu',
    'ImuSensing',
    'ImuValues',
    'JointValues',
    'Memory',
    'NoiseParameters',
    'PairsView',
    'Reading',
    'RecordView',
    'RobotView',
    'Sample',
    'Sensor',
    'Switched',
]

__getattr__ = renamed('sensors')
