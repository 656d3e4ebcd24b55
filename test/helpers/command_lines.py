"""Command lines of the documentation, checked as far as that goes without running them."""

import argparse
import re
import runpy
import shlex
import sys
from functools import cache

import pytest
from launch_files import launch_module, node_parameters
from markdown_pages import ROOT

from contact_sim.__main__ import COMMANDS

OTHERS = {
    'apt-get', 'cd', 'cp', 'colcon', 'curl', 'docker', 'export', 'git', 'ls', 'mkdir', 'pixi',
    'pytest', 'rosdep', 'source', 'sudo', 'unzip', 'rviz2', 'plotjuggler', 'xdg-open',
}  # fmt: skip
"""Programs of others: their arguments are not checked."""
OF_A_GROUP = ('actuators', 'constraints', 'gains', 'lockstep')
"""Groups that have parameters for every joint, constraint or controller as well."""


class ParsedError(Exception):
    """A command line was parsed without a complaint."""


def commands(text):
    """Yield the commands of a shell block as lists of words."""
    for line in re.sub(r'\\\n\s*', ' ', text).splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r'[A-Z_]+=.*', words[0]):
            words = words[1:]  # a variable set for one command
        command = []
        for word in [*words, '&&']:
            if word not in ('&&', '|', ';', '&'):
                command.append(word)
            elif command:
                yield command
                command = []


def complaint(command):
    """Return what is wrong with a command, None where nothing is found."""
    program, *words = command
    if program in ('python', 'python3'):
        return python_complaint(words)
    if program == 'make':
        return make_complaint(words)
    if program == 'pip':
        return pip_complaint(words)
    if program == 'ros2':
        return ros2_complaint(words)
    if program == 'contact_sim':
        return command_complaint(words)
    if program in OTHERS:
        return None
    ours = ros2_complaint(['run', 'contact_sim', *command])
    return f'unknown program {program}' if ours and 'executable' in ours else ours


def python_complaint(words):
    """Parse a command line with the parser of its module or file, and stop there."""

    def parsed(parser, args=None, namespace=None):
        unpatched(parser, args, namespace)
        raise ParsedError

    unpatched = argparse.ArgumentParser.parse_args
    module = words[0] == '-m'
    name = words[1] if module else words[0]
    if module and not name.startswith('contact_sim'):
        return None
    file = file_of(name) if module else ROOT / name
    if file is None or not file.is_file():
        return f'there is no {name}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, 'parse_args', parsed)
        patch.setattr(sys, 'argv', words[1:] if module else words)
        if not module:
            patch.syspath_prepend(str(file.parent))
        try:
            runpy.run_path(str(file), run_name='__main__')
        except ParsedError:
            return None
        except ModuleNotFoundError as error:
            if str(error.name).startswith('contact_sim'):
                return f'{name}: {error}'
            return None  # a package of others that is not installed here
        except SystemExit as error:
            return f'{name} ends with {error.code}'
    return f'{name} parses no arguments'


def command_complaint(words):
    """Parse the command line of a command of the package."""
    if not words:
        return None
    if words[0] not in COMMANDS:
        return f'contact_sim has no command {words[0]}'
    module = COMMANDS[words[0]].module
    if '--ros-args' in words:
        executable = {'node': 'simulation'}.get(words[0], f'{words[0]}_controller')
        return ros2_complaint(['run', 'contact_sim', executable, *words[1:]])
    return python_complaint(['-m', module, *words[1:]])


def file_of(module):
    """Return the file that `python -m` runs, None where there is none."""
    path = ROOT.joinpath(*module.split('.'))
    package = path / '__main__.py'
    return package if package.is_file() else path.with_suffix('.py')


def make_complaint(words):
    """Compare targets and variables with those of the Makefile."""
    makefile = (ROOT / 'Makefile').read_text(encoding='utf-8')
    targets = set(re.findall(r'^([a-z][\w-]*):', makefile, re.MULTILINE))
    known = set(
        re.findall(r'\$\(?(?:or \$\()?([A-Z_]+)|ifdef ([A-Z]+)|^([A-Z]+) \?=', makefile, re.M)
    )
    variables = {name for names in known for name in names if name}
    for word in words:
        name, assigned, _ = word.partition('=')
        if name not in (variables if assigned else targets):
            return f'the Makefile has no {word}'
    return None


@cache
def setup_text():
    return (ROOT / 'setup.py').read_text(encoding='utf-8')


def pip_complaint(words):
    """Compare the extras of this package with those that it declares."""
    for word in words:
        found = re.fullmatch(r'(?:contact_sim|\.)\[(.*)\]', word)
        for extra in found[1].split(',') if found else ():
            if not re.search(rf"^        '{extra}': ", setup_text(), re.MULTILINE):
                return f'no extra {extra}'
    return None


def known_parameter(name):
    """Say whether the node has such a parameter."""
    first, _, rest = name.partition('.')
    return name in node_parameters() or (first in OF_A_GROUP and bool(rest))


def ros2_complaint(words):
    """Compare launch arguments, executables and parameters with what there is."""
    verb, *rest = words
    ours = rest[:1] == ['contact_sim']
    if verb == 'launch' and ours:
        arguments = launch_module(rest[1])[0].ARGUMENTS
        wrong = [word for word in rest[2:] if word.partition(':=')[0] not in arguments]
        return f'{rest[1]} has no argument {wrong}' if wrong else None
    if verb == 'run' and ours:
        if not (ROOT / 'scripts' / rest[1]).is_file():
            return f'no executable {rest[1]}'
        given = [rest[k + 1] for k, word in enumerate(rest) if word == '-p']
        names = [word.partition(':=')[0] for word in given] if rest[1] == 'simulation' else []
        wrong = [name for name in names if not known_parameter(name)]
        return f'no parameter {wrong}' if wrong else None
    if verb == 'param' and rest[0] in ('get', 'set') and 'contact_sim' in rest[1]:
        return None if known_parameter(rest[2]) else f'no parameter {rest[2]}'
    known = ('action', 'bag', 'control', 'launch', 'node', 'param', 'run', 'service', 'topic')
    return None if verb in known else f'unknown verb {verb}'
