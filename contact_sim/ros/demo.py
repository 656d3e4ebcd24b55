"""`make demo`: a robot stands, over real ROS 2, and everything is judged from its topics.

Starts the simulation and the stance controller as two processes, watches for some simulated
seconds, prints a table and writes demo.json and demo.png.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy

from contact_sim.errors import ContactSimError
from contact_sim.robot.catalogue import robots
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot
from contact_sim.ros.observer import Observer, Track
from contact_sim.ros.processes import Process, isolated_environment, ros_arguments

START_TIMEOUT = 120.0
"""Wall seconds until the first message; a first start compiles the kernels."""
JUDGED = 2.0
"""Seconds at the end over which the weight is compared."""
STANDING = 3.0
"""Seconds at the end over which feet may not drift; before, they roll while the legs stretch."""
LARGEST_WEIGHT_ERROR = 0.05
SMALLEST_HEIGHT = 0.5
"""Share of the height at the start below which the robot has fallen."""


def observe(
    robot: RobotModel, contact_model: str, seconds: float, logs: Path
) -> tuple[Observer, Track, float]:
    """Run the two processes; return what was seen and the real-time factor.

    Raises:
        TimeoutError: a topic stayed silent.
    """
    environment = isolated_environment()
    os.environ.update(environment)
    rclpy.init()
    observer = Observer(robot)

    def spin() -> None:
        rclpy.spin_once(observer, timeout_sec=0.05)

    simulation = ros_arguments({'robot': robot.name, 'contact.model': contact_model})
    controller = ros_arguments({'robot': robot.name})
    with Process(
        'contact_sim.ros.simulation_node', simulation, environment, logs / 'simulation.log'
    ):
        observer.wait(
            spin, 'no state from the simulation', lambda: bool(observer.joints), START_TIMEOUT
        )
        with Process(
            'contact_sim.ros.stance_controller', controller, environment, logs / 'controller.log'
        ):
            observer.wait(
                spin, 'no command from the controller',
                lambda: observer.counts['joint_commands'] > 0, START_TIMEOUT,
            )  # fmt: skip
            observer.forget()
            begin, wall = observer.clock, time.perf_counter()
            observer.wait(
                spin, 'the clock stopped', lambda: observer.clock >= begin + seconds,
                10.0 * seconds + START_TIMEOUT,
            )  # fmt: skip
            factor = (observer.clock - begin) / (time.perf_counter() - wall)
    return observer, Track(robot, observer), factor


def judge(
    robot: RobotModel, contact_model: str, observer: Observer, track: Track, factor: float
) -> dict[str, Any]:
    """Return the figures of the run."""
    weight = robot.total_mass * 9.81
    supported = track.force[track.last(JUDGED), :, 2].sum(axis=1)
    standing = track.contact_point[track.last(STANDING)]
    drift = np.linalg.norm(standing[:, :, :2] - standing[0, :, :2], axis=2)
    return {
        'robot': robot.name,
        'contact_model': contact_model,
        'simulated_seconds': float(track.time[-1] - track.time[0]),
        'real_time_factor': factor,
        'weight_error': float(np.mean(np.abs(supported - weight)) / weight),
        'foot_drift_m': float(drift.max()),
        'penetration_m': float(np.maximum(-track.contact_point[:, :, 2], 0.0).max()),
        'base_height_m': float(track.height[-1]),
        'samples': len(track.time),
        'commands_accepted': int(observer.diagnostics.get('commands_accepted', 0)),
        'messages': dict(observer.counts),
    }


def complaints(result: dict[str, Any], track: Track) -> list[str]:
    """Return what is wrong with a run, in words."""
    found = [f'no message on {topic}' for topic, n in result['messages'].items() if n == 0]
    if track.height[-1] < SMALLEST_HEIGHT * track.height[0]:
        found.append(f'the robot fell: its base is at {track.height[-1]:.3f} m')
    if result['weight_error'] > LARGEST_WEIGHT_ERROR:
        found.append(f'the feet do not carry the weight: error {result["weight_error"]:.3g}')
    return found


def print_table(result: dict[str, Any]) -> None:
    """Print the figures."""
    units = {'simulated_seconds': 's', 'foot_drift_m': 'm', 'penetration_m': 'm',
             'base_height_m': 'm'}  # fmt: skip
    for name, value in result.items():
        if name != 'messages':
            text = f'{value:.4g}' if isinstance(value, float) else str(value)
            print(f'  {name.removesuffix("_m"):<20} {text:>12} {units.get(name, "")}')
    print('  messages')
    for topic, count in result['messages'].items():
        print(f'    {topic:<32} {count:>6}')


def draw(robot: RobotModel, track: Track, result: dict[str, Any], path: Path) -> None:
    """Write the figure: contact force per foot and base height over time."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    colours = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9')
    plt.rcParams.update({'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False})
    figure, (forces, height) = plt.subplots(
        2, 1, figsize=(8.0, 5.0), sharex=True, height_ratios=(3, 2), layout='constrained'
    )
    since = track.time - track.time[0]
    for i, point in enumerate(robot.contact_points):
        colour = colours[i % len(colours)]
        forces.plot(since, track.force[:, i, 2], color=colour, linewidth=1.6, label=point.name)
    total = track.force[:, :, 2].sum(axis=1)
    forces.plot(since, total, color='black', linewidth=1.6, label='sum')
    forces.axhline(robot.total_mass * 9.81, color='0.6', linewidth=1.0, linestyle='--', zorder=0)
    forces.annotate(
        'm g',
        (since[-1], robot.total_mass * 9.81),
        (3, 3),
        textcoords='offset points',
        color='0.4',
    )
    forces.set_ylabel('vertical contact force [N]')
    forces.set_ylim(bottom=0.0)
    forces.legend(loc='center right', frameon=False, ncols=1)
    height.plot(since, 1e3 * (track.height - track.height[-1]), color='#333333', linewidth=1.6)
    height.set_ylabel('base height [mm]\nabove its last value')
    height.set_xlabel('simulated time [s]')
    figure.suptitle(
        f'{robot.name} standing under {result["contact_model"]}: weight error '
        f'{result["weight_error"]:.1e}, foot drift {1e6 * result["foot_drift_m"]:.2g} µm, '
        f'penetration {1e9 * result["penetration_m"]:.2g} nm',
        fontsize=11,
    )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0 only if the robot stood and every topic spoke."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='one of ' + ', '.join(robots()))
    parser.add_argument('--contact-model', default='ncp')
    parser.add_argument('--seconds', type=float, default=5.0, help='simulated time to watch')
    parser.add_argument('--out', type=Path, default=Path('out'), help='folder for the results')
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    logs = Path(tempfile.mkdtemp(prefix='contact_sim_demo_'))
    try:
        robot = load_robot(options.robot)
        watched = observe(robot, options.contact_model, options.seconds, logs)
    except (ContactSimError, TimeoutError) as error:
        print(f'demo: {error}', file=sys.stderr)
        for log in sorted(logs.glob('*.log')):
            print(f'--- {log.name}\n{log.read_text(errors="replace")[-2000:]}', file=sys.stderr)
        return 1
    finally:
        rclpy.try_shutdown()
    result = judge(robot, options.contact_model, *watched)
    print_table(result)
    (options.out / 'demo.json').write_text(json.dumps(result, indent=2) + '\n')
    draw(robot, watched[1], result, options.out / 'demo.png')
    found = complaints(result, watched[1])
    for complaint in found:
        print(f'demo: {complaint}', file=sys.stderr)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
