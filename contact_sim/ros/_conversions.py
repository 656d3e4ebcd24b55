"""Numbers to stamps, vectors, quaternions and poses of ROS messages, and back; imports no ROS."""

from __future__ import annotations

from typing import Any

from contact_sim._types import Array
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
