"""Everything the node publishes: which topic, how often, and only where somebody listens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import TransformStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy._rclpy_pybind11 import RCLError
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import (
    Float32MultiArray,
    Float64MultiArray,
    Int16MultiArray,
    MultiArrayDimension,
    String,
)
from visualization_msgs.msg import MarkerArray

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain, ground_grid
from contact_sim.drawing._step_shapes import ConstrainedPoint, constrains_frame
from contact_sim.errors import shortened
from contact_sim.parameters import Settings
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.ros._conversions import set_stamp, set_vector, vector_values
from contact_sim.ros._factory import described_constraints
from contact_sim.ros._messages import (
    ClockMessage,
    FootContactsMessage,
    GridMap,
    ImuMessage,
    JointStateMessage,
    LinkContactsMessage,
    MarkerMessages,
    OdometryMessage,
    WrenchMessages,
    fill_grid_map,
)
from contact_sim.sensors import FootForces
from contact_sim.sensors import Imu as ImuSensor
from contact_sim.sensors._robot_view import PartReport, Report
from contact_sim.simulation._report import StepReport, touching_links
from contact_sim.simulation._shadow import ShadowReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.solvers._cone_problem import NONFINITE
from contact_sim.step._problem import STATUSES
from contact_sim.support._analysis import analyse_support
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
    GROUND_TRUTH,
    PublishRateParameters,
    constraint_topic,
    nanoseconds,
    own_topic,
    publish_periods,
    velocity_labels,
    wrench_topic,
)
from contact_sim.topics._sensor_set import (
    SETTINGS,
    SensorLines,
    base_frame_id,
    exact,
    imu_frame_id,
    wrench_axes,
    wrench_frame_ids,
)
from contact_sim.topics._solver_numbers import (
    held_frame_id,
    held_wrench,
    joint_efforts,
    solver_numbers,
    support_numbers,
)

# --- A publisher that counts the messages it could not send.


class Publisher:
    """Counts what the network does not take, instead of stopping everything.

    That happens when a listener is so slow that nothing can be sent within DDS's patience.

    Attributes:
        name: as it was declared.
        sent: messages sent.
        lost: messages that could not be sent.
    """

    def __init__(self, node: Node, kind: type, name: str, qos: QoSProfile) -> None:
        self._publisher = node.create_publisher(kind, name, qos)
        self._context, self._log = node.context, node.get_logger()
        self.name, self.sent, self.lost = name, 0, 0

    def publish(self, message: Any) -> None:
        """Send a message, or count it as lost."""
        try:
            self._publisher.publish(message)
            self.sent += 1
        except RCLError as error:
            if not self._context.ok():
                raise  # everything ends
            self.lost += 1
            said = f'lost a message on {self.name}: {shortened(error)}'
            self._log.warning(said, throttle_duration_sec=1.0)

    def has_listener(self) -> bool:
        """Return whether anybody listens."""
        return bool(self._publisher.get_subscription_count())


# --- /clock: published, followed or left alone, and whether somebody else publishes it.

TOPIC = '/clock'


class ClockOutput:
    """Publishes simulated time where the parameter `clock` says so.

    Args:
        node: who publishes.
        use: the parameter.
        publisher: makes a publisher of a type on a topic.
    """

    def __init__(self, node: Node, use: str, publisher: Callable[[type, str], Publisher]) -> None:
        self._node, self._use = node, use
        self._message = ClockMessage()
        self._publisher = publisher(Clock, TOPIC) if use == 'publish' else None
        self._topic = node.resolve_topic_name(TOPIC)

    def publish(self, time: float) -> None:
        """Publish simulated time [s], or nothing."""
        if self._publisher is not None:
            self._publisher.publish(self._message.fill(time))

    @property
    def complaint(self) -> str:
        """What is wrong with those who publish /clock; empty where nothing is."""
        if self._use == 'none':
            return ''
        others = self._node.count_publishers(self._topic) - (self._publisher is not None)
        if self._use == 'follow':
            found = f'{others} simulations publish' if others else 'nobody publishes'
            return '' if others == 1 else f'{found} {self._topic}, which clock:=follow keeps to'
        if others <= 0:
            return ''
        return (
            f'{self._topic} has {others} more publisher{"s" * (others > 1)}: two times are mixed; '
            'set the parameter clock of one simulation to follow or none, or remap its /clock'
        )


# --- What the ground does to links with body contacts, besides the feet: always the truth.


class LinkOutputs:
    """contacts/<link>/wrench and link_contacts; no topics where only feet may touch.

    Args:
        part: whose links.
        settings: frames; wrenches are in the frame of the link where those of feet are in theirs.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self, part: RobotPart, settings: Settings, publisher: Callable[[type, str], Publisher]
    ) -> None:
        self._links = touching_links(part.robot)
        self._forces = FootForces(part.robot, wrench_axes(settings), parts=self._links)
        self._wrench_messages = WrenchMessages(wrench_frame_ids(part, settings, self._links))
        self._message = LinkContactsMessage(part.robot)
        if self._links:
            self._wrenches = [
                publisher(WrenchStamped, wrench_topic(link.name)) for link in self._links
            ]
            self._contacts = publisher(Int16MultiArray, 'link_contacts')

    def publish(self, report: Report) -> None:
        """Publish what acted in a step."""
        if not self._links:
            return
        messages = self._wrench_messages.fill(report.time, self._forces.truth(report))
        for publisher, message in zip(self._wrenches, messages, strict=True):
            publisher.publish(message)
        self._contacts.publish(self._message.fill(report))


# --- ~/shadow: what other contact models make of the last step, as labelled numbers.


class ShadowMessage:
    """One number per label; the labels stand in layout.dim.

    First `time` [s], then for each model of contact.shadow: `<model>.status` (index into the
    solver statuses), `<model>.converged`, `<model>.iterations`, and how it differs from the model
    in force: `<model>.force.<foot>.x` and so on [N, world], `<model>.velocity.<label>` for the
    velocity after the step [m/s, rad/s], labels v_x to w_z for the base and the joints by name. Of
    several robots each foot, base and joint has its robot before its name: `a/v_x`.
    Where a model has no finite answer its status says so and its differences are 0.
    """

    def __init__(self, robot: RobotModel) -> None:
        self.message = Float64MultiArray()
        self._forces = [f'force.{foot.name}.{axis}' for foot in robot.feet for axis in 'xyz']
        self._velocities = [
            f'velocity.{part.called(name)}'
            for part in parts_of(robot)
            for name in velocity_labels(part.robot)
        ]
        self._models: tuple[str, ...] = ()

    def fill(self, report: StepReport) -> Float64MultiArray:
        """Return the message; solves the step under every model of contact.shadow."""
        shadows = report.shadows
        if self._models != tuple(shadows):
            self._models = tuple(shadows)
            self._label()
        numbers = [[report.time], *(self._numbers(shadow) for shadow in shadows.values())]
        self.message.data = np.concatenate(numbers).tolist()
        return self.message

    def _label(self) -> None:
        about = ('status', 'converged', 'iterations', *self._forces, *self._velocities)
        labels = ['time', *(f'{model}.{name}' for model in self._models for name in about)]
        self.message.layout.dim = [
            MultiArrayDimension(label=label, size=1, stride=1) for label in labels
        ]

    def _numbers(self, shadow: ShadowReport) -> list[float]:
        if not shadow.finite:
            nothing = [0.0] * (len(self._forces) + len(self._velocities))
            return [float(NONFINITE), 0.0, 0.0, *nothing]
        solver = shadow.step.solver
        force = shadow.step.feet.force - shadow.taken.feet.force
        return [
            float(STATUSES.index(solver.status)), float(solver.converged),
            float(solver.iterations), *force.ravel(),
            *shadow.velocity_difference,
        ]  # fmt: skip


# --- How well the last step was solved: labelled numbers, and the same by name for plot tools.
#
# PlotJuggler and Foxglove know no labels of arrays. Of standard messages both show the values of a
# diagnostic_msgs/DiagnosticArray under their keys, and plot those that are numbers.


class SolverStateMessage:
    """~/solver_state: one number per label; the labels stand in layout.dim.

    They are those of `messages.solver_numbers`.
    """

    def __init__(
        self, robot: RobotModel, terrain: Terrain, constraints: Sequence[str] = ()
    ) -> None:
        self._parts, self._terrain, self._constraints = parts_of(robot), terrain, constraints
        self.message = Float64MultiArray()

    def rehearse(self, report: StepReport) -> None:
        """Compute once what a message of a robot on all its feet needs."""
        self.fill(report, 0.0)
        for part in self._parts:
            feet, q = range(len(part.robot.contact_points)), report.q[part.q]
            support_numbers(analyse_support(part.robot, q, feet, terrain=self._terrain))

    def values(self, report: StepReport, real_time_factor: float) -> dict[str, float]:
        """Return the number of every label."""
        return solver_numbers(
            report, self._parts, self._terrain, self._constraints, real_time_factor
        )

    def fill(self, report: StepReport, real_time_factor: float) -> Float64MultiArray:
        """Return the message."""
        return self.of(self.values(report, real_time_factor))

    def of(self, values: Mapping[str, float]) -> Float64MultiArray:
        """Return the message with these numbers."""
        if not self.message.layout.dim:
            self.message.layout.dim = [
                MultiArrayDimension(label=label, size=1, stride=1) for label in values
            ]
        self.message.data = list(values.values())
        return self.message


class SolverDiagnosticsMessage:
    """~/solver_diagnostics: the numbers of ~/solver_state by name.

    One status of hardware_id `name`, the values with all their digits. Its level is OK: whether
    anything is wrong stands on /diagnostics.

    Args:
        name: of the node.
    """

    def __init__(self, name: str) -> None:
        self._status = DiagnosticStatus(name='solver', hardware_id=name)
        self.message = DiagnosticArray(status=[self._status])

    def of(self, time: float, values: Mapping[str, float]) -> DiagnosticArray:
        """Return the message of simulated time [s] with these numbers."""
        set_stamp(self.message.header.stamp, time)
        if not self._status.values:
            self._status.values = [KeyValue(key=label) for label in values]
        for pair, value in zip(self._status.values, values.values(), strict=True):
            pair.value = repr(value)
        return self.message


# --- TF from odom to every base, and from the world to odom, where tf2_msgs is installed.

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # the ROS wheels do not have it
    TFMessage = None


class TransformPublisher:
    """Sends odom → base with odometry messages; does nothing without tf2_msgs.

    Attributes:
        publishers: of /tf and /tf_static, those that there are.
    """

    def __init__(self, node: Node, world: str, odom: str, enabled: bool) -> None:
        self.publishers: list[Publisher] = []
        self._publisher: Publisher | None = None
        if TFMessage is None:
            node.get_logger().info('tf2_msgs is not installed: no TF; the pose is on odom')
            return
        if world and world != odom:
            self._send_static(node, world, odom)
        if enabled:
            self._publisher = Publisher(node, TFMessage, '/tf', QoSProfile(depth=100))
            self.publishers.append(self._publisher)

    def _send_static(self, node: Node, world: str, odom: str) -> None:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._static = Publisher(node, TFMessage, '/tf_static', latched)
        self.publishers.append(self._static)
        identity = TransformStamped(child_frame_id=odom)
        identity.header.frame_id = world
        identity.transform.rotation.w = 1.0
        self._static.publish(TFMessage(transforms=[identity]))

    def send(self, odometry: Sequence[Odometry]) -> None:
        """Broadcast the poses of odometry messages, all in one message."""
        if self._publisher is not None:
            self._publisher.publish(TFMessage(transforms=[_transform(odom) for odom in odometry]))


def _transform(odom: Odometry) -> TransformStamped:
    """Return the pose of an odometry message as a transform."""
    transform: Any = TransformStamped(header=odom.header, child_frame_id=odom.child_frame_id)
    pose, translation = odom.pose.pose, transform.transform.translation
    translation.x, translation.y, translation.z = vector_values(pose.position)
    transform.transform.rotation = pose.orientation
    return transform


# --- Forces of bilateral constraints: topics and arrows.

MakesPublisher = Callable[[type, str], Publisher]


class HeldFrameOutput:
    """A frame that a constraint holds: constraints/<name>/wrench.

    Force and torque on the frame are about its origin and in its axes, where it is at the end of
    the step; zeros while the constraint does not hold.

    Args:
        robot: whose frame.
        constraint: an anchor or a loop.
        settings: frame ids.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self, robot: RobotModel, constraint: Constraint, settings: Settings,
        publisher: MakesPublisher,
    ) -> None:  # fmt: skip
        self.point = ConstrainedPoint(robot, constraint)
        self._message = WrenchStamped()
        self._message.header.frame_id = held_frame_id(constraint, settings)
        self._publisher = publisher(WrenchStamped, constraint_topic(constraint.name, 'wrench'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the wrench of a step; None: the constraint does not hold."""
        wrench = held_wrench(self.point, report, constraint)
        set_stamp(self._message.header.stamp, report.time)
        set_vector(self._message.wrench.force, wrench[:3])
        set_vector(self._message.wrench.torque, wrench[3:])
        self._publisher.publish(self._message)


class HeldJointsOutput:
    """Joints that a constraint holds or drives: constraints/<name>/effort.

    The effort on each of them [N m or N]; zeros while the constraint does not hold.

    Args:
        constraint: of joints.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(self, constraint: Constraint, publisher: MakesPublisher) -> None:
        self._constraint = constraint
        self._message = JointState(name=list(constraint.holds))
        self._publisher = publisher(JointState, constraint_topic(constraint.name, 'effort'))

    def publish(self, report: StepReport, constraint: Constraint | None) -> None:
        """Publish the efforts of a step; None: the constraint does not hold."""
        set_stamp(self._message.header.stamp, report.time)
        self._message.effort = joint_efforts(report, self._constraint, constraint)
        self._publisher.publish(self._message)


class ConstraintOutputs:
    """What is published of the constraints that are described, in force or not.

    Args:
        sim: in which they hold.
        settings: constraints and frame ids.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(self, sim: Simulator, settings: Settings, publisher: MakesPublisher) -> None:
        self._sim = sim
        self._frames: dict[str, HeldFrameOutput] = {}
        self._joints: dict[str, HeldJointsOutput] = {}
        for one in described_constraints(settings):
            if constrains_frame(one):
                held = HeldFrameOutput(sim.robot, one, settings, publisher)
                self._frames[one.name] = held
            else:
                self._joints[one.name] = HeldJointsOutput(one, publisher)

    def publish(self, report: StepReport) -> None:
        """Publish all wrenches and efforts of the last step."""
        holding = self._holding()
        for name, frame in self._frames.items():
            frame.publish(report, holding.get(name))
        for name, joints in self._joints.items():
            joints.publish(report, holding.get(name))

    def markers(self, report: StepReport) -> list[Marker]:
        """Return an arrow for the force on every frame, in the last step."""
        holding = self._holding()
        held = ((frame.point, holding.get(name)) for name, frame in self._frames.items())
        return held_markers(held, report)

    def _holding(self) -> dict[str, Constraint]:
        return {one.name: one for one in self._sim.constraints}


# --- What the sensors tell, on the usual topics, and the ground truth beside it.


class SensorTopics:
    """Messages and publishers of all sensors: of what they tell, or of what is true.

    Args:
        part: whose sensors.
        settings: frames.
        prefix: of the topics.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self,
        part: RobotPart,
        settings: Settings,
        prefix: str,
        publisher: Callable[[type, str], Publisher],
    ) -> None:
        robot, feet = part.robot, part.robot.feet
        joints, contacts = JointStateMessage(robot), FootContactsMessage([f.name for f in feet])
        self._imu = ImuMessage(imu_frame_id(part, settings))
        forces = WrenchMessages(wrench_frame_ids(part, settings, feet))
        imu_topic = 'imu' if prefix else 'imu/data'
        self._publishers = {
            'joints': [publisher(JointState, f'{prefix}joint_states')],
            'imu': [publisher(Imu, f'{prefix}{imu_topic}')],
            'forces': [
                publisher(WrenchStamped, f'{prefix}{wrench_topic(foot.name)}') for foot in feet
            ],
            'contacts': [publisher(Int16MultiArray, f'{prefix}foot_contacts')],
        }
        self._fill: dict[str, Callable[[float, Any], Sequence[Any]]] = {
            'joints': lambda time, values: [joints.fill(time, values)],
            'imu': lambda time, values: [self._imu.fill(time, values)],
            'forces': forces.fill,
            'contacts': lambda _, values: [contacts.fill(values)],
        }

    def set_imu(self, sensor: ImuSensor) -> None:
        """State the covariances of the IMU."""
        self._imu.set_sensor(sensor)

    def have_listener(self, kind: str) -> bool:
        """Return whether anybody listens to a sensor, a field of RobotSensors."""
        return any(publisher.has_listener() for publisher in self._publishers[kind])

    def publish(self, kind: str, time: float, values: Any) -> None:
        """Publish the values of a sensor at simulated time [s]."""
        messages = self._fill[kind](time, values)
        for publisher, message in zip(self._publishers[kind], messages, strict=True):
            publisher.publish(message)


class SensorOutputs:
    """Sensors and their topics. Ground truth is published beside what they tell.

    Of the truth, what nobody listens to is not sent.

    Args:
        part: whose sensors.
        report: of the step before the first one that is shown.
        settings: of all sensors.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self,
        part: RobotPart,
        report: Report,
        settings: Settings,
        publisher: Callable[[type, str], Publisher],
    ) -> None:
        self._part, self._last = part, report
        self._told, self._true = (
            SensorTopics(part, settings, prefix, publisher) for prefix in ('', GROUND_TRUTH)
        )
        self._in_force: list[Any] = []
        self.configure(settings)

    def configure(self, settings: Settings) -> None:
        """Have other errors from the next step on; samples under way are lost where any differ."""
        wanted = [settings[prefix] for prefix in SETTINGS] + [settings[''].seed]
        if wanted == self._in_force:
            return
        self._in_force = wanted
        self._lines = SensorLines(self._part, settings)
        imu = self._lines.sensors.imu
        self._told.set_imu(imu)
        self._true.set_imu(exact(imu))
        self.observe(self._last)

    def observe(self, report: Report) -> None:
        """Take the samples of a step, published or not."""
        self._last = report
        self._lines.observe(report)

    def publish(self, kind: str, report: Report) -> None:
        """Publish a sensor, a field of RobotSensors, after a step."""
        self._told.publish(kind, report.time, self._lines.told(kind, report))
        if self._true.have_listener(kind):
            self._true.publish(kind, report.time, self._lines.true(kind, report))


# --- What the node says about one robot, in the namespace of that robot.


class RobotOutputs:
    """Odometry, joints, sensors and links of a robot that is alone or one of several.

    Args:
        part: which robot.
        report: of the step before the first one that is observed.
        settings: frames and sensors.
        node: name of the node.
        publisher: makes a publisher of a type of messages on a topic.
    """

    def __init__(
        self,
        part: RobotPart,
        report: StepReport,
        settings: Settings,
        node: str,
        publisher: Callable[[type, str], Publisher],
    ) -> None:
        def own(kind: type, topic: str) -> Publisher:
            return publisher(kind, own_topic(part.name, topic, node))

        common, robot = settings[''], part.robot
        base = base_frame_id(part, settings)
        self._part, self._report = part, PartReport(report, part)
        self._odom_message = OdometryMessage(robot, common.odom_frame, base)
        self._odom = own(Odometry, 'odom')
        self._sensors = SensorOutputs(part, self._report, settings, own)
        self._links = LinkOutputs(part, settings, own)

    def configure(self, settings: Settings) -> None:
        """Have other errors of the sensors from the next step on."""
        self._sensors.configure(settings)

    def observe(self, report: StepReport) -> None:
        """Take the samples of a step of all robots, published or not."""
        self._report = PartReport(report, self._part)
        self._sensors.observe(self._report)

    def odometry(self) -> Odometry:
        """Return odometry after the step that was observed last, for `publish_odometry`, too."""
        return self._odom_message.fill(self._report)

    def publish_odometry(self) -> None:
        """Publish what `odometry` returned last."""
        self._odom.publish(self._odom_message.message)

    def publish(self, due: set[str]) -> None:
        """Publish the sensors that are due, named as in `publish_rate`, of that step."""
        report = self._report
        if 'joint_states' in due:
            self._sensors.publish('joints', report)
        if 'imu' in due:
            self._sensors.publish('imu', report)
        if 'wrenches' in due:
            self._sensors.publish('forces', report)
            self._sensors.publish('contacts', report)
            self._links.publish(report)


# --- Everything the node publishes: which topic, how often, and only where somebody listens.

EVERY = QoSProfile(depth=1000)
"""Reliable; what the network loses while steps run flat out is still there to be sent again."""
LATEST = QoSProfile(depth=10)
"""Reliable, for large or rare messages."""
KEPT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""The last one is there for who comes late."""


SENSORS = ('joint_states', 'imu', 'wrenches')
"""Fields of `publish_rate` for what sensors tell."""


class Outputs:
    """Publishers and their messages; all messages of one step carry the same stamp.

    Those of the world are here, those of its robots in a RobotOutputs for each.
    """

    def __init__(self, node: Node, sim: Simulator, settings: Settings) -> None:
        self._sim, self._parts = sim, parts_of(sim.robot)
        self._tick = 0
        self._instant_period = 0
        self._told: int | None = None  # the last instant, by its tick
        self.set_rates(settings['publish_rate'])
        self._make_messages(node, sim, settings)
        self._make_publishers(node, settings)
        self._rehearse(sim.last_report)
        self._publish_ground()

    def _make_messages(self, node: Node, sim: Simulator, settings: Settings) -> None:
        self._common = common = settings['']
        self._constraint_names = settings['constraints'].names
        self._make_ground_messages()
        self._shadow_message = ShadowMessage(sim.robot)
        name = node.get_fully_qualified_name().lstrip('/')
        self._solver_diagnostics_message = SolverDiagnosticsMessage(name)
        self._transforms = TransformPublisher(
            node, common.world_frame, common.odom_frame, common.publish_odom_tf
        )

    def _make_ground_messages(self) -> None:
        """Make the messages of which the ground says how long they are."""
        sim, common = self._sim, self._common
        self._ground = sim.terrain
        self._marker_messages = MarkerMessages(common.odom_frame)
        self._contact_markers = ContactMarkers()
        self._support_markers = [
            SupportMarkers(part.robot, sim.terrain, part.number) for part in self._parts
        ]
        self._solver_state_message = SolverStateMessage(
            sim.robot, sim.terrain, self._constraint_names
        )

    def follow_ground(self) -> None:
        """Publish about the ground that is stood on from now on."""
        if self._sim.terrain is not self._ground:
            self._make_ground_messages()
            self._publish_ground()

    def _publish_ground(self) -> None:
        frame = self._common.odom_frame
        ground = ground_markers(self._ground)
        self._terrain.publish(MarkerMessages(frame).fill(self._sim.time, ground))
        if self._grid_map is not None:
            common = self._sim.friction.max(initial=0.0), self._sim.restitution.max(initial=0.0)
            grid = ground_grid(self._ground, *common)
            message = fill_grid_map(GridMap(), grid, frame, Float32MultiArray, MultiArrayDimension)
            set_stamp(message.header.stamp, self._sim.time)
            self._grid_map.publish(message)

    def _rehearse(self, report: StepReport) -> None:
        """Fill the messages behind which kernels are called: these compile before time runs."""
        self._shapes(report, {})
        self._solver_state_message.rehearse(report)

    def _make_publishers(self, node: Node, settings: Settings) -> None:
        def publisher(kind: type, topic: str, qos: QoSProfile = EVERY) -> Publisher:
            self._topics.append(Publisher(node, kind, topic, qos))
            return self._topics[-1]

        self._topics: list[Publisher] = [*self._transforms.publishers]
        self.clock = ClockOutput(node, settings[''].clock, publisher)
        report, name = self._sim.last_report, node.get_name()
        self._robots = [
            RobotOutputs(part, report, settings, name, publisher) for part in self._parts
        ]
        self._constraints = ConstraintOutputs(self._sim, settings, publisher)
        self._markers = publisher(MarkerArray, '~/contact_markers', LATEST)
        self._solver_state = publisher(Float64MultiArray, '~/solver_state', EVERY)
        self._solver_diagnostics = publisher(DiagnosticArray, '~/solver_diagnostics', EVERY)
        self._shadow = publisher(Float64MultiArray, '~/shadow', EVERY)
        self._terrain = publisher(MarkerArray, '~/terrain', KEPT)
        self._grid_map = publisher(GridMap, '~/grid_map', KEPT) if GridMap else None
        self.diagnostics = publisher(DiagnosticArray, '/diagnostics', LATEST)
        if self._common.publish_robot_description:
            for part in self._parts:
                description = publisher(
                    String, own_topic(part.name, 'robot_description', name), KEPT
                )
                description.publish(String(data=part.robot.description))

    def set_rates(self, rates: PublishRateParameters) -> None:
        """Publish at other rates from the next step on."""
        self._periods = publish_periods(rates, self._sim.time_step)

    def set_sensors(self, settings: Settings) -> None:
        """Have other errors of the sensors from the next step on."""
        for robot in self._robots:
            robot.configure(settings)

    def set_instants(self, period: int) -> None:
        """Publish states every `period` steps, too, 0 for no more often than their rates say."""
        self._instant_period = period

    @property
    def lost(self) -> int:
        """Messages that could not be sent since the start."""
        return sum(topic.lost for topic in self._topics)

    @property
    def sent(self) -> dict[str, int]:
        """Messages sent since the start, by topic."""
        return {topic.name: topic.sent for topic in self._topics}

    @property
    def last_stamp(self) -> int:
        """Stamp of the last step of which anything may have been published [ns]."""
        return nanoseconds(self._tick * self._sim.time_step)

    def publish_clock(self, time: float) -> None:
        """Publish simulated time [s] alone, the heartbeat of a paused simulation."""
        self.clock.publish(time)

    def clear_markers(self) -> None:
        """Remove all markers."""
        self._markers.publish(self._marker_messages.fill(0.0, [CLEAR]))

    def announce_instant(self, sim: Simulator) -> None:
        """Publish the state from which controllers are asked to act, unless that was done."""
        if self._told != round(sim.time / sim.time_step):
            self.publish_state(sim.last_report)

    def forget_instant(self) -> None:
        """Publish the state at the next instant even if that was done already."""
        self._told = None

    def publish_state(self, report: StepReport) -> None:
        """Publish every state that is published at all, whether or not it has its turn."""
        self._tick = round(report.time / self._sim.time_step)
        self._told = self._tick
        self.publish_clock(report.time)
        self._publish_states(report, everything=True)

    def publish(
        self, report: StepReport, real_time_factor: float, wrenches: Mapping[str, Array]
    ) -> None:
        """Publish what is due after a step; `wrenches` (world axes) are drawn."""
        self._tick = round(report.time / self._sim.time_step)
        instant = self._instant_period > 0 and self._tick % self._instant_period == 0
        self._told = self._tick if instant else self._told
        self.publish_clock(report.time)
        self._publish_states(report, everything=instant)
        if self._due('markers') and self._markers.has_listener():
            drawn = self._shapes(report, wrenches)
            self._markers.publish(self._marker_messages.fill(report.time, drawn))
        if self._due('solver_state'):
            self._publish_solver_state(report, real_time_factor)
        if self._sim.shadow and self._due('shadow') and self._shadow.has_listener():
            self._shadow.publish(self._shadow_message.fill(report))

    def _publish_solver_state(self, report: StepReport, real_time_factor: float) -> None:
        """Publish the numbers of a solve in both forms, where anybody listens."""
        as_array, by_name = self._solver_state, self._solver_diagnostics
        if not (heard := [topic for topic in (as_array, by_name) if topic.has_listener()]):
            return
        values = self._solver_state_message.values(report, real_time_factor)
        if as_array in heard:
            as_array.publish(self._solver_state_message.of(values))
        if by_name in heard:
            by_name.publish(self._solver_diagnostics_message.of(report.time, values))

    def _publish_states(self, report: StepReport, everything: bool) -> None:
        for robot in self._robots:
            robot.observe(report)
        if self._due('odom', everything):
            # before everything that is drawn in its frames
            self._transforms.send([robot.odometry() for robot in self._robots])
            for robot in self._robots:
                robot.publish_odometry()
        due = {name for name in SENSORS if self._due(name, everything)}
        for robot in self._robots:
            robot.publish(due)
        if 'wrenches' in due:
            self._constraints.publish(report)

    def _shapes(self, report: StepReport, wrenches: Mapping[str, Array]) -> list[Marker]:
        """Return everything that is drawn of a step."""
        origins = {
            frame: np.array(self._sim.frame_placement(frame).translation) for frame in wrenches
        }
        return [
            *self._contact_markers.of(report, wrenches, origins),
            *support_markers(self._support_markers, self._parts, report),
            *self._constraints.markers(report),
        ]

    def _due(self, name: str, always: bool = False) -> bool:
        """Return whether a topic has its turn; by simulated time, so resets change no rhythm."""
        steps = self._periods[name]
        return steps > 0 and (always or self._tick % steps == 0)
