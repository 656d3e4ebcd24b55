"""Time from a command of an ordinary rclpy controller to its torque, without lockstep.

    python benchmarks/command_latency.py [--robot go1] [--rate 250] [--seconds 20] [--json FILE]

The controller answers every `joint_states` with a `joint_commands`. The node is the usual one; it
notes when callbacks and steps begin. Both clocks are the monotonic one of the machine. The parts:

    received    publish() of the controller to the callback of the node: the network, the executor
    taken       the callback: checks, and the command is in force
    waited      until a step begins: at 1 kHz up to 1 ms by the schedule
    stepped     the step
    published   until its messages are handed to the middleware

`latency` is the sum of the first three: from the command to the torque that it makes. Target: a
99th percentile of 4 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engines import write_json

from contact_sim.ros._client import SimulationClient
from contact_sim.ros._processes import Process, ros_arguments

TARGET = 4.0
"""Largest 99th percentile of the latency [ms]."""
START = 120.0
"""Wall seconds until the simulation publishes; a first start compiles the kernels."""
PARTS = 'received', 'taken', 'waited', 'stepped', 'published'


def simulate(log: Path) -> int:
    """Run the node, and write when it received, took, used and answered each command."""
    from contact_sim.ros import simulation_node
    from contact_sim.ros._inputs import Subscriptions
    from contact_sim.ros._loop import Loop

    times: dict[float, list[float]] = {}  # by the number of the command
    in_force = [0.0]
    take, step = Subscriptions._on_joint_command, Loop._step

    def noted_take(self: Any, message: Any) -> None:
        begin = time.perf_counter()
        take(self, message)
        number = message.effort[0]
        times[number] = [begin, time.perf_counter()]
        in_force[0] = number

    def noted_step(self: Any) -> None:
        number, begin = in_force[0], time.perf_counter()
        step(self)
        entry = times.get(number)
        if entry is not None and len(entry) == 2:
            entry += [begin, begin + self.watchdog.last, time.perf_counter()]

    Subscriptions._on_joint_command = noted_take  # type: ignore[method-assign]
    Loop._step = noted_step  # type: ignore[method-assign]
    status = simulation_node.main()
    rows = [[number, *entry] for number, entry in times.items() if len(entry) == 5]
    np.save(log, np.array(rows))
    return status


def control(log: Path) -> None:
    """Answer states with numbered commands, as an ordinary node does, and write when."""
    import rclpy
    from rclpy.executors import ExternalShutdownException
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    class Controller(Node):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__('controller')
            self.number = 0.0
            self.sent: dict[float, float] = {}
            self.publisher = self.create_publisher(JointState, 'joint_commands', 10)
            self.create_subscription(JointState, 'joint_states', self.on_state, 10)

        def on_state(self, state: JointState) -> None:
            self.number += 1.0
            command = JointState(name=state.name, effort=[0.0] * len(state.name))
            command.effort[0] = 1e-9 * self.number
            command.position = self.pose = getattr(self, 'pose', list(state.position))
            command.velocity = [0.0] * len(state.name)
            self.sent[self.number] = time.perf_counter()
            self.publisher.publish(command)

    rclpy.init()
    node = Controller()
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)
    np.save(log, np.array(list(node.sent.items())))


def measured(robot: str, rate: float, seconds: float) -> dict[str, Any]:
    """Return percentiles of the latency and of its parts [ms]."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder)
        client = SimulationClient(logs)
        del client.domain['FASTDDS_BUILTIN_TRANSPORTS']
        program = [sys.executable, __file__]
        simulation = Process(
            [*program, '--simulate', str(logs / 'simulation.npy')],
            ros_arguments({'robot': robot, 'publish_rate.joint_states': rate}),
            client.domain, logs / 'simulation.log',
        )  # fmt: skip
        client.simulation = simulation
        try:
            client.wait(
                lambda: bool(client.node.count_publishers('joint_states')), 'the simulation', START
            )
            controller = Process(
                [*program, '--control', str(logs / 'controller.npy')], (), client.domain,
                logs / 'controller.log',
            )  # fmt: skip
            time.sleep(seconds + 2.0)
            controller.stop()
        finally:
            client.close()
        sent = np.load(logs / 'controller.npy')
        used = np.load(logs / 'simulation.npy')
    return figures(sent, used, rate)


def figures(sent: Any, used: Any, rate: float) -> dict[str, Any]:
    """Return percentiles of what the two processes have noted, without the first second."""
    sent_at = dict(zip(sent[:, 0].round().tolist(), sent[:, 1], strict=True))
    rows = []
    for number, *times in used:
        begin = sent_at.get(round(number * 1e9))
        if begin is not None and number * 1e9 > rate:
            rows.append(np.diff([begin, *times]))
    parts = 1e3 * np.array(rows)
    latency = parts[:, :3].sum(axis=1)
    table = {'latency': latency} | dict(zip(PARTS, parts.T, strict=False))
    result: dict[str, Any] = {'rate': rate, 'commands': len(sent), 'used': len(rows)}
    for name, values in table.items():
        result[name] = {f'p{q}': float(np.percentile(values, q)) for q in (50, 90, 99, 100)}
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1')
    parser.add_argument('--rate', type=float, default=250.0)
    parser.add_argument('--seconds', type=float, default=20.0)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args(arguments)
    print(f'load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores')
    result = measured(options.robot, options.rate, options.seconds)
    print(f'{result["commands"]} commands at {options.rate:g} Hz, {result["used"]} acted; [ms]')
    print(f'{"":10}' + ''.join(f'{name:>8}' for name in ('p50', 'p90', 'p99', 'max')))
    for name in ('latency', *PARTS):
        if name in result:
            print(f'{name:10}' + ''.join(f'{value:8.2f}' for value in result[name].values()))
    if options.json:
        write_json(options.json, result)
    return int(result['latency']['p99'] > TARGET)


if __name__ == '__main__':
    if sys.argv[1:2] == ['--simulate']:
        sys.exit(simulate(Path(sys.argv.pop(2))))
    if sys.argv[1:2] == ['--control']:
        control(Path(sys.argv[2]))
    else:
        sys.exit(main())
