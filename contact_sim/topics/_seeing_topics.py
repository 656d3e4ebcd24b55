"""Topics of sensors that see: height scan, lidar and depth camera, made from parameters.

They are published where `publish_rate` says so and somebody listens; nothing is computed before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_sim.collision._terrain import Terrain
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, Settings, parameter
from contact_sim.robot._model import RobotModel
from contact_sim.sensors import (
    DelayedSensor,
    DepthCamera,
    HeightScan,
    HeightScanValues,
    Lidar,
    RangeSensing,
    RangeValues,
)
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._seeing_sensors import OPTICAL_AXES
from contact_sim.simulation._state import LONGEST_RAY
from contact_sim.terrain import ScanGrid
from contact_sim.topics._messages import Message, Output, Sink, Step, header, transform
from contact_sim.topics._table import (
    CAMERA_INFO,
    DEPTH_IMAGE,
    HEIGHT_SCAN,
    LASER_SCAN,
    POINTS,
    Topic,
)

OPTICAL = '_optical'
"""After the name of a frame: the same with z forward, x right and y down (REP 103)."""


def _frame(what: str) -> Any:
    return parameter('', '', f'frame of {what}, any of the robot; empty: the base')


def _angle(default: float, meaning: str) -> Any:
    return parameter(default, 'rad', meaning, at_least=-2.0 * np.pi, at_most=2.0 * np.pi)


def _distance(default: float, meaning: str) -> Any:
    return parameter(default, 'm', meaning, at_least=0.0, at_most=LONGEST_RAY)


@dataclass(frozen=True)
class HeightScanParameters(Parameters):
    """The height scan of the ground around the robot."""

    frame_id: str = _frame('the grid, level and turned with it about the vertical')
    x_size: float = _distance(1.6, 'extent of the grid along x')
    y_size: float = _distance(1.0, 'extent of the grid along y')
    resolution: float = _distance(0.1, 'distance of neighbouring points')
    fastest: str = parameter(
        'y', '', 'coordinate that runs from one point to the next', choices=('y', 'x')
    )


@dataclass(frozen=True)
class LidarParameters(Parameters):
    """The lidar: rings of rays about z of its frame, x forward."""

    frame_id: str = _frame('scan or points')
    rings: int = parameter(16, '', 'number of rings', at_least=1, at_most=1024)
    elevation_min: float = _angle(-0.2618, 'elevation of the first ring, of one ring the only one')
    elevation_max: float = _angle(0.2618, 'elevation of the last ring')
    columns: int = parameter(360, '', 'rays of a ring', at_least=1, at_most=100_000)
    azimuth_min: float = _angle(-np.pi, 'azimuth of the first ray')
    azimuth_max: float = _angle(np.pi, 'end of the azimuths; of a full turn it is left out')
    range_min: float = _distance(0.05, 'distance below which it sees nothing')
    range_max: float = _distance(30.0, 'distance beyond which it sees nothing')


@dataclass(frozen=True)
class DepthCameraParameters(Parameters):
    """The depth camera: x of its frame is forward, z up."""

    frame_id: str = _frame('the camera; images have the frame id of it with _optical behind')
    width: int = parameter(64, '', 'pixels of a row', at_least=1, at_most=4096)
    height: int = parameter(48, '', 'pixels of a column', at_least=1, at_most=4096)
    angle_of_view: float = parameter(
        1.518, 'rad', 'from the left to the right edge of the image', at_least=0.01, at_most=3.1
    )
    range_min: float = _distance(0.0, 'distance below which it sees nothing')
    range_max: float = _distance(10.0, 'distance beyond which it sees nothing')


SEEING_GROUPS: dict[str, type[Parameters]] = {
    'height_scan': HeightScanParameters,
    'lidar': LidarParameters,
    'depth_camera': DepthCameraParameters,
    'sensors.height_scan': RangeSensing,
    'sensors.lidar': RangeSensing,
    'sensors.depth_camera': RangeSensing,
}
"""Dotted prefix to the class of the parameters of these sensors."""


class SeeingSensors(NamedTuple):
    """The sensors of a robot that see."""

    height_scan: HeightScan
    lidar: Lidar
    depth_camera: DepthCamera


def seeing_sensors(
    robot: RobotModel,
    settings: Settings,
    terrain: Terrain,
    seed: int = 0,
    in_world: Callable[[str], str] = str,
) -> SeeingSensors:
    """Return the sensors that the settings describe.

    `robot` is all that is seen; `in_world` returns the name in it of a frame of the settings.

    Raises:
        UnknownName: a frame that the robot does not have.
        InvalidInput: sizes or angles that do not fit together.
    """
    scan, lidar, camera = (settings[name] for name in SeeingSensors._fields)
    errors = [settings[f'sensors.{name}'] for name in SeeingSensors._fields]
    frames = [in_world(part.frame_id) for part in (scan, lidar, camera)]
    grid = ScanGrid((scan.x_size, scan.y_size), scan.resolution, fastest=scan.fastest)
    return SeeingSensors(
        HeightScan(robot, terrain, frames[0], errors[0], seed, grid),
        Lidar(
            robot, terrain, frames[1], errors[1], seed,
            least=lidar.range_min, most=lidar.range_max, rings=lidar.rings, columns=lidar.columns,
            elevation=(lidar.elevation_min, lidar.elevation_max),
            azimuth=(lidar.azimuth_min, lidar.azimuth_max),
        ),
        DepthCamera(
            robot, terrain, frames[2], errors[2], seed,
            least=camera.range_min, most=camera.range_max, width=camera.width,
            height=camera.height, angle_of_view=camera.angle_of_view,
        ),
    )  # fmt: skip


class SeeingTopics:
    """Outputs of the sensors of a robot that see.

    Args:
        robot: all robots of the world, which their rays meet.
        ground: returns the present ground.
        settings: of all parameters.
        seed: which noise is drawn.
        sink: where the messages go.
        own: returns the topic of this robot.
        frame_of: returns the frame id of a frame of this robot; of '' that of its base.
        in_world: returns the name of a frame of this robot among those of all; of '' its base.

    Attributes:
        outputs: of all topics.
    """

    def __init__(
        self,
        robot: RobotModel,
        ground: Callable[[], Terrain],
        settings: Settings,
        seed: int,
        sink: Sink,
        own: Callable[[Topic], Topic],
        frame_of: Callable[[str], str],
        in_world: Callable[[str], str],
    ) -> None:
        self._robot, self._current, self._in_world = robot, ground, in_world
        self._frame_of, self._odom_frame = frame_of, settings[''].odom_frame
        self._in_force: list[Any] = []
        self._delayed: dict[str, DelayedSensor[Any]] = {}
        self._cannot: set[str] = set()
        self.configure(settings, seed)
        self.outputs = [
            Output(sink, [own(HEIGHT_SCAN)], self._messages('height_scan', self._height_scan)),
            Output(sink, [own(LASER_SCAN), own(POINTS)], self._messages('lidar', self._lidar)),
            Output(sink, [own(DEPTH_IMAGE), own(CAMERA_INFO)],
                   self._messages('depth_camera', self._image)),
        ]  # fmt: skip

    def configure(self, settings: Settings, seed: int) -> None:
        """Use other parameters from the next step on; a change drops delayed samples."""
        chosen = [settings[prefix] for prefix in SEEING_GROUPS] + [seed]
        rates = settings.get('publish_rate')
        self._has_camera = rates is not None and rates.depth > 0.0
        if chosen != self._in_force:
            self._in_force, self._settings, self._seed = chosen, settings, seed
            self._make()

    def _make(self) -> None:
        self._ground = self._current()
        self.sensors = seeing_sensors(
            self._robot, self._settings, self._ground, self._seed, self._in_world
        )
        self._delayed = {
            name: DelayedSensor(sensor) for name, sensor in self.sensors._asdict().items()
        }

    def observe(self, report: Report) -> None:
        """Take the samples of a step, published or not."""
        self._report = report
        if self._current() is not self._ground:
            self._make()
        for delayed in self._delayed.values():
            if delayed.sensor.remembers:
                delayed.observe(report)

    def optical_transforms(self, time: int) -> list[Message]:
        """Return the pose of the optical frame of the camera in its frame, if it publishes."""
        if not self._has_camera:
            return []
        frame = self._frame_of(self._settings['depth_camera'].frame_id)
        turn = pin.Quaternion(OPTICAL_AXES).coeffs()
        return [transform(time, frame, frame + OPTICAL, np.concatenate([np.zeros(3), turn]))]

    def _messages(
        self, name: str, content: Callable[[int, Any], list[Message]]
    ) -> Callable[[Step], list[Message]]:
        """Return the content of an output; a sensor that cannot see says so once."""

        def messages(step: Step) -> list[Message]:
            delayed = self._delayed[name]
            try:
                delayed.observe(self._report)
                values = delayed.measured()
            except InvalidInput as error:
                if name not in self._cannot:
                    self._cannot.add(name)
                    warnings.warn(f'{name} is not published: {error}', stacklevel=2)
                return []
            return content(step.stamp, values)

        return messages

    def _height_scan(self, time: int, values: HeightScanValues) -> list[Message]:
        columns = {**dict(zip('xyz', values.points.T, strict=True)), 'below': values.below}
        return [point_cloud(time, self._odom_frame, columns, (1, len(values.below)))]

    def _lidar(self, time: int, values: RangeValues) -> list[Message]:
        """Return the ring nearest to the x-y plane, and the points of all rings."""
        lidar, at = (
            self.sensors.lidar,
            header(time, self._frame_of(self._settings['lidar'].frame_id)),
        )
        azimuths = lidar.azimuths
        level = int(np.argmin(np.abs(values.directions[:, 0, 2])))
        scan = {
            'header': at,
            'angle_min': azimuths[0], 'angle_max': azimuths[-1],
            'angle_increment': float(azimuths[1] - azimuths[0]) if len(azimuths) > 1 else 0.0,
            'range_min': lidar.least, 'range_max': lidar.most, 'ranges': values.ranges[level],
        }  # fmt: skip
        shape = values.ranges.shape
        met = np.where(np.isfinite(values.ranges), values.ranges, np.nan)
        places = (met[..., None] * values.directions).reshape(-1, 3)
        ring = np.repeat(np.arange(shape[0]), shape[1])
        columns = {**dict(zip('xyz', places.T, strict=True)), 'ring': ring}
        return [scan, point_cloud(time, at['frame_id'], columns, shape)]

    def _image(self, time: int, values: RangeValues) -> list[Message]:
        camera = self.sensors.depth_camera
        depth = camera.depth(values).astype('<f4')
        height, width = depth.shape
        at = header(time, self._frame_of(self._settings['depth_camera'].frame_id) + OPTICAL)
        f, x, y = camera.focal_length, 0.5 * width, 0.5 * height
        image = {
            'header': at, 'height': height, 'width': width, 'encoding': '32FC1',
            'step': 4 * width, 'data': depth.ravel().view(np.uint8),
        }  # fmt: skip
        info = {
            'header': at, 'height': height, 'width': width, 'distortion_model': 'plumb_bob',
            'd': np.zeros(5), 'k': [f, 0.0, x - 0.5, 0.0, f, y - 0.5, 0.0, 0.0, 1.0],
            'r': np.eye(3), 'p': [f, 0.0, x - 0.5, 0.0, 0.0, f, y - 0.5, 0.0, 0.0, 0.0, 1.0, 0.0],
        }  # fmt: skip
        return [image, info]


FLOAT32, UINT16 = 7, 4
"""Numbers of sensor_msgs/PointField."""


def point_cloud(
    time: int, frame: str, columns: Mapping[str, Any], shape: tuple[int, ...]
) -> Message:
    """Return a PointCloud2 of columns by name (n,), in rows and columns of `shape`."""
    kinds = {name: '<u2' if name == 'ring' else '<f4' for name in columns}
    rows = np.zeros(shape[0] * shape[1], dtype=list(kinds.items()))
    for name, values in columns.items():
        rows[name] = values
    layout: Any = rows.dtype.fields
    fields = [
        {
            'name': name, 'offset': layout[name][1], 'count': 1,
            'datatype': UINT16 if name == 'ring' else FLOAT32,
        }
        for name in columns
    ]  # fmt: skip
    size = rows.dtype.itemsize
    return {
        'header': header(time, frame), 'height': shape[0], 'width': shape[1], 'fields': fields,
        'point_step': size, 'row_step': size * shape[1], 'data': rows.view(np.uint8),
        'is_dense': bool(np.isfinite(columns['z']).all()),
    }  # fmt: skip
