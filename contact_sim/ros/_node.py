"""The node: parameters, commands and services of a simulation; the loop does the work.

The loop runs in the thread that calls `run`. Callbacks run in an executor in another thread: they
swap the command in force, or ask the loop to do something between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from contact_sim._types import Array
from contact_sim.errors import shortened
from contact_sim.parameters import Parameters, Settings
from contact_sim.replay._recorder import Recorder
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._joint_limits import describe_limits
from contact_sim.robot._several_robots import parts_of
from contact_sim.robot._summary import describe_actuators, describe_gains, gain_table, gains_limit
from contact_sim.ros._callbacks import Claim, answering
from contact_sim.ros._conversions import seconds
from contact_sim.ros._diagnostics import Conditions, diagnostics_message
from contact_sim.ros._factory import (
    check_constraints,
    chosen_constraints,
    chosen_contact_model,
    chosen_shadows,
    chosen_terrain,
    constraint_groups,
    driven_robot,
    effort_order,
    joint_gains,
    loaded_robot,
    loaded_simulator,
    recorder_of,
    start_configuration,
)
from contact_sim.ros._joint_commands import CommandInbox
from contact_sim.ros._lockstep import Lockstep, owned_joints
from contact_sim.ros._loop import Leader, Loop, StepTakesLong
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._parameters import (
    PARAMETER_GROUPS,
    ActuatorParameters,
    ControllerParameters,
    JointGainParameters,
)
from contact_sim.ros._publishers import Outputs
from contact_sim.ros._pushes import Pushes
from contact_sim.ros._services import Services, StateControl, SupportCommand
from contact_sim.ros._simulation_interfaces import INSTALLED, SimulationInterfaces
from contact_sim.ros._subscriptions import Inputs
from contact_sim.ros._viewer import ServedPage
from contact_sim.simulation._loop import Pacer
from contact_sim.simulation._report import TouchGuard
from contact_sim.step._problem import STATUSES
from contact_sim.topics._sensor_set import check_sensors
from contact_sim.topics._solver_numbers import troubles
from contact_sim.topics._table import CLOCK, nanoseconds, publish_periods


class BriefLog:
    """Log of bounded lines: descriptions may have thousands of joints."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def info(self, line: str) -> None:
        """Log a line for information."""
        self._log.info(shortened(line))

    def warning(self, line: str) -> None:
        """Log a line as a warning."""
        self._log.warning(shortened(line))


def groups_by_name(settings: Settings, joints: Sequence[str]) -> dict[str, type[Parameters]]:
    """Return the groups of parameters that are there per joint, controller and constraint."""
    return (
        {f'gains.{name}': JointGainParameters for name in joints}
        | {f'actuators.{name}': ActuatorParameters for name in joints}
        | {f'lockstep.{name}': ControllerParameters for name in settings['lockstep'].controllers}
        | constraint_groups(settings['constraints'].names)
    )


class SimulationNode(Node):
    """ROS 2 node `contact_sim`.

    Raises:
        ContactSimError: a parameter or robot description that cannot be used, or another node of
            this name.
    """

    _seen: Sequence[int] = (0,) * len(STATUSES)
    """Steps with each status that /diagnostics has spoken about."""
    _warned_of_clock = ''

    def __init__(self, **node_options: Any) -> None:
        super().__init__('contact_sim', **node_options)
        claim = Claim(self)
        self.parameters = ParameterServer(self, self._check_settings, self._change_settings)
        self.parameters.declare(PARAMETER_GROUPS)
        settings = self.parameters.settings
        described = loaded_robot(settings)
        self.parameters.declare(groups_by_name(settings, described.joint_names))
        self.robot = driven_robot(described, settings)
        self.parts = parts_of(self.robot)
        self.sim = loaded_simulator(self.robot, settings)
        self.sim.reset(start_configuration(self.sim, settings), time=self.sim.time_step)
        self.inbox = CommandInbox(
            self.robot.joint_names,
            self.robot.joint_positions(self.sim.q),
            *joint_gains(self.robot, settings),
            self.robot.continuous_joints,
        )
        claim.check()
        self.inbox.rules = settings['trajectory']
        self._outputs = Outputs(self, self.sim, settings)
        self._pacer = Pacer(settings[''].real_time_factor)
        log = self.get_logger()
        names = self.robot.joint_names
        self.lockstep = Lockstep(self.inbox, names, owned_joints(settings, names), log.warning)
        self._follow_lockstep(settings)
        common = settings['']
        world_frames = common.odom_frame, common.world_frame
        self.pushes = Pushes(self.sim, common.frame_prefix, world_frames)
        self.pushes.configure(settings['push'])
        self.loop = Loop(
            self.sim, self.inbox, self.lockstep, self.pushes, self._outputs, self._pacer,
            log.error, self._diagnose,
        )  # fmt: skip
        self.loop.paused = settings[''].start_paused
        self.loop.guard = TouchGuard(self.robot, common.end_on_contact)
        self._follow_clock(common.clock)
        self.recorder = self._begin_recording(settings)
        self.state_control = StateControl(self.sim, self.loop, self.inbox, self.parameters)
        self.inputs = [
            Inputs(
                self, part, self.inbox, self.lockstep, self.pushes, self.state_control,
                SupportCommand(self.sim, self.loop, part), effort_order(part, settings),
            )
            for part in self.parts
        ]  # fmt: skip
        self.standard_services = Services(
            self, self.sim, self.loop, self.state_control, self.parameters
        )
        if INSTALLED:
            self.simulation_interfaces = SimulationInterfaces(
                self, self.sim, self.loop, self.state_control, self.standard_services,
                self.parameters,
            )  # fmt: skip
        self._in_force = self.parameters.accept_changes()
        self._announce()
        self.page = ServedPage(
            self, self.sim, self.loop, self.standard_services, self.state_control, self.pushes,
            self.parameters,
        )  # fmt: skip

    def create_service(self, kind: Any, name: str, callback: Any, **options: Any) -> Any:
        """Serve as any node does, and answer even where the callback raises."""

        def report(said: str) -> None:
            self.get_logger().error(said)

        return super().create_service(kind, name, answering(callback, report), **options)

    # ---------------------------------------------------------------- construction

    def _announce(self) -> None:
        robot, sim, log = self.robot, self.sim, BriefLog(self.get_logger())
        settings = self.parameters.settings
        log.info(
            f'{robot.name}: {robot.total_mass:.3f} kg, contact model {sim.contact_model}, '
            f'h = {sim.time_step:g} s, friction {settings["friction"].mu:g}'
        )
        for part in self.parts:
            own = part.robot
            who = f'{part.name} = {own.name}, {own.total_mass:.3f} kg; ' if part.name else ''
            joints = ', '.join(own.joint_names)
            log.info(f'{who}joints, in the order of unnamed commands: {joints}')
        self._announce_gains(*joint_gains(robot, settings))
        for line in (*describe_actuators(robot), describe_limits(robot.position_limits)):
            log.info(line)
        if robot.constraints:
            log.info(f'held together: {"; ".join(map(str, robot.constraints))}')
        feet = ', '.join(f'{p.name} (r = {p.radius:g} m)' for p in robot.contact_points)
        height = settings[''].initial_height
        log.info(f'contact points: {feet or "none"}; the lowest starts at a gap of {height:g} m')
        for note in robot.notes:
            log.info(note)
        for approximation in robot.approximations:
            log.info(
                f'contact points on what {approximation.joint} moves: {approximation.points}, '
                f'which leave out up to {approximation.error:.2g} m of its collision geometry'
            )
        rates = vars(settings['publish_rate']).items()
        log.info('messages per second: ' + ', '.join(f'{name} {rate:g}' for name, rate in rates))
        for line in self.parameters.unknown():
            log.warning(line)
        if robot.floating_base and not robot.candidates:
            log.warning('the robot has no contact points and will fall; set the parameter feet')

    def _announce_gains(self, kp: Array, kd: Array) -> None:
        robot, sim, log = self.robot, self.sim, self.get_logger()
        log.info(describe_gains(robot, kp, kd, sim.q))
        log.debug(gain_table(robot, kp, kd))
        stable = gains_limit(robot, kp, kd, sim.q)
        if sim.time_step > stable:
            log.warning(
                f'explicit PD with these gains is not stable at h = {sim.time_step:g} s in the '
                f'air: choose a time_step below {stable:.2g} s or smaller gains'
            )

    # ---------------------------------------------------------------- settings

    def _check_settings(self, settings: Settings) -> None:
        """Refuse settings that only make sense together (ParameterServer)."""
        publish_periods(settings['publish_rate'], settings[''].time_step)
        chosen_contact_model(settings)
        self.robot.reference_configuration(settings[''].reference_pose)
        chosen_shadows(settings)
        check_sensors(self.robot, settings)
        check_constraints(self.robot, settings)

    def _change_settings(self, settings: Settings, prefixes: set[str]) -> None:
        """Let settings take effect between two steps, all of them or none.

        Those of the terrain wait for the next reset, and all for the end of a step that is long.
        """
        ground = chosen_terrain(settings) if 'terrain' in prefixes else None
        try:
            self.loop.between_steps(lambda: self._apply_or_undo(settings, prefixes))
        except StepTakesLong:
            self.get_logger().warning(
                f'{self.loop.watch.complaint}; what was set takes effect after it'
            )
            self.loop.after_step(lambda: self._apply_late(settings, prefixes))
        if ground is not None:
            self.state_control.next_ground = ground

    def _apply_late(self, settings: Settings, prefixes: set[str]) -> None:
        """Apply settings that were accepted while a step was under way, or take them back."""
        try:
            self._apply_or_undo(settings, prefixes)
        except Exception as error:
            self.get_logger().error(f'parameters are taken back: {shortened(error)}')
            self.parameters.restore(self._in_force)

    def _apply_or_undo(self, settings: Settings, prefixes: set[str]) -> None:
        try:
            self._apply_settings(settings, prefixes)
        except Exception:
            self._apply_settings(self._in_force, prefixes)
            raise
        self._in_force = settings

    def _apply_settings(self, settings: Settings, prefixes: set[str]) -> None:
        new = settings['']
        self.sim.restitution = new.restitution
        self.sim.friction = settings['friction'].mu
        if new.real_time_factor != self._pacer.factor:
            self.loop.set_factor(new.real_time_factor)
        if any(prefix == 'contact' or prefix.startswith('contact.') for prefix in prefixes):
            self._switch_contact_model(settings)
            self.sim.shadow = chosen_shadows(settings)
        self.inbox.set_gains(*joint_gains(self.robot, settings))
        self.inbox.rules = settings['trajectory']
        self._outputs.set_rates(settings['publish_rate'])
        self._outputs.set_sensors(settings)
        self._follow_lockstep(settings)
        self.pushes.configure(settings['push'])
        self._hold((*self.robot.constraints, *chosen_constraints(settings)))

    def _hold(self, constraints: Sequence[Constraint]) -> None:
        if constraints == self.sim.given_constraints:
            return
        self.sim.constraints = constraints
        names = ', '.join(one.name for one in constraints)
        time = f't = {self.sim.time:.9g} s'
        self.get_logger().info(f'constraints from {time} on: {names or "none"}')

    def _follow_lockstep(self, settings: Settings) -> None:
        self.lockstep.configure(settings['lockstep'], nanoseconds(self.sim.time))
        self._outputs.set_instants(self.lockstep.period)

    def _follow_clock(self, use: str) -> None:
        if use != 'follow':
            return
        leader = self.loop.leader = Leader()
        quality = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.create_subscription(
            Clock, CLOCK.name, lambda message: leader.hear(seconds(message.clock)), quality
        )

    def _begin_recording(self, settings: Settings) -> Recorder | None:
        recorder = recorder_of(self.sim, settings, self._recording_failed)
        if recorder is not None:
            self.loop.when_at_rest = recorder.flush
        return recorder

    def _recording_failed(self, reason: str) -> None:
        self.loop.tally.recording = f'recording has ended: {reason}'
        self.get_logger().error(self.loop.tally.recording)

    def _switch_contact_model(self, settings: Settings) -> None:
        old, contact = self.sim.contact_model, settings['contact']
        chosen = chosen_contact_model(settings)
        if (chosen.name, chosen.parameters) != (old, self.sim.model.parameters):
            self.sim.contact_model = chosen
        self.sim.baumgarte = contact.baumgarte
        self.sim.restitution_threshold = contact.restitution_threshold
        if old != contact.model:
            self.loop.tally.switches += 1
            what = f'from {old} to {contact.model} at t = {self.sim.time:.9g} s'
            self.loop.tally.last_switch = what
            self.get_logger().info(f'contact model switched {what}')

    # ---------------------------------------------------------------- the loop

    def run(self, keep_running: Callable[[], bool]) -> None:
        """Step, publish and pace until `keep_running` says no."""
        try:
            self.loop.run(keep_running)
        finally:
            if self.recorder is not None:
                self.recorder.close()
            self.page.close()

    def _diagnose(self) -> None:
        common, found = self.parameters.settings[''], self._new_troubles()
        conditions = Conditions(
            time=self.sim.time,
            name=self.get_fully_qualified_name().lstrip('/'),
            contact_model=self.sim.contact_model,
            shadow=self.sim.shadow,
            constraints=tuple(one.name for one in self.sim.constraints),
            wanted_factor=0.0 if self.loop.leader else common.real_time_factor,
            paused=self.loop.paused,
            command_timeout=common.command_timeout,
            steps=self.sim.step_count,
            pushes_accepted=self.pushes.accepted,
            pushes_refused=self.pushes.refused,
            messages_lost=self._outputs.lost,
            messages_sent=self._outputs.sent,
            long_steps=self.loop.watch.long,
            under_way=self.loop.watch.complaint,
            clock=self._outputs.clock.complaint,
            viewer=self.page.address,
            viewer_trouble=self.page.error,
            solver='; '.join(found),
            robots=self.parts,
        )
        message = diagnostics_message(
            conditions, self._pacer, self.inbox, self.lockstep, self.loop.tally
        )
        self._outputs.diagnostics.publish(message)
        if conditions.clock and conditions.clock != self._warned_of_clock:
            self.get_logger().warning(conditions.clock)
        self._warned_of_clock = conditions.clock
        for trouble in found:
            self.get_logger().warning(trouble)

    def _new_troubles(self) -> list[str]:
        """Return what was wrong with the solves since this was asked last."""
        before, self._seen = self._seen, tuple(self.loop.tally.statuses)
        return troubles(before, self._seen, self.sim.last_report)
