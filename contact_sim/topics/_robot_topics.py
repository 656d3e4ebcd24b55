"""Topics of one robot: its sensors, made from parameters, ground truth, odometry, transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.collision._terrain import Plane, Terrain
from contact_sim.parameters import Parameters, Settings, declared_parameters, parameter
from contact_sim.robot._contact_points import Foot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.robot._trees import data_of
from contact_sim.sensors import (
    ContactFlags,
    ContactSensing,
    ContactValues,
    DelayedSensor,
    Encoders,
    EncoderSensing,
    FootForces,
    ForceSensing,
    ForceValues,
    Imu,
    ImuSensing,
    ImuValues,
    JointValues,
    NoiseParameters,
)
from contact_sim.sensors._robot_view import Report, RobotView
from contact_sim.sensors._sensor import EXACT, SMALLEST_VARIANCE
from contact_sim.simulation._report import StepReport
from contact_sim.topics._messages import (
    Channel,
    Constant,
    Message,
    Output,
    Sink,
    Step,
    encoder,
    flags,
    header,
    transform,
)
from contact_sim.topics._seeing_topics import SEEING_GROUPS, SeeingTopics, seeing_sensors
from contact_sim.topics._table import (
    DESCRIPTION,
    FOOT_CONTACTS_STAMPED,
    LINK_CONTACTS,
    LINK_WRENCH,
    ODOM,
    SENSORS,
    Topic,
    ground_truth,
    own_topic,
    wrench_topic,
)

# --- Parameters.

IMU_LINK = 'imu_link'
RECORDED_AS = 'node'
"""Name of the parameters without a prefix in a recording."""


@dataclass(frozen=True)
class FrameParameters(Parameters):
    """Names of frames, and the seed of the sensor noise."""

    base_frame: str = parameter('', '', 'frame id of the base; empty: the root link')
    base_link: str = parameter(
        'base_link', '', 'second name of the frame of the base, as in REP 105, on /tf_static with '
        'publish_odom_tf, unless the robot has a link of this name; empty: none',
    )  # fmt: skip
    odom_frame: str = parameter('odom', '', 'frame id of the world that odometry refers to')
    world_frame: str = parameter('world', '', 'parent of odom_frame; empty: not published')
    frame_prefix: str = parameter('', '', 'put before link names, as in robot_state_publisher')
    publish_odom_tf: bool = parameter(True, '', 'broadcast odom_frame to base_frame on /tf')
    contact_wrench_frame: str = parameter(
        'foot', '', 'frame of contacts/<foot>/wrench: the foot link, or odom_frame',
        choices=('foot', 'odom'),
    )  # fmt: skip
    seed: int = parameter(
        0, '', 'which sensor noise is drawn, see noise; the simulation itself has nothing random',
        at_least=0, at_most=2**31 - 1, live=True,
    )  # fmt: skip


@dataclass(frozen=True)
class ImuParameters(Parameters):
    """The inertial sensor."""

    frame_id: str = parameter(
        '',
        '',
        'frame of imu/data, any of the robot; empty: imu_link if the robot has it on its '
        'base, else the base',
    )


GROUPS: dict[str, type[Parameters]] = {
    '': FrameParameters,
    'imu': ImuParameters,
    'noise': NoiseParameters,
    'sensors.imu': ImuSensing,
    'sensors.joints': EncoderSensing,
    'sensors.contacts': ContactSensing,
    'sensors.forces': ForceSensing,
    **SEEING_GROUPS,
}
"""Dotted prefix to the class of the parameters on which messages depend."""


def recorded_settings(parameters: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Return the settings of a run from the parameters in its recording, else the defaults.

    Raises:
        InvalidInput: a value that is not allowed.
    """
    settings: Settings = {}
    for prefix, cls in GROUPS.items():
        values = parameters.get(prefix or RECORDED_AS, {})
        names = {field.name for field in declared_parameters(cls)}  # type: ignore[arg-type]
        settings[prefix] = cls(**{name: values[name] for name in names & values.keys()})
    return settings


def report_of(report: StepReport, part: RobotPart) -> Report:
    """Return the part of a report that is of one robot: of a robot alone the report itself."""
    return report if part.alone else RobotView(report, part)


# --- Frame ids.


def frame_id(part: RobotPart, settings: Settings, frame: str) -> str:
    """Return the name that a frame of a robot has in TF."""
    return str(settings[''].frame_prefix) + part.qualified_name(frame)


def base_frame_id(part: RobotPart, settings: Settings) -> str:
    """Return the frame id of the base of a robot."""
    return frame_id(part, settings, settings[''].base_frame or part.robot.base_frame)


def base_alias(part: RobotPart, settings: Settings) -> str:
    """Return the second frame id of the base, '' for none."""
    common = settings['']
    alias: str = common.base_link
    if not alias or not common.publish_odom_tf or part.robot.pinocchio_model.existFrame(alias):
        return ''
    name = frame_id(part, settings, alias)
    return '' if name == base_frame_id(part, settings) else name


def imu_frame(robot: RobotModel, settings: Settings) -> str:
    """Return the Pinocchio frame of the IMU, '' for the base itself."""
    chosen: str = settings['imu'].frame_id
    root = 1 if robot.floating_base else 0
    on_base = [f.name for f in robot.pinocchio_model.frames if f.parentJoint == root]
    return chosen or (IMU_LINK if IMU_LINK in on_base else '')


def wrench_axes(settings: Settings) -> str:
    """Return the axes of the foot forces, `FootForces.axes`."""
    return 'foot' if settings[''].contact_wrench_frame == 'foot' else 'world'


def wrench_frame_ids(part: RobotPart, settings: Settings, feet: Iterable[Foot]) -> list[str]:
    """Return the frame ids of the wrenches of feet, or of links that are used like feet."""
    if wrench_axes(settings) == 'world':
        return [str(settings[''].odom_frame) for _ in feet]
    return [frame_id(part, settings, foot.frame) for foot in feet]


# --- The sensors.

SEEDS = 2**31
"""Distance of the seeds of two robots; the parameter is smaller."""
EXACT_SENSORS: Settings = {
    'noise': NoiseParameters(), 'sensors.imu': ImuSensing(), 'sensors.joints': EncoderSensing(),
    'sensors.contacts': ContactSensing(), 'sensors.forces': ForceSensing(),
}  # fmt: skip
"""Settings of sensors that measure the exact values."""
FRAMES = 'imu', 'height_scan', 'lidar', 'depth_camera'
"""Prefixes of the parameters of sensors that have a frame."""
SETTINGS = ('noise', 'sensors.imu', 'sensors.joints', 'sensors.contacts', 'sensors.forces')
"""Prefixes of the live parameters of sensors."""


class RobotSensors(NamedTuple):
    """The sensors of a robot."""

    joints: Encoders
    imu: Imu
    contacts: ContactFlags
    forces: FootForces


def chosen_sensors(part: RobotPart, settings: Settings) -> RobotSensors:
    """Return the sensors that the settings describe; each robot has noise of its own.

    Raises:
        UnknownName: a frame or a foot that the robot does not have.
    """
    robot, noise = part.robot, settings['noise']
    seed = settings[''].seed + SEEDS * part.number
    joints = (*robot.joint_names, *robot.passive_joint_names)
    switches = settings['sensors.contacts']  # whose feet have the names that each robot has alone
    spared = switches.dropout_feet and not part.own(switches.dropout_feet)
    switches = replace(
        switches,
        stuck_on=part.own(switches.stuck_on),
        stuck_off=part.own(switches.stuck_off),
        dropout=0.0 if spared else switches.dropout,
        dropout_feet=part.own(switches.dropout_feet),
    )
    return RobotSensors(
        Encoders(robot, joints, noise, settings['sensors.joints'], seed),
        Imu(robot, imu_frame(robot, settings), noise, settings['sensors.imu'], seed),
        ContactFlags(robot, switches, seed),
        FootForces(robot, wrench_axes(settings), noise, settings['sensors.forces'], seed),
    )


def check_sensors(robot: RobotModel, settings: Settings) -> None:
    """Refuse sensors that no robot can have.

    Raises:
        UnknownName: a frame that no robot has, a foot that does not exist.
    """
    ContactFlags(robot, settings['sensors.contacts'])  # feet of robots that do not exist
    parts = parts_of(robot)
    nowhere = any(all(_lacks(part, settings, group) for part in parts) for group in FRAMES)
    for part in parts:
        own = settings if nowhere else own_settings(part, settings)
        chosen_sensors(part, own)
        seeing_sensors(part.robot, own, Plane())


def own_settings(part: RobotPart, settings: Settings) -> Settings:
    """Return the settings with the base for frames that one of several robots does not have."""
    lacking = [group for group in FRAMES if not part.alone and _lacks(part, settings, group)]
    return settings | {group: replace(settings[group], frame_id='') for group in lacking}


def _lacks(part: RobotPart, settings: Settings, group: str) -> bool:
    frame: str = settings[group].frame_id if group in settings else ''
    return bool(frame) and not part.robot.pinocchio_model.existFrame(frame)


class SensorSet:
    """All sensors of a robot with their delays; let them observe every step.

    Args:
        part: robot that has them.
        settings: of all sensors.
    """

    def __init__(self, part: RobotPart, settings: Settings) -> None:
        self.sensors = chosen_sensors(part, settings)
        self._delayed = {
            kind: DelayedSensor(sensor) for kind, sensor in self.sensors._asdict().items()
        }
        exact = chosen_sensors(part, settings | EXACT_SENSORS)
        self._ideal = {
            kind for kind, sensor in self.sensors._asdict().items()
            if _errors(sensor) == _errors(getattr(exact, kind))
        }  # fmt: skip
        self._step: Report | None = None
        self._values: dict[tuple[str, bool], Any] = {}

    def observe(self, report: Report) -> None:
        """Take the samples of a step, published or not."""
        self._step = None
        for delayed in self._delayed.values():
            if delayed.sensor.remembers:
                delayed.observe(report)

    def measured(self, kind: str, report: Report) -> Any:
        """Return what a sensor, a field of RobotSensors, measures after a step."""
        return self._once(kind, self.is_exact(kind), report)

    def is_exact(self, kind: str) -> bool:
        """Return whether a sensor measures the exact values."""
        return kind in self._ideal

    def true(self, kind: str, report: Report) -> Any:
        """Return the exact values of a sensor."""
        return self._once(kind, True, report)

    def _once(self, kind: str, true: bool, report: Report) -> Any:
        """Return values that are computed once for all topics of a step."""
        if report is not self._step:
            self._step, self._values = report, {}
        values = self._values.get((kind, true))
        if values is None:
            delayed = self._delayed[kind]
            if true:
                values = delayed.sensor.truth(report)
            else:
                delayed.observe(report)
                values = delayed.measured()
            self._values[kind, true] = values
        return values


def _errors(sensor: Any) -> tuple[Any, Any]:
    return getattr(sensor, 'noise', None), sensor.sensing  # switches have no noise


# --- Outputs of a robot.

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
        ground: returns the present ground, for sensors that see.
        world: all robots, which these sensors see; None: this robot is alone.
        namespace: of its topics; None: its name.

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
        ground: Callable[[], Terrain] = Plane,
        world: RobotModel | None = None,
        namespace: str | None = None,
    ) -> None:
        self._namespace = part.name if namespace is None else namespace
        settings = own_settings(part, settings)
        self.part, self.report = part, report_of(report, part)
        self._node, self._prefix = node, frame_id(part, settings, '')
        self._odom_frame, self._base = settings[''].odom_frame, base_frame_id(part, settings)
        self._alias = base_alias(part, settings)
        self._messages = SensorMessages(part, settings)
        self._description: Channel | None = None
        self._in_force: list[Any] = []
        self._step: Step | None = None
        self._encoded: dict[tuple[str, bool], list[bytes]] = {}
        seed = settings[''].seed + SEEDS * part.number

        def frame_of(frame: str) -> str:
            return frame_id(part, settings, frame) if frame else self._base

        def in_world(frame: str) -> str:
            return frame if part.alone else part.qualified_name(frame or part.robot.base_frame)

        self._sees_all = world is not None
        self._seeing = SeeingTopics(
            part.robot if world is None else world, ground, settings, seed, sink, self._own,
            frame_of, str if world is None else in_world,
        )  # fmt: skip
        self.configure(settings)
        self.odometry = Output(sink, [self._own(ODOM)], self._odometry)
        measured = [self._sensor(sink, kind) for kind in SENSORS]
        true = [self._sensor(sink, kind, true=True) for kind in SENSORS if truth]
        stamped = [Output(sink, [self._own(FOOT_CONTACTS_STAMPED)], self._stamped_contacts)]
        pairs = zip_longest(measured, true)  # a sensor and its exact values beside each other
        self.sensors = [output for pair in pairs for output in pair if output is not None]
        self.sensors += [*stamped, *self._links(sink, settings), *self._seeing.outputs]
        self._tree = LinkTree(part.robot)

    def configure(self, settings: Settings) -> None:
        """Use other sensor errors from the next step on; a change drops delayed samples."""
        settings = own_settings(self.part, settings)
        self._seeing.configure(settings, settings[''].seed + SEEDS * self.part.number)
        chosen = [settings[prefix] for prefix in SETTINGS] + [settings[''].seed]
        if chosen != self._in_force:
            self._in_force, self._step = chosen, None
            self._set = SensorSet(self.part, settings)
            imu = self._set.sensors.imu
            exact = replace(imu, noise=EXACT, sensing=ImuSensing())
            self._covariances = {False: imu_covariances(imu), True: imu_covariances(exact)}
            self._set.observe(self.report)

    def go_on_from(self, before: RobotTopics) -> None:
        """Take over the sensors of the same robot among others; those that see begin anew."""
        if before.part.robot is self.part.robot:
            self._in_force, self._set = before._in_force, before._set
            self._covariances = before._covariances

    def publish_now(self, step: Step) -> None:
        """Publish what is due of this robot."""
        for output in (self.odometry, *self.sensors):
            output.publish(step)

    def observe(self, report: StepReport) -> None:
        """Sample the sensors after a step of all robots, published or not."""
        self.report = report_of(report, self.part)
        self._set.observe(self.report)
        self._seeing.observe(report if self._sees_all else self.report)

    def make_description(self, sink: Sink) -> None:
        """Make the channel of robot_description; nothing is published."""
        self._description = sink.channel(self._own(DESCRIPTION))

    def publish_description(self, sink: Sink) -> None:
        """Publish robot_description."""
        if self._description is None:
            self.make_description(sink)
        if self._description is not None:
            self._description.publish({'data': self.part.robot.description})

    def base_transform(self, time: int) -> Message:
        """Return the pose of the base as a transform."""
        return transform(time, self._odom_frame, self._base, self._base_pose())

    def alias_transforms(self, time: int) -> list[Message]:
        """Return the identity from the base to the frame `base_link`; none where it is a link.

        With a depth camera that publishes, its optical frame as well.
        """
        aliases = self._seeing.optical_transforms(time)
        if self._alias:
            aliases.append(transform(time, self._base, self._alias, AT_THE_ORIGIN))
        return aliases

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
        return topic._replace(name=own_topic(self._namespace, name or topic.name, self._node))

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
        encode = encoder(SENSORS[kind].type.replace('/msg/', '/'))

        def content(step: Step) -> list[bytes]:
            exact = true or self._set.is_exact(kind)
            if step is not self._step:
                self._step, self._encoded = step, {}
            encoded = self._encoded.get((kind, exact))
            if encoded is None:  # else the topic of the exact values has the same messages
                values = (self._set.true if exact else self._set.measured)(kind, self.report)
                more = [self._covariances[exact]] if kind == 'imu' else []
                encoded = [encode(message) for message in fill(step.stamp, values, *more)]
                self._encoded[kind, exact] = encoded
            return encoded

        return Output(sink, topics, content)

    def _stamped_contacts(self, step: Step) -> list[Message]:
        values = self._set.measured('contacts', self.report)
        return self._messages.stamped_contacts(step.stamp, values)

    def _links(self, sink: Sink, settings: Settings) -> list[Output]:
        """Return the outputs of links with body contacts: exact wrenches, and who carries load."""
        part, robot = self.part, self.part.robot
        links = published_links(robot)
        if not links:
            return []
        forces = FootForces(robot, wrench_axes(settings), parts=links)
        frames = wrench_frame_ids(part, settings, links)
        names = [link.name for link in links]
        topics = [self._own(LINK_WRENCH, wrench_topic(name)) for name in names]

        def wrench(step: Step) -> list[Message]:
            return wrenches(step.stamp, frames, forces.truth(self.report))

        def contacts(_: Step) -> list[Message]:
            pairs = self.report.pairs
            loaded = [int(pairs.load_on([link.frame]) > 0.0) for link in links]
            return [flags(names, loaded)]

        return [
            Output(sink, topics, wrench), Output(sink, [self._own(LINK_CONTACTS)], contacts),
        ]  # fmt: skip


def published_links(robot: RobotModel) -> tuple[Foot, ...]:
    """Return the links with topics of their own; they touch the ground with their solids."""
    joints = {solid.frame: solid.joint for solid in robot.collisions.solids}
    return tuple(Foot(link, link, joints[link], ()) for link in robot.collisions.published)


# --- Messages of the sensors.


class SensorMessages:
    """Makes messages from the values of sensors, one function for each field of RobotSensors.

    Args:
        part: robot that has the sensors.
        settings: frames.
    """

    def __init__(self, part: RobotPart, settings: Settings) -> None:
        robot = part.robot
        frame = imu_frame(robot, settings)
        self._imu_frame = (
            frame_id(part, settings, frame) if frame else base_frame_id(part, settings)
        )
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
        return [flags(self._feet, values.flag)]

    def stamped_contacts(self, time: int, values: ContactValues) -> list[Message]:
        """Return foot_contacts_stamped: the feet by name, position 1 where one stands, else 0."""
        flag = values.flag.astype(float)
        return [{'header': header(time), 'name': list(self._feet), 'position': flag}]


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
        self._data = data_of(model)
        self.moving: list[tuple[str, str]] = []
        self.fixed: list[tuple[str, str]] = []
        self._moving: list[tuple[int, int]] = []
        self._fixed: list[tuple[int, int]] = []
        for child, frame in enumerate(model.frames):
            parent = int(frame.parentFrame)
            while parent and model.frames[parent].type != pin.FrameType.BODY:
                parent = int(model.frames[parent].parentFrame)
            if frame.type != pin.FrameType.BODY or not parent:  # 0 is the world
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


def _poses(placements: list[pin.SE3]) -> Array:
    return np.array([pin.SE3ToXYZQUAT(pose) for pose in placements]).reshape(-1, 7)
