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
from contact_sim.errors import ContactSimError
from contact_sim.robot._catalogue import default_robot, robots
from contact_sim.robot._contact_points import Foot, foot_frame
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
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
INK, GROUND = '#222222', '#d9d6d0'
AZIMUTH, ELEVATION = np.radians(-62.0), np.radians(18.0)
"""Direction of view, as angles about and above the ground [rad]."""
CONE_SIDES = 40
LARGEST_SHOWN = 2.5
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
        data = model.createData()
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


def draw(robot: RobotModel, track: Track, lines: Sequence[str], path: Path) -> None:
    """Write the figure as PNG: the robot with its contact forces, forces and height over time."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    plt.rcParams.update({'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False})
    figure = plt.figure(figsize=(10.0, 5.0))
    scene = figure.add_axes((0.01, 0.01, 0.43, 0.68))
    forces = figure.add_axes((0.52, 0.43, 0.33, 0.53))
    height = figure.add_axes((0.52, 0.11, 0.33, 0.25), sharex=forces)
    figure.text(0.02, 0.96, lines[0], va='top', fontsize=16, fontweight='bold', color=INK)
    figure.text(0.02, 0.87, '\n'.join(lines[1:]), va='top', color=INK, linespacing=1.6)
    draw_scene(scene, robot, track)
    draw_forces(forces, robot, track)
    height.plot(track.time, 1e3 * track.height, color=INK, linewidth=1.6)
    height.set_ylabel('base height [mm]')
    height.set_xlabel('simulated time [s]')
    height.set_xlim(0.0, track.time[-1])
    height.locator_params(axis='x', nbins=6)
    figure.savefig(path, dpi=150, facecolor='white')
    plt.close(figure)


def draw_forces(axes: Any, robot: RobotModel, track: Track) -> None:
    """Stack the normal forces of the feet: together they carry the weight."""
    weight = robot.total_mass * 9.81
    names = [foot.name for foot in robot.feet]
    normal = track.force[:, :, 2].T
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    axes.stackplot(track.time, normal, colors=colours, alpha=0.75, linewidth=0.0)
    for upper in np.cumsum(normal, axis=0):
        axes.plot(track.time, upper, color='white', linewidth=0.4)
    axes.axhline(weight, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    end, levels = track.time[-1], np.cumsum(normal[:, -1])
    for name, colour, level, force in zip(names, colours, levels, normal[:, -1], strict=True):
        axes.annotate(
            f'{name}  {force:.1f} N', (end, level - 0.5 * force), (6, 0), va='center',
            textcoords='offset points', color=colour, fontsize=9, annotation_clip=False,
        )  # fmt: skip
    axes.annotate(
        f'm g = {weight:.1f} N', (end, weight), (6, 1), textcoords='offset points', va='bottom',
        color=INK, fontsize=9, annotation_clip=False,
    )  # fmt: skip
    axes.set_ylim(0.0, LARGEST_SHOWN * weight)
    axes.set_ylabel('normal force of each foot [N]')
    axes.tick_params(labelbottom=False)


def projected(points: Array) -> tuple[Array, Array]:
    """Return points (..., 3) as seen by the viewer: (..., 2) on the picture, (...) the depth."""
    right = np.array([-np.sin(AZIMUTH), np.cos(AZIMUTH), 0.0])
    towards = np.array(
        [np.cos(ELEVATION) * np.cos(AZIMUTH), np.cos(ELEVATION) * np.sin(AZIMUTH),
         np.sin(ELEVATION)]
    )  # fmt: skip
    picture = np.stack([points @ right, points @ np.cross(towards, right)], axis=-1)
    return picture, points @ towards


def draw_scene(axes: Any, robot: RobotModel, track: Track) -> None:
    """Draw the robot at the end, its contact forces and their friction cones."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, track.configuration[-1])
    joints = np.array([data.oMi[j].translation for j in range(model.njoints)])
    legs = [leg(robot, data, joints, foot) for foot in robot.feet]
    size = np.ptp(np.vstack(legs), axis=0).max()
    # a grid on z = 0 around the robot
    span = np.linspace(-0.8 * size, 0.8 * size, 7)
    for s in span:
        for ends in ([[s, span[0]], [s, span[-1]]], [[span[0], s], [span[-1], s]]):
            line = np.column_stack([np.array(ends) + joints[1, :2], np.zeros(2)])
            axes.plot(*projected(line)[0].T, color=GROUND, linewidth=0.9, zorder=0)
    # the legs behind the trunk, the trunk, and the legs before it
    hips = np.array([line[0] for line in legs])
    order = np.argsort([projected(line)[1].mean() for line in legs])
    half = len(order) // 2
    for k in order[:half]:
        draw_leg(axes, legs[k], COLOURS[k % len(COLOURS)])
    corners = projected(hips)[0]
    around = np.argsort(np.arctan2(*(corners - corners.mean(axis=0)).T))
    axes.fill(*corners[around].T, color='#4a4a4a', linewidth=14, joinstyle='round', zorder=4)
    for k in order[half:]:
        draw_leg(axes, legs[k], COLOURS[k % len(COLOURS)], zorder=5)
    scale = 1.8 * size / (robot.total_mass * 9.81)
    for k in order:
        contact, force = track.foot[-1, k], track.force[-1, k]
        if force.any():  # not of a foot in the air
            draw_force(axes, contact, scale * force, COLOURS[k % len(COLOURS)])
    axes.set_aspect('equal', anchor='S')
    axes.axis('off')


def leg(robot: RobotModel, data: pin.Data, joints: Array, foot: Foot) -> Array:
    """Return the joint origins from the base to a foot, and the centre of its points, (n, 3)."""
    model = robot.pinocchio_model
    joint = model.getJointId(foot.joint)
    centre = np.mean([robot.contact_points[k].offset for k in foot.points], axis=0)
    line = [data.oMi[joint].act(centre)]
    while joint > 1:
        line.append(joints[joint])
        joint = model.parents[joint]
    return np.array(line[::-1])


def draw_leg(axes: Any, line: Array, colour: str, zorder: int = 3) -> None:
    """Draw the links of a leg and a dot for the foot."""
    picture, _ = projected(line)
    axes.plot(*picture.T, color='#5f5f5f', linewidth=5, solid_capstyle='round',
              solid_joinstyle='round', zorder=zorder)  # fmt: skip
    axes.plot(*picture[:-1].T, 'o', color='#8d8d8d', markersize=4, zorder=zorder)
    axes.plot(*picture[-1], 'o', color=colour, markersize=9, zorder=zorder)


def draw_force(axes: Any, contact: Array, arrow: Array, colour: str) -> None:
    """Draw the friction cone at a contact, and the force inside it."""
    from scipy.spatial import ConvexHull

    height = 0.5 * np.linalg.norm(arrow)
    angles = np.linspace(0.0, 2.0 * np.pi, CONE_SIDES)
    rim = height * np.column_stack(
        [FRICTION * np.cos(angles), FRICTION * np.sin(angles), np.ones(CONE_SIDES)]
    )
    tip, circle = projected(contact)[0], projected(contact + rim)[0]
    points = np.vstack([circle, tip])
    outline = points[ConvexHull(points).vertices]
    axes.fill(*outline.T, color=colour, alpha=0.16, linewidth=0.0, zorder=6)
    axes.plot(*circle.T, color=colour, alpha=0.6, linewidth=0.8, zorder=6)
    head = projected(contact + arrow)[0]
    axes.annotate(
        '', head, tip, zorder=7, annotation_clip=False,
        arrowprops={'arrowstyle': '-|>,head_width=0.22,head_length=0.45', 'color': colour,
                    'linewidth': 2.2, 'shrinkA': 0.0, 'shrinkB': 0.0},
    )  # fmt: skip


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
    draw(run.robot, track, facts(result), options.out / 'demo.png')
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
