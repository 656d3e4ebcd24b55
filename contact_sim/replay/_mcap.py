"""A recorded run as messages, the ones that the node publishes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim.constraints._table import from_words
from contact_sim.drawing._step_shapes import ConstrainedPoint, constrains_frame
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Settings
from contact_sim.replay._archive import understood
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Player
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.sensors import ContactValues, FootForces, ForceValues, ImuValues, JointValues
from contact_sim.sensors._robot_view import PartReport
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.step._problem import STATUSES
from contact_sim.topics._cdr import Constant, encoder, schema_text
from contact_sim.topics._markers import (
    CLEAR,
    ContactMarkers,
    Marker,
    SupportMarkers,
    ground_markers,
    held_markers,
    support_markers,
)
from contact_sim.topics._names import (
    DESCRIPTION,
    GROUND_TRUTH,
    NODE,
    OF_CONSTRAINTS,
    OF_LINKS,
    OF_ROBOT,
    OF_WORLD,
    OPTIONAL,
    absolute,
    constraint_topic,
    nanoseconds,
    own_topic,
    wrench_topic,
)
from contact_sim.topics._sensor_set import (
    EXACT_COVARIANCE,
    LinkFlags,
    SensorLines,
    base_frame_id,
    exact,
    frame_id,
    imu_covariances,
    imu_frame_id,
    recorded_settings,
    wrench_axes,
    wrench_frame_ids,
)
from contact_sim.topics._solver_numbers import (
    held_frame_id,
    held_wrench,
    joint_efforts,
    solver_numbers,
    status_counts,
    troubles,
)

# --- Where messages go: one MCAP file, in the form in which `ros2 bag` writes it.

try:
    import mcap.writer as mcap_writer
except ImportError:  # an extra
    mcap_writer = None  # type: ignore[assignment]

PROFILE, ENCODING, SCHEMA_ENCODING = 'ros2', 'cdr', 'ros2msg'
_FOREVER = '{sec: 9223372036, nsec: 854775807}'
_QUALITY = f"""\
- history: keep_last
  depth: %d
  reliability: reliable
  durability: %s
  deadline: {_FOREVER}
  lifespan: {_FOREVER}
  liveliness: automatic
  liveliness_lease_duration: {_FOREVER}
  avoid_ros_namespace_conventions: false
"""
EVERY, KEPT = _QUALITY % (1000, 'volatile'), _QUALITY % (1, 'transient_local')
"""Quality of service in the words of rosbag2: of what comes often, and of what is said once."""


class Topic(NamedTuple):
    """A topic of which messages are written."""

    name: str
    """As in `messages.topics`, with `~` for the node."""
    type: str
    """As there, `package/msg/Name`."""
    kept: bool = False
    """Whether the last message is there for who comes late."""


class Sink:
    """Writes messages into an MCAP file; `finish` completes it.

    Args:
        file: opened for writing.

    Raises:
        InvalidInput: the package mcap is missing.
    """

    def __init__(self, file: BinaryIO) -> None:
        if mcap_writer is None:
            raise InvalidInput(
                "MCAP files need the package mcap: pip install 'contact_sim[export]'"
            )
        self._writer: Any = mcap_writer.Writer(file)
        self._writer.start(profile=PROFILE, library='contact_sim')
        self._channels: dict[Topic, tuple[int, Any]] = {}
        self._schemas: dict[str, int] = {}
        self._count = 0

    def write(self, topic: Topic, time: int, message: Any) -> None:
        """Write a message, as `cdr` takes it, of simulated time [ns]."""
        if topic not in self._channels:
            self._channels[topic] = self._register(topic)
        channel, encode = self._channels[topic]
        self._count += 1
        self._writer.add_message(channel, time, encode(message), time, self._count % 2**32)

    def finish(self, name: str, words: dict[str, str]) -> None:
        """Write what else is known of the run, then summary and end of the file."""
        self._writer.add_metadata(name, words)
        self._writer.finish()

    def _register(self, topic: Topic) -> tuple[int, Any]:
        package, _, name = topic.type.split('/')
        short = f'{package}/{name}'
        if topic.type not in self._schemas:
            text = schema_text(short).encode()
            self._schemas[topic.type] = self._writer.register_schema(
                topic.type, SCHEMA_ENCODING, text
            )
        channel = self._writer.register_channel(
            absolute(topic.name), ENCODING, self._schemas[topic.type],
            {'offered_qos_profiles': KEPT if topic.kept else EVERY},
        )  # fmt: skip
        return channel, encoder(short)


# --- Transforms from link to link, as robot_state_publisher makes them of joint states.


class LinkTree:
    """The links of a robot and what each of them hangs on; the root link is in none of the lists.

    Args:
        robot: of one without a description, the frames of bodies that it has.

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
    """Return the link that a frame hangs on, None for the world."""
    above = model.frames[frame].parentFrame
    while above and model.frames[above].type != pin.FrameType.BODY:
        above = model.frames[above].parentFrame
    return int(above) or None


def _poses(placements: list[pin.SE3]) -> Array:
    return np.array([pin.SE3ToXYZQUAT(one) for one in placements]).reshape(-1, 7)


# --- What is written of one robot: its sensors, its odometry, its links, its description.

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


# --- What is written of the world: clock, markers, solves, constraints, diagnostics.

CLOCK, MARKERS, SOLVER_STATE, SOLVER_DIAGNOSTICS, DIAGNOSTICS = (
    Topic(name, OF_WORLD[name])
    for name in (
        '/clock', '~/contact_markers', '~/solver_state', '~/solver_diagnostics', '/diagnostics',
    )
)  # fmt: skip
TERRAIN = Topic('~/terrain', OF_WORLD['~/terrain'], kept=True)
OK, WARN = 0, 1
"""Levels of diagnostic_msgs/DiagnosticStatus."""
FACTOR = 0.0
"""Real-time factor in ~/solver_state: a recording does not know it."""


def marker_array(markers: Sequence[Marker], time: int, frame: str) -> dict[str, Any]:
    """Return a MarkerArray at simulated time [ns] in the frame of the world."""
    about = header(time, frame)
    return {
        'markers': [
            {
                'header': about,
                'ns': one.namespace,
                'id': one.number,
                'type': one.kind,
                'action': one.action,
                'pose': one.pose,
                'scale': one.scale,
                'color': one.colour,
                'points': one.points,
            }
            for one in markers
        ]
    }


def diagnostics(time: int, status: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a DiagnosticArray of one status with these values."""
    said = [{'key': key, 'value': str(value)} for key, value in values.items()]
    return {'header': header(time), 'status': [{**status, 'values': said}]}


class WorldTopics:
    """Everything that is written once, however many robots there are.

    Args:
        sim: the simulation that takes the steps again.
        settings: frames.
        constraints: all that ever hold, but those of the robot itself.
    """

    def __init__(
        self, sim: Simulator, settings: Settings, constraints: Sequence[Constraint]
    ) -> None:
        self._sim, self._frame = sim, settings[''].odom_frame
        self._parts = parts_of(sim.robot)
        self._described = constraints
        self._points = {
            one.name: ConstrainedPoint(sim.robot, one)
            for one in constraints
            if constrains_frame(one)
        }
        self._held_frames = {one.name: held_frame_id(one, settings) for one in constraints}
        self._layout: Constant | None = None
        self._counts = [0] * len(STATUSES)
        self._told = tuple(self._counts)
        self._model, self._switches, self._last_switch = sim.contact_model, 0, 'none'
        self._follow_ground()

    def _follow_ground(self) -> None:
        self._ground = self._sim.terrain
        self._contacts = ContactMarkers()
        self._support = [
            SupportMarkers(part.robot, self._ground, part.number) for part in self._parts
        ]

    def write_ground(self, sink: Sink, time: int) -> None:
        """Write ~/terrain."""
        sink.write(TERRAIN, time, marker_array(ground_markers(self._ground), time, self._frame))

    def observe(self, report: StepReport) -> None:
        """Count a step, written or not."""
        self._counts[int(report.record.solver[0])] += 1
        model = self._sim.contact_model
        if model != self._model:
            began = report.time - self._sim.time_step
            self._last_switch = f'from {self._model} to {model} at t = {began:.9g} s'
            self._model, self._switches = model, self._switches + 1

    def write_new_ground(self, sink: Sink, time: int) -> None:
        """Write ~/terrain, and clear the markers, where the ground is another one now."""
        if self._sim.terrain is self._ground:
            return
        self._follow_ground()
        sink.write(MARKERS, time, marker_array([CLEAR], time, self._frame))
        self.write_ground(sink, time)

    def write_clock(self, sink: Sink, time: int) -> None:
        """Write /clock."""
        sink.write(CLOCK, time, {'clock': time})

    def write_markers(
        self, sink: Sink, report: StepReport, wrenches: Mapping[str, ArrayLike], time: int
    ) -> None:
        """Write ~/contact_markers; `wrenches` (world axes) are drawn, too."""
        pushes = {frame: np.asarray(wrench, dtype=float) for frame, wrench in wrenches.items()}
        origins = {
            frame: np.array(self._sim.frame_placement(frame).translation) for frame in pushes
        }
        holding = self._holding()
        held = ((point, holding.get(name)) for name, point in self._points.items())
        markers = [
            *self._contacts.of(report, pushes, origins),
            *support_markers(self._support, self._parts, report),
            *held_markers(held, report),
        ]
        sink.write(MARKERS, time, marker_array(markers, time, self._frame))

    def write_solver_state(self, sink: Sink, report: StepReport, time: int) -> None:
        """Write the numbers of a solve in both forms."""
        names = [one.name for one in self._described]
        values = solver_numbers(report, self._parts, self._ground, names, FACTOR)
        self._layout = self._layout or layout(values)
        sink.write(SOLVER_STATE, time, {'layout': self._layout, 'data': list(values.values())})
        status = {'level': OK, 'name': 'solver', 'hardware_id': NODE}
        named = {label: repr(value) for label, value in values.items()}
        sink.write(SOLVER_DIAGNOSTICS, time, diagnostics(time, status, named))

    def write_constraints(self, sink: Sink, report: StepReport, time: int) -> None:
        """Write the wrench or the efforts of every constraint."""
        holding = self._holding()
        for one in self._described:
            kind = 'wrench' if one.name in self._points else 'effort'
            topic = Topic(constraint_topic(one.name, kind), OF_CONSTRAINTS[_PATTERNS[kind]])
            if kind == 'wrench':
                wrench = held_wrench(self._points[one.name], report, holding.get(one.name))
                said = {'header': header(time, self._held_frames[one.name]), 'wrench': wrench}
            else:
                effort = joint_efforts(report, one, holding.get(one.name))
                said = {'header': header(time), 'name': list(one.holds), 'effort': effort}
            sink.write(topic, time, said)

    def write_diagnostics(self, sink: Sink, report: StepReport, time: int) -> None:
        """Write what /diagnostics knows of the simulation itself."""
        found = '; '.join(troubles(self._told, self._counts, report))
        self._told = tuple(self._counts)
        status = {
            'level': WARN if found else OK, 'name': f'{NODE}: simulation',
            'message': found or 'running', 'hardware_id': NODE,
        }  # fmt: skip
        values = {
            'contact_model': self._model,
            'contact_model_switches': self._switches,
            'last_contact_model_switch': self._last_switch,
            'constraints': ' '.join(one.name for one in self._sim.constraints),
            'steps_since_reset': self._sim.step_count,
            **status_counts(self._counts),
        }
        sink.write(DIAGNOSTICS, time, diagnostics(time, status, values))

    def _holding(self) -> dict[str, Constraint]:
        return {one.name: one for one in self._sim.constraints}


_PATTERNS = {name.rpartition('/')[2]: name for name in OF_CONSTRAINTS}


# --- A recorded run as messages, the ones that the node publishes.

TF = Topic('/tf', OPTIONAL['/tf'])
TF_STATIC = Topic('/tf_static', OPTIONAL['/tf_static'], kept=True)
DIAGNOSTICS_PERIOD = 1.0
"""Simulated seconds between two /diagnostics messages."""


class McapOutput:
    """Writes steps into an MCAP file.

    Args:
        file: opened for writing.
        recording: of the run.
        player: takes its steps.
        periods: steps between two messages, 0 for none, by the names of `publish_rate`.
        ground_truth: write what is true beside what sensors tell.

    Raises:
        InvalidInput: the package mcap is missing, or a recorded parameter that is not allowed.
        RecordingError: parameters or constraints that are none.
    """

    def __init__(
        self, file: BinaryIO, recording: Recording, player: Player, periods: Mapping[str, int],
        ground_truth: bool,
    ) -> None:  # fmt: skip
        sim = player.sim
        self._sink, self._player, self._periods = Sink(file), player, periods
        with understood(f'{recording.path}: parameters or constraints'):
            settings = recorded_settings(recording.header.get('parameters', {}))
            constraints = constraints_of(recording, player)
        self._settings = settings
        self._recording, self._last = recording, sim.last_report
        self._robots = [
            RobotTopics(part, sim.last_report, settings, ground_truth)
            for part in parts_of(sim.robot)
        ]
        self._world = WorldTopics(sim, settings, constraints)
        self._diagnosed = max(1, round(DIAGNOSTICS_PERIOD / sim.time_step))
        self._begin(stamp_of(sim.last_report))

    def _begin(self, time: int) -> None:
        """Write what is said once."""
        common, sink = self._settings[''], self._sink
        fixed = [one for robot in self._robots for one in robot.fixed_transforms(time)]
        if common.world_frame and common.world_frame != common.odom_frame:
            world, odom = common.world_frame, common.odom_frame
            fixed.insert(0, transform(time, world, odom, AT_THE_ORIGIN))
        sink.write(TF_STATIC, time, {'transforms': fixed})
        for robot in self._robots:
            robot.write_description(sink, time)
        self._world.write_ground(sink, time)

    def add(self, report: StepReport) -> None:
        """Write what is due after a step."""
        player, sink, world = self._player, self._sink, self._world
        time, tick = stamp_of(report), round(report.time / player.sim.time_step)
        due = {name for name, steps in self._periods.items() if steps and tick % steps == 0}
        self._last = report
        world.observe(report)
        world.write_new_ground(sink, time)
        for robot in self._robots:
            robot.observe(report)
        if due:
            world.write_clock(sink, time)
            self._write_transforms(due, time)
        if 'odom' in due:
            for robot in self._robots:
                robot.write_odometry(sink, time)
        for robot in self._robots:
            robot.write(sink, due, time)
        if 'wrenches' in due:
            world.write_constraints(sink, report, time)
        if 'markers' in due:
            world.write_markers(sink, report, player.wrenches, time)
        if 'solver_state' in due:
            world.write_solver_state(sink, report, time)
        if tick % self._diagnosed == 0:
            world.write_diagnostics(sink, report, time)

    def _write_transforms(self, due: set[str], time: int) -> None:
        transforms = []
        if 'odom' in due and self._settings[''].publish_odom_tf:
            transforms += [robot.base_transform(time) for robot in self._robots]
        if 'joint_states' in due:
            transforms += [one for robot in self._robots for one in robot.link_transforms(time)]
        if transforms:
            self._sink.write(TF, time, {'transforms': transforms})

    def finish(self) -> None:
        """Write the last diagnostics and complete the file."""
        self._world.write_diagnostics(self._sink, self._last, stamp_of(self._last))
        header = self._recording.header
        self._sink.finish('contact_sim', {
            'robot': header['robot']['name'],
            'contact_model': self._player.sim.contact_model,
            'time_step': repr(header['time_step']),
            'contact_sim': header['versions']['contact_sim'],
        })  # fmt: skip

    def abandon(self) -> None:
        """Write no more, whatever is missing."""


def stamp_of(report: StepReport) -> int:
    """Return the stamp of a step [ns].

    Raises:
        InvalidInput: simulated time is below 0, which MCAP does not have.
    """
    time = nanoseconds(report.time)
    if time < 0:
        raise InvalidInput(f'a step at t = {report.time:.9g} s: MCAP has no times below 0')
    return time


def constraints_of(recording: Recording, player: Player) -> Sequence[Constraint]:
    """Return all constraints that ever hold in a recording, but those of the robot itself."""
    own = {one.name for one in player.sim.robot.constraints}
    said = [event['constraints'] for event in recording.events if event['kind'] == 'constraints']
    listed = [*player.sim.constraints, *(from_words(words) for one in said for words in one)]
    named = {one.name: one for one in reversed(listed) if one.name not in own}
    return list(reversed(named.values()))
