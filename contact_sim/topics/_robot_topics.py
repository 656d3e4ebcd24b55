"""Topics of one robot: sensors, ground truth, odometry, links, transforms, description."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.parameters import Settings
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart
from contact_sim.sensors import ContactValues, FootForces, ForceValues, Imu, ImuValues, JointValues
from contact_sim.sensors._robot_view import Report, RobotView
from contact_sim.sensors._sensor import SMALLEST_VARIANCE
from contact_sim.simulation._report import StepReport, touching_links
from contact_sim.topics._cdr import Constant
from contact_sim.topics._sensor_set import (
    SETTINGS,
    SensorSet,
    base_frame_id,
    exact,
    frame_id,
    imu_frame_id,
    wrench_axes,
    wrench_frame_ids,
)
from contact_sim.topics._sinks import Message, Output, Sink, Step, header, labelled, transform
from contact_sim.topics._table import (
    DESCRIPTION,
    LINK_CONTACTS,
    LINK_WRENCH,
    ODOM,
    SENSORS,
    Topic,
    ground_truth,
    own_topic,
    wrench_topic,
)

AT_THE_ORIGIN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
"""Pose of a fixed base."""
EXACT_COVARIANCE = SMALLEST_VARIANCE * np.eye(6).ravel()
"""Covariance of exact poses and twists; 0 would mean 'unknown'. Shape (36,)."""
NO_ORIENTATION = np.array([-1.0, 0.0, 0.0])
"""Diagonal of the covariance of an orientation that a sensor does not measure (REP 145)."""


class RobotTopics:
    """Everything that is published of one robot, alone or one of several.

    Args:
        part: which robot.
        report: of the step before the first one that is published.
        settings: frames and sensors.
        sink: where the messages go.
        node: name of the node.
        truth: publish the exact values beside what the sensors measure.

    Attributes:
        odometry: output of odom.
        sensors: outputs of the sensors and of the links with body contacts.
    """

    def __init__(
        self,
        part: RobotPart,
        report: StepReport,
        settings: Settings,
        sink: Sink,
        node: str,
        truth: bool = True,
    ) -> None:
        self.part, self.report = part, RobotView(report, part)
        self._node, self._prefix = node, frame_id(part, settings, '')
        self._odom_frame, self._base = settings[''].odom_frame, base_frame_id(part, settings)
        self._messages = SensorMessages(part, settings)
        self._in_force: list[Any] = []
        self.configure(settings)
        self.odometry = Output(sink, [self._own(ODOM)], self._odometry)
        measured = [self._sensor(sink, kind) for kind in SENSORS]
        true = [self._sensor(sink, kind, true=True) for kind in SENSORS if truth]
        pairs = zip_longest(measured, true)  # a sensor and its exact values beside each other
        self.sensors = [output for pair in pairs for output in pair if output is not None]
        self.sensors += self._links(sink, settings)
        self._tree = LinkTree(part.robot)

    def configure(self, settings: Settings) -> None:
        """Use other sensor errors from the next step on; a change drops delayed samples."""
        chosen = [settings[prefix] for prefix in SETTINGS] + [settings[''].seed]
        if chosen != self._in_force:
            self._in_force = chosen
            self._set = SensorSet(self.part, settings)
            imu = self._set.sensors.imu
            self._covariances = {False: imu_covariances(imu), True: imu_covariances(exact(imu))}
            self._set.observe(self.report)

    def observe(self, report: StepReport) -> None:
        """Sample the sensors after a step of all robots, published or not."""
        self.report = RobotView(report, self.part)
        self._set.observe(self.report)

    def publish_description(self, sink: Sink) -> None:
        """Publish robot_description."""
        channel = sink.channel(self._own(DESCRIPTION))
        if channel is not None:
            channel.publish({'data': self.part.robot.description})

    def base_transform(self, time: int) -> Message:
        """Return the pose of the base as a transform."""
        return transform(time, self._odom_frame, self._base, self._base_pose())

    def link_transforms(self, time: int) -> list[Message]:
        """Return the poses of moving links in their parents, as robot_state_publisher does."""
        poses = self._tree.moving_transforms(self.report.q)
        return self._transforms(time, self._tree.moving, poses)

    def fixed_transforms(self, time: int) -> list[Message]:
        """Return the poses of fixed links in their parents."""
        return self._transforms(time, self._tree.fixed, self._tree.fixed_transforms())

    def _transforms(self, time: int, links: list[tuple[str, str]], poses: Array) -> list[Message]:
        return [
            transform(time, self._prefix + parent, self._prefix + link, pose)
            for (parent, link), pose in zip(links, poses, strict=True)
        ]

    def _own(self, topic: Topic, name: str = '') -> Topic:
        """Return a topic of this robot; `name` fills in its pattern."""
        return topic._replace(name=own_topic(self.part.name, name or topic.name, self._node))

    def _base_pose(self) -> Array:
        return self.report.q[:7] if self.part.robot.floating_base else AT_THE_ORIGIN

    def _odometry(self, step: Step) -> list[Message]:
        """Return pose and twist of the base at the end of the step.

        The twist is in body axes, as the velocity of Pinocchio.
        """
        floating = self.part.robot.floating_base
        twist = self.report.v[:6] if floating else np.zeros(6)
        return [{
            'header': header(step.stamp, self._odom_frame),
            'child_frame_id': self._base,
            'pose': np.concatenate([self._base_pose(), EXACT_COVARIANCE]),
            'twist': np.concatenate([twist, EXACT_COVARIANCE]),
        }]  # fmt: skip

    def _sensor(self, sink: Sink, kind: str, true: bool = False) -> Output:
        """Return the output of a sensor, a field of RobotSensors, measured or true."""
        names = [SENSORS[kind].name]
        if kind == 'forces':
            names = [wrench_topic(foot.name) for foot in self.part.robot.feet]
        topics = [SENSORS[kind]._replace(name=name) for name in names]
        topics = [self._own(ground_truth(topic) if true else topic) for topic in topics]
        fill: Callable[..., list[Message]] = getattr(self._messages, kind)

        def content(step: Step) -> list[Message]:
            values = (self._set.true if true else self._set.measured)(kind, self.report)
            if kind == 'imu':
                return fill(step.stamp, values, self._covariances[true])
            return fill(step.stamp, values)

        return Output(sink, topics, content)

    def _links(self, sink: Sink, settings: Settings) -> list[Output]:
        """Return the outputs of links with body contacts: exact wrenches, and who carries load."""
        part, links = self.part, touching_links(self.part.robot)
        if not links:
            return []
        forces = FootForces(part.robot, wrench_axes(settings), parts=links)
        frames, flags = wrench_frame_ids(part, settings, links), LinkFlags(part.robot)
        names = [link.name for link in links]
        topics = [self._own(LINK_WRENCH, wrench_topic(name)) for name in names]
        return [
            Output(sink, topics, lambda step: wrenches(
                step.stamp, frames, forces.truth(self.report)
            )),
            Output(sink, [self._own(LINK_CONTACTS)], lambda _: [
                labelled(names, flags.of(self.report))
            ]),
        ]  # fmt: skip


# --- Messages of the sensors.


class SensorMessages:
    """Makes messages from the values of sensors, one function for each field of RobotSensors.

    Args:
        part: robot that has the sensors.
        settings: frames.
    """

    def __init__(self, part: RobotPart, settings: Settings) -> None:
        robot = part.robot
        self._imu_frame = imu_frame_id(part, settings)
        self._joints = Constant([*robot.joint_names, *robot.passive_joint_names])
        self._feet = tuple(foot.name for foot in robot.feet)
        self._wrench_frames = wrench_frame_ids(part, settings, robot.feet)

    def joints(self, time: int, values: JointValues) -> list[Message]:
        """Return joint_states: actuated joints in Pinocchio order, then passive ones."""
        return [{'header': header(time), 'name': self._joints, **vars(values)}]

    def imu(self, time: int, values: ImuValues, covariances: dict[str, Constant]) -> list[Message]:
        """Return imu/data: specific force (+g at rest), angular velocity and orientation."""
        return [{
            'header': header(time, self._imu_frame),
            'orientation': values.orientation,
            'orientation_covariance': covariances['orientation'],
            'angular_velocity': values.angular_velocity,
            'angular_velocity_covariance': covariances['angular_velocity'],
            'linear_acceleration': values.specific_force,
            'linear_acceleration_covariance': covariances['specific_force'],
        }]  # fmt: skip

    def forces(self, time: int, values: ForceValues) -> list[Message]:
        """Return contacts/<foot>/wrench in the order of `robot.feet`, zeros in swing."""
        return wrenches(time, self._wrench_frames, values)

    def contacts(self, _: int, values: ContactValues) -> list[Message]:
        """Return foot_contacts: 1 where a foot is measured to stand."""
        return [labelled(self._feet, values.flag)]


def wrenches(time: int, frames: Iterable[str], values: ForceValues) -> list[Message]:
    """Return the WrenchStamped of feet, or of links that are used like feet.

    Force and torque are about the origin of the frame of the message and in its axes.
    """
    rows = np.hstack([values.force, values.torque])
    return [
        {'header': header(time, frame), 'wrench': row}
        for frame, row in zip(frames, rows, strict=True)
    ]


def imu_covariances(imu: Imu) -> dict[str, Constant]:
    """Return the covariances that an IMU states, by the names of its values, each (9,).

    They are never all 0, which would mean 'unknown' (REP 145).
    """
    variance = {'orientation': NO_ORIENTATION, **imu.variance}
    return {name: Constant(np.diag(diagonal).ravel()) for name, diagonal in variance.items()}


class LinkFlags:
    """1 where a link with body contacts carries load, in the order of `touching_links`."""

    def __init__(self, robot: RobotModel) -> None:
        self._links, self._candidates = touching_links(robot), len(robot.candidates)

    def of(self, report: Report) -> list[int]:
        """Return the flags of a step."""
        force = report.contacts.normal_force.reshape(self._candidates, -1)
        return [int((force[list(link.points)] > 0.0).any()) for link in self._links]


# --- Transforms from link to link, as robot_state_publisher makes them of joint states.


class LinkTree:
    """The links of a robot and their parents; the root link is in none of the lists.

    Args:
        robot: without a description, the frames of its bodies are the links.

    Attributes:
        moving: (parent, link) of every link that a joint moves against its parent.
        fixed: the same of those that do not move.
    """

    def __init__(self, robot: RobotModel) -> None:
        self._model = model = robot.pinocchio_model
        self._data = model.createData()
        self.moving: list[tuple[str, str]] = []
        self.fixed: list[tuple[str, str]] = []
        self._moving: list[tuple[int, int]] = []
        self._fixed: list[tuple[int, int]] = []
        for child, frame in enumerate(model.frames):
            parent = _link_above(model, child)
            if frame.type != pin.FrameType.BODY or parent is None:
                continue
            moves = frame.parentJoint != model.frames[parent].parentJoint
            names, pairs = (self.moving, self._moving) if moves else (self.fixed, self._fixed)
            names.append((model.frames[parent].name, frame.name))
            pairs.append((parent, child))

    def moving_transforms(self, q: Array) -> Array:
        """Return the pose of each of `moving` in its parent at q (nq,).

        x, y, z [m], then qx, qy, qz, qw, shape (n, 7).
        """
        pin.framesForwardKinematics(self._model, self._data, q)
        placed = self._data.oMf
        return _poses([placed[a].actInv(placed[b]) for a, b in self._moving])

    def fixed_transforms(self) -> Array:
        """Return the pose of each of `fixed` in its parent, as `moving_transforms`."""
        frames = self._model.frames
        return _poses([frames[a].placement.actInv(frames[b].placement) for a, b in self._fixed])


def _link_above(model: pin.Model, frame: int) -> int | None:
    """Return the parent link of a frame, None for the world."""
    above = model.frames[frame].parentFrame
    while above and model.frames[above].type != pin.FrameType.BODY:
        above = model.frames[above].parentFrame
    return int(above) or None


def _poses(placements: list[pin.SE3]) -> Array:
    return np.array([pin.SE3ToXYZQUAT(pose) for pose in placements]).reshape(-1, 7)
