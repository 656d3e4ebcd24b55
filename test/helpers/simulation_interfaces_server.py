"""The services of simulation_interfaces on a simulator, asked without a network."""

import asyncio
import contextlib
import importlib.util
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from simulation_interfaces_stand_in import stand_in

from contact_sim.errors import InvalidInput
from contact_sim.ros._commands import CommandBuffer, Pushes
from contact_sim.ros._factory import chosen_terrain, groups_by_name
from contact_sim.ros._inputs import StateControl
from contact_sim.ros._lockstep import Lockstep
from contact_sim.ros._loop import Tally
from contact_sim.ros._parameters import PARAMETER_GROUPS
from contact_sim.ros._population import Population
from contact_sim.ros._robots import joint_gains

MODULE = 'contact_sim.ros._simulation_interfaces'


class Loop:
    """Does at once what is asked for between two steps."""

    feed = None
    inactive = ''
    watchdog = SimpleNamespace(last=0.0)

    def __init__(self):
        self.paused, self.tally = True, Tally()

    def follow_robots(self, guard):
        self.guard = guard

    def between_steps(self, action):
        action()

    def set_paused(self, paused):
        if self.inactive and not paused:
            raise InvalidInput(self.inactive)
        self.paused = paused

    def announce_new_state(self, failure_ends=True):
        pass


class Node:
    """Keeps the services that it is to serve."""

    def __init__(self):
        self.served, self.context = {}, SimpleNamespace(try_shutdown=lambda: None)
        self.subscribed, self.executor, self.log = [], None, []

    def get_logger(self):
        return SimpleNamespace(info=self.log.append, warning=self.log.append)

    def get_name(self):
        return 'contact_sim'

    def get_namespace(self):
        return '/'

    def create_subscription(self, kind, topic, *_, **__):
        self.subscribed.append(topic)
        return topic

    def destroy_subscription(self, topic):
        self.subscribed.remove(topic)

    def create_service(self, kind, name, callback, callback_group):
        self.served[name.removeprefix('~/')] = kind, callback

    def create_timer(self, period, callback):
        self.ending = callback


class Outputs:
    """Publishes nothing, and knows who would publish."""

    def __init__(self):
        self.namespaces, self.arrived = {}, []

    def topics_of(self, sim, settings, namespaces):
        return namespaces

    def follow_robots(self, following, settings, arrived):
        self.namespaces, before = following, self.namespaces
        self.arrived += arrived
        return before

    def forget(self, following):
        pass


class Parameters:
    """Parameters that are set at once."""

    def __init__(self, robot):
        self.settings = {prefix: kind() for prefix, kind in PARAMETER_GROUPS.items()}
        self.declare(groups_by_name(self.settings, robot.joint_names))

    def declare(self, groups):
        for prefix, kind in groups.items():
            self.settings.setdefault(prefix, kind())

    declaring = contextlib.nullcontext

    def change(self, values):
        for name, value in values.items():
            prefix, _, field = name.rpartition('.')
            self.settings[prefix] = replace(self.settings[prefix], **{field: value})
        chosen_terrain(self.settings)


class Server:
    """The services on a simulator, asked without a network."""

    def __init__(self, module, sim):
        self.node, self.sim, self.loop = Node(), sim, Loop()
        robot = sim.robot
        self.parameters, names = Parameters(robot), robot.joint_names
        gains = joint_gains(robot, self.parameters.settings)
        buffer = CommandBuffer(names, robot.joint_positions(sim.q), *gains)
        self.loop.commands, self.loop.pushes = buffer, Pushes(sim, '', ())
        self.loop.lockstep = Lockstep(buffer, names, {}, print)
        self.control = control = StateControl(sim, self.loop, buffer, self.parameters)
        module.ActionServer = self.action_server
        services = SimpleNamespace(take_steps=self.take_steps)
        self.outputs, self.refusal = Outputs(), ''
        self.population = Population(
            self.node, control, self.outputs, {}, self.follow, lambda: self.refusal
        )
        self.interfaces = module.SimulationInterfaces(
            self.node, control, services, self.population
        )

    def follow(self, robot):
        assert robot is self.sim.robot

    def action_server(self, node, kind, name, execute, **_):
        self.action = kind, execute

    async def take_steps(self, count, after_step=None):
        for left in range(count - 1, -1, -1):
            self.sim.step(np.zeros(self.sim.robot.n_joints))
            if after_step is not None and not after_step(left):
                return f'cancelled, {left} steps left'
        return ''

    def ask(self, name, /, **fields):
        kind, callback = self.node.served[name]
        response = callback(kind.Request(**fields), kind.Response())
        return asyncio.run(response) if asyncio.iscoroutine(response) else response


def loaded(release, monkeypatch):
    """Return the module with the classes of a release, and these by the names of their modules."""
    modules = stand_in(release)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.find_spec(MODULE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, modules
