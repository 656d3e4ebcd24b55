"""Everything the node publishes: which topic, how often, and only where somebody listens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float32MultiArray, Float64MultiArray, MultiArrayDimension, String
from visualization_msgs.msg import MarkerArray

from contact_sim.collision.grid import ground_grid
from contact_sim.messages.markers import (
    CLEAR,
    ContactMarkers,
    Marker,
    SupportMarkers,
    ground_markers,
    support_markers,
)
from contact_sim.messages.rates import PublishRateParameters, publish_periods
from contact_sim.messages.stamps import nanoseconds
from contact_sim.messages.topics import own_topic
from contact_sim.parameters import Settings
from contact_sim.robot.parts import parts_of
from contact_sim.ros.conversions import set_stamp
from contact_sim.ros.outputs.clock import ClockOutput
from contact_sim.ros.outputs.constraints import ConstraintOutputs
from contact_sim.ros.outputs.counting_publisher import Publisher
from contact_sim.ros.outputs.grid_map import GridMap, fill_grid_map
from contact_sim.ros.outputs.markers import MarkerMessages
from contact_sim.ros.outputs.robot import RobotOutputs
from contact_sim.ros.outputs.shadow import ShadowMessage
from contact_sim.ros.outputs.solver_state import (
    SolverDiagnosticsMessage,
    SolverStateMessage,
)
from contact_sim.ros.outputs.transforms import TransformPublisher
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator

Array = NDArray[np.float64]
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
