"""Exported MCAP files, read by rosbags with nothing but what is in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore


class Bag(NamedTuple):
    """What is in a file, by topic."""

    messages: dict[str, list[Any]]
    raw: dict[str, list[bytes]]
    stamps: dict[str, list[int]]
    """Times at which they were logged [ns]."""
    connections: dict[str, Any]


def read_bag(path: Path) -> Bag:
    """Return all messages of a file."""
    store = get_typestore(Stores.EMPTY)
    bag = Bag({}, {}, {}, {})
    with Reader(path) as reader:
        for one in reader.connections:
            store.register(get_types_from_msg(one.msgdef.data, one.msgtype))
            bag.connections[one.topic] = one
        for connection, stamp, raw in reader.messages():
            message = store.deserialize_cdr(raw, connection.msgtype)
            for kept, value in zip(bag[:3], (message, raw, stamp), strict=True):
                kept.setdefault(connection.topic, []).append(value)
    return bag


def stamp_of(message: Any) -> int:
    """Return the stamp in a message [ns]."""
    stamp = message.clock if hasattr(message, 'clock') else message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def numbers(message: Any) -> np.ndarray:
    """Return x, y, z and w, those that a message has."""
    return np.array([getattr(message, axis) for axis in 'xyzw' if hasattr(message, axis)])
