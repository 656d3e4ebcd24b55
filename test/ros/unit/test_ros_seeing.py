"""Height scan, lidar and depth camera as messages, from parameters; no network."""

import sys

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from sent import SentMessages
from test_ros_sensor_outputs import settings_of

from contact_sim import InvalidInput, Simulator, UnknownName, load_robot
from contact_sim.collision import Plane
from contact_sim.robot import joined, loose_ball
from contact_sim.sensors import DepthCamera, HeightScan, Lidar
from contact_sim.topics._messages import Step
from contact_sim.topics._robot_topics import check_sensors
from contact_sim.topics._world_topics import SimulationTopics

DUE = 'height_scan', 'lidar', 'depth'
TYPES = {2: 'i1', 4: '<u2', 7: '<f4', 8: '<f8'}


def cloud(message):
    """Return the columns of a PointCloud2 by name, shape (height, width)."""
    dtype = np.dtype({
        'names': [field.name for field in message.fields],
        'formats': [TYPES[field.datatype] for field in message.fields],
        'offsets': [field.offset for field in message.fields],
        'itemsize': message.point_step,
    })  # fmt: skip
    assert message.row_step == message.point_step * message.width
    assert len(message.data) == message.row_step * message.height
    rows = np.frombuffer(bytes(message.data), dtype)
    return rows.reshape(message.height, message.width)


def published(sim, steps=1, due=DUE, **values):
    sent = SentMessages()
    topics = SimulationTopics(sim, settings_of(**values), (), sent)
    for _ in range(steps):
        topics.publish(Step(sim.step(np.zeros(12)), due))
    return sent, topics


@pytest.fixture
def sim():
    return Simulator(load_robot('go1'), terrain='stairs')


def test_messages_have_the_values_of_the_sensors(sim):
    sent, _ = published(sim, **{
        'lidar.rings': 3, 'lidar.columns': 24, 'depth_camera.width': 8, 'depth_camera.height': 6,
        'height_scan.fastest': 'x', 'height_scan.frame_id': 'trunk',
    })  # fmt: skip
    report = sim.last_report
    (message,), scan = sent['height_scan'], HeightScan(sim.robot, sim.terrain, 'trunk')
    rows, true = cloud(message).ravel(), scan.truth(report)
    assert message.header.frame_id == 'odom'
    assert message.header.stamp.nanosec == 1_000_000
    by_x = np.arange(187).reshape(17, 11).T.ravel()
    np.testing.assert_allclose(rows['below'], true.below[by_x], rtol=1e-6)
    for k, name in enumerate('xyz'):
        np.testing.assert_allclose(rows[name], true.points[by_x, k], atol=1e-6)
    (message,) = sent['points']
    lidar = Lidar(sim.robot, sim.terrain, rings=3, columns=24, least=0.05,
                  elevation=(-0.2618, 0.2618))  # fmt: skip
    rows, true = cloud(message), lidar.truth(report)
    assert message.header.frame_id == 'base'
    assert rows.shape == (3, 24)
    seen = np.isfinite(true.ranges)
    assert 0.1 < seen.mean() < 1.0
    assert not message.is_dense
    np.testing.assert_array_equal(rows['ring'], np.repeat([[0], [1], [2]], 24, axis=1))
    assert np.isnan(rows['x'][~seen]).all()
    places = np.stack([rows[name] for name in 'xyz'], axis=-1)[seen]
    np.testing.assert_allclose(places, true.points, atol=1e-5)
    (image,), (info,) = sent['depth/image'], sent['depth/camera_info']
    camera = DepthCamera(sim.robot, sim.terrain, width=8, height=6, angle_of_view=1.518)
    depth = np.frombuffer(bytes(image.data), '<f4').reshape(6, 8)
    np.testing.assert_allclose(depth, camera.depth(camera.truth(report)), rtol=1e-6)
    assert (image.encoding, image.step, image.width, image.height) == ('32FC1', 32, 8, 6)
    assert image.header == info.header
    assert image.header.frame_id == 'base_optical'
    # the pixel in the middle of column 0 projects to u = 0
    place = np.append(camera.directions[0, 0] @ [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], 1.0)
    u, v, w = np.array(info.p).reshape(3, 4) @ place
    np.testing.assert_allclose([u / w, v / w], 0.0, atol=1e-9)


def test_a_lidar_of_one_ring_is_a_laser_scan(sim):
    sent, _ = published(sim, **{
        'lidar.rings': 1, 'lidar.columns': 91, 'lidar.azimuth_min': -1.5, 'lidar.azimuth_max': 1.5,
        'lidar.elevation_min': -0.3,
    })  # fmt: skip
    assert len(sent['points']) == 1
    (message,) = sent['scan']
    lidar = Lidar(sim.robot, sim.terrain, rings=1, columns=91, azimuth=(-1.5, 1.5), least=0.05,
                  elevation=(-0.3, 0.0))  # fmt: skip
    np.testing.assert_allclose(message.ranges, lidar.truth(sim.last_report).ranges[0], rtol=1e-6)
    angles = message.angle_min + message.angle_increment * np.arange(len(message.ranges))
    np.testing.assert_allclose(angles, lidar.azimuths, atol=1e-6)
    assert message.angle_max == pytest.approx(angles[-1])
    assert (message.range_min, message.range_max) == pytest.approx((0.05, 30.0))


def test_a_lidar_sees_the_other_robots_of_the_world():
    robots = {'dog': load_robot('go1'), 'ball': loose_ball(0.5, 1.0)}
    sim = Simulator(joined(robots, {'ball': (2.0, 0.0)}))
    sent, _ = published(sim, **{'lidar.rings': 1, 'lidar.columns': 3, 'lidar.azimuth_min': -0.1,
                                'lidar.azimuth_max': 0.1, 'lidar.elevation_min': 0.0})  # fmt: skip
    (message,) = sent['dog/scan']
    assert message.header.frame_id == 'dog/base'
    eye, centre = sim.q[:3], sim.q[sim.robot.of('ball')[0]][:3]
    across = np.linalg.norm(np.cross(centre - eye, [1.0, 0.0, 0.0]))
    true = (centre - eye)[0] - np.sqrt(0.25 - across**2)
    assert message.ranges[1] == pytest.approx(true, abs=2e-3)  # the base has turned a little


def test_errors_latency_and_another_ground(sim):
    values = {'sensors.height_scan.latency': 3, 'sensors.height_scan.noise': 0.01}
    sent, topics = published(sim, 6, ('height_scan',), **values)
    below = [cloud(message).ravel()['below'] for message in sent['height_scan']]
    np.testing.assert_array_equal(below[0], below[3])  # the oldest, until it is old enough
    assert np.std(below[5] - below[3]) == pytest.approx(0.01 * np.sqrt(2), rel=0.3)
    sim.reset(terrain=Plane(offset=-5.0))
    topics.publish(Step(sim.step(np.zeros(12)), ('height_scan',)))
    assert cloud(sent['height_scan'][-1]).ravel()['z'].max() < -4.9


def test_the_optical_frame_is_known_where_the_camera_publishes(sim):
    def static(values):
        sent, topics = published(sim, 0, **values)
        topics.publish_static_transforms(0)
        return {one.child_frame_id: one for one in sent['/tf_static'][-1].transforms}, topics, sent

    frames, topics, sent = static({})
    assert 'base_optical' not in frames
    topics.configure(settings_of(**{'publish_rate.depth': 10.0}))
    assert 'base_optical' in {one.child_frame_id for one in sent['/tf_static'][-1].transforms}
    turn = static({'publish_rate.depth': 10.0})[0]['base_optical'].transform.rotation
    turn = np.array([turn.x, turn.y, turn.z, turn.w])
    np.testing.assert_allclose(turn * np.sign(turn[3]), [-0.5, 0.5, -0.5, 0.5])


def test_a_sensor_that_cannot_see_says_so_once(sim, monkeypatch):
    monkeypatch.setitem(sys.modules, 'embreex', None)
    with pytest.warns(UserWarning, match=r'lidar is not published.*contact_sim\[rays\]') as said:
        sent, _ = published(sim, 3, ('lidar', 'height_scan'))
    assert len(said) == 1
    assert not sent['points']
    assert len(sent['height_scan']) == 3


@pytest.mark.parametrize(
    ('values', 'error', 'words'),
    [
        ({'lidar.frame_id': 'nose'}, UnknownName, 'nose'),
        ({'depth_camera.frame_id': 'nose'}, UnknownName, 'nose'),
        ({'height_scan.resolution': 0.0}, InvalidInput, 'resolution'),
        ({'lidar.elevation_min': 1.0}, InvalidInput, 'elevation'),
        ({'lidar.range_min': 50.0}, InvalidInput, 'least'),
    ],
)
def test_parameters_that_do_not_fit_are_refused(sim, values, error, words):
    with pytest.raises(error, match=words):
        check_sensors(sim.robot, settings_of(**values))
