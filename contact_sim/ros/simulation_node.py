"""Executable `simulation`: the node and its callback thread, from start to a clean end."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import rclpy
from rclpy._rclpy_pybind11 import RCLError, UnknownROSArgsError
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import ExternalShutdownException
from rclpy.signals import SignalHandlerOptions

from contact_sim.errors import ContactSimError, shortened
from contact_sim.precompile import compiling_meanwhile
from contact_sim.ros._node import CallbackThread, SimulationNode
from contact_sim.ros._processes import Interruption, leave
from contact_sim.simulation._running import compiling_while

SWITCH_INTERVAL = 1e-3
"""Longest time one Python thread keeps another waiting [s]: a callback is served within it."""
NAME = 'contact_sim'


def run(node: SimulationNode, keep_running: Callable[[], bool] = rclpy.ok) -> None:
    """Run the node's loop here and its callbacks in another thread until `keep_running` is False.

    CallbacksEnded is raised where no more callbacks are served.
    """
    callbacks = CallbackThread(node)
    try:
        node.run(lambda: keep_running() and callbacks.alive)
    except RCLError:
        if rclpy.ok():
            raise
    finally:
        try:
            callbacks.end()
        finally:
            node.destroy_node()


def main(args: list[str] | None = None) -> int:
    """Start the simulation; return 1 with one line of reason where it cannot go on."""
    logging.basicConfig(format='[%(levelname)s] [%(name)s]: %(message)s')
    sys.setswitchinterval(SWITCH_INTERVAL)
    with Interruption(NAME) as interruption:
        try:
            rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
            reason = simulate(lambda: rclpy.ok() and not interruption.requested)
        except (KeyboardInterrupt, ExternalShutdownException):
            reason = ''
        except (
            ContactSimError,
            InvalidParameterTypeException,
            InvalidParameterValueException,
            RCLError,  # such as a parameter file that is missing
            UnknownROSArgsError,
        ) as error:
            reason = shortened(error)
        finally:
            rclpy.try_shutdown()
    if reason:
        print(f'{NAME}: {reason}', file=sys.stderr)
    return 1 if reason else 0


def simulate(keep_running: Callable[[], bool]) -> str:
    """Simulate until `keep_running` is False; return why recording ended early, '' if it did not.

    KeyboardInterrupt is raised where that is before the simulation has begun.
    """
    with compiling_while(keep_running):
        node = SimulationNode()
    with compiling_meanwhile():
        run(node, keep_running)
    return node.loop.tally.recording


def executable() -> None:
    """Run `main` as a process."""
    leave(main())


if __name__ == '__main__':
    executable()
