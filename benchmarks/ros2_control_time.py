"""Real-time factor of ros2_control in lockstep, with the launch file of examples/.

    python benchmarks/ros2_control_time.py [--seconds 10] [--rate 1000] [--repeat 3] [--json FILE]
    python benchmarks/ros2_control_time.py --same 2           # are two runs equal to the bit?

It needs a sourced workspace with ros2_control, ros2_controllers and ros2_control_lockstep, and
says so where there is none. joint_trajectory_controller keeps the quadruped standing, by positions
or by efforts; forward_command_controller lets it lie on the ground, by efforts of 0 on a topic.
Factors are simulated seconds per wall second between two messages on /diagnostics; beside each is
the load of the machine. Target: 1 at 1 kHz on the socket.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from engines import write_json

STANDING = 'joint_trajectory_controller', 'joint_trajectory_effort_controller'
FORWARD = 'effort_controller'
CONTROLLERS = (*STANDING, FORWARD)
JOINTS = 12
TRANSPORTS = {'socket': 'own', 'topics': 'none'}
"""Argument `socket` of the launch file."""
TARGET, TARGET_RATE = 1.0, 1000
START_TIMEOUT = 180.0
"""Wall seconds until simulated time has begun."""
WARM_UP = 1.0
"""Simulated seconds before the clock starts."""


def missing() -> str:
    """Return what is missing, '' if nothing is."""
    try:
        from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    except ModuleNotFoundError:
        return 'ROS is not installed'
    for package in (
        'ros2launch', 'controller_manager', 'joint_trajectory_controller',
        'forward_command_controller', 'ros2_control_lockstep',
    ):  # fmt: skip
        try:
            get_package_prefix(package)
        except PackageNotFoundError:
            return f'the package {package} is not installed'
        except OSError:
            return 'no ROS workspace is sourced'
    return ''


class Launched:
    """`ros2 launch` in a ROS domain of its own, and its simulated time, from /diagnostics."""

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.executors import SingleThreadedExecutor

        from contact_sim.ros._processes import isolated_environment

        domain = isolated_environment()
        os.environ.update(domain)
        self.log = folder / 'launch.log'
        self._process = started(['ros2', 'launch', *arguments], self.log)
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self._node = rclpy.create_node('watch', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self.told: list[tuple[float, float]] = []  # wall time and simulated time [s]
        self.commands = 0  # that the simulation has taken

        def on_diagnostics(message: Any) -> None:
            if message.status and message.status[0].hardware_id == 'contact_sim':
                stamp = message.header.stamp
                self.told.append((time.perf_counter(), stamp.sec + 1e-9 * stamp.nanosec))
                values = {pair.key: pair.value for pair in message.status[0].values}
                self.commands = int(values['commands_accepted'])

        self._node.create_subscription(DiagnosticArray, '/diagnostics', on_diagnostics, 10)

    def reach(self, simulated: float, timeout: float) -> tuple[float, float]:
        """Return wall and simulated time once simulated time [s] has come so far."""
        end = time.perf_counter() + timeout
        while not self.told or self.told[-1][1] < simulated:
            if self._process.poll() is not None or time.perf_counter() > end:
                tail = self.log.read_text(encoding='utf-8', errors='replace')[-3000:]
                raise RuntimeError(f'simulated time does not reach {simulated:g} s\n{tail}')
            self._executor.spin_once(0.2)
        return self.told[-1]

    def send_efforts(self) -> None:
        """Command efforts of 0, until the simulation says that it has got commands."""
        from std_msgs.msg import Float64MultiArray

        publisher = self._node.create_publisher(Float64MultiArray, f'/{FORWARD}/commands', 10)
        before = len(self.told)
        while len(self.told) == before or not self.commands:
            publisher.publish(Float64MultiArray(data=[0.0] * JOINTS))
            self._executor.spin_once(0.1)

    def close(self) -> None:
        """End everything."""
        import rclpy

        interrupt(self._process)
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)


def started(command: Sequence[str], log: Path) -> Any:
    """Return a process in a group of its own."""
    import subprocess

    with log.open('w', encoding='utf-8') as output:
        return subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def interrupt(process: Any) -> None:
    """End a launch as Ctrl-C does; kill its group where that is not enough."""
    import signal
    import subprocess

    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(20.0)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def launch_arguments(controller: str, transport: str, rate: int, record: Path | None) -> list[str]:
    """Return those of `ros2 launch`."""
    given = {'controller': controller, 'rate': rate, 'socket': TRANSPORTS[transport]}
    if record is not None:
        given['record'] = record
    arguments = [f'{name}:={value}' for name, value in given.items()]
    return ['ros2_control_lockstep', 'quadruped.launch.py', *arguments]


def factor(controller: str, transport: str, rate: int, seconds: float) -> dict[str, Any]:
    """Return the real-time factor of one run of so many simulated seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = Launched(launch_arguments(controller, transport, rate, None), Path(folder))
        try:
            begin = run.reach(WARM_UP, START_TIMEOUT)
            if controller == FORWARD:
                run.send_efforts()
                begin = run.reach(begin[1] + WARM_UP, START_TIMEOUT)
            end = run.reach(begin[1] + seconds, START_TIMEOUT + 20.0 * seconds)
        finally:
            run.close()
    return {
        'controller': controller, 'transport': transport, 'rate': rate,
        'factor': (end[1] - begin[1]) / (end[0] - begin[0]), 'load': os.getloadavg()[0],
    }  # fmt: skip


def recorded(controller: str, transport: str, rate: int, seconds: float) -> Any:
    """Return the hash of the state after every step of a run, shape (n,)."""
    from contact_sim.replay import Recording

    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, 'run.npz')
        run = Launched(launch_arguments(controller, transport, rate, record), Path(folder))
        try:
            run.reach(seconds, START_TIMEOUT + 20.0 * seconds)
        finally:
            run.close()
        return np.concatenate([chunk.hashes for chunk in Recording(record).chunks()])


def compared(controllers: Sequence[str], rate: int, seconds: float, runs: int) -> int:
    """Print whether runs on both transports are equal to the bit; return 1 where they are not."""
    steps, different = round(1000 * seconds), 0
    for controller in controllers:
        states = {
            (transport, k): recorded(controller, transport, rate, seconds)[:steps].tobytes()
            for transport in TRANSPORTS
            for k in range(runs)
        }
        distinct = len(set(states.values()))
        different += distinct > 1
        print(
            f'{controller}: {len(states)} runs of {seconds:g} s on {" and ".join(TRANSPORTS)}: '
            + ('equal to the bit' if distinct == 1 else f'{distinct} of them are different')
        )
    return int(different > 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the factors; return 1 where the target is missed, 2 where nothing can be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=10.0, help='simulated')
    parser.add_argument('--rate', type=int, default=TARGET_RATE, help='cycles per second')
    parser.add_argument('--repeat', type=int, default=3, help='runs of each, one after the other')
    parser.add_argument('--controllers', nargs='+', default=CONTROLLERS, choices=CONTROLLERS)
    parser.add_argument('--transports', nargs='+', default=[*TRANSPORTS], choices=TRANSPORTS)
    parser.add_argument('--same', type=int, metavar='RUNS', help='compare runs that stand')
    parser.add_argument('--json', type=Path)
    options = parser.parse_args(arguments)
    if what := missing():
        print(f'{what}: nothing is measured; see docs/ros2_control.md')
        return 2
    if options.same:
        controllers = [name for name in options.controllers if name in STANDING]
        return compared(controllers, options.rate, options.seconds, options.same)
    rows = []
    for _ in range(options.repeat):
        for controller in options.controllers:
            for transport in options.transports:
                row = factor(controller, transport, options.rate, options.seconds)
                rows.append(row)
                print(
                    f'{controller} at {options.rate} Hz on {transport}: {row["factor"]:.2f} of '
                    f'real time, load {row["load"]:.1f}',
                    flush=True,
                )
    if options.json:
        write_json(options.json, {'runs': rows})
    if options.rate != TARGET_RATE or 'socket' not in options.transports:
        return 0
    best = {
        name: max(r['factor'] for r in rows if (r['controller'], r['transport']) == name)
        for name in ((c, 'socket') for c in options.controllers)
    }
    return int(min(best.values()) < TARGET)


if __name__ == '__main__':
    sys.exit(main())
