"""`python -m contact_sim`: list what can be run; `contact_sim view go1` runs one of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import contact_sim
from contact_sim.errors import ContactSimError, known_name


@dataclass(frozen=True)
class Command:
    """One of the programs of the package."""

    module: str
    """What `python -m` runs."""
    meaning: str
    """In one line."""
    example: str
    """Arguments of an example."""
    function: str = 'main'
    """What runs it, without arguments: they are in `sys.argv`."""

    @property
    def place(self) -> str:
        """Module of the function."""
        package = find_spec(self.module)
        is_package = package is not None and package.submodule_search_locations is not None
        return f'{self.module}.__main__' if is_package else self.module


COMMANDS: dict[str, Command] = {
    'view': Command(
        'contact_sim.view', 'a robot or a recording in the browser', 'go1 --controller trot'
    ),
    'verdict': Command(
        'contact_sim.verdict', 'is it my controller, or the contact model?',
        'my_controller.py:Walk --robot go1 --scenario trot',
    ),
    'compare': Command(
        'contact_sim.compare', 'all contact models in one scenario: table and figure',
        '--robot go1 --scenario slide',
    ),
    'inspect': Command(
        'contact_sim.inspect', 'is my robot description understood?', 'my_robot.urdf'
    ),
    'replay': Command(
        'contact_sim.replay', 'repeat a recording, compare it, export it',
        'run.npz --mcap run.mcap',
    ),
    'judge': Command(
        'contact_sim.judge', 'how well a trajectory keeps the laws of contact', 'run.npz'
    ),
    'reality': Command(
        'contact_sim.reality', 'contact laws against measured motions', 'cube_tosses'
    ),
    'identify': Command(
        'contact_sim.identify', 'friction, contact, inertia and actuators from a log',
        'run.mcap --robot go1 --fit friction armature',
    ),
    'campaign': Command(
        'contact_sim.campaign', 'a controller in many trials, one row each',
        'stance --models all --friction 0.2 0.8 --seeds 20',
    ),
    'support': Command(
        'contact_sim.support', 'what a set of feet can and cannot control',
        '--robot anymal_b --feet LF_FOOT RH_FOOT',
    ),
    'precompile': Command(
        'contact_sim.precompile', 'compile all kernels ahead of time', '--jobs 2'
    ),
    'node': Command(
        'contact_sim.ros.simulation_node', 'the ROS 2 node (needs rclpy, the extra ros)',
        '--ros-args -p robot:=go1', 'executable',
    ),
    'stance': Command(
        'contact_sim.ros.controllers.stance', 'a ROS 2 controller that stands, squats and sways',
        '--ros-args -p robot:=go1 -p motion:=squat',
    ),
    'balance': Command(
        'contact_sim.ros.controllers.balance',
        'a ROS 2 controller that keeps robots standing on their soles',
        '--ros-args -p urdf_path:=my_humanoid.urdf',
    ),
    'trot': Command(
        'contact_sim.ros.controllers.trot', 'a ROS 2 controller that trots with cmd_vel',
        '--ros-args -p robot:=go1',
    ),
    'policy': Command(
        'contact_sim.ros.controllers.policy', 'a ROS 2 controller that runs a trained policy',
        '--ros-args -p robot:=go1 -p policy:=walk.yaml',
    ),
    'demo': Command(
        'contact_sim.ros.demo', 'node and controller as processes, with a figure',
        '--robot go1 --demo trot',
    ),
}  # fmt: skip
"""Name of each program: where it is."""


def overview() -> str:
    """Return the list of programs, each with an example."""
    lines = [
        f'contact_sim {contact_sim.__version__}: a simulator for legged robots',
        '',
        'contact_sim COMMAND ...      or      python -m contact_sim COMMAND ...',
        'contact_sim COMMAND --help   lists the options of a command',
        '',
    ]
    for name, command in COMMANDS.items():
        lines += [f'  {name:10}  {command.meaning}', f'      contact_sim {name} {command.example}']
    return '\n'.join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, or list all.

    Returns:
        What the command returns; 2 where there is no such command.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ('-h', '--help', 'help'):
        print(overview())
        return 0
    if words[0] == '--version':
        print(contact_sim.__version__)
        return 0
    try:
        name = known_name('command', words[0], COMMANDS)
    except ContactSimError as error:
        print(f'contact_sim: {error}', file=sys.stderr)
        return 2
    sys.argv = [f'contact_sim {name}', *words[1:]]
    if str(Path.cwd()) not in sys.path and '' not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # controllers are found as with `python -m`
    command = COMMANDS[name]
    function: Callable[[], int | None] = getattr(
        importlib.import_module(command.place), command.function
    )
    return function() or 0


if __name__ == '__main__':
    sys.exit(main())
