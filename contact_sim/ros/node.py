"""The node: steps the simulation against the wall clock and publishes what happened.

The loop runs in the thread that calls `run`; callbacks run in an executor in another thread and
hand over values or requests, which the loop takes between two steps.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from contact_sim.errors import InvalidInput, NonFiniteState
from contact_sim.ros.clock import Pacer
from contact_sim.ros.commands import CommandInbox
from contact_sim.ros.diagnostics import Conditions, Tally, diagnostics_message
from contact_sim.ros.outputs import Outputs
from contact_sim.ros.parameter_server import ParameterServer
from contact_sim.ros.parameters import PARAMETER_GROUPS, JointGainParameters, publish_periods
from contact_sim.ros.setup import (
    Settings,
    chosen_contact_model,
    joint_gains,
    loaded_robot,
    loaded_simulator,
    start_configuration,
)

LATEST = QoSProfile(depth=1)
HEARTBEAT = 0.05
"""Wall seconds between two /clock messages while paused."""
DIAGNOSTICS_PERIOD = 1.0
"""Wall seconds between two /diagnostics messages."""
LONGEST_SLEEP = 0.02
"""Wall seconds after which a sleeping loop looks at requests again."""


class SimulationNode(Node):
    """ROS 2 node `contact_sim`.

    Raises:
        ContactSimError: a parameter or robot description that cannot be used.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('contact_sim', **node_options)
        self.parameters = ParameterServer(self, self._check_settings, self._change_settings)
        self.parameters.declare(PARAMETER_GROUPS)
        settings = self.parameters.settings
        self.robot = loaded_robot(settings)
        groups = {f'gains.{name}': JointGainParameters for name in self.robot.joint_names}
        self.parameters.declare(groups)
        self.sim = loaded_simulator(self.robot, settings)
        self.sim.reset(start_configuration(self.sim, settings), time=self.sim.time_step)
        self.inbox = CommandInbox(
            self.robot.joint_names,
            self.robot.joint_positions(self.sim.q),
            *joint_gains(self.robot, settings),
        )
        self._common = settings['']
        self._paused: bool = self._common.start_paused
        self._running = True
        self._pacer = Pacer(self._common.real_time_factor)
        self._tally = Tally()
        self._requests: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._loop_thread: int | None = None
        self._outputs = Outputs(self, self.sim, settings)
        self._make_inputs()
        self.parameters.accept_changes()
        self._announce()

    # ---------------------------------------------------------------- construction

    def _make_inputs(self) -> None:
        override = QoSOverridingOptions.with_default_policies()
        self.create_subscription(
            JointState, 'joint_commands', self._on_joint_command, LATEST,
            qos_overriding_options=override,
        )  # fmt: skip
        self.create_subscription(
            Float64MultiArray, 'joint_group_effort_controller/commands', self._on_efforts, LATEST,
            qos_overriding_options=override,
        )  # fmt: skip
        self.create_service(SetBool, '~/pause', self._on_pause)
        self.create_service(Trigger, '~/reset', self._on_reset)
        self.create_service(Trigger, '~/step', self._on_step)

    def _announce(self) -> None:
        robot, sim, log = self.robot, self.sim, self.get_logger()
        settings = self.parameters.settings
        log.info(
            f'{robot.name}: {robot.total_mass:.3f} kg, contact model {sim.contact_model}, '
            f'h = {sim.time_step:g} s, friction {settings["friction"].mu:g}'
        )
        log.info('joints, in the order of unnamed commands: ' + ', '.join(robot.joint_names))
        gains = (f'{low:.4g} to {high:.4g}' for low, high in self.inbox.gain_ranges())
        log.info('PD gains: p {}, d {}'.format(*gains))
        feet = ', '.join(f'{p.name} (r = {p.radius:g} m)' for p in robot.contact_points)
        height = settings[''].initial_height
        log.info(f'contact points: {feet or "none"}; the lowest starts at a gap of {height:g} m')
        rates = vars(settings['publish_rate']).items()
        log.info('messages per second: ' + ', '.join(f'{name} {rate:g}' for name, rate in rates))
        if not robot.contact_points:
            log.warning('the robot has no contact points and will fall; set contact_frames')

    # ---------------------------------------------------------------- settings

    def _check_settings(self, settings: Settings) -> None:
        """Refuse settings that only make sense together (ParameterServer)."""
        publish_periods(settings['publish_rate'], settings[''].time_step)
        chosen_contact_model(settings)

    def _change_settings(self, settings: Settings, prefixes: set[str]) -> None:
        """Let accepted settings take effect between two steps."""
        self._between_steps(lambda: self._apply_settings(settings, prefixes))

    def _apply_settings(self, settings: Settings, prefixes: set[str]) -> None:
        common = settings['']
        self.sim.restitution = common.restitution
        self.sim.friction = settings['friction'].mu
        if common.real_time_factor != self._common.real_time_factor:
            self._pacer.restart(self.sim.time, common.real_time_factor)
        self._common = common
        if any(prefix == 'contact' or prefix.startswith('contact.') for prefix in prefixes):
            self._switch_contact_model(settings)
        self.inbox.set_gains(*joint_gains(self.robot, settings))
        self._outputs.set_rates(settings['publish_rate'])

    def _switch_contact_model(self, settings: Settings) -> None:
        old = self.sim.contact_model
        contact = settings['contact']
        self.sim.baumgarte = contact.baumgarte
        self.sim.restitution_threshold = contact.restitution_threshold
        self.sim.contact_model = chosen_contact_model(settings)
        if old != contact.model:
            self._tally.switches += 1
            self.get_logger().info(
                f'contact model switched from {old} to {contact.model} at t = {self.sim.time:g} s'
            )

    # ---------------------------------------------------------------- callbacks (executor thread)

    def _on_joint_command(self, message: JointState) -> None:
        self._warn(
            self.inbox.take_joint_state(
                message.name, message.position, message.velocity, message.effort
            )
        )

    def _on_efforts(self, message: Float64MultiArray) -> None:
        self._warn(self.inbox.take_efforts(message.data))

    def _warn(self, refusal: str | None) -> None:
        if refusal is not None:
            self.get_logger().warning(f'dropped: {refusal}', throttle_duration_sec=1.0)

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        def change() -> None:
            self._paused = request.data
            self._pacer.restart(self.sim.time)

        self._between_steps(change)
        response.success, response.message = True, 'paused' if request.data else 'running'
        return response

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._between_steps(self._reset)
        response.success = True
        response.message = f'standing at t = {self.sim.time:g} s; time goes on'
        return response

    def _on_step(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        count = self._common.step_count
        if not self._paused:
            response.success, response.message = False, 'not paused: call ~/pause first'
            return response
        self._between_steps(lambda: self._take_steps(count))
        response.success = not self._tally.failure
        response.message = self._tally.failure or f'{count} steps, t = {self.sim.time:.9g} s'
        return response

    def _between_steps(self, action: Callable[[], None]) -> None:
        """Run `action` in the loop between two steps and wait until it is done."""
        if self._loop_thread in (None, threading.get_ident()):
            action()
            return
        done = threading.Event()

        def act() -> None:
            try:
                action()
            finally:
                done.set()

        self._requests.put(act)
        done.wait()

    # ---------------------------------------------------------------- the loop

    def run(self, keep_running: Callable[[], bool]) -> None:
        """Step, publish and pace until `keep_running` says no."""
        self._loop_thread = threading.get_ident()
        self._pacer.restart(self.sim.time)
        next_diagnostics = next_heartbeat = time.perf_counter()
        try:
            while self._running and keep_running():
                self._serve_requests()
                now = time.perf_counter()
                if now >= next_diagnostics:
                    next_diagnostics = now + DIAGNOSTICS_PERIOD
                    self._diagnose()
                if self._paused or self._tally.failure:
                    if now >= next_heartbeat:
                        next_heartbeat = now + HEARTBEAT
                        self._outputs.publish_clock(self.sim.time)
                    self._pacer.restart(self.sim.time)
                    time.sleep(1e-3)
                    continue
                ahead = self._pacer.wait(self.sim.time + self.sim.time_step)
                if ahead > 0.0:
                    time.sleep(min(ahead, LONGEST_SLEEP))
                    if ahead > LONGEST_SLEEP:
                        continue
                elif self.sim.step_count % 8 == 0:
                    time.sleep(0.0)  # lets the callback thread in while running flat out
                self._take_steps(1)
        finally:
            self._loop_thread = None
            self._serve_requests()

    def stop(self) -> None:
        """Leave `run` after the current step."""
        self._running = False

    def _serve_requests(self) -> None:
        while True:
            try:
                action = self._requests.get_nowait()
            except queue.Empty:
                return
            action()

    def _take_steps(self, count: int) -> None:
        """Step and publish `count` times; stop, and say why, should the state blow up."""
        sim, robot, inbox = self.sim, self.robot, self.inbox
        continuous = robot.continuous_joints if robot.continuous_joints.any() else None
        for _ in range(count):
            if self._tally.failure:
                return
            effort = inbox.current.effort_at(
                robot.joint_positions(sim.q), robot.joint_velocities(sim.v), continuous
            )
            try:
                report = sim.step(effort)
            except (NonFiniteState, InvalidInput) as error:
                self._stop_stepping(str(error))
                return
            self._tally.statuses[int(report.record.solver[0])] += 1
            self._outputs.publish(report, self._pacer.measured)

    def _stop_stepping(self, reason: str) -> None:
        """Take no step until the next reset, and say why."""
        sim = self.sim
        self._tally.failure = f'stopped at t = {sim.time:.9g} s, wait for ~/reset: {reason}'
        self.get_logger().error(self._tally.failure)

    def _reset(self) -> None:
        """Stand again at the present time: time never goes back."""
        start = start_configuration(self.sim, self.parameters.settings)
        self.sim.reset(start, time=self.sim.time)
        self.inbox.hold(self.robot.joint_positions(self.sim.q))
        self._tally.failure = ''
        self._pacer.restart(self.sim.time)
        self._outputs.clear_markers()

    def _diagnose(self) -> None:
        conditions = Conditions(
            time=self.sim.time,
            name=self.get_fully_qualified_name().lstrip('/'),
            contact_model=self.sim.contact_model,
            wanted_factor=self._common.real_time_factor,
            paused=self._paused,
            command_timeout=self._common.command_timeout,
        )
        message = diagnostics_message(conditions, self._pacer, self.inbox, self._tally)
        self._outputs.diagnostics.publish(message)
