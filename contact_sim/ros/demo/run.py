"""One run of the demo: the simulation and a controller as processes, and a node that watches."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import rclpy

from contact_sim.errors import ContactSimError
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot
from contact_sim.ros.remote.observer import Observer
from contact_sim.ros.remote.processes import Process, isolated_environment, ros_arguments

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
