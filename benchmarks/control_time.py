"""Microseconds per effort of the controllers, and per reading of the joints.

    python benchmarks/control_time.py [--robots go1 anymal_b solo12] [--calls 3000] [--json FILE]

Stance sways and Trot walks forward and turns, each in closed loop with the simulator (ncp, 1 ms,
μ = 0.8): every call meets a state of its own, and the caches as a step of the simulator leaves
them. Only `effort` is timed, call by call, after a second of settling; the table gives median and
99th percentile. `joint_positions` and `joint_velocities` are too short for that: they are timed in
blocks of 200 calls, on the same robots and on a robot with a continuous joint. Times are those of
the thread: what other processes take in between does not count. Pin the process to one core
(taskset -c 1) for figures that compare.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import contact_sim
from contact_sim.control._stance import Stance
from contact_sim.control._trot import Trot

Array = NDArray[np.float64]
ROBOTS = ('go1', 'anymal_b', 'solo12')
SETTLING_CALLS = 1000
BLOCK_CALLS = 200
VELOCITY = (0.3, 0.0, 0.3)


def stance(robot: contact_sim.RobotModel) -> Stance:
    """Return a controller that sways."""
    return Stance(robot, 'sway')


def trot(robot: contact_sim.RobotModel) -> Trot:
    """Return a controller that walks forward and turns."""
    controller = Trot(robot)
    controller.velocity = VELOCITY
    return controller


LAWS: dict[str, Callable[[contact_sim.RobotModel], Stance | Trot]] = {
    'Stance.effort': stance,
    'Trot.effort': trot,
}


def wheel_on_a_body() -> contact_sim.RobotModel:
    """Return a free body with a continuous joint, whose q holds cosine and sine."""
    model, parent = pin.Model(), 0
    for name, joint in (('root', pin.JointModelFreeFlyer()), ('wheel', pin.JointModelRUBY())):
        parent = model.addJoint(parent, joint, pin.SE3.Identity(), name)
        model.appendBodyToJoint(
            parent, pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3)), pin.SE3.Identity()
        )
    return contact_sim.RobotModel.from_pinocchio(model, name='wheel', actuated_joints=['wheel'])


def effort_times(robot: contact_sim.RobotModel, law: str, calls: int) -> Array:
    """Return the time of every call in closed loop [µs], shape (calls,)."""
    sim, controller = contact_sim.Simulator(robot, 'ncp'), LAWS[law](robot)
    times, clock = np.empty(SETTLING_CALLS + calls), time.thread_time
    for k in range(len(times)):
        now, q, v = sim.time, sim.q, sim.v
        begin = clock()
        effort = controller.effort(now, q, v)
        times[k] = clock() - begin
        sim.step(effort)
    return 1e6 * times[SETTLING_CALLS:]


def reading_times(read: Callable[[Array], Array], vector: Array, calls: int) -> Array:
    """Return the mean time of a call per block of calls [µs], shape (calls // 200,)."""
    times, clock = np.empty(max(1, calls // BLOCK_CALLS)), time.thread_time
    block = range(BLOCK_CALLS)
    for k in range(len(times)):
        begin = clock()
        for _ in block:
            read(vector)
        times[k] = (clock() - begin) / BLOCK_CALLS
    return 1e6 * times


def measure(robots: list[str], calls: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Return {what: {robot: (median, 99th percentile)}} [µs]."""
    loaded = [contact_sim.load_robot(name) for name in robots]
    figures: dict[str, dict[str, tuple[float, float]]] = {}

    def note(what: str, robot: contact_sim.RobotModel, times: Array) -> None:
        median, high = np.percentile(times, (50.0, 99.0)).tolist()
        figures.setdefault(what, {})[robot.name] = median, high

    for law in LAWS:
        for robot in loaded:
            note(law, robot, effort_times(robot, law, calls))
    for robot in (*loaded, wheel_on_a_body()):
        q, v = robot.reference_configuration(), np.zeros(robot.nv)
        note('joint_positions', robot, reading_times(robot.joint_positions, q, 100 * calls))
        note('joint_velocities', robot, reading_times(robot.joint_velocities, v, 100 * calls))
    return figures


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description='Microseconds per effort of the controllers.')
    parser.add_argument('--robots', nargs='+', default=list(ROBOTS), help='names in the catalogue')
    parser.add_argument('--calls', type=int, default=3000, help='timed calls per controller')
    parser.add_argument('--json', type=Path, help='file for the same figures')
    arguments = parser.parse_args()
    figures = measure(arguments.robots, arguments.calls)
    print(f'{"µs":18}{"robot":12}{"median":>8}{"p99":>8}')
    for what, row in figures.items():
        for robot, (median, high) in row.items():
            print(f'{what:18}{robot:12}{median:8.2f}{high:8.2f}')
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(figures, indent=2) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
