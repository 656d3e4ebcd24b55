"""One run of the demo: the simulation and a controller as processes, and a node that watches."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy

from contact_sim.errors import ContactSimError
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.ros._client import Observer, Track
from contact_sim.ros._processes import Process, isolated_environment, ros_arguments

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


class ProcessEnded(ContactSimError):
    """A process that the demo needs is gone."""


@dataclass(frozen=True)
class Run:
    """Settings of a demo, and its results."""

    robot: RobotModel
    contact_model: str
    seconds: float
    observer: Observer
    begin: float
    """Simulated time at which the robot is let go [s]."""
    real_time_factor: float


def settings(demo: str) -> dict[str, object]:
    """Return the parameters of the node that one demo needs."""
    if demo == 'stance':
        return {'initial_height': DROP}
    return {
        'lockstep.enabled': True, 'lockstep.period': CONTROL_PERIOD, 'lockstep.timeout': 10.0,
        'lockstep.policy': 'pause',
    }  # fmt: skip


def observe(source: str, demo: str, contact_model: str, seconds: float, logs: Path) -> Run:
    """Run the two processes and listen.

    Raises:
        ContactSimError: a robot that cannot be loaded, or a process that ended.
        TimeoutError: a topic stayed silent.
    """
    robot = load_robot(source)
    environment = isolated_environment() | {'ROS_LOG_DIR': str(logs)}
    os.environ.update(environment)
    rclpy.init()
    observer = Observer(robot)
    parameters = {
        'robot': source, 'contact.model': contact_model, 'friction.mu': FRICTION,
        'start_paused': True, 'publish_rate.wrenches': WRENCH_RATE, **settings(demo),
    }  # fmt: skip
    simulation = Process(
        'contact_sim.ros.simulation_node', ros_arguments(parameters), environment,
        logs / 'simulation.log',
    )  # fmt: skip
    controller = Process(
        f'contact_sim.ros.controllers.{demo}', ros_arguments({'robot': source}), environment,
        logs / 'controller.log',
    )  # fmt: skip
    with simulation, controller:
        observer.check = lambda: check_running(simulation=simulation, controller=controller)
        observer.wait(observer.connected, 'both processes', START_TIMEOUT)
        observer.wait(lambda: observer.clock > 0.0, '/clock', START_TIMEOUT)
        if demo == 'trot':
            observer.drive(*TROT, START_TIMEOUT)
        observer.forget()
        begin, wall = observer.clock, time.perf_counter()
        observer.let_time_run(START_TIMEOUT)
        observer.wait(
            lambda: observer.clock >= begin + seconds, 'simulated time to pass',
            10.0 * seconds + START_TIMEOUT,
        )  # fmt: skip
        factor = (observer.clock - begin) / (time.perf_counter() - wall)
    return Run(robot, contact_model, seconds, observer, begin, factor)


def check_running(**processes: Process) -> None:
    """Check that processes run.

    Raises:
        ProcessEnded: one does not; says which, its exit code, and the last line that it wrote.
    """
    for name, process in processes.items():
        if not process.running:
            said = process.output().strip().splitlines()[-1:] or ['it wrote nothing']
            raise ProcessEnded(
                f'the {name} ended with exit code {process.handle.returncode}: {said[0]}'
            )


# --- The verdict on a run of the demo: its figures, and what is wrong with them.

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


def judge(run: Run, track: Track) -> dict[str, Any]:
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
    """Return what only a trot is judged by."""
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
    found = [f'no message on {topic}' for topic, n in result['messages'].items() if n == 0]
    if not result['base_height_m'] > SMALLEST_HEIGHT * standing:
        found.append(f'the robot fell: its base is at {result["base_height_m"]:.3f} m')
    if 'way_m' in result:
        if not result['height_change_m'] < LARGEST_BOB:
            found.append(f'the base left its height by {result["height_change_m"]:.3f} m')
        if not result['way_m'] > SMALLEST_WAY * result['commanded_way_m']:
            found.append(f'it went {result["way_m"]:.2f} m of {result["commanded_way_m"]:.2f} m')
    elif not result['weight_error'] < LARGEST_WEIGHT_ERROR:
        found.append(f'the feet do not carry the weight: error {result["weight_error"]:.3g}')
    return found
