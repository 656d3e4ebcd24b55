"""Controllers in the process of the simulation: messages are handed over, not sent.

    ros2 run contact_sim composed my_package.my_node:MyController --ros-args -p robot:=go1

A controller is a class of rclpy nodes as it runs alone; nothing in it changes. A subscription to a
topic that the simulation publishes gets each message in the thread of the loop, as soon as it is
made; a message on a topic that the simulation subscribes to is taken at once. So in lockstep a
step waits for nobody, and runs are the same to the bit as those of separate processes. All other
topics, services and parameters go through the network as always. The callbacks of a controller
are all called by one thread.

    with Composition(MyController, parameters={'robot': 'go1', 'lockstep.enabled': True}) as run:
        run.advance(2.0)
        print(run.simulation.sim.q)
"""

from __future__ import annotations

import importlib
import inspect
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions

from contact_sim._command_line import ros_help
from contact_sim.errors import InvalidInput
from contact_sim.precompile import compiling_meanwhile
from contact_sim.ros._executor import quickest_executor
from contact_sim.ros._processes import leave, ros_arguments
from contact_sim.ros.controllers import ControllerNode
from contact_sim.ros.simulation_node import CallbackThread, SimulationNode, exit_code

DIRECT = 'joint_commands', 'controller/commands', 'joint_trajectory', 'lockstep_ack'
"""Ends of the topics that the simulation takes at once. The others wait for the end of a step, for
which a callback in the thread of the loop cannot wait."""
SERVED = 5e-3
"""Wall seconds after which what came to controllers over the network is served; with timers, which
may be on simulated time, it is served after every step."""
Take = Callable[[bytes], None]
"""Takes a serialised message."""


class _Exchange:
    """Who takes messages of which topic in this process, by resolved names."""

    def __init__(self) -> None:
        self.states: dict[str, tuple[type, list[Take]]] = {}
        """Topics of the simulation: type, and the subscriptions of controllers."""
        self.commands: dict[str, tuple[type, Callable[[Any], None]]] = {}
        """Topics that the simulation subscribes to: type, and its callback."""


class _StateHandle:
    """Stands for the handle of a publisher of the simulation."""

    def __init__(self, publisher: Any, takers: list[Take]) -> None:
        self._publish = publisher.handle.publish_raw
        self._count = publisher.handle.get_subscription_count
        self._takers = takers

    def get_subscription_count(self) -> int:
        """Return the number of subscriptions in this process and in others."""
        return len(self._takers) + int(self._count())

    def publish_raw(self, data: bytes) -> None:
        """Hand a message over, and send it if somebody else subscribes."""
        if self._count():
            self._publish(data)
        for take in tuple(self._takers):
            take(data)


class _StatePublisher:
    def __init__(self, publisher: Any, takers: list[Take]) -> None:
        self.publisher = publisher
        self.handle = _StateHandle(publisher, takers)


class _ComposedSimulation(SimulationNode):
    """The simulation; its publishers and subscriptions are known to the exchange."""

    def __init__(self, exchange: _Exchange, **options: Any) -> None:
        self._exchange = exchange
        super().__init__(**options)

    def create_publisher(self, msg_type: Any, topic: str, *args: Any, **options: Any) -> Any:
        publisher = super().create_publisher(msg_type, topic, *args, **options)
        if not hasattr(self, '_unique_name'):
            return publisher  # of rclpy itself
        takers: list[Take] = []
        self._exchange.states[self.resolve_topic_name(topic)] = msg_type, takers
        return _StatePublisher(publisher, takers)

    def destroy_publisher(self, publisher: Any) -> bool:
        return bool(super().destroy_publisher(getattr(publisher, 'publisher', publisher)))

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, *args: Any, **options: Any
    ) -> Any:
        if topic.endswith(DIRECT):
            self._exchange.commands[self.resolve_topic_name(topic)] = msg_type, callback
        return super().create_subscription(msg_type, topic, callback, *args, **options)


class DirectSubscription:
    """A subscription to a topic of the simulation in the same process."""

    def __init__(self, msg_type: Any, topic: str, callback: Any, raw: bool) -> None:
        self.msg_type, self.topic_name, self.callback, self.raw = msg_type, topic, callback, raw
        try:
            inspect.signature(callback).bind(None)
            self._with_info = False
        except TypeError:
            self._with_info = True

    def take(self, data: bytes) -> None:
        """Call the callback with a message."""
        message = data if self.raw else deserialize_message(data, self.msg_type)
        if self._with_info:
            self.callback(message, {})
        else:
            self.callback(message)

    def get_publisher_count(self) -> int:
        """Return 1: the simulation."""
        return 1


class DirectPublisher:
    """A publisher of a topic that the simulation in the same process subscribes to."""

    def __init__(self, msg_type: Any, topic: str, take: Callable[[Any], None]) -> None:
        self.msg_type, self.topic_name, self._take = msg_type, topic, take

    def publish(self, msg: Any) -> None:
        """Hand a message, or its bytes, to the simulation."""
        if isinstance(msg, bytes):
            msg = deserialize_message(msg, self.msg_type)
        elif not isinstance(msg, self.msg_type):
            raise TypeError(f'Expected {self.msg_type}, got {type(msg)}')
        self._take(msg)

    def get_subscription_count(self) -> int:
        """Return 1: the simulation."""
        return 1

    def wait_for_all_acked(self, timeout: Any = None) -> bool:
        """Return True: messages have been taken."""
        return True

    def assert_liveliness(self) -> None:
        """Do nothing."""


def composed_class(controller: type[Node], exchange: _Exchange) -> type[Node]:
    """Return the class of a controller with direct publishers and subscriptions."""

    class Composed(controller):  # type: ignore[misc, valid-type]
        def create_subscription(
            self, msg_type: Any, topic: str, callback: Any, *args: Any,
            raw: bool = False, content_filter_options: Any = None, **options: Any,
        ) -> Any:  # fmt: skip
            kind, takers = exchange.states.get(self.resolve_topic_name(topic), (None, []))
            if kind is not msg_type or content_filter_options is not None:
                if content_filter_options is not None:
                    options['content_filter_options'] = content_filter_options
                return super().create_subscription(
                    msg_type, topic, callback, *args, raw=raw, **options
                )
            subscription = DirectSubscription(msg_type, topic, callback, raw)
            takers.append(subscription.take)
            return subscription

        def destroy_subscription(self, subscription: Any) -> bool:
            if not isinstance(subscription, DirectSubscription):
                return bool(super().destroy_subscription(subscription))
            topic = self.resolve_topic_name(subscription.topic_name)
            takers = exchange.states[topic][1]
            if subscription.take in takers:
                takers.remove(subscription.take)
            return True

        def create_publisher(self, msg_type: Any, topic: str, *args: Any, **options: Any) -> Any:
            kind, take = exchange.commands.get(self.resolve_topic_name(topic), (None, print))
            if kind is not msg_type:
                return super().create_publisher(msg_type, topic, *args, **options)
            return DirectPublisher(msg_type, topic, take)

        def destroy_publisher(self, publisher: Any) -> bool:
            direct = isinstance(publisher, DirectPublisher)
            return direct or bool(super().destroy_publisher(publisher))

    Composed.__name__, Composed.__qualname__ = controller.__name__, controller.__qualname__
    Composed.__module__ = controller.__module__
    return Composed


class Composition:
    """A simulation and controllers in one process.

    What a callback of a controller raises ends the call in which it ran.

    Args:
        controllers: classes of nodes, which are made without arguments.
        parameters: ROS parameters of the simulation; None: those of the command line.
        controller_parameters: of the controllers; only if rclpy is not initialised yet.

    Attributes:
        simulation: its node; `simulation.sim` is the Simulator.
        controllers: the other nodes.

    Raises:
        ContactSimError: the simulation cannot start.
    """

    def __init__(
        self,
        *controllers: type[Node],
        parameters: Mapping[str, Any] | None = None,
        controller_parameters: Mapping[str, Any] | None = None,
    ) -> None:
        for controller in controllers:
            if not (isinstance(controller, type) and issubclass(controller, Node)):
                raise InvalidInput(f'controller {controller!r}: expected a class of rclpy nodes')
        self._owns_ros = not rclpy.ok()
        if self._owns_ros:
            arguments = ros_arguments(dict(controller_parameters or {}))
            rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        elif controller_parameters:
            raise InvalidInput(
                'controller_parameters: rclpy is initialised; pass them to its init'
            )
        exchange, options = _Exchange(), {}
        if parameters is not None:
            overrides = [Parameter(name, value=value) for name, value in parameters.items()]
            options = {'parameter_overrides': overrides, 'use_global_arguments': False}
        self.controllers: list[Node] = []
        self._callbacks: CallbackThread | None = None
        try:
            self.simulation = _ComposedSimulation(exchange, **options)
            self._callbacks = CallbackThread(self.simulation)
            self._executor = quickest_executor()
            for controller in controllers:
                node = composed_class(controller, exchange)()
                self.controllers.append(node)
                if isinstance(node, ControllerNode):
                    node.connect()
                self._executor.add_node(node)
        except BaseException:
            self.close()
            raise

    def advance(self, seconds: float) -> None:
        """Simulate some time [s], paced as the parameters say, and serve the controllers.

        Returns early where the simulation cannot go on; `simulation.loop.tally.failure` says why.
        """
        sim, loop = self.simulation.sim, self.simulation.loop
        end = sim.time + (round(seconds / sim.time_step) - 0.5) * sim.time_step
        self.run(lambda: sim.time < end and not (loop.tally.failure or loop.paused))

    def run(self, keep_running: Callable[[], bool] = rclpy.ok) -> None:
        """Simulate and serve the controllers until `keep_running` returns False."""
        executor, callbacks, due = self._executor, self._callbacks, 0.0

        def served() -> bool:
            nonlocal due
            if not (keep_running() and callbacks is not None and callbacks.alive):
                return False
            now = time.perf_counter()
            if now >= due or any(True for node in self.controllers for _ in node.timers):
                executor.spin_once(timeout_sec=0.0)
                due = now + SERVED
            return True

        self.simulation.loop.run(served)

    def close(self) -> None:
        """End all nodes, and finish the recording."""
        if self._callbacks is not None:
            self._callbacks.end()
        simulation = getattr(self, 'simulation', None)
        if simulation is not None:
            simulation.close()
        for node in (*self.controllers, *([simulation] if simulation else [])):
            node.destroy_node()
        self.controllers = []
        if self._owns_ros:
            rclpy.try_shutdown()

    def __enter__(self) -> Composition:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def controller_class(place: str) -> type[Node]:
    """Return the class that `module:Class` names.

    Raises:
        InvalidInput: there is none.
    """
    module, _, name = place.partition(':')
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInput(f'{place}: expected package.module:Class; {error}') from error
    if not (isinstance(found, type) and issubclass(found, Node)):
        raise InvalidInput(f'{place}: expected a class of rclpy nodes')
    return found


NAME = 'composed'
EXAMPLES = (
    'contact_sim.ros.controllers.stance:StanceController --ros-args -p robot:=go1',
    'my_package.my_node:MyController --ros-args -p robot:=go1 -p lockstep.enabled:=true '
    '-p real_time_factor:=0.0',
)


def main(args: Sequence[str] | None = None) -> int:
    """Run a simulation and controllers until interrupted; return 1 where that cannot be."""
    words = list(sys.argv[1:] if args is None else args)
    places = words[: words.index('--ros-args')] if '--ros-args' in words else words

    def simulate(keep_running: Callable[[], bool]) -> str:
        controllers = [controller_class(place) for place in places]
        if not controllers:
            raise InvalidInput('name at least one controller, package.module:Class')
        rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
        with Composition(*controllers) as composition, compiling_meanwhile():
            composition.run(keep_running)
        return composition.simulation.loop.tally.recording

    return exit_code(NAME, simulate)


def executable() -> None:
    """Run `main` as a process."""
    help_text = 'Simulate a robot and run controllers in one process (docs/node.md).'
    if not ros_help(sys.argv[1:], 'contact_sim composed', help_text, EXAMPLES):
        leave(main())


if __name__ == '__main__':
    executable()
