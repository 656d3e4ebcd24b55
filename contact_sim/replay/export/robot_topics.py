"""What is written of one robot: its sensors, its odometry, its links, its description."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.messages.frames import (
    base_frame_id,
    frame_id,
    imu_frame_id,
    wrench_axes,
    wrench_frame_ids,
)
from contact_sim.messages.told import (
    EXACT_COVARIANCE,
    LinkFlags,
    SensorLines,
    exact,
    imu_covariances,
)
from contact_sim.messages.topics import (
    DESCRIPTION,
    GROUND_TRUTH,
    NODE,
    OF_LINKS,
    OF_ROBOT,
    own_topic,
    wrench_topic,
)
from contact_sim.parameters import Settings
from contact_sim.replay.export.cdr import Constant
from contact_sim.replay.export.links import LinkTree
from contact_sim.replay.export.sink import Sink, Topic
from contact_sim.robot.parts import RobotPart
from contact_sim.sensors import ContactValues, FootForces, ForceValues, ImuValues, JointValues
from contact_sim.sensors.part_report import PartReport
from contact_sim.simulation.report import StepReport

Array = NDArray[np.float64]
Message = dict[str, Any]
AT_THE_ORIGIN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of a fixed base."""
WRENCH = 'contacts/<foot>/wrench'


def header(time: int, frame: str = '') -> Message:
    """Return a std_msgs/Header at simulated time [ns]."""
    return {'stamp': time, 'frame_id': frame}


def layout(labels: Collection[str]) -> Constant:
    """Return the layout of a MultiArray of one number for each label."""
    return Constant({'dim': [{'label': label, 'size': 1, 'stride': 1} for label in labels]})


class SensorTopics:
    """Sensors as messages, told or true.

    Args:
        part: whose sensors.
        settings: frames.
        prefix: before the topics.
        imu: what the IMU states about its errors, `messages.told.imu_covariances`.
    """

    def __init__(
        self, part: RobotPart, settings: Settings, prefix: str, imu: dict[str, Array]
    ) -> None:
        robot, feet = part.robot, part.robot.feet
        self._covariances = {name: Constant(value) for name, value in imu.items()}
        self._imu_frame = imu_frame_id(part, settings)
        self._joints = Constant([*robot.joint_names, *robot.passive_joint_names])
        self._layout = layout([foot.name for foot in feet])
        self._wrench_frames = wrench_frame_ids(part, settings, feet)
        types = {name.removeprefix(prefix): kind for name, kind in OF_ROBOT.items()}

        def topic(name: str, kind: str) -> Topic:
            return Topic(own_topic(part.name, f'{prefix}{name}', NODE), types[kind])

        imu_topic = 'imu' if prefix else 'imu/data'
        self._topics = {
            'joints': [topic('joint_states', 'joint_states')],
            'imu': [topic(imu_topic, imu_topic)],
            'forces': [topic(wrench_topic(foot.name), WRENCH) for foot in feet],
            'contacts': [topic('foot_contacts', 'foot_contacts')],
        }

        self._make: dict[str, Callable[[int, Any], list[Message]]] = {
            'joints': self._joint_state, 'imu': self._imu, 'forces': self._wrenches,
            'contacts': self._flags,
        }  # fmt: skip

    def write(self, sink: Sink, kind: str, time: int, values: Any) -> None:
        """Write the values of a sensor, a field of RobotSensors, at simulated time [ns]."""
        messages = self._make[kind](time, values)
        for topic, message in zip(self._topics[kind], messages, strict=True):
            sink.write(topic, time, message)

    def _joint_state(self, time: int, values: JointValues) -> list[Message]:
        return [{'header': header(time), 'name': self._joints, **vars(values)}]

    def _imu(self, time: int, values: ImuValues) -> list[Message]:
        said = self._covariances
        return [{
            'header': header(time, self._imu_frame),
            'orientation': values.orientation,
            'orientation_covariance': said['orientation'],
            'angular_velocity': values.angular_velocity,
            'angular_velocity_covariance': said['angular_velocity'],
            'linear_acceleration': values.specific_force,
            'linear_acceleration_covariance': said['specific_force'],
        }]  # fmt: skip

    def _wrenches(self, time: int, values: ForceValues) -> list[Message]:
        return wrenches(time, self._wrench_frames, values)

    def _flags(self, time: int, values: ContactValues) -> list[Message]:
        return [{'layout': self._layout, 'data': values.flag}]


def wrenches(time: int, frames: list[str], values: ForceValues) -> list[Message]:
    """Return the WrenchStamped of feet, or of links that are used like feet."""
    rows = np.hstack([values.force, values.torque])
    return [
        {'header': header(time, frame), 'wrench': row}
        for frame, row in zip(frames, rows, strict=True)
    ]


class RobotTopics:
    """Everything that is written of a robot that is alone or one of several.

    Args:
        part: which robot.
        report: of the step before the first one that is written.
        settings: frames and sensors.
        ground_truth: write what is true beside what sensors tell.
    """

    def __init__(
        self, part: RobotPart, report: StepReport, settings: Settings, ground_truth: bool
    ) -> None:
        self._part, self._report = part, PartReport(report, part)
        self._lines = SensorLines(part, settings)
        imu = self._lines.sensors.imu
        self._told = SensorTopics(part, settings, '', imu_covariances(imu))
        self._true = (
            SensorTopics(part, settings, GROUND_TRUTH, imu_covariances(exact(imu)))
            if ground_truth
            else None
        )
        self._odom_frame, self._base = settings[''].odom_frame, base_frame_id(part, settings)
        self._odom = Topic(own_topic(part.name, 'odom', NODE), OF_ROBOT['odom'])
        self._tree = LinkTree(part.robot)
        self._prefix = frame_id(part, settings, '')
        self._set_links(settings)
        self._lines.observe(self._report)

    def _set_links(self, settings: Settings) -> None:
        part = self._part
        self._flags = LinkFlags(part.robot)
        links = self._flags.links
        self._link_layout = layout([link.name for link in links])
        self._link_forces = FootForces(part.robot, wrench_axes(settings), parts=links)
        self._link_frames = wrench_frame_ids(part, settings, links)
        kind = OF_LINKS['link_contacts']
        self._link_contacts = Topic(own_topic(part.name, 'link_contacts', NODE), kind)
        self._link_wrenches = [
            Topic(own_topic(part.name, wrench_topic(link.name), NODE), OF_ROBOT[WRENCH])
            for link in links
        ]

    def observe(self, report: StepReport) -> None:
        """Take the samples of a step of all robots, written or not."""
        self._report = PartReport(report, self._part)
        self._lines.observe(self._report)

    def write_description(self, sink: Sink, time: int) -> None:
        """Write robot_description."""
        (name, kind), *_ = DESCRIPTION.items()
        topic = Topic(own_topic(self._part.name, name, NODE), kind, kept=True)
        sink.write(topic, time, {'data': self._part.robot.description})

    def fixed_transforms(self, time: int) -> list[Message]:
        """Return what /tf_static says about the links."""
        return self._transforms(time, self._tree.fixed, self._tree.fixed_transforms())

    def link_transforms(self, time: int) -> list[Message]:
        """Return what /tf says about the links after the step that was observed last."""
        poses = self._tree.moving_transforms(self._report.q)
        return self._transforms(time, self._tree.moving, poses)

    def _transforms(self, time: int, links: list[tuple[str, str]], poses: Array) -> list[Message]:
        return [
            transform(time, self._prefix + parent, self._prefix + link, pose)
            for (parent, link), pose in zip(links, poses, strict=True)
        ]

    def base_transform(self, time: int) -> Message:
        """Return the pose of the base as a transform."""
        return transform(time, self._odom_frame, self._base, self._base_pose())

    def _base_pose(self) -> Array:
        return self._report.q[:7] if self._part.robot.floating_base else AT_THE_ORIGIN

    def write_odometry(self, sink: Sink, time: int) -> None:
        """Write odom, after the step that was observed last."""
        floating = self._part.robot.floating_base
        twist = self._report.v[:6] if floating else np.zeros(6)
        message = {
            'header': header(time, self._odom_frame),
            'child_frame_id': self._base,
            'pose': np.concatenate([self._base_pose(), EXACT_COVARIANCE]),
            'twist': np.concatenate([twist, EXACT_COVARIANCE]),
        }
        sink.write(self._odom, time, message)

    def write(self, sink: Sink, due: Collection[str], time: int) -> None:
        """Write the sensors that are due, named as in `publish_rate`."""
        if 'joint_states' in due:
            self._write_sensor(sink, 'joints', time)
        if 'imu' in due:
            self._write_sensor(sink, 'imu', time)
        if 'wrenches' in due:
            self._write_sensor(sink, 'forces', time)
            self._write_sensor(sink, 'contacts', time)
            self._write_links(sink, time)

    def _write_sensor(self, sink: Sink, kind: str, time: int) -> None:
        report = self._report
        self._told.write(sink, kind, time, self._lines.told(kind, report))
        if self._true is not None:
            self._true.write(sink, kind, time, self._lines.true(kind, report))

    def _write_links(self, sink: Sink, time: int) -> None:
        if not self._link_wrenches:
            return
        messages = wrenches(time, self._link_frames, self._link_forces.truth(self._report))
        for topic, message in zip(self._link_wrenches, messages, strict=True):
            sink.write(topic, time, message)
        flags = self._flags.of(self._report)
        sink.write(self._link_contacts, time, {'layout': self._link_layout, 'data': flags})


def transform(time: int, parent: str, child: str, pose: Array) -> Message:
    """Return a TransformStamped of a pose x y z, qx qy qz qw, (7,)."""
    return {'header': header(time, parent), 'child_frame_id': child, 'transform': pose}
