"""`make demo`: a robot lands and stands, or trots, over ROS 2; the checks use only its topics.

Starts the simulation and a controller as two processes, watches for some simulated seconds, prints
a table and writes demo.json and demo.png. For `--demo stance` the robot falls from a small height;
for `--demo trot` it walks and turns as `cmd_vel` says, in lockstep with its controller.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist, WrenchStamped
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Int16MultiArray
from std_srvs.srv import SetBool
from visualization_msgs.msg import MarkerArray

from contact_sim._command_line import one_of, parser_with_examples
from contact_sim._types import Array
from contact_sim.contact_models import model_names
from contact_sim.errors import ContactSimError, InvalidInput
from contact_sim.robot._catalogue import default_robot, robots
from contact_sim.robot._contact_points import foot_frame
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.ros._client import SimulationClient
from contact_sim.ros._conversions import pose_values, stamp_nanoseconds, vector_values
from contact_sim.ros._conversions import seconds as seconds_of
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.topics._table import NODE, wrench_topic

DEEP_QUEUE = QoSProfile(depth=5000)
"""Deep enough that a busy machine delays messages instead of losing them."""
START_TIMEOUT = 600.0
"""Wall seconds until the first message: a first start compiles, on a busy machine for minutes."""
DROP = 0.03
"""Gap below the feet at the start [m]."""
FRICTION = 0.8
WRENCH_RATE = 250.0
TROT = (0.3, 0.3)
"""Forward speed [m/s] and turning rate [rad/s] that `--demo trot` commands."""
CONTROL_PERIOD = 2
"""Steps per command of `--demo trot`."""
JUDGED = 2.0
"""Seconds at the end over which the weight is compared; at most half of the run."""
STANDING = 3.0
"""Seconds at the end over which feet may not drift; before, they roll while the legs settle."""
LARGEST_WEIGHT_ERROR = 0.05
SMALLEST_HEIGHT = 0.5
"""Share of the standing height below which the robot has fallen."""
LARGEST_BOB = 0.03
"""By how much a trotting base may leave its standing height [m]."""
SMALLEST_WAY = 0.7
"""Share of the commanded way that a trotting base has to go, with its start from rest."""
WATCH = (
    'watch it in a browser: python -m contact_sim.view {0.robot}, or with ROS '
    'ros2 launch contact_sim {0.demo}_demo.launch.py robot:={0.robot} viewer:=true'
)
SHORTEST = 1.0
"""Seconds below which there is nothing to judge: the robot has to land first."""
COLOURS = ('#0072B2', '#E69F00', '#009E73', '#CC79A7', '#D55E00', '#56B4E9')
INK = '#222222'
LANDING, TROTTING = 0.8, 1.5
"""Seconds of the figure: the first of a landing, the last of a trot."""
ARROW_LENGTH, NEARER = 0.35, 0.85
"""Of a force as large as the weight, and the distance of the camera: over that of the viewer."""
LINE_HEIGHT = 0.065
"""Of a label beside the forces, over the height of their axes."""
SCENE_SIZE = (1080, 810)
"""Width and height of the rendered robot [pixels]."""
LARGEST_SHOWN = 4.0
"""Upper end of the force axis over the weight: an impact within one step is far above."""


class Observer:
    """Subscribes with a node to everything that a simulation of `robot` publishes."""

    def __init__(self, robot: RobotModel, node: Node) -> None:
        self._node = node
        self.counts: Counter[str] = Counter()  # messages per topic
        self.clock = 0.0  # last simulated time [s]
        # by stamp [ns]: positions of the actuated, then of the passive joints, poses of the base,
        # and per foot the contact force in the frame of the foot
        self.joints: dict[int, Array] = {}
        self.bases: dict[int, Array] = {}
        self.forces: dict[str, dict[int, Array]] = {}
        self.diagnostics: dict[str, str] = {}  # values of the last message
        self._subscribe(Clock, '/clock', self._on_clock)
        self._collect(JointState, 'joint_states', self.joints, lambda message: message.position)
        self._collect(Odometry, 'odom', self.bases, lambda message: pose_values(message.pose.pose))
        self._subscribe(Imu, 'imu/data')
        for foot in robot.feet:
            forces = self.forces[foot.name] = {}
            self._collect(
                WrenchStamped, wrench_topic(foot.name), forces,
                lambda message: vector_values(message.wrench.force),
            )  # fmt: skip
        self._subscribe(Int16MultiArray, 'foot_contacts')
        self._subscribe(MarkerArray, 'contact_sim/contact_markers')
        self._subscribe(Float64MultiArray, 'contact_sim/solver_state')
        self._subscribe(DiagnosticArray, '/diagnostics', self._on_diagnostics)
        self._subscribe(JointState, 'joint_commands')

    def forget(self) -> None:
        """Start counting and collecting anew."""
        self.counts = Counter(dict.fromkeys(self.counts, 0))
        for observed in (self.joints, self.bases, *self.forces.values()):
            observed.clear()

    def connected(self) -> bool:
        """Return whether simulation, controller and this node are subscribed to each other."""
        return (
            all(self._node.count_publishers(topic) for topic in self.counts)
            and self._node.count_subscribers('joint_states') >= 2
            and self._node.count_subscribers('joint_commands') >= 2
        )

    def _subscribe(
        self, kind: type, topic: str, take: Callable[[Any], None] = lambda message: None
    ) -> None:
        self.counts[topic] = 0

        def on_message(message: Any) -> None:
            self.counts[topic] += 1
            take(message)

        self._node.create_subscription(kind, topic, on_message, DEEP_QUEUE)

    def _collect(
        self, kind: type, topic: str, into: dict[int, Array], values: Callable[[Any], Any]
    ) -> None:
        """Keep numbers of the messages of a topic by stamp [ns]."""

        def take(message: Any) -> None:
            into[stamp_nanoseconds(message.header.stamp)] = np.array(values(message))

        self._subscribe(kind, topic, take)

    def _on_clock(self, message: Clock) -> None:
        self.clock = seconds_of(message.clock)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self.diagnostics = {value.key: value.value for value in message.status[0].values}


class Track:
    """Observations from `begin` [s] on for `length` [s], where every message arrived; in world."""

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
        self.contact_point = np.zeros((n, len(robot.contact_points), 3))  # lowest of the spheres
        model = robot.pinocchio_model
        data = data_of(model)
        q = robot.reference_configuration('standing').copy()
        for k, stamp in enumerate(ordered):
            q[:7] = observer.bases[stamp]
            joints, driven = observer.joints[stamp], robot.n_joints
            passive = robot.passive_joints.with_joint_positions(q, joints[driven:])
            self.configuration[k] = robot.with_joint_positions(passive, joints[:driven])
            pin.forwardKinematics(model, data, self.configuration[k])
            for i, foot in enumerate(feet):
                joint = data.oMi[model.getJointId(foot.joint)]
                frame = joint * foot_frame(model, foot).placement
                self.force[k, i] = frame.rotation @ observer.forces[foot.name][stamp]
            for i, point in enumerate(robot.contact_points):
                joint = data.oMi[model.getJointId(point.joint)]
                self.contact_point[k, i] = joint.act(point.offset) - [0.0, 0.0, point.radius]
        # means of the contact points of each foot, shape (n, feet, 3)
        means = [self.contact_point[:, foot.points].mean(axis=1) for foot in feet]
        self.foot = np.array(means).reshape(len(feet), n, 3).transpose(1, 0, 2)

    def last(self, span: float) -> NDArray[np.bool_]:
        """Return which samples lie in the last `span` seconds, shape (n,)."""
        return np.asarray(self.time >= self.time[-1] - span)


# -------------------------------------------------------------------- a run


@dataclass(frozen=True)
class DemoRun:
    """Settings of a demo, and its results."""

    robot: RobotModel
    contact_model: str
    seconds: float
    observer: Observer
    begin: float  # simulated time at which the robot is let go [s]
    real_time_factor: float


class DemoClient(SimulationClient):
    """A client beside whose simulation a controller runs."""

    controller: Process

    def check_alive(self) -> None:
        """Raise ContactSimError with exit code and last line of a process that does not run."""
        for name, process in (('simulation', self.simulation), ('controller', self.controller)):
            if not process.running:
                lines = process.output().strip().splitlines()[-1:] or ['it wrote nothing']
                raise ContactSimError(
                    f'the {name} ended with exit code {process.handle.returncode}: {lines[0]}'
                )


def observe(source: str, demo: str, contact_model: str, seconds: float, logs: Path) -> DemoRun:
    """Run the two processes and observe them; raise TimeoutError where a topic stays silent."""
    robot = load_robot(source)
    parameters: dict[str, Any] = {'initial_height': DROP}
    if demo == 'trot':
        parameters = {
            'lockstep.enabled': True, 'lockstep.period': CONTROL_PERIOD, 'lockstep.timeout': 10.0,
            'lockstep.policy': 'pause',
        }  # fmt: skip
    client = DemoClient(logs, 'observer')
    observer = Observer(robot, client.node)
    client.start(
        {'robot': source, 'contact.model': contact_model, 'friction.mu': FRICTION,
         'start_paused': True, 'publish_rate.wrenches': WRENCH_RATE, **parameters}
    )  # fmt: skip
    client.controller = Process(
        f'contact_sim.ros.controllers.{demo}', ros_arguments({'robot': source}), client.domain,
        logs / 'controller.log',
    )  # fmt: skip
    try:
        with client.controller:
            client.wait(observer.connected, 'both processes', START_TIMEOUT)
            client.wait(lambda: observer.clock > 0.0, '/clock', START_TIMEOUT)
            if demo == 'trot':
                publisher = client.node.create_publisher(Twist, 'cmd_vel', DEEP_QUEUE)
                client.wait(
                    lambda: publisher.get_subscription_count() > 0, 'cmd_vel to be heard',
                    START_TIMEOUT,
                )  # fmt: skip
                message = Twist()
                message.linear.x, message.angular.z = TROT
                publisher.publish(message)
            observer.forget()
            begin, wall = observer.clock, time.perf_counter()
            request = SetBool.Request(data=False)
            client.call(f'/{NODE}/pause', SetBool, request, START_TIMEOUT)
            client.wait(
                lambda: observer.clock >= begin + seconds, 'simulated time to pass',
                10.0 * seconds + START_TIMEOUT,
            )  # fmt: skip
            factor = (observer.clock - begin) / (time.perf_counter() - wall)
    finally:
        client.close()
    return DemoRun(robot, contact_model, seconds, observer, begin, factor)


# -------------------------------------------------------------------- the verdict


def judge(run: DemoRun, track: Track) -> dict[str, Any]:
    """Return the figures of the run."""
    weight = run.robot.total_mass * 9.81
    supported = track.force[track.last(min(JUDGED, 0.5 * run.seconds)), :, 2].sum(axis=1)
    standing = track.contact_point[track.last(STANDING)]
    drift = np.linalg.norm(standing[:, :, :2] - standing[0, :, :2], axis=2)
    return {
        'robot': run.robot.name,
        'contact_model': run.contact_model,
        'simulated_seconds': run.observer.clock - run.begin,
        'real_time_factor': run.real_time_factor,
        'weight_error': float(np.mean(np.abs(supported - weight)) / weight),
        'foot_drift_m': float(drift.max()),
        'penetration_m': float(np.maximum(-track.contact_point[:, :, 2], 0.0).max()),
        'base_height_m': float(track.height[-1]),
        'samples': len(track.time),
        'commands_accepted': int(run.observer.diagnostics.get('commands_accepted', 0)),
        'messages': dict(run.observer.counts),
    }


def judge_trot(track: Track) -> dict[str, Any]:
    """Return the figures of a trot."""
    way = np.diff(track.configuration[:, :2], axis=0)
    commanded = TROT[0] * (track.time[-1] - track.time[0])
    return {
        'height_change_m': float(np.abs(track.height - track.height[0]).max()),
        'way_m': float(np.linalg.norm(way, axis=1).sum()),
        'commanded_way_m': float(commanded),
    }


def facts(result: dict[str, Any]) -> list[str]:
    """Return the lines of text in the figure."""
    if 'way_m' in result:
        return [
            f'{result["robot"]} trots',
            f'over ROS 2, contact model {result["contact_model"]}',
            f'{result["way_m"]:.2f} m in {result["simulated_seconds"]:.1f} s',
            f'base height within {1e3 * result["height_change_m"]:.1f} mm',
            f'penetration {power_of_ten(result["penetration_m"])} m',
        ]
    return [
        f'{result["robot"]} lands and stands',
        f'over ROS 2, dropped from {100 * DROP:g} cm, contact model {result["contact_model"]}',
        f'weight error {power_of_ten(result["weight_error"])}',
        f'foot drift {power_of_ten(result["foot_drift_m"])} m',
        f'penetration {power_of_ten(result["penetration_m"])} m',
    ]


def power_of_ten(value: float) -> str:
    """Return a small number as people write it: 3.2·10⁻⁸."""
    if value == 0.0:
        return '0'
    digits, exponent = f'{value:.1e}'.split('e')
    return f'{digits}·10' + str(int(exponent)).translate(
        str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
    )


def complaints(result: dict[str, Any], standing: float) -> list[str]:
    """Return what is wrong with a run, in words; `standing` is the height of the base [m]."""
    wrong = [f'no message on {topic}' for topic, n in result['messages'].items() if n == 0]
    if not result['base_height_m'] > SMALLEST_HEIGHT * standing:
        wrong.append(f'the robot fell: its base is at {result["base_height_m"]:.3f} m')
    if 'way_m' in result:
        if not result['height_change_m'] < LARGEST_BOB:
            wrong.append(f'the base left its height by {result["height_change_m"]:.3f} m')
        if not result['way_m'] > SMALLEST_WAY * result['commanded_way_m']:
            wrong.append(f'it went {result["way_m"]:.2f} m of {result["commanded_way_m"]:.2f} m')
    elif not result['weight_error'] < LARGEST_WEIGHT_ERROR:
        wrong.append(f'the feet do not carry the weight: error {result["weight_error"]:.3g}')
    return wrong


# -------------------------------------------------------------------- the picture


def draw(
    robot: RobotModel, track: Track, lines: Sequence[str], path: Path, scene: bool = True
) -> None:
    """Write the figure as PNG: the robot as the viewer shows it, forces and height over time.

    Args:
        robot: of the run.
        track: of the run.
        lines: title and facts.
        path: of the file.
        scene: whether the robot is rendered, which needs the viewer and Chromium.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    lands = not track.force[0].any()
    begin, end = (0.0, LANDING) if lands else (track.time[-1] - TROTTING, track.time[-1])
    seen = (track.time >= begin - 1e-9) & (track.time <= end + 1e-9)
    # the lowest instant of a landing; of a trot the last in which most feet carry
    lowest = int(np.argmin(np.where(seen, track.height, np.inf)))
    carrying = (track.force[:, :, 2] > 0.0).sum(axis=1) * seen
    now = lowest if lands else len(carrying) - 1 - int(np.argmax(carrying[::-1]))
    plt.rcParams.update({'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False})
    figure = plt.figure(figsize=(10.0, 5.0))
    forces = figure.add_axes((0.55, 0.43, 0.31, 0.53))
    height = figure.add_axes((0.55, 0.11, 0.31, 0.25), sharex=forces)
    figure.text(0.02, 0.96, lines[0], va='top', fontsize=16, fontweight='bold', color=INK)
    figure.text(0.02, 0.87, '\n'.join(lines[1:]), va='top', color=INK, linespacing=1.5)
    if scene:
        axes = figure.add_axes((0.0, 0.05, 0.48, 0.6))
        axes.axis('off')
        try:
            axes.imshow(rendered(robot, track, now))
        except (ImportError, InvalidInput) as error:
            print(f'no scene in the picture: {error}', file=sys.stderr)
        else:
            caption = f'at {track.time[now]:.2f} s: contact forces in their friction cones'
            figure.text(0.02, 0.02, caption, fontsize=9, color=INK)
    draw_forces(forces, robot, track, seen)
    height.plot(track.time[seen], 1e3 * track.height[seen], color=INK, linewidth=1.6)
    height.set_ylabel('base height [mm]')
    height.set_xlabel('simulated time [s]')
    height.set_xlim(max(begin, 0.0), min(end, track.time[-1]))
    height.locator_params(axis='x', nbins=6)
    for axes in (forces, height):
        axes.axvline(track.time[now], color=INK, linewidth=0.6, linestyle=(0, (1, 3)))
    figure.savefig(path, dpi=150, facecolor='white')
    plt.close(figure)


def draw_forces(axes: Any, robot: RobotModel, track: Track, seen: NDArray[np.bool_]) -> None:
    """Stack the normal forces of the feet over the instants `seen`."""
    weight = robot.total_mass * 9.81
    names = [foot.name for foot in robot.feet]
    time, normal = track.time[seen], track.force[seen, :, 2].T
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    axes.stackplot(time, normal, colors=colours, alpha=0.75, linewidth=0.0)
    for upper in np.cumsum(normal, axis=0):
        axes.plot(time, upper, color='white', linewidth=0.4)
    axes.axhline(weight, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    top = min(1.05 * normal.sum(axis=0).max(), LARGEST_SHOWN * weight)
    levels, below = np.cumsum(normal[:, -1]), -np.inf
    for name, colour, level, force in zip(names, colours, levels, normal[:, -1], strict=True):
        if force > 0.0:
            below = max(level - 0.5 * force, below + LINE_HEIGHT * top)
            axes.annotate(
                f'{name}  {force:.1f} N', (time[-1], below), (6, 0), va='center',
                textcoords='offset points', color=colour, fontsize=9, annotation_clip=False,
            )  # fmt: skip
    axes.annotate(
        f'm g = {weight:.1f} N', (time[-1], max(weight, below + LINE_HEIGHT * top)), (6, 1),
        textcoords='offset points', va='center', color=INK, fontsize=9, annotation_clip=False,
    )  # fmt: skip
    axes.set_ylim(0.0, top)
    axes.set_ylabel('normal force of each foot [N]')
    axes.tick_params(labelbottom=False)


def rendered(robot: RobotModel, track: Track, k: int) -> NDArray[np.uint8]:
    """Return the robot at sample k as the viewer shows it, (height, width, 3).

    Forces are those of the messages, in the colours of the feet, and shown with their cones.

    Raises:
        ImportError: viser is not installed.
        InvalidInput: no Chromium on this machine.
    """
    from matplotlib.colors import to_rgb

    from contact_sim.collision import Plane
    from contact_sim.drawing._step_shapes import CONE_HEIGHT, Arrows, cone_triangles
    from contact_sim.view._saved import picture_of, quiet_server
    from contact_sim.view._scene import ArrowLayer, Camera, Scene

    state: Any = SimpleNamespace(q=track.configuration[k])  # all that these layers read
    weight, force, contact = robot.total_mass * 9.81, track.force[k], track.foot[k]
    loaded = np.flatnonzero(force[:, 2] > 0.0)
    with quiet_server() as server:
        scene = Scene(server, robot, Plane())
        for name in scene.visible:
            scene.visible[name] = name in ('meshes', 'ground')
        whole = scene.framing(state)
        away = np.subtract(whole.position, whole.look_at)
        scale = ARROW_LENGTH * float(np.linalg.norm(away)) / weight
        x, y, z = (whole.look_at + NEARER * away).tolist()
        camera = Camera((x, y, z), whole.look_at)
        for foot in loaded:
            colour = to_rgb(COLOURS[foot % len(COLOURS)])
            arrow = ArrowLayer(server.scene, f'{scene.path}/{foot}', 'force', (*colour, 1.0))
            arrow.show(Arrows(contact[[foot]], scale * force[[foot]]))
            height = 0.5 * scale * force[foot, 2]  # the cone ends at half of the arrow
            rim = height / CONE_HEIGHT * cone_triangles(FRICTION)
            faces = np.arange(len(rim)).reshape(-1, 3)
            server.scene.add_mesh_simple(
                f'{scene.path}/cone {foot}', contact[foot] + rim, faces,
                color=colour, opacity=0.3, side='double', cast_shadow=False,
            )  # fmt: skip
        scene.show(state)
        return picture_of(server, camera, SCENE_SIZE)


# -------------------------------------------------------------------- the command


def print_table(result: dict[str, Any]) -> None:
    """Print the figures."""
    for name, value in result.items():
        if name != 'messages':
            text = f'{value:.4g}' if isinstance(value, float) else str(value)
            unit = {'m': 'm', 'seconds': 's'}.get(name.rsplit('_', 1)[-1], '')
            print(f'  {name.removesuffix("_m"):<20} {text:>12} {unit}')
    print('  messages')
    for topic, count in result['messages'].items():
        print(f'    {topic:<32} {count:>6}')


def run_and_judge(options: argparse.Namespace, logs: Path) -> int:
    """Run the demo, write its results and return the exit code."""
    run = observe(options.robot, options.demo, options.contact_model, options.seconds, logs)
    track = Track(run.robot, run.observer, run.begin, run.seconds)
    if not len(track.time):
        raise TimeoutError('no step was seen on all topics')
    result = judge(run, track)
    if options.demo == 'trot':
        del result['weight_error'], result['foot_drift_m']  # feet that step have none
        result |= judge_trot(track)
    print_table(result)
    (options.out / 'demo.json').write_text(json.dumps(result, indent=2) + '\n', encoding='utf-8')
    draw(run.robot, track, facts(result), options.out / 'demo.png', options.scene)
    print(WATCH.format(options))
    wrong = complaints(result, float(run.robot.reference_configuration()[2]))
    for complaint in wrong:
        print(f'demo: {complaint}', file=sys.stderr)
    return 1 if wrong else 0


def watched_seconds(text: str) -> float:
    """Return the value of --seconds, long enough to land and stand."""
    value = float(text)
    if not SHORTEST <= value < np.inf:
        raise argparse.ArgumentTypeError(f'{text}: expected at least {SHORTEST:g} s')
    return value


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 only if nothing is wrong with the run."""
    parser = parser_with_examples(
        'python -m contact_sim.ros.demo', __doc__.splitlines()[0],
        ('', '--robot anymal_b --demo trot --contact-model sap --seconds 10'),
    )  # fmt: skip
    parser.add_argument('--robot', default=default_robot(), help='one of ' + ', '.join(robots()))
    parser.add_argument('--demo', default='stance', choices=('stance', 'trot'))
    parser.add_argument(
        '--contact-model', default='ncp', type=one_of('contact model', model_names()),
        metavar='MODEL', help='one of ' + ' '.join(model_names()),
    )  # fmt: skip
    parser.add_argument(
        '--seconds', type=watched_seconds, default=5.0, help='simulated time to watch'
    )
    parser.add_argument('--out', type=Path, default=Path('out'), help='folder for the results')
    parser.add_argument(
        '--scene', action=argparse.BooleanOptionalAction, default=True,
        help='render the robot for the picture: needs the viewer and Chromium, about 10 s',
    )  # fmt: skip
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='contact_sim_demo_') as folder:
        try:
            return run_and_judge(options, Path(folder))
        except (ContactSimError, TimeoutError) as error:
            print(f'demo: {error}', file=sys.stderr)
            for log in sorted(Path(folder).glob('*.log')):
                tail = log.read_text(encoding='utf-8', errors='replace')[-2000:]
                print(f'--- {log.name}\n{tail}', file=sys.stderr)
            return 1


if __name__ == '__main__':
    sys.exit(main())
