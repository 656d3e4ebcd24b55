"""A node that starts a simulation as a process of its own and talks to it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Int16MultiArray
from std_srvs.srv import SetBool, Trigger
from visualization_msgs.msg import MarkerArray

from contact_sim._types import Array
from contact_sim.robot._contact_points import foot_frame
from contact_sim.robot._model import RobotModel
from contact_sim.ros._conversions import seconds, stamp_nanoseconds
from contact_sim.ros._processes import Process, isolated_environment, ros_arguments
from contact_sim.topics._table import NODE, wrench_topic

# --- A node that watches a simulation through its topics, and what can be learned from them.

DEEP_QUEUE = QoSProfile(depth=5000)
"""Deep enough that a busy machine delays messages instead of losing them."""


class Observer(Node):
    """Subscribes to everything a simulation of `robot` publishes.

    Attributes:
        counts: messages per topic.
        clock: last simulated time [s].
        joints: positions of the actuated joints, then of passive ones, by stamp [ns].
        bases: base position and quaternion by stamp [ns].
        forces: contact force per foot in the foot's frame by stamp [ns].
        diagnostics: values of the last /diagnostics message.
        check: called again and again while waiting; raises where that is in vain.
    """

    def __init__(self, robot: RobotModel, **node_options: Any) -> None:
        super().__init__('observer', **node_options)
        self._callbacks = SingleThreadedExecutor()
        self._callbacks.add_node(self)
        self._pause = self.create_client(SetBool, 'contact_sim/pause')
        self.check: Callable[[], None] = lambda: None
        self.counts: Counter[str] = Counter()
        self.clock = 0.0
        self.joints: dict[int, Array] = {}
        self.bases: dict[int, Array] = {}
        self.forces: dict[str, dict[int, Array]] = {}
        self.diagnostics: dict[str, str] = {}
        self._watch(Clock, '/clock', self._on_clock)
        self._watch(JointState, 'joint_states', self._on_joint_states)
        self._watch(Odometry, 'odom', self._on_odom)
        self._watch(Imu, 'imu/data')
        for foot in robot.feet:
            self.forces[foot.name] = {}
            self._watch(WrenchStamped, wrench_topic(foot.name), self._on_wrench(foot.name))
        self._watch(Int16MultiArray, 'foot_contacts')
        self._watch(MarkerArray, 'contact_sim/contact_markers')
        self._watch(Float64MultiArray, 'contact_sim/solver_state')
        self._watch(DiagnosticArray, '/diagnostics', self._on_diagnostics)
        self._watch(JointState, 'joint_commands')

    def forget(self) -> None:
        """Start counting and collecting anew."""
        self.counts = Counter(dict.fromkeys(self.counts, 0))
        self.joints.clear()
        self.bases.clear()
        for forces in self.forces.values():
            forces.clear()

    def wait(self, done: Callable[[], bool], what: str, timeout: float) -> None:
        """Listen until `done()`.

        Raises:
            Exception: what `check` raises.
            TimeoutError: it did not happen within `timeout` wall seconds; names `what`.
        """
        end = time.monotonic() + timeout
        while not done():
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(
                    f'waited {timeout:g} s in vain for {what}; messages: {dict(self.counts)}'
                )
            self._callbacks.spin_once(0.05)

    def connected(self, controllers: int = 1) -> bool:
        """Return whether every topic has a publisher, and all of us listen to each other."""
        return (
            all(self.count_publishers(topic) for topic in self.counts)
            and self.count_subscribers('joint_states') >= 1 + controllers
            and self.count_subscribers('joint_commands') >= 2
            and self._pause.service_is_ready()
        )

    def let_time_run(self, timeout: float) -> None:
        """End the pause of the simulation.

        Raises:
            TimeoutError: it did not answer.
        """
        answer = self._pause.call_async(SetBool.Request(data=False))
        self.wait(answer.done, 'the answer of ~/pause', timeout)

    def drive(self, forward: float, turn: float, timeout: float) -> None:
        """Command a velocity [m/s], [rad/s] on `cmd_vel` once somebody listens.

        Raises:
            TimeoutError: nobody does.
        """
        publisher = self.create_publisher(Twist, 'cmd_vel', DEEP_QUEUE)
        self.wait(lambda: publisher.get_subscription_count() > 0, 'cmd_vel to be heard', timeout)
        message = Twist()
        message.linear.x, message.angular.z = forward, turn
        publisher.publish(message)

    def _watch(
        self, kind: type, topic: str, take: Callable[[Any], None] = lambda message: None
    ) -> None:
        self.counts[topic] = 0

        def on_message(message: Any) -> None:
            self.counts[topic] += 1
            take(message)

        self.create_subscription(kind, topic, on_message, DEEP_QUEUE)

    def _on_clock(self, message: Clock) -> None:
        self.clock = seconds(message.clock)

    def _on_joint_states(self, message: JointState) -> None:
        self.joints[stamp_nanoseconds(message.header.stamp)] = np.array(message.position)

    def _on_odom(self, message: Odometry) -> None:
        p, r = message.pose.pose.position, message.pose.pose.orientation
        self.bases[stamp_nanoseconds(message.header.stamp)] = np.array(
            [p.x, p.y, p.z, r.x, r.y, r.z, r.w]
        )

    def _on_wrench(self, foot: str) -> Callable[[WrenchStamped], None]:
        def take(message: WrenchStamped) -> None:
            f = message.wrench.force
            self.forces[foot][stamp_nanoseconds(message.header.stamp)] = np.array([f.x, f.y, f.z])

        return take

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        status = message.status[0]
        self.diagnostics = {value.key: value.value for value in status.values}
        self.diagnostics['message'] = status.message


class Track:
    """Observations on one time axis: samples for which every message arrived.

    Args:
        robot: the robot.
        observer: who listened.
        begin: simulated time that counts as zero [s].
        length: seconds from there on that are of interest.

    Attributes:
        time: since `begin` [s], shape (n,).
        configuration: shape (n, nq).
        height: height of the base [m], shape (n,).
        force: contact forces of the feet in world [N], shape (n, feet, 3).
        contact_point: lowest points of the contact spheres in world [m], shape (n, points, 3).
        foot: means of the contact points of each foot in world [m], shape (n, feet, 3).
    """

    def __init__(
        self, robot: RobotModel, observer: Observer, begin: float = 0.0, length: float = np.inf
    ) -> None:
        stamps = set(observer.joints) & set(observer.bases)
        for forces in observer.forces.values():
            stamps &= set(forces)
        ordered = [s for s in sorted(stamps) if begin - 1e-9 <= 1e-9 * s <= begin + length + 1e-9]
        n, feet = len(ordered), robot.feet
        self.time = 1e-9 * np.array(ordered, dtype=float) - begin
        self.configuration = np.zeros((n, robot.nq))
        self.height = np.array([observer.bases[stamp][2] for stamp in ordered])
        self.force = np.zeros((n, len(feet), 3))
        self.contact_point = np.zeros((n, len(robot.contact_points), 3))
        model = robot.pinocchio_model
        data = model.createData()
        q = robot.reference_configuration('standing').copy()
        for k, stamp in enumerate(ordered):
            q[:7] = observer.bases[stamp]
            told, driven = observer.joints[stamp], robot.n_joints
            passive = robot.passive_joints.with_joint_positions(q, told[driven:])
            self.configuration[k] = robot.with_joint_positions(passive, told[:driven])
            pin.forwardKinematics(model, data, self.configuration[k])
            for i, foot in enumerate(feet):
                joint = data.oMi[model.getJointId(foot.joint)]
                frame = joint * foot_frame(model, foot).placement
                self.force[k, i] = frame.rotation @ observer.forces[foot.name][stamp]
            for i, point in enumerate(robot.contact_points):
                joint = data.oMi[model.getJointId(point.joint)]
                self.contact_point[k, i] = joint.act(point.offset) - [0.0, 0.0, point.radius]
        means = [self.contact_point[:, foot.points].mean(axis=1) for foot in feet]
        self.foot = np.array(means).reshape(len(feet), n, 3).transpose(1, 0, 2)

    def last(self, span: float) -> NDArray[np.bool_]:
        """Return which samples lie in the last `span` seconds, shape (n,)."""
        return np.asarray(self.time >= self.time[-1] - span)


# --- A node that starts a simulation as a process of its own and talks to it.

TIMEOUT = 10.0
"""Wall seconds for anything that should happen at once; discovery alone may take three."""
CALL_TIMEOUT = 60.0
"""Wall seconds for the answer of a service."""
SAID = 3000
"""Characters at the end of a process's output that an error quotes."""


class SimulationClient:
    """The simulation as a process on a ROS domain of its own, and a node here.

    Args:
        folder: for logs.
        name: of the node.

    Attributes:
        node: the node here.
        simulation: the process, from `start` on.
        domain: environment of the processes that may meet this simulation.
    """

    def __init__(self, folder: Path, name: str = 'client') -> None:
        self.folder = folder
        self.domain = isolated_environment() | {'ROS_LOG_DIR': str(folder)}
        self._context = rclpy.Context()
        with environment(self.domain):
            rclpy.init(args=[], context=self._context)
            self.node = Node(name, context=self._context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._clients: dict[str, Any] = {}

    def start(self, parameters: Mapping[str, Any]) -> None:
        """Start the simulation with these ROS parameters."""
        self.simulation = Process(
            'contact_sim.ros.simulation_node', ros_arguments(dict(parameters)), self.domain,
            self.folder / 'simulation.log',
        )  # fmt: skip

    def close(self) -> None:
        """End the simulation and the node."""
        if hasattr(self, 'simulation'):
            self.simulation.stop()
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    # ---------------------------------------------------------------- waiting

    def spin(self, seconds: float) -> None:
        """Serve callbacks for some wall time."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0.0:
            self._executor.spin_once(left)

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = TIMEOUT) -> None:
        """Serve callbacks until `condition` holds.

        Raises:
            TimeoutError: it does not, or the simulation has ended; quotes what it said.
        """
        end = time.perf_counter() + timeout
        while not condition():
            left = end - time.perf_counter()
            if left <= 0.0:
                raise TimeoutError(f'waited {timeout:g} s for {what}\n{self.said()}')
            self.check_alive()
            self._executor.spin_once(min(left, 0.1))

    def check_alive(self) -> None:
        """Raise TimeoutError where a process has ended that should run."""
        if not self.simulation.running:
            raise TimeoutError(f'the simulation has ended\n{self.said()}')

    def said(self) -> str:
        """Return the end of what the simulation has written."""
        return self.simulation.output()[-SAID:]

    # ---------------------------------------------------------------- services

    def call(self, name: str, kind: Any, request: Any, timeout: float = CALL_TIMEOUT) -> Any:
        """Return the response of a service."""
        future = self.ask(name, kind, request)
        self.wait(future.done, f'response of {name}', timeout)
        return future.result()

    def ask(self, name: str, kind: Any, request: Any) -> Any:
        """Call a service and return the future of its response."""
        if name not in self._clients:
            self._clients[name] = self.node.create_client(kind, name)
        client = self._clients[name]
        self.wait(client.service_is_ready, f'service {name}')
        return client.call_async(request)

    def pause(self, paused: bool = True) -> Any:
        """Let simulated time stand still, or go on."""
        return self.call(f'/{NODE}/pause', SetBool, SetBool.Request(data=paused))

    def reset(self) -> Any:
        """Put the robot back into its pose."""
        return self.call(f'/{NODE}/reset', Trigger, Trigger.Request())

    def reset_time(self) -> Any:
        """Set simulated time back to its start."""
        return self.call(f'/{NODE}/reset_time', Trigger, Trigger.Request())

    def step(self, count: int | None = None, timeout: float = CALL_TIMEOUT) -> Any:
        """Take steps: `count`, or as many as the parameter step_count says."""
        if count is not None:
            result = self.set(step_count=count)
            if not result.successful:
                raise ValueError(result.reason)
        return self.call(f'/{NODE}/step', Trigger, Trigger.Request(), timeout)

    # ---------------------------------------------------------------- parameters

    def set(self, values: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Set parameters in one request; return the result with `successful` and `reason`."""
        values = {**(values or {}), **more}
        request = SetParametersAtomically.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        name = f'/{NODE}/set_parameters_atomically'
        return self.call(name, SetParametersAtomically, request).result

    def get(self, *names: str) -> list[Any]:
        """Return the values of parameters."""
        request = GetParameters.Request(names=names)
        response = self.call(f'/{NODE}/get_parameters', GetParameters, request)
        return [parameter_value_to_python(value) for value in response.values]

    def describe(self, *names: str) -> list[Any]:
        """Return the descriptors of parameters."""
        request = DescribeParameters.Request(names=names)
        name = f'/{NODE}/describe_parameters'
        return list(self.call(name, DescribeParameters, request).descriptors)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have environment variables inside the block: DDS reads them when a node is made."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
