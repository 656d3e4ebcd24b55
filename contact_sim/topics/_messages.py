"""Messages of ROS 2: their definitions, their bytes, and the outputs that publish them.

A message is serialised once, as CDR, little endian, as DDS sends it and MCAP stores it. It is a
mapping of its fields; omitted fields are 0, empty or false. Short forms:

    a diagnostic_msgs/KeyValue                             a pair of texts
    a message whose fields are all numbers of one type    these numbers, array-like:
                                                           a Pose is x, y, z, then qx, qy, qz, qw
    a sequence of such messages                            an array, one row for each
    builtin_interfaces/Time and Duration                   nanoseconds
    a value that is the same in many messages              a Constant of it

The definitions of the messages stand here because the machine may have no ROS. A new message type
is one entry of `_TEXT`. Two sinks take the bytes: the MCAP file (`replay/_export.py`) and the
publishers of the ROS node (`ros/_publishers.py`).
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.simulation._report import StepReport
from contact_sim.topics._table import Topic, nanoseconds

# --- Definitions of the messages, without comments.

_TEXT = """
builtin_interfaces/Time:
    int32 sec
    uint32 nanosec
builtin_interfaces/Duration:
    int32 sec
    uint32 nanosec
std_msgs/Header:
    builtin_interfaces/Time stamp
    string frame_id
std_msgs/String:
    string data
std_msgs/ColorRGBA:
    float32 r
    float32 g
    float32 b
    float32 a
std_msgs/MultiArrayDimension:
    string label
    uint32 size
    uint32 stride
std_msgs/MultiArrayLayout:
    MultiArrayDimension[] dim
    uint32 data_offset
std_msgs/Float64MultiArray:
    MultiArrayLayout layout
    float64[] data
std_msgs/Int16MultiArray:
    MultiArrayLayout layout
    int16[] data
std_msgs/Float32MultiArray:
    MultiArrayLayout layout
    float32[] data
rosgraph_msgs/Clock:
    builtin_interfaces/Time clock
geometry_msgs/Vector3:
    float64 x
    float64 y
    float64 z
geometry_msgs/Point:
    float64 x
    float64 y
    float64 z
geometry_msgs/Quaternion:
    float64 x 0
    float64 y 0
    float64 z 0
    float64 w 1
geometry_msgs/Pose:
    Point position
    Quaternion orientation
geometry_msgs/Twist:
    Vector3 linear
    Vector3 angular
geometry_msgs/PoseWithCovariance:
    Pose pose
    float64[36] covariance
geometry_msgs/TwistWithCovariance:
    Twist twist
    float64[36] covariance
geometry_msgs/Wrench:
    Vector3 force
    Vector3 torque
geometry_msgs/WrenchStamped:
    std_msgs/Header header
    Wrench wrench
geometry_msgs/Transform:
    Vector3 translation
    Quaternion rotation
geometry_msgs/TransformStamped:
    std_msgs/Header header
    string child_frame_id
    Transform transform
tf2_msgs/TFMessage:
    geometry_msgs/TransformStamped[] transforms
nav_msgs/Odometry:
    std_msgs/Header header
    string child_frame_id
    geometry_msgs/PoseWithCovariance pose
    geometry_msgs/TwistWithCovariance twist
sensor_msgs/JointState:
    std_msgs/Header header
    string[] name
    float64[] position
    float64[] velocity
    float64[] effort
sensor_msgs/Imu:
    std_msgs/Header header
    geometry_msgs/Quaternion orientation
    float64[9] orientation_covariance
    geometry_msgs/Vector3 angular_velocity
    float64[9] angular_velocity_covariance
    geometry_msgs/Vector3 linear_acceleration
    float64[9] linear_acceleration_covariance
sensor_msgs/CompressedImage:
    std_msgs/Header header
    string format
    uint8[] data
sensor_msgs/PointField:
    uint8 INT8 = 1
    uint8 UINT8 = 2
    uint8 INT16 = 3
    uint8 UINT16 = 4
    uint8 INT32 = 5
    uint8 UINT32 = 6
    uint8 FLOAT32 = 7
    uint8 FLOAT64 = 8
    string name
    uint32 offset
    uint8 datatype
    uint32 count
sensor_msgs/PointCloud2:
    std_msgs/Header header
    uint32 height
    uint32 width
    PointField[] fields
    bool is_bigendian
    uint32 point_step
    uint32 row_step
    uint8[] data
    bool is_dense
sensor_msgs/LaserScan:
    std_msgs/Header header
    float32 angle_min
    float32 angle_max
    float32 angle_increment
    float32 time_increment
    float32 scan_time
    float32 range_min
    float32 range_max
    float32[] ranges
    float32[] intensities
sensor_msgs/Image:
    std_msgs/Header header
    uint32 height
    uint32 width
    string encoding
    uint8 is_bigendian
    uint32 step
    uint8[] data
sensor_msgs/RegionOfInterest:
    uint32 x_offset
    uint32 y_offset
    uint32 height
    uint32 width
    bool do_rectify
sensor_msgs/CameraInfo:
    std_msgs/Header header
    uint32 height
    uint32 width
    string distortion_model
    float64[] d
    float64[9] k
    float64[9] r
    float64[12] p
    uint32 binning_x
    uint32 binning_y
    RegionOfInterest roi
visualization_msgs/UVCoordinate:
    float32 u
    float32 v
visualization_msgs/MeshFile:
    string filename
    uint8[] data
visualization_msgs/Marker:
    int32 ARROW=0
    int32 CUBE=1
    int32 SPHERE=2
    int32 CYLINDER=3
    int32 LINE_STRIP=4
    int32 LINE_LIST=5
    int32 CUBE_LIST=6
    int32 SPHERE_LIST=7
    int32 POINTS=8
    int32 TEXT_VIEW_FACING=9
    int32 MESH_RESOURCE=10
    int32 TRIANGLE_LIST=11
    int32 ARROW_STRIP=12
    int32 ADD=0
    int32 MODIFY=0
    int32 DELETE=2
    int32 DELETEALL=3
    std_msgs/Header header
    string ns
    int32 id
    int32 type
    int32 action
    geometry_msgs/Pose pose
    geometry_msgs/Vector3 scale
    std_msgs/ColorRGBA color
    builtin_interfaces/Duration lifetime
    bool frame_locked
    geometry_msgs/Point[] points
    std_msgs/ColorRGBA[] colors
    string texture_resource
    sensor_msgs/CompressedImage texture
    UVCoordinate[] uv_coordinates
    string text
    string mesh_resource
    MeshFile mesh_file
    bool mesh_use_embedded_materials
visualization_msgs/MarkerArray:
    Marker[] markers
diagnostic_msgs/KeyValue:
    string key
    string value
diagnostic_msgs/DiagnosticStatus:
    byte OK=0
    byte WARN=1
    byte ERROR=2
    byte STALE=3
    byte level
    string name
    string message
    string hardware_id
    KeyValue[] values
diagnostic_msgs/DiagnosticArray:
    std_msgs/Header header
    DiagnosticStatus[] status
grid_map_msgs/GridMapInfo:
    float64 resolution
    float64 length_x
    float64 length_y
    geometry_msgs/Pose pose
grid_map_msgs/GridMap:
    std_msgs/Header header
    GridMapInfo info
    string[] layers
    string[] basic_layers
    std_msgs/Float32MultiArray[] data
    uint16 outer_start_index
    uint16 inner_start_index
"""
SEPARATOR = '=' * 80
"""Line between the definitions in a schema, as rosbag2 writes it."""
_FIELD = re.compile(
    r'(?P<type>[A-Za-z0-9_/]+)(?P<array>\[(?P<size>\d*)\])? (?P<name>[a-z0-9_]+)(?: \S+)?'
)


class Field(NamedTuple):
    """A field of a message."""

    name: str
    type: str
    """Primitive, or `package/Name`."""
    size: int | None
    """Numbers in an array of fixed length, 0 of any length; None for no array."""


DEFINITIONS = {
    name: [line.strip() for line in lines.splitlines()]
    for name, lines in re.findall(r'^(\S+):\n((?: .*\n)*)', _TEXT, re.MULTILINE)
}
"""Lines of every definition by `package/Name`."""


@cache
def fields_of(name: str) -> tuple[Field, ...]:
    """Return the fields of `package/Name` in order."""
    fields = []
    for line in DEFINITIONS[name]:
        match = _FIELD.fullmatch(line)
        if match is not None:  # else a constant
            kind, size = match['type'], match['size']
            nested = f'{name.partition("/")[0]}/{kind}'
            known = nested if nested in DEFINITIONS else kind
            fields.append(Field(match['name'], known, int(size or 0) if match['array'] else None))
    return tuple(fields)


def schema_text(name: str) -> str:
    """Return the definition of `package/Name`, followed by those of all nested messages."""
    names = [name]
    for outer in names:  # grows while it is read
        nested = (field.type for field in fields_of(outer))
        names += [kind for kind in nested if kind in DEFINITIONS and kind not in names]
    texts = ['\n'.join(DEFINITIONS[message]) for message in names]
    nested_texts = (
        f'{SEPARATOR}\nMSG: {message}\n{text}'
        for message, text in zip(names[1:], texts[1:], strict=True)
    )
    return '\n'.join([texts[0], *nested_texts])


# --- The writer: a function for each type, made once, that appends a value to the bytes.

Writer = Callable[[bytearray, Any], None]
ENCAPSULATION = b'\x00\x01\x00\x00'
"""Header of plain CDR, little endian; alignment counts from its end."""
PADDING = [bytes(n) for n in range(8)]
TIMES = 'builtin_interfaces/Time', 'builtin_interfaces/Duration'
SECOND = 1_000_000_000
NUMBERS = {
    'bool': '?', 'byte': 'B', 'uint8': 'B', 'int16': 'h', 'uint16': 'H', 'int32': 'i',
    'uint32': 'I', 'float32': 'f', 'float64': 'd',
}  # fmt: skip
"""Format of each numeric primitive in `struct` and NumPy."""
_LENGTH = struct.Struct('<I')
_TIME = struct.Struct('<iI')


class Constant:
    """A value whose bytes are cached, once for each offset modulo 8 at which it may begin."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.cached: dict[int, bytes] = {}


class Varying:
    """A leaf of a message that a `Layout` writes anew: float64, int32 or a stamp.

    Writing a message notes where its bytes end.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self.kind = ''  # of its numbers; empty for a stamp
        self.ends: list[int] = []


@cache
def encoder(name: str) -> Callable[[Any], bytes]:
    """Return the function that serialises a message of `package/Name`."""
    write = _writer(name)

    def encode(message: Any) -> bytes:
        out = bytearray(ENCAPSULATION)
        write(out, message)
        return bytes(out)

    return encode


@cache
def uniform(name: str) -> tuple[str, int] | None:
    """Return type and count of the numbers in a type of numbers of one kind, else None."""
    if name in NUMBERS:
        return name, 1
    kinds, count = set(), 0
    for field in fields_of(name) if name in DEFINITIONS else ():
        numbers = None if field.size == 0 else uniform(field.type)
        if numbers is None:
            return None
        kinds.add(numbers[0])
        count += numbers[1] * (1 if field.size is None else field.size)
    return (kinds.pop(), count) if len(kinds) == 1 else None


@cache
def _writer(name: str) -> Writer:
    """Return the writer of a type, primitive or `package/Name`."""
    if name in NUMBERS:
        return _number(name)
    if name == 'string':
        return _write_string
    if name in TIMES:
        return _write_time
    if name == 'diagnostic_msgs/KeyValue':
        return _write_pair
    numbers = uniform(name)
    if numbers is not None:
        return _array(*numbers)
    parts = [
        (field.name, _field_writer(field), Constant(_default(field))) for field in fields_of(name)
    ]
    kinds = {field.name: (uniform(field.type) or [''])[0] for field in fields_of(name)}

    def write(out: bytearray, message: Mapping[str, Any]) -> None:
        for key, write_field, default in parts:
            value = message.get(key, default)
            if type(value) is Varying:
                write_field(out, value.value)
                value.kind = kinds[key]
                value.ends.append(len(out))
                continue
            if type(value) is not Constant:
                write_field(out, value)
                continue
            start = len(out)  # padding depends on it modulo the largest alignment
            cached = value.cached.get(start % 8)
            if cached is not None:
                out += cached
            else:
                write_field(out, value.value)
                value.cached[start % 8] = bytes(out[start:])

    return write


def _field_writer(field: Field) -> Writer:
    if field.size is None:
        return _writer(field.type)
    if field.size:
        return _array(field.type, field.size)
    numbers = uniform(field.type)
    if numbers is not None:
        return _number_sequence(*numbers)
    write_item = _writer(field.type)

    def write(out: bytearray, values: Any) -> None:
        _write_length(out, len(values))
        for value in values:
            write_item(out, value)

    return write


def _number(kind: str) -> Writer:
    packed = struct.Struct(f'<{NUMBERS[kind]}')
    size = packed.size

    def write(out: bytearray, value: Any) -> None:
        _align(out, size)
        out += packed.pack(value)

    return write


def _array(kind: str, count: int) -> Writer:
    dtype = np.dtype(f'<{NUMBERS[kind]}')

    def write(out: bytearray, value: Any) -> None:
        numbers = np.asarray(value, dtype)
        if numbers.size != count:
            raise ValueError(f'{numbers.size} numbers, expected {count}')
        _align(out, dtype.itemsize)
        out += numbers.tobytes()

    return write


def _number_sequence(kind: str, count: int) -> Writer:
    """Return the writer of a sequence of messages of `count` numbers each."""
    dtype = np.dtype(f'<{NUMBERS[kind]}')

    def write(out: bytearray, values: Any) -> None:
        numbers = np.asarray(values, dtype)
        _write_length(out, numbers.size // count)
        if numbers.size:  # an empty sequence has no alignment
            _align(out, dtype.itemsize)
            out += numbers.tobytes()

    return write


def _default(field: Field) -> Any:
    """Return the value of a field that is omitted."""
    if field.size is not None:
        return np.zeros(field.size)
    if field.type in NUMBERS or field.type in TIMES:
        return 0
    if field.type == 'string':
        return ''
    numbers = uniform(field.type)
    return {} if numbers is None else np.zeros(numbers[1])


def _align(out: bytearray, size: int) -> None:
    out += PADDING[(len(ENCAPSULATION) - len(out)) % size]


def _write_length(out: bytearray, length: int) -> None:
    _align(out, 4)
    out += _LENGTH.pack(length)


def _write_string(out: bytearray, text: str) -> None:
    encoded = text.encode()
    out += PADDING[-len(out) % 4] + _LENGTH.pack(len(encoded) + 1) + encoded + b'\0'


def _write_pair(out: bytearray, texts: tuple[str, str]) -> None:
    for text in texts:
        _write_string(out, text)


def _write_time(out: bytearray, time: int) -> None:
    _align(out, 4)
    out += _TIME.pack(*divmod(time, SECOND))


class Layout:
    """A message of fixed size: its bytes are made once, stamps and numbers are written in place.

    Args:
        name: its type, `package/Name`.
        message: its fields; those that change are `Varying`.
    """

    def __init__(self, name: str, message: Mapping[str, Any]) -> None:
        varying = {id(leaf): leaf for leaf in _varying_leaves(message)}.values()
        data = encoder(name)(message)
        # numbers lie on multiples of their size after the header, here also in memory
        self._whole = np.zeros(8 + (len(data) + 7) // 8 * 8, dtype=np.uint8)
        self._data = self._whole[8 - len(ENCAPSULATION) :][: len(data)]
        self._data[:] = np.frombuffer(data, dtype=np.uint8)
        self._words, self._numbers = self._whole.view('<u4'), self._whole.view('<f8')
        self._stamps = _places(varying, '', 4)
        self._of_integers, self._of_numbers = (
            _places(varying, 'int32', 4), _places(varying, 'float64', 8)
        )  # fmt: skip

    def filled(self, time: int, numbers: Array, integers: Sequence[int] = ()) -> bytes:
        """Return the message at simulated time [ns].

        Args:
            time: of all its stamps.
            numbers: all float64 that change, in the order of the message.
            integers: all int32.
        """
        stamps = self._stamps
        self._words[stamps[::2]], self._words[stamps[1::2]] = divmod(time, SECOND)
        self._numbers[self._of_numbers] = numbers
        self._words[self._of_integers] = integers
        return self._data.tobytes()


def _varying_leaves(message: Any) -> Iterator[Varying]:
    if isinstance(message, Varying):
        yield message
    elif isinstance(message, Mapping):
        for value in message.values():
            yield from _varying_leaves(value)
    elif isinstance(message, list | tuple):
        for value in message:
            yield from _varying_leaves(value)


def _places(varying: Iterable[Varying], kind: str, size: int) -> NDArray[np.intp]:
    """Return where the numbers of a kind are, as indices of numbers of `size` bytes."""
    # the encapsulation ends at byte 8 of the memory, and at byte 4 of the message
    shift = 8 - len(ENCAPSULATION)
    spans = sorted(
        ((end + shift) // size, np.size(leaf.value) if kind else 2)
        for leaf in varying if leaf.kind == kind for end in leaf.ends
    )  # fmt: skip
    return np.concatenate([np.arange(0), *(np.arange(end - n, end) for end, n in spans)])


# --- Outputs: from the content of a step to the channels of a sink.

Message = Mapping[str, Any]
"""Fields of a message."""
NO_WRENCHES: Mapping[str, Array] = {}


class Step(NamedTuple):
    """A step of which messages are made."""

    report: StepReport
    due: Collection[str]
    """Fields of `publish_rate` of which a message is due."""
    wrenches: Mapping[str, Array] = NO_WRENCHES
    """Frame to external force and torque in the step, world axes, shape (6,)."""
    real_time_factor: float = 0.0
    """0 where it is not known."""

    @property
    def stamp(self) -> int:
        """Simulated time after the step [ns]."""
        return nanoseconds(self.report.time)


class Channel(ABC):
    """A topic in a sink."""

    def __init__(self, topic: Topic) -> None:
        self._encode = encoder(topic.type.replace('/msg/', '/'))

    def publish(self, message: Message | bytes) -> None:
        """Send a message, and serialise it before unless that was done."""
        self.send(message if isinstance(message, bytes) else self._encode(message))

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send a serialised message."""

    def has_subscriber(self) -> bool:
        """Return whether a message would be received."""
        return True


class Sink(Protocol):
    """Where messages go."""

    def channel(self, topic: Topic) -> Channel | None:
        """Return a channel for a topic, None if the sink does not have this topic."""


class Output:
    """Publishes topics whose messages come from one function of the step.

    Args:
        sink: where the messages go.
        topics: of one kind, with the same rates.
        content: returns a message for each of the topics, or no message at all.

    Attributes:
        channels: of the topics that the sink has.
    """

    def __init__(
        self,
        sink: Sink,
        topics: Iterable[Topic],
        content: Callable[[Step], Sequence[Message | bytes]],
    ) -> None:
        topics = tuple(topics)
        channels = (sink.channel(topic) for topic in topics)
        self.channels = [channel for channel in channels if channel is not None]
        self._content = content
        self._rates = frozenset(rate for topic in topics for rate in topic.rates)

    def publish(self, step: Step) -> None:
        """Publish the messages of a step, if they are due and received by anybody."""
        if self._rates.isdisjoint(step.due):
            return
        heard = [channel.has_subscriber() for channel in self.channels]
        messages = self._content(step) if True in heard else ()
        if messages:
            for channel, message, wanted in zip(self.channels, messages, heard, strict=True):
                if wanted:
                    channel.publish(message)


# --- Parts of messages.


def header(time: int, frame: str = '') -> Message:
    """Return a std_msgs/Header at simulated time [ns]."""
    return {'stamp': time, 'frame_id': frame}


def transform(time: int, parent: str, child: str, pose: Array) -> Message:
    """Return a TransformStamped of a pose x y z, qx qy qz qw, shape (7,)."""
    return {'header': header(time, parent), 'child_frame_id': child, 'transform': pose}


def labelled(labels: Iterable[str], numbers: Any) -> Message:
    """Return a MultiArray of numbers whose labels stand in layout.dim."""
    return {'layout': _layout(tuple(labels)), 'data': numbers}


def flags(names: Sequence[str], numbers: Any) -> Message:
    """Return a MultiArray of one number for each name, of one dimension that lists the names."""
    size = len(names)
    dimension = {'label': ' '.join(names), 'size': size, 'stride': size}
    return {'layout': {'dim': [dimension]}, 'data': numbers}


@lru_cache
def _layout(labels: tuple[str, ...]) -> Constant:
    return Constant({'dim': [{'label': label, 'size': 1, 'stride': 1} for label in labels]})


def diagnostics(time: int, status: Message, values: Mapping[str, Any]) -> Message:
    """Return a DiagnosticArray of one status with these values."""
    texts = [(key, str(value)) for key, value in values.items()]
    return {'header': header(time), 'status': [{**status, 'values': texts}]}
