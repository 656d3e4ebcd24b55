"""Executable `simulation`: the node with its threads, from start to a clean end."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType

import rclpy
from rclpy._rclpy_pybind11 import RCLError, UnknownROSArgsError
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import ExternalShutdownException

from contact_sim.errors import ContactSimError
from contact_sim.precompile import compiling_meanwhile
from contact_sim.ros.callbacks import CallbackThread
from contact_sim.ros.node import SimulationNode
from contact_sim.simulation.compilation import compiling_while

SWITCH_INTERVAL = 1e-3
"""Longest time one Python thread keeps another waiting [s]: a callback is served within it."""


def leave_to_rclpy(number: int, frame: FrameType | None) -> None:
    """Answer SIGINT as SIGTERM is answered: rclpy ends its context, and `rclpy.ok` says so."""


def run(node: SimulationNode) -> None:
    """Run the node's loop here and its callbacks in another thread.

    Raises:
        CallbacksEnded: no more callbacks are served.
    """
    callbacks = CallbackThread(node)
    try:
        node.run(lambda: rclpy.ok() and callbacks.alive)
    except RCLError:
        if rclpy.ok():
            raise
    finally:
        try:
            callbacks.end()
        finally:
            node.destroy_node()


def main(args: list[str] | None = None) -> int:
    """Start the simulation; return 1 with one line of reason where a parameter is unusable."""
    logging.basicConfig(format='[%(levelname)s] [%(name)s]: %(message)s')
    sys.setswitchinterval(SWITCH_INTERVAL)
    signal.signal(signal.SIGINT, leave_to_rclpy)
    try:
        rclpy.init(args=args)
    except (RCLError, UnknownROSArgsError) as error:  # such as a parameter file that is missing
        print(f'contact_sim: {error}', file=sys.stderr)
        return 1
    try:
        with compiling_while(rclpy.ok):
            node = SimulationNode()
        with compiling_meanwhile():
            run(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (
        ContactSimError,
        InvalidParameterTypeException,
        InvalidParameterValueException,
    ) as error:
        print(f'contact_sim: {error}', file=sys.stderr)
        return 1
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
