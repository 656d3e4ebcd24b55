"""LockstepTrial: controllers as separate ROS processes, in lockstep with the real node."""

from __future__ import annotations

import random
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header

from contact_sim.errors import InvalidInput, shown
from contact_sim.replay._recording import Recording
from contact_sim.robot._loading import load_robot
from contact_sim.ros._client import TIMEOUT, SimulationClient
from contact_sim.ros._conversions import seconds, stamp_nanoseconds
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.simulation._running import PushSchedule
from contact_sim.simulation._trajectory import Trajectory, whole_steps
from contact_sim.testing._trial import checked_push, recorded_trajectory
from contact_sim.topics._table import nanoseconds

# --- The trial

Program = str | Path | Sequence[str]
"""A Python module, a Python file, or a command with its arguments."""
START_TIMEOUT = 240.0
"""Wall seconds until all processes have met; a first start compiles the kernels."""
RATES = ('joint_states', 'odom', 'imu', 'wrenches')
"""Topics that controllers see; published once per command."""
SLOWEST = 100.0
"""Wall seconds that a simulated second may take before something must be wrong."""


class LockstepTrial:
    """Runs controllers against the node `contact_sim`, step by step, on a ROS domain of its own.

    Simulated time passes only in `advance`. A step is taken when every command for it is there, so
    the run is the same on a slow and on a fast machine; it is recorded by the node.

    Args:
        controllers: programs; each is started with `--ros-args` and its parameters.
        folder: for the recording and the logs.
        robot: name of the catalogue or path of a URDF; also a parameter of every controller.
        control_steps: physics steps per command.
        faults: whether messages may be dropped and delayed; costs a detour through this process.
        patience: wall seconds to wait for a command, then the trial fails.
        parameters: further ROS parameters of the simulation.
        controller_parameters: further ROS parameters of the controllers.

    Raises:
        TimeoutError: the processes did not start, or have not met.
    """

    def __init__(
        self,
        controllers: Sequence[Program],
        folder: Path,
        robot: str = 'go1',
        control_steps: int = 1,
        faults: bool = False,
        patience: float = 10.0,
        parameters: Mapping[str, Any] | None = None,
        controller_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._robot = load_robot(robot)
        folder.mkdir(parents=True, exist_ok=True)
        self.recording = folder / 'run.npz'
        source = {'urdf_path' if '/' in robot else 'robot': robot}
        if faults and len(controllers) != 1:
            raise InvalidInput(f'{len(controllers)} controllers: faults need exactly one')
        self._time_step = float((parameters or {}).get('time_step', 1e-3))
        self._period = control_steps
        rate = 1.0 / (control_steps * self._time_step)
        settings: dict[str, Any] = {f'publish_rate.{topic}': rate for topic in RATES}
        settings |= {
            **source, 'record': self.recording, 'start_paused': True, 'real_time_factor': 0.0,
            'lockstep.enabled': True, 'lockstep.period': control_steps,
            'lockstep.timeout': patience, 'lockstep.start_timeout': START_TIMEOUT,
            'lockstep.policy': 'pause', **(parameters or {}),
        }  # fmt: skip
        self._tick = 1
        self._client = SimulationClient(folder, 'trial')
        # depth 1: Fast DDS asks at once whether a full queue has arrived, else only every 3 s
        self._wrenches = self._client.node.create_publisher(WrenchStamped, 'external_wrench', 1)
        self._pushes = PushSchedule()
        self._sent: dict[str, int] = {}  # link to the step before which the last message ends
        self._programs: list[Process] = []
        self._closed = False
        self._relay = Relay(self._client.node, control_steps, self._time_step) if faults else None
        try:
            self._client.start(settings)
            arguments = ros_arguments({**source, **(controller_parameters or {})})
            if faults:  # connects the controller to the relay
                for topic in (*STATES, COMMANDS):
                    arguments = [*arguments, '-r', f'{topic}:={PREFIX}{topic}']
            for k, program in enumerate(controllers):
                command = [sys.executable, str(program)] if isinstance(program, Path) else program
                log = folder / f'controller_{k}.log'
                self._programs.append(Process(command, arguments, self._client.domain, log))
            self._client.wait(self._met, 'the controllers', START_TIMEOUT)
        except BaseException:
            self.close()
            raise

    def _met(self) -> bool:
        """Return whether everybody is there; the node itself waits until they hear each other."""
        self._check_alive()
        node, prefix = self._client.node, PREFIX if self._relay else ''
        here = node.count_publishers(prefix + COMMANDS) >= len(self._programs)
        return here and bool(node.count_publishers('/clock'))

    # ---------------------------------------------------------------- time and disturbances

    def advance(self, seconds: float) -> None:
        """Let exactly `seconds` of simulated time pass, as fast as the machine allows.

        Raises:
            InvalidInput: not a whole number of steps.
            TimeoutError: a controller did not answer, or a process has ended.
        """
        steps = whole_steps('seconds', seconds, self._time_step)
        end = self._tick + steps
        while self._tick < end:
            links = self._pushes.acting(self._tick)
            for link in links:
                if self._sent.get(link, 0) <= self._tick:
                    self._send_push(link)
            steps = min([end, *(self._sent[link] for link in links)]) - self._tick
            self._tick += steps
            self.set(step_count=steps)
            timeout = START_TIMEOUT + SLOWEST * steps * self._time_step
            response = self._client.step(timeout=timeout)
            self._check_alive()
            if not response.success:
                raise TimeoutError(f'{response.message}\n{self._said()}')

    def set(self, values: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Set parameters of the simulation between two steps.

        Raises:
            InvalidInput: the simulation refuses them; says why.
        """
        result = self._client.set(values, **more)
        if not result.successful:
            raise InvalidInput(result.reason)

    @property
    def friction(self) -> float:
        """Friction coefficient of every foot [-]; assignable."""
        return float(self._client.get('friction.mu')[0])

    @friction.setter
    def friction(self, value: float) -> None:
        self.set({'friction.mu': float(value)})

    @property
    def contact_model(self) -> str:
        """Name of the contact model; assignable."""
        return str(self._client.get('contact.model')[0])

    @contact_model.setter
    def contact_model(self, name: str) -> None:
        self.set({'contact.model': name})

    def reset(self) -> None:
        """Put the robot back into its pose; time goes on by one step."""
        self._tick += 1
        self._client.reset()
        self._end_pushes()

    def restart(self) -> None:
        """Put robot and time back to where they were at the start.

        Controllers see stamps go back; a controller with memory has to begin anew then.

        Raises:
            InvalidInput: the trial has faults, which count time from the start.
        """
        if self._relay is not None:
            raise InvalidInput('a trial with faults cannot begin anew: start another one')
        if self._tick <= self._period:  # past the first instant: then everybody listens
            self.advance(self._period * self._time_step)
        self._client.reset()
        self._client.reset_time()
        self._end_pushes()
        self._tick = 1

    def push(
        self,
        link: str,
        force: Sequence[float],
        seconds: float,
        torque: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        """Push a link from now on for `seconds`; pushes on one link add up.

        Args:
            link: frame at whose origin the push acts.
            force: [N], world axes, shape (3,).
            seconds: how long.
            torque: [N m], world axes, shape (3,).

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidInput: not three finite numbers each, or not a whole number of steps.
        """
        wrench = checked_push(self._robot, link, force, torque)
        steps = whole_steps('seconds', seconds, self._time_step)
        if steps:
            self._pushes.add(link, wrench, self._tick + steps)
            self._send_push(link)

    def _send_push(self, link: str) -> None:
        """Send the sum of the pushes on a link; in the node it replaces what was sent before."""
        wrench = self._pushes.acting(self._tick)[link].tolist()
        self._sent[link] = end = self._pushes.constant_until(self._tick, link)
        duration = (end - self._tick) * self._time_step
        self.set({'push.duration': duration, 'push.axes': 'world'})
        message = WrenchStamped(header=Header(frame_id=link))
        f, m = message.wrench.force, message.wrench.torque
        f.x, f.y, f.z, m.x, m.y, m.z = wrench
        self._client.wait(lambda: self._wrenches.get_subscription_count() > 0, 'external_wrench')
        self._wrenches.publish(message)
        # received before the next call can be: the first step already feels it
        if not self._wrenches.wait_for_all_acked(Duration(seconds=TIMEOUT)):
            raise TimeoutError(f'the simulation does not take pushes\n{self._said()}')

    def _end_pushes(self) -> None:
        self._pushes.clear()
        self._sent.clear()

    def drop_sensors(self, seconds: float, share: float = 1.0, seed: int = 0) -> None:
        """Keep `share` of the states of the next `seconds` from the controllers.

        Where they see nothing they command nothing: the last command stays in force.
        """
        self._faults().drop(whole_steps('seconds', seconds, self._time_step), share, seed)

    def delay_commands(self, seconds: float) -> None:
        """Let every command from now on act `seconds` of simulated time later."""
        self._faults().delay(whole_steps('seconds', seconds, self._time_step))

    def lag_commands(self, largest: float, seed: int = 0) -> None:
        """Let every command take up to `largest` wall seconds longer: the run stays the same."""
        self._faults().lag(largest, seed)

    def _faults(self) -> Relay:
        """Return the relay, once the answer to the present state has passed it."""
        relay = self._relay
        if relay is None:
            raise InvalidInput('this trial has no faults: start it with faults=True')
        instant = self._tick // self._period * self._period * self._time_step
        if self._tick > 1:
            self._client.wait(
                lambda: relay.answered > instant - 0.5 * self._time_step, 'the last command'
            )
        return relay

    # ---------------------------------------------------------------- results

    @property
    def trajectory(self) -> Trajectory:
        """Every step so far, from the recording."""
        return recorded_trajectory(Recording(self.recording))

    @property
    def digest(self) -> str:
        """One hash of all states so far: equal runs have equal ones."""
        return Recording(self.recording).digest

    def close(self) -> None:
        """End all processes, which completes the recording."""
        if self._closed:
            return
        self._closed = True
        for program in self._programs:
            program.stop()
        self._client.close()

    def _check_alive(self) -> None:
        self._client.check_alive()
        if not all(program.running for program in self._programs):
            raise TimeoutError(f'a controller has ended\n{self._said()}')

    def _said(self) -> str:
        logs = [
            self._client.output_tail(),
            *(program.output()[-2000:] for program in self._programs),
        ]
        return '\n'.join(logs)


# --- Relay between simulation and controllers, which drops and delays messages

EVERY = QoSProfile(depth=1000)
COMMANDS = 'joint_commands'
STATES: dict[str, type] = {'odom': Odometry, 'imu/data': Imu, 'joint_states': JointState}
"""Topics on which controllers see the simulation."""
PREFIX = 'trial/'
"""Put before the topics of the controllers."""


@dataclass(frozen=True)
class Dropout:
    """States that get lost, by their stamps: topics need not keep in step with each other."""

    begin: int
    """Those stamped later than this [ns]."""
    end: int
    """Those stamped up to this [ns]."""
    share: float
    """Number of them."""
    seed: int


class Relay:
    """Passes states on to controllers and commands back; faults depend on stamps alone.

    Args:
        node: to subscribe and publish with.
        control_steps: physics steps per command.
        time_step: [s].

    Attributes:
        answered: stamp of the last state that a command, or nothing, has answered [s].
    """

    def __init__(self, node: Node, control_steps: int, time_step: float) -> None:
        self._control_steps, self._time_step = control_steps, time_step
        self._late: deque[JointState] = deque()
        self._delay = 0
        self._dropouts: list[Dropout] = []
        self._lag, self._lag_noise = 0.0, random.Random(0)
        self.answered = 0.0
        self._acknowledge = node.create_publisher(Header, 'contact_sim/lockstep_ack', EVERY)
        self._commands = node.create_publisher(JointState, COMMANDS, EVERY)
        node.create_subscription(JointState, PREFIX + COMMANDS, self._on_command, EVERY)
        for topic, kind in STATES.items():
            self._pass_on(node, topic, kind)

    def drop(self, steps: int, share: float, seed: int) -> None:
        """Drop `share` of the states of the next `steps` steps."""
        if not 0.0 <= share <= 1.0:
            raise InvalidInput(f'share = {shown(share)}: expected a value in [0, 1]')
        begin = nanoseconds(self.answered)
        end = begin + nanoseconds((steps + 0.5) * self._time_step)
        self._dropouts.append(Dropout(begin, end, share, seed))

    def delay(self, steps: int) -> None:
        """Let commands act `steps` steps later."""
        if steps % self._control_steps:
            raise InvalidInput(
                f'{steps} steps: expected a multiple of the control period, {self._control_steps}'
            )
        self._delay = steps // self._control_steps

    def lag(self, largest: float, seed: int) -> None:
        """Keep every command back for up to `largest` wall seconds."""
        self._lag, self._lag_noise = largest, random.Random(seed)

    def _pass_on(self, node: Node, topic: str, kind: type) -> None:
        publisher = node.create_publisher(kind, PREFIX + topic, EVERY)

        def on_state(message: Any) -> None:
            if not self._drops(stamp_nanoseconds(message.header.stamp)):
                publisher.publish(message)
            elif topic == 'joint_states':
                self._pass_over(message.header.stamp)

        node.create_subscription(kind, topic, on_state, EVERY)

    def _drops(self, stamp: int) -> bool:
        """Return whether the state of a stamp [ns] is dropped: all of it, or nothing."""
        begun = (dropout for dropout in reversed(self._dropouts) if dropout.begin < stamp)
        newest = next(begun, None)
        if newest is None or stamp > newest.end:
            return False
        return random.Random(f'{newest.seed} {stamp}').random() < newest.share

    def _on_command(self, command: JointState) -> None:
        if self._lag:
            time.sleep(self._lag_noise.uniform(0.0, self._lag))
        stamp = command.header.stamp
        if self._late and self._late[-1].header.stamp == stamp:
            self._late.pop()  # the state was told twice, as to somebody who may not have listened
        self._late.append(command)
        while len(self._late) > self._delay + 1:
            self._late.popleft()
        if len(self._late) <= self._delay:
            self._pass_over(stamp)
            return
        due = self._late.popleft() if self._delay else self._late.pop()
        due.header.stamp = stamp
        self._commands.publish(due)
        self.answered = seconds(stamp)

    def _pass_over(self, stamp: Any) -> None:
        """Let the step from `stamp` be taken without a new command."""
        self._acknowledge.publish(Header(stamp=stamp))
        self.answered = seconds(stamp)
