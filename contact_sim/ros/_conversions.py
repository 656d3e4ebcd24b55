"""Convert numbers to stamps, vectors and poses of ROS messages, and back; imports no ROS."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from contact_sim._types import Array
from contact_sim.errors import InvalidInput
from contact_sim.topics._table import NANOSECONDS, nanoseconds


def set_stamp(stamp: Any, time: float) -> None:
    """Write simulated time [s] into a stamp, to the nanosecond."""
    stamp.sec, stamp.nanosec = divmod(nanoseconds(time), NANOSECONDS)


def stamp_nanoseconds(stamp: Any) -> int:
    """Return the time of a stamp [ns]."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def seconds(stamp: Any) -> float:
    """Return a stamp in seconds."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def set_vector(message: Any, vector: Array) -> None:
    """Write (3,) into x, y, z."""
    message.x, message.y, message.z = vector.tolist()


def vector_values(message: Any) -> tuple[float, float, float]:
    """Return x, y, z of a message."""
    return message.x, message.y, message.z


def set_quaternion(message: Any, quaternion: Array) -> None:
    """Write (x, y, z, w) into a quaternion message."""
    message.x, message.y, message.z, message.w = quaternion.tolist()


def quaternion_values(message: Any) -> tuple[float, float, float, float]:
    """Return x, y, z, w of a quaternion message."""
    return message.x, message.y, message.z, message.w


def pose_values(message: Any) -> tuple[float, ...]:
    """Return position, then quaternion x, y, z, w, of a pose message."""
    return *vector_values(message.position), *quaternion_values(message.orientation)


# --- Serialised messages (plain CDR), read without a Python object for each field of them.


class JointValues(NamedTuple):
    """What a sensor_msgs/JointState says."""

    stamp: int
    """[ns]."""
    name: list[str]
    position: Array
    velocity: Array
    effort: Array


class OdometryValues(NamedTuple):
    """What a nav_msgs/Odometry says, without covariances."""

    stamp: int
    """[ns]."""
    pose: Array
    """Position [m], then quaternion x, y, z, w, shape (7,)."""
    twist: Array
    """Linear [m/s] and angular [rad/s], shape (6,)."""


class _Reader:
    """Reads one message from its start; alignment counts from the end of its 4 bytes of header."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 4 or data[0] or data[1] > 1:
            raise InvalidInput(f'message that begins with {data[:4]!r}: expected plain CDR')
        self._data, self._place = data, 4
        self._order = '<' if data[1] else '>'

    def number(self, kind: str) -> int:
        """Return the next number of four bytes, of a format of `struct`."""
        self._place += -self._place % 4
        value: int = struct.unpack_from(self._order + kind, self._data, self._place)[0]
        self._place += 4
        return value

    def text(self) -> str:
        """Return the next string."""
        length = self.number('I')
        begin = self._place
        self._place += length
        return self._data[begin : begin + length - 1].decode()

    def numbers(self, count: int) -> Array:
        """Return the next `count` of float64."""
        if count == 0:
            return np.zeros(0)
        self._place += (4 - self._place) % 8
        values = np.frombuffer(self._data, self._order + 'f8', count, self._place)
        self._place += 8 * count
        return values.astype(float)

    def stamp(self) -> int:
        """Return the stamp [ns] of a header, which is behind it then."""
        seconds, nanoseconds_ = self.number('i'), self.number('I')
        self.text()
        return seconds * NANOSECONDS + nanoseconds_


def joint_values(data: bytes) -> JointValues:
    """Return the values of a serialised sensor_msgs/JointState."""
    reader = _Reader(data)
    stamp = reader.stamp()
    names = [reader.text() for _ in range(reader.number('I'))]
    return JointValues(stamp, names, *(reader.numbers(reader.number('I')) for _ in range(3)))


def odometry_values(data: bytes) -> OdometryValues:
    """Return the values of a serialised nav_msgs/Odometry."""
    reader = _Reader(data)
    stamp = reader.stamp()
    reader.text()
    pose = reader.numbers(7)
    reader.numbers(36)
    return OdometryValues(stamp, pose, reader.numbers(6))
