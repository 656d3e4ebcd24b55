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
from contact_sim.sensors._ray_scene import RayHits, RayScene
from contact_sim.sensors._robot_view import ContactsView, PairsView, RecordView, RobotView
from contact_sim.sensors._seeing_sensors import (
    DepthCamera,
    HeightScan,
    HeightScanValues,
    Lidar,
    RangeSensing,
    RangeValues,
)
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
    'DepthCamera',
    'EncoderSensing',
    'Encoders',
    'FootForces',
    'ForceSensing',
    'ForceValues',
    'HeightScan',
    'HeightScanValues',
    'Imu',
    'ImuSensing',
    'ImuValues',
    'JointValues',
    'Lidar',
    'Memory',
    'NoiseParameters',
    'PairsView',
    'RangeSensing',
    'RangeValues',
    'RayHits',
    'RayScene',
    'Reading',
    'RecordView',
    'RobotView',
    'Sample',
    'Sensor',
    'Switched',
]

__getattr__ = renamed('sensors')
