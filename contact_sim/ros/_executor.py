"""The executor that serves callbacks with the least delay."""

from __future__ import annotations

from importlib import metadata

from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor

# The first release of each series whose executor for events awaits the coroutines of services
# (ros2/rclpy#1478); the ones before answer no service of the node.
AWAITS_SERVICES = {7: (7, 1, 11), 9: (9, 1, 2), 10: (10, 0, 1)}


def quickest_executor(context: Context | None = None) -> Executor:
    """Return the executor of rclpy that costs least per message.

    The one for events serves a message in half of the time, since it does not build a set of
    everything that may arrive before it waits.
    """
    if not awaits_services(_version()):
        return SingleThreadedExecutor(context=context)
    from rclpy.experimental import EventsExecutor

    executor: Executor = EventsExecutor(context=context)
    return executor


def awaits_services(version: str | None) -> bool:
    """Whether the executor for events of this version of rclpy awaits services."""
    numbers = (version or '').split('.')[:3]
    if not all(number.isdigit() for number in numbers):
        return False
    release = tuple(map(int, numbers))
    series = release[0]
    return series > max(AWAITS_SERVICES) or release >= AWAITS_SERVICES.get(series, (series + 1,))


def _version() -> str | None:
    for name in ('rclpy', 'ros-rclpy'):  # in an installation of ROS, as a wheel
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
