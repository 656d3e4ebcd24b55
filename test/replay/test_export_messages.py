"""Bytes and definitions of exported messages, against rosbags and the ROS packages."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rosbags', reason='needs rosbags')

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from contact_sim.topics._messages import DEFINITIONS, Constant, encoder, schema_text

ROOT = [word for word in DEFINITIONS if word.endswith(('Array', 'Stamped', 'Message'))] + [
    'nav_msgs/Odometry', 'sensor_msgs/JointState', 'sensor_msgs/Imu', 'rosgraph_msgs/Clock',
    'std_msgs/String',
]  # fmt: skip


def long_name(name):
    return name.replace('/', '/msg/')


@pytest.mark.parametrize('release', [Stores.ROS2_JAZZY, Stores.ROS2_KILTED])
def test_definitions_are_those_of_ros(release):
    """The type hash of REP 2011, computed by rosbags from its own definitions and from ours."""
    ours, theirs = get_typestore(Stores.EMPTY), get_typestore(release)
    for name, lines in DEFINITIONS.items():
        ours.register(get_types_from_msg('\n'.join(lines), long_name(name)))
    for name in DEFINITIONS:
        if name.startswith('grid_map_msgs/'):
            continue  # rosbags does not know it
        assert ours.hash_rihs01(long_name(name)) == theirs.hash_rihs01(long_name(name)), name


def test_definitions_have_the_words_of_the_installed_packages():
    """Defaults and constants are in no hash."""
    pytest.importorskip('sensor_msgs', reason='needs ROS packages')
    places = [sys.prefix, *os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)]
    compared = 0
    for name, lines in DEFINITIONS.items():
        package, _, short = name.partition('/')
        files = [Path(place, 'share', package, 'msg', f'{short}.msg') for place in places]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            continue  # of tf2_msgs there is no wheel
        text = file.read_text()
        words = (re.sub(r'\s+', ' ', line.partition('#')[0]).strip() for line in text.splitlines())
        assert [line for line in words if line] == lines, name
        compared += 1
    assert compared > 20


@pytest.mark.parametrize('name', ROOT)
def test_a_schema_is_complete(name):
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(schema_text(name), long_name(name)))
    assert long_name(name) in store.fielddefs


def header(store, frame):
    time = store.types['builtin_interfaces/msg/Time'](sec=3, nanosec=25)
    return store.types['std_msgs/msg/Header'](stamp=time, frame_id=frame)


@pytest.mark.parametrize('frame', ['', 'a', 'ab', 'odom', 'a/LF_FOOT', 'kühn'])
@pytest.mark.parametrize('count', [0, 1, 3])
def test_bytes_are_those_of_another_writer(frame, count):
    """Alignment is what can go wrong: strings of every length modulo 4, sequences, also empty."""
    store = get_typestore(Stores.ROS2_KILTED)
    names, values = ['x' * k for k in range(count)], np.arange(count) + 0.5
    theirs = store.types['sensor_msgs/msg/JointState'](
        header=header(store, frame), name=names, position=values, velocity=-values,
        effort=np.zeros(0),
    )  # fmt: skip
    ours = {
        'header': {'stamp': 3_000_000_025, 'frame_id': frame}, 'name': names, 'position': values,
        'velocity': (-values).tolist(),
    }  # fmt: skip
    expected = bytes(store.serialize_cdr(theirs, 'sensor_msgs/msg/JointState'))
    assert encoder('sensor_msgs/JointState')(ours) == expected


def test_a_marker_in_bytes_and_back():
    """Every kind of field there is: numbers of all sizes, arrays of messages, nested messages."""
    store = get_typestore(Stores.ROS2_KILTED)
    points = np.arange(6.0).reshape(2, 3)
    marker = {
        'header': {'stamp': 1, 'frame_id': 'odom'}, 'ns': 'abc', 'id': -7, 'type': 11, 'action': 2,
        'pose': [1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.4], 'scale': (4.0, 5.0, 6.0),
        'color': (0.25, 0.5, 0.75, 1.0), 'lifetime': 2_000_000_003, 'frame_locked': True,
        'points': points, 'colors': [[0.0, 0.25, 0.5, 1.0]], 'text': 'ä', 'mesh_resource': 'm',
        'mesh_file': {'filename': 'f', 'data': [1, 2, 255]}, 'mesh_use_embedded_materials': True,
    }  # fmt: skip
    raw = encoder('visualization_msgs/MarkerArray')({'markers': [marker, marker]})
    read = store.deserialize_cdr(raw, 'visualization_msgs/msg/MarkerArray').markers[1]
    assert (read.ns, read.id, read.type, read.action) == ('abc', -7, 11, 2)
    o, p = read.pose.orientation, read.pose.position
    assert [p.x, p.y, p.z, o.x, o.y, o.z, o.w] == marker['pose']
    assert [[q.x, q.y, q.z] for q in read.points] == points.tolist()
    assert (read.lifetime.sec, read.lifetime.nanosec) == (2, 3)
    assert (read.color.r, read.colors[0].b, read.frame_locked) == (0.25, 0.5, True)
    assert read.mesh_file.data.tolist() == [1, 2, 255]
    assert (read.text, read.mesh_resource, read.mesh_use_embedded_materials) == ('ä', 'm', True)
    assert (
        store.serialize_cdr(
            store.deserialize_cdr(raw, 'visualization_msgs/msg/MarkerArray'),
            'visualization_msgs/msg/MarkerArray',
        )
        == raw
    )


@pytest.mark.parametrize('frame', ['x' * k for k in range(8)])
def test_constants_have_the_bytes_of_their_values(frame):
    """Wherever they begin: what is before them has every length."""
    encode, layout = encoder('diagnostic_msgs/DiagnosticArray'), [{'key': 'a', 'value': 'bc'}]
    kept = Constant(layout)
    for name in ('', 'abc', frame):
        status = [{'level': 1, 'name': name, 'values': layout}]
        constant = [{'level': 1, 'name': name, 'values': kept}]
        about = {'stamp': 1, 'frame_id': frame}
        assert encode({'header': about, 'status': constant}) == encode(
            {'header': about, 'status': status}
        )


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match='6 numbers, expected 7'):
        encoder('geometry_msgs/Pose')(np.zeros(6))
