"""Sensors that see: height scan of the ground, ranges of a lidar, and depth images.

The height scan needs only the ground. Ranges and depths are cast by `RayScene` (_ray_scene.py).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Indices
from contact_sim._validation import checked, count, number_within, pair, positive
from contact_sim.collision._terrain import TerrainLike, as_terrain
from contact_sim.errors import InvalidInput, of_type, one_line
from contact_sim.parameters import Parameters, parameter
from contact_sim.robot._model import RobotModel
from contact_sim.sensors._ray_scene import RayScene, checked_links
from contact_sim.sensors._robot_view import Report
from contact_sim.sensors._sensor import (
    LARGEST,
    Frames,
    Sensor,
    Stream,
    Values,
    latency,
    resolution,
    sensor_frame,
    step_number,
    variance,
    with_errors,
)
from contact_sim.simulation._state import LONGEST_RAY
from contact_sim.terrain import ScanGrid

MOST_RAYS = 10_000_000
OPTICAL_AXES = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""From optical axes (x right, y down, z forward) into those of a frame with x forward, z up."""


@dataclass(frozen=True)
class RangeSensing(Parameters):
    """Errors of distances that are measured, and how far they are seen."""

    noise: float = parameter(
        0.0, 'm', 'standard deviation of white noise of a distance; 0: exact', at_least=0.0,
        at_most=LARGEST, live=True,
    )  # fmt: skip
    resolution: float = resolution('m', 'a distance')
    dropout: float = parameter(
        0.0, '-', 'probability that a ray returns nothing', at_least=0.0, at_most=1.0, live=True
    )
    latency: int = latency('a sample')


@dataclass(frozen=True, eq=False)
class _SeeingSensor(Sensor[Values]):
    """A sensor on a frame of a robot that sees the ground."""

    robot: RobotModel
    terrain: TerrainLike
    """The ground, as `Simulator` takes it."""
    frame: str = ''
    """Name of the frame; '' is the root body itself."""
    sensing: RangeSensing = RangeSensing()
    seed: int = 0
    """Which noise is drawn, at least 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, 'terrain', as_terrain(self.terrain))
        _ = self._frames  # refuses a frame that does not exist

    @cached_property
    def _frames(self) -> Frames:
        return Frames(self.robot, [sensor_frame(self.robot, self.frame)])

    @cached_property
    def _streams(self) -> tuple[Stream, Stream]:
        name = f'{type(self).__name__}/{self.frame or self.robot.base_frame}'
        return Stream(self.seed, f'{name}/noise'), Stream(self.seed, f'{name}/dropout')

    def _measured(self, truth: Array, step: int) -> Array:
        """Return distances with noise, rounded; rays that drop out return inf, as if they miss."""
        (of_noise, of_dropout), sensing = self._streams, self.sensing
        values = with_errors(truth, step, of_noise, sensing.noise, sensing.resolution)
        if sensing.dropout > 0.0:
            lost = of_dropout.uniform(step, values.shape) < sensing.dropout
            values = np.where(lost, np.inf, values)
        return values


# --- Height scan

DEFAULT_GRID = ScanGrid()


@dataclass(frozen=True, eq=False)
class HeightScanValues:
    """Values of a height scan."""

    points: Array
    """Points in world [m], shape (n, 3), on the ground as it is; z is NaN where there is none."""
    below: Array
    """Height of the frame minus that of the ground [m], shape (n,); inf where there is none."""

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class HeightScan(_SeeingSensor[HeightScanValues]):
    """How far the ground is below a frame at the points of a grid around it.

    The grid is level and turns with the frame about the vertical, as in legged_gym and Isaac Lab.
    What counts is the highest ground at a point; the robot is not seen.

    Raises:
        UnknownName: a frame that the robot does not have.
    """

    grid: ScanGrid = DEFAULT_GRID

    def __post_init__(self) -> None:
        super().__post_init__()
        of_type('HeightScan.grid', self.grid, ScanGrid)

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variance of `below`, (n,)."""
        sensing, n = self.sensing, len(self.grid)
        return {'below': variance((n,), sensing.noise, sensing.resolution)}

    @checked
    def truth(self, report: Report) -> HeightScanValues:
        """Return the true values at the end of a step."""
        (placement,) = self._frames.placements(report.q)
        heading = math.atan2(placement.rotation[1, 0], placement.rotation[0, 0])
        place = placement.translation[None]
        below = self.grid.below(as_terrain(self.terrain), place, [heading])[0]
        points = self.grid.around(place, [heading])[0]
        with np.errstate(invalid='ignore'):
            height = np.where(np.isinf(below), np.nan, place[0, 2] - below)
        return HeightScanValues(np.column_stack([points, height]), below)

    def measure(self, sample: Report) -> HeightScanValues:
        """Return the measured values of a step."""
        true = self.truth(sample)
        below = self._measured(true.below, step_number(sample))
        return HeightScanValues(true.points, below)

    __repr__ = one_line


# --- Rays of a lidar and of a camera


def _check_number(kind: str, rays: int) -> None:
    if rays > MOST_RAYS:
        raise InvalidInput(f'{kind}: {rays} rays, expected at most {MOST_RAYS}')


@dataclass(frozen=True, eq=False)
class RangeValues:
    """Distances along the rays of a sensor."""

    ranges: Array
    """[m], shape of the sensor's rays: inf beyond its range, −inf nearer than it sees."""
    directions: Array
    """Unit vectors in the axes of the frame, that shape and 3."""
    met: Indices
    """Index of what each ray met in `names`, -1 for nothing; never with errors."""
    names: tuple[str, ...]
    """'ground', then links."""

    @property
    def points(self) -> Array:
        """Where rays met something, in the axes of the frame [m], shape (n, 3)."""
        seen = np.isfinite(self.ranges)
        return np.asarray(self.ranges[seen, None] * self.directions[seen])

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class _RaySensor(_SeeingSensor[RangeValues]):
    """Rays from a frame of the robot, and what they meet."""

    hidden: tuple[str, ...] | None = None
    """Links that are not seen; None: those that move with the frame, as its own housing."""
    least: float = 0.0
    """Distance below which it sees nothing [m]."""
    most: float = 30.0
    """Distance beyond which it sees nothing [m]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = type(self).__name__
        positive(f'{kind}.most', self.most, 'm')
        for name in ('least', 'most'):
            number_within(f'{kind}.{name}', getattr(self, name), LONGEST_RAY)
        if not 0.0 <= self.least < self.most:
            raise InvalidInput(
                f'{kind}: least = {self.least:g} m, most = {self.most:g} m: expected '
                '0 <= least < most'
            )
        checked_links(self.robot, self.hidden or ())

    @property
    @abstractmethod
    def directions(self) -> Array:
        """Unit vectors of the rays in the axes of the frame, shape (..., 3)."""

    @cached_property
    def _scene(self) -> RayScene:
        hidden, model = self.hidden, self.robot.pinocchio_model
        joint = sensor_frame(self.robot, self.frame).parentJoint
        if hidden is None:
            hidden = tuple(
                frame.name
                for frame in model.frames
                if frame.type == pin.FrameType.BODY and frame.parentJoint == joint
            )
        return RayScene(self.robot, self.terrain, hidden)

    @cached_property
    def variance(self) -> Mapping[str, Array]:
        """Variance of `ranges`."""
        sensing = self.sensing
        return {'ranges': variance(self.directions.shape[:-1], sensing.noise, sensing.resolution)}

    @checked
    def truth(self, report: Report) -> RangeValues:
        """Return the true values at the end of a step."""
        (placement,) = self._frames.placements(report.q)
        ways = self.directions.reshape(-1, 3) @ placement.rotation.T
        hits = self._scene.cast(report.q, placement.translation, ways, self.most)
        shape = self.directions.shape[:-1]
        return self._values(hits.distance.reshape(shape), hits.met.reshape(shape), hits.names)

    def _values(self, distance: Array, met: Any, names: tuple[str, ...]) -> RangeValues:
        near, far = distance < self.least, distance > self.most
        ranges = np.where(near, -np.inf, np.where(far, np.inf, distance))
        return RangeValues(ranges, self.directions, met, names)

    def measure(self, sample: Report) -> RangeValues:
        """Return the measured values of a step."""
        true = self.truth(sample)
        ranges = self._measured(true.ranges, step_number(sample))
        return self._values(ranges, true.met, true.names)


@dataclass(frozen=True, eq=False)
class Lidar(_RaySensor):
    """A lidar: rays in rings about the z axis of a frame, the x axis forward (REP 103).

    Raises:
        InvalidInput: no rays, angles that are not finite or in the wrong order.
        UnknownName: a frame or link that the robot does not have.
    """

    rings: int = 16
    """Number of rings; 1 is a scanner in one plane."""
    elevation: tuple[float, float] = (-math.radians(15.0), math.radians(15.0))
    """Of the first and the last ring over the x-y plane [rad]; of one ring it is the first."""
    columns: int = 360
    """Rays of a ring."""
    azimuth: tuple[float, float] = (-math.pi, math.pi)
    """Of the first ray, and the end [rad]; a full turn has its end left out."""

    def __post_init__(self) -> None:
        count('Lidar.rings', self.rings, MOST_RAYS)
        count('Lidar.columns', self.columns, MOST_RAYS)
        _check_number('Lidar', self.rings * self.columns)
        for name, most in (('elevation', 0.5 * math.pi), ('azimuth', 2.0 * math.pi)):
            low, high = pair(f'Lidar.{name}', getattr(self, name), 'rad')
            if not -most <= low <= high <= most or high - low > 2.0 * math.pi + 1e-9:
                raise InvalidInput(
                    f'Lidar.{name} = {getattr(self, name)} rad: expected from a smaller to a '
                    f'larger angle within {most:.3g}'
                )
        super().__post_init__()

    @cached_property
    def azimuths(self) -> Array:
        """Angles of the rays of a ring about z [rad], shape (columns,)."""
        low, high = self.azimuth
        whole_turn = high - low > 2.0 * math.pi - 1e-9
        return np.linspace(low, high, self.columns, endpoint=not whole_turn)

    @cached_property
    def directions(self) -> Array:
        """Unit vectors of the rays in the axes of the frame, shape (rings, columns, 3)."""
        across, up = np.meshgrid(self.azimuths, np.linspace(*self.elevation, self.rings))
        return np.stack(
            [np.cos(up) * np.cos(across), np.cos(up) * np.sin(across), np.sin(up)], axis=-1
        )

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class DepthCamera(_RaySensor):
    """A depth camera without distortion: z of a frame is forward, x right, y down (REP 103).

    Where a frame has x forward, `optical` turns it.

    Raises:
        InvalidInput: no pixels, an angle of view outside of (0, π).
        UnknownName: a frame or link that the robot does not have.
    """

    width: int = 64
    """Pixels of a row."""
    height: int = 48
    """Rows."""
    angle_of_view: float = math.radians(87.0)
    """From the left to the right edge of the image [rad]; pixels are squares."""
    optical: bool = True
    """Whether x of the frame is forward and z up, and is turned to what a camera has."""
    most: float = 10.0
    """Distance beyond which it sees nothing [m]."""

    def __post_init__(self) -> None:
        count('DepthCamera.width', self.width, MOST_RAYS)
        count('DepthCamera.height', self.height, MOST_RAYS)
        _check_number('DepthCamera', self.width * self.height)
        if not 0.0 < self.angle_of_view < math.pi:
            raise InvalidInput(
                f'DepthCamera.angle_of_view = {self.angle_of_view:g} rad: expected in (0, pi)'
            )
        super().__post_init__()

    @property
    def focal_length(self) -> float:
        """[pixels]."""
        return 0.5 * self.width / math.tan(0.5 * self.angle_of_view)

    @cached_property
    def _pixels(self) -> Array:
        """Directions of the middles of the pixels in optical axes, of depth 1, (h, w, 3)."""
        x = (np.arange(self.width) + 0.5 - 0.5 * self.width) / self.focal_length
        y = (np.arange(self.height) + 0.5 - 0.5 * self.height) / self.focal_length
        right, down = np.meshgrid(x, y)
        return np.stack([right, down, np.ones_like(right)], axis=-1)

    @cached_property
    def directions(self) -> Array:
        """Unit vectors of the rays in the axes of the frame, shape (height, width, 3)."""
        pixels = self._pixels
        if self.optical:
            pixels = pixels @ OPTICAL_AXES.T
        return np.asarray(pixels / np.linalg.norm(pixels, axis=-1, keepdims=True))

    def depth(self, values: RangeValues) -> Array:
        """Return the depth image of ranges [m], shape (height, width): along the optical axis."""
        ranges = of_type('values', values, RangeValues).ranges
        return np.asarray(ranges / np.linalg.norm(self._pixels, axis=-1))

    __repr__ = one_line
