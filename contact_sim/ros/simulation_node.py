"""Executable `simulation`: the node and its callback thread, with start and shutdown.

The node has parameters, commands, services and diagnostics; the loop does the work. The loop runs
in the thread that calls `SimulationNode.run`. Callbacks run in `CallbackThread`. They write to the
command buffer, or have the loop do something between two steps.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NoReturn

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import SetParametersResult
from rclpy._rclpy_pybind11 import RCLError, UnknownROSArgsError
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import (
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
    TimeoutException,
)
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.wait_for_message import wait_for_message
from rosgraph_msgs.msg import Clock

from contact_sim._address_space import OF_NODE, too_small
from contact_sim._command_line import ros_help
from contact_sim.errors import ContactSimError, shortened
from contact_sim.parameters import Settings
from contact_sim.precompile import compiling_meanwhile
from contact_sim.replay._recorder import Recorder
from contact_sim.robot._model import (
    RobotModel,
    describe_actuators,
    describe_gains,
    describe_limits,
    gain_table,
    gains_limit,
)
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._commands import CommandBuffer, Pushes
from contact_sim.ros._conversions import seconds
from contact_sim.ros._executor import quickest_executor
from contact_sim.ros._factory import (
    check_settings,
    chosen_constraints,
    chosen_contact_model,
    chosen_shadows,
    chosen_terrain,
    groups_by_name,
    loaded_simulator,
    recorder_of,
    start_configuration,
)
from contact_sim.ros._inputs import Services, StateControl, Subscriptions
from contact_sim.ros._lockstep import Lockstep, owned_joints
from contact_sim.ros._lockstep_socket import LockstepSocket
from contact_sim.ros._loop import ClockFollower, Loop, StepTakesLong
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._parameters import PARAMETER_GROUPS
from contact_sim.ros._population import Population
from contact_sim.ros._processes import Interruption, leave
from contact_sim.ros._publishers import Outputs, clock_complaint
from contact_sim.ros._robots import driven_robot, joint_gains, loaded_robot
from contact_sim.ros._simulation_interfaces import INSTALLED, SimulationInterfaces
from contact_sim.ros._viewer import ServedPage
from contact_sim.simulation._report import TouchGuard
from contact_sim.simulation._running import Pacer, compiling_while
from contact_sim.step._problem import STATUSES
from contact_sim.topics._messages import diagnostics
from contact_sim.topics._table import CLOCK, JOINT_STATES, nanoseconds, own_topic
from contact_sim.topics._world_topics import ERROR, OK, WARN, status_counts, troubles

NAME = 'contact_sim'
SWITCH_INTERVAL = 1e-3
"""Longest time one Python thread keeps another waiting [s]: a callback is served within it."""
DISCOVERY = 1.0
"""Wall seconds from the start after which nodes on a healthy network know of each other."""
SILENCE = 3.0
"""Wall seconds without /diagnostics after which a node is taken for one that has been killed, and
for which a node waits for one of its name on this machine that is ending."""
SLOW = 0.95
"""Share of the real-time factor asked for below which a warning is given."""
LONGEST_WAIT = 0.1
"""Wall seconds after which the callback thread looks whether it has to end."""
LONGEST_END = 2.0
"""Wall seconds that the callback thread may take to end."""


START_ERRORS = (
    ContactSimError,
    InvalidParameterTypeException,
    InvalidParameterValueException,
    RCLError,  # such as a parameter file that is missing
    UnknownROSArgsError,
)
"""What ends a program with one line of reason."""


class SimulationNode(Node):
    """ROS 2 node `contact_sim`; it raises ContactSimError where it cannot start."""

    _reported_statuses: Sequence[int] = (0,) * len(STATUSES)
    """Steps with each status at the last /diagnostics."""
    _clock_warning = ''

    def __init__(self, **node_options: Any) -> None:
        # it makes the time that others follow: with use_sim_time it would hear its own /clock
        overrides = node_options.pop('parameter_overrides', None) or ()
        overrides = [*overrides, Parameter('use_sim_time', value=False)]
        super().__init__('contact_sim', parameter_overrides=overrides, **node_options)
        self._unique_name = UniqueName(self)
        log = self.get_logger()

        # parameters, robot and simulator
        self.parameters = ParameterServer(
            self, lambda settings: check_settings(self.robot, settings), self._change_settings
        )
        self.parameters.declare(PARAMETER_GROUPS)
        settings = self.parameters.settings
        described = loaded_robot(settings)
        names = described.joint_names
        self.parameters.declare(groups_by_name(settings, names))
        self.robot = driven_robot(described, settings)
        self.parts = parts_of(self.robot)
        self.sim = loaded_simulator(self.robot, settings)
        self.sim.reset(start_configuration(self.sim, settings), time=self.sim.time_step)

        # commands, outputs and the loop between them
        common = settings['']
        self.commands = self._made_commands(settings)
        self._unique_name.check()
        self.outputs = Outputs(self, self.sim, settings)
        self.pacer = Pacer(common.real_time_factor)
        self.lockstep = Lockstep(self.commands, names, owned_joints(settings, names), log.warning)
        self._configure_lockstep(settings)
        world_frames = common.odom_frame, common.world_frame
        self.pushes = Pushes(self.sim, common.frame_prefix, world_frames)
        self.pushes.rules = settings['push']
        self.loop = Loop(
            self.sim, self.commands, self.lockstep, self.pushes, self.outputs, self.pacer,
            log.error, self._diagnose,
        )  # fmt: skip
        self.loop.paused = common.start_paused
        self.loop.guard = TouchGuard(self.robot, common.end_on_contact)
        if common.clock == 'follow':
            self._follow_clock()
        self.recorder = self._begin_recording(settings)

        # subscriptions, services and the viewer
        self.state_control = StateControl(self.sim, self.loop, self.commands, self.parameters)
        self.population = Population(
            self, self.state_control, self.outputs,
            {part.name: Subscriptions(self, part, self.state_control) for part in self.parts},
            self._follow_robots, self._no_other_robots,
        )  # fmt: skip
        self._open_lockstep_socket(settings['lockstep'].socket)
        self.standard_services = Services(self, self.state_control)
        if INSTALLED:
            self.simulation_interfaces = SimulationInterfaces(
                self, self.state_control, self.standard_services, self.population
            )
        self._in_force = self.parameters.accept_changes()
        self._log_start()
        self.page = ServedPage(self, self.state_control, self.standard_services)

    def _made_commands(self, settings: Settings) -> CommandBuffer:
        """Return what takes the commands of all joints, which hold their positions at first."""
        commands = CommandBuffer(
            self.robot.joint_names,
            self.robot.joint_positions(self.sim.q),
            *joint_gains(self.robot, settings),
            self.robot.continuous_joints,
        )
        commands.rules = settings['trajectory']
        return commands

    def _follow_clock(self) -> None:
        """Let the loop keep to the /clock of another simulation."""
        follower = self.loop.clock_follower = ClockFollower()
        self.create_subscription(
            Clock, CLOCK.name, lambda message: follower.receive(seconds(message.clock)),
            QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
        )  # fmt: skip

    def create_service(self, kind: Any, name: str, callback: Any, **options: Any) -> Any:
        """Create a service as any node does, and answer even where the callback raises."""
        answer = answering(callback, lambda line: self.get_logger().error(line))
        return super().create_service(kind, name, answer, **options)

    def run(self, keep_running: Callable[[], bool]) -> None:
        """Step, publish and pace until `keep_running` returns False."""
        try:
            self.loop.run(keep_running)
        finally:
            self.close()

    def close(self) -> None:
        """Finish the recording, and end the viewer."""
        if self.recorder is not None:
            self.recorder.close()
        self.page.close()
        if self.lockstep.socket is not None:
            self.lockstep.socket.close()

    def _configure_lockstep(self, settings: Settings) -> None:
        self.lockstep.configure(settings['lockstep'], nanoseconds(self.sim.time))
        self.outputs.instant_period = self.lockstep.period

    def _open_lockstep_socket(self, path: str) -> None:
        """Have states and commands go through a Unix socket, too, if `path` is not empty."""
        if not path:
            return
        robots = {name: own.on_socket() for name, own in self.population.subscriptions.items()}
        served = self.lockstep.socket = LockstepSocket(path, robots, self.get_logger().info)
        publishers = {publisher.name: publisher for publisher in self.outputs.publishers}
        for name in robots:
            publisher = publishers[own_topic(name, JOINT_STATES.name, self.get_name())]
            publisher.others = partial(served.listens, name), partial(served.send, name)
        self.outputs.states_first = True

    def _begin_recording(self, settings: Settings) -> Recorder | None:
        def failed(reason: str) -> None:
            self.loop.tally.recording = f'recording has ended: {reason}'
            self.get_logger().error(self.loop.tally.recording)

        recorder = recorder_of(self.sim, settings, failed)
        if recorder is not None:
            self.loop.when_at_rest = recorder.flush
        return recorder

    def _follow_robots(self, robot: RobotModel) -> None:
        """Know the robots that there are from now on, under the settings in force."""
        self.robot, self.parts = robot, parts_of(robot)
        self._in_force = self.parameters.settings
        try:
            self._apply_settings(self._in_force, {'contact'})
        except ContactSimError as error:  # what was set while the robots were built
            self.get_logger().error(f'parameters that other robots cannot have: {error}')

    def _no_other_robots(self) -> str:
        """Return why robots may not come or go, '' if they may."""
        if self.recorder is not None and not self.loop.tally.recording:
            return (
                'a recording is under way, which is of the robots of the start: start the node '
                'without record'
            )
        if self.lockstep.socket is not None:
            return 'lockstep.socket is for the robots of the start: start the node without it'
        return ''

    def _log_start(self) -> None:
        """Log what is simulated, in lines of bounded length: there may be thousands of joints."""
        robot, sim, settings = self.robot, self.sim, self.parameters.settings
        log = self.get_logger()

        def info(line: str) -> None:
            log.info(shortened(line))

        info(
            f'{robot.name}: {robot.total_mass:.3f} kg, contact model {sim.contact_model}, '
            f'h = {sim.time_step:g} s, friction {settings["friction"].mu:g}'
        )
        for part in self.parts:
            own = part.robot
            who = f'{part.name} = {own.name}, {own.total_mass:.3f} kg; ' if part.name else ''
            info(f'{who}joints, in the order of unnamed commands: {", ".join(own.joint_names)}')
        kp, kd = joint_gains(robot, settings)
        log.info(describe_gains(robot, kp, kd, sim.q))
        log.debug(gain_table(robot, kp, kd))
        stable = gains_limit(robot, kp, kd, sim.q)
        if sim.time_step > stable:
            log.warning(
                f'explicit PD with these gains is not stable at h = {sim.time_step:g} s in the '
                f'air: choose a time_step below {stable:.2g} s or smaller gains'
            )
        for line in (*describe_actuators(robot), describe_limits(robot.position_limits)):
            info(line)
        if robot.constraints:
            info(f'held together: {"; ".join(map(str, robot.constraints))}')
        feet = ', '.join(f'{p.name} (r = {p.radius:g} m)' for p in robot.contact_points)
        height = settings[''].initial_height
        info(f'contact points: {feet or "none"}; the lowest starts at a gap of {height:g} m')
        collisions = robot.collisions
        bodies = dict.fromkeys(collisions.solids[k].frame for k in collisions.grounded_places)
        info(f'links that touch the ground: {", ".join(bodies) or "none"}')
        for note in robot.notes:
            info(note)
        for approximation in robot.approximations:
            info(
                f'{approximation.geometry} touches others as {approximation.stands}, which '
                f'leaves out up to {approximation.error:.2g} m'
            )
        rates = vars(settings['publish_rate']).items()
        info('messages per second: ' + ', '.join(f'{name} {rate:g}' for name, rate in rates))
        for line in self.parameters.unknown():
            log.warning(shortened(line))
        if robot.floating_base and not (robot.contact_points or robot.collisions.grounded):
            log.warning('nothing of the robot touches the ground: it will fall; set feet')

    # ---------------------------------------------------------------- changes of parameters

    def _change_settings(self, settings: Settings, prefixes: set[str]) -> None:
        """Let settings take effect between two steps, all of them or none."""
        # those of the terrain wait for the next reset, and all for the end of a step that is long
        ground = chosen_terrain(settings) if 'terrain' in prefixes else None
        try:
            self.loop.between_steps(lambda: self._apply_or_undo(settings, prefixes))
        except StepTakesLong:
            self.get_logger().warning(
                f'{self.loop.watchdog.complaint}; what was set takes effect after it'
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
        common = settings['']
        self.sim.restitution = common.restitution
        self.sim.friction = settings['friction'].mu
        self.sim.torsional_friction = settings['friction'].torsional
        self.sim.rolling_friction = settings['friction'].rolling
        if common.real_time_factor != self.pacer.factor:
            self.pacer.restart(self.sim.time, common.real_time_factor)
        if any(prefix == 'contact' or prefix.startswith('contact.') for prefix in prefixes):
            self._switch_contact_model(settings)
        self.commands.set_gains(*joint_gains(self.robot, settings))
        self.commands.rules = settings['trajectory']
        self.outputs.configure(settings)
        self._configure_lockstep(settings)
        self.pushes.rules = settings['push']
        constraints = (*self.robot.constraints, *chosen_constraints(settings))
        if constraints != self.sim.given_constraints:
            self.sim.constraints = constraints
            names = ', '.join(constraint.name for constraint in constraints)
            time = f't = {self.sim.time:.9g} s'
            self.get_logger().info(f'constraints from {time} on: {names or "none"}')

    def _switch_contact_model(self, settings: Settings) -> None:
        old, contact = self.sim.contact_model, settings['contact']
        chosen = chosen_contact_model(settings)
        if (chosen.name, chosen.parameters) != (old, self.sim.model.parameters):
            self.sim.contact_model = chosen
        self.sim.baumgarte = contact.baumgarte
        self.sim.restitution_threshold = contact.restitution_threshold
        if old != contact.model:
            self.loop.tally.switches += 1
            switch = f'from {old} to {contact.model} at t = {self.sim.time:.9g} s'
            self.loop.tally.last_switch = switch
            self.get_logger().info(f'contact model switched {switch}')
        self.sim.shadow = chosen_shadows(settings)

    # ---------------------------------------------------------------- /diagnostics

    def _diagnose(self) -> None:
        """Publish /diagnostics, and log what is new in it."""
        tally, common = self.loop.tally, self.parameters.settings['']
        before, self._reported_statuses = self._reported_statuses, tuple(tally.statuses)
        solver = troubles(before, self._reported_statuses, self.sim.last_report)
        clock = clock_complaint(self, common.clock)
        name = self.get_fully_qualified_name().lstrip('/')
        level, text = self._health(clock, '; '.join(solver))
        status = {
            'level': level, 'name': f'{name}: simulation', 'message': text, 'hardware_id': name,
        }  # fmt: skip
        ages = {part.prefix: self.commands.age(part.joints) for part in self.parts}
        following = self.loop.clock_follower is not None
        factor = 0.0 if following else common.real_time_factor
        values = {
            'contact_model': self.sim.contact_model,
            'contact_model_switches': tally.switches,
            'last_contact_model_switch': tally.last_switch,
            'shadow_models': ' '.join(self.sim.shadow),
            'constraints': ' '.join(constraint.name for constraint in self.sim.constraints),
            'real_time_factor': f'{self.pacer.measured:.4g}',
            'wanted_real_time_factor': f'{factor:g}',
            'overruns': self.pacer.overruns,
            'steps_since_reset': self.sim.step_count,
            'messages_lost': sum(publisher.lost for publisher in self.outputs.publishers),
            'long_steps': self.loop.watchdog.long,
            'viewer': self.page.address,
            'paused': self.loop.paused,
            'commands_accepted': self.commands.accepted,
            'commands_dropped': self.commands.dropped,
            'last_refusal': self.commands.last_refusal,
            **{
                f'{prefix}command_age': 'none' if age is None else f'{age:.3f}'
                for prefix, age in ages.items()
            },
            'pushes_accepted': self.pushes.accepted,
            'pushes_refused': self.pushes.refused,
            'lockstep': self.lockstep.enabled,
            'lockstep_timeouts': self.lockstep.timeouts,
            'lockstep_late_commands': self.lockstep.late,
            'lockstep_waits_for': ' '.join(self.lockstep.awaited_joints),
            'lockstep_lost': ' '.join(self.lockstep.lost_joints),
            **status_counts(tally.statuses),
            **{f'sent on {p.name}': p.sent for p in self.outputs.publishers},
        }
        self.outputs.diagnostics.publish(diagnostics(nanoseconds(self.sim.time), status, values))
        if clock and clock != self._clock_warning:
            self.get_logger().warning(clock)
        self._clock_warning = clock
        for trouble in solver:
            self.get_logger().warning(trouble)

    def _health(self, clock: str, solver: str) -> tuple[int, str]:
        """Return level and message of /diagnostics: the first problem in the order of weight."""
        loop, lockstep, common = self.loop, self.lockstep, self.parameters.settings['']
        if failure := loop.tally.failure or loop.tally.recording:
            return ERROR, failure
        if warning := loop.watchdog.complaint or clock or solver:
            return WARN, warning
        if lockstep.silent_joints:
            joints = ', '.join(lockstep.silent_joints)
            return WARN, f'lockstep: no command for {joints}; {lockstep.parameters.policy}'
        factor, measured = common.real_time_factor, self.pacer.measured
        following = loop.clock_follower is not None
        if not (loop.paused or following) and 0.0 < measured < SLOW * factor:
            return WARN, (
                f'slower than asked: real-time factor {measured:.3g} instead of {factor:g}; '
                'time slows down, no step is skipped'
            )
        for part in self.parts:
            age, whom = self.commands.age(part.joints), f' for {part.name}' if part.name else ''
            if age is not None and age > common.command_timeout:
                return WARN, f'no command{whom} for {age:.1f} s; the last one stays in force'
        if self.page.error:
            return WARN, self.page.error
        return OK, 'paused' if loop.paused else 'running'

    def destroy_node(self) -> None:
        """Destroy the node, and free its name at once: another may start in this process."""
        self._unique_name.release()
        super().destroy_node()


# -------------------------------------------------------------------- unique node name


class UniqueName:
    """Finds another running node of the same name: topics and services would be mixed up.

    The ROS graph alone does not tell: a node that was killed stays in it for some 20 s, and one
    that starts is not there yet. So a node binds a socket, which the kernel gives to one process
    and frees when that ends: nodes on this machine are found in every case. A node on another
    machine is alive if it publishes /diagnostics.
    """

    def __init__(self, node: Node) -> None:
        self._node, self._begin = node, time.perf_counter()
        self._name = node.get_fully_qualified_name()
        self._domain = os.environ.get('ROS_DOMAIN_ID', '0')
        key = hashlib.sha256(f'{self._domain}{self._name}'.encode()).hexdigest()
        self._address = f'\0contact_sim_{key}'
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._first = self._takes_name()

    def check(self) -> None:
        """Raise ContactSimError where another node has the name; warn where that one is dead."""
        end = self._begin + SILENCE
        while not self._first and time.perf_counter() < end:  # a node may be about to end
            time.sleep(0.05)
            self._first = self._takes_name()
        if not self._first:
            self._refuse()
        if os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE') in ('LOCALHOST', 'OFF'):
            return  # there are no other machines
        end = self._begin + DISCOVERY
        while not self._others() and time.perf_counter() < end:
            time.sleep(0.05)
        if not self._others():
            return
        if self._publishes_diagnostics():
            self._refuse()
        self._node.get_logger().warning(
            f'there was a node {self._name}; it is silent, so it is taken for dead'
        )

    def release(self) -> None:
        """Free the name."""
        self._socket.close()

    def _takes_name(self) -> bool:
        try:
            self._socket.bind(self._address)
        except OSError:
            return False
        return True

    def _refuse(self) -> NoReturn:
        raise ContactSimError(
            f'a node {self._name} runs on ROS domain {self._domain} already; end it, or start '
            "this one under another name or namespace, such as --ros-args -r __ns:='/second'"
        )

    def _others(self) -> int:
        known = self._node.get_node_names_and_namespaces()
        names = [f'{namespace.rstrip("/")}/{name}' for name, namespace in known]
        return names.count(self._name) - 1

    def _publishes_diagnostics(self) -> bool:
        end = time.perf_counter() + SILENCE
        while (left := end - time.perf_counter()) > 0.0 and self._others():
            heard, message = wait_for_message(
                DiagnosticArray, self._node, '/diagnostics', time_to_wait=left
            )
            own = self._name.lstrip('/')
            if heard and any(status.hardware_id == own for status in message.status):
                return True
        return False


# -------------------------------------------------------------------- callbacks


class CallbacksEnded(ContactSimError):
    """Callbacks are served no more, so the node has to end."""


class CallbackThread:
    """Serves the callbacks of a node in a thread of its own, as long as `ok` says that ROS is up.

    A callback that raises loses its own message or request, and is reported. If the executor
    itself fails, `alive` turns False and `end` raises the reason.
    """

    def __init__(self, node: Node, ok: Callable[[], bool] | None = None) -> None:
        self._log, self._ok = node.get_logger(), ok or node.context.ok
        self._executor = quickest_executor(node.context)
        self._executor.add_node(node)
        self._error: BaseException | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether callbacks are served."""
        return self._thread.is_alive()

    def end(self) -> None:
        """Serve no more; raise CallbacksEnded where that was over already, though ROS is up."""
        if self._error is not None:
            raise CallbacksEnded(f'callbacks are served no more: {self._error!r}') from self._error
        self._ended = True
        self._executor.wake()
        self._thread.join(timeout=LONGEST_END)
        self._executor.shutdown(timeout_sec=1.0)

    def _serve(self) -> None:
        try:
            while self._ok() and not self._ended:
                self._serve_one()
        except ShutdownException:
            pass
        except BaseException as error:
            if self._ok():
                self._error = error

    def _serve_one(self) -> None:
        error: BaseException | None = None
        if isinstance(self._executor, SingleThreadedExecutor):
            try:
                task, _, _ = self._executor.wait_for_ready_callbacks()
            except TimeoutException:
                return
            serve = partial(_result_of, task)
        else:
            serve = partial(self._executor.spin_once, LONGEST_WAIT)
        try:
            serve()
        except BaseException as raised:
            here = raised.__traceback__
            if here is None or here.tb_next is None:
                raise  # the executor itself, which has no frames in Python
            error = raised
        if error is not None and self._ok():
            self._log.error(f'a callback failed, its message is lost: {_with_traceback(error)}')


def _result_of(task: Any) -> None:
    """Run a task; raise what its callback raises."""
    task()
    error = task.exception()  # rclpy keeps those of Exception, and passes on the rest
    if error is not None:
        raise error


def answering(
    callback: Callable[[Any, Any], Any], report: Callable[[str], None]
) -> Callable[[Any, Any], Coroutine[Any, Any, Any]]:
    """Return a service callback that reports what `callback`, a coroutine or not, raises."""

    async def answer(request: Any, response: Any) -> Any:
        try:
            returned = callback(request, response)
            return await returned if inspect.isawaitable(returned) else returned
        except Exception as error:
            expected = isinstance(error, ContactSimError)
            report(f'a service failed: {error if expected else _with_traceback(error)}')
            reason = str(error) if expected else shortened(repr(error))
            return refusal(request, type(response)(), reason)

    return answer


def refusal(request: Any, response: Any, reason: str) -> Any:
    """Return a response with the reason of a failure in the fields that its type has for it."""
    result: Any = getattr(response, 'result', None)
    if hasattr(response, 'success'):  # std_srvs
        response.success, response.message = False, reason
    elif hasattr(result, 'error_message'):  # simulation_interfaces
        result.result, result.error_message = result.RESULT_OPERATION_FAILED, reason
    elif hasattr(result, 'successful'):
        result.successful, result.reason = False, reason
    elif hasattr(response, 'results'):
        refused = SetParametersResult(successful=False, reason=reason)
        response.results = [refused] * len(request.parameters)
    return response


def _with_traceback(error: BaseException) -> str:
    return shortened(''.join(traceback.format_exception(error)))


# -------------------------------------------------------------------- the executable


def run(node: SimulationNode, keep_running: Callable[[], bool] = rclpy.ok) -> None:
    """Run the node's loop here and its callbacks in another thread until `keep_running` is False.

    CallbacksEnded is raised where no more callbacks are served.
    """
    callbacks = CallbackThread(node)
    try:
        node.run(lambda: keep_running() and callbacks.alive)
    except RCLError:
        if rclpy.ok():
            raise
    finally:
        try:
            callbacks.end()
        finally:
            node.destroy_node()


def main(args: list[str] | None = None) -> int:
    """Start the simulation; return 1 with one line of reason where it cannot go on."""
    logging.basicConfig(format='[%(levelname)s] [%(name)s]: %(message)s')
    sys.setswitchinterval(SWITCH_INTERVAL)
    if problem := too_small(OF_NODE, 'the node'):
        print(f'{NAME}: {problem}', file=sys.stderr)
        return 1

    def simulate(keep_running: Callable[[], bool]) -> str:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        with compiling_while(keep_running):
            node = SimulationNode()
        with compiling_meanwhile():
            run(node, keep_running)
        return node.loop.tally.recording  # why recording ended early

    return exit_code(NAME, simulate)


def exit_code(name: str, simulate: Callable[[Callable[[], bool]], str]) -> int:
    """Return 0, or 1 with one line of the reason that `simulate` returned, or why it failed.

    `simulate` is given a function that says whether to go on.
    """
    with Interruption(name) as interruption:
        try:
            reason = simulate(lambda: rclpy.ok() and not interruption.requested)
        except (KeyboardInterrupt, ExternalShutdownException):  # before it has begun
            reason = ''
        except START_ERRORS as error:
            reason = shortened(error)
        finally:
            rclpy.try_shutdown()
    if reason:
        print(f'{name}: {reason}', file=sys.stderr)
    return 1 if reason else 0


HELP = """Simulate a robot as the ROS 2 node /contact_sim. docs/node.md has its topics,
docs/parameters.md its parameters; in a ROS workspace: ros2 run contact_sim simulation."""
EXAMPLES = (
    '--ros-args -p robot:=go1',
    '--ros-args -p robot:=anymal_b -p contact.model:=sap -p friction.mu:=0.5',
    '--ros-args -p urdf_path:=my_robot.urdf -p record:=run.npz -p viewer.port:=8080',
)


def executable() -> None:
    """Run `main` as a process."""
    if not ros_help(sys.argv[1:], 'contact_sim node', HELP, EXAMPLES):
        leave(main())


if __name__ == '__main__':
    executable()
